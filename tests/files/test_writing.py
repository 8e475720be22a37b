"""What is printed can be typed again, in the same folder, and means the very same resource."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.errors import InvalidInput
from leasehold.files.names import name_of, resource_of, written
from tests.files.conftest import git

_LETTERS = "ab.-:@*?[]{}\\, é/"
_texts = st.text(_LETTERS, min_size=1, max_size=12)
_plain = (
    st.builds("{}{}".format, st.sampled_from(["", "name:", "name:name:", ".", "reports/"]), _texts)
    | st.sampled_from(["name:", "name://x", "http://", ".", "..", "a/b", "./a", "~", "-x"])
).filter(lambda name: not name.startswith("/"))
_virtual = st.builds("{}://{}".format, st.sampled_from(["service", "name", "a+b"]), _texts)
_parts = st.text("ab.-:@ é[]{}*?\\,", min_size=1, max_size=6).filter(lambda part: part not in (".", ".."))
_paths = st.builds(
    "/".join, st.lists(_parts | st.sampled_from(["..", "src", "name:a"]), min_size=1, max_size=4)
)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The top of a repository, folders in it, and folders of another repository, of none, and the root."""
    base = tmp_path_factory.mktemp("places")
    for name in ("one", "other.project"):
        (base / name / "src" / "deep" / "a.b").mkdir(parents=True)
        (base / name / "name:a").mkdir()
        (base / name / "src" / "a[b]").write_text("")
        git(base / name, "init")
        git(base / name, "config", "leasehold.project", name)
    (base / "none").mkdir()
    one = base / "one"
    folders = [one, one / "src", one / "src/deep/a.b", one / "name:a", base / "other.project/src"]
    return [*folders, base / "none", Path("/")]


@given(resource=_plain | _virtual, place=st.integers(0, 6))
def test_a_name_is_read_back(places: list[Path], resource: str, place: int) -> None:
    start = str(places[place])
    assert resource_of(written(resource, start=start), start=start) == resource


@given(path=_paths, from_place=st.integers(0, 5), place=st.integers(0, 6))
def test_a_path_or_pattern_is_read_back_wherever_it_is_printed(
    places: list[Path], path: str, from_place: int, place: int
) -> None:
    try:
        resource = name_of(path, start=str(places[from_place])).resource
    except InvalidInput:
        return
    start = str(places[place])
    text = written(resource, start=start)
    assert resource_of(text, start=start) == resource
    if (from_place < 4) and (place < 4) and resource.startswith("/@one"):
        assert not text.startswith("/@"), "within a project, paths are told from where one is"


def test_names_are_as_short_as_can_be(places: list[Path]) -> None:
    top, src, deep, _, other, none, root = (str(place) for place in places)
    app, text = "/@one/src/app.py", "/@one/README.md"
    assert [written(app, start=place) for place in (top, src, deep)] == [
        "src/app.py",
        "./app.py",
        "../../app.py",
    ]
    assert [written(text, start=place) for place in (top, src)] == ["./README.md", "../README.md"]
    assert {written(app, start=place) for place in (other, none, root)} == {app}
    assert written("/@one", start=src) == ".."
    assert written("/@one/src/**/*.py", start=src) == "**/*.py"
    assert written("/@one/src/a\\[b]", start=src) == "./a[b]"
    assert written("/@one/src/c\\[b]", start=src) == "./c\\[b]"
    assert written("/@one/name:a/b", start=top) == "./name:a/b"
    assert [written(name, start=top) for name in ("/@one/-a/b", "-foo", "-a/b")] == [
        "./-a/b",
        "name:-foo",
        "name:-a/b",
    ]
    assert written(f"{none}/x", start=top) == f"{none}/x"
    assert [
        written(name, start=top) for name in ("report-42", "reports/42", ".x", "name:x", "service://db")
    ] == [
        "report-42",
        "name:reports/42",
        "name:.x",
        "name:name:x",
        "service://db",
    ]


def test_a_path_through_a_link_that_came_later_keeps_its_name(tmp_path: Path) -> None:
    resource = f"{os.path.realpath(tmp_path)}/folder/x"
    assert written(resource) == resource
    (tmp_path / "folder").symlink_to(tmp_path)
    assert written(resource) == f"name:{resource}"
    assert resource_of(written(resource)) == resource


def test_a_name_has_to_be_given() -> None:
    with pytest.raises(InvalidInput, match="behind the colon"):
        resource_of("name:")


def test_nothing_is_printed_like_something_else(places: list[Path]) -> None:
    top = str(places[0])
    names = ["src/app.py", "/@one/src/app.py", "name:src/app.py", "./app.py", "/@one/app.py", "app.py"]
    texts = sorted(written(name, start=top) for name in names)
    assert all(one != other for one, other in pairwise(texts))
