"""release, revoke, sweep: how leases end: by their holder, by an operator, or by expiry."""

from argparse import Namespace

from leasehold.cli.claims import report_all
from leasehold.cli.connecting import add_holder_option, connected, holder_of
from leasehold.cli.entry import message_of
from leasehold.cli.naming import LEASE_HELP, lease_named, resource
from leasehold.cli.output import Output, counted
from leasehold.cli.parser import Commands, UsageError
from leasehold.errors import LeaseholdError


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_release(commands)
    _add_revoke(commands)
    commands.add(
        "sweep",
        _sweep,
        "record the end of leases whose time is over",
        details="""\
Nobody has to: an expired lease blocks nobody, and every command sweeps some in passing. Sweep if you
want the end of all of them in the history now.

example:
  leasehold sweep

exit codes: 0 done · 1 error""",
    )


def _add_release(commands: Commands) -> None:
    parser = commands.add(
        "release",
        _release,
        "give leases back",
        details="""\
A resource stands for the lease that the holder has on it now: if there is none, there is nothing to release,
and that is an error. An id stands for its lease for ever: releasing what is over already changes nothing, and
is none. Where several programs run under one holder's name, give the id.

examples:
  leasehold release report-42
  leasehold release 019a7f3e-5c1b-7d2a-9f00-1c2d3e4f5a6b
  leasehold release --all --holder alice

exit codes: 0 done · 76 a lease is not yours, or does not exist · 1 error · 2 wrong usage""",
    )
    parser.add_argument("leases", metavar="LEASE", nargs="*", type=resource, help=LEASE_HELP)
    parser.add_argument("--all", action="store_true", help="everything that the holder has")
    parser.add_argument(
        "--reason",
        choices=("voluntary", "completed", "aborted"),
        type=str.lower,
        default="voluntary",
        help="why, for the history (default: %(default)s)",
    )
    add_holder_option(parser, "who holds them")


def _release(arguments: Namespace, out: Output) -> int:
    if arguments.all == bool(arguments.leases):
        raise UsageError("name the leases to release, or use --all")
    return _release_all(arguments, out) if arguments.all else _release_some(arguments, out)


def _release_all(arguments: Namespace, out: Output) -> int:
    holder = holder_of(arguments)
    with connected(arguments) as client:
        count = client.release_all(holder, reason=arguments.reason)
    out.answer({"holder": holder, "released_count": count}, f"released {counted(count, 'lease')} of {holder}")
    return 0


def _release_some(arguments: Namespace, out: Output) -> int:
    from leasehold.shapes import error_shape

    released: list[str] = []
    over: list[str] = []
    failed: list[LeaseholdError] = []
    with connected(arguments) as client:
        holder = holder_of(arguments)
        for lease_id in [lease_named(client, name, holder) for name in arguments.leases]:
            try:
                (released if client.release(lease_id, reason=arguments.reason) else over).append(lease_id)
            except LeaseholdError as error:
                failed.append(error)
    if out.as_json:
        failures = [error_shape(error, message_of(error)) for error in failed]
        count = len(released)
        out.json({"released": released, "released_count": count, "already_over": over, "failed": failures})
    else:
        for lease_id in released:
            out.line(f"released {lease_id}")
        for lease_id in over:
            out.line(f"{lease_id} had already ended")
    return report_all(failed, out)


def _add_revoke(commands: Commands) -> None:
    parser = commands.add(
        "revoke",
        _revoke,
        "forcibly end a lease",
        details="""\
For operators. The holder learns of it at its next renewal; the resource can be acquired at once, under a
higher token. The history keeps who revoked it and why.

example:
  leasehold revoke report-42 --reason "worker is stuck"

exit codes: 0 revoked, or already ended · 76 no such lease · 1 error · 2 wrong usage""",
    )
    parser.add_argument("lease", metavar="LEASE", type=resource, help=LEASE_HELP)
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why, for the history")
    parser.add_argument("--operator", metavar="NAME", help="who revokes it (default: as --holder elsewhere)")


def _revoke(arguments: Namespace, out: Output) -> None:
    from leasehold.shapes import lease_shape

    with connected(arguments, holder=arguments.operator) as client:
        lease_id = lease_named(client, arguments.lease)
        revoked = client.revoke(lease_id, reason=arguments.reason)
        status = client.get(lease_id)
    if out.as_json:
        shape = {} if status is None else lease_shape(status)
        out.json({**shape, "revoked": revoked})
    elif revoked:
        holder = "" if status is None else f", held by {status.lease.holder}"
        out.line(f"revoked {lease_id}{holder}")
    else:
        out.line(f"{lease_id} had already ended")


def _sweep(arguments: Namespace, out: Output) -> None:
    total = 0
    with connected(arguments) as client:
        while count := client.sweep():
            total += count
    out.answer({"swept_count": total}, f"recorded the end of {counted(total, 'lease')}")
