"""Which tests `make test` runs, and which are left to `make proof`.

`make test` is the first answer, in minutes: every test function in at least one world. `make proof` is all
the rest: the other worlds, and whatever takes long. `--lane test` and `--lane proof` choose one of them;
without either, pytest runs everything that it is asked for, at full length.

Where a test belongs is told by what is written at it:

- nothing: `make test`;
- `@pytest.mark.proof("why")`: `make proof` alone, for that reason, which `make test` prints at its end;
- `@pytest.mark.deep`: both, at full length only in `make proof`. The test asks how far to go. Tests of
  Hypothesis are deep by nature: they try as many examples as the profile of the lane says;
- worlds, such as stores and clients: a few of them in `make test`, the others in `make proof`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar, get_args

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

Lane = Literal["test", "proof", "all"]
LANES: tuple[str, ...] = get_args(Lane)
REPORT = "LEASEHOLD_TEST_REPORT"
"""Names the file to which a run writes what it leaves out."""

_T = TypeVar("_T")

WORLDS_FOR_TEST = {("memory", "blocking"), ("sqlite", "asynchronous")}
"""Every store that is no line, and both clients. The blocking one is generated from the other."""
LINE_FOR_TEST = ("http", "asynchronous")
"""Beside those, for the client's own tests."""
_CLIENTS_OWN = "tests/client/"


class _Chosen:
    lane: str = "all"
    running: pytest.Item | None = None


def choose(lane: str) -> None:
    """Set the lane of this process."""
    _Chosen.lane = lane


def set_running(item: pytest.Item | None) -> None:
    """Say which test runs in this process."""
    _Chosen.running = item


def is_full_length() -> bool:
    """Should a test go as far as it can?

    Only a deep test may ask: any other would be cut short in `make test`, and never run at full length.
    """
    running = _Chosen.running
    if running is not None and lanes_of(running) == {"test"}:
        raise AssertionError(f"{running.nodeid} asks how far to go: mark it with @pytest.mark.deep")
    return _Chosen.lane != "test"


def lanes_of(item: pytest.Item) -> frozenset[str]:
    """Return the lanes in which a test runs."""
    if item.get_closest_marker("proof") is not None:
        return frozenset({"proof"})
    if not _is_world_for_test(item):
        return frozenset({"proof"})
    if is_deep(item):
        return frozenset({"test", "proof"})
    return frozenset({"test"})


def is_deep(item: pytest.Item) -> bool:
    """Does a test go further at full length?"""
    by_hypothesis = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return by_hypothesis or item.get_closest_marker("deep") is not None


def reason_of(item: pytest.Item) -> str:
    """Return why `make test` leaves a test out."""
    marker = item.get_closest_marker("proof")
    if marker is None:
        return ""
    assert len(marker.args) == 1, f"{item.nodeid}: @pytest.mark.proof takes the reason, and nothing else"
    return str(marker.args[0])


def function_of(item: pytest.Item) -> str:
    """Return the name of a test without its parameters."""
    return item.nodeid.partition("[")[0]


class Report(Struct, kw_only=True, frozen=True):
    """What one run of pytest has left out."""

    tests: int
    """How many were chosen."""
    ran: int = 0
    """How many of them came to an end."""
    skipped: dict[str, list[str]] = {}
    """Functions that could not be run here, by the reason for it."""
    worlds: int = 0
    """Tests in other worlds, of functions that are run in some."""
    shorter: list[str] = []
    """Functions that are run, and not at full length."""
    reasons: dict[str, list[str]] = {}
    """Functions that are not run, by the reason for it."""

    @classmethod
    def of(cls, chosen: Sequence[pytest.Item], left_out: Sequence[pytest.Item]) -> "Report":
        reasons: dict[str, list[str]] = {}
        for item in left_out:
            why = reason_of(item)
            if why and function_of(item) not in reasons.setdefault(why, []):
                reasons[why].append(function_of(item))
        return cls(
            tests=len(chosen),
            worlds=sum(not reason_of(item) for item in left_out),
            shorter=sorted({function_of(item) for item in chosen if is_deep(item)}),
            reasons=reasons,
        )


class Witness:
    """Adds to the report what came of the tests that were chosen; in the process that hears of all."""

    def __init__(self, report: Path) -> None:
        self._report = report
        self._ended: set[str] = set()
        self._skipped: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self._ended.add(report.nodeid)
        elif report.skipped:
            why = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
            names = self._skipped.setdefault(why.removeprefix("Skipped: "), [])
            if (name := report.nodeid.partition("[")[0]) not in names:
                names.append(name)

    def pytest_sessionfinish(self) -> None:
        if self._report.exists():
            chosen = msgspec.json.decode(self._report.read_bytes(), type=Report)
            whole = replace(chosen, ran=len(self._ended), skipped=self._skipped)
            self._report.write_bytes(msgspec.json.encode(whole))


def _is_world_for_test(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return True
    store, client = callspec.params.get("store_kind"), callspec.params.get("client_kind")
    worlds = WORLDS_FOR_TEST | ({LINE_FOR_TEST} if item.nodeid.startswith(_CLIENTS_OWN) else set())
    # A test that chooses one of the two itself runs wherever the other fits.
    return any(store in (None, world[0]) and client in (None, world[1]) for world in worlds)


def by_length(full: _T, short: _T) -> _T:
    """Return the first at full length, and the second in `make test`."""
    return full if is_full_length() else short


def some_of(values: Sequence[_T], count: int, *, offset: int = 0) -> Sequence[_T]:
    """Return all values, or in `make test` so many, spread over the whole; another offset, others."""
    size = len(values)
    if is_full_length() or size <= count:
        return values
    return [values[(offset + index * size // count) % size] for index in range(count)]
