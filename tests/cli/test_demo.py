import os
import signal
import threading
from pathlib import Path

import pytest

import leasehold
from leasehold.cli.demo_parts.actors import Actors
from leasehold.cli.demo_parts.shelf import Shelf, StaleToken
from leasehold.stores.sqlite.write_queue import in_the_way, turn
from tests.cli.shell import PATIENCE, Shell, children_of, until, wait_until_gone

pytestmark = pytest.mark.timeout(60)


def test_the_demo_tells_its_story_and_every_claim_holds(shell: Shell) -> None:
    text = shell.run("demo").out
    for part in (
        "1. Four",
        "2. ",
        "SIGKILL",
        "3. ",
        "SIGSTOP",
        "the resource refused it",
        "5. Whoever has to wait",
        "ada → paper → ben",
        "6. The history",
    ):
        assert part in text
    for part in ("7. A part of a lease", "8. A certificate", "12. Somebody writes", "names the entry: 2"):
        assert part in text
    assert "9. Messages are processed in order" in text
    assert "10. A workflow has one orchestrator" in text
    assert "11. A server lets programs on other machines in" in text
    assert text.count("✔") >= 39
    assert "✘" not in text
    assert "every one held" in text.splitlines()[-1]
    assert not shell.store.exists()


def test_a_claim_that_does_not_hold_is_told_and_fails_the_demo(shell: Shell) -> None:
    # The resource forgets to compare tokens, and so does the fence; and nobody compares hashes.
    shell.sabotage(
        "import leasehold.cli.demo_parts.shelf as shelf; shelf._parse = lambda content: (0, content); "
        "from leasehold.enforcing.fence import Fence; Fence.admit = lambda *_: None; "
        "import leasehold.engine.walking as walking; same = {'__ne__': lambda *_: False}; "
        "walking.link = lambda *_: type('Same', (), same)()"
    )
    report = shell.json("demo", code=1)
    assert report["ok"] is False
    failed = [claim["claim"] for claim in report["claims"] if not claim["held"]]
    for promise in ("the resource refused it", "the first is refused", "verify finds it"):
        assert any(promise in claim for claim in failed), promise
    assert len(failed) < len(report["claims"])
    assert report["seconds"] < 30


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_no_process_and_no_folder(shell: Shell, number: int) -> None:
    # It stays in the first chapter, where all of its workers live, waiting for history to tell of a renewal.
    shell.sabotage(
        "import threading; from leasehold.client.blocking.client import Client\n"
        "Client.history = lambda *given, **named: threading.Event().wait()\n"
    )
    temporary = shell.folder / "temporary"
    temporary.mkdir()
    demo = shell.start("demo", TMPDIR=str(temporary))
    while "A new store" not in (line := demo.line()):
        pass
    folder = Path(line.split(": ")[1]).parent
    while "got it" not in demo.line():
        pass
    workers = children_of(demo.process.pid)
    assert len(workers) == 4
    assert folder.is_dir()
    demo.send(number)
    result = demo.end()
    assert (result.code, result.err) == (128 + number, "")
    for worker in workers:
        wait_until_gone(worker)
    assert os.listdir(temporary) == []


def test_a_worker_is_not_paused_where_all_others_would_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "leases"
    leasehold.connect(store).close()
    seen = threading.Event()

    def look(path: Path) -> list[int]:
        seen.set()
        return in_the_way(path)

    monkeypatch.setattr("leasehold.cli.demo_parts.actors.in_the_way", look)
    with Actors(["ada"], store=store, shelf=tmp_path / "shelf.json", ttl=60) as actors:
        actors.wait_for(["ready"], ["ada"], timeout=PATIENCE)
        with turn(store):
            actors.tell("ada", "go")
            until(lambda: actors.process_id("ada") in in_the_way(store))
            pausing = threading.Thread(target=actors.stop, args=("ada",))
            pausing.start()
            assert seen.wait(PATIENCE)
        pausing.join(PATIENCE)
        assert not pausing.is_alive()
        with turn(store, PATIENCE):
            assert actors.process_id("ada") not in in_the_way(store)


def test_the_shelf_refuses_lower_tokens_only(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf.json")
    shelf.put("first", token=5)
    shelf.put("same holder again", token=5)
    with pytest.raises(StaleToken, match="token 4 is stale; 5 has written already"):
        shelf.put("stale", token=4)
    assert shelf.look() == "same holder again"
