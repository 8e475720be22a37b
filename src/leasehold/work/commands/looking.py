"""leasehold work ls, show, failed: nothing here changes anything."""

from argparse import Namespace
from typing import TYPE_CHECKING

from leasehold.cli.connecting import connected
from leasehold.cli.durations import format_duration
from leasehold.cli.output import Output, local_time
from leasehold.cli.parser import Group, positive_number
from leasehold.work.commands.arguments import add_domain, read_offset

if TYPE_CHECKING:
    from leasehold.work.questions import DomainState

_HEADINGS = (
    "DOMAIN",
    "STATE",
    "OFFSET",
    "RETRIES",
    "LEFT",
    "BACKLOG",
    "HEAD",
    "DONE",
    "FAILED",
    "WATERMARK",
)
_RANGES_SHOWN = 20


def add_commands(group: Group) -> None:
    """Add the commands of this module."""
    _add_ls(group)
    _add_show(group)
    _add_failed(group)


def _add_ls(group: Group) -> None:
    parser = group.add(
        "ls",
        _ls,
        "list domains",
        details="""\
In the order of their names.

example:
  leasehold work ls

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    parser.add_argument("--after", metavar="DOMAIN", default="", help="continue after this domain")
    parser.add_argument(
        "--limit", type=positive_number, default=1_000, metavar="N", help="at most so many (default: 1000)"
    )


def _ls(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        states = client.work.domains(after=arguments.after, limit=arguments.limit)
    if out.as_json:
        from leasehold.work.shapes import state_shape

        for state in states:
            out.json(state_shape(state))
    elif not states:
        out.line("there are no domains")
    else:
        out.table(_HEADINGS, [_state_row(state) for state in states])


def _state_row(state: "DomainState") -> list[str]:
    return [
        state.domain,
        state.state.value,
        _or_dash(state.current_offset),
        str(state.retry_count) if state.current_offset is not None else "-",
        "-" if state.expires_in is None else format_duration(state.expires_in),
        str(state.backlog),
        _or_dash(state.head),
        str(state.processed_count),
        str(state.failed_count),
        str(state.watermark),
    ]


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)


def _add_show(group: Group) -> None:
    parser = group.add(
        "show",
        _show,
        "show a domain, or what happened to one of its offsets",
        details="""\
examples:
  leasehold work show orders
  leasehold work show orders --offset 41

exit codes: 0 done (a domain that nobody has used is idle) · 1 error · 2 wrong usage""",
    )
    add_domain(parser)
    parser.add_argument("--offset", type=read_offset, metavar="N", help="show the history of this offset")


def _show(arguments: Namespace, out: Output) -> None:
    from leasehold.cli.events import print_entries
    from leasehold.shapes import entry_shape

    with connected(arguments) as client:
        if arguments.offset is None:
            _print_state(out, client.work.state(arguments.domain))
            return
        entries = client.work.history(arguments.domain, arguments.offset)
    if out.as_json:
        for entry in entries:
            out.json(entry_shape(entry))
    elif not entries:
        out.line(f"nothing is known of offset {arguments.offset} of {arguments.domain}")
    else:
        print_entries(out, entries)


def _print_state(out: Output, state: "DomainState") -> None:
    if out.as_json:
        from leasehold.work.shapes import state_shape

        out.json(state_shape(state))
        return
    acquired = state.acquired_at_millis
    out.facts(
        f"{state.domain}: {state.state.value}",
        [
            ("offset", None if state.current_offset is None else str(state.current_offset)),
            ("token", state.token),
            ("holder", state.holder),
            ("acquired", None if acquired is None else local_time(acquired * 1_000_000)),
            ("retries", None if acquired is None else str(state.retry_count)),
            ("left", None if state.expires_in is None else format_duration(state.expires_in)),
            ("backlog", f"{state.backlog}, head {state.head}" if state.backlog else "0"),
            ("processed", f"{state.processed_count} {_ranges(state.processed)}".strip()),
            ("failed", f"{state.failed_count} {_ranges(state.failed)}".strip()),
            ("starts at", str(state.start) if state.start else None),
            ("watermark", str(state.watermark)),
        ],
    )


def _ranges(ranges: tuple[tuple[int, int], ...]) -> str:
    spelled = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_RANGES_SHOWN]]
    more = ", …" if len(ranges) > _RANGES_SHOWN else ""
    return f"({', '.join(spelled)}{more})" if spelled else ""


def _add_failed(group: Group) -> None:
    parser = group.add(
        "failed",
        _failed,
        "list the offsets that were given up, with the reason for each",
        details="""\
example:
  leasehold work failed orders

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    add_domain(parser)
    parser.add_argument(
        "--after", type=read_offset, default=-1, metavar="N", help="continue after this offset"
    )
    parser.add_argument(
        "--limit", type=positive_number, default=100, metavar="N", help="at most so many (default: 100)"
    )


def _failed(arguments: Namespace, out: Output) -> None:
    from leasehold.work.shapes import failed_shape

    with connected(arguments) as client:
        failed = client.work.failed(arguments.domain, after=arguments.after, limit=arguments.limit)
    if out.as_json:
        for one in failed:
            out.json(failed_shape(one))
    elif not failed:
        out.line(f"no offset of {arguments.domain} was given up")
    else:
        rows = [
            (
                str(one.offset),
                "-" if one.failed_at_ns is None else local_time(one.failed_at_ns),
                _or_dash(one.retry_count),
                "(its history was pruned)" if one.reason is None else one.reason or "-",
            )
            for one in failed
        ]
        out.table(("OFFSET", "FAILED AT", "RETRIES", "REASON"), rows)
