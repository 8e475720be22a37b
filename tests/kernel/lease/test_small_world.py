"""Everything that can happen in a tiny world, tried out.

After each step of each sequence: the answer is what the model says, down to the time that is left; no
invariant is broken; the history replays to the state; a refusal has changed nothing; tokens have only
risen; no lease has ended early; deciding again gives the same and has not changed the view; events are the
same after encoding and decoding.

Sequences that lead to the same situation go on as one. A situation is all that the law can look at: for the
last lease of each holder on each resource its mode, its time, its renewals and the order of tokens; and how
long ago the last event was, because that is where time goes on after a new clock. Ids, absolute ticks and
wall times are left out, because the law only compares them. Leases before the last one have ended, and no
step names them.
"""

import pytest

from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.state import replay
from tests.kernel.small_world import HOLDERS, TTL, World, beginning, steps, taken
from tests.lanes import by_length

pytestmark = pytest.mark.deep

Situation = tuple[object, ...]


def situation(world: World, *resources: str) -> Situation:
    model, authority = world.model, world.state.authority
    assert authority is not None
    facts: list[object] = [min(model.now - model.seen, TTL)]
    tokens = []
    for target in ((holder, resource) for holder in HOLDERS for resource in resources):
        claim = world.claims.get(target)
        if claim is None:
            facts.append("never granted")
            continue
        lease = world.state.of("lease")[claim.lease_id]
        if lease.is_terminal:
            facts.append("ended")
            continue
        one = model.grants[claim.lease_id]
        assert lease.expires_tick is not None
        on_this_clock = lease.expires_tick.era == authority.era
        facts.append(
            (lease.mode, max(0, one.expires - model.seen), one.renewals_left, one.over, on_this_clock)
        )
        tokens.append((lease.token, target))
    facts.append(tuple(target for _, target in sorted(tokens)))
    return tuple(facts)


def explored(*resources: str, depth: int) -> tuple[int, int, int]:
    """Go through the world breadth first; return how deep, how many situations and how many steps it was."""
    tried = steps(*resources)
    frontier = [beginning()]
    known = {situation(frontier[0], *resources)}
    reached, count = 0, 0
    while frontier and reached < depth:
        reached += 1
        after: list[World] = []
        for world in frontier:
            for step in tried:
                count += 1
                next_world = taken(world, step)
                where = situation(next_world, *resources)
                if where not in known:
                    known.add(where)
                    after.append(next_world)
                    assert replay(next_world.ledger, LEASES) == next_world.state, next_world.trail
        frontier = after
    return reached, len(known), count


def test_on_one_resource_every_sequence_of_any_length_keeps_the_law() -> None:
    """No situation is more than 12 steps away; the 13th step leads to none that is new, so this is all."""
    assert explored("door", depth=by_length(1_000, 4)) == by_length((13, 666, 666 * 25), (4, 114, 57 * 25))


def test_on_two_resources_every_sequence_of_five_steps_keeps_the_law() -> None:
    """Depth 5, with renewals and releases of several leases at once."""
    assert explored("door", "window", depth=by_length(5, 3)) == by_length(
        (5, 6_183, (1 + 10 + 68 + 362 + 1_412) * 49), (3, 1 + 10 + 68 + 362, (1 + 10 + 68) * 49)
    )


def test_sequences_that_go_on_as_one_would_have_led_to_the_same_situations() -> None:
    """Depth 3 on one resource, every sequence on its own; in `make test`, depth 2."""
    depth = by_length(3, 2)
    together = {situation(beginning(), "door")}
    worlds = [beginning()]
    for _ in range(depth):
        worlds = [taken(world, step) for world in worlds for step in steps("door")]
        together |= {situation(world, "door") for world in worlds}

    assert len(worlds) == 25**depth
    assert len(together) == explored("door", depth=depth)[1]
