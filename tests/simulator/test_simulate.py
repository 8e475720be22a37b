"""The simulator's command line."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from simulator import OUTCOMES
from simulator import __main__ as simulate

# It says how far it is after each part, here after the first world.
INTERRUPTED = """
from simulator import __main__ as simulate
simulate._SEEDS_PER_CHUNK = 1
raise SystemExit(simulate.main())
"""


def test_many_seeds_end_with_what_happened_and_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate.main(["--seeds", "2", "--start", "43"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("seeds 43 to 44\n")
    assert "2 seeds, " in printed.out
    assert printed.out.rstrip().endswith("every promise was kept")
    for name in OUTCOMES:
        assert f"  {name}\n" in printed.out


def test_fresh_seeds_are_others_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[range] = []
    monkeypatch.setattr(simulate, "_run_many", lambda seeds, jobs: ran.append(seeds))
    for _ in range(2):
        simulate.main(["--seeds", "7", "--fresh"])
    once, again = ran
    assert len(once) == len(again) == 7
    assert once != again


def test_seeds_can_be_shared_out_among_processes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # More parts than processes, and the last part is shorter.
    monkeypatch.setattr(simulate, "_SEEDS_PER_CHUNK", 2)
    assert simulate.main(["--seeds", "5", "--jobs", "2"]) == 0
    shared = capsys.readouterr().out.splitlines()[:-1]
    assert simulate.main(["--seeds", "5"]) == 0
    assert capsys.readouterr().out.splitlines()[:-1] == shared


def test_a_failing_seed_is_named_with_the_command_that_tells_its_story(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    break_the_law(monkeypatch)
    assert simulate.main(["--seeds", "3"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("seed 0 FAILED: ")
    assert lines[2] == "  python -m simulator --seed 0 --trace"


def test_one_seed_can_be_run_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate.main(["--seed", "3"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("seed 3: every promise was kept")
    assert simulate.main(["--seed", "3", "--trace"]) == 0
    story = capsys.readouterr().out
    assert story.endswith(printed)
    assert len(story.splitlines()) > 100


def test_one_failing_seed_tells_what_happened_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    break_the_law(monkeypatch)
    assert simulate.main(["--seed", "0"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("What happened last:\n")
    assert "\nseed 0 FAILED: " in printed


@pytest.mark.parametrize(
    "wrong", [["--seeds", "0"], ["--jobs", "x"], ["--trace"], ["--seed", "1", "--seeds", "2"]]
)
def test_wrong_arguments_are_explained(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        simulate.main(wrong)
    assert exit_.value.code == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_ends_it_without_a_traceback(jobs: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, "--seeds", "10000", "--jobs", jobs]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        assert running.stderr is not None
        try:
            assert "of 10,000 seeds" in running.stderr.readline()
            running.send_signal(signal.SIGINT)
            _, errors = running.communicate(timeout=60)
        finally:
            # Whatever went wrong, nothing is left running behind the tests: its workers neither.
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 130
    assert errors.rstrip().endswith("interrupted")
    assert "Traceback" not in errors


def break_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every retry a second request."""
    monkeypatch.setattr("leasehold.kernel.lease.rules.acquire.remembered", lambda request, view, now: None)
