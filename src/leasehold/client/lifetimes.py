"""What happens to clients when the program ends, or forks.

Promised: a process that ends by itself gives back what its clients hold, and their places in queues, whether
it was told to end (Ctrl-C, `sys.exit` in a signal handler), failed, or was done. So does a process that
`multiprocessing` has started, by whichever method, although that ends it without the interpreter's own
goodbye. That includes what a thread is in the middle of asking for at that moment. Not promised: anything
for a process that is killed, or calls `os._exit` itself.

Clients are looked after weakly: one that nobody refers to any more is forgotten.
"""

import atexit
import os
import sys
import threading
import weakref
from typing import Any, Protocol

_LAST = -1_000
"""After everything else that `multiprocessing` has to do at the end of a process."""


class _Mortal(Protocol):
    def release_at_exit(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


class _Childhood:
    """What this process knows of being a child of `multiprocessing`."""

    is_told_of_beginnings = False
    ends_in: int | None = None
    """The process in which we are called at its end."""


_clients: weakref.WeakSet[_Mortal] = weakref.WeakSet()
_childhood = _Childhood()


def look_after(client: _Mortal) -> None:
    """Tell a client when the program ends, and in a forked child that it is one."""
    _clients.add(client)
    _be_told_of_beginnings()
    process: Any = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        _begin_as_child(_childhood)


def _be_told_of_beginnings() -> None:
    """Have `multiprocessing` call us in its children, which it ends by `os._exit`.

    It is not imported for that: where it has started a process, it has been. What is to be done at the end
    of a process is forgotten in a child as it begins; only then can we say it there.
    """
    util: Any = sys.modules.get("multiprocessing.util")
    if util is not None and not _childhood.is_told_of_beginnings:
        _childhood.is_told_of_beginnings = True
        util.register_after_fork(_childhood, _begin_as_child)


def _begin_as_child(childhood: _Childhood) -> None:
    if childhood.ends_in != os.getpid():
        childhood.ends_in = os.getpid()
        util: Any = sys.modules["multiprocessing.util"]
        util.Finalize(None, _end_as_child, exitpriority=_LAST)


def _end_as_child() -> None:
    """Give back what a child of `multiprocessing` holds, once its threads have ended.

    It would wait for them only after this. They may still work under their leases; so that is done first, in
    the very way in which it, and the interpreter, do it. The second time there is nothing left to do.
    """
    shut_down: Any = threading._shutdown  # type: ignore[attr-defined]
    shut_down()
    _release_at_exit()


def _release_at_exit() -> None:
    for client in list(_clients):
        client.release_at_exit()


def _after_fork_in_child() -> None:
    for client in list(_clients):
        client.after_fork_in_child()
    _be_told_of_beginnings()


os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_release_at_exit)
