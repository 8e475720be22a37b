"""leasehold work start-at, watermark: where a domain begins, and up to where it is done."""

from argparse import Namespace

from leasehold.cli.connecting import add_holder_option, connected
from leasehold.cli.output import Output
from leasehold.cli.parser import Group
from leasehold.work.commands.arguments import add_domain, read_offset


def add_commands(group: Group) -> None:
    """Add the commands of this module."""
    _add_start_at(group)
    _add_watermark(group)


def _add_start_at(group: Group) -> None:
    parser = group.add(
        "start-at",
        _start_at,
        "let every offset below one count as processed",
        details="""\
For a stream that does not begin at 0, or has a gap: without it the watermark stays below what is missing. The
start never goes back, and cannot pass what is in flight or in the backlog.

example:
  leasehold work start-at orders 1000

exit codes: 0 done · 1 something below is in flight or in the backlog, or another error · 2 wrong usage""",
    )
    add_domain(parser)
    parser.add_argument(
        "offset", metavar="OFFSET", type=read_offset, help="the first that is to be processed"
    )
    add_holder_option(parser, "who says so")


def _start_at(arguments: Namespace, out: Output) -> None:
    with connected(arguments, create=True) as client:
        start = client.work.start_at(arguments.domain, arguments.offset)
    out.answer({"domain": arguments.domain, "start": start}, f"{arguments.domain} starts at {start}")


def _add_watermark(group: Group) -> None:
    parser = group.add(
        "watermark",
        _watermark,
        "print below which offset everything is processed or given up",
        details="""\
What to commit upstream: the log or queue that messages come from need not deliver anything below it again.

example:
  leasehold work watermark orders

exit codes: 0 done (a domain that nobody has used is at 0) · 1 error · 2 wrong usage""",
    )
    add_domain(parser)


def _watermark(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        watermark = client.work.watermark(arguments.domain)
    out.answer({"domain": arguments.domain, "watermark": watermark}, str(watermark))
