"""What differs between the halves: how to wait, and how to stop a handler in time."""

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from leasehold.workflows.guarding import OutOfTime

Lock = threading.Lock


class Growth:
    """Something that grows, and that can be waited for."""

    def __init__(self) -> None:
        self._changed = threading.Event()

    def grow(self) -> None:
        """Wake everybody who waits."""
        changed, self._changed = self._changed, threading.Event()
        changed.set()

    def until(self, has_grown: Callable[[], bool], seconds: float) -> None:
        """Return once it has grown, or after a while."""
        changed = self._changed  # Before the look: what grows after it sets this one.
        if not has_grown():
            changed.wait(seconds)


def within(seconds: float, handler: Callable[[Any], Any], action: object) -> Any:
    """Return what a handler makes of an action; raise OutOfTime if that takes longer.

    It runs in a thread of its own, which cannot be stopped: after the time nobody waits for it any more.
    """
    made: Future[Any] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            made.set_result(context.run(handler, action))
        except BaseException as error:
            made.set_exception(error)

    threading.Thread(target=run, name="leasehold-action", daemon=True).start()
    if not wait([made], seconds).done:
        raise OutOfTime
    return made.result()
