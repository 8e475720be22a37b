"""The families that a store of leasehold's has, and what its registrar can be asked: all faces, in one place.

A face adds one line here. Whoever opens a store hands it these, because an engine that lacked one of them
would not see what its records mean for the others.
"""

from collections.abc import Mapping

from leasehold.engine.questions import Certify, Question
from leasehold.engine.registrar import Registrar, Reply
from leasehold.kernel.lease.family import lease_family
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.ledger.family import Families


def all_families(quotas: Quotas | None = None) -> Families:
    """Return all families, with quotas for those who claim leases through this engine."""
    return Families(
        (lease_family(quotas),),
    )


FAMILIES = all_families()
"""All families, without quotas."""


def _certify(registrar: Registrar, question: Certify) -> str:
    from leasehold.certificates.issuing import certify  # loading what signs takes time that few need to pay

    return certify(registrar, question.tenant, question.lease_id)


REPLIES: Mapping[type[Question], Reply] = {Certify: _certify}
"""Answers to questions that the engine knows nothing of."""
