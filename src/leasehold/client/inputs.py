"""What callers write, checked and brought into the kernel's terms."""

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from leasehold.client.held import AnyHeldLease
from leasehold.engine.clock import Ids, is_id
from leasehold.engine.port import EntryQuery, Head, LeaseQuery
from leasehold.engine.questions import LeaseStatus
from leasehold.errors import InvalidInput, error_of
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.commands import Wanted
from leasehold.kernel.lease.model import REASON, LeaseState, Mode, ReleaseReason, UnknownWord
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.limits import check_text
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

_WordType = TypeVar("_WordType", Mode, LeaseState, ReleaseReason)
_Callback = TypeVar("_Callback", bound=Callable[..., None])
_GrantType = TypeVar("_GrantType", Scope, Budget)
_Item = TypeVar("_Item")
_SHOWN_CHARACTERS = 80
_LARGEST = (1 << 63) - 1
_MICROSECOND = timedelta(microseconds=1)
_NO_TIME = timedelta()

Duration = float | timedelta
"""A number of seconds, or a `datetime.timedelta`; not negative."""

DEFAULT_TTL = 60.0
DEFAULT_KEEP = 30 * 86_400.0


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page of leases."""

    statuses: list[LeaseStatus]
    next: str | None
    """Pass this as `after` for the next page; None: this is the last."""


def duration_ns(field: str, duration: Duration) -> int:
    """Return a duration in nanoseconds; refuse what is none, or less than none."""
    seconds: Any = duration  # Taken for a number first: nearly everybody gives one.
    try:
        if seconds >= 0 and seconds is not True:
            nanoseconds: int = round(seconds * NANOSECONDS_PER_SECOND)
            return nanoseconds
    except (TypeError, ArithmeticError):
        if isinstance(duration, timedelta) and duration >= _NO_TIME:
            return duration // _MICROSECOND * 1_000
    raise InvalidInput(
        f"{field} must be seconds from 0 on, as a number or a timedelta, not {_shown(duration)}", field=field
    )


def seconds_of(duration: Duration) -> float:
    """Return a duration in seconds, also one below 0: where that means not to wait."""
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


def wall_time_ns(field: str, moment: Duration | datetime) -> int:
    """Return a wall time as nanoseconds since 1970; refuse one that does not say where in the world it is."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise InvalidInput(
                f"{field} must have a time zone, as datetime.now().astimezone() has", field=field
            )
        return _storable(field, round(moment.timestamp() * NANOSECONDS_PER_SECOND))
    if isinstance(moment, timedelta):
        raise _no_moment(field, moment)
    try:
        since_ns = duration_ns(field, moment)
    except InvalidInput:
        raise _no_moment(field, moment) from None
    return _storable(field, since_ns)


def _no_moment(field: str, value: object) -> InvalidInput:
    return InvalidInput(
        f"{field} must be a datetime, or seconds since 1970, not {_shown(value)}", field=field
    )


def _storable(field: str, number: int) -> int:
    """Return a number to compare with stored ones; refuse one that is larger than any of them can be."""
    if number > _LARGEST:
        raise InvalidInput(
            f"{field} is beyond all that a store can contain; choose an earlier one", field=field
        )
    return number


def parse(field: str, words: type[_WordType], word: str) -> _WordType:
    """Return the mode, state or reason that a word names, in any case."""
    if isinstance(word, words):
        return word
    try:
        return words.parse(text(field, word))
    except UnknownWord as error:
        raise InvalidInput(f"{field} {error}", field=field) from None


def text(field: str, value: object) -> str:
    """Return a text; refuse what is none. What it may contain is for the law to say."""
    if not isinstance(value, str):
        raise InvalidInput(f"{field} must be text, not {_shown(value)}", field=field)
    return value


def sought(field: str, value: object) -> str:
    """Return a text to look for; refuse one that no store could contain, nor be asked about."""
    found = text(field, value)
    if not found.isascii():
        try:
            found.encode()
        except UnicodeEncodeError:
            raise InvalidInput(f"{field} must be text that UTF-8 can carry", field=field) from None
    return found


def name(field: str, value: object) -> str:
    """Return a text that the law accepts as a name; refuse any other."""
    found = text(field, value)
    refusal = check_text(field, found)
    if refusal is not None:
        raise error_of(refusal)
    return found


def whole_number(field: str, value: object, *, minimum: int | None = None) -> int:
    """Return a whole number; refuse what is none, or too small."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(f"{field} must be a whole number, not {_shown(value)}", field=field)
    if minimum is not None and value < minimum:
        raise InvalidInput(f"{field} must be at least {minimum}, not {_shown(value)}", field=field)
    return value


def mapping(field: str, value: object) -> dict[str, Any]:
    """Return a mapping as a dictionary of our own; refuse what is none."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{field} must be a mapping, not {_shown(value)}", field=field)
    return dict(value)


def facts_of(metadata: Mapping[str, Any] | None, reason: str) -> dict[str, Any]:
    """Return what is kept with a lease: what it is for, and what else its holder says."""
    facts = {} if metadata is None else mapping("metadata", metadata)
    return facts | ({REASON: reason} if text("reason", reason) else {})


def known_head(value: object) -> Head | None:
    """Return a head that was kept elsewhere, or None; refuse anything else."""
    if not isinstance(value, Head | None):
        raise InvalidInput(f"head must be what head() returned, not {_shown(value)}", field="head")
    return value


def file_name(field: str, value: object) -> str:
    """Return the path of a file as text; refuse what is none."""
    return text(field, os.fspath(value) if isinstance(value, os.PathLike) else value)


def amounts(**parts: object) -> Amounts:
    """Return amounts to spend; refuse what is no whole number. Which are right is for the law to say."""
    return Amounts(**{part: whole_number(part, value) for part, value in parts.items()})


def granted(field: str, kind: type[_GrantType], value: object) -> _GrantType:
    """Return a scope or a budget that was given as such, or as a mapping; refuse anything else."""
    if not isinstance(value, kind | Mapping):
        raise InvalidInput(f"{field} must be a {kind.__name__}, not {_shown(value)}", field=field)
    try:
        return msgspec.convert(msgspec.to_builtins(value), kind, strict=True)
    except (TypeError, msgspec.ValidationError) as error:
        raise InvalidInput(f"{field} is not a {kind.__name__}: {error}", field=field) from None


def callback(field: str, value: _Callback | None) -> _Callback | None:
    """Return something that can be called, or None; refuse anything else."""
    if value is not None and not callable(value):
        raise InvalidInput(f"{field} must be something to call, not {_shown(value)}", field=field)
    return value


def lease_id_of(lease: object) -> str:
    """Return the id of a lease that was given as such or by its id."""
    if isinstance(lease, AnyHeldLease):
        return lease.granted.lease_id
    if not isinstance(lease, str):
        raise InvalidInput(f"lease must be a held lease or a lease id, not {_shown(lease)}", field="lease")
    return lease


def claim_ids(ids: Ids, request_id: object) -> tuple[str, str]:
    """Return the ids of the lease and of the request for a claim, whose caller may have named the request.

    A claim that nobody named is its own request. So is one that is named by such an id: it is the retry of a
    claim that nobody named, whose caller has learned its id from an error.
    """
    if request_id is None:
        new = ids.new()
        return new, new
    name = text("request_id", request_id)
    return (name if is_id(name) else ids.new()), name


def _shown(value: object) -> str:
    """Spell a value for a message, without trusting it to be short."""
    shown = repr(value)
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}…"


def page_query(
    tenant: str,
    *,
    resource: str | None = None,
    prefix: str | None = None,
    holder: str | None = None,
    states: Iterable[LeaseState | str] = (),
    held_at_ns: int | None = None,
    after: str | None = None,
    limit: int = 1_000,
) -> LeaseQuery:
    """Return the query for one page of leases."""
    return LeaseQuery(
        tenant=tenant,
        resource=_sought_or_none("resource", resource),
        resource_prefix=_sought_or_none("prefix", prefix),
        holder=_sought_or_none("holder", holder),
        states=tuple(parse("states", LeaseState, state) for state in several("states", states)),
        held_at_ns=held_at_ns,
        after=_sought_or_none("after", after),
        limit=whole_number("limit", limit),
    )


def entry_query(
    tenant: str,
    *,
    lease_id: str | None = None,
    resource: str | None = None,
    holder: str | None = None,
    types: Iterable[str] = (),
    after: int = 0,
    limit: int = 1_000,
) -> EntryQuery:
    """Return the query for one page of the ledger."""
    return EntryQuery(
        tenant=tenant,
        lease_id=_sought_or_none("lease_id", lease_id),
        resource=_sought_or_none("resource", resource),
        holder=_sought_or_none("holder", holder),
        types=tuple(event_type("types", one) for one in several("types", types)),
        after=_storable("after", whole_number("after", after, minimum=0)),
        limit=whole_number("limit", limit),
    )


def event_type(field: str, word: object) -> str:
    """Return the full name of a type of event, of any family: `renewed` means `lease.renewed`."""
    from leasehold.registry import FAMILIES  # loading all families takes time that few need to pay

    known = {str(kind.__struct_config__.tag) for family in FAMILIES for kind in family.events}
    found = text(field, word).lower()
    found = found if "." in found else f"lease.{found}"
    if found not in known:
        short = sorted((kind.removeprefix("lease.") for kind in known), key=lambda kind: ("." in kind, kind))
        raise InvalidInput(f"{field} {_shown(word)} is not one of: {', '.join(short)}", field=field)
    return found


def several(field: str, values: Iterable[_Item]) -> list[_Item]:
    """Return what an iterable gives; refuse a single text, which would be taken for its letters."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(f"{field} must be a list, not {_shown(values)}", field=field)
    return list(values)


def wanted_of(resources: Iterable[str] | Mapping[str, Mode | str], mode: Mode) -> list[Wanted]:
    """Return what a claim on several resources asks for; refuse one for none."""
    if isinstance(resources, Mapping):
        pairs = [(resource, parse("mode", Mode, each)) for resource, each in resources.items()]
    else:
        pairs = [(resource, mode) for resource in several("resources", resources)]
    if not pairs:
        raise InvalidInput("resources must name at least one; name what to own", field="resources")
    return [Wanted(resource=text("resources", resource), mode=each) for resource, each in pairs]


def _sought_or_none(field: str, value: object) -> str | None:
    return None if value is None else sought(field, value)
