"""The chapter about waiting: who comes first, how soon, and who would wait for ever."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from leasehold.cli.demo_parts.actors import NothingHeard
from leasehold.cli.demo_parts.narration import Story
from leasehold.client.blocking.client import Client
from leasehold.client.blocking.lease import HeldLease
from leasehold.client.connect import connect
from leasehold.errors import Deadlock

_PRINTER, _INK, _PAPER = "printer", "ink", "paper"
_PATIENCE = 10.0
_LOOK_EVERY_SECONDS = 0.01


def stand_in_line(story: Story, url: str) -> None:
    """Let three callers, each with a connection of its own, wait for each other."""
    story.heading("5. Whoever has to wait stands in line")
    with ExitStack() as stack:
        # The last to be ended: closing a connection ends the waits of its threads, should there be any left.
        threads = stack.enter_context(ThreadPoolExecutor(2))
        ada, ben, cy = (stack.enter_context(connect(url, holder=name)) for name in ("ada", "ben", "cy"))
        _hand_over_in_order(story, threads, ada, ben, cy)
        _refuse_the_circle(story, threads, ada, ben)


def _hand_over_in_order(
    story: Story, threads: ThreadPoolExecutor, ada: Client, ben: Client, cy: Client
) -> None:
    printer = ada.acquire(_PRINTER)
    served: list[tuple[str, float]] = []

    def wait(client: Client, priority: int) -> None:
        with client.acquire(_PRINTER, wait=_PATIENCE, priority=priority) as lease:
            served.append((lease.holder, time.monotonic()))

    waits = []
    for client, priority in ((ben, 5), (cy, 9)):
        waits.append(threads.submit(wait, client, priority))
        _until(lambda: len(ada.queue(_PRINTER)) == len(waits))
    line = ", ".join(f"{waiter.position}. {waiter.lease.holder}" for waiter in ada.queue(_PRINTER))
    story.say(f"ada has the {_PRINTER}. ben waits for it, then cy, who is more urgent. In line: {line}.")
    released_at = time.monotonic()
    printer.release()
    _ended(waits)
    story.claim("the more urgent one came first, and nobody else overtook", _names(served) == ["cy", "ben"])
    waited = served[0][1] - released_at
    story.claim(f"it was woken, and had the lease {waited * 1000:.1f} ms after the release", waited < 1)


def _refuse_the_circle(story: Story, threads: ThreadPoolExecutor, ada: Client, ben: Client) -> None:
    ink, paper = ada.acquire(_INK), ben.acquire(_PAPER)
    waiting: Future[HeldLease] = threads.submit(lambda: ada.acquire(_PAPER, wait=_PATIENCE))
    _until(lambda: len(ben.queue(_PAPER)) == 1)
    story.say(f"ada has {_INK} and waits for {_PAPER}. ben has {_PAPER}, and asks for {_INK}.")
    cycle: tuple[str, ...] = ()
    try:
        ben.acquire(_INK, wait=_PATIENCE).release()
    except Deadlock as error:
        cycle = error.cycle or ()
    story.claim(
        f"that wait would never end, and is refused at once: {' → '.join(cycle)}",
        cycle == ("ben", _INK, "ada", _PAPER, "ben"),
    )
    paper.release()
    _ended([waiting])
    story.claim(f"ben lets go of {_PAPER}, and ada has both", ada.inspect(_PAPER)[0].lease.holder == "ada")
    for lease in (ink, waiting.result()):
        lease.release()


def _names(served: list[tuple[str, float]]) -> list[str]:
    return [name for name, _ in served]


def _ended(waits: "list[Future[Any]]") -> None:
    for wait in waits:
        wait.result(2 * _PATIENCE)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise NothingHeard("nobody joined the queue")
        time.sleep(_LOOK_EVERY_SECONDS)
