"""Waiting for a lease.

A claim that has to wait is asked for again when the registrar said, always with the very same request, which
keeps its place and confirms what it has won. When the bell rings, it is enough for a thread to look, which
waits for no writer: what was won is held for a claim window, and the keeper confirms it. Whoever stops
waiting, for whatever reason, leaves the queue or gives back what was won; the registrar sees to it that it is
one of the two.

The trust window of a lease counts from the last question, or look, not from the first: what was answered then
is what the lease is good for.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from leasehold.client.acquisition import AsyncAcquisition, awaitable
from leasehold.client.async_lease import AsyncHeldLease
from leasehold.client.async_leases import AsyncHeldLeases
from leasehold.client.async_listening import AsyncListener
from leasehold.client.async_loss import AsyncBody
from leasehold.client.async_renewing import AsyncRenewing
from leasehold.client.inputs import (
    DEFAULT_TTL,
    Duration,
    callback,
    claim_ids,
    duration_ns,
    mapping,
    parse,
    wanted_of,
    whole_number,
)
from leasehold.client.waits import Claim, ended_since, has_lapsed, in_vain, patience_ns
from leasehold.engine.bells import Ring
from leasehold.engine.desk import Outcome, answer_of
from leasehold.engine.questions import FindWon
from leasehold.errors import ClientClosed, LeaseholdError, WrongProcess
from leasehold.kernel.lease.answers import Granted, Released, Waiting
from leasehold.kernel.lease.commands import (
    Acquire,
    ChangeMode,
    Release,
)
from leasehold.kernel.lease.model import Mode, ReleaseReason
from leasehold.kernel.lease.ticket import CLAIM_WINDOW_NS, PRIORITY_USUAL
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND


class AsyncClaiming(AsyncRenewing):
    """How a client gets what it has to wait for."""

    def acquire_all(
        self,
        resources: Iterable[str] | Mapping[str, Mode | str],
        *,
        ttl: Duration = DEFAULT_TTL,
        mode: Mode | str = Mode.EXCLUSIVE,
        holder: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        survives_reboot: bool = False,
        wait: Duration | bool | None = None,
        priority: int = PRIORITY_USUAL,
        lock_delay: Duration = 0,
        on_lost: Callable[[LeaseholdError], None] | None = None,
    ) -> AsyncAcquisition[AsyncHeldLeases]:
        """Own several resources at once: all of them, or none.

        They are given as names, all in the same `mode`, or as a mapping from names to modes. The other
        arguments are those of `acquire`, and hold for each. Nobody can wait for ever here, in whatever order
        others ask for the same resources.
        """
        patience = patience_ns(wait)
        first, *others = wanted_of(resources, parse("mode", Mode, mode))
        lease_id, request = claim_ids(self._desk.ids, None)
        command = Acquire(
            tenant=self._tenant,
            lease_id=lease_id,
            resource=first.resource,
            mode=first.mode,
            also=tuple(others),
            holder=self._name_or_own("holder", holder),
            ttl_ns=duration_ns("ttl", ttl),
            metadata={} if metadata is None else mapping("metadata", metadata),
            bound_to_boot=not survives_reboot,
            wait=patience > 0,
            priority=whole_number("priority", priority),
            lock_delay_ns=duration_ns("lock_delay", lock_delay),
            request_id=request,
        )
        return awaitable(self._acquire_all(command, callback("on_lost", on_lost), patience))

    async def _acquire_all(
        self, command: Acquire, on_lost: Callable[[LeaseholdError], None] | None, patience: int
    ) -> AsyncHeldLeases:
        body = AsyncBody()
        held = await self._acquire_together(Claim(command), on_lost, patience, body)
        return AsyncHeldLeases(self, held, body)  # type: ignore[arg-type]  # We always are a client.

    async def release_together(
        self, leases: Iterable[AsyncHeldLease], reason: ReleaseReason | str = ReleaseReason.VOLUNTARY
    ) -> bool:
        """Give held leases of one holder back in one commit. Return False if one of them was over already."""
        ours = [one for one in leases if one.kept is not None and one.belongs_elsewhere() is None]
        if not ours:
            return False
        command = Release(
            tenant=self._tenant,
            lease_ids=tuple(one.lease_id for one in ours),
            holder=ours[0].holder,
            reason=parse("reason", ReleaseReason, reason),
            request_id=self._desk.ids.new(),
        )
        outcomes = answer_of(await self._release(command, ours), Released).outcomes
        return not [one for one in outcomes if isinstance(one, Refusal) or one.already]

    async def _acquire_together(
        self,
        claim: Claim[Acquire],
        on_lost: Callable[[LeaseholdError], None] | None,
        patience: int,
        body: AsyncBody,
    ) -> list[AsyncHeldLease]:
        """Acquire everything that a claim asks for; whatever goes wrong, nothing of it is left behind."""
        held: list[AsyncHeldLease] = []
        step = self._begin()
        try:
            granted, sent_ns = await self._wait_for(claim, patience)
            for lease in (granted.lease, *granted.also):
                held.append(self._hold(lease, granted.expires_in_ns, sent_ns, on_lost, body))
            if self._closed:
                raise ClientClosed("this client was closed while it acquired a lease, which was given back")
            for one in held:
                one.ensure()  # The answer may be old by now: this process may have been stopped meanwhile.
        except BaseException as error:
            if held or isinstance(error, ClientClosed) or not isinstance(error, LeaseholdError):
                self.give_back(claim.command.lease_ids, claim.command.holder)
            raise
        finally:
            del self._under_way[step]
        return held

    async def _wait_for(
        self, claim: Claim[Acquire] | Claim[ChangeMode], patience: int
    ) -> tuple[Granted, int]:
        """Ask until a claim is granted; return the answer, and when the question was sent.

        Leaves the queue if it is refused. If it is interrupted, the caller has to see to that.
        """
        listener = self._listeners.open()
        try:
            claim.command = replace(claim.command, wake=listener.address)
            granted, sent_ns = await self._ask_until_granted(claim, listener, patience)
        except LeaseholdError:
            if listener.undo is not None and listener.process_id == os.getpid():
                self._send_blindly(listener.undo)
            raise
        finally:
            listener.close()
        if granted.ended:
            raise ended_since(granted, claim.command.request_id)
        return granted, sent_ns

    async def _ask_until_granted(
        self, claim: Claim[Acquire] | Claim[ChangeMode], listener: AsyncListener, patience: int
    ) -> tuple[Granted, int]:
        began_ns = self._clock.tick_ns()
        deadline_ns = began_ns + patience
        asked_ns: int | None = None
        rung = False
        while True:
            self._ensure_may_wait(listener)
            sent_ns = self._clock.tick_ns()
            outcome: Outcome | None = await self._look(claim.command) if rung else None
            if outcome is None:
                outcome = await self._send(claim.command)
            if asked_ns is not None and has_lapsed(claim.command, outcome, sent_ns - asked_ns):
                # We were stopped, or could not reach the store, for too long: queue anew.
                listener.undo, asked_ns = None, None
                claim.renew(self._desk.ids.new())
                continue
            if not isinstance(outcome, Waiting):
                return answer_of(outcome, Granted), sent_ns
            if listener.undo is None:
                listener.undo = self._undoing(claim.command)
            asked_ns = sent_ns
            now_ns = self._clock.tick_ns()
            if now_ns >= deadline_ns:
                await self._send(listener.undo)
                listener.undo = None
                raise in_vain(outcome, now_ns - began_ns)
            rung = await self._sleep(listener, outcome.ask_again_ns, deadline_ns)

    async def _look(self, command: Acquire | ChangeMode) -> Granted | None:
        if isinstance(command, ChangeMode):
            return None
        return await self._calls.won(FindWon(tenant=self._tenant, lease_ids=command.lease_ids))

    def _ensure_may_wait(self, listener: AsyncListener) -> None:
        if self._closed:
            raise ClientClosed("this client was closed while it waited for a lease; it left the queue")
        if listener.process_id != os.getpid():
            raise WrongProcess(
                f"process {listener.process_id}, which this one was forked from, waits for this lease; "
                "acquire a lease of your own"
            )

    async def _sleep(self, listener: AsyncListener, ask_again_ns: int, deadline_ns: int) -> bool:
        """Sleep until it is time to ask: when the bell rings, when the registrar said, or at the deadline.

        Return whether the bell rang.
        """
        wakes_ns = min(self._clock.tick_ns() + ask_again_ns, deadline_ns)
        while not self._closed:
            left_ns = wakes_ns - self._clock.tick_ns()
            if left_ns <= 0:
                break
            ring = await listener.wait(left_ns / NANOSECONDS_PER_SECOND)
            if ring is not Ring.NEXT_IN_LINE:
                return ring is Ring.ASK
            wakes_ns = min(wakes_ns, self._clock.tick_ns() + CLAIM_WINDOW_NS)
        return False

    def _undoing(self, command: Acquire | ChangeMode) -> Command:
        """Return what takes a claim back, whatever has become of it by then."""
        if isinstance(command, ChangeMode):
            return replace(command, mode=Mode.SHARED, wait=False, wake="", request_id=self._desk.ids.new())
        return Release(
            tenant=command.tenant,
            lease_ids=command.lease_ids,
            holder=command.holder,
            reason=ReleaseReason.ABORTED,
            request_id=self._desk.ids.new(),
        )
