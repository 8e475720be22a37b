import pytest

from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Command
from leasehold.kernel.lease.decide import decide
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.records import Keys, Missing, Records
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.lease.view import View
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
    at,
)

STANDING = a_lease(
    expires_tick=at(100).tick, delegation=Delegation(scope=Scope(unlimited=True), budget=Budget(tokens=9))
)


def view_of_a_standing_lease() -> View:
    view = View(an_authority())
    keys = Keys(
        leases={"lease-1", "lease-2"},
        resources={("default", "door"), ("default", "gate")},
        children={"lease-1"},
        waits={("default", "bob")},
        requests={command.request_key for command in COMMANDS},
    )
    view.load(keys, Records(leases=[STANDING]))
    return view


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
    view = View(an_authority())
    loads = 0
    while True:
        try:
            decided = decide(command, view, at(60))
            break
        except Missing as missing:
            loads += 1
            wanted = "lease-1" in missing.keys.leases or ("default", "door") in missing.keys.resources
            view.load(missing.keys, Records(leases=[STANDING] if wanted else []))

    assert loads > 0
    assert decided == decide(command, view_of_a_standing_lease(), at(60))
