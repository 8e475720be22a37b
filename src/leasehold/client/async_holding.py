"""What a client holds: the leases it keeps alive, gives back when it ends, and does not take into a fork."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress

from leasehold.client.announcer import Announcer
from leasehold.client.async_calls import AwaitableCalls
from leasehold.client.async_lease import AsyncHeldLease
from leasehold.client.async_listening import AsyncListeners
from leasehold.client.async_loss import AsyncBody, AsyncLoss
from leasehold.client.async_reading import AsyncReading
from leasehold.client.holders import Holders
from leasehold.client.inputs import name, text
from leasehold.client.lifetimes import look_after
from leasehold.engine.clock import Clock, SystemClock
from leasehold.engine.desk import Desk, Failure, Outcome
from leasehold.engine.keeper import Keeper
from leasehold.engine.kept import Kept, window_closed
from leasehold.engine.trust import Trust
from leasehold.errors import ClientClosed, LeaseholdError, LeaseLost
from leasehold.kernel.lease.commands import (
    Release,
    Renew,
)
from leasehold.kernel.lease.model import Lease, ReleaseReason
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.limits import BATCH_LEASES

_RETRIES = 2


class AsyncHolding(AsyncReading):
    """The leases of one client, and how it speaks to the registrar about them."""

    def __init__(
        self,
        desk: Desk,
        *,
        tenant: str = "default",
        holder: str | None = None,
        clock: Clock | None = None,
        trust: Trust | None = None,
    ) -> None:
        super().__init__(desk, AwaitableCalls(desk), name("tenant", tenant))
        given = None if holder is None else name("holder", holder)
        self._holders = Holders(given, AwaitableCalls.caller)
        self._clock = clock or SystemClock()
        self._trust = trust or Trust()
        self._keeper = Keeper(desk, self._clock, self._trust)
        self._announcer = Announcer()
        self._held: dict[str, AsyncHeldLease] = {}
        self._under_way: dict[object, object] = {}
        """Who is in the middle of something that could leave a lease behind."""
        self._listeners = AsyncListeners(desk.bells)
        self._closed = False
        look_after(self)

    @property
    def holder(self) -> str:
        """The name under which the calling thread or task holds leases, unless it says another."""
        return self._holders.current()

    def _hold(
        self,
        lease: Lease,
        expires_in_ns: int,
        sent_ns: int,
        on_lost: Callable[[LeaseholdError], None] | None,
        body: AsyncBody,
    ) -> AsyncHeldLease:
        """Begin to keep a lease that was granted, or confirmed, by the answer to what was sent then."""
        lost = AsyncLoss()
        held = AsyncHeldLease(self, lease, lost, body)  # type: ignore[arg-type]  # We always are a client.

        def lose(error: LeaseholdError) -> None:
            self._held.pop(held.lease_id, None)
            lost.fire(error)
            body.interrupt()
            if on_lost is not None:
                self._announcer.announce(on_lost, error)

        held.kept = Kept(lease, self._trust.deadline_ns(sent_ns, expires_in_ns), self._clock, on_lost=lose)
        self._held[held.lease_id] = held
        self._keeper.keep(held.kept)
        return held

    def _begin(self) -> object:
        """Note that the caller is about to acquire or release something; return under which key.

        To end that it is deleted, and nothing called: Ctrl-C could come before, and a lease be left behind.
        """
        step = object()
        self._under_way[step] = self._calls.caller()
        return step

    def _ensure_open(self) -> None:
        """Refuse whoever begins after the client was closed: nobody waits for it any more."""
        if self._closed:
            raise ClientClosed("this client was closed; connect again")

    def _is_settled(self) -> bool:
        """Say whether nobody else is in the middle of something.

        What the calling thread seems to be in the middle of was interrupted by Ctrl-C.
        """
        caller = self._calls.caller()
        return all(one is caller for one in list(self._under_way.values()))

    def lose(self, kept: Kept) -> None:
        """Take a lease whose trust window has closed for lost."""
        self._keeper.lose(kept, window_closed(kept.lease))

    def forget(self, held: AsyncHeldLease) -> None:
        """Stop keeping a lease."""
        self._held.pop(held.lease_id, None)
        kept, held.kept = held.kept, None
        if kept is not None:
            self._keeper.drop(kept)

    def keep_again(self, held: AsyncHeldLease, kept: Kept) -> None:
        """Go on keeping a lease that was forgotten too early."""
        if kept.loss is None:
            held.kept = Kept(kept.lease, kept.deadline_ns, self._clock, on_lost=kept.on_lost)
            self._held[held.lease_id] = held
            self._keeper.keep(held.kept)

    def give_back(self, lease_ids: tuple[str, ...], holder: str) -> None:
        """Release leases, which may still be on their way to us, without waiting for it."""
        for lease_id in lease_ids:
            held = self._held.get(lease_id)
            if held is not None:
                self.forget(held)
        self._send_blindly(
            Release(
                tenant=self._tenant,
                lease_ids=lease_ids,
                holder=holder,
                reason=ReleaseReason.ABORTED,
                request_id=self._desk.ids.name(),
            )
        )

    def confirm_blindly(self, lease: Lease) -> None:
        """Confirm a lease that was won by waiting, without waiting for it; closing the client does that."""
        self._send_blindly(
            Renew(
                tenant=lease.tenant,
                lease_ids=(lease.lease_id,),
                holder=lease.holder,
                request_id=self._desk.ids.name(),
            )
        )

    def release_at_exit(self) -> None:
        """Release what is still held when the program ends without closing, so that others need not wait."""
        if self._closed:
            return
        for command in (*self._listeners.undoing(), *self._releases_of(list(self._held.values()))):
            with suppress(LeaseholdError):  # Then they expire by themselves.
                self._desk.call(command)

    def after_fork_in_child(self) -> None:
        """Become another holder, with none of the parent's leases."""
        self._holders.restart()
        self._keeper.restart()
        self._announcer.restart()
        self._held = {}
        self._under_way = {step: one for step, one in self._under_way.items() if one is self._calls.caller()}
        self._listeners = AsyncListeners(self._desk.bells)
        self._calls = AwaitableCalls(self._desk)

    def _take_from_others(self, leases: list[AsyncHeldLease]) -> None:
        """Let the blocks of other threads and tasks know that they go on without their leases from now on."""
        for held in leases:
            if held.kept is not None and held.runs_elsewhere():
                self._keeper.lose(held.kept, _closed_under(held))

    def _releases_of(self, leases: list[AsyncHeldLease]) -> Iterator[Release]:
        """Forget leases, and yield the commands that release them."""
        lease_ids: dict[str, list[str]] = defaultdict(list)
        for held in leases:
            self.forget(held)
            lease_ids[held.holder].append(held.lease_id)
        for holder, ids in lease_ids.items():
            for start in range(0, len(ids), BATCH_LEASES):
                yield Release(
                    tenant=self._tenant,
                    lease_ids=tuple(ids[start : start + BATCH_LEASES]),
                    holder=holder,
                    request_id=self._desk.ids.name(),
                )

    async def _send(self, command: Command) -> Outcome:
        """Run a command; where the outcome is unknown, ask again, which the request id makes safe."""
        for _ in range(_RETRIES):
            outcome = await self._calls.call(command)
            if not (isinstance(outcome, Failure) and outcome.is_unknown):
                return outcome
        outcome = await self._calls.call(command)
        if isinstance(outcome, Failure):
            # A copy: one failure of the store is the outcome of every command that was on board.
            return outcome.with_facts(request_id=command.request_id)
        return outcome

    async def _release(self, command: Release, ours: list[AsyncHeldLease]) -> Outcome:
        """Release leases, of which we stop keeping ours, even if the caller is interrupted meanwhile."""
        step = self._begin()
        try:
            for held in ours:
                self.forget(held)
            return await self._send(command)
        except LeaseholdError:
            raise
        except BaseException:
            for held in ours:
                self.forget(held)
            self._send_blindly(command)
            raise
        finally:
            del self._under_way[step]

    def _send_blindly(self, command: Command) -> None:
        with suppress(LeaseholdError):  # The client was closed meanwhile; the lease expires by itself.
            self._desk.submit(command, lambda outcome: None)

    def _name_or_own(self, field: str, given: str | None) -> str:
        return self.holder if given is None else text(field, given)

    def _holder_of(self, lease: AsyncHeldLease | str) -> str:
        return self.holder if isinstance(lease, str) else lease.holder


def _closed_under(held: AsyncHeldLease) -> LeaseLost:
    return LeaseLost(
        f"lease {held.lease_id} on {held.resource} was given back under its block, because the client was "
        "closed elsewhere; close a client when its blocks have ended",
        lease_id=held.lease_id,
        resource=held.resource,
        token=held.token,
    )
