"""The ledger: what sealing costs a caller, and how fast a history is verified and rebuilt."""

import time
from collections.abc import Callable
from pathlib import Path

from bench.measuring import Operation, Report, rates
from leasehold import Client
from leasehold.engine.audit import audit, rebuild
from leasehold.engine.batch import Rules, run_batch
from leasehold.engine.registrar import Registrar
from leasehold.engine.sealing import Sealer
from leasehold.engine.signing import SIGNATURE_BYTES, MemoryKeyRing, SigningKey, new_key
from leasehold.kernel.lease.commands import Acquire, Release
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND
from leasehold.stores.sqlite import SqliteStore


class _Blank(SigningKey):
    """A key that signs with zeros: as much is written, and what is left out is the signing."""

    __slots__ = ()

    def sign(self, message: bytes) -> bytes:
        del message
        return bytes(SIGNATURE_BYTES)


def run(report: Report, folder: Path) -> None:
    """Measure sealing at one caller, and verifying and rebuilding at many and at one event per seal."""
    _sealing(report, folder)
    for per_seal, events, bound in ((100, 60_000, 50), (1, 10_000, 5)):
        path = folder / f"ledger-{per_seal}"
        _fill(path, events, per_seal)
        store = SqliteStore(path, durability="fast")
        verified = max(_timed(store, audit) for _ in range(5))
        rebuilt = max(_timed(store, rebuild) for _ in range(5))
        store.close()
        report.show(f"{per_seal} events per seal: verify {verified:,.0f}/s, rebuild {rebuilt:,.0f}/s")
        report.ratio(f"verify, thousand events/s, {per_seal} per seal", verified / 1_000, at_least=bound)
        if per_seal > 1:
            report.ratio("rebuild, thousand events/s", rebuilt / 1_000, at_least=30)


def _sealing(report: Report, folder: Path) -> None:
    unsealing = SqliteStore(folder / "unsealed")
    unsealing.sealer = Sealer(MemoryKeyRing(lambda: _Blank(new_key().seed)))
    with (
        Client(Registrar(SqliteStore(folder / "sealed"))) as sealing_client,
        Client(Registrar(unsealing)) as unsealing_client,
    ):
        operations: dict[str, Operation] = {
            "sealed": lambda: sealing_client.acquire("resource").release(),
            "unsealed": lambda: unsealing_client.acquire("resource").release(),
        }
        found = rates(operations, slices=60, repeats=25)
    report.show(f"one caller, full: {found['sealed']:,.0f} pairs/s, unsealed {found['unsealed']:,.0f}")
    report.ratio(
        "pairs, one caller, full: sealed / unsealed", found["sealed"] / found["unsealed"], at_least=0.85
    )


def _fill(path: Path, events: int, per_seal: int) -> None:
    store = SqliteStore(path, durability="fast")
    registrar = Registrar(store)
    for start in range(0, events // 2, per_seal):
        names = [f"lease-{number:08}" for number in range(start, start + per_seal)]
        claims = [
            Acquire(
                lease_id=name,
                request_id=name,
                resource=name,
                holder="ann",
                ttl_ns=60 * NANOSECONDS_PER_SECOND,
            )
            for name in names
        ]
        run_batch(store, claims, Rules())
        run_batch(store, [Release(lease_ids=tuple(names), holder="ann", request_id=f"end-{start}")], Rules())
    registrar.close()


def _timed(store: SqliteStore, work: Callable[[SqliteStore], object]) -> float:
    start = time.perf_counter()
    work(store)
    seconds = time.perf_counter() - start
    with store.snapshot() as snapshot:
        return snapshot.head.position / seconds
