"""Every broken invariant is reported. The broken states are made by hand: no command leads to them."""

from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.invariants import invariants
from leasehold.kernel.lease.model import Lease, LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.authority import EPOCH_LIMIT
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.records import TOKEN, a_lease, an_authority, an_era

ENDED: dict[LeaseState, dict[str, Any]] = {
    LeaseState.RELEASED: {
        "release_reason": ReleaseReason.COMPLETED,
        "terminated_at_ns": 9,
        "ended_by": "ann",
    },
    LeaseState.EXPIRED: {"terminated_at_ns": 5_050, "ended_by": "registrar"},
    LeaseState.REVOKED: {"end_reason": "maintenance", "terminated_at_ns": 9, "ended_by": "olga"},
}


def state_of(*leases: Lease) -> State:
    return State(
        records={"lease": {lease.lease_id: lease for lease in leases}}, authority=an_authority(counter=9)
    )


def other(**fields: Any) -> Lease:
    return a_lease(**({"lease_id": "lease-2", "token": TOKEN + 1, "holder": "bob"} | fields))


def adopter(**fields: Any) -> Lease:
    """A lease that was granted in the place of the first, which ended at that moment."""
    return other(**({"adopted_from": "lease-1", "issued_at_ns": 9} | fields))


def ended(state: LeaseState, **fields: Any) -> Lease:
    return a_lease(state=state, **(ENDED[state] | fields))


def ended_fields(state: str) -> dict[str, Any]:
    return {"state": LeaseState[state], **ENDED[LeaseState[state]]}


SHARED = {"mode": Mode.SHARED}
ENDED_LEASES = [
    ended(state, lease_id=state.value, token=TOKEN + 2 + number) for number, state in enumerate(ENDED)
]


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(State(), id="nothing at all"),
        pytest.param(state_of(a_lease()), id="one exclusive lease"),
        pytest.param(state_of(a_lease(**SHARED), other(**SHARED)), id="two that share"),
        pytest.param(state_of(a_lease(), other(resource="window")), id="two resources"),
        pytest.param(state_of(a_lease(), other(tenant="acme", holder="ann")), id="two tenants"),
        pytest.param(state_of(*ENDED_LEASES, other()), id="ended leases before it"),
        pytest.param(state_of(a_lease(renewal_count=2, max_renewals=2, last_renewed_at_ns=1)), id="renewed"),
        pytest.param(state_of(a_lease(renewal_count=9, last_renewed_at_ns=1)), id="renewed without limit"),
        pytest.param(state_of(a_lease(issued_tick=None)), id="rearmed"),
        pytest.param(state_of(a_lease(issued_tick=Tick(value=99))), id="a single tick"),
        pytest.param(state_of(a_lease(expires_tick=None)), id="unknown time"),
        pytest.param(state_of(ended(LeaseState.RELEASED), adopter()), id="adopted"),
        pytest.param(
            state_of(a_lease(token=TOKEN + 2), adopter(resource="window")),
            id="adopted, and its id given again",
        ),
        pytest.param(state_of(other(adopted_from="pruned")), id="adopted from a lease that is gone"),
        pytest.param(
            State(
                records={"lease": {"lease-1": a_lease(token=TOKEN + 8)}}, authority=an_authority(counter=9)
            ),
            id="the highest token just below the next",
        ),
    ],
)
def test_a_sound_state_breaks_nothing(state: State) -> None:
    assert invariants(state) == []


@pytest.mark.parametrize(
    ("leases", "problem"),
    [
        ([a_lease(), other()], "default/door is held exclusively and not alone: lease-1, lease-2"),
        ([a_lease(), other(**SHARED)], "default/door is held exclusively and not alone: lease-1, lease-2"),
        ([a_lease(**SHARED), other(holder="ann", **SHARED)], "default/door is held twice by one holder"),
        ([a_lease(), other(resource="window", token=TOKEN)], f"token {TOKEN} belongs to lease-1 and lease-2"),
        (
            [ended(LeaseState.RELEASED, token=TOKEN + 1), adopter(token=TOKEN)],
            "lease lease-2 adopted lease-1 without a higher token",
        ),
        ([a_lease(token=TOKEN + 9)], f"token {TOKEN + 9} was granted, but the next would be {TOKEN + 9}"),
        (
            [a_lease(token=TOKEN + 10), other(resource="window")],
            f"token {TOKEN + 10} was granted, but the next would be {TOKEN + 9}",
        ),
        ([ended(LeaseState.REVOKED, terminated_at_ns=None)], "lease lease-1 is revoked, without end time"),
        ([a_lease(terminated_at_ns=9)], "lease lease-1 is active, with end time 9"),
        (
            [ended(LeaseState.RELEASED, release_reason=None)],
            "lease lease-1 is released, without release reason",
        ),
        (
            [a_lease(release_reason=ReleaseReason.ABORTED)],
            "lease lease-1 is active, with release reason aborted",
        ),
        (
            [ended(LeaseState.REVOKED, end_reason=None)],
            "lease lease-1 is revoked, without revocation reason",
        ),
        ([a_lease(end_reason="why")], "lease lease-1 is active, with revocation reason why"),
        ([ended(LeaseState.RELEASED, ended_by=None)], "lease lease-1 is released, ended by nobody"),
        ([a_lease(ended_by="olga")], "lease lease-1 is active, ended by olga"),
        ([a_lease(issued_tick=Tick(value=100))], "lease lease-1 expires no later than it was issued"),
        ([a_lease(issued_tick=Tick(value=1, era=9))], "lease lease-1 expires no later than it was issued"),
        (
            [a_lease(renewal_count=3, max_renewals=2, last_renewed_at_ns=1)],
            "lease lease-1 was renewed 3 times of 2",
        ),
        (
            [a_lease(renewal_count=1, max_renewals=0, last_renewed_at_ns=1)],
            "lease lease-1 was renewed 1 times of 0",
        ),
        ([a_lease(renewal_count=1)], "lease lease-1 was renewed 1 times, last at no time"),
        ([a_lease(last_renewed_at_ns=1)], "lease lease-1 was renewed 0 times, last at 1"),
        (
            [ended(LeaseState.EXPIRED, terminated_at_ns=9)],
            "lease lease-1 expired at another time than its own",
        ),
    ],
)
def test_a_broken_invariant_is_reported_and_nothing_else(leases: list[Lease], problem: str) -> None:
    assert invariants(state_of(*leases)) == [problem]


def test_a_lease_filed_under_another_id_is_reported() -> None:
    state = State(records={"lease": {"lease-9": a_lease()}}, authority=an_authority())

    assert invariants(state) == ["lease lease-1 is filed under lease-9"]


def test_leases_without_a_registrar_are_reported() -> None:
    assert invariants(State(records={"lease": {"lease-1": a_lease()}})) == [
        "there are leases, but no registrar"
    ]


@pytest.mark.parametrize(
    "fields",
    [{"epoch": 0}, {"epoch": 0, "counter": 0}, {"epoch": EPOCH_LIMIT}, {"counter": -1}, {"counter": 2**23}],
)
def test_an_epoch_or_a_counter_out_of_range_is_reported(fields: dict[str, int]) -> None:
    authority = an_authority(**fields)

    assert invariants(State(authority=authority)) == [
        f"epoch {authority.epoch} or counter {authority.counter} is out of range"
    ]


def test_every_problem_is_reported_at_once() -> None:
    assert len(invariants(state_of(a_lease(ended_by="olga", end_reason="why"), other()))) == 3


def test_a_lease_that_was_adopted_under_the_same_token_is_reported_as_that_too() -> None:
    assert invariants(state_of(ended(LeaseState.RELEASED), adopter(token=TOKEN))) == [
        f"token {TOKEN} belongs to lease-1 and lease-2",
        "lease lease-2 adopted lease-1 without a higher token",
    ]


GIVEN = Delegation(scope=Scope(tools=("read",)), budget=Budget(tokens=10), delegated=Amounts(tokens=4))
TAKEN = Delegation(scope=Scope(tools=("read",)), budget=Budget(tokens=4), ancestors=("lease-1",))


def parent(**fields: Any) -> Lease:
    return a_lease(**({"delegation": GIVEN} | fields))


def child(delegation: Delegation = TAKEN, **fields: Any) -> Lease:
    return other(**({"resource": "window", "delegation": delegation} | fields))


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(state_of(parent(), child()), id="a parent and its child"),
        pytest.param(
            state_of(
                parent(delegation=replace(GIVEN, delegated=Amounts())), child(**ended_fields("EXPIRED"))
            ),
            id="a child that has ended",
        ),
        pytest.param(
            state_of(parent(delegation=replace(GIVEN, orphaned=True), **ended_fields("REVOKED")), child()),
            id="a child that was left to be ended",
        ),
        pytest.param(state_of(child()), id="a parent that was pruned"),
        pytest.param(
            state_of(a_lease(token=TOKEN + 5), child(**ended_fields("REVOKED"))),
            id="a parent that was pruned, and its id given again",
        ),
        pytest.param(state_of(parent(expires_tick=None), child()), id="a parent of unknown time"),
        pytest.param(
            State(
                records={
                    "lease": {
                        "lease-1": parent(),
                        "lease-2": child(expires_tick=Tick(value=50, era=2), issued_tick=None),
                    }
                },
                authority=an_authority(counter=9, era=2, era_first_tick=3),
                eras={1: an_era()},
            ),
            id="a parent on the clock before",
        ),
    ],
)
def test_a_sound_line_breaks_nothing(state: State) -> None:
    assert invariants(state) == []


@pytest.mark.parametrize(
    ("leases", "problem"),
    [
        (
            [a_lease(delegation=replace(GIVEN, delegated=Amounts(), spent=Amounts(tokens=11)))],
            "lease lease-1 has tokens below 0: 11 spent, 0 set aside, -1 remaining",
        ),
        (
            [a_lease(delegation=replace(GIVEN, delegated=Amounts(), spent=Amounts(episodes=-1)))],
            "lease lease-1 has episodes below 0: -1 spent, 0 set aside, no limit",
        ),
        (
            [parent(delegation=replace(GIVEN, delegated=Amounts(tokens=5))), child()],
            "lease lease-1 has set aside 5 tokens; those below it were granted 4 tokens",
        ),
        (
            [parent(delegation=replace(GIVEN, delegated=Amounts(tokens=5, tool_calls=2000)))],
            "lease lease-1 has set aside 2,000 tool_calls, 5 tokens; those below it were granted nothing",
        ),
        (
            [child(replace(TAKEN, ancestors=tuple(f"above-{number}" for number in range(17))))],
            "lease lease-2 has 17 leases above it",
        ),
        (
            [a_lease(delegation=Delegation(orphaned=True))],
            "lease lease-1 has left its children, and stands",
        ),
        (
            [a_lease(**ended_fields("REVOKED")), child()],
            "lease lease-2 was derived from lease-1, which had nothing to give",
        ),
        (
            [a_lease(token=TOKEN + 5, **ended_fields("REVOKED")), child()],
            "lease lease-2 was derived from lease-1, which had nothing to give",
        ),
        (
            [parent(), child(replace(TAKEN, ancestors=("lease-0", "lease-1")))],
            "lease lease-2 is not in the line of its parent lease-1",
        ),
        ([parent(), child(tenant="acme")], "lease lease-2 is not in the line of its parent lease-1"),
        (
            [parent(), child(replace(TAKEN, scope=Scope(tools=("rm",))))],
            "lease lease-2 is allowed tool 'rm', which its parent is not",
        ),
        (
            [
                parent(delegation=replace(GIVEN, delegated=Amounts())),
                child(replace(TAKEN, budget=Budget(tokens=11)), **ended_fields("EXPIRED")),
            ],
            "lease lease-2 was granted more tokens than its parent",
        ),
        (
            [parent(**ended_fields("REVOKED")), child()],
            "lease lease-2 stands, and its parent lease-1 ended without leaving it to be ended",
        ),
        ([parent(), child(expires_tick=Tick(value=101))], "lease lease-2 outlives its parent lease-1"),
    ],
)
def test_a_broken_line_is_reported_and_nothing_else(leases: list[Lease], problem: str) -> None:
    assert invariants(state_of(*leases)) == [problem]


def test_a_child_that_outlives_its_parent_is_found_across_clocks() -> None:
    state = State(
        records={
            "lease": {
                "lease-1": parent(),
                "lease-2": child(expires_tick=Tick(value=54, era=2), issued_tick=None),
            }
        },
        authority=an_authority(counter=9, era=2, era_first_tick=3),
        eras={1: an_era()},
    )

    assert invariants(state) == ["lease lease-2 outlives its parent lease-1"]


def test_leases_that_claim_to_succeed_each_other_do_not_keep_anybody_busy_for_ever() -> None:
    given = replace(GIVEN, delegated=Amounts())
    first = parent(**ended_fields("RELEASED"), delegation=replace(given, orphaned=True, successor="lease-3"))
    third = other(**ended_fields("RELEASED"), delegation=replace(given, successor="lease-1"))
    third = replace(third, lease_id="lease-3", token=TOKEN + 5)

    assert invariants(state_of(first, third, child())) == []
