"""How events become entries of the ledger, and the events that the registrar itself has to record.

Those are of its own time, file and keys: no command causes them, and each is alone in its transaction.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from leasehold.engine.port import Batch, Head, LeaseQuery, Pruned, Snapshot, Store, Transaction
from leasehold.engine.retrying import undisturbed
from leasehold.engine.sealing import NoKeyAtHand, Sealer, seal
from leasehold.engine.signing import SigningKey
from leasehold.errors import StoreUnusable
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.ledger.authority import COPIED, Authority, Era, evolve_authority, now_of, observe
from leasehold.kernel.ledger.chain import Entry, link
from leasehold.kernel.ledger.events import (
    REGISTRAR,
    Event,
    FamiliesAdmitted,
    KeyEnrolled,
    KeyRetired,
    OwnEvent,
    RegistrarResumed,
    StoreOpened,
    encode_event,
)
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.keys import Key, evolve_keys, voucher_message
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND, Now

SETTLING_NS = 300 * NANOSECONDS_PER_SECOND
"""How long at most what lapsed while a registrar was down is kept for those who held it."""
_PAGE = 1_000


def open_epoch(store: Store, *, to_write: bool = False) -> None:
    """Open the store's first epoch, or a higher one if its clock or file is not what it was.

    It is made durable before anything is granted under it, even in a store that is not durable otherwise:
    the grants that such a store forgets in a power cut must not have shared their epoch with later ones.

    Whoever means `to_write` also gets a key to seal with, and has its families admitted to the ledger.
    """
    families = store.families
    if not to_write:
        with store.snapshot() as snapshot:
            if observe(snapshot.authority, snapshot.reading()) is None:
                return  # So that whoever only wants to look need not wait for a writer that has stopped.

    def open_if_need_be() -> None:
        with store.write(durable=True) as transaction:
            authority, reading = transaction.authority, transaction.reading()
            refuse_unknown_families(authority, families)
            observed = observe(authority, reading)
            events: list[OwnEvent] = [] if observed is None else [observed]
            if isinstance(observed, StoreOpened):
                events = [replace(observed, families=families.versions)]
            elif authority is not None:
                now = now_of(
                    authority if observed is None else evolve_authority(authority, observed), reading
                )
                new = families.new_to(authority.families)
                if new:
                    events.append(
                        FamiliesAdmitted(tick=now.tick, at_ns=now.wall_ns, actor=REGISTRAR, families=new)
                    )
                if reading.identity != authority.identity and reading.cause == COPIED:
                    events += _keys_of_a_copy(transaction, now, store.sealer)
            record(transaction, events, store.sealer)

    undisturbed(open_if_need_be)


def _keys_of_a_copy(transaction: Transaction, now: Now, sealer: Sealer) -> list[OwnEvent]:
    """Let a copy seal with a key that the original does not have: else nobody could tell whose history it is.

    All others are retired, also those of other users, who enrol new ones when they next write here.
    """
    keys = transaction.signing_keys()
    try:
        old = sealer.key_for(transaction.authority, lambda: keys)
    except NoKeyAtHand:
        return []  # It gets a new one anyway.
    # Not a spare one, which may have been copied as well.
    events = [enrolment(sealer.ring.create(), old, keys, now, actor=REGISTRAR, reason=COPIED)]
    return [
        *events,
        *(retirement(key, now, actor=REGISTRAR, reason=COPIED) for key in keys if key.is_admitted),
    ]


def enrolment(
    new: SigningKey, old: SigningKey, keys: Sequence[Key], now: Now, *, actor: str, reason: str
) -> OwnEvent:
    """Let a key be enrolled by another one, which vouches for it if somebody vouches for that."""
    # A key that nobody vouches for cannot pass on what it does not have.
    is_vouched_for = any(key.public_key == old.public_key and key.is_vouched_for for key in keys)
    return KeyEnrolled(
        tick=now.tick,
        at_ns=now.wall_ns,
        actor=actor,
        public_key=new.public_key,
        reason=reason,
        vouched_by=old.public_key if is_vouched_for else b"",
        voucher=old.sign(voucher_message(new.public_key)) if is_vouched_for else b"",
    )


def retirement(key: Key, now: Now, *, actor: str, reason: str) -> OwnEvent:
    """Let a key seal nothing any more."""
    return KeyRetired(tick=now.tick, at_ns=now.wall_ns, actor=actor, public_key=key.public_key, reason=reason)


def resume(store: Store, *, longest_ns: int = SETTLING_NS) -> RegistrarResumed | None:
    """Record that a registrar was down, so that holders who could not renew meanwhile come back first.

    For whoever answers alone for a store, at its start: a server. It settles for as long as the longest lease
    that stands was granted for, at most `longest_ns`. Returns what was recorded; None if no lease stood.

    An outage before that has not settled yet goes on: who comes up and falls again takes it from nobody.
    """
    open_epoch(store, to_write=True)

    def record_if_need_be() -> RegistrarResumed | None:
        with store.write(durable=True) as transaction:
            authority = transaction.authority
            assert authority is not None, "a store that was opened has a registrar"
            now = now_of(authority, transaction.reading())
            settling_ns = min(longest_ns, _longest_ttl_ns(transaction))
            if settling_ns == 0:
                return None
            resumed = RegistrarResumed(
                tick=now.tick,
                at_ns=now.wall_ns,
                actor=REGISTRAR,
                down_since=_down_since(authority),
                settles_until=now.tick.value + settling_ns,
            )
            record(transaction, [resumed], store.sealer)
            return resumed

    return undisturbed(record_if_need_be)


def _down_since(authority: Authority) -> int:
    """Return since when holders could not renew: an outage that had not settled goes on."""
    outage = authority.outage
    if outage is not None and outage.settles_until > authority.tick:
        return outage.since
    return authority.tick


def _longest_ttl_ns(snapshot: Snapshot) -> int:
    """Return how long the longest of the leases was granted for that are recorded as standing."""
    longest, after = 0, None
    while page := snapshot.leases(LeaseQuery(states=(LeaseState.ACTIVE,), after=after, limit=_PAGE)):
        longest = max(longest, *(lease.ttl_ns for lease in page))
        after = page[-1].lease_id
    return longest


def refuse_unknown_families(authority: Authority | None, families: Families) -> None:
    """Raise StoreUnusable where the ledger has a family that this engine lacks, or a newer version of one.

    It would not see what other records mean for those, and what time does to them.
    """
    lacking = families.lacking({} if authority is None else authority.families)
    if lacking:
        names = ", ".join(f"{name} {version}" for name, version in lacking.items())
        raise StoreUnusable(
            f"this store has records that this leasehold does not know ({names}), so it must not write "
            "there; upgrade leasehold, or open the store with what made them"
        )


def record(
    transaction: Transaction, events: Sequence[OwnEvent], sealer: Sealer, *, pruned: Pruned | None = None
) -> None:
    """Commit events of the registrar's own, alone in their transaction; enrol a key if none is at hand."""
    keys = {key.public_key: key for key in transaction.signing_keys()}
    try:
        sealing = sealer.key_for(transaction.authority, lambda: list(keys.values()))
    except NoKeyAtHand:
        sealing = sealer.spare(list(keys.values()))
        events = _with_enrolment(sealing, transaction, events)
    if not events:
        return
    authority = transaction.authority
    ended_eras: list[Era] = []
    changed: dict[bytes, Key] = {}
    for event in events:
        if authority is not None:
            ended_eras += authority.eras_ended_by(event)
        authority = evolve_authority(authority, event)
        key = evolve_keys(keys, event)
        if key is not None:
            keys[key.public_key] = changed[key.public_key] = key
    assert authority is not None, "there was at least one event"
    batch = Batch(
        entries=chained(transaction.head, events, sealing),
        changes=(),
        authority=authority,
        ended_eras=ended_eras,
        keys=list(changed.values()),
        pruned=pruned,
    )
    transaction.commit(batch)


def _with_enrolment(
    key: SigningKey, transaction: Transaction, events: Sequence[OwnEvent]
) -> Sequence[OwnEvent]:
    """Let a key be enrolled that nobody vouches for: the first of a ledger, or one where others are lost."""
    if events and isinstance(events[0], StoreOpened):
        return [replace(events[0], public_key=key.public_key), *events[1:]]
    authority = transaction.authority
    for event in events:
        authority = evolve_authority(authority, event)
    assert authority is not None, "a ledger begins with store.opened"
    now = now_of(authority, transaction.reading())
    enrolled = KeyEnrolled(tick=now.tick, at_ns=now.wall_ns, actor=REGISTRAR, public_key=key.public_key)
    return [*events, enrolled]


def chained(head: Head, events: Sequence[Event], key: SigningKey) -> list[Entry]:
    """Return the entries that events make behind the ledger's head, the last of them sealed."""
    entries: list[Entry] = []
    position, entry_hash = head.position, head.hash
    last = position + len(events)
    for event in events:
        position += 1
        body = encode_event(event)
        entry_hash = link(entry_hash, position, body)
        sealed = seal(key, head.position + 1, last, entry_hash) if position == last else None
        entries.append(Entry(position=position, event=event, body=body, hash=entry_hash, seal=sealed))
    return entries
