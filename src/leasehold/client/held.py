"""What both kinds of held lease have in common, so that inputs can tell them from anything else."""

from leasehold.kernel.lease.model import Lease


class AnyHeldLease:
    """A lease in the hands of its holder, blocking or asynchronous."""

    _granted: Lease

    @property
    def lease_id(self) -> str:
        """The lease's id."""
        return self._granted.lease_id
