"""Guards that ask a server: the same answers as from a store at hand, and no yes where it cannot be asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guards.conftest import Team, clone
from tests.server.running import RunningServer

ALLOWED, REFUSED, UNKNOWN = 0, 2, 3


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(tmp_path / "served") as running:
        yield running


@pytest.fixture
def remote(team: Team, server: RunningServer) -> Team:
    """A repository whose leases a server has, by git's setting."""
    team.environment["LEASEHOLD_API_KEY"] = team.shell.environment["LEASEHOLD_API_KEY"] = server.key
    team.run("guard", "install", "git", "--store", server.url)
    team.run("guard", "install", "claude-code")
    return team


def test_a_guard_asks_the_server_that_clones_share(remote: Team, server: RunningServer) -> None:
    other = clone(remote, "other")
    remote.run("guard", "install", "git", "--store", server.url, at=other)
    remote.run("acquire", "src/app.py", "--as", "ada", "--reason", "moving it")
    refused = remote.run("guard", "src/app.py", "--as", "ben", code=REFUSED, at=other)
    assert "src/app.py is held by ada (moving it)" in refused.err
    assert "held by ada" in remote.commit("src/app.py", agent="ben", at=other).err
    assert not (remote.top / ".leasehold").exists()
    remote.run("release", "--all", "--as", "ada")
    assert remote.run("guard", "src/app.py", "--as", "ben", code=ALLOWED, at=other).err == ""


def test_a_bypass_is_in_the_history_of_the_server(remote: Team) -> None:
    remote.run("acquire", "src/app.py", "--as", "ada")
    remote.run("guard", "src/app.py", "--as", "ben", "--bypass", "it burns")
    assert "guard.bypassed" in remote.run("history", "src/app.py").out


def test_the_hook_claims_files_at_the_server_and_gives_them_back(remote: Team) -> None:
    assert remote.hook(remote.edit("src/app.py")) == (ALLOWED, "", "")
    assert remote.holders() == {"src/app.py": "session-1"}
    assert remote.hook(remote.edit("src/app.py", "session-2")).code == REFUSED
    assert remote.ends("SessionEnd", reason="clear").code == 0
    assert remote.holders() == {}


@pytest.mark.parametrize("key", ["lh_nobody_nothing", ""])
def test_nobody_is_let_through_whom_the_server_does_not_know(remote: Team, key: str) -> None:
    remote.run("guard", "src/app.py", "--as", "ben", code=UNKNOWN, LEASEHOLD_API_KEY=key)
    assert remote.hook(remote.edit("src/app.py"), LEASEHOLD_API_KEY=key).code == REFUSED


def test_nobody_is_let_through_while_the_server_is_gone(remote: Team, server: RunningServer) -> None:
    server.stop()
    gone = remote.run("guard", "src/app.py", "--as", "ben", code=UNKNOWN)
    assert "could not tell" in gone.err
    assert remote.hook(remote.edit("src/app.py")).code == REFUSED
    assert remote.commit("src/app.py", agent="ben").code != 0


def test_a_server_that_cannot_be_asked_is_not_installed(team: Team, server: RunningServer) -> None:
    server.stop()
    refused = team.run("guard", "install", "--store", server.url, code=1)
    assert "cannot be reached" in refused.err
    assert team.git("config", "--get", "leasehold.url").out == ""


@pytest.fixture
def of_acme(team: Team, server: RunningServer) -> Team:
    """People and agents who have a key that is bound to a tenant, and nothing else."""
    key = server.ask("POST", "/v1/access", {"role": "holder"}, headers={"Leasehold-Tenant": "acme"})
    assert key.status == 201, key
    team.environment["LEASEHOLD_API_KEY"] = team.shell.environment["LEASEHOLD_API_KEY"] = key.body["text"]
    return team


def test_a_key_of_a_tenant_guards_a_repository_that_was_told_the_tenant(
    of_acme: Team, server: RunningServer
) -> None:
    done = of_acme.run("guard", "install", "git", "--store", server.url, "--tenant", "acme")
    assert "git's leasehold.tenant is acme" in done.out
    of_acme.run("guard", "install", "claude-code")
    of_acme.run("acquire", "src/app.py", "--as", "ada")
    assert of_acme.commit("README.md", agent="ben").code == 0
    assert "held by ada" in of_acme.commit("src/app.py", agent="ben").err
    assert of_acme.hook(of_acme.edit("docs/new.md")) == (ALLOWED, "", "")
    assert of_acme.holders() == {"src/app.py": "ada", "docs/new.md": "session-1"}
    assert of_acme.ends("SessionEnd", reason="clear").code == 0
    assert of_acme.holders() == {"src/app.py": "ada"}

    of_acme.run("guard", "uninstall", "store")
    assert of_acme.git("config", "--get-regexp", "leasehold").out == ""


def test_a_key_of_a_tenant_that_was_not_named_is_told_what_to_add(
    of_acme: Team, server: RunningServer
) -> None:
    refused = of_acme.run("guard", "install", "git", "--store", server.url, code=1)
    for what in ("tenant='acme'", "--tenant acme", "LEASEHOLD_TENANT=acme"):
        assert what in refused.err
    assert of_acme.git("config", "--get", "leasehold.url").out == ""
    of_acme.run("acquire", "door", "--store", server.url, code=1)
    of_acme.run("acquire", "door", "--store", server.url, LEASEHOLD_TENANT="acme")


def test_doctor_has_the_hooks_prove_themselves_against_the_server(
    remote: Team, server: RunningServer
) -> None:
    report = remote.run("doctor", "--json").json
    assert (report["ok"], report["store"]) == (True, server.url)
    assert [check["check"] for check in report["checks"]] == ["server", "hooks", "hooks"]
    assert all("refused a file that somebody else held" in check["detail"] for check in report["checks"][1:])
    assert remote.holders() == {}, "what was held for the proof is released"
    assert "doctor's-holder" in remote.run("history").out
    hook = remote.top / ".git" / "hooks" / "pre-commit"
    hook.write_text(hook.read_text().replace("--staged || exit", "--staged || true"))
    told = remote.run("doctor", code=1).out
    assert "git's pre-commit hook: it let a file through that somebody else held" in told


def test_doctor_has_the_hooks_of_a_tenant_prove_themselves_by_its_leases(
    of_acme: Team, server: RunningServer
) -> None:
    of_acme.run("guard", "install", "git", "--store", server.url, "--tenant", "acme")
    of_acme.run("doctor")
    of_acme.git("config", "--unset", "leasehold.tenant")
    of_acme.run("doctor", code=1)
    of_acme.run("doctor", "--tenant", "acme")
    assert of_acme.run("ls", "--json", LEASEHOLD_TENANT="acme").json["leases"] == []


def test_doctor_says_what_is_wrong_with_a_server_that_does_not_answer(
    remote: Team, server: RunningServer
) -> None:
    server.stop()
    report = remote.run("doctor", "--json", code=1).json
    assert [(check["check"], check["ok"]) for check in report["checks"]] == [
        ("server", False),
        ("hooks", False),
    ]
