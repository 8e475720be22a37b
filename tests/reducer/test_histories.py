"""Random events, most of them refused: whatever is told, the invariants hold and a fold can be repeated."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as some

from leasehold.kernel.ledger.tick import Tick
from leasehold.reducer import EventRecord, LeaseError, LeaseReducer, ReducerContext, helpers
from tests.reducer.test_state import check_index

ids = some.sampled_from(["a", "b", "c"])
times = some.integers(min_value=0, max_value=12)
ticks = some.none() | some.builds(Tick, value=times, rate=some.sampled_from([1, 2]))
signatures = some.sampled_from([b"", b"signed", b"signed"])


def records(kind: str, payloads: some.SearchStrategy[bytes]) -> some.SearchStrategy[EventRecord]:
    return some.builds(
        EventRecord,
        some.just(kind),
        some.just("session"),
        ids,
        payloads,
        timestamp_ns=some.none() | times,
    )


events = some.one_of(
    records(
        "lease.issued",
        some.builds(
            helpers.lease_issued_payload,
            ids,
            ids,
            ids,
            times,
            times,
            signatures,
            issued_at_tick=ticks,
            expires_at_tick=ticks,
        ),
    ),
    records(
        "lease.renewed",
        some.builds(
            helpers.lease_renewed_payload,
            ids,
            times,
            signatures,
            renewed_at_tick=ticks,
            new_expires_at_tick=ticks,
        ),
    ),
    records("lease.released", some.builds(helpers.lease_released_payload, ids, some.just("completed"))),
    records(
        "lease.expired",
        some.builds(helpers.lease_expired_payload, ids, times, expired_at_tick=ticks),
    ),
    records("lease.issued", some.binary(max_size=8)),
)


def fold(history: list[EventRecord], reducer: LeaseReducer, first: int = 1) -> list[str]:
    """Return what each event was answered."""
    answers = []
    for position, event in enumerate(history, start=first):
        before = reducer.checkpoint()
        try:
            reducer.apply(event, ReducerContext(position))
        except LeaseError as error:
            assert reducer.checkpoint() == before, "a refusal changes nothing"
            answers.append(error.code)
        else:
            answers.append("taken in")
        check_index(reducer.state)
        check_leases(reducer)
    return answers


def check_leases(reducer: LeaseReducer) -> None:
    for lease in reducer.state.leases.values():
        assert lease.expires_at > lease.issued_at
        assert (lease.terminated_at is not None) == lease.state.is_terminal
        if lease.state.name == "EXPIRED":
            assert lease.terminated_at == lease.expires_at
        if lease.expires_at_tick is not None:
            assert lease.issued_at_tick is not None
            assert lease.expires_at_tick.value > lease.issued_at_tick.value
        else:
            assert lease.is_expired_at_tick(Tick(value=0, rate=1))


@given(some.lists(events, max_size=25))
def test_inv_0502_whatever_is_told_a_second_fold_answers_and_ends_the_same(
    history: list[EventRecord],
) -> None:
    first, second = LeaseReducer(), LeaseReducer()
    assert fold(history, first) == fold(history, second)
    assert first.state == second.state


@given(some.lists(events, max_size=25), some.integers(min_value=0, max_value=25))
def test_a_fold_that_goes_on_from_a_checkpoint_ends_like_one_that_never_stopped(
    history: list[EventRecord], cut: int
) -> None:
    whole, resumed = LeaseReducer(), LeaseReducer()
    fold(history, whole)
    early = LeaseReducer()
    fold(history[:cut], early)
    resumed.restore(early.checkpoint())
    fold(history[cut:], resumed, first=cut + 1)
    assert resumed.state == whole.state


@given(some.lists(events, max_size=25), times)
def test_pruning_at_any_time_touches_no_active_lease(history: list[EventRecord], before: int) -> None:
    reducer = LeaseReducer()
    with suppress(LeaseError):
        for position, event in enumerate(history, start=1):
            reducer.apply(event, ReducerContext(position))
    active = reducer.state.active_leases()
    late = [
        lease
        for lease in reducer.state.leases.values()
        if lease.terminated_at is not None and lease.terminated_at >= before
    ]
    reducer.state_mut.prune_terminal_leases_before(before)
    assert [lease for lease in reducer.state.leases.values() if lease.is_active] == active
    assert [lease for lease in reducer.state.leases.values() if not lease.is_active] == late
    check_index(reducer.state)
