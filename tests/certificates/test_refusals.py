"""Every way to pass off something as a certificate that it is not."""

import hashlib
import hmac
import json
from typing import Any

import pytest

from leasehold.certificates import errors
from leasehold.certificates.errors import (
    CertificateAlgorithm,
    CertificateExpired,
    CertificateForged,
    CertificateIssuer,
    CertificateKeyRetired,
    CertificateKeyUnknown,
    CertificateMalformed,
    CertificateNotYetValid,
    CertificateResource,
    CertificateTenant,
    NotProven,
    StaleToken,
)
from leasehold.certificates.keys import TrustedKeys
from leasehold.certificates.signing import encoded
from tests.certificates.statements import (
    ISSUER,
    KEY,
    NOW,
    OTHER_KEY,
    a_certificate,
    claims_of,
    header_of,
    signed_by_hand,
    verify,
)
from tests.kernel.records import TOKEN


def refused(text: Any, kind: type[NotProven], **choices: Any) -> NotProven:
    with pytest.raises(NotProven) as answer:
        verify(text, **choices)
    assert type(answer.value) is kind, answer.value
    return answer.value


def test_the_codes_are_stable() -> None:
    assert {
        kind.__name__: (kind.code, kind.http_status)
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, NotProven)
    } == {
        "NotProven": ("NOT_PROVEN", 401),
        "RequestMalformed": ("REQUEST_MALFORMED", 400),
        "CertificateMissing": ("CERTIFICATE_MISSING", 401),
        "CertificateMalformed": ("CERTIFICATE_MALFORMED", 401),
        "CertificateAlgorithm": ("CERTIFICATE_ALGORITHM", 401),
        "CertificateKeyUnknown": ("CERTIFICATE_KEY_UNKNOWN", 401),
        "CertificateKeyRetired": ("CERTIFICATE_KEY_RETIRED", 401),
        "CertificateForged": ("CERTIFICATE_FORGED", 401),
        "CertificateExpired": ("CERTIFICATE_EXPIRED", 401),
        "CertificateNotYetValid": ("CERTIFICATE_NOT_YET_VALID", 401),
        "CertificateIssuer": ("CERTIFICATE_ISSUER", 403),
        "CertificateTenant": ("CERTIFICATE_TENANT", 403),
        "CertificateResource": ("CERTIFICATE_RESOURCE", 403),
        "StaleToken": ("STALE_TOKEN", 409),
    }


def test_forged_somebody_else_s_key_under_a_trusted_name() -> None:
    header = header_of(a_certificate())
    refused(signed_by_hand(header, claims_of(a_certificate()), OTHER_KEY), CertificateForged)


def test_forged_other_claims_under_the_old_signature() -> None:
    header, _, signature = a_certificate().split(".")
    for change in ({"sub": "mallory"}, {"token": TOKEN + 1}, {"resource": "safe"}, {"exp": NOW * 2}):
        body = encoded(json.dumps(claims_of(a_certificate()) | change).encode())
        refused(f"{header}.{body}.{signature}", CertificateForged, resource=None)


def test_forged_parts_of_two_right_certificates() -> None:
    mine, theirs = a_certificate(), a_certificate(holder="mallory")
    header, body, _ = theirs.split(".")
    refused(f"{header}.{body}.{mine.split('.')[2]}", CertificateForged)


def test_wrong_key_one_that_nobody_trusts() -> None:
    error = refused(a_certificate(key=OTHER_KEY), CertificateKeyUnknown)
    assert error.facts == {"key_id": OTHER_KEY.key_id}


def test_wrong_key_none_is_trusted_at_all() -> None:
    refused(a_certificate(), CertificateKeyUnknown, keys=[])


def test_retired_key_even_for_what_it_signed_before() -> None:
    keys = TrustedKeys([KEY.public_key, OTHER_KEY.public_key], retired=[OTHER_KEY.public_key])
    error = refused(a_certificate(key=OTHER_KEY), CertificateKeyRetired, keys=keys)
    assert error.facts == {"key_id": OTHER_KEY.key_id}
    refused(a_certificate(key=OTHER_KEY), CertificateKeyRetired, keys=keys.to_jwks())


def test_replayed_to_another_resource() -> None:
    for resource in ("safe", "doo", "doors", "Door", ""):
        refused(a_certificate(), CertificateResource, resource=resource)


def test_replayed_to_another_tenant() -> None:
    refused(a_certificate(), CertificateTenant, tenant="acme")
    refused(a_certificate(tenant="acme"), CertificateTenant)


def test_replayed_from_another_registrar_whose_key_is_trusted_too() -> None:
    refused(a_certificate(), CertificateIssuer, issuer="leasehold:0000000000000000")
    assert verify(a_certificate(), issuer=ISSUER).issuer == ISSUER


def test_replayed_after_somebody_with_a_higher_token_came() -> None:
    error = refused(a_certificate(), StaleToken, minimum_token=TOKEN + 1)
    assert (error.token, error.resource) == (TOKEN, "door")
    assert verify(a_certificate(), minimum_token=TOKEN).token == TOKEN


@pytest.mark.parametrize("late", [60, 60.000001, 61, 10**6])
def test_expired(late: float) -> None:
    refused(a_certificate(left=60), CertificateExpired, now=NOW + late)
    refused(a_certificate(left=60), CertificateExpired, now=NOW + late, leeway=3_600)


def test_not_expired_until_the_very_moment() -> None:
    assert verify(a_certificate(left=60), now=NOW + 59.999999).holder == "ann"


def test_not_yet_valid() -> None:
    refused(a_certificate(), CertificateNotYetValid, now=NOW - 1.001)
    assert verify(a_certificate(), now=NOW - 1).holder == "ann"
    refused(a_certificate(), CertificateNotYetValid, now=NOW - 1, leeway=0)
    assert verify(a_certificate(), now=NOW - 60, leeway=60).holder == "ann"


def test_truncated_anywhere() -> None:
    text = a_certificate()
    for length in range(len(text)):
        with pytest.raises(NotProven) as answer:
            verify(text[:length])
        assert isinstance(answer.value, CertificateMalformed | CertificateForged)


def test_no_bit_of_it_can_be_changed() -> None:
    text = a_certificate().encode()
    for index in range(len(text)):
        for bit in range(8):
            changed = bytearray(text)
            changed[index] ^= 1 << bit
            with pytest.raises(NotProven):
                verify(changed.decode("latin-1"))


def test_nothing_can_be_added_to_it() -> None:
    text = a_certificate()
    for changed in (text + "=", text + ".", "." + text, text + "\n", " " + text, text + ".e30"):
        refused(changed, CertificateMalformed)
    refused(text + "A", CertificateForged)


def by_hand(**header: Any) -> str:
    """The claims of a right certificate under another header, signed with the right key."""
    whole = header_of(a_certificate()) | header
    return signed_by_hand(
        {name: value for name, value in whole.items() if value is not None}, claims_of(a_certificate())
    )


def test_algorithm_confusion_none() -> None:
    for name in ("none", "None", "NONE", ""):
        header = encoded(json.dumps(header_of(a_certificate()) | {"alg": name}).encode())
        body = a_certificate().split(".")[1]
        refused(f"{header}.{body}.", CertificateAlgorithm)
        refused(by_hand(alg=name), CertificateAlgorithm)


def test_algorithm_confusion_a_shared_secret_that_is_the_public_key() -> None:
    for secret in (KEY.public_key, KEY.public_key.hex().encode()):
        header = encoded(json.dumps(header_of(a_certificate()) | {"alg": "HS256"}).encode())
        signing_input = f"{header}.{a_certificate().split('.')[1]}"
        signature = hmac.new(secret, signing_input.encode(), hashlib.sha256).digest()
        refused(f"{signing_input}.{encoded(signature)}", CertificateAlgorithm)


@pytest.mark.parametrize(
    "name", ["ES256", "RS256", "PS512", "HS512", "Ed448", "eddsa", "EdDSA ", None, 17, []]
)
def test_algorithm_confusion_any_other_name_over_a_right_signature(name: object) -> None:
    refused(by_hand(alg=name), CertificateAlgorithm)


@pytest.mark.parametrize(
    "header",
    [
        {"kid": None},
        {"kid": 17},
        {"kid": ["d"]},
        {"typ": None},
        {"typ": "JWT"},
        {"typ": "lease+JWT"},
        {"crit": ["exp"]},
        {"crit": []},
        {"b64": False, "crit": ["b64"]},
        {"b64": True},
        {"jwk": {"kty": "OKP", "crv": "Ed25519", "x": encoded(OTHER_KEY.public_key)}},
        {"jku": "https://example.org/keys"},
        {"x5u": "https://example.org/chain"},
        {"cty": "JWT"},
        {"zip": "DEF"},
    ],
    ids=str,
)
def test_a_header_that_says_more_less_or_something_else_is_refused(header: dict[str, Any]) -> None:
    refused(by_hand(**header), CertificateMalformed)


def test_a_key_that_the_certificate_brings_along_is_not_looked_at() -> None:
    brought = {"kty": "OKP", "crv": "Ed25519", "x": encoded(OTHER_KEY.public_key)}
    header = {"alg": "EdDSA", "kid": OTHER_KEY.key_id, "typ": "lease+jwt", "jwk": brought}
    refused(signed_by_hand(header, claims_of(a_certificate()), OTHER_KEY), CertificateMalformed)


def test_a_header_that_says_something_twice_is_refused() -> None:
    for twice in ('"alg":"EdDSA","alg":"EdDSA"', '"alg":"none","alg":"EdDSA"'):
        header = f'{{{twice},"kid":"{KEY.key_id}","typ":"lease+jwt"}}'
        refused(signed_by_hand(header, claims_of(a_certificate())), CertificateMalformed)


def test_claims_that_come_twice_are_refused_though_they_are_signed() -> None:
    claims = json.dumps(claims_of(a_certificate()))
    for twice in ('"sub":"mallory"', '"token":1', '"resource":"door"'):
        changed = f"{claims[:-1]},{twice}}}"
        refused(signed_by_hand(header_of(a_certificate()), changed), CertificateMalformed)


@pytest.mark.parametrize("name", sorted(claims_of(a_certificate())))
def test_a_claim_that_is_missing_or_of_another_type_is_refused_though_it_is_signed(name: str) -> None:
    claims = claims_of(a_certificate())
    without = {claim: value for claim, value in claims.items() if claim != name}
    for wrong in (without, claims | {name: None}, claims | {name: []}, claims | {name: True}):
        refused(signed_by_hand(header_of(a_certificate()), wrong), CertificateMalformed)


@pytest.mark.parametrize(
    "change",
    [{"token": 0}, {"token": -1}, {"token": 2**53}, {"token": 1.5}, {"mode": "both"}, {"position": 0}],
)
def test_a_claim_that_can_never_be_right_is_refused_though_it_is_signed(change: dict[str, Any]) -> None:
    claims = claims_of(a_certificate()) | change
    refused(signed_by_hand(header_of(a_certificate()), claims), CertificateMalformed)


@pytest.mark.parametrize("exp", ["NaN", "Infinity", "1e999", "-Infinity"])
def test_a_time_that_is_no_number_is_refused_though_it_is_signed(exp: str) -> None:
    claims = json.dumps(claims_of(a_certificate()) | {"exp": 0}).replace('"exp": 0', f'"exp": {exp}')
    refused(signed_by_hand(header_of(a_certificate()), claims), CertificateMalformed)


def test_a_newer_registrar_may_claim_more_than_is_understood_here() -> None:
    claims = claims_of(a_certificate()) | {"colour": "green"}
    assert verify(signed_by_hand(header_of(a_certificate()), claims)).holder == "ann"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "eyJ9.e30.",
        "\x00",
        "é" * 10,
        "A" * 70_000,
        None,
        17,
        b"bytes",
        encoded(b"[]") + ".e30.",
        encoded(b"[" * 50_000) + ".e30.",
        encoded(b"\xff\xfe") + ".e30.",
    ],
    ids=lambda text: repr(text)[:20],
)
def test_what_is_no_certificate_at_all_is_refused(text: object) -> None:
    refused(text, CertificateMalformed)


def test_a_seal_or_any_other_message_of_the_key_is_no_certificate() -> None:
    """What else the registrar's key signs cannot be dressed up as a certificate."""
    message = b"leasehold seal 1" + bytes(40)
    dressed = f"{encoded(message)}.{encoded(message)}.{encoded(KEY.sign(message))}"
    refused(dressed, CertificateMalformed)


def test_every_refusal_says_what_to_do_next() -> None:
    error = refused("nonsense", CertificateMalformed)
    assert "pass the text as it was issued" in str(error)
