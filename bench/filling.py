"""Fill a store quickly, without clients."""

import itertools
from collections.abc import Iterable
from pathlib import Path

from leasehold.engine.batch import Rules, run_batch
from leasehold.engine.clock import Ids
from leasehold.engine.recording import open_epoch
from leasehold.kernel.lease.commands import Acquire
from leasehold.stores.sqlite import SqliteStore

DAY_NS = 24 * 3600 * 1_000_000_000
_IDS = Ids()


def claim(resource: str, holder: str, *, ttl_ns: int = DAY_NS, wait: bool = False) -> Acquire:
    """Return a claim that is its own request, as clients send them."""
    lease_id = _IDS.new()
    return Acquire(
        lease_id=lease_id, request_id=lease_id, resource=resource, holder=holder, ttl_ns=ttl_ns, wait=wait
    )


def fill(path: Path, claims: Iterable[Acquire]) -> int:
    """Grant, or queue, claims in a store; return how many."""
    store = SqliteStore(path, durability="fast")
    open_epoch(store)
    left, count = iter(claims), 0
    while batch := list(itertools.islice(left, 1_000)):
        count += len(run_batch(store, batch, Rules()))
    store.close()
    return count
