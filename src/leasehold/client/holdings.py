"""What a client holds: the leases it keeps alive, gives back when it ends, and does not take into a fork."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

import msgspec

from leasehold.client.announcer import Announcer
from leasehold.client.held import AnyHeldLease
from leasehold.client.session import AnySession
from leasehold.client.users import User, Users
from leasehold.engine.keeper import Keeper
from leasehold.engine.kept import Kept, adopted, ended
from leasehold.errors import LeaseholdError, LeaseLost
from leasehold.kernel.lease.commands import Release, Renew
from leasehold.kernel.lease.model import Lease, ReleaseReason
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.limits import BATCH_LEASES

_Held = TypeVar("_Held", bound=AnyHeldLease)


class Step(msgspec.Struct, frozen=True, eq=False):
    """Something that could leave a lease behind, or a place in a queue, if the program ended now."""

    caller: object
    process_id: int
    undo: Callable[[], Command]
    """Makes the command that leaves nothing of it behind, however far it has come."""


class Holdings:
    """The leases that one client keeps, and who is in the middle of getting one, or of giving one back."""

    def __init__(self, session: AnySession) -> None:
        self._session = session
        session.hear_of_end = lambda lease: self._end(lease.lease_id, ended(lease))
        self.keeper = Keeper(session.desk, session.clock, session.trust)
        self._announcer = Announcer()
        self.held: dict[str, AnyHeldLease] = {}
        self.users = Users()
        self.under_way: dict[Step, None] = {}
        """What somebody is in the middle of."""

    def hold(
        self,
        held: AnyHeldLease,
        expires_in_ns: int,
        sent_ns: int,
        on_lost: Callable[[LeaseholdError], None] | None,
    ) -> None:
        """Begin to keep a lease that was granted, or confirmed, by the answer to what was sent then."""

        def lose(loss: LeaseholdError) -> None:
            self.held.pop(held.lease_id, None)
            held.lose(loss)
            if on_lost is not None:
                self._announcer.announce(on_lost, loss)

        deadline_ns = self._session.trust.deadline_ns(sent_ns, expires_in_ns)
        self._keep(held, Kept(held.granted, deadline_ns, self._session.clock, on_lost=lose))
        if held.granted.adopted_from is not None:
            self._end(held.granted.adopted_from, adopted(held.granted))

    def _end(self, lease_id: str, loss: LeaseholdError) -> None:
        """Let who holds a lease here know at once that it is over: by what was asked through this client."""
        held = self.held.get(lease_id)
        if held is not None and held.kept is not None:
            self.keeper.lose(held.kept, loss)

    def keep_again(self, held: AnyHeldLease, kept: Kept) -> None:
        """Go on keeping a lease that was forgotten too early."""
        if kept.loss is None:
            clock = self._session.clock
            self._keep(held, Kept(kept.lease, kept.deadline_ns, clock, on_lost=kept.on_lost))

    def _keep(self, held: AnyHeldLease, kept: Kept) -> None:
        held.kept = kept
        self.held[held.granted.lease_id] = held
        self.keeper.keep(kept)

    def forget(self, held: AnyHeldLease) -> None:
        """Stop keeping a lease."""
        if self.held.get(held.granted.lease_id) is held:
            del self.held[held.granted.lease_id]
        kept, held.kept = held.kept, None
        if kept is not None:
            self.keeper.drop(kept)

    def join(self, lease_id: str, user: User) -> bool:
        """Use a lease that stands, whether it is kept here or not; False if it is just being given back."""
        return self.users.join(lease_id, user, is_owned=lease_id in self.held)

    def listen(self, held: AnyHeldLease, user: User) -> None:
        """Have a user told of the loss of a lease, as long as it uses it."""

        def hear() -> None:
            with suppress(ValueError):  # It was told, or has left.
                held.hearers.remove(hear)
                if user.on_lost is not None and held.loss is not None:
                    self._announcer.announce(user.on_lost, held.loss)

        user.hearers[held.lease_id] = hear
        held.hearers.append(hear)
        if held.loss is not None:
            hear()

    def leave(self, leases: Iterable[_Held], user: User, *, stays: bool = False) -> list[_Held]:
        """Use leases no longer; return those that are to be released, because nobody else uses them.

        What its holder had before, from elsewhere, is kept no longer, and stands; so does everything with
        `stays`. Until `users.over`, who was interrupted can leave once more.
        """
        ending = []
        for held in leases:
            hear = user.hearers.pop(held.lease_id, None)
            if hear is not None:
                with suppress(ValueError):  # It was told.
                    held.hearers.remove(hear)
            is_last = self.users.leave(held.lease_id, user, stays=stays)
            kept = self.held.get(held.lease_id)
            if is_last and self.users.is_to_end(held.lease_id):
                ending.append(held)
            elif is_last:
                self.forget(held)
                self.users.over([held.lease_id])
            if kept is not None and kept is not held:
                # Two claims found the same lease before it was kept, and keep it twice.
                self.forget(kept if is_last else held)
        return ending

    def step(self, undo: Callable[[], Command]) -> Step:
        """Return what the caller puts under way while it acquires or releases something.

        It is put in, and deleted, and nothing called: Ctrl-C could come between, and a lease be left behind.
        """
        return Step(self._session.caller(), os.getpid(), undo)

    def is_settled(self) -> bool:
        """Say whether nobody else is in the middle of something.

        What the calling thread seems to be in the middle of was interrupted by Ctrl-C.
        """
        caller = self._session.caller()
        return all(step.caller is caller for step in list(self.under_way))

    def undoing(self) -> list[Command]:
        """Return what leaves nothing behind of all that somebody in this process is in the middle of."""
        return [step.undo() for step in list(self.under_way) if step.process_id == os.getpid()]

    def give_back(self, lease_ids: tuple[str, ...], holder: str) -> None:
        """Release leases, which may still be on their way to us, without waiting for it."""
        for lease_id in lease_ids:
            held = self.held.get(lease_id)
            if held is not None:
                self.forget(held)
        self._session.send_blindly(self.release_of(lease_ids, holder))

    def release_of(self, lease_ids: tuple[str, ...], holder: str) -> Release:
        """Return what releases leases that nobody will ever hear of."""
        return Release(
            tenant=self._session.tenant,
            lease_ids=lease_ids,
            holder=holder,
            reason=ReleaseReason.ABORTED,
            request_id=self._session.ids.name(),
        )

    def confirm_blindly(self, lease: Lease) -> None:
        """Confirm a lease that was won by waiting, without waiting for it."""
        self._session.send_blindly(
            Renew(
                tenant=lease.tenant,
                lease_ids=(lease.lease_id,),
                holder=lease.holder,
                request_id=self._session.ids.name(),
            )
        )

    def take_from_others(self, leases: list[AnyHeldLease]) -> None:
        """Let the blocks of other threads and tasks know that they go on without their leases from now on."""
        for held in leases:
            if held.kept is not None and any(body.runs_elsewhere for body in held.bodies):
                self.keeper.lose(held.kept, _closed_under(held))

    def take_from_sharers(self, leases: Iterable[AnyHeldLease]) -> None:
        """Let all blocks that share a lease know that one of them, or whoever else, gives it back."""
        for held in leases:
            if held.kept is not None and len(held.bodies) > 1:
                self.keeper.lose(held.kept, _released_under(held))

    def releases(self, leases: list[AnyHeldLease]) -> Iterator[Release]:
        """Forget leases, and yield the commands that release them."""
        lease_ids: dict[str, list[str]] = defaultdict(list)
        for held in leases:
            self.forget(held)
            lease_ids[held.holder].append(held.lease_id)
        for holder, ids in lease_ids.items():
            for start in range(0, len(ids), BATCH_LEASES):
                yield Release(
                    tenant=self._session.tenant,
                    lease_ids=tuple(ids[start : start + BATCH_LEASES]),
                    holder=holder,
                    request_id=self._session.ids.name(),
                )

    def after_fork_in_child(self) -> None:
        """Hold none of the parent's leases."""
        self.keeper.restart()
        self._announcer.restart()
        self.held = {}
        self.users.restart()
        caller = self._session.caller()
        self.under_way = {step: None for step in self.under_way if step.caller is caller}


def _released_under(held: AnyHeldLease) -> LeaseLost:
    return LeaseLost(
        f"lease {held.lease_id} on {held.resource} was given back while several blocks used it; leave that "
        "to the blocks",
        lease_id=held.lease_id,
        resource=held.resource,
        token=held.token,
    )


def _closed_under(held: AnyHeldLease) -> LeaseLost:
    return LeaseLost(
        f"lease {held.lease_id} on {held.resource} was given back under its block, because the client was "
        "closed elsewhere; close a client when its blocks have ended",
        lease_id=held.lease_id,
        resource=held.resource,
        token=held.token,
    )
