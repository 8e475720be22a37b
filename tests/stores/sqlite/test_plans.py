"""What is asked about lines of leases is found through an index, however many leases there are."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from leasehold.stores.sqlite import queues, reading
from tests.stores.sqlite.support import open_store


@pytest.mark.parametrize(
    ("sql", "values", "indexes"),
    [
        (reading._REQUEST, ("r",), {"events_by_request"}),
        (reading._GRANT, ("x",), {"sqlite_autoindex_leases_1", "events_by_resource"}),
        (reading._CHILDREN, ("p", 9), {"leases_by_parent"}),
        (reading._ORPHANS, (9,), {"leases_orphaned", "leases_by_parent"}),
    ],
)
def test_a_question_about_a_line_reads_through_its_index(
    tmp_path: Path, sql: str, values: tuple[object, ...], indexes: set[str]
) -> None:
    path = tmp_path / "leases.db"
    open_store(path).close()
    with closing(apsw.Connection(str(path))) as connection:
        plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))
    assert all(f"INDEX {index}" in plan for index in indexes), plan


@pytest.mark.parametrize("depth", [2, 40])
@pytest.mark.parametrize(
    ("question", "indexes"),
    [
        ("tree", {"leases_exclusive", "leases_shared"}),
        ("queue", set()),
        ("ahead", set()),
        ("whole_queue", set()),
        ("upgrading", set()),
        ("held_by", {"leases_by_holder"}),
        ("held_by_waiting", {"leases_waiting_of_holder", "leases_by_holder"}),
    ],
)
def test_a_question_about_a_path_reads_through_indexes_only(
    tmp_path: Path, depth: int, question: str, indexes: set[str]
) -> None:
    statements, values = queues._asked("default", "/a" * depth, 2)
    path = tmp_path / "leases.db"
    open_store(path).close()
    with closing(apsw.Connection(str(path))) as connection:
        sql = f"EXPLAIN QUERY PLAN {getattr(statements, question)}"
        steps = [row[3] for row in connection.execute(sql, values)]
    used = {step.split("INDEX ")[1].split()[0] for step in steps if "INDEX leases" in step}
    assert used == indexes | {"leases_waiting"}
    assert not [step for step in steps if step.startswith(("SCAN leases", "SCAN held"))]
