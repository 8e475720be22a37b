"""Whether an answer of the kernel is the one that the model gives."""

from leasehold.kernel.lease.answers import Answer, Ended, Granted, Released, Renewal, Renewed
from leasehold.kernel.lease.commands import Acquire, Release, Renew, Revoke
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.ledger.commands import Command, Sweep, Swept
from leasehold.kernel.ledger.refusals import Refusal
from tests.kernel.model import (
    ALREADY_HELD,
    GRANTED,
    HELD,
    LOST,
    NOT_FOUND,
    NOT_HOLDER,
    RENEWED,
    Holding,
    Model,
)

UNIT = 1_000_000
"""How many ticks are one unit of the model's time."""


def check_answer(model: Model, command: Command, answer: Answer | Swept | Refusal, events: int) -> None:
    """Compare the answer with the model's, and let the model follow. `events` says how many there were."""
    match command, answer:
        case Acquire(), Granted(repeated=True):
            assert answer.ended == (not model.is_live(answer.lease.lease_id))
            assert answer.expires_in_ns == model.left(answer.lease.lease_id) * UNIT
        case Acquire(), Granted() | Refusal():
            check_claim(model, command, answer)
        case Renew(), Renewed(outcomes=outcomes):
            for lease_id, outcome in zip(command.lease_ids, outcomes, strict=True):
                check_renewal(model, command, lease_id, outcome)
            assert events == 0 or any(isinstance(outcome, Renewal) for outcome in outcomes)
        case Release(), Released(outcomes=ends):
            for lease_id, end in zip(command.lease_ids, ends, strict=True):
                check_end(model, command.tenant, command.holder, lease_id, end)
            assert events == 0 or any(isinstance(end, Ended) for end in ends)
        case Revoke(), Ended() | Refusal():
            one = model.grants.get(command.lease_id)
            anybody = "" if one is None else one.holder
            check_end(model, command.tenant, anybody, command.lease_id, answer)
        case Sweep(), Swept(ended=ended):
            assert not (ended and model.is_live(command.key))
        case _:
            raise AssertionError((command, answer))


def check_claim(model: Model, command: Acquire, answer: Granted | Refusal) -> None:
    live = model.live_on(command.tenant, command.resource)
    expected = model.acquire(
        Holding(
            lease_id=command.lease_id,
            tenant=command.tenant,
            resource=command.resource,
            holder=command.holder,
            shared=command.mode is Mode.SHARED,
            expires=0,
            ttl=command.ttl_ns // UNIT,
            bound=command.bound_to_boot,
            renewals_left=None if command.max_renewals < 0 else command.max_renewals,
        ),
        adopt=command.adopt,
    )
    if isinstance(answer, Granted):
        assert expected == GRANTED
        assert answer.expires_in_ns == command.ttl_ns
        return
    assert answer.code == expected
    assert expected in (HELD, ALREADY_HELD)
    own = expected == ALREADY_HELD
    obstacles = [one for one in live if (one.holder == command.holder) == own]
    assert answer.holder in {one.holder for one in obstacles}
    assert answer.expires_in_ns == max(one.expires - model.now for one in obstacles) * UNIT


def check_renewal(model: Model, command: Renew, lease_id: str, outcome: Renewal | Refusal) -> None:
    ttl = None if command.ttl_ns is None else command.ttl_ns // UNIT
    expected = model.renew(command.tenant, command.holder, lease_id, ttl)
    if isinstance(outcome, Renewal):
        assert expected == RENEWED
        assert outcome.expires_in_ns == model.left(lease_id) * UNIT
    elif expected == LOST:
        assert outcome.code.means_loss
    else:
        assert outcome.code == expected


def check_end(model: Model, tenant: str, holder: str, lease_id: str, outcome: Ended | Refusal) -> None:
    one = model.grants.get(lease_id)
    if one is None or one.tenant != tenant:
        assert isinstance(outcome, Refusal)
        assert outcome.code == NOT_FOUND
    elif isinstance(outcome, Refusal):
        assert outcome.code == NOT_HOLDER
        assert one.holder != holder
    elif model.is_live(lease_id):
        assert not outcome.already
        assert one.holder == holder
        model.end(lease_id)
    else:
        assert outcome.already
