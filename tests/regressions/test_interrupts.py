"""Ctrl-C that was swallowed: the interpreter drops what is raised while it closes a generator early.

`CtrlC.interrupts` raises if a call comes to its end although it was interrupted.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import leasehold
from tests.client.test_interrupts import CtrlC


def interrupt_at_every_moment(
    folder: Path, end: Callable[[leasehold.HeldLeases], object], *, one_is_over: bool = False
) -> None:
    """Interrupt what ends two leases at each of its moments, until it comes through undisturbed."""
    with leasehold.connect(folder / "leases", durability="fast") as leases:
        for nth in range(1, 5_000):
            both = leases.acquire_all(["door", "window"])
            if one_is_over:
                leases.revoke(both["door"].lease_id, reason="test")
            ctrl_c = CtrlC(nth)
            if not ctrl_c.interrupts(partial(end, both)):
                break
            both.release()
            # Behind what gives back the rest, in the same queue of commands.
            leases.acquire("other", holder="bob").release()
            assert leases.list().statuses == [], ctrl_c.moment
        assert nth > 50


def test_a_ctrl_c_while_a_block_of_several_leases_ends_is_heard(tmp_path: Path) -> None:
    # At its end it is looked whether any of them is still held: the search is over at the first.
    interrupt_at_every_moment(tmp_path, lambda both: both.__exit__(None, None, None))


def test_a_ctrl_c_while_several_leases_are_given_back_is_heard(tmp_path: Path) -> None:
    # Then it is looked whether any of them had already ended: the search is over at the first.
    interrupt_at_every_moment(tmp_path, lambda both: both.release(), one_is_over=True)
