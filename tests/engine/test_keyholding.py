"""Keys come, go and are vouched for, and the ledger verifies all along; or does not, where it must not."""

import pytest

from leasehold.engine.audit import audit
from leasehold.engine.keyholding import retire, rotate, vouch
from leasehold.engine.port import Store
from leasehold.engine.questions import FindHead, ListKeys
from leasehold.engine.registrar import Registrar
from leasehold.engine.sealing import Sealer
from leasehold.engine.signing import MemoryKeyRing, key_id_of
from leasehold.errors import InvalidInput
from tests.engine.doubles import claim, granted


def keys_of(store: Store) -> list[str]:
    with store.snapshot() as snapshot:
        return [key_id_of(key.public_key) for key in snapshot.signing_keys()]


def as_another_user(store: Store) -> None:
    """Have none of the keys from now on."""
    store.sealer = Sealer(MemoryKeyRing())  # type: ignore[misc]


def test_the_first_key_is_pinned_by_the_first_entry(store: Store) -> None:
    registrar = Registrar(store)
    (key,) = registrar.ask(ListKeys())
    assert key.public_key == registrar.signing_key().public_key
    assert key.is_vouched_for
    registrar.close()


def test_a_rotated_key_goes_on_where_the_old_one_ended(store: Store) -> None:
    registrar = Registrar(store)
    granted(registrar.call(claim("before")))
    old = registrar.signing_key().key_id
    new = key_id_of(rotate(store, actor="olga", reason="yearly").public_key)
    assert registrar.signing_key().key_id == new != old
    granted(registrar.call(claim("after")))
    assert audit(store, first_key=old).problems == []


def test_what_a_retired_key_would_seal_is_not_sealed_with_it(store: Store) -> None:
    registrar = Registrar(store)
    old = registrar.signing_key().key_id
    rotate(store, actor="olga")
    with pytest.raises(InvalidInput, match="retired already"):
        retire(store, old, actor="olga")
    with pytest.raises(InvalidInput, match="only one"):
        retire(store, registrar.signing_key().key_id, actor="olga")
    with pytest.raises(InvalidInput, match="knows no key"):
        retire(store, "0123456789abcdef", actor="olga")


def test_a_user_without_an_admitted_key_can_work_but_not_unnoticed(store: Store) -> None:
    owner = store.sealer
    first = Registrar(store).signing_key().key_id
    as_another_user(store)
    granted(Registrar(store).call(claim("door")))
    other = keys_of(store)[-1]
    (problem,) = audit(store).problems
    assert f"enrols {other}, which no admitted key vouches for" in problem
    assert audit(store, trusted=[other], first_key=first).problems == []
    assert not rotate(store, actor="eve").is_vouched_for
    with pytest.raises(InvalidInput, match="your own key"):
        vouch(store, other, actor="eve")
    store.sealer = owner  # type: ignore[misc]
    vouch(store, other, actor="olga")
    with pytest.raises(InvalidInput, match="vouched for already"):
        vouch(store, other, actor="olga")


def test_a_key_that_is_vouched_for_after_all_verifies(store: Store) -> None:
    Registrar(store)
    owner = store.sealer
    as_another_user(store)
    granted(Registrar(store).call(claim("door")))
    other = keys_of(store)[-1]
    store.sealer = owner  # type: ignore[misc]
    assert vouch(store, other, actor="olga").is_vouched_for
    assert audit(store).problems == []


def test_looking_needs_no_key(store: Store) -> None:
    Registrar(store)
    as_another_user(store)
    assert Registrar(store).ask(FindHead()).position == 1
    assert len(keys_of(store)) == 1


def test_the_key_of_another_first_user_is_found_by_its_name(store: Store) -> None:
    Registrar(store)
    (problem,) = audit(store, first_key="0123456789abcdef").problems
    assert "should be 0123456789abcdef" in problem
