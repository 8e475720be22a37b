"""Which leases a plan has changed, found by what lies in the reach of a resource.

A decision may grant very many leases below one directory, and looks around each of them. So nothing here is
searched from end to end.
"""

from collections.abc import Iterator

from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.path_index import PathIndex
from leasehold.kernel.lease.paths import is_path
from leasehold.kernel.lease.records import ResourceKey


class Touched:
    """Ids of leases, by resource."""

    def __init__(self) -> None:
        self._leases: dict[ResourceKey, dict[str, None]] = {}
        self._paths = PathIndex()

    def add(self, lease: Lease) -> None:
        """Take in a lease that was changed."""
        key = (lease.tenant, lease.resource)
        if is_path(lease.resource):
            self._paths.add(key)
        self._leases.setdefault(key, {})[lease.lease_id] = None

    def around(self, tenant: str, resource: str) -> Iterator[str]:
        """Yield the leases on a resource and, for a path, on everything that relates to it."""
        if not is_path(resource):
            yield from self._leases.get((tenant, resource), ())
            return
        for path in self._paths.around((tenant, resource)):
            yield from self._leases[(tenant, path)]
