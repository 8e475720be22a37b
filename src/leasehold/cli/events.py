"""history, watch: what happened, and what happens. Nothing here changes anything."""

import argparse
import shlex
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from leasehold.cli.connecting import connected
from leasehold.cli.naming import displayed, resource
from leasehold.cli.output import Output, local_time, say_on_stderr
from leasehold.cli.parser import Commands, UsageError, is_number, positive_number
from leasehold.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from leasehold.client.blocking.client import Client
    from leasehold.kernel.ledger.chain import Entry

_PAGE = 1_000
_HELD_MAXIMUM = 10_000
"""How many leases a look at one moment shows at most."""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_history(commands)
    _add_watch(commands)


def _add_history(commands: Commands) -> None:
    parser = commands.add(
        "history",
        _history,
        "show what happened, oldest first",
        details="""\
With --json: one object per line. Each entry's hash covers all entries before it; `leasehold verify` checks
them all.

examples:
  leasehold history report-42
  leasehold history --holder alice --type revoked --json
  leasehold history --domain orders
  leasehold history --at "2026-01-30 12:00"

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    parser.add_argument(
        "resource", metavar="RESOURCE", nargs="?", type=resource, help="only about this resource"
    )
    about = parser.add_mutually_exclusive_group()
    about.add_argument("--lease", metavar="LEASE", help="only about this lease")
    about.add_argument(
        "--domain",
        dest="lease",
        type=_filed_under,
        metavar="DOMAIN",
        help="only about the offsets of this domain of `leasehold work`",
    )
    parser.add_argument("--holder", "--as", metavar="NAME", help="only about leases of this holder")
    parser.add_argument(
        "--type",
        action="append",
        default=[],
        type=_event_type,
        metavar="TYPE",
        help="only issued, renewed, released, expired, revoked, rearmed, delegated, reclaimed, spent, "
        "queued, left, confirmed, upgrade_queued, upgrade_left, mode_changed or doubted; or what is not "
        "about leases, in full: guard.bypassed, settings.changed, access.*, work.*, workflow.* (a word that "
        "is none lists all); may be repeated",
    )
    parser.add_argument(
        "--at",
        type=_moment,
        metavar="TIME",
        help="who held what at that time: 2026-01-30 12:00 (local), or with a zone, 2026-01-30T12:00Z",
    )
    parser.add_argument(
        "--after", type=_position, default=0, metavar="N", help="continue after this position"
    )
    parser.add_argument("--limit", type=positive_number, metavar="N", help="show at most N (default: all)")


def _filed_under(domain: str) -> str:
    from leasehold.work.law.model import filed_under

    return filed_under(domain)


def _event_type(text: str) -> str:
    from leasehold.client.inputs import event_type

    try:
        return event_type("type", text)
    except InvalidInput as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _position(text: str) -> int:
    if not is_number(text):
        raise argparse.ArgumentTypeError(
            f"invalid position {text!r:.80}; history prints them in its first column"
        )
    return int(text)


def _moment(text: str) -> "datetime":
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"invalid time {text!r}; write 2026-01-30 12:00, or 2026-01-30T12:00:00Z"
        ) from None


def _held_at(arguments: Namespace, out: Output) -> None:
    """Tell who held what at a moment."""
    from leasehold.shapes import lease_shape

    if arguments.type or arguments.lease or arguments.after:
        raise UsageError("--at goes with RESOURCE, --holder and --limit only; see `leasehold history --help`")
    with connected(arguments) as client:
        page = client.held_at(
            arguments.at,
            resource=arguments.resource,
            holder=arguments.holder,
            limit=min(arguments.limit or _HELD_MAXIMUM, _HELD_MAXIMUM),
        )
    if out.as_json:
        for status in page.statuses:
            out.json(lease_shape(status))
    elif not page.statuses:
        out.line("nobody held anything then")
    else:
        rows = [
            [displayed(lease.resource), lease.holder, lease.mode.value, str(lease.token), lease.lease_id]
            for lease in (status.lease for status in page.statuses)
        ]
        out.table(["RESOURCE", "HOLDER", "MODE", "TOKEN", "LEASE"], rows)


def _history(arguments: Namespace, out: Output) -> None:
    if arguments.at is not None:
        _held_at(arguments, out)
        return
    left = arguments.limit
    after = arguments.after
    empty = True
    with connected(arguments) as client:
        while left is None or left > 0:
            entries = client.history(
                lease_id=arguments.lease,
                resource=arguments.resource,
                holder=arguments.holder,
                types=arguments.type,
                after=after,
                limit=_PAGE if left is None else min(left, _PAGE),
            )
            if not entries:
                break
            print_entries(out, entries, headed=empty)
            empty = False
            after = entries[-1].position
            left = None if left is None else left - len(entries)
        begins = client.history_begins()
        has_domain = empty and arguments.resource is not None and _is_domain(client, arguments.resource)
    if begins is not None and arguments.after < begins.pruned:
        # Not among the entries: whoever reads those line by line must not stumble over it.
        what = (
            "what happened before"
            if arguments.lease is None
            else f"what happened to {arguments.lease} before"
        )
        Output(arguments, sys.stderr).line(
            f"{what} entry {begins.pruned + 1:,} was pruned at {local_time(begins.at_ns)} by {begins.actor}; "
            f"the checkpoint in entry {begins.checkpoint:,} stands for it"
        )
    if empty and not out.as_json:
        out.line("nothing happened" if begins is None else "nothing that is still known happened")
    if has_domain:
        say_on_stderr(
            "there is a domain of work of that name: "
            f"leasehold history --domain {shlex.quote(arguments.resource)}"
        )


def _is_domain(client: "Client", name: str) -> bool:
    return bool(client.history(lease_id=_filed_under(name), limit=1))


_UNGRANTED = ("lease.queued", "lease.doubted", "lease.left")
"""What happens to those who wait: they have a ticket, and no token yet."""
_HEADINGS = ("#", "WHEN", "WHAT", "RESOURCE", "HOLDER", "TOKEN", "DETAILS")


def print_entries(out: Output, entries: list["Entry"], *, headed: bool = True) -> None:
    """Write ledger entries as a table, or as one JSON object per line."""
    from leasehold.shapes import entry_shape

    if out.as_json:
        for entry in entries:
            out.json(entry_shape(entry))
        return
    rows = [_entry_row(entry) for entry in entries]
    if headed:
        out.table(_HEADINGS, rows)
    else:
        out.rows(rows)


def _entry_row(entry: "Entry") -> list[str]:
    from leasehold.kernel.ledger.key import shown

    event = entry.event
    _, _, resource, holder, token = event.filing
    family = event.type.partition(".")[0]
    details = [event.story] if event.story else [f"{family} {shown(key)}" for key in event.keys[:1]]
    if len(event.keys) > 1 and not event.story:
        details.append(f"and {len(event.keys) - 1} more")
    reason = getattr(event, "reason", None)
    if event.actor != holder:
        details.append(f"by {event.actor}")
    if reason and reason not in event.story:
        details.append(f"({reason})")
    return [
        str(entry.position),
        local_time(event.at_ns),
        event.type.removeprefix("lease."),
        displayed(resource) if resource else "-",
        holder or "-",
        "-" if token is None or event.type in _UNGRANTED else str(token),
        " ".join(details),
    ]


def _add_watch(commands: Commands) -> None:
    parser = commands.add(
        "watch",
        _watch,
        "follow what happens, as it happens",
        details="""\
No gap, no repeat, in order; until Ctrl-C. With --json: one object per line. Resume later with --after and
the last position you saw.

examples:
  leasehold watch
  leasehold watch --resource report-42 --after 0 --json

exit codes: 130 interrupted · 1 error · 2 wrong usage""",
    )
    parser.add_argument(
        "--after", type=_position, metavar="N", help="start after this position (default: from now on)"
    )
    parser.add_argument("--resource", metavar="NAME", type=resource, help="only about this resource")
    parser.add_argument("--holder", "--as", metavar="NAME", help="only about leases of this holder")


_WATCH_WIDTHS = (6, 19, 8, 20, 20, 16)


def _watch(arguments: Namespace, out: Output) -> None:
    from leasehold.shapes import entry_shape

    if not out.as_json:
        out.row([(heading, "bold") for heading in _HEADINGS], _WATCH_WIDTHS)
    with connected(arguments) as client:
        entries = client.watch(after=arguments.after, resource=arguments.resource, holder=arguments.holder)
        for entry in entries:
            if out.as_json:
                out.json(entry_shape(entry))
            else:
                out.row(_entry_row(entry), _WATCH_WIDTHS)
