"""A store whose domains are worked on, command by command, on a clock that is turned by hand."""

import itertools
from typing import Any

from leasehold.engine.audit import audit
from leasehold.engine.batch import Outcome
from leasehold.engine.port import Store
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.testing.clock import FakeClock
from leasehold.work.law.commands import Enqueue, Fail, GiveBack, KeepAlive, StartAt, Succeed, TryAcquire
from leasehold.work.law.model import WORK, Domain, Flight, Queued, Range, domain_key, flight_key
from tests.families.conftest import House

SECOND = 1_000_000_000


class WorkHouse(House):
    """Asks about work, each time under a request id of its own unless one is given."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        super().__init__(store, clock)
        self._requests = itertools.count(1)

    def said(self, domain: str, more: dict[str, Any]) -> dict[str, Any]:
        return {"domain": domain, "holder": "ann", "request_id": f"r{next(self._requests)}"} | more

    def acquire(self, domain: str, offset: int, **more: Any) -> Outcome:
        return self.one(TryAcquire(offset=offset, **self.said(domain, more)))

    def token(self, domain: str, offset: int, **more: Any) -> str:
        """Acquire an offset that is free to be acquired."""
        acquired = self.acquire(domain, offset, **more)
        assert acquired.outcome == "ACQUIRED", acquired
        token: str = acquired.token
        return token

    def succeed(self, domain: str, token: str, **more: Any) -> Outcome:
        return self.one(Succeed(token=token, **self.said(domain, more)))

    def fail(self, domain: str, token: str, **more: Any) -> Outcome:
        return self.one(Fail(token=token, **self.said(domain, more)))

    def give_back(self, domain: str, token: str, **more: Any) -> Outcome:
        return self.one(GiveBack(token=token, **self.said(domain, more)))

    def keep_alive(self, domain: str, token: str, **more: Any) -> Outcome:
        return self.one(KeepAlive(token=token, **self.said(domain, more)))

    def enqueue(self, domain: str, *offsets: int, **more: Any) -> Outcome:
        return self.one(Enqueue(offsets=offsets, **self.said(domain, more)))

    def start_at(self, domain: str, offset: int, **more: Any) -> Outcome:
        return self.one(StartAt(offset=offset, **self.said(domain, more)))

    def do(self, domain: str, *offsets: int) -> None:
        """Process offsets, one after another."""
        for offset in offsets:
            self.succeed(domain, self.token(domain, offset))

    def records(self, kind: type | None = None) -> dict[str, Any]:
        with self.store.snapshot() as snapshot:
            found = snapshot.state().of(WORK)
        return {key: one for key, one in found.items() if kind is None or isinstance(one, kind)}

    def flight(self, domain: str) -> Flight | None:
        return self.records().get(flight_key("default", domain))

    def domain(self, domain: str) -> Domain:
        record: Domain = self.records()[domain_key("default", domain)]
        return record

    def backlog(self) -> list[int]:
        """What is queued, in the order of places; of all domains."""
        return [one.offset for _, one in sorted(self.records(Queued).items())]

    def ranges(self) -> int:
        return len(self.records(Range))

    def ensure_sound(self) -> None:
        """The ledger replays to the tables, and every invariant holds."""
        assert audit(self.store).problems == []


def refused(outcome: Outcome) -> str:
    """The code that a command was refused with."""
    assert isinstance(outcome, Refusal), outcome
    return outcome.rule or outcome.code


__all__ = ["SECOND", "Command", "WorkHouse", "refused"]
