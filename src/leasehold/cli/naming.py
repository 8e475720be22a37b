"""Which lease a user means: by its id, or by what it is on."""

from typing import TYPE_CHECKING

from leasehold.cli.parser import UsageError

if TYPE_CHECKING:
    from leasehold.client.blocking.client import Client

LEASE_HELP = "the id of a lease, as acquire and ls print it, or the resource that it is on"


def lease_named(client: "Client", name: str, holder: str | None = None) -> str:
    """Return the id of the lease that a user means; a name that means nothing comes back as it is.

    Several may share a resource: then it is the lease of `holder`, or they have to be told apart.
    """
    if client.get(name) is not None:
        return name
    standing = [status.lease for status in client.inspect(name)]
    found = [lease for lease in standing if lease.holder == holder] or standing
    if len(found) > 1:
        ids = ", ".join(f"{lease.lease_id} ({lease.holder})" for lease in found)
        raise UsageError(f"several share {name}; name one of their leases: {ids}")
    return found[0].lease_id if found else name
