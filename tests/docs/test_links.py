"""Links lead somewhere: to a file of the repository, and to a heading in it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, all_pages, page_name, prose_of

_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

OTHERS = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [*all_pages(), *OTHERS]

# `kernel/evolve.py`, and perhaps right behind it the name of something in there.
_MODULE = re.compile(r"`((?:\w+/)+\w+\.py|errors\.py)`(?: `(\w+)`)?")


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_link_of_the_page_leads_somewhere(page: Path) -> None:
    broken = [link for link in links(page) if not leads_somewhere(page, link)]
    assert not broken


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    unseen = [ROOT / "README.md"]
    while unseen:
        page = unseen.pop()
        if page not in reached:
            reached.add(page)
            unseen += [target for link in links(page) if (target := target_of(page, link)).suffix == ".md"]
    assert not set(PAGES) - reached


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_module_that_the_page_names_exists_and_has_what_it_says(page: Path) -> None:
    unknown = [
        f"{file} {name}".strip()
        for file, name in _MODULE.findall(prose_of(page))
        if not (source := source_of(file)) or (name and not re.search(rf"(?:def|class) {name}\b", source))
    ]
    assert not unknown


def source_of(file: str) -> str:
    """Return the text of a module that is named from the root of the repository, or of the package."""
    places = (ROOT / file, ROOT / "src" / "leasehold" / file)
    return next((place.read_text() for place in places if place.is_file()), "")


def links(page: Path) -> Iterator[str]:
    for link in _LINK.findall(prose_of(page)):
        if "://" not in link:
            yield link


def target_of(page: Path, link: str) -> Path:
    path, _, _ = link.partition("#")
    return (page.parent / path).resolve() if path else page


def leads_somewhere(page: Path, link: str) -> bool:
    target = target_of(page, link)
    _, _, heading = link.partition("#")
    if not target.exists() or ROOT not in target.parents:
        return False
    return not heading or heading in {anchor(one) for one in _HEADING.findall(prose_of(target))}


def anchor(heading: str) -> str:
    """Return the name that a heading can be linked to by."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
