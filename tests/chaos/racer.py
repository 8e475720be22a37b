"""A process that competes for leases until it is ended, and writes down what it did and what it was told.

    python -m tests.chaos.racer STORE LOG TTL SEED RESOURCES

Every line is one write to an append-only file, made before the racer does the next thing, so that nothing
it was told can be lost with it:

    try RESOURCE                    it asked, and was refused
    granted RESOURCE LEASE TOKEN MODE
    act RESOURCE TOKEN TICK         it trusted the lease at this moment of the machine's own clock
    renewed LEASE
    released LEASE                  it was told that it gave the lease back
"""

import os
import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import leasehold

_HOLD_SECONDS = 0.01


def race(store: str, log: str, ttl: float, seed: int, resources: int) -> None:
    """Compete for ever."""
    dice = random.Random(seed)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    pause = threading.Event()

    def note(*words: object) -> None:
        os.write(descriptor, (" ".join(map(str, words)) + "\n").encode())

    with leasehold.connect(store, timeout=3600) as leases:
        while True:
            resource = f"prize-{dice.randrange(resources)}"
            mode = "exclusive" if resources == 1 or dice.random() < 0.5 else "shared"
            lease = leases.try_acquire(resource, ttl=ttl, mode=mode)
            if lease is None:
                note("try", resource)
                pause.wait(dice.uniform(0, _HOLD_SECONDS))
                continue
            note("granted", resource, lease.lease_id, lease.token, mode)
            with suppress(leasehold.LeaseLost):
                _use(lease, dice, pause, note)
            # Also when it was lost: the holder stops believing in a lease a little before it is over.
            if lease.release():
                note("released", lease.lease_id)


def _use(
    lease: leasehold.HeldLease, dice: random.Random, pause: threading.Event, note: Callable[..., None]
) -> None:
    for _ in range(dice.randrange(1, 6)):
        # Read before asking: if the lease is trusted after this moment, it was trusted at it. A stop
        # between asking and reading would make an innocent act look late.
        moment_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        lease.ensure()
        note("act", lease.resource, lease.token, moment_ns)
        if dice.random() < 0.3:
            lease.renew()
            note("renewed", lease.lease_id)
        pause.wait(dice.uniform(0, _HOLD_SECONDS))


if __name__ == "__main__":
    race(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
