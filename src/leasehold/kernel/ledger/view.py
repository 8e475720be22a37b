"""The records a decision looks at.

The engine loads records into a view; rules read them; what a rule appends is folded in at once, so that
whatever comes next sees it. A rule that needs a record nobody loaded raises `Missing`, which says what to
load; what it had appended is undone, and it is asked again.

Records may be loaded before or after events were folded in: what a store still says about a record that an
event has changed here does not count. A view whose changes were committed, and behind which nobody else
has committed anything, still says what the store says: `settle` makes it ready for the next batch.
"""

from typing import Any, Protocol

from leasehold.kernel.ledger.authority import Authority, Era
from leasehold.kernel.ledger.commands import REQUEST_MEMORY_NS
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.journal import Change, Journal
from leasehold.kernel.ledger.records import Keys, Missing, Records, Wanted
from leasehold.kernel.ledger.table import Table
from leasehold.kernel.ledger.tick import Now, Tick

_RECORDS_KEPT = 4_096


class Part(Protocol):
    """What a view knows of one family. Whatever changes in it by `put` is noted in the view's journal."""

    records: dict[str, Any]
    """By key; None: there is no such record."""
    before: dict[str, Any]
    """Records that events have changed since the view was loaded, or settled, as the store has them."""
    is_touched: bool
    """Whether there may be anything to settle."""

    def load(self, wanted: Any, found: Any) -> None:
        """Take in what a store found; what events have changed here already stays as it is."""
        ...

    def get(self, key: str) -> Any:
        """Return a record, or None if there is none; raise Missing if nobody has looked yet."""
        ...

    def put(self, key: str, record: Any) -> None:
        """Keep a record as an event has left it; None: it is gone."""
        ...

    def settle(self) -> int:
        """Take what was changed for what the store says, and return how many records are here."""
        ...


class View:
    """A working copy of some records, and of the registrar's own."""

    def __init__(self, families: Families, authority: Authority) -> None:
        self.families = families
        self.authority = authority
        self.eras: dict[int, Era] = {}
        self.presuming = False
        """Whether names that commands propose for new records may be taken for new without looking.

        Then a store that knows better rejects the batch, and it is run again without presuming."""
        self.journal = Journal()
        self._requests: dict[str, Event | None] = {}
        self._sizes: dict[str, int] = {}
        """How many records there are in each part, as far as it was settled."""
        self._eras_asked: set[int] = set()
        self.parts: dict[str, Any] = {
            family.name: Table(family.name, self.journal) if family.part is None else family.part(self)
            for family in families
        }

    def load(self, keys: Keys, records: Records) -> bool:
        """Take in what a store found for `keys`; say whether that was anything."""
        for request in keys.requests:
            self._requests.setdefault(request, records.requests.get(request))
        if keys.eras:
            self._eras_asked |= keys.eras
            self.eras.update(records.eras)
        any_found = bool(records.requests)
        for name, found in records.families.items():
            self.parts[name].load(keys.families.get(name, _NOTHING), found)
            any_found = any_found or bool(found)
        return any_found

    def knows_request(self, request: str) -> bool:
        """Say whether it is known what a request has caused, if anything."""
        return request in self._requests

    def remembered(self, request: str) -> Event | None:
        """Return the event that a request with this key caused, or None."""
        try:
            return self._requests[request]
        except KeyError:
            raise Missing(Keys(requests={request})) from None

    def recalled(self, request: str, now: Now) -> Event | None:
        """Return what a request caused within the last hour.

        An event of another era is remembered whatever its age: taking a retry for a second request would
        grant twice, taking a second request for a retry only asks the caller for a new id.
        """
        event = self.remembered(request)
        if event is None:
            return None
        elapsed = event.tick.until(now.tick)
        return event if elapsed is None or elapsed < REQUEST_MEMORY_NS else None

    def eras_since(self, tick: Tick) -> dict[int, Era]:
        """Return the ended eras since a tick of one of them."""
        if tick.era < self.authority.era:
            needed = set(range(tick.era, self.authority.era)) - self._eras_asked - self.eras.keys()
            if needed:
                raise Missing(Keys(eras=needed))
        return self.eras

    def remember(self, event: Event) -> None:
        """Let whoever repeats the request of an event find it."""
        self.journal.put(self._requests, event.request, event)

    def changes(self) -> list[Change]:
        """Return what events have changed since the view was loaded, or settled."""
        changes: list[Change] = []
        for name, part in self.parts.items():
            records = part.records
            for key, before in part.before.items():
                after = records[key]
                if after is not before:
                    changes.append(Change(name, key, before, after))
        return changes

    def settle(self) -> bool:
        """Take what was changed here for what the store says: it was committed.

        Return False if this view can not serve another batch, because it has grown large.
        """
        self.journal.steps.clear()
        for name, part in self.parts.items():
            if part.is_touched:
                self._sizes[name] = part.settle()
        return len(self._requests) + sum(self._sizes.values()) <= _RECORDS_KEPT


_NOTHING = Wanted()
