"""What a file is called: the same for everybody who means it, and for nobody else."""

import os
import subprocess
from pathlib import Path

import pytest

from leasehold.errors import InvalidInput
from leasehold.files import name_of, names
from tests.files.conftest import git


def resource(path: str | Path, start: Path | None = None) -> str:
    return name_of(path, start=None if start is None else str(start)).resource


def root_of(folder: Path) -> str:
    found = subprocess.run(
        ["git", "rev-list", "--max-parents=0", "HEAD"], cwd=folder, capture_output=True, text=True, check=True
    )
    return found.stdout[:16]


def test_a_file_is_named_by_its_project_and_its_place_in_it(repository: Path) -> None:
    name = name_of("src/app.py")
    assert name.resource == f"/@{root_of(repository)}/src/app.py"
    assert name.path == "src/app.py"
    assert name_of(".").resource == f"/@{root_of(repository)}"
    assert name_of(".").path == "."


def test_however_it_is_spelled_a_file_has_one_name(repository: Path) -> None:
    (repository / "link.py").symlink_to("src/app.py")
    (repository / "folder").symlink_to("src")
    one = resource("src/app.py")
    spellings = ["./src/app.py", "src/../src/app.py", "src//app.py", str(repository / "src/app.py")]
    assert {resource(path) for path in (*spellings, "link.py", "folder/app.py")} == {one}
    assert resource("app.py", repository / "src") == one
    assert resource(Path("src") / "app.py") == one


def test_clones_and_work_trees_agree(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "repository", "clone")
    git(repository, "worktree", "add", "../beside")
    for copy in (tmp_path / "clone", tmp_path / "beside"):
        (copy / "more.txt").write_text("")
        git(copy, "add", ".")
        git(copy, "commit", "-m", "more")
        assert resource(copy / "src/app.py") == resource("src/app.py")
        assert resource("src/*.py", copy) == resource("src/*.py")


def test_a_project_may_have_a_name(repository: Path) -> None:
    git(repository, "config", "leasehold.project", "shop.v2")
    assert resource("src/app.py") == "/@shop.v2/src/app.py"
    assert resource(".") == "/@shop.v2/**"


def test_a_project_must_have_a_name_that_can_be_one(repository: Path) -> None:
    git(repository, "config", "leasehold.project", "a/b")
    with pytest.raises(InvalidInput, match="without a slash"):
        name_of("src/app.py")


def test_a_shallow_clone_has_to_be_named(repository: Path, tmp_path: Path) -> None:
    git(repository, "commit", "--allow-empty", "-m", "second")
    git(tmp_path, "clone", "--depth", "1", f"file://{repository}", "shallow")
    with pytest.raises(InvalidInput, match=r"git config leasehold\.project NAME"):
        resource(tmp_path / "shallow/src/app.py")


def test_a_repository_without_a_commit_has_to_be_named(tmp_path: Path) -> None:
    git(tmp_path, "init", "new")
    with pytest.raises(InvalidInput, match="no commit yet"):
        resource(tmp_path / "new/a")


def test_without_git_a_work_tree_has_no_project(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InvalidInput, match="git cannot be asked"):
        name_of("src/app.py")


def test_outside_a_repository_a_path_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert resource("notes/today") == f"{os.path.realpath(tmp_path)}/notes/today"
    assert name_of("/").resource == "/"


def test_what_does_not_exist_yet_has_a_name(repository: Path) -> None:
    assert resource("src/new/module.py") == f"/@{root_of(repository)}/src/new/module.py"


def test_a_folder_with_an_extension_is_named_with_all_that_is_in_it(repository: Path) -> None:
    (repository / "conf.d").mkdir()
    assert resource("conf.d").endswith("/conf.d/**")
    assert resource("conf.d/").endswith("/conf.d/**")
    assert resource("new.d/").endswith("/new.d/**")
    assert resource("new.d").endswith("/new.d")
    assert resource("src/") == resource("src")


@pytest.mark.parametrize("name", ["service://db", "queue://a/b", "s3+https://bucket/key"])
def test_a_virtual_name_stays_as_it_is(repository: Path, name: str) -> None:
    assert name_of(name) == (name, name)


def test_only_what_comes_before_a_pattern_is_resolved(repository: Path) -> None:
    (repository / "folder").symlink_to("src")
    project = f"/@{root_of(repository)}"
    assert resource("./folder/*.py") == f"{project}/src/*.py"
    assert resource("**/*.py") == f"{project}/**/*.py"
    assert resource("{src,tests}/a.py") == f"{project}/{{src,tests}}/a.py"
    assert resource("src/**/") == f"{project}/src/**"
    with pytest.raises(InvalidInput, match=r"'\.\.' in it"):
        name_of("*/../x")


def test_a_file_whose_name_looks_like_a_pattern_is_meant_if_it_is_there(repository: Path) -> None:
    (repository / "src" / "[id].ts").write_text("")
    assert resource("src/[id].ts").endswith("/src/\\[id].ts")
    assert name_of("src/[id].ts").path == "src/[id].ts"
    assert resource(r"src/\[id].ts") == resource("src/[id].ts")


def test_a_new_file_whose_name_looks_like_a_pattern_has_to_be_escaped(repository: Path) -> None:
    with pytest.raises(InvalidInput, match="escape its brackets"):
        name_of("src/[slug].ts")
    assert resource(r"src/\[slug].ts").endswith(r"/src/\[slug].ts")
    assert resource("src/[ab]pp.py").endswith("/src/[ab]pp.py")


def test_a_folder_above_whose_name_looks_like_a_pattern_is_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a[1]"
    folder.mkdir()
    above = os.path.realpath(tmp_path)
    assert resource("x.py", folder) == rf"{above}/a\[1]/x.py"
    assert resource("*.py", folder) == rf"{above}/a\[1]/*.py"


def test_where_a_folder_takes_large_for_small_letters_so_does_the_name(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = resource("src/app.py")
    monkeypatch.setattr(names, "is_same", lambda one, other: True)
    assert resource("src/App.py") == resource("src/app.py") == exact
    assert resource("src/*.PY") == resource("src/*.py")
    monkeypatch.undo()
    assert resource("src/App.py") != exact


def test_two_entries_of_a_folder_are_told_apart_by_what_they_are(repository: Path) -> None:
    (repository / "a").write_text("")
    (repository / "A").write_text("")
    assert not names.is_same(str(repository / "a"), str(repository / "A"))
    assert names.is_same(str(repository / "a"), f"{repository}/./a")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "must not be empty"),
        ("a\0b", "NUL"),
        ("a\nb", "control character"),
        ("a/" + "b" * 600, "too long"),
        (os.fsdecode(b"caf\xe9"), "not UTF-8"),
        ("src/[a", "not closed"),
        ("src/{a,b", "not closed"),
        (b"bytes", "must be text"),
        (7, "must be text"),
    ],
)
def test_a_bad_path_is_refused_and_says_why(repository: Path, path: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem) as caught:
        name_of(path)
    assert caught.value.field == "path"


def test_who_is_nowhere_has_to_say_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(InvalidInput, match="working directory is gone"):
        name_of("a")


@pytest.mark.parametrize(
    ("path", "project", "resource"),
    [
        ("src/app.py", "shop", "/@shop/src/app.py"),
        ("src/", "shop", "/@shop/src"),
        ("v1.2/", "shop", "/@shop/v1.2/**"),
        (".", "shop", "/@shop"),
        ("src/**/*.py", "shop", "/@shop/src/**/*.py"),
        (r"app/\[id].ts", "shop", r"/@shop/app/\[id].ts"),
        ("a.py", "what?", r"/@what\?/a.py"),
        ("/@shop/src/app.py", None, "/@shop/src/app.py"),
        ("/srv/data", None, "/srv/data"),
        ("/", None, "/"),
        ("service://db", None, "service://db"),
    ],
)
def test_a_caller_elsewhere_names_what_it_means(path: str, project: str | None, resource: str) -> None:
    assert names.name_elsewhere(path, project=project).resource == resource


def test_clones_here_and_callers_elsewhere_agree(repository: Path) -> None:
    (repository / "v1.2").mkdir()
    for path in ("src/app.py", "v1.2/", ".", "src/**/*.py"):
        elsewhere = names.name_elsewhere(path, project=root_of(repository))
        assert elsewhere == name_of(path)


@pytest.mark.parametrize(
    ("path", "project", "field"),
    [
        ("src/app.py", None, "path"),
        ("../app.py", "shop", "path"),
        ("src/./app.py", "shop", "path"),
        ("src//app.py", "shop", "path"),
        ("/srv/", None, "path"),
        ("/srv/app.py", "shop", "path"),
        ("service://db", "shop", "path"),
        ("src/[a", "shop", "path"),
        ("src/[a/", "shop", "path"),
        ("x" * 600, "shop", "path"),
        ("a\nb", "shop", "path"),
        ("", "shop", "path"),
        ("a.py", "", "project"),
        ("a.py", "my/shop", "project"),
        ("a.py", "s" * 65, "project"),
        ("a.py", "s\x07", "project"),
        ("a.py", "\ud800", "project"),
        ("\ud800", "shop", "path"),
    ],
)
def test_what_nobody_elsewhere_can_mean_is_refused(path: str, project: str | None, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        names.name_elsewhere(path, project=project)
    assert caught.value.field == field


def test_nothing_is_looked_up_for_a_caller_elsewhere(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "link").symlink_to(repository / "src")
    monkeypatch.setattr(names, "project_of", lambda folder: pytest.fail(f"looked at {folder}"))

    assert names.name_elsewhere("link/app.py", project="shop").resource == "/@shop/link/app.py"
