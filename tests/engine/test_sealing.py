"""Which key seals: the newest of the admitted ones that this process has."""

import pytest

from leasehold.engine.sealing import NoKeyAtHand, Sealer
from leasehold.engine.signing import MemoryKeyRing
from leasehold.kernel.ledger.keys import Key
from tests.kernel.records import an_authority


def key(public_key: bytes, number: int, retired_at_ns: int | None = None) -> Key:
    return Key(
        public_key=public_key,
        number=number,
        enrolled_at_ns=1,
        enrolled_by="olga",
        retired_at_ns=retired_at_ns,
    )


def test_the_newest_admitted_key_at_hand_seals() -> None:
    ring = MemoryKeyRing()
    first, second = ring.create(), ring.create()
    keys = [key(first.public_key, 1), key(second.public_key, 2)]
    authority = an_authority(key_changes=2)
    assert Sealer(ring).key_for(authority, lambda: keys) is second


def test_a_retired_key_seals_nothing_however_new_it_is() -> None:
    ring = MemoryKeyRing()
    first, second = ring.create(), ring.create()
    keys = [key(first.public_key, 1), key(second.public_key, 2, retired_at_ns=9)]
    assert Sealer(ring).key_for(an_authority(key_changes=3), lambda: keys) is first


def test_a_choice_holds_until_keys_change_or_another_history_is_put_in_place() -> None:
    ring = MemoryKeyRing()
    first, second = ring.create(), ring.create()
    sealer = Sealer(ring)
    keys = [key(first.public_key, 1)]
    assert sealer.key_for(an_authority(key_changes=1), lambda: keys) is first
    keys.append(key(second.public_key, 2))
    assert sealer.key_for(an_authority(key_changes=1), lambda: keys) is first
    assert sealer.key_for(an_authority(key_changes=1, epoch=1_025), lambda: keys) is second
    assert sealer.key_for(an_authority(key_changes=2, epoch=1_025), lambda: keys) is second


def test_who_has_none_of_the_admitted_keys_gets_none() -> None:
    ring, other = MemoryKeyRing(), MemoryKeyRing()
    keys = [key(other.create().public_key, 1)]
    with pytest.raises(NoKeyAtHand):
        Sealer(ring).key_for(an_authority(key_changes=1), lambda: keys)


def test_a_key_that_an_interrupted_process_left_is_used_before_another_is_made() -> None:
    ring = MemoryKeyRing()
    left = ring.create()
    sealer = Sealer(ring)
    assert sealer.spare([]) is left
    assert sealer.spare([key(left.public_key, 1)]) is not left
