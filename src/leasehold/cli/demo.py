"""demo: real processes compete for a resource, one is killed, one is paused, and the history is checked.

Then a part of a lease is handed on, a lease is proved to somebody who cannot ask, messages are processed in
order, one of two coding agents is refused a file, a server lets other machines in, and a forger is found out.

Everything happens in a new store in a temporary folder, which is gone afterwards. The exit code is 0 only
if every claim that was made has held.
"""

import time
from argparse import Namespace
from pathlib import Path

from leasehold.cli.output import Output
from leasehold.cli.parser import Commands
from leasehold.errors import EXIT_ERROR


def add_commands(commands: Commands) -> None:
    """Add the command of this module."""
    commands.add(
        "demo",
        _demo,
        "watch processes compete, die and take over",
        details="""\
Takes a few seconds, touches no store of yours, and checks each claim that it makes.

example:
  leasehold demo

exit codes: 0 every claim held · 1 one did not""",
    )


def _demo(arguments: Namespace, out: Output) -> int:
    import tempfile

    from leasehold.cli.demo_parts.narration import Story
    from leasehold.cli.demo_parts.play import play

    story = Story(out)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="leasehold-demo-") as folder:
        play(story, out, Path(folder))
    seconds = time.monotonic() - began
    if out.as_json:
        claims = [claim._asdict() for claim in story.claims]
        out.json({"ok": story.holds, "claims": claims, "seconds": round(seconds, 1)})
    else:
        failed = sum(not claim.held for claim in story.claims)
        verdict = f"{failed} did not hold" if failed else "every one held"
        out.line()
        out.line(f"{len(story.claims)} claims in {seconds:.1f} s: {verdict}")
    return 0 if story.holds else EXIT_ERROR
