"""Changing settings, as the registrar decides and records it."""

from typing import Any

import pytest

from leasehold.engine.audit import audit, rebuild
from leasehold.engine.batch import Request, Rules, run_batch, run_taken
from leasehold.engine.port import EntryQuery, Store
from leasehold.kernel.ledger.commands import Caller
from leasehold.kernel.ledger.key import spell_key
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.state import State
from leasehold.registry import all_families
from leasehold.settings.law import FAMILY, Changed, ChangeSetting, SettingRecord, invariants, record_key
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import claim, expect

RULES = Rules()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Any, clock: FakeClock) -> Any:
    families = all_families()
    made: Any = MemoryStore(clock, families=families)
    if request.param == "sqlite":
        made = SqliteStore(tmp_path / "leases", clock=clock, durability="fast", families=families)
    yield made
    made.close()


def change(key: str, value: Any, *, request_id: str = "", **others: Any) -> ChangeSetting:
    return ChangeSetting(
        key=key, value=value, holder="ann", request_id=request_id or f"{key} {value} {others}", **others
    )


def run(store: Store, *commands: ChangeSetting) -> list[Any]:
    return run_batch(store, commands, RULES)


def events(store: Store) -> list[Any]:
    with store.snapshot() as snapshot:
        return [entry.event for entry in snapshot.entries(EntryQuery(family=FAMILY))]


def test_a_change_says_what_was_in_force_and_what_is(store: Store) -> None:
    first, second = run(store, change("max_renewals", 5), change("max_renewals", 7))
    assert first == Changed(key="max_renewals", resource="", before=-1, value=5)
    assert second == Changed(key="max_renewals", resource="", before=5, value=7)
    assert [(one.before, one.value, one.actor) for one in events(store)] == [(None, 5, "ann"), (5, 7, "ann")]
    assert audit(store).problems == []


def test_for_a_resource_the_general_value_is_in_force_until_it_has_its_own(store: Store) -> None:
    answers = run(
        store,
        change("max_renewals", 5),
        change("max_renewals", 1, resource="door"),
        change("max_renewals", None, resource="door"),
    )
    assert [(one.before, one.value) for one in answers] == [(-1, 5), (5, 1), (1, 5)]


def test_what_is_in_force_already_stays_as_it_was_set(store: Store, clock: FakeClock) -> None:
    run(store, change("max_renewals", 5))
    clock.advance(1)
    run(store, change("max_renewals", 5, request_id="again"), change("keep_history", None))
    assert [(one.before, one.value) for one in events(store)] == [(None, 5), (5, 5), (None, None)]
    with store.snapshot() as snapshot:
        (record,) = snapshot.state().of(FAMILY).values()
    assert record.changed_at_ns == events(store)[0].at_ns
    assert audit(store).problems == []


def test_a_late_copy_of_a_request_that_changed_nothing_undoes_nothing(store: Store) -> None:
    first = change("max_renewals", 5, request_id="copied")
    run(store, change("max_renewals", 5), first, change("max_renewals", 7))
    (answer,) = run(store, first)
    assert answer == Changed(key="max_renewals", resource="", before=5, value=5)
    (answer,) = run(store, change("max_renewals", 1))
    assert answer.before == 7


def test_a_change_that_is_sent_again_changes_nothing(store: Store) -> None:
    (first,) = run(store, change("max_renewals", 5, request_id="r"))
    run(store, change("max_renewals", 9))
    (again,) = run(store, change("max_renewals", 5, request_id="r"))
    assert again == first
    assert len(events(store)) == 2


def test_what_holds_for_the_whole_store_is_the_same_for_every_tenant(store: Store) -> None:
    run(store, change("keep_history", False, tenant="blue"), change("max_renewals", 5, tenant="blue"))
    answers = run(store, change("keep_history", True, tenant="red"), change("max_renewals", 6, tenant="red"))
    assert [answer.before for answer in answers] == [False, -1]
    assert [one.filing[0] for one in events(store)] == [None, "blue", None, "red"]


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (change("nothing", 1), "setting"),
        (change("max_renewals", True), "value"),
        (change("keep_history", 1), "value"),
        (change("max_renewals", 1, tenant=""), "tenant"),
        (change("max_renewals", 1, resource="a\nb"), "resource"),
        (change("keep_history", True, resource="door"), "resource"),
        (ChangeSetting(key="max_renewals", value=1, holder="", request_id="r"), "holder"),
    ],
)
def test_what_can_never_be_right_is_refused_and_changes_nothing(
    store: Store, command: ChangeSetting, field: str
) -> None:
    (refusal,) = run(store, command)
    assert expect(Refusal, refusal).field == field
    assert events(store) == []


def test_a_caller_that_is_bound_to_a_tenant_changes_nothing_for_the_whole_store(store: Store) -> None:
    run(store, change("max_renewals", 2))
    bound = Caller(tenant="default")
    requests = [Request(change(key, 3, request_id=key), bound) for key in ("max_renewals", "keep_history")]
    requests[1] = Request(change("keep_history", False), bound)
    own, whole = run_taken(store, requests, RULES, blocking=True)
    assert expect(Changed, own).value == 3
    assert expect(Refusal, whole).code is RefusalCode.REFUSED
    assert whole.rule == "NOT_PERMITTED"


def test_settings_are_rebuilt_from_the_ledger(store: Store) -> None:
    run(store, change("max_renewals", 5), change("max_renewals", 1, resource="door"))
    rebuild(store)
    (answer,) = run(store, change("max_renewals", 2, resource="door"))
    assert answer.before == 1


def test_expiries_are_recorded_in_passing_unless_that_is_switched_off(store: Store, clock: FakeClock) -> None:
    passing = Rules(sweep_limit=10)
    run(store, change("auto_expire_enabled", False))
    run_batch(store, [claim("door", ttl_ns=10**9)], RULES)
    clock.advance(2)

    run_batch(store, [change("max_renewals", 1)], passing)
    assert "lease.expired" not in _types(store)
    run_batch(store, [change("auto_expire_enabled", True)], passing)
    run_batch(store, [change("max_renewals", 2)], passing)
    assert "lease.expired" in _types(store)


def _types(store: Store) -> list[str]:
    with store.snapshot() as snapshot:
        return [entry.event.type for entry in snapshot.entries(EntryQuery())]


@pytest.mark.parametrize(
    ("key", "record", "says"),
    [
        (record_key("default", "max_renewals"), {"key": "nothing", "value": 1}, "not a setting"),
        (record_key("default", "max_renewals"), {"key": "default_ttl_seconds", "value": 1}, "another key"),
        (record_key("default", "max_renewals"), {"key": "max_renewals", "value": -7}, "must be from"),
        (
            spell_key("default", "trapdoor", "max_renewals"),
            {"key": "max_renewals", "value": 1, "resource": "door"},
            "another key",
        ),
        (spell_key("", "", "max_renewals"), {"key": "max_renewals", "value": 1}, "nobody looks"),
        (spell_key("default", "", "keep_history"), {"key": "keep_history", "value": True}, "nobody looks"),
        (
            spell_key("", "door", "keep_history"),
            {"key": "keep_history", "value": True, "resource": "door"},
            "nobody looks",
        ),
    ],
)
def test_records_that_no_change_could_have_left_are_noticed(
    key: str, record: dict[str, Any], says: str
) -> None:
    kept = SettingRecord(changed_at_ns=1, changed_by="ann", **record)
    (problem,) = invariants(State(records={FAMILY: {key: kept}}))
    assert says in problem


def test_a_change_is_told_in_a_few_words(store: Store) -> None:
    run(store, change("keep_history", False), change("keep_history", None))
    assert [one.story for one in events(store)] == [
        "keep_history: default → false",
        "keep_history: false → default",
    ]
    assert [one.filing for one in events(store)] == [(None, None, None, "ann", None)] * 2
