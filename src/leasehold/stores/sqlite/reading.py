"""The questions a snapshot of a SQLite store can be asked.

Inside one transaction all answers belong to the same moment. Every statement reads through an index, or
says that it does not. What is asked of the records of a family is asked of its shelf.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw
from msgspec.structs import replace

from leasehold.engine.port import Checkpoint, EntryQuery, Head, LeaseQuery, LedgerRow, Progress
from leasehold.errors import StoreDamaged, StoreUnusable
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.ledger.authority import Authority, ClockReading
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.keys import Key
from leasehold.kernel.ledger.records import Keys, Records
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from leasehold.stores.sqlite.defects import find_defects
from leasehold.stores.sqlite.identity import decode_note
from leasehold.stores.sqlite.listing import entries_statement, leases_statement
from leasehold.stores.sqlite.rows import (
    AUTHORITY_COLUMNS,
    KEY_COLUMNS,
    LAST_EVENT_COLUMNS,
    LEDGER_COLUMNS,
    Row,
    authority_of,
    era_of,
    filing_of,
    head_of,
    key_of,
)
from leasehold.stores.sqlite.shelves import LEASE_SHELVES, Shelves
from leasehold.stores.sqlite.shelves.lease_rows import LEASE_COLUMNS, lease_of
from leasehold.stores.sqlite.shelves.shelf import FEW, as_json

_AUTHORITY = (
    f"SELECT {AUTHORITY_COLUMNS}, {LAST_EVENT_COLUMNS} FROM authority "
    "JOIN events ON position = (SELECT max(position) FROM events) LIMIT 1"
)
_LEASE = f"SELECT {LEASE_COLUMNS} FROM leases WHERE lease_id = ?"
# In order of position, because that is how the index keeps equal requests; sorting would cost more.
_REQUEST = "SELECT request, body FROM events WHERE request = ? AND remembered = 1"
_REQUESTS = (
    "SELECT request, body FROM json_each(?) AS wanted "
    "CROSS JOIN events ON request = wanted.value AND remembered = 1"
)
_KEYS = f"SELECT {KEY_COLUMNS} FROM keys ORDER BY number"
_ERAS = "SELECT number, boot_id, first_tick, last_tick, rate FROM eras"
_ERA = f"{_ERAS} WHERE number = ?"
_ROWS = f"SELECT {LEDGER_COLUMNS} FROM events WHERE position > ? ORDER BY position LIMIT ?"

_HASH = "SELECT hash FROM events WHERE position = ?"

_SOFT_VALUES = "SELECT key, value FROM soft_state WHERE family = ?"


class SqliteSnapshot:
    """One consistent look at the file; the connection is inside a transaction for as long as it lasts."""

    def __init__(
        self,
        connection: apsw.Connection,
        read_clock: Callable[..., ClockReading],
        cursor: apsw.Cursor | None = None,
        shelves: Shelves = LEASE_SHELVES,
        *,
        note: bytes | None = None,
    ) -> None:
        self._connection = connection
        self._cursor = cursor or connection.cursor()
        """One for all that is read whole at once: making one costs as much as a small statement."""
        self._execute = self._cursor.execute
        self._shelves = shelves
        self._read_clock = read_clock
        self._note = note
        """What is known from outside the database to have been committed; None: nothing is."""
        self._registrar: Row | None = None
        """Not read yet; or empty, if nobody has used this store."""
        self._authority: Authority | None = None

    def reading(self) -> ClockReading:
        """Read the authority clock, and whether this is what was there at the last commit."""
        return (
            self._read_clock() if self._note is None else self._read_clock(forgets=self._forgets(self._note))
        )

    def _forgets(self, written: bytes) -> bool:
        """Say whether an entry is missing that was noted when it was committed."""
        note = decode_note(written)
        if note is None:
            raise StoreUnusable(
                "the identity file of the store is damaged; `leasehold doctor` says which it is"
            )
        if note.position == 0 or (note.position, note.hash) == (self.head.position, self.head.hash):
            return False
        if self.head.position == 0:
            # To begin anew would be to forget without a word: there is no history that could tell of it.
            raise StoreDamaged(
                f"the ledger is empty, and had {note.position} entries; put a backup in place with "
                "`leasehold restore`"
            )
        # Who commits and is killed before it notes that leaves a note that is behind.
        return bool(self._execute(_HASH, (note.position,)).get != note.hash)

    @property
    def families(self) -> Families:
        """Return the families that the store was opened with."""
        return self._shelves.families

    @property
    def authority(self) -> Authority | None:
        """Return the registrar's record."""
        row = self._read_registrar() if self._registrar is None else self._registrar
        if self._authority is None and row:
            self._authority = authority_of(row)
        return self._authority

    @property
    def head(self) -> Head:
        """Return where the ledger ends, even if the registrar's record cannot be made out."""
        row = self._read_registrar() if self._registrar is None else self._registrar
        return head_of(row) if row else Head()

    def _read_registrar(self) -> Row:
        # To the end, here and below: a statement that is left half-read would hold on to this moment.
        self._registrar = self._execute(_AUTHORITY).get or ()
        return self._registrar

    def read(self, keys: Keys) -> Records:
        """Return the records that exist for `keys`."""
        records = Records()
        families = self._read_requests(keys, records) if keys.requests else keys.families
        for number in keys.eras:
            row = self._execute(_ERA, (number,)).get
            if row is not None:
                records.eras[number] = era_of(row)
        for name, wanted in families.items():
            records.families[name] = self._shelves.of[name].read(self._cursor, name, wanted)
        return records

    def _read_requests(self, keys: Keys, records: Records) -> dict[str, Any]:
        """Read what requests have caused; return what is wanted of each family, and what they changed."""
        records.requests = self._caused_by(keys.requests)
        families = dict(keys.families)
        for event in records.requests.values():
            family = self.families.of_event[type(event)].name
            wanted = families.get(family) or self._shelves.of[family].wanted()
            families[family] = replace(wanted, keys=wanted.keys | set(event.keys))
        return families

    def _caused_by(self, requests: set[str]) -> dict[str, Event]:
        """Return the last event of each request."""
        rows: Any
        if len(requests) > FEW:
            rows = self._execute(_REQUESTS, (as_json(requests),)).fetchall()
        else:
            rows = [row for request in requests for row in self._execute(_REQUEST, (request,))]
        decode = self.families.decode_event
        return {request: decode(body) for request, body in dict(rows).items()}

    def lease(self, lease_id: str) -> Lease | None:
        """Return one lease by its id."""
        row = self._execute(_LEASE, (lease_id,)).get
        return None if row is None else lease_of(row)

    def signing_keys(self) -> list[Key]:
        """Return every key that the ledger ever admitted."""
        return [key_of(row) for row in self._connection.execute(_KEYS)]

    def due(self, now: Tick, limit: int) -> list[tuple[str, str]]:
        """Return records, by family and key, that time has something to do with, the longest overdue first.

        Behind the leases among them come the children that an ended lease has left.
        """
        return self._shelves.due(self._cursor, now, limit)

    def leases(self, query: LeaseQuery) -> list[Lease]:
        """Return the leases that a query asks for, in the order of their ids."""
        return [lease_of(row) for row in self._connection.execute(*leases_statement(query))]

    def entries(self, query: EntryQuery) -> list[Entry]:
        """Return the ledger entries that a query asks for."""
        is_kept = query.lease_id is not None and self.lease(query.lease_id) is not None
        decode = self.families.decode_event
        return [
            Entry(position=position, event=decode(body), body=body.encode(), hash=entry_hash, seal=seal)
            for position, body, entry_hash, seal in self._connection.execute(
                *entries_statement(query, lease_is_kept=is_kept)
            )
        ]

    def rows(self, after: int, limit: int) -> list[LedgerRow]:
        """Return the ledger as it is kept, behind a position."""
        with _readable():
            return self._connection.execute(_ROWS, (after, limit)).fetchall()

    @property
    def pruned(self) -> int:
        """Return the position of the last entry that is gone."""
        first = self._execute("SELECT min(position) FROM events").get
        return 0 if first is None else int(first) - 1

    def checkpoint(self) -> Checkpoint | None:
        """Return what stands for entries that are gone: the newest, should there be several."""
        row = self._execute("SELECT position, state FROM checkpoints ORDER BY position DESC LIMIT 1").get
        return None if row is None else Checkpoint(position=row[0], state=row[1])

    filing = staticmethod(filing_of)

    def defects(self, progress: Progress | None = None) -> list[str]:
        """Return what is wrong with the file itself, whatever the ledger says."""
        return find_defects(self._connection, progress)

    def soft_values(self, family: str) -> dict[str, bytes]:
        """Return the soft state of a family."""
        rows: list[Any] = self._execute(_SOFT_VALUES, (family,)).fetchall()
        return dict(rows)

    def state(self) -> State:
        """Return everything that the tables say, but for families that the store was not opened with."""
        with _readable():
            eras = [era_of(row) for row in self._connection.execute(_ERAS)]
            return State(
                records=self._shelves.load(self._connection.cursor()),
                authority=self.authority,
                eras={era.number: era for era in eras},
                keys={key.public_key: key for key in self.signing_keys()},
            )


@contextmanager
def _readable() -> Iterator[None]:
    """Raise ValueError for rows on damaged pages, as for others that cannot be read: an audit names them."""
    try:
        yield
    except apsw.CorruptError as error:
        raise ValueError(str(error)) from error
