"""Which lease a user means: by its id, or by what it is on; and which resource, by its name or its path.

What a command prints as the name of a resource can be typed again in the same folder, and means the same.
"""

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from leasehold.cli.parser import UsageError
from leasehold.errors import InvalidInput

if TYPE_CHECKING:
    from leasehold.client.blocking.client import Client
    from leasehold.engine.questions import LeaseStatus

LEASE_HELP = "the id of a lease, as acquire and ls print it, or the resource that it is on"


def resource(text: str) -> str:
    """Return the resource that an argument means: with a slash in it, or a dot at its beginning, a path.

    `name:` in front makes it a plain name.
    """
    from leasehold.files.names import resource_of

    try:
        return resource_of(text)
    except InvalidInput as error:
        raise ArgumentTypeError(str(error)) from None


def displayed(resource: str) -> str:
    """Return how to show a resource: as it can be typed, in the folder that we are in."""
    from leasehold.files.names import written

    return written(resource)


def holders_of(client: "Client", resource: str) -> "list[LeaseStatus]":
    """Return who holds a resource now; for a path, also what lies around it."""
    if not resource.startswith("/"):
        return client.inspect(resource)
    from leasehold.files.names import FileName

    around = client.files.get_file_leases(FileName(resource, resource))
    found = [client.get(one.id) for one in around]
    return [status for status in found if status is not None and status.is_live]


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
        raise UsageError(f"several share {displayed(name)}; name one of their leases: {ids}")
    return found[0].lease_id if found else name
