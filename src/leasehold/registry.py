"""The families that a store of leasehold's has, and what its registrar can be asked and do, in one place.

A face adds one line here. Whoever opens a store hands it these, because an engine that lacked one of them
would not see what its records mean for the others.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from leasehold.access.law.family import access_family
from leasehold.access.questions import REPLIES as ACCESS_REPLIES
from leasehold.engine.chores import Chore
from leasehold.engine.jobs import CARRIERS as ENGINE_CARRIERS
from leasehold.engine.jobs import BackedUp, Backup, Carrier, Job
from leasehold.engine.port import Progress, Snapshot, Store
from leasehold.engine.questions import Certify, Question
from leasehold.engine.registrar import Registrar, Reply
from leasehold.engine.replies import QUESTIONS
from leasehold.engine.wire import Wire
from leasehold.errors import InvalidInput, StoreUnusable
from leasehold.files.questions import FindAround, find_around
from leasehold.guards.law import guard_family
from leasehold.kernel.lease.family import lease_family
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.ledger.family import Families
from leasehold.metrics.tally import TakeTally, take_tally
from leasehold.settings.housekeeping import ApplyRetention, Housekeeper, apply_retention
from leasehold.settings.law import settings_family
from leasehold.settings.questions import FindEffective, ListSettings, find_effective, list_settings
from leasehold.stores.locate import sqlite_path
from leasehold.work.law.family import work_family
from leasehold.work.questions import REPLIES as WORK_REPLIES
from leasehold.workflows.law.family import workflow_family
from leasehold.workflows.questions import REPLIES as WORKFLOW_REPLIES


def all_families(quotas: Quotas | None = None) -> Families:
    """Return all families, with quotas for those who claim leases through this engine."""
    return Families(
        (
            lease_family(quotas),
            settings_family(),
            work_family(),
            workflow_family(),
            guard_family(),
            access_family(),
        ),
    )


FAMILIES = all_families()
"""All families, without quotas."""


def _certify(registrar: Registrar, question: Certify, snapshot: Snapshot) -> Callable[[], str]:
    from leasehold.certificates.issuing import certify  # loading what signs takes time that few need to pay

    return certify(registrar, question, snapshot)


REPLIES: Mapping[type[Question[Any]], Reply] = {
    Certify: _certify,
    FindAround: find_around,
    ListSettings: list_settings,
    FindEffective: find_effective,
    TakeTally: take_tally,
    **ACCESS_REPLIES,
    **WORK_REPLIES,
    **WORKFLOW_REPLIES,
}
"""Answers to questions that the engine knows nothing of."""


def _back_up(job: Backup, store: Store, progress: Progress) -> BackedUp:
    path, file = sqlite_path(store.url), Path(job.file)
    if path is None:
        raise StoreUnusable(f"{store.url} cannot be backed up: only a SQLite store can")
    if not file.is_absolute():
        raise InvalidInput("file must be an absolute path, on the registrar's machine", field="file")
    from leasehold.stores.sqlite.backup import backup

    copied = backup(path, file, progress, overwrite=job.overwrite)
    return BackedUp(epoch=copied.epoch, entries=copied.entries, size_bytes=copied.size_bytes)


CARRIERS: Mapping[type[Job], Carrier] = {Backup: _back_up, ApplyRetention: apply_retention}
"""What carries out jobs that the engine knows nothing of."""

CHORES: Sequence[Callable[[], Chore]] = (Housekeeper,)
"""What a registrar does in the background."""


@cache
def wire() -> Wire:
    """Return how everything that a registrar can be asked, and answers, is spelled on a wire."""
    return Wire(FAMILIES, (*QUESTIONS, *REPLIES), (*ENGINE_CARRIERS, *CARRIERS))
