"""The command line.

- ``entry``       from arguments to an exit code; what errors look like
- ``parser``      the commands, their options, and suggestions for those that do not exist
- ``connecting``  which store, and who is asking; ``naming``: which lease is meant
- ``asking``      what is asked for when a lease is to be taken
- ``claims``      acquire, renew
- ``endings``     release, revoke, sweep
- ``changes``     transfer, upgrade, downgrade
- ``delegating``  derive, spend
- ``looking``     ls, show                     - ``closings``  why the registrar keeps a resource closed
- ``queues``      queue                        - ``top``       top, on its own ``screen``
- ``events``      history, watch
- ``running``     run: a lease around another command
- ``certificates``  certificate
- ``serving``     serve: a registrar for other machines
- ``ledger``      verify, head, rebuild, keys  - ``pruning``   prune
- ``upkeep``      backup, restore              - ``sqlite_file``  what only a store in a file has
- ``doctor``      what could be wrong with a store (``checks``), and what to do about it
- ``demo``        watch processes compete, die and take over
- ``output``      what people see              - ``progress``  how far a long command has got
- ``durations``   how people write times       - ``processes`` what /proc says about who holds a lease

`leasehold --help` has to be quick: what a command needs is imported when it runs.
"""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["guard"]:
        # Hooks run it all the time, and the parser of the command line is half of what that would take.
        from leasehold.guards.quick import main as answer

        code = answer(given[1:])
        if code is not None:
            return code
    from leasehold.cli.entry import main as run

    return run(given)
