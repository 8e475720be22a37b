"""SQL that compares the token and writes in one statement.

The table that is protected has one more column, the fence: the token under which its row was last written.
The statements here change a row only if the fence is not above the token, so a late writer changes nothing,
and `check_written` tells it so. They run on any database with named parameters (`:name`), and on PostgreSQL
and SQLite with `ON CONFLICT`.
"""

import re
from collections.abc import Iterable

from leasehold.certificates.errors import StaleToken
from leasehold.errors import InvalidInput

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")


def fenced_update(table: str, columns: Iterable[str], *, key: str, fence: str = "fence") -> str:
    """Return an UPDATE of the row with `:key`. Parameters are named like the columns, and `:token`."""
    changed = _names(columns)
    _check_names(table, key, fence, *changed)
    assignments = ", ".join(f"{column} = :{column}" for column in changed)
    return f"UPDATE {table} SET {assignments}, {fence} = :token WHERE {key} = :{key} AND {fence} <= :token"


def fenced_upsert(table: str, columns: Iterable[str], *, key: str, fence: str = "fence") -> str:
    """Return an INSERT that becomes that UPDATE if the row exists."""
    changed = _names(columns)
    _check_names(table, key, fence, *changed)
    names = ", ".join([key, *changed, fence])
    values = ", ".join([f":{key}", *(f":{column}" for column in changed), ":token"])
    assignments = ", ".join(f"{column} = :{column}" for column in changed)
    return (
        f"INSERT INTO {table} ({names}) VALUES ({values}) "
        f"ON CONFLICT ({key}) DO UPDATE SET {assignments}, {fence} = :token WHERE {table}.{fence} <= :token"
    )


def check_written(row_count: int, *, resource: str, token: int) -> None:
    """Raise StaleToken if the statement changed no row: somebody with a higher token has written since."""
    if not isinstance(row_count, int):
        raise InvalidInput(f"row_count must be a whole number, not {row_count!r:.80}", field="row_count")
    if row_count < 1:
        raise StaleToken(
            f"token {token} for {resource} changed nothing: a higher one has written since, or there is no "
            "such row; acquire the resource again",
            resource=resource,
            token=token,
        )


def _names(columns: Iterable[str]) -> list[str]:
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise InvalidInput(f"columns must be a list, not {columns!r:.80}", field="columns")
    return list(columns)


def _check_names(*names: object) -> None:
    """Refuse anything but plain names: these cannot be parameters, and must not carry SQL of their own."""
    for name in names:
        if not isinstance(name, str) or _IDENTIFIER.fullmatch(name) is None:
            raise InvalidInput(f"invalid name of a table or column {name!r:.80}", field="name")
