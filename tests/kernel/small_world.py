"""A tiny world in which every step is checked against the model and against what must always hold.

Two holders, ann (a local process, whose leases may be renewed once) and bob (a remote one, without such a
limit), with leases that last two units of time, on a machine that can reboot and whose clock can go back.
"""

from typing import NamedTuple

from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.commands import Acquire, Release, Renew, Revoke
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.events import LeaseIssued
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.needs import needs
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.authority import ClockReading, now_of, observe
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.events import Event, encode_event
from leasehold.kernel.ledger.records import Missing
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.state import Folding, State, invariants
from leasehold.kernel.ledger.tick import Now
from tests.kernel.deciding import contents, decide, decide_for_good, lease_view, outcome
from tests.kernel.model import Model
from tests.kernel.oracle import UNIT, check_answer
from tests.kernel.registrar import sweeping
from tests.kernel.shelf import branch, found

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
            for command in commands_of(world, step):
                world = asked(world, step, command)
            return world


def reading(tick_value: int, boot_id: str) -> ClockReading:
    return ClockReading(tick_value=tick_value, wall_ns=5, boot_id=boot_id, identity="8:77")


def opened(world: World) -> World:
    """Let the registrar notice that its clock is another one."""
    event = observe(world.state.authority, world.reading)
    assert event is not None, world.trail
    return recorded(world, [event])


def recorded(world: World, events: list[Event]) -> World:
    """Write down what happened, and check that it may have."""
    after = branch(world.state)
    folding = Folding(LEASES, after)
    for event in events:
        assert LEASES.decode_event(encode_event(event)) == event, world.trail
        if isinstance(event, LeaseIssued):
            assert all(event.token > lease.token for lease in after.of(LEASE).values()), world.trail
        folding.apply(event)
    broken = invariants(after, LEASES)
    assert not broken, (broken, world.trail)
    if events:
        world.model.happened()
    return world._replace(state=after, ledger=(*world.ledger, *events))


def commands_of(world: World, step: Step) -> list[Command]:
    """The commands for a step; none if it is about a lease that was never granted."""
    number = f"{len(world.trail)}"
    if step.what == "acquire":
        return [_claim(step, number)]
    claims = [world.claims[target] for target in step.targets if target in world.claims]
    lease_ids = tuple(claim.lease_id for claim in claims)
    if step.what == "sweep":
        return [sweeping(lease_id, number) for lease_id in lease_ids]
    return [_command(step, number, claims[0], lease_ids)] if lease_ids else []


def _claim(step: Step, number: str) -> Acquire:
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


def _command(step: Step, number: str, claim: Acquire, lease_ids: tuple[str, ...]) -> Command:
    match step.what:
        case "retry":
            return claim
        case "renew":
            return Renew(request_id=number, holder=step.who, lease_ids=lease_ids)
        case "release":
            return Release(request_id=number, holder=step.who, lease_ids=lease_ids)
        case _:
            return Revoke(request_id=number, operator=step.who, lease_id=lease_ids[0], reason="why not")


def asked(world: World, step: Step, command: Command) -> World:
    """Decide a command, check that deciding is pure, and write down what follows."""
    view, decided = decision(world, command)
    again = decision(world, command)
    assert again[1] == decided, world.trail
    before = contents(view)
    assert contents(again[0]) == before, world.trail
    answer = outcome(decided)
    events: list[Event] = [] if isinstance(decided, Refusal) else [*decided.events]
    if isinstance(answer, Granted):
        assert answer.repeated == (step.what == "retry"), world.trail
    check_answer(world.model, command, answer, len(events))
    after = recorded(world, events)
    assert decide_for_good(command, view, moment(world)) == decided, world.trail
    assert events or contents(view) == before, world.trail
    leases = after.state.of(LEASE)
    assert all(leases[change.key] == change.after for change in view.ledger.changes()), world.trail
    assert view.authority == after.state.authority, world.trail
    ended = [lease_id for lease_id, lease in leases.items() if lease.is_terminal]
    assert not any(after.model.is_live(lease_id) for lease_id in ended), world.trail
    if isinstance(command, Acquire) and isinstance(answer, Granted):
        return after._replace(claims=after.claims | {step.targets[0]: command})
    return after


def moment(world: World) -> Now:
    assert world.state.authority is not None
    assert observe(world.state.authority, world.reading) is None, world.trail
    return now_of(world.state.authority, world.reading)


def decision(world: World, command: Command) -> tuple[LeaseView, Decision | Refusal]:
    assert world.state.authority is not None
    view = lease_view(world.state.authority)
    keys = needs([command], view.ledger)
    assert keys is not None
    view.ledger.load(keys, found(world.state, world.ledger, keys))
    while True:
        before = contents(view)
        try:
            decided = decide(command, view, moment(world))
        except Missing as missing:
            assert contents(view) == before, world.trail
            view.ledger.load(missing.keys, found(world.state, world.ledger, missing.keys))
        else:
            assert contents(view) == before, world.trail
            assert decide(command, view, moment(world)) == decided, world.trail
            return view, decided
