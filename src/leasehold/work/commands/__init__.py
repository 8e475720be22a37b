"""leasehold work: offsets of domains, one at a time and in order.

- ``looking``    ls, show, failed
- ``changing``   acquire, succeed, fail, enqueue
- ``keeping``    keep-alive, give-back
- ``bounds``     start-at, watermark
- ``consume``    a command for each offset; ``launcher``: the parent of those commands
"""

from leasehold.cli.parser import Commands
from leasehold.work.commands import bounds, changing, consume, keeping, looking


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    group = commands.add_group(
        "work",
        "process the offsets of a domain one at a time, in order",
        details="""\
A domain is a stream of numbered messages. One of its offsets is in flight at a time; the others queue up, and
each ends once, as processed or as failed.

examples:
  leasehold work acquire orders 41
  leasehold work succeed orders 4294967297
  leasehold work show orders""",
    )
    for module in (looking, changing, keeping, bounds, consume):
        module.add_commands(group)
