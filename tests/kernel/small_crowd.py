"""A tiny world in which holders wait, and every step is checked against an oracle of its own.

Leases last 32 seconds. Time passes by 2 seconds, after which nobody may confirm any more what it was granted
before and a silent claim on several resources has left, or by 30, after which every silent waiter has. So
each of these bounds is met exactly.

After each step: no invariant is broken; nobody was overtaken; nobody waits for itself, however far around,
once all on the way have shown that they live; whoever closes such a circle for a while is not refused, and
leaves nobody in it out of doubt; what was refused as held or as a deadlock was that; whoever is told to wait
waits for somebody; a claim on several resources was granted whole; a claim that was given back has left
neither waiter nor lease, and its late duplicate brings nothing back; deciding again gives the same, and
events survive their encoding.
"""

from collections.abc import Iterable
from itertools import permutations
from typing import NamedTuple

from msgspec.structs import replace

from leasehold.kernel.lease.answers import Answer, Granted, Waiting
from leasehold.kernel.lease.commands import Acquire, ChangeMode, Release, Revoke, Transfer, Wanted
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.events import LeaseIssued
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.needs import needs
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.authority import ClockReading, now_of, observe
from leasehold.kernel.ledger.commands import Command, Swept
from leasehold.kernel.ledger.events import REGISTRAR, Event, encode_event
from leasehold.kernel.ledger.records import Missing
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.state import Folding, State, invariants
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.crowd_oracle import alive, blockers, check_crowd, check_order, order, upgrades
from tests.kernel.deciding import contents, decide, lease_view, outcome
from tests.kernel.registrar import SECOND, sweeping
from tests.kernel.shelf import branch, found

TTL_NS = 32 * SECOND
DELAY_NS = 2 * SECOND

Target = tuple[str, str]
"""A holder and a resource."""


class Step(NamedTuple):
    """What happens next."""

    what: str
    who: str = ""
    resource: str = ""
    other: str = ""
    """To whom, or how."""
    seconds: int = 0


class Crowd(NamedTuple):
    """Where a sequence of steps has led. Nothing in it is changed in place."""

    state: State
    ledger: tuple[Event, ...]
    clock: int
    claims: dict[Target, Acquire]
    """The last claim of each holder that began with each resource."""
    changes: dict[Target, ChangeMode]
    """The last wish of each holder to have a resource alone."""
    trail: tuple[Step, ...]


def beginning() -> Crowd:
    """A store that was just opened."""
    event = observe(None, _reading(1_000 * SECOND))
    assert event is not None
    state = State()
    Folding(LEASES, state).apply(event)
    return Crowd(state, (event,), 1_000 * SECOND, {}, {}, ())


def _reading(clock: int) -> ClockReading:
    return ClockReading(tick_value=clock, wall_ns=5, boot_id="boot", identity="8:77")


def now_in(crowd: Crowd) -> Tick:
    assert crowd.state.authority is not None
    return now_of(crowd.state.authority, _reading(crowd.clock)).tick


def lease_of(crowd: Crowd, who: str, resource: str) -> Lease | None:
    """What a holder is recorded to hold of a resource."""
    leases: Iterable[Lease] = crowd.state.of(LEASE).values()
    for lease in leases:
        if (lease.holder, lease.resource, lease.state) == (who, resource, LeaseState.ACTIVE):
            return lease
    return None


def taken(crowd: Crowd, step: Step) -> Crowd:
    """Take one step, and check everything that the law promises about it."""
    crowd = crowd._replace(trail=(*crowd.trail, step))
    if step.what == "time":
        return crowd._replace(clock=crowd.clock + step.seconds * SECOND)
    if step.what == "sweep":
        for lease_id in crowd.state.of(LEASE):
            crowd = asked(crowd, step, sweeping(lease_id, f"{len(crowd.trail)}"))
        return crowd
    command = command_of(crowd, step)
    return crowd if command is None else asked(crowd, step, command)


def command_of(crowd: Crowd, step: Step) -> Command | None:
    """The command for a step; None if there is nothing that it could be about."""
    number, target = f"{len(crowd.trail)}", (step.who, step.resource)
    claim, lease = crowd.claims.get(target), lease_of(crowd, *target)
    if step.what == "acquire":
        return _claim(step, number)
    if step.what == "ask again":
        return claim
    if step.what == "give back":
        return _give_back(crowd, step.who, claim, lease, number)
    if lease is None:
        return None
    match step.what:
        case "upgrade":
            change = crowd.changes.get(target)
            if change is not None and change.lease_id == lease.lease_id and lease.is_upgrading:
                return change
            return ChangeMode(
                lease_id=lease.lease_id, holder=step.who, mode=Mode.EXCLUSIVE, wait=True, request_id=number
            )
        case "downgrade":
            return ChangeMode(lease_id=lease.lease_id, holder=step.who, mode=Mode.SHARED, request_id=number)
        case "transfer":
            return Transfer(
                lease_id=lease.lease_id,
                holder=step.who,
                to=step.other,
                new_lease_id=f"lease-{number}",
                request_id=number,
            )
        case _:
            return Revoke(lease_id=lease.lease_id, operator="olga", reason="why not", request_id=number)


def _claim(step: Step, number: str) -> Acquire:
    claim = Acquire(
        request_id=number,
        lease_id=f"lease-{number}",
        holder=step.who,
        resource=step.resource,
        ttl_ns=TTL_NS,
        wait=True,
    )
    match step.other:
        case "":
            return claim
        case "shared":
            return replace(claim, mode=Mode.SHARED)
        case "at once":
            return replace(claim, wait=False)
        case "for a while":
            return replace(claim, gives_up=True)
        case "urgent":
            return replace(claim, priority=6)
        case "delayed":
            return replace(claim, mode=Mode.SHARED, lock_delay_ns=DELAY_NS)
        case also:
            return replace(claim, also=(Wanted(resource=also),))


def _give_back(
    crowd: Crowd, who: str, claim: Acquire | None, lease: Lease | None, number: str
) -> Release | None:
    """Cancel the last claim, or release what it got; else release what was handed over."""
    leases = crowd.state.of(LEASE)
    open_ids: tuple[str, ...] = ()
    if claim is not None and any(not leases[name].is_terminal for name in claim.lease_ids):
        open_ids = claim.lease_ids
    elif lease is not None:
        open_ids = (lease.lease_id,)
    return Release(lease_ids=open_ids, holder=who, request_id=number) if open_ids else None


def asked(crowd: Crowd, step: Step, command: Command) -> Crowd:
    """Decide a command, write down what follows, and check that it may have."""
    decided = decision(crowd, command)
    answer = outcome(decided)
    events: list[Event] = [] if isinstance(decided, Refusal) else [*decided.events]
    before, now = list(crowd.state.of(LEASE).values()), now_in(crowd)
    after = _recorded(crowd, events)
    leases = list(after.state.of(LEASE).values())
    try:
        check_order(before, now, command, events)
        check_crowd(before, leases, now, command, answer)
        _check_wholeness(events)
        if isinstance(answer, Waiting):
            assert _waits_for_somebody(leases, now, answer.lease_id), "told to wait, and for nobody"
    except AssertionError as error:
        raise AssertionError(f"{error} {crowd.trail}") from error
    if isinstance(command, Release):
        _check_cancelled(after, command.lease_ids, crowd.claims.get((step.who, step.resource)))
    return _remembering(after, step, command, answer)


def _remembering(crowd: Crowd, step: Step, command: Command, answer: Answer | Swept | Refusal) -> Crowd:
    target = (step.who, step.resource)
    if not isinstance(answer, Granted | Waiting):
        return crowd
    if isinstance(command, Acquire):
        return crowd._replace(claims=crowd.claims | {target: command})
    if isinstance(command, ChangeMode):
        return crowd._replace(changes=crowd.changes | {target: command})
    return crowd


def _recorded(crowd: Crowd, events: list[Event]) -> Crowd:
    if not events:
        return crowd
    after = branch(crowd.state)
    folding = Folding(LEASES, after)
    highest = max((lease.token for lease in after.of(LEASE).values()), default=0)
    for event in events:
        assert LEASES.decode_event(encode_event(event)) == event, crowd.trail
        if isinstance(event, LeaseIssued):
            assert event.token > highest, crowd.trail
            highest = event.token
        folding.apply(event)
    broken = invariants(after, LEASES)
    assert not broken, (broken, crowd.trail)
    return crowd._replace(state=after, ledger=(*crowd.ledger, *events))


def _check_wholeness(events: list[Event]) -> None:
    """A claim on several resources is granted in one decision or not at all."""
    issued = {event.lease_id for event in events if isinstance(event, LeaseIssued)}
    for event in events:
        if isinstance(event, LeaseIssued):
            assert issued.issuperset(event.group), "granted in part"


def _waits_for_somebody(leases: list[Lease], now: Tick, lease_id: str) -> bool:
    counted = alive(leases, now)
    first = next(one for one in counted if one.lease_id == lease_id)
    assert first.ticket is not None
    claim = [one for one in counted if one.ticket is not None and one.ticket.number == first.ticket.number]
    return any(obstacles(counted, now, one) for one in claim)


def obstacles(counted: list[Lease], now: Tick, one: Lease) -> set[str]:
    """Whom a waiter waits for."""
    waits_to_be_alone = upgrades(one, now)
    return blockers(
        counted,
        now,
        tenant=one.tenant,
        holder=one.holder,
        resource=one.resource,
        mode=Mode.EXCLUSIVE if waits_to_be_alone else one.mode,
        place=(-1, 0, 0) if waits_to_be_alone else order(one),
    )


def check_nobody_is_idle(crowd: Crowd) -> None:
    """Once time has been taken note of, nobody waits for what is free."""
    swept = taken(crowd, Step("sweep"))
    now = now_in(swept)
    counted = alive(swept.state.of(LEASE).values(), now)
    idle: dict[int, bool] = {}
    for one in counted:
        if one.ticket is not None and (one.state is LeaseState.PENDING or upgrades(one, now)):
            number = one.ticket.number
            idle[number] = idle.get(number, True) and not obstacles(counted, now, one)
    assert not any(idle.values()), swept.trail


def _check_cancelled(crowd: Crowd, lease_ids: tuple[str, ...], claim: Acquire | None) -> None:
    leases = crowd.state.of(LEASE)
    assert all(leases[name].is_terminal for name in lease_ids if name in leases), crowd.trail
    if claim is None or claim.lease_ids != lease_ids:
        return
    late = decision(crowd, claim)
    answer = outcome(late)
    assert not isinstance(answer, Waiting), crowd.trail
    assert not isinstance(answer, Granted) or answer.ended, crowd.trail


def decision(crowd: Crowd, command: Command) -> Decision | Refusal:
    authority = crowd.state.authority
    assert authority is not None
    now = now_of(authority, _reading(crowd.clock))
    view = lease_view(authority)
    keys = needs([command], view.ledger)
    if keys is not None:
        view.ledger.load(keys, found(crowd.state, crowd.ledger, keys))
    while True:
        before = contents(view)
        try:
            decided = decide(command, view, now)
        except Missing as missing:
            assert contents(view) == before, crowd.trail
            view.ledger.load(missing.keys, found(crowd.state, crowd.ledger, missing.keys))
        else:
            assert contents(view) == before, crowd.trail
            assert decide(command, view, now) == decided, crowd.trail
            return decided


def situation(crowd: Crowd, holders: tuple[str, ...]) -> tuple[object, ...]:
    """All that the law can look at, whoever of the holders has which name."""
    now = now_in(crowd)
    unended = [lease for lease in crowd.state.of(LEASE).values() if not lease.is_terminal]
    ranks = {number: rank for rank, number in enumerate(sorted({_number(lease) for lease in unended}))}
    facts = [(lease.holder, _facts(crowd, lease, now, ranks)) for lease in unended]
    asked = [(holder, _standing(crowd, claim, ranks)) for (holder, _), claim in crowd.claims.items()]
    found_first = None
    for named in permutations(range(len(holders))):
        names = dict(zip(holders, named, strict=True)) | {REGISTRAR: -1}
        one = (
            tuple(sorted((names[holder], fact) for holder, fact in facts)),
            tuple(sorted((names[holder], fact) for holder, fact in asked)),
        )
        if found_first is None or one < found_first:
            found_first = one
    assert found_first is not None
    return found_first


def _number(lease: Lease) -> int:
    return lease.token if lease.ticket is None else lease.ticket.number


def _facts(crowd: Crowd, lease: Lease, now: Tick, ranks: dict[int, int]) -> tuple[object, ...]:
    assert lease.expires_tick is not None
    ticket = lease.ticket
    waits = (0, 0)
    if ticket is not None:
        rank = (ticket.since.value - now.value) // SECOND - 10 * ticket.priority
        waits = (max(rank, -100), max(0, ticket.kept_until - now.value))
    return (
        lease.resource,
        lease.state.value,
        lease.mode.value,
        max(0, lease.expires_tick.value - now.value),
        ranks[_number(lease)],
        lease.is_unconfirmed,
        lease.is_upgrading,
        waits,
        len(ticket.group) if ticket is not None else 0,
        ticket is not None and ticket.doubted,
        lease.lock_delay_ns,
        lease.delayed_for,
    )


def _standing(crowd: Crowd, claim: Acquire, ranks: dict[int, int]) -> tuple[object, ...]:
    """How the last claim of a holder stands, which is what asking again is about."""
    leases = [crowd.state.of(LEASE)[name] for name in claim.lease_ids]
    return (
        claim.resource,
        claim.mode.value,
        claim.wait,
        claim.priority,
        len(leases),
        tuple("" if one.is_terminal else f"{ranks[_number(one)]}" for one in leases),
        leases[0].state.value,
    )
