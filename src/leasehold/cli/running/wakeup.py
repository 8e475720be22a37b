"""Waking a process of a `run` from its wait: when a child has ended, and whenever somebody says so."""

import os
import signal


class Wakeup:
    """A descriptor that becomes readable. One for each process: it takes over the process's SIGCHLD."""

    def __init__(self) -> None:
        self.descriptor, self._write_end = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._write_end, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})

    def now(self) -> None:
        """Wake the process."""
        os.write(self._write_end, b"!")

    def clear(self) -> None:
        """Forget the wake-ups so far."""
        try:
            os.read(self.descriptor, 4096)
        except BlockingIOError:
            return
