"""What time does to an offset in flight.

One whose time is over goes back to the head of the backlog, with what it has behind it, and with one more
failure; where that is one too many, it is given up. One from an earlier era of the clock is given what it had
left. If nobody can tell how much that was, it stays in flight until somebody ends it.
"""

from msgspec.structs import replace

from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.key import split_key
from leasehold.kernel.ledger.tick import Tick
from leasehold.work.law.events import WorkCarried, happening
from leasehold.work.law.finish import give_up, go_back, wake
from leasehold.work.law.model import Flight
from leasehold.work.law.rules import head_of

EXPIRED = "expired"
"""The reason given when an offset goes back, or is given up, because nobody kept it alive."""


def age(key: str, record: Flight, draft: Draft) -> None:
    """Record what time has done to the offset in flight."""
    tenant, _, domain = split_key(key)
    due = record.due
    assert due is not None, "only what is due is aged"
    if due.era != draft.now.tick.era:
        carried = draft.carried(due)
        if carried is None:
            return
        _carry(draft, tenant, domain, record, carried)
        due = carried
    if due.value <= draft.now.tick.value:
        _expire(draft, tenant, domain, record)


def _carry(draft: Draft, tenant: str, domain: str, flight: Flight, due: Tick) -> None:
    said = happening(draft.now, tenant, domain)
    draft.append(WorkCarried(**said, offset=flight.offset, fence=flight.fence, due=due.value))


def _expire(draft: Draft, tenant: str, domain: str, flight: Flight) -> None:
    head = head_of(draft, tenant, domain)
    if flight.retry_count >= flight.max_retries:
        give_up(draft, tenant, domain, flight, head, reason=EXPIRED)
        wake(draft, flight.wake)
        if head is not None:
            wake(draft, head[1].wake)
        return
    failed_again = replace(flight, retry_count=flight.retry_count + 1)
    go_back(draft, tenant, domain, failed_again, reason=EXPIRED)
