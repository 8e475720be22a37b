import getpass
import os
import signal
import socket
import subprocess

import pytest

from tests.cli.shell import EXECUTABLE, Shell


def test_acquire_prints_what_a_person_needs(shell: Shell) -> None:
    text = shell.run("acquire", "report-42", "--ttl", "5m", "--holder", "ann").out
    lease = shell.json("ls")["leases"][0]
    assert text.splitlines()[0] == "acquired report-42"
    assert lease["lease_id"] in text
    assert str(lease["token"]) in text
    assert "ann" in text
    assert "(in 5m)" in text


def test_an_acquired_lease_outlives_the_command_and_a_reboot(shell: Shell) -> None:
    options = ["--ttl", "1h", "--holder", "ann", "--max-renewals", "3", "--metadata", "why=test", "n=1"]
    acquired = shell.json("acquire", "report-42", *options)
    assert acquired["holder"] == "ann"
    assert acquired["state"] == "active"
    assert acquired["ttl"] == 3600
    assert 3590 < acquired["expires_in"] <= 3600
    assert acquired["max_renewals"] == 3
    assert acquired["metadata"] == {"why": "test", "n": "1"}
    assert acquired["survives_reboot"] is True
    (listed,) = shell.json("ls")["leases"]
    assert {**listed, "expires_in": 0} == {**acquired, "expires_in": 0}


def test_a_held_resource_is_refused_with_who_holds_it(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    result = shell.run("acquire", "door", "--holder", "ben", code=75)
    assert result.out == ""
    assert "door is held by ann for at most" in result.err
    assert result.err.count("\n") == 1
    error = shell.run("acquire", "door", "--holder", "ben", "--json", code=75).error
    assert error["code"] == "HELD"
    assert error["exit_code"] == 75
    assert error["facts"]["holder"] == "ann"
    assert 0 < error["facts"]["retry_after"] <= 60
    assert error["facts"]["since"].endswith("Z")


def test_what_one_holds_already_is_adopted_only_on_request(shell: Shell) -> None:
    first = shell.json("acquire", "door")
    result = shell.run("acquire", "door", code=75)
    assert "--adopt" in result.err
    second = shell.json("acquire", "door", "--adopt")
    assert second["token"] > first["token"]
    assert second["adopted_from"] == first["lease_id"]
    assert shell.json("show", first["lease_id"])["lease"]["release_reason"] == "transferred"


def test_sharers_stand_together_and_against_exclusive_claims(shell: Shell) -> None:
    for holder in ("ann", "ben"):
        shell.run("acquire", "door", "--mode", "SHARED", "--holder", holder)
    assert len(shell.json("show", "door")["leases"]) == 2
    shell.run("acquire", "door", "--holder", "cy", code=75)


def test_the_holder_is_the_option_or_the_variable_or_the_user(shell: Shell) -> None:
    assert shell.json("acquire", "a")["holder"] == f"{getpass.getuser()}@{socket.gethostname()}"
    shell.environment["LEASEHOLD_HOLDER"] = "agent-7"
    assert shell.json("acquire", "b")["holder"] == "agent-7"
    assert shell.json("acquire", "c", "--holder", "ann")["holder"] == "ann"


def test_what_no_claim_may_say_is_refused_as_wrong_usage(shell: Shell) -> None:
    assert "at least 1 millisecond" in shell.run("acquire", "door", "--ttl", "0", code=2).err
    assert shell.run("acquire", "", "--json", code=2).error["code"] == "INVALID_INPUT"
    assert "30 days" in shell.run("acquire", "door", "--ttl", "31d", code=2).err


def test_renew_extends_from_now(shell: Shell) -> None:
    lease = shell.json("acquire", "door", "--ttl", "1m")
    (renewed,) = shell.json("renew", lease["lease_id"], "--ttl", "10m")["renewed"]
    assert renewed["renewal_count"] == 1
    assert 590 < renewed["expires_in"] <= 600
    text = shell.run("renew", lease["lease_id"], "--ttl", "20m").out
    assert text.startswith("renewed door")
    assert "(in 20m)" in text


def test_one_lease_that_cannot_be_renewed_does_not_keep_the_others_from_it(shell: Shell) -> None:
    lease = shell.json("acquire", "door")["lease_id"]
    result = shell.run("renew", "nosuch", lease, code=76)
    assert "renewed door" in result.out
    assert "there is no lease nosuch" in result.err
    answer = shell.run("renew", lease, "nosuch", "--json", code=76)
    assert [renewed["lease_id"] for renewed in answer.json["renewed"]] == [lease]
    assert [failed["code"] for failed in answer.json["failed"]] == ["LEASE_NOT_FOUND"]
    assert answer.error["code"] == "LEASE_NOT_FOUND"


def test_renewing_is_limited_and_only_for_the_holder(shell: Shell) -> None:
    lease = shell.json("acquire", "door", "--max-renewals", "0", "--holder", "ann")["lease_id"]
    assert "if that is you, say so with --holder ann" in shell.run("renew", lease, code=76).err
    assert "as often as it may be" in shell.run("renew", lease, "--holder", "ann", code=1).err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_acquire_leaves_no_lease(shell: Shell, number: int) -> None:
    shell.run("acquire", "something else")
    with shell.stalled_writer():
        acquiring = shell.start("acquire", "door")
        shell.wait_until_queued(acquiring.process.pid)
        acquiring.send(number)
        result = acquiring.end()
    assert result.code == 128 + number
    assert result.err == ""
    assert shell.history("door") == []


def test_a_store_whose_writer_has_stopped_can_still_be_looked_at(shell: Shell) -> None:
    shell.run("acquire", "door")
    with shell.stalled_writer():
        assert len(shell.json("ls")["leases"]) == 1
        assert shell.json("show", "door")["held"] is True
        assert len(shell.run("history", "--json").json_lines) == 1


def test_many_processes_want_one_resource_and_one_gets_it(shell: Shell) -> None:
    contenders = [shell.start("acquire", "door", "--json", "--holder", f"h{number}") for number in range(6)]
    results = [contender.end() for contender in contenders]
    assert sorted(result.code for result in results) == [0, 75, 75, 75, 75, 75]
    (winner,) = [result.json for result in results if result.code == 0]
    assert {result.error["facts"]["holder"] for result in results if result.code == 75} == {winner["holder"]}
    assert os.path.exists(shell.store)


def test_a_reader_that_leaves_after_the_first_line_was_told_all_and_the_lease_stays(shell: Shell) -> None:
    for number in range(5):
        command = ["sh", "-c", f'"$0" acquire door-{number} --ttl 1h | head -1', EXECUTABLE]
        finished = subprocess.run(
            command, env=shell.environment, cwd=shell.folder, capture_output=True, text=True, check=True
        )
        assert (finished.stdout, finished.stderr) == (f"acquired door-{number}\n", "")
    assert len(shell.leases()) == 5


def test_a_lease_that_nobody_can_be_told_about_is_given_back_and_that_is_said(shell: Shell) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    finished = subprocess.run(
        [EXECUTABLE, "acquire", "door"],
        env=shell.environment,
        cwd=shell.folder,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert finished.returncode == 128 + signal.SIGPIPE
    assert "what was acquired is given back" in finished.stderr
    assert shell.leases() == []
