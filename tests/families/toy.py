"""A family that leasehold knows nothing of: named counters, to prove that the house is open.

A counter may be bound to a lease, and is closed when that ends, by a reaction. It may have a time to live,
the end of which ends its lease, too; and finishing a counter releases its lease: both by calling the rule of
another family. Counters are also kept in the order of how far they have come, so that a range of them can be
looked at inside one batch.

`tests/families` takes it through everything a store does, and `tests/simulator/test_troupes.py` through
worlds in which everything goes wrong.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from leasehold.kernel.lease.commands import Release
from leasehold.kernel.lease.events import LeaseExpired, LeaseReleased, LeaseRevoked
from leasehold.kernel.lease.family import lease_family
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.commands import Caller, Command
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import REGISTRAR, Event, Filing, IllegalTransition, StoreCheckpointed
from leasehold.kernel.ledger.family import Families, Family, Reaction, Soft, Stage
from leasehold.kernel.ledger.key import read_number, spell_key, split_key, under
from leasehold.kernel.ledger.limits import check_text, check_ttl, invalid
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick

COUNTER = "counter"
BARRED = Caller(access="barred")
"""A caller that the family admits to nothing."""
OWN, BOUND, BUSY = "own", "bound", "busy"
"""Three kinds of record: counters; which counter a lease has; and counters by how far they have come."""
ASKED, OVER = "asked for", "time is over"
"""Why a counter is closed, unless its lease has ended."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A counter, or a way to find one."""

    name: str
    value: int = 0
    fence: int = 0
    """The number, from the store's counter, of the last bump."""
    bound: str = ""
    """The lease that it is closed with."""
    due: Tick | None = None
    closed_at_ns: int | None = None
    """Kept for a while after it was closed, until it is pruned."""


def own_key(tenant: str, name: str) -> str:
    return spell_key(tenant, OWN, name)


def bound_key(tenant: str, lease_id: str) -> str:
    return spell_key(tenant, BOUND, lease_id)


def busy_key(tenant: str, value: int, name: str) -> str:
    return spell_key(tenant, BUSY, value, name)


class _CounterEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    tenant: str
    name: str
    value: int
    """As it was before."""
    bound: str = ""

    @property
    def filing(self) -> Filing:
        return (self.tenant, None, self.name, self.actor, None)


class CounterBumped(_CounterEvent, frozen=True, kw_only=True, omit_defaults=True, tag="counter.bumped"):
    """A counter rose, or began."""

    is_remembered = True
    draws = True

    by: int
    fence: int
    due: int | None = None

    @property
    def number(self) -> int:
        return self.fence

    @property
    def keys(self) -> tuple[str, ...]:
        keys = [own_key(self.tenant, self.name), busy_key(self.tenant, self.value + self.by, self.name)]
        if self.value:
            keys.append(busy_key(self.tenant, self.value, self.name))
        if self.bound:
            keys.append(bound_key(self.tenant, self.bound))
        return tuple(keys)


class CounterCarried(_CounterEvent, frozen=True, kw_only=True, omit_defaults=True, tag="counter.carried"):
    """A counter of an earlier era was given what it had left, on the clock of now."""

    due: int

    @property
    def keys(self) -> tuple[str, ...]:
        return (own_key(self.tenant, self.name),)


class CounterClosed(_CounterEvent, frozen=True, kw_only=True, omit_defaults=True, tag="counter.closed"):
    """A counter counts no more."""

    reason: str

    @property
    def keys(self) -> tuple[str, ...]:
        keys = (own_key(self.tenant, self.name), busy_key(self.tenant, self.value, self.name))
        return (*keys, bound_key(self.tenant, self.bound)) if self.bound else keys


class Value(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    value: int
    fence: int
    repeated: bool = False


class Closed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    names: tuple[str, ...]
    left: int
    """How many counters of the tenant still count."""


class Bump(Command, frozen=True, kw_only=True, omit_defaults=True, tag="bump"):
    """Raise a counter. `ttl_ns`: it closes after that. `lease_id`: it closes with that lease."""

    answer = Value

    name: str
    holder: str = "ann"
    by: int = 1
    ttl_ns: int | None = None
    lease_id: str = ""


class Close(Command, frozen=True, kw_only=True, omit_defaults=True, tag="close"):
    """Close the counters that have come furthest, or least far."""

    answer = Closed

    holder: str = "ann"
    most: int = 10
    furthest: bool = True


class Finish(Command, frozen=True, kw_only=True, omit_defaults=True, tag="finish"):
    """Release the lease that a counter is bound to, which closes the counter."""

    answer = Value

    name: str
    holder: str


def evolve(record: Record | None, event: _CounterEvent, key: str) -> Record | None:
    kind = split_key(key)[1]
    if isinstance(event, CounterBumped):
        return _after_bump(record, event, kind, key)
    if record is None or record.closed_at_ns is not None:
        raise IllegalTransition(f"{event.type} for {event.name}, which does not count")
    if isinstance(event, CounterClosed):
        return replace(record, closed_at_ns=event.at_ns, due=None) if kind == OWN else None
    assert isinstance(event, CounterCarried)
    return replace(record, due=Tick(value=event.due, era=event.tick.era, rate=event.tick.rate))


def _after_bump(record: Record | None, event: CounterBumped, kind: str, key: str) -> Record | None:
    if kind == BUSY:
        came_to = read_number(split_key(key)[2])
        return Record(name=event.name) if came_to == event.value + event.by else None
    if kind == BOUND:
        return Record(name=event.name)
    fresh = record is None or record.closed_at_ns is not None
    before = Record(name=event.name) if record is None or fresh else record
    if before.value != event.value:
        raise IllegalTransition(f"{event.name} was bumped from {event.value}, and had {before.value}")
    due = before.due
    if event.due is not None:
        due = Tick(value=event.due, era=event.tick.era, rate=event.tick.rate)
    return Record(
        name=event.name,
        value=event.value + event.by,
        fence=event.fence,
        bound=event.bound or before.bound,
        due=due,
    )


def bump(command: Bump, draft: Draft) -> Refusal | Callable[[], Value]:
    if isinstance(draft.remembered(command), CounterBumped):
        return lambda: _value(command, draft, repeated=True)
    record = _counting(command.tenant, command.name, draft)
    if command.lease_id:
        refusal = _cannot_bind(command, record, draft)
        if refusal is not None:
            return refusal
    draft.append(
        CounterBumped(
            tick=draft.now.tick,
            at_ns=draft.now.wall_ns,
            actor=command.holder,
            request=command.request_key,
            tenant=command.tenant,
            name=command.name,
            value=0 if record is None else record.value,
            bound=command.lease_id,
            by=command.by,
            fence=draft.next_number(),
            due=None if command.ttl_ns is None else draft.now.tick.value + command.ttl_ns,
        )
    )
    return lambda: _value(command, draft)


def _cannot_bind(command: Bump, record: Record | None, draft: Draft) -> Refusal | None:
    lease: Lease | None = draft.get(LEASE, command.lease_id)
    if lease is None or lease.state is not LeaseState.ACTIVE or lease.tenant != command.tenant:
        detail = f"there is no lease {command.lease_id} to bind {command.name} to"
        return Refusal(code=RefusalCode.REFUSED, rule="NO_SUCH_LEASE", detail=detail, facts={"tries": 1})
    taken = draft.get(COUNTER, bound_key(command.tenant, command.lease_id))
    if taken is not None or (record is not None and record.bound):
        return Refusal(code=RefusalCode.REFUSED, rule="BOUND", detail="one counter for one lease")
    return None


def _value(command: Bump, draft: Draft, *, repeated: bool = False) -> Value:
    record = draft.get(COUNTER, own_key(command.tenant, command.name))
    if record is None:
        return Value(value=0, fence=0, repeated=repeated)
    return Value(value=record.value, fence=record.fence, repeated=repeated)


def _counting(tenant: str, name: str, draft: Draft) -> Record | None:
    record: Record | None = draft.get(COUNTER, own_key(tenant, name))
    return None if record is None or record.closed_at_ns is not None else record


def close(command: Close, draft: Draft) -> Callable[[], Closed]:
    low, high = under(command.tenant, BUSY)
    found = draft.scan(COUNTER, low, high, command.most, reverse=command.furthest)
    names = tuple(one.name for one in found)
    for name in names:
        record = _counting(command.tenant, name, draft)
        if record is not None:
            draft.append(_closed(command.tenant, record, draft, ASKED, command.holder))
    return lambda: Closed(names=names, left=draft.count(COUNTER, low, high))


def _closed(tenant: str, record: Record, draft: Draft, reason: str, actor: str) -> CounterClosed:
    return CounterClosed(
        tick=draft.now.tick,
        at_ns=draft.now.wall_ns,
        actor=actor,
        tenant=tenant,
        name=record.name,
        value=record.value,
        bound=record.bound,
        reason=reason,
    )


def finish(command: Finish, draft: Draft) -> Refusal | Callable[[], Value]:
    record = _counting(command.tenant, command.name, draft)
    if record is None or not record.bound:
        return Refusal(code=RefusalCode.REFUSED, rule="NOT_BOUND", detail=f"{command.name} is not bound")
    made = _release(command.tenant, record.bound, command.holder, command.request_id, draft)
    if isinstance(made, Refusal):
        return made
    draft.settle()
    if _counting(command.tenant, command.name, draft) is not None:  # Somebody else's lease is not released.
        return Refusal(code=RefusalCode.NOT_HOLDER, lease_id=record.bound, holder=command.holder)
    return lambda: Value(value=record.value, fence=record.fence)


def _release(tenant: str, lease_id: str, holder: str, request_id: str, draft: Draft) -> Any:
    return draft.call(Release(tenant=tenant, request_id=request_id, lease_ids=(lease_id,), holder=holder))


def close_with_lease(event: LeaseReleased | LeaseExpired | LeaseRevoked, draft: Draft) -> None:
    """Close the counter that is bound to a lease which has ended."""
    bound = draft.get(COUNTER, bound_key(event.tenant, event.lease_id))
    if bound is not None:
        record = _counting(event.tenant, bound.name, draft)
        if record is None:
            return  # To look at it has shown that its time was over.
        draft.append(_closed(event.tenant, record, draft, f"{event.lease_id} ended", event.actor))


def due(record: Record) -> Tick | None:
    return record.due


def age(key: str, record: Record, draft: Draft) -> None:
    """Close a counter whose time is over, and end its lease; give one of an earlier era what it had left."""
    tick = record.due
    assert tick is not None
    tenant = split_key(key)[0]
    if tick.era != draft.now.tick.era:
        carried = draft.carried(tick)
        if carried is None:
            return
        draft.append(
            CounterCarried(
                tick=draft.now.tick,
                at_ns=draft.now.wall_ns,
                actor=REGISTRAR,
                tenant=tenant,
                name=record.name,
                value=record.value,
                due=carried.value,
            )
        )
        tick = carried
    if tick.value <= draft.now.tick.value:
        draft.append(_closed(tenant, record, draft, OVER, REGISTRAR))
        lease: Lease | None = draft.get(LEASE, record.bound) if record.bound else None
        if lease is not None and lease.state is LeaseState.ACTIVE:
            _release(tenant, record.bound, lease.holder, OVER, draft)


def check(command: Bump | Close | Finish) -> Refusal | None:
    refusal = check_text("tenant", command.tenant) or check_text("request_id", command.request_id)
    refusal = refusal or check_text("holder", command.holder)
    if refusal is None and isinstance(command, Bump | Finish):
        refusal = check_text("name", command.name)
    if refusal is None and isinstance(command, Bump):
        if command.by < 1:
            return invalid("by", "must be at least 1")
        if command.ttl_ns is not None:
            return check_ttl(command.ttl_ns)
    return refusal


def admits(caller: Caller, command: Command, draft: Draft) -> Refusal | None:
    """Refuse whoever is barred, whatever is asked for."""
    del command, draft
    if caller == BARRED:
        return Refusal(code=RefusalCode.REFUSED, rule="BARRED", detail="you are barred")
    return None


def invariants(state: State) -> Iterable[str]:
    """Every counter that counts is found by how far it has come, and by its lease, which has not ended."""
    records, leases = state.of(COUNTER), state.of(LEASE)
    expected: dict[str, str] = {}
    for key, record in records.items():
        tenant, kind, *_ = split_key(key)
        if kind == OWN and record.closed_at_ns is None:
            expected[busy_key(tenant, record.value, record.name)] = record.name
            if record.bound:
                expected[bound_key(tenant, record.bound)] = record.name
                lease = leases.get(record.bound)
                if lease is None or lease.is_terminal:
                    yield f"{record.name} counts, and {record.bound} has ended"
    found = {key: record.name for key, record in records.items() if split_key(key)[1] != OWN}
    if found != expected:
        yield f"counters are filed as {found}, and should be as {expected}"


def forgotten(state: State, checkpoint: StoreCheckpointed) -> Iterable[str]:
    """Drop what was closed before all that is kept."""
    for key, record in state.of(COUNTER).items():
        ended = record.closed_at_ns
        if ended is not None and ended < checkpoint.ended_before_ns and record.fence < checkpoint.token_below:
            yield key


def keeps(state: State, soft: Soft) -> int | None:
    """Keep what a reader has not read yet."""
    del state
    return min((int(position) for position in soft.values()), default=None)


def counter_family(version: int = 1) -> Family:
    return Family(
        name=COUNTER,
        version=version,
        record=Record,
        events=(CounterBumped, CounterCarried, CounterClosed),
        rules={Bump: bump, Close: close, Finish: finish},
        check=check,
        evolve=evolve,
        reacts=dict.fromkeys(
            (LeaseReleased, LeaseExpired, LeaseRevoked), Reaction(Stage.THEN, close_with_lease)
        ),
        due=due,
        age=age,
        admits=admits,
        invariants=invariants,
        forgotten=forgotten,
        keeps=keeps,
    )


def toy_families(quotas: Quotas | None = None, version: int = 1) -> Families:
    return Families((lease_family(quotas), counter_family(version)))
