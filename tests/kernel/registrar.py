"""The smallest thing that carries the law: a ledger in a list, a clock to turn, a fresh view per command.

Whatever a test asks of it, it also checks what must hold for every command: refusals change nothing,
deciding is repeatable and leaves the view alone, the events survive their encoding, the history
replays to the very records the view ended with, tokens rise, and no invariant is broken.
"""

import itertools
from typing import Any, TypeVar

from leasehold.kernel.lease.answers import Answer, Ended, Granted, Released, Renewal, Renewed, Spent, Waiting
from leasehold.kernel.lease.budget import DIMENSIONS, Amounts, Budget
from leasehold.kernel.lease.commands import (
    Acquire,
    ChangeMode,
    Derive,
    Release,
    Renew,
    Revoke,
    Spend,
    Transfer,
)
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import LeaseIssued
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.lease.model import Lease, LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.authority import Authority, ClockReading, now_of, observe
from leasehold.kernel.ledger.commands import Command, Sweep, Swept
from leasehold.kernel.ledger.events import Event, RegistrarResumed, encode_event
from leasehold.kernel.ledger.records import Keys, Missing, Records
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.state import Folding, State, invariants, replay
from leasehold.kernel.ledger.tick import Now
from tests.kernel.deciding import contents, decide, decide_for_good, lease_view, outcome
from tests.kernel.shelf import found

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
        self._folding = Folding(LEASES, self.state)
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
        lease: Lease = self.state.of(LEASE)[lease_id]
        return lease

    def put(self, lease: Lease) -> Lease:
        """Keep a lease that no event of this ledger made: from a foreign clock, or by a damaged row."""
        self.now()
        self.state.of("lease")[lease.lease_id] = lease
        self.replayable = False
        return lease

    def record(self, event: Event) -> None:
        self._folding.apply(event)
        self.ledger.append(event)

    def found(self, keys: Keys) -> Records:
        """What a store would answer."""
        return found(self.state, self.ledger, keys)

    def view(self) -> LeaseView:
        return lease_view(self.authority, self.quotas)

    def loaded_view(self, *commands: Command) -> LeaseView:
        """A view with what the commands are sure to need: nothing, if they are refused unread."""
        view = self.view()
        self.load_needs(view, *commands)
        return view

    def load_needs(self, view: LeaseView, *commands: Command) -> None:
        """Load what the commands are sure to need, round after round."""
        family = LEASES.named[LEASE]
        wellformed = [command for command in commands if LEASES.check(command) is None]
        while (keys := family.needs(wellformed, view.ledger)) is not None:
            view.ledger.load(keys, self.found(keys))

    def decide(self, command: Command, view: LeaseView | None = None) -> Decision | Refusal:
        """Decide without committing, loading what is missing on the way."""
        now = self.now()
        if view is None:
            view = self.loaded_view(command)
        while True:
            before = contents(view)
            try:
                decided = decide(command, view, now)
            except Missing as missing:
                assert contents(view) == before, "nothing is left of what could not be decided"
                view.ledger.load(missing.keys, self.found(missing.keys))
            else:
                assert contents(view) == before, "what was undone must leave no trace"
                return decided

    def ask(self, command: Command) -> Answer | Swept | Refusal:
        """Decide and commit."""
        now = self.now()
        eager, lazy = self.loaded_view(command), self.view()
        decided = self.decide(command, eager)
        before = contents(eager)
        assert self.decide(command, eager) == decided, "deciding twice must give the same"
        assert self.decide(command, lazy) == decided, "loading on demand must give the same"
        assert decide_for_good(command, eager, now) == decided, "keeping it must give the same"
        if isinstance(decided, Refusal):
            assert contents(eager) == before, "a refusal must leave no trace"
            return decided
        self._commit(decided, eager)
        return outcome(decided)

    def _commit(self, decided: Decision, view: LeaseView) -> None:
        before = dict(self.state.of(LEASE))
        for event in decided.events:
            self.record(event)
            assert LEASES.decode_event(encode_event(event)) == event
            if isinstance(event, LeaseIssued):
                assert event.token > self.highest_token, "tokens must rise"
                self.highest_token = event.token
        assert {change.key: (change.before, change.after) for change in view.ledger.changes()} == {
            key: (before.get(key), self.lease(key)) for event in decided.events for key in event.keys
        }
        assert view.authority == self.authority
        if self.replayable:
            again = (LEASES.decode_event(encode_event(event)) for event in self.ledger)
            assert replay(again, LEASES) == self.state
        broken = invariants(self.state, LEASES)
        assert not broken, broken

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
        leases = sorted(self.state.of("lease").values(), key=lambda one: one.token)
        return [one.holder for one in leases if one.resource == resource and one.state is LeaseState.ACTIVE]

    def queue(self, resource: str = "door") -> list[str]:
        """Who waits for a resource, first in line first."""
        unended = [one for one in self.state.of("lease").values() if not one.is_terminal]
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
        """Sweep leases one by one, and return those that this has ended."""
        names = dict.fromkeys(lease.lease_id for lease in leases)
        ended = [name for name in names if expect(Swept, self.ask(sweeping(name))).ended]
        return tuple(self.lease(name) for name in ended)

    def resume(self, down_since: int, settles_for: int) -> None:
        """Be there again after an outage since a tick, of which the rest of the world learns now."""
        now = self.now()
        settles_until = now.tick.value + settles_for
        resumed = RegistrarResumed(
            tick=now.tick,
            at_ns=now.wall_ns,
            actor="registrar",
            down_since=down_since,
            settles_until=settles_until,
        )
        self.record(resumed)

    def history(self) -> list[str]:
        """The types of all events so far."""
        return [event.type for event in self.ledger]


def _queue(unended: list[Lease], tenant: str, resource: str) -> list[Lease]:
    waiting = [
        one
        for one in unended
        if (one.tenant, one.resource, one.state) == (tenant, resource, LeaseState.PENDING)
    ]
    return sorted(waiting, key=lambda one: one.place)


def sweeping(lease_id: str, request_id: str = "sweep") -> Sweep:
    """What sweeps one lease."""
    return Sweep(family=LEASE, key=lease_id, request_id=request_id)


def expect(kind: type[Kind], answer: object) -> Kind:
    """The answer, which has to be of one kind."""
    assert isinstance(answer, kind), answer
    return answer
