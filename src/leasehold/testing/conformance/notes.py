"""Families of the suite's own: records of no meaning, which a store keeps as documents."""

from typing import Any

import msgspec

from leasehold.kernel.lease.family import lease_family
from leasehold.kernel.ledger.events import REGISTRAR, Event, Filing
from leasehold.kernel.ledger.family import Families, Family
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.key import spell_key
from leasehold.kernel.ledger.tick import Tick

NOTE = "note"
CHORE = "chore"


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record with a field of every kind."""

    text: str = ""
    number: int = 0
    data: bytes = b""
    tags: tuple[str, ...] = ()
    more: dict[str, Any] = {}
    due: Tick | None = None


class Chore(msgspec.Struct, frozen=True, kw_only=True):
    """Another record, which is never without its time."""

    due: Tick


class NoteWritten(Event, frozen=True, kw_only=True, omit_defaults=True, tag="note.written"):
    """A note came to be, or changed."""

    is_remembered = True

    key: str
    note: Note
    lease_id: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the note."""
        return (self.key,)

    @property
    def filing(self) -> Filing:
        """Return under what it is found: a tenant, and perhaps a lease."""
        return ("default", self.lease_id, None, None, None)


class NoteRemoved(Event, frozen=True, kw_only=True, omit_defaults=True, tag="note.removed"):
    """A note is gone."""

    key: str

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the note."""
        return (self.key,)


class ChoreGiven(Event, frozen=True, kw_only=True, omit_defaults=True, tag="chore.given"):
    """Somebody has something to do."""

    key: str
    chore: Chore

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the chore."""
        return (self.key,)


def _evolve_note(note: Note | None, event: NoteWritten | NoteRemoved, key: str) -> Note | None:
    del note, key
    return event.note if isinstance(event, NoteWritten) else None


def _evolve_chore(chore: Chore | None, event: ChoreGiven, key: str) -> Chore:
    del chore, key
    return event.chore


def _due(record: Note | Chore) -> Tick | None:
    return record.due


FAMILIES = Families(
    (
        lease_family(),
        Family(name=NOTE, record=Note, events=(NoteWritten, NoteRemoved), evolve=_evolve_note, due=_due),
        Family(name=CHORE, record=Chore, events=(ChoreGiven,), evolve=_evolve_chore, due=_due),
    )
)
"""What the suite opens a store with."""

FULL_NOTE = Note(
    text='straße ☕ \u2028 " \\ \u0001',
    number=-(2**63),
    data=bytes(range(256)),
    tags=("a", "", "é"),
    more={"ключ": [None, True, 1.5, {"deep": 2**53}]},
    due=Tick(value=-5, era=3, rate=1_000),
)
"""A note in which no field has its default."""

KEYS = sorted(
    [
        spell_key("a"),
        spell_key("a", "b"),
        spell_key("a", "b", "c"),
        spell_key("a", "b2"),
        spell_key("a", "é"),
        spell_key("a", "\uff61"),
        spell_key("a", "😀"),
        spell_key("a b"),
        spell_key("A", "b"),
        spell_key("é"),
        *(spell_key("n", number) for number in (-(2**63), -10, -9, -1, 0, 1, 9, 10, 255, 256, 2**63 - 1)),
    ],
    key=lambda key: key.encode(),
)
"""Keys whose order is easily got wrong, in their order."""
BELOW, ABOVE = "\x01", "\U0010ffff"
"""Around all keys."""


def written(key: str, note: Note, *, request: str | None = None, lease_id: str | None = None) -> NoteWritten:
    """Return an event that writes a note."""
    return NoteWritten(
        tick=Tick(value=50),
        at_ns=5_000,
        actor=REGISTRAR,
        request=request,
        key=key,
        note=note,
        lease_id=lease_id,
    )


def created(notes: dict[str, Note]) -> tuple[Change, ...]:
    """Return the changes that make notes, by key."""
    return tuple(Change(NOTE, key, None, note) for key, note in notes.items())
