"""The API page: every public name, with what its source says about it."""

import types

import leasehold
from leasehold.client.blocking.loss import Loss
from tools.reference.source import (
    Member,
    attributes,
    class_node,
    constant_text,
    docstring,
    fields,
    function_member,
    members,
    public_classes,
)
from tools.reference.writing import code, field_table, name, page, table

SECTIONS: dict[str, tuple[str, ...]] = {
    "Connecting": ("connect", "connect_async"),
    "Clients": ("Client", "AsyncClient"),
    "Held leases": ("HeldLease", "HeldLeases", "Loss", "AsyncHeldLease", "AsyncHeldLeases"),
    "Durations": ("Duration",),
    "Certificates": ("verify_certificate", "Certificate", "TrustedKeys"),
    "Scope and budget": ("Scope", "Budget"),
    "What is answered": (
        "Lease",
        "LeaseState",
        "Mode",
        "ReleaseReason",
        "Token",
        "LeaseStatus",
        "Waiter",
        "Page",
        "Entry",
    ),
}
_EXTRA = {"Loss": Loss}
"""Reached through a public name (`lease.lost`), and never made by users."""

_TWINS = {"AsyncClient": "Client", "AsyncHeldLease": "HeldLease", "AsyncHeldLeases": "HeldLeases"}
"""Generated from one another, so what is said of one holds for the other."""

_ALIASES = {
    "Token": ("leasehold.kernel.ledger.events", "An `int`."),
    "Duration": ("leasehold.client.inputs", "`float | datetime.timedelta`."),
}
"""Names for types that are not ours: where the words about them are, and which types those are."""

_PLUMBING = frozenset({"belongs_elsewhere", "body", "hearers", "kept", "lose", "parts"})
"""Public between the modules of the client, and no part of the API."""

_INTRODUCTION = """\
Everything below can be imported from `leasehold`. A [Duration](#duration) is given as seconds or as a
`datetime.timedelta`; what is answered is seconds, and nanoseconds in fields that end in `_ns`. Wall times
are for people: nothing is decided by them. Names with a leading underscore, and modules below `leasehold`,
may change with any release; the names on this page, the codes on the page of [errors](errors.md) and the
[JSON of the command line](json.md) do not change their meaning."""


def api_page() -> str:
    """Return the page; raise if a public name has no place on it."""
    exceptions = {one for one in leasehold.__all__ if _is_exception(getattr(leasehold, one))}
    placed = {one for section in SECTIONS.values() for one in section} - set(_EXTRA)
    if placed | exceptions != set(leasehold.__all__):
        difference = (placed | exceptions) ^ set(leasehold.__all__)
        raise SystemExit(f"give these a section in tools/reference/api.py: {sorted(difference)}")
    parts = [_INTRODUCTION]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}")
        parts += [_entry(one) for one in names]
    parts += ["## Exceptions", _exceptions(exceptions)]
    return page("API", *parts)


def _is_exception(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, Exception)


def _entry(title: str) -> str:
    thing = _EXTRA.get(title) or getattr(leasehold, title)
    if title in _ALIASES:
        module, meant = _ALIASES[title]
        return f"### {title}\n\n{meant} {constant_text(module, title)}"
    if isinstance(thing, types.FunctionType):
        return function_entry(function_member(thing))
    if title in _TWINS:
        return _twin(title, thing)
    return class_entry(title, thing)


def function_entry(member: Member) -> str:
    """Return what is to be said of a function."""
    return f"### {member.name}\n\n{code(member.signature)}\n\n{member.text}"


def _twin(title: str, kind: type) -> str:
    """Say that a class has the members of its twin, after making sure that it does."""
    twin = _TWINS[title]
    own = {member.name for member in members(kind)} ^ {
        member.name for member in members(getattr(leasehold, twin))
    }
    if own:
        raise SystemExit(f"{title} and {twin} differ in {own}")
    return (
        f"### {title}\n\n{docstring(class_node(kind))}\n\nIt has the methods and properties of "
        f"[{twin}](#{twin.lower()}), with the same arguments, results and exceptions. Methods are awaited; "
        "`watch` is iterated with `async for`; what is entered with `with` there is entered with "
        "`async with` here, or awaited."
    )


def class_entry(title: str, kind: type, plumbing: frozenset[str] = _PLUMBING) -> str:
    """Return what is to be said of a class; `plumbing` are members that are no part of its interface."""
    parts = [f"### {title}", docstring(class_node(kind))]
    known = [field for one in reversed(list(public_classes(kind))) for field in fields(one)]
    if known:
        parts.append(field_table(known))
    if issubclass(kind, str):
        parts.append(table(["member", "written"], [(name(one.name), name(one.value)) for one in kind]))  # type: ignore[attr-defined]
    described = [one for base in public_classes(kind) for one in attributes(base)]
    told = [one for one in (*described, *members(kind)) if one.name not in plumbing]
    read = [one for one in told if not one.is_called]
    if read:
        rows = [(name(one.name), name(one.signature), one.text) for one in read]
        parts.append(table(["attribute", "type", "meaning"], rows))
    for one in told:
        if one.is_called:
            parts.append(f"#### {title}.{one.name}\n\n{code(one.signature)}\n\n{one.text}")
    return "\n\n".join(parts)


def _exceptions(names: set[str]) -> str:
    listed = ", ".join(name(one) for one in sorted(names))
    return f"{listed}: see [errors](errors.md) for what each means and carries."
