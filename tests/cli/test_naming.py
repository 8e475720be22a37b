"""Leases are named by their id, or by what they are on."""

from tests.cli.shell import Shell


def test_a_holder_names_its_lease_by_the_resource(shell: Shell) -> None:
    lease = shell.json("acquire", "door", "--ttl", "5m", "--budget", "tokens=100")["lease_id"]

    assert shell.json("renew", "door", "--ttl", "10m")["renewed"][0]["ttl"] == 600
    assert shell.json("spend", "door", "--tokens", "5")["lease_id"] == lease
    assert shell.json("derive", "door", "lock", "--budget", "tokens=5")["delegation"]["parent"] == lease
    assert shell.json("downgrade", "door")["mode"] == "shared"
    assert shell.json("upgrade", "door")["mode"] == "exclusive"
    new = shell.json("transfer", "door", "--to", "bob")["lease_id"]
    assert shell.json("release", "door", "--holder", "bob")["released"] == [new]


def test_an_operator_names_a_lease_by_the_resource(shell: Shell) -> None:
    lease = shell.json("acquire", "door", "--holder", "ann")["lease_id"]
    assert shell.run("revoke", "door", "--reason", "stuck").out == f"revoked {lease}, held by ann\n"


def test_a_resource_that_is_shared_means_the_holder_s_own_lease(shell: Shell) -> None:
    ids = {name: shell.json("acquire", "door", "--shared", "--holder", name)["lease_id"] for name in "ab"}

    refused = shell.run("revoke", "door", "--reason", "stuck", code=2).err
    assert f"several share door; name one of their leases: {ids['a']} (a), {ids['b']} (b)" in refused
    assert shell.json("release", "door", "--holder", "b")["released"] == [ids["b"]]
    assert [lease.holder for lease in shell.leases()] == ["a"]


def test_what_another_has_stays_with_it(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    assert "say so with --holder ann" in shell.run("release", "door", "--holder", "bob", code=76).err
    assert [lease.holder for lease in shell.leases()] == ["ann"]


def test_a_name_that_means_nothing_is_told_with_the_next_step(shell: Shell) -> None:
    shell.run("acquire", "door")
    for command in (["release", "gate"], ["renew", "gate"], ["revoke", "gate", "--reason", "stuck"]):
        told = shell.run(*command, code=76).err
        assert "there is no lease gate, and none stands on a resource of that name; `leasehold ls`" in told
