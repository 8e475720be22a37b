"""A terminal that belongs to us for a while.

Promised: however this ends (q, Ctrl-C, a signal, an error), the terminal is as it was before.
"""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_ENTER = "\033[?1049h\033[?25l"
_LEAVE = "\033[?25h\033[?1049l"
_COLUMNS, _LINES = 80, 24
"""For a terminal that does not know its size."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_HOME, _CLEAR_LINE, _CLEAR_REST = "\033[H", "\033[K", "\033[J"


class Screen:
    """Shows frames, and says when something happened."""

    def __init__(self, resized: int) -> None:
        self._resized = resized

    @property
    def size(self) -> tuple[int, int]:
        """Return columns and lines, as they are now.

        The terminal is asked, not `COLUMNS` and `LINES`, which stay what they were when it is resized.
        """
        size = os.get_terminal_size(sys.stdout.fileno())
        return size.columns or _COLUMNS, size.lines or _LINES

    def show(self, lines: Sequence[str]) -> None:
        """Show a frame of lines that were painted, in one write, so that nothing flickers."""
        body = "\r\n".join(f"{line}{_CLEAR_LINE}" for line in lines)
        sys.stdout.write(f"{_HOME}{body}{_CLEAR_REST}")
        sys.stdout.flush()

    def key(self, seconds: float) -> str | None:
        """Wait for a key, for so long or until the terminal has another size; return it, "" or None.

        "" means that nothing was pressed, None that nothing ever will be: the terminal is gone.
        """
        ready, _, _ = select.select([sys.stdin, self._resized], [], [], seconds)
        if self._resized in ready:
            os.read(self._resized, 4096)
        if sys.stdin not in ready:
            return ""
        return os.read(sys.stdin.fileno(), 64).decode(errors="replace") or None


@contextmanager
def whole_screen() -> Iterator[Screen]:
    """Take the terminal over, and give it back as it was."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    read_end, write_end = os.pipe()
    for end in (read_end, write_end):
        os.set_blocking(end, False)
    wake_before = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    handlers = {
        signal.SIGWINCH: signal.signal(signal.SIGWINCH, lambda number, frame: None),
        # Stopped with Ctrl-Z it would leave the shell with our screen, and so would Ctrl-\ without a word.
        signal.SIGTSTP: signal.signal(signal.SIGTSTP, signal.SIG_IGN),
        signal.SIGQUIT: signal.signal(signal.SIGQUIT, lambda number, frame: sys.exit(128 + number)),
    }
    try:
        tty.setcbreak(descriptor)
        sys.stdout.write(_ENTER)
        yield Screen(read_end)
    finally:
        # Who is impatient presses twice; the second time must not come between us and the terminal.
        handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDING} | handlers
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        signal.set_wakeup_fd(wake_before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(read_end)
        os.close(write_end)
