"""An audit finds whatever was changed behind the ledger's back, and names the first bad entry."""

import re
from pathlib import Path

import apsw
import pytest

from leasehold.engine.audit import audit
from leasehold.engine.batch import Rules, run_batch
from leasehold.engine.port import Store
from leasehold.engine.registrar import Registrar
from leasehold.kernel.lease.commands import Renew, Revoke
from leasehold.kernel.lease.model import Mode
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import claim, granted, is_told_plainly, release


def live_a_little(store: Store, clock: FakeClock) -> None:
    """Leave one event of every kind behind; the ledger is some twenty entries long."""
    registrar = Registrar(store)
    names = []
    for number in range(6):
        lease = granted(registrar.call(claim(f"door-{number}", metadata={"number": number})))
        names.append(lease.lease_id)
        clock.advance(0.1)
    registrar.call(Renew(lease_ids=tuple(names), holder="ann", ttl_ns=60 * 10**9, request_id="renewal"))
    registrar.call(Renew(lease_ids=(names[0],), holder="ann", ttl_ns=90 * 10**9, request_id="another"))
    registrar.call(release(granted(registrar.call(claim("window", "bob", mode=Mode.SHARED)))))
    registrar.call(Revoke(lease_id=names[1], operator="olga", reason="stuck", request_id="end"))
    clock.advance(70)
    granted(registrar.call(claim("door-2", "bob")))
    granted(registrar.call(claim("lasting", "bob", ttl_ns=3600 * 10**9, bound_to_boot=False)))
    clock.reboot()
    granted(registrar.call(claim("door-3", "bob")))
    registrar.call(claim("lasting", "eve"))
    registrar.call(claim("door-3", "bob", adopt=True))


def test_a_whole_history_has_no_problems(store: Store, clock: FakeClock) -> None:
    live_a_little(store, clock)
    progress: list[tuple[int, int]] = []

    found = audit(store, progress=lambda done, total: progress.append((done, total)))

    assert found.problems == []
    assert found.entries > 15
    assert found.leases == 11
    assert progress == []  # Told every thousand entries.


def test_a_store_that_nobody_has_used_has_no_problems(store: Store) -> None:
    found = audit(store)

    assert (found.entries, found.leases, found.problems) == (0, 0, [])


def test_progress_is_told_every_thousand_entries(store: Store) -> None:
    registrar = Registrar(store)
    commands = [claim(f"door-{number}") for number in range(2_100)]
    run_batch(store, commands, Rules())
    progress: list[tuple[int, int]] = []

    found = audit(store, progress=lambda done, total: progress.append((done, total)))

    assert (found.entries, found.problems) == (2_101, [])
    walked = [(done, total) for done, total in progress if done >= 1_000]
    assert walked == [(1_210, 2_311), (2_210, 2_311)], "a share of the way is for the store itself"
    assert all(done <= 210 and total == 2_311 for done, total in progress if done < 1_000)
    registrar.close()


@pytest.fixture
def file(tmp_path: Path, clock: FakeClock) -> Path:
    path = tmp_path / "leases"
    store = SqliteStore(path, clock=clock, durability="fast")
    live_a_little(store, clock)
    store.close()
    return path


def problems_after(file: Path, clock: FakeClock, *statements: str) -> list[str]:
    """What an audit says once somebody with a SQL shell was there."""
    shell = apsw.Connection(str(file / "leases.db"))
    for statement in statements:
        shell.execute(statement)
        assert shell.total_changes() > 0, "the tampering itself did nothing"
    shell.close()
    store = SqliteStore(file, clock=clock)
    found = audit(store).problems
    store.close()
    assert is_told_plainly(found), found
    return found


@pytest.mark.parametrize(
    ("statement", "position"),
    [
        ("UPDATE events SET body = replace(body, 'ann', 'eve') WHERE position = 5", 5),
        ("UPDATE events SET body = substr(body, 1, 20) WHERE position = 7", 7),
        ("UPDATE events SET body = replace(body, '\"tick\"', '\"tock\"') WHERE position = 7", 7),
        ("UPDATE events SET body = body || ' ' WHERE position = 6", 6),
        ("UPDATE events SET hash = zeroblob(32) WHERE position = 4", 4),
        ("DELETE FROM events WHERE position = 6", 6),
        ("DELETE FROM events WHERE position = 1", 1),
    ],
)
def test_the_first_bad_entry_is_named(file: Path, clock: FakeClock, statement: str, position: int) -> None:
    problems = problems_after(file, clock, statement)

    assert problems[0].startswith(f"ledger entry {position}:")


def test_entries_that_changed_places_are_found(file: Path, clock: FakeClock) -> None:
    problems = problems_after(
        file,
        clock,
        "UPDATE events SET position = -1 WHERE position = 4",
        "UPDATE events SET position = 4 WHERE position = 5",
        "UPDATE events SET position = 5 WHERE position = -1",
    )

    assert "ledger entry 4" in problems[0]


def test_an_entry_put_in_is_found(file: Path, clock: FakeClock) -> None:
    problems = problems_after(
        file,
        clock,
        "INSERT INTO events SELECT max(position) + 1, type, at_ns, tenant, lease_id, resource, holder, "
        "token, NULL, tick, remembered, counter, body, hash, seal FROM events",
    )

    assert problems


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE leases SET holder = 'eve' WHERE resource = 'door-5'",
        "UPDATE leases SET token = token + 1 WHERE resource = 'door-5'",
        "UPDATE leases SET expires_tick = expires_tick + 1 WHERE resource = 'lasting'",
        "UPDATE leases SET status = 'active' WHERE status = 'released' AND resource = 'window'",
        "UPDATE leases SET metadata = '{}' WHERE resource = 'door-4'",
        "UPDATE leases SET end_reason = 'nothing' WHERE status = 'revoked'",
        "UPDATE leases SET version = version + 1 WHERE resource = 'door-0'",
        "UPDATE leases SET signature = x'00' WHERE resource = 'door-0'",
        "UPDATE leases SET expires_tick = NULL WHERE resource = 'lasting'",
        "UPDATE leases SET release_reason = 'aborted' WHERE resource = 'door-0'",
        "DELETE FROM leases WHERE resource = 'window'",
    ],
)
def test_a_lease_that_the_ledger_tells_otherwise_is_found(
    file: Path, clock: FakeClock, statement: str
) -> None:
    (problem, *_) = problems_after(file, clock, statement)

    assert "the ledger says" in problem or "is missing from the tables" in problem


def test_of_a_lease_that_the_ledger_tells_otherwise_only_what_differs_is_told(
    file: Path, clock: FakeClock
) -> None:
    (problem,) = problems_after(
        file, clock, "UPDATE leases SET holder = 'eve', tick_era = 7 WHERE resource = 'lasting'"
    )

    lease_id, _, told = problem.removeprefix("lease ").partition(" ")
    assert lease_id
    assert told == (
        'has in the tables holder "eve" (the ledger says "bob"), issued_tick.era 7 (the ledger says 1), '
        "expires_tick.era 7 (the ledger says 1)"
    )


def test_a_lease_that_no_entry_tells_of_is_found(file: Path, clock: FakeClock) -> None:
    columns = "tenant, holder, status, mode, token, ttl_ns, issued_tick, expires_tick, tick_era, tick_rate, "
    columns += (
        "issued_at_ns, expires_at_ns, renewal_count, max_renewals, bound_to_boot, signature, metadata, "
    )
    columns += "config_version, zone_version, version"
    problems = problems_after(
        file,
        clock,
        f"INSERT INTO leases (lease_id, resource, {columns}) "
        f"SELECT 'stray', 'nowhere', {columns} FROM leases WHERE resource = 'lasting'",
    )

    assert len(problems) == 1
    assert problems[0] == "lease stray is in the tables, and no entry of the ledger tells of it"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE leases SET release_reason = 'gibberish' WHERE status = 'released'",
        "UPDATE leases SET metadata = '{' WHERE resource = 'door-4'",
    ],
)
def test_a_row_that_cannot_even_be_read_is_a_problem_and_no_crash(
    file: Path, clock: FakeClock, statement: str
) -> None:
    (problem, *_) = problems_after(file, clock, statement)

    assert "cannot be read" in problem


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE authority SET epoch = epoch + 1",
        "UPDATE authority SET era_first_tick = era_first_tick - 1",
        "UPDATE authority SET boot_id = 'another'",
        "UPDATE authority SET identity = 'another'",
        "DELETE FROM authority",
        "UPDATE events SET counter = counter - 1 WHERE position = (SELECT max(position) FROM events)",
        "UPDATE events SET tick = tick - 1 WHERE position = (SELECT max(position) FROM events)",
    ],
)
def test_a_registrars_record_that_was_changed_is_found(file: Path, clock: FakeClock, statement: str) -> None:
    problems = problems_after(file, clock, statement)

    assert any(
        problem.startswith("the registrar's own record ") or "ledger entry" in problem for problem in problems
    )


def test_an_era_that_was_changed_is_found(file: Path, clock: FakeClock) -> None:
    (problem,) = problems_after(file, clock, "UPDATE eras SET last_tick = last_tick + 1")

    assert problem.startswith("era 1 has in the tables last_tick ")


def test_a_key_that_was_changed_is_found_by_its_name(file: Path, clock: FakeClock) -> None:
    (problem,) = problems_after(file, clock, "UPDATE keys SET voucher = x'0badc0de'")

    assert re.fullmatch(
        r"key [0-9a-f]{16} has in the tables voucher 0badc0de \(the ledger says nothing\)", problem
    )


def test_a_long_list_of_problems_is_cut(file: Path, clock: FakeClock) -> None:
    store = SqliteStore(file, clock=clock)
    registrar = Registrar(store)
    for number in range(30):
        granted(registrar.call(claim(f"more-{number}")))
    registrar.close()

    assert len(problems_after(file, clock, "UPDATE leases SET holder = 'eve'")) == 20
