"""One command decided as the registrar decides it, and undone again.

So a test can ask what would follow, as often as it likes, and every test that does so also shows that a
decision is undone without a trace.
"""

from typing import Any

from leasehold.kernel.lease.answers import Answer
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.family import lease_family, lease_part
from leasehold.kernel.lease.path_index import PathIndex
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.lease.waiting_line import WaitingLine
from leasehold.kernel.ledger import decide as deciding
from leasehold.kernel.ledger.authority import Authority
from leasehold.kernel.ledger.commands import LOCAL, Command, Swept
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import Now
from leasehold.kernel.ledger.view import View


def lease_view(authority: Authority, quotas: Quotas | None = None) -> LeaseView:
    """An empty view of a ledger that has leases only."""
    return lease_part(View(Families((lease_family(quotas),)), authority))


def decide(command: Command, view: LeaseView, now: Now) -> Decision | Refusal:
    """What follows from a command; the view is as it was before."""
    draft = Draft(view.ledger, now)
    decided = _decided(command, view, draft)
    draft.undo()
    return decided


def decide_for_good(command: Command, view: LeaseView, now: Now) -> Decision | Refusal:
    """What follows from a command, decided twice, because the first time is undone; the view has it."""
    draft = Draft(view.ledger, now)
    before = contents(view)
    expected = _decided(command, view, draft)
    left = contents(view)
    draft.undo()
    assert contents(view) == before, "what was undone leaves no trace"
    decided = _decided(command, view, draft)
    assert decided == expected, "that it was undone once must make no difference"
    assert contents(view) == left, "that it was undone once must make no difference to what is left"
    return decided


def _decided(command: Command, view: LeaseView, draft: Draft) -> Decision | Refusal:
    draft.begin()
    refusal = view.ledger.families.check(command)
    if refusal is not None:
        return refusal
    known = {change.key: change.after for change in view.ledger.changes()}
    answer = deciding.decide(command, LOCAL, draft)
    if isinstance(answer, Refusal):
        assert not draft.events, "who is refused has changed nothing"
        return answer
    changed = [change.after for change in view.ledger.changes() if known.get(change.key) is not change.after]
    events: list[Any] = draft.events
    return Decision(events=events, leases=changed, answer=answer, wakes=draft.wakes)


def outcome(decided: Decision | Refusal) -> Answer | Swept | Refusal:
    """What whoever has asked is told."""
    answer: Any = decided if isinstance(decided, Refusal) else decided.answer
    assert isinstance(answer, Answer | Swept | Refusal)
    return answer


def contents(view: LeaseView) -> dict[str, object]:
    """Everything that a view says, copied. Empty shelves are left out, and so is what would undo it."""
    apart = {"ledger", "journal", "_journal", "families", "parts"}
    said = vars(view.ledger) | {f"lease {name}": value for name, value in vars(view).items()}
    return {name: _copied(value) for name, value in said.items() if name.split()[-1] not in apart}


def _copied(value: object) -> object:
    match value:
        case WaitingLine():
            return {} if not value else (tuple(value.places), dict(value.leases))
        case PathIndex():
            return _copied(vars(value))
        case dict():
            copied = {name: _copied(one) for name, one in value.items()}
            return {name: one for name, one in copied.items() if one not in ({}, [], set())}
        case set() | list():
            return value.copy()
        case _:
            return value
