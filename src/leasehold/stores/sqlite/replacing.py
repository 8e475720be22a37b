"""What a restore would take away: what a store knows, and the backup does not."""

from pathlib import Path

import msgspec

from leasehold.engine.port import EntryQuery, LeaseQuery
from leasehold.engine.status import statuses_of
from leasehold.errors import StoreError
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.ledger.family import Families
from leasehold.stores.sqlite.inspecting import inspected
from leasehold.stores.sqlite.reading import SqliteSnapshot
from leasehold.stores.sqlite.store import SqliteStore

_PAGE = 1_000


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a store's ledger, and not in a backup's."""

    entries: int
    leases: int
    """How many leases stand in the store, of any tenant, that the backup does not know."""
    is_same_ledger: bool
    """Whether the backup was taken of this ledger; if not, all of it is forgotten."""


def replaced(
    backup_file: Path | str, store_path: Path | str, *, families: Families = LEASES
) -> Replaced | None:
    """Return what a restore of the backup would take from a store; None if there is none that can be read.

    Raises StoreUnusable if the backup is none. Others may use the store meanwhile, and change what is told.
    """
    with inspected(backup_file, families=families) as backup, backup.snapshot() as kept:
        try:
            store = SqliteStore(store_path, create=False, families=families)
        except StoreError:
            return None
        try:
            with store.snapshot() as snapshot:
                return _difference(snapshot, kept)
        except StoreError:
            return None
        finally:
            store.close()


def _difference(snapshot: SqliteSnapshot, kept: SqliteSnapshot) -> Replaced | None:
    if snapshot.authority is None:
        return None
    head = kept.head
    found = snapshot.entries(EntryQuery(after=head.position - 1, limit=1))
    is_same = bool(found) and (found[0].position, found[0].hash) == (head.position, head.hash)
    position = snapshot.head.position
    return Replaced(
        entries=position - head.position if is_same else position,
        leases=_forgotten_leases(snapshot, kept),
        is_same_ledger=is_same,
    )


def _forgotten_leases(snapshot: SqliteSnapshot, kept: SqliteSnapshot) -> int:
    count, after = 0, None
    while page := snapshot.leases(LeaseQuery(states=(LeaseState.ACTIVE,), after=after, limit=_PAGE)):
        live = [status.lease for status in statuses_of(page, snapshot) if status.is_live]
        count += sum(not _stands_in(kept, lease) for lease in live)
        after = page[-1].lease_id
    return count


def _stands_in(kept: SqliteSnapshot, lease: Lease) -> bool:
    known = kept.lease(lease.lease_id)
    return known is not None and known.token == lease.token and known.state is LeaseState.ACTIVE
