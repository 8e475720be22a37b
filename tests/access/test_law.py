"""The law of access keys, where nothing else reaches it: what can never be right, and what history tells."""

from typing import Any

import pytest

from leasehold.access.law.commands import OVERLAP_MAXIMUM_NS, check
from leasehold.access.law.events import AccessKeyCreated, AccessKeyRevoked, AccessKeyRotated
from leasehold.access.law.model import AccessKey, Role, Until
from leasehold.access.law.rules import evolve
from leasehold.engine.registrar import Registrar
from leasehold.kernel.ledger.events import IllegalTransition
from leasehold.kernel.ledger.tick import Tick
from tests.access.keys import create, created, rotate
from tests.engine.doubles import expect

TICK = Tick(value=5, era=0)
EVENT: dict[str, Any] = {"tick": TICK, "at_ns": 5, "actor": "ann", "key_id": "k1"}


def test_what_can_never_be_right_is_refused_unread() -> None:
    nameless, overlong = create(Role.ADMIN, holder="")[1], rotate("k1", overlap_ns=OVERLAP_MAXIMUM_NS + 1)[1]

    assert [refusal and refusal.field for refusal in (check(nameless), check(overlong))] == [
        "holder",
        "overlap",
    ]


def test_a_rotation_that_is_sent_again_is_the_same_rotation(registrar: Registrar) -> None:
    _, command = rotate(created(registrar, Role.VIEWER).key_id)

    assert [expect(AccessKey, registrar.call(command)).rotations for _ in range(2)] == [1, 1]


def test_nothing_happens_to_a_key_that_there_is_not() -> None:
    event = AccessKeyRevoked(tenant="", **EVENT)

    with pytest.raises(IllegalTransition, match="there is no access key k1"):
        evolve(None, event, "k1")


def test_history_tells_what_became_of_a_key_and_with_which_key_that_was_asked() -> None:
    later = Until(at_ns=9, tick=TICK)
    made = AccessKeyCreated(tenant="acme", digest="d", role=Role.VIEWER, by="k0", **EVENT)
    for_all = AccessKeyCreated(tenant="", digest="d", role=Role.ADMIN, **EVENT)
    rotations = [AccessKeyRotated(tenant="", digest="d", overlap=one, **EVENT) for one in (None, later)]
    ends = [AccessKeyRevoked(tenant="", reason=reason, **EVENT) for reason in ("", "lost")]

    assert [event.story for event in (made, for_all, *rotations, *ends)] == [
        "viewer of tenant acme, with key k0",
        "admin of all tenants",
        "new secret",
        "new secret beside the old one",
        "revoked",
        "lost",
    ]
    assert (made.filing, for_all.filing) == (
        ("acme", None, "access:k1", "ann", None),
        (None, None, "access:k1", "ann", None),
    )
