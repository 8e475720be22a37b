"""Why a token never repeats: what raises the epoch, and by how much; and which history is impossible."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.events import LeaseExpired, LeaseIssued
from leasehold.kernel.ledger.authority import (
    COUNTER_LIMIT,
    COUNTER_RESERVE,
    EPOCH_LIMIT,
    EPOCH_ZERO_NS,
    FRACTION_LIMIT,
    Authority,
    Era,
    Outage,
    carry_over,
    evolve_authority,
    now_of,
    observe,
)
from leasehold.kernel.ledger.events import (
    EpochRaised,
    Event,
    FamiliesAdmitted,
    IllegalTransition,
    KeyEnrolled,
    RegistrarResumed,
    StoreOpened,
)
from leasehold.kernel.ledger.tick import Now, Tick
from tests.kernel.records import OF_LEASE, OF_STORE, TOKEN, a_reading, an_authority, an_era


def raised(authority: Authority, **reading: Any) -> EpochRaised:
    event = observe(authority, a_reading(**reading))
    assert isinstance(event, EpochRaised)
    assert observe(evolve_authority(authority, event), a_reading(**reading)) is None, "once is enough"
    return event


def test_a_new_store_begins_with_the_first_epoch_and_the_first_era() -> None:
    opened = StoreOpened(**OF_STORE, epoch=1)

    assert observe(None, a_reading()) == opened
    assert evolve_authority(None, opened) == an_authority(
        counter=0, era_first_tick=60, tick=60, wall_ns=6_000
    )


def test_a_clock_that_goes_on_is_no_event() -> None:
    assert observe(an_authority(), a_reading(tick_value=50)) is None
    assert observe(an_authority(), a_reading(tick_value=51, wall_ns=0)) is None


def test_a_reboot_raises_the_epoch_by_one_and_begins_an_era() -> None:
    event = raised(an_authority(), boot_id="boot-2", tick_value=3)

    assert (event.epoch, event.reason, event.tick) == (2, "reboot", Tick(value=3, era=2))
    assert (event.actor, event.at_ns, event.boot_id, event.identity) == ("registrar", 6_000, "boot-2", "8:77")
    assert evolve_authority(an_authority(), event) == an_authority(
        epoch=2, counter=0, era=2, era_first_tick=3, boot_id="boot-2", tick=3, wall_ns=6_000
    )


def test_a_clock_that_went_back_raises_the_epoch_by_one_and_begins_an_era() -> None:
    event = raised(an_authority(), tick_value=49)

    assert (event.epoch, event.reason, event.tick) == (2, "clock went back", Tick(value=49, era=2))


def test_a_clock_of_another_rate_is_another_clock() -> None:
    event = raised(an_authority(rate=1_000))

    assert (event.epoch, event.reason, event.tick) == (2, "reboot", Tick(value=60, era=2))


def test_a_store_under_another_name_raises_the_epoch_and_says_why_it_has_another() -> None:
    event = raised(an_authority(), identity="8:78")

    assert (event.epoch, event.reason, event.tick) == (2, "copied", Tick(value=60, era=1))
    assert event.identity == "8:78"
    assert evolve_authority(an_authority(), event) == an_authority(
        epoch=2, counter=0, identity="8:78", tick=60, wall_ns=6_000
    )
    assert raised(an_authority(), identity="8:78", cause="log lost").reason == "log lost"


def test_history_tells_all_that_is_not_as_it_was() -> None:
    event = raised(an_authority(), identity="8:78", boot_id="boot-2", tick_value=3)
    assert (event.epoch, event.reason, event.tick.era) == (2, "reboot, copied", 2)
    event = raised(an_authority(), identity="8:78", tick_value=49)
    assert (event.epoch, event.reason, event.tick.era) == (2, "clock went back, copied", 2)


def test_the_epoch_rises_above_one_that_the_database_does_not_know_of() -> None:
    event = raised(an_authority(epoch=3), epoch_floor=7)

    assert (event.epoch, event.reason, event.tick.era) == (8, "history lost", 1)
    assert observe(an_authority(epoch=7), a_reading(epoch_floor=7)) is None


def test_a_ledger_that_lacks_what_was_committed_raises_the_epoch() -> None:
    event = observe(an_authority(), a_reading(forgets=True))

    assert isinstance(event, EpochRaised)
    assert (event.epoch, event.reason) == (2, "history lost")


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    "reading", [{"boot_id": "boot-2"}, {"identity": "8:78"}, {"epoch_floor": 2}, {"tick_value": 49}]
)
def test_an_epoch_is_at_least_the_seconds_since_2026(reading: dict[str, Any]) -> None:
    event = raised(an_authority(), wall_ns=EPOCH_ZERO_NS + 1_234 * SECOND + SECOND // 4, **reading)

    assert (event.epoch, event.counter) == (1_234, FRACTION_LIMIT // 4)
    token = evolve_authority(an_authority(), event).next_token()
    assert token == 1_234 * COUNTER_LIMIT + FRACTION_LIMIT // 4 + 1


def test_a_new_store_begins_above_one_that_was_deleted() -> None:
    opened = observe(None, a_reading(wall_ns=EPOCH_ZERO_NS + 9 * SECOND))
    later = observe(None, a_reading(wall_ns=EPOCH_ZERO_NS + 9 * SECOND + 1_000_000))
    assert isinstance(opened, StoreOpened)
    assert isinstance(later, StoreOpened)

    assert opened.epoch == 9
    ahead = evolve_authority(None, later).next_token() - evolve_authority(None, opened).next_token()
    assert ahead > 2_000, "so many grants would have had to fit into a millisecond"


@pytest.mark.parametrize("seconds", [-1, 0, 1, EPOCH_LIMIT, EPOCH_LIMIT + 1])
def test_a_wall_clock_that_is_of_no_use_leaves_the_epoch_to_rise_by_one(seconds: int) -> None:
    event = raised(an_authority(), boot_id="boot-2", wall_ns=EPOCH_ZERO_NS + seconds * SECOND + 5)

    assert (event.epoch, event.counter) == (2, 0)


def test_the_last_epoch_is_followed_by_none() -> None:
    last = an_authority(epoch=EPOCH_LIMIT - 1)
    event = observe(last, a_reading(boot_id="boot-2"))
    assert event is not None

    with pytest.raises(IllegalTransition, match="came after epoch"):
        evolve_authority(last, event)


@pytest.mark.parametrize("counter", [-1, COUNTER_LIMIT])
def test_an_epoch_cannot_begin_with_an_impossible_counter(counter: int) -> None:
    with pytest.raises(IllegalTransition, match="begins with counter"):
        evolve_authority(None, StoreOpened(**OF_STORE, epoch=1, counter=counter))


def test_the_epoch_rises_before_one_batch_could_use_up_the_counter() -> None:
    nearly = COUNTER_LIMIT - COUNTER_RESERVE

    assert observe(an_authority(counter=nearly - 1), a_reading()) is None
    event = raised(an_authority(counter=nearly), tick_value=60)
    assert (event.epoch, event.reason, event.tick) == (2, "counter used up", Tick(value=60, era=1))
    assert COUNTER_RESERVE > 1_000 * 64, "a transaction has at most 1,000 claims on 64 resources each"
    assert FRACTION_LIMIT + COUNTER_RESERVE < COUNTER_LIMIT // 2, "each epoch has room for millions"


def test_tokens_rise_with_the_counter_and_with_the_epoch() -> None:
    assert an_authority(epoch=1, counter=0).next_token() == 2**23 + 1
    assert an_authority(epoch=1, counter=5).next_token() == 2**23 + 6
    assert (
        an_authority(epoch=2, counter=0).next_token()
        > an_authority(epoch=1, counter=COUNTER_LIMIT - 1).next_token()
    )


def test_the_largest_token_is_below_two_to_the_53rd() -> None:
    assert an_authority(epoch=2**30 - 1, counter=COUNTER_LIMIT - 2).next_token() == 2**53 - 1


def test_now_is_the_reading_in_the_present_era_and_never_before_the_high_water_mark() -> None:
    authority = an_authority(era=3, tick=50)

    assert now_of(authority, a_reading(tick_value=60)) == Now(tick=Tick(value=60, era=3), wall_ns=6_000)
    assert now_of(authority, a_reading(tick_value=40)) == Now(tick=Tick(value=50, era=3), wall_ns=6_000)


def test_every_event_moves_the_high_water_mark_and_only_a_grant_the_counter() -> None:
    expired = LeaseExpired(**OF_LEASE)
    issued = LeaseIssued(**(OF_LEASE | {"token": TOKEN + 8}), ttl_ns=50)

    assert evolve_authority(an_authority(), expired) == an_authority(tick=60, wall_ns=6_000)
    assert evolve_authority(an_authority(), issued) == an_authority(counter=9, tick=60, wall_ns=6_000)


def issued(token: int) -> LeaseIssued:
    return LeaseIssued(**(OF_LEASE | {"token": token}), ttl_ns=50)


def epoch_raised(**fields: Any) -> EpochRaised:
    return EpochRaised(**(OF_STORE | {"epoch": 2, "reason": "reboot"} | fields))


@pytest.mark.parametrize(
    ("authority", "event", "problem"),
    [
        (None, LeaseExpired(**OF_LEASE), "a ledger begins with store.opened"),
        (None, epoch_raised(), "a ledger begins with store.opened"),
        (an_authority(), StoreOpened(**OF_STORE, epoch=9), "the store was open already"),
        (an_authority(), epoch_raised(epoch=1), "epoch 1 came after epoch 1"),
        (an_authority(), epoch_raised(tick=Tick(value=49)), "at a time before"),
        (an_authority(), epoch_raised(tick=Tick(value=3, era=3)), "era 3 came after era 1"),
        (an_authority(era=2), epoch_raised(tick=Tick(value=60)), "era 1 came after era 2"),
        (an_authority(), LeaseExpired(**(OF_LEASE | {"tick": Tick(value=49)})), "at a time before"),
        (an_authority(era=2), LeaseExpired(**OF_LEASE), "at a time before"),
        (an_authority(rate=9), LeaseExpired(**OF_LEASE), "at a time before"),
        (an_authority(), issued(TOKEN), "is not above all others"),
        (an_authority(), issued(2 * COUNTER_LIMIT), "is not above all others"),
        (an_authority(epoch=2, counter=0), issued(2 * COUNTER_LIMIT - 1), "is not above all others"),
    ],
)
def test_a_history_that_the_law_could_not_have_produced_is_refused(
    authority: Authority | None, event: Event, problem: str
) -> None:
    with pytest.raises(IllegalTransition, match=problem):
        evolve_authority(authority, event)


def test_the_last_token_of_an_epoch_is_still_one_of_it() -> None:
    assert evolve_authority(an_authority(), issued(2 * COUNTER_LIMIT - 1)).counter == COUNTER_LIMIT - 1


def test_an_ended_era_remembers_its_first_and_last_moment() -> None:
    authority = an_authority()
    rebooted = observe(authority, a_reading(boot_id="boot-2", tick_value=3))
    assert rebooted is not None

    assert authority.eras_ended_by(rebooted) == [an_era()]


def test_a_new_epoch_of_the_same_era_ends_none() -> None:
    authority = an_authority()
    copied = observe(authority, a_reading(identity="8:78"))
    assert copied is not None

    assert authority.eras_ended_by(copied) == []


def second_era(**fields: Any) -> Authority:
    return an_authority(**({"era": 2, "era_first_tick": 3, "tick": 5} | fields))


@pytest.mark.parametrize(("expires", "left"), [(100, 50), (51, 1), (50, 0), (20, 0)])
def test_what_a_lease_had_left_is_counted_from_the_first_moment_of_the_next_era(
    expires: int, left: int
) -> None:
    carried = carry_over(Tick(value=expires), second_era(), {1: an_era()})

    assert carried == Tick(value=3 + left, era=2)


@pytest.mark.parametrize(("expires", "left"), [(100, 43), (58, 1), (57, 0), (52, 0)])
def test_the_eras_in_between_are_lived_through(expires: int, left: int) -> None:
    eras = {1: an_era(), 2: an_era(number=2, first_tick=4, last_tick=11)}

    carried = carry_over(Tick(value=expires), second_era(era=3), eras)

    assert carried == Tick(value=3 + left, era=3)


HOME = {1: an_era()}
BETWEEN = an_era(number=2, first_tick=4, last_tick=11)


@pytest.mark.parametrize(
    ("expires", "authority", "eras"),
    [
        pytest.param(Tick(value=100), second_era(), {}, id="its era is forgotten"),
        pytest.param(Tick(value=100), second_era(era=3), HOME, id="an era between is forgotten"),
        pytest.param(Tick(value=100, era=2), second_era(), HOME, id="it is of the present era"),
        pytest.param(Tick(value=100, era=3), second_era(), HOME, id="it is of a later era"),
        pytest.param(Tick(value=100, rate=9), second_era(), HOME, id="its rate is not that of its era"),
        pytest.param(Tick(value=100), second_era(rate=9), HOME, id="the present clock has another rate"),
        pytest.param(
            Tick(value=100),
            second_era(),
            {1: replace(an_era(), rate=9)},
            id="its era had another rate",
        ),
        pytest.param(
            Tick(value=100),
            second_era(era=3),
            HOME | {2: replace(BETWEEN, rate=9)},
            id="an era between had another rate",
        ),
    ],
)
def test_nobody_can_tell_when_a_lease_expires_if(
    expires: Tick, authority: Authority, eras: dict[int, Era]
) -> None:
    assert carry_over(expires, authority, eras) is None


OWN: dict[str, Any] = {"tick": Tick(value=60), "at_ns": 6_000, "actor": "registrar"}


def test_the_families_of_a_ledger_and_their_versions_are_added_up() -> None:
    first = evolve_authority(an_authority(), FamiliesAdmitted(**OWN, families={"lease": 1, "work": 1}))
    second = evolve_authority(first, FamiliesAdmitted(**OWN, families={"work": 2}))

    assert first.families == {"lease": 1, "work": 1}
    assert second.families == {"lease": 1, "work": 2}
    assert (second.counter, second.key_changes) == (1, 0)


def test_the_last_outage_is_the_one_that_counts() -> None:
    first = evolve_authority(an_authority(), RegistrarResumed(**OWN, down_since=55, settles_until=90))
    second = evolve_authority(first, RegistrarResumed(**OWN, down_since=58, settles_until=80))

    assert first.outage == Outage(since=55, until=60, settles_until=90)
    assert second.outage == Outage(since=58, until=60, settles_until=80)


@pytest.mark.parametrize(("new_era", "kept"), [(False, True), (True, False)])
def test_families_outlive_an_epoch_and_an_outage_only_within_its_era(*, new_era: bool, kept: bool) -> None:
    authority = an_authority(families={"lease": 1}, outage=Outage(since=1, until=2, settles_until=3))
    reading = {"boot_id": "boot-2"} if new_era else {"identity": "8:78"}

    after = evolve_authority(authority, raised(authority, **reading))

    assert after.families == {"lease": 1}
    assert (after.outage is not None) == kept


def test_only_what_happens_to_keys_counts_as_a_change_of_them() -> None:
    enrolled = evolve_authority(an_authority(), KeyEnrolled(**OWN, public_key=b"k"))

    assert enrolled.key_changes == 1
    assert evolve_authority(enrolled, LeaseExpired(**OF_LEASE)).key_changes == 1


def test_an_authority_without_families_or_an_outage_is_spelled_as_before() -> None:
    body = msgspec.json.encode(an_authority())

    assert b"families" not in body
    assert b"outage" not in body
    assert msgspec.json.decode(body, type=Authority) == an_authority()
