"""certificate: make, look at and check the registrar's signed word that somebody holds a lease."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leasehold.cli.connecting import connected, tenant_named
from leasehold.cli.durations import parse_duration
from leasehold.cli.naming import displayed, lease_named, resource
from leasehold.cli.output import Output, local_time
from leasehold.cli.parser import Commands, UsageError

if TYPE_CHECKING:
    from leasehold.certificates.certificate import Certificate
    from leasehold.certificates.keys import Keys

_STANDARD_INPUT = "-"
_SHORTER_THAN_ANY = 255
"""No certificate is as short as this; a file's name may be."""
_FILE_BYTES = 1 << 20
"""More than any certificate, or any set of keys, has."""


def add_commands(commands: Commands) -> None:
    """Add the command of this module."""
    parser = commands.add(
        "certificate",
        _certificate,
        "make, show or check a certificate of a lease",
        details="""\
issue    prints a certificate of a lease, or of the lease that stands on a resource
show     prints what a certificate says, without checking it
verify   checks one for a resource, by the keys of this store or those given with --key or --keys
keys     prints the public keys as a JSON Web Key Set, for whoever checks certificates elsewhere

A certificate is given as its text, as a file that has it, or as - for stdin. It proves that the lease stood
when it was made; a release or revocation since is not in it. A resource has to refuse tokens below the
highest it has seen: --minimum-token.

examples:
  leasehold certificate issue report-42 > lease.jwt
  leasehold certificate show lease.jwt
  leasehold certificate keys > keys.json
  leasehold certificate verify lease.jwt --resource report-42 --keys keys.json

exit codes: 0 done, or proven · 1 error · 2 wrong usage · 76 not proven, or no such lease""",
    )
    parser.add_argument("action", choices=("issue", "show", "verify", "keys"), help="what to do")
    parser.add_argument(
        "subject",
        metavar="SUBJECT",
        nargs="?",
        help="issue: a lease id or a resource; show and verify: the certificate, a file, or -",
    )
    parser.add_argument(
        "--resource", metavar="NAME", type=resource, help="verify: the resource that is to be used"
    )
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="HEX",
        help="verify: a trusted public key, as 64 hexadecimal digits; may be repeated",
    )
    parser.add_argument(
        "--keys", metavar="FILE", type=Path, help="verify: trusted keys, as `certificate keys` prints them"
    )
    parser.add_argument(
        "--minimum-token", metavar="N", type=int, default=0, help="verify: the highest token seen so far"
    )
    parser.add_argument(
        "--leeway",
        metavar="DURATION",
        type=parse_duration,
        default=1.0,
        help="verify: how far this clock may be behind the registrar's (default: 1s)",
    )


def _certificate(arguments: Namespace, out: Output) -> None:
    if arguments.action != "keys" and arguments.subject is None:
        missing = "a lease id or a resource" if arguments.action == "issue" else "a certificate"
        raise UsageError(
            f"`certificate {arguments.action}` needs {missing}; see `leasehold certificate --help`"
        )
    actions = {"issue": _issue, "show": _show, "verify": _verify, "keys": _keys}
    actions[arguments.action](arguments, out)


def _issue(arguments: Namespace, out: Output) -> None:
    from leasehold.certificates.verifying import read_certificate

    with connected(arguments) as client:
        text = client.certificate(lease_named(client, arguments.subject))
    out.answer({"certificate": text, **_shape(read_certificate(text))}, text)


def _show(arguments: Namespace, out: Output) -> None:
    from leasehold.certificates.verifying import read_certificate

    stated = read_certificate(_text_of(arguments.subject))
    _print(out, stated, verified=False)


def _verify(arguments: Namespace, out: Output) -> None:
    from leasehold.certificates.verifying import verify_certificate

    if arguments.resource is None:
        raise UsageError("`certificate verify` needs --resource: a certificate proves nothing about others")
    text = _text_of(arguments.subject)
    stated = verify_certificate(
        text,
        keys=_trusted(arguments),
        resource=arguments.resource,
        tenant=tenant_named(arguments),
        minimum_token=arguments.minimum_token,
        leeway=arguments.leeway,
    )
    _print(out, stated, verified=True)


def _keys(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        document = client.certificate_keys().to_jwks()
    out.json(document)


def _text_of(subject: str) -> str:
    if subject == _STANDARD_INPUT:
        return sys.stdin.read(_FILE_BYTES).strip()
    if len(subject) <= _SHORTER_THAN_ANY and Path(subject).is_file():
        return _beginning_of(Path(subject)).decode(errors="replace").strip()
    return subject.strip()


def _beginning_of(file: Path) -> bytes:
    """Return as much of a file as anything here can be long: a device may never end."""
    with file.open("rb") as opened:
        return opened.read(_FILE_BYTES)


def _trusted(arguments: Namespace) -> "Keys":
    import msgspec

    from leasehold.certificates.keys import TrustedKeys

    if arguments.keys is not None:
        try:
            document = msgspec.json.decode(_beginning_of(arguments.keys), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UsageError(
                f"{arguments.keys} is not a JSON Web Key Set ({error}); "
                "`leasehold certificate keys` prints one"
            ) from error
        return TrustedKeys.from_jwks(document)
    if arguments.key:
        return TrustedKeys(arguments.key)
    with connected(arguments) as client:
        return client.certificate_keys()


def _print(out: Output, stated: "Certificate", *, verified: bool) -> None:
    if out.as_json:
        out.json({"verified": verified, **_shape(stated)})
        return
    title = "proven" if verified else "not checked; whoever wrote it says"
    facts = [
        ("resource", displayed(stated.resource)),
        ("holder", stated.holder),
        ("token", str(stated.token)),
        ("mode", stated.mode.value),
        ("tenant", stated.tenant),
        ("lease", stated.lease_id),
        ("granted", local_time(stated.granted_at_ns)),
        ("stated", local_time(stated.issued_at_ns)),
        ("until", local_time(stated.expires_at_ns)),
        ("scope", _scope_text(stated)),
        ("position", str(stated.position)),
        ("issuer", stated.issuer),
        ("key", stated.key_id),
    ]
    out.facts((title, "green" if verified else "yellow"), facts)


def _scope_text(stated: "Certificate") -> str | None:
    if stated.scope is None:
        return None
    if stated.scope.unlimited:
        return "everything"
    names = [*stated.scope.work_ids, *stated.scope.tools, *stated.scope.namespaces]
    return ", ".join(names) or "nothing"


def _shape(stated: "Certificate") -> dict[str, Any]:
    from msgspec.structs import asdict

    from leasehold.shapes import utc

    return {
        "certificate_id": stated.certificate_id,
        "issuer": stated.issuer,
        "key_id": stated.key_id,
        "lease_id": stated.lease_id,
        "tenant": stated.tenant,
        "resource": stated.resource,
        "mode": stated.mode.value,
        "holder": stated.holder,
        "token": stated.token,
        "position": stated.position,
        "granted_at": utc(stated.granted_at_ns),
        "issued_at": utc(stated.issued_at_ns),
        "expires_at": utc(stated.expires_at_ns),
        "scope": None if stated.scope is None else asdict(stated.scope),
    }
