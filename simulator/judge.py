"""Whether each answer was the right one.

Every answer that an engine gives is held against the truth at the moment it was decided: what is granted or
renewed is in the ledger and lasts at least as long as promised; what is refused is refused for a reason
that was there; a lease that is over in truth stands in nobody's way; and a request that was granted once
is answered with that grant ever after.
"""

from collections import Counter
from collections.abc import Sequence

from leasehold.engine.batch import Outcome
from leasehold.errors import StoreError
from leasehold.kernel.lease.answers import Answer, Ended, Granted, Released, Renewal, Renewed, Spent, Waiting
from leasehold.kernel.lease.commands import Acquire, ChangeMode, Derive, Release, Renew
from leasehold.kernel.lease.events import LeaseIssued
from leasehold.kernel.ledger.commands import Command, Sweep, Swept
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Tick
from simulator.line_judge import LineJudge
from simulator.refusing import is_justified
from simulator.stage import Stage
from simulator.store import SimulatedStore
from simulator.troupe import Moment
from simulator.true_lease import TrueLease, request_id_of
from simulator.wait_judge import WaitJudge
from simulator.witness import Witness


class Judge:
    """Checks the outcomes of batches."""

    def __init__(self, stage: Stage, witness: Witness) -> None:
        self._stage = stage
        self._witness = witness
        self._lines = LineJudge(stage, witness)
        self._waits = WaitJudge(stage, witness)
        self._first_tick = self._last_tick = self._position = 0

    def check(
        self,
        store: SimulatedStore,
        commands: Sequence[Command],
        outcomes: Sequence[Outcome],
        rung: set[str] | None = None,
    ) -> None:
        """Check what a batch was answered with, right after it ran, and who was rung for because of it."""
        ticks = [look.tick for look in store.looks if look.tick is not None]
        if ticks:
            self._first_tick, self._last_tick = ticks[0], ticks[-1]
            self._position = store.looks[0].position
        alone = len(commands) == len(ticks) == len(store.looks) == 1
        moment = Moment(
            first_tick=self._first_tick, last_tick=self._last_tick, position=self._position, alone=alone
        )
        alone = alone and not self._is_among_others(store)
        self._lines.look(self._position, self._last_tick, alone=alone)
        now = (self._first_tick, self._last_tick)
        self._waits.look(self._position, now, alone=alone, untouched=not store.committed)
        copies = Counter(command.request_id for command in commands)
        for command, outcome in zip(commands, outcomes, strict=True):
            self._stage.say("  {} -> {}", command, outcome)
            if isinstance(outcome, StoreError):
                self._check_failure(store, command, outcome, alone=copies[command.request_id] == 1)
            elif isinstance(outcome, Exception):
                self._stage.violate("{} met a defect: {!r}", command, outcome)
            elif self._witness.company.is_foreign(command):
                self._witness.company.told(command, outcome, moment)
            else:
                self._check_answer(command, outcome)
                self._witness.crowd.note(command, outcome)
        if rung is not None and not any(isinstance(outcome, StoreError) for outcome in outcomes):
            self._waits.check_rings(store.committed, rung)

    def _is_among_others(self, store: SimulatedStore) -> bool:
        """Say whether something of another family was committed, too: it may have ended leases afterwards."""
        events = (entry.event for batch in store.committed for entry in batch.entries)
        return any(not event.is_own and not self._witness.company.is_of_leases(event) for event in events)

    def check_look(self, lease_ids: tuple[str, ...], granted: Granted, tick: int) -> None:
        """Check what a waiter has taken by looking, at a tick: it has won that, whole, and for so long."""
        leases = (granted.lease, *granted.also)
        names = tuple(lease.lease_id for lease in leases)
        self._require(names == lease_ids, "{} looked, and was given {}", lease_ids, names)
        for lease in leases:
            true = self._lease(lease.lease_id)
            self._require(not true.pending, "{} was taken, and is still waited for", lease.lease_id)
            over = true.ended_position is not None or true.token != lease.token
            self._require(not over, "{} was taken, and is over", lease.lease_id)
            left_ns = true.end_tick - tick
            self._require(granted.expires_in_ns <= left_ns, "{} was promised too much", lease.lease_id)

    def _check_failure(
        self, store: SimulatedStore, command: Command, error: StoreError, *, alone: bool
    ) -> None:
        """An error that does not say otherwise has changed nothing."""
        note = self._stage.tally.note
        note("store failed, outcome unknown" if error.outcome_unknown else "store failed, outcome known")
        if error.outcome_unknown or not alone:
            return
        for event in (entry.event for batch in store.committed for entry in batch.entries):
            won = isinstance(event, LeaseIssued) and event.claim_window_ns  # By what others did.
            if request_id_of(event) == command.request_id and not won:
                self._stage.violate("{} failed, and was committed", command)

    def _check_answer(self, command: Command, outcome: Answer | Refusal) -> None:
        match outcome:
            case Refusal():
                self._check_refusal(command, outcome)
            case Granted():
                self._check_granted(command, outcome)
            case Waiting():
                self._waits.check_waiting(command, outcome)
            case Renewed():
                for lease_id, one in zip(_lease_ids(command), outcome.outcomes, strict=True):
                    self._check_renewed(command, lease_id, one)
            case Released():
                for ended in outcome.outcomes:
                    self._check_ended(command, ended)
            case Ended():
                self._check_ended(command, outcome)
            case Swept():
                self._check_swept(command, outcome)
            case Spent():
                self._lines.check_spent(command, outcome)

    def _check_swept(self, command: Command, swept: Swept) -> None:
        """What was swept has ended, if anything has ended it, and is recorded as that."""
        assert isinstance(command, Sweep)
        if swept.ended:
            self._require(self._ended_here(command.key), "{} was swept and stands", command.key)
            self._stage.tally.note("swept")
            return
        lease = self._witness.truth.leases.get(command.key)
        unended = (
            lease is not None and lease.ended_position is None and lease.issued_position <= self._position
        )
        over = lease is not None and lease.end_tick <= self._first_tick
        self._require(not unended or not over, "{} was swept, is over, and was left", command.key)

    def _require(self, condition: bool, template: str, *facts: object) -> None:
        if not condition:
            self._stage.violate(template, *facts)

    def _lease(self, lease_id: str) -> TrueLease:
        lease = self._witness.truth.leases.get(lease_id)
        if lease is None:
            self._stage.violate("{} was answered with, and is not in the ledger", lease_id)
        assert lease is not None
        return lease

    def _stood(self, lease: TrueLease) -> bool:
        """Say whether a lease, and every lease above it, may have stood at the moment of decision."""
        return all(
            (one.ended_position is None or one.ended_position > self._position)
            and one.end_tick > self._first_tick
            for one in self._witness.truth.accounts.line_of(lease)
        )

    def _ended_here(self, lease_id: str) -> bool:
        lease = self._witness.truth.leases.get(lease_id)
        return lease is not None and (lease.ended_position or 0) > self._position

    def _check_granted(self, command: Command, granted: Granted) -> None:
        lease = self._lease(granted.lease.lease_id)
        same = lease.token == granted.lease.token or lease.changed_position > self._position
        self._require(
            same and lease.holder == granted.lease.holder,
            "{} is not the lease that was granted",
            granted.lease,
        )
        self._waits.check_granted(command, granted)
        self._check_promise(lease, granted.expires_in_ns)
        if isinstance(command, ChangeMode):
            return
        self._require(
            lease.request_id == command.request_id, "{} was answered with {}", command, lease.lease_id
        )
        if isinstance(command, Acquire):
            same = lease.claimed_mode is command.mode
            self._require(same, "{} passed for the claim of {}", command, lease.lease_id)
        if not granted.repeated:
            claim = [self._lease(one.lease_id) for one in (granted.lease, *granted.also)]
            new = any(one.granted_position > self._position for one in claim)
            self._require(new or granted.ended, "{} was granted before", lease.lease_id)
            return
        self._stage.tally.note("grant repeated after its end" if granted.ended else "grant repeated")
        self._require(granted.ended == (granted.expires_in_ns == 0), "{} contradicts itself", granted)
        if not granted.ended:
            self._require(self._stood(lease), "{} is over, and was granted again", lease.lease_id)

    def _check_promise(self, lease: TrueLease, expires_in_ns: int) -> None:
        """Nobody is promised more time than the ledger gives."""
        left_ns = max(0, lease.end_tick - self._first_tick)
        if expires_in_ns > left_ns:
            self._stage.violate("{} was promised {} of {} ns", lease.lease_id, expires_in_ns, left_ns)

    def _check_renewed(self, command: Command, lease_id: str, one: Renewal | Refusal) -> None:
        if isinstance(one, Refusal):
            self._check_refusal(command, one)
            return
        lease = self._lease(lease_id)
        self._require(isinstance(command, Renew) and command.holder == lease.holder, "{} renewed", command)
        self._require(self._stood(lease), "{} was renewed after its end", lease_id)
        self._check_promise(lease, one.expires_in_ns)
        if self._witness.truth.renewals.get(command.request_id, 0) <= self._position:
            self._stage.tally.note("renewal repeated")

    def _check_ended(self, command: Command, one: Ended | Refusal) -> None:
        if isinstance(one, Refusal):
            self._check_refusal(command, one)
            return
        lease = self._lease(one.lease.lease_id)
        self._require(lease.ended_position is not None, "{} is over, and stands", lease.lease_id)
        by_this_request = lease.end_request_id == command.request_id
        self._require(one.already != by_this_request, "{} was told that it ended {}", command, one.lease)
        if one.already:
            self._stage.tally.note("released already")
        elif not self._ended_here(lease.lease_id):
            self._stage.tally.note("end repeated")

    def _check_refusal(self, command: Command, refusal: Refusal) -> None:
        self._stage.tally.note(f"refused {refusal.code}")
        truth = self._witness.truth
        lease = truth.leases.get(refusal.lease_id or "")
        self._lines.check_refusal(command, refusal)
        if isinstance(command, Acquire | Derive):
            self._check_not_granted_before(command, refusal)
        justified = self._waits.is_justified(command, refusal, lease)
        if justified is None:
            justified = self._lines.is_justified(command, refusal, lease)
        if justified is None:
            justified = is_justified(command, refusal, lease)
        if not justified:
            self._stage.violate("{} was refused without reason: {}", command, refusal)
        match refusal.code:
            case RefusalCode.LEASE_NOT_FOUND if lease is not None and lease.key[0] == command.tenant:
                there = lease.issued_position <= self._position
                there = there and truth.let_go.get(lease.lease_id) != lease.token
                self._require(not there, "{} was not found, and is there", refusal.lease_id)
            case RefusalCode.HELD | RefusalCode.ALREADY_HELD | RefusalCode.ALREADY_WAITING:
                self._require(
                    lease is None or self._stood(lease),
                    "{} is over, and blocked {}",
                    refusal.lease_id,
                    command.request_id,
                )
            case RefusalCode.LEASE_EXPIRED:
                assert lease is not None
                self._require(lease.end_tick <= self._last_tick, "{} has not expired", refusal.lease_id)
            case RefusalCode.LEASE_TERMINAL:
                assert lease is not None
                line = truth.accounts.line_of(lease)
                over = any(one.ended_position is not None or one.rebooted for one in line)
                over = over or (lease.pending and lease.end_tick <= self._last_tick)
                self._require(over, "{} is not over", refusal.lease_id)
            case _:
                pass

    def _check_not_granted_before(self, command: Acquire | Derive, refusal: Refusal) -> None:
        truth = self._witness.truth
        for waiter in truth.waiting.values():
            waits = waiter.request_id == command.request_id and waiter.issued_position <= self._position
            over = refusal.code is RefusalCode.LEASE_TERMINAL and waiter.end_tick <= self._last_tick
            over = over or refusal.code is RefusalCode.DEADLOCK
            self._require(over or not waits, "{} waits, and was refused: {}", command, refusal)
        grant = truth.grants.get(command.request_id)
        if grant is None or grant.issued_position > self._position:
            return
        if not grant.group and grant.claimed_mode is not command.mode:
            return  # It is another request, under an id that is taken.
        now = Tick(value=self._last_tick, era=truth.ticks[-1].era)
        remembered = truth.is_remembered(command.request_id, now)
        self._require(not remembered, "{} was granted {} before", command.request_id, grant.lease_id)


def _lease_ids(command: Command) -> tuple[str, ...]:
    return command.lease_ids if isinstance(command, Renew | Release) else ()
