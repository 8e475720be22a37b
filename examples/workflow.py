"""One orchestrator per workflow: an order is packed and sent, and an orchestrator comes back too late.

Run it with `python examples/workflow.py`. It makes a store of its own in a temporary folder, and shows

1. an orchestrator that emits actions, and a node that processes them behind a guard;
2. a handoff to a second orchestrator, which goes on where the first stopped;
3. the first one, which does not know when to stop, and is refused: by the registrar and by the guard.
"""

import tempfile
from pathlib import Path

import leasehold
from leasehold.workflows import Action, Guard, LeaseViolation, Result

ORDER = "order-7"


def pack(action: Action) -> str:
    """Do what an action asks for."""
    return f"{action.action_type} {action.payload['item']} (epoch {action.epoch})"


def main() -> None:
    """Play all of it in one process; in earnest, each part would be a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "leases"
        with (
            leasehold.connect(store, holder="primary") as primary,
            leasehold.connect(store, holder="standby") as standby,
            primary.workflows.bus.subscribe("warehouse") as subscription,
        ):
            guard = Guard(ORDER, policy="strict")

            def work() -> list[Result]:
                """Process what is on the bus: the guard hears of every change of the lease from there."""
                results = []
                for delivery in subscription.poll():
                    done = guard.process(delivery, pack)
                    if isinstance(delivery.message, Action) and done:
                        print("  warehouse:", done)
                        results.append(Result(action_id=delivery.message.action_id, success=True))
                    subscription.ack(delivery)
                return results

            first = primary.workflows.claim(ORDER)
            print("primary leads", ORDER, "from epoch", first.current_epoch)
            first.emit("pack", {"item": "tea"}, target_node_type="NodeWarehouse")
            for result in work():
                first.handle_result(result)
            print("  state:", first.workflow_state, "at epoch", first.current_epoch)

            handed = first.handoff("standby")
            second = standby.workflows.claim_lease(handed.new_lease_id)
            print("standby leads from epoch", second.current_epoch)
            second.emit("send", {"item": "tea"})
            work()

            try:
                first.emit("pack", {"item": "tea, again"})
            except LeaseViolation as refused:
                print("the registrar refused primary:", refused.error_code)
            late = Action(action_type="pack", payload={"item": "x"}, lease_id=first.lease_id, epoch=9)
            try:
                guard.process(late, pack)
            except LeaseViolation as refused:
                print("the guard refused primary:", refused.error_code)

            second.complete()
            status = standby.workflows.find(ORDER)
            assert status is not None
            print(ORDER, "is", status.workflow.state, "at epoch", status.workflow.epoch)


if __name__ == "__main__":
    main()
