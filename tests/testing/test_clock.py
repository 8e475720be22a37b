"""The fake clock does what a machine's clock can do, and only when told."""

import pytest

from leasehold.engine.clock import Clock
from leasehold.testing.clock import FakeClock


def test_it_stands_still_by_itself() -> None:
    clock = FakeClock()
    assert (clock.tick_ns(), clock.wall_ns()) == (clock.tick_ns(), clock.wall_ns())


def test_it_can_be_used_wherever_a_clock_is_asked_for() -> None:
    clock: Clock = FakeClock(tick_ns=5, wall_ns=6, boot_id="b")
    assert (clock.tick_ns(), clock.wall_ns(), clock.boot_id) == (5, 6, "b")


def test_time_passes_on_both_clocks() -> None:
    clock = FakeClock(tick_ns=0, wall_ns=100)
    clock.advance(1.5, ns=7)
    assert (clock.tick_ns(), clock.wall_ns()) == (1_500_000_007, 1_500_000_107)


def test_time_does_not_pass_backwards() -> None:
    with pytest.raises(ValueError, match="set_back"):
        FakeClock().advance(-1)


def test_a_jump_of_the_wall_clock_leaves_the_authority_clock_alone() -> None:
    clock = FakeClock(tick_ns=50, wall_ns=10**10)
    clock.jump_wall(-3)
    assert (clock.tick_ns(), clock.wall_ns()) == (50, 7 * 10**9)


def test_setting_back_changes_neither_wall_time_nor_boot() -> None:
    clock = FakeClock(tick_ns=5 * 10**9, wall_ns=9)
    clock.set_back(2)
    assert (clock.tick_ns(), clock.wall_ns(), clock.boot_id) == (3 * 10**9, 9, "boot-1")
    with pytest.raises(ValueError, match="positive"):
        clock.set_back(-2)


def test_every_reboot_is_another_boot_and_starts_the_ticks_again() -> None:
    clock = FakeClock(wall_ns=0)
    boots = {clock.boot_id}
    for _ in range(3):
        clock.advance(10)
        clock.reboot(tick_ns=4, down_seconds=60)
        boots.add(clock.boot_id)
        assert clock.tick_ns() == 4
    assert len(boots) == 4
    assert clock.wall_ns() == 3 * 70 * 10**9
