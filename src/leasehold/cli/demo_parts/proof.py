"""The second half of the demo: parts of a lease, proof for who cannot ask, and a history that was changed."""

from pathlib import Path

import apsw

from leasehold.certificates.errors import NotProven
from leasehold.certificates.verifying import verify_certificate
from leasehold.cli.demo_parts.narration import Story
from leasehold.cli.demo_parts.worker import RESOURCE
from leasehold.client.blocking.client import Client
from leasehold.client.blocking.lease import HeldLease
from leasehold.enforcing.enforcer import Enforcer
from leasehold.engine.audit import audit
from leasehold.errors import Refused
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.scope import Scope
from leasehold.registry import FAMILIES
from leasehold.stores.sqlite.backup import backup
from leasehold.stores.sqlite.inspecting import inspected

_CALLS = 10


def hand_on(story: Story, client: Client, number: int) -> None:
    """Show what a lease can give away of itself, and what not."""
    story.heading(f"{number}. A part of a lease is handed on, and never more than there is")
    scope, budget = Scope(tools=("read", "write")), Budget(tool_calls=_CALLS)
    with client.acquire("project", scope=scope, budget=budget, ttl=30) as project:
        part = project.derive("project/docs", scope=Scope(tools=("read",)), budget=Budget(tool_calls=4))
        part.spend(tool_calls=3)
        left = project.remaining_budget().tool_calls
        story.say(f"A child may read, with 4 of {_CALLS} calls, and has made 3. Its parent has {left} left.")
        story.claim("what it was given is set aside", left == _CALLS - 4)
        story.claim("it may read, and not write", part.allows(tool="read") and not part.allows(tool="write"))
        codes = [_refusal(part, 2), _refusal(project, _CALLS)]
        story.claim(f"nobody spends more than is left: {codes[0]}", codes == ["BUDGET_EXCEEDED"] * 2)
        part.release()
        left = project.remaining_budget().tool_calls
        story.claim(f"what it did not use came back: {left} are left", left == _CALLS - 3)
        orphan = project.derive("project/tests", budget=Budget(tool_calls=1))
    story.claim("a child ends with its parent", client.inspect(orphan.resource) == [])


def _refusal(lease: HeldLease, calls: int) -> str:
    try:
        lease.spend(tool_calls=calls)
    except Refused as error:
        return error.code
    return "nobody refused"


def certify(story: Story, client: Client, number: int) -> None:
    """Show a certificate to a resource that can ask nobody."""
    story.heading(f"{number}. A certificate proves a lease to somebody who cannot ask")
    gate = Enforcer(keys=client.certificate_keys().to_jwks())
    with client.acquire("vault", ttl=30) as lease:
        text = lease.certificate()
        story.say(
            f"{len(text)} characters, signed by the registrar; the vault has its public key, and no more."
        )
        proven = verify_certificate(text, keys=client.certificate_keys(), resource="vault")
        story.claim(
            "it says who holds the lease", (proven.holder, proven.token) == (lease.holder, lease.token)
        )
        story.claim("its holder is let in", _admitted(gate, text, "vault") == "let in")
        forged = f"{text[:-6]}{'AAAAAA' if text[-6:] != 'AAAAAA' else 'BBBBBB'}"
        answer = _admitted(gate, forged, "vault")
        story.claim(f"a forged one is not: {answer}", answer == "CERTIFICATE_FORGED")
        answer = _admitted(gate, text, "garden")
        story.claim(f"nor is one for something else: {answer}", answer == "CERTIFICATE_RESOURCE")
    with client.acquire("vault", ttl=30) as heir:
        newer = _admitted(gate, heir.certificate(), "vault")
        answer = _admitted(gate, text, "vault")
        story.claim(
            f"once the next holder was there, the first is refused: {answer}",
            (newer, answer) == ("let in", "STALE_TOKEN"),
        )


def _admitted(gate: Enforcer, text: str, resource: str) -> str:
    try:
        gate.admit(text, resource)
    except NotProven as error:
        return error.code
    return "let in"


def tamper(story: Story, client: Client, store: Path, number: int) -> None:
    """Change the history of a copy, as somebody might who can write the file."""
    story.heading(f"{number}. Somebody writes another name into the history")
    entries = client.history(resource=RESOURCE, limit=1)
    if not entries:
        story.claim("there is a history to be changed", False)
        return
    first, copy = entries[0], store.with_name("copy.db")
    holder = first.event.actor
    backup(store, copy)
    connection = apsw.Connection(str(copy))
    connection.execute(
        "UPDATE events SET body = replace(body, ?1, 'eve'), holder = 'eve' WHERE position = ?2",
        (holder, first.position),
    )
    connection.execute("UPDATE leases SET holder = 'eve' WHERE lease_id = ?", (first.event.keys[0],))
    connection.close()
    story.say(f"In a copy of the store, it was eve and not {holder} who got {RESOURCE!r} first.")
    with inspected(copy, families=FAMILIES) as changed:
        found = audit(changed)
    story.claim(
        f"verify finds it, and names the entry: {first.position}",
        found.first_bad == first.position and bool(found.problems),
    )
    for problem in found.problems[:1]:
        story.say(f"({problem})")
