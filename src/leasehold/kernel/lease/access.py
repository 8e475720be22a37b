"""Whether a lease allows something. A question about its scope: whether it still stands is another one."""

from typing import Any

from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.limits import RESOURCE_BYTES, check_text, invalid
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode


def check_access(
    lease: Lease, *, work_id: str | None = None, tool: str | None = None, namespace: str | None = None
) -> Refusal | None:
    """Refuse an access that a lease does not allow in every part; a plain lease allows nothing."""
    asked = {"work_id": work_id, "tool": tool, "namespace": namespace}
    named: dict[str, Any] = {field: name for field, name in asked.items() if name is not None}
    if not named:
        return invalid("access", "must name a work id, a tool or a namespace")
    for field, name in named.items():
        if not isinstance(name, str):
            return invalid(field, "must be text")
        refusal = check_text(field, name, RESOURCE_BYTES)
        if refusal is not None:
            return refusal
    scope = Scope() if lease.delegation is None else lease.delegation.scope
    denied = scope.denies(**named)
    if denied is None:
        return None
    return Refusal(
        code=RefusalCode.SCOPE_DENIED,
        lease_id=lease.lease_id,
        resource=lease.resource,
        holder=lease.holder,
        detail=denied,
    )
