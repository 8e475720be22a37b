"""top, driven in a real terminal."""

import fcntl
import os
import signal
import struct
import termios

import leasehold
from leasehold.cli.output import width_of
from leasehold.cli.top import Look, frame
from tests.cli.shell import EXECUTABLE, Shell

LEFT_AS_IT_WAS = "\x1b[?25h\x1b[?1049l"


def resize(descriptor: int, lines: int, columns: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def test_once_prints_leases_queues_and_events(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    text = shell.run("top", "--once").out
    assert "1 lease, 0 waiting" in text
    assert "q: quit" not in text
    assert "WAITS FOR" in text
    assert "issued" in text
    assert "\x1b" not in text


def test_with_json_top_is_one_look(shell: Shell) -> None:
    lease = shell.json("acquire", "door", "--holder", "ann")
    seen = shell.json("top")
    assert seen["store"] == shell.url
    assert [one["lease_id"] for one in seen["leases"]] == [lease["lease_id"]]
    assert seen["waiting"] == []
    assert [entry["type"] for entry in seen["events"]] == ["lease.issued"]


def test_top_shows_what_happens_and_quits_on_q(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    terminal = shell.terminal(EXECUTABLE, "top", "--interval", "100ms")
    terminal.wait_for("RESOURCE")
    shell.run("acquire", "window", "--holder", "ben")
    terminal.wait_for("window")
    terminal.press(b"q")
    code, shown = terminal.end()
    assert code == 0
    assert shown.endswith(LEFT_AS_IT_WAS)


def test_top_follows_the_size_of_its_terminal_whatever_the_environment_says(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    # As shells, and whatever else uses readline, leave them to those they start.
    shell.environment |= {"COLUMNS": "80", "LINES": "24"}
    terminal = shell.terminal(EXECUTABLE, "top", "--interval", "1h")
    terminal.wait_for("RESOURCE")
    resize(terminal.keyboard, 3, 12)
    os.kill(terminal.process_id, signal.SIGWINCH)
    terminal.wait_for("leasehold to\x1b[K")
    terminal.press(b"q")
    assert terminal.end()[0] == 0


def test_ctrl_c_ends_top_and_gives_the_terminal_back(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    terminal = shell.terminal(EXECUTABLE, "top", "--interval", "1h")
    terminal.wait_for("RESOURCE")
    settings = termios.tcgetattr(terminal.keyboard)
    assert not settings[3] & termios.ECHO
    terminal.press(b"\x03")
    code, shown = terminal.end()
    assert code == 130
    assert LEFT_AS_IT_WAS in shown


def test_a_second_ctrl_c_does_not_keep_top_from_giving_the_terminal_back(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    shell.sabotage(
        "import os, signal, termios; set_terminal = termios.tcsetattr\n"
        "def interrupted(descriptor, when, settings):\n"
        "    if settings[3] & termios.ECHO:  # it is given back\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    set_terminal(descriptor, when, settings)\n"
        "termios.tcsetattr = interrupted\n"
    )
    terminal = shell.terminal(EXECUTABLE, "top", "--interval", "1h")
    terminal.wait_for("RESOURCE")
    terminal.press(b"\x03")
    assert terminal.end()[0] == 130
    assert termios.tcgetattr(terminal.keyboard)[3] & termios.ECHO


def test_ctrl_backslash_ends_top_and_gives_the_terminal_back(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    terminal = shell.terminal(EXECUTABLE, "top", "--interval", "1h")
    terminal.wait_for("RESOURCE")
    terminal.press(b"\x1c")
    code, shown = terminal.end()
    assert code == 128 + signal.SIGQUIT
    assert shown.endswith(LEFT_AS_IT_WAS)
    assert termios.tcgetattr(terminal.keyboard)[3] & termios.ECHO


def test_a_frame_is_never_larger_than_the_screen() -> None:
    with leasehold.connect("memory:", holder="名前") as leases:
        leases.acquire("共有資源" * 30)
        seen = Look("sqlite:///x.db", leases.list().statuses, [], leases.history())
    for width in (1, 5, 40, 200):
        for height in (1, 2, 5, 6, 7, 50):
            lines = frame(seen, width, height)
            assert len(lines) <= height
            assert max(map(width_of, lines)) <= width


def test_one_look_into_a_pipe_is_not_cut(shell: Shell) -> None:
    shell.run("acquire", "door" * 40, "--holder", "h" * 120)
    shown = shell.run("top", "--once").out
    assert shown.splitlines()[0].endswith(shell.url)
    assert "door" * 40 in shown
