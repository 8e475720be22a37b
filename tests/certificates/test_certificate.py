import subprocess
import sys
from typing import Any

import jwt
import pytest
from jwt.algorithms import NoneAlgorithm

from leasehold.certificates.errors import CertificateMalformed
from leasehold.certificates.keys import TrustedKeys
from leasehold.certificates.signing import read_signed
from leasehold.certificates.verifying import read_certificate
from leasehold.engine.signing import key_id_of
from leasehold.errors import InvalidInput
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.limits import RESOURCE_BYTES, SCOPE_NAMES
from tests.certificates.statements import (
    ISSUER,
    KEY,
    NOW,
    OTHER_KEY,
    a_certificate,
    claims_of,
    header_of,
    verify,
)
from tests.kernel.records import TOKEN


def test_a_certificate_states_everything_about_the_lease() -> None:
    stated = verify(a_certificate(tenant="default", mode=Mode.SHARED))
    assert (stated.issuer, stated.key_id) == (ISSUER, KEY.key_id)
    assert (stated.tenant, stated.resource, stated.mode) == ("default", "door", Mode.SHARED)
    assert (stated.holder, stated.token, stated.lease_id) == ("ann", TOKEN, "lease-1")
    assert stated.position == 17
    assert stated.granted_at_ns == 5_000
    assert stated.issued_at_ns == NOW * 10**9
    assert stated.expires_at_ns == (NOW + 60) * 10**9


def test_the_claims_have_the_names_of_the_registry_where_it_has_them() -> None:
    text = a_certificate()
    assert header_of(text) == {"alg": "EdDSA", "kid": KEY.key_id, "typ": "lease+jwt"}
    assert claims_of(text) == {
        "iss": ISSUER,
        "sub": "ann",
        "jti": f"lease-1.{NOW}000000000",
        "iat": NOW,
        "exp": NOW + 60,
        "lease": "lease-1",
        "tenant": "default",
        "resource": "door",
        "mode": "exclusive",
        "token": TOKEN,
        "position": 17,
        "granted": 5e-06,
    }


def test_a_certificate_is_compact_and_fits_into_a_header_line() -> None:
    text = a_certificate(resource="x" * 512, holder="h" * 128, lease_id="l" * 128, tenant="t" * 128)
    assert text.isascii()
    assert len(text) < 2_500


def test_a_lease_with_a_scope_states_it_and_one_without_states_none() -> None:
    scope = Scope(work_ids=("w-1",), tools=("search",), namespaces=("data/raw",))
    text = a_certificate(delegation=Delegation(scope=scope))
    assert claims_of(text)["scope"] == {
        "work_ids": ["w-1"],
        "tools": ["search"],
        "namespaces": ["data/raw"],
    }
    assert verify(text).scope == scope
    assert verify(a_certificate(delegation=Delegation())).scope == Scope(), "an empty scope allows nothing"
    assert verify(a_certificate()).scope is None


def test_the_widest_scope_and_the_longest_names_fit() -> None:
    names = tuple(f"{number:03}" + '"' * (RESOURCE_BYTES - 3) for number in range(SCOPE_NAMES))
    scope = Scope(work_ids=names)
    resource = '"' * RESOURCE_BYTES
    text = a_certificate(delegation=Delegation(scope=scope), resource=resource)
    assert verify(text, resource=resource).scope == scope


def test_its_times_are_exact_to_the_microsecond_and_never_later_than_the_truth() -> None:
    stated = verify(a_certificate(at=NOW + 0.123456789, left=0.9999999), now=NOW + 0.5)
    assert stated.issued_at_ns == NOW * 10**9 + 123_456_000
    assert stated.expires_at_ns == (NOW + 1) * 10**9 + 123_456_000


def test_the_same_statement_gives_the_same_text() -> None:
    assert a_certificate() == a_certificate()


def test_a_certificate_is_written_just_as_the_library_writes_one() -> None:
    class Ed25519(NoneAlgorithm):
        def prepare_key(self, key: Any) -> Any:
            return key

        def sign(self, msg: bytes, key: Any) -> bytes:
            return KEY.sign(msg)

    library = jwt.PyJWS(algorithms=[])
    library.register_algorithm("EdDSA", Ed25519())
    text = a_certificate()
    body = read_signed(text).body
    assert text == library.encode(body, "", "EdDSA", {"kid": KEY.key_id, "typ": "lease+jwt"})


def test_any_library_for_jws_can_read_one() -> None:
    """Not only ours: the format is the standard's."""
    text = a_certificate()
    assert jwt.get_unverified_header(text)["kid"] == KEY.key_id
    claims = jwt.decode(text, options={"verify_signature": False})
    assert claims["resource"] == "door"


def test_what_a_certificate_says_can_be_looked_at_without_a_key() -> None:
    assert read_certificate(a_certificate(key=OTHER_KEY)).holder == "ann"


@pytest.mark.parametrize("junk", ["!", "=", "\n", "A="])
def test_what_is_written_in_another_way_is_not_even_looked_at(junk: str) -> None:
    header, body, signature = a_certificate().split(".")
    with pytest.raises(CertificateMalformed):
        read_certificate(f"{header}.{body[:8]}{junk}{body[8:]}.{signature}")


@pytest.mark.parametrize(
    "keys",
    [
        KEY.public_key,
        KEY.public_key.hex(),
        [KEY.public_key],
        (KEY.public_key.hex(), OTHER_KEY.public_key),
        {OTHER_KEY.public_key, KEY.public_key},
        TrustedKeys([KEY.public_key]),
        TrustedKeys([KEY.public_key, OTHER_KEY.public_key]).to_jwks(),
    ],
    ids=["bytes", "hexadecimal", "list", "tuple", "set", "kept set", "JWKS"],
)
def test_keys_are_taken_in_every_form_they_come_in(keys: object) -> None:
    assert verify(a_certificate(), keys=keys).holder == "ann"


@pytest.mark.parametrize(
    "keys",
    [
        b"short",
        "not hexadecimal",
        KEY.key_id,
        [b"x" * 33],
        [17],
        {"keys": "none"},
        {},
        {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AAAA"}]},
        {"keys": [{"kty": "OKP", "crv": "Ed25519"}]},
        {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "A"}]},
    ],
)
def test_what_is_no_key_is_refused_before_anything_is_checked(keys: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        verify(a_certificate(), keys=keys)
    assert refused.value.field == "keys"


def test_a_key_set_is_published_and_read_back_in_the_standard_s_form() -> None:
    document = TrustedKeys([KEY.public_key], retired=[OTHER_KEY.public_key]).to_jwks()
    first, second = document["keys"]
    assert (first["kty"], first["crv"], first["kid"]) == ("OKP", "Ed25519", key_id_of(KEY.public_key))
    assert "retired" not in first
    assert (second["kid"], second["retired"]) == (OTHER_KEY.key_id, True)
    assert TrustedKeys.from_jwks(document).to_jwks() == document


def test_keys_of_other_kinds_in_a_set_are_left_out() -> None:
    others = [{"kty": "RSA", "n": "AQAB"}, {"kty": "EC", "crv": "P-256"}, "what?"]
    document = {"keys": others + TrustedKeys([KEY.public_key]).to_jwks()["keys"]}
    assert verify(a_certificate(), keys=document).holder == "ann"


def test_the_library_for_certificates_is_loaded_only_when_one_is_needed() -> None:
    code = "import sys, leasehold, leasehold.enforcing; sys.exit('jwt' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
