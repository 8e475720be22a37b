"""What takes long: jobs, which are started, tell how far they have come, and have a result.

They are values like commands and questions, and cross a wire as those do. `job_runner` carries them out.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from leasehold.engine.audit import Audit, audit, rebuild
from leasehold.engine.keyholding import retire, rotate, vouch
from leasehold.engine.port import Head, Progress, Store
from leasehold.engine.pruning import Pruning, prune
from leasehold.kernel.ledger.commands import Right
from leasehold.kernel.ledger.keys import Key


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="job"):
    """Something that takes long. It is about the whole ledger, whoever its tenants are."""

    result: ClassVar[Any]
    """The type of its result, which is never None."""
    right: ClassVar[Right] = Right.ADMINISTER
    """What a caller with an access key needs to be allowed. Jobs are for callers that no tenant binds."""
    runs_alone: ClassVar[bool] = False
    """Whether a second one of its kind has to wait until the first has ended."""


class Verify(Job, frozen=True, kw_only=True, omit_defaults=True, tag="verify"):
    """Check the whole ledger against itself, a head kept elsewhere, and the tables; and the store itself."""

    result = Audit
    right = Right.OPERATE

    head: Head | None = None
    first_key: str | None = None
    trusted: tuple[str, ...] = ()
    skip_storage: bool = False
    """Whether to leave out the look for damage of the store itself."""


class Prune(Job, frozen=True, kw_only=True, omit_defaults=True, tag="prune"):
    """Remove old history, or say what would be removed."""

    result = Pruning
    right = Right.OPERATE
    runs_alone = True

    actor: str
    keep_ns: int
    dry_run: bool = False


class Rebuild(Job, frozen=True, kw_only=True, omit_defaults=True, tag="rebuild"):
    """Rebuild the tables from the ledger; the result says how many records there are, by family."""

    result = dict[str, int]
    right = Right.OPERATE
    runs_alone = True


class BackedUp(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds."""

    epoch: int
    entries: int
    """How many entries its ledger has."""
    size_bytes: int


class Backup(Job, frozen=True, kw_only=True, omit_defaults=True, tag="backup"):
    """Copy the store as it is at one moment to a file on the registrar's machine; not every store can."""

    result = BackedUp
    right = Right.ADMINISTER  # It writes where it is told to, on the registrar's machine.
    runs_alone = True

    file: str
    """An absolute path."""
    overwrite: bool = False


class RotateKey(Job, frozen=True, kw_only=True, omit_defaults=True, tag="rotate_key"):
    """Put a new key in the place of the one that seals the ledger."""

    result = Key
    right = Right.ADMINISTER

    actor: str
    reason: str = ""


class RetireKey(RotateKey, frozen=True, kw_only=True, omit_defaults=True, tag="retire_key"):
    """Let a key seal nothing any more."""

    key_id: str


class VouchForKey(RotateKey, frozen=True, kw_only=True, omit_defaults=True, tag="vouch_for_key"):
    """Vouch for a key that has enrolled itself."""

    key_id: str


Carrier = Callable[[Any, Store, Progress], Any]
"""Does a job to its end, and returns its result. What its progress raises ends it, between two steps."""


def _verify(job: Verify, store: Store, progress: Progress) -> Audit:
    return audit(
        store,
        progress,
        expected=job.head,
        trusted=job.trusted,
        first_key=job.first_key,
        skip_storage=job.skip_storage,
    )


def _prune(job: Prune, store: Store, progress: Progress) -> Pruning:
    return prune(store, actor=job.actor, keep_ns=job.keep_ns, dry_run=job.dry_run, progress=progress)


def _rebuild(job: Rebuild, store: Store, progress: Progress) -> dict[str, int]:
    del job
    return {family: len(records) for family, records in rebuild(store, progress).records.items()}


def _rotate(job: RotateKey, store: Store, progress: Progress) -> Key:
    del progress
    return rotate(store, actor=job.actor, reason=job.reason)


def _retire(job: RetireKey, store: Store, progress: Progress) -> Key:
    del progress
    return retire(store, job.key_id, actor=job.actor, reason=job.reason)


def _vouch(job: VouchForKey, store: Store, progress: Progress) -> Key:
    del progress
    return vouch(store, job.key_id, actor=job.actor, reason=job.reason)


CARRIERS: dict[type[Job], Carrier] = {
    Verify: _verify,
    Prune: _prune,
    Rebuild: _rebuild,
    RotateKey: _rotate,
    RetireKey: _retire,
    VouchForKey: _vouch,
}
