"""backup and restore: copies of a store that can be put back without repeating a token."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from leasehold.cli.connecting import connected_as_operator
from leasehold.cli.output import Output, agrees, counted, say_on_stderr
from leasehold.cli.parser import Commands
from leasehold.cli.progress import Progress
from leasehold.cli.sqlite_file import refuse_loop, store_path
from leasehold.errors import EXIT_ERROR

if TYPE_CHECKING:
    from leasehold.engine.jobs import BackedUp
    from leasehold.stores.sqlite.backup import Copied
    from leasehold.stores.sqlite.replacing import Replaced


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    backup = commands.add(
        "backup",
        _backup,
        "copy the store to a file, while it is in use",
        details="""\
The copy is one moment of the store, whole, and nobody has to stop for it. Put it back with
`leasehold restore`, never by hand: tokens must not repeat.

example:
  leasehold backup leases.backup

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    backup.add_argument("file", metavar="FILE", type=Path, help="where to put the copy")
    backup.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")
    restore = commands.add(
        "restore",
        _restore,
        "put a backup in the place of the store",
        details="""\
What happened after the backup was taken is forgotten, except that its tokens can never come again: the
restored store begins a higher epoch, so whoever was granted a lease meanwhile is fenced off. It says what
would be forgotten, and asks, if there is a terminal to ask at; a script is not asked, and told afterwards.

examples:
  leasehold restore leases.backup --store /srv/leases
  leasehold restore leases.backup --yes

exit codes: 0 done · 1 error, or the answer was no · 2 wrong usage""",
    )
    restore.add_argument("file", metavar="FILE", type=Path, help="a file that `leasehold backup` has written")
    restore.add_argument("--yes", action="store_true", help="do not ask")


def _backup(arguments: Namespace, out: Output) -> None:
    path = store_path(arguments)
    progress = Progress("copying", out)
    with connected_as_operator(arguments) as client:
        copied = client.backup(arguments.file.absolute(), overwrite=arguments.overwrite, progress=progress)
    progress.clear()
    _tell(out, f"copied {path} to {arguments.file}", path, arguments.file, copied)


def _restore(arguments: Namespace, out: Output) -> int | None:
    from leasehold.registry import FAMILIES
    from leasehold.stores.sqlite.backup import restore
    from leasehold.stores.sqlite.replacing import replaced

    path = store_path(arguments)
    progress = Progress("restoring", out)
    refuse_loop(arguments.file)
    forgotten = replaced(arguments.file, path, families=FAMILIES)
    is_asked = forgotten is not None and not arguments.yes and sys.stdin.isatty() and sys.stderr.isatty()
    if forgotten is not None and is_asked:
        say_on_stderr(f"This replaces {path}, and forgets {_spelled(forgotten)}.")
        if not agrees("Go on?"):
            say_on_stderr("nothing was changed")
            return EXIT_ERROR
    copied = restore(arguments.file, path, progress)
    progress.clear()
    facts = {
        "forgotten_entries": 0 if forgotten is None else forgotten.entries,
        "forgotten_leases": 0 if forgotten is None else forgotten.leases,
    }
    _tell(out, f"restored {path} from {arguments.file}", path, arguments.file, copied, **facts)
    if forgotten is not None and not is_asked and not out.as_json:
        out.line(f"forgotten: {_spelled(forgotten)}")
    return None


def _spelled(forgotten: "Replaced") -> str:
    entries = f"{forgotten.entries:,} ledger {'entry' if forgotten.entries == 1 else 'entries'}"
    since = "since the backup" if forgotten.is_same_ledger else "of another ledger than the backup's"
    return f"{entries} {since}, and {counted(forgotten.leases, 'live lease')}"


def _tell(out: Output, what: str, store: Path, file: Path, copied: "BackedUp | Copied", **more: int) -> None:
    if out.as_json:
        facts = {"epoch": copied.epoch, "entries": copied.entries, "size_bytes": copied.size_bytes}
        out.json({"store": str(store), "file": str(file.absolute()), **facts, **more})
    else:
        out.line(f"{what}: {copied.entries:,} ledger entries, epoch {copied.epoch}")
