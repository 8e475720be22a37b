"""Whatever is done to whichever file of a store, in any situation, ends well, and as the page says."""

import os
import select
import subprocess
from pathlib import Path
from signal import SIGBUS

import pytest

from tests.lanes import by_length, some_of
from tests.stores.sqlite.matrix.deeds import DEEDS, FOLDER, IN_PLACE, KEY, MOUNTS, Scene
from tests.stores.sqlite.matrix.judge import complaints
from tests.stores.sqlite.matrix.page import CELLS, impossible, written
from tests.stores.sqlite.matrix.play import found, play
from tests.stores.sqlite.matrix.tale import Tale
from tests.stores.sqlite.matrix.verdict import verdict
from tests.stores.sqlite.theatre.stage import Stage

TALES = 20

PATIENCE_SECONDS = 5

OLD_NS = 50_000_000
"""How old a copy is at least when it is put back: dates of files are no finer than some 20 ms."""


@pytest.mark.deep
@pytest.mark.parametrize(
    ("subject", "deed", "situation"),
    [
        pytest.param(*cell, marks=[pytest.mark.root] if DEEDS[cell[1]] in MOUNTS else [])
        for cell in some_of(CELLS, 50)
    ],
)
def test_what_is_done_to_files_ends_well_and_as_the_page_says(
    stage: Stage, tmp_path: Path, subject: str, deed: str, situation: str
) -> None:
    testimony = play(stage, tmp_path, subject=subject, deed=deed, situation=situation)
    assert complaints(testimony) == []
    assert verdict(testimony) == written()[subject, deed, situation]


def test_the_page_says_of_all_other_cells_that_they_are_impossible() -> None:
    said = written()
    assert said.keys() == {*CELLS, *impossible()}
    assert {cell: said[cell] for cell in impossible()} == impossible()


@pytest.mark.root
@pytest.mark.deep
@pytest.mark.parametrize("seed", range(by_length(TALES, 5)))
def test_whatever_is_done_in_any_order_ends_well(stage: Stage, tmp_path: Path, seed: int) -> None:
    assert Tale(stage, tmp_path, seed).complaints() == []


@pytest.mark.deep
@pytest.mark.parametrize(
    ("subject", "deed"),
    [
        pytest.param(*cell, marks=[pytest.mark.root] if DEEDS[cell[1]] in MOUNTS else [])
        for cell in some_of(list(dict.fromkeys((subject, deed) for subject, deed, _ in CELLS)), 10)
        if cell[0] != KEY and "elsewhere" not in cell[1]
    ],
)
def test_what_is_done_in_the_middle_of_writing_gives_no_token_twice(
    stage: Stage, tmp_path: Path, subject: str, deed: str
) -> None:
    scene = Scene(tmp_path, subject, stage)
    before = found(stage, scene.store)
    found(stage, scene.other)
    subprocess.run(["cp", "-a", scene.store, scene.older], check=True)
    writers = [stage.engage(name) for name in ("ann", "bob", "cleo")]
    diary, end = Diary(tmp_path / "diary"), tmp_path / "end"
    for writer in writers:
        writer.begins("hammer", place=str(scene.store), diary=str(diary.path), end=str(end))
    diary.wait_for(30)
    DEEDS[deed](scene)
    diary.wait_for(30)
    end.touch()
    answers = [writer.ends() for writer in writers]
    assert [answer for answer in answers if answer.crash or answer.died not in (None, SIGBUS)] == []
    grants = diary.grants()
    tokens = [token for _, _, token in grants]
    assert len(set(tokens)) == len(tokens)
    if subject != FOLDER:  # Where the whole folder is another, so is the store.
        for resource in range(3):
            of_one = [token for _, door, token in grants if door == resource]
            assert of_one == sorted(of_one), "whoever comes later has the higher token"
    later = stage.engage("later")
    if subject == FOLDER or not later.tries("connect", place=str(scene.store)).went_well:
        return
    problems = later.tries("verify")
    # What is written into a file that SQLite is at work on may damage it. That is found, but not at once.
    if DEEDS[deed] in IN_PLACE and (problems.error == "STORE_DAMAGED" or problems.value):
        return
    assert problems.value == []
    facts = later.does("facts")
    assert set(tokens) <= set(facts["tokens"]) or len(facts["raises"]) > len(before.raises)


def until_it_is_old(copy: Path) -> None:
    """Wait until what changes now gets a date by which it can be told from the copy."""
    copied_ns = max(path.stat().st_ctime_ns for path in copy.iterdir())
    probe = copy.with_name("probe")
    while not probe.exists() or probe.stat().st_ctime_ns < copied_ns + OLD_NS:
        probe.write_bytes(b"")


def test_a_newcomer_among_others_notices_that_the_whole_folder_was_overwritten(
    stage: Stage, tmp_path: Path
) -> None:
    """Those inside would notice by what they remember, but they need not be the first to write."""
    scene = Scene(tmp_path, FOLDER, stage)
    found(stage, scene.store)
    subprocess.run(["cp", "-a", scene.store, scene.older], check=True)
    ann, newcomer = stage.engage("ann"), stage.engage("newcomer")
    until_it_is_old(scene.older)
    ann.does("connect", place=str(scene.store))
    token = ann.does("acquire", resource="door")["token"]
    DEEDS["overwritten with an older copy of it"](scene)
    newcomer.does("connect", place=str(scene.store))
    assert newcomer.does("acquire", resource="door")["token"] > token


def test_who_leaves_last_does_not_hide_that_the_whole_folder_was_overwritten(
    stage: Stage, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, FOLDER, stage)
    found(stage, scene.store)
    ann, newcomer = stage.engage("ann"), stage.engage("newcomer")
    ann.does("connect", place=str(scene.store))
    ann.does("acquire", resource="window")
    subprocess.run(["cp", "-a", scene.store, scene.older], check=True)
    until_it_is_old(scene.older)
    token = ann.does("acquire", resource="door")["token"]
    ann.does("detach", resource="door")
    ann.does("detach", resource="window")
    DEEDS["overwritten with an older copy of it"](scene)
    ann.does("close")
    newcomer.does("connect", place=str(scene.store))
    assert newcomer.does("acquire", resource="door")["token"] > token


class Diary:
    """A named pipe into which everybody writes what came of each try."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._pipe = os.open(path, os.O_RDWR)
        self._written = b""

    def wait_for(self, count: int) -> None:
        """Wait for so many tries more, or until nobody has tried for a while: all may be dead."""
        wanted = self._written.count(b"\n") + count
        while self._written.count(b"\n") < wanted and self._reads(PATIENCE_SECONDS):
            pass

    def _reads(self, patience_seconds: float) -> bool:
        readable, _, _ = select.select([self._pipe], [], [], patience_seconds)
        self._written += os.read(self._pipe, 65_536) if readable else b""
        return bool(readable)

    def grants(self) -> list[tuple[int, int, int]]:
        """The moment, resource and token of every grant, in order; the diary is closed then."""
        while self._reads(0):
            pass
        os.close(self._pipe)
        tries = (line.split() for line in self._written.decode().splitlines())
        return sorted((int(at), int(door), int(token)) for at, door, token in tries if token != "0")
