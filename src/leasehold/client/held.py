"""What both kinds of held lease have in common, so that inputs can tell them from anything else."""


class AnyHeldLease:
    """A lease in the hands of its holder, blocking or asynchronous."""

    @property
    def lease_id(self) -> str:
        """The lease's id."""
        raise NotImplementedError
