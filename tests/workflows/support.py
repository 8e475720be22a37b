"""Clients on a store file, over a disk of the test's own; and the law, asked without the face's caution."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leasehold import Client
from leasehold.engine.audit import audit
from leasehold.engine.registrar import Registrar
from leasehold.registry import FAMILIES, REPLIES
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.faults import FaultyDisk
from leasehold.workflows.law.commands import Emit
from leasehold.workflows.law.events import ActionFacts

STEP = ActionFacts(action_type="step")


@contextmanager
def client_of(path: Path, *, holder: str, disk: FaultyDisk | None = None) -> Iterator[Client]:
    """Connect like `leasehold.connect`, but to a disk of the test's own."""
    store = SqliteStore(path, vfs=None if disk is None else disk.name, families=FAMILIES)
    try:
        client = Client(Registrar(store, also=REPLIES), holder=holder)
    except BaseException:
        store.close()
        raise
    with client:
        yield client


def emit_blindly(client: Client, workflow_id: str, lease_id: str, *, epoch: int, request: str) -> Any:
    """Emit as who believes in a lease without looking at any clock; return the registrar's answer."""
    command = Emit(
        workflow_id=workflow_id,
        lease_id=lease_id,
        holder=client.holder,
        epoch=epoch,
        action_id=f"action of {request}",
        action=STEP,
        request_id=request,
    )
    return client._session.send(command)


def steps_of(client: Client, workflow_id: str) -> list[int]:
    """The epochs of all actions of a workflow, in the order of the ledger."""
    found = client.workflows.actions(workflow_id, limit=10_000)
    return [one.message.epoch for one in found if hasattr(one.message, "epoch")]


def problems_of(path: Path) -> list[str]:
    """What is wrong with a store, looked at through a connection of its own."""
    store = SqliteStore(path, create=False, families=FAMILIES)
    try:
        return audit(store).problems
    finally:
        store.close()
