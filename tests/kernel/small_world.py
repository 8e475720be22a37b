"""A tiny world in which every step is checked against the model and against what must always hold.

Two holders, ann (a local process, whose leases may be renewed once) and bob (a remote one, without such a
limit), with leases that last two units of time, on a machine that can reboot and whose clock can go back.
"""

from typing import NamedTuple

from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.commands import Acquire, Command, Release, Renew, Revoke, Sweep
from leasehold.kernel.lease.decide import decide
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.events import Event, LeaseIssued, decode_event, encode_event
from leasehold.kernel.lease.invariants import invariants
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.records import Missing
from leasehold.kernel.lease.view import View
from leasehold.kernel.ledger.authority import ClockReading, now_of, observe
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.state import State
from tests.kernel.model import Model
from tests.kernel.oracle import UNIT, check_answer
from tests.kernel.registrar import found

TTL = 2
HOLDERS = ("ann", "bob")

Target = tuple[str, str]
"""Holder and resource: the last lease that this holder was granted on it."""


class Step(NamedTuple):
    """What happens next, and to whose last leases."""

    what: str
    who: str = ""
    targets: tuple[Target, ...] = ()
    shared: bool = False
    adopt: bool = False
    units: int = 0


class World(NamedTuple):
    """Where a sequence of steps has led. Nothing in it is changed in place."""

    state: State
    ledger: tuple[Event, ...]
    reading: ClockReading
    model: Model
    claims: dict[Target, Acquire]
    """The claim behind each last lease."""
    trail: tuple[Step, ...]


def beginning() -> World:
    """A store that was just opened."""
    return opened(World(State(), (), reading(100 * UNIT, "boot"), Model(), {}, ()))


def steps(*resources: str) -> list[Step]:
    """Everything that can be tried."""
    tried = [Step("time", units=1), Step("time", units=2), Step("reboot"), Step("clock back")]
    everything = tuple((holder, resource) for holder in HOLDERS for resource in resources)
    tried.append(Step("sweep", targets=everything))
    for holder in HOLDERS:
        own = tuple((holder, resource) for resource in resources)
        for target in own:
            tried += [
                Step("acquire", holder, (target,), shared=shared, adopt=adopt)
                for shared in (False, True)
                for adopt in (False, True)
            ]
            tried += [Step("revoke", "olga", (target,)), Step("retry", holder, (target,))]
        for what in ("renew", "release"):
            tried += [Step(what, who, (target,)) for target in own for who in HOLDERS]
            tried += [Step(what, holder, own)] if len(own) > 1 else []
    return tried


def taken(world: World, step: Step) -> World:
    """Take one step, and check everything that the law promises about it."""
    world = world._replace(trail=(*world.trail, step), model=world.model.copy())
    tick, boot = world.reading.tick_value, world.reading.boot_id
    match step.what:
        case "time":
            world.model.now += step.units
            return world._replace(reading=reading(tick + step.units * UNIT, boot))
        case "reboot":
            world.model.new_clock(rebooted=True)
            return opened(world._replace(reading=reading(7, f"{boot}+")))
        case "clock back":
            world.model.new_clock(rebooted=False)
            seen = 1 if world.state.authority is None else world.state.authority.tick
            return opened(world._replace(reading=reading(seen - 1, boot)))
        case _:
            command = command_of(world, step)
            return world if command is None else asked(world, step, command)


def reading(tick_value: int, boot_id: str) -> ClockReading:
    return ClockReading(tick_value=tick_value, wall_ns=5, boot_id=boot_id, identity="8:77")


def opened(world: World) -> World:
    """Let the registrar notice that its clock is another one."""
    event = observe(world.state.authority, world.reading)
    assert event is not None, world.trail
    return recorded(world, [event])


def recorded(world: World, events: list[Event]) -> World:
    """Write down what happened, and check that it may have."""
    before = world.state
    after = State(leases=dict(before.leases), authority=before.authority, eras=dict(before.eras))
    for event in events:
        assert decode_event(encode_event(event)) == event, world.trail
        if isinstance(event, LeaseIssued):
            assert all(event.token > lease.token for lease in after.leases.values()), world.trail
        after.apply(event)
    broken = invariants(after)
    assert not broken, (broken, world.trail)
    if events:
        world.model.happened()
    return world._replace(state=after, ledger=(*world.ledger, *events))


def command_of(world: World, step: Step) -> Command | None:
    """The command for a step; None if it is about a lease that was never granted."""
    number = f"{len(world.trail)}"
    if step.what == "acquire":
        return Acquire(
            request_id=number if step.who == "ann" else f"lease-{number}",
            lease_id=f"lease-{number}",
            holder=step.who,
            resource=step.targets[0][1],
            ttl_ns=TTL * UNIT,
            mode=Mode.SHARED if step.shared else Mode.EXCLUSIVE,
            adopt=step.adopt,
            bound_to_boot=step.who == "ann",
            max_renewals=1 if step.who == "ann" else -1,
        )
    claims = [world.claims[target] for target in step.targets if target in world.claims]
    lease_ids = tuple(claim.lease_id for claim in claims)
    if not lease_ids:
        return None
    match step.what:
        case "retry":
            return claims[0]
        case "renew":
            return Renew(request_id=number, holder=step.who, lease_ids=lease_ids)
        case "release":
            return Release(request_id=number, holder=step.who, lease_ids=lease_ids)
        case "revoke":
            return Revoke(request_id=number, operator=step.who, lease_id=lease_ids[0], reason="why not")
        case _:
            return Sweep(request_id=number, lease_ids=lease_ids)


def asked(world: World, step: Step, command: Command) -> World:
    """Decide a command, check that deciding is pure, and write down what follows."""
    view, decided = decision(world, command)
    again = decision(world, command)
    assert again[1] == decided, world.trail
    assert vars(again[0]) == vars(view), world.trail
    answer = decided if isinstance(decided, Refusal) else decided.answer
    events: list[Event] = [] if isinstance(decided, Refusal) else [*decided.events]
    if isinstance(answer, Granted):
        assert answer.repeated == (step.what == "retry"), world.trail
    check_answer(world.model, command, answer, len(events))
    after = recorded(world, events)
    if isinstance(decided, Decision):
        view.fold(decided.events, decided.leases)
    assert all(after.state.leases[name] == lease for name, lease in (view.created | view.changed).items()), (
        world.trail
    )
    assert view.authority == after.state.authority, world.trail
    ended = [lease_id for lease_id, lease in after.state.leases.items() if lease.is_terminal]
    assert not any(after.model.is_live(lease_id) for lease_id in ended), world.trail
    if isinstance(command, Acquire) and isinstance(answer, Granted):
        return after._replace(claims=after.claims | {step.targets[0]: command})
    return after


def decision(world: World, command: Command) -> tuple[View, Decision | Refusal]:
    assert world.state.authority is not None
    assert observe(world.state.authority, world.reading) is None, world.trail
    now = now_of(world.state.authority, world.reading)
    view = View(world.state.authority)
    keys = view.lacking([command])
    assert keys is not None
    view.load(keys, found(world.state, world.ledger, keys))
    while True:
        try:
            decided = decide(command, view, now)
        except Missing as missing:
            view.load(missing.keys, found(world.state, world.ledger, missing.keys))
        else:
            assert decide(command, view, now) == decided, world.trail
            return view, decided
