"""The house rules that a linter does not know, checked on the text of the repository.

Each test names every offender at once, with its line. Raising a limit or adding to an allow-list
is a decision: make it here, with its reason beside it.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "leasehold"
KERNEL = PACKAGE / "kernel"

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70

# Tests that may sleep: "tests/path.py::function" and why no signal could be waited for instead.
# A pause is fair where the passing of real time is itself what is tested; it is never fair as a
# guess at how long another thread or process will take.
SLEEPS_ALLOWED: dict[str, str] = {
    "tests/client/wire.py::call": "a line that delays what is sent is what the suite is run on",
    "tests/server/test_serving.py::test_what_lapsed_while_no_server_was_up_is_kept_for_its_holder": (
        "nothing but time ends a lease while its registrar is down"
    ),
}

# The patterns are put together from pieces so that this file does not match itself.
UNFINISHED = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:(?:home|Users|tmp|work|workspace)/\w|root\b)")
REGISTRY_HOST = re.compile(r"py" + r"pi\.org|python" + r"hosted\.org", re.IGNORECASE)


def test_every_module_says_what_it_promises() -> None:
    silent = [where(path) for path in modules(PACKAGE) if ast.get_docstring(tree(path)) is None]
    assert not silent, f"modules without a docstring: {silent}"


def test_no_module_is_longer_than_a_reader_will_read() -> None:
    lengths = {where(path): len(text(path).splitlines()) for path in modules(PACKAGE)}
    long = {name: length for name, length in lengths.items() if length > MODULE_LINES_MAX}
    assert not long, f"modules of more than {MODULE_LINES_MAX} lines: {long}"


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{where(path, function.lineno)} {function.name}: {lines}"
        for path in modules(PACKAGE)
        for function in functions(tree(path))
        if (lines := line_count(function)) > FUNCTION_LINES_MAX
    ]
    assert not long, f"functions of more than {FUNCTION_LINES_MAX} lines: {long}"


def test_nothing_in_the_package_is_left_for_later() -> None:
    marks = [
        where(path, number)
        for path in modules(PACKAGE)
        for number, line in enumerate(text(path).splitlines(), start=1)
        if UNFINISHED.search(line) or "NotImplementedError" in line
    ]
    assert not marks, f"unfinished work: {marks}"


def test_the_kernel_imports_nothing_but_the_standard_library_and_msgspec() -> None:
    # The contracts in pyproject.toml can only forbid packages by name; this allows by name.
    allowed = sys.stdlib_module_names | {"msgspec", "leasehold"}
    strangers = [
        f"{where(path, line)} {module}"
        for path in modules(KERNEL)
        for line, module in imports(tree(path))
        if module.partition(".")[0] not in allowed
    ]
    assert not strangers, f"the kernel imports {strangers}"


def test_no_test_sleeps_to_let_something_happen() -> None:
    sleeps = {f"{where(path)}::{name}" for path in modules(ROOT / "tests") for name in sleepers(tree(path))}
    assert sleeps <= SLEEPS_ALLOWED.keys(), f"wait for a signal instead: {sorted(sleeps)}"
    assert sleeps >= SLEEPS_ALLOWED.keys(), "the allow-list names tests that no longer sleep"


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    found = occurrences(MACHINE_PATH)
    assert not found, f"paths that exist on one machine only: {found}"


def test_no_file_names_a_package_registry() -> None:
    found = occurrences(REGISTRY_HOST)
    assert not found, f"where packages come from is the installer's business: {found}"


def modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def tree(path: Path) -> ast.Module:
    return ast.parse(text(path), filename=str(path))


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def line_count(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def imports(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each absolute import, wherever in the module it stands."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield node.lineno, node.module


def sleepers(node: ast.AST, function: str = "<module>") -> Iterator[str]:
    """The innermost function around each sleep."""
    for child in ast.iter_child_nodes(node):
        if is_sleep(child):
            yield function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from sleepers(child, child.name)
        else:
            yield from sleepers(child, function)


def is_sleep(node: ast.AST) -> bool:
    """A real pause: not a fake clock's method, and not sleep(0), which only lets others run."""
    if not isinstance(node, ast.Call) or [ast.unparse(given) for given in node.args] == ["0"]:
        return False
    return ast.unparse(node.func) in {"time.sleep", "asyncio.sleep", "sleep"}


def occurrences(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{where(path, number)} {match.group()}"
        for path in repository_files()
        for number, line in enumerate(text(path).splitlines(), start=1)
        if (match := pattern.search(line))
    ]


def repository_files() -> list[Path]:
    """Every file that is, or is about to be, part of the repository."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = (ROOT / name for name in listing.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def where(path: Path, line: int | None = None) -> str:
    name = path.relative_to(ROOT).as_posix()
    return name if line is None else f"{name}:{line}"


@pytest.mark.parametrize(
    "package", ["kernel", "engine", "client", "client/aio", "cli", "server", "stores/memory", "stores/sqlite"]
)
def test_the_map_of_a_package_names_every_module_in_it(package: str) -> None:
    folder = ROOT / "src" / "leasehold" / package
    described = (folder / "__init__.py").read_text()
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    missing = {name for name in modules if f"``{name}``" not in described}
    assert not missing, f"{package}/__init__.py does not say what is in {sorted(missing)}"
