"""What guards ask a store, and have it record. Claiming and releasing go through a client."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from leasehold.engine.questions import LeaseStatus
from leasehold.errors import InvalidInput
from leasehold.files.names import FileName, entry_at
from leasehold.guards.records import PATIENCE_SECONDS, Records, desk_of, opened
from leasehold.guards.rivals import in_the_way, speaks_for
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.paths import includes, is_glob
from leasehold.stores.locate import Place, place_of

if TYPE_CHECKING:
    from leasehold.client.blocking.client import Client

_PATHS_TOLD = 5
"""How many paths a command to type next has, of those that one lease is in the way of."""


class Asker:
    """Who asks, and where: in the store that is named, or the nearest one, which is found out when needed."""

    def __init__(
        self, agent: str, *, tenant: str | None = None, url: str | None = None, folder: str | None = None
    ) -> None:
        self.agent = agent
        self.folder = folder
        """Where they stand, and type what comes next; None: where git was called, or else this process."""
        self._tenant = tenant
        self._url = url

    @cached_property
    def place(self) -> Place:
        """Where to ask, and for whose leases."""
        return place_of(self._url, self._tenant)


class Refused(NamedTuple):
    """A path that somebody else has leased."""

    name: FileName
    by: LeaseStatus


class Target(NamedTuple):
    """A path that is to be written."""

    name: FileName
    is_exact: bool = True
    """If not, the path cannot be leased by itself, and `name` is the nearest folder above it that can."""

    def is_blocked_by(self, status: LeaseStatus) -> bool:
        """Say whether a lease around the name is in the way of the path."""
        held = status.lease.resource
        return self.is_exact or includes(held, self.name.resource) or is_glob(held)


def target_of(path: str) -> Target:
    """Return what to look for if a path is to be written that git has named; links are not followed."""
    try:
        return Target(entry_at(path))
    except InvalidInput:
        folder = path
        while (above := folder.rpartition("/")[0]) != folder and above:
            folder = above
            try:
                return Target(entry_at(folder), is_exact=False)
            except InvalidInput:
                continue
        raise


def refused(records: Records, targets: Sequence[Target], asker: Asker) -> list[Refused]:
    """Return the paths that somebody else has leased, or something around them, with who has them longest."""
    found = []
    for target in targets:
        blocking = [one for one in standing(records, target.name, asker) if target.is_blocked_by(one)]
        by = in_the_way(blocking, asker.agent)
        if by is not None:
            found.append(Refused(target.name, by))
    return found


def standing(records: Records, name: FileName, asker: Asker) -> list[LeaseStatus]:
    """Return all leases that stand around a path."""
    return records.around(asker.place.tenant, name.resource)


def refusals(records: Records, found: Sequence[Refused], asker: Asker) -> list[str]:
    """Say of each lease that is in the way whose it is, why, until when, and what to type next."""
    if not found:
        return []
    from leasehold.errors import Held
    from leasehold.files.refusals import Asked, explained

    by_lease: dict[str, list[Refused]] = {}
    for one in found:
        by_lease.setdefault(one.by.lease.lease_id, []).append(one)
    told = []
    for (first, by), *others in by_lease.values():
        waiting = records.waiting(asker.place.tenant, first.resource)
        resources = [first.resource, *(other.name.resource for other in others[: _PATHS_TOLD - 1])]
        asked = Asked(resources, asker.agent, Mode.EXCLUSIVE, asker.folder or _where_git_was_called())
        told.append(str(explained(Held(f"{first.path} is held"), by, waiting, asked)))
    return told


def _where_git_was_called() -> str:
    """Return where who waits for a hook stands: git runs it at the top, and says how far below it was called.

    Where we are, if no hook is running.
    """
    here = os.getcwd()
    place = os.path.join(here, os.environ.get("GIT_PREFIX", ""))
    return place if os.path.lexists(os.path.join(here, ".git")) and os.path.isdir(place) else here


@contextmanager
def connected(asker: Asker) -> "Iterator[Client]":
    """Connect to the store to change something; make one only where nobody has named any."""
    from leasehold.client.connect import connect

    with connect(
        asker.place.address,
        tenant=asker.place.tenant,
        holder=asker.agent,
        create=asker.place.address is None,
        timeout=PATIENCE_SECONDS,
    ) as client:
        yield client


def claim(names: Sequence[FileName], asker: Asker, reason: str) -> None:
    """Claim files for an agent, all or none, and renew what it has; raise `Held` if somebody else has one.

    The leases outlive this process, and a reboot, as those of `leasehold acquire` do.
    """
    with connected(asker) as client:
        held = client.files.lease(*names, agent=asker.agent, wait=False, reason=reason, survives_reboot=True)
        for one in held.parts():
            one.detach()


def release(asker: Asker, *, subagents: bool) -> int:
    """Give back every file lease of an agent, and of its subagents if they are meant too; return how many."""
    with opened(asker.place.address) as records:
        if records is None:
            return 0
    with connected(asker) as client:
        agents = {
            one.agent_id
            for one in client.files.get_all_leases()
            if one.agent_id == asker.agent or (subagents and speaks_for(asker.agent, one.agent_id))
        }
        return sum(client.release_all(agent) for agent in sorted(agents))


def record_bypass(found: Sequence[Refused], asker: Asker, reason: str) -> None:
    """Have history say that an agent goes past the guard, and why; in parts that a command can carry."""
    from leasehold.engine.desk import answer_of
    from leasehold.guards.law import Passed, RecordBypass, Recorded
    from leasehold.kernel.ledger.limits import BATCH_LEASES

    desk = desk_of(asker.place.address)
    try:
        passed = [Passed(resource=name.resource, held_by=by.lease.holder) for name, by in found]
        for begin in range(0, len(passed), BATCH_LEASES):
            command = RecordBypass(
                tenant=asker.place.tenant,
                request_id=desk.ids.name(),
                holder=asker.agent,
                reason=reason,
                passed=tuple(passed[begin : begin + BATCH_LEASES]),
            )
            answer_of(desk.call(command), Recorded)
    finally:
        desk.close()
