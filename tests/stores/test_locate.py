"""Which store a program means when it does not say."""

import errno
import os
import re
import stat
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold.errors import InvalidInput, StoreUnusable
from leasehold.kernel.lease.family import LEASES, lease_family
from leasehold.kernel.ledger.family import Families
from leasehold.stores.locate import locate, open_store, place_of, tenant_of
from leasehold.stores.memory import MemoryStore


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which nobody's git settings count, and in which we are."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(home: Path) -> Path:
    folder = home / "repository"
    folder.mkdir()
    git(folder, "init")
    return folder


def make_store(folder: Path) -> str:
    file = folder / ".leasehold"
    open_store(str(file)).close()
    return f"sqlite:///{file}"


def test_what_the_caller_says_goes_before_everything(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_store(repository)
    git(repository, "config", "leasehold.url", "sqlite:///from-git")
    monkeypatch.setenv("LEASEHOLD_URL", "sqlite:///from-environment")

    assert locate("sqlite:///given", repository) == "sqlite:///given"


def test_the_environment_goes_before_git(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_store(repository)
    git(repository, "config", "leasehold.url", "sqlite:///from-git")
    monkeypatch.setenv("LEASEHOLD_URL", "sqlite:///from-environment")

    assert locate(None, repository) == "sqlite:///from-environment"


def test_an_empty_environment_says_nothing(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEASEHOLD_URL", "")

    assert locate(None, repository) == f"sqlite:///{repository}/.leasehold"


def test_git_goes_before_the_nearest_folder(repository: Path) -> None:
    make_store(repository)
    git(repository, "config", "leasehold.url", "sqlite:///from-git")
    below = repository / "src" / "deep"
    below.mkdir(parents=True)

    assert locate(None, below) == f"sqlite:///{repository}/from-git"


@pytest.mark.parametrize("setting", ["leases/all", "sqlite:///leases/all", "~/repository/leases/all"])
def test_what_git_says_is_the_same_store_everywhere_in_a_work_tree(repository: Path, setting: str) -> None:
    git(repository, "config", "leasehold.url", setting)
    below = repository / "src" / "deep"
    below.mkdir(parents=True)

    assert locate(None, repository) == locate(None, below) == f"sqlite:///{repository}/leases/all"


@pytest.mark.parametrize("setting", ["memory:", "sqlite:////var/leases"])
def test_what_git_says_without_leaving_anything_open_is_taken_as_it_is(
    repository: Path, setting: str
) -> None:
    git(repository, "config", "leasehold.url", setting)

    assert locate(None, repository) == setting


def test_the_nearest_store_upwards_is_used(home: Path) -> None:
    above = make_store(home)
    below = home / "project" / "src"
    below.mkdir(parents=True)
    assert locate(None, below) == above
    nearer = make_store(home / "project")

    assert locate(None, below) == nearer


def test_a_folder_without_a_store_in_it_is_passed_by(home: Path) -> None:
    above = make_store(home)
    below = home / "project"
    (below / ".leasehold").mkdir(parents=True)

    assert locate(None, below) == above


def test_a_new_store_goes_to_the_top_of_the_work_tree(repository: Path) -> None:
    below = repository / "src"
    below.mkdir()

    assert locate(None, below) == f"sqlite:///{repository}/.leasehold"


def test_a_new_store_outside_of_any_work_tree_goes_right_here(home: Path) -> None:
    assert locate(None, home) == f"sqlite:///{home}/.leasehold"
    assert locate() == locate(None, home)


@pytest.fixture
def nowhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in a folder that was removed, as programs are that outlive the release they were started from."""
    folder = home / "release"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()


@pytest.mark.usefixtures("nowhere")
def test_who_names_the_store_needs_no_working_directory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with leasehold.connect(home / "leases") as leases:
        leases.acquire("door")
    monkeypatch.setenv("LEASEHOLD_URL", f"sqlite:///{home}/leases")
    with leasehold.connect() as leases:
        leases.acquire("door")


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("address", [None, "leases"])
def test_who_does_not_name_it_is_told_that_the_working_directory_is_gone(address: str | None) -> None:
    with pytest.raises(StoreUnusable, match=r"the working directory is gone; .* name the store"):
        leasehold.connect(address)


@pytest.mark.parametrize("is_named", [True, False])
def test_a_work_tree_without_git_is_given_no_store_but_the_one_that_is_named(
    repository: Path, monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    make_store(repository)
    if is_named:
        git(repository, "config", "leasehold.url", "sqlite:///from-git")
    monkeypatch.setenv("PATH", "")

    with pytest.raises(StoreUnusable, match=r"cannot be asked which store .* by --store or LEASEHOLD_URL"):
        locate(None, repository)
    monkeypatch.setenv("LEASEHOLD_URL", "sqlite:///from-environment")
    assert locate(None, repository) == "sqlite:///from-environment"


def test_outside_of_any_work_tree_git_is_not_needed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    assert locate(None, home) == f"sqlite:///{home}/.leasehold"


def test_a_git_that_is_too_slow_is_not_taken_for_one_that_knows_no_store(
    repository: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = home / "git"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    monkeypatch.setattr("leasehold.stores.locate._SECONDS", 0.2)

    with pytest.raises(StoreUnusable, match="git did not answer in time"):
        locate(None, repository)


def test_a_repository_that_git_does_not_trust_is_not_taken_for_one_that_names_no_store(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "config", "leasehold.url", "sqlite:///from-git")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    with pytest.raises(StoreUnusable, match=r"it refuses \(`git -C .*/repository status` tells why\)"):
        locate(None, repository)


@pytest.mark.parametrize("broken", ["config", "included"])
def test_settings_that_git_cannot_read_are_not_taken_for_none(repository: Path, broken: str) -> None:
    git(repository, "config", "include.path", "included")
    with (repository / ".git" / broken).open("a") as file:
        file.write("[leasehold\n")

    with pytest.raises(StoreUnusable, match="it refuses"):
        locate(None, repository)


def test_a_store_is_named_wherever_git_looks_for_settings(
    repository: Path, worktree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "src").mkdir()

    def named(start: Path = repository / "src") -> str:
        with monkeypatch.context() as astray:
            astray.setenv("GIT_CONFIG", str(home / "nothing"))
            astray.setenv("GIT_CEILING_DIRECTORIES", str(repository))
            return Path(locate(None, start)).name

    (home / "settings").write_text("[leasehold]\nurl = of-the-user\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "settings"))
    assert named() == "of-the-user"
    (repository / ".git" / "included").write_text("[leasehold]\nurl = included\n")
    git(repository, "config", "include.path", "included")
    assert named() == "included"
    git(repository, "config", "extensions.worktreeConfig", "true")
    git(worktree, "config", "--worktree", "leasehold.url", "of-the-work-tree")
    assert (named(), named(worktree)) == ("included", "of-the-work-tree")
    for name, value in (("COUNT", "1"), ("KEY_0", "leasehold.url"), ("VALUE_0", "of-the-environment")):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    assert named() == named(worktree) == "of-the-environment"


def test_a_repository_without_a_version_is_one_all_the_same(repository: Path) -> None:
    git(repository, "config", "--unset", "core.repositoryFormatVersion")

    assert locate(None, repository) == f"sqlite:///{repository}/.leasehold"


def test_a_new_store_is_private_and_kept_out_of_git(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    with leasehold.connect() as leases:
        leases.acquire("door")
        assert leases.url == f"sqlite:///{repository}/.leasehold"

    folder = repository / ".leasehold"
    assert (folder / ".gitignore").read_text() == "*\n"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "leases.db").stat().st_mode) == 0o600
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=repository, check=True, capture_output=True, text=True
    )
    assert status.stdout == ""


def test_a_new_store_for_a_group_is_the_groups(home: Path) -> None:
    open_store(group=True).close()

    folder = home / ".leasehold"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o2770
    assert stat.S_IMODE((folder / "leases.db").stat().st_mode) == 0o660


def test_a_folder_that_exists_keeps_what_is_in_it(home: Path) -> None:
    folder = home / ".leasehold"
    folder.mkdir(mode=0o755)
    (folder / ".gitignore").write_text("mine\n")
    open_store().close()

    assert (folder / ".gitignore").read_text() == "mine\n"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_nothing_is_made_where_nothing_is_to_be_created(home: Path) -> None:
    with pytest.raises(leasehold.StoreUnusable, match="there is no store"):
        open_store(create=False)

    assert list(home.iterdir()) == []


@pytest.mark.parametrize("address", ["memory:", "memory://", "memory:///"])
def test_memory_is_an_address(address: str) -> None:
    assert isinstance(open_store(address), MemoryStore)


@pytest.mark.parametrize("address", ["memory:", "x"])
def test_a_store_is_opened_with_the_families_that_are_given(home: Path, address: str) -> None:
    families = Families((lease_family(),))

    with closing(open_store(address, families=families)) as store:
        assert store.families is families
    with closing(open_store(address)) as store:
        assert store.families is LEASES


@pytest.mark.parametrize("address", ["sqlite:////{folder}/x", "sqlite:///x", "{folder}/x", "x", "sqlite:x"])
def test_a_file_has_several_spellings(home: Path, address: str) -> None:
    store = open_store(address.format(folder=home))

    assert store.url == f"sqlite:///{home}/x"
    assert open_store(store.url).url == store.url


@pytest.mark.parametrize("address", ["http://localhost:1", "postgresql://host/db", "sqlite3://x"])
def test_an_address_of_another_kind_is_refused_with_what_to_use(address: str) -> None:
    with pytest.raises(InvalidInput, match=r"use sqlite:///path/to/folder, memory:, or http://"):
        open_store(address)


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ENAMETOOLONG])
@pytest.mark.parametrize("named", [True, False])
def test_a_file_that_cannot_be_looked_at_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, named: bool
) -> None:
    monkeypatch.delenv("LEASEHOLD_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    look = os.stat

    def fails(path: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("leases" if named else ".leasehold"):
            raise OSError(number, os.strerror(number), str(path))
        return look(path, **options)

    monkeypatch.setattr(os, "stat", fails)
    with pytest.raises(StoreUnusable, match=re.escape(os.strerror(number))):
        leasehold.connect(tmp_path / "leases" if named else None)


@pytest.mark.parametrize("address", ["/", "//", "sqlite:////"])
def test_the_root_is_no_store(address: str) -> None:
    with pytest.raises(InvalidInput, match="invalid address of a store"):
        leasehold.connect(address)


def test_a_host_and_a_port_are_not_taken_for_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"write http://leases:7017, or \./leases:7017"):
        leasehold.connect("leases:7017")
    with leasehold.connect("./leases:7017") as local:
        assert local.url.endswith("/leases:7017")


def test_links_that_lead_in_a_circle_are_no_store(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(StoreUnusable, match="cannot be used as a store"):
        leasehold.connect(tmp_path / "loop")


@pytest.fixture
def worktree(repository: Path) -> Path:
    """A second work tree of the repository, beside it."""
    identity = ("-c", "user.name=n", "-c", "user.email=e")
    git(repository, *identity, "commit", "--allow-empty", "-m", "first")
    git(repository, "worktree", "add", "../beside")
    return repository.parent / "beside"


def test_a_second_work_tree_shares_the_store_of_the_main_one(repository: Path, worktree: Path) -> None:
    (worktree / "deep").mkdir()
    before = locate(start=worktree / "deep")
    assert before == locate(start=repository)
    assert make_store(repository) == before == locate(start=worktree / "deep")


def test_a_setting_that_is_not_absolute_counts_from_the_main_work_tree(
    repository: Path, worktree: Path
) -> None:
    git(repository, "config", "leasehold.url", "kept/leases.db")
    assert locate(start=worktree) == locate(start=repository) == f"sqlite:///{repository}/kept/leases.db"


def test_a_work_tree_of_a_bare_repository_has_its_store_there(home: Path, worktree: Path) -> None:
    git(home, "clone", "--bare", "repository", "bare.git")
    git(home / "bare.git", "worktree", "add", "../tree")
    assert locate(start=home / "tree").startswith(f"sqlite:///{home}/bare.git/.leasehold")


def test_a_submodule_has_a_store_of_its_own(home: Path, repository: Path, worktree: Path) -> None:
    git(home, "init", "whole")
    git(home / "whole", "-c", "protocol.file.allow=always", "submodule", "add", str(repository), "part")
    assert locate(start=home / "whole" / "part").startswith(f"sqlite:///{home}/whole/part/.leasehold")


def test_whose_leases_says_the_caller_then_the_environment_then_git(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    assert tenant_of(None) == "default"
    git(repository, "config", "leasehold.tenant", "from-git")
    assert tenant_of(None) == "from-git"
    monkeypatch.setenv("LEASEHOLD_TENANT", "from-environment")
    assert tenant_of(None) == "from-environment"
    assert tenant_of("given") == "given"


def test_an_empty_name_of_a_tenant_is_refused_and_no_other_is_taken_for_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEASEHOLD_TENANT", "acme")
    with pytest.raises(InvalidInput, match="tenant must not be empty"):
        place_of(str(home / "store"), "")


def test_gits_tenant_is_for_the_repositorys_store_only(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    git(repository, "config", "leasehold.tenant", "from-git")
    assert tenant_of(None, "elsewhere") == "default"
    monkeypatch.setenv("LEASEHOLD_URL", "elsewhere")
    assert tenant_of(None) == "default"
    monkeypatch.setenv("LEASEHOLD_TENANT", "from-environment")
    assert tenant_of(None, "elsewhere") == "from-environment"


def test_a_client_has_the_leases_of_the_tenant_that_the_environment_names(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEASEHOLD_TENANT", "acme")
    with leasehold.connect(home / "store") as leases:
        assert leases.acquire("door").lease.tenant == "acme"
