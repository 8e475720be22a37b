from tests.cli.shell import Shell, until
from tests.engine.doubles import claim


def test_release_gives_back_and_a_second_one_is_no_error(shell: Shell) -> None:
    lease = shell.json("acquire", "door")["lease_id"]
    assert shell.run("release", lease, "--reason", "completed").out == f"released {lease}\n"
    assert shell.json("show", lease)["lease"]["release_reason"] == "completed"
    assert "had already ended" in shell.run("release", lease).out
    again = shell.json("release", lease)
    assert again == {"released": [], "released_count": 0, "already_over": [lease], "failed": []}
    shell.run("acquire", "door", "--holder", "somebody else")


def test_release_of_another_holders_lease_is_refused(shell: Shell) -> None:
    lease = shell.json("acquire", "door", "--holder", "ann")["lease_id"]
    mine = shell.json("acquire", "gate")["lease_id"]
    answer = shell.run("release", lease, mine, "--json", code=76)
    assert answer.json["released"] == [mine]
    assert [failed["code"] for failed in answer.json["failed"]] == ["NOT_HOLDER"]
    assert shell.json("show", lease)["lease"]["state"] == "active"


def test_release_all_is_about_one_holder(shell: Shell) -> None:
    for resource in ("a", "b"):
        shell.run("acquire", resource, "--holder", "ann")
    shell.run("acquire", "c", "--holder", "ben")
    assert shell.run("release", "--all", "--holder", "ann").out == "released 2 leases of ann\n"
    assert shell.json("release", "--all", "--holder", "ann") == {"holder": "ann", "released_count": 0}
    assert [lease["resource"] for lease in shell.json("ls")["leases"]] == ["c"]


def test_revoke_frees_at_once_and_history_knows_who_and_why(shell: Shell) -> None:
    lease = shell.json("acquire", "door", "--holder", "ann")
    assert (
        "held by ann" in shell.run("revoke", lease["lease_id"], "--reason", "stuck", "--operator", "boss").out
    )
    shown = shell.json("show", lease["lease_id"])["lease"]
    assert (shown["state"], shown["ended_by"], shown["end_reason"]) == ("revoked", "boss", "stuck")
    assert shell.json("acquire", "door", "--holder", "ben")["token"] > lease["token"]
    again = shell.json("revoke", lease["lease_id"], "--reason", "stuck")
    assert again["revoked"] is False
    assert again["lease_id"] == lease["lease_id"]
    assert "had already ended" in shell.run("revoke", lease["lease_id"], "--reason", "stuck").out
    assert (
        shell.run("revoke", "nosuch", "--reason", "x", "--json", code=76).error["code"] == "LEASE_NOT_FOUND"
    )


def test_sweep_records_what_time_has_ended(shell: Shell) -> None:
    with shell.client() as client:
        for resource in ("a", "b"):
            client._session.desk.call(claim(resource, ttl_ns=200_000_000))
        until(lambda: not client.inspect("b"))
    assert "recorded the end of" in shell.run("sweep").out
    assert shell.json("sweep") == {"swept_count": 0}
    assert shell.history("b") == ["issued", "expired"]
