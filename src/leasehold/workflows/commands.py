"""workflow ls, show, actions, revoke, handoff: what people do with workflows."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from leasehold.cli.connecting import add_holder_option, connected, holder_of
from leasehold.cli.durations import parse_duration
from leasehold.cli.output import Output, local_time
from leasehold.cli.parser import Commands, Group, positive_number

if TYPE_CHECKING:
    from leasehold.client.blocking.client import Client
    from leasehold.workflows.models import Delivery
    from leasehold.workflows.questions import WorkflowStatus

_WORKFLOW = "the workflow's id"


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    group = commands.add_group(
        "workflow",
        "look at workflows and their orchestrators",
        details="""\
A workflow has one orchestrator at a time, which holds a lease on it, and an epoch that rises with everything
the orchestrator does. Programs claim workflows; these commands are for people.

examples:
  leasehold workflow ls
  leasehold workflow show order-7""",
    )
    _add_looking(group)
    _add_revoke(group)
    _add_handoff(group)


def _add_looking(group: Group) -> None:
    listing = group.add(
        "ls",
        _list,
        "list workflows",
        details="""\
In the order of their ids. Those that were completed or cancelled are listed until they are pruned.

example:
  leasehold workflow ls --limit 20

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    listing.add_argument("--after", metavar="ID", default="", help="continue after this workflow")
    _add_limit(listing, 100)
    showing = group.add(
        "show",
        _show,
        "show a workflow, and who may act for it",
        details="""\
example:
  leasehold workflow show order-7

exit codes: 0 done · 1 no such workflow, or another error · 2 wrong usage""",
    )
    showing.add_argument("workflow", metavar="ID", help=_WORKFLOW)
    acting = group.add(
        "actions",
        _actions,
        "list what happened in a workflow",
        details="""\
Actions, changes of state, and what happened to the lease, oldest first, as subscribers of the bus get them.

example:
  leasehold workflow actions order-7 --json

exit codes: 0 done · 1 no such workflow, or another error · 2 wrong usage""",
    )
    acting.add_argument("workflow", metavar="ID", help=_WORKFLOW)
    acting.add_argument(
        "--after", metavar="N", type=positive_number, default=0, help="continue after this position"
    )
    _add_limit(acting, 1_000)


def _add_revoke(group: Group) -> None:
    parser = group.add(
        "revoke",
        _revoke,
        "forcibly end the lease of a workflow's orchestrator",
        details="""\
From then on the orchestrator is refused, and the workflow can be claimed by another. The bus and the history
say who did it and why.

example:
  leasehold workflow revoke order-7 --reason "orchestrator hangs"

exit codes: 0 revoked · 76 nobody has it · 1 error · 2 wrong usage""",
    )
    parser.add_argument("workflow", metavar="ID", help=_WORKFLOW)
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why; history keeps it")
    add_holder_option(parser, "who revokes it")


def _add_handoff(group: Group) -> None:
    parser = group.add(
        "handoff",
        _hand_off,
        "give a workflow to another orchestrator",
        details="""\
In one commit the old lease ends with the transfer action, and the successor has a new one, which it takes
with `claim_lease`. Only who holds the workflow can hand it off: say so with --holder.

example:
  leasehold workflow handoff order-7 --to standby --holder primary

exit codes: 0 handed off · 76 it is another's, or nobody's · 1 error · 2 wrong usage""",
    )
    parser.add_argument("workflow", metavar="ID", help=_WORKFLOW)
    parser.add_argument("--to", required=True, metavar="NAME", help="who gets it")
    parser.add_argument("--ttl", type=parse_duration, metavar="TIME", help="how long the new lease lasts")
    add_holder_option(parser, "who has it")


def _add_limit(parser: ArgumentParser, default: int) -> None:
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive_number,
        default=default,
        help="at most so many (default: %(default)s)",
    )


def _list(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        page = client.workflows.page(after=arguments.after, limit=arguments.limit)
    if out.as_json:
        from leasehold.workflows.shapes import workflow_shape

        out.json({"workflows": [workflow_shape(status) for status in page]})
        return
    if not page:
        out.line("no workflows")
        return
    rows = []
    for status in page:
        workflow = status.workflow
        orchestrator = workflow.holder if status.is_owned else "-"
        left = f"{status.lease.expires_in:.0f} s" if status.lease is not None and status.is_owned else "-"
        rows.append([workflow.workflow_id, workflow.state, str(workflow.epoch), orchestrator, left])
    out.table(["WORKFLOW", "STATE", "EPOCH", "ORCHESTRATOR", "EXPIRES IN"], rows)


def _show(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        status = _existing(client, arguments.workflow)
    if out.as_json:
        from leasehold.workflows.shapes import workflow_shape

        out.json(workflow_shape(status))
        return
    workflow, lease = status.workflow, status.lease
    out.facts(
        f"workflow {workflow.workflow_id}",
        [
            ("state", workflow.state),
            ("epoch", str(workflow.epoch)),
            ("orchestrator", workflow.holder if status.is_owned else "nobody"),
            ("lease", workflow.lease_id or None),
            ("token", str(workflow.token) if workflow.lease_id else None),
            ("expires in", None if lease is None else f"{lease.expires_in:.1f} s"),
            ("handed off", _handed_off(status)),
            ("started", local_time(workflow.started_at_ns)),
            ("changed", local_time(workflow.changed_at_ns)),
            ("ended", None if workflow.ended_at_ns is None else local_time(workflow.ended_at_ns)),
        ],
    )


def _handed_off(status: "WorkflowStatus") -> str | None:
    workflow = status.workflow
    if not workflow.handed_off:
        return None
    return "yes" if workflow.accepted_by else "yes, and not taken yet"


def _actions(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        _existing(client, arguments.workflow)
        found = client.workflows.actions(arguments.workflow, after=arguments.after, limit=arguments.limit)
    if out.as_json:
        from leasehold.workflows.shapes import message_shape

        out.json({"messages": [message_shape(one) for one in found]})
        return
    rows = []
    for one in found:
        kind, epoch, detail = _told(one)
        at = local_time(int(one.message.created_at.timestamp() * 1_000_000_000))
        rows.append([str(one.position), at, kind, epoch, detail])
    out.table(["POSITION", "TIME", "WHAT", "EPOCH", "DETAIL"], rows)


def _told(delivery: "Delivery") -> tuple[str, str, str]:
    from leasehold.workflows.models import Action

    message = delivery.message
    if isinstance(message, Action):
        return (
            message.action_type,
            str(message.epoch),
            message.target_node_type or message.payload.get("to", ""),
        )
    payload = message.payload
    detail = next((str(payload[name]) for name in ("state", "reason", "holder") if payload.get(name)), "")
    return message.event_type.value, str(payload["epoch"]), detail


def _revoke(arguments: Namespace, out: Output) -> None:
    from leasehold.workflows.errors import WorkflowLeaseNotFound

    with connected(arguments) as client:
        workflow = _existing(client, arguments.workflow).workflow
        if not workflow.lease_id:
            raise WorkflowLeaseNotFound(
                f"nobody has workflow {workflow.workflow_id}, so there is nothing to revoke",
                workflow_id=workflow.workflow_id,
            )
        event = client.workflows.manager.revoke_lease(
            workflow.lease_id, arguments.reason, operator=holder_of(arguments)
        )
    out.answer(
        {"workflow_id": workflow.workflow_id, "event": event.event_type.value, **event.payload},
        ("revoked", "yellow"),
        f" {workflow.workflow_id}: {workflow.holder} may not act for it",
    )


def _hand_off(arguments: Namespace, out: Output) -> None:
    from leasehold.errors import NotHolder
    from leasehold.workflows.errors import LeaseViolation
    from leasehold.workflows.law.records import resource_of

    holder = holder_of(arguments)
    with connected(arguments) as client:
        try:
            lease = client.workflows.handoff(
                arguments.workflow, to=arguments.to, holder=holder, ttl=arguments.ttl
            )
        except LeaseViolation:
            status = _existing(client, arguments.workflow)
            workflow = status.workflow
            if not status.is_owned or workflow.holder == holder:
                raise
            raise NotHolder(
                f"workflow {workflow.workflow_id} is {workflow.holder}'s",
                lease_id=workflow.lease_id,
                resource=resource_of(workflow.workflow_id),
                holder=workflow.holder,
            ) from None
    if out.as_json:
        shape = {"workflow_id": arguments.workflow, "lease_id": lease.lease_id, "token": lease.token}
        out.json(shape | {"holder": lease.holder})
    else:
        out.line(("handed off", "green"), f" {arguments.workflow} to {lease.holder}")
        out.line(f"  it takes the workflow with claim_lease({lease.lease_id!r})")


def _existing(client: "Client", workflow_id: str) -> "WorkflowStatus":
    from leasehold.workflows.errors import WorkflowNotFound

    status = client.workflows.find(workflow_id)
    if status is None:
        raise WorkflowNotFound(
            f"workflow {workflow_id} does not exist; `leasehold workflow ls` lists those that do",
            workflow_id=workflow_id,
        )
    return status
