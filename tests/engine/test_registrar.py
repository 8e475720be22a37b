"""The registrar as a client sees it: commands in, answers out, and looks that wait for nobody."""

from collections.abc import Iterator

import msgspec
import pytest
from msgspec.structs import replace

from leasehold.engine.desk import Failure, answer_of
from leasehold.engine.port import EntryQuery, LeaseQuery, Store
from leasehold.engine.questions import (
    PAGE_MAXIMUM,
    FindHead,
    FindHolders,
    FindLease,
    FindWon,
    LeaseStatus,
    ListLeases,
    ReadLedger,
)
from leasehold.engine.registrar import Registrar
from leasehold.errors import ClientClosed, Held, InvalidInput, StoreError, StoreFailed, StoreFull
from leasehold.kernel.lease.answers import Granted, Released
from leasehold.kernel.lease.commands import Renew, Wanted
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.ticket import CLAIM_WINDOW_NS
from leasehold.kernel.ledger.commands import SweepDue, SweptDue
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND as SECOND
from leasehold.stores.memory import MemoryStore
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import SIGNAL_SECONDS, Caller, WatchedStore, claim, expect, granted, release


@pytest.fixture
def registrar(store: Store) -> Iterator[Registrar]:
    made = Registrar(store)
    yield made
    made.close()


def grant(registrar: Registrar, resource: str = "door", holder: str = "ann", **fields: object) -> Lease:
    return granted(registrar.call(claim(resource, holder, **fields)))


def test_a_new_store_is_opened_by_its_first_event(registrar: Registrar) -> None:
    assert [entry.event.type for entry in registrar.ask(ReadLedger(query=EntryQuery()))] == ["store.opened"]
    assert registrar.ask(FindHead()).position == 1


def test_a_lease_is_found_by_its_id_with_what_it_has_left(registrar: Registrar, clock: FakeClock) -> None:
    lease = grant(registrar)
    clock.advance(4)

    assert registrar.ask(FindLease(lease_id=lease.lease_id)) == LeaseStatus(lease=lease, expires_in=6.0)
    assert registrar.ask(FindLease(lease_id="no such lease")) is None


def test_a_lease_that_is_over_has_nothing_left(registrar: Registrar, clock: FakeClock) -> None:
    expired, released = grant(registrar, "a"), grant(registrar, "b")
    registrar.call(release(released))
    clock.advance(10)

    for lease in (expired, released):
        status = registrar.ask(FindLease(lease_id=lease.lease_id))
        assert status is not None
        assert (status.expires_in, status.is_live) == (0.0, False)


def test_a_waiter_sees_what_it_has_won_while_there_is_time_to_confirm_it(
    registrar: Registrar, clock: FakeClock
) -> None:
    window = CLAIM_WINDOW_NS // SECOND
    first = grant(registrar, holder="ann")
    waiting = claim("door", "bob", wait=True)
    registrar.call(waiting)
    assert registrar.ask(FindWon(lease_ids=waiting.lease_ids)) is None, "it waits"
    registrar.call(release(first))

    won = registrar.ask(FindWon(lease_ids=waiting.lease_ids))

    assert won is not None
    assert (won.lease.holder, won.lease.is_unconfirmed, won.expires_in_ns) == ("bob", True, window * SECOND)
    clock.advance(window / 2)
    assert registrar.ask(FindWon(lease_ids=waiting.lease_ids)) is None, "it had better ask"
    assert not granted(registrar.call(waiting)).is_unconfirmed
    assert registrar.ask(FindWon(lease_ids=waiting.lease_ids)) is None, "there is nothing to confirm"
    assert registrar.ask(FindWon(lease_ids=("no such lease",))) is None


def test_what_would_leave_a_lock_delay_is_not_taken_by_looking(registrar: Registrar) -> None:
    first = grant(registrar, holder="ann")
    waiting = claim("door", "bob", wait=True, lock_delay_ns=SECOND)
    registrar.call(waiting)
    registrar.call(release(first))

    assert registrar.ask(FindWon(lease_ids=waiting.lease_ids)) is None, (
        "what nobody confirmed leaves no delay behind"
    )
    assert granted(registrar.call(waiting)).lock_delay_ns == SECOND


def test_nothing_is_taken_by_looking_once_the_clock_has_gone_back(
    registrar: Registrar, clock: FakeClock
) -> None:
    first = grant(registrar, holder="ann")
    waiting = claim("door", "bob", wait=True)
    registrar.call(waiting)
    registrar.call(release(first))
    clock.set_back(1)

    assert registrar.ask(FindWon(lease_ids=waiting.lease_ids)) is None


def test_what_was_won_together_is_seen_together(registrar: Registrar) -> None:
    first = grant(registrar, "door", "ann")
    waiting = claim("door", "bob", wait=True, also=(Wanted(resource="window"),))
    registrar.call(waiting)
    registrar.call(release(first))

    won = registrar.ask(FindWon(lease_ids=waiting.lease_ids))

    assert won is not None
    assert [one.resource for one in (won.lease, *won.also)] == ["door", "window"]


def test_who_stands_on_a_resource_is_told_in_order_of_token(registrar: Registrar, clock: FakeClock) -> None:
    grant(registrar, "door", "gone", mode=Mode.SHARED, ttl_ns=10**9)
    clock.advance(1)
    shared = [grant(registrar, "door", name, mode=Mode.SHARED) for name in ("bob", "ann", "eve")]
    grant(registrar, "window", "ann")

    statuses = registrar.ask(FindHolders(tenant="default", resource="door"))

    assert [status.lease for status in statuses] == shared
    assert registrar.ask(FindHolders(tenant="another tenant", resource="door")) == []


def test_pages_are_from_one_to_the_maximum(registrar: Registrar) -> None:
    for limit in (0, -1, PAGE_MAXIMUM + 1):
        with pytest.raises(InvalidInput, match="limit"):
            registrar.ask(ListLeases(query=LeaseQuery(limit=limit)))
        with pytest.raises(InvalidInput, match="limit"):
            registrar.ask(ReadLedger(query=EntryQuery(limit=limit)))
    assert registrar.ask(ListLeases(query=LeaseQuery(limit=PAGE_MAXIMUM))) == []


def swept(registrar: Registrar, limit: int) -> int:
    return expect(SweptDue, registrar.call(SweepDue(limit=limit, request_id="sweep"))).ended


def test_a_sweep_records_the_ends_that_nobody_has_recorded(registrar: Registrar, clock: FakeClock) -> None:
    old = [grant(registrar, f"door-{number}").lease_id for number in range(3)]
    clock.advance(5)
    grant(registrar, "young")
    assert swept(registrar, 10) == 0
    clock.advance(5)

    assert swept(registrar, 2) == 2
    assert swept(registrar, 10) == 1
    ended = registrar.ask(ListLeases(query=LeaseQuery(states=(LeaseState.EXPIRED,))))
    assert sorted(status.lease.lease_id for status in ended) == sorted(old)


def test_a_look_does_not_wait_for_a_writer(clock: FakeClock) -> None:
    store = WatchedStore(MemoryStore(clock))
    registrar = Registrar(store)
    lease = grant(registrar)
    store.occupy()
    writer = Caller(lambda: registrar.call(claim("window")))
    assert store.waiting.acquire(timeout=SIGNAL_SECONDS)

    assert registrar.ask(FindLease(lease_id=lease.lease_id)) is not None
    assert len(registrar.ask(ListLeases(query=LeaseQuery()))) == 1
    assert registrar.ask(FindHead()).position == 2
    store.vacate()
    granted(writer.outcome())
    registrar.close()


def test_a_retry_gets_the_lease_of_the_first_time(registrar: Registrar, clock: FakeClock) -> None:
    command = claim("door")
    first = registrar.call(command)
    clock.advance(3)
    again = registrar.call(command)

    assert isinstance(first, Granted)
    assert isinstance(again, Granted)
    assert again.lease == first.lease
    assert (again.repeated, again.ended, again.expires_in_ns) == (True, False, 7 * 10**9)


def test_an_outcome_is_an_answer_or_an_error(registrar: Registrar) -> None:
    outcome = registrar.call(claim("door"))

    assert answer_of(outcome, Granted) is outcome
    with pytest.raises(Held) as held:
        answer_of(registrar.call(claim("door", "bob")), Granted)
    assert held.value.holder == "ann"
    with pytest.raises(StoreFull):
        answer_of(Failure.of(StoreFull("no space")), Granted)
    with pytest.raises(TypeError, match="expected Released, got Granted"):
        answer_of(outcome, Released)


def test_a_defect_is_not_told_as_a_refusal_even_where_nobody_knows_the_exception() -> None:
    import leasehold.cli.entry  # noqa: F401 - it has an error under the same code

    failure = Failure.of(KeyError("x"))
    assert isinstance(failure.error(), KeyError)
    afar = msgspec.json.decode(msgspec.json.encode(replace(failure, cause=None)), type=Failure)

    assert (afar.code, afar.is_unknown) == ("DEFECT", True)
    assert isinstance(afar.error(), StoreFailed)
    assert str(afar.error()) == "KeyError: 'x'"


@pytest.mark.parametrize(("is_unknown", "kind"), [(True, StoreFailed), (False, StoreError)])
def test_a_failure_with_a_code_that_is_not_known_here_still_says_whether_its_outcome_is(
    is_unknown: bool, kind: type[StoreError]
) -> None:
    failure = Failure(code="CAMERA_ON_FIRE", message="smoke", facts={"path": "/"}, is_unknown=is_unknown)
    error = failure.error()

    assert type(error) is kind
    assert kind.outcome_unknown is is_unknown
    assert (str(error), error.path) == ("smoke", "/")


def test_a_closed_registrar_takes_no_commands(registrar: Registrar) -> None:
    registrar.close()
    registrar.close()

    with pytest.raises(ClientClosed):
        registrar.call(Renew(lease_ids=("x",), holder="ann", request_id="r"))
    with pytest.raises(ClientClosed):
        registrar.ask(FindLease(lease_id="x"))


def test_states_prefixes_and_holders_narrow_a_page(registrar: Registrar) -> None:
    ended = grant(registrar, "rooms/1", "ann")
    registrar.call(release(ended))
    kept = grant(registrar, "rooms/1", "bob")
    other = grant(registrar, "roof", "ann")

    def found(query: LeaseQuery) -> list[str]:
        return [status.lease.lease_id for status in registrar.ask(ListLeases(query=query))]

    assert found(LeaseQuery(resource_prefix="rooms/")) == [ended.lease_id, kept.lease_id]
    assert found(LeaseQuery(resource_prefix="roo", states=(LeaseState.ACTIVE,))) == [
        kept.lease_id,
        other.lease_id,
    ]
    assert found(LeaseQuery(holder="ann", states=(LeaseState.RELEASED,))) == [ended.lease_id]


def test_a_look_after_a_reboot_shows_what_a_surviving_lease_has_left(store: Store, clock: FakeClock) -> None:
    before = Registrar(store)
    survivor = grant(before, "door", bound_to_boot=False)
    mortal = grant(before, "gate")
    clock.advance(4)
    grant(before, "yard")  # The last the registrar saw of the old clock.
    clock.reboot()

    after = Registrar(store)

    left = after.ask(FindLease(lease_id=survivor.lease_id))
    assert left is not None
    assert left.expires_in == 6.0
    assert after.ask(FindHolders(tenant="default", resource="door")) == [left]
    assert after.ask(FindLease(lease_id=mortal.lease_id)) == LeaseStatus(lease=mortal, expires_in=0.0)
