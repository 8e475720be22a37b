"""top: leases, queues and recent events, as they are now. Nothing here changes anything."""

import argparse
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leasehold.cli.closings import shown_holder
from leasehold.cli.connecting import connected
from leasehold.cli.durations import format_duration, parse_duration
from leasehold.cli.naming import displayed
from leasehold.cli.output import Output, counted, escaped, local_time, width_of
from leasehold.cli.parser import Commands

if TYPE_CHECKING:
    from leasehold.client.blocking.client import Client
    from leasehold.engine.questions import LeaseStatus
    from leasehold.kernel.ledger.chain import Entry

_READ = 1_000
_EVENTS = 50
_ONCE_LINES = 60
_UNCUT_COLUMNS = 10_000
"""Where no terminal has to show it, no line is cut."""


def add_commands(commands: Commands) -> None:
    """Add the command of this module."""
    parser = commands.add(
        "top",
        _top,
        "watch leases, queues and recent events live",
        details="""\
Shows the leases that stand, who waits for what, and what happened last, and keeps that up to date; q or
Ctrl-C ends it. With --once, or if the output is not a terminal: one look, as plain text. With --json: one
look.

examples:
  leasehold top
  leasehold top --once

exit codes: 0 done · 130 interrupted · 1 error · 2 wrong usage""",
    )
    parser.add_argument("--once", action="store_true", help="print what there is now, and end")
    parser.add_argument(
        "--interval",
        type=_interval,
        default=1.0,
        metavar="TIME",
        help="how often to look again (default: 1s)",
    )


def _interval(text: str) -> float:
    seconds = parse_duration(text)
    if not 0.05 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 50ms and 1h")
    return seconds


def _top(arguments: Namespace, out: Output) -> int:
    with connected(arguments) as client:
        if out.as_json:
            out.json(_shape(look(client)))
            return 0
        if arguments.once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _UNCUT_COLUMNS
            for line in frame(look(client), width, _ONCE_LINES, hint=""):
                out.line(line.rstrip())
            return 0
        return _live(client, out, arguments.interval)


def _live(client: "Client", out: Output, interval: float) -> int:
    from leasehold.cli.screen import whole_screen

    with whole_screen() as screen:
        while True:
            lines = frame(look(client), *screen.size)
            screen.show([out.painted((line, "bold") if _is_heading(line) else line) for line in lines])
            key = screen.key(interval)
            if key is None or "q" in key.lower():
                return 0


class Look:
    """What there was to see at one moment."""

    def __init__(
        self, url: str, holding: "list[LeaseStatus]", waiting: "list[LeaseStatus]", events: "list[Entry]"
    ) -> None:
        self.url = url
        self.holding = holding
        self.waiting = waiting
        self.events = events
        self.at_ns = time.time_ns()


def look(client: "Client") -> Look:
    """Look at the store."""
    holding = [one for one in client.list(limit=_READ).statuses if one.is_live]
    waiting = [one for one in client.list(states=["pending"], limit=_READ).statuses if one.is_live]
    events = client.history(after=max(0, client.position() - _EVENTS), limit=_READ)
    return Look(
        client.url,
        sorted(holding, key=lambda one: (one.lease.resource, one.lease.token)),
        sorted(waiting, key=lambda one: (one.lease.resource, one.lease.place)),
        events[::-1],
    )


def _shape(seen: Look) -> dict[str, Any]:
    from leasehold.shapes import entry_shape, lease_shape, utc

    return {
        "store": seen.url,
        "at": utc(seen.at_ns),
        "leases": [lease_shape(status) for status in seen.holding],
        "waiting": [lease_shape(status) for status in seen.waiting],
        "events": [entry_shape(entry) for entry in seen.events],
    }


_LEASES = ("RESOURCE", "HOLDER", "MODE", "LEFT", "TOKEN")
_QUEUES = ("WAITS FOR", "WHO", "MODE", "SINCE", "PRIORITY")
_HAPPENED = ("WHEN", "WHAT", "RESOURCE", "HOLDER")
_HEADS = (_LEASES[0], _QUEUES[0], _HAPPENED[0])


def _is_heading(line: str) -> bool:
    return line.startswith(_HEADS)


def frame(seen: Look, width: int, height: int, *, hint: str = "   q: quit") -> list[str]:
    """Return what to show in so many columns and lines, never more of either."""
    count = f"{counted(len(seen.holding), 'lease')}, {len(seen.waiting):,} waiting"
    title = escaped(f"leasehold top   {count}   {local_time(seen.at_ns)}{hint}   {seen.url}")
    room = max(0, height - 6)  # the title, three headings, two empty lines
    leases = _lease_rows(seen.holding)
    queues = _queue_rows(seen.waiting, seen.at_ns)
    events = _event_rows(seen.events)
    for_events = max(min(len(events), room // 3), room - len(leases) - len(queues))
    for_queues = min(len(queues), max((room - for_events) // 2, room - for_events - len(leases)))
    for_leases = room - for_events - for_queues
    lines = [title]
    lines += _table(_LEASES, leases[:for_leases], width)
    lines += ["", *_table(_QUEUES, queues[:for_queues], width)]
    lines += ["", *_table(_HAPPENED, events[:for_events], width)]
    return [_cut(line, width) for line in lines[:height]]


def _lease_rows(holding: "list[LeaseStatus]") -> list[Sequence[str]]:
    return [
        (
            displayed(one.lease.resource),
            shown_holder(one.lease),
            one.lease.mode.value,
            format_duration(one.expires_in),
            str(one.lease.token),
        )
        for one in holding
    ]


def _queue_rows(waiting: "list[LeaseStatus]", now_ns: int) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = []
    for one in waiting:
        ticket = one.lease.ticket
        if ticket is not None:
            waited = format_duration(max(0, now_ns - ticket.since_ns) / 1e9)
            name, mode = displayed(one.lease.resource), one.lease.mode.value
            rows.append((name, one.lease.holder, mode, waited, str(ticket.priority)))
    return rows


def _event_rows(events: "list[Entry]") -> list[Sequence[str]]:
    return [
        (
            local_time(entry.event.at_ns).split()[1],
            entry.event.type.removeprefix("lease."),
            displayed(getattr(entry.event, "resource", None) or "-"),
            getattr(entry.event, "holder", None) or "-",
        )
        for entry in events
    ]


def _table(headings: Sequence[str], rows: list[Sequence[str]], width: int) -> list[str]:
    """Return rows in columns; a column that is wider than its share of the screen is cut."""
    cells = [[escaped(text) for text in row] for row in (headings, *rows)]
    share = max(8, width * 2 // 5)
    widths = [min(share, max(map(width_of, column))) for column in zip(*cells, strict=True)]
    return ["  ".join(_fitted(text, size) for text, size in zip(row, widths, strict=True)) for row in cells]


def _fitted(text: str, size: int) -> str:
    shown = text if width_of(text) <= size else f"{_cut(text, size - 1)}…"
    return shown + " " * (size - width_of(shown))


def _cut(text: str, size: int) -> str:
    """Return as much of a text as fits into so many columns."""
    shown = text[:size]
    while width_of(shown) > size:
        shown = shown[:-1]
    return shown
