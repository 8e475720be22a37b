from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import (
    LeaseDelegated,
    LeaseEvent,
    LeaseExpired,
    LeaseIssued,
    LeaseRearmed,
    LeaseReclaimed,
    LeaseReleased,
    LeaseRenewed,
    LeaseRevoked,
    LeaseSpent,
)
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.model import Lease, LeaseState, Mode, ReleaseReason
from leasehold.kernel.ledger.events import IllegalTransition
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.records import OF_LEASE, TOKEN, a_lease

LATE = Tick(value=100)
NEXT_ERA = Tick(value=7, era=2)


def renewed(expires_value: int = 160, **fields: Any) -> LeaseRenewed:
    defaults: dict[str, Any] = {
        "tick": Tick(value=60),
        "at_ns": 6_000,
        "actor": "ann",
        "holder": "ann",
        "renewals": {"lease-1": expires_value},
    }
    return LeaseRenewed(**(defaults | fields))


def released(**fields: Any) -> LeaseReleased:
    return LeaseReleased(**({**OF_LEASE, "reason": ReleaseReason.COMPLETED} | fields))


def expired(**fields: Any) -> LeaseExpired:
    return LeaseExpired(**(OF_LEASE | {"tick": LATE, "actor": "registrar"} | fields))


def revoked(**fields: Any) -> LeaseRevoked:
    return LeaseRevoked(**(OF_LEASE | {"actor": "olga", "reason": "maintenance"} | fields))


def rearmed(**fields: Any) -> LeaseRearmed:
    return LeaseRearmed(**(OF_LEASE | {"tick": NEXT_ERA, "expires_tick": 47} | fields))


def spent(tokens: int = 1, **fields: Any) -> LeaseSpent:
    return LeaseSpent(**(OF_LEASE | {"amounts": Amounts(tokens=tokens)} | fields))


def delegated(tokens: int = 1, **fields: Any) -> LeaseDelegated:
    return LeaseDelegated(**(OF_LEASE | {"child_id": "lease-2", "amounts": Amounts(tokens=tokens)} | fields))


def reclaimed(granted: int = 0, spent: int = 0, delegated: int = 0) -> LeaseReclaimed:
    return LeaseReclaimed(
        **OF_LEASE,
        child_id="lease-2",
        granted=Amounts(tokens=granted),
        spent=Amounts(tokens=spent),
        delegated=Amounts(tokens=delegated),
    )


FOLLOWING: list[LeaseEvent] = [
    renewed(),
    released(),
    expired(),
    revoked(),
    rearmed(),
    spent(),
    delegated(),
    reclaimed(),
]


def test_a_grant_makes_a_lease_with_everything_it_said() -> None:
    issued = LeaseIssued(
        **OF_LEASE,
        tenant="acme",
        mode=Mode.SHARED,
        ttl_ns=50,
        max_renewals=3,
        adopted_from="lease-0",
        bound_to_boot=False,
        signature=b"signed",
        metadata={"task": 42},
        config_version="c1",
        zone_version="z1",
    )

    assert evolve(None, issued) == Lease(
        lease_id="lease-1",
        tenant="acme",
        resource="door",
        holder="ann",
        token=TOKEN,
        mode=Mode.SHARED,
        state=LeaseState.ACTIVE,
        ttl_ns=50,
        issued_tick=Tick(value=60),
        expires_tick=Tick(value=110),
        issued_at_ns=6_000,
        expires_at_ns=6_050,
        renewal_count=0,
        max_renewals=3,
        adopted_from="lease-0",
        bound_to_boot=False,
        signature=b"signed",
        metadata={"task": 42},
        config_version="c1",
        zone_version="z1",
        version=1,
    )


def test_a_renewal_counts_from_its_own_moment_and_is_remembered() -> None:
    assert evolve(a_lease(), renewed(160)) == a_lease(
        ttl_ns=100,
        expires_tick=Tick(value=160),
        expires_at_ns=6_100,
        renewal_count=1,
        last_renewed_at_ns=6_000,
        version=2,
    )


def test_a_release_ends_the_lease_with_its_reason() -> None:
    assert evolve(a_lease(), released()) == a_lease(
        state=LeaseState.RELEASED,
        release_reason=ReleaseReason.COMPLETED,
        terminated_at_ns=6_000,
        ended_by="ann",
        version=2,
    )


def test_a_revocation_ends_the_lease_and_keeps_who_did_it_and_why() -> None:
    assert evolve(a_lease(), revoked()) == a_lease(
        state=LeaseState.REVOKED,
        end_reason="maintenance",
        terminated_at_ns=6_000,
        ended_by="olga",
        version=2,
    )


def test_an_expiry_ends_the_lease_at_its_own_time_however_late_it_was_noticed() -> None:
    noticed_late = expired(tick=Tick(value=10_000), at_ns=99_000)

    assert evolve(a_lease(), noticed_late) == a_lease(
        state=LeaseState.EXPIRED, terminated_at_ns=5_050, ended_by="registrar", version=2
    )


def test_rearming_puts_the_lease_on_the_clock_of_now() -> None:
    lease = evolve(a_lease(), rearmed())

    assert lease == a_lease(
        issued_tick=None, expires_tick=Tick(value=47, era=2), expires_at_ns=6_040, version=2
    )


def test_a_lease_rearmed_with_nothing_left_does_not_expire_in_the_past_of_people() -> None:
    assert evolve(a_lease(), rearmed(expires_tick=3)).expires_at_ns == 6_000


@pytest.mark.parametrize("event", FOLLOWING, ids=lambda event: str(event.type))
def test_nothing_can_happen_to_a_lease_that_was_never_issued(event: LeaseEvent) -> None:
    with pytest.raises(IllegalTransition, match=f"{event.type} for a lease that was never issued"):
        evolve(None, event)


@pytest.mark.parametrize("event", FOLLOWING, ids=lambda event: str(event.type))
@pytest.mark.parametrize("state", [state for state in LeaseState if state.is_terminal])
def test_nothing_can_happen_to_a_lease_that_has_ended(state: LeaseState, event: LeaseEvent) -> None:
    with pytest.raises(IllegalTransition, match=f"{event.type} after lease lease-1 was {state}"):
        evolve(replace(a_lease(), state=state), event)


@pytest.mark.parametrize("event", FOLLOWING, ids=lambda event: str(event.type))
@pytest.mark.parametrize("other", [{"holder": "bob"}, {"tenant": "acme"}])
def test_an_event_in_the_name_of_somebody_else_is_illegal(other: dict[str, str], event: LeaseEvent) -> None:
    with pytest.raises(IllegalTransition, match="for a lease of ann"):
        evolve(a_lease(), replace(event, **other))


@pytest.mark.parametrize(
    ("lease", "event", "problem"),
    [
        (a_lease(), LeaseIssued(**OF_LEASE, ttl_ns=50), "issued twice"),
        (a_lease(), renewed(renewals={"lease-2": 160}), "does not name lease lease-1"),
        (a_lease(expires_tick=None), renewed(), "renewed on another clock"),
        (a_lease(), renewed(tick=NEXT_ERA), "renewed on another clock"),
        (a_lease(), renewed(tick=LATE), "renewed after it had expired"),
        (a_lease(), renewed(99), "renewed to an earlier time"),
        (a_lease(max_renewals=0), renewed(), "renewed more often than it may be"),
        (a_lease(max_renewals=2, renewal_count=2), renewed(), "renewed more often than it may be"),
        (a_lease(), expired(tick=Tick(value=99)), "expired too early"),
        (a_lease(expires_tick=None), expired(), "expired too early"),
        (a_lease(), expired(tick=Tick(value=10_000, era=2)), "expired too early"),
        (a_lease(expires_tick=None), rearmed(), "rearmed, but not for a later era"),
        (a_lease(), rearmed(tick=Tick(value=60)), "rearmed, but not for a later era"),
        (a_lease(expires_tick=Tick(value=100, era=3)), rearmed(), "rearmed, but not for a later era"),
        (a_lease(expires_tick=Tick(value=100, rate=9)), rearmed(), "rearmed, but not for a later era"),
    ],
)
def test_an_event_that_the_law_could_not_have_produced_is_refused(
    lease: Lease, event: LeaseEvent, problem: str
) -> None:
    with pytest.raises(IllegalTransition, match=problem):
        evolve(lease, event)


def test_the_last_moment_before_expiry_is_not_too_late_and_the_last_renewal_not_too_many() -> None:
    last_moment = renewed(149, tick=Tick(value=99))

    assert evolve(a_lease(), last_moment).ttl_ns == 50
    assert evolve(a_lease(), renewed(100)).expires_tick == Tick(value=100)
    assert evolve(a_lease(max_renewals=2, renewal_count=1), renewed()).renewal_count == 2
    assert evolve(a_lease(max_renewals=-1, renewal_count=10**6), renewed()).renewal_count == 10**6 + 1


ACCOUNT = Delegation(budget=Budget(tokens=10), spent=Amounts(tokens=2), delegated=Amounts(tokens=5))


@pytest.mark.parametrize(
    ("event", "spent_now", "set_aside"),
    [
        (spent(3), 5, 5),
        (delegated(3), 2, 8),
        (reclaimed(granted=5, spent=1), 3, 0),
        (reclaimed(granted=5, spent=1, delegated=4), 3, 4),
    ],
)
def test_an_account_is_kept_event_by_event(event: LeaseEvent, spent_now: int, set_aside: int) -> None:
    lease = evolve(a_lease(delegation=ACCOUNT), event)

    assert lease == a_lease(
        delegation=replace(ACCOUNT, spent=Amounts(tokens=spent_now), delegated=Amounts(tokens=set_aside)),
        version=2,
    )


@pytest.mark.parametrize("event", [released(orphaned=True), expired(orphaned=True), revoked(orphaned=True)])
def test_an_end_says_that_children_were_left(event: LeaseEvent) -> None:
    assert evolve(a_lease(delegation=ACCOUNT), event).delegation == replace(ACCOUNT, orphaned=True)


@pytest.mark.parametrize(
    ("lease", "event", "problem"),
    [
        (a_lease(delegation=ACCOUNT), spent(4), "lease.spent takes more from lease lease-1 than it has"),
        (a_lease(delegation=ACCOUNT), delegated(4), "lease.delegated takes more from lease lease-1 than it"),
        (a_lease(delegation=ACCOUNT), reclaimed(spent=4), "lease.reclaimed takes more from lease lease-1"),
        (a_lease(delegation=ACCOUNT), reclaimed(granted=6), "gives lease lease-1 back what it never set"),
        (a_lease(), spent(), "lease.spent for lease lease-1, which has no budget"),
        (a_lease(), released(orphaned=True), "lease.released for lease lease-1, which has no budget"),
        (
            None,
            LeaseIssued(**OF_LEASE, ttl_ns=50, delegation=Delegation(spent=Amounts(tokens=1))),
            "lease lease-1 had spent before it was issued",
        ),
    ],
)
def test_an_account_that_the_law_could_not_have_produced_is_refused(
    lease: Lease | None, event: LeaseEvent, problem: str
) -> None:
    with pytest.raises(IllegalTransition, match=problem):
        evolve(lease, event)
