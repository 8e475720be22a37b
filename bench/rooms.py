"""How many rooms a request passes on its way: calls, functions and modules of ours for one pair, by layer.

Not a time, and the same on every machine: what a reader has to follow, and what the interpreter has to do.
"""

import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType

import leasehold
from bench.measuring import Report

_SOURCE = str(Path(leasehold.__file__).parent) + "/"
_WARM, _PAIRS = 300, 50
_MOST_CALLS, _MOST_FUNCTIONS, _MOST_MODULES = 190, 120, 40


def run(report: Report, folder: Path) -> None:
    """Count what a warm pair of one blocking caller passes in its own thread."""
    calls = _count(folder / "rooms")
    functions, modules = defaultdict[str, int](int), defaultdict[str, set[str]](set)
    layers = Counter[str]()
    for (module, _), count in calls.items():
        layer = module.split("/")[0]
        layers[layer] += count
        functions[layer] += 1
        modules[layer].add(module)
    for layer, count in layers.items():
        report.show(
            f"{layer:8} {count / _PAIRS:5.0f} calls of {functions[layer]:3} functions in "
            f"{len(modules[layer]):2} modules"
        )
    report.ratio("rooms: calls of a pair", calls.total() / _PAIRS, at_most=_MOST_CALLS)
    report.ratio("rooms: functions of a pair", len(calls), at_most=_MOST_FUNCTIONS)
    report.ratio("rooms: modules of a pair", sum(map(len, modules.values())), at_most=_MOST_MODULES)


def _count(path: Path) -> Counter[tuple[str, str]]:
    """Return how often each function, by module and name, was called by all pairs together."""
    calls = Counter[tuple[str, str]]()

    def look(frame: FrameType, event: str, argument: object) -> None:
        del argument
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_SOURCE):
            calls[code.co_filename.removeprefix(_SOURCE), code.co_qualname] += 1

    with leasehold.connect(str(path)) as leases:
        for number in range(_WARM):
            leases.acquire(f"warm-{number}", ttl=300).release()
        sys.setprofile(look)
        try:
            for number in range(_PAIRS):
                leases.acquire(f"counted-{number}", ttl=300).release()
        finally:
            sys.setprofile(None)
    return calls
