"""Patterns: what they cover, which of them overlap, and what cannot be read."""

import time
from itertools import product

import hypothesis.strategies as st
import pytest
from hypothesis import given

from leasehold.kernel.lease.globs import ALTERNATIVES, BadPattern, escape, literal_prefix, parsed
from leasehold.kernel.lease.path_index import PathIndex
from leasehold.kernel.lease.paths import includes, is_canonical, is_glob, reach_of, related
from simulator.patterns import covers, is_one_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/app/**", "/app/models/user.py"),
        ("/app/**", "/app"),
        ("/app/*.py", "/app/a.py"),
        ("/app/*.py", "/app"),
        ("/app/*", "/app/models/user.py"),
        ("/src/*/main.c", "/src/Makefile"),
        ("/**/*.conf", "/.config"),
        ("/**/*.conf", "/conf.d/**"),
        ("/conf.d/*.conf", "/conf.d"),
        ("/conf.d/x", "/conf.d"),
        ("/a.b/**", "/a.b"),
        ("/**/a.b", "/x/a.b/**/**"),
        ("/x/*.{c,h}", "/x/a.c"),
        ("/x/{a.b,c}", "/x/c/d"),
        ("/**/test_*.py", "/app/tests/test_user.py"),
        ("/**/test_*.py", "/test_user.py"),
        ("/**/test_*.py", "/app/**"),
        ("/a*", "/*b"),
        ("/a/?", "/a/[x-z]"),
        ("/{src,tests}/a.py", "/src/a.py"),
        ("/a/{b,c{d,e}}", "/a/ce"),
        ("/a/[!b]", "/a/c"),
        ("/a/[^b]", "/a/c"),
        ("/a/[]]", "/a/]"),
        ("/a/[a\\-z]", "/a/-"),
        ("/a/\\*", "/a/*"),
        ("/a/[x]y\\{", "/a/xy\\{"),
        ("/a/.*", "/a/.env"),
        ("/a/*", "/a/.env"),
        ("/é*", "/é\U0010ffff"),
    ],
)
def test_these_overlap_whichever_came_first(one: str, other: str) -> None:
    assert related(one, other)
    assert related(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/src/**", "/src2/a.py"),
        ("/app/*.py", "/app/models/user.py"),
        ("/app/*.py", "/app/a.pyc"),
        ("/app/a*", "/app/b*"),
        ("/a/?", "/a/bc"),
        ("/a/[x-z]", "/a/[a-w]"),
        ("/a/[!b]", "/a/b"),
        ("/a/[a\\-z]", "/a/b"),
        ("/a/{b,c}", "/a/d"),
        ("/a/\\*", "/a/b"),
        ("/*/a", "/*/b"),
        ("/**/a.py", "/b.py"),
        ("/**/*.py", "/docs/README.md"),
        ("/src/*.py", "/src/**/*.md"),
        ("/src/*/main.c", "/src/README.md"),
        ("/**/*.conf", "/conf.d"),
        ("plain*", "plain"),
        ("/a*", "a*"),
    ],
)
def test_these_do_not(one: str, other: str) -> None:
    assert not related(one, other)
    assert not related(other, one)


PIECES = st.lists(st.sampled_from(["a", "b", "*", "?", "[a]", "[!a]", "[a-b]"]), max_size=4).map("".join)
PIECE = st.sampled_from(["", "a", "b", "*", "?", "ab", "[!a]"])
WITH_BRACES = st.builds("{}{{{},{}}}{}".format, PIECE, PIECE, PIECE, PIECE)
NAME = (PIECES | WITH_BRACES).filter(lambda name: name != "**" and name not in ("", "{,}"))
TEXTS = ["".join(letters) for length in range(1, 9) for letters in product("ab", repeat=length)]


@given(one=NAME, other=NAME)
def test_names_overlap_if_there_is_a_text_that_both_match(one: str, other: str) -> None:
    """Two names of four pieces each have no text of more than eight letters as their shortest."""
    expected = any(is_one_of(text, one) and is_one_of(text, other) for text in TEXTS)
    assert related(f"/{one}", f"/{other}") == expected


PATH = st.lists(st.sampled_from(["a", "b", "*", "**", "*.c", "f.c"]), min_size=1, max_size=3).map(tuple)
PATHS = [names for depth in range(1, 7) for names in product(("a", "b", "f.c"), repeat=depth)]


@given(one=PATH, other=PATH)
def test_paths_overlap_if_there_is_one_that_both_cover(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    spelled = one[: len(other)] == other[: len(one)]
    expected = spelled or any(covers(one, path) and covers(other, path) for path in PATHS)
    assert related("/" + "/".join(one), "/" + "/".join(other)) == expected


SPELLED = st.lists(
    st.sampled_from(["d", "x", "y", "1", "*", "**", "d*", "?1", "{x,y}", "[!d]", "f.c", "*.c"]), max_size=3
).map(lambda names: "/" + "/".join(names))


@given(paths=st.lists(SPELLED, max_size=12, unique=True), path=SPELLED, gone=st.sets(st.integers(0, 11)))
def test_an_index_finds_exactly_what_relates_to_a_path(paths: list[str], path: str, gone: set[int]) -> None:
    index = PathIndex()
    for one in (*paths, *paths):
        index.add(("default", one))
    index.add(("other", path))
    for number in gone & set(range(len(paths))):
        index.discard(("default", paths[number]))
        index.discard(("default", paths[number]))
    left = [one for number, one in enumerate(paths) if number not in gone]
    found = list(index.around(("default", path)))
    assert sorted(found) == sorted(one for one in left if related(one, path))


@given(prefix=st.sampled_from(["a", "é", chr(0xD7FF), "\U0010ffff"]))
def test_the_range_of_a_pattern_has_all_that_begin_like_it(prefix: str) -> None:
    reach = reach_of(f"/b/{prefix}*")
    for end in ("", "a", "\U0010ffff" * 3):
        path = f"/b/{prefix}{end}x"
        assert reach.low < path < reach.high
    assert f"/b/{prefix}" in reach.names


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("/a/[b", "not closed"),
        ("/a/[b/c]", "not closed"),
        ("/a/{b,c", "not closed"),
        ("/a/{b/c,d}", "not closed"),
        ("/a/*\\", "escapes nothing"),
        ("/a/[z-a]", "wrong way round"),
        ("/a/[/]", "not closed"),
        ("/a/[!\x01-\U0010ffff\x00]", "contains no character"),
        ("/a/{,}", "matches no name"),
        ("/a/" + "{a,b}" * 6, f"more than {ALTERNATIVES} texts"),
        ("/a/{" + ",".join("a" * (ALTERNATIVES + 1)) + "}", f"more than {ALTERNATIVES} texts"),
    ],
)
def test_a_pattern_that_cannot_be_read_says_why(pattern: str, problem: str) -> None:
    with pytest.raises(BadPattern, match=problem):
        parsed(pattern)


def test_a_slash_is_in_no_set() -> None:
    assert not related("/x[!a]y", "/x/y")
    assert related("/x[.-0]y", "/x.y")
    assert related("/x[.-0]y", "/x0y")
    assert not related("/x[!0-\U0010ffff]y", "/x0y")
    assert related("/x[!0-\U0010ffff]y", "/x.y")
    assert not related("/x[!\x00-.]y", "/x.y")
    assert related("/x[!\x00-.]y", "/x0y")


def test_what_is_spelled_with_escapes_is_a_path() -> None:
    path = "/" + escape("a*b?[c]{d}\\e")
    assert path == r"/a\*b\?\[c]\{d}\\e"
    assert is_canonical(path)
    assert not is_glob(path)
    assert literal_prefix(path) == path
    assert not is_canonical(r"/a\b")
    assert not is_canonical(r"/a\b/*")
    assert is_canonical(r"/a\[/*\b")
    assert is_glob("/a/*")
    assert not is_glob("a/*")


def test_the_worst_of_patterns_are_compared_soon() -> None:
    """They would take longer than the universe lasts if every way of matching were tried."""
    worst = [
        "/" + "*a" * 120 + "/" + "*a" * 120 + "b",
        "/" + "a" * 500,
        "/**" * 84 + "/" + "*a" * 80,
        "/*" * 250,
        "/" + "a/" * 240 + "b",
        "/" + "/".join(["{a*b,*c,d*}"] * 36),
        "/**/" + "/".join(["{a,b,c,d,e,f,g,h}*{a,b,c,d}"] * 16),
    ]
    start = time.perf_counter()
    for one in worst:
        for other in worst:
            assert related(one, other) == related(other, one)
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize(
    ("held", "wanted", "enough"),
    [
        ("/src", "/src", True),
        ("/src", "/src/a.py", True),
        ("/src", "/src/*.py", True),
        ("/src", "/src2", False),
        ("/src/**", "/src", True),
        ("/src/**", "/src/a/*.py", True),
        ("/conf.d/**", "/conf.d/x", True),
        ("/conf.d", "/conf.d/x", False),
        ("/src/*.py", "/src/a.py", True),
        ("/src/*.py", "/src/a.md", False),
        ("/src/*.py", "/src", False),
        ("/src/*", "/src/a/b", True),
        ("/src/*.py", "/src/a*.py", False),
        ("/src/*.py", "/src/*.py", True),
        ("/**/a", "/b", False),
        ("door", "door", True),
        ("door", "/door", False),
    ],
)
def test_who_holds_something_needs_nothing_that_it_covers(held: str, wanted: str, enough: bool) -> None:
    assert includes(held, wanted) == enough
