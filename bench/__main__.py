"""Run the benchmarks: `python -m bench` for all, or name some, such as `python -m bench pairs startup`."""

import sys

from bench import (
    certificates,
    concurrency,
    files,
    handoff,
    ledger,
    pairs,
    queues,
    remote,
    renewals,
    replaying,
    rooms,
    scale,
    serving,
    startup,
    trees,
    work,
    workflows,
)
from bench.measuring import Report, workplace

BENCHMARKS = {
    "startup": startup.run,
    "rooms": rooms.run,
    "pairs": pairs.run,
    "concurrency": concurrency.run,
    "handoff": handoff.run,
    "queues": queues.run,
    "trees": trees.run,
    "files": files.run,
    "renewals": renewals.run,
    "replaying": replaying.run,
    "ledger": ledger.run,
    "certificates": certificates.run,
    "workflows": workflows.run,
    "scale": scale.run,
    "work": work.run,
    "remote": remote.run,
    "serving": serving.run,
    "http-servers": serving.servers,
}


def main(names: list[str]) -> int:
    """Run the named benchmarks; return 1 if one missed its bound, 2 for a name that is none."""
    report = Report()
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.stderr.write(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}\n")
        return 2
    for name in names or list(BENCHMARKS):
        report.show(f"── {name}")
        with workplace() as folder:
            BENCHMARKS[name](report, folder)
    if report.missed:
        report.show(f"\nmissed: {'; '.join(report.missed)}")
    return 1 if report.missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
