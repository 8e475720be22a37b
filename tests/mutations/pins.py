"""The table of pinned seeds: the worlds in which each mistake that a test makes on purpose is noticed.

A search may take a hundred worlds, and the seed that it finds stays good until a change to the simulator, or
to what it runs, makes other worlds. `make pins` writes the table; `tests/mutations/search` reads it.

A test has a list of seeds for each of its calls of `found`. The first of them shows the mistake. The others,
if there are any, are run because they use a patch of the test that the first one does not.
"""

import ast
import functools
import json
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "simulator"
TABLE = FOLDER / "pins.json"
PREFIX = "tests/simulator/"

Pins = list[list[int]]


@functools.cache
def read_table() -> dict[str, Pins]:
    """Return the pins of every test, by the test's id below the folder."""
    if not TABLE.exists():
        return {}
    table: dict[str, Pins] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def write_table(table: Mapping[str, Pins]) -> None:
    """Write the pins, a test a line, in the order of their names."""
    lines = [f"  {json.dumps(test)}: {json.dumps(pins)}" for test, pins in sorted(table.items())]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    read_table.cache_clear()


def mutation_tests() -> dict[str, int]:
    """Return every test that searches, without its parameters, and how often it does so."""
    tests = {}
    for path in sorted(FOLDER.glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                calls = sum(map(_is_search, ast.walk(node)))
                if calls:
                    tests[f"{path.name}::{node.name}"] = calls
    return tests


def without_parameters(test: str) -> str:
    """Return the id of a test function."""
    return test.partition("[")[0]


def _is_search(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "found"
