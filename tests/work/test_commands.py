"""`leasehold work`, as a shell sees it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import EXECUTABLE, Result, Shell


class WorkShell:
    """A user at a shell who works."""

    def __init__(self, shell: Shell) -> None:
        self.leasehold = shell.run
        self.folder = shell.folder
        self.environment = shell.environment

    def run(self, *arguments: str, code: int = 0, given: str = "") -> Result:
        return self.leasehold("work", *arguments, code=code, given=given)

    def says(self, *arguments: str, code: int = 0, given: str = "") -> str:
        return self.run(*arguments, code=code, given=given).out.strip()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[WorkShell]:
    shell = Shell(tmp_path)
    yield WorkShell(shell)
    shell.close()


def test_an_offset_from_acquiring_to_its_end(shell: WorkShell) -> None:
    outcome, token = shell.says("acquire", "orders", "1").split()
    assert outcome == "ACQUIRED"
    assert shell.says("acquire", "orders", "2", code=75) == "ENQUEUED"
    assert shell.says("acquire", "orders", "1", code=75) == f"ALREADY_ACQUIRED {token}"
    assert shell.says("succeed", "orders", token) == "NEXT_HINT next_offset 2"
    assert "No lease" in shell.run("succeed", "orders", token, code=76).err
    assert shell.says("succeed", "orders", token, "--ignore-mismatch") == "IGNORED"
    assert "acquire 2 first" in shell.run("acquire", "orders", "3", code=75).err
    token = shell.says("acquire", "orders", "2", "--ttl", "5m", "--max-retries", "1").split()[1]
    assert shell.says("enqueue", "orders", "3-5", "9") == "added 4 of 4 to the backlog of orders"
    assert shell.says("fail", "orders", token, "--reason", "no luck") == "RETRY_SCHEDULED retry_count 1"
    handed = shell.says("fail", "orders", token, "--reason", "given up", "--hand-off")
    assert handed.startswith("GIVE_UP_NEXT_HINT retry_count 1 next_offset 3 token ")
    assert "given up" in shell.says("failed", "orders")
    assert "work.failed" in shell.says("show", "orders", "--offset", "2")
    shown = shell.says("show", "orders")
    assert "IN_FLIGHT" in shown
    assert "3, head 4" in shown
    assert shell.says("ls").splitlines()[1].split()[:3] == ["orders", "IN_FLIGHT", "3"]


def test_all_of_it_as_json(shell: WorkShell) -> None:
    acquired = json.loads(shell.says("acquire", "orders", "1", "--json"))
    assert acquired["outcome"] == "ACQUIRED"
    assert acquired["token"] == str(acquired["fence"])
    failed = json.loads(shell.says("fail", "orders", acquired["token"], "--max-retries", "0", "--json"))
    assert failed["outcome"] == "GIVE_UP_NO_BACKLOG"
    assert json.loads(shell.says("enqueue", "orders", "5", "--json")) == {"domain": "orders", "added": 1}
    state = json.loads(shell.says("show", "orders", "--json"))
    assert (state["state"], state["head"], state["failed"]) == ("IDLE", 5, [[1, 1]])
    assert json.loads(shell.says("ls", "--json"))["domain"] == "orders"
    assert json.loads(shell.says("failed", "orders", "--json"))["offset"] == 1
    entry = json.loads(shell.says("show", "orders", "--offset", "5", "--json"))
    assert (entry["type"], entry["resource"]) == ("work.enqueued", "work:orders:5")
    error = json.loads(shell.run("succeed", "orders", "1", "--json", code=76).err)["error"]
    assert error["code"] == "NO_LEASE"


def test_nothing_is_shown_of_nothing(shell: WorkShell) -> None:
    shell.says("enqueue", "orders", "1")
    assert shell.says("failed", "orders") == "no offset of orders was given up"
    assert "nothing is known" in shell.says("show", "orders", "--offset", "7")
    assert "IDLE" in shell.says("show", "nowhere")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("acquire", "orders", "-1"), "-1"),
        (("acquire", "orders", "x"), "invalid offset"),
        (("acquire", "orders", str(2**63)), "at most"),
        (("acquire", "", "1"), "domain"),
        (("enqueue", "orders", "9-5"), "invalid range"),
        (("enqueue", "orders", "0-5000"), "invalid range"),
        (("fail", "orders", "1", "--max-retries", "x"), "invalid number"),
        (("consume",), "name the command after --"),
        (("suceed", "orders", "1"), "did you mean 'succeed'"),
    ],
)
def test_bad_usage_is_one_line_that_says_what_is_wrong(
    shell: WorkShell, arguments: tuple[str, ...], says: str
) -> None:
    shell.says("enqueue", "others", "1")
    error = shell.run(*arguments, code=2).err
    assert says in error
    assert len(error.splitlines()) == 1


CHILD = (
    "import os, sys; e = os.environ; "
    "said = [e['LEASEHOLD_WORK_' + name] for name in ('DOMAIN', 'OFFSET', 'ATTEMPT')]; "
    "said += [str(e['LEASEHOLD_WORK_TOKEN'].isdigit()), sys.stdin.read()]; "
    "os.write(1, (' '.join(said) + chr(10)).encode()); "  # Whole: others write there, too.
    "sys.exit(e['LEASEHOLD_WORK_OFFSET'] == '2' and e['LEASEHOLD_WORK_ATTEMPT'] == '1')"
)


def test_a_command_is_run_for_each_offset_in_order_and_again_if_it_fails(shell: WorkShell) -> None:
    lines = "".join(f"a {offset} payload {offset}\n" for offset in range(4)) + "b 7\n"
    done = shell.run("consume", "--backoff", "1ms", "--", sys.executable, "-c", CHILD, given=lines)
    seen = [line.split(maxsplit=4) for line in done.out.splitlines()]
    assert [tuple(one[1:3]) for one in seen if one[0] == "a"] == [
        ("0", "1"),
        ("1", "1"),
        ("2", "1"),
        ("2", "2"),
        ("3", "1"),
    ]
    assert ["a", "3", "1", "True", "payload 3"] in seen
    assert "processed 5, failed 0, skipped 0, retried 1" in done.err


def test_a_command_that_never_works_gives_its_offset_up_and_others_go_on(shell: WorkShell) -> None:
    given = "a 0\na 1\n"
    options = ("--max-retries", "0", "--json")
    done = shell.run("consume", *options, "--", "test", "-e", "/nowhere", code=1, given=given)
    assert json.loads(done.err)["failed"] == 2
    assert " CommandFailed: test ended with 1" in shell.says("failed", "a")
    again = shell.run("consume", *options[:2], "--", "false", code=1, given="b 0\n")
    assert "`leasehold work failed DOMAIN` says" in again.err
    assert "leasehold: b 0 was given up after attempt 1: CommandFailed: false ended with 1\n" in again.err
    assert "Traceback" not in again.err


def test_a_line_that_is_no_message_is_shown_and_skipped(shell: WorkShell) -> None:
    given = f"a 0\nnonsense\na 1\na {2**63}\na 2\n"
    done = shell.run("consume", "--", "true", code=2, given=given)
    assert "line 2 was skipped: it must be DOMAIN OFFSET [PAYLOAD]: 'nonsense'" in done.err
    assert f"line 4 was skipped: offset must be at most {2**63 - 1}: 'a {2**63}'" in done.err
    assert "processed 3, " in done.err
    assert "2 lines skipped" in done.err
    told = shell.run("consume", "--json", "--", "true", code=2, given="b 0\nb x\n").err.splitlines()
    assert json.loads(told[0])["text"] == "b x"
    assert json.loads(told[1])["skipped_lines"] == 1


def test_a_signal_waits_for_the_command_that_runs(shell: WorkShell) -> None:
    began, go = shell.folder / "began", shell.folder / "go"
    os.mkfifo(began)
    os.mkfifo(go)
    script = f"echo > {began}; cat {go}"
    consumer = subprocess.Popen(
        [EXECUTABLE, "work", "consume", "--", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=shell.environment,
        cwd=shell.folder,
    )
    assert consumer.stdin is not None
    consumer.stdin.write("a 0\na 1\n")
    consumer.stdin.flush()  # And left open to the end: the source has not ended.
    began.read_text()
    consumer.send_signal(signal.SIGTERM)
    go.write_text("on")
    assert consumer.wait(30) == 0
    _, errors = consumer.communicate()
    assert "processed 1" in errors
    assert json.loads(shell.says("show", "a", "--json"))["state"] == "IDLE"


def test_a_command_that_does_not_exist_costs_no_message_an_attempt(shell: WorkShell) -> None:
    (shell.folder / "notes").write_text("not a program")
    for command in ("no-such-command", "./notes"):
        refused = shell.run("consume", "--", command, code=127, given="a 0\n")
        assert f"there is no command '{command}'; check its name" in refused.err
    assert shell.run("consume", "--", "true", given="a 0\n").err.startswith("processed 1, failed 0")


def test_the_offset_in_flight_is_kept_alive_and_given_back(shell: WorkShell) -> None:
    token = shell.says("acquire", "orders", "1", "--ttl", "1h").split()[1]
    assert shell.says("keep-alive", "orders", token, "--ttl", "2h") == "kept alive: 2h left"
    assert json.loads(shell.says("keep-alive", "orders", token, "--ttl", "3h", "--json"))["expires_in"] > 7200
    assert "Token mismatch" in shell.run("keep-alive", "orders", "7", code=76).err
    given_back = shell.says("give-back", "orders", token)
    assert given_back == "gave back offset 1 of orders; it is at the head of the backlog"
    assert "No lease" in shell.run("give-back", "orders", token, code=76).err
    token = shell.says("acquire", "orders", "1").split()[1]
    assert "has no TTL" in shell.says("keep-alive", "orders", token)
    assert json.loads(shell.says("give-back", "orders", token, "--json")) == {"domain": "orders", "offset": 1}


def test_where_a_domain_starts_and_up_to_where_it_is_done(shell: WorkShell) -> None:
    assert shell.says("start-at", "orders", "100") == "orders starts at 100"
    assert shell.says("watermark", "orders") == "100"
    token = shell.says("acquire", "orders", "100").split()[1]
    shell.says("succeed", "orders", token)
    assert json.loads(shell.says("watermark", "orders", "--json")) == {"domain": "orders", "watermark": 101}
    assert json.loads(shell.says("start-at", "orders", "50", "--json"))["start"] == 100, "it never goes back"
    shell.says("enqueue", "orders", "102")
    assert "102" in shell.run("start-at", "orders", "200", code=1).err


def test_history_of_a_domain_reads_like_sentences(shell: WorkShell) -> None:
    shell.says("start-at", "orders", "6")
    token = shell.says("acquire", "orders", "7", "--max-retries", "1", "--ttl", "1h").split()[1]
    shell.says("enqueue", "orders", "8")
    shell.says("keep-alive", "orders", token, "--ttl", "2h")
    shell.says("fail", "orders", token, "--reason", "no answer")
    shell.says("give-back", "orders", token)
    token = shell.says("acquire", "orders", "7", "--max-retries", "1").split()[1]
    shell.says("fail", "orders", token)
    token = shell.says("acquire", "orders", "8").split()[1]
    shell.says("succeed", "orders", token)
    told = shell.leasehold("history", "--domain", "orders").out
    for sentence in (
        "orders starts at offset 6: all below counts as processed",
        "offset 7 of orders is in flight, attempt 1",
        "offset 8 of orders was put into the backlog",
        "offset 7 of orders was given 7200 s more",
        "offset 7 of orders failed in attempt 1, and is tried again (no answer)",
        "offset 7 of orders went back to the head of the backlog (given back)",
        "offset 7 of orders was given up after attempt 2",
        "offset 8 of orders was processed",
    ):
        assert sentence in told
    assert "()" not in told
    assert "domain/orders" not in told
    guessed = shell.leasehold("history", "orders")
    assert guessed.out == "nothing happened\n"
    assert "leasehold history --domain orders" in guessed.err
