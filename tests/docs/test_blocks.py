"""Every block that a user could copy runs, and prints what its page says it prints."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, RUN, Block, all_pages, blocks_of, page_name
from tests.docs.running import Page, assert_shown, commands_in

# What is shown and not run, by page. Raising a number is a decision: most blocks can be made to run.
NOT_RUN = {
    "docs/how-to/connect-to-a-server.md": 2,
    "docs/how-to/serve.md": 3,
    "docs/how-to/use-http.md": 5,  # tests/server/test_how_to.py runs them.
    "README.md": 2,
}

PAGES = [page for page in all_pages() if any(block.language in RUN for block in blocks_of(page))]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_blocks_of_the_page_run_and_print_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    running = Page(tmp_path)
    try:
        for block in blocks_of(page):
            running.run(block)
    finally:
        running.close()


def test_only_a_few_known_blocks_are_not_run() -> None:
    counted = {
        page_name(page): count
        for page in all_pages()
        if (count := sum(block.remark == "not run" for block in blocks_of(page)))
    }
    assert counted == NOT_RUN


def test_what_is_not_run_says_why() -> None:
    silent = [
        block.place
        for page in all_pages()
        for block in blocks_of(page)
        if block.remark == "not run" and not block.argument
    ]
    assert not silent


def test_every_block_says_what_it_is() -> None:
    nameless = [block.place for page in all_pages() for block in blocks_of(page) if not block.language]
    assert not nameless, f"blocks without a language are neither run nor known to be only read: {nameless}"


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    pages = [*all_pages(), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]
    unknown = {
        f"{page_name(page)}: make {target}"
        for page in pages
        for target in re.findall(r"(?:`|^|\$ )make ([a-z]+)", page.read_text(), flags=re.MULTILINE)
        if target not in targets
    }
    assert not unknown


def block(text: str, language: str = "console") -> Block:
    return Block(ROOT / "README.md", 1, language, text, "", "")


def test_a_command_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="ended with 1"):
        Page(tmp_path).run(block("$ false\n"))


def test_a_command_may_fail_if_the_page_shows_how(tmp_path: Path) -> None:
    Page(tmp_path).run(block("$ sh -c 'exit 75'\n$ echo $?\n75\n"))


def test_another_exit_code_than_the_page_shows_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="and the page shows:\n75"):
        Page(tmp_path).run(block("$ false\n$ echo $?\n75\n"))


def test_output_that_the_page_does_not_show_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="printed:\none\ntwo"):
        Page(tmp_path).run(block("$ printf 'one\\ntwo\\n'\none\n"))


def test_a_python_block_that_raises_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        Page(tmp_path).run(block("1 / 0\n", "python"))


def test_a_command_may_go_on_behind_a_backslash() -> None:
    assert list(commands_in(block("$ echo one \\\n    two\none two\n"))) == [
        ("echo one \\\n    two", "one two\n")
    ]


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("token 4294967297", "token 4402341478401"),
        ("at 2026-03-01 12:00:00", "at 2031-12-24 01:02:03"),
        ("ana@here/17 has it", "ben@elsewhere/4 has it"),
        ("first\nsecond\nthird", "first\n…\nthird"),
    ],
)
def test_what_cannot_be_the_same_twice_need_not_be(printed: str, shown: str) -> None:
    assert_shown(printed, shown, "here")


@pytest.mark.parametrize(
    ("printed", "shown"),
    [("token 12", "token 13"), ("held by ana", "held by ben"), ("one", "one\ntwo"), ("one\ntwo", "two")],
)
def test_what_can_be_the_same_has_to_be(printed: str, shown: str) -> None:
    with pytest.raises(AssertionError, match="here printed"):
        assert_shown(printed, shown, "here")
