"""Who is in whose way, worked out again from all records at once, without any of the kernel's code for it.

Time is taken into account: a lease or a waiter whose time is over is in nobody's way, recorded or not.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from leasehold.kernel.lease.answers import Answer, Granted, Waiting
from leasehold.kernel.lease.commands import Acquire, ChangeMode
from leasehold.kernel.lease.events import LeaseIssued, LeaseLeft
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.ticket import AGEING_NS
from leasehold.kernel.ledger.authority import Outage
from leasehold.kernel.ledger.commands import Command, Swept
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Tick
from simulator.patterns import touching


def alive(leases: Iterable[Lease], now: Tick, outage: Outage | None = None) -> list[Lease]:
    """The leases and waiters that still count; one that leaves a delay is the registrar's then."""
    counted = []
    for one in leases:
        if one.state not in (LeaseState.ACTIVE, LeaseState.PENDING):
            continue
        expires = one.expires_tick
        over_ns = now.value - expires.value if expires is not None and expires.era == now.era else -1
        if over_ns < 0:
            counted.append(one)
        elif one.state is LeaseState.ACTIVE and (over_ns < one.lock_delay_ns or is_kept(one, now, outage)):
            counted.append(replace(one, holder="registrar", delayed_for=one.holder))
    return counted


def is_kept(one: Lease, now: Tick, outage: Outage | None) -> bool:
    """Whether a lease lapsed while the registrar was down, and is kept for who had it."""
    expires = one.expires_tick
    if outage is None or expires is None or expires.era != now.era or one.is_unconfirmed or one.delayed_for:
        return False
    return outage.since < expires.value <= outage.until and now.value < outage.settles_until


def order(one: Lease) -> tuple[int, int, int]:
    """Priority, aged, then ticket; those from an earlier run of the clock first."""
    assert one.ticket is not None
    return (
        one.ticket.since.era,
        one.ticket.since.value - one.ticket.priority * AGEING_NS,
        one.ticket.number,
    )


def upgrades(one: Lease, now: Tick) -> bool:
    ticket = one.ticket
    return (
        ticket is not None
        and ticket.upgrade
        and one.state is LeaseState.ACTIVE
        and ticket.since.era == now.era
        and ticket.kept_until > now.value
    )


def blockers(
    leases: list[Lease],
    now: Tick,
    *,
    tenant: str,
    holder: str,
    resource: str,
    mode: Mode,
    place: tuple[int, int, int],
) -> set[str]:
    """The holders that somebody who wants a resource has to wait for."""
    found = set()
    for one in leases:
        if one.tenant != tenant or one.holder == holder or not touching(one.resource, resource):
            continue
        if one.delayed_for == holder:
            continue
        conflict = Mode.EXCLUSIVE in (one.mode, mode)
        if one.state is LeaseState.PENDING:
            if conflict and order(one) < place:
                found.add(one.holder)
        elif conflict or upgrades(one, now):
            found.add(one.holder)
    return found


def waits(leases: list[Lease], now: Tick, tenant: str, *, certain: bool = False) -> dict[str, set[str]]:
    """Whom each holder waits for; `certain`: with claims of which it was heard since they were doubted."""
    graph: dict[str, set[str]] = {}
    for one in leases:
        if one.tenant != tenant or (certain and _is_doubted(one)):
            continue
        if one.state is LeaseState.PENDING:
            mode, place = one.mode, order(one)
        elif upgrades(one, now):
            mode, place = Mode.EXCLUSIVE, (-1, 0, 0)
        else:
            continue
        graph.setdefault(one.holder, set()).update(
            blockers(
                leases,
                now,
                tenant=tenant,
                holder=one.holder,
                resource=one.resource,
                mode=mode,
                place=place,
            )
        )
    return graph


def _own(leases: list[Lease], command: Acquire) -> list[Lease]:
    """What a claim that is asked again waits with."""
    return [one for one in leases if one.lease_id in command.lease_ids and one.state is LeaseState.PENDING]


def _alive_for_sure(leases: list[Lease], command: Acquire) -> list[Lease]:
    """All leases, those of a claim that asks just now out of doubt."""
    own = {one.lease_id for one in _own(leases, command)}
    return [
        replace(one, ticket=replace(one.ticket, doubted=False)) if one.lease_id in own and one.ticket else one
        for one in leases
    ]


def _is_doubted(one: Lease) -> bool:
    return one.ticket is not None and one.ticket.doubted


def _check_doubts(before: list[Lease], after: list[Lease], now: Tick, command: Command) -> None:
    """Whoever is newly in doubt waits in a circle; whoever closes one leaves nobody in it out of doubt."""
    known = {one.lease_id for one in before if _is_doubted(one)}
    for one in after:
        if _is_doubted(one) and one.lease_id not in known:
            assert leads_back(waits(after, now, one.tenant), one.holder), "doubted for nothing"
    new = {one.lease_id for one in after} - {one.lease_id for one in before}
    if isinstance(command, Acquire) and any(
        one.lease_id in new and one.state is LeaseState.PENDING and _is_doubted(one) for one in after
    ):
        graph = waits(after, now, command.tenant)
        for one in after:
            alone = [other for other in after if other.state is not LeaseState.PENDING or other is one]
            if one.tenant == command.tenant and one.state is LeaseState.PENDING and not _is_doubted(one):
                through = _reach(graph, one.holder) if one.holder != command.holder else set()
                needed = waits(alone, now, one.tenant).get(one.holder, set())
                entangled = command.holder in through and one.holder in _reach(graph, command.holder)
                back = any(command.holder in {name, *_reach(graph, name)} for name in needed)
                assert not (entangled and back), "in the circle, and not asked for a sign of life"


def _reach(graph: dict[str, set[str]], holder: str) -> set[str]:
    reached: set[str] = set()
    frontier = set(graph.get(holder, set()))
    while frontier:
        reached |= frontier
        frontier = {name for one in frontier for name in graph.get(one, set())} - reached
    return reached


def leads_back(graph: dict[str, set[str]], holder: str) -> bool:
    """Whether a holder waits for itself, however far around."""
    reached: set[str] = set()
    frontier = set(graph.get(holder, set()))
    while frontier:
        reached |= frontier
        frontier = {name for one in frontier for name in graph.get(one, set())} - reached
    return holder in reached


def check_crowd(
    before: list[Lease],
    after: list[Lease],
    now: Tick,
    command: Command,
    answer: Answer | Swept | Refusal,
    *,
    outage: Outage | None = None,
) -> None:
    """Hold an answer against all records: those before it, and those after it."""
    counted = alive(before, now, outage)
    match command, answer:
        case Acquire(), Refusal(code=RefusalCode.HELD):
            assert _obstacles(counted, now, command), "refused, and nothing was in the way"
        case Acquire(), Refusal(code=RefusalCode.DEADLOCK) if _own(counted, command):
            graph = waits(_alive_for_sure(counted, command), now, command.tenant, certain=True)
            assert leads_back(graph, command.holder), "refused, and somebody may be dead"
        case Acquire(gives_up=True), Refusal(code=RefusalCode.DEADLOCK):
            assert not _obstacles(counted, now, command), "refused, and might have waited for a while"
        case Acquire(), Refusal(code=RefusalCode.DEADLOCK):
            assert _would_close_a_circle(counted, now, command), "refused as a deadlock that is none"
        case Acquire(wait=False), Waiting():
            raise AssertionError("somebody waits who did not want to")
        case Acquire(), Granted(ended=False):
            mine = [answer.lease, *answer.also]
            assert [one.lease_id for one in mine][1:] == [
                f"{mine[0].lease_id}.{n}" for n in range(1, len(mine))
            ]
            assert len(mine) == 1 + len(command.also), "granted in part"
            assert all(not one.is_unconfirmed for one in mine)
        case ChangeMode(mode=Mode.SHARED), Refusal():
            assert answer.code is not RefusalCode.HELD, "a downgrade always works"
            assert answer.code is not RefusalCode.DEADLOCK, "a downgrade always works"
        case _:
            pass
    for tenant in {one.tenant for one in after}:
        graph = waits(alive(after, now, outage), now, tenant, certain=True)
        assert not any(leads_back(graph, holder) for holder in graph), "some wait for ever"
    _check_doubts(before, alive(after, now, outage), now, command)


def _wanted(command: Acquire) -> list[tuple[str, Mode]]:
    return [(command.resource, command.mode), *((one.resource, one.mode) for one in command.also)]


def _newcomer(now: Tick, command: Acquire) -> tuple[int, int, int]:
    return (now.era, now.value - command.priority * AGEING_NS, 2**60)


def _obstacles(counted: list[Lease], now: Tick, command: Acquire) -> set[str]:
    return {
        name
        for resource, mode in _wanted(command)
        for name in blockers(
            counted,
            now,
            tenant=command.tenant,
            holder=command.holder,
            resource=resource,
            mode=mode,
            place=_newcomer(now, command),
        )
    }


def _would_close_a_circle(counted: list[Lease], now: Tick, command: Acquire) -> bool:
    """Add what the claim would wait for, and who would have to wait for it."""
    graph = waits(counted, now, command.tenant)
    graph.setdefault(command.holder, set()).update(_obstacles(counted, now, command))
    for one in counted:
        if one.tenant != command.tenant or one.holder == command.holder:
            continue
        behind = one.state is LeaseState.PENDING and order(one) > _newcomer(now, command)
        for resource, mode in _wanted(command):
            if behind and touching(one.resource, resource) and Mode.EXCLUSIVE in (one.mode, mode):
                graph.setdefault(one.holder, set()).add(command.holder)
    return leads_back(graph, command.holder)


def check_order(before: list[Lease], now: Tick, command: Command, events: list[Event]) -> None:
    """Nobody is granted anything that somebody ahead of it waits for."""
    waiting = {one.lease_id: one for one in alive(before, now) if one.state is LeaseState.PENDING}
    for event in events:
        if isinstance(event, LeaseLeft):
            waiting.pop(event.lease_id, None)
        if not isinstance(event, LeaseIssued) or event.adopted_from or event.holder == "registrar":
            continue
        granted = waiting.pop(event.lease_id, None)
        if granted is not None:
            place = order(granted)
        else:
            assert isinstance(command, Acquire)
            place = _newcomer(now, command)
        for one in waiting.values():
            if one.tenant == event.tenant and one.holder != event.holder and order(one) < place:
                conflict = Mode.EXCLUSIVE in (one.mode, event.mode)
                assert not (conflict and touching(one.resource, event.resource)), (event, one)


def check_kept(before: list[Lease], now: Tick, outage: Outage, events: list[Event]) -> None:
    """Nobody is granted what is kept for whoever lost it while the registrar was down."""
    kept = [one for one in before if one.state is LeaseState.ACTIVE and is_kept(one, now, outage)]
    for event in events:
        if isinstance(event, LeaseIssued) and event.holder != "registrar":
            for one in kept:
                strange = one.tenant == event.tenant and one.holder != event.holder
                conflict = Mode.EXCLUSIVE in (one.mode, event.mode)
                assert not (strange and conflict and touching(one.resource, event.resource)), (event, one)
