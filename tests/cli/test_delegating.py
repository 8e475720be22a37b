from tests.cli.shell import Shell


def test_a_part_of_a_lease_is_handed_on_spent_and_shown(shell: Shell) -> None:
    scope = ["--scope", "tool=read", "namespace=data"]
    parent = shell.json("acquire", "crawl", "--holder", "ann", *scope, "--budget", "tokens=100")
    assert parent["delegation"]["scope"]["tools"] == ["read"]
    derive = ["derive", parent["lease_id"], "crawl/1", "--holder", "ann", "--for", "bob"]
    child = shell.json(*derive, "--scope", "tool=read", "--budget", "tokens=40")
    assert (child["holder"], child["delegation"]["parent"]) == ("bob", parent["lease_id"])
    assert child["expires_in"] <= parent["expires_in"]

    spent = shell.json("spend", child["lease_id"], "--tokens", "15", "--holder", "bob")
    assert spent["remaining"]["tokens"] == 25
    for_people = shell.run("spend", child["lease_id"], "--tokens", "5", "--holder", "bob")
    assert for_people.out == "spent; left: 20 tokens\n"

    (tree,) = shell.json("show", "crawl", "--tree")["trees"]
    assert tree["lease"]["delegation"]["delegated"]["tokens"] == 40
    assert [one["lease"]["lease_id"] for one in tree["children"]] == [child["lease_id"]]
    lines = shell.run("show", parent["lease_id"], "--tree").out.splitlines()
    assert lines[1].startswith(parent["lease_id"])
    assert lines[2].startswith(f"  {child['lease_id']}")
    facts = shell.run("show", child["lease_id"]).out
    assert "scope" in facts
    assert "tool=read" in facts


def test_too_much_is_refused_and_says_so(shell: Shell) -> None:
    lease = shell.json("acquire", "crawl", "--holder", "ann", "--budget", "tokens=3", "--scope", "unlimited")
    denied = shell.run("spend", lease["lease_id"], "--tokens", "4", "--holder", "ann", code=1)
    assert "3 left, 4 asked for" in denied.err
    assert (
        "belongs to ann"
        in shell.run("spend", lease["lease_id"], "--tokens", "1", "--holder", "bob", code=76).err
    )


def test_the_same_request_spends_once(shell: Shell) -> None:
    lease = shell.json("acquire", "crawl", "--holder", "ann", "--budget", "tokens=3")
    for _ in range(2):
        done = shell.json(
            "spend", lease["lease_id"], "--tokens", "1", "--holder", "ann", "--request-id", "r1"
        )
        assert done["remaining"]["tokens"] == 2


def test_revoking_the_parent_ends_the_child(shell: Shell) -> None:
    parent = shell.json("acquire", "crawl", "--holder", "ann", "--scope", "unlimited")
    child = shell.json("derive", parent["lease_id"], "crawl/1", "--holder", "ann")
    shell.run("revoke", parent["lease_id"], "--reason", "enough")

    shown = shell.json("show", child["lease_id"])["lease"]
    assert (shown["state"], shown["end_reason"]) == ("revoked", f"parent {parent['lease_id']} was revoked")
    assert "is over" in shell.run("renew", child["lease_id"], "--holder", "ann", code=76).err


def test_a_scope_or_budget_that_makes_no_sense_is_wrong_usage(shell: Shell) -> None:
    assert "--scope takes tool=NAME" in shell.run("acquire", "a", "--scope", "read", code=2).err
    assert "--budget takes episodes=N" in shell.run("acquire", "a", "--budget", "tokens=x", code=2).err
    assert "say what to spend" in shell.run("spend", "a", code=2).err
