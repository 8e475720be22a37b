import msgspec
import pytest

from leasehold.reducer import DecodeError, LeaseReducer
from leasehold.reducer.checkpoint import Checkpoint, from_bytes, to_bytes
from tests.reducer.histories import SECOND, History, tick


def a_history() -> History:
    history = History()
    history.issue_with_ticks("lease-1", "work-1")
    history.issue("lease-2", "work-2")
    history.renew("lease-1", renewed_at_tick=tick(150), new_expires_at_tick=tick(250))
    history.release("lease-2", "aborted", at=SECOND)
    return history


def test_a_checkpoint_restores_everything_and_the_fold_goes_on_from_there() -> None:
    history = a_history()
    restored = History()
    restored.reducer.restore(history.reducer.checkpoint())
    assert restored.state == history.state
    assert restored.reducer.position == history.reducer.position == 4
    for one in (history, restored):
        one.position = 4
        one.expire("lease-1", 9 * SECOND, expired_at_tick=tick(250))
        one.issue("lease-3", "work-1")
    assert restored.reducer.checkpoint() == history.reducer.checkpoint()


def test_a_pruned_state_is_restored_as_it_was_pruned() -> None:
    history = a_history()
    history.reducer.state_mut.prune_terminal_leases()
    restored = LeaseReducer()
    restored.restore(history.reducer.checkpoint())
    assert list(restored.state.leases) == ["lease-1"]


def test_damage_to_any_byte_is_found_and_changes_nothing() -> None:
    history = a_history()
    kept = history.reducer.checkpoint()
    for index in range(len(kept)):
        damaged = bytearray(kept)
        damaged[index] ^= 1
        with pytest.raises(DecodeError):
            history.reducer.restore(bytes(damaged))
    assert history.reducer.checkpoint() == kept


@pytest.mark.parametrize("cut", [0, 1, 30, 40, 62, 63, 64, -1])
def test_a_checkpoint_that_was_cut_off_is_refused(cut: int) -> None:
    kept = a_history().reducer.checkpoint()
    reducer = LeaseReducer()
    with pytest.raises(DecodeError):
        reducer.restore(kept[:cut])
    assert len(reducer.state) == 0


def test_a_checkpoint_of_another_tenant_is_refused() -> None:
    with pytest.raises(DecodeError, match="tenant"):
        LeaseReducer("acme").restore(a_history().reducer.checkpoint())


def test_a_whole_checkpoint_of_something_else_is_refused() -> None:
    from hashlib import sha256

    body = msgspec.msgpack.encode({"tenant": "default"})
    magic = a_history().reducer.checkpoint()[:31]
    with pytest.raises(DecodeError):
        LeaseReducer().restore(magic + sha256(body).digest() + body)


def test_a_made_up_checkpoint_cannot_lease_work_twice() -> None:
    history = a_history()
    lease = history.lease("lease-1")
    twin = msgspec.structs.replace(lease, record=msgspec.structs.replace(lease.record, lease_id="twin"))
    for leases in ([lease, lease], [lease, twin]):
        forged = to_bytes(Checkpoint(tenant="default", position=1, leases=leases))
        with pytest.raises(DecodeError, match="twice"):
            from_bytes(forged)
