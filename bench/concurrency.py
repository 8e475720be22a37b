"""Many callers in one process: how much group commit gains over one caller."""

import asyncio
import threading
import time
from pathlib import Path

import leasehold
from bench.measuring import Report

CALLERS = 128
SECONDS = 3.0


def run(report: Report, folder: Path) -> None:
    """Measure pairs per second of one caller, of many threads and of many tasks, FULL, in turns."""
    rounds = [
        (
            _one_caller(folder / f"one-{turn}"),
            _threads(folder / f"threads-{turn}"),
            asyncio.run(_tasks(folder / f"tasks-{turn}")),
        )
        for turn in range(3)
    ]
    one, threads, tasks = (sorted(values)[1] for values in zip(*rounds, strict=True))
    report.show(
        f"{CALLERS} callers, full: one {one:,.0f} pairs/s, threads {threads:,.0f}, tasks {tasks:,.0f}"
    )
    report.ratio(f"pairs, {CALLERS} tasks / one caller, full", tasks / one, at_least=6)
    report.ratio(f"pairs, {CALLERS} threads / one caller, full", threads / one, at_least=4)


def _one_caller(path: Path) -> float:
    with leasehold.connect(str(path)) as leases:
        count, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < SECONDS:
            leases.acquire("resource").release()
            count += 1
    return count / elapsed


def _threads(path: Path) -> float:
    counts = [0] * CALLERS
    with leasehold.connect(str(path)) as leases:
        stop = time.perf_counter() + SECONDS

        def work(number: int) -> None:
            while time.perf_counter() < stop:
                leases.acquire(f"resource-{number}").release()
                counts[number] += 1

        workers = [threading.Thread(target=work, args=(number,)) for number in range(CALLERS)]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return sum(counts) / (time.perf_counter() - start)


async def _tasks(path: Path) -> float:
    counts = [0] * CALLERS
    async with leasehold.connect_async(str(path)) as leases:
        stop = time.perf_counter() + SECONDS

        async def work(number: int) -> None:
            while time.perf_counter() < stop:
                lease = await leases.acquire(f"resource-{number}")
                await lease.release()
                counts[number] += 1

        start = time.perf_counter()
        await asyncio.gather(*(work(number) for number in range(CALLERS)))
        return sum(counts) / (time.perf_counter() - start)
