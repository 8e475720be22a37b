"""acquire, renew: leases in the hands of people and scripts.

A lease that `acquire` takes outlives the command and nobody renews it: it ends after its TTL unless it is
renewed or released before. An `acquire` that is interrupted before it has told about its lease leaves none.
"""

import argparse
import math
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from leasehold.cli.connecting import add_holder_option, connected, holder_of
from leasehold.cli.delegating import add_grant_options, budget_of, scope_of
from leasehold.cli.durations import format_duration, parse_duration
from leasehold.cli.entry import message_of, report
from leasehold.cli.naming import LEASE_HELP, lease_named
from leasehold.cli.output import Output, local_time
from leasehold.cli.parser import Commands, UsageError
from leasehold.errors import LeaseholdError

if TYPE_CHECKING:
    from leasehold.engine.registrar import LeaseStatus


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_acquire(commands)
    _add_renew(commands)


def add_claim_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be said about a claim, whoever will hold it."""
    parser.add_argument("resource", metavar="RESOURCE", help="what to own: any name")
    parser.add_argument(
        "--ttl",
        type=parse_duration,
        default=60.0,
        metavar="TIME",
        help="how long the lease lasts unless renewed: 90, 90s, 5m, 1h30m, 500ms (default: 60s)",
    )
    parser.add_argument(
        "--mode",
        choices=("exclusive", "shared"),
        type=str.lower,
        default="exclusive",
        help="alone, or together with others who only share it (default: %(default)s)",
    )
    parser.add_argument(
        "--shared", dest="mode", action="store_const", const="shared", help="the same as --mode shared"
    )
    add_wait_option(parser)
    parser.add_argument(
        "--priority",
        type=int,
        default=5,
        metavar="N",
        help="from 1 to 10, the most urgent: whose turn comes first while waiting (default: 5)",
    )
    parser.add_argument(
        "--lock-delay",
        type=parse_duration,
        default=0.0,
        metavar="TIME",
        help="keep it closed to others for so long after the lease has expired or was revoked",
    )
    parser.add_argument(
        "--metadata",
        metavar="KEY=VALUE",
        action="extend",
        nargs="+",
        default=[],
        help="facts to keep with the lease, such as why=deploy",
    )


def add_wait_option(parser: argparse.ArgumentParser) -> None:
    """Let the user wait in line for what others hold."""
    parser.add_argument(
        "--wait",
        type=_patience,
        default=0.0,
        metavar="TIME",
        help="wait in line for at most so long, or `forever` (default: do not wait)",
    )


def _patience(text: str) -> float:
    return math.inf if text.lower() == "forever" else parse_duration(text)


def metadata_of(arguments: Namespace) -> dict[str, Any]:
    """Return the metadata given as KEY=VALUE."""
    pairs: dict[str, Any] = {}
    for pair in arguments.metadata:
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise UsageError(f"--metadata takes KEY=VALUE, not {pair!r}; give RESOURCE before --metadata")
        if key in pairs:
            raise UsageError(f"--metadata has {key!r} twice; give each key once")
        pairs[key] = value
    return pairs


def _add_acquire(commands: Commands) -> None:
    parser = commands.add(
        "acquire",
        _acquire,
        "own a resource for a while",
        details="""\
The lease outlives this command, and a reboot, but not its TTL: renew it in time, or release it. Pass the
printed token along with every write, and let the resource refuse a lower one. To hold a lease exactly as
long as a command runs, use `leasehold run`.

examples:
  leasehold acquire report-42 --ttl 5m
  leasehold acquire report-42 --shared --metadata why=reading
  leasehold acquire report-42 --wait 30s
  leasehold acquire crawl --scope tool=read namespace=data --budget tokens=10000
  token=$(leasehold acquire report-42 --json | jq .token)

exit codes: 0 acquired · 75 somebody holds it, or still does after the wait · 1 error · 2 wrong usage""",
    )
    add_claim_options(parser)
    add_grant_options(parser)
    add_holder_option(parser, "who will hold it")
    parser.add_argument(
        "--adopt",
        action="store_true",
        help="replace a lease this holder has on it already; the old one is fenced off by a higher token",
    )
    parser.add_argument(
        "--max-renewals",
        type=int,
        default=-1,
        metavar="N",
        help="how often it may be renewed (default: no limit)",
    )


def _acquire(arguments: Namespace) -> int:
    metadata = metadata_of(arguments)
    scope, budget = scope_of(arguments), budget_of(arguments)
    out = Output(arguments)
    with connected(arguments, create=True) as client:
        held = client.acquire(
            arguments.resource,
            ttl=arguments.ttl,
            mode=arguments.mode,
            adopt=arguments.adopt,
            max_renewals=arguments.max_renewals,
            metadata=metadata,
            survives_reboot=True,
            scope=scope,
            budget=budget,
            wait=arguments.wait,
            priority=arguments.priority,
            lock_delay=arguments.lock_delay,
        )
        if held.is_unconfirmed:
            held.renew()  # It was won by waiting; until it is confirmed, it lasts for a moment only.
        status = client.get(held.lease_id)
        if status is not None:
            tell(out, status, f"acquired {held.resource}")
        # Only now: a lease that nobody could be told about is released when the client closes.
        held.detach()
    return 0


def tell(out: Output, status: "LeaseStatus", title: str) -> None:
    """Say which lease somebody has now."""
    from leasehold.cli.shapes import lease_shape

    if out.as_json:
        out.json(lease_shape(status))
        return
    lease = status.lease
    until = f"{local_time(lease.expires_at_ns)} (in {format_duration(status.expires_in)})"
    out.facts(
        out.colour(title, "green"),
        [
            ("lease", lease.lease_id),
            ("token", str(lease.token)),
            ("holder", lease.holder),
            ("mode", lease.mode.value),
            ("until", until),
        ],
    )


def _add_renew(commands: Commands) -> None:
    parser = commands.add(
        "renew",
        _renew,
        "give leases more time",
        details="""\
The time counts from now. A lease that has expired is never renewed: acquire the resource again.

examples:
  leasehold renew report-42 --ttl 10m
  leasehold renew 019a7f3e-5c1b-7d2a-9f00-1c2d3e4f5a6b

exit codes: 0 all renewed · 76 a lease is lost · 1 error · 2 wrong usage""",
    )
    parser.add_argument("leases", metavar="LEASE", nargs="+", help=LEASE_HELP)
    parser.add_argument(
        "--ttl", type=parse_duration, metavar="TIME", help="for how long (default: its own TTL)"
    )
    add_holder_option(parser, "who holds them")


def _renew(arguments: Namespace) -> int:
    from leasehold.cli.shapes import error_shape, lease_shape

    out = Output(arguments)
    with connected(arguments) as client:
        holder = holder_of(arguments)
        lease_ids = [lease_named(client, name, holder) for name in arguments.leases]
        results = client.renew_many(lease_ids, ttl=arguments.ttl)
    failed = [result for result in results if isinstance(result, LeaseholdError)]
    renewed = [result for result in results if not isinstance(result, LeaseholdError)]
    if out.as_json:
        out.json(
            {
                "renewed": [lease_shape(status) for status in renewed],
                "failed": [error_shape(error, message_of(error)) for error in failed],
            }
        )
    else:
        for status in renewed:
            tell(out, status, f"renewed {status.lease.resource}")
    return report_all(failed, out)


def report_all(errors: list[LeaseholdError], out: Output) -> int:
    """Say what went wrong with each lease; the first one decides the exit code."""
    codes = [report(error, as_json=out.as_json) for error in errors]
    return codes[0] if codes else 0
