"""One command, decided.

It is admitted (a caller bound to a tenant acts for no other, a local one may ask everything), its rule is
asked, what follows from it settles, and the answer is made last. A command that is refused has changed
nothing.
"""

from collections.abc import Callable
from typing import Any

from leasehold.kernel.ledger.commands import LOCAL, Caller, Command, Sweep, SweepDue, Swept, SweptDue
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.family import Rule
from leasehold.kernel.ledger.records import Missing
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode


def decide(command: Command, caller: Caller, draft: Draft) -> Any:
    """Return the answer to a well-formed command, or a refusal; its events are in the draft then.

    Raises `Missing`, and leaves nothing of the command in the draft, when the view lacks a record it needs.
    """
    draft.begin(caller)
    rule = draft.view.families.rules.get(type(command)) or _RULES_OF_ALL[type(command)]
    try:
        refusal = None if caller is LOCAL else _trespass(command, caller) or barred(command, caller, draft)
        made = refusal or rule(command, draft)
        if isinstance(made, Refusal):
            draft.undo()
            return made
        while True:
            draft.settle()
            if not callable(made):
                return made
            known = len(draft.events)
            answer = made()
            if isinstance(answer, Refusal):
                draft.undo()
                return answer
            if len(draft.events) == known:  # Else to look has shown that time has done something.
                return answer
    except Missing:
        draft.undo()
        raise


def barred(asked: Any, caller: Caller, draft: Draft) -> Refusal | None:
    """Ask every family whether it admits a caller who is not local; return the first refusal."""
    refusals = (admits(caller, asked, draft) for admits in draft.view.families.admitting)
    return next(filter(None, refusals), None)


def _trespass(command: Command, caller: Caller) -> Refusal | None:
    """Refuse what a caller bound to a tenant asks of another one, or of all of them."""
    tenant = caller.tenant
    if tenant is None:
        return None
    if isinstance(command, Sweep | SweepDue):
        detail = f"sweeping is for operators, and this caller is bound to tenant {tenant}; ask an operator"
    elif command.tenant != tenant:
        detail = f"this access key cannot act for tenant {command.tenant}: it {caller.bound}"
    else:
        return None
    return Refusal(code=RefusalCode.REFUSED, rule="NOT_PERMITTED", detail=detail)


def _sweep(command: Sweep, draft: Draft) -> Swept | Callable[[], Swept]:
    """Record what time has done to one record."""
    kind, part = draft.view.families.named[command.family], draft.view.parts[command.family]
    record = part.get(command.key)
    if record is None or not draft.is_stale(kind, record):
        return Swept(ended=False)
    kind.age(command.key, record, draft)

    def answer() -> Swept:
        left = part.get(command.key)
        return Swept(ended=left is None or kind.due(left) is None)

    return answer


def _sweep_due(command: SweepDue, draft: Draft) -> SweptDue:
    """Let it be done: what is due, the engine knows, and has it swept record by record."""
    del command, draft
    return SweptDue(ended=0)


_RULES_OF_ALL: dict[type[Command], Rule] = {Sweep: _sweep, SweepDue: _sweep_due}
"""For commands that are of no family, because they are about records of any."""
