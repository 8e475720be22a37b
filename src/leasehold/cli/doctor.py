"""doctor: is everything in order with this machine and this store, and if not, what to do?

It changes no store at hand, and it does not wait for anybody: a writer that keeps all others waiting is one
of the things it is there to find.
"""

from argparse import Namespace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from leasehold.cli.output import Output
from leasehold.cli.parser import Commands
from leasehold.cli.progress import Progress
from leasehold.cli.sqlite_file import server_of, store_path
from leasehold.errors import EXIT_ERROR

if TYPE_CHECKING:
    from leasehold.cli.checks import Finding

_VERDICT_WIDTH, _CHECK_WIDTH = 7, 11


def add_commands(commands: Commands) -> None:
    """Add the command of this module."""
    commands.add(
        "doctor",
        _doctor,
        "check this machine and the store, and say what to do",
        details="""\
Checks the SQLite library, the file system, permissions, the store's files, the schema, the clock, whether a
writer keeps everybody waiting, the storage (SQLite's pages, each index against its table, and that the
schema has nothing that leasehold did not make), and the whole ledger: that its chain is unbroken, that the
tables say what it says, and that no invariant is violated. If `leasehold guard install` has put hooks into
the repository that you are in, each is made to refuse a file, in a store made for that. Changes nothing.

Of a server it checks that it answers, and has the hooks prove themselves against it, by leases on files that
do not exist, released at once. Its store is checked where the server runs, with --store and the folder.

example:
  leasehold doctor --store /srv/leases

exit codes: 0 all is well · 1 a problem was found, or an error · 2 wrong usage""",
    )


def _doctor(arguments: Namespace, out: Output) -> int:
    from leasehold.cli.checks import examine, examine_hooks, examine_server

    progress = Progress("checking", out)
    server = server_of(arguments)
    place = server or str(store_path(arguments))
    found = examine_server(server) if server else examine(Path(place), progress)
    findings = []
    for finding in chain(found, examine_hooks(server, arguments.tenant)):
        progress.clear()
        findings.append(finding)
        if not out.as_json:
            _print(out, finding)
    well = all(finding.ok for finding in findings)
    out.answer(
        {"ok": well, "store": place, "checks": [finding._asdict() for finding in findings]},
        "all is well" if well else "something needs your attention",
    )
    return 0 if well else EXIT_ERROR


def _print(out: Output, finding: "Finding") -> None:
    verdict = ("OK", "green") if finding.ok else ("PROBLEM", "red")
    out.row([verdict, finding.check, finding.detail], [_VERDICT_WIDTH, _CHECK_WIDTH])
    if finding.advice is not None:
        out.line(f"{' ' * (_VERDICT_WIDTH + 2)}→ {finding.advice}")
