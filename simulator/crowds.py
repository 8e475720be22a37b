"""Who is in whose way, told a second time.

From all leases and places at once, and by the clock: what is over is in nobody's way, recorded or not. Where
a lease asked for a lock-delay, or lapsed while the registrar was down, others are kept away for a while after
it. Nothing of how the kernel finds this out is used.
"""

from collections.abc import Iterable
from copy import copy

from leasehold.kernel.lease.commands import Acquire, ChangeMode
from leasehold.kernel.lease.events import LeaseQueued
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.ledger.tick import Tick
from simulator.true_lease import TrueLease
from simulator.truth import Truth

Name = tuple[str, str]
"""Tenant and holder: those are what waits."""

_LAST_TICKET = 1 << 60


def obstacles(leases: Iterable[TrueLease], wanted: TrueLease, truth: Truth, tick: int) -> list[TrueLease]:
    """Return everything that somebody who waits has to wait for."""
    return [one for one in leases if _is_in_the_way(one, wanted, truth, tick)]


def _is_in_the_way(one: TrueLease, wanted: TrueLease, truth: Truth, tick: int) -> bool:
    if wanted.holder in (one.holder, one.delayed_for) or not one.touches(wanted):
        return False
    conflict = one.mode.conflicts_with(wanted.mode)
    if one.pending:
        return one.end_tick > tick and conflict and wanted.pending and one.order < wanted.order
    ends = min(above.end_tick for above in truth.accounts.line_of(one))
    in_force = truth.settling.open_again_at(one, ends) > tick
    # Who holds a lease already, and is not pending, waits to be alone there.
    return in_force and (conflict or not wanted.pending or one.is_upgrading(tick))


def waiters(leases: Iterable[TrueLease], tick: int) -> list[TrueLease]:
    """Return those who wait: for a lease, or to be alone on the one that they have."""
    return [one for one in leases if one.end_tick > tick and (one.pending or one.is_upgrading(tick))]


def circle(
    leases: list[TrueLease], truth: Truth, tick: int, start: Name | None = None, *, certain: bool = False
) -> list[Name]:
    """Return holders that wait for each other for ever; with `start`, only if that one is among them.

    `certain`: only such as have all shown that they live.
    """
    waits: dict[Name, set[Name]] = {}
    for one in waiters(leases, tick):
        if certain and one.doubted:
            continue
        tenant = one.key[0]
        found = waits.setdefault((tenant, one.holder), set())
        found |= {(tenant, other.holder) for other in obstacles(leases, one, truth, tick)}
    for name in [start] if start is not None else sorted(waits):
        reached: set[Name] = set()
        frontier = waits.get(name, set())
        while frontier:
            reached |= frontier
            frontier = {other for one in frontier for other in waits.get(one, set())} - reached
        if name in reached:
            return sorted(reached & waits.keys())
    return []


def would_wait_for_ever(command: Acquire | ChangeMode, truth: Truth, now: Tick) -> bool:
    """Say whether granting a command, or letting it wait, would close a circle."""
    leases = [*truth.standing.values(), *truth.waiting.values()]
    name, tick = (command.tenant, command.holder), now.value
    before, after = (
        _with(command, found, truth, now) for found in (leases, _with_turns_taken(leases, truth, tick))
    )
    return bool(circle(before, truth, tick, name) or circle(after, truth, tick, name))


def waits_for_ever_already(command: Acquire | ChangeMode, truth: Truth, now: Tick) -> bool:
    """Say whether a command is asked again by who waits in a circle, and all others in that live, too."""
    tick = now.value
    leases = [copy(one) for one in (*truth.standing.values(), *truth.waiting.values())]
    own = [one for one in waiters(leases, tick) if _is_claim_of(command, one)]
    for one in own:
        one.doubted = False
    return bool(own and circle(leases, truth, tick, (command.tenant, command.holder), certain=True))


def _is_claim_of(command: Acquire | ChangeMode, one: TrueLease) -> bool:
    if isinstance(command, ChangeMode):
        return one.lease_id == command.lease_id
    return one.pending and one.holder == command.holder and one.request_id == command.request_id


def would_have_to_wait(command: Acquire, truth: Truth, now: Tick) -> bool:
    """Say whether a claim that is granted or not now is one that waits."""
    leases = _with_turns_taken([*truth.standing.values(), *truth.waiting.values()], truth, now.value)
    return _with(command, leases, truth, now)[-1].pending


def _with_turns_taken(leases: list[TrueLease], truth: Truth, tick: int) -> list[TrueLease]:
    """Return how things stand once those who are entitled have had their turn: it comes before newcomers."""
    leases = [copy(one) for one in leases]
    for one in sorted((one for one in leases if one.pending), key=lambda one: one.order):
        claim = [other for other in leases if other.pending and other.order == one.order]
        if not any(obstacles(leases, other, truth, tick) for other in claim):
            for other in claim:
                other.pending = False
    return leases


def _with(command: Acquire | ChangeMode, leases: list[TrueLease], truth: Truth, now: Tick) -> list[TrueLease]:
    """Return all leases, with what a command would make of them."""
    tick = now.value
    if isinstance(command, ChangeMode):
        changed = next(one for one in leases if one.lease_id == command.lease_id)
        upgrading = copy(changed)
        upgrading.upgrade_end_tick = tick + 1
        if not obstacles(leases, upgrading, truth, tick):
            upgrading.upgrade_end_tick, upgrading.mode = None, Mode.EXCLUSIVE
        return [upgrading if one is changed else one for one in leases]
    claim = _newcomers(command, now)
    replaced = [
        one
        for one in leases
        if one.holder == command.holder
        and not one.pending
        and one.end_tick > tick
        and any(one.key == wanted.key for wanted in claim)
    ]
    leases = [one for one in leases if one not in replaced]
    # Who replaces its own lease goes before the queue, and so does who lost it while the registrar was down.
    first = {one.key for one in replaced}
    first |= {one.key for one in claim if truth.settling.is_kept_for(one.holder, one.key, tick)}
    blocked = [
        other
        for one in claim
        for other in obstacles(leases, one, truth, tick)
        if not (other.pending and one.key in first)
    ]
    for one in claim:
        one.pending = bool(blocked)
    return [*leases, *claim]


def _newcomers(command: Acquire, now: Tick) -> list[TrueLease]:
    targets = [(command.resource, command.mode), *((one.resource, one.mode) for one in command.also)]
    return [_newcomer(command, resource, mode, now) for resource, mode in targets]


def _newcomer(command: Acquire, resource: str, mode: Mode, now: Tick) -> TrueLease:
    event = LeaseQueued(
        tick=now,
        at_ns=0,
        actor=command.holder,
        tenant=command.tenant,
        lease_id="newcomer",
        resource=resource,
        holder=command.holder,
        token=_LAST_TICKET,
        mode=mode,
        ttl_ns=command.ttl_ns,
        kept_ns=command.ttl_ns,
        priority=command.priority,
    )
    return TrueLease(event, 0)
