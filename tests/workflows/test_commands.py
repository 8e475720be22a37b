"""What people do with workflows at a shell."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import leasehold
from leasehold.workflows import Result
from tests.cli.conftest import shell  # noqa: F401
from tests.cli.shell import Shell


@pytest.fixture
def primary(shell: Shell) -> Iterator[leasehold.Client]:  # noqa: F811
    """A client called primary, on the store of the shell."""
    with leasehold.connect(shell.store, holder="primary") as leases:
        yield leases


def test_workflows_are_listed_and_shown(shell: Shell, primary: leasehold.Client) -> None:  # noqa: F811
    assert shell.run("workflow", "ls").out == "no workflows\n"
    orchestrator = primary.workflows.claim("order-7")
    orchestrator.emit("compute")
    primary.workflows.claim("order-8").complete()

    listed = shell.run("workflow", "ls")
    shown = shell.run("workflow", "show", "order-7")

    lines = [line.split() for line in listed.out.splitlines()]
    assert lines[1][:4] == ["order-7", "initialized", "1", "primary"]
    assert lines[2] == ["order-8", "completed", "1", "-", "-"]
    assert orchestrator.lease_id in shown.out
    assert "ended" in shell.run("workflow", "show", "order-8").out
    second = json.loads(shell.run("workflow", "ls", "--json", "--after", "order-7", "--limit", "1").out)
    assert [one["workflow_id"] for one in second["workflows"]] == ["order-8"]


def test_history_says_how_a_workflow_ended_and_why_if_there_is_a_reason(
    shell: Shell,  # noqa: F811
    primary: leasehold.Client,
) -> None:
    primary.workflows.claim("order-7").complete()
    primary.workflows.claim("order-8").cancel("out of tea")
    told = shell.run("history").out
    assert "completed" in told
    assert "()" not in told
    assert told.count("out of tea") == 1


def test_a_workflow_as_json_has_its_lease(shell: Shell, primary: leasehold.Client) -> None:  # noqa: F811
    orchestrator = primary.workflows.claim("order-7")

    shape = json.loads(shell.run("workflow", "show", "order-7", "--json").out)

    assert (shape["state"], shape["epoch"], shape["holder"]) == ("initialized", 0, "primary")
    assert shape["lease"]["lease_id"] == orchestrator.lease_id
    assert (shape["handed_off"], shape["accepted"], shape["ended_at"]) == (False, False, None)


def test_actions_are_told_with_what_happened_to_the_lease(
    shell: Shell,  # noqa: F811
    primary: leasehold.Client,
) -> None:
    orchestrator = primary.workflows.claim("order-7")
    action = orchestrator.emit("compute", {"n": 1}, target_node_type="NodeSums")
    orchestrator.handle_result(Result(action_id=action.action_id, success=True))

    told = shell.run("workflow", "actions", "order-7").out.splitlines()
    shapes: list[dict[str, Any]] = json.loads(shell.run("workflow", "actions", "order-7", "--json").out)[
        "messages"
    ]

    assert [line.split()[3] for line in told[1:]] == ["lease_claimed", "compute", "state_changed"]
    assert told[2].endswith("NodeSums")
    assert [one["kind"] for one in shapes] == ["event", "action", "event"]
    assert (shapes[1]["payload"], shapes[1]["epoch"], shapes[1]["lease_id"]) == ({"n": 1}, 0, action.lease_id)
    rest = shell.run("workflow", "actions", "order-7", "--after", str(shapes[1]["position"]), "--limit", "5")
    assert len(rest.out.splitlines()) == 2


def test_a_revocation_frees_the_workflow(shell: Shell, primary: leasehold.Client) -> None:  # noqa: F811
    orchestrator = primary.workflows.claim("order-7")

    done = shell.run("workflow", "revoke", "order-7", "--reason", "hangs", "--holder", "olga", "--json")

    shape = json.loads(done.out)
    assert (shape["event"], shape["lease_id"], shape["reason"]) == (
        "lease_revoked",
        orchestrator.lease_id,
        "hangs",
    )
    again = shell.run("workflow", "revoke", "order-7", "--reason", "hangs", code=76)
    assert "nobody has workflow order-7" in again.err
    assert "nobody" in shell.run("workflow", "show", "order-7").out
    primary.workflows.claim("order-7", holder="second")
    assert "may not act for it" in shell.run("workflow", "revoke", "order-7", "--reason", "still hangs").out


def test_a_handoff_says_how_it_is_taken(shell: Shell, primary: leasehold.Client) -> None:  # noqa: F811
    primary.workflows.claim("order-7")

    refused = shell.run("workflow", "handoff", "order-7", "--to", "standby", "--holder", "somebody", code=76)
    assert "belongs to primary; if that is you, say so with --holder primary" in refused.err
    done = shell.run(
        "workflow", "handoff", "order-7", "--to", "standby", "--holder", "primary", "--ttl", "5m"
    )

    assert "claim_lease(" in done.out
    assert "not taken yet" in shell.run("workflow", "show", "order-7").out
    lease_id = done.out.split("'")[1]
    successor = primary.workflows.claim_lease(lease_id, holder="standby")
    assert successor.current_epoch == 1
    assert "handed off    yes\n" in shell.run("workflow", "show", "order-7").out
    again = shell.run("workflow", "handoff", "order-7", "--to", "third", "--holder", "standby", "--json")
    assert json.loads(again.out)["holder"] == "third"


@pytest.mark.parametrize(
    "command", [["show"], ["actions"], ["revoke", "--reason", "x"], ["handoff", "--to", "x"]]
)
def test_an_unknown_workflow_is_an_error(
    shell: Shell,  # noqa: F811
    primary: leasehold.Client,
    command: list[str],
) -> None:
    primary.workflows.claim("order-7")

    result = shell.run("workflow", command[0], "unknown", *command[1:], code=1)

    assert "unknown does not exist" in result.err


def test_wrong_usage_gets_a_hint(shell: Shell) -> None:  # noqa: F811
    shell.run("workflow", code=2)
    assert "did you mean 'show'" in shell.run("workflow", "shwo", "order-7", code=2).err
    shell.run("workflow", "revoke", "order-7", code=2)
    shell.run("workflow", "handoff", "order-7", code=2)
    shell.run("workflow", "ls", "--limit", "0", code=2)
