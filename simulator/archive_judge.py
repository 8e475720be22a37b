"""Whether pruning took away only what nobody can miss.

In true time, whatever clocks say: an entry goes only if it is older than requests are remembered for, and as
a part of whole sealed commits. A lease goes only if it has ended, and was granted by what is pruned. Which
leases went is told by the store; which may go follows from the truth alone.
"""

from leasehold.engine.port import Batch, Pruned
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.commands import REQUEST_MEMORY_NS
from simulator.archive import Archive
from simulator.stage import Stage
from simulator.truth import Truth


class ArchiveJudge:
    """Checks commits that prune."""

    def __init__(self, stage: Stage, archive: Archive) -> None:
        self._stage = stage
        self._archive = archive

    def check(self, batch: Batch, truth: Truth) -> None:
        """Check what a commit took away, if it did, and let the truth know."""
        pruned = batch.pruned
        if pruned is None:
            return
        self._check_entries(pruned)
        lease_ids = pruned.forgotten.get(LEASE, ())
        for lease_id in lease_ids:
            problem = _problem_of(lease_id, pruned, truth)
            if problem is not None:
                self._stage.violate("{}", problem)
        truth.prune(pruned.through, lease_ids)
        self._stage.tally.note("history pruned")
        if lease_ids:
            self._stage.tally.note("leases let go of", len(lease_ids))

    def _check_entries(self, pruned: Pruned) -> None:
        last = self._archive.history()[pruned.through - 1]
        age_ns = self._stage.now_ns - self._archive.committed_ns(last)
        # It counts from when the entry was decided, and a commit may take as long as a lease lasts.
        if age_ns < REQUEST_MEMORY_NS - self._stage.plan.ttl_ns:
            self._stage.violate("entry {} was pruned {} ns after its commit", last.position, age_ns)
        if last.seal is None:
            self._stage.violate("entry {} was pruned without the rest of its commit", last.position)


def _problem_of(lease_id: str, pruned: Pruned, truth: Truth) -> str | None:
    lease = truth.leases.get(lease_id)
    if lease is None:
        return f"{lease_id} was let go of, and never was"
    if lease.ended_position is None:
        return f"{lease_id} was let go of, and has not ended"
    if lease.issued_position > pruned.through:
        return f"{lease_id} was let go of, and what granted it was not pruned"
    return None
