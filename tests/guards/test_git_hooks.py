"""Real git, in clones and work trees, with the hooks installed."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.files.conftest import git
from tests.guards.conftest import Team, clone


def script(path: Path, text: str) -> Path:
    """Write a hook."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file below a folder, with its rights and what is in it."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, b"" if path.is_symlink() else path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() or path.is_symlink()
    }


def test_a_second_agent_s_commit_is_refused_in_clones_and_work_trees_until_the_first_releases(
    guarded: Team, tmp_path: Path
) -> None:
    store = f"{tmp_path}/shared/leases"
    first, second = clone(guarded, "first"), clone(guarded, "second")
    for place in (first, second):
        guarded.run("guard", "install", "git", "--store", store, at=place)
    git(first, "worktree", "add", "../tree")
    tree = tmp_path / "tree"
    guarded.run("acquire", "src/app.py", "--as", "a", "--reason", "new parser", at=first)
    for place in (second, tree, first):
        refused = guarded.commit("src/app.py", agent="b", at=place)
        assert refused.code != 0
        assert "src/app.py is held by a (new parser)" in refused.err
        assert guarded.commit("src/other.py", agent="b", at=place).code != 0, "it is still staged"
        guarded.git("reset", "--quiet", at=place)
        assert guarded.commit("src/other.py", agent="b", at=place).code == 0
    assert guarded.commit("src/app.py", agent="a", at=tree).code == 0
    guarded.run("release", "src/app.py", "--as", "a", at=second)
    assert guarded.commit("src/app.py", agent="b", at=second).code == 0


def test_the_commit_of_a_submodule_belongs_to_the_repository_around_it(guarded: Team, tmp_path: Path) -> None:
    git(tmp_path, "init", "part")
    git(tmp_path / "part", "commit", "--allow-empty", "-m", "part")
    git(guarded.top, "-c", "protocol.file.allow=always", "submodule", "add", str(tmp_path / "part"), "part")
    git(guarded.top, "commit", "--no-verify", "-m", "with a submodule")
    git(guarded.top / "part", "commit", "--allow-empty", "-m", "more")
    guarded.run("acquire", ".", "--as", "a")
    refused = guarded.git("commit", "-am", "more of it", agent="b")
    assert (refused.code, ". is held by a" in refused.err) == (1, True)
    guarded.run("release", ".", "--as", "a")
    guarded.run("acquire", "part/", "--as", "a")
    assert guarded.git("commit", "-am", "more of it", agent="b").code == 0, "its files are its own"


@pytest.mark.parametrize("name", ["we\nird.py", "src/we\nird.py"])
def test_a_name_that_cannot_be_leased_is_held_by_who_has_the_folder(guarded: Team, name: str) -> None:
    guarded.run("acquire", ".", "--as", "a")
    assert "is held by a" in guarded.commit(name, agent="b").err


def test_both_names_of_a_rename_count(guarded: Team) -> None:
    for path in ("src/app.py", "src/new.py"):
        guarded.run("acquire", path, "--as", "a")
        guarded.git("mv", "src/app.py", "src/new.py")
        assert f"{path} is held by a" in guarded.git("commit", "-m", "renamed", agent="b").err
        guarded.git("mv", "src/new.py", "src/app.py")
        guarded.run("release", path, "--as", "a")


@pytest.mark.parametrize("change", ["delete", "mode", "link", "in a folder", "in a pattern"])
def test_whatever_a_commit_changes_counts(guarded: Team, change: str) -> None:
    leased = {"in a folder": "src/", "in a pattern": "**/*.py"}.get(change, "src/app.py")
    guarded.run("acquire", leased, "--as", "a")
    file = guarded.top / "src" / "app.py"
    if change == "delete":
        file.unlink()
    elif change == "mode":
        file.chmod(0o755)
    elif change == "link":
        file.unlink()
        file.symlink_to("elsewhere.py")
    else:
        file.write_text("changed\n")
    assert "is held by a" in guarded.git("commit", "-am", "changed", agent="b").err


def test_only_what_is_staged_counts(guarded: Team) -> None:
    guarded.run("acquire", "src/app.py", "--as", "a")
    (guarded.top / "src" / "app.py").write_text("changed, and not staged\n")
    assert guarded.commit("src/b.py", agent="b").code == 0


def test_an_index_of_its_own_counts_and_the_usual_one_does_not(guarded: Team, tmp_path: Path) -> None:
    guarded.run("acquire", "src/app.py", "--as", "a")
    (guarded.top / "src" / "app.py").write_text("changed\n")
    guarded.git("add", "src/app.py")
    (guarded.top / "free.py").write_text("free\n")
    guarded.git("add", "free.py")
    assert guarded.git("commit", "-m", "only one", "--only", "free.py", agent="b").code == 0
    assert guarded.git("commit", "-m", "only one", "--only", "src/app.py", agent="b").code != 0
    other: dict[str, Any] = {"GIT_INDEX_FILE": str(tmp_path / "index")}
    guarded.git("read-tree", "HEAD", **other)
    assert guarded.git("commit", "--allow-empty", "-m", "nothing", agent="b", **other).code == 0


def test_the_first_commit_of_a_repository_is_guarded(team: Team, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    git(new, "init")
    assert "has no commit yet; set a name for it" in team.run("guard", "install", "git", at=new, code=64).err
    git(new, "config", "leasehold.project", "new")
    team.run("guard", "install", "git", at=new)
    team.run("acquire", "./a.py", "--as", "a", at=new)
    assert "held by a" in team.commit("a.py", agent="b", at=new).err
    assert team.commit("a.py", agent="a", at=new).code == 0


@pytest.mark.parametrize("target", ["git", "claude-code"])
def test_hooks_that_cannot_be_installed_leave_no_settings_behind(
    team: Team, tmp_path: Path, target: str
) -> None:
    new = tmp_path / "new"
    new.mkdir()
    git(new, "init")
    place = ("--store", str(tmp_path / "store"), "--tenant", "acme")
    team.run("guard", "install", target, *place, at=new, code=64)
    assert team.git("config", "--local", "--get-regexp", "leasehold", at=new).out == ""


def test_a_name_that_cannot_be_leased_is_looked_for_in_the_folders_above(guarded: Team) -> None:
    odd = os.fsdecode(b"src/\xff.py"), "src/a\nb.py", f"src/{'long' * 50}/{'name' * 50}/{'long' * 50}.py"
    guarded.run("acquire", "src/", "--as", "a")
    for path in odd:
        assert "held by a" in guarded.commit(path, agent="b").err
    guarded.run("release", "src/", "--as", "a")
    guarded.run("acquire", "src/app.py", "--as", "a")
    assert guarded.git("commit", "-m", "odd", agent="b").code == 0


def test_a_merge_is_answered_for_where_it_makes_something_new(guarded: Team) -> None:
    (guarded.top / "src" / "app.py").write_text("".join(f"{line}\n" for line in range(20)))
    guarded.git("commit", "-am", "long")
    guarded.git("checkout", "-b", "topic")
    guarded.commit("src/app.py", agent="a")
    guarded.commit("taken.py", agent="a")
    guarded.git("checkout", "-")
    guarded.commit("mine.py", agent="b")
    guarded.run("acquire", "src/app.py", "taken.py", "--as", "a")
    assert guarded.git("merge", "--no-edit", "topic", agent="b").code == 0, (
        "all of it was taken over as it is"
    )
    guarded.git("reset", "--hard", "HEAD~1")
    file = guarded.top / "src" / "app.py"
    file.write_text(f"mine\n{file.read_text()}")
    assert guarded.git("commit", "-am", "mine", agent="a").code == 0
    refused = guarded.git("merge", "--no-edit", "topic", agent="b")
    assert refused.code != 0
    assert "src/app.py is held by a" in refused.err
    assert "taken.py" not in refused.err
    assert "src/app.py is held by a" in guarded.git("commit", "--no-edit", agent="b").err
    assert guarded.git("commit", "--no-edit", agent="a").code == 0


def test_a_push_is_checked_against_the_leases_that_stand_then(guarded: Team, tmp_path: Path) -> None:
    git(tmp_path, "init", "--bare", "hub")
    guarded.git("remote", "add", "origin", str(tmp_path / "hub"))
    assert guarded.git("push", "origin", "HEAD:main").code == 0
    guarded.commit("src/app.py", agent="b")
    guarded.git("mv", "src/app.py", "src/new.py")
    guarded.git("commit", "-m", "renamed", agent="b")
    guarded.run("acquire", "src/app.py", "--as", "a")
    for ref in ("HEAD:main", "HEAD:refs/heads/another"):
        refused = guarded.git("push", "origin", ref, agent="b")
        assert refused.code != 0
        assert "src/app.py is held by a" in refused.err
    assert guarded.git("push", str(tmp_path / "hub"), "HEAD:main", agent="b").code != 0, "by its address"
    assert guarded.git("push", "--no-verify", "origin", "HEAD:refs/heads/third", agent="b").code == 0
    assert guarded.git("push", "origin", ":third", agent="b").code == 0, "to delete a branch changes no file"
    guarded.run("release", "src/app.py", "--as", "a")
    assert guarded.git("push", "origin", "HEAD:main", agent="b").code == 0
    guarded.run("acquire", "src/new.py", "--as", "a")
    assert guarded.git("push", "origin", "HEAD:main", agent="b").code == 0, (
        "there is nothing to push any more"
    )


def test_a_push_brings_what_was_fetched_from_the_same_place_back_unasked(
    guarded: Team, tmp_path: Path
) -> None:
    git(tmp_path, "init", "--bare", "hub")
    guarded.git("remote", "add", "origin", str(tmp_path / "hub"))
    guarded.commit("src/app.py", agent="a")
    guarded.git("push", "origin", "HEAD:main", agent="a")
    guarded.git("fetch", "origin")
    guarded.run("acquire", "src/app.py", "--as", "a")
    guarded.commit("free.py", agent="b")
    assert guarded.git("push", "origin", "HEAD:topic", agent="b").code == 0


def test_hooks_that_were_there_run_after_the_guard_as_they_did_before(team: Team, tmp_path: Path) -> None:
    hooks, said = team.top / ".git" / "hooks", tmp_path / "said"
    script(hooks / "pre-commit", f"#!/bin/sh\necho $0 >>{said}\n")
    script(
        hooks / "pre-push",
        f"#!/usr/bin/env python3\nimport sys\nopen('{said}', 'a').write(sys.stdin.read())\n",
    )
    team.run("guard", "install", "git")
    assert team.commit("a.py", agent="a").code == 0
    assert said.read_text() == ".git/hooks/pre-commit\n"
    team.run("acquire", "a.py", "./a.py", "--as", "a")
    assert team.commit("a.py", agent="b").code != 0
    assert said.read_text() == ".git/hooks/pre-commit\n", "who is refused gets no further"
    said.unlink()
    git(tmp_path, "init", "--bare", "hub")
    team.git("push", str(tmp_path / "hub"), "HEAD:main", agent="a")
    assert said.read_text().split()[2] == "refs/heads/main"
    script(hooks / "pre-commit.before-leasehold", "#!/bin/sh -e\nfalse\ntrue\n")
    assert team.commit("b.py", agent="a").code != 0, "what a hook says still counts"


def test_a_hook_that_finds_its_like_by_its_own_name_still_does(team: Team, tmp_path: Path) -> None:
    # As husky has it: one script for all hooks, which looks at its name, beside the hooks that people write.
    folder, said = team.top / ".husky", tmp_path / "said"
    script(folder / "_" / "pre-commit", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"\n')
    script(folder / "_" / "h", 'sh "$(dirname "$(dirname "$0")")/$(basename "$0")"\n')
    script(folder / "pre-commit", f"echo mine >>{said}\n")
    git(team.top, "config", "core.hooksPath", ".husky/_")
    team.run("guard", "install", "git", at=team.top / "src")
    assert team.commit("a.py", agent="a").code == 0
    assert said.read_text() == "mine\n"
    team.run("acquire", "./a.py", "--as", "a")
    assert "held by a" in team.commit("a.py", agent="b").err


def test_hooks_that_belong_to_other_repositories_too_are_left_alone(team: Team, tmp_path: Path) -> None:
    shared, config = tmp_path / "all-hooks", tmp_path / "gitconfig"
    script(shared / "pre-commit", "#!/bin/sh\n")
    config.write_text(f"[core]\n\thooksPath = {shared}\n")
    refused = team.run("guard", "install", "git", code=1, GIT_CONFIG_GLOBAL=str(config))
    assert "is for other repositories as well" in refused.err
    assert list(shared.iterdir()) == [shared / "pre-commit"]


@pytest.mark.parametrize("mode", ["block", "warn"])
def test_to_uninstall_leaves_no_trace(team: Team, mode: str, tmp_path: Path) -> None:
    hooks = team.top / ".git" / "hooks"
    script(hooks / "pre-commit", "#!/bin/sh\n# mine\n")
    (hooks / "pre-push").symlink_to("../../hook-in-the-tree")
    git(team.top, "config", "leasehold.url", "before")
    before = everything(team.top / ".git")
    for _ in range(2):
        team.run("guard", "install", "git", "--mode", mode, "--store", str(tmp_path / "store"))
    assert everything(team.top / ".git") != before
    team.run("guard", "uninstall", "git")
    team.run("guard", "uninstall", "store")
    assert everything(team.top / ".git") == before
    assert "nothing of leasehold's" in team.run("guard", "uninstall", "git").out
    assert "nothing of leasehold's" in team.run("guard", "uninstall", "store").out
    assert everything(team.top / ".git") == before


def test_what_somebody_else_has_put_in_our_place_is_not_touched(guarded: Team) -> None:
    hook = guarded.top / ".git" / "hooks" / "pre-commit"
    hook.unlink()
    script(hook, "#!/bin/sh\n# theirs\n")
    guarded.run("guard", "uninstall", "git")
    assert hook.read_text() == "#!/bin/sh\n# theirs\n"


def test_a_guard_that_is_not_there_any_more_lets_nobody_commit(guarded: Team) -> None:
    hook = guarded.top / ".git" / "hooks" / "pre-commit"
    hook.write_text(hook.read_text().replace("/leasehold guard", "/gone guard"))
    assert guarded.commit("a.py", agent="a").code != 0
    assert guarded.git("commit", "--no-verify", "-m", "all the same").code == 0


def test_in_warn_mode_everybody_commits_and_is_told(team: Team) -> None:
    team.run("guard", "install", "git", "--mode", "warn")
    team.run("acquire", "./a.py", "--as", "a")
    passed = team.commit("a.py", agent="b")
    assert passed.code == 0
    assert "a.py is held by a" in passed.err


def test_a_bypass_of_a_commit_is_recorded(guarded: Team) -> None:
    guarded.run("acquire", "./a.py", "--as", "a")
    assert guarded.commit("a.py", agent="b", LEASEHOLD_BYPASS="a is on holiday").code == 0
    assert "held by a (a is on holiday)" in guarded.run("history", "./a.py").out


def test_a_store_that_cannot_be_found_stops_a_commit(guarded: Team, tmp_path: Path) -> None:
    git(guarded.top, "config", "leasehold.url", str(tmp_path / "gone"))
    assert "could not tell" in guarded.commit("a.py", agent="a").err
    assert guarded.git("rev-parse", "HEAD").out == guarded.git("rev-parse", "HEAD@{0}").out


def test_another_repository_of_the_same_user_is_not_guarded(guarded: Team, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init")
    guarded.run("acquire", ".", "--as", "a")
    assert guarded.commit("src/app.py", agent="b", at=other).code == 0


def test_a_store_that_clones_cannot_share_is_refused(team: Team) -> None:
    assert "is not shared by anybody" in team.run("guard", "install", "--store", "memory:", code=1).err
