"""Leases on files: who may change what, in a tree that several agents and people work in.

The face hangs on a client as `leases.files`; here are the values that it takes and returns.
"""

from leasehold.files.names import FileName, name_of
from leasehold.files.values import (
    FileLease,
    LeaseAcquisitionRequest,
    LeaseAcquisitionResponse,
    LeaseEvent,
    LeaseReleaseRequest,
    LeaseReleaseResponse,
    LeaseRenewalRequest,
    LeaseRenewalResponse,
    LeaseStatus,
    LeaseTransferRequest,
    LeaseUpgradeRequest,
)

__all__ = [
    "FileLease",
    "FileName",
    "LeaseAcquisitionRequest",
    "LeaseAcquisitionResponse",
    "LeaseEvent",
    "LeaseReleaseRequest",
    "LeaseReleaseResponse",
    "LeaseRenewalRequest",
    "LeaseRenewalResponse",
    "LeaseStatus",
    "LeaseTransferRequest",
    "LeaseUpgradeRequest",
    "name_of",
]
