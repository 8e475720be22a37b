"""A scope allows what it names, and nothing else."""

import pytest

from leasehold.kernel.lease.scope import Scope

EVERYTHING = Scope(unlimited=True)
SOME = Scope(work_ids=("job-1", "job-2"), tools=("read", "write"), namespaces=("data", "/srv/logs"))


def test_an_empty_scope_allows_nothing() -> None:
    assert Scope().denies(work_id="job-1") == "work id 'job-1'"
    assert Scope().denies(tool="read") == "tool 'read'"
    assert Scope().denies(namespace="data") == "namespace 'data'"


@pytest.mark.parametrize(
    "access", [{"work_id": "job-1"}, {"tool": "write"}, {"namespace": "data/raw"}, {"namespace": "/srv/logs"}]
)
def test_what_is_named_is_allowed(access: dict[str, str]) -> None:
    assert SOME.denies(**access) is None
    assert EVERYTHING.denies(**access) is None


def test_every_part_of_an_access_has_to_be_allowed() -> None:
    assert SOME.denies(work_id="job-1", tool="read", namespace="data") is None
    assert SOME.denies(work_id="job-1", tool="delete", namespace="data") == "tool 'delete'"
    assert SOME.denies(work_id="job-3", tool="delete") == "work id 'job-3'"


@pytest.mark.parametrize(
    ("namespace", "path", "covered"),
    [
        ("data", "data", True),
        ("data", "data/raw/1", True),
        ("data", "database", False),
        ("data", "dat", False),
        ("data/", "data", True),
        ("data", "data/", True),
        ("data//raw", "data/raw", True),
        ("data", "./data/raw", True),
        ("data/raw", "data", False),
        ("data", "/data", False),
        ("/data", "data", False),
        ("/", "/data", True),
        ("/", "data", False),
        ("data", "Data", False),
        ("data", "data\\raw", False),
    ],
)
def test_a_namespace_covers_a_path_at_a_separator(namespace: str, path: str, covered: bool) -> None:
    assert (Scope(namespaces=(namespace,)).denies(namespace=path) is None) == covered


@pytest.mark.parametrize("path", ["..", "data/..", "data/../etc", "../data", "data\\..\\etc", "/.."])
def test_a_path_that_climbs_is_refused_even_for_unlimited(path: str) -> None:
    for scope in (EVERYTHING, Scope(namespaces=("data", "/"))):
        assert scope.denies(namespace=path) == f"namespace {path!r}, which climbs out of itself"


def test_dots_that_do_not_climb_are_fine() -> None:
    assert Scope(namespaces=("data",)).denies(namespace="data/..hidden/a..b") is None


@pytest.mark.parametrize(
    ("child", "excess"),
    [
        (Scope(), None),
        (SOME, None),
        (Scope(tools=("read",)), None),
        (Scope(namespaces=("data/raw", "/srv/logs/today")), None),
        (Scope(work_ids=("job-3",)), "work id 'job-3'"),
        (Scope(tools=("read", "delete")), "tool 'delete'"),
        (Scope(namespaces=("data", "database")), "namespace 'database'"),
        (Scope(namespaces=("/srv",)), "namespace '/srv'"),
        (EVERYTHING, "everything"),
    ],
)
def test_a_scope_exceeds_another_by_what_that_does_not_allow(child: Scope, excess: str | None) -> None:
    assert child.exceeds(SOME) == excess
    assert child.exceeds(EVERYTHING) is None
    assert Scope().exceeds(child) is None


def test_a_scope_has_one_spelling() -> None:
    written = Scope(tools=("b", "a", "b"), work_ids=("2", "1"), namespaces=("x", "x"))

    assert written.canonical() == Scope(tools=("a", "b"), work_ids=("1", "2"), namespaces=("x",))
    assert EVERYTHING.canonical() == EVERYTHING
