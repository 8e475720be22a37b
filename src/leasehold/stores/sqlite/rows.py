"""How entries, and the registrar's own records, are spelled as rows, and read back."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import astuple

from leasehold.engine.port import Head
from leasehold.kernel.ledger.authority import Authority, Era, Outage
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.keys import Key

Row = Sequence[Any]

_families_decoder = msgspec.json.Decoder(dict[str, int])
_outage_decoder = msgspec.json.Decoder(Outage)

AUTHORITY_COLUMNS = "epoch, era, era_first_tick, boot_id, identity, rate, key_changes, families, outage"
LAST_EVENT_COLUMNS = "counter, tick, at_ns, position, hash"

_FILING = "type, at_ns, tenant, lease_id, resource, holder, token, request, tick, remembered"
EVENT_COLUMNS = f"position, {_FILING}, counter, body, hash, seal"
LEDGER_COLUMNS = f"position, CAST(body AS BLOB), hash, seal, counter, {_FILING}"
"""An entry for those who check it: behind the first five, what `filing_of` gives."""


def event_columns(entry: Entry, counter: int) -> Row:
    """Spell an entry as the values of EVENT_COLUMNS."""
    return (
        entry.position,
        *filing_of(entry.event),
        counter,
        entry.body.decode(),
        entry.hash,
        entry.seal,
    )


def filing_of(event: Event) -> tuple[object, ...]:
    """Return the columns that repeat parts of an event, for queries."""
    return (
        event.__struct_config__.tag,
        event.at_ns,
        *event.filing,
        event.request,
        event.tick.value,
        event.is_remembered,
    )


def authority_of(row: Row) -> Authority:
    """Read the registrar's record from both groups of columns."""
    epoch, era, era_first_tick, boot_id, identity, rate, key_changes, families, outage, *last_event = row
    counter, tick, wall_ns, *_ = last_event
    return Authority(
        epoch=epoch,
        counter=counter,
        era=era,
        era_first_tick=era_first_tick,
        boot_id=boot_id,
        identity=identity,
        tick=tick,
        wall_ns=wall_ns,
        rate=rate,
        key_changes=key_changes,
        families=_families_decoder.decode(families),
        outage=None if outage is None else _outage_decoder.decode(outage),
    )


def head_of(row: Row) -> Head:
    """Read where the ledger ends from the same row."""
    return Head(position=row[-2], hash=row[-1])


def authority_columns(authority: Authority) -> Row:
    """Spell the present epoch and era as the values of AUTHORITY_COLUMNS."""
    return (
        authority.epoch,
        authority.era,
        authority.era_first_tick,
        authority.boot_id,
        authority.identity,
        authority.rate,
        authority.key_changes,
        msgspec.json.encode(authority.families).decode(),
        None if authority.outage is None else msgspec.json.encode(authority.outage).decode(),
    )


def era_of(row: Row) -> Era:
    """Read an ended era from a row of `eras`."""
    return Era(number=row[0], boot_id=row[1], first_tick=row[2], last_tick=row[3], rate=row[4])


def era_columns(era: Era) -> Row:
    """Spell an ended era as the values of a row of `eras`."""
    return (era.number, era.boot_id, era.first_tick, era.last_tick, era.rate)


_KEY_FIELDS = Key.__struct_fields__
KEY_COLUMNS = ", ".join(_KEY_FIELDS)


def key_of(row: Row) -> Key:
    """Read a key from a row of KEY_COLUMNS."""
    return Key(**dict(zip(_KEY_FIELDS, row, strict=True)))


def key_columns(key: Key) -> Row:
    """Spell a key as the values of KEY_COLUMNS."""
    return astuple(key)
