"""Whatever is asked is found through an index, however many records there are."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from leasehold.engine.port import EntryQuery
from leasehold.kernel.lease.records import CHILDREN, HELD, UNENDED, WAITING
from leasehold.stores.sqlite import listing, reading
from leasehold.stores.sqlite.shelves import document, lease, orders, queues
from tests.stores.sqlite.support import open_store

ID = "sqlite_autoindex_leases_1"


def plan_of(folder: Path, sql: str, values: tuple[object, ...]) -> list[str]:
    path = folder / "leases"
    open_store(path).close()
    with closing(apsw.Connection(str(path / "leases.db"))) as connection:
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def indexes_in(plan: list[str]) -> set[str]:
    return {
        step.split(" INDEX ")[1].split()[0] for step in plan if " INDEX " in step and "VIRTUAL" not in step
    }


@pytest.mark.parametrize(
    ("sql", "values", "indexes"),
    [
        (reading._REQUEST, ("r",), {"events_by_request"}),
        (reading._REQUESTS, ("[]",), {"events_by_request"}),
        (lease._GRANTS, ("[]",), {ID, "events_by_resource"}),
        (lease._LEASES, ("[]",), {ID, "leases_waiting"}),
        (lease._STANDING, ("t", "r"), {"leases_exclusive", "leases_shared", "leases_waiting"}),
        (lease._STANDING_ON_MANY, ("[]",), {"leases_exclusive", "leases_shared", "leases_waiting"}),
        (lease._LAPSED, (1, 1, 9), {"leases_by_expiry", "leases_waiting_by_expiry"}),
        (lease._ORPHANS, (9,), {"leases_orphaned", "leases_by_parent"}),
        (lease._FORGET, ("[]",), {ID}),
        (queues._PLAIN_QUEUES, ("[]", 9), {"leases_waiting"}),
        (document._DUE, (1, 1, "[]", 9), {"documents_by_due"}),
    ],
)
def test_a_question_reads_through_its_index(
    tmp_path: Path, sql: str, values: tuple[object, ...], indexes: set[str]
) -> None:
    plan = plan_of(tmp_path, sql, values)
    assert indexes_in(plan) >= indexes, plan
    assert not [step for step in plan if step.startswith(("SCAN leases", "SCAN one", "SCAN events"))], plan


@pytest.mark.parametrize(
    ("order", "depth", "indexes"),
    [
        (HELD, 2, {"leases_by_holder"}),
        (HELD, 1, {"leases_by_holder"}),
        (WAITING, 2, {"leases_waiting_of_holder"}),
        (UNENDED, 2, {"leases_by_holder", "leases_waiting_of_holder"}),
        (UNENDED, 1, {"leases_by_holder", "leases_waiting_of_holder"}),
        (CHILDREN, 1, {"leases_by_parent"}),
    ],
)
def test_a_scan_or_count_of_leases_reads_through_the_indexes_of_its_order(
    tmp_path: Path, order: str, depth: int, indexes: set[str]
) -> None:
    questions: dict[str, tuple[object, ...]] = {
        orders.scanning(order, depth): (*"ab"[:depth], 9),
        orders.scanning_many(order, depth): ("[]", 9),
        orders.counting(order, depth): ("[]",),
    }
    for sql, values in questions.items():
        plan = plan_of(tmp_path, sql, values)
        assert indexes_in(plan) >= indexes, plan
        assert not [step for step in plan if step.startswith("SCAN leases")], plan


@pytest.mark.parametrize(
    ("sql", "values", "search"),
    [
        (document._GET, ("f", "k"), "SEARCH documents USING PRIMARY KEY (family=? AND key=?)"),
        (document._GET_MANY, ("f", "[]"), "SEARCH documents USING PRIMARY KEY (family=? AND key=?)"),
        (document._FORGET, ("f", "[]"), "SEARCH documents USING PRIMARY KEY (family=? AND key=?)"),
        (document._COUNT, ("f", "[]"), "SEARCH documents USING PRIMARY KEY (family=? AND key>? AND key<?)"),
        (
            document._SCAN[False],
            ("f", "[]", 9),
            "SEARCH one USING PRIMARY KEY (family=? AND key>? AND key<?)",
        ),
        (document._SCAN[True], ("f", "[]", 9), "SEARCH one USING PRIMARY KEY (family=? AND key>? AND key<?)"),
    ],
)
def test_documents_are_found_by_the_order_of_their_keys(
    tmp_path: Path, sql: str, values: tuple[object, ...], search: str
) -> None:
    plan = plan_of(tmp_path, sql, values)
    assert search in plan, plan
    assert not [step for step in plan if step.startswith(("SCAN documents", "SCAN one"))], plan


def test_what_is_due_needs_no_sorting(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, document._DUE, (1, 1, "[]", 9))
    assert not [step for step in plan if "TEMP B-TREE" in step], plan


def test_the_history_of_a_lease_is_found_by_way_of_the_lease(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *listing.entries_statement(EntryQuery(lease_id="x"), lease_is_kept=True))
    assert indexes_in(plan) >= {ID, "events_by_resource", "events_by_lease", "events_of_batches"}, plan
    assert not [step for step in plan if step.startswith("SCAN events")], plan


_PATTERNS = {"leases_patterns_awaited"}


@pytest.mark.parametrize("path", ["/a" * 2, "/a" * 40, "/a/b*", "/a" * 40 + "/*.py"])
@pytest.mark.parametrize(
    ("question", "indexes"),
    [
        ("tree", {"leases_exclusive", "leases_shared", "leases_patterns_held"} | _PATTERNS),
        ("queue", _PATTERNS),
        ("ahead", set()),
        ("whole_queue", set()),
        ("alike_ahead", _PATTERNS),
        ("upgrading", _PATTERNS),
        ("held_by", {"leases_by_holder"}),
        ("held_by_waiting", {"leases_waiting_of_holder", "leases_by_holder"}),
    ],
)
def test_a_question_about_a_path_reads_through_indexes_only(
    tmp_path: Path, path: str, question: str, indexes: set[str]
) -> None:
    statements, values = queues._asked("default", path, 2)
    steps = plan_of(
        tmp_path, getattr(statements, question), values[: 5 if question == "alike_ahead" else None]
    )
    used = {step.split("INDEX ")[1].split()[0] for step in steps if "INDEX leases" in step}
    assert used - {"leases_waiting"} == indexes
    assert not [step for step in steps if step.startswith(("SCAN leases", "SCAN held"))]
