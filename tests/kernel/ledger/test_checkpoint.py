"""What a checkpoint stands for, and which ended leases it lets go of."""

from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.lease.forgotten import forgotten
from leasehold.kernel.lease.invariants import invariants
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.checkpoint import decode_state, encode_state, state_digest
from leasehold.kernel.ledger.events import IllegalTransition, StoreCheckpointed
from leasehold.kernel.ledger.state import State, replay
from tests.kernel.registrar import Registrar


def checkpoint(registrar: Registrar, **fields: Any) -> StoreCheckpointed:
    """A checkpoint of this moment, which lets go of all that has ended by now."""
    now = registrar.now()
    usual: dict[str, Any] = {
        "covers": len(registrar.ledger),
        "covers_hash": bytes(32),
        "state_digest": bytes(32),
        "ended_before_ns": now.wall_ns + 1,
        "token_below": registrar.authority.next_token(),
    }
    return StoreCheckpointed(tick=now.tick, at_ns=now.wall_ns, actor="ops", **(usual | fields))


def test_what_has_ended_goes_and_what_stands_or_waits_stays() -> None:
    registrar = Registrar()
    ended = registrar.grant("ann", "a")
    registrar.end(ended)
    standing = registrar.grant("ann", "b")
    registrar.wait(waiting := registrar.join("bob", "b"))
    state = replay([*registrar.ledger, checkpoint(registrar)], LEASES)
    assert state.of("lease").keys() == {standing.lease_id, waiting.lease_id}
    assert state.authority == registrar.state.authority
    assert invariants(state) == []


def test_a_lease_goes_by_its_own_end_and_not_at_that_very_moment() -> None:
    registrar = Registrar()
    lease = registrar.grant()
    registrar.advance(1_000)
    (expired,) = registrar.sweep(lease)
    end_ns = expired.terminated_at_ns
    assert end_ns is not None
    at_the_end = checkpoint(registrar, ended_before_ns=end_ns)
    assert forgotten(registrar.state.of("lease"), at_the_end) == []
    assert forgotten(registrar.state.of("lease"), replace(at_the_end, ended_before_ns=end_ns + 1)) == [
        lease.lease_id
    ]


def test_a_lease_that_was_granted_behind_what_is_pruned_stays() -> None:
    registrar = Registrar()
    lease = registrar.grant()
    registrar.end(lease)
    assert forgotten(registrar.state.of("lease"), checkpoint(registrar, token_below=lease.token)) == []
    assert forgotten(registrar.state.of("lease"), checkpoint(registrar, token_below=lease.token + 1)) == [
        lease.lease_id
    ]


def test_the_ended_leases_above_one_that_stands_stay_and_go_with_it() -> None:
    registrar = Registrar()
    wide: dict[str, Any] = {"scope": Scope(tools=("*",)), "budget": Budget(tool_calls=10)}
    parent = registrar.grant("ann", "p", **wide)
    child = registrar.derive(parent, resource="c", scope=Scope(tools=("*",)), budget=Budget(tool_calls=1))
    leases = dict(registrar.state.of("lease"))
    leases[parent.lease_id] = replace(leases[parent.lease_id], terminated_at_ns=1)
    assert forgotten(leases, checkpoint(registrar)) == []
    registrar.end(child)
    ended = dict(registrar.state.of("lease"))
    ended[parent.lease_id] = leases[parent.lease_id]
    assert set(forgotten(ended, checkpoint(registrar))) == {parent.lease_id, child.lease_id}


def test_a_checkpoint_that_lets_go_of_what_it_cannot_cover_is_illegal() -> None:
    registrar = Registrar()
    registrar.grant()
    beyond = checkpoint(registrar, token_below=registrar.authority.next_token() + 1)
    with pytest.raises(IllegalTransition, match="does not cover"):
        replay([*registrar.ledger, beyond], LEASES)
    with pytest.raises(IllegalTransition):
        replay([beyond], LEASES)


def test_the_state_reads_back_whole_but_for_what_was_let_go_of() -> None:
    registrar = Registrar()
    ended = registrar.grant("ann", "a")
    registrar.end(ended)
    registrar.grant("ann", "b", bound_to_boot=False)
    registrar.wait(registrar.join("bob", "b"))
    registrar.reboot()
    registrar.grant("eve", "c")
    made = checkpoint(registrar)
    encoded = encode_state(registrar.state, made, LEASES)
    assert ended.lease_id in registrar.state.of("lease"), "the state itself was left alone"
    found = decode_state(encoded, LEASES)
    for name in State.__struct_fields__:
        whole = getattr(registrar.state, name)
        if name == "records":
            whole = {"lease": {one: lease for one, lease in whole["lease"].items() if one != ended.lease_id}}
        assert getattr(found, name) == whole
        assert whole or name == "keys", f"{name} was nothing to begin with"


def test_a_digest_is_of_this_state_and_no_other() -> None:
    assert state_digest(b"{}") != state_digest(b"{ }")
    assert len(state_digest(b"")) == 32
    with pytest.raises(ValueError, match="records"):
        decode_state(b'{"records": 7}', LEASES)
    with pytest.raises(ValueError, match="lease_id"):
        decode_state(b'{"records": {"lease": {"lease-1": {}}}}', LEASES)


def test_a_state_with_records_of_a_family_that_is_not_known_here_is_not_read() -> None:
    with pytest.raises(ValueError, match="family 'work', which is not known here"):
        decode_state(b'{"records": {"lease": {}, "work": {}}}', LEASES)
