import inspect

import pytest

import leasehold.reducer
from leasehold import LeaseholdError
from leasehold.reducer import errors

FACTS: dict[str, dict[str, object]] = {
    "WorkAlreadyLeased": {"work_id": "work-1", "existing_lease_id": "lease-1"},
    "LeaseNotFound": {"lease_id": "lease-1"},
    "LeaseAlreadyTerminal": {"lease_id": "lease-1", "current_state": "RELEASED"},
    "LeaseExpired": {"lease_id": "lease-1", "expired_at": 17},
    "InvalidReleaseReason": {"value": "bored"},
    "InvalidLeaseState": {"value": "gone"},
    "InvalidSignature": {"lease_id": "lease-1"},
    "MissingSignature": {"lease_id": "lease-1"},
    "RenewalDoesNotExtend": {"lease_id": "lease-1", "current_expires_at": 18, "new_expires_at": 17},
    "DecodeError": {"reason": "cut off"},
    "LeaseAlreadyExists": {"lease_id": "lease-1"},
    "Unauthorized": {"lease_id": "lease-1", "actor_id": "bob"},
    "InvalidExpiration": {"lease_id": "lease-1", "provided": 17, "lease_expires_at": 18},
    "InvalidInput": {"field": "work_id", "reason": "must not be empty"},
}
"""Every variant of the contract, with the context that it names."""


@pytest.mark.parametrize(("name", "facts"), FACTS.items(), ids=FACTS.keys())
def test_ctr_0601_every_error_carries_and_says_what_a_diagnosis_needs(
    name: str, facts: dict[str, object]
) -> None:
    kind = getattr(leasehold.reducer, name)
    error = kind(**facts)
    assert inspect.get_annotations(kind).keys() == facts.keys()
    for field, fact in facts.items():
        assert getattr(error, field) == fact
        assert str(fact) in str(error)
    assert error.facts == facts


def test_ctr_0602_one_except_clause_catches_every_error_there_is_or_will_be() -> None:
    variants = {kind.__name__ for kind in errors.LeaseError.__subclasses__()}
    assert variants == FACTS.keys()
    assert issubclass(errors.LeaseError, LeaseholdError)


def test_the_codes_are_the_names_and_tell_the_errors_apart() -> None:
    codes = {kind.code for kind in errors.LeaseError.__subclasses__()}
    assert len(codes) == len(FACTS)
    assert {code.replace("_", "") for code in codes} == {name.upper() for name in FACTS}


def test_an_error_can_be_given_more_facts() -> None:
    more = errors.LeaseNotFound(lease_id="lease-1").with_facts(request_id="r-1")
    assert (more.lease_id, more.request_id) == ("lease-1", "r-1")
