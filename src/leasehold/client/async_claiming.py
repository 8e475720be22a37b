"""Waiting for a lease.

A claim that has to wait is asked for again and again, always with the very same request, which keeps its
place and confirms what it has won: when the bell rings, and otherwise when the registrar said. Whoever stops
waiting, for whatever reason, leaves the queue or gives back what was won; the registrar makes sure that it is
one of the two.

The trust window of a lease counts from the last question, not from the first: what was answered then is what
the lease is good for.
"""

import os
from collections.abc import Callable

from msgspec.structs import replace

from leasehold.client.async_holding import AsyncHolding
from leasehold.client.async_lease import AsyncHeldLease
from leasehold.client.async_listening import AsyncListener
from leasehold.client.async_loss import AsyncBody
from leasehold.client.waits import Claim, has_lapsed, in_vain
from leasehold.engine.bells import Ring
from leasehold.engine.registrar import answer_of
from leasehold.errors import ClientClosed, LeaseholdError, LeaseTerminal, WrongProcess
from leasehold.kernel.answers import Granted, Waiting
from leasehold.kernel.commands import Acquire, ChangeMode, Command, Release
from leasehold.kernel.lease import Mode, ReleaseReason
from leasehold.kernel.tick import NANOSECONDS_PER_SECOND
from leasehold.kernel.ticket import CLAIM_WINDOW_NS


class AsyncClaiming(AsyncHolding):
    """How a client gets what it has to wait for."""

    async def _acquire_together(
        self,
        claim: Claim[Acquire],
        on_lost: Callable[[LeaseholdError], None] | None,
        patience_ns: int,
        body: AsyncBody,
    ) -> list[AsyncHeldLease]:
        """Acquire everything that a claim asks for; whatever goes wrong, nothing of it is left behind."""
        held: list[AsyncHeldLease] = []
        try:
            granted, sent_ns = await self._wait_for(claim, patience_ns)
            for lease in (granted.lease, *granted.also):
                held.append(self._hold(lease, granted.expires_in_ns, sent_ns, on_lost, body))
            if self._closed:
                raise ClientClosed("this client was closed while it acquired a lease, which was given back")
            for one in held:
                one.ensure()  # The answer may be old by now: this process may have been stopped meanwhile.
        except BaseException as error:
            if held or not isinstance(error, LeaseholdError):
                self.give_back(claim.command.lease_ids, claim.command.holder)
            raise
        return held

    async def _wait_for(
        self, claim: Claim[Acquire] | Claim[ChangeMode], patience_ns: int
    ) -> tuple[Granted, int]:
        """Ask until a claim is granted; return the answer, and when the question was sent.

        Leaves the queue if it is refused. If it is interrupted, the caller has to see to that.
        """
        listener = self._listeners.open()
        try:
            claim.command = replace(claim.command, wake=listener.address)
            granted, sent_ns = await self._ask_until_granted(claim, listener, patience_ns)
        except LeaseholdError:
            if listener.undo is not None and listener.process_id == os.getpid():
                self._send_blindly(listener.undo)
            raise
        finally:
            listener.close()
        if granted.ended:
            raise LeaseTerminal(
                f"request {claim.command.request_id} was granted lease {granted.lease.lease_id}, which has "
                "ended since; ask again with a new request id",
                lease_id=granted.lease.lease_id,
                state=granted.lease.state,
                request_id=claim.command.request_id,
            )
        return granted, sent_ns

    async def _ask_until_granted(
        self, claim: Claim[Acquire] | Claim[ChangeMode], listener: AsyncListener, patience_ns: int
    ) -> tuple[Granted, int]:
        began_ns = self._clock.tick_ns()
        deadline_ns = began_ns + patience_ns
        asked_ns: int | None = None
        while True:
            self._ensure_may_wait(listener)
            sent_ns = self._clock.tick_ns()
            outcome = await self._send(claim.command)
            if asked_ns is not None and has_lapsed(claim.command, outcome, sent_ns - asked_ns):
                # We were stopped, or could not reach the store, for too long: queue anew.
                listener.undo, asked_ns = None, None
                claim.renew(self._registrar.ids.new())
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
            await self._sleep(listener, outcome.ask_again_ns, deadline_ns)

    def _ensure_may_wait(self, listener: AsyncListener) -> None:
        if self._closed:
            raise ClientClosed("this client was closed while it waited for a lease; it left the queue")
        if listener.process_id != os.getpid():
            raise WrongProcess(
                f"process {listener.process_id}, which this one was forked from, waits for this lease; "
                "acquire a lease of your own"
            )

    async def _sleep(self, listener: AsyncListener, ask_again_ns: int, deadline_ns: int) -> None:
        """Sleep until it is time to ask: when the bell rings, when the registrar said, or at the deadline."""
        wakes_ns = min(self._clock.tick_ns() + ask_again_ns, deadline_ns)
        while not self._closed:
            left_ns = wakes_ns - self._clock.tick_ns()
            if left_ns <= 0:
                return
            ring = await listener.wait(left_ns / NANOSECONDS_PER_SECOND)
            if ring is not Ring.NEXT_IN_LINE:
                return
            wakes_ns = min(wakes_ns, self._clock.tick_ns() + CLAIM_WINDOW_NS)

    def _undoing(self, command: Acquire | ChangeMode) -> Command:
        """Return what takes a claim back, whatever has become of it by then."""
        if isinstance(command, ChangeMode):
            return replace(
                command, mode=Mode.SHARED, wait=False, wake="", request_id=self._registrar.ids.new()
            )
        return Release(
            tenant=command.tenant,
            lease_ids=command.lease_ids,
            holder=command.holder,
            reason=ReleaseReason.ABORTED,
            request_id=self._registrar.ids.new(),
        )
