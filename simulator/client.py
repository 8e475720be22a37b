"""A holder process: it asks, waits, asks again, keeps what it got, and acts on it while it trusts it.

It uses the real trust window and the real keeper, stepped by hand. Around them it does what a client
does: it notes its clock before it sends, repeats a request under the same id while the outcome is unknown,
stops trusting a lease before it gives it back, and takes no answer to a request that it has given up.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

from leasehold.engine.batch import Outcome
from leasehold.engine.keeper import Keeper
from leasehold.engine.kept import Kept, window_closed
from leasehold.engine.registrar import Registrar
from leasehold.engine.trust import Trust
from leasehold.errors import LeaseholdError, LeaseLost, error_of
from leasehold.kernel.lease.answers import Granted, Renewal, Renewed
from leasehold.kernel.lease.commands import Release, Renew
from leasehold.kernel.lease.model import Lease, ReleaseReason
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.refusals import Refusal
from simulator.asking import Asker
from simulator.clocks import HolderClock
from simulator.post import Pending, Post
from simulator.stage import Action, Stage

if TYPE_CHECKING:
    from simulator.beliefs import Belief, Beliefs
    from simulator.witness import Witness


class _Names:
    """Ids for the keeper's requests."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def name(self) -> str:
        return self._stage.new_name("renewal")


class _Road:
    """What the keeper takes for its registrar: the way to it, with retries."""

    def __init__(self, client: "SimulatedClient") -> None:
        self._client = client
        self.ids = _Names(client.stage)

    def submit(self, command: Command, deliver: Callable[[Outcome], None]) -> None:
        def take(outcome: Outcome, sent_ns: int) -> None:
            del sent_ns  # The keeper has noted its own, before the first attempt.
            deliver(outcome)
            self._client.check_losses(outcome)

        self._client.ask(command, take)


class _WatchedKeeper(Keeper):
    """The real keeper; whenever it extends a trust window, somebody looks."""

    def __init__(self, client: "SimulatedClient", trust: Trust) -> None:
        seed = client.stage.random.randrange(1 << 32)
        super().__init__(cast(Registrar, _Road(client)), client.clock, trust, seed=seed, threaded=False)
        self._client = client

    def renewed(self, renewals: Iterable[tuple[Kept, Renewal]], sent_ns: int) -> None:
        taken = list(renewals)
        super().renewed(taken, sent_ns)
        for _, renewal in taken:
            self._client.check_belief(renewal.lease.lease_id)

    def next_step_ns(self) -> int | None:
        """Return when, on the holder's clock, there may be something to do."""
        return self._plans[0][0] if self._plans else None


class SimulatedClient(Asker):
    """One process that holds leases under one name."""

    def __init__(
        self,
        stage: Stage,
        post: Post,
        witness: "Witness",
        beliefs: "Beliefs",
        *,
        tenant: str,
        holder: str,
        local: bool,
    ) -> None:
        drift_ppm = stage.plan.drift_ppm
        drift = stage.random.choice((-drift_ppm, drift_ppm, stage.random.randint(-drift_ppm, drift_ppm)))
        super().__init__(stage, post, HolderClock(stage, drift))
        self.witness = witness
        self.beliefs = beliefs
        self.tenant = tenant
        self.holder = holder
        self.local = local
        """It runs on the store's machine, and does not survive its reboot."""
        self.trust = Trust(drift_ppm=drift_ppm)
        self.held: dict[str, Belief] = {}
        self._keeper = _WatchedKeeper(self, self.trust)
        self._steps_at_ns: int | None = None

    def holds(self, lease_id: str) -> bool:
        """Say whether this process takes a lease for its own."""
        return lease_id in self.held

    def check_belief(self, lease_id: str) -> None:
        """Have a belief that has grown looked at."""
        if lease_id in self.held:
            self.beliefs.check(self.held[lease_id])

    def check_losses(self, outcome: Outcome) -> None:
        """See that a lease is given up at once when the registrar says that it is lost."""
        refusals = outcome.outcomes if isinstance(outcome, Renewed) else ()
        for one in refusals:
            if isinstance(one, Refusal) and one.code.means_loss and self.holds(one.lease_id or ""):
                self.stage.violate("{} held on to {} after {}", self.holder, one.lease_id, one.code)

    def _answer(self, pending: Pending, outcome: Outcome, sent_ns: int) -> None:
        super()._answer(pending, outcome, sent_ns)
        self._plan_step()

    def take(self, granted: Granted, sent_ns: int, *, renewing: bool) -> None:
        """Hold a granted lease, as long as it can be trusted, and keep it if `renewing`."""
        lease = granted.lease
        deadline_ns = self.trust.deadline_ns(sent_ns, granted.expires_in_ns)
        kept = Kept(
            lease,
            deadline_ns,
            self.clock,
            on_lost=lambda error: self._lose(lease.lease_id, error),
            renewing=renewing,
        )
        belief = self.beliefs.begin(self, kept)
        self.held[lease.lease_id] = belief
        self.beliefs.check(belief)
        self._keeper.keep(kept)
        self._plan_step()

    def _lose(self, lease_id: str, error: LeaseholdError) -> None:
        belief = self.held.pop(lease_id)
        if not isinstance(error, LeaseLost):
            self.stage.violate("{} lost {} for a reason that is none: {!r}", self.holder, lease_id, error)
        elif str(error) != str(window_closed(belief.kept)):
            self.stage.tally.note("lease lost: refused")
        elif self.clock.tick_ns() >= belief.kept.deadline_ns:
            self.stage.tally.note("lease lost: window closed")
        else:
            self.stage.violate("{} lost {} before its window closed", self.holder, lease_id)

    def forget(self, lease_id: str) -> None:
        """Stop trusting a lease, before anybody else is told."""
        belief = self.held.pop(lease_id, None)
        if belief is not None:
            self._keeper.drop(belief.kept)

    def ensure(self, belief: "Belief") -> bool:
        """Say whether the lease may be acted on now; one that may not is lost."""
        if belief.is_trusted:
            return True
        self._keeper.lose(belief.kept, window_closed(belief.kept))
        return False

    def renew(self, lease_ids: tuple[str, ...], ttl_ns: int | None) -> None:
        """Renew own leases by hand, beside the keeper."""
        command = Renew(
            tenant=self.tenant,
            lease_ids=lease_ids,
            holder=self.holder,
            ttl_ns=ttl_ns,
            request_id=self.stage.new_name("renew"),
        )
        self.ask(command, self._take_renewals)

    def _take_renewals(self, outcome: Outcome, sent_ns: int) -> None:
        if not isinstance(outcome, Renewed):
            return
        for one in outcome.outcomes:
            belief = self.held.get(one.lease.lease_id if isinstance(one, Renewal) else one.lease_id or "")
            if belief is None:
                continue
            if isinstance(one, Renewal):
                self._keeper.renewed([(belief.kept, one)], sent_ns)
            elif one.code.means_loss:
                self._keeper.lose(belief.kept, error_of(one))

    def release(self, lease_ids: tuple[str, ...], reason: ReleaseReason) -> None:
        """Give leases back that go under this holder's name."""
        for lease_id in lease_ids:
            self.forget(lease_id)
        command = Release(
            tenant=self.tenant,
            lease_ids=lease_ids,
            holder=self.holder,
            reason=reason,
            request_id=self.stage.new_name("release"),
        )
        self.ask(command, lambda outcome, sent_ns: None)

    def take_over(self, lease_id: str) -> None:
        """Begin to hold a lease that another has got for this holder: renew it, to know how long it lasts."""

        def take(outcome: Outcome, sent_ns: int) -> None:
            one = outcome.outcomes[0] if isinstance(outcome, Renewed) else None
            if isinstance(one, Renewal) and not self.holds(lease_id) and one.lease.holder == self.holder:
                self.take(Granted(lease=one.lease, expires_in_ns=one.expires_in_ns), sent_ns, renewing=True)

        if not self.stage.calm:
            self.ask(self.renewal(lease_id, self.holder), take)

    def change(self, belief: "Belief", lease: Lease) -> None:
        """Take in that a held lease has another mode, and perhaps another token, than before."""
        self._keeper.changed(belief.kept, lease)
        belief.lease = lease
        self.beliefs.check(belief)

    def renewal(self, lease_id: str, holder: str) -> Renew:
        """Return a request for more time, under whatever name."""
        request_id = self.stage.new_name("renew")
        return Renew(tenant=self.tenant, lease_ids=(lease_id,), holder=holder, request_id=request_id)

    def heard(self, action: Action) -> Action:
        """Return what a bell does that is hung up now: nothing in another life, in a pause nothing yet."""
        life = self.life
        return lambda: self._run(life, action)

    def _plan_step(self) -> None:
        """Have the keeper look when it has to. What it plans meanwhile is seen to again afterwards."""
        next_ns = self._keeper.next_step_ns()
        if next_ns is None or (self._steps_at_ns is not None and self._steps_at_ns <= next_ns):
            return
        self._steps_at_ns = next_ns
        self.later(self.clock.delay_until(next_ns), lambda: self._step(next_ns))

    def _step(self, planned_ns: int) -> None:
        if self._steps_at_ns == planned_ns:
            self._steps_at_ns = None
            self._keeper.step()
            self._plan_step()

    def die(self) -> None:
        """Forget everything, without a word to anybody."""
        super().die()
        self.held = {}
        self._keeper = _WatchedKeeper(self, self.trust)
        self._steps_at_ns = None
