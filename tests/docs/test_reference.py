"""The reference says what the code says: all of it, and as it is now."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold import errors
from leasehold.kernel.ledger.refusals import RefusalCode
from tests.docs.pages import ROOT
from tools.generate_reference import PAGES, stale_pages

REFERENCE = ROOT / "docs" / "reference"


def reference(name: str) -> str:
    return (REFERENCE / name).read_text()


def test_the_generated_pages_are_up_to_date() -> None:
    assert not [path.name for path in stale_pages()], "run `make docs`"


def test_the_check_notices_a_page_that_was_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PAGES:
        (tmp_path / name).write_text(reference(name))
    (tmp_path / "errors.md").write_text(reference("errors.md").replace("HELD", "TAKEN"))
    monkeypatch.setattr("tools.generate_reference.FOLDER", tmp_path)
    assert [path.name for path in stale_pages()] == ["errors.md"]


def test_the_generator_runs_as_make_runs_it() -> None:
    command = [sys.executable, "tools/generate_reference.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", leasehold.__all__)
def test_every_public_name_is_in_the_api_reference(name: str) -> None:
    thing = getattr(leasehold, name)
    is_exception = isinstance(thing, type) and issubclass(thing, Exception)
    expected = f"`{name}`" if is_exception else f"\n### {name}\n"
    assert expected in reference("api.md")


@pytest.mark.parametrize(
    "kind",
    [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)],
    ids=lambda kind: kind.__name__,
)
def test_every_exception_is_in_the_table_of_errors(kind: type[errors.LeaseholdError]) -> None:
    row = next(
        line for line in reference("errors.md").splitlines() if line.startswith(f"| `{kind.__name__}`")
    )
    assert f"`{kind.code}` | {kind.http_status} | {kind.exit_code} |" in row


@pytest.mark.parametrize("code", RefusalCode)
def test_every_refusal_has_an_exception_in_the_table(code: RefusalCode) -> None:
    assert f"`{code}`" in reference("errors.md")


def test_every_field_that_the_command_line_prints_as_json_is_described(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "leases"), "--json"]
    lease = run_json("acquire", "report", "--holder", "ana", *store)
    commands = [
        ["ls", *store],
        ["show", "report", *store],
        ["show", lease["lease_id"], *store],
        ["renew", lease["lease_id"], "--holder", "ana", *store],
        ["history", "report", "--limit", "1", *store],
        ["doctor", *store],
        ["sweep", *store],
        ["backup", str(tmp_path / "copy"), *store],
        ["restore", str(tmp_path / "copy"), *store],
        ["release", "--all", "--holder", "ana", *store],
        ["release", lease["lease_id"], "--holder", "ana", *store],
        ["revoke", lease["lease_id"], "--reason", "test", *store],
    ]
    described = set(re.findall(r"`(\w+)`", reference("json.md")))
    printed = fields_of(lease)
    for command in commands:
        printed |= fields_of(run_json(*command))
    assert printed <= described, f"describe {sorted(printed - described)} in docs/reference/json.md"


def run_json(*arguments: str) -> Any:
    command = [sys.executable, "-m", "leasehold", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def fields_of(shape: object) -> set[str]:
    """Return the names of all fields, however deep; what users put into metadata is theirs."""
    found: set[str] = set()
    if isinstance(shape, dict):
        for name, value in shape.items():
            found |= {name} if name == "metadata" else {name} | fields_of(value)
    elif isinstance(shape, list):
        for one in shape:
            found |= fields_of(one)
    return found
