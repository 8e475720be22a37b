"""queue: who waits for a resource. Nothing here changes anything."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from leasehold.cli.closings import shown_holder
from leasehold.cli.connecting import connected
from leasehold.cli.durations import format_duration
from leasehold.cli.naming import displayed, holders_of, resource
from leasehold.cli.output import Cell, Output
from leasehold.cli.parser import Commands

if TYPE_CHECKING:
    from leasehold.engine.questions import Waiter

HEADINGS = ("#", "HOLDER", "RESOURCE", "MODE", "PRIORITY", "WAITS", "ESTIMATE", "LEASE")


def add_commands(commands: Commands) -> None:
    """Add the command of this module."""
    parser = commands.add(
        "queue",
        _queue,
        "show who waits for a resource",
        details="""\
The next in line comes first. The estimate is how long it takes until their turn comes if everybody ahead
keeps the lease for its TTL, sharers side by side: less if somebody releases, more if somebody renews. For a
path, those who wait for something above or below it are in the same queue.

examples:
  leasehold queue report-42
  leasehold queue /srv/reports --json

exit codes: 0 done (a resource that nobody waits for is not an error) · 1 error · 2 wrong usage""",
    )
    parser.add_argument("resource", metavar="RESOURCE", type=resource, help="what they wait for")


def _queue(arguments: Namespace, out: Output) -> None:
    from leasehold.shapes import lease_shape, waiter_shape

    with connected(arguments) as client:
        held = holders_of(client, arguments.resource)
        waiters = client.queue(arguments.resource)
    if out.as_json:
        shape: dict[str, Any] = {"resource": arguments.resource}
        shape["held_by"] = [lease_shape(status) for status in held]
        shape["waiters"] = [waiter_shape(waiter) for waiter in waiters]
        out.json(shape)
        return
    for status in held:
        left = format_duration(status.expires_in)
        name = displayed(status.lease.resource)
        out.line(f"{name} is held by {shown_holder(status.lease)} ({status.lease.mode}), {left} left")
    print_waiters(out, waiters, displayed(arguments.resource))


def print_waiters(out: Output, waiters: "list[Waiter]", resource: str) -> None:
    """Write who waits as a table."""
    if not waiters:
        out.line(f"nobody waits for {resource}")
        return
    out.table(HEADINGS, [waiter_row(waiter) for waiter in waiters])


def waiter_row(waiter: "Waiter") -> list[Cell]:
    """Return the cells that a waiter is shown in."""
    lease = waiter.lease
    return [
        str(waiter.position),
        lease.holder,
        displayed(lease.resource),
        lease.mode.value,
        "-" if lease.ticket is None else str(lease.ticket.priority),
        format_duration(waiter.waited),
        f"≤ {format_duration(waiter.estimate)}",
        lease.lease_id,
    ]
