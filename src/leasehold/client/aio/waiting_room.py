"""Where claims wait for what somebody else holds.

A claim that has to wait is asked for again when the registrar said, always with the very same request, which
keeps its place and confirms what it has won. When the bell rings, it is enough for a thread to look, which
waits for no writer: what was won is held for a claim window, and the keeper confirms it. Whoever stops
waiting, for whatever reason, leaves the queue or gives back what was won; the registrar sees to it that it is
one of the two.

The trust window of a lease counts from the last question, or look, not from the first: what was answered then
is what the lease is good for.
"""

import os

from msgspec.structs import replace

from leasehold.client.aio.listening import AsyncListener, AsyncListeners
from leasehold.client.aio.session import AsyncSession
from leasehold.client.waits import Claim, ended_since, has_lapsed, in_vain, undoing
from leasehold.engine.bells import Ring
from leasehold.engine.desk import Outcome, answer_of
from leasehold.engine.questions import FindWon
from leasehold.errors import ClientClosed, LeaseholdError, WrongProcess
from leasehold.kernel.lease.answers import Granted, Waiting
from leasehold.kernel.lease.commands import Acquire, ChangeMode
from leasehold.kernel.lease.ticket import CLAIM_WINDOW_NS
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND


class AsyncWaitingRoom:
    """The claims of one client that wait."""

    def __init__(self, session: AsyncSession, listeners: AsyncListeners | None = None) -> None:
        """`listeners` can be shared by all who wait at bells of one store."""
        self._session = session
        self.listeners = listeners or AsyncListeners(session.desk.bells)

    def after_fork_in_child(self) -> None:
        """Leave the parent's claims to the parent."""
        self.listeners = AsyncListeners(self._session.desk.bells)

    async def wait(self, claim: Claim[Acquire] | Claim[ChangeMode], patience: int) -> tuple[Granted, int]:
        """Ask until a claim is granted; return the answer, and when the question was sent.

        Leaves the queue if it is refused. If it is interrupted, the caller has to see to that.
        """
        listeners = self.listeners  # Others in a forked child, where this ends as well.
        listener = listeners.new()
        listeners.waiting[listener] = None  # Nothing is called until `try`: Ctrl-C cannot come between.
        try:
            listener.open()
            claim.command = replace(claim.command, wake=listener.address)
            granted, sent_ns = await self._ask_until_granted(claim, listener, patience)
        except LeaseholdError:
            if listener.undo is not None and listener.process_id == os.getpid():
                self._session.send_blindly(listener.undo)
            raise
        finally:
            del listeners.waiting[listener]
            try:
                listener.close()
            except BaseException:  # Ctrl-C, perhaps before its first line.
                listener.close()
                raise
        if granted.ended:
            raise ended_since(granted, claim.command.request_id)
        return granted, sent_ns

    async def _ask_until_granted(
        self, claim: Claim[Acquire] | Claim[ChangeMode], listener: AsyncListener, patience: int
    ) -> tuple[Granted, int]:
        session = self._session
        began_ns = session.clock.tick_ns()
        deadline_ns = began_ns + patience
        asked_ns: int | None = None
        rung = False
        while True:
            self._ensure_may_wait(listener)
            sent_ns = session.clock.tick_ns()
            outcome: Outcome | None = await self._look(claim.command) if rung else None
            if outcome is None:
                outcome = await session.send(claim.command)
            if asked_ns is not None and has_lapsed(claim.command, outcome, sent_ns - asked_ns):
                # We were stopped, or could not reach the store, for too long: queue anew.
                listener.undo, asked_ns = None, None
                claim.renew(session.ids.new())
                continue
            if not isinstance(outcome, Waiting):
                return answer_of(outcome, Granted), sent_ns
            if listener.undo is None:
                listener.undo = undoing(claim.command, session.ids.new())
            asked_ns = sent_ns
            now_ns = session.clock.tick_ns()
            if now_ns >= deadline_ns:
                await session.send(listener.undo)
                listener.undo = None
                raise in_vain(outcome, now_ns - began_ns)
            rung = await self._sleep(listener, outcome.ask_again_ns, deadline_ns)

    async def _look(self, command: Acquire | ChangeMode) -> Granted | None:
        if isinstance(command, ChangeMode):
            return None
        return await self._session.calls.won(FindWon(tenant=command.tenant, lease_ids=command.lease_ids))

    def _ensure_may_wait(self, listener: AsyncListener) -> None:
        if self._session.is_closed:
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
        clock = self._session.clock
        wakes_ns = min(clock.tick_ns() + ask_again_ns, deadline_ns)
        while not self._session.is_closed:
            left_ns = wakes_ns - clock.tick_ns()
            if left_ns <= 0:
                break
            ring = await listener.wait(left_ns / NANOSECONDS_PER_SECOND)
            if ring is not Ring.NEXT_IN_LINE:
                return ring is Ring.ASK
            wakes_ns = min(wakes_ns, clock.tick_ns() + CLAIM_WINDOW_NS)
        return False
