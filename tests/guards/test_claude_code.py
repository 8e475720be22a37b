"""Hooks in the settings of Claude Code: beside all others, and gone without a trace."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from leasehold.guards.program import quoted_program
from tests.files.conftest import git
from tests.guards.conftest import Team
from tests.guards.test_git_hooks import everything

THEIRS: dict[str, Any] = {
    "permissions": {"allow": ["Bash(ls:*)"], "deny": []},
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "theirs || exit 2"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
    },
}


def settings(team: Team) -> Path:
    """Return where the settings are."""
    return team.top / ".claude" / "settings.local.json"


def write(team: Team, text: str | bytes) -> Path:
    """Write settings that were there before."""
    file = settings(team)
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def test_hooks_are_added_by_absolute_path_with_a_time_out_and_for_every_tool(hooked: Team) -> None:
    hooks = json.loads(settings(hooked).read_text())["hooks"]
    (entry,) = hooks["PreToolUse"]
    (hook,) = entry["hooks"]
    assert set(entry["matcher"].split("|")) == {"Edit", "MultiEdit", "Write", "NotebookEdit", "Bash"}
    assert hook["command"].startswith("/")
    assert hook["command"].endswith("/leasehold guard hook --mode block || exit 2")
    assert hook["timeout"] > 5
    assert hook["onFailure"] == "block"
    for event in ("SessionEnd", "SubagentStop"):
        (released,) = hooks[event][0]["hooks"]
        assert released["command"].endswith("/leasehold guard hook --release")
        assert released["timeout"] > 5
        assert "onFailure" not in released
    hooked.run("guard", "install", "claude-code", "--mode", "warn")
    (hook,) = json.loads(settings(hooked).read_text())["hooks"]["PreToolUse"][0]["hooks"]
    assert hook["command"].endswith(" --mode warn")
    assert "onFailure" not in hook


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{}",
        "{}\n\n",
        json.dumps(THEIRS),
        json.dumps(THEIRS, indent=4),
        json.dumps(THEIRS, indent="\t") + "\n",
        '{\r\n  "model": "é"\r\n}\r\n',
        '{"hooks": {}}',
    ],
)
def test_to_uninstall_leaves_every_byte_as_it_was(team: Team, text: str | None) -> None:
    if text is not None:
        write(team, text).chmod(0o640)
    before = everything(team.top)
    for _ in range(2):  # The second time, what is there is ours already.
        team.run("guard", "install", "claude-code")
    assert everything(team.top) != before
    assert "as it was before" in team.run("guard", "uninstall", "claude-code").out
    assert everything(team.top) == before
    assert (team.top / ".claude").exists() is (text is not None)


def test_to_uninstall_what_is_not_installed_does_nothing(team: Team) -> None:
    assert "nothing of leasehold's" in team.run("guard", "uninstall", "claude-code").out


def test_what_others_have_in_the_settings_stays_and_works(team: Team) -> None:
    write(team, json.dumps(THEIRS))
    team.run("guard", "install", "claude-code")
    now = json.loads(settings(team).read_text())
    assert now["permissions"] == THEIRS["permissions"]
    assert now["hooks"]["Stop"] == THEIRS["hooks"]["Stop"]
    assert now["hooks"]["PreToolUse"][0] == THEIRS["hooks"]["PreToolUse"][0]
    assert len(now["hooks"]["PreToolUse"]) == 2


@pytest.mark.parametrize("existed", [True, False])
def test_what_was_changed_since_is_kept(team: Team, existed: bool) -> None:
    if existed:
        write(team, json.dumps(THEIRS))
    team.run("guard", "install", "claude-code")
    now = json.loads(settings(team).read_text())
    now["model"] = "another"
    now["hooks"]["PreToolUse"][-1]["hooks"].append({"type": "command", "command": "added"})
    write(team, json.dumps(now))
    team.run("guard", "install", "claude-code", "--mode", "warn")
    team.run("guard", "uninstall", "claude-code")
    left = json.loads(settings(team).read_text())
    assert left["model"] == "another"
    assert left["hooks"]["PreToolUse"][-1]["hooks"] == [{"type": "command", "command": "added"}]
    assert "leasehold" not in settings(team).read_text()
    assert ("Stop" in left["hooks"]) is existed


def test_settings_that_were_emptied_since_do_not_come_back(team: Team) -> None:
    write(team, json.dumps(THEIRS))
    team.run("guard", "install", "claude-code")
    now = json.loads(settings(team).read_text())
    ours = {event: [entries[-1]] for event, entries in now["hooks"].items() if event != "Stop"}
    write(team, json.dumps({"hooks": ours}))
    team.run("guard", "uninstall", "claude-code")
    assert json.loads(settings(team).read_text()) == {}


def test_hooks_are_found_without_what_was_kept_of_before(hooked: Team) -> None:
    shutil.rmtree(hooked.top / ".git" / "leasehold-claude-code")
    hooked.run("guard", "uninstall", "claude-code")
    assert not settings(hooked).exists()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": [1]}}', b"\xff"]
)
def test_settings_that_nobody_understands_are_left_alone(team: Team, text: str | bytes) -> None:
    file = write(team, text)
    before = file.read_bytes()
    assert "mend it first" in team.run("guard", "install", "claude-code", code=1).err
    assert file.read_bytes() == before


def test_settings_that_are_a_link_stay_one(team: Team, tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    real.write_text("{}")
    settings(team).parent.mkdir()
    settings(team).symlink_to(real)
    team.run("guard", "install", "claude-code")
    assert "guard hook" in real.read_text()
    team.run("guard", "uninstall", "claude-code")
    assert settings(team).is_symlink()
    assert real.read_text() == "{}"


def test_hooks_are_at_the_top_of_the_work_tree_from_wherever_they_are_installed(
    team: Team, tmp_path: Path
) -> None:
    team.run("guard", "install", "claude-code", at=team.top / "src")
    assert settings(team).exists()
    git(team.top, "worktree", "add", "../tree")
    team.run("guard", "install", "claude-code", at=tmp_path / "tree")
    assert (tmp_path / "tree" / ".claude" / "settings.local.json").exists()
    team.run("guard", "uninstall", "claude-code", at=tmp_path / "tree")
    assert not (tmp_path / "tree" / ".claude").exists()
    assert settings(team).exists()


def test_a_path_with_a_blank_is_quoted(team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my tools"
    folder.mkdir()
    (folder / "leasehold").touch(mode=0o755)
    monkeypatch.setattr("sys.executable", str(folder / "python"))
    assert quoted_program() == f"'{folder}/leasehold'"
    (folder / "leasehold").unlink()
    assert quoted_program() == f"'{folder}/python' -m leasehold"
