"""Who owns this right now, until when, and can they prove it?

import leasehold

with leasehold.connect() as leases:
    with leases.acquire("report-42", ttl=30) as lease:
        write(report, fence=lease.token)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leasehold.certificates.certificate import Certificate
    from leasehold.certificates.errors import NotProven, StaleToken
    from leasehold.certificates.keys import TrustedKeys
    from leasehold.certificates.verifying import verify_certificate
    from leasehold.client.aio.client import AsyncClient
    from leasehold.client.aio.connect import connect_async
    from leasehold.client.aio.lease import AsyncHeldLease
    from leasehold.client.aio.leases import AsyncHeldLeases
    from leasehold.client.blocking.client import Client
    from leasehold.client.blocking.lease import HeldLease
    from leasehold.client.blocking.leases import HeldLeases
    from leasehold.client.connect import connect
    from leasehold.client.inputs import Duration, Page
    from leasehold.engine.questions import LeaseStatus, Waiter
    from leasehold.errors import (
        AlreadyHeld,
        AlreadyWaiting,
        BudgetExceeded,
        BudgetExhausted,
        ClientClosed,
        Deadlock,
        Held,
        HistoryPruned,
        InvalidInput,
        JobCancelled,
        JobUnknown,
        LeaseExists,
        LeaseExpired,
        LeaseholdError,
        LeaseLost,
        LeaseNotFound,
        LeasePending,
        LeaseTerminal,
        LedgerBroken,
        LimitExceeded,
        NotAcquired,
        NotAuthenticated,
        NothingGranted,
        NotHolder,
        NotPermitted,
        OutlivesParent,
        RateLimited,
        Refused,
        RenewalDoesNotExtend,
        RenewalsExhausted,
        ReplyLost,
        ScopeDenied,
        ScopeExceeded,
        ServerUnreachable,
        StoreBusy,
        StoreDamaged,
        StoreError,
        StoreFailed,
        StoreFull,
        StoreRejected,
        StoreReplaced,
        StoreUnusable,
        UnknownTime,
        WaitTimeout,
        WrongProcess,
    )
    from leasehold.kernel.lease.budget import Budget
    from leasehold.kernel.lease.model import (
        Lease,
        LeaseState,
        Mode,
        ReleaseReason,
    )
    from leasehold.kernel.lease.scope import Scope
    from leasehold.kernel.ledger.chain import Entry
    from leasehold.kernel.ledger.events import Token

__version__ = "0.1.0"

__all__ = [
    "AlreadyHeld",
    "AlreadyWaiting",
    "AsyncClient",
    "AsyncHeldLease",
    "AsyncHeldLeases",
    "Budget",
    "BudgetExceeded",
    "BudgetExhausted",
    "Certificate",
    "Client",
    "ClientClosed",
    "Deadlock",
    "Duration",
    "Entry",
    "Held",
    "HeldLease",
    "HeldLeases",
    "HistoryPruned",
    "InvalidInput",
    "JobCancelled",
    "JobUnknown",
    "Lease",
    "LeaseExists",
    "LeaseExpired",
    "LeaseLost",
    "LeaseNotFound",
    "LeasePending",
    "LeaseState",
    "LeaseStatus",
    "LeaseTerminal",
    "LeaseholdError",
    "LedgerBroken",
    "LimitExceeded",
    "Mode",
    "NotAcquired",
    "NotAuthenticated",
    "NotHolder",
    "NotPermitted",
    "NotProven",
    "NothingGranted",
    "OutlivesParent",
    "Page",
    "RateLimited",
    "Refused",
    "ReleaseReason",
    "RenewalDoesNotExtend",
    "RenewalsExhausted",
    "ReplyLost",
    "Scope",
    "ScopeDenied",
    "ScopeExceeded",
    "ServerUnreachable",
    "StaleToken",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreFailed",
    "StoreFull",
    "StoreRejected",
    "StoreReplaced",
    "StoreUnusable",
    "Token",
    "TrustedKeys",
    "UnknownTime",
    "WaitTimeout",
    "Waiter",
    "WrongProcess",
    "connect",
    "connect_async",
    "verify_certificate",
]

# Where to find what is no error. All of it is loaded when it is first asked for: commands and hooks are run
# all the time, and need a small part of it.
_MODULES = {
    "leasehold.certificates.certificate": ("Certificate",),
    "leasehold.certificates.errors": ("NotProven", "StaleToken"),
    "leasehold.certificates.keys": ("TrustedKeys",),
    "leasehold.certificates.verifying": ("verify_certificate",),
    "leasehold.client.aio.client": ("AsyncClient",),
    "leasehold.client.aio.connect": ("connect_async",),
    "leasehold.client.aio.lease": ("AsyncHeldLease",),
    "leasehold.client.aio.leases": ("AsyncHeldLeases",),
    "leasehold.client.blocking.client": ("Client",),
    "leasehold.client.blocking.lease": ("HeldLease",),
    "leasehold.client.blocking.leases": ("HeldLeases",),
    "leasehold.client.connect": ("connect",),
    "leasehold.client.inputs": ("Duration", "Page"),
    "leasehold.engine.questions": ("LeaseStatus", "Waiter"),
    "leasehold.kernel.lease.budget": ("Budget",),
    "leasehold.kernel.lease.model": ("Lease", "LeaseState", "Mode", "ReleaseReason"),
    "leasehold.kernel.lease.scope": ("Scope",),
    "leasehold.kernel.ledger.chain": ("Entry",),
    "leasehold.kernel.ledger.events": ("Token",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_HOMES.get(name, "leasehold.errors")), name)
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
