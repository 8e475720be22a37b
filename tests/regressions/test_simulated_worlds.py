"""Worlds in which the simulator has once reported something, whole.

Where it was right, the shortest sequence that shows the mistake is a test of its own, named in
docs/track-record.md. A change to the simulator makes other worlds of the same seeds.
"""

import pytest

from simulator import simulate

ENTRIES = 100
"""A world that has become so tame that less happens in it does not show anything any more."""


@pytest.mark.parametrize("seed", [2565, 3826, 85687259631])
def test_a_world_in_which_a_promise_was_once_broken(seed: int) -> None:
    assert simulate(seed).entries > ENTRIES


@pytest.mark.parametrize(
    "seed",
    [
        1314,  # An act from before a downgrade came late, and was rightly refused.
        1923,  # A lease was taken for the child that a pruned one of the same id had been.
        2112,  # A renewal came again long after its first time was forgotten and pruned.
        906594515832,  # The id of a pruned lease came again in another tenant, and could not be certified.
        62894657911,  # A child was refused because of a lease that is shared since, in the same batch.
        62894657927,  # A child was refused because its parent waits to be alone on the same resource.
        85687259579,  # A spending came again after its lease was pruned, and the clock had gone back.
        126767957478,  # What was kept after an outage would have closed a circle when granted.
    ],
)
def test_a_world_in_which_a_judge_was_once_mistaken(seed: int) -> None:
    assert simulate(seed).entries > ENTRIES
