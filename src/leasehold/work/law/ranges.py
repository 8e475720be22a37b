"""Which offsets are terminal. An offset costs a fixed number of looks, however many ranges there are."""

from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.key import read_number, split_key
from leasehold.work.law.model import OFFSET_MAXIMUM, WORK, Range, Reach, range_key, ranges_up_to


def reach_before(
    draft: Draft, tenant: str, domain: str, offset: int, *, failed: bool = False
) -> Reach | None:
    """Return the last range that begins at an offset or below."""
    low, high = ranges_up_to(tenant, domain, offset, failed=failed)
    keys: list[str] = draft.view.parts[WORK].scan(low, high, 1, reverse=True)
    if not keys:
        return None
    record: Range = draft.get(WORK, keys[0])
    return Reach(first=read_number(split_key(keys[0])[-1]), last=record.last)


def is_in(draft: Draft, tenant: str, domain: str, offset: int, *, failed: bool = False) -> bool:
    """Say whether an offset is terminal, or whether it has failed."""
    before = reach_before(draft, tenant, domain, offset, failed=failed)
    return before is not None and offset <= before.last


def reach_with(draft: Draft, tenant: str, domain: str, offset: int, *, failed: bool = False) -> Reach:
    """Return the range that an offset, which is in none, will be part of."""
    before = reach_before(draft, tenant, domain, offset, failed=failed)
    first = before.first if before is not None and before.last == offset - 1 else offset
    behind = None
    if offset < OFFSET_MAXIMUM:
        behind = draft.get(WORK, range_key(tenant, domain, offset + 1, failed=failed))
    return Reach(first=first, last=offset if behind is None else behind.last)
