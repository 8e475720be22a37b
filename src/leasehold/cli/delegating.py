"""derive, spend: hand on a part of a lease, and use up its budget.

A child that `derive` takes outlives the command, like a lease that `acquire` takes; never its parent.
"""

import argparse
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from leasehold.cli.connecting import add_holder_option, connected, holder_of
from leasehold.cli.durations import parse_duration
from leasehold.cli.naming import LEASE_HELP, displayed, lease_named, resource
from leasehold.cli.output import Output
from leasehold.cli.parser import Commands, UsageError, is_number, positive_number

if TYPE_CHECKING:
    from leasehold.engine.questions import LeaseStatus
    from leasehold.kernel.lease.budget import Budget
    from leasehold.kernel.lease.scope import Scope

_PARTS = {"work": "work_ids", "tool": "tools", "namespace": "namespaces"}
_UNLIMITED = "unlimited"
_DIMENSIONS = ("episodes", "tool_calls", "tokens", "duration_ms")


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_derive(commands)
    _add_spend(commands)


def add_grant_options(parser: argparse.ArgumentParser) -> None:
    """Add what a lease may do and spend."""
    parser.add_argument(
        "--scope",
        metavar="KIND=NAME",
        action="extend",
        nargs="+",
        default=[],
        help="what it allows: tool=NAME, work=ID, namespace=PATH, or unlimited (default: nothing)",
    )
    parser.add_argument(
        "--budget",
        metavar="PART=N",
        action="extend",
        nargs="+",
        default=[],
        help="what it may spend: episodes=N, tool_calls=N, tokens=N, duration_ms=N (default: no limit)",
    )


def scope_of(arguments: Namespace) -> "Scope | None":
    """Return the scope given as KIND=NAME; None if none was."""
    from leasehold.kernel.lease.scope import Scope

    if not arguments.scope:
        return None
    names: dict[str, list[str]] = {}
    for one in arguments.scope:
        kind, separator, name = one.partition("=")
        if one != _UNLIMITED and (kind not in _PARTS or not separator):
            raise UsageError(f"--scope takes tool=NAME, work=ID, namespace=PATH or unlimited, not {one!r}")
        if one != _UNLIMITED:
            names.setdefault(_PARTS[kind], []).append(name)
    parts: dict[str, Any] = {part: tuple(found) for part, found in names.items()}
    return Scope(unlimited=_UNLIMITED in arguments.scope, **parts)


def budget_of(arguments: Namespace) -> "Budget | None":
    """Return the budget given as PART=N; None if none was."""
    from leasehold.kernel.lease.budget import Budget

    limits = {}
    for one in arguments.budget:
        part, _, number = one.partition("=")
        if part not in _DIMENSIONS or not is_number(number):
            raise UsageError(f"--budget takes {'=N, '.join(_DIMENSIONS)}=N, not {one!r:.80}")
        limits[part] = int(number)
    return Budget(**limits) if limits else None


def spelled(budget: "Budget") -> str:
    """Spell a budget for people; what has no limit is left out."""
    parts = [(part, getattr(budget, part)) for part in _DIMENSIONS]
    return ", ".join(f"{number:,} {part}" for part, number in parts if number is not None) or "no limit"


def spelled_scope(scope: "Scope") -> str:
    """Spell a scope for people, as --scope takes it."""
    if scope.unlimited:
        return _UNLIMITED
    names = [f"{kind}={name}" for kind, part in _PARTS.items() for name in getattr(scope, part)]
    return " ".join(names) or "nothing"


def _add_derive(commands: Commands) -> None:
    parser = commands.add(
        "derive",
        _derive,
        "hand on a part of a lease",
        details="""\
The child is a lease of its own, on a resource of its own. It never outlives its parent, allows what its
parent does or less, and what it may spend is set aside in its parent's budget; what it did not use comes back
when it ends. It is over the moment any lease above it is. The parent has to be acquired with --scope or
--budget.

examples:
  leasehold derive crawl name:crawl/part-1 --scope tool=read --budget tokens=500
  leasehold derive 019a7f3e-5c1b-7d2a-9f00-1c2d3e4f5a6b name:crawl/part-2 --for worker-2 --ttl 5m

exit codes: 0 derived · 75 somebody holds the resource · 76 the parent is lost · 1 error · 2 wrong usage""",
    )
    parser.add_argument("parent", metavar="PARENT", type=resource, help=LEASE_HELP)
    parser.add_argument(
        "resource", metavar="RESOURCE", type=resource, help="what the child will own: any name, or a path"
    )
    add_grant_options(parser)
    parser.add_argument("--for", dest="child_holder", metavar="NAME", help="who will hold the child")
    parser.add_argument(
        "--ttl", type=parse_duration, metavar="TIME", help="how long it lasts (default: as its parent)"
    )
    add_holder_option(parser, "who holds the parent")


def _derive(arguments: Namespace, out: Output) -> None:
    from leasehold.cli.claims import tell

    scope, budget = scope_of(arguments), budget_of(arguments)
    with connected(arguments) as client:
        held = client.derive(
            lease_named(client, arguments.parent, holder_of(arguments)),
            arguments.resource,
            scope=scope,
            budget=budget,
            ttl=arguments.ttl,
            holder=arguments.child_holder,
            survives_reboot=True,
        )
        status = client.get(held.lease_id)
        if status is not None:
            tell(out, status, f"derived {displayed(held.resource)}")
        held.detach()  # Only now: a lease that nobody could be told about is released when the client closes.


def _add_spend(commands: Commands) -> None:
    parser = commands.add(
        "spend",
        _spend,
        "use up some of a lease's budget",
        details="""\
All of it is spent, or nothing is. A repeat with the same --request-id within an hour spends nothing more.

example:
  leasehold spend crawl --tokens 120 --tool-calls 1

exit codes: 0 spent · 76 the lease is lost · 1 not enough is left, or another error · 2 wrong usage""",
    )
    parser.add_argument("lease", metavar="LEASE", type=resource, help=LEASE_HELP)
    for part in _DIMENSIONS:
        parser.add_argument(
            f"--{part.replace('_', '-')}",
            type=positive_number,
            default=0,
            metavar="N",
            help=f"{part} to spend",
        )
    parser.add_argument("--request-id", metavar="ID", help="makes a repeat of this command the same request")
    add_holder_option(parser, "who holds it")


def _spend(arguments: Namespace, out: Output) -> None:
    from msgspec.structs import asdict

    amounts = {part: getattr(arguments, part) for part in _DIMENSIONS}
    if not any(amounts.values()):
        raise UsageError("say what to spend, such as --tokens 120")
    with connected(arguments) as client:
        lease_id = lease_named(client, arguments.lease, holder_of(arguments))
        remaining = client.spend(lease_id, request_id=arguments.request_id, **amounts)
    out.answer(
        {"lease_id": lease_id, "remaining": asdict(remaining)},
        ("spent", "green"),
        f"; left: {spelled(remaining)}",
    )


def tree_shape(statuses: dict[str, list["LeaseStatus"]], status: "LeaseStatus") -> dict[str, Any]:
    """Return a lease and the standing leases below it, however deep."""
    from leasehold.shapes import lease_shape

    below = statuses.get(status.lease.lease_id, [])
    return {"lease": lease_shape(status), "children": [tree_shape(statuses, one) for one in below]}
