"""What is broken on purpose about pruning, rebuilding and certificates is found by the simulator.

Each test puts a mistake where it would be made, and the simulator has to say which promise it breaks.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.certificates import issuing, verifying
from leasehold.certificates import signing as jws
from leasehold.certificates.certificate import body_of
from leasehold.enforcing.fence import Fence
from leasehold.engine import pruning, walking
from leasehold.engine.beginning import find_beginning
from leasehold.engine.questions import LeaseStatus
from leasehold.engine.status import status_of
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger import checkpoint
from leasehold.kernel.ledger.events import StoreCheckpointed
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.state import State
from leasehold.stores.memory.tables import MemoryTables
from tests.mutations import search

PRUNING = range(0, 200, 4), range(3, 200, 4)
"""Seeds of worlds whose history is pruned; in the second half of them leases have children, too."""
CERTIFYING = (range(0, 120, 4),)


def test_entries_that_are_pruned_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "REQUEST_MEMORY_NS", 0)
    monkeypatch.setattr(pruning, "_is_past", lambda *_: True)
    plan = pruning._plan

    def hasty(*arguments: Any, keep_ns: int, **rest: Any) -> Any:
        return plan(*arguments, keep_ns=keep_ns // 2, **rest)

    monkeypatch.setattr(pruning, "_plan", hasty)
    assert found("was pruned", worlds=PRUNING)


def test_a_commit_that_is_pruned_by_half(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = pruning._ends_of_batches

    def half(*arguments: Any) -> list[int]:
        return [max(end - 1, 1) for end in ends(*arguments)[:1]]

    monkeypatch.setattr(pruning, "_ends_of_batches", half)
    assert found("without the rest of its commit", worlds=PRUNING)


def test_a_lease_that_goes_although_it_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go(
        monkeypatch,
        lambda leases, event: [lease_id for lease_id, lease in leases.items() if old(lease, event)],
    )
    assert found("has not ended", worlds=PRUNING)


def test_a_lease_that_goes_although_what_granted_it_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go(monkeypatch, lambda leases, event: [one for one, lease in leases.items() if lease.is_terminal])
    assert found("what granted it was not pruned", worlds=PRUNING)


def test_a_checkpoint_without_what_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    spell = checkpoint.encode_state

    def poorer(state: State, event: StoreCheckpointed, families: Families) -> bytes:
        return spell(replace(state, records={LEASE: {}}), event, families)

    monkeypatch.setattr(pruning, "encode_state", poorer)
    assert found(worlds=PRUNING)


def test_tables_that_are_made_anew_without_their_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    make = MemoryTables.rebuild

    def forgetful(self: MemoryTables, state: State) -> None:
        make(self, state)
        self.ledger.requests = {}

    monkeypatch.setattr(MemoryTables, "rebuild", forgetful)
    assert found("made anew are not what they were", worlds=PRUNING)


def test_a_walk_that_does_not_go_on_from_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    def bare(snapshot: Any) -> Any:
        return replace(find_beginning(snapshot), state=State())

    monkeypatch.setattr(walking, "find_beginning", bare)
    assert found(worlds=PRUNING)


def test_a_certificate_of_a_lease_that_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def generous(lease: Lease, snapshot: Any, reading: Any) -> LeaseStatus:
        status = status_of(lease, snapshot, reading)
        return status if status.is_live else replace(status, expires_in=60.0)

    monkeypatch.setattr(issuing, "status_of", generous)
    assert found("and was certified", worlds=CERTIFYING)


def test_a_certificate_that_lasts_longer_than_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    def longer(lease: Lease, **facts: Any) -> bytes:
        return body_of(lease, **facts | {"left_ns": 2 * lease.ttl_ns})

    monkeypatch.setattr(issuing, "body_of", longer)
    assert found("too late", worlds=CERTIFYING)


def test_a_certificate_that_is_refused_to_who_holds_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaseStatus, "is_live", property(lambda self: self.expires_in > 1))
    assert found("was not certified", worlds=CERTIFYING)


def test_an_expiry_that_nobody_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "_check_time", lambda *_: None)
    assert found("too late", worlds=CERTIFYING)


def test_a_signature_that_nobody_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jws, "is_signed", lambda *_: True)
    assert found("a forged certificate", worlds=CERTIFYING)


def test_a_certificate_that_is_good_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "_check_subject", lambda *_: None)
    assert found("another resource", worlds=CERTIFYING)


def test_a_fence_that_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fence, "admit", lambda *_: None)
    assert found("was let in behind", worlds=CERTIFYING)


def old(lease: Lease, event: StoreCheckpointed) -> bool:
    """Was the lease granted by what is pruned?"""
    return lease.token < event.token_below


def let_go(
    monkeypatch: pytest.MonkeyPatch, choose: Callable[[Mapping[str, Lease], StoreCheckpointed], list[str]]
) -> None:
    """Let pruning, and every replay, let go of other leases than it should."""
    monkeypatch.setattr("leasehold.kernel.lease.family.forgotten", choose)


def found(*says: str, worlds: Iterable[range]) -> str:
    """Return the first promise that is seen to be broken."""
    return search.found(*says, seeds=chain.from_iterable(worlds))
