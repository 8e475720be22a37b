"""Tables that cannot be read keep nobody from checking the ledger, and from making them anew."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from leasehold.engine.audit import audit, rebuild
from leasehold.kernel.lease.records import LEASE
from leasehold.stores.sqlite import SqliteStore
from tests.stores.sqlite.support import client_of, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    path = tmp_path / "leases"
    with client_of(path) as client:
        client.acquire("resource", metadata={"a": 1}).detach()
    with closing(open_store(path)) as opened:
        yield opened


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE authority SET families = 'not JSON'",
        "UPDATE authority SET families = '[]'",
        "UPDATE authority SET outage = '{}'",
        "UPDATE leases SET metadata = 'not JSON'",
        "UPDATE leases SET delegation = '[]'",
    ],
)
def test_what_cannot_be_read_is_told_by_an_audit_and_made_anew(store: SqliteStore, damage: str) -> None:
    with closing(apsw.Connection(str(store.path / "leases.db"))) as connection:
        connection.execute(damage)
        assert connection.changes() == 1
    assert [problem.split(":")[0] for problem in audit(store).problems] == [
        "a row of the tables cannot be read"
    ]
    rebuild(store)
    assert audit(store).problems == []
    with store.snapshot() as snapshot:
        assert len(snapshot.state().of(LEASE)) == 1


def test_documents_of_a_family_that_is_not_known_are_left_alone(store: SqliteStore) -> None:
    with closing(apsw.Connection(str(store.path / "leases.db"))) as connection:
        connection.execute(
            "INSERT INTO documents (family, key, tenant, body) VALUES ('unknown', 'k', 'k', '{}')"
        )
    with store.snapshot() as snapshot:
        assert "unknown" not in snapshot.state().records, "a family that nobody knows is nobody's business"
    assert audit(store).problems == []


def test_an_entry_that_is_filed_as_forgotten_is_found(store: SqliteStore) -> None:
    with closing(apsw.Connection(str(store.path / "leases.db"))) as connection:
        connection.execute("UPDATE events SET remembered = 0 WHERE type = 'lease.issued'")
        assert connection.changes() == 1
    assert len(audit(store).problems) == 1
