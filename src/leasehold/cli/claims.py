"""acquire, renew: leases in the hands of people and scripts.

A lease that `acquire` takes outlives the command and nobody renews it: it ends after its TTL unless it is
renewed or released before. An `acquire` that is interrupted before it has told about all its leases leaves
none.
"""

import os
import shlex
import signal
from argparse import Namespace
from contextlib import contextmanager
from typing import TYPE_CHECKING

from leasehold.cli.asking import add_claim_options, ask, refuse_nonsense
from leasehold.cli.connecting import add_holder_option, connected, holder_of
from leasehold.cli.delegating import add_grant_options, budget_of, scope_of
from leasehold.cli.durations import format_duration, parse_duration
from leasehold.cli.entry import message_of, report
from leasehold.cli.naming import LEASE_HELP, displayed, lease_named, resource
from leasehold.cli.output import Output, local_time, say_on_stderr
from leasehold.cli.parser import Commands, UsageError
from leasehold.errors import LeaseholdError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from leasehold.client.blocking.client import Client
    from leasehold.client.blocking.lease import HeldLease
    from leasehold.engine.questions import LeaseStatus

_NO_LIMIT = -1
_INTERRUPTING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_acquire(commands)
    _add_renew(commands)


def _add_acquire(commands: Commands) -> None:
    parser = commands.add(
        "acquire",
        _acquire,
        "own a resource for a while, or several at once",
        details="""\
The lease outlives this command, and a reboot, but not its TTL: renew it in time, or release it. Pass the
printed token along with every write, and let the resource refuse a lower one. To hold a lease exactly as
long as a command runs, use `leasehold run`.

An argument with a / in it, or a dot at its beginning, is a path: the same file in every clone and work tree
of its repository. It may be a folder, or a pattern (*, ?, [a-z], {a,b}, **) in quotes. A path that the holder
has already, or that lies in what it has, is renewed. With name: in front it is a plain name, whatever it
looks like: name:reports/42 is what Python programs call "reports/42". All commands read and print names so.

Of several resources you get all, or none: nothing is taken before everything is free, in whatever order
others ask for the same. Each has a lease and a token of its own; --ttl, --mode and the like hold for each.

examples:
  leasehold acquire report-42 --ttl 5m
  leasehold acquire report-42 --shared --metadata why=reading
  leasehold acquire report-42 --wait 30s
  leasehold acquire src/app.py docs/ --as agent-7 --reason "new parser" --ttl 10m --wait 30s
  leasehold acquire 'src/**/*.py' --shared
  leasehold acquire name:reports/42
  leasehold acquire crawl --scope tool=read namespace=data --budget tokens=10000
  token=$(leasehold acquire report-42 --json | jq .token)

exit codes: 0 acquired (all) · 75 somebody holds it (one of them), or still does after the wait ·
            1 error · 2 wrong usage""",
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
        default=_NO_LIMIT,
        metavar="N",
        help="how often it may be renewed (default: no limit)",
    )


def _acquire(arguments: Namespace, out: Output) -> None:
    refuse_nonsense(arguments)
    only_for_one = {
        "adopt": arguments.adopt,
        "max_renewals": arguments.max_renewals,
        "scope": scope_of(arguments),
        "budget": budget_of(arguments),
    }
    if len(arguments.resources) > 1:
        _refuse_for_several(arguments)
    with connected(arguments, create=True) as client:
        held = ask(client, arguments, only_for_one=only_for_one, survives_reboot=True)
        statuses = _confirmed(client, held.parts())
        try:
            with out.together():
                _tell_all(out, statuses)
        except OSError:
            held.release("aborted")
            if not out.as_json:
                say_on_stderr("leasehold: the output could not be written; what was acquired is given back")
            raise
        # Only now: leases that nobody has been told about are released when the client closes.
        with _undisturbed():
            held.ensure()
            for one in held.parts():
                one.detach()
    if not out.as_json:
        _note_files_not_meant(arguments.typed)


def _note_files_not_meant(typed: "Sequence[str]") -> None:
    """Tell who has claimed a plain name where there is a file of that name: the file is still anybody's."""
    from leasehold.files.names import is_path

    for name in typed:
        if not is_path(name) and os.path.lexists(name):
            path = shlex.quote(f"./{name}")
            say_on_stderr(
                f"leasehold: note: {name} is claimed as a plain name; to claim the file, use {path}"
            )


@contextmanager
def _undisturbed() -> "Iterator[None]":
    """Ignore Ctrl-C and the like: between two leases it would keep the first, and release the second.

    To block it would not do: other threads have it unblocked.
    """
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _INTERRUPTING}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _refuse_for_several(arguments: Namespace) -> None:
    given = {
        "--adopt": arguments.adopt,
        "--max-renewals": arguments.max_renewals != _NO_LIMIT,
        "--scope": arguments.scope,
        "--budget": arguments.budget,
    }
    for option, is_given in given.items():
        if is_given:
            raise UsageError(f"{option} is for one resource, not for several; acquire that one by itself")


def _confirmed(client: "Client", held: "Sequence[HeldLease]") -> "list[LeaseStatus]":
    """Return how leases stand. What was won by waiting lasts for a moment only, until it is confirmed."""
    if any(one.is_unconfirmed for one in held):
        for result in client.renew_many(held):
            if isinstance(result, LeaseholdError):
                raise result
    found = [client.get(one.lease_id) for one in held]
    return [status for status in found if status is not None]


def _tell_all(out: Output, statuses: "list[LeaseStatus]") -> None:
    from leasehold.shapes import lease_shape

    if out.as_json and len(statuses) > 1:
        out.json({"leases": [lease_shape(status) for status in statuses]})
        return
    for status in statuses:
        done = "renewed" if status.lease.renewal_count else "acquired"
        tell(out, status, f"{done} {displayed(status.lease.resource)}")


def tell(out: Output, status: "LeaseStatus", title: str) -> None:
    """Say which lease somebody has now."""
    from leasehold.shapes import lease_shape

    if out.as_json:
        out.json(lease_shape(status))
        return
    lease = status.lease
    until = f"{local_time(lease.expires_at_ns)} (in {format_duration(status.expires_in)})"
    out.facts(
        (title, "green"),
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
    parser.add_argument("leases", metavar="LEASE", nargs="+", type=resource, help=LEASE_HELP)
    parser.add_argument(
        "--ttl", type=parse_duration, metavar="TIME", help="for how long (default: its own TTL)"
    )
    add_holder_option(parser, "who holds them")


def _renew(arguments: Namespace, out: Output) -> int:
    from leasehold.shapes import error_shape, lease_shape

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
            tell(out, status, f"renewed {displayed(status.lease.resource)}")
    return report_all(failed, out)


def report_all(errors: list[LeaseholdError], out: Output) -> int:
    """Say what went wrong with each lease; the first one decides the exit code."""
    codes = [report(error, as_json=out.as_json) for error in errors]
    return codes[0] if codes else 0
