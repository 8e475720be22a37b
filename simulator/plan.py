"""What kind of world a seed gives.

Each world has its own mix of troubles: most faults are switched off in it, and some of the others are
frequent. Worlds in which everything fails a little all look the same; worlds with a character of their own
reach corners that an average never does.
"""

from random import Random

import msgspec

from leasehold.kernel.lease.quotas import Quotas

SECOND = 1_000_000_000

_RATES = {
    "request lost": (0.02, 0.15),
    "request delayed": (0.02, 0.15),
    "request duplicated": (0.05, 0.3),
    "reply lost": (0.03, 0.2),
    "reply delayed": (0.02, 0.15),
    "reply duplicated": (0.05, 0.3),
    "engine crashed before its batch": (0.01, 0.04),
    "engine crashed between commit and reply": (0.02, 0.08),
    "engine stalled": (0.01, 0.05),
    "another engine came in between": (0.1, 0.5),
    "store was busy": (0.05, 0.3),
    "store met a conflict": (0.02, 0.2),
    "store rejected a batch": (0.02, 0.15),
    "store was full": (0.01, 0.08),
    "store failed before the commit": (0.01, 0.08),
    "store failed after the commit": (0.01, 0.1),
    "commit took long": (0.02, 0.1),
    "holder paused": (0.02, 0.1),
    "holder died": (0.01, 0.06),
    "act arrived late": (0.05, 0.3),
}
"""How often each fault strikes when it has the chance to, where it is switched on."""

_CROWD_RATES = {
    "ring lost": (0.1, 0.6),
    "look taken in late": (0.5, 0.9),
    "waiter stopped asking": (0.02, 0.1),
    "wait cancelled": (0.02, 0.1),
}
"""The same, for what happens only where holders wait."""

_DISASTERS = (
    "wall clock jumped",
    "authority clock went back",
    "machine rebooted",
    "restored from a backup",
    "key rotated",
    "file copied",
    "file copied and machine rebooted",
    "two incarnations at once",
)

_ARCHIVING = ("history to be pruned", "history to be pruned", "tables damaged and rebuilt")
_FOR_CHILDREN = ("desk", "shelf")


class Outage(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which no engine is there."""

    begins: float
    """As a share of the time in which there are troubles."""
    lasts_ns: int
    settles_ns: int
    """How long, at most, what lapsed meanwhile is kept for those who held it."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one world."""

    seed: int
    engines: int
    clients: int
    tenants: tuple[str, ...]
    resources: tuple[str, ...]
    quotas: Quotas
    fast: bool
    """The store may lose its last commits in a power cut. Then all holders live on the store's machine."""
    ttl_ns: int
    """The scale of time: leases last about so long, and the world some twenty times that."""
    latency_ns: int
    drift_ppm: int
    """How far the holders' clocks may run from the authority's."""
    busy: float
    """How much of the time a client does something."""
    rates: dict[str, float]
    disasters: tuple[str, ...]
    """What happens to the machine and the store, in this order, spread over the time."""
    delegating: bool
    """Leases have scopes and budgets, and children."""
    certifying: bool
    """Resources that cannot ask anybody are shown certificates."""
    archiving: tuple[str, ...]
    """What is done to the history."""
    outages: tuple[Outage, ...]
    """When all engines are down for a while."""
    crowded: bool
    """Holders wait, change modes, claim several resources and paths, and hand over."""

    @property
    def horizon_ns(self) -> int:
        """Return when the troubles end; where it is crowded, much happens in little time."""
        return (10 if self.crowded else 16) * self.ttl_ns


def draw_plan(seed: int, random: Random) -> Plan:
    """Draw the facts of a world."""
    delegating, crowded = seed % 2 == 1, seed % 4 == 2 or seed % 8 == 7
    ttl_ns = random.choice((SECOND // 2, 2 * SECOND, 10 * SECOND, 10 * SECOND if crowded else 60 * SECOND))
    quotas = random.choice((Quotas(), Quotas(), Quotas(leases_per_holder=2, leases_per_tenant=3)))
    return Plan(
        seed=seed,
        engines=random.randint(1, 3),
        clients=random.randint(2, 5),
        tenants=random.choice((("default",), ("default",), ("default", "other"))),
        resources=("door", "gate", "wall")[: random.randint(1, 3)] + _FOR_CHILDREN[: 2 * delegating],
        quotas=quotas,
        fast=random.random() < 0.3,
        ttl_ns=ttl_ns,
        latency_ns=ttl_ns * random.choice((0, 0, 1, 20, 200)) // 1_000,
        drift_ppm=random.choice((0, 1_000, 1_000)),
        busy=random.choice((0.1, 0.3, 0.5)),
        rates=_draw_rates(_RATES, random) | _draw_rates(_CROWD_RATES if crowded else {}, random),
        disasters=_draw_disasters(random),
        delegating=delegating,
        certifying=seed % 4 != 3,
        archiving=_draw_archiving(seed),
        outages=_draw_outages(seed, ttl_ns),
        crowded=crowded,
    )


def _draw_archiving(seed: int) -> tuple[str, ...]:
    """Draw it from dice of its own: worlds in which nothing is done are what they were without it."""
    random = Random(f"archiving {seed}")
    if seed % 4 in (1, 2):
        return ()
    return tuple(random.choice(_ARCHIVING) for _ in range(random.randint(0, 3)))


def _draw_outages(seed: int, ttl_ns: int) -> tuple[Outage, ...]:
    """Draw them from dice of their own, too. Some come so soon that the one before has not settled yet."""
    random = Random(f"outages {seed}")
    if random.random() > 0.3:
        return ()
    first = random.uniform(0.1, 0.6)
    return tuple(
        Outage(
            begins=begins,
            lasts_ns=int(ttl_ns * random.choice((0.2, 0.5, 1, 2))),
            settles_ns=int(ttl_ns * random.choice((0.5, 1, 2, 4))),
        )
        for begins in (first, first + random.choice((0.05, 0.3)))[: random.randint(1, 2)]
    )


def _draw_rates(rates: dict[str, tuple[float, float]], random: Random) -> dict[str, float]:
    return {fault: random.uniform(low, high) for fault, (low, high) in rates.items() if random.random() < 0.4}


def _draw_disasters(random: Random) -> tuple[str, ...]:
    if random.random() < 0.25:
        return ()
    kinds = random.sample(_DISASTERS, k=random.randint(1, 3))
    return tuple(random.choice(kinds) for _ in range(random.randint(1, 6)))
