"""A limit on everything.

Limits protect the store from one caller, and one caller from another. Each refusal names the limit it
hit. Lengths are counted in UTF-8 bytes, because that is what is stored.
"""

from typing import Any

import msgspec

from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode

ID_BYTES = 128
RESOURCE_BYTES = 512
SIGNATURE_BYTES = 512
METADATA_BYTES = 16 * 1024
METADATA_LEVELS = 32
REASON_BYTES = 1024
BATCH_LEASES = 1_000
SCOPE_NAMES = 256
TTL_MINIMUM_NS = 1_000_000
TTL_MAXIMUM_NS = 30 * 24 * 3600 * 1_000_000_000
RENEWALS_MAXIMUM = 2**31 - 1
RESOURCES_PER_CLAIM = 64
WAITERS_PER_RESOURCE = 10_000
WAKE_BYTES = 256
NUMBER_MINIMUM, NUMBER_MAXIMUM = -(2**63), 2**63 - 1
"""What fits into a column, and into a part of a key."""


def invalid(field: str, detail: str) -> Refusal:
    """Refuse a value that can never be right."""
    return Refusal(code=RefusalCode.INVALID_INPUT, field=field, detail=detail)


def over_limit(field: str, limit: int, detail: str) -> Refusal:
    """Refuse a value or a count that is past its limit."""
    return Refusal(code=RefusalCode.LIMIT_EXCEEDED, field=field, limit=limit, detail=detail)


def check_text(field: str, text: str, limit: int = ID_BYTES) -> Refusal | None:
    """Refuse an empty, over-long or unprintable name."""
    if not text:
        return invalid(field, "must not be empty")
    if text.isascii() and text.isprintable():
        return None if len(text) <= limit else _too_long(field, len(text), limit)
    return _check_unicode(field, text, limit)


def are_plain(*texts: str) -> bool:
    """Say at a glance, for most commands, that `check_text` would find nothing wrong with any of these."""
    together = "".join(texts)
    return len(together) <= ID_BYTES and together.isascii() and together.isprintable() and all(texts)


def _check_unicode(field: str, text: str, limit: int) -> Refusal | None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return invalid(field, "must be text that UTF-8 can carry")
    if size > limit:
        return _too_long(field, size, limit)
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        return invalid(field, "must not contain control characters")
    return None


def _too_long(field: str, size: int, limit: int) -> Refusal:
    return over_limit(field, limit, f"is {size} bytes long; at most {limit} are allowed")


def check_optional(field: str, text: str, limit: int = ID_BYTES) -> Refusal | None:
    """Refuse an over-long or unprintable text that may be empty."""
    return check_text(field, text, limit) if text else None


def check_holder(field: str, holder: str) -> Refusal | None:
    """Refuse a name that nobody can have, or that is the registrar's."""
    if holder == REGISTRAR:
        return invalid(field, f"must not be {REGISTRAR!r}, which is the registrar's own name")
    return check_text(field, holder)


def check_ttl(ttl_ns: int | None) -> Refusal | None:
    """Refuse a time to live of nothing, less than nothing, or more than 30 days; None: none was given."""
    if ttl_ns is None:
        return None
    if ttl_ns < TTL_MINIMUM_NS:
        return invalid("ttl", "must be at least 1 millisecond")
    if ttl_ns > TTL_MAXIMUM_NS:
        return over_limit("ttl", TTL_MAXIMUM_NS, "must be at most 30 days")
    return None


def check_metadata(metadata: dict[str, Any]) -> Refusal | None:
    """Refuse metadata that is too much, too deep, or not JSON.

    What reads back differently from how it was written (a tuple, a date, not-a-number) would make the
    lease of the first answer another one than the lease of a replay.
    """
    if not metadata:
        return None
    if _is_deeper(metadata, METADATA_LEVELS):
        return over_limit("metadata", METADATA_LEVELS, f"must nest at most {METADATA_LEVELS} levels deep")
    try:
        body = msgspec.json.encode(metadata)
    except (TypeError, ValueError, RecursionError) as error:
        return invalid("metadata", f"must be JSON: {error}")
    if len(body) > METADATA_BYTES:
        return _too_long("metadata", len(body), METADATA_BYTES)
    if msgspec.json.decode(body) != metadata:
        return invalid("metadata", "must be JSON: some of it would read back as something else")
    return None


def _is_deeper(value: object, levels: int) -> bool:
    """Say whether lists and dictionaries nest deeper than `levels`: a decoder has to follow them down."""
    match value:
        case dict():
            return levels == 0 or any(_is_deeper(one, levels - 1) for one in value.values())
        case list():
            return levels == 0 or any(_is_deeper(one, levels - 1) for one in value)
        case _:
            return False


def check_batch(lease_ids: tuple[str, ...]) -> Refusal | None:
    """Refuse an empty batch, an over-long one, or a malformed id in it."""
    if not lease_ids:
        return invalid("lease_ids", "must name at least one lease")
    if len(lease_ids) > BATCH_LEASES:
        detail = f"names {len(lease_ids)} leases; at most {BATCH_LEASES} fit in one call"
        return over_limit("lease_ids", BATCH_LEASES, detail)
    together = "".join(lease_ids)
    if together.isascii() and together.isprintable() and all(lease_ids):
        longest = max(map(len, lease_ids))
        return None if longest <= ID_BYTES else _too_long("lease_id", longest, ID_BYTES)
    return next(filter(None, (check_text("lease_id", lease_id) for lease_id in lease_ids)), None)
