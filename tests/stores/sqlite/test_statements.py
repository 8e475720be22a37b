"""What reading and writing costs in statements: the same for many as for few, and little for one."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.engine.batch import Rules, run_batch
from leasehold.engine.port import Batch
from leasehold.kernel.lease.commands import Acquire
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.lease.records import (
    children_of,
    count_of_holder,
    count_of_tenant,
    held_by,
    lease_keys,
    waits_of,
)
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.records import Count, Keys, Scan, Wanted
from leasehold.kernel.ledger.tick import Tick
from leasehold.stores.sqlite import SqliteStore
from leasehold.stores.sqlite.shelves.shelf import FEW
from leasehold.testing.conformance.notes import FAMILIES, NOTE, Note, created, written
from leasehold.testing.conformance.opening import commit
from leasehold.testing.conformance.records import EMPTY, batch, head_of, issued, lease, opened, released

NAMES = [f"n{number}" for number in range(1_000)]


@contextmanager
def opened_store(path: Path, families: Families = FAMILIES) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path / "leases", families=families)) as store:
        yield store


@contextmanager
def counted(connection: Any) -> Iterator[list[str]]:
    """Note the statements that run on a connection."""
    statements: list[str] = []

    def note(_: object, sql: str, __: object) -> bool:
        statements.append(sql)
        return True

    connection.exec_trace = note
    try:
        yield statements
    finally:
        connection.exec_trace = None


def read(store: SqliteStore, keys: Keys) -> list[str]:
    """Return the statements that it takes to read."""
    with store.snapshot() as snapshot:
        snapshot.read(keys)
        with counted(snapshot._connection) as statements:
            snapshot.read(keys)
    return statements


def writes(store: SqliteStore, made: Batch) -> list[str]:
    """Return the statements that it takes to commit a batch of an ordinary turn."""
    with store.write() as transaction, counted(transaction._connection) as statements:
        transaction.commit(replace(made, opens_epoch=False))
    return statements


@pytest.mark.parametrize(
    "question",
    [
        lambda names: lease_keys(keys=set(names)),
        lambda names: lease_keys(grants=set(names)),
        lambda names: lease_keys(resources={("default", name) for name in names}),
        lambda names: lease_keys(queues={("default", name, 2) for name in names}),
        lambda names: lease_keys(scans={held_by(("default", name)) for name in names}),
        lambda names: lease_keys(scans={waits_of(("default", name)) for name in names}),
        lambda names: lease_keys(scans={children_of(name) for name in names}),
        lambda names: lease_keys(counts={count_of_holder(("default", name)) for name in names}),
        lambda names: lease_keys(counts={count_of_tenant(name) for name in names}),
        lambda names: Keys(requests=set(names)),
        lambda names: Keys(families={NOTE: Wanted(keys=set(names))}),
        lambda names: Keys(families={NOTE: Wanted(scans={Scan(name, name + "~", 3) for name in names})}),
        lambda names: Keys(families={NOTE: Wanted(counts={Count(name, name + "~") for name in names})}),
    ],
)
def test_much_is_read_with_one_statement(tmp_path: Path, question: Any) -> None:
    with opened_store(tmp_path) as store:
        assert len(read(store, question(NAMES))) == 1
        assert len(read(store, question(NAMES[: FEW + 1]))) == 1


def test_a_thousand_requests_and_what_they_caused_take_two_statements(tmp_path: Path) -> None:
    leases = [lease(name, resource=name) for name in NAMES]
    with opened_store(tmp_path) as store:
        commit(store, batch(EMPTY, *(issued(one, one.lease_id) for one in leases), created=tuple(leases)))
        assert len(read(store, Keys(requests=set(NAMES)))) == 2


def test_a_lone_caller_reads_with_plain_lookups(tmp_path: Path) -> None:
    with opened_store(tmp_path) as store:
        for keys in (lease_keys(keys={"a"}), lease_keys(resources={("default", "a")}), Keys(requests={"a"})):
            (statement,) = read(store, keys)
            assert "json_each" not in statement


def test_a_lone_caller_writes_one_record_and_one_entry(tmp_path: Path) -> None:
    one = lease()
    longer = replace(one, expires_tick=Tick(value=200), version=2)
    ended = replace(one, state=LeaseState.RELEASED, terminated_at_ns=1, ended_by="ann", version=3)
    with opened_store(tmp_path) as store:
        commit(store, first := batch(EMPTY, opened()))
        head = head_of(first)
        for before, after in ((None, one), (one, longer), (longer, ended)):
            made = batch(
                head,
                released(one),
                created=() if before else (after,),
                changed=() if before is None else ((before, after),),
            )
            record, entry, end = writes(store, made)
            assert record.split()[:3] in (["INSERT", "INTO", "leases"], ["UPDATE", "leases", "SET"])
            assert entry.startswith("INSERT INTO events")
            assert end == "COMMIT"
            head = head_of(made)


def test_a_change_writes_only_what_has_changed(tmp_path: Path) -> None:
    one = lease()
    with opened_store(tmp_path) as store:
        commit(store, first := batch(EMPTY, created=(one,)))
        made = batch(head_of(first), opened(), changed=((one, replace(one, renewal_count=1, version=2)),))
        statement, *_ = writes(store, made)
        assert "status" not in statement
        assert "place" not in statement


def test_many_documents_are_written_with_few_statements(tmp_path: Path) -> None:
    notes = {name: Note(text=name) for name in NAMES}
    with opened_store(tmp_path) as store:
        commit(store, first := batch(EMPTY, opened()))
        changes = created(notes)
        made = batch(head_of(first), written("n0", notes["n0"]), changes=changes)
        assert len(set(writes(store, made))) == 3
        gone = tuple(Change(NOTE, name, note, None) for name, note in notes.items())
        assert len(set(writes(store, batch(head_of(made), opened(), changes=gone)))) == 3


def test_what_is_due_takes_one_statement_for_all_documents(tmp_path: Path) -> None:
    with opened_store(tmp_path) as store, store.snapshot() as snapshot:
        with counted(snapshot._connection) as statements:
            snapshot.due(Tick(value=1), 9)
        assert [statement.count("documents") > 0 for statement in statements] == [False, False, True]


@pytest.mark.parametrize(("resource", "reads"), [("door", 1), ("/src/a.py", 2), ("/src/*.py", 2)])
def test_patterns_cost_an_acquire_no_statement(tmp_path: Path, resource: str, reads: int) -> None:
    """A plain name is looked up in one; a path in two, as before there were patterns."""
    first, second = (
        Acquire(request_id=name, lease_id=name, resource=name, holder=name, ttl_ns=10**10)
        for name in ("first", resource)
    )
    with opened_store(tmp_path) as store:
        run_batch(store, [first], Rules())
        with store.write() as transaction:
            connection = transaction._connection
        with counted(connection) as statements:
            run_batch(store, [second], Rules())
    begin, authority, *looks, record, entry, commit_ = statements
    assert (begin, commit_) == ("BEGIN IMMEDIATE", "COMMIT")
    assert "FROM authority" in authority
    assert [look.split()[0] for look in looks] == ["SELECT"] * reads
    assert record.startswith("INSERT INTO leases")
    assert entry.startswith("INSERT INTO events")
