"""Looking into a backup as if it were a store, without changing it.

What is looked into is a private copy with today's schema, which is gone in the end. The file itself is only
read, so it may be where nothing can be written, or from an older release.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.family import Families
from leasehold.stores.sqlite.backup import refuse_other_than_file, staged
from leasehold.stores.sqlite.copying import Reporter, look_into
from leasehold.stores.sqlite.files import resolved
from leasehold.stores.sqlite.reading import SqliteSnapshot
from leasehold.stores.sqlite.shelves import Shelves


class Inspected:
    """A backup that can be read."""

    def __init__(self, copy: apsw.Connection, families: Families = LEASES) -> None:
        self._copy = copy
        self._shelves = Shelves(families)

    @contextmanager
    def snapshot(self) -> Iterator[SqliteSnapshot]:
        """Look at the backup. Nobody else can change what is seen."""
        yield look_into(self._copy, self._shelves)


@contextmanager
def inspected(backup_file: Path | str, *, families: Families = LEASES) -> Iterator[Inspected]:
    """Open a backup, or a copy of a store's database, with the families that it is to be read with.

    Raises StoreUnusable for anything else.
    """
    source = resolved(backup_file)
    refuse_other_than_file(source)
    with staged(source, Reporter(None, rounds=1)) as copy:
        yield Inspected(copy, families)
