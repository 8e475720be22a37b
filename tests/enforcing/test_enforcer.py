import asyncio
import time
from typing import Any

import pytest

from leasehold.certificates.certificate import Certificate
from leasehold.certificates.errors import (
    CertificateExpired,
    CertificateKeyUnknown,
    CertificateMissing,
    CertificateResource,
    CertificateTenant,
    StaleToken,
)
from leasehold.enforcing import Enforcer, Fence
from leasehold.kernel.lease.model import Mode
from tests.certificates.statements import KEY, OTHER_KEY, a_certificate


def fresh(**fields: Any) -> str:
    """A certificate of ann's lease on the door, made this moment."""
    return a_certificate(**({"at": time.time()} | fields))


@pytest.fixture
def enforcer() -> Enforcer:
    return Enforcer(keys=[KEY.public_key])


def test_the_holder_is_let_in(enforcer: Enforcer) -> None:
    assert enforcer.admit(fresh(token=7), "door").holder == "ann"
    assert enforcer.fence.seen("door").exclusive == 7


@pytest.mark.parametrize("nothing", [None, ""])
def test_without_a_certificate_nobody_is_let_in(enforcer: Enforcer, nothing: str | None) -> None:
    with pytest.raises(CertificateMissing, match=r"lease\.certificate"):
        enforcer.admit(nothing, "door")


def test_an_older_token_is_shut_out_once_a_newer_one_was_there(enforcer: Enforcer) -> None:
    old, new = fresh(token=7), fresh(token=8, holder="bob")
    enforcer.admit(old, "door")
    enforcer.admit(new, "door")
    with pytest.raises(StaleToken):
        enforcer.admit(old, "door")
    assert enforcer.admit(new, "door").holder == "bob"


def test_what_is_refused_does_not_move_the_fence(enforcer: Enforcer) -> None:
    for wrong, error in (
        (fresh(token=9, resource="safe"), CertificateResource),
        (fresh(token=9, tenant="acme"), CertificateTenant),
        (fresh(token=9, at=time.time() - 120), CertificateExpired),
        (fresh(token=9, key=OTHER_KEY), CertificateKeyUnknown),
    ):
        with pytest.raises(error):
            enforcer.admit(wrong, "door")
    assert enforcer.fence.seen("door").any == 0


def test_sharers_are_let_in_side_by_side(enforcer: Enforcer) -> None:
    for token in (7, 8, 7):
        assert enforcer.admit(fresh(token=token, mode=Mode.SHARED), "door").token == token
    assert enforcer.fence.seen("door") == (0, 8)


def test_keys_can_be_changed_while_it_runs(enforcer: Enforcer) -> None:
    enforcer.trust([OTHER_KEY.public_key])
    with pytest.raises(CertificateKeyUnknown):
        enforcer.admit(fresh(), "door")
    enforcer.admit(fresh(key=OTHER_KEY), "door")


def test_several_enforcers_can_share_a_fence() -> None:
    fence = Fence()
    first, second = (Enforcer(keys=[KEY.public_key], fence=fence) for _ in range(2))
    first.admit(fresh(token=8), "door")
    with pytest.raises(StaleToken):
        second.admit(fresh(token=7), "door")


def test_a_decorated_function_runs_only_for_the_holder(enforcer: Enforcer) -> None:
    acts: list[tuple[str, str]] = []

    @enforcer.protects("door")
    def open_door(how: str, *, certificate: Certificate) -> str:
        """Open it."""
        acts.append((how, certificate.holder))
        return "open"

    assert open_door("gently", certificate=fresh(token=7)) == "open"
    with pytest.raises(CertificateMissing):
        open_door("by force")
    enforcer.admit(fresh(token=8), "door")
    with pytest.raises(StaleToken):
        open_door("late", certificate=fresh(token=7))
    assert acts == [("gently", "ann")]
    assert (open_door.__name__, open_door.__doc__) == ("open_door", "Open it.")


def test_the_resource_can_depend_on_the_call(enforcer: Enforcer) -> None:
    @enforcer.protects(lambda name, text: f"report/{name}")
    def save(name: str, text: str, *, certificate: Certificate) -> str:
        return f"{certificate.holder} saved {name}: {text}"

    certificate = fresh(resource="report/42")
    assert save("42", text="new", certificate=certificate) == "ann saved 42: new"
    with pytest.raises(CertificateResource):
        save("43", "new", certificate=certificate)


def test_coroutines_can_be_protected_too(enforcer: Enforcer) -> None:
    @enforcer.protects("door")
    async def open_door(*, certificate: Certificate) -> str:
        await asyncio.sleep(0)
        return certificate.holder

    assert asyncio.run(open_door(certificate=fresh())) == "ann"
    with pytest.raises(CertificateMissing):
        asyncio.run(open_door())
