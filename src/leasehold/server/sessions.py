"""The desks that routes speak to: one for each caller, on the server's own registrar.

A key that is bound to a tenant acts for that one. A key for all tenants says which it means, in the header
`Leasehold-Tenant`; without it, `default`. Sessions are kept for who asks often; nothing is lost with one.
"""

from collections import OrderedDict
from collections.abc import Callable

from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import name
from leasehold.enforcing.asgi import Scope
from leasehold.engine.desk import Desk
from leasehold.errors import NotPermitted
from leasehold.kernel.ledger.commands import Caller
from leasehold.server.identity import Identity

TENANT = "leasehold.tenant"
"""Where the tenant that a request is about is in its scope."""
TENANT_HEADER = "Leasehold-Tenant"
_TENANT_HEADER = TENANT_HEADER.lower().encode()
_TENANT_USUAL = "default"
_SESSIONS_MAXIMUM = 1_000


class Sessions:
    """What callers speak to the registrar through."""

    def __init__(self, desk_for: Callable[[Caller], Desk], identity: Identity) -> None:
        self._desk_for = desk_for
        self._identity = identity
        self._known: OrderedDict[tuple[Caller, str], AsyncSession] = OrderedDict()

    def of(self, scope: Scope) -> AsyncSession:
        """Return the session of who sends a request; raise why it gets none."""
        caller = self._identity.caller_of(scope)
        tenant = _tenant_of(caller, scope)
        scope[TENANT] = tenant
        session = self._known.pop((caller, tenant), None)
        if session is None:
            session = AsyncSession(self._desk_for(caller), tenant=tenant, holder=caller.access or None)
        self._known[caller, tenant] = session
        if len(self._known) > _SESSIONS_MAXIMUM:
            self._known.popitem(last=False)
        return session


def _tenant_of(caller: Caller, scope: Scope) -> str:
    """Return the tenant that a request is about."""
    said = next((value for header, value in scope["headers"] if header == _TENANT_HEADER), None)
    wanted = None if said is None else name(TENANT_HEADER, said.decode("utf-8", "surrogateescape"))
    if caller.tenant is None:
        return wanted or _TENANT_USUAL
    if wanted not in (None, caller.tenant):
        raise NotPermitted(
            f"this access key is bound to tenant {caller.tenant}; leave {TENANT_HEADER} out, or use a key "
            "for that tenant"
        )
    return caller.tenant
