"""Whatever is done to a ledger behind its back is found, and the first entry that is not right is named."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from leasehold.engine.audit import Audit, audit, rebuild
from leasehold.engine.batch import Rules, run_batch
from leasehold.engine.port import Head, Store
from leasehold.engine.registrar import Registrar
from leasehold.engine.sealing import seal
from leasehold.engine.signing import SigningKey, new_key
from leasehold.errors import LedgerBroken
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Derive, Renew
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.chain import link
from leasehold.kernel.ledger.events import KeyEnrolled, encode_event
from leasehold.stores.sqlite import SqliteStore
from leasehold.stores.sqlite.reading import SqliteSnapshot
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import claim, granted, is_told_plainly, release


class Shell:
    """A SQL shell on a store, whose changes are looked at by an audit and then taken back."""

    def __init__(self, path: Path, clock: FakeClock) -> None:
        self.store = SqliteStore(path, clock=clock)
        self.connection = apsw.Connection(str(path / "leases.db"))

    @contextmanager
    def snapshot(self) -> Iterator[SqliteSnapshot]:
        with self.store.snapshot() as real:
            yield SqliteSnapshot(self.connection, real.reading)

    def after(self, change: Callable[[apsw.Connection], object], **known: object) -> Audit:
        """What an audit finds after a change."""
        self.connection.execute("BEGIN")
        try:
            before = self.connection.total_changes()
            change(self.connection)
            assert self.connection.total_changes() > before, "the tampering itself did nothing"
            found = audit(self, **known)  # type: ignore[arg-type]
            assert is_told_plainly(found.problems), found.problems
            return found
        finally:
            self.connection.execute("ROLLBACK")

    def column(self, name: str) -> list[object]:
        return [row[0] for row in self.connection.execute(f"SELECT {name} FROM events ORDER BY position")]

    def key(self) -> SigningKey:
        ring = self.store.sealer.ring
        return ring.load(ring.at_hand()[0])

    def close(self) -> None:
        self.connection.close()
        self.store.close()


@pytest.fixture
def shell(tmp_path: Path, clock: FakeClock) -> Iterator[Shell]:
    """Seven entries in five commits; the third and the fourth have two each."""
    path = tmp_path / "leases"
    store = SqliteStore(path, clock=clock, durability="fast")
    registrar = Registrar(store)
    lease = granted(registrar.call(claim("door")))
    clock.advance(1)
    others = [granted(one) for one in run_batch(store, [claim("gate"), claim("window", "bob")], Rules())]
    names = (lease.lease_id, others[0].lease_id)
    run_batch(
        store,
        [
            Renew(lease_ids=names, holder="ann", ttl_ns=60 * 10**9, request_id="renewal"),
            release(others[1]),
        ],
        Rules(),
    )
    registrar.call(release(lease))
    registrar.close()
    shell = Shell(path, clock)
    yield shell
    shell.close()


def test_what_nobody_touched_has_no_problems(shell: Shell) -> None:
    found = audit(shell.store)
    assert (found.entries, found.sealed, found.first_bad, found.problems) == (7, 7, None, [])
    assert [bool(one) for one in shell.column("seal")] == [True, True, False, True, False, True, True]


@pytest.mark.parametrize("column", ["body", "hash", "seal"])
def test_every_changed_byte_is_found_and_named(shell: Shell, column: str) -> None:
    kind = "TEXT" if column == "body" else "BLOB"
    for position, stored in enumerate(shell.column(f"CAST({column} AS BLOB)"), 1):
        for place in range(len(stored or b"")):  # type: ignore[arg-type]
            changed = bytearray(stored)  # type: ignore[call-overload]
            changed[place] ^= 1
            found = shell.after(
                lambda connection: connection.execute(
                    f"UPDATE events SET {column} = CAST(? AS {kind}) WHERE position = ?",
                    (bytes(changed), position),  # noqa: B023
                )
            )
            assert found.first_bad == position, (column, position, place)


@pytest.mark.parametrize(
    "column",
    ["type", "at_ns", "tenant", "lease_id", "resource", "holder", "token", "request", "tick", "counter"],
)
def test_an_entry_that_queries_would_find_as_something_else_is_found_and_named(
    shell: Shell, column: str
) -> None:
    number = column in ("at_ns", "token", "tick", "counter")
    other = f"coalesce({column}, 0) + 1" if number else f"coalesce({column}, '') || 'x'"
    for position in range(1, 8):
        statement = f"UPDATE events SET {column} = {other} WHERE position = {position}"
        found = shell.after(lambda connection: connection.execute(statement))  # noqa: B023
        assert found.first_bad == position
        assert ("its indexed columns" in found.problems[0]) != (column == "counter")


def test_bytes_that_are_no_text_are_found_and_named(shell: Shell) -> None:
    for column in ("holder", "type"):
        statement = f"UPDATE events SET {column} = CAST(x'ff' AS TEXT) WHERE position = 4"
        assert shell.after(lambda connection: connection.execute(statement)).first_bad == 4  # noqa: B023


def test_a_dropped_entry_is_found_and_named(shell: Shell) -> None:
    for position in range(1, 7):
        statement = f"DELETE FROM events WHERE position = {position}"
        assert shell.after(lambda connection: connection.execute(statement)).first_bad == position  # noqa: B023


def test_a_dropped_seal_is_found_although_later_seals_cover_its_entries(shell: Shell) -> None:
    seals = [position for position, one in enumerate(shell.column("seal"), 1) if one]
    for position, following in zip(seals, [*seals[1:], 7], strict=True):
        statement = f"UPDATE events SET seal = NULL WHERE position = {position}"
        found = shell.after(lambda connection: connection.execute(statement))  # noqa: B023
        assert found.first_bad == following


def _renumber(connection: apsw.Connection, order: list[int]) -> None:
    """Put entries into another order, and link them anew: only the seals do not fit."""
    rows = {row[0]: str(row[1]) for row in connection.execute("SELECT position, body FROM events")}
    columns = (
        "type, at_ns, tenant, lease_id, resource, holder, token, request, tick, remembered, counter, "
        "body, seal"
    )
    connection.execute(f"CREATE TEMP TABLE old AS SELECT position, {columns} FROM events")
    connection.execute("DELETE FROM events")
    previous = bytes(32)
    for position, old in enumerate(order, 1):
        previous = link(previous, position, rows[old].encode())
        connection.execute(
            f"INSERT INTO events (position, hash, {columns}) "
            f"SELECT ?, ?, {columns} FROM old WHERE position = ?",
            (position, previous, old),
        )
    connection.execute("DROP TABLE old")


@pytest.mark.parametrize(
    ("order", "first_bad"),
    [
        ([1, 2, 4, 3, 5, 6, 7], 3),  # swapped within a commit
        ([1, 2, 3, 4, 6, 5, 7], 5),
        ([1, 2, 2, 3, 4, 5, 6, 7], 3),  # duplicated
        ([1, 2, 3, 4, 5, 6, 7, 7], 8),
        ([1, 3, 4, 5, 6, 7], 3),  # dropped, with all behind it linked anew
        ([2, 3, 4, 5, 6, 7], 1),
    ],
)
def test_entries_in_another_order_are_found_also_if_all_hashes_fit(
    shell: Shell, order: list[int], first_bad: int
) -> None:
    found = shell.after(lambda connection: _renumber(connection, order))
    assert found.first_bad is not None
    assert found.first_bad <= first_bad + 1
    assert found.problems


def _rewrite(connection: apsw.Connection, position: int, body: bytes, key: SigningKey | None) -> None:
    """Change the last entry so that its hash fits, and seal it with a key of one's own."""
    before = connection.execute("SELECT hash FROM events WHERE position = ?", (position - 1,)).get
    made = link(before, position, body)
    sealed = None if key is None else seal(key, position, position, made)
    connection.execute(
        "UPDATE events SET body = ?, hash = ?, seal = ? WHERE position = ?",
        (body.decode(), made, sealed, position),
    )


def test_an_entry_that_was_sealed_with_a_foreign_key_is_found_and_named(shell: Shell) -> None:
    body = shell.column("CAST(body AS BLOB)")[-1]
    assert isinstance(body, bytes)
    found = shell.after(lambda connection: _rewrite(connection, 7, body, new_key()))
    assert found.first_bad == 7
    assert "not admitted" in found.problems[0]
    again = shell.after(lambda connection: _rewrite(connection, 7, body, shell.key()))
    assert again.problems == []  # The control: with the right key it is what it was.


def test_an_entry_that_was_written_without_a_key_is_found_and_named(shell: Shell) -> None:
    body = shell.column("CAST(body AS BLOB)")[-1]
    assert isinstance(body, bytes)
    found = shell.after(lambda connection: _rewrite(connection, 7, body, None))
    assert found.first_bad == 7
    assert "not sealed" in found.problems[0]


def test_a_foreign_key_that_enrols_itself_is_found_and_named(shell: Shell) -> None:
    stranger = new_key()
    body = shell.column("CAST(body AS BLOB)")[-1]
    assert isinstance(body, bytes)
    event = LEASES.decode_event(body)
    enrolment = KeyEnrolled(
        tick=event.tick, at_ns=event.at_ns, actor="registrar", public_key=stranger.public_key
    )
    found = shell.after(lambda connection: _append(connection, enrolment, stranger))
    assert found.first_bad == 8
    assert "no admitted key vouches for" in found.problems[0]


def test_a_forged_voucher_is_found_and_named(shell: Shell) -> None:
    stranger = new_key()
    event = LEASES.decode_event(shell.column("CAST(body AS BLOB)")[-1])  # type: ignore[arg-type]
    enrolment = KeyEnrolled(
        tick=event.tick,
        at_ns=event.at_ns,
        actor="registrar",
        public_key=stranger.public_key,
        vouched_by=shell.key().public_key,
        voucher=stranger.sign(b"leasehold key voucher 1" + stranger.public_key),
    )
    found = shell.after(lambda connection: _append(connection, enrolment, stranger))
    assert found.first_bad == 8
    assert "vouches" in found.problems[0]


def _append(connection: apsw.Connection, event: KeyEnrolled, key: SigningKey) -> None:
    previous = connection.execute("SELECT hash FROM events WHERE position = 7").get
    body = encode_event(event)
    made = link(previous, 8, body)
    connection.execute(
        "INSERT INTO events (position, type, at_ns, tick, remembered, counter, body, hash, seal) "
        "SELECT 8, ?, ?, ?, 0, counter, ?, ?, ? FROM events WHERE position = 7",
        (event.type, event.at_ns, event.tick.value, body.decode(), made, seal(key, 8, 8, made)),
    )


def test_a_ledger_that_was_cut_off_together_with_its_tables_is_found_by_a_head_kept_elsewhere(
    shell: Shell,
) -> None:
    with shell.store.snapshot() as snapshot:
        kept = snapshot.head
    cut = "DELETE FROM events WHERE position = 7"
    found = shell.after(lambda connection: connection.execute(cut), expected=kept)
    assert found.first_bad == 7
    assert "the head that was kept" in found.problems[0]
    assert audit(shell.store, expected=kept).problems == []


def test_a_wrong_head_is_the_only_problem_wherever_it_was_kept(store: Store) -> None:
    """Where a commit has several entries, the state between two of them once was called wrong as well."""
    registrar = Registrar(store)
    parent = granted(registrar.call(claim("project", budget=Budget(tokens=10))))
    child = Derive(
        parent_id=parent.lease_id,
        holder="ann",
        child_holder="bob",
        resource="part",
        lease_id="child",
        budget=Budget(tokens=3),
        request_id="derive",
    )
    registrar.call(child)
    registrar.call(release(parent))
    with store.snapshot() as snapshot:
        end = snapshot.head.position
    for position in range(1, end + 1):
        found = audit(store, expected=Head(position=position, hash=bytes(32)))
        assert (found.first_bad, len(found.problems)) == (position, 1), found.problems
    registrar.close()


def test_another_entry_where_the_kept_head_was_is_found_and_named(shell: Shell) -> None:
    found = audit(shell.store, expected=Head(position=5, hash=bytes(32)))
    assert found.first_bad == 5


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM keys",
        "UPDATE keys SET voucher = x'00'",
        "UPDATE authority SET key_changes = 9",
        "DELETE FROM leases",
        "UPDATE leases SET holder = 'eve'",
    ],
)
def test_tables_that_say_something_else_are_found_and_can_be_rebuilt(shell: Shell, statement: str) -> None:
    shell.connection.execute(statement)
    assert audit(shell.store).problems
    rebuild(shell.store)
    assert audit(shell.store).problems == []


def test_nothing_is_rebuilt_from_a_ledger_that_is_broken(shell: Shell) -> None:
    shell.connection.execute("UPDATE events SET body = body || ' ' WHERE position = 5")
    shell.connection.execute("UPDATE leases SET holder = 'eve'")
    with pytest.raises(LedgerBroken, match="ledger entry 5") as caught:
        rebuild(shell.store)
    assert caught.value.position == 5
    assert {row[0] for row in shell.connection.execute("SELECT holder FROM leases")} == {"eve"}
