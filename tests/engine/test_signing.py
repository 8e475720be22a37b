from leasehold.engine.registrar import Registrar
from leasehold.engine.signing import MemoryKeyRing, SigningKey, is_signed, key_id_of, new_key
from leasehold.stores.memory import MemoryStore

SEED = bytes(range(32))


def test_a_signature_counts_for_its_message_and_key_only() -> None:
    key, stranger = SigningKey(SEED), new_key()
    signature = key.sign(b"hello")
    assert is_signed(key.public_key, b"hello", signature)
    assert not is_signed(key.public_key, b"hullo", signature)
    assert not is_signed(stranger.public_key, b"hello", signature)


def test_any_changed_byte_of_a_signature_is_noticed() -> None:
    key = SigningKey(SEED)
    signature = key.sign(b"hello")
    for place in range(len(signature)):
        forged = bytearray(signature)
        forged[place] ^= 1
        assert not is_signed(key.public_key, b"hello", bytes(forged))


def test_what_is_no_signature_or_no_key_counts_for_nothing() -> None:
    key = SigningKey(SEED)
    signature = key.sign(b"hello")
    for wrong in (b"", signature[:-1], signature + b"\0"):
        assert not is_signed(key.public_key, b"hello", wrong)
    for wrong in (b"", key.public_key[:-1], key.public_key + b"\0", bytes(32)):
        assert not is_signed(wrong, b"hello", signature)


def test_a_key_is_named_after_its_public_half() -> None:
    key = SigningKey(SEED)
    assert key.key_id == key_id_of(key.public_key) == "717536a949552cc6"
    assert key.key_id != new_key().key_id


def test_a_key_does_not_print_its_secret() -> None:
    assert repr(SigningKey(SEED)) == f"SigningKey({SigningKey(SEED).key_id})"


def test_keys_in_memory_are_found_again() -> None:
    ring = MemoryKeyRing()
    assert ring.at_hand() == []
    key = ring.create()
    assert ring.at_hand() == [key.key_id]
    assert ring.load(key.key_id) is key


def test_a_registrar_signs_with_one_key() -> None:
    registrar = Registrar(MemoryStore())
    assert registrar.signing_key().key_id == registrar.signing_key().key_id
    registrar.close()
