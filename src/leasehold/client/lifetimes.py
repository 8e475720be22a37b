"""What happens to clients when the program ends, or forks.

Clients are looked after weakly: one that nobody refers to any more is forgotten.
"""

import atexit
import os
import weakref
from typing import Protocol


class _Mortal(Protocol):
    def release_at_exit(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


_clients: weakref.WeakSet[_Mortal] = weakref.WeakSet()


def look_after(client: _Mortal) -> None:
    """Tell a client when the program ends, and in a forked child that it is one."""
    _clients.add(client)


def _release_at_exit() -> None:
    for client in list(_clients):
        client.release_at_exit()


def _after_fork_in_child() -> None:
    for client in list(_clients):
        client.after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_release_at_exit)
