"""The statements that list leases and ledger entries, made of what a query asks for."""

import msgspec

from leasehold.engine.port import EntryQuery, LeaseQuery
from leasehold.stores.sqlite.shelves.lease_rows import LEASE_COLUMNS

Statement = tuple[str, tuple[str | int, ...]]
"""SQL, and the values that it is about."""


def leases_statement(query: LeaseQuery) -> Statement:
    """List leases in the order of their ids."""
    where = _Where()
    if query.tenant is not None:
        where.add("tenant = ?", query.tenant)
    if query.resource is not None:
        where.add("resource = ?", query.resource)
    if query.resource_prefix is not None:
        where.add("substr(resource, 1, length(?)) = ?", query.resource_prefix, query.resource_prefix)
    if query.holder is not None:
        where.add("holder = ?", query.holder)
    if query.states:
        # Spelled out, not bound: only then can SQLite see that a partial index applies.
        names = ", ".join(f"'{state.value}'" for state in query.states)
        where.add(f"status = {names}" if len(query.states) == 1 else f"status IN ({names})")
    if query.held_at_ns is not None:
        # No index: history is asked rarely, and an index would cost every commit.
        where.add("issued_at_ns <= ?", query.held_at_ns)
        where.add("min(expires_at_ns, coalesce(terminated_at_ns, expires_at_ns)) > ?", query.held_at_ns)
    if query.after is not None:
        where.add("lease_id > ?", query.after)
    sql = f"SELECT {LEASE_COLUMNS} FROM leases {where} ORDER BY lease_id LIMIT ?"
    return sql, (*where.values, query.limit)


def entries_statement(query: EntryQuery, *, lease_is_kept: bool) -> Statement:
    """List entries in order: position, body, hash and seal.

    `lease_is_kept` says whether the lease that is asked for is still in its table: then it is the way to its
    entries.
    """
    where = _Where()
    where.add("position > ?", query.after)
    if query.tenant is not None:
        where.add("tenant = ?", query.tenant)
    if query.resource is not None:
        where.add("resource = ?", query.resource)
    if query.holder is not None:
        where.add("holder = ?", query.holder)
    if query.lease_id is not None:
        spelled = msgspec.json.encode(query.lease_id).decode()  # as it stands in the body of an event
        concerned = _CONCERNS_LEASE if lease_is_kept else _CONCERNED_LEASE
        where.add(concerned, *(query.lease_id,) * (3 if lease_is_kept else 1), spelled, query.lease_id)
    if query.types:
        where.add(f"type IN ({', '.join('?' * len(query.types))})", *query.types)
    if query.family is not None:
        where.add("type > ? AND type < ?", f"{query.family}.", f"{query.family}/")  # what follows the dot
    sql = f"SELECT position, body, hash, seal FROM events {where} ORDER BY position LIMIT ?"
    return sql, (*where.values, query.limit)


# An entry that names the lease alone, or a renewal of several of its holder's leases that has it among
# them. Entries are found by the lease's resource and holder: an index on lease ids would cost every commit.
_CONCERNS_LEASE = """position IN (
    SELECT events.position FROM leases
    JOIN events ON events.resource = leases.resource AND events.lease_id = leases.lease_id
    WHERE leases.lease_id = ?
    UNION ALL
    SELECT position FROM events WHERE lease_id = ? AND resource IS NULL
    UNION ALL
    SELECT events.position FROM leases
    JOIN events ON events.tenant = leases.tenant AND events.holder = leases.holder
               AND events.type = 'lease.renewed' AND events.lease_id IS NULL
    WHERE leases.lease_id = ? AND instr(events.body, ?)
      AND EXISTS (SELECT 1 FROM json_each(events.body, '$.renewals') WHERE key = ?)
)"""

# The same of a lease that has left the tables. What is left of its history is found by looking at all of it.
_CONCERNED_LEASE = """(lease_id = ? OR (
    type = 'lease.renewed' AND lease_id IS NULL AND instr(body, ?)
    AND EXISTS (SELECT 1 FROM json_each(body, '$.renewals') WHERE key = ?)
))"""


class _Where:
    """The conditions of a query and the values they are about."""

    def __init__(self) -> None:
        self.values: list[str | int] = []
        self._conditions: list[str] = []

    def add(self, condition: str, *values: str | int) -> None:
        self._conditions.append(condition)
        self.values += values

    def __str__(self) -> str:
        return "WHERE " + " AND ".join(self._conditions) if self._conditions else ""
