"""No command costs more because the backlog is longer, or because there are more ranges."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from leasehold.engine.batch import Rules, run_batch
from leasehold.kernel.ledger.commands import Command
from leasehold.registry import all_families
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from leasehold.work.law.commands import Enqueue, Fail, Succeed, TryAcquire
from leasehold.work.law.model import WORK, Place, Queued, Range, domain_key, place_key, queued_key, range_key
from tests.lanes import by_length
from tests.work.house import WorkHouse

FEW, MANY = 10, by_length(100_000, 10_000)
_INSERT = "INSERT INTO documents (family, key, tenant, body) VALUES (?, ?, 'default', ?)"


class Cost(msgspec.Struct, frozen=True):
    statements: int
    steps: int
    """Of SQLite's machine, rounded: a row that is looked at is some of them."""


@contextmanager
def filled(folder: Path, count: int) -> Iterator[WorkHouse]:
    """A store with a backlog, and with ranges, that are written to the file directly: no need to be quick."""
    clock = FakeClock()
    store = SqliteStore(folder / f"{count}.db", clock=clock, durability="fast", families=all_families())
    with closing(store):
        house = WorkHouse(store, clock)
        for domain in ("waiting", "ragged", "flying"):
            house.do(domain, 0)
        house.token("flying", 1)
        _fill(folder / f"{count}.db" / "leases.db", count)
        yield house


def _fill(path: Path, count: int) -> None:
    spell = msgspec.json.encode
    with closing(apsw.Connection(str(path))) as connection, connection:
        rows: list[tuple[str, str, str]] = []
        for domain in ("waiting", "flying"):
            for place in range(count):
                offset = 10 * count - place
                queued, found = Queued(offset=offset), Place(place=place)
                rows.append((WORK, queued_key("default", domain, place), spell(queued).decode()))
                rows.append((WORK, place_key("default", domain, offset), spell(found).decode()))
            connection.execute(
                "UPDATE documents SET body = json_set(body, '$.next', ?) WHERE key = ?",
                (count, domain_key("default", domain)),
            )
        for number in range(1, count):
            first = 3 * number
            rows.append((WORK, range_key("default", "ragged", first), spell(Range(last=first)).decode()))
        connection.executemany(_INSERT, rows)


def cost(house: WorkHouse, command: Command) -> Cost:
    """What a command costs a process that knows nothing of the store yet."""
    statements: list[str] = []
    steps = 0

    def step() -> bool:
        nonlocal steps
        steps += 1
        return False

    def note(_: object, sql: str, __: object) -> bool:
        statements.append(sql)
        return True

    store: Any = house.store
    with store.write() as transaction:
        connection = transaction._connection
    connection.exec_trace = note
    connection.set_progress_handler(step, 1)
    try:
        run_batch(house.store, (command,), Rules())
    finally:
        connection.exec_trace = None
        connection.set_progress_handler(None)
    return Cost(len(statements), steps)


@pytest.mark.deep
def test_no_command_costs_more_because_there_is_more(tmp_path: Path) -> None:
    costs: dict[int, dict[str, Cost]] = {}
    for count in (FEW, MANY):
        with filled(tmp_path, count) as house:
            head, middle = 10 * count, 3 * (count // 2)
            asked: dict[str, Command] = {
                "acquire the head": TryAcquire(offset=head, **house.said("waiting", {})),
                "acquire among ranges": TryAcquire(offset=middle + 1, **house.said("ragged", {})),
                "queue up": TryAcquire(offset=5, **house.said("flying", {})),
                "queue up again": TryAcquire(offset=5, **house.said("flying", {})),
                "enqueue": Enqueue(offsets=(6, 7), **house.said("flying", {})),
            }
            costs[count] = {name: cost(house, command) for name, command in asked.items()}
            token = house.flight("ragged").token  # type: ignore[union-attr]
            costs[count]["succeed among ranges"] = cost(
                house, Succeed(token=token, **house.said("ragged", {}))
            )
            token = house.flight("flying").token  # type: ignore[union-attr]
            costs[count]["give up"] = cost(
                house, Fail(token=token, max_retries=0, **house.said("flying", {}))
            )
    for name, few in costs[FEW].items():
        many = costs[MANY][name]
        assert many.statements == few.statements, name
        # Steps of the machine count the rows that are looked at: a handful more may be a deeper tree.
        assert abs(many.steps - few.steps) <= 30, (name, few, many)


def test_ten_million_processed_offsets_take_less_than_a_kilobyte(house: WorkHouse) -> None:
    # As one range they are a record like that of ten.
    house.do("A", *range(10))
    records = house.records()
    size = sum(len(key) + len(msgspec.json.encode(record)) for key, record in records.items())
    assert size < 1_000
    assert house.ranges() == 1
    assert len(msgspec.json.encode(Range(last=10_000_000))) < 40
