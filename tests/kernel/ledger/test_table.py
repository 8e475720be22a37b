"""A table says what the store would say after the batch so far; the store says what it was before it.

A model has everything: the records as they were when the turn began, and as the batch has left them. Whatever
a table is asked, in whatever order it has learnt what it knows, it gives the answer that the model gives.
"""

import itertools

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from leasehold.kernel.ledger.journal import Journal
from leasehold.kernel.ledger.records import BY_KEY, EVERYTHING, Count, Found, Keys, Missing, Scan, Wanted
from leasehold.kernel.ledger.table import Table
from tests.kernel.shelf import documents_found

NAMES = st.text("abc", max_size=2)
RANGES = st.tuples(NAMES | st.just("d"), NAMES | st.just("d")).map(sorted).map(tuple)
LIMITS = st.sampled_from([1, 2, 3, EVERYTHING])


class Note(msgspec.Struct, frozen=True):
    """A record of which there are no two that are the same."""

    number: int


class Asked:
    """A table, and a store that answers what it lacks."""

    def __init__(self, store: dict[str, Note]) -> None:
        self.store = store
        self.journal = Journal()
        self.table = Table("note", self.journal)
        self.questions = 0

    def load(self, wanted: Wanted) -> None:
        self.table.load(wanted, documents_found(self.store, wanted))

    def _learn(self, missing: Missing) -> None:
        assert set(missing.keys.families) == {"note"}
        self.questions += 1
        assert self.questions <= 3 * len(self.store) + 3, "it goes on asking"
        self.load(missing.keys.families["note"])

    def get(self, key: str) -> Note | None:
        self.questions = 0
        while True:
            try:
                note: Note | None = self.table.get(key)
            except Missing as missing:
                self._learn(missing)
            else:
                return note

    def scan(self, low: str, high: str, limit: int, *, reverse: bool) -> list[str]:
        self.questions = 0
        while True:
            try:
                return self.table.scan(low, high, limit, reverse=reverse)
            except Missing as missing:
                self._learn(missing)

    def count(self, low: str, high: str) -> int:
        self.questions = 0
        while True:
            try:
                return self.table.count(low, high)
            except Missing as missing:
                self._learn(missing)

    def put(self, key: str, note: Note | None) -> None:
        """Change a record as a draft does: it looks at it first."""
        self.get(key)
        self.table.put(key, note)


def scanned(notes: dict[str, Note], low: str, high: str, limit: int, *, reverse: bool) -> list[str]:
    keys = sorted((key for key in notes if low <= key < high), reverse=reverse)
    return keys[:limit]


class Tables(RuleBasedStateMachine):
    """The table and the model are asked the same, and never disagree."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = itertools.count()

    def note(self) -> Note:
        return Note(next(self.numbers))

    @initialize(names=st.sets(NAMES, max_size=8))
    def begin(self, names: set[str]) -> None:
        self.notes = {name: self.note() for name in names}
        self.kept = dict(self.notes)
        self.asked = Asked(dict(self.notes))

    @rule(key=NAMES)
    def get(self, key: str) -> None:
        assert self.asked.get(key) is self.notes.get(key)

    @rule(interval=RANGES, limit=LIMITS, reverse=st.booleans())
    def scan(self, interval: tuple[str, str], limit: int, *, reverse: bool) -> None:
        found = self.asked.scan(*interval, limit, reverse=reverse)
        assert found == scanned(self.notes, *interval, limit, reverse=reverse)
        assert [self.asked.table.get(key) for key in found] == [self.notes[key] for key in found]

    @rule(interval=RANGES)
    def count(self, interval: tuple[str, str]) -> None:
        low, high = interval
        assert self.asked.count(low, high) == sum(low <= key < high for key in self.notes)

    @rule(key=NAMES)
    def put(self, key: str) -> None:
        self.notes[key] = self.note()
        self.asked.put(key, self.notes[key])

    @rule(key=NAMES)
    def delete(self, key: str) -> None:
        self.notes.pop(key, None)
        self.asked.put(key, None)

    @rule(
        keys=st.sets(NAMES, max_size=2),
        scans=st.sets(st.tuples(RANGES, LIMITS, st.booleans()), max_size=2),
        counts=st.sets(RANGES, max_size=2),
    )
    def read_ahead(
        self,
        keys: set[str],
        scans: set[tuple[tuple[str, str], int, bool]],
        counts: set[tuple[str, str]],
    ) -> None:
        """The store is asked for something, be it known already, and says what was when the turn began."""
        wanted = {Scan(*interval, limit, BY_KEY, reverse) for interval, limit, reverse in scans}
        self.asked.load(Wanted(keys=keys, scans=wanted, counts={Count(*interval) for interval in counts}))

    @rule()
    def next_command(self) -> None:
        self.asked.journal.steps.clear()
        self.kept = dict(self.notes)

    @rule()
    def undo(self) -> None:
        self.asked.journal.undo()
        self.notes = dict(self.kept)

    @rule()
    def commit(self) -> None:
        self.asked.journal.steps.clear()
        self.asked.table.settle()
        self.asked.store = dict(self.notes)
        self.kept = dict(self.notes)

    @invariant()
    def the_changes_are_what_makes_the_difference(self) -> None:
        if not hasattr(self, "asked"):
            return
        before, after = self.asked.store, self.notes
        different = {key for key in before.keys() | after.keys() if before.get(key) is not after.get(key)}
        assert changed(self.asked.table) == {key: (before.get(key), after.get(key)) for key in different}


TestTables = Tables.TestCase
TestTables.settings = settings(stateful_step_count=25)


BOUNDS = ("a", "b", "c", "d")
SCANS = [
    (low, high, limit, reverse)
    for low, high in itertools.combinations(BOUNDS, 2)
    for limit in (1, 2)
    for reverse in (False, True)
]
STORES = [set(names) for count in range(len(BOUNDS)) for names in itertools.combinations(BOUNDS[:3], count)]


@pytest.mark.parametrize("changed", ["", *BOUNDS[:3]])
@pytest.mark.parametrize("names", STORES, ids=lambda names: "".join(sorted(names)) or "nothing")
def test_any_scan_after_any_other_merges_what_was_read_with_what_the_batch_has_changed(
    names: set[str], changed: str
) -> None:
    store = {name: Note(number) for number, name in enumerate(sorted(names))}
    notes = {name: note for name, note in store.items() if name != changed}
    if changed and changed not in names:
        notes[changed] = Note(9)
    for first, second in itertools.product(SCANS, SCANS):
        asked = Asked(store)
        low, high, limit, reverse = first
        assert asked.scan(low, high, limit, reverse=reverse) == scanned(
            store, low, high, limit, reverse=reverse
        )
        if changed:
            asked.put(changed, notes.get(changed))
        low, high, limit, reverse = second
        assert asked.scan(low, high, limit, reverse=reverse) == scanned(
            notes, low, high, limit, reverse=reverse
        )
        assert asked.count(low, high) == sum(low <= name < high for name in notes)


def table() -> tuple[Table, Journal]:
    journal = Journal()
    return Table("note", journal), journal


def changed(notes: Table) -> dict[str, tuple[Note | None, Note | None]]:
    """What a view takes for changes."""
    pairs = {key: (before, notes.records[key]) for key, before in notes.before.items()}
    return {key: (before, after) for key, (before, after) in pairs.items() if before is not after}


def missing(ask: object, *arguments: object, **options: object) -> Keys:
    assert callable(ask)
    with pytest.raises(Missing) as caught:
        ask(*arguments, **options)
    return caught.value.keys


def test_what_nobody_has_loaded_is_missing_and_named() -> None:
    notes, _ = table()

    assert missing(notes.get, "a") == Keys(families={"note": Wanted(keys={"a"})})
    assert missing(notes.scan, "a", "c", 2) == Keys(families={"note": Wanted(scans={Scan("a", "c", 2)})})
    assert missing(notes.scan, "a", "c", 2, reverse=True) == Keys(
        families={"note": Wanted(scans={Scan("a", "c", 2, BY_KEY, True)})}
    )
    assert missing(notes.count, "a", "c") == Keys(families={"note": Wanted(counts={Count("a", "c")})})


def test_a_scan_that_is_cut_off_is_asked_for_only_from_where_it_was() -> None:
    notes, _ = table()
    store = {name: Note(ord(name)) for name in "abcd"}
    first = Wanted(scans={Scan("a", "z", 2)})
    notes.load(first, documents_found(store, first))

    assert notes.scan("a", "z", 2) == ["a", "b"]
    assert missing(notes.scan, "a", "z", 3) == Keys(families={"note": Wanted(scans={Scan("b\x00", "z", 3)})})
    assert missing(notes.scan, "a", "z", 1, reverse=True) == Keys(
        families={"note": Wanted(scans={Scan("a", "z", 1, BY_KEY, True)})}
    )


def test_a_scan_that_was_read_whole_needs_no_other_question() -> None:
    notes, _ = table()
    wanted = Wanted(scans={Scan("a", "z")})
    notes.load(wanted, documents_found({"b": Note(1)}, wanted))

    assert notes.get("b") == Note(1)
    assert notes.get("c") is None
    assert notes.count("a", "z") == 1
    assert notes.scan("b", "c", 1) == ["b"]
    assert missing(notes.get, "z") == Keys(families={"note": Wanted(keys={"z"})}), "the end is not in it"


def test_a_scan_of_nothing_finds_nothing_unasked() -> None:
    notes, _ = table()

    assert notes.scan("a", "a", 1) == notes.scan("a", "a", 1, reverse=True) == []
    assert notes.count("a", "a") == 0


def test_a_record_that_came_and_went_in_one_batch_is_no_change() -> None:
    notes, _ = table()
    notes.load(Wanted(keys={"a"}), Found())
    notes.put("a", Note(1))
    notes.put("a", None)

    assert changed(notes) == {}


def test_a_settled_table_says_how_many_records_it_has_and_counts_anew() -> None:
    notes, _ = table()
    assert notes.settle() == 0
    notes.load(Wanted(keys={"a", "b"}, counts={Count("a", "z")}), Found(counts={Count("a", "z"): 5}))
    notes.put("a", Note(1))
    assert notes.count("a", "z") == 6

    assert notes.settle() == 2
    assert changed(notes) == {}
    assert notes.get("a") == Note(1)
    assert missing(notes.count, "a", "z") == Keys(families={"note": Wanted(counts={Count("a", "z")})})
