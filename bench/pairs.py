"""One caller: acquire and release, against the raw floor and filelock."""

from pathlib import Path

import filelock

import leasehold
from bench.floor import Floor
from bench.measuring import Operation, Report, rates


def run(report: Report, folder: Path) -> None:
    """Measure pairs per second of one caller, FULL and fast."""
    peer = filelock.FileLock(str(folder / "peer.lock"))

    def peer_pair() -> None:
        with peer:
            pass

    for durability, synchronous, bound in (("full", "FULL", 0.6), ("fast", "NORMAL", 0.35)):
        floor = Floor(folder / f"floor-{durability}.db", synchronous)
        with leasehold.connect(str(folder / f"pairs-{durability}"), durability=durability) as leases:

            def ours(leases: leasehold.Client = leases) -> None:
                leases.acquire("resource").release()

            operations: dict[str, Operation] = {"floor": floor.pair, "ours": ours, "filelock": peer_pair}
            found = rates(operations, slices=60, repeats=25)
        report.show(
            f"one caller, {durability}: {found['ours']:,.0f} pairs/s "
            f"(floor {found['floor']:,.0f}; filelock, no TTL and no history, {found['filelock']:,.0f})"
        )
        report.ratio(
            f"pairs, one caller, {durability} / floor", found["ours"] / found["floor"], at_least=bound
        )
