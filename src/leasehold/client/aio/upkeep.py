"""What an operator does: lets others in, forcibly ends a lease, and has jobs done on the whole ledger.

Jobs can take long. A caller that is interrupted has its job cancelled.
"""

import os
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import (
    DEFAULT_KEEP,
    Duration,
    duration_ns,
    file_name,
    known_head,
    several,
    sought,
    text,
)
from leasehold.engine.audit import Audit
from leasehold.engine.desk import answer_of
from leasehold.engine.jobs import (
    BackedUp,
    Backup,
    Prune,
    Rebuild,
    RetireKey,
    RotateKey,
    Verify,
    VouchForKey,
)
from leasehold.engine.port import Head, Progress
from leasehold.engine.pruning import Pruning
from leasehold.engine.questions import ListKeys
from leasehold.kernel.lease.answers import Ended
from leasehold.kernel.lease.commands import Revoke
from leasehold.kernel.ledger.keys import Key

if TYPE_CHECKING:
    from leasehold.access.aio.access import AsyncAccess


class AsyncUpkeep:
    """The upkeep of a ledger. `progress` is told how much of how much is done, from time to time."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    @cached_property
    def access(self) -> "AsyncAccess":
        """Access keys, for who lets others in from afar; loaded when it is first asked for."""
        from leasehold.access.aio.access import AsyncAccess

        return AsyncAccess(self._session)

    async def revoke(self, lease_id: str, *, reason: str, operator: str | None = None) -> bool:
        """Forcibly end a lease. Return False if it had already ended."""
        command = Revoke(
            tenant=self._session.tenant,
            lease_id=text("lease_id", lease_id),
            operator=self._session.holders.current() if operator is None else text("operator", operator),
            reason=text("reason", reason),
            request_id=self._session.ids.name(),
        )
        return not answer_of(await self._session.send(command), Ended).already

    async def verify(
        self,
        *,
        head: Head | None = None,
        first_key: str | None = None,
        trusted: Iterable[str] = (),
        skip_storage: bool = False,
        progress: Progress | None = None,
    ) -> Audit:
        """Check the store itself, the whole ledger, its seals, and that the tables say the same.

        `problems` is empty if so. `head` is one that was kept elsewhere, `first_key` the name of the key that
        must be the first, and `trusted` names keys that you know although no admitted key vouches for them.
        `skip_storage` leaves out the store itself: SQLite's pages, indexes and schema.
        """
        job = Verify(
            head=known_head(head),
            first_key=None if first_key is None else text("first_key", first_key),
            trusted=tuple(text("trusted", key_id) for key_id in several("trusted", trusted)),
            skip_storage=skip_storage,
        )
        return await self._session.run(job, Audit, progress)

    async def rebuild(self, *, progress: Progress | None = None) -> dict[str, int]:
        """Rebuild the tables from the ledger; return how many records there are, by family.

        Raises `LedgerBroken`, and changes nothing, if anything is wrong with the ledger.
        """
        return await self._session.run(Rebuild(), dict, progress)

    async def prune(
        self, *, keep: Duration = DEFAULT_KEEP, dry_run: bool = False, progress: Progress | None = None
    ) -> Pruning:
        """Remove history that is older than `keep` seconds; with `dry_run`, only say what would be removed.

        A checkpoint stands for it, so `verify` goes on from there. Leases that ended before leave the
        tables, nothing that stands does. It concerns all tenants. Raises `LedgerBroken`, and removes
        nothing, if anything is wrong with the ledger.
        """
        job = Prune(actor=self._session.holders.current(), keep_ns=duration_ns("keep", keep), dry_run=dry_run)
        return await self._session.run(job, Pruning, progress)

    async def backup(
        self, file: str | os.PathLike[str], *, overwrite: bool = False, progress: Progress | None = None
    ) -> BackedUp:
        """Copy the store as it is at this moment to a file, an absolute path on the registrar's machine.

        Others go on meanwhile. `leasehold restore` puts it back. Raises `StoreUnusable` for a store that
        cannot be copied, as one in memory.
        """
        return await self._session.run(
            Backup(file=file_name("file", file), overwrite=overwrite), BackedUp, progress
        )

    async def keys(self) -> list[Key]:
        """Return every key that seals the ledger, or did, in the order of their enrolment."""
        return await self._session.ask(ListKeys())

    async def rotate_key(self, *, reason: str = "") -> Key:
        """Put a new key in the place of the one that seals the ledger; return the new one."""
        return await self._session.run(
            RotateKey(actor=self._session.holders.current(), reason=sought("reason", reason)), Key
        )

    async def retire_key(self, key_id: str, *, reason: str = "") -> Key:
        """Let a key seal nothing any more; return it as it is then."""
        job = RetireKey(
            actor=self._session.holders.current(),
            key_id=sought("key_id", key_id),
            reason=sought("reason", reason),
        )
        return await self._session.run(job, Key)

    async def vouch_for_key(self, key_id: str, *, reason: str = "") -> Key:
        """Vouch for a key that has enrolled itself: another user's, or one after a loss; return it."""
        job = VouchForKey(
            actor=self._session.holders.current(),
            key_id=sought("key_id", key_id),
            reason=sought("reason", reason),
        )
        return await self._session.run(job, Key)
