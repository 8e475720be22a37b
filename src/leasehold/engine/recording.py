"""How events become entries of the ledger, and the events that the registrar itself has to record.

Those are of its own time, file and keys: no command causes them, and each is alone in its transaction.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from leasehold.engine.port import Batch, Head, Pruned, Store, Transaction
from leasehold.engine.retrying import undisturbed
from leasehold.engine.sealing import NoKeyAtHand, Sealer, seal
from leasehold.engine.signing import SigningKey
from leasehold.kernel.lease.events import REGISTRAR, Event, KeyEnrolled, OwnEvent, StoreOpened, encode_event
from leasehold.kernel.ledger.authority import Era, evolve_authority, now_of, observe
from leasehold.kernel.ledger.chain import Entry, link
from leasehold.kernel.ledger.keys import Key, evolve_keys


def open_epoch(store: Store, *, to_write: bool = False) -> None:
    """Open the store's first epoch, or a higher one if its clock or file is not what it was.

    It is made durable before anything is granted under it, even in a store that is not durable otherwise:
    the grants that such a store forgets in a power cut must not have shared their epoch with later ones.

    Whoever means `to_write` also gets a key to seal with.
    """
    if not to_write:
        with store.snapshot() as snapshot:
            if observe(snapshot.authority, snapshot.reading()) is None:
                return  # So that whoever only wants to look need not wait for a writer that has stopped.

    def open_if_need_be() -> None:
        with store.write(durable=True) as transaction:
            observed = observe(transaction.authority, transaction.reading())
            record(transaction, [] if observed is None else [observed], store.sealer)

    undisturbed(open_if_need_be)


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
        created=[],
        changed=[],
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
