"""No test is forgotten: `make test` or `make proof` runs it, and `make test` says which it leaves out."""

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeGuard

import msgspec
import pytest

from tests import lanes
from tests.collection import collect
from tests.lanes import REPORT, Report
from tools.suite import COMMANDS, LAWS, ROOT, left_out, main, not_run_here, problems_of, stages_of

TESTS = ROOT / "tests"
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tests: set[str]) -> set[str]:
    return {test.partition("[")[0] for test in tests}


def run_by(lane: str, folder: Path) -> tuple[set[str], set[str]]:
    """Return the tests that a lane runs, and the functions that it leaves out and says why."""
    tests, reasons = set[str](), set[str]()
    for stage in stages_of(lane, 2):
        if not stage.is_measured:
            path = folder / f"{lane} {stage.name}"
            tests |= collect(*stage.arguments, report=path)
            reasons.update(*msgspec.json.decode(path.read_bytes(), type=Report).reasons.values())
    return tests, reasons


def written() -> set[str]:
    """Return every function and method in the folder that is named like a test, wherever it stands."""
    return {
        f"{path.relative_to(ROOT).as_posix()}::{name}"
        for path in TESTS.rglob("*.py")
        for name in names_in(ast.parse(path.read_text(encoding="utf-8")).body)
    }


def names_in(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}::{name}" for name in names_in(node.body))
        elif isinstance(node, FUNCTIONS) and node.name.startswith("test_"):
            yield node.name


@pytest.mark.proof("collects all tests five times")
def test_every_test_is_run_by_make_test_or_by_make_proof(tmp_path: Path) -> None:
    everything = collect()
    quick, said = run_by("test", tmp_path)
    rest, _ = run_by("proof", tmp_path)
    assert len(everything) > 10_000
    assert everything - quick - rest == set(), "neither `make test` nor `make proof` runs these"
    assert written() - functions(everything) == set(), "pytest does not find these"
    assert functions(everything) - functions(quick) == said, "`make test` leaves these out and says no reason"
    assert len(said) < 20


def report(**facts: Any) -> Report:
    return Report(**{"tests": 2, "ran": 2} | facts)


def test_what_make_test_leaves_out_is_said_with_the_reason() -> None:
    reports = [
        report(worlds=1_000, shorter=["tests/a.py::test_a"]),
        report(worlds=200, reasons={"it takes an hour": ["tests/b.py::test_b"]}),
    ]
    assert left_out(reports) == [
        "Left out; `make proof` runs all of it, and `.venv/bin/pytest FILE` one file of it:",
        "  other stores and clients for functions that ran here: 1,200 tests",
        "  more seeds, examples, steps and cases for functions that were cut short here: 1",
        "  it takes an hour:",
        "    tests/b.py::test_b",
    ]


def test_what_this_machine_cannot_run_is_said_with_the_reason_and_fails_in_ci() -> None:
    lacking = report(skipped={"needs root": ["tests/a.py::test_a"]})
    assert not_run_here([report()]) == []
    assert not_run_here([lacking])[1:] == ["  needs root:", "    tests/a.py::test_a"]
    assert problems_of("tests", lacking, has_passed=True, in_ci=False) == []
    assert problems_of("tests", lacking, has_passed=True, in_ci=True) == [
        "tests: in CI every test has to run"
    ]


def test_a_stage_whose_tests_have_not_all_ended_has_failed() -> None:
    assert problems_of("tests", report(), has_passed=True, in_ci=True) == []
    assert problems_of("tests", None, has_passed=True, in_ci=False)
    assert problems_of("tests", report(), has_passed=False, in_ci=False)
    (problem,) = problems_of("tests", report(ran=1), has_passed=True, in_ci=False)
    assert problem == "tests: only 1 of 2 tests came to an end"


@pytest.mark.parametrize(
    ("ends", "expected"),
    [("pass", (3, 3)), ("raise KeyboardInterrupt", (3, 1)), ("os._exit(0)", (3, 0))],
)
def test_the_report_of_a_run_says_how_many_tests_came_to_an_end(
    tmp_path: Path, ends: str, expected: tuple[int, int]
) -> None:
    (tmp_path / "test_house.py").write_text(
        "import os, pytest\n"
        "def test_first(): pass\n"
        f"def test_second(): {ends}\n"
        "def test_third(): pytest.skip('no chimney')\n"
    )
    written = tmp_path / "report"
    environment = os.environ | {REPORT: str(written)}
    # The plugins of this repository, and tests from elsewhere.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "--rootdir", str(tmp_path)]
    command += ["-p", "no:cacheprovider", "-c", os.devnull, "--lane", "test", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    found = msgspec.json.decode(written.read_bytes(), type=Report)
    assert (found.tests, found.ran) == expected
    assert [*found.skipped] == (["no chimney"] if expected == (3, 3) else [])


def test_a_sample_is_spread_over_the_whole_and_all_of_it_at_full_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes._Chosen, "running", None)
    monkeypatch.setattr(lanes._Chosen, "lane", "test")
    assert lanes.some_of(range(100), 4) == [0, 25, 50, 75]
    assert lanes.some_of(range(100), 4, offset=99) == [99, 24, 49, 74]
    assert lanes.some_of([1, 2], 4) == [1, 2]
    assert lanes.by_length("full", "short") == "short"
    monkeypatch.setattr(lanes._Chosen, "lane", "proof")
    assert list(lanes.some_of(range(100), 4)) == list(range(100))
    assert lanes.by_length("full", "short") == "full"


def test_only_a_deep_test_may_ask_how_far_to_go() -> None:
    with pytest.raises(AssertionError, match=r"test_only_a_deep_test_may_ask_how_far_to_go asks how far"):
        lanes.by_length("full", "short")


def test_what_is_cut_short_in_make_test_is_marked() -> None:
    """Parameters and constants are made before any test runs: nobody could tell for which."""
    shortened = [
        f"{path.name}::{name}"
        for path in TESTS.rglob("*.py")
        if path != Path(__file__)
        for name in unmarked(ast.parse(path.read_text("utf-8")))
    ]
    assert shortened == [], "mark these with @pytest.mark.deep"


def unmarked(module: ast.Module) -> list[str]:
    """Return the tests that are cut short, by what they use of the module too, and are not marked for it."""
    if any(is_mark(node) for node in module.body if isinstance(node, ast.Assign)):
        return []
    short = {"by_length", "some_of", "is_full_length", "run_state_machine_as_test"}
    used: set[str] = set()
    while used != short:
        used = set(short)
        for node in module.body:
            if used & names_of(node) and not is_test(node):
                short |= defined_by(node)
    return [
        node.name
        for node in module.body
        if is_test(node) and (short & names_of(node) or has_examples(node)) and not is_deep(node)
    ]


def is_test(node: ast.AST) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, FUNCTIONS) and node.name.startswith("test_")


def is_deep(test: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Say whether a test is marked; tests of Hypothesis and searches for mistakes are by themselves."""
    decorators = test.decorator_list
    return any(is_mark(one) or "given" in names_of(one) for one in decorators) or "found" in names_of(test)


def has_examples(node: ast.AST) -> bool:
    """Say whether there is a test of Hypothesis in it."""
    functions = (one for one in ast.walk(node) if isinstance(one, FUNCTIONS))
    return any("given" in names_of(one) for function in functions for one in function.decorator_list)


def is_mark(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr in ("deep", "proof") for one in ast.walk(node))


def names_of(node: ast.AST) -> set[str]:
    names = (getattr(one, "id", getattr(one, "attr", None)) for one in ast.walk(node))
    return {name for name in names if isinstance(name, str)}


def defined_by(node: ast.AST) -> set[str]:
    if isinstance(node, FUNCTIONS | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return set().union(*map(names_of, targets))


def test_every_law_is_measured() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (pure,) = (one["source_modules"] for one in contracts if one["id"] == "pure-kernel")
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.py")]
    for pattern in LAWS.values():
        assert any(fnmatch(file, pattern) for file in files), f"{pattern} is no file"
    for module in pure:
        path = f"src/{module.replace('.', '/')}"
        of_law = [file for file in files if file == f"{path}.py" or file.startswith(f"{path}/")]
        assert of_law
        for file in of_law:
            assert any(fnmatch(file, pattern) for pattern in LAWS.values()), f"{file} is not measured"


def test_a_lane_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["everything"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert all(command in said for command in COMMANDS)


def test_chaos_runs_alone_in_both_lanes() -> None:
    for lane in ("test", "proof"):
        alone = [stage for stage in stages_of(lane, 2) if "-n" not in stage.arguments]
        assert [stage.arguments[:2] for stage in alone] == [("-m", "chaos")]


def test_ci_runs_the_check_and_both_lanes() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert [line for line in script.splitlines() if line.startswith("make")] == [
        "make check",
        "make test",
        "make proof",
    ]
