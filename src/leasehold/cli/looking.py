"""ls, show: who holds what, since when and until when. Nothing here changes anything."""

import re
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from leasehold.cli.closings import shown_holder, why_closed
from leasehold.cli.connecting import connected
from leasehold.cli.delegating import spelled, spelled_scope, tree_shape
from leasehold.cli.durations import format_duration
from leasehold.cli.events import print_entries
from leasehold.cli.naming import displayed, holders_of, resource
from leasehold.cli.output import Cell, Output, local_time
from leasehold.cli.parser import Commands, positive_number
from leasehold.cli.queues import print_waiters
from leasehold.errors import LeaseNotFound
from leasehold.kernel.lease.paths import related

if TYPE_CHECKING:
    from leasehold.client.blocking.client import Client
    from leasehold.engine.questions import LeaseStatus
    from leasehold.kernel.lease.delegation import Delegation

_STATES = ("pending", "active", "released", "expired", "revoked", "failed")
_STATE_COLOURS = {"active": "green", "expired": "yellow", "revoked": "red", "failed": "red"}
_PAGE = 1_000
_LEASE_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What an id looks like that was drawn here: whoever gives one hardly means a resource."""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_ls(commands)
    _add_show(commands)


def _add_ls(commands: Commands) -> None:
    parser = commands.add(
        "ls",
        _ls,
        "list leases",
        details="""\
Lists the leases that stand, and the claims that wait (pending), in the order in which they were made;
--state or --all for others.

examples:
  leasehold ls
  leasehold ls camera- --holder runner-7
  leasehold ls src/
  leasehold ls --state expired --state revoked --json

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    parser.add_argument(
        "prefix",
        metavar="PREFIX",
        nargs="?",
        type=resource,
        help="only resources that begin with this; or a path, for what lies around it",
    )
    parser.add_argument("--holder", "--as", metavar="NAME", help="only leases of this holder")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--state",
        action="append",
        choices=_STATES,
        type=str.lower,
        help="only leases in this state; may be repeated",
    )
    chosen.add_argument("--all", action="store_true", help="leases in any state")
    parser.add_argument(
        "--limit", type=positive_number, default=100, metavar="N", help="show at most N (default: 100)"
    )
    parser.add_argument("--after", metavar="LEASE", help="continue after this lease id")


def _ls(arguments: Namespace, out: Output) -> None:
    from leasehold.shapes import lease_shape

    wanted = [] if arguments.all else arguments.state or ["active", "pending"]
    with connected(arguments) as client:
        found = _find(client, arguments, wanted)
        statuses = [status for _, status in zip(range(arguments.limit), found, strict=False)]
        following = statuses[-1].lease.lease_id if next(found, None) else None
    if out.as_json:
        out.json({"leases": [lease_shape(status) for status in statuses], "next": following})
        return
    if not statuses:
        out.line("no leases")
        return
    out.table(
        ["RESOURCE", "HOLDER", "MODE", "STATE", "TOKEN", "EXPIRES", "LEASE"],
        [_row(status) for status in statuses],
    )
    if following is not None:
        out.line(f"there are more; continue with --after {following}")


def _find(client: "Client", arguments: Namespace, wanted: list[str]) -> Iterator["LeaseStatus"]:
    """Yield the leases that are in a wanted state by the clock, whatever has been recorded yet."""
    from leasehold.shapes import state_now

    recorded = [*wanted, "active"] if "expired" in wanted else wanted
    after, path = arguments.after, None
    prefix = arguments.prefix
    if prefix is not None and prefix.startswith("/"):
        # A pattern may be around a path that it does not begin like.
        path, prefix = prefix, "/".join(prefix.split("/")[: 2 if prefix.startswith("/@") else 1]) or "/"
    while True:
        page = client.list(prefix=prefix, holder=arguments.holder, states=recorded, after=after, limit=_PAGE)
        for status in page.statuses:
            around = path is None or related(path, status.lease.resource)
            if around and (not wanted or state_now(status).value in wanted):
                yield status
        after = page.next
        if after is None:
            return


def _row(status: "LeaseStatus") -> list[Cell]:
    from leasehold.shapes import state_now

    lease, state = status.lease, state_now(status).value
    return [
        displayed(lease.resource),
        shown_holder(lease),
        lease.mode.value,
        (state, _STATE_COLOURS.get(state, "dim")),
        "-" if state == "pending" else str(lease.token),
        f"in {format_duration(status.expires_in)}" if status.is_live and state == "active" else "-",
        lease.lease_id,
    ]


def _add_show(commands: Commands) -> None:
    parser = commands.add(
        "show",
        _show,
        "show a lease, or who holds a resource",
        details="""\
Given a lease id: everything about that lease. Given a resource: who holds it, since when, until when, under
which token, how often renewed; and who waits for it. With --tree: the leases below it, and how much of its
budget each has.

examples:
  leasehold show report-42
  leasehold show crawl --tree
  leasehold show 019a7f3e-5c1b-7d2a-9f00-1c2d3e4f5a6b --json

exit codes: 0 done (a resource that nobody holds is not an error) · 76 no such lease · 1 error ·
            2 wrong usage""",
    )
    parser.add_argument("name", metavar="LEASE_OR_RESOURCE", type=resource, help="a lease id or a resource")
    parser.add_argument(
        "--tree",
        action="store_true",
        help="the standing leases below it, at most 100 of each",
    )


def _show(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        status = client.get(arguments.name)
        if arguments.tree:
            _show_trees(out, client, client.inspect(arguments.name) if status is None else [status])
        elif status is not None:
            _show_lease(out, status, client)
        else:
            _show_resource(out, arguments.name, client)


def _show_trees(out: Output, client: "Client", tops: list["LeaseStatus"]) -> None:
    below: dict[str, list[LeaseStatus]] = {}
    waiting = [top.lease.lease_id for top in tops]
    while waiting:
        lease_id = waiting.pop()
        below[lease_id] = client.children(lease_id)
        waiting += [child.lease.lease_id for child in below[lease_id]]
    if out.as_json:
        out.json({"kind": "tree", "trees": [tree_shape(below, top) for top in tops]})
        return
    out.table(
        ["LEASE", "RESOURCE", "HOLDER", "STATE", "EXPIRES", "SPENT", "SET ASIDE", "LEFT"],
        [row for top in tops for row in _tree_rows(below, top, depth=0)],
    )


def _tree_rows(below: dict[str, list["LeaseStatus"]], status: "LeaseStatus", depth: int) -> list[list[Cell]]:
    from leasehold.shapes import state_now

    lease, account = status.lease, status.lease.delegation
    state = state_now(status).value
    row: list[Cell] = [
        "  " * depth + lease.lease_id,
        displayed(lease.resource),
        lease.holder,
        (state, _STATE_COLOURS.get(state, "dim")),
        f"in {format_duration(status.expires_in)}" if status.is_live else "-",
        "-" if account is None else str(account.spent),
        "-" if account is None else str(account.delegated),
        "-" if account is None else spelled(account.remaining),
    ]
    return [row, *(line for child in below[lease.lease_id] for line in _tree_rows(below, child, depth + 1))]


def _show_lease(out: Output, status: "LeaseStatus", client: "Client") -> None:
    from leasehold.shapes import entry_shape, lease_shape

    entries = client.history(lease_id=status.lease.lease_id)
    if out.as_json:
        history = [entry_shape(entry) for entry in entries]
        out.json({"kind": "lease", "lease": lease_shape(status), "history": history})
        return
    out.facts(f"lease {status.lease.lease_id}", _lease_facts(status, client))
    out.line()
    print_entries(out, entries)


def _lease_facts(status: "LeaseStatus", client: "Client") -> list[tuple[str, str | None]]:
    from leasehold.shapes import state_now

    lease = status.lease
    left = f" (in {format_duration(status.expires_in)})" if status.is_live else ""
    limit = "" if lease.max_renewals < 0 else f" of at most {lease.max_renewals}"
    last = "" if lease.last_renewed_at_ns is None else f", last {local_time(lease.last_renewed_at_ns)}"
    ended = None
    if lease.terminated_at_ns is not None:
        why = lease.end_reason or lease.release_reason
        ended = f"{local_time(lease.terminated_at_ns)} by {lease.ended_by}" + (f": {why}" if why else "")
    return [
        ("resource", displayed(lease.resource)),
        ("holder", shown_holder(lease)),
        ("closed", why_closed(client, lease)),
        ("state", state_now(status).value),
        ("mode", lease.mode.value),
        ("token", str(lease.token)),
        ("since", local_time(lease.issued_at_ns)),
        ("until", f"{local_time(lease.expires_at_ns)}{left}" if ended is None else None),
        ("ended", ended),
        ("renewals", f"{lease.renewal_count}{limit}{last}"),
        ("ttl", format_duration(lease.ttl_ns / 1e9)),
        ("tenant", lease.tenant),
        ("adopted from", lease.adopted_from),
        ("reboot", "ends it" if lease.bound_to_boot else "survives it"),
        ("metadata", ", ".join(f"{key}={value}" for key, value in lease.metadata.items()) or None),
        ("config version", lease.config_version or None),
        ("zone version", lease.zone_version or None),
        *_delegation_facts(lease.delegation),
    ]


def _delegation_facts(account: "Delegation | None") -> list[tuple[str, str | None]]:
    if account is None:
        return []
    return [
        ("parent", account.parent),
        ("scope", spelled_scope(account.scope)),
        ("budget", spelled(account.budget)),
        ("spent", str(account.spent)),
        ("set aside", str(account.delegated)),
        ("left", spelled(account.remaining)),
    ]


def _show_resource(out: Output, name: str, client: "Client") -> None:
    from leasehold.shapes import lease_shape, waiter_shape

    statuses, waiters = holders_of(client, name), client.queue(name)
    if _LEASE_ID.fullmatch(name) and not statuses and not waiters:
        raise LeaseNotFound(f"there is no lease {name}", lease_id=name)
    if out.as_json:
        leases = [lease_shape(status) for status in statuses]
        waiting = [waiter_shape(waiter) for waiter in waiters]
        held = bool(leases)
        out.json({"kind": "resource", "resource": name, "held": held, "leases": leases, "waiters": waiting})
        return
    if not statuses:
        out.line(f"nobody holds {displayed(name)}")
    for status in statuses:
        facts = [fact for fact in _lease_facts(status, client) if fact[0] != "resource"]
        how = "kept closed" if status.lease.delayed_for else "held"
        out.facts(f"{displayed(status.lease.resource)} is {how}", [("lease", status.lease.lease_id), *facts])
    if waiters:
        out.line()
        print_waiters(out, waiters, displayed(name))
