import json

from leasehold.engine.signing import SigningKey
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.scope import Scope
from tests.certificates.statements import a_certificate
from tests.cli.shell import Shell


def issued(shell: Shell, resource: str = "door") -> str:
    shell.run("acquire", resource, "--holder", "ann", "--ttl", "5m")
    return shell.run("certificate", "issue", resource).out.strip()


def test_a_certificate_is_issued_for_a_resource_or_a_lease(shell: Shell) -> None:
    lease = shell.json("acquire", "door", "--holder", "ann")
    for subject in ("door", lease["lease_id"]):
        told = shell.json("certificate", "issue", subject)
        assert told["certificate"].count(".") == 2
        assert (told["lease_id"], told["token"]) == (lease["lease_id"], lease["token"])


def test_where_several_share_a_resource_a_lease_has_to_be_named(shell: Shell) -> None:
    first, second = (
        shell.json("acquire", "door", "--holder", name, "--mode", "shared")["lease_id"]
        for name in ("ann", "ben")
    )
    refused = shell.run("certificate", "issue", "door", code=2)
    assert first in refused.err
    assert second in refused.err
    assert shell.json("certificate", "issue", second)["holder"] == "ben"


def test_what_nobody_holds_gets_no_certificate(shell: Shell) -> None:
    shell.run("acquire", "door")
    assert shell.run("certificate", "issue", "window", "--json", code=76).error["code"] == "LEASE_NOT_FOUND"


def test_a_certificate_is_checked_with_the_store_s_own_keys(shell: Shell) -> None:
    text = issued(shell)
    out = shell.run("certificate", "verify", text, "--resource", "door").out
    assert out.splitlines()[0] == "proven"
    assert "ann" in out
    told = json.loads(
        shell.run("certificate", "verify", "-", "--resource", "door", "--json", given=f"{text}\n").out
    )
    assert (told["verified"], told["holder"], told["resource"]) == (True, "ann", "door")
    (shell.folder / "lease.jwt").write_text(f"{text}\n")
    assert shell.json("certificate", "verify", "lease.jwt", "--resource", "door") == told


def test_a_certificate_is_checked_far_from_the_store_with_published_keys(shell: Shell) -> None:
    text = issued(shell)
    (shell.folder / "keys.json").write_text(shell.run("certificate", "keys").out)
    nowhere = str(shell.folder / "nothing" / "leases")
    check = ("certificate", "verify", text, "--resource", "door", "--store", nowhere)
    shell.run(*check, "--keys", "keys.json")
    hexadecimal = public_key(shell)
    shell.run(*check, "--key", "00" * 32, "--key", hexadecimal)
    refused = shell.run(*check, "--key", "00" * 32, "--json", code=76)
    assert refused.error["code"] == "CERTIFICATE_KEY_UNKNOWN"


def public_key(shell: Shell) -> str:
    from leasehold.certificates.keys import TrustedKeys

    document = json.loads(shell.run("certificate", "keys").out)
    (key,) = document["keys"]
    return TrustedKeys.from_jwks(document).public_key(key["kid"]).hex()


def test_what_is_not_proven_ends_with_76_and_says_why(shell: Shell) -> None:
    text = issued(shell)
    token = shell.json("certificate", "show", text)["token"]
    for code, options in (
        ("CERTIFICATE_RESOURCE", [text, "--resource", "window"]),
        ("CERTIFICATE_TENANT", [text, "--resource", "door", "--tenant", "acme"]),
        ("STALE_TOKEN", [text, "--resource", "door", "--minimum-token", str(token + 1)]),
        ("CERTIFICATE_FORGED", [text[:-4] + "AAAA", "--resource", "door"]),
        ("CERTIFICATE_MALFORMED", ["nonsense", "--resource", "door"]),
        ("CERTIFICATE_KEY_UNKNOWN", [a_certificate(key=SigningKey(bytes(32))), "--resource", "door"]),
    ):
        refused = shell.run("certificate", "verify", *options, "--json", code=76)
        assert refused.error["code"] == code
    shell.run("certificate", "verify", text, "--resource", "door", "--minimum-token", str(token))


def test_show_says_that_nothing_was_checked(shell: Shell) -> None:
    stranger = a_certificate(key=SigningKey(bytes(32)))
    assert shell.run("certificate", "show", stranger).out.startswith("not checked")
    assert shell.json("certificate", "show", stranger)["verified"] is False


def test_wrong_usage_is_answered_with_what_is_missing(shell: Shell) -> None:
    shell.run("acquire", "door")
    for arguments, missing in (
        (("issue",), "a lease id or a resource"),
        (("show",), "a certificate"),
        (("verify", "x"), "--resource"),
        (("verify", "x", "--resource", "door", "--keys", "bad.json"), "JSON Web Key Set"),
        (("verify", "x", "--resource", "door", "--key", "12"), "64 hexadecimal digits"),
        (("forge",), "forge"),
    ):
        (shell.folder / "bad.json").write_text("not json")
        assert missing in shell.run("certificate", *arguments, code=2).err


def test_a_file_of_keys_that_is_not_there_is_said_so(shell: Shell) -> None:
    refused = shell.run("certificate", "verify", "x", "--resource", "door", "--keys", "none.json", code=1)
    assert "none.json" in refused.err


def test_a_scope_is_shown_as_what_it_allows(shell: Shell) -> None:
    for scope, shown in (
        (Scope(unlimited=True), "everything"),
        (Scope(), "nothing"),
        (Scope(tools=("search",), namespaces=("data",)), "search, data"),
    ):
        text = a_certificate(delegation=Delegation(scope=scope))
        assert f"scope     {shown}\n" in shell.run("certificate", "show", text).out
        assert shell.json("certificate", "show", text)["scope"]["unlimited"] is scope.unlimited
    assert shell.json("certificate", "show", a_certificate())["scope"] is None
