"""Records made by hand, for what no sequence of commands leads to."""

from typing import Any

from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.commands import (
    Acquire,
    ChangeMode,
    Derive,
    Release,
    Renew,
    Revoke,
    Spend,
    Transfer,
)
from leasehold.kernel.lease.model import Lease, Mode
from leasehold.kernel.ledger.authority import Authority, ClockReading, Era
from leasehold.kernel.ledger.commands import Command, Sweep
from leasehold.kernel.ledger.tick import Now, Tick

TOKEN = (1 << 23) + 1

ACQUIRE = Acquire(request_id="r", lease_id="lease-1", resource="door", holder="ann", ttl_ns=10**9)
RENEW = Renew(request_id="r", lease_ids=("lease-1",), holder="ann")
RELEASE = Release(request_id="r", lease_ids=("lease-1",), holder="ann")
REVOKE = Revoke(request_id="r", lease_id="lease-1", operator="olga", reason="maintenance")
SWEEP = Sweep(request_id="r", family="lease", key="lease-1")
DERIVE = Derive(
    request_id="r",
    parent_id="lease-1",
    holder="ann",
    lease_id="lease-2",
    resource="gate",
    child_holder="bob",
    budget=Budget(tokens=1),
)
SPEND = Spend(request_id="r", lease_id="lease-1", holder="ann", amounts=Amounts(tokens=1))
CHANGE_MODE = ChangeMode(request_id="r", lease_id="lease-1", holder="ann", mode=Mode.EXCLUSIVE)
TRANSFER = Transfer(request_id="r", lease_id="lease-1", holder="ann", to="bob", new_lease_id="lease-2")
COMMANDS: list[Command] = [ACQUIRE, RENEW, RELEASE, REVOKE, SWEEP, DERIVE, SPEND, CHANGE_MODE, TRANSFER]
"""One command of each kind."""


def a_lease(**fields: Any) -> Lease:
    """An active lease of ann on the door, from tick 50 to tick 100."""
    defaults: dict[str, Any] = {
        "lease_id": "lease-1",
        "resource": "door",
        "holder": "ann",
        "token": TOKEN,
        "ttl_ns": 50,
        "issued_tick": Tick(value=50),
        "expires_tick": Tick(value=100),
        "issued_at_ns": 5_000,
        "expires_at_ns": 5_050,
    }
    return Lease(**(defaults | fields))


def an_authority(**fields: Any) -> Authority:
    """The registrar's record in the first epoch and era, at tick 50, after one grant."""
    defaults: dict[str, Any] = {
        "epoch": 1,
        "counter": 1,
        "era": 1,
        "era_first_tick": 10,
        "boot_id": "boot-1",
        "identity": "8:77",
        "tick": 50,
        "wall_ns": 5_000,
    }
    return Authority(**(defaults | fields))


def a_reading(**fields: Any) -> ClockReading:
    """A reading of the clock that `an_authority` knows, a little later."""
    defaults: dict[str, Any] = {"tick_value": 60, "wall_ns": 6_000, "boot_id": "boot-1", "identity": "8:77"}
    return ClockReading(**(defaults | fields))


def an_era(**fields: Any) -> Era:
    """An ended era that ran from tick 10 to tick 50."""
    defaults: dict[str, Any] = {
        "number": 1,
        "boot_id": "boot-1",
        "first_tick": 10,
        "last_tick": 50,
        "rate": 1_000_000_000,
    }
    return Era(**(defaults | fields))


def at(value: int, era: int = 1, wall_ns: int = 9_000) -> Now:
    """The moment at a tick of an era."""
    return Now(tick=Tick(value=value, era=era), wall_ns=wall_ns)


OF_LEASE: dict[str, Any] = {
    "tick": Tick(value=60),
    "at_ns": 6_000,
    "actor": "ann",
    "lease_id": "lease-1",
    "resource": "door",
    "holder": "ann",
    "token": TOKEN,
}
"""What every event of one lease says: here, that of `a_lease`, at tick 60."""

OF_STORE: dict[str, Any] = {
    "tick": Tick(value=60),
    "at_ns": 6_000,
    "actor": "registrar",
    "boot_id": "boot-1",
    "identity": "8:77",
}
"""What every event of the store says: here, of the file and the clock that `an_authority` knows."""
