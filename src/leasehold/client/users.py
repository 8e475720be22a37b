"""Who uses the leases that a client keeps: claims of one holder may share one, which ends with the last.

A lease that nobody began to use here is its holder's: it is used, but never ended, by those who join it.
"""

import threading
from collections.abc import Callable, Sequence

from leasehold.errors import LeaseholdError

_OWNER = object()
"""Uses a lease that was not claimed to be shared, until it gives it back."""


class User:
    """Somebody who uses leases, and is told of their loss meanwhile."""

    def __init__(self, on_lost: Callable[[LeaseholdError], None] | None = None) -> None:
        self.on_lost = on_lost
        self.hearers: dict[str, Callable[[], None]] = {}
        """What hears of the loss of each lease."""


class _Use:
    def __init__(self, *users: object) -> None:
        self.users = set(users)
        self.is_to_end = False
        self.last: User | None = None


class Users:
    """The users of each lease."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Know nobody, as in a forked child: the leases are the parent's."""
        self._lock = threading.Lock()
        self._uses: dict[str, _Use] = {}

    def begin(self, lease_ids: Sequence[str], user: User, *, to_end: bool) -> None:
        """Use leases. `to_end`: they are claimed for this, and end with their last user."""
        with self._lock:
            for lease_id in lease_ids:
                use = self._uses.setdefault(lease_id, _Use())
                use.users.add(user)
                if to_end:
                    use.users.discard(_OWNER)  # Who joined before this took the lease for somebody's own.
                    use.is_to_end = True

    def join(self, lease_id: str, user: User, *, is_owned: bool) -> bool:
        """Use a lease that stands already. Return False if its last user is just giving it back.

        `is_owned`: somebody here keeps it, so that it does not end with those who are known to use it.
        """
        with self._lock:
            use = self._uses.setdefault(lease_id, _Use(*[_OWNER] if is_owned else []))
            if use.last is not None:
                return False
            use.users.add(user)
            return True

    def leave(self, lease_id: str, user: User, *, stays: bool = False) -> bool:
        """Use a lease no longer. Return whether the user was the last: then nobody joins until it is `over`.

        `stays`: whoever is the last, the lease does not end.
        """
        with self._lock:
            use = self._uses.get(lease_id)
            if use is None:
                return False
            use.users.discard(user)
            use.is_to_end &= not stays
            if use.users == {_OWNER}:
                del self._uses[lease_id]
            elif not use.users and use.last is None:
                use.last = user
            return use.last is user

    def is_to_end(self, lease_id: str) -> bool:
        """Say whether a lease ends with its last user."""
        with self._lock:
            return lease_id in self._uses and self._uses[lease_id].is_to_end

    def is_ending(self, lease_id: str) -> bool:
        """Say whether its last user is just giving a lease back."""
        with self._lock:
            return lease_id in self._uses and self._uses[lease_id].last is not None

    def over(self, lease_ids: Sequence[str]) -> None:
        """Forget who used leases."""
        with self._lock:
            for lease_id in lease_ids:
                self._uses.pop(lease_id, None)
