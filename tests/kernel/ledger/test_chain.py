from collections.abc import Callable
from hashlib import sha256

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.events import LeaseExpired
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.chain import GENESIS_HASH, BrokenChain, Entry, check_entry, link, seal_message
from leasehold.kernel.ledger.events import encode_event
from tests.kernel.records import OF_LEASE


def entry_of(position: int, body: bytes, entry_hash: bytes) -> Entry:
    return Entry(position=position, event=LEASES.decode_event(body), body=body, hash=entry_hash)


def ledger(length: int) -> list[Entry]:
    entries: list[Entry] = []
    previous_hash = GENESIS_HASH
    for position in range(1, length + 1):
        body = encode_event(LeaseExpired(**(OF_LEASE | {"at_ns": position})))
        previous_hash = link(previous_hash, position, body)
        entries.append(entry_of(position, body, previous_hash))
    return entries


def check(entries: list[Entry]) -> None:
    previous = None
    for entry in entries:
        check_entry(previous, entry)
        previous = entry


def change(entries: list[Entry]) -> None:
    entries[2] = entry_of(3, entries[2].body.replace(b'"ann"', b'"eve"'), entries[2].hash)


def change_and_rehash(entries: list[Entry]) -> None:
    body = entries[2].body.replace(b'"ann"', b'"eve"')
    entries[2] = entry_of(3, body, link(entries[1].hash, 3, body))


def drop(entries: list[Entry]) -> None:
    del entries[2]


def drop_and_renumber(entries: list[Entry]) -> None:
    del entries[2]
    entries[2:] = [replace(entry, position=entry.position - 1) for entry in entries[2:]]


def drop_the_first(entries: list[Entry]) -> None:
    del entries[0]


def insert(entries: list[Entry]) -> None:
    body = entries[0].body
    entries.insert(2, entry_of(3, body, link(entries[1].hash, 3, body)))


def reorder(entries: list[Entry]) -> None:
    entries[2], entries[3] = entries[3], entries[2]


def reorder_and_renumber(entries: list[Entry]) -> None:
    entries[2], entries[3] = replace(entries[3], position=3), replace(entries[2], position=4)


def repeat(entries: list[Entry]) -> None:
    entries.insert(3, entries[2])


def test_an_untouched_ledger_holds() -> None:
    check(ledger(5))


@pytest.mark.parametrize(
    ("tamper", "position", "problem"),
    [
        (change, 3, "its hash does not match its content"),
        (change_and_rehash, 4, "its hash does not match its content"),
        (drop, 4, "follows entry 2"),
        (drop_and_renumber, 3, "its hash does not match its content"),
        (drop_the_first, 2, "follows entry 0"),
        (insert, 3, "follows entry 3"),
        (reorder, 4, "follows entry 2"),
        (reorder_and_renumber, 3, "its hash does not match its content"),
        (repeat, 3, "follows entry 3"),
    ],
)
def test_whatever_is_done_to_an_entry_is_found_where_it_was_done(
    tamper: Callable[[list[Entry]], None], position: int, problem: str
) -> None:
    entries = ledger(5)
    tamper(entries)

    with pytest.raises(BrokenChain, match=f"ledger entry {position}: {problem}") as caught:
        check(entries)
    assert (caught.value.position, caught.value.problem) == (position, problem)


def test_the_chain_alone_does_not_notice_a_cut_at_the_end() -> None:
    entries = ledger(5)

    check(entries[:3])
    assert entries[2].hash != entries[4].hash, "a head kept elsewhere does"


def test_a_hash_covers_the_entry_before_the_position_and_the_body() -> None:
    body = b"body"
    expected = sha256(b"leasehold ledger entry 1" + bytes(32) + bytes(7) + b"\x01" + body).digest()

    assert link(GENESIS_HASH, 1, body) == expected
    assert (
        len({expected, link(b"\x01" * 32, 1, body), link(GENESIS_HASH, 2, body), link(GENESIS_HASH, 1, b"")})
        == 4
    )


def test_what_is_sealed_names_the_entries_of_the_commit_and_its_last_hash() -> None:
    message = seal_message(5, 7, b"h" * 32)
    assert message == b"leasehold ledger seal 1" + bytes(7) + b"\5" + bytes(7) + b"\7" + b"h" * 32
    assert len({message, seal_message(6, 7, b"h" * 32), seal_message(5, 6, b"h" * 32)}) == 3
