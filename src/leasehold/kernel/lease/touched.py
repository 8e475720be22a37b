"""Which leases a plan has changed, found by what lies in the reach of a resource.

A decision may grant very many leases below one directory, and looks around each of them. So nothing here is
searched from end to end.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator

from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.paths import ancestors, descendant_range, is_path
from leasehold.kernel.lease.records import ResourceKey


class Touched:
    """Ids of leases, by resource."""

    def __init__(self) -> None:
        self._leases: dict[ResourceKey, dict[str, None]] = {}
        self._paths: list[ResourceKey] = []
        """Those of the resources that are paths, sorted."""

    def add(self, lease: Lease) -> None:
        """Take in a lease that was changed."""
        key = (lease.tenant, lease.resource)
        if key not in self._leases and is_path(lease.resource):
            insort(self._paths, key)
        self._leases.setdefault(key, {})[lease.lease_id] = None

    def around(self, tenant: str, resource: str) -> Iterator[str]:
        """Yield the leases on a resource and, for a path, above and below it."""
        yield from self._leases.get((tenant, resource), ())
        if is_path(resource):
            for above in ancestors(resource):
                yield from self._leases.get((tenant, above), ())
            first, end = descendant_range(resource)
            start = bisect_left(self._paths, (tenant, first))
            for below in self._paths[start : bisect_left(self._paths, (tenant, end))]:
                yield from self._leases[below]
