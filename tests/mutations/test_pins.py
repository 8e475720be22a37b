"""The table of pins names every test that searches, and no other."""

from pathlib import Path

import pytest

from tests.collection import collect
from tests.mutations import pins


def test_the_table_has_pins_for_every_search_of_every_test() -> None:
    searches = pins.mutation_tests()
    collected = [test.removeprefix(pins.PREFIX) for test in collect(pins.PREFIX, "--lane", "all")]
    expected = {test: searches.get(pins.without_parameters(test), 0) for test in collected}
    pinned = {test: len(seeds) for test, seeds in pins.read_table().items()}
    gone = sorted(test for test in pinned if not expected.get(test))
    lacking = sorted(test for test, calls in expected.items() if calls and pinned.get(test) != calls)
    assert not gone, f"these are no tests that search any more: run `make pins`: {gone}"
    assert not lacking, f"these have no pins for all their searches: run `make pins`: {lacking}"


def test_what_is_written_is_read_again_in_the_order_of_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pins, "TABLE", tmp_path / "pins.json")
    pins.read_table.cache_clear()
    try:
        assert pins.read_table() == {}
        pins.write_table({"b": [[1]], "a": [[2, 3], [4]]})
        assert pins.read_table() == {"a": [[2, 3], [4]], "b": [[1]]}
        assert pins.TABLE.read_text() == '{\n  "a": [[2, 3], [4]],\n  "b": [[1]]\n}\n'
    finally:
        pins.read_table.cache_clear()
