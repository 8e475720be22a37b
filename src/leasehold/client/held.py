"""What both kinds of held lease have in common, so that inputs can tell them from anything else."""

from abc import ABC, abstractmethod


class AnyHeldLease(ABC):
    """A lease in the hands of its holder, blocking or asynchronous."""

    @property
    @abstractmethod
    def lease_id(self) -> str:
        """The lease's id."""
