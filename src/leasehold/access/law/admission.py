"""What a key lets its bearer ask, by how the key stands at the moment of the decision.

Whatever is asked says which right it takes (`kernel.ledger.commands.Right`); what nobody has classified takes
the highest. A key that is bound to holders is refused every change that does not name one of them as its
holder. No key lets its bearer ask in the registrar's own name.
"""

from collections.abc import Collection
from typing import Any

from leasehold.access.law.commands import WILDCARD
from leasehold.access.law.model import ACCESS, AccessRecord, Role, record_key
from leasehold.access.law.rules import refused
from leasehold.kernel.ledger.commands import Caller, Right
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.records import Keys, Wanted
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.view import View

_NAMES = ("holder", "operator", "actor")
"""Fields that say who asks."""

NOT_AUTHENTICATED = refused(
    "NOT_AUTHENTICATED", "this access key is not known, or not any more; ask an admin for another"
)


def admits(caller: Caller, asked: Any, draft: Draft) -> Refusal | None:
    """Refuse a caller whose key does not stand, or does not allow what is asked."""
    if not caller.access:
        return None
    record: AccessRecord | None = draft.get(ACCESS, record_key(caller.access))
    if record is None or not record.takes(caller.generation, draft.now):
        return NOT_AUTHENTICATED
    if caller.tenant != (record.tenant or None):
        return NOT_AUTHENTICATED  # It was let in as somebody else than this key's bearer.
    if record.role.right < asked.right:
        needed = next(role for role in Role if role.right >= asked.right)
        return _not_permitted(
            f"the role of this access key is {record.role}, and that needs {needed}; ask an admin for one"
        )
    if any(getattr(asked, field, None) == REGISTRAR for field in _NAMES):
        return _not_permitted(f"{REGISTRAR!r} is the registrar's own name in history; give your own")
    if record.holders and asked.right > Right.LOOK and not _acts_as_one_of(record.holders, asked):
        names = ", ".join(record.holders)
        return _not_permitted(f"this access key is bound to the holders {names}; name one as the holder")
    return None


def knows(callers: Collection[Caller], view: View) -> Keys | None:
    """Return the keys that callers have shown, and the view lacks."""
    known = view.parts[ACCESS].records
    keys = {record_key(caller.access) for caller in callers if caller.access} - known.keys()
    return Keys(families={ACCESS: Wanted(keys=keys)}) if keys else None


def _acts_as_one_of(holders: tuple[str, ...], asked: Any) -> bool:
    """Say whether who asks is one of these; what does not say who asks is not."""
    name = getattr(asked, "holder", None)
    return isinstance(name, str) and any(_covers(one, name) for one in holders)


def _covers(holder: str, name: str) -> bool:
    if holder.endswith(WILDCARD):
        return name.startswith(holder.removesuffix(WILDCARD))
    return name == holder


def _not_permitted(detail: str) -> Refusal:
    return refused("NOT_PERMITTED", detail)
