"""Loss is loud: what a holder sees or waits for when its lease is gone."""

import threading

from leasehold.client.held import AnyHeldLease
from leasehold.client.inputs import Duration, seconds_of
from leasehold.errors import LeaseholdError


class Loss:
    """Fires once, when a lease is lost. True once it has; `error` says why."""

    def __init__(self, lease: AnyHeldLease) -> None:
        self._lease = lease

    def __repr__(self) -> str:
        how = "not lost" if self._lease.loss is None else f"lost: {self._lease.loss}"
        return f"<lease {self._lease.lease_id} on {self._lease.resource}, {how}>"

    def __bool__(self) -> bool:
        return self._lease.loss is not None

    @property
    def error(self) -> LeaseholdError | None:
        """Why the lease is lost; None as long as it is not."""
        return self._lease.loss

    def wait(self, timeout: Duration | None = None) -> bool:
        """Wait until the lease is lost; return False if that has not happened within `timeout` seconds."""
        fired = threading.Event()
        self._lease.hearers.append(fired.set)
        try:
            # Look once more: the loss may have come before it could be heard.
            return self._lease.loss is not None or fired.wait(
                None if timeout is None else seconds_of(timeout)
            )
        finally:
            self._lease.hearers.remove(fired.set)


class Body:
    """The body of a `with` statement. It cannot be interrupted; it has to ask, or to look at `lease.lost`."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    @property
    def runs_elsewhere(self) -> bool:
        """Say whether it is running, and not in the thread that asks."""
        return self._thread != threading.get_ident()

    def interrupt(self) -> None:
        """Do nothing: there is no safe way to stop a thread."""

    def leave(self, error: BaseException | None) -> bool:
        """Return False: an error in the body is the body's own."""
        del error
        return False
