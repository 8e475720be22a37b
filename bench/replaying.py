"""Reading a ledger back: replaying it, and auditing the whole store."""

import time
from pathlib import Path

import leasehold
from bench.measuring import Report
from leasehold.engine.audit import audit
from leasehold.engine.port import EntryQuery
from leasehold.kernel.ledger.state import Folding
from leasehold.stores.sqlite import SqliteStore

PAIRS = 15_000


def run(report: Report, folder: Path) -> None:
    """Measure events per second of a replay from the file, and of an audit."""
    path = folder / "replay"
    with leasehold.connect(str(path), durability="fast") as leases:
        for number in range(PAIRS):
            leases.acquire(f"resource-{number % 100}").release()
    store = SqliteStore(path)
    replayed = max(_replay(store) for _ in range(3))
    start = time.perf_counter()
    found = audit(store)
    audited = found.entries / (time.perf_counter() - start)
    store.close()
    report.show(f"ledger of {found.entries:,} events: replay {replayed:,.0f}/s, audit {audited:,.0f}/s")
    report.ratio("replay, thousand events/s", replayed / 1_000, at_least=60)


def _replay(store: SqliteStore) -> float:
    start = time.perf_counter()
    folding, after = Folding(store.families), 0
    with store.snapshot() as snapshot:
        while page := snapshot.entries(EntryQuery(after=after)):
            for entry in page:
                folding.apply(entry.event)
            after = page[-1].position
    return after / (time.perf_counter() - start)
