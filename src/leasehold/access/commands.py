"""access: keys for those who ask a registrar from afar."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from leasehold.cli.connecting import add_holder_option, connected
from leasehold.cli.durations import parse_duration
from leasehold.cli.output import Cell, Output, local_time, say_on_stderr
from leasehold.cli.parser import Commands, Group, UsageError

if TYPE_CHECKING:
    from leasehold.access.law.model import AccessKey
    from leasehold.access.secret import IssuedKey

_HEADINGS = ("KEY", "ROLE", "TENANT", "HOLDERS", "CREATED", "EXPIRES", "STATE", "DESCRIPTION")
_ROLES = ("viewer", "holder", "operator", "admin")
_SHOWN_ONCE = "shown this once: keep it where only its bearer can read it"


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    group = commands.add_group(
        "access",
        "create, list, rotate or revoke access keys",
        details="""\
Who asks a registrar over the network shows an access key. A viewer looks, a holder also claims and gives
back, an operator also revokes leases and changes settings, and an admin also manages access keys. A key is
bound to one tenant, or good for all. Programs that have the store's folder need no key.

examples:
  leasehold access create viewer --tenant acme --expires 30d
  leasehold access create holder --holders 'ci-*' --description 'build machines'
  leasehold access ls

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    _add_creating(group)
    _add_listing(group)
    _add_ending(group)


def _add_creating(group: Group) -> None:
    creating = group.add(
        "create",
        _create,
        "create an access key, and print it this once",
        details="""\
The key is the only line on stdout. The registrar keeps a digest of it, so nobody can print it again; a lost
key is rotated or revoked. It is for the tenant that --tenant names, unless --all-tenants is given.

examples:
  leasehold access create operator --all-tenants
  leasehold access create holder --tenant acme --holders agent-7,'ci-*'
  LEASEHOLD_API_KEY=$(leasehold access create viewer --expires 12h)

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    creating.add_argument("role", choices=_ROLES, metavar="ROLE", help="viewer, holder, operator or admin")
    creating.add_argument("--all-tenants", action="store_true", help="for all tenants")
    creating.add_argument(
        "--holders",
        metavar="NAMES",
        default="",
        help="for a holder: only under these names, separated by commas; NAME* stands for all that begin so",
    )
    creating.add_argument("--description", metavar="TEXT", default="", help="what it is for")
    creating.add_argument(
        "--expires", metavar="TIME", type=parse_duration, help="after which time it ends, such as 30d"
    )
    add_holder_option(creating, "who creates it, for history")


def _add_listing(group: Group) -> None:
    listing = group.add(
        "ls",
        _list,
        "list access keys, without what opens anything",
        details="""\
Keys that were revoked are listed until history is pruned.

examples:
  leasehold access ls
  leasehold access ls --bound-to acme --json

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    listing.add_argument("--bound-to", metavar="TENANT", help="only the keys of this tenant")


def _add_ending(group: Group) -> None:
    rotating = group.add(
        "rotate",
        _rotate,
        "give an access key a new secret, and print it this once",
        details="""\
The key keeps its id, role and tenant. The old secret is refused from now on, or after --overlap.

examples:
  leasehold access rotate KEY
  leasehold access rotate KEY --overlap 1h

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    rotating.add_argument(
        "--overlap",
        metavar="TIME",
        type=parse_duration,
        default=0.0,
        help="how long the old secret stays good (default: it does not)",
    )
    revoking = group.add(
        "revoke",
        _revoke,
        "end an access key",
        details="""\
In force at once, also for commands and streams that are under way. Leases that were acquired with it stand
until they expire; `leasehold revoke` ends those. The last admin key for all tenants cannot be revoked.

examples:
  leasehold access revoke KEY --reason 'laptop was stolen'

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    revoking.add_argument("--reason", metavar="TEXT", default="", help="why, for history")
    for parser, purpose in (
        (rotating, "who rotates it, for history"),
        (revoking, "who ends it, for history"),
    ):
        _add_key(parser)
        add_holder_option(parser, purpose)


def _add_key(parser: ArgumentParser) -> None:
    parser.add_argument("key_id", metavar="KEY", help="the id of the key: `leasehold access ls` lists them")


def _create(arguments: Namespace, out: Output) -> None:
    if arguments.all_tenants and arguments.tenant is not None:
        raise UsageError(
            f"--all-tenants and --tenant {arguments.tenant} say different things; leave one of them out"
        )
    with connected(arguments, create=True) as client:
        issued = client.access.create(
            arguments.role,
            all_tenants=arguments.all_tenants,
            holders=[name for name in arguments.holders.split(",") if name],
            description=arguments.description,
            expires=arguments.expires,
        )
    _print_issued(out, issued, "created")


def _rotate(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        issued = client.access.rotate(arguments.key_id, overlap=arguments.overlap)
    _print_issued(out, issued, "rotated")


def _print_issued(out: Output, issued: "IssuedKey", done: str) -> None:
    if out.as_json:
        out.json({"access_key": issued.text, **_shape(issued.key)})
        return
    say_on_stderr(f"{done} access key {issued.key.key_id}, {_SHOWN_ONCE}")
    out.line(issued.text)


def _revoke(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        key = client.access.revoke(arguments.key_id, reason=arguments.reason)
    out.answer(_shape(key), f"revoked access key {key.key_id}")


def _list(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        keys = client.access.list(tenant=arguments.bound_to)
    if out.as_json:
        out.json({"access_keys": [_shape(one) for one in keys]})
        return
    out.table(_HEADINGS, [_row(one) for one in keys])


def _state_of(key: "AccessKey") -> str:
    if key.revoked_at_ns is not None:
        return "revoked"
    return "live" if key.is_live else "expired"


def _row(key: "AccessKey") -> list[Cell]:
    state = _state_of(key)
    return [
        key.key_id,
        key.role.value,
        key.tenant or "(all)",
        ",".join(key.holders) or "(any)",
        local_time(key.created_at_ns),
        "-" if key.expires_at_ns is None else local_time(key.expires_at_ns),
        (state, "green" if key.is_live else "dim"),
        key.description,
    ]


def _shape(key: "AccessKey") -> dict[str, Any]:
    from leasehold.shapes import utc

    return {
        "key_id": key.key_id,
        "role": key.role.value,
        "tenant": key.tenant,
        "holders": list(key.holders),
        "description": key.description,
        "state": _state_of(key),
        "created_at": utc(key.created_at_ns),
        "created_by": key.created_by,
        "expires_at": utc(key.expires_at_ns),
        "revoked_at": utc(key.revoked_at_ns),
        "rotations": key.rotations,
        "earlier_secret_until": utc(key.earlier_until_ns),
    }
