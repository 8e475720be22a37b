"""What can be asked about work, and who answers it: from a look at the store that waits for no writer.

An answer costs the same however long the backlog is; of ranges and domains it has one page.
"""

from enum import StrEnum
from typing import Annotated, Any

import msgspec

from leasehold.engine.port import EntryQuery, Snapshot
from leasehold.engine.questions import Question, check_limit
from leasehold.engine.registrar import Registrar
from leasehold.kernel.ledger.authority import carry_over, now_of
from leasehold.kernel.ledger.commands import Right
from leasehold.kernel.ledger.key import read_number, split_key
from leasehold.kernel.ledger.records import Found, Keys, Scan, Wanted
from leasehold.kernel.ledger.tick import Tick
from leasehold.work.law.events import WorkFailed
from leasehold.work.law.model import (
    OFFSET_MAXIMUM,
    WORK,
    Domain,
    Flight,
    Range,
    Reach,
    domain_key,
    domains_of,
    flight_key,
    queued_key,
    ranges_from,
    ranges_up_to,
    resource_of,
)

_FAILED_TYPE = str(WorkFailed.__struct_config__.tag)


class WorkState(StrEnum):
    """Whether a domain is at work."""

    IN_FLIGHT = "IN_FLIGHT"
    IDLE = "IDLE"


class DomainState(msgspec.Struct, frozen=True, kw_only=True):
    """How a domain stands at the moment of the answer."""

    domain: str
    state: WorkState
    current_offset: int | None
    token: str | None
    holder: str | None
    """Who acquired the offset in flight."""
    acquired_at_millis: int | None
    retry_count: int
    expires_in: float | None
    """Seconds until the offset in flight goes back to the backlog; None: it does not by itself.

    0: its time is over, and nobody has recorded that yet; whoever acts on the domain will."""
    backlog: int
    """How many offsets are queued."""
    head: int | None
    """The first of them."""
    processed: tuple[tuple[int, int], ...]
    """Ranges of processed offsets: the first of each, and the last. At most `limit` ranges are looked at."""
    failed: tuple[tuple[int, int], ...]
    processed_count: int
    failed_count: int
    start: int
    """Every offset below this one counts as processed."""
    watermark: int
    """Every offset below this one is terminal: what to commit upstream."""
    more_from: int | None
    """Ask with this as `ranges_from` for further ranges; None: these are all."""


class FailedOffset(msgspec.Struct, frozen=True, kw_only=True):
    """An offset that was given up."""

    offset: int
    reason: str | None
    """None: its history was pruned."""
    retry_count: int | None
    failed_at_ns: int | None


class FindDomain(Question[DomainState], frozen=True, kw_only=True, tag="work_find_domain"):
    """Ask how a domain stands; one that nobody has ever used is idle."""

    right = Right.LOOK

    domain: str
    ranges_from: Annotated[int, msgspec.Meta(ge=0, le=OFFSET_MAXIMUM)] = 0
    limit: int = 100


class ListDomains(Question[list[DomainState]], frozen=True, kw_only=True, tag="work_list_domains"):
    """Ask for a page of domains, in the order of their names, without their ranges."""

    right = Right.LOOK

    after: str = ""
    limit: int = 100


class FindWatermark(Question[int], frozen=True, kw_only=True, tag="work_find_watermark"):
    """Ask below which offset everything is terminal."""

    right = Right.LOOK

    domain: str


class ListFailed(Question[list[FailedOffset]], frozen=True, kw_only=True, tag="work_list_failed"):
    """Ask for a page of offsets that were given up, lowest first, with why."""

    right = Right.LOOK

    domain: str
    after: Annotated[int, msgspec.Meta(ge=-1, le=OFFSET_MAXIMUM)] = -1
    limit: int = 100


def find_domain(registrar: Registrar, question: FindDomain, snapshot: Snapshot) -> DomainState:
    """Say how a domain stands."""
    del registrar
    check_limit(question.limit)
    states = _states(snapshot, question.one_tenant, [question.domain])
    if not states:
        return _state(snapshot, Domain(name=question.domain, created_at_ns=0), None, None, 0)
    return _with_ranges(snapshot, question.one_tenant, states[0], question.ranges_from, question.limit)


def list_domains(registrar: Registrar, question: ListDomains, snapshot: Snapshot) -> list[DomainState]:
    """Return a page of domains."""
    del registrar
    check_limit(question.limit)
    tenant = question.one_tenant
    found = _read(snapshot, scans={Scan(*domains_of(tenant, question.after), question.limit)})
    (keys,) = found.scans.values()
    return _states(snapshot, tenant, [found.records[key].name for key in keys])


def find_watermark(registrar: Registrar, question: FindWatermark, snapshot: Snapshot) -> int:
    """Return below which offset everything is terminal; 0 in a domain that nobody has used."""
    del registrar
    states = _states(snapshot, question.one_tenant, [question.domain])
    return states[0].watermark if states else 0


def list_failed(registrar: Registrar, question: ListFailed, snapshot: Snapshot) -> list[FailedOffset]:
    """Return a page of offsets that were given up."""
    del registrar
    check_limit(question.limit)
    tenant, domain = question.one_tenant, question.domain
    if question.after >= OFFSET_MAXIMUM:
        return []
    reaches, _ = _ranges(snapshot, tenant, domain, question.after + 1, question.limit, failed=True)
    offsets = (offset for one in reaches for offset in range(one.first, one.last + 1))
    page = [offset for offset, _ in zip(offsets, range(question.limit), strict=False)]
    return [_failed(snapshot, tenant, domain, offset) for offset in page]


REPLIES: dict[type[Question[Any]], Any] = {
    FindDomain: find_domain,
    ListDomains: list_domains,
    FindWatermark: find_watermark,
    ListFailed: list_failed,
}
"""Who answers each of these questions."""


def _read(snapshot: Snapshot, **wanted: Any) -> Found:
    found: Found = snapshot.read(Keys(families={WORK: Wanted(**wanted)})).families[WORK]
    return found


def _states(snapshot: Snapshot, tenant: str, names: list[str]) -> list[DomainState]:
    """Return how domains stand, in two reads for all of them; those that nobody has used are left out."""
    keys = {key for name in names for key in (domain_key(tenant, name), flight_key(tenant, name))}
    records = _read(snapshot, keys=keys).records
    known: list[Domain] = [one for name in names if (one := records.get(domain_key(tenant, name)))]
    heads = {one.name: queued_key(tenant, one.name, one.first) for one in known if one.backlog}
    starts = {one.name: Scan(*ranges_up_to(tenant, one.name, one.start), 1, reverse=True) for one in known}
    found = _read(snapshot, keys=set(heads.values()), scans=set(starts.values()))
    states = []
    for one in known:
        head = found.records[heads[one.name]].offset if one.name in heads else None
        terminal = [found.records[key].last + 1 for key in found.scans[starts[one.name]]]
        flight = records.get(flight_key(tenant, one.name))
        states.append(_state(snapshot, one, flight, head, max([one.start, *terminal])))
    return states


def _state(
    snapshot: Snapshot, domain: Domain, flight: Flight | None, head: int | None, watermark: int
) -> DomainState:
    return DomainState(
        domain=domain.name,
        state=WorkState.IDLE if flight is None else WorkState.IN_FLIGHT,
        current_offset=None if flight is None else flight.offset,
        token=None if flight is None else flight.token,
        holder=None if flight is None else flight.holder,
        acquired_at_millis=None if flight is None else flight.acquired_at_ns // 1_000_000,
        retry_count=0 if flight is None else flight.retry_count,
        expires_in=None if flight is None or flight.due is None else _seconds_left(snapshot, flight.due),
        backlog=domain.backlog,
        head=head,
        processed=(),
        failed=(),
        processed_count=domain.processed,
        failed_count=domain.failed,
        start=domain.start,
        watermark=watermark,
        more_from=None,
    )


def _seconds_left(snapshot: Snapshot, due: Tick) -> float | None:
    """Return what is left by the authority's clock; None if nobody can tell. 0: its end is not recorded."""
    authority = snapshot.authority
    assert authority is not None, "a store with records has a registrar"
    if due.era != authority.era:
        eras = snapshot.read(Keys(eras=set(range(due.era, authority.era)))).eras
        carried = carry_over(due, authority, eras)
        if carried is None:
            return None
        due = carried
    left = now_of(authority, snapshot.reading()).tick.until(due)
    return None if left is None else max(0, left) / due.rate


def _with_ranges(snapshot: Snapshot, tenant: str, state: DomainState, first: int, limit: int) -> DomainState:
    """Add the ranges of a domain from an offset on, of processed and of failed offsets, up to a limit."""
    done, more_done = _ranges(snapshot, tenant, state.domain, first, limit)
    failed, more_failed = _ranges(snapshot, tenant, state.domain, first, limit, failed=True)
    more = min((one for one in (more_done, more_failed) if one is not None), default=None)
    if more is not None:
        done, failed = _below(done, more), _below(failed, more)
    return msgspec.structs.replace(
        state,
        processed=tuple(_without(done, failed)),
        failed=tuple((one.first, one.last) for one in failed),
        more_from=more,
    )


def _ranges(
    snapshot: Snapshot, tenant: str, domain: str, first: int, limit: int, *, failed: bool = False
) -> tuple[list[Reach], int | None]:
    """Return ranges from an offset on, cut off there, and where there may be more."""
    before = Scan(*ranges_up_to(tenant, domain, first, failed=failed), 1, reverse=True)
    low, high = ranges_from(tenant, domain, first, failed=failed)
    behind = Scan(low, high, limit)
    found = _read(snapshot, scans={before, behind})
    keys = sorted({*found.scans[before], *found.scans[behind]})
    reaches = []
    for key in keys:
        record: Range = found.records[key]
        begins = read_number(split_key(key)[-1])
        if record.last >= first:
            reaches.append(Reach(first=max(first, begins), last=record.last))
    is_cut = len(found.scans[behind]) == limit and reaches[-1].last < OFFSET_MAXIMUM
    return reaches, reaches[-1].last + 1 if is_cut else None


def _below(reaches: list[Reach], end: int) -> list[Reach]:
    """Return what of ranges is below an offset."""
    return [Reach(first=one.first, last=min(one.last, end - 1)) for one in reaches if one.first < end]


def _without(reaches: list[Reach], holes: list[Reach]) -> list[tuple[int, int]]:
    """Return ranges with holes taken out of them; both in order, and every hole is in one of the ranges."""
    left: list[tuple[int, int]] = []
    waiting = list(reversed(holes))
    for one in reaches:
        first = one.first
        while waiting and waiting[-1].first <= one.last:
            hole = waiting.pop()
            if first < hole.first:
                left.append((first, hole.first - 1))
            first = hole.last + 1
        if first <= one.last:
            left.append((first, one.last))
    return left


def _failed(snapshot: Snapshot, tenant: str, domain: str, offset: int) -> FailedOffset:
    query = EntryQuery(tenant=tenant, resource=resource_of(domain, offset), types=(_FAILED_TYPE,), limit=1)
    entries = snapshot.entries(query)
    event: Any = entries[0].event if entries else None
    return FailedOffset(
        offset=offset,
        reason=None if event is None else event.reason,
        retry_count=None if event is None else event.retry_count,
        failed_at_ns=None if event is None else event.at_ns,
    )
