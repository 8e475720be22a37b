"""verify, head, rebuild, keys: is the history what was written, and who vouches for it?"""

import argparse
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leasehold.cli.connecting import connected_as_operator
from leasehold.cli.output import Cell, Output, counted, local_time
from leasehold.cli.parser import Commands, is_number
from leasehold.cli.progress import Progress
from leasehold.errors import EXIT_ERROR

if TYPE_CHECKING:
    from leasehold.engine.audit import Audit
    from leasehold.engine.port import Head
    from leasehold.kernel.ledger.keys import Key


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_verify(commands)
    commands.add(
        "head",
        _head,
        "print where the ledger ends, to keep elsewhere",
        details="""\
Prints POSITION:HASH. Keep it where whoever can write the store cannot: `leasehold verify --head` finds with
it what no chain can show by itself, a ledger that was cut off or rewritten.

example:
  leasehold head >> /mnt/elsewhere/leases.heads

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    commands.add(
        "rebuild",
        _rebuild,
        "rebuild the tables from the ledger",
        details="""\
Replaces what the tables say by what the ledger says, in one transaction. Refused, and nothing is changed, if
anything is wrong with the ledger.

example:
  leasehold rebuild --store /srv/leases

exit codes: 0 done · 1 error, or the ledger is broken · 2 wrong usage""",
    )
    _add_keys(commands)


def _add_verify(commands: Commands) -> None:
    parser = commands.add(
        "verify",
        _verify,
        "prove that the history is what was written, and that the tables say the same",
        details="""\
Checks every entry: its hash, its seal, that the law could have produced it, that queries find it as what it
is; replays them all, and compares the result with the tables. Names the first entry that is not right.
Before that it checks the store itself: SQLite's pages, each index against its table, and that the schema
has everything that leasehold made and nothing else. Changes nothing.

examples:
  leasehold verify
  leasehold verify --skip-storage
  leasehold verify --head 4711:9f2c…   (what `leasehold head` printed earlier)
  leasehold verify --backup leases.backup

exit codes: 0 OK · 1 a problem was found, or an error · 2 wrong usage""",
    )
    parser.add_argument(
        "--head", type=_head_of, metavar="POSITION:HASH", help="a head that was kept elsewhere"
    )
    parser.add_argument(
        "--backup", type=Path, metavar="FILE", help="look into this backup instead of the store"
    )
    parser.add_argument("--first-key", metavar="KEY", help="the key that must be the first")
    parser.add_argument(
        "--trust",
        metavar="KEY",
        action="append",
        default=[],
        help="a key that you know, although no admitted key vouches for it; may be repeated",
    )
    parser.add_argument(
        "--skip-storage", action="store_true", help="leave out SQLite's pages, indexes and schema"
    )


def _head_of(text: str) -> "Head":
    from leasehold.engine.port import Head

    position, separator, digits = text.partition(":")
    try:
        entry_hash = bytes.fromhex(digits)
    except ValueError:
        entry_hash = b""
    if not (separator and is_number(position) and len(entry_hash) == 32):
        raise argparse.ArgumentTypeError(f"invalid head {text!r:.80}; write what `leasehold head` prints")
    return Head(position=int(position), hash=entry_hash)


def _verify(arguments: Namespace, out: Output) -> int:
    progress = Progress("verifying", out)
    found = _audit(arguments, progress)
    progress.clear()
    if out.as_json:
        out.json(_audit_shape(found))
    else:
        _tell(out, found)
    return EXIT_ERROR if found.problems else 0


def _audit(arguments: Namespace, progress: Progress) -> "Audit":
    options = {
        "trusted": arguments.trust,
        "first_key": arguments.first_key,
        "skip_storage": arguments.skip_storage,
    }
    if arguments.backup is not None:
        from leasehold.cli.sqlite_file import audit_backup

        return audit_backup(arguments.backup, progress, expected=arguments.head, **options)
    with connected_as_operator(arguments) as client:
        return client.verify(head=arguments.head, progress=progress, **options)


def _audit_shape(found: "Audit") -> dict[str, Any]:
    return {
        "ok": not found.problems,
        "entries": found.entries,
        "pruned": found.pruned,
        "leases": found.leases,
        "head": _spelled(found.head),
        "sealed": found.sealed,
        "unsealed_before": found.unsealed_before,
        "keys": [_key_shape(key) for key in found.keys],
        "first_bad": found.first_bad,
        "storage_checked": found.storage_checked,
        "problems": found.problems,
    }


def _tell(out: Output, found: "Audit") -> None:
    for problem in found.problems:
        out.line(("PROBLEM", "red"), f"  {problem}")
    if found.unsealed_before:
        out.line(f"entries up to {found.unsealed_before} are from before this ledger was sealed")
    if found.pruned:
        out.line(f"entries up to {found.pruned:,} were pruned; a checkpoint stands for them")
    if not found.storage_checked:
        out.line("SQLite's pages, indexes and schema were not checked")
    if found.problems:
        out.line("problems were found")
        return
    keys = counted(len(found.keys), "key")
    out.line(
        f"OK: {found.entries - found.pruned:,} entries, sealed with {keys}, and "
        f"{counted(found.leases, 'lease')} as the tables say"
    )
    out.line(f"head {_spelled(found.head)}")


def _spelled(head: "Head") -> str:
    return f"{head.position}:{head.hash.hex()}"


def _head(arguments: Namespace, out: Output) -> None:
    with connected_as_operator(arguments) as client:
        head = client.head()
    out.answer({"head": _spelled(head), "position": head.position, "hash": head.hash.hex()}, _spelled(head))


def _rebuild(arguments: Namespace, out: Output) -> None:
    progress = Progress("rebuilding", out)
    with connected_as_operator(arguments) as client:
        records = client.rebuild(progress=progress)
    progress.clear()
    if out.as_json:
        out.json(records)
    else:
        made = ", ".join(f"{family} {number}" for family, number in records.items())
        out.line(f"rebuilt {counted(sum(records.values()), 'record')} from the ledger: {made}")


def _add_keys(commands: Commands) -> None:
    parser = commands.add(
        "keys",
        _keys,
        "list, rotate, retire or vouch for the keys that seal the ledger",
        details="""\
list     every key that seals the ledger, or did (the default)
rotate   put a new key in the place of yours
retire   let KEY seal nothing any more
vouch    vouch with your key for KEY, which had enrolled itself: another user's, or one after a loss

examples:
  leasehold keys
  leasehold keys rotate --reason "yearly"
  leasehold keys vouch 717536a949552cc6

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    parser.add_argument(
        "action", nargs="?", choices=("list", "rotate", "retire", "vouch"), default="list", help="what to do"
    )
    parser.add_argument("key", metavar="KEY", nargs="?", help="which key, for retire and vouch")
    parser.add_argument("--reason", metavar="TEXT", default="", help="why, for history")


def _keys(arguments: Namespace, out: Output) -> None:
    from leasehold.errors import InvalidInput

    action, key_id = arguments.action, arguments.key
    if (key_id is None) == (action in ("retire", "vouch")):
        raise InvalidInput(f"`keys {action}` {'needs a' if key_id is None else 'takes no'} KEY", field="key")
    with connected_as_operator(arguments) as client:
        match action:
            case "rotate":
                keys = [client.rotate_key(reason=arguments.reason)]
            case "retire":
                keys = [client.retire_key(key_id, reason=arguments.reason)]
            case "vouch":
                keys = [client.vouch_for_key(key_id, reason=arguments.reason)]
            case _:
                keys = client.keys()
    if out.as_json:
        out.json({"keys": [_key_shape(key) for key in keys]})
    elif not keys:
        out.line("no keys: this ledger is not sealed yet")
    else:
        out.table(["KEY", "STATE", "VOUCHED FOR", "ENROLLED", "BY"], [_key_row(key) for key in keys])


def _key_row(key: "Key") -> list[Cell]:
    from leasehold.engine.signing import key_id_of

    vouched = "first" if key.number == 1 else key_id_of(key.vouched_by) if key.vouched_by else "by nobody"
    return [
        key_id_of(key.public_key),
        ("admitted", "green") if key.is_admitted else ("retired", "dim"),
        vouched,
        local_time(key.enrolled_at_ns),
        key.enrolled_by,
    ]


def _key_shape(key: "Key") -> dict[str, Any]:
    from leasehold.engine.signing import key_id_of
    from leasehold.shapes import utc

    return {
        "key_id": key_id_of(key.public_key),
        "public_key": key.public_key.hex(),
        "number": key.number,
        "admitted": key.is_admitted,
        "vouched_for": key.is_vouched_for,
        "vouched_by": key_id_of(key.vouched_by) if key.vouched_by else None,
        "enrolled_at": utc(key.enrolled_at_ns),
        "enrolled_by": key.enrolled_by,
        "reason": key.reason,
        "retired_at": utc(key.retired_at_ns),
        "retired_by": key.retired_by,
        "retire_reason": key.retire_reason,
    }
