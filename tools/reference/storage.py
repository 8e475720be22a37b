"""The pages about what is kept, and how much of it: the SQL schema, and the limits."""

from leasehold.access.law import commands as access_commands
from leasehold.access.law.rules import KEYS_MAXIMUM
from leasehold.kernel.ledger import limits
from leasehold.stores.sqlite.migrations import all_migrations
from leasehold.workflows.law import limits as workflow_limits
from tools.reference.writing import code, page, table

_SCHEMA_INTRODUCTION = """\
A SQLite store is one file with these tables. Leases have one of their own; the records of all other families
are in `documents`. Open the file read-only to look at them:
[query the tables with SQL](../how-to/query-with-sql.md) says how, and what to keep in mind. Write to them
through leasehold only: a row that no event accounts for makes `leasehold doctor` complain.

`…_ns` columns are wall times in nanoseconds since 1970, or durations in nanoseconds; `…_tick` columns are
readings of the [authority's clock](../concepts/time.md). Tables, columns and indexes may be added by later
releases. The file says in `PRAGMA user_version` which step of the schema it has."""

_LIMITS_INTRODUCTION = """\
Whatever is past a limit is refused with [`LIMIT_EXCEEDED`](errors.md), which names the limit, and changes
nothing. Lengths are counted in bytes of UTF-8. Names must not be empty and must not contain control
characters."""


def schema_page() -> str:
    """Return the page with every step of the schema as it is run."""
    parts = []
    for step in all_migrations():
        _, _, script = step.script.partition("\n")
        parts.append(f"## Step {step.version}: {step.name}\n\n{step.description}\n\n{code(script, 'sql')}")
    return page("The SQL schema", _SCHEMA_INTRODUCTION, *parts)


def limits_page() -> str:
    """Return the page with all numbers of the kernel's limits."""
    rows = [
        ("id, holder, tenant, operator, request id", f"{limits.ID_BYTES} bytes"),
        ("resource", f"{limits.RESOURCE_BYTES} bytes"),
        ("signature", f"{limits.SIGNATURE_BYTES} bytes"),
        ("config version, zone version", f"{limits.ID_BYTES} bytes"),
        ("reason of a revocation", f"{limits.REASON_BYTES} bytes"),
        ("metadata", f"{limits.METADATA_BYTES} bytes of JSON, nested at most {limits.METADATA_LEVELS} deep"),
        (
            "TTL",
            f"from {limits.TTL_MINIMUM_NS // 10**6} ms to {limits.TTL_MAXIMUM_NS // (86_400 * 10**9)} days",
        ),
        ("max_renewals", f"{limits.RENEWALS_MAXIMUM}; a negative number means no limit"),
        ("leases per command", f"{limits.BATCH_LEASES}; `renew_many` and `release_all` split longer lists"),
        ("leases per holder, leases per tenant", "none, unless `connect` is given one"),
    ]
    return page(
        "Limits",
        _LIMITS_INTRODUCTION,
        table(["what", "limit"], rows),
        "## Workflows",
        table(["what", "limit"], _workflow_rows()),
        "## Access keys",
        table(["what", "limit"], _access_rows()),
    )


def _access_rows() -> list[tuple[str, str]]:
    days = access_commands.OVERLAP_MAXIMUM_NS // (86_400 * 10**9)
    return [
        ("keys of a tenant, or for all tenants", f"{KEYS_MAXIMUM}, with those revoked and not pruned yet"),
        ("holders that a key is bound to", str(access_commands.HOLDERS_MAXIMUM)),
        ("description, reason of a revocation", f"{limits.REASON_BYTES} bytes"),
        ("overlap of a rotation", f"{days} days"),
    ]


def _workflow_rows() -> list[tuple[str, str]]:
    own = workflow_limits
    timeout = f"from {own.TIMEOUT_MINIMUM_MS} to {own.TIMEOUT_MAXIMUM_MS}"
    return [
        ("workflow id, action id, action type, state, name of a subscription", f"{limits.ID_BYTES} bytes"),
        ("target_node_type", f"{own.NAME_CHARACTERS} characters"),
        ("payload of an action or a result", f"{own.PAYLOAD_BYTES} bytes of JSON"),
        ("dependencies of an action", f"{own.DEPENDENCIES}, not itself"),
        ("priority", f"from {own.PRIORITY_LEAST} to {own.PRIORITY_MOST}"),
        ("timeout_ms", timeout),
        ("retry_count", f"from 0 to {own.RETRIES_MAXIMUM}"),
        ("error of a result, reason of a cancellation", f"{limits.REASON_BYTES} bytes"),
        ("subscriptions of a tenant", f"{own.SUBSCRIPTIONS}"),
        ("time that a subscription keeps its place without being heard of", "7 days"),
    ]
