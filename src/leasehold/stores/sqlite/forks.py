"""What happens to the stores of a process when it forks."""

import os
import threading
import weakref
from typing import Protocol


class Forked(Protocol):
    """What must know of a fork."""

    def before_fork(self) -> None:
        """Make ready."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on."""
        ...

    def after_fork_in_child(self) -> None:
        """Start in a new process."""
        ...


_stores: weakref.WeakSet[Forked] = weakref.WeakSet()
_registering = threading.Lock()
"""Held to add to the stores, and during a fork."""


def register(store: Forked) -> None:
    """Tell a store of all forks from now on, for as long as it lives."""
    with _registering:
        _stores.add(store)


def _before_fork() -> None:
    _registering.acquire()
    for store in _stores:
        store.before_fork()


def _after_fork_in_parent() -> None:
    for store in _stores:
        store.after_fork_in_parent()
    _registering.release()


def _after_fork_in_child() -> None:
    for store in _stores:
        store.after_fork_in_child()
    _registering.release()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
