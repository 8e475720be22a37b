"""What an operator has done to the whole ledger, whoever its tenants are: jobs, which can take long.

Where a reply is lost it is asked for again, which the id of the job makes safe. A caller that is interrupted
has its job cancelled.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from leasehold.client.async_holding import AsyncHolding
from leasehold.client.inputs import Duration, duration_ns, text
from leasehold.engine.audit import Audit
from leasehold.engine.desk import JobStatus
from leasehold.engine.jobs import (
    BackedUp,
    Backup,
    Job,
    Prune,
    Rebuild,
    RetireKey,
    RotateKey,
    Verify,
    VouchForKey,
)
from leasehold.engine.port import Head
from leasehold.engine.pruning import Pruning
from leasehold.engine.questions import ListKeys
from leasehold.engine.walking import Progress
from leasehold.errors import JobUnknown, LeaseholdError, StoreError
from leasehold.kernel.ledger.keys import Key

DEFAULT_KEEP = 30 * 86_400.0

_RETRIES = 2
_LOOK_SECONDS = 10.0
"""How long one question for news of a job may take."""

_Result = TypeVar("_Result")


class AsyncUpkeep(AsyncHolding):
    """The upkeep of a ledger. `progress` is told how much of how much is done, from time to time."""

    async def verify(
        self,
        *,
        head: Head | None = None,
        first_key: str | None = None,
        trusted: Iterable[str] = (),
        progress: Progress | None = None,
    ) -> Audit:
        """Check the whole ledger, its seals, and that the tables say the same; `problems` is empty if so.

        `head` is one that was kept elsewhere, `first_key` the name of the key that must be the first, and
        `trusted` names keys that you know although no admitted key vouches for them.
        """
        job = Verify(head=head, first_key=first_key, trusted=tuple(trusted))
        return await self._run(job, Audit, progress)

    async def rebuild(self, *, progress: Progress | None = None) -> dict[str, int]:
        """Rebuild the tables from the ledger; return how many records there are, by family.

        Raises `LedgerBroken`, and changes nothing, if anything is wrong with the ledger.
        """
        return await self._run(Rebuild(), dict, progress)

    async def prune(
        self, *, keep: Duration = DEFAULT_KEEP, dry_run: bool = False, progress: Progress | None = None
    ) -> Pruning:
        """Remove history that is older than `keep` seconds; with `dry_run`, only say what would be removed.

        A checkpoint stands for it, so `verify` goes on from there. Leases that ended before leave the
        tables, nothing that stands does. It concerns all tenants. Raises `LedgerBroken`, and removes
        nothing, if anything is wrong with the ledger.
        """
        job = Prune(actor=self.holder, keep_ns=duration_ns("keep", keep), dry_run=dry_run)
        return await self._run(job, Pruning, progress)

    async def backup(
        self, file: str | os.PathLike[str], *, overwrite: bool = False, progress: Progress | None = None
    ) -> BackedUp:
        """Copy the store as it is at this moment to a file, an absolute path on the registrar's machine.

        Others go on meanwhile. `leasehold restore` puts it back. Raises `StoreUnusable` for a store that
        cannot be copied, as one in memory.
        """
        return await self._run(
            Backup(file=text("file", os.fspath(file)), overwrite=overwrite), BackedUp, progress
        )

    async def keys(self) -> list[Key]:
        """Return every key that seals the ledger, or did, in the order of their enrolment."""
        found: list[Key] = await self._ask(ListKeys())
        return found

    async def rotate_key(self, *, reason: str = "") -> Key:
        """Put a new key in the place of the one that seals the ledger; return the new one."""
        return await self._run(RotateKey(actor=self.holder, reason=text("reason", reason)), Key)

    async def retire_key(self, key_id: str, *, reason: str = "") -> Key:
        """Let a key seal nothing any more; return it as it is then."""
        job = RetireKey(actor=self.holder, key_id=text("key_id", key_id), reason=text("reason", reason))
        return await self._run(job, Key)

    async def vouch_for_key(self, key_id: str, *, reason: str = "") -> Key:
        """Vouch for a key that has enrolled itself: another user's, or one after a loss; return it."""
        job = VouchForKey(actor=self.holder, key_id=text("key_id", key_id), reason=text("reason", reason))
        return await self._run(job, Key)

    async def _run(self, job: Job, kind: type[_Result], progress: Progress | None = None) -> _Result:
        """Have a job done, and return its result."""
        job_id = self._desk.ids.new()
        try:
            status = await self._told(self._desk.start_job, job_id, job)
            while True:
                if progress is not None and status.total:
                    progress(status.done, status.total)
                if status.is_finished:
                    break
                seen = None if progress is None else status.done
                status = await self._told(self._desk.find_job, job_id, seen=seen, timeout=_LOOK_SECONDS)
        except BaseException:
            with suppress(LeaseholdError):  # It never began, or has ended, or nobody can be reached.
                await self._calls.aside(self._desk.cancel_job, job_id)
            raise
        if status.failure is not None:
            raise status.failure.error()
        assert isinstance(status.result, kind), "a job has a result of its own type"
        return status.result

    async def _told(self, ask: Callable[..., JobStatus], *given: Any, **named: Any) -> JobStatus:
        """Ask about a job, again if the reply was lost."""
        for _ in range(_RETRIES):
            try:
                return await self._calls.aside(ask, *given, **named)
            except StoreError as error:
                if not error.outcome_unknown or isinstance(error, JobUnknown):
                    raise
        return await self._calls.aside(ask, *given, **named)
