"""How leases begin, and how they end.

Whatever goes wrong on the way, and whoever is interrupted, nothing is left behind: what was granted, or may
have been, is held by somebody who knows of it, or given back.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from leasehold.client.aio.acquisition import AsyncAcquisition
from leasehold.client.aio.lease import AsyncHeldLease
from leasehold.client.aio.leases import AsyncHeldLeases
from leasehold.client.aio.session import AsyncSession
from leasehold.client.aio.terms import AsyncTerms
from leasehold.client.aio.waiting_room import AsyncWaitingRoom
from leasehold.client.held import AnyHeldLease
from leasehold.client.holdings import Holdings
from leasehold.client.inputs import (
    Duration,
    callback,
    duration_ns,
    granted,
    lease_id_of,
    mapping,
    page_query,
    parse,
    text,
    whole_number,
)
from leasehold.client.lifetimes import look_after
from leasehold.client.waits import Claim, ended_since, undoing
from leasehold.engine.desk import Outcome, answer_of
from leasehold.engine.questions import IsAnythingDue, ListLeases
from leasehold.errors import ClientClosed, LeaseholdError, error_of
from leasehold.kernel.lease.answers import Ended, Granted, Released
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Acquire, Derive, Release
from leasehold.kernel.lease.model import LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.commands import Command, SweepDue, SweptDue
from leasehold.kernel.ledger.limits import BATCH_LEASES
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode

_OnLost = Callable[[LeaseholdError], None]
_CLOSED_MEANWHILE = "this client was closed while it acquired a lease, which was given back"


class AsyncClaims:
    """How the leases of one client begin, and how they end."""

    def __init__(
        self, session: AsyncSession, holdings: Holdings, waiting_room: AsyncWaitingRoom, terms: AsyncTerms
    ) -> None:
        self._session = session
        self._holdings = holdings
        self._waiting_room = waiting_room
        self._terms = terms
        look_after(self)  # Not the client: who keeps a lease, and not the client, keeps this.

    async def acquire(
        self, command: Command, lease_id: str, holder: str, on_lost: _OnLost | None
    ) -> AsyncHeldLease:
        """Acquire one resource at once, or not at all, by any command that is answered `Granted`.

        `lease_id` is the id that the lease gets, and `holder` who will hold it.
        """
        session, holdings = self._session, self._holdings
        sent_ns = session.clock.tick_ns()
        step = holdings.step(lambda: holdings.release_of((lease_id,), holder))
        holdings.under_way[step] = None  # Nothing is called until `try`: Ctrl-C cannot come between.
        try:
            if session.is_closed:
                raise ClientClosed("this client was closed; connect again")
            granted = answer_of(await session.send(command), Granted)
            if granted.ended:
                raise ended_since(granted, command.request_id)
            held = AsyncHeldLease(granted.lease, holdings, self, self._terms)
            holdings.hold(held, granted.expires_in_ns, sent_ns, on_lost)
            if session.is_closed:
                # By another thread or task, which may have looked for leases to release before this.
                raise ClientClosed(_CLOSED_MEANWHILE)
            return held
        except BaseException as error:
            # Interrupted or cancelled, so that nobody will ever hear of it; or closed, perhaps before the
            # second try, where the first was granted and its reply was lost.
            if isinstance(error, ClientClosed) or not isinstance(error, LeaseholdError):
                holdings.give_back((lease_id,), holder)
            raise
        finally:
            del holdings.under_way[step]

    async def wait(self, command: Acquire, on_lost: _OnLost | None, patience: int) -> AsyncHeldLease:
        """Acquire one resource, after waiting for it if need be."""
        return (await self._wait(command, on_lost, patience))[0]

    async def acquire_all(self, command: Acquire, on_lost: _OnLost | None, patience: int) -> AsyncHeldLeases:
        """Acquire several resources together, after waiting for them if need be."""
        return AsyncHeldLeases(await self._wait(command, on_lost, patience), self._holdings, self)

    async def _wait(self, command: Acquire, on_lost: _OnLost | None, patience: int) -> list[AsyncHeldLease]:
        """Wait for everything that a claim asks for; whatever goes wrong, nothing of it is left behind."""
        holdings, claim, held = self._holdings, Claim(command), list[AsyncHeldLease]()
        step = holdings.step(lambda: undoing(claim.command, self._session.ids.name()))
        holdings.under_way[step] = None
        try:
            granted, sent_ns = await self._waiting_room.wait(claim, patience)
            for lease in (granted.lease, *granted.also):
                held.append(AsyncHeldLease(lease, holdings, self, self._terms))
                holdings.hold(held[-1], granted.expires_in_ns, sent_ns, on_lost)
            if self._session.is_closed:
                raise ClientClosed(_CLOSED_MEANWHILE)
            for one in held:
                one.ensure()  # The answer may be old by now: this process may have been stopped meanwhile.
            return held
        except BaseException as error:
            if held or isinstance(error, ClientClosed) or not isinstance(error, LeaseholdError):
                holdings.give_back(claim.command.lease_ids, claim.command.holder)
            raise
        finally:
            del holdings.under_way[step]

    def derive(
        self,
        parent: AsyncHeldLease | str,
        resource: str,
        *,
        scope: Scope | None = None,
        budget: Budget | None = None,
        ttl: Duration | None = None,
        holder: str | None = None,
        mode: Mode | str = Mode.EXCLUSIVE,
        max_renewals: int = -1,
        metadata: Mapping[str, Any] | None = None,
        survives_reboot: bool = False,
        on_lost: _OnLost | None = None,
        request_id: str | None = None,
    ) -> AsyncAcquisition[AsyncHeldLease]:
        """Hand on a part of a lease, as the client's `derive` says."""
        ids = self._session.ids
        deriving = self._session.holders.of(parent, None)
        command = Derive(
            tenant=self._session.tenant,
            parent_id=lease_id_of(parent),
            holder=deriving,
            lease_id=ids.new(),
            resource=text("resource", resource),
            child_holder=deriving if holder is None else text("holder", holder),
            ttl_ns=None if ttl is None else duration_ns("ttl", ttl),
            scope=Scope() if scope is None else granted("scope", Scope, scope),
            budget=Budget() if budget is None else granted("budget", Budget, budget),
            mode=parse("mode", Mode, mode),
            max_renewals=whole_number("max_renewals", max_renewals),
            metadata={} if metadata is None else mapping("metadata", metadata),
            bound_to_boot=not survives_reboot,
            request_id=ids.name() if request_id is None else text("request_id", request_id),
        )
        return AsyncAcquisition(self._derive(command, callback("on_lost", on_lost)))

    async def _derive(self, command: Derive, on_lost: _OnLost | None) -> AsyncHeldLease:
        await self._terms.confirm(command.parent_id)
        return await self.acquire(command, command.lease_id, command.child_holder, on_lost)

    async def release(
        self, lease: AsyncHeldLease | str, reason: ReleaseReason | str, holder: str | None = None
    ) -> bool:
        """Give a lease back. Return False if it had already ended; raise NotHolder if it is another's."""
        command = self._release((lease_id_of(lease),), self._session.holders.of(lease, holder), reason)
        held = self._holdings.held.get(lease) if isinstance(lease, str) else lease
        if held is not None and held.process_id != os.getpid():
            return False  # It is the parent's, and stays the parent's.
        ours = [held] if held is not None and held.granted.holder == command.holder else []
        (outcome,) = answer_of(await self._give_up(command, ours), Released).outcomes
        if isinstance(outcome, Ended):
            _note_end(ours, [outcome])
            return not outcome.already
        if held is not None and outcome.code is RefusalCode.LEASE_NOT_FOUND:
            return False  # The store was put back to a time before the grant: so it is gone, too.
        raise error_of(outcome)

    async def release_together(self, leases: Sequence[AsyncHeldLease], reason: ReleaseReason | str) -> bool:
        """Give held leases of one holder back in one commit. Return False if one had already ended."""
        ours = [one for one in leases if one.kept is not None and one.belongs_elsewhere() is None]
        if not ours:
            return False
        command = self._release(tuple(one.lease_id for one in ours), ours[0].holder, reason)
        outcomes = answer_of(await self._give_up(command, ours), Released).outcomes
        _note_end(ours, outcomes)
        return not [one for one in outcomes if isinstance(one, Refusal) or one.already]

    async def release_all(self, holder: str, reason: ReleaseReason | str) -> int:
        """Give back every lease that a holder has, kept here or not; return how many have ended by this."""
        count, after, held = 0, None, self._holdings.held
        while True:
            query = page_query(self._session.tenant, holder=holder, states=[LeaseState.ACTIVE], after=after)
            page = await self._session.ask(ListLeases(tenant=query.tenant, query=query))
            if not page:
                return count
            lease_ids = tuple(status.lease.lease_id for status in page)
            command = self._release(lease_ids, holder, reason)
            outcome = await self._give_up(command, [held[one] for one in lease_ids if one in held])
            ended = [one for one in answer_of(outcome, Released).outcomes if isinstance(one, Ended)]
            count += sum(not one.already for one in ended)
            after = lease_ids[-1]

    def _release(self, lease_ids: tuple[str, ...], holder: str, reason: ReleaseReason | str) -> Release:
        return Release(
            tenant=self._session.tenant,
            lease_ids=lease_ids,
            holder=holder,
            reason=parse("reason", ReleaseReason, reason),
            request_id=self._session.ids.name(),
        )

    async def _give_up(self, command: Release, ours: Sequence[AnyHeldLease]) -> Outcome:
        """Release leases, of which we stop keeping ours, even if the caller is interrupted meanwhile."""
        step = self._holdings.step(lambda: command)
        self._holdings.under_way[step] = None
        try:
            self._holdings.take_from_sharers(ours)
            for held in ours:
                self._holdings.forget(held)
            return await self._session.send(command)
        except LeaseholdError:
            raise
        except BaseException:
            for held in ours:
                self._holdings.forget(held)
            self._session.send_blindly(command)
            raise
        finally:
            del self._holdings.under_way[step]

    async def sweep(self, limit: int) -> int:
        """Record the end of at most so many leases, or anything else, whose time is over; return how many."""
        count, left = 0, limit
        while left > 0:
            most = min(left, BATCH_LEASES)
            if not await self._session.ask(IsAnythingDue()):
                break  # So that who has nothing to do need not wait for a writer.
            command = SweepDue(tenant=self._session.tenant, limit=most, request_id=self._session.ids.name())
            swept = answer_of(await self._session.send(command), SweptDue).ended
            count, left = count + swept, left - swept
            if swept < most:
                break  # That was all, or the rest is of a time that nobody knows.
        return count

    async def close(self) -> None:
        """Take no more claims, leave all queues, and give back everything that is kept."""
        session, holdings = self._session, self._holdings
        session.desk.stop_granting()
        await self._waiting_room.listeners.dismiss(session.desk.timeout)
        holdings.keeper.close()
        held = list(holdings.held.values())
        holdings.take_from_others(held)
        for command in holdings.releases(held):
            with suppress(LeaseholdError):  # These expire by themselves; the others can be released.
                await session.send(command)
        # Whoever was granted something meanwhile gives it back, for which there has to be a registrar.
        await session.calls.until(holdings.is_settled, session.desk.timeout)

    def release_at_exit(self) -> None:
        """Release what is still held when the program ends without closing, so that others need not wait."""
        if self._session.is_closed:
            return
        # First: what another thread is about to ask for must not come after its release.
        self._session.desk.stop_granting()
        # In this order: what was under way and no longer is, is held by now.
        undoing = self._holdings.undoing()
        releases = self._holdings.releases(list(self._holdings.held.values()))
        for command in (*undoing, *releases):
            with suppress(LeaseholdError):  # Then they expire by themselves.
                self._session.desk.call(command)
        self._session.hear_all()

    def after_fork_in_child(self) -> None:
        """Become another holder, with none of the parent's leases."""
        self._session.after_fork_in_child()
        self._holdings.after_fork_in_child()
        self._waiting_room.after_fork_in_child()


def _note_end(leases: Sequence[AnyHeldLease], outcomes: Sequence[Ended | Refusal]) -> None:
    """Let leases that had ended before they were released know how."""
    for held, outcome in zip(leases, outcomes, strict=False):
        if isinstance(outcome, Ended) and outcome.already:
            held.granted = outcome.lease
