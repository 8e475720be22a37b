"""leasehold work keep-alive, give-back: what is done with the offset in flight besides ending it."""

from argparse import ArgumentParser, Namespace

from leasehold.cli.connecting import add_holder_option, connected
from leasehold.cli.durations import format_duration, parse_duration
from leasehold.cli.output import Output
from leasehold.cli.parser import Group
from leasehold.work.commands.arguments import EXIT_CODES_OF_TOKENS, add_domain, add_token


def add_commands(group: Group) -> None:
    """Add the commands of this module."""
    _add_keep_alive(group)
    _add_give_back(group)


def _add_keep_alive(group: Group) -> None:
    parser = group.add(
        "keep-alive",
        _keep_alive,
        "give the offset in flight more time",
        details=f"""\
An offset that was acquired with a TTL goes back to the backlog when that is over, and its attempt counts as a
failed one. Whoever works for longer says so in time, again and again: every third of the TTL is usual.

examples:
  leasehold work keep-alive orders 4294967297
  leasehold work keep-alive orders 4294967297 --ttl 10m

exit codes: {EXIT_CODES_OF_TOKENS}""",
    )
    _add_domain_and_token(parser)
    parser.add_argument(
        "--ttl",
        type=parse_duration,
        metavar="TIME",
        help="for so long from now: 90s, 5m (default: the TTL it was acquired with)",
    )


def _keep_alive(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        kept = client.work.keep_alive(arguments.domain, arguments.token, ttl=arguments.ttl)
    if out.as_json:
        out.json({"domain": arguments.domain, "expires_in": kept.expires_in})
    elif kept.expires_in is None:
        out.line(f"the offset in flight of {arguments.domain} has no TTL: it stays until it is ended")
    else:
        out.line(f"kept alive: {format_duration(kept.expires_in)} left")


def _add_give_back(group: Group) -> None:
    parser = group.add(
        "give-back",
        _give_back,
        "let the offset in flight go back to the head of the backlog",
        details=f"""\
For whoever has to stop before it is done. It does not count as a failed attempt, and whoever comes next has
to acquire that offset first.

example:
  leasehold work give-back orders 4294967297

exit codes: {EXIT_CODES_OF_TOKENS}""",
    )
    _add_domain_and_token(parser)


def _give_back(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        offset = client.work.give_back(arguments.domain, arguments.token)
    out.answer(
        {"domain": arguments.domain, "offset": offset},
        f"gave back offset {offset} of {arguments.domain}; it is at the head of the backlog",
    )


def _add_domain_and_token(parser: ArgumentParser) -> None:
    add_domain(parser)
    add_token(parser)
    add_holder_option(parser, "who says so")
