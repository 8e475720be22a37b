"""Whatever is done to a checkpoint, its state, or the entries around it, is found and named."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from msgspec.structs import replace

from leasehold.engine.audit import audit, rebuild
from leasehold.engine.keyholding import rotate
from leasehold.engine.pruning import prune
from leasehold.engine.registrar import Registrar
from leasehold.engine.sealing import seal
from leasehold.engine.signing import SigningKey, new_key
from leasehold.errors import LedgerBroken
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.chain import link
from leasehold.kernel.ledger.checkpoint import decode_state, state_digest
from leasehold.kernel.ledger.events import StoreCheckpointed, encode_event
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import claim, granted, release
from tests.engine.test_tampering import Shell

DAY = 24 * 3600
KEEP_NS = 15 * DAY * 10**9
Row = tuple[object, ...]


class Past:
    """What somebody may have copied before it was pruned."""

    def __init__(self) -> None:
        self.events: dict[int, Row] = {}
        self.states: dict[int, bytes] = {}

    def remember(self, path: Path) -> None:
        connection = apsw.Connection(str(path / "leases.db"))
        for row in connection.execute("SELECT * FROM events"):
            self.events[row[0]] = row
        self.states |= dict(connection.execute("SELECT position, state FROM checkpoints"))
        connection.close()


@pytest.fixture
def past() -> Past:
    return Past()


@pytest.fixture
def pruned(tmp_path: Path, clock: FakeClock, past: Past) -> Iterator[Shell]:
    """Pruned twice: entries 4 and 9 are checkpoints, those up to 6 are gone, and 7 to 9 are left.

    The first checkpoint had covered those up to 3.
    """
    path = tmp_path / "leases"
    store = SqliteStore(path, clock=clock, durability="fast")
    registrar = Registrar(store)
    for number in (1, 2, 3):
        registrar.call(release(granted(registrar.call(claim(f"door {number}")))))
        past.remember(path)
        clock.advance(8 * DAY)
        if number == 1:
            clock.advance(8 * DAY)
            prune(store, actor="ops", keep_ns=KEEP_NS)
            past.remember(path)
    clock.advance(4 * DAY)
    prune(store, actor="ops", keep_ns=KEEP_NS)
    past.remember(path)
    registrar.close()
    shell = Shell(path, clock)
    assert shell.column("position") == [7, 8, 9]
    assert sorted(past.states) == [4, 9]
    yield shell
    shell.close()


def put_back(connection: apsw.Connection, past: Past, *positions: int) -> None:
    for position in positions:
        row = past.events[position]
        connection.execute(f"INSERT INTO events VALUES ({', '.join('?' * len(row))})", row)


def keep(connection: apsw.Connection, position: int, state: bytes) -> None:
    connection.execute("DELETE FROM checkpoints")
    connection.execute("INSERT INTO checkpoints VALUES (?, ?)", (position, state))


def test_what_nobody_touched_has_no_problems(pruned: Shell) -> None:
    found = audit(pruned.store)
    assert (found.entries, found.pruned, found.first_bad, found.problems) == (9, 6, None, [])


@pytest.mark.parametrize("column", ["body", "hash", "seal"])
def test_every_changed_byte_behind_and_in_the_checkpoint_is_found(pruned: Shell, column: str) -> None:
    kind = "TEXT" if column == "body" else "BLOB"
    for position, stored in zip((7, 8, 9), pruned.column(f"CAST({column} AS BLOB)"), strict=True):
        for place in range(len(stored or b"")):  # type: ignore[arg-type]
            changed = bytearray(stored)  # type: ignore[call-overload]
            changed[place] ^= 1
            found = pruned.after(
                lambda connection: connection.execute(
                    f"UPDATE events SET {column} = CAST(? AS {kind}) WHERE position = ?",
                    (bytes(changed), position),  # noqa: B023
                )
            )
            # What the checkpoint says is needed to begin with, so the first entry may be what does not fit.
            expected = {position} if position != 9 or column != "body" else {1, 6, 7, 8, 9}
            assert found.first_bad in expected, (column, position, place)


def test_every_changed_byte_of_the_state_is_found_and_named(pruned: Shell, past: Past) -> None:
    state = past.states[9]
    for place in range(len(state)):
        changed = bytearray(state)
        changed[place] ^= 1
        found = pruned.after(lambda connection: keep(connection, 9, bytes(changed)))  # noqa: B023
        assert found.first_bad == 9, place
        assert "is another than it says" in found.problems[0]


def test_the_state_of_an_older_checkpoint_does_not_pass(pruned: Shell, past: Past) -> None:
    swapped = pruned.after(lambda connection: keep(connection, 9, past.states[4]))
    assert swapped.first_bad == 9
    replayed = pruned.after(lambda connection: keep(connection, 4, past.states[4]))
    assert replayed.first_bad == 4
    assert "is not a checkpoint" in replayed.problems[0]


def test_an_older_checkpoint_with_all_its_entries_does_not_pass_for_the_newest(
    pruned: Shell, past: Past
) -> None:
    def replay(connection: apsw.Connection) -> None:
        put_back(connection, past, 4, 5, 6)
        keep(connection, 4, past.states[4])

    found = pruned.after(replay)
    assert found.first_bad == 9
    assert "not the one that is kept" in found.problems[0]


def test_a_ledger_that_has_all_its_entries_again_does_not_pass_without_its_state(
    pruned: Shell, past: Past
) -> None:
    def undo(connection: apsw.Connection) -> None:
        put_back(connection, past, 1, 2, 3, 4, 5, 6)
        connection.execute("DELETE FROM checkpoints")

    found = pruned.after(undo)
    assert found.first_bad == 9
    assert "not the one that is kept" in found.problems[0]


def test_entries_that_were_pruned_and_are_there_again_are_found(pruned: Shell, past: Past) -> None:
    for position in (1, 5, 6):
        found = pruned.after(lambda connection: put_back(connection, past, position))  # noqa: B023
        assert found.first_bad == position
        assert "is there again" in found.problems[0]


def test_a_gap_between_the_checkpoint_and_the_first_entry_is_found(pruned: Shell) -> None:
    found = pruned.after(lambda connection: connection.execute("DELETE FROM events WHERE position = 7"))
    assert found.first_bad == 7
    assert "is missing" in found.problems[0]


def test_a_checkpoint_whose_state_is_gone_is_found(pruned: Shell) -> None:
    found = pruned.after(lambda connection: connection.execute("DELETE FROM checkpoints"))
    assert found.first_bad == 1
    assert "has no checkpoint" in found.problems[0]


def test_a_checkpoint_that_is_cut_off_is_found(pruned: Shell) -> None:
    found = pruned.after(lambda connection: connection.execute("DELETE FROM events WHERE position = 9"))
    assert found.first_bad == 9


def test_a_checkpoint_that_cannot_be_read_is_found(pruned: Shell) -> None:
    found = pruned.after(
        lambda connection: connection.execute(
            "UPDATE events SET holder = CAST(x'ff' AS TEXT) WHERE position = 9"
        )
    )
    assert found.first_bad == 9


def forge(shell: Shell, connection: apsw.Connection, *, key_at_hand: bool) -> None:
    """Change how many tokens were given out in the state, and write the checkpoint anew to fit."""
    ((body, previous, state),) = connection.execute(
        "SELECT new.body, old.hash, checkpoints.state FROM events AS new, events AS old, checkpoints "
        "WHERE new.position = 9 AND old.position = 8"
    )
    forged_state = state.replace(b'"counter":', b'"counter":1')
    decode_state(forged_state, LEASES)
    event = LEASES.decode_event(body)
    assert isinstance(event, StoreCheckpointed)
    forged = encode_event(replace(event, state_digest=state_digest(forged_state)))
    entry_hash = link(previous, 9, forged)
    key = shell.key() if key_at_hand else new_key()
    connection.execute(
        "UPDATE events SET body = ?, hash = ?, seal = ? WHERE position = 9",
        (forged.decode(), entry_hash, seal(key, 9, 9, entry_hash)),
    )
    keep(connection, 9, forged_state)


def test_a_checkpoint_that_was_forged_without_an_admitted_key_is_found(pruned: Shell) -> None:
    found = pruned.after(lambda connection: forge(pruned, connection, key_at_hand=False))
    assert found.first_bad in (7, 8, 9)


def test_a_forged_checkpoint_does_not_fit_what_follows_even_with_a_key(pruned: Shell) -> None:
    found = pruned.after(lambda connection: forge(pruned, connection, key_at_hand=True))
    assert found.problems


def let_in(connection: apsw.Connection, intruder: SigningKey) -> None:
    """Put a key of one's own into the state, as if the first vouched for it, and seal all anew with it."""
    ((state,),) = connection.execute("SELECT state FROM checkpoints")
    forged = decode_state(state, LEASES)
    (first,) = forged.keys.values()
    voucher = {"vouched_by": first.public_key, "voucher": bytes(64)}
    forged.keys[intruder.public_key] = replace(first, public_key=intruder.public_key, number=2, **voucher)
    keep(connection, 9, forged_state := msgspec.json.encode(forged))
    connection.execute(
        "INSERT INTO keys SELECT ?, 2, enrolled_at_ns, enrolled_by, ?, ?, reason, NULL, NULL, NULL FROM keys",
        (intruder.public_key, *voucher.values()),
    )
    ((body, previous),) = connection.execute(
        "SELECT new.body, old.hash FROM events AS new, events AS old "
        "WHERE new.position = 9 AND old.position = 8"
    )
    event = LEASES.decode_event(body)
    assert isinstance(event, StoreCheckpointed)
    anew = encode_event(replace(event, state_digest=state_digest(forged_state)))
    connection.execute(
        "UPDATE events SET body = ?, hash = ? WHERE position = 9", (anew.decode(), link(previous, 9, anew))
    )
    rows: list[Any] = connection.execute("SELECT position, hash FROM events").fetchall()
    for position, entry_hash in rows:
        again = seal(intruder, position, position, entry_hash)
        connection.execute("UPDATE events SET seal = ? WHERE position = ?", (again, position))


def test_a_key_that_comes_in_by_a_forged_checkpoint_is_found(pruned: Shell) -> None:
    found = pruned.after(lambda connection: let_in(connection, new_key()))
    assert found.first_bad == 9
    assert "vouches for one of its keys" in found.problems[0]


def test_a_key_that_was_retired_before_the_checkpoint_seals_nothing(tmp_path: Path, clock: FakeClock) -> None:
    store = SqliteStore(tmp_path / "leases", clock=clock, durability="fast")
    registrar = Registrar(store)
    registrar.call(claim("door"))
    (retired,) = store.sealer.ring.at_hand()
    rotate(store, actor="ops")
    clock.advance(40 * DAY)
    assert prune(store, actor="ops").entries == 4
    registrar.close()
    shell = Shell(tmp_path / "leases", clock)

    def seal_again(connection: apsw.Connection) -> None:
        ((position, entry_hash),) = connection.execute("SELECT position, hash FROM events")
        forged = seal(shell.store.sealer.ring.load(retired), position, position, entry_hash)
        connection.execute("UPDATE events SET seal = ?", (forged,))

    found = shell.after(seal_again)
    assert found.first_bad == 5
    assert "was not admitted then" in found.problems[0]
    shell.close()


def test_nothing_is_pruned_or_rebuilt_from_a_ledger_that_is_not_right(
    pruned: Shell, clock: FakeClock
) -> None:
    pruned.connection.execute("UPDATE events SET body = replace(body, 'door', 'DOOR') WHERE position = 7")
    clock.advance(100 * DAY)
    with pytest.raises(LedgerBroken, match="nothing was pruned") as caught:
        prune(pruned.store, actor="ops", keep_ns=KEEP_NS)
    assert caught.value.position == 7
    with pytest.raises(LedgerBroken, match="ledger entry 7"):
        rebuild(pruned.store)
    assert pruned.column("position") == [7, 8, 9]
