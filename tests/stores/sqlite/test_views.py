"""The views that the contract of file leases names, read as any SQL client would read them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import leasehold
from leasehold.client.blocking.client import Client
from leasehold.settings import SETTINGS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "leases"


@pytest.fixture
def leases(path: Path) -> Iterator[Client]:
    with leasehold.connect(path, durability="fast") as client:
        yield client


def rows(path: Path, sql: str) -> list[dict[str, Any]]:
    with closing(apsw.Connection(str(path / "leases.db"), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        cursor = connection.execute(sql)
        found = cursor.fetchall()
        if not found:
            return []
        names = [column[0] for column in connection.execute(sql).get_description()]
        return [dict(zip(names, row, strict=True)) for row in found]


def test_file_leases_has_the_columns_of_the_contract_in_unix_seconds(path: Path, leases: Client) -> None:
    lease = leases.acquire("/src/app.py", holder="agent-7", ttl=600, max_renewals=5)
    lease.renew()
    leases.acquire("report-42")
    (row,) = rows(path, "SELECT * FROM file_leases")
    (held,) = leases.inspect("/src/app.py")
    status = held.lease
    assert row == {
        "id": lease.lease_id,
        "file_path": "/src/app.py",
        "agent_id": "agent-7",
        "created_at": status.issued_at_ns // 10**9,
        "expires_at": status.expires_at_ns // 10**9,
        "ttl_seconds": 600,
        "status": "active",
        "renewal_count": 1,
        "max_renewals": 5,
        "updated_at": (status.last_renewed_at_ns or 0) // 10**9,
        "tenant": "default",
    }


def test_a_revoked_lease_shows_as_released_and_a_wait_that_ended_as_failed(
    path: Path, leases: Client
) -> None:
    lease = leases.acquire("service://db", holder="agent-1")
    with pytest.raises(leasehold.WaitTimeout):
        leases.acquire("service://db", holder="agent-2", wait=0.01)
    leases.revoke(lease.lease_id, reason="policy")
    found = rows(path, "SELECT agent_id, status FROM file_leases ORDER BY agent_id")
    assert [(row["agent_id"], row["status"]) for row in found] == [
        ("agent-1", "released"),
        ("agent-2", "failed"),
    ]
    told = rows(path, "SELECT * FROM lease_history WHERE event_type <> 'acquired' ORDER BY agent_id")
    assert [
        (row["event_type"], row["status_before"], row["status_after"], row["reason"]) for row in told
    ] == [
        ("released", "active", "released", "policy"),
        ("failed", "pending", "failed", "cancelled"),
    ]


def test_history_counts_renewals_as_they_were_then(path: Path, leases: Client) -> None:
    first, second = leases.acquire("/a", holder="ann"), leases.acquire("/b", holder="ann")
    first.renew()
    leases.renew_many([first, second])
    first.release()
    found = rows(path, "SELECT * FROM lease_history ORDER BY CAST(id AS INTEGER), file_path")
    assert [(row["event_type"], row["file_path"], row["renewal_count"]) for row in found] == [
        ("acquired", "/a", 0),
        ("acquired", "/b", 0),
        ("renewed", "/a", 1),
        ("renewed", "/a", 2),
        ("renewed", "/b", 1),
        ("released", "/a", 2),
    ]
    assert len({row["id"] for row in found}) == len(found)


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("file_path = '/a'", "file_leases_by_path (resource=?)"),
        ("agent_id = 'a'", "file_leases_by_agent (holder=?)"),
        ("expires_at <= 5", "file_leases_by_expiry (<expr><?)"),
        ("file_path = '/a' AND status = 'active'", "file_leases_by_path (resource=? AND <expr>=?)"),
        ("agent_id = 'a' AND status = 'active'", "file_leases_by_agent (holder=? AND <expr>=?)"),
    ],
)
def test_what_the_contract_has_an_index_for_is_found_through_one(
    path: Path, leases: Client, condition: str, index: str
) -> None:
    leases.acquire("/a")
    (step,) = rows(path, f"EXPLAIN QUERY PLAN SELECT * FROM file_leases WHERE {condition}")
    assert step["detail"] == f"SEARCH leases USING INDEX {index}"


def test_the_history_of_a_file_is_found_through_an_index_but_for_what_was_renewed_together(
    path: Path, leases: Client
) -> None:
    leases.acquire("/a")
    steps = rows(path, "EXPLAIN QUERY PLAN SELECT * FROM lease_history WHERE file_path = '/a'")
    of_the_ledger = [step["detail"] for step in steps if step["detail"].split()[1] == "events"]
    assert of_the_ledger == [
        "SEARCH events USING INDEX events_by_resource (resource=?)",
        "SCAN events USING INDEX events_of_batches",
    ]


def test_lease_configs_shows_every_setting_as_the_catalog_has_it(path: Path, leases: Client) -> None:
    leases.acquire("/a")
    found = rows(path, "SELECT * FROM lease_configs")
    spelled = {True: "true", False: "false"}
    assert [
        (row["config_key"], row["config_value"], row["value_type"], row["description"], row["tenant"])
        for row in found
    ] == [
        (
            one.key,
            spelled[one.default] if isinstance(one.default, bool) else str(one.default),
            one.value_type,
            one.description,
            "" if one.is_store_wide else "default",
        )
        for one in SETTINGS.values()
    ]
    assert {(row["scope"], row["resource_id"], row["requires_restart"]) for row in found} == {
        ("global", None, int(any(one.requires_restart for one in SETTINGS.values())))
    }


def test_lease_configs_shows_what_was_changed(path: Path, leases: Client) -> None:
    leases.settings.set("max_renewals", 4)
    leases.settings.set("max_renewals", 9, resource="/a")
    leases.settings.set("keep_history", False)
    found = rows(path, "SELECT * FROM lease_configs WHERE config_key IN ('max_renewals', 'keep_history')")
    assert [(row["config_key"], row["config_value"], row["scope"], row["resource_id"]) for row in found] == [
        ("max_renewals", "4", "global", None),
        ("keep_history", "false", "global", None),
        ("max_renewals", "9", "resource", "/a"),
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lease_configs SET config_value = '5' WHERE config_key = 'max_renewals'",
        "INSERT INTO lease_configs (config_key, config_value) VALUES ('max_renewals', '5')",
        "DELETE FROM lease_configs WHERE config_key = 'max_renewals'",
    ],
)
def test_settings_cannot_be_changed_by_sql(path: Path, leases: Client, statement: str) -> None:
    leases.acquire("/a")
    with (
        closing(apsw.Connection(str(path / "leases.db"))) as connection,
        pytest.raises(apsw.ConstraintError, match="leasehold config"),
    ):
        connection.execute(statement)
    assert leases.verify().problems == []


def test_the_steps_of_the_schema_are_recorded_as_the_contract_has_it(path: Path, leases: Client) -> None:
    leases.acquire("/a")
    found = rows(path, "SELECT * FROM migrations")
    assert [(row["version"], row["name"], row["status"], row["error_message"]) for row in found] == [
        (1, "ledger", "success", None)
    ]
