"""Guards that ask nobody, and emissions."""

from functools import partial
from pathlib import Path

import leasehold
from bench.measuring import Operation, Report, quickest
from leasehold.workflows import Action, Guard


def run(report: Report, folder: Path) -> None:
    """Measure a look of a guard, and an emission beside an acquire and a release."""
    looks = {policy: _look_of(policy) for policy in ("monotonic", "strict")}
    measured = quickest(looks, slices=50, repeats=2_000)
    for policy, seconds in measured.items():
        report.ratio(f"check an action without I/O, {policy}, µs", 1e6 * seconds, at_most=5)
    with leasehold.connect(str(folder / "workflows.db"), durability="fast") as leases:
        orchestrator = leases.workflows.claim("order-7")
        pair = quickest(
            {
                "emit": lambda: orchestrator.emit("compute", {"n": 1}),
                "pair": lambda: leases.acquire("door").release(),
            },
            slices=20,
            repeats=50,
        )
    report.show(
        f"an emission takes {1e6 * pair['emit']:.0f} µs, an acquire and release {1e6 * pair['pair']:.0f} µs"
    )


def _look_of(policy: str) -> Operation:
    guard = Guard("order-7", policy=policy)
    guard.set_lease("lease", token=7, epoch=3)
    return partial(guard.check, Action(action_type="compute", lease_id="lease", epoch=3))
