"""A caller bound to a tenant learns nothing of another one, and changes nothing there, whatever it sends."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from leasehold.engine.desk import answer_of
from leasehold.engine.jobs import Verify
from leasehold.engine.port import EntryQuery, LeaseQuery, Snapshot, Store
from leasehold.engine.questions import (
    Certify,
    FindBeginning,
    FindChildren,
    FindHead,
    FindHolders,
    FindLease,
    FindWaiters,
    FindWon,
    Followed,
    FollowLedger,
    IsAnythingDue,
    ListKeys,
    ListLeases,
    Question,
    ReadLedger,
)
from leasehold.engine.registrar import Registrar
from leasehold.errors import InvalidInput, LeaseNotFound, NotPermitted
from leasehold.kernel.lease.answers import Granted, Released, Waiting
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.commands import (
    ChangeMode,
    Derive,
    Release,
    Renew,
    Revoke,
    Spend,
    Transfer,
)
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.ledger.commands import Caller, Command, Sweep, SweepDue, SweptDue
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.registry import REPLIES
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import claim, expect, granted, release

OTHER = "initech"
OWN = "acme"


class Echo(Question[str | None], frozen=True, kw_only=True, tag="echo"):
    """Ask a face which tenant it is asked about."""


def echo(registrar: Registrar, question: Echo, snapshot: Snapshot) -> str | None:
    del registrar, snapshot
    return question.tenant


class House:
    """A store that two tenants use: what the other one has there, and a desk for a caller of one's own."""

    def __init__(self, store: Store) -> None:
        also: Any = {**REPLIES, Echo: echo}
        self.operator = Registrar(store, also=also)
        self.bound = Registrar(store, caller=Caller(access="key-1", tenant=OWN), also=also)
        self.theirs = self._grant(OTHER, "door", budget=Budget(tokens=5))
        self.child = granted(
            self.operator.call(
                Derive(
                    tenant=OTHER,
                    holder="ann",
                    parent_id=self.theirs.lease_id,
                    lease_id="their-child",
                    child_holder="cy",
                    resource="hatch",
                    budget=Budget(tokens=1),
                    request_id="derive",
                )
            )
        )
        expect(Waiting, self.operator.call(claim("door", "wes", tenant=OTHER, wait=True)))
        self.won = self._won()
        self.own = self._grant(OWN, "door")

    def _grant(self, tenant: str, resource: str, **fields: Any) -> Lease:
        return granted(self.operator.call(claim(resource, tenant=tenant, **fields)))

    def _won(self) -> Lease:
        """A lease of the other tenant that a waiter was just granted, and has not confirmed."""
        before = self._grant(OTHER, "gate")
        waiting = claim("gate", "will", tenant=OTHER, wait=True)
        expect(Waiting, self.operator.call(waiting))
        self.operator.call(release(before))
        found = self.operator.ask(FindLease(lease_id=waiting.lease_id))
        assert found is not None
        assert found.lease.state is LeaseState.ACTIVE
        return found.lease


@pytest.fixture
def house(store: Store) -> Iterator[House]:
    made = House(store)
    yield made
    made.bound.close()
    made.operator.close()


QUESTIONS: dict[type[Question[Any]], Callable[[House], Question[Any]]] = {
    FindLease: lambda house: FindLease(lease_id=house.theirs.lease_id),
    FindHolders: lambda house: FindHolders(resource="gate"),
    FindChildren: lambda house: FindChildren(lease_id=house.theirs.lease_id),
    FindWaiters: lambda house: FindWaiters(resource="door"),
    FindWon: lambda house: FindWon(lease_ids=(house.won.lease_id,)),
    ListLeases: lambda house: ListLeases(query=LeaseQuery(holder="wes")),
    ReadLedger: lambda house: ReadLedger(query=EntryQuery(lease_id=house.theirs.lease_id)),
    FollowLedger: lambda house: FollowLedger(query=EntryQuery(lease_id=house.theirs.lease_id)),
}
"""A question about what the other tenant has, for every kind that a tenant may ask."""


def is_nothing(answer: Any) -> bool:
    return not (answer.entries if isinstance(answer, Followed) else answer)


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_question_about_all_tenants_is_about_the_callers_own(
    house: House, kind: type[Question[Any]]
) -> None:
    question = QUESTIONS[kind](house)
    theirs = msgspec.structs.replace(question, tenant=OTHER)
    assert not is_nothing(house.operator.ask(theirs)), "there is something to be seen"

    assert is_nothing(house.bound.ask(question))


@pytest.mark.parametrize("kind", [*QUESTIONS, Certify, FindHead, ListKeys, FindBeginning, Echo])
def test_a_question_about_another_tenant_is_refused(house: House, kind: type[Question[Any]]) -> None:
    fields = {"lease_id": house.theirs.lease_id} if kind is Certify else {}
    question = QUESTIONS[kind](house) if kind in QUESTIONS else kind(**fields)

    with pytest.raises(NotPermitted, match="bound to tenant acme"):
        house.bound.ask(msgspec.structs.replace(question, tenant=OTHER))


@pytest.mark.parametrize(
    "question",
    [
        ListLeases(query=LeaseQuery(tenant=OTHER)),
        ReadLedger(query=EntryQuery(tenant=OTHER)),
        FollowLedger(query=EntryQuery(tenant=OTHER)),
    ],
)
def test_a_query_inside_a_question_cannot_be_about_another_tenant(
    house: House, question: Question[Any]
) -> None:
    assert not is_nothing(house.operator.ask(question))

    for tenant in (None, OWN):
        with pytest.raises(InvalidInput, match="its query about initech"):
            house.bound.ask(msgspec.structs.replace(question, tenant=tenant))


def test_a_page_has_only_what_is_the_callers_own(house: House) -> None:
    leases = house.bound.ask(ListLeases(query=LeaseQuery()))
    entries = house.bound.ask(ReadLedger(query=EntryQuery()))
    followed = house.bound.ask(FollowLedger(query=EntryQuery()))

    assert [status.lease for status in leases] == [house.own]
    assert [entry.event.filing[0] for entry in entries] == [OWN]
    assert followed.entries == entries


def test_what_several_leases_were_granted_is_told_only_if_all_are_the_callers(house: House) -> None:
    mine = claim("gate", "will", tenant=OWN, wait=True)
    before = granted(house.operator.call(claim("gate", tenant=OWN)))
    expect(Waiting, house.operator.call(mine))
    house.operator.call(release(before))
    assert granted(house.bound.ask(FindWon(lease_ids=mine.lease_ids))).tenant == OWN

    both = FindWon(lease_ids=(mine.lease_id, house.won.lease_id))
    assert len(expect(Granted, house.operator.ask(both)).also) == 1
    assert house.bound.ask(both) is None


def test_a_lease_of_another_tenant_gets_no_certificate(house: House) -> None:
    with pytest.raises(LeaseNotFound):
        house.bound.ask(Certify(lease_id=house.theirs.lease_id))
    assert house.bound.ask(Certify(lease_id=house.own.lease_id))


def test_a_face_is_asked_about_the_callers_own_tenant(house: House) -> None:
    assert house.operator.ask(Echo()) is None
    assert house.bound.ask(Echo()) == OWN


def test_what_belongs_to_no_tenant_is_for_everybody(house: House) -> None:
    questions: tuple[Question[Any], ...] = (FindHead(), ListKeys(), FindBeginning())
    for question in questions:
        assert house.bound.ask(question) == house.operator.ask(question)


def test_whether_anything_is_due_is_for_operators(house: House, clock: FakeClock) -> None:
    clock.advance(11)
    assert house.operator.ask(IsAnythingDue()) is True
    with pytest.raises(NotPermitted):
        house.bound.ask(IsAnythingDue())


def test_every_question_of_the_engine_is_tried_here() -> None:
    tried = {*QUESTIONS, Certify, FindHead, ListKeys, FindBeginning, IsAnythingDue}
    assert {kind for kind in Question.__subclasses__() if kind.__module__ == FindLease.__module__} == tried


COMMANDS: list[Callable[[House], Command]] = [
    lambda house: claim("window", tenant=OTHER),
    lambda house: Derive(
        tenant=OTHER,
        holder="ann",
        parent_id=house.theirs.lease_id,
        lease_id="another-child",
        child_holder="ann",
        resource="roof",
        budget=Budget(tokens=1),
        request_id="r",
    ),
    lambda house: Spend(
        tenant=OTHER,
        holder="ann",
        lease_id=house.theirs.lease_id,
        amounts=Amounts(tokens=1),
        request_id="r",
    ),
    lambda house: Renew(tenant=OTHER, holder="ann", lease_ids=(house.theirs.lease_id,), request_id="r"),
    lambda house: Release(tenant=OTHER, holder="ann", lease_ids=(house.theirs.lease_id,), request_id="r"),
    lambda house: Revoke(
        tenant=OTHER, lease_id=house.theirs.lease_id, operator="ann", reason="mine", request_id="r"
    ),
    lambda house: ChangeMode(
        tenant=OTHER, holder="ann", lease_id=house.theirs.lease_id, mode=Mode.SHARED, request_id="r"
    ),
    lambda house: Transfer(
        tenant=OTHER,
        holder="ann",
        lease_id=house.theirs.lease_id,
        to="bob",
        new_lease_id="taken",
        request_id="r",
    ),
    lambda house: Sweep(tenant=OWN, family="lease", key=house.theirs.lease_id, request_id="r"),
    lambda house: SweepDue(tenant=OWN, limit=10, request_id="r"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_for_another_tenant_is_refused_and_changes_nothing(
    house: House, command: Callable[[House], Command]
) -> None:
    before = house.operator.ask(FindHead())

    refusal = expect(Refusal, house.bound.call(command(house)))

    assert refusal.rule == "NOT_PERMITTED"
    with pytest.raises(NotPermitted, match="bound to tenant acme"):
        answer_of(refusal, Granted)
    assert house.operator.ask(FindHead()) == before


def test_the_callers_own_commands_are_run_beside_refused_ones(house: House) -> None:
    granted(house.bound.call(claim("window", tenant=OWN)))
    outcomes: list[Any] = []
    house.bound.submit(claim("roof", tenant=OTHER), outcomes.append)
    expect(Released, house.bound.call(release(house.own)))
    house.bound.close()

    assert expect(Refusal, outcomes[0]).rule == "NOT_PERMITTED"


def test_an_operator_acts_for_every_tenant(house: House, clock: FakeClock) -> None:
    clock.advance(11)
    assert expect(SweptDue, house.operator.call(SweepDue(limit=10, request_id="r"))).ended > 0


def test_jobs_are_for_operators(house: House) -> None:
    house.operator.start_job("job", Verify())
    asks: list[Callable[[], object]] = [
        lambda: house.bound.start_job("mine", Verify()),
        lambda: house.bound.find_job("job"),
        lambda: house.bound.cancel_job("job"),
    ]
    for ask in asks:
        with pytest.raises(NotPermitted, match="about the whole store, and this caller is bound to tenant"):
            ask()
