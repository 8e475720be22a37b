"""The smallest thing that carries the law: a ledger in a list, a clock to turn, a fresh view per command.

Whatever a test asks of it, it also checks what must hold for every command: refusals change nothing,
deciding is repeatable and leaves the view alone, the events survive their encoding, the history
replays to the very records the view ended with, tokens rise, and no invariant is broken.
"""

import copy
import itertools
from collections.abc import Iterable
from typing import Any, TypeVar

from leasehold.kernel.lease.answers import (
    Answer,
    Ended,
    Granted,
    Released,
    Renewal,
    Renewed,
    Spent,
    Swept,
    Waiting,
)
from leasehold.kernel.lease.budget import DIMENSIONS, Amounts, Budget
from leasehold.kernel.lease.check import check_command
from leasehold.kernel.lease.commands import (
    Acquire,
    ChangeMode,
    Command,
    Derive,
    Release,
    Renew,
    Revoke,
    Spend,
    Sweep,
    Transfer,
)
from leasehold.kernel.lease.decide import decide
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import Event, LeaseIssued, Remembered, decode_event, encode_event
from leasehold.kernel.lease.invariants import invariants
from leasehold.kernel.lease.model import Lease, LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.records import CHILDREN_PAGE, Keys, Missing, Records
from leasehold.kernel.lease.view import View
from leasehold.kernel.ledger.authority import Authority, ClockReading, now_of, observe
from leasehold.kernel.ledger.limits import Quotas
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.state import State, replay
from leasehold.kernel.ledger.tick import Now
from leasehold.stores.memory.queues import read_queues

SECOND = 1_000_000_000
HOUR = 3600 * SECOND
TTL = 10 * SECOND
"""What a lease gets in a test that does not say."""

Kind = TypeVar("Kind")


class Registrar:
    """Decides commands one at a time, and keeps the history."""

    def __init__(self, quotas: Quotas | None = None) -> None:
        self.quotas = quotas or Quotas()
        self.ledger: list[Event] = []
        self.state = State()
        self.clock = 1_000 * SECOND
        self.wall_ns = 1_700_000_000 * SECOND
        self.boot_id = "boot-1"
        self.identity = "8:77"
        self.highest_token = 0
        self.replayable = True
        self._numbers = itertools.count(1)

    def reading(self) -> ClockReading:
        return ClockReading(
            tick_value=self.clock, wall_ns=self.wall_ns, boot_id=self.boot_id, identity=self.identity
        )

    def now(self) -> Now:
        """The moment, once the registrar has noticed what happened to its clock and its file."""
        event = observe(self.state.authority, self.reading())
        if event is not None:
            self.record(event)
        assert observe(self.authority, self.reading()) is None
        return now_of(self.authority, self.reading())

    @property
    def authority(self) -> Authority:
        assert self.state.authority is not None
        return self.state.authority

    def advance(self, seconds: float) -> None:
        self.clock += int(seconds * SECOND)

    def reboot(self, clock: int = 5 * SECOND) -> None:
        """Start the machine's clock anew."""
        self.boot_id = f"next-boot-{next(self._numbers)}"
        self.clock = clock

    def forget_eras(self) -> None:
        """Lose the record of every ended era."""
        self.now()
        self.state.eras.clear()
        self.replayable = False

    def lease(self, lease_id: str) -> Lease:
        return self.state.leases[lease_id]

    def put(self, lease: Lease) -> Lease:
        """Keep a lease that no event of this ledger made: from a foreign clock, or by a damaged row."""
        self.now()
        self.state.leases[lease.lease_id] = lease
        self.replayable = False
        return lease

    def record(self, event: Event) -> None:
        self.state.apply(event)
        self.ledger.append(event)

    def found(self, keys: Keys) -> Records:
        """What a store would answer."""
        return found(self.state, self.ledger, keys)

    def view(self) -> View:
        return View(self.authority, self.quotas)

    def loaded_view(self, command: Command) -> View:
        """A view with what the command is sure to need: nothing, if it is refused unread."""
        view = self.view()
        if check_command(command) is None:
            keys = view.lacking([command])
            if keys is not None:
                view.load(keys, self.found(keys))
            keys = view.lacking_in_crowds([command]) if view.is_crowded else None
            if keys is not None:
                view.load(keys, self.found(keys))
        return view

    def decide(self, command: Command, view: View | None = None) -> Decision | Refusal:
        """Decide without committing, loading what is missing on the way."""
        now = self.now()
        if view is None:
            view = self.loaded_view(command)
        while True:
            try:
                return decide(command, view, now)
            except Missing as missing:
                view.load(missing.keys, self.found(missing.keys))

    def ask(self, command: Command) -> Answer | Refusal:
        """Decide and commit."""
        self.now()
        eager, lazy = self.loaded_view(command), self.view()
        decided = self.decide(command, eager)
        before = copy.deepcopy(vars(eager))
        assert self.decide(command, eager) == decided, "deciding twice must give the same"
        assert vars(eager) == before, "deciding must not change the view"
        assert self.decide(command, lazy) == decided, "loading on demand must give the same"
        if isinstance(decided, Refusal):
            return decided
        eager.fold(decided.events, decided.leases)
        for event in decided.events:
            self.record(event)
            assert decode_event(encode_event(event)) == event
            if isinstance(event, LeaseIssued):
                assert event.token > self.highest_token, "tokens must rise"
                self.highest_token = event.token
        assert eager.created | eager.changed == {
            name: self.state.leases[name] for event in decided.events for name in event.lease_ids
        }
        assert eager.authority == self.authority
        if self.replayable:
            assert replay(decode_event(encode_event(event)) for event in self.ledger) == self.state
        broken = invariants(self.state)
        assert not broken, broken
        return decided.answer

    def claim(self, holder: str = "ann", resource: str = "door", **fields: Any) -> Acquire:
        """A claim with fresh ids, for whatever the test does not say."""
        number = next(self._numbers)
        defaults: dict[str, Any] = {"lease_id": f"lease-{number}", "request_id": f"request-{number}"}
        defaults["ttl_ns"] = TTL
        return Acquire(holder=holder, resource=resource, **(defaults | fields))

    def grant(self, holder: str = "ann", resource: str = "door", **fields: Any) -> Lease:
        """Acquire, and be granted."""
        return expect(Granted, self.ask(self.claim(holder, resource, **fields))).lease

    def deny(self, holder: str = "ann", resource: str = "door", **fields: Any) -> Refusal:
        """Acquire, and be refused."""
        return expect(Refusal, self.ask(self.claim(holder, resource, **fields)))

    def child_claim(self, parent: Lease, holder: str | None = None, **fields: Any) -> Derive:
        """A derivation by the parent's holder with fresh ids, for whatever the test does not say."""
        number = next(self._numbers)
        defaults: dict[str, Any] = {"lease_id": f"lease-{number}", "request_id": f"request-{number}"}
        defaults |= {"resource": f"part-{number}", "tenant": parent.tenant, "holder": parent.holder}
        defaults["child_holder"] = holder or parent.holder
        return Derive(parent_id=parent.lease_id, **(defaults | fields))

    def derive(self, parent: Lease, holder: str | None = None, **fields: Any) -> Lease:
        """Derive, and be granted."""
        return expect(Granted, self.ask(self.child_claim(parent, holder, **fields))).lease

    def refuse_child(self, parent: Lease, **fields: Any) -> Refusal:
        """Derive, and be refused."""
        return expect(Refusal, self.ask(self.child_claim(parent, **fields)))

    def spending(self, lease: Lease, **fields: Any) -> Spend:
        """A spending by the lease's holder; amounts by their names, anything else as a field."""
        amounts = {name: fields.pop(name) for name in DIMENSIONS if name in fields}
        defaults: dict[str, Any] = {"tenant": lease.tenant, "holder": lease.holder}
        defaults["request_id"] = f"request-{next(self._numbers)}"
        return Spend(lease_id=lease.lease_id, amounts=Amounts(**amounts), **(defaults | fields))

    def spend(self, lease: Lease, **fields: Any) -> Spent:
        """Spend, and be allowed to."""
        return expect(Spent, self.ask(self.spending(lease, **fields)))

    def refuse_spending(self, lease: Lease, **fields: Any) -> Refusal:
        """Spend, and be refused."""
        return expect(Refusal, self.ask(self.spending(lease, **fields)))

    def account(self, lease: Lease) -> Delegation:
        """How a lease's budget stands by its record."""
        return expect(Delegation, self.lease(lease.lease_id).delegation)

    def remaining(self, lease: Lease) -> Budget:
        return self.account(lease).remaining

    def renew(self, *leases: Lease, **fields: Any) -> tuple[Renewal | Refusal, ...]:
        """Renew as the holder of the first lease, unless said otherwise."""
        answer = self.ask(Renew(**(self._about(leases) | fields)))
        return expect(Renewed, answer).outcomes

    def extend(self, lease: Lease, **fields: Any) -> Renewal:
        """Renew one lease, and get more time."""
        return expect(Renewal, self.renew(lease, **fields)[0])

    def refuse_renewal(self, lease: Lease, **fields: Any) -> RefusalCode:
        """Renew one lease, and be refused."""
        return expect(Refusal, self.renew(lease, **fields)[0]).code

    def release(self, *leases: Lease, **fields: Any) -> tuple[Ended | Refusal, ...]:
        """Release as the holder of the first lease, unless said otherwise."""
        answer = self.ask(Release(**(self._about(leases) | fields)))
        return expect(Released, answer).outcomes

    def join(self, holder: str, resource: str = "door", **fields: Any) -> Acquire:
        """Acquire, and have to wait."""
        claim = self.claim(holder, resource, wait=True, **fields)
        expect(Waiting, self.ask(claim))
        return claim

    def wait(self, claim: Acquire) -> Waiting:
        """Ask again, and still have to wait."""
        return expect(Waiting, self.ask(claim))

    def win(self, claim: Acquire) -> Granted:
        """Ask again, and have it."""
        granted = expect(Granted, self.ask(claim))
        assert not granted.ended
        return granted

    def cancel(self, claim: Acquire) -> tuple[Ended | Refusal, ...]:
        """Leave the queue, or give back what was won."""
        request = f"request-{next(self._numbers)}"
        release = Release(
            tenant=claim.tenant, lease_ids=claim.lease_ids, holder=claim.holder, request_id=request
        )
        return expect(Released, self.ask(release)).outcomes

    def change(self, lease: Lease, mode: Mode, **fields: Any) -> ChangeMode:
        """A request to change a lease's mode."""
        defaults = {"tenant": lease.tenant, "lease_id": lease.lease_id, "holder": lease.holder, "mode": mode}
        return ChangeMode(**(defaults | {"request_id": f"request-{next(self._numbers)}"} | fields))

    def hand_over(self, lease: Lease, to: str, **fields: Any) -> Transfer:
        """A request to transfer a lease."""
        number = next(self._numbers)
        names = {"request_id": f"request-{number}", "new_lease_id": f"lease-{number}", "to": to}
        about = {"tenant": lease.tenant, "lease_id": lease.lease_id, "holder": lease.holder}
        return Transfer(**(about | names | fields))

    def holders(self, resource: str = "door") -> list[str]:
        """Who is recorded as holding a resource, oldest token first."""
        leases = sorted(self.state.leases.values(), key=lambda one: one.token)
        return [one.holder for one in leases if one.resource == resource and one.state is LeaseState.ACTIVE]

    def queue(self, resource: str = "door") -> list[str]:
        """Who waits for a resource, first in line first."""
        unended = [one for one in self.state.leases.values() if not one.is_terminal]
        return [one.holder for one in _queue(unended, "default", resource)]

    def _about(self, leases: tuple[Lease, ...]) -> dict[str, Any]:
        return {
            "tenant": leases[0].tenant,
            "holder": leases[0].holder,
            "lease_ids": tuple(lease.lease_id for lease in leases),
            "request_id": f"request-{next(self._numbers)}",
        }

    def end(self, lease: Lease, reason: ReleaseReason = ReleaseReason.VOLUNTARY) -> Ended:
        """Release one lease, and be told that it is over."""
        return expect(Ended, self.release(lease, reason=reason)[0])

    def revoke(self, lease: Lease, **fields: Any) -> Ended | Refusal:
        """Revoke as an operator of the lease's tenant, unless said otherwise."""
        defaults = {"operator": "olga", "reason": "maintenance", "lease_id": lease.lease_id}
        defaults |= {"tenant": lease.tenant, "request_id": f"request-{next(self._numbers)}"}
        answer = self.ask(Revoke(**(defaults | fields)))
        assert isinstance(answer, Ended | Refusal)
        return answer

    def sweep(self, *leases: Lease) -> tuple[Lease, ...]:
        lease_ids = tuple(lease.lease_id for lease in leases)
        return expect(Swept, self.ask(Sweep(lease_ids=lease_ids, request_id="sweep"))).leases

    def history(self) -> list[str]:
        """The types of all events so far."""
        return [event.type for event in self.ledger]


def found(state: State, ledger: Iterable[Event], keys: Keys) -> Records:
    """What a store that keeps this state and this history would answer."""
    leases = state.leases.values()
    unended = [lease for lease in leases if not lease.is_terminal]
    requests = {event.request: event for event in ledger if isinstance(event, Remembered)}
    chosen = [lease for lease in leases if _is_asked_for(lease, keys)]
    records = Records(
        requests={key: event for key, event in requests.items() if key in keys.requests},
        grants={
            event.lease_id: event
            for event in ledger
            if isinstance(event, LeaseIssued) and event.lease_id in keys.grants
        },
        holders={
            (tenant, holder): sum(one.tenant == tenant and one.holder == holder for one in unended)
            for tenant, holder in keys.holders
        },
        tenants={tenant: sum(one.tenant == tenant for one in unended) for tenant in keys.tenants},
        eras={number: era for number, era in state.eras.items() if number in keys.eras},
        children={
            parent: [
                lease
                for lease in unended
                if lease.delegation is not None and lease.delegation.parent == parent
            ][:CHILDREN_PAGE]
            for parent in keys.children
        },
    )
    read_queues(unended, keys, records)
    chosen += records.leases
    records.leases = list({lease.lease_id: lease for lease in chosen}.values())
    chosen += [child for here in records.children.values() for child in here]
    named = keys.resources | {(lease.tenant, lease.resource) for lease in chosen}
    records.awaited = {(one.tenant, one.resource) for one in unended if one.is_waiting} & named
    return records


def _queue(unended: list[Lease], tenant: str, resource: str) -> list[Lease]:
    waiting = [
        one
        for one in unended
        if (one.tenant, one.resource, one.state) == (tenant, resource, LeaseState.PENDING)
    ]
    return sorted(waiting, key=lambda one: one.place)


def _is_asked_for(lease: Lease, keys: Keys) -> bool:
    return lease.lease_id in keys.leases or (
        lease.state is LeaseState.ACTIVE and (lease.tenant, lease.resource) in keys.resources
    )


def expect(kind: type[Kind], answer: object) -> Kind:
    """The answer, which has to be of one kind."""
    assert isinstance(answer, kind), answer
    return answer
