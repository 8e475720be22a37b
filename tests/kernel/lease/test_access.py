from typing import Any

import pytest

from leasehold.kernel.lease.access import check_access
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.scope import Scope
from tests.kernel.records import a_lease

LEASE = a_lease(delegation=Delegation(scope=Scope(tools=("read",), namespaces=("data",))))


def test_what_the_scope_names_is_allowed() -> None:
    assert check_access(LEASE, tool="read", namespace="data/raw") is None


def test_what_it_does_not_name_is_denied_and_named() -> None:
    refusal = check_access(LEASE, tool="read", namespace="database")

    assert refusal is not None
    assert (refusal.code, refusal.lease_id, refusal.detail) == (
        "SCOPE_DENIED",
        "lease-1",
        "namespace 'database'",
    )


def test_a_plain_lease_allows_nothing() -> None:
    refusal = check_access(a_lease(), work_id="job-1")

    assert refusal is not None
    assert (refusal.code, refusal.detail) == ("SCOPE_DENIED", "work id 'job-1'")


@pytest.mark.parametrize(("access", "field"), [({}, "access"), ({"tool": ""}, "tool"), ({"tool": 7}, "tool")])
def test_a_question_about_nothing_is_no_question(access: dict[str, Any], field: str) -> None:
    refusal = check_access(LEASE, **access)

    assert refusal is not None
    assert (refusal.code, refusal.field) == ("INVALID_INPUT", field)
