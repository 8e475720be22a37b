"""An event-sourced lease registrar: the projection of lease events, for ledgers of one's own.

The contract's names, in Python's spelling. What an event does to a lease is the kernel's business; this
package gives it the contract's events, checks, errors and questions.

- ``reducer``     the fold itself, with checkpoints
- ``rules``       what each event has to fulfil, in order      - ``ledger``  the same for a store's own events
- ``state``       what can be asked of the leases               - ``lease``   what a lease is here
- ``payloads``    events as bytes                               - ``helpers`` makes such bytes
- ``checkpoint``  the state as bytes
"""

from leasehold.reducer import helpers
from leasehold.reducer.errors import (
    DecodeError,
    InvalidExpiration,
    InvalidInput,
    InvalidLeaseState,
    InvalidReleaseReason,
    InvalidSignature,
    LeaseAlreadyExists,
    LeaseAlreadyTerminal,
    LeaseError,
    LeaseExpired,
    LeaseNotFound,
    MissingSignature,
    RenewalDoesNotExtend,
    Unauthorized,
    WorkAlreadyLeased,
)
from leasehold.reducer.lease import HtfTick, Lease, LeaseSummary
from leasehold.reducer.ledger import record_of, sealed_records
from leasehold.reducer.payloads import EventRecord, ReducerContext
from leasehold.reducer.reducer import LeaseReducer
from leasehold.reducer.state import LeaseReducerState
from leasehold.reducer.words import LeaseState, ReleaseReason

__all__ = [
    "DecodeError",
    "EventRecord",
    "HtfTick",
    "InvalidExpiration",
    "InvalidInput",
    "InvalidLeaseState",
    "InvalidReleaseReason",
    "InvalidSignature",
    "Lease",
    "LeaseAlreadyExists",
    "LeaseAlreadyTerminal",
    "LeaseError",
    "LeaseExpired",
    "LeaseNotFound",
    "LeaseReducer",
    "LeaseReducerState",
    "LeaseState",
    "LeaseSummary",
    "MissingSignature",
    "ReducerContext",
    "ReleaseReason",
    "RenewalDoesNotExtend",
    "Unauthorized",
    "WorkAlreadyLeased",
    "helpers",
    "record_of",
    "sealed_records",
]
