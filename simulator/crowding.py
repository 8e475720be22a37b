"""What holders do where it is crowded: they wait, and most of what can go wrong with that does.

A waiter asks again when it is rung for, when it was told to, or earlier, or too late, or never; it loses
patience, cancels, and dies like any other client. It claims several resources and paths, asks for
lock-delays, upgrades, shares again and hands over.
"""

from collections.abc import Callable

from msgspec.structs import replace

from leasehold.engine.batch import Outcome
from leasehold.kernel.lease.answers import Granted, Waiting
from leasehold.kernel.lease.commands import Acquire, ChangeMode, Transfer, Wanted
from leasehold.kernel.lease.model import Lease, Mode, ReleaseReason
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from simulator.client import SimulatedClient

_WANTED = (
    ("door",),
    ("gate",),
    ("/d",),
    ("/d/x",),
    ("/d/x/1",),
    ("door", "gate"),
    ("gate", "door"),
    ("gate", "/d"),
    ("/d/x", "/d/y"),
    ("/d/y", "door"),
    ("/d/*",),
    ("/d/{x,y}/1",),
    ("/d/**/1*",),
    ("/d/[!x]", "/d/x?"),
)


class _Wait:
    """One thing that a client waits for: a claim, or an upgrade."""

    def __init__(
        self,
        client: SimulatedClient,
        command: Acquire | ChangeMode,
        take: Callable[[Outcome, int], None],
        cancel: Callable[[], None],
    ) -> None:
        self._client = client
        self._stage = client.stage
        self.command = command
        self._take = take
        self._cancel = cancel
        self._idle = False
        """An answer has come, and it was to wait."""
        self._plan = 0
        ttl_ns = client.stage.plan.ttl_ns
        patience = client.stage.random.choice((0.2, 1, 4, 16))
        self._deadline_ns = client.stage.now_ns + int(ttl_ns * patience)

    def ask(self) -> None:
        """Ask, or ask again with the very same request."""
        self._idle = False
        self._plan += 1
        self._client.ask(self.command, self._hear)

    def ring(self) -> None:
        """Look, or ask at once, unless an answer is on its way, or the wait is over."""
        if self._idle:
            self._stage.tally.note("waiter rung for")
            if not self._looks():
                self.ask()

    def _ring_for_nothing(self) -> None:
        """Have the waiter look although nothing may have happened: a bell is a hint and no more."""
        self._stage.tally.note("bell rang for nothing")
        self.ring()

    def _looks(self) -> bool:
        """Take what was won by looking, as threads do where the store is; say whether that worked."""
        client, stage = self._client, self._stage
        if not client.local or not isinstance(self.command, Acquire) or stage.random.random() < 0.3:
            return False
        sent_ns = client.clock.tick_ns()
        granted = client.post.engines[0].look(self.command.lease_ids)
        if granted is None:
            return False
        stage.tally.note("lease won by looking")
        self._leave()
        late_ns = stage.up_to(stage.plan.ttl_ns) if stage.strikes("look taken in late") else 0
        client.later(late_ns, lambda: self._take(granted, sent_ns))
        return True

    def _hear(self, outcome: Outcome, sent_ns: int) -> None:
        if not isinstance(outcome, Waiting):
            self._leave()
            self._take(outcome, sent_ns)
            return
        self._idle = True
        self._client.post.bells[self.command.wake] = self._client.heard(self.ring)
        self._wait_on(outcome)

    def _wait_on(self, waiting: Waiting) -> None:
        """Ask again in time, or do what waiters should not."""
        stage, random = self._stage, self._stage.random
        if isinstance(self.command, Acquire):
            # A retry may have proposed another id than the one that now waits.
            self.command = replace(self.command, lease_id=waiting.lease_id)
        if stage.calm or stage.now_ns >= self._deadline_ns:
            stage.tally.note("wait timed out")
            self._give_up()
        elif stage.strikes("waiter stopped asking"):
            self._leave()
        elif stage.strikes("wait cancelled"):
            self._plan_to(stage.up_to(waiting.ask_again_ns), self._give_up)
        else:
            if random.random() < 0.05:
                self._client.renew((waiting.lease_id,), None)
            if random.random() < 0.2:
                self._plan_to(stage.up_to(waiting.ask_again_ns), self._ring_for_nothing)
            else:
                self._plan_to(waiting.ask_again_ns, self.ask)

    def _plan_to(self, delay_ns: int, action: Callable[[], None]) -> None:
        self._plan += 1
        planned = self._plan
        self._client.later(delay_ns, lambda: action() if self._plan == planned else None)

    def _give_up(self) -> None:
        self._leave()
        self._cancel()

    def _leave(self) -> None:
        self._idle = False
        self._plan += 1
        self._client.post.bells.pop(self.command.wake, None)


class Crowding:
    """What one client does where it is crowded."""

    def __init__(self, client: SimulatedClient, peers: list[SimulatedClient]) -> None:
        self._client = client
        self._stage = client.stage
        self._peers = peers
        self._changing: set[str] = set()
        """Leases whose change was asked for, and nobody knows yet what became of that."""

    def does_something(self) -> bool:
        """Do something that only happens where it is crowded; say whether anything was done."""
        random = self._stage.random
        if random.random() < 0.3:
            return False
        held = [belief.lease for belief in self._client.held.values()]
        if not held or random.random() < 0.6:
            self._claim(random.choice(_WANTED))
            return True
        lease = random.choice(held)
        if lease.lease_id in self._changing:
            return False
        if random.random() < 0.3:
            self._hand_over(lease)
        elif lease.mode is Mode.SHARED:
            self._upgrade(lease)
        else:
            self._share(lease.lease_id)
        return True

    def _claim(self, wanted: tuple[str, ...]) -> None:
        client, stage = self._client, self._stage
        random, ttl_ns = stage.random, stage.plan.ttl_ns
        lease_id = stage.new_name("lease")
        command = Acquire(
            tenant=client.tenant,
            request_id=lease_id if random.random() < 0.5 else stage.new_name("wait"),
            lease_id=lease_id,
            resource=wanted[0],
            also=tuple(Wanted(resource=name, mode=self._mode()) for name in wanted[1:]),
            holder=client.holder,
            ttl_ns=random.choice((ttl_ns // 2, ttl_ns, 3 * ttl_ns)),
            mode=self._mode(),
            wait=random.random() < 0.9,
            gives_up=random.random() < 0.5,
            priority=random.choice((5, 5, 5, 1, 10)),
            lock_delay_ns=random.choice((0, 0, 0, ttl_ns // 2, ttl_ns)),
            bound_to_boot=client.local,
            wake=stage.new_name("bell"),
        )
        wait = _Wait(
            client,
            command,
            lambda outcome, sent_ns: self._take(wait, outcome, sent_ns),
            lambda: self._cancel(wait),
        )
        wait.ask()

    def _mode(self) -> Mode:
        return Mode.SHARED if self._stage.random.random() < 0.4 else Mode.EXCLUSIVE

    def _take(self, wait: _Wait, outcome: Outcome, sent_ns: int) -> None:
        client, random = self._client, self._stage.random
        command = wait.command
        assert isinstance(command, Acquire)
        if isinstance(outcome, Granted):
            if not outcome.ended:
                for lease in (outcome.lease, *outcome.also):
                    client.take(
                        replace(outcome, lease=lease, also=()), sent_ns, renewing=random.random() < 0.6
                    )
        elif isinstance(outcome, Refusal):
            if outcome.code is RefusalCode.LEASE_TERMINAL and not self._stage.calm:
                # It was silent for too long, and queues anew.
                self._claim((command.resource, *(one.resource for one in command.also)))
        elif random.random() < 0.5:
            self._cancel(wait)

    def _cancel(self, wait: _Wait) -> None:
        command = wait.command
        assert isinstance(command, Acquire)
        self._client.release(command.lease_ids, ReleaseReason.ABORTED)

    def _upgrade(self, lease: Lease) -> None:
        stage = self._stage
        command = self._change(lease.lease_id, Mode.EXCLUSIVE)
        command = replace(command, wait=stage.random.random() < 0.8, wake=stage.new_name("bell"))
        wait = _Wait(
            self._client,
            command,
            lambda outcome, sent_ns: self._changed(command, outcome),
            lambda: self._share(lease.lease_id),
        )
        wait.ask()

    def _share(self, lease_id: str) -> None:
        """Share a lease, or give up the wish to have it alone. It is not used alone any more before that."""
        belief = self._client.held.get(lease_id)
        if belief is not None:
            belief.lease = replace(belief.lease, mode=Mode.SHARED)
        command = self._change(lease_id, Mode.SHARED)
        self._client.ask(command, lambda outcome, sent_ns: self._changed(command, outcome))

    def _change(self, lease_id: str, mode: Mode) -> ChangeMode:
        self._changing.add(lease_id)
        return ChangeMode(
            tenant=self._client.tenant,
            lease_id=lease_id,
            holder=self._client.holder,
            mode=mode,
            request_id=self._stage.new_name("change"),
        )

    def _changed(self, command: ChangeMode, outcome: Outcome) -> None:
        if isinstance(outcome, Exception):
            return  # It may yet be done, at any time.
        self._changing.discard(command.lease_id)
        belief = self._client.held.get(command.lease_id)
        if belief is None or not isinstance(outcome, Granted) or outcome.ended:
            return
        if outcome.lease.mode is command.mode:
            self._client.change(belief, outcome.lease)

    def _hand_over(self, lease: Lease) -> None:
        """Give a lease to somebody else, who hears of it by other ways, late or never."""
        client, stage = self._client, self._stage
        client.forget(lease.lease_id)
        peers = [peer for peer in self._peers if peer.tenant == client.tenant]
        peer = stage.random.choice([None, *peers])
        command = Transfer(
            tenant=client.tenant,
            lease_id=lease.lease_id,
            holder=client.holder,
            to="stranger" if peer is None else peer.holder,
            new_lease_id=stage.new_name("lease"),
            request_id=stage.new_name("transfer"),
        )

        def tell(outcome: Outcome, sent_ns: int) -> None:
            del sent_ns
            if isinstance(outcome, Granted) and not outcome.ended and peer is not None:
                delay_ns = stage.up_to(stage.plan.ttl_ns // 4)
                peer.later(delay_ns, lambda: peer.take_over(outcome.lease.lease_id))

        client.ask(command, tell)
