"""The demo, chapter by chapter."""

import time
from itertools import pairwise
from pathlib import Path

from leasehold.cli.demo_parts.actors import Actors, Heard, NothingHeard
from leasehold.cli.demo_parts.line import stand_in_line
from leasehold.cli.demo_parts.narration import Story
from leasehold.cli.demo_parts.proof import certify, hand_on, tamper
from leasehold.cli.demo_parts.served import serve_others
from leasehold.cli.demo_parts.shelf import Shelf
from leasehold.cli.demo_parts.work import process_in_order
from leasehold.cli.demo_parts.worker import RESOURCE
from leasehold.cli.demo_parts.workflow import lead_a_workflow
from leasehold.cli.events import print_entries
from leasehold.cli.output import Output, counted
from leasehold.client.blocking.client import Client
from leasehold.client.connect import connect
from leasehold.engine.audit import audit
from leasehold.kernel.lease.events import LeaseExpired, LeaseIssued, LeaseReleased
from leasehold.kernel.ledger.chain import Entry
from leasehold.registry import FAMILIES
from leasehold.stores.sqlite import SqliteStore

_NAMES = ("ada", "ben", "cy", "dee")
_TTL = 2.0
_LOOK_EVERY_SECONDS = 0.05
_PATIENCE = 10.0
"""How long to wait for what should happen at once; a busy machine may need a while."""


def play(story: Story, out: Output, folder: Path) -> None:
    """Tell the whole story in a store in `folder`; stop where a claim fails that the rest builds on."""
    store, shelf = folder / "leases", Shelf(folder / "shelf.json")
    with connect(f"sqlite:///{store}") as client:
        story.heading("Leases with fencing tokens")
        story.say(f"A new store: {store}")
        try:
            with Actors(_NAMES, store=store, shelf=folder / "shelf.json", ttl=_TTL) as actors:
                _tell_the_story(story, actors, client, shelf)
            stand_in_line(story, f"sqlite:///{store}")
        except NothingHeard as error:
            story.claim(f"everybody answers in time ({error})", False)
        _check_history(story, out, client, store)
        hand_on(story, client, 7)
        certify(story, client, 8)
        process_in_order(story, client, 9)
        lead_a_workflow(story, f"sqlite:///{store}", 10)
        serve_others(story, client, store, 11)
        tamper(story, client, store, 12)


def _tell_the_story(story: Story, actors: Actors, client: Client, shelf: Shelf) -> None:
    first = _compete(story, actors, client)
    waiting = [name for name in _NAMES if name != first.worker]
    second = _survive_a_death(story, actors, first, waiting)
    waiting.remove(second.worker)
    third = _refuse_the_stale(story, actors, shelf, second, waiting)
    waiting.remove(third.worker)
    _hand_over(story, actors, client, third, waiting)


def _compete(story: Story, actors: Actors, client: Client) -> Heard:
    story.heading(f"1. Four processes want the same thing, {RESOURCE!r}")
    for _ in _NAMES:
        actors.wait_for(["ready"], _NAMES, timeout=_PATIENCE)
    for name in _NAMES:
        actors.tell(name, "go")
    answers = [actors.wait_for(["acquired", "refused"], _NAMES, timeout=_PATIENCE) for _ in _NAMES]
    winners = [heard for heard in answers if heard.event == "acquired"]
    losers = [heard for heard in answers if heard.event == "refused"]
    for heard in winners:
        story.say(f"{heard.worker} (process {actors.process_id(heard.worker)}) got it: {_token(heard)}.")
    for heard in losers:
        left = heard.facts["expires_in"]
        story.say(
            f"{heard.worker} was refused: {heard.facts['holder']} holds it for at most {left:.1f} s more."
        )
    standing = [status.lease.token for status in client.inspect(RESOURCE)]
    only_one = len(winners) == 1 and standing == [winners[0].facts["token"]]
    story.claim("exactly one of four got it, and the store says the same", only_one)
    if not winners:
        raise NothingHeard("nobody got the resource")
    named = {heard.facts["holder"] for heard in losers}
    story.claim("all others were told who has it", len(losers) == 3 and named == {winners[0].worker})
    renewed = _wait_for_renewal(client)
    story.claim(f"{winners[0].worker} keeps it: the lease was renewed in the background", renewed)
    return winners[0]


def _wait_for_renewal(client: Client) -> bool:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        if client.history(resource=RESOURCE, types=["lease.renewed"]):
            return True
        time.sleep(_LOOK_EVERY_SECONDS)
    return False


def _survive_a_death(story: Story, actors: Actors, dead: Heard, waiting: list[str]) -> Heard:
    story.heading(f"2. {dead.worker} is killed with SIGKILL, and can tell nobody")
    killed_at = time.monotonic()
    actors.kill(dead.worker)
    heir = actors.wait_for(["acquired"], waiting, timeout=_TTL + _PATIENCE)
    waited = time.monotonic() - killed_at
    story.say(f"The lease ran out, and {heir.worker} took over after {waited:.1f} s: {_token(heir)}.")
    story.claim(
        f"nobody had to clean up, and it took about the TTL of {_TTL:g} s", waited < _TTL + _PATIENCE / 2
    )
    story.claim(f"the new token is higher: {_order(dead, heir)}", heir.facts["token"] > dead.facts["token"])
    return heir


def _refuse_the_stale(story: Story, actors: Actors, shelf: Shelf, stale: Heard, waiting: list[str]) -> Heard:
    story.heading(f"3. {stale.worker} is paused (SIGSTOP) for longer than its lease, and then writes")
    actors.stop(stale.worker)
    heir = actors.wait_for(["acquired"], waiting, timeout=_TTL + _PATIENCE)
    story.say(f"Meanwhile {heir.worker} took over and wrote: {_token(heir)}.")
    story.claim(
        f"the token is higher again: {_order(stale, heir)}", heir.facts["token"] > stale.facts["token"]
    )
    actors.tell(stale.worker, "write")
    actors.go_on(stale.worker)
    story.say(
        f"{stale.worker} goes on, believes that it still holds the lease, and writes with its old token."
    )
    answer = actors.wait_for(["write refused", "wrote"], [stale.worker], timeout=_PATIENCE)
    refused = answer.event == "write refused" and answer.facts["highest"] == heir.facts["token"]
    story.claim(f"the resource refused it: {stale.facts['token']} is below {heir.facts['token']}", refused)
    text = shelf.look()
    story.claim(f"the resource still says: {text!r}", text == f"written by {heir.worker}")
    noticed = actors.wait_for(["lost", "still holds"], [stale.worker], timeout=_PATIENCE)
    story.claim(f"{stale.worker} has learnt that its lease is lost", noticed.event == "lost")
    return heir


def _hand_over(story: Story, actors: Actors, client: Client, giver: Heard, waiting: list[str]) -> None:
    story.heading(f"4. {giver.worker} gives it back, as a good holder does")
    released_at = time.monotonic()
    actors.tell(giver.worker, "release")
    heir = actors.wait_for(["acquired"], waiting, timeout=_PATIENCE)
    waited = time.monotonic() - released_at
    story.say(f"{heir.worker} has it after {waited * 1000:.0f} ms: {_token(heir)}.")
    story.claim("no waiting for the TTL after a clean release", waited < _TTL)
    actors.tell(heir.worker, "release")
    actors.wait_for(["released"], [heir.worker], timeout=_PATIENCE)
    story.claim("in the end nobody holds it", client.inspect(RESOURCE) == [])


def _check_history(story: Story, out: Output, client: Client, store: Path) -> None:
    story.heading("6. The history knows it all")
    entries = client.history(resource=RESOURCE)
    if not out.as_json:
        print_entries(out, [entry for entry in entries if entry.event.type != "lease.renewed"])
        renewals = sum(entry.event.type == "lease.renewed" for entry in entries)
        story.say(f"(and {counted(renewals, 'renewal')} in between)")
    tokens = [entry.event.token for entry in entries if isinstance(entry.event, LeaseIssued)]
    story.claim(
        f"{len(tokens)} grants, each with a higher token", _rise(tokens) and len(tokens) == len(_NAMES)
    )
    story.claim("at no moment did two of them hold it", _never_overlap(entries))
    opened = SqliteStore(store, create=False, families=FAMILIES)
    try:
        found = audit(opened)
    finally:
        opened.close()
    for problem in found.problems:
        story.say(problem)
    story.claim(
        f"all {found.entries} entries are chained and sealed, and replaying them gives what the tables say",
        not found.problems,
    )


def _token(heard: Heard) -> str:
    return f"token {heard.facts['token']}"


def _order(earlier: Heard, later: Heard) -> str:
    return f"{earlier.facts['token']} < {later.facts['token']}"


def _rise(tokens: list[int]) -> bool:
    return all(earlier < later for earlier, later in pairwise(tokens))


def _never_overlap(entries: list[Entry]) -> bool:
    """Say whether each grant came only after the one before it had ended."""
    holding: str | None = None
    for entry in entries:
        if isinstance(entry.event, LeaseIssued):
            if holding is not None:
                return False
            holding = entry.event.lease_id
        elif isinstance(entry.event, LeaseExpired | LeaseReleased):
            holding = None
    return True
