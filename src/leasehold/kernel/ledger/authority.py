"""Epochs, eras and tokens: why a fencing token never repeats.

A token is `epoch * 2**23 + counter`. The counter rises with every grant and is stored with it. The
epoch rises, durably and before the next grant, whenever the store may have forgotten grants (a power cut
under relaxed durability, a restored or copied store, a lost log) or cannot trust its clock. So a grant that
was forgotten can share its counter with a later one, but never its token.

What was forgotten may itself have raised the epoch. So every epoch is above the one before, above the
highest that is kept outside the database, and at least the seconds since 2026. Where it is those seconds, the
counter begins at the fraction of the second: tokens do not run ahead of the wall clock, as long as a store
grants fewer than two million leases a second. So of two restores of one backup, or two stores made one after
the other in one place, the later one has the higher tokens, even if they are less than a second apart.

An *era* is one uninterrupted run of the clock. It ends when the machine reboots, or when the clock reads
less than it did before. The ticks of an ended era still say how much time a lease had left when the
registrar last looked, and `carry_over` moves that remainder into the present era.

Not promised: a machine that is rolled back as a whole, store and clock together, looks from inside as if
nothing had happened. An operator says so with `restore`. And where nothing but the wall clock tells two
restores apart, setting it back between them makes tokens repeat.
"""

from typing import ClassVar

import msgspec
from msgspec.structs import replace

from leasehold.kernel.ledger.events import (
    REGISTRAR,
    EpochRaised,
    Event,
    FamiliesAdmitted,
    IllegalTransition,
    KeyEvent,
    RegistrarResumed,
    StoreEvent,
    StoreOpened,
    Token,
)
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND, Now, Tick

COUNTER_BITS = 23
COUNTER_LIMIT = 1 << COUNTER_BITS
COUNTER_RESERVE = 1 << 19
"""More than one transaction grants. The epoch rises while that many are left, as it cannot in mid-batch."""
FRACTION_LIMIT = 1 << 21
"""Below this, the counter of an epoch that is named after a second begins."""
EPOCH_LIMIT = 1 << 30
"""Below this are all epochs. Seconds since 2026 get there in 2060."""
EPOCH_ZERO_NS = 1_767_225_600 * NANOSECONDS_PER_SECOND
"""The first moment of 2026, from which epochs count seconds."""

COPIED = "copied"
"""Why an epoch rises in a copy of a store: the original may be in use as well."""


class ClockReading(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a store reads inside a transaction: its clock, and which clock and which file that is."""

    tick_value: int
    wall_ns: int
    boot_id: str
    identity: str
    """Names the store such that a copy, or one that lost files, has another name than it had."""
    cause: str = COPIED
    """Why the name is another, if it is."""
    epoch_floor: int = 0
    """The highest epoch that is known from outside the database."""
    forgets: bool = False
    """Whether the ledger lacks an entry that is known from outside the database to have been committed."""
    rate: ClassVar[int] = NANOSECONDS_PER_SECOND
    """Durations are nanoseconds everywhere, so the authority clock has to count them."""


class Era(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An ended era: the clock it ran on, and the first and last tick the registrar saw of it."""

    number: int
    boot_id: str
    first_tick: int
    last_tick: int
    rate: int


class Outage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A time in which the registrar was down, in tick values of the present era."""

    since: int
    until: int
    settles_until: int
    """Until when those come first whose leases lapsed meanwhile."""


class Authority(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The registrar's own record: where tokens, time and the ledger stand."""

    epoch: int
    counter: int
    era: int
    era_first_tick: int
    boot_id: str
    identity: str
    tick: int
    """The high-water mark: no later reading of this era may be lower."""
    wall_ns: int
    rate: int = NANOSECONDS_PER_SECOND
    key_changes: int = 0
    """How often a key was enrolled or retired, so that a sealer notices without reading all keys."""
    families: dict[str, int] = {}
    """The version of every family that the ledger may have events of."""
    outage: Outage | None = None
    """The last time in this era in which the registrar was down; None: it was not."""

    def next_token(self) -> Token:
        """Return the token that the next grant gets."""
        return self.epoch * COUNTER_LIMIT + self.counter + 1

    def eras_ended_by(self, event: Event) -> list[Era]:
        """Return the present era, as it is remembered once it is over, if an event ends it."""
        if event.tick.era == self.era:
            return []
        ended = Era(
            number=self.era,
            boot_id=self.boot_id,
            first_tick=self.era_first_tick,
            last_tick=self.tick,
            rate=self.rate,
        )
        return [ended]


def observe(authority: Authority | None, reading: ClockReading) -> StoreEvent | None:
    """Return the event that must come before anything else in this transaction, if there is one."""
    if authority is None:
        epoch, counter = next_epoch(reading.epoch_floor, reading.wall_ns)
        return StoreOpened(
            tick=Tick(value=reading.tick_value, era=1, rate=reading.rate),
            at_ns=reading.wall_ns,
            actor=REGISTRAR,
            epoch=epoch,
            counter=counter,
            boot_id=reading.boot_id,
            identity=reading.identity,
        )
    if (
        reading.boot_id == authority.boot_id
        and reading.rate == authority.rate
        and reading.tick_value >= authority.tick
        and reading.identity == authority.identity
        and reading.epoch_floor <= authority.epoch
        and not reading.forgets
        and authority.counter < COUNTER_LIMIT - COUNTER_RESERVE
    ):
        return None
    return _raised(authority, reading)


def _raised(authority: Authority, reading: ClockReading) -> EpochRaised:
    """Return the event that says all that is not as it was."""
    reasons = []
    if reading.boot_id != authority.boot_id or reading.rate != authority.rate:
        reasons.append("reboot")
    elif reading.tick_value < authority.tick:
        reasons.append("clock went back")
    new_era = bool(reasons)
    if reading.identity != authority.identity:
        reasons.append(reading.cause)
    if reading.forgets or reading.epoch_floor > authority.epoch:
        reasons.append("history lost")
    if authority.counter >= COUNTER_LIMIT - COUNTER_RESERVE:
        reasons.append("counter used up")
    return raise_epoch(authority, reading, reason=", ".join(reasons), new_era=new_era)


def raise_epoch(authority: Authority, reading: ClockReading, *, reason: str, new_era: bool) -> EpochRaised:
    """Return the event that opens a higher epoch, and a new era where the old clock is gone."""
    era = authority.era + 1 if new_era else authority.era
    epoch, counter = next_epoch(max(authority.epoch, reading.epoch_floor), reading.wall_ns)
    return EpochRaised(
        tick=Tick(value=reading.tick_value, era=era, rate=reading.rate),
        at_ns=reading.wall_ns,
        actor=REGISTRAR,
        epoch=epoch,
        counter=counter,
        boot_id=reading.boot_id,
        identity=reading.identity,
        reason=reason,
    )


def next_epoch(highest: int, wall_ns: int) -> tuple[int, int]:
    """Return the epoch that follows on the highest one known, and where its counter begins.

    A wall clock that reads before 2026, or after 2060, is of no use.
    """
    second, fraction_ns = divmod(wall_ns - EPOCH_ZERO_NS, NANOSECONDS_PER_SECOND)
    if highest < second < EPOCH_LIMIT:
        return second, fraction_ns * FRACTION_LIMIT // NANOSECONDS_PER_SECOND
    return highest + 1, 0


def evolve_authority(authority: Authority | None, event: Event) -> Authority:
    """Return the registrar's record after `event`; refuse an event that the law could not have produced."""
    match event:
        case StoreOpened():
            if authority is not None:
                raise IllegalTransition("store.opened, but the store was open already")
            return _opened(event, None, first_tick=event.tick.value)
        case EpochRaised():
            return _epoch_raised(_known(authority), event)
        case _:
            return go_on(_known(authority), event)


def _known(authority: Authority | None) -> Authority:
    if authority is None:
        raise IllegalTransition("a ledger begins with store.opened")
    return authority


def _epoch_raised(authority: Authority, event: EpochRaised) -> Authority:
    if not authority.epoch < event.epoch < EPOCH_LIMIT:
        raise IllegalTransition(f"epoch {event.epoch} came after epoch {authority.epoch}")
    if event.tick.era == authority.era:
        return _opened(event, go_on(authority, event), first_tick=authority.era_first_tick)
    if event.tick.era != authority.era + 1:
        raise IllegalTransition(f"era {event.tick.era} came after era {authority.era}")
    return _opened(event, authority, first_tick=event.tick.value)


def _opened(event: StoreOpened | EpochRaised, before: Authority | None, *, first_tick: int) -> Authority:
    key_changes, families = 0, {}
    if isinstance(event, StoreOpened):
        key_changes, families = int(bool(event.public_key)), event.families
    if not 0 <= event.counter < COUNTER_LIMIT:
        raise IllegalTransition(f"epoch {event.epoch} begins with counter {event.counter}")
    return Authority(
        epoch=event.epoch,
        counter=event.counter,
        era=event.tick.era,
        era_first_tick=first_tick,
        boot_id=event.boot_id,
        identity=event.identity,
        tick=event.tick.value,
        wall_ns=event.at_ns,
        rate=event.tick.rate,
        key_changes=key_changes if before is None else before.key_changes,
        families=families if before is None else before.families,
        outage=None if before is None or before.era != event.tick.era else before.outage,
    )


def go_on(authority: Authority, event: Event) -> Authority:
    """Return the registrar's record after something that opens no epoch."""
    tick = event.tick
    if tick.value < authority.tick or tick.era != authority.era or tick.rate != authority.rate:
        raise IllegalTransition(f"{event.type} at a time before what had happened already")
    counter = _counted(authority, event) if event.draws else authority.counter
    after = replace(authority, counter=counter, tick=tick.value, wall_ns=event.at_ns)
    if not event.is_own:
        return after
    match event:
        case FamiliesAdmitted():
            return replace(after, families=authority.families | event.families)
        case RegistrarResumed():
            outage = Outage(since=event.down_since, until=tick.value, settles_until=event.settles_until)
            return replace(after, outage=outage)
        case _:
            return replace(after, key_changes=authority.key_changes + isinstance(event, KeyEvent))


def _counted(authority: Authority, event: Event) -> int:
    """Return how far tokens, and tickets, which are numbered together with them, have come with `event`."""
    number = event.number
    counter = number - authority.epoch * COUNTER_LIMIT
    if event.is_number_new:
        if not authority.counter < counter < COUNTER_LIMIT:
            raise IllegalTransition(f"token {number} is not above all others of its epoch")
        return counter
    if counter >= COUNTER_LIMIT:
        raise IllegalTransition(f"number {number} is out of range")
    # The same number again: another resource of one claim, an upgrade that is asked for again, or a lease
    # that keeps its token.
    return max(authority.counter, counter)


def now_of(authority: Authority, reading: ClockReading) -> Now:
    """Return the moment of a transaction that `observe` found nothing wrong with."""
    tick = Tick(value=max(reading.tick_value, authority.tick), era=authority.era, rate=reading.rate)
    return Now(tick=tick, wall_ns=reading.wall_ns)


def carry_over(expires: Tick, authority: Authority, eras: dict[int, Era]) -> Tick | None:
    """Return when a lease of an earlier era expires on the present clock; None if nobody can tell.

    What it had left when the registrar last looked at the old clock counts from the first moment of the
    era that followed: time in which the registrar was down is not held against the holder.
    """
    if expires.era >= authority.era or expires.rate != authority.rate:
        return None
    remaining = expires.value
    for number in range(expires.era, authority.era):
        era = eras.get(number)
        if era is None or era.rate != expires.rate:
            return None
        lived_through = era.last_tick if number == expires.era else era.last_tick - era.first_tick
        remaining = max(0, remaining - lived_through)
    return Tick(value=authority.era_first_tick + remaining, era=authority.era, rate=authority.rate)
