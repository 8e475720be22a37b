"""What users rely on: names, codes, numbers. A change here is a change for them."""

import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold import errors
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode

ROOT = Path(__file__).resolve().parents[2]


def test_the_public_names_are_these() -> None:
    assert leasehold.__all__ == [
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
    assert all(hasattr(leasehold, name) for name in leasehold.__all__)


# Class, parent, code, HTTP status, exit code.
ERRORS = [
    ("LeaseholdError", "Exception", "ERROR", 500, 1),
    ("Refused", "LeaseholdError", "REFUSED", 409, 1),
    ("NotAcquired", "Refused", "NOT_ACQUIRED", 409, 75),
    ("Held", "NotAcquired", "HELD", 409, 75),
    ("WaitTimeout", "Held", "WAIT_TIMEOUT", 409, 75),
    ("AlreadyHeld", "NotAcquired", "ALREADY_HELD", 409, 75),
    ("AlreadyWaiting", "NotAcquired", "ALREADY_WAITING", 409, 75),
    ("Deadlock", "NotAcquired", "DEADLOCK", 409, 75),
    ("LeasePending", "Refused", "LEASE_PENDING", 409, 1),
    ("LeaseExists", "NotAcquired", "LEASE_EXISTS", 409, 75),
    ("LimitExceeded", "Refused", "LIMIT_EXCEEDED", 429, 1),
    ("InvalidInput", "Refused", "INVALID_INPUT", 422, 2),
    ("RenewalsExhausted", "Refused", "RENEWALS_EXHAUSTED", 409, 1),
    ("RenewalDoesNotExtend", "Refused", "RENEWAL_DOES_NOT_EXTEND", 409, 1),
    ("UnknownTime", "Refused", "UNKNOWN_TIME", 409, 1),
    ("NothingGranted", "Refused", "NOTHING_GRANTED", 409, 1),
    ("ScopeDenied", "Refused", "SCOPE_DENIED", 403, 1),
    ("ScopeExceeded", "Refused", "SCOPE_EXCEEDED", 409, 1),
    ("BudgetExceeded", "Refused", "BUDGET_EXCEEDED", 409, 1),
    ("BudgetExhausted", "BudgetExceeded", "BUDGET_EXHAUSTED", 409, 1),
    ("OutlivesParent", "Refused", "OUTLIVES_PARENT", 409, 1),
    ("NotPermitted", "Refused", "NOT_PERMITTED", 403, 1),
    ("NotAuthenticated", "Refused", "NOT_AUTHENTICATED", 401, 1),
    ("RateLimited", "Refused", "RATE_LIMITED", 429, 1),
    ("LeaseLost", "LeaseholdError", "LEASE_LOST", 410, 76),
    ("LeaseExpired", "LeaseLost", "LEASE_EXPIRED", 410, 76),
    ("LeaseTerminal", "LeaseLost", "LEASE_TERMINAL", 410, 76),
    ("NotHolder", "LeaseLost", "NOT_HOLDER", 403, 76),
    ("LeaseNotFound", "LeaseLost", "LEASE_NOT_FOUND", 404, 76),
    ("WrongProcess", "LeaseLost", "WRONG_PROCESS", 410, 76),
    ("ClientClosed", "LeaseholdError", "CLIENT_CLOSED", 500, 1),
    ("StoreError", "LeaseholdError", "STORE_ERROR", 503, 1),
    ("StoreBusy", "StoreError", "STORE_BUSY", 503, 1),
    ("StoreFull", "StoreError", "STORE_FULL", 507, 1),
    ("StoreFailed", "StoreError", "STORE_FAILED", 503, 1),
    ("ReplyLost", "StoreFailed", "REPLY_LOST", 503, 1),
    ("ServerUnreachable", "StoreError", "SERVER_UNREACHABLE", 503, 1),
    ("StoreRejected", "StoreError", "STORE_REJECTED", 503, 1),
    ("StoreUnusable", "StoreError", "STORE_UNUSABLE", 503, 1),
    ("StoreDamaged", "StoreUnusable", "STORE_DAMAGED", 503, 1),
    ("StoreReplaced", "StoreUnusable", "STORE_REPLACED", 503, 1),
    ("LedgerBroken", "StoreError", "LEDGER_BROKEN", 503, 1),
    ("JobUnknown", "StoreError", "JOB_UNKNOWN", 404, 1),
    ("JobCancelled", "LeaseholdError", "JOB_CANCELLED", 409, 1),
    ("HistoryPruned", "LeaseholdError", "HISTORY_PRUNED", 410, 1),
]


def all_errors() -> list[type[errors.LeaseholdError]]:
    return [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, errors.LeaseholdError)
    ]


def test_an_interpreter_shows_what_is_for_users_and_nothing_else() -> None:
    assert [name for name in dir(leasehold) if not name.startswith("__")] == sorted(leasehold.__all__)
    with leasehold.connect("memory:", holder="ann") as leases:
        lease = leases.acquire("door")
        assert {"token", "lost", "release"} <= set(dir(lease))
        assert not {"kept", "hearers", "lose", "body", "process_id"} & set(dir(lease))
        assert repr(lease.lost) == f"<lease {lease.lease_id} on door, not lost>"
        assert repr(leases.files) == "<file leases of tenant default in memory:>"
        leases.revoke(lease.lease_id, reason="test")
        with pytest.raises(leasehold.LeaseLost):
            lease.renew()
        assert "on door, lost: lease" in repr(lease.lost)


async def test_an_acquisition_says_that_it_has_to_be_awaited() -> None:
    async with leasehold.connect_async("memory:") as leases:
        acquisition = leases.acquire("door")
        assert (
            repr(acquisition) == "<acquisition that has not begun: await it, or enter it with `async with`>"
        )
        async with acquisition as lease:
            assert repr(acquisition) == f"<acquisition of {lease!r}>"


def test_every_error_has_its_code_status_and_exit_code_for_ever() -> None:
    found = [
        (one.__name__, one.__bases__[0].__name__, one.code, one.http_status, one.exit_code)
        for one in all_errors()
    ]

    assert found == ERRORS


def test_every_error_is_public_and_no_two_have_one_code() -> None:
    found = all_errors()

    assert all(getattr(leasehold, one.__name__) is one for one in found)
    assert len({one.code for one in found}) == len(found)


def test_only_a_store_that_failed_and_a_job_that_is_not_known_leave_the_outcome_unknown() -> None:
    unknown = [one.__name__ for one in all_errors() if getattr(one, "outcome_unknown", False)]

    assert unknown == ["StoreFailed", "ReplyLost", "JobUnknown"]


@pytest.mark.parametrize("code", list(RefusalCode))
def test_every_refusal_becomes_an_error_of_the_same_code_and_says_what_to_do(code: RefusalCode) -> None:
    refusal = Refusal(
        code=code,
        lease_id="lease-1",
        resource="door",
        holder="ann",
        state=LeaseState.REVOKED,
        expires_in_ns=2 * 10**9,
        since_ns=5 * 10**9,
        field="ttl",
        detail="must be at least 1 millisecond",
    )

    error = errors.error_of(refusal)

    assert error.code == code
    assert (error.lease_id, error.resource, error.holder) == ("lease-1", "door", "ann")
    assert (error.expires_in, error.since) == (2.0, 5.0)
    assert error.retry_after == (2.0 if code is RefusalCode.HELD else None)
    assert isinstance(error, leasehold.LeaseLost) == code.means_loss
    assert "None" not in str(error)


@pytest.mark.parametrize("kind", all_errors())
def test_every_error_can_be_pickled_with_all_it_knows(kind: type[errors.LeaseholdError]) -> None:
    error = kind("door is held by ann", holder="ann", expires_in=1.5, process_id=7)

    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is kind
    assert str(copy) == "door is held by ann"
    assert (copy.holder, copy.expires_in, copy.process_id, copy.lease_id) == ("ann", 1.5, 7, None)
    assert copy.facts == {"holder": "ann", "expires_in": 1.5, "process_id": 7}


def test_an_error_that_learns_more_leaves_the_first_one_alone() -> None:
    cause = OSError("disk")
    error = errors.StoreFailed("broken", path="x.db")
    error.__cause__ = cause

    one, two = error.with_facts(request_id="one"), error.with_facts(request_id="two")

    assert (one.request_id, two.request_id, error.request_id) == ("one", "two", None)
    assert (one.path, str(one), one.__cause__) == ("x.db", "broken", cause)
    assert one.facts == {"path": "x.db", "request_id": "one"}


def public(kind: type) -> dict[str, Any]:
    return {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("blocking", "asynchronous"),
    [(leasehold.Client, leasehold.AsyncClient), (leasehold.HeldLease, leasehold.AsyncHeldLease)],
)
def test_both_clients_have_the_same_methods_with_the_same_arguments(
    blocking: type, asynchronous: type
) -> None:
    ours, theirs = public(blocking), public(asynchronous)

    assert ours.keys() == theirs.keys()
    for name, method in ours.items():
        if inspect.isfunction(method):
            here = inspect.signature(method).parameters
            there = inspect.signature(theirs[name]).parameters
            assert [(one.name, one.kind, one.default) for one in here.values()] == [
                (one.name, one.kind, one.default) for one in there.values()
            ]


def test_the_blocking_client_is_generated_from_the_asynchronous_one_as_it_is_now() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_sync.py"), "--check"]
    check = subprocess.run(command, capture_output=True, text=True, check=False)

    assert check.returncode == 0, check.stderr


def test_the_methods_that_were_promised_are_there() -> None:
    promised = {"acquire", "try_acquire", "renew", "renew_many", "release", "release_all", "revoke", "get"}
    promised |= {"list", "history", "watch", "inspect", "sweep", "adopt", "close"}
    assert promised <= public(leasehold.Client).keys()
    assert {"ensure", "renew", "release", "detach", "remaining", "token", "lease", "holder"} <= public(
        leasehold.HeldLease
    ).keys()
