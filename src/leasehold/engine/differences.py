"""Where the tables say something else than the ledger, told for people: only what differs, field by field."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from leasehold.engine.signing import key_id_of
from leasehold.kernel.ledger.key import shown
from leasehold.kernel.ledger.state import State


def differences(tables: State, ledger: State) -> Iterator[str]:
    """Yield a sentence for every record of the tables that is not what the ledger says."""
    yield from _compare("the registrar's own record", tables.authority, ledger.authority)
    for family in {**tables.records, **ledger.records}:
        yield from _compare_each(family, tables.of(family), ledger.of(family))
    yield from _compare_each("era", tables.eras, ledger.eras)
    yield from _compare_each("key", _by_name(tables), _by_name(ledger))


def _compare_each(kind: str, kept: Mapping[Any, object], told: Mapping[Any, object]) -> Iterator[str]:
    for key in {**kept, **told}:
        yield from _compare(f"{kind} {shown(str(key))}", kept.get(key), told.get(key))


def _by_name(state: State) -> dict[str, object]:
    return {key_id_of(public_key): key for public_key, key in state.keys.items()}


def _compare(name: str, kept: object, told: object) -> Iterator[str]:
    if kept == told:
        return
    if kept is None:
        yield f"{name} is missing from the tables"
    elif told is None:
        yield f"{name} is in the tables, and no entry of the ledger tells of it"
    else:
        facts = ", ".join(
            f"{field} {_spelled(ours)} (the ledger says {_spelled(theirs)})"
            for field, ours, theirs in _differing("", kept, told)
        )
        yield f"{name} has in the tables {facts}"


def _differing(name: str, kept: Any, told: Any) -> Iterator[tuple[str, object, object]]:
    """Yield the name of every field that differs, however deep it lies, and what both sides say."""
    if isinstance(kept, msgspec.Struct) and type(kept) is type(told):
        for field in kept.__struct_fields__:
            inner = f"{name}.{field}" if name else field
            yield from _differing(inner, getattr(kept, field), getattr(told, field))
    elif kept != told:
        yield name, kept, told


def _spelled(value: object) -> str:
    if value is None or value == b"":
        return "nothing"
    return value.hex() if isinstance(value, bytes) else msgspec.json.encode(value).decode()
