"""What each tool does.

What an agent claims is its own until it is released, or its TTL is over: nobody renews it in the background,
and it outlives the server. A refusal is an answer; errors are for calls that can never be right, and for a
store that cannot be used.
"""

import asyncio
from collections import deque
from collections.abc import Sequence

from msgspec import UNSET

from leasehold.client.aio.client import AsyncClient
from leasehold.engine.questions import LeaseStatus
from leasehold.errors import InvalidInput, LeaseholdError, LeaseLost, NotAcquired, RenewalDoesNotExtend
from leasehold.files.aio.lease import AsyncHeldFiles
from leasehold.files.names import FileName
from leasehold.files.values import FileLease, file_lease
from leasehold.kernel.lease.model import REASON, Mode
from leasehold.kernel.lease.paths import includes
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND
from leasehold.mcp.answers import (
    Checked,
    Event,
    Kept,
    Listed,
    Released,
    Told,
    lease_of,
    moment,
    shortened,
)
from leasehold.mcp.arguments import (
    LIST_MAXIMUM,
    Acting,
    Check,
    Claim,
    History,
    List,
    Release,
    Renew,
    Transfer,
    Wait,
    given,
)
from leasehold.mcp.paths import named, told
from leasehold.mcp.refusals import call, not_handed_over, not_held, not_renewed, refused

_CHANGES = ("issued", "released", "expired", "revoked", "mode_changed", "queued", "left")
"""What history tells of: renewals would drown it."""
_PAGE = 1_000


class Tools:
    """The tools of one call, for one agent unless the call names another."""

    def __init__(self, client: AsyncClient, agent: str) -> None:
        self._client = client
        self._agent = agent

    def _who(self, asked: Acting) -> str:
        agent = given(asked.agent)
        return self._agent if agent is None else agent

    async def claim(self, asked: Claim) -> Kept:
        """Own files at once, all or none."""
        return await self._claim(asked, wait=False)

    async def wait(self, asked: Wait) -> Kept:
        """Own files, after standing in line for them if need be."""
        return await self._claim(asked, wait=asked.seconds)

    async def _claim(self, asked: Claim, wait: float | bool) -> Kept:
        acquisition = self._client.files.lease(
            *await named(asked.paths),
            agent=self._who(asked),
            mode=Mode.SHARED if asked.shared else Mode.EXCLUSIVE,
            ttl=given(asked.ttl_seconds),
            wait=wait,
            reason=given(asked.reason) or "",
            survives_reboot=True,
        )
        try:
            async with acquisition as held:
                leases = await self._confirmed(held)
                # Only now: who is cancelled before this has nothing left behind.
                held.detach()
        except (NotAcquired, LeaseLost) as error:
            return refused(error, asked)
        return _granted(leases)

    async def _confirmed(self, held: AsyncHeldFiles) -> list[FileLease]:
        """Return how leases stand. What was won by waiting lasts for a moment only, until it is confirmed."""
        if any(one.is_unconfirmed for one in held.leases):
            for result in await self._client.renew_many(held.leases):
                if isinstance(result, LeaseholdError):
                    raise result
        found = [await self._client.get(one.lease_id) for one in held.leases]
        return [file_lease(status) for status in found if status is not None]

    async def renew(self, asked: Renew) -> Kept:
        """Have what the agent holds for longer, from now on."""
        own = await self._client.files.get_agent_leases(self._who(asked))
        paths = given(asked.paths)
        if paths is not None:
            names = await named(paths)
            missing = [told(name.resource) for name in names if not _covering(own, name)]
            if missing:
                return not_held(missing, asked)
            own = [one for one in own if any(includes(one.resource, name.resource) for name in names)]
        results = await self._client.renew_many(
            [one.id for one in own], ttl=given(asked.ttl_seconds), holder=self._who(asked)
        )
        for one, result in zip(own, results, strict=True):
            # One that would only have shortened it leaves it as it was, and that is enough.
            if isinstance(result, LeaseholdError) and not isinstance(result, RenewalDoesNotExtend):
                return not_renewed(result, asked, told(one.resource))
        standing = [
            file_lease(result) if isinstance(result, LeaseStatus) else one
            for one, result in zip(own, results, strict=True)
        ]
        return _granted(standing)

    async def release(self, asked: Release) -> Released:
        """Give back what the agent holds: these, or everything."""
        agent, paths = self._who(asked), given(asked.paths)
        if asked.all is (paths is not None):
            raise InvalidInput("say what to release: either paths, or all as true", field="paths")
        own = await self._client.files.get_agent_leases(agent)
        names = [] if paths is None else await named(paths)
        wanted = {name.resource for name in names}
        ending = [one for one in own if asked.all or one.resource in wanted]
        results = await asyncio.gather(*(self._client.release(one.id, holder=agent) for one in ending))
        released = [told(one.resource) for one, ended in zip(ending, results, strict=True) if ended]
        rest = [name for name in names if name.resource not in {one.resource for one in ending}]
        message = "; ".join(
            [f"released {', '.join(released) or 'nothing'}", *(_not_released(own, name) for name in rest)]
        )
        return Released(message=message, released=released, not_held=[told(name.resource) for name in rest])

    async def check(self, asked: Check) -> Checked:
        """Look who holds files, without claiming them."""
        agent, names = self._who(asked), await named(asked.paths)
        own = await self._client.files.get_agent_leases(agent)
        others: dict[str, FileLease] = {}
        for name in names:
            for lease in await self._client.files.get_file_leases(name):
                if lease.agent_id != agent:
                    others[lease.id] = lease
        missing = [name for name in names if not _covering(own, name, Mode.EXCLUSIVE)]
        if not missing:
            return Checked(yours=True, free=False, message="all of it is yours to change")
        if not others:
            message = "nobody else holds any of it; claim it before you change it"
            return Checked(yours=False, free=True, message=message, next=call(Claim, asked))
        blocked = ", ".join(sorted({f"{told(one.resource)} by {one.agent_id}" for one in others.values()}))
        return Checked(
            yours=False,
            free=False,
            message=f"held: {blocked}; do not change it, wait for it",
            held=[lease_of(one) for one in others.values()][:LIST_MAXIMUM],
            next=call(Wait, asked),
        )

    async def list(self, asked: List) -> Listed:
        """List leases that stand."""
        files, agent, path = self._client.files, given(asked.agent), given(asked.path)
        if path is not None:
            (name,) = await named([path])
            found = await files.get_file_leases(name)
        elif agent is not None:
            found = await files.get_agent_leases(agent)
        else:
            found = await files.get_all_leases()
        found = [one for one in found if agent is None or one.agent_id == agent]
        return Listed(leases=[lease_of(one) for one in found[:LIST_MAXIMUM]], total=len(found))

    async def history(self, asked: History) -> Told:
        """Tell the last of what happened to a path."""
        (name,) = await named([asked.path])
        last: deque[Entry] = deque(maxlen=asked.limit)
        after, more = 0, True
        while more:
            page = await self._client.history(
                resource=name.resource, types=_CHANGES, after=after, limit=_PAGE
            )
            last.extend(page)
            more = len(page) == _PAGE
            after = page[-1].position if page else after
        return Told(path=told(name.resource), events=[_event(entry) for entry in last])

    async def transfer(self, asked: Transfer) -> Kept:
        """Hand a lease to another agent, before everybody who waits."""
        (name,) = await named([asked.path])
        own = await self._client.files.get_agent_leases(self._who(asked))
        lease = next((one for one in own if one.resource == name.resource), None)
        if lease is None:
            return not_held([told(name.resource)], asked)
        try:
            status = await self._client.transfer(
                lease.id, to=asked.to, ttl=given(asked.ttl_seconds), holder=self._who(asked)
            )
        except NotAcquired as error:
            return not_handed_over(error, asked, told(name.resource))
        return _granted([file_lease(status)])


def _covering(own: Sequence[FileLease], name: FileName, mode: Mode | None = None) -> bool:
    return any(mode in (None, one.mode) and includes(one.resource, name.resource) for one in own)


def _granted(leases: Sequence[FileLease]) -> Kept:
    if not leases:
        return Kept(granted=True, message="you hold nothing")
    first = min(leases, key=lambda one: one.time_remaining)
    paths = ", ".join(told(one.resource) for one in leases)
    return Kept(
        granted=True,
        message=f"{first.agent_id} holds {paths} until {moment(first.expires_at)}; renew it before then",
        leases=[lease_of(one) for one in leases],
    )


def _not_released(own: Sequence[FileLease], name: FileName) -> str:
    covering = [told(one.resource) for one in own if includes(one.resource, name.resource)]
    path = told(name.resource)
    return (
        f"{path} is covered by your lease on {covering[0]}: release that"
        if covering
        else f"{path} is not yours"
    )


def _event(entry: Entry) -> Event:
    event = entry.event
    holder = getattr(event, "holder", "")
    said = getattr(event, "reason", None) or getattr(event, "metadata", {}).get(REASON)
    return Event(
        at=moment(event.at_ns / NANOSECONDS_PER_SECOND),
        what=event.type.removeprefix("lease."),
        agent=holder,
        by=UNSET if event.actor == holder else event.actor,
        reason=shortened(said),
    )
