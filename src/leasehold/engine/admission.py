"""Whether a caller may ask a question, or have a job done.

Decided by the families, as for commands (`kernel.ledger.decide`), and against what the store says of the
caller in the very snapshot that the question is answered from. A local caller may ask everything, and nothing
is read for it.
"""

from typing import Any

from leasehold.engine.port import Snapshot
from leasehold.errors import StoreUnusable, error_of
from leasehold.kernel.ledger.authority import now_of
from leasehold.kernel.ledger.commands import LOCAL, Caller
from leasehold.kernel.ledger.decide import barred
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.records import Missing
from leasehold.kernel.ledger.view import View


def admit(caller: Caller, asked: Any, snapshot: Snapshot) -> None:
    """Raise why a caller may not ask that; `asked` is a question or a job."""
    if caller is LOCAL:
        return
    authority = snapshot.authority
    if authority is None:
        raise StoreUnusable("nobody has used this store yet, so it knows no caller; open it at the registrar")
    view = View(snapshot.families, authority)
    draft = Draft(view, now_of(authority, snapshot.reading()))
    while True:
        try:
            refusal = barred(asked, caller, draft)
            break
        except Missing as missing:
            view.load(missing.keys, snapshot.read(missing.keys))
    if refusal is not None:
        raise error_of(refusal)
