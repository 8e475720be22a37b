"""Everything that can happen to a parent, its child and its grandchild, tried out.

Every step is checked against the model of `test_delegation_machine`, and against every invariant. Sequences
that lead to the same situation go on as one; a situation is how the last lease in each place stands, and what
was spent and set aside under it.
"""

import pytest

from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.scope import Scope
from tests.kernel.lease.test_delegation_machine import Delegations
from tests.lanes import by_length

pytestmark = pytest.mark.deep

PLACES = ("top", "child", "grandchild")
STEPS = [
    (what, place) for place in PLACES for what in ("take", "spend", "renew", "release", "revoke", "sweep")
]
STEPS.append(("time", ""))
BUDGETS = {"top": 3, "child": 2, "grandchild": 1}

Step = tuple[str, str]


class Line:
    """The last lease in each place, and the model beside it."""

    def __init__(self) -> None:
        self.machine = Delegations()
        self.last: dict[str, Lease] = {}

    def step(self, what: str, place: str) -> None:
        if what == "time":
            self.machine.time_passes(seconds=1)
        elif what == "take":
            self.take(place)
        elif place in self.last:
            self.use(what, self.last[place])

    def take(self, place: str) -> None:
        """Take a lease anew where there is none that lives."""
        before = self.last.get(place)
        if before is not None and self.machine.accounts[before.lease_id].lives(self.machine.now):
            return
        budget, scope, above = Budget(tokens=BUDGETS[place]), Scope(), PLACES.index(place) - 1
        taken: object = None
        if above < 0:
            taken = self.machine.acquire(holder="ann", scope=scope, budget=budget, ttl=2)
        elif PLACES[above] in self.last:
            parent = self.last[PLACES[above]]
            taken = self.machine.derive(parent=parent, holder="bob", scope=scope, budget=budget, ttl=None)
        if isinstance(taken, Lease):
            self.last[place] = taken

    def use(self, what: str, lease: Lease) -> None:
        match what:
            case "spend":
                self.machine.spend(lease=lease, tokens=1, tool_calls=0, twice=True)
            case "renew":
                self.machine.renew(lease=lease)
            case "sweep":
                self.machine.sweep(lease=lease)
            case _:
                self.machine.end(lease=lease, revoked=what == "revoke")
        self.machine.nobody_has_more_than_was_granted()
        self.machine.a_lease_is_recorded_as_ended_only_if_it_is_over()

    def situation(self) -> tuple[object, ...]:
        return tuple(self.facts(place) for place in PLACES)

    def facts(self, place: str) -> object:
        if place not in self.last:
            return None
        lease_id = self.last[place].lease_id
        account, recorded = self.machine.accounts[lease_id], self.machine.registrar.lease(lease_id)
        assert recorded.delegation is not None
        parent = recorded.delegation.parent
        return (
            recorded.state,
            max(0, account.expires - self.machine.now),
            account.ttl,
            recorded.delegation.spent,
            recorded.delegation.delegated,
            parent in {lease.lease_id for lease in self.last.values()},
        )


def reached(trail: tuple[Step, ...]) -> Line:
    line = Line()
    for what, place in trail:
        line.step(what, place)
    return line


def test_every_sequence_of_six_steps_keeps_the_law() -> None:
    frontier: list[tuple[Step, ...]] = [()]
    known = {Line().situation()}
    for _ in range(by_length(6, 4)):
        after: list[tuple[Step, ...]] = []
        for trail in frontier:
            for step in STEPS:
                where = reached((*trail, step)).situation()
                if where not in known:
                    known.add(where)
                    after.append((*trail, step))
        frontier = after
    assert len(known) > by_length(100, 20), "little happened"
