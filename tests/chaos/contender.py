"""One of many processes that compete for leases, and write down what they believe and what they were told.

Run by the supervisor, and killed or stopped by it at any moment. Everything is written with one call to a
file opened for appending, so a line is there whole or not at all, and before anything else is done:

    granted LEASE TOKEN RESOURCE MODE 0 0           the registrar said so
    released LEASE TOKEN RESOURCE MODE 0 0          the registrar said so
    renewed LEASE TOKEN RESOURCE MODE COUNT 0       the registrar has renewed it so often by now
    act LEASE TOKEN RESOURCE MODE FROM UNTIL        trusted in the lease all the time between these ticks
    lost LEASE TOKEN RESOURCE MODE 0 0              found out, in whatever way, that it is gone

`waiter` and `climber` are others of its kind.
"""

import mmap
import os
import random
import struct
import sys
import threading

import leasehold
from leasehold.engine.clock import SystemClock

NUMBER = struct.Struct("<q")
END_TICK = 0
"""The first number on the board: when to end. The others count the operations of each place."""


class Board:
    """Numbers that the supervisor and all contenders see, and that outlive whoever wrote them."""

    def __init__(self, path: str, places: int) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._file, NUMBER.size * (places + 1))
        self._numbers = mmap.mmap(self._file, NUMBER.size * (places + 1))

    def read(self, place: int) -> int:
        return int(NUMBER.unpack_from(self._numbers, NUMBER.size * place)[0])

    def write(self, place: int, number: int) -> None:
        NUMBER.pack_into(self._numbers, NUMBER.size * place, number)

    def close(self) -> None:
        self._numbers.close()
        os.close(self._file)


class Contender:
    """Acquires, acts, renews and releases at random until it is told to end."""

    def __init__(self, folder: str, place: int, places: int, resources: int, ttl: float) -> None:
        self._board = Board(f"{folder}/board", places)
        self._log, self._notes = (
            os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            for name in ("log", "notes")
        )
        self._place = place
        self._resources = resources
        self.ttl = ttl
        self.clock = SystemClock()
        self.random = random.Random()
        self._nothing = threading.Event()
        self.held: dict[str, leasehold.HeldLease] = {}
        self._trusted_from: dict[str, int] = {}
        self.leases = leasehold.connect(
            f"{folder}/leases", holder=f"{place}.{os.getpid()}", timeout=300, create=False
        )

    def run(self) -> None:
        """Go on until the end is written on the board, and release what is held then."""
        while not self.is_over():
            self._acquire_one()
            for _ in range(self.random.randint(1, 4)):
                self.act_on_all()
                self.rest(0.008)
            if self.random.random() < 0.3:
                self._renew_all()
            if self.held and self.random.random() < 0.6:
                self._release_one()
        for _ in list(self.held):
            self._release_one()
        self.leases.close()

    def is_over(self) -> bool:
        """Say whether the supervisor wants everybody to end."""
        return 0 < self._board.read(END_TICK) <= self.clock.tick_ns()

    def rest(self, seconds: float) -> None:
        """Do nothing for a while, at most so long."""
        self._nothing.wait(self.random.uniform(0, seconds))

    def _acquire_one(self) -> None:
        resource = f"prize-{self.random.randrange(self._resources)}"
        if resource in self.held:
            return
        shared = self._resources > 1 and self.random.random() < 0.5
        lease = self.leases.try_acquire(resource, ttl=self.ttl, mode="shared" if shared else "exclusive")
        self.count()
        if lease is not None:
            self.take(lease)

    def take(self, lease: leasehold.HeldLease) -> None:
        """Write down what was granted, and act under it from now on."""
        self._write("granted", lease)
        self._trusted_from[lease.resource] = self.clock.tick_ns()
        self.held[lease.resource] = lease

    def act_on_all(self) -> None:
        for resource, lease in list(self.held.items()):
            until = self.clock.tick_ns()
            try:
                lease.ensure()
            except leasehold.LeaseLost:
                self._forget(lease)
                continue
            # Trusted now, so trusted ever since the last time: the acts between then and `until` were fair.
            self._write("act", lease, self._trusted_from[resource], until)
            self._trusted_from[resource] = until

    def _renew_all(self) -> None:
        held = list(self.held.values())
        if not held:
            return
        results = self.leases.renew_many(held)
        self.count()
        for lease, result in zip(held, results, strict=True):
            if isinstance(result, leasehold.LeaseStatus):
                self._write("renewed", lease, result.lease.renewal_count)
            elif isinstance(result, leasehold.LeaseLost):
                self._forget(lease)
            else:
                raise result

    def _release_one(self) -> None:
        self.release(self.random.choice(list(self.held.values())))

    def release(self, lease: leasehold.HeldLease) -> None:
        released = lease.release()
        self.count()
        self._write("released" if released else "lost", lease)
        del self.held[lease.resource]

    def _forget(self, lease: leasehold.HeldLease) -> None:
        """Stop using a lease; and give it back, as a holder stops trusting a little before it is over."""
        self._write("lost", lease)
        self.release(lease)

    def count(self) -> None:
        self._board.write(self._place, self._board.read(self._place) + 1)

    def note(self, text: str) -> None:
        """Write down something that is about no lease."""
        os.write(self._notes, f"{text}\n".encode())

    def _write(self, what: str, lease: leasehold.HeldLease, one: int = 0, two: int = 0) -> None:
        line = f"{what} {lease.lease_id} {lease.token} {lease.resource} {lease.mode} {one} {two}\n"
        os.write(self._log, line.encode())


def play(kind: type[Contender]) -> None:
    """Be a contender of this kind, as the supervisor's arguments say."""
    place, places, resources = map(int, sys.argv[2:5])
    kind(sys.argv[1], place, places, resources, float(sys.argv[5])).run()


if __name__ == "__main__":
    play(Contender)
