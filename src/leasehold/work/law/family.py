"""Work leases as a family of records. Nothing of it is ever forgotten: what is terminal stays terminal."""

from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.family import Family, Rule
from leasehold.work.law.age import age
from leasehold.work.law.check import check_command
from leasehold.work.law.commands import Enqueue, Fail, GiveBack, KeepAlive, StartAt, Succeed, TryAcquire
from leasehold.work.law.events import WORK_EVENTS
from leasehold.work.law.evolve import evolve
from leasehold.work.law.finish import fail, give_back, succeed
from leasehold.work.law.invariants import invariants
from leasehold.work.law.model import WORK, Record, due
from leasehold.work.law.needs import needs
from leasehold.work.law.rules import enqueue, keep_alive, start_at, try_acquire

_RULES: dict[type[Command], Rule] = {
    TryAcquire: try_acquire,
    Enqueue: enqueue,
    Succeed: succeed,
    Fail: fail,
    GiveBack: give_back,
    KeepAlive: keep_alive,
    StartAt: start_at,
}


def work_family() -> Family:
    """Return the family of work leases."""
    return Family(
        name=WORK,
        record=Record,
        events=WORK_EVENTS,
        rules=_RULES,
        check=check_command,
        needs=needs,
        evolve=evolve,
        due=due,
        age=age,
        invariants=invariants,
    )
