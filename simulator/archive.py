"""Everything that was ever committed in a world, also what was pruned since, or lost.

A ledger that was pruned does not have its first entries any more. Whoever has to tell what is true still
needs them: they are found here, entry by entry, each by the hash of the one behind it.
"""

from collections.abc import Mapping, Sequence

from leasehold.engine.port import Batch
from leasehold.kernel.ledger.chain import Entry


class Archive:
    """All entries, and what each of them followed."""

    def __init__(self) -> None:
        self._last: Entry | None = None
        self._before: dict[bytes, Entry | None] = {}
        self._when_ns: dict[bytes, int] = {}
        self._let_go: dict[bytes, Mapping[str, Sequence[str]]] = {}

    def keep(self, batch: Batch, now_ns: int) -> None:
        """Keep what was just committed."""
        for entry in batch.entries:
            self._before[entry.hash] = self._last
            self._when_ns[entry.hash] = now_ns
            self._last = entry
        if batch.pruned is not None:
            self._let_go[batch.entries[-1].hash] = batch.pruned.forgotten

    def go_on_from(self, last: Entry | None) -> None:
        """Take note that another ledger is in place, which ends with an entry that is known."""
        self._last = last

    def history(self) -> list[Entry]:
        """Return all that has led to the ledger's present end, from the first entry on."""
        found: list[Entry] = []
        entry = self._last
        while entry is not None:
            found.append(entry)
            entry = self._before[entry.hash]
        return found[::-1]

    def committed_ns(self, entry: Entry) -> int:
        """Return when an entry was committed, in true time."""
        return self._when_ns[entry.hash]

    def let_go_by(self, entry: Entry) -> Mapping[str, Sequence[str]]:
        """Return the records, by family and key, that left the tables with an entry."""
        return self._let_go.get(entry.hash, {})
