"""`leasehold access`, as a user at a shell would use it."""

import pytest

from tests.cli.shell import Shell


def test_a_key_is_created_listed_rotated_and_revoked(shell: Shell) -> None:
    created = shell.run("access", "create", "holder", "--holders", "ann,ci-*", "--expires", "30d")
    (text,) = created.out.splitlines()
    key_id = text.split("_")[1]
    assert key_id in created.err
    assert "shown this once" in created.err
    assert text not in created.err
    listed = shell.run("access", "ls").out.splitlines()
    assert listed[0].split()[:4] == ["KEY", "ROLE", "TENANT", "HOLDERS"]
    assert listed[1].split()[:4] == [key_id, "holder", "default", "ann,ci-*"]

    rotated = shell.run("access", "rotate", key_id, "--overlap", "1h").out.strip()
    assert rotated.split("_")[1] == key_id
    assert rotated != text
    assert shell.run("access", "revoke", key_id, "--reason", "lost").out == f"revoked access key {key_id}\n"
    assert "revoked" in shell.run("access", "ls").out
    told = shell.run("history").out
    assert [word in told for word in ("access.created", "access.rotated", "access.revoked")] == [True] * 3
    assert "lost" in told
    assert text.split("_")[2] not in told


def test_json_has_the_key_and_what_it_is_for(shell: Shell) -> None:
    created = shell.json("access", "create", "admin", "--all-tenants", "--description", "for ann")
    key_id = created["key_id"]
    assert created["access_key"].startswith(f"lh_{key_id}_")
    assert (created["role"], created["tenant"], created["state"]) == ("admin", None, "live")
    (listed,) = shell.json("access", "ls")["access_keys"]
    assert listed == {name: value for name, value in created.items() if name != "access_key"}
    assert shell.json("access", "ls", "--bound-to", "acme") == {"access_keys": []}


def test_the_last_admin_key_is_not_revoked(shell: Shell) -> None:
    key_id = shell.json("access", "create", "admin", "--all-tenants")["key_id"]
    refused = shell.run("access", "revoke", key_id, code=1)
    assert "create another one first, or rotate this one" in refused.err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["create"], "required: ROLE"),
        (["create", "root"], "invalid choice: 'root'"),
        (["create", "viewer", "--holders", "ann"], "holders bind holder keys only"),
        (["create", "holder", "--holders", "*"], "holders must be names, or beginnings"),
        (["create", "viewer", "--expires", "soon"], "invalid duration 'soon'"),
        (["create", "viewer", "--expires", "0"], "expires must be in the future"),
        (["rotate"], "required: KEY"),
    ],
)
def test_what_makes_no_sense_is_answered_with_what_does(
    shell: Shell, arguments: list[str], hint: str
) -> None:
    assert hint in shell.run("access", *arguments, code=2).err


def test_a_key_for_all_tenants_is_not_for_one(shell: Shell) -> None:
    refused = shell.run("access", "create", "holder", "--all-tenants", "--tenant", "acme", code=2)
    assert "--all-tenants and --tenant acme say different things" in refused.err
    assert not shell.store.exists()
