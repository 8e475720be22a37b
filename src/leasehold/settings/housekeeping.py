"""What settings have done in the background: expiries are recorded, and old history is pruned.

Every process that is connected to a store sweeps it every `cleanup_interval_seconds`, unless
`auto_expire_enabled` is off. One of them, once a day (once an hour if `keep_history` is off), prunes what is
older than `history_retention_days`. Settings are read each time, so a change is in force within half a
minute in every process.

When the store was last pruned is soft state. If that is lost, or two processes begin at the same moment, it
is pruned once more, which removes nothing that should stay.
"""

import logging
import time
from collections.abc import Callable

from leasehold.engine.desk import answer_of
from leasehold.engine.jobs import Job
from leasehold.engine.port import Progress, Store
from leasehold.engine.pruning import Pruning, prune
from leasehold.engine.registrar import Registrar
from leasehold.errors import JobCancelled
from leasehold.kernel.ledger.commands import REQUEST_MEMORY_NS, Right, SweepDue, SweptDue
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.limits import BATCH_LEASES
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND
from leasehold.settings.law import FAMILY, STORE
from leasehold.settings.questions import Effective, effective

_LOOK_SECONDS = 30.0
"""How soon a changed setting is noticed."""
_OFFER_SECONDS = 600.0
"""How often each process offers to prune."""
_LAST_PRUNED = "pruned"
_DAY_NS = 86_400 * NANOSECONDS_PER_SECOND

_logger = logging.getLogger(__name__)


class ApplyRetention(Job, frozen=True, kw_only=True, omit_defaults=True, tag="apply_retention"):
    """Prune what is older than the settings say, unless that was done not long ago."""

    result = Pruning
    right = Right.OPERATE
    runs_alone = True


def apply_retention(job: ApplyRetention, store: Store, progress: Progress) -> Pruning:
    """Prune if it is time for that."""
    del job
    with store.snapshot() as snapshot:
        settings, now_ns = effective(snapshot, STORE), snapshot.reading().wall_ns
    keep_ns = settings.history_retention_days * _DAY_NS if settings.keep_history else REQUEST_MEMORY_NS
    last_ns = int(store.soft.get(FAMILY).get(_LAST_PRUNED, b"0"))
    # A wall clock that was set back must not keep the store from being pruned until it has caught up.
    if 0 <= now_ns - last_ns < min(_DAY_NS, keep_ns):
        return Pruning(entries=0, records=0, through=0, checkpoint=None)
    store.soft.put(FAMILY, {_LAST_PRUNED: str(now_ns).encode()})
    try:
        return prune(store, actor=REGISTRAR, keep_ns=keep_ns, progress=progress)
    except JobCancelled:
        # Programs that never run for long enough must not keep one another from pruning.
        store.soft.put(FAMILY, {_LAST_PRUNED: str(last_ns).encode()})
        raise


class Housekeeper:
    """Keeps a registrar's store in order, as its settings say."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._last_sweep: float | None = None
        self._last_offer: float | None = None
        self._job_id: str | None = None

    def __call__(self, registrar: Registrar) -> float:
        """Do what is due; return after how many seconds there may be more."""
        now = self._now()
        with registrar.store.snapshot() as snapshot:
            settings = effective(snapshot, STORE)
        delay = self._sweep(registrar, settings, now)
        self._offer_to_prune(registrar, now)
        return min(_LOOK_SECONDS, delay)

    def _sweep(self, registrar: Registrar, settings: Effective, now: float) -> float:
        """Record expiries if it is time for that; return when it will be again.

        One batch a time: in between settings are read again, and the owner may be closed.
        """
        if not settings.auto_expire_enabled:
            return _LOOK_SECONDS
        if self._last_sweep is not None:
            left = self._last_sweep + settings.cleanup_interval_seconds - now
            if left > 0:
                return left
        command = SweepDue(limit=BATCH_LEASES, request_id=registrar.ids.new())
        if answer_of(registrar.call(command), SweptDue).ended == BATCH_LEASES:
            return 0
        self._last_sweep = now
        return settings.cleanup_interval_seconds

    def _offer_to_prune(self, registrar: Registrar, now: float) -> None:
        if self._job_id is not None:
            status = registrar.find_job(self._job_id)
            if not status.is_finished:
                return
            self._job_id = None
            if status.failure is not None:
                _logger.warning("old history was not pruned; tried again later: %s", status.failure.message)
        if self._last_offer is None or now - self._last_offer >= _OFFER_SECONDS:
            self._job_id = registrar.start_job(registrar.ids.new(), ApplyRetention()).job_id
            self._last_offer = now
