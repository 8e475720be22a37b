import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.family import LEASES, lease_part
from leasehold.kernel.lease.records import LeaseFound, LeaseWanted, children_of, waits_of
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.commands import Command, Sweep, Swept
from leasehold.kernel.ledger.records import Keys, Missing, Records
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.view import View
from tests.kernel.deciding import decide, lease_view, outcome
from tests.kernel.records import (
    ACQUIRE,
    CHANGE_MODE,
    COMMANDS,
    DERIVE,
    RELEASE,
    RENEW,
    REVOKE,
    SPEND,
    SWEEP,
    TRANSFER,
    a_lease,
    an_authority,
    an_era,
    at,
)
from tests.kernel.registrar import Registrar

STANDING = a_lease(
    expires_tick=at(100).tick, delegation=Delegation(scope=Scope(unlimited=True), budget=Budget(tokens=9))
)


def view_of_a_standing_lease() -> LeaseView:
    view = lease_view(an_authority())
    wanted = LeaseWanted(
        keys={"lease-1", "lease-2"},
        resources={("default", "door"), ("default", "gate")},
        scans={children_of("lease-1"), waits_of(("default", "bob"))},
    )
    keys = Keys(requests={command.request_key for command in COMMANDS}, families={"lease": wanted})
    view.ledger.load(keys, answered(keys, standing=True))
    return view


def answered(keys: Keys, *, standing: bool) -> Records:
    """What a store says that has one lease, or nothing."""
    wanted = keys.families.get("lease", LeaseWanted())
    records = {"lease-1": STANDING} if standing else {}
    return Records(families={"lease": LeaseFound(records=records, scans={one: [] for one in wanted.scans})})


@pytest.mark.parametrize(
    ("command", "tick", "events"),
    [
        (ACQUIRE, 60, None),
        (RENEW, 60, ["lease.renewed"]),
        (RELEASE, 60, ["lease.released"]),
        (REVOKE, 60, ["lease.revoked"]),
        (SWEEP, 60, []),
        (DERIVE, 60, ["lease.delegated", "lease.issued"]),
        (SPEND, 60, ["lease.spent"]),
        (SWEEP, 100, ["lease.expired"]),
        (CHANGE_MODE, 60, []),
        (TRANSFER, 60, ["lease.released", "lease.issued"]),
    ],
)
def test_each_command_has_its_own_rule(command: Command, tick: int, events: list[str] | None) -> None:
    decided = decide(command, view_of_a_standing_lease(), at(tick))

    assert ([event.type for event in decided.events] if isinstance(decided, Decision) else None) == events


@pytest.mark.parametrize("command", COMMANDS)
def test_a_decision_without_its_records_says_what_to_load_and_can_be_taken_again(command: Command) -> None:
    view = lease_view(an_authority())
    loads = 0
    while True:
        try:
            decided = decide(command, view, at(60))
            break
        except Missing as missing:
            loads += 1
            wanted = missing.keys.families.get("lease", LeaseWanted())
            standing = "lease-1" in wanted.keys or ("default", "door") in wanted.resources
            view.ledger.load(missing.keys, answered(missing.keys, standing=standing))

    assert loads > 0
    assert decided == decide(command, view_of_a_standing_lease(), at(60))


@pytest.mark.parametrize(
    ("sweep", "tick", "ended"),
    [
        (SWEEP, 99, False),
        (SWEEP, 100, True),
        (replace(SWEEP, key="lease-2"), 100, False),
    ],
    ids=["that stands", "that has run out", "that is not there"],
)
def test_a_sweep_ends_a_lease(sweep: Sweep, tick: int, ended: bool) -> None:
    assert outcome(decide(sweep, view_of_a_standing_lease(), at(tick))) == Swept(ended=ended)


def test_a_sweep_that_carries_a_lease_over_to_the_present_clock_has_not_ended_it() -> None:
    view = lease_view(an_authority(era=2, era_first_tick=1_000, tick=1_000))
    remote = a_lease(bound_to_boot=False)
    view.ledger.load(
        Keys(eras={1}, families={"lease": LeaseWanted(keys={"lease-1"})}),
        Records(eras={1: an_era()}, families={"lease": LeaseFound(records={"lease-1": remote})}),
    )

    decided = decide(SWEEP, view, at(1_000, era=2))

    assert isinstance(decided, Decision)
    assert [event.type for event in decided.events] == ["lease.rearmed"]
    assert outcome(decided) == Swept(ended=False)


def test_a_claim_whose_id_was_only_presumed_to_be_new_is_refused_after_looking() -> None:
    claim = replace(ACQUIRE, lease_id="lease-2", request_id="lease-2", holder="bob")
    view = View(LEASES, an_authority())
    view.presuming = True
    keys = LEASES.named["lease"].needs([claim], view)
    assert keys is not None
    view.load(keys, answered(keys, standing=True))

    with pytest.raises(Missing) as missing:
        decide(claim, lease_part(view), at(60))
    assert missing.value.keys == Keys(families={"lease": LeaseWanted(keys={"lease-2"})})
    view.load(missing.value.keys, answered(missing.value.keys, standing=False))

    assert isinstance(refusal := decide(claim, lease_part(view), at(60)), Refusal)
    assert refusal.code is RefusalCode.HELD


def test_a_child_whose_line_stands_is_not_ended_by_a_sweep() -> None:
    registrar = Registrar()
    parent = registrar.grant("ann", "tree", budget=Budget(tokens=5))
    child = registrar.ask(registrar.child_claim(parent, budget=Budget(tokens=1)))
    assert isinstance(child, Granted)
    swept = registrar.ask(Sweep(family="lease", key=child.lease.lease_id, request_id="sweep"))
    assert swept == Swept(ended=False)
