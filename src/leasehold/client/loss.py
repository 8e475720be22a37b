"""Loss is loud: what a holder sees or waits for when its lease is gone."""

import threading

from leasehold.client.inputs import Duration, seconds_of
from leasehold.errors import LeaseholdError


class Loss:
    """Fires once, when a lease is lost. True once it has; `error` says why."""

    def __init__(self) -> None:
        self.error: LeaseholdError | None = None
        self._fired: threading.Event | None = None

    def __bool__(self) -> bool:
        return self.error is not None

    def fire(self, error: LeaseholdError) -> None:
        """Tell everybody who waits."""
        self.error = error
        if self._fired is not None:
            self._fired.set()

    def wait(self, timeout: Duration | None = None) -> bool:
        """Wait until the lease is lost; return False if that has not happened within `timeout` seconds."""
        fired = self._event()
        # Ask again: the loss may have come before there was an event to set.
        return self.error is not None or fired.wait(None if timeout is None else seconds_of(timeout))

    def _event(self) -> threading.Event:
        """Make the event when somebody first waits; most leases are never waited for."""
        with _making:
            if self._fired is None:
                self._fired = threading.Event()
            return self._fired


_making = threading.Lock()


class Body:
    """The body of a `with` statement. It cannot be interrupted; it has to ask, or to look at `lease.lost`."""

    def __init__(self) -> None:
        self._thread: int | None = None

    def enter(self) -> None:
        """Note in which thread the body runs."""
        self._thread = threading.get_ident()

    @property
    def runs_elsewhere(self) -> bool:
        """Say whether it is running, and not in the thread that asks."""
        return self._thread not in (None, threading.get_ident())

    def interrupt(self) -> None:
        """Do nothing: there is no safe way to stop a thread."""

    def leave(self, error: BaseException | None) -> bool:
        """Return False: an error in the body is the body's own."""
        del error
        self._thread = None
        return False
