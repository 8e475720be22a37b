"""What a batch of commands about work reads first: for all of them at once, in a few rounds."""

from collections.abc import Sequence
from typing import Any

from leasehold.kernel.ledger.commands import Sweep
from leasehold.kernel.ledger.key import split_key
from leasehold.kernel.ledger.records import Keys, Missing, Wanted
from leasehold.kernel.ledger.table import Table
from leasehold.kernel.ledger.view import View
from leasehold.work.law.commands import Enqueue, Fail, GiveBack, Succeed, TryAcquire
from leasehold.work.law.model import (
    OFFSET_MAXIMUM,
    WORK,
    Domain,
    Flight,
    domain_key,
    flight_key,
    place_key,
    places_behind,
    queued_key,
    range_key,
    ranges_up_to,
)

_REMEMBERED = (TryAcquire, Enqueue, Succeed, Fail, GiveBack)


def needs(commands: Sequence[Any], view: View) -> Keys | None:
    """Return what commands are sure to need and the view lacks; None: nothing."""
    needed = _Needed(view)
    for command in commands:
        if isinstance(command, Sweep):
            tenant, _, domain = split_key(command.key)[:3]
            needed.domain(tenant, domain)
            continue
        if isinstance(command, _REMEMBERED) and not view.knows_request(command.request_key):
            needed.keys.requests.add(command.request_key)
        needed.domain(command.tenant, command.domain)
        if isinstance(command, TryAcquire | Enqueue):
            needed.places(command.tenant, command.domain, _offsets(command))
            needed.tail(command.tenant, command.domain, is_sure=isinstance(command, Enqueue))
        elif isinstance(command, Succeed | Fail):
            needed.end(command.tenant, command.domain)
    return needed.keys if needed.keys else None


def _offsets(command: TryAcquire | Enqueue) -> tuple[int, ...]:
    return command.offsets if isinstance(command, Enqueue) else (command.offset,)


class _Needed:
    """What is needed, and lacking in a view."""

    def __init__(self, view: View) -> None:
        self._table: Table = view.parts[WORK]
        self._wanted = Wanted()
        self.keys = Keys(families={WORK: self._wanted})

    def key(self, key: str) -> None:
        """Need a record."""
        if key not in self._table.records:
            self._wanted.keys.add(key)

    def domain(self, tenant: str, domain: str) -> None:
        """Need a domain, what is in flight there, and once that is known, the head of its backlog."""
        key = domain_key(tenant, domain)
        self.key(key)
        self.key(flight_key(tenant, domain))
        record: Domain | None = self._table.records.get(key)
        if record is not None and record.backlog:
            self.key(queued_key(tenant, domain, record.first))

    def places(self, tenant: str, domain: str, offsets: Sequence[int]) -> None:
        """Need to know whether offsets are terminal, or in the backlog."""
        for offset in offsets:
            self._scan(*ranges_up_to(tenant, domain, offset), reverse=True)
            self.key(place_key(tenant, domain, offset))

    def tail(self, tenant: str, domain: str, *, is_sure: bool) -> None:
        """Need the places behind the tail of the backlog, which are all empty, if some will be taken."""
        records, key = self._table.records, domain_key(tenant, domain)
        if key in records and (is_sure or records.get(flight_key(tenant, domain)) is not None):
            record: Domain | None = records[key]
            self._scan(*places_behind(tenant, domain, 0 if record is None else record.next))

    def end(self, tenant: str, domain: str) -> None:
        """Need what the offset in flight will be joined with when it ends."""
        flight: Flight | None = self._table.records.get(flight_key(tenant, domain))
        if flight is not None:
            self._scan(*ranges_up_to(tenant, domain, flight.offset), reverse=True)
            if flight.offset < OFFSET_MAXIMUM:
                self.key(range_key(tenant, domain, flight.offset + 1))

    def _scan(self, low: str, high: str, *, reverse: bool = False) -> None:
        try:
            self._table.scan(low, high, 1, reverse=reverse)
        except Missing as missing:
            self._wanted.add(missing.keys.families[WORK])
