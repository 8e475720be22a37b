"""transfer, upgrade, downgrade: leases change hands, or the way they are held."""

from argparse import Namespace
from typing import TYPE_CHECKING

from leasehold.cli.asking import add_wait_option
from leasehold.cli.claims import tell
from leasehold.cli.connecting import add_holder_option, connected, holder_of
from leasehold.cli.durations import parse_duration
from leasehold.cli.naming import LEASE_HELP, displayed, lease_named, resource
from leasehold.cli.output import Output
from leasehold.cli.parser import Commands

if TYPE_CHECKING:
    from leasehold.client.blocking.client import Client


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_transfer(commands)
    _add_upgrade(commands)
    _add_downgrade(commands)


def _lease_id(client: "Client", arguments: Namespace) -> str:
    return lease_named(client, arguments.lease, holder_of(arguments))


def _add_transfer(commands: Commands) -> None:
    parser = commands.add(
        "transfer",
        _transfer,
        "hand a lease to another holder",
        details="""\
The old lease ends and the new one begins in one step, so nobody can come in between. The new one has
another id and a higher token, and its holder has to renew it.

example:
  leasehold transfer report-42 --to bob

exit codes: 0 done · 75 the other one cannot have it · 76 the lease is not yours, or over · 1 error ·
            2 wrong usage""",
    )
    parser.add_argument("lease", metavar="LEASE", type=resource, help=LEASE_HELP)
    parser.add_argument("--to", required=True, metavar="NAME", help="who gets it")
    parser.add_argument(
        "--ttl", type=parse_duration, metavar="TIME", help="how long it lasts (default: its own TTL)"
    )
    add_holder_option(parser, "who holds it")


def _transfer(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        status = client.transfer(_lease_id(client, arguments), to=arguments.to, ttl=arguments.ttl)
    tell(out, status, f"handed {displayed(status.lease.resource)} to {status.lease.holder}")


def _add_upgrade(commands: Commands) -> None:
    parser = commands.add(
        "upgrade",
        _upgrade,
        "have a shared lease exclusively",
        details="""\
Goes before everybody who waits, but has to wait for the others who share. The lease keeps its id and gets a
higher token. Renew it in time: waiting does not.

example:
  leasehold upgrade report-42 --wait 30s

exit codes: 0 done · 75 others still share it · 76 the lease is not yours, or over · 1 error ·
            2 wrong usage""",
    )
    parser.add_argument("lease", metavar="LEASE", type=resource, help=LEASE_HELP)
    add_wait_option(parser)
    add_holder_option(parser, "who holds it")


def _upgrade(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        status = client.upgrade(_lease_id(client, arguments), wait=arguments.wait)
    tell(out, status, f"{displayed(status.lease.resource)} is held exclusively")


def _add_downgrade(commands: Commands) -> None:
    parser = commands.add(
        "downgrade",
        _downgrade,
        "let others share an exclusive lease",
        details="""\
The lease keeps its id and its token.

example:
  leasehold downgrade report-42

exit codes: 0 done · 76 the lease is not yours, or over · 1 error · 2 wrong usage""",
    )
    parser.add_argument("lease", metavar="LEASE", type=resource, help=LEASE_HELP)
    add_holder_option(parser, "who holds it")


def _downgrade(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        status = client.downgrade(_lease_id(client, arguments))
    tell(out, status, f"{displayed(status.lease.resource)} can be shared")
