"""doctor has every hook that is installed prove that it blocks, and finds out the one that does not."""

from pathlib import Path

from tests.guards.conftest import Team
from tests.guards.test_git_hooks import everything


def hooks(team: Team, code: int = 0) -> list[dict[str, object]]:
    """Return what doctor says of hooks."""
    report = team.run("doctor", "--json", code=code).json
    return [check for check in report["checks"] if check["check"] == "hooks"]


def test_without_hooks_there_is_nothing_to_prove(team: Team) -> None:
    team.run("acquire", "src/app.py", "--as", "a")
    assert hooks(team) == []


def test_hooks_that_block_prove_it_and_touch_nothing(guarded: Team) -> None:
    guarded.run("guard", "install", "claude-code")
    guarded.run("acquire", ".", "--as", "a")
    before = everything(guarded.top)
    found = hooks(guarded)
    assert [check["ok"] for check in found] == [True, True]
    assert all("refused a file that somebody else held" in str(check["detail"]) for check in found)
    after = everything(guarded.top)
    store = {name for name in before | after if name.startswith(".leasehold/")}
    assert {name: after[name] for name in after.keys() - store} == {
        name: before[name] for name in before.keys() - store
    }


def test_hooks_that_warn_prove_that_they_warn(team: Team) -> None:
    for target in ("git", "claude-code"):
        team.run("guard", "install", target, "--mode", "warn")
    team.run("acquire", "src/app.py", "--as", "a")
    assert ["warned of a file" in str(check["detail"]) for check in hooks(team)] == [True, True]


def test_hooks_that_do_not_block_are_found_out(guarded: Team, tmp_path: Path) -> None:
    guarded.run("guard", "install", "claude-code")
    guarded.run("acquire", "src/app.py", "--as", "a")
    hook = guarded.top / ".git" / "hooks" / "pre-commit"
    settings = guarded.top / ".claude" / "settings.local.json"
    right = hook.read_text(), settings.read_text()
    for was, instead in (("--staged || exit", "--staged || true"), ("guard --mode block", "--version; true")):
        hook.write_text(right[0].replace(was, instead))
        settings.write_text(right[1].replace("|| exit 2", "|| true"))
        found = hooks(guarded, code=1)
        assert [check["ok"] for check in found] == [False, False], found
        assert "leasehold guard install" in str(found[0]["advice"])
    hook.write_text(right[0])
    hook.chmod(0o644)
    settings.write_text(right[1].replace("/leasehold guard", "/gone guard"))
    found = hooks(guarded, code=1)
    assert [check["ok"] for check in found] == [False, False]
    assert "blocks also what is free" in str(found[1]["detail"])


def test_the_names_of_the_one_who_asks_do_not_let_a_hook_off(guarded: Team) -> None:
    guarded.run("acquire", "src/app.py", "--as", "a")
    report = guarded.run(
        "doctor", "--json", LEASEHOLD_AGENT="doctor's-holder", LEASEHOLD_BYPASS="any", GIT_DIR=".git"
    ).json
    assert report["checks"][-1]["ok"] is True
