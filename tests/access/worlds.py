"""Worlds that are the same in everything but whose things there are."""

from pathlib import Path
from typing import Any

from leasehold.access.authentication import authenticate
from leasehold.access.law.commands import CreateAccessKey
from leasehold.access.law.model import ALL, Role, mark_of
from leasehold.access.secret import KeyText
from leasehold.engine.job_runner import JobRunner
from leasehold.engine.port import Store
from leasehold.engine.registrar import Registrar
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Acquire, Derive, Release
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.registry import CARRIERS, REPLIES, all_families
from leasehold.settings.law import ChangeSetting
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from leasehold.work.law.commands import Enqueue, TryAcquire
from leasehold.workflows.law.commands import Claim, Emit, MarkGuard, Subscribe
from leasehold.workflows.law.events import ActionFacts
from tests.access.samples import key_id_of

OWN = "acme"
SECRETS = {role: KeyText("", f"{number}" * 64) for number, role in enumerate(Role)}
_SECOND = 10**9


class World:
    """A registrar with what some owners have, and keys of every role: for one tenant, and for all."""

    def __init__(self, *owners: str, folder: Path | None = None) -> None:
        clock, families = FakeClock(), all_families()
        store: Store = MemoryStore(clock, families=families)
        if folder is not None:
            store = SqliteStore(folder, clock=clock, durability="fast", families=families)
        self.registrar = Registrar(store, also=REPLIES, jobs=JobRunner(store, CARRIERS))
        for owner in owners:
            for command in belongings(owner):
                self.do(command)
        for tenant in (OWN, ALL):
            for role in Role:
                self.do(_key(tenant, role))

    def do(self, command: Command) -> Any:
        outcome = self.registrar.call(command)
        assert not isinstance(outcome, Refusal), outcome
        return outcome

    def desk(self, tenant: str, role: Role) -> Registrar:
        """The desk of a bearer."""
        key_id = _key(tenant, role).key_id
        caller = authenticate(self.registrar, KeyText(key_id, SECRETS[role].secret).text)
        assert caller is not None
        return self.registrar.for_caller(caller)

    def close(self) -> None:
        self.registrar.close()


def _key(tenant: str, role: Role) -> CreateAccessKey:
    return CreateAccessKey(
        tenant=tenant or OWN,
        request_id=f"create {tenant} {role}",
        holder="root",
        key_id=f"{mark_of(tenant)}{list(Role).index(role):02}aa",
        digest=SECRETS[role].digest,
        role=role,
        for_all=not tenant,
    )


def belongings(owner: str) -> list[Command]:
    """Everything that an owner has, of every family."""

    def named(what: str) -> dict[str, Any]:
        return {"tenant": owner, "request_id": f"{owner} {what}", "holder": f"{owner}-ann"}

    door, flow = f"{owner}-door", f"{owner}-flow"
    return [
        Acquire(
            **named("acquire"),
            lease_id=f"{owner}-lease",
            resource=door,
            ttl_ns=600 * _SECOND,
            budget=Budget(tokens=9),
        ),
        Derive(
            **named("derive"),
            parent_id=f"{owner}-lease",
            lease_id=f"{owner}-child",
            resource=f"{owner}-hatch",
            child_holder=f"{owner}-cy",
            budget=Budget(tokens=1),
        ),
        Acquire(
            **{**named("wait"), "holder": f"{owner}-wes"},
            lease_id=f"{owner}-waiting",
            resource=door,
            ttl_ns=600 * _SECOND,
            wait=True,
        ),
        Acquire(**named("gone"), lease_id=f"{owner}-gone", resource=f"{owner}-gate", ttl_ns=600 * _SECOND),
        Release(**named("release"), lease_ids=(f"{owner}-gone",)),
        Enqueue(**named("enqueue"), domain=f"{owner}-orders", offsets=(5, 6)),
        TryAcquire(**named("work"), domain=f"{owner}-orders", offset=5, ttl_ns=600 * _SECOND),
        Claim(**named("claim"), workflow_id=flow, lease_id=f"{owner}-leading", ttl_ns=600 * _SECOND),
        Emit(
            **named("emit"),
            workflow_id=flow,
            lease_id=f"{owner}-leading",
            epoch=0,
            action_id=f"{owner}-action",
            action=ActionFacts(action_type="ship"),
        ),
        Subscribe(**named("subscribe"), name=f"{owner}-reader", position=0),
        MarkGuard(
            **named("mark"),
            name=f"{owner}-reader",
            workflow_id=flow,
            lease_id=f"{owner}-leading",
            token=1,
            epoch=1,
            action_id=f"{owner}-action",
        ),
        ChangeSetting(**named("set"), key="max_renewals", value=5, resource=door),
        CreateAccessKey(
            **named("key"), key_id=key_id_of(owner), digest="f" * 64, role=Role.VIEWER, description=owner
        ),
    ]
