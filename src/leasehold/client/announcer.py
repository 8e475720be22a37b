"""Telling holders who asked to be called that a lease is gone."""

import logging
import queue
import threading
from collections.abc import Callable

from leasehold.errors import LeaseholdError

_logger = logging.getLogger(__name__)


class Announcer:
    """Calls what holders gave us to call on a loss, in a thread where it may take its time, and fail."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Start with nothing to announce: at first, and in a forked child."""
        self._losses: queue.SimpleQueue[_Announcement] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def announce(self, on_lost: Callable[[LeaseholdError], None], error: LeaseholdError) -> None:
        """Have `on_lost` called with `error` soon. Whoever renews leases does not wait for it."""
        self._losses.put((on_lost, error))
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(
                    target=_announce_all, args=(self._losses,), name="leasehold-on-lost", daemon=True
                )
                thread.start()
                self._thread = thread


_Announcement = tuple[Callable[[LeaseholdError], None], LeaseholdError]


def _announce_all(losses: "queue.SimpleQueue[_Announcement]") -> None:
    while True:
        on_lost, error = losses.get()
        try:
            on_lost(error)
        except Exception:
            _logger.exception("on_lost failed for lease %s", error.lease_id)
