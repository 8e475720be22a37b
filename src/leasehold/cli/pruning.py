"""prune: remove old history, such that what is left can still be proved."""

from argparse import Namespace

from leasehold.cli.connecting import connected_as_operator
from leasehold.cli.durations import parse_duration
from leasehold.cli.output import Output, counted
from leasehold.cli.parser import Commands
from leasehold.cli.progress import Progress
from leasehold.cli.sqlite_file import free_bytes, shrink, store_path


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.add(
        "prune",
        _prune,
        "remove old history, such that the rest can still be proved",
        details="""\
Writes a checkpoint, which stands for all entries that are older than is to be kept, and removes those; leases
that ended before leave the tables. Nothing that stands is removed, positions and tokens continue, and
`leasehold verify` continues from the checkpoint. Refused, and nothing is removed, if anything is wrong with
the ledger. Take a backup first if you may want to look at old history again.

It works in batches, and others can write between them. The database does not shrink: later entries
reuse the space. `--vacuum` gives it back to the file system.

examples:
  leasehold prune --dry-run
  leasehold prune --keep 90d
  leasehold prune --vacuum

exit codes: 0 done, or nothing to do · 1 error, or the ledger is broken · 2 wrong usage""",
    )
    parser.add_argument(
        "--keep",
        type=parse_duration,
        default=30 * 86_400.0,
        metavar="TIME",
        help="how much history to keep: 30d, 36h (default: 30d, at least 1h)",
    )
    what_else = parser.add_mutually_exclusive_group()
    what_else.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    what_else.add_argument(
        "--vacuum",
        action="store_true",
        help="also rewrite the database without its free space; nobody can write meanwhile",
    )


def _prune(arguments: Namespace, out: Output) -> None:
    progress = Progress("checking", out)
    to_shrink = store_path(arguments) if arguments.vacuum else None
    with connected_as_operator(arguments) as client:
        found = client.prune(keep=arguments.keep, dry_run=arguments.dry_run, progress=progress)
    progress.clear()
    if to_shrink is not None:
        shrink(to_shrink)
    free = free_bytes(client.url)
    if out.as_json:
        out.json(
            {
                "entries": found.entries,
                "records": found.records,
                "through": found.through,
                "checkpoint": found.checkpoint,
                "dry_run": arguments.dry_run,
                "free_bytes": free,
            }
        )
        return
    if not found.entries:
        out.line("nothing to prune: all history is younger than that, or gone already")
    else:
        records = counted(found.records, "ended record")
        what = f"{found.entries:,} entries up to {found.through:,} and {records}"
        if arguments.dry_run:
            out.line(f"would remove {what}")
        else:
            out.line(f"removed {what}; entry {found.checkpoint:,} stands for them")
    if arguments.vacuum:
        out.line("the database was rewritten without its free space")
    elif free and not arguments.dry_run:
        out.line(
            f"{free / 1024:,.0f} KiB of the database are free for later entries; --vacuum gives them back"
        )
