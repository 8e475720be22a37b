"""Real orchestrators that are stopped, killed and replaced: none of their later actions passes any guard."""

import json
import signal
import threading
from pathlib import Path

import pytest

import leasehold
from leasehold.workflows import Action, Guard, Orchestrator, WorkflowError
from tests.client.processes import Python
from tests.client.worlds import SIGNAL_SECONDS
from tests.workflows.support import problems_of, steps_of

TTL = 1.0

ORCHESTRATOR = """
import json, sys
import leasehold
from leasehold.workflows import Action, WorkflowError
from tests.workflows.support import emit_blindly

url, name, ttl = sys.argv[1:]
with leasehold.connect(url, holder=name) as leases:
    orchestrator = leases.workflows.claim("w", ttl=float(ttl))
    print(orchestrator.emit("step").to_json().decode(), flush=True)
    for line in sys.stdin:
        epoch, told = int(line), []
        try:
            told.append(orchestrator.emit("late").error_code)
        except WorkflowError as error:
            told.append(error.error_code)
        for request, wanted in (("blind", epoch), ("old", orchestrator.current_epoch)):
            answer = emit_blindly(
                leases, "w", orchestrator.lease_id, epoch=wanted, request=f"{request} {epoch}"
            )
            told.append(getattr(answer, "rule", "EMITTED"))
        forged = Action(action_type="late", lease_id=orchestrator.lease_id, epoch=epoch)
        print(json.dumps({"told": told, "forged": forged.to_json().decode()}), flush=True)
"""

EMITTER = """
import sys
import leasehold

url, name, ttl = sys.argv[1:]
leases = leasehold.connect(url, holder=name)
orchestrator = leases.workflows.claim("w", ttl=float(ttl), wait=60)
while True:
    print(orchestrator.emit("step", {"by": name}).epoch, flush=True)
"""


@pytest.mark.chaos
def test_an_orchestrator_that_was_stopped_past_its_ttl_gets_nothing_past_any_guard(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    with leasehold.connect(path, holder="bob") as leases:
        subscription = leases.workflows.bus.subscribe("node", after=0)
        with Python(ORCHESTRATOR, str(path), "ann", str(TTL)) as sleeper:
            early = Action.from_json(sleeper.read_line())
            sleeper.stop(path)
            successor = leases.workflows.claim("w", wait=SIGNAL_SECONDS)
            successor.emit("step")
            guards = [Guard("w"), Guard("w", policy="strict"), leases.workflows.guard("w")]
            asking = guards.pop()
            executed: list[Action] = []
            for delivery in subscription.poll():
                for guard in guards:
                    guard.process(delivery, executed.append)
            assert [(one.action_type, one.epoch) for one in executed] == [("step", 0)] * 2 + [("step", 2)] * 2
            before = leases.position()
            sleeper.send(signal.SIGCONT)

            forged = [early]
            for epoch in (2, 3, 4):
                sleeper.write_line(str(epoch))
                said = json.loads(sleeper.read_line())
                assert set(said["told"]) <= {"LEASE_EXPIRED", "LEASE_VIOLATION"}, said
                forged.append(Action.from_json(said["forged"]))

            written = [one.event.type for one in leases.history(after=before)]
            assert not [kind for kind in written if kind.startswith("workflow.")]
            assert [one for one in subscription.poll() if isinstance(one.message, Action)] == []
            for action in forged:
                for guard in guards:
                    with pytest.raises(WorkflowError) as refused:
                        guard.process(action, executed.append)
                    assert refused.value.error_code == "LEASE_VIOLATION"
                with pytest.raises(WorkflowError):
                    asking.check(action, authoritative=True)
            assert len(executed) == 4
            assert successor.emit("step").epoch == 3
    assert problems_of(path) == []


@pytest.mark.chaos
def test_orchestrators_that_are_killed_lose_no_action_and_repeat_no_epoch(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    acknowledged: list[int] = []
    for number in range(6):
        with Python(EMITTER, str(path), f"orchestrator-{number}", "0.5") as emitter:
            for _ in range(3 + 5 * number):
                acknowledged.append(int(emitter.read_line()))
            emitter.send(signal.SIGKILL)
            assert emitter.process.stdout is not None
            acknowledged += [int(line) for line in emitter.process.stdout if line.endswith("\n")]
            emitter.process.wait(SIGNAL_SECONDS)
    with leasehold.connect(path, holder="witness") as leases:
        epochs = steps_of(leases, "w")
        assert epochs == sorted(set(epochs)), "an epoch came twice"
        assert set(acknowledged) <= set(epochs), "an action was lost"
        assert acknowledged == sorted(set(acknowledged))
        status = leases.workflows.find("w")
        assert status is not None
        assert set(range(status.workflow.epoch)) - set(epochs) == takeovers(leases)
    assert problems_of(path) == []


def takeovers(leases: leasehold.Client) -> set[int]:
    """The epochs that went to takeovers, and to nothing else."""
    events = [one.message for one in leases.workflows.actions("w", limit=10_000)]
    return {
        one.payload["epoch"] - 1
        for one in events
        if not isinstance(one, Action) and one.event_type.value == "lease_taken_over"
    }


def test_handoffs_under_load_keep_every_action_in_order_and_shut_the_old_orchestrator_out(
    tmp_path: Path,
) -> None:
    path, rounds, steps = tmp_path / "leases", 12, 10
    refused: list[str] = []
    busy, done = threading.Event(), threading.Event()

    def crowd(number: int) -> None:
        with leasehold.connect(path, holder=f"crowd-{number}") as leases:
            while not done.is_set():
                leases.acquire(f"door-{number}").release()
                busy.set()

    def intrude(orchestrator: Orchestrator) -> None:
        try:
            orchestrator.emit("late")
        except WorkflowError as error:
            refused.append(error.error_code)

    crowds = [threading.Thread(target=crowd, args=(number,)) for number in range(2)]
    for thread in crowds:
        thread.start()
    try:
        assert busy.wait(SIGNAL_SECONDS)
        with leasehold.connect(path, holder="ann") as ann, leasehold.connect(path, holder="bob") as bob:
            subscription = ann.workflows.bus.subscribe("node", after=0)
            orchestrator, successor, name = ann.workflows.claim("w"), bob, "bob"
            for _ in range(rounds):
                for _ in range(steps):
                    orchestrator.emit("step")
                handed = orchestrator.handoff(name)
                late = threading.Thread(target=intrude, args=(orchestrator,))
                late.start()
                orchestrator = successor.workflows.claim_lease(handed.new_lease_id)
                late.join(SIGNAL_SECONDS)
                successor, name = (ann, "ann") if successor is bob else (bob, "bob")
            guard, executed = Guard("w", policy="strict"), list[int]()
            for delivery in subscription.poll(10_000):
                guard.process(delivery, lambda action: executed.append(action.epoch))
    finally:
        done.set()
        for thread in crowds:
            thread.join(SIGNAL_SECONDS)
    assert refused == ["LEASE_VIOLATION"] * rounds
    expected = [epoch for epoch in range(rounds * (steps + 1)) if epoch % (steps + 1) != steps]
    assert executed == expected
    assert problems_of(path) == []
