"""leasehold work acquire, succeed, fail, enqueue: one command each."""

import argparse
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from leasehold.cli.connecting import add_holder_option, connected
from leasehold.cli.durations import parse_duration
from leasehold.cli.output import Output
from leasehold.cli.parser import Group
from leasehold.errors import EXIT_NOT_ACQUIRED
from leasehold.work.commands.arguments import (
    EXIT_CODES_OF_TOKENS,
    add_domain,
    add_retries,
    add_token,
    read_offset,
)

if TYPE_CHECKING:
    from leasehold.work.law.answers import Failed, Succeeded


def add_commands(group: Group) -> None:
    """Add the commands of this module."""
    _add_acquire(group)
    _add_succeed(group)
    _add_fail(group)
    _add_enqueue(group)


def _add_ending(parser: ArgumentParser) -> None:
    add_token(parser)
    parser.add_argument(
        "--hand-off", action="store_true", help="acquire the head of the backlog in the same step"
    )
    parser.add_argument(
        "--ignore-mismatch",
        action="store_true",
        help="do nothing, instead of failing, if the token is not that of the offset in flight",
    )
    add_holder_option(parser, "who says so")


def _add_acquire(group: Group) -> None:
    parser = group.add(
        "acquire",
        _acquire,
        "ask to work on an offset",
        details="""\
Prints the outcome and, if the offset was acquired, its token. An offset that has to wait is put into the
backlog.

example:
  leasehold work acquire orders 41 --ttl 5m

exit codes: 0 acquired · 75 not acquired: it has to wait, is in flight, is terminal already, or is not next ·
            1 error · 2 wrong usage""",
    )
    add_domain(parser)
    parser.add_argument("offset", metavar="OFFSET", type=read_offset, help="which of its messages")
    parser.add_argument(
        "--ttl",
        type=parse_duration,
        metavar="TIME",
        help="give it up after so long: 90s, 5m (default: only when it is ended)",
    )
    add_retries(parser, "3")
    add_holder_option(parser, "who works on it")


def _acquire(arguments: Namespace, out: Output) -> int:
    from leasehold.work.law.answers import AcquireOutcome
    from leasehold.work.shapes import acquired_shape

    with connected(arguments, create=True) as client:
        acquired = client.work.try_acquire(
            arguments.domain, arguments.offset, ttl=arguments.ttl, max_retries=arguments.max_retries
        )
    if out.as_json:
        out.json(acquired_shape(acquired))
    else:
        token = "" if acquired.token is None else f" {acquired.token}"
        out.line(f"{acquired.outcome.value}{token}")
    return 0 if acquired.outcome is AcquireOutcome.ACQUIRED else EXIT_NOT_ACQUIRED


def _add_succeed(group: Group) -> None:
    parser = group.add(
        "succeed",
        _succeed,
        "say that the offset in flight is processed",
        details=f"""\
Prints the outcome and, if there is a backlog, the offset at its head.

example:
  leasehold work succeed orders 4294967297

exit codes: {EXIT_CODES_OF_TOKENS}""",
    )
    add_domain(parser)
    _add_ending(parser)


def _succeed(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        ended = client.work.succeed(
            arguments.domain,
            arguments.token,
            hand_off=arguments.hand_off,
            on_mismatch="ignore" if arguments.ignore_mismatch else "raise",
        )
    _tell_end(out, ended, {})


def _tell_end(out: Output, ended: "Succeeded | Failed", facts: dict[str, Any]) -> None:
    from leasehold.work.shapes import acquired_shape

    acquired = ended.acquired
    if out.as_json:
        shape = {"outcome": ended.outcome.value, **facts, "next_offset": ended.next_offset}
        out.json(shape | {"acquired": None if acquired is None else acquired_shape(acquired)})
        return
    words = [ended.outcome.value, *(f"{name} {fact}" for name, fact in facts.items())]
    if ended.next_offset is not None:
        words.append(f"next_offset {ended.next_offset}")
    if acquired is not None:
        words.append(f"token {acquired.token}")
    out.line(" ".join(words))


def _add_fail(group: Group) -> None:
    parser = group.add(
        "fail",
        _fail,
        "say that an attempt at the offset in flight has failed",
        details=f"""\
The offset stays in flight, to be tried again, or is given up after its last retry.

example:
  leasehold work fail orders 4294967297 --reason "no answer from the bank"

exit codes: {EXIT_CODES_OF_TOKENS}""",
    )
    add_domain(parser)
    _add_ending(parser)
    parser.add_argument("--reason", metavar="TEXT", default="", help="why; history keeps it")
    add_retries(parser, "as it was acquired with")


def _fail(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        ended = client.work.fail(
            arguments.domain,
            arguments.token,
            reason=arguments.reason,
            max_retries=arguments.max_retries,
            hand_off=arguments.hand_off,
            on_mismatch="ignore" if arguments.ignore_mismatch else "raise",
        )
    _tell_end(out, ended, {"retry_count": ended.retry_count})


def _add_enqueue(group: Group) -> None:
    parser = group.add(
        "enqueue",
        _enqueue,
        "put offsets into the backlog",
        details="""\
In the order given, without those that are there already, in flight or terminal; up to 1,000 in one call.

examples:
  leasehold work enqueue orders 41 42 43
  leasehold work enqueue orders 100-199

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    add_domain(parser)
    parser.add_argument(
        "offsets", metavar="OFFSET", nargs="+", type=_offsets, help="an offset, or FIRST-LAST"
    )
    add_holder_option(parser, "who says so")


def _offsets(text: str) -> range:
    from leasehold.work.law.commands import ENQUEUE_OFFSETS

    first, dash, last = text.partition("-")
    begins, ends = read_offset(first), read_offset(last if dash else first)
    if not 0 <= ends - begins < ENQUEUE_OFFSETS:
        raise argparse.ArgumentTypeError(f"invalid range {text!r}: must have 1 to {ENQUEUE_OFFSETS} offsets")
    return range(begins, ends + 1)


def _enqueue(arguments: Namespace, out: Output) -> None:
    offsets = [offset for some in arguments.offsets for offset in some]
    with connected(arguments, create=True) as client:
        added = client.work.enqueue(arguments.domain, offsets)
    out.answer(
        {"domain": arguments.domain, "added": added},
        f"added {added} of {len(offsets)} to the backlog of {arguments.domain}",
    )
