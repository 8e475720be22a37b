"""Who sees every commit, and says whether it was right.

At every commit: the ledger replays to the tables, no invariant is broken (both for every family of records),
tokens rise above every token that was ever committed anywhere (also in history that was lost since), nobody
but a holder ends a holder's lease, and time did to each lease what it has to. When history is lost, the
witness remembers whose leases were forgotten; everything else that anybody was ever told has to be in the
ledger to the end.
"""

from itertools import takewhile

from leasehold.engine.port import Batch
from leasehold.kernel.lease.commands import Release
from leasehold.kernel.lease.events import (
    REBOOT,
    LeaseIssued,
    LeaseModeChanged,
    LeaseReleased,
    LeaseRevoked,
    LeaseSpent,
)
from leasehold.kernel.lease.model import Lease, Mode, ReleaseReason
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.events import (
    REGISTRAR,
    EpochRaised,
    Event,
    IllegalTransition,
    StoreCheckpointed,
    StoreOpened,
    Token,
)
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.state import Folding
from simulator.accounts import was_asked_for
from simulator.archive import Archive
from simulator.archive_judge import ArchiveJudge
from simulator.company import Company
from simulator.counting import note_commit
from simulator.crowd_judge import CrowdJudge
from simulator.disk import Disk
from simulator.stage import Stage
from simulator.table_judge import TableJudge
from simulator.troupe import Commit
from simulator.true_lease import request_id_of
from simulator.truth import Truth

REVOKED, ADOPTED, FALLEN, FORGOTTEN = "revoked", "adopted", "parent ended", "forgotten"
"""Why a holder may go on trusting a lease that is another's by now: nobody could have told it."""


class Witness:
    """Checks what is committed, and knows the truth about it."""

    def __init__(self, stage: Stage, disk: Disk, families: Families) -> None:
        self._stage = stage
        self._disk = disk
        self._families = families
        self.company = Company(stage, families)
        self.truth = Truth()
        self.excuses: dict[Token, tuple[str, int | None]] = {}
        """Grants that ended behind their holders' backs: why, and until when (None: for ever).

        By token, because a grant that was forgotten can come again under the same lease id.
        """
        self.taken_back: set[str] = set()
        """Leases that somebody under their holder's name gave back, whoever trusts them."""
        self.senders: dict[str, Command] = {}
        """Every request that was ever sent."""
        self.quotas = stage.plan.quotas
        """What the engines were told to allow."""
        self.crowd = CrowdJudge()
        self._folding = Folding(families)
        self._tables = TableJudge(stage, disk, families)
        self._highest_token = 0
        self.highest_epoch = 0
        self._acknowledged: dict[int, bytes] = {}
        self.archive = Archive()
        self._archive_judge = ArchiveJudge(stage, self.archive)

    def saw(self, batch: Batch, tick: int | None) -> None:
        """Check a batch that was just committed, and had been decided when the clock read `tick`."""
        self.archive.keep(batch, self._stage.now_ns)
        self._tables.begin(self._folding.state)
        for entry in batch.entries:
            event = entry.event
            self._stage.say("  #{} {}", entry.position, event)
            if event.tick.value != tick:
                self._stage.violate("{} was not decided at the time of its transaction", event)
            self._tables.touch(event)
            self._replay(event)
            if self.company.is_of_leases(event) or event.is_own:
                self._check(event, entry.position)
            else:
                self.truth.apply(event, entry.position)  # For its time, and nothing else.
        self._archive_judge.check(batch, self.truth)
        if batch.pruned is not None:
            self.crowd.forget(batch.pruned.forgotten.get(LEASE, ()))
        problem = self.crowd.problem_after(batch, self.truth)
        if problem is not None:
            self._stage.violate("{}", problem)
        self._tables.check(batch, self.truth)
        self._check_quotas(batch)
        note_commit(self._stage.tally.note, batch, self.truth, self.company.is_of_leases)
        let_go = {} if batch.pruned is None else batch.pruned.forgotten
        self.company.saw(Commit(batch.entries, let_go))

    def _check(self, event: Event, position: int) -> None:
        """Check an event of leases, or of the registrar itself, and take it into the truth."""
        sender = self.senders.get(request_id_of(event))
        vouched = self._check_actor(event, sender)
        if isinstance(event, LeaseIssued) or (
            isinstance(event, LeaseModeChanged) and event.mode is Mode.EXCLUSIVE
        ):
            self._check_token(event)
        elif isinstance(event, EpochRaised | StoreOpened):
            self.highest_epoch = max(self.highest_epoch, event.epoch)
        problem = self.crowd.problem_before(event, self.truth, sender, vouched=vouched)
        problem = problem or self.truth.apply(event, position)
        if problem is not None:
            self._stage.violate("{}", problem)
        self._excuse(event, vouched=vouched)

    def _check_token(self, event: LeaseIssued | LeaseModeChanged) -> None:
        if event.token <= self._highest_token:
            self._stage.violate("token {} came after {}", event.token, self._highest_token)
        self._highest_token = event.token

    def _check_actor(self, event: Event, sender: Command | None) -> bool:
        """Only a holder gives its lease back, and only an operator who asked takes one away.

        Others may do so as a part of something else, if that is right: whether it is, is returned.
        """
        if self.company.is_foreign(sender):
            if not self.company.causes(event, sender):
                self._stage.violate("{} is not what {} asked for", event, sender)
            return True
        if isinstance(event, LeaseReleased) and event.reason is not ReleaseReason.TRANSFERRED:
            who = (sender.tenant, sender.holder) if isinstance(sender, Release) else None
            if who != (event.tenant, event.holder) and event.holder != REGISTRAR:
                if sender is None and self.company.causes(event, None):
                    return True
                self._stage.violate("{} was released by {}", event.lease_id, sender)
        elif isinstance(event, LeaseRevoked) and event.actor == REGISTRAR:
            lease = self.truth.standing.get(event.lease_id)
            line = [] if lease is None else list(self.truth.accounts.line_of(lease))
            if not any(one.rebooted or one.ended_position is not None for one in line):
                self._stage.violate("{} was revoked, and nobody asked for it", event.lease_id)
        elif isinstance(event, LeaseIssued | LeaseSpent) and not was_asked_for(event, sender):
            self._stage.violate("{} is not what {} asked for", event, sender)
        return False

    def _excuse(self, event: Event, *, vouched: bool) -> None:
        if isinstance(event, LeaseRevoked) and event.actor != REGISTRAR:
            self._excuse_for_ever(event.lease_id, REVOKED)
        elif isinstance(event, LeaseRevoked) and event.reason != REBOOT:
            self._excuse_for_ever(event.lease_id, FALLEN)
        elif isinstance(event, LeaseReleased) and (
            event.reason is ReleaseReason.TRANSFERRED or event.lease_id in self.taken_back or vouched
        ):
            self._excuse_for_ever(event.lease_id, ADOPTED)
        elif isinstance(event, LeaseModeChanged):
            # Whoever believes in a lease for too long goes on doing so when its mode changes.
            for token in self.truth.leases[event.lease_id].tokens:
                if token in self.excuses:
                    self.excuses.setdefault(event.token, self.excuses[token])

    def _excuse_for_ever(self, lease_id: str, reason: str) -> None:
        for token in self.truth.leases[lease_id].tokens:
            self.excuses[token] = (reason, None)

    def excuse_of(self, token: Token) -> str | None:
        """Return why a grant may be trusted though it is over, if there is a reason at this moment."""
        reason, until_ns = self.excuses.get(token, (None, None))
        return reason if until_ns is None or self._stage.now_ns < until_ns else None

    def is_forgotten(self, token: Token) -> bool:
        """Say whether the registrar has ever forgotten something about a grant."""
        return self.excuses.get(token, ("", None))[0] == FORGOTTEN

    def _replay(self, event: Event) -> None:
        try:
            self._folding.apply(event)
        except (IllegalTransition, LookupError) as error:
            self._stage.violate("the ledger does not replay: {}", error)

    def _check_quotas(self, batch: Batch) -> None:
        quotas = self.quotas
        if quotas.leases_per_holder is None or quotas.leases_per_tenant is None:
            return
        for change in batch.changes:
            lease = change.after
            if change.family != LEASE or change.before is not None or not isinstance(lease, Lease):
                continue
            if lease.is_terminal:
                continue
            held, all_held = self.truth.count(lease.tenant, lease.holder), self.truth.count(lease.tenant)
            own = lease.holder == REGISTRAR  # Each of its own keeps closed what a lease of somebody had.
            if (held > quotas.leases_per_holder and not own) or all_held > quotas.leases_per_tenant:
                self._stage.violate("{} leases of {}, and {} in all", held, lease.holder, all_held)

    def acknowledge(self) -> None:
        """Note that somebody was told what the ledger says now: it must not be lost in silence."""
        if self._disk.entries:
            last = self._disk.entries[-1]
            self._acknowledged[last.position] = last.hash

    def check_acknowledged(self) -> None:
        """See that everything anybody was ever told is in the ledger."""
        entries = self.archive.history()
        for position, entry_hash in self._acknowledged.items():
            if position > len(entries) or entries[position - 1].hash != entry_hash:
                self._stage.violate("entry {} was acknowledged, and is gone", position)

    def check_end(self) -> None:
        """Ask those who play other families whether everything has come out right."""
        self.company.check_end(self._folding.state)

    def history_was_lost(self, before: list[bytes]) -> None:
        """Start over from what is left of the history whose hashes were `before`."""
        self.archive.go_on_from(self._disk.entries[-1] if self._disk.entries else None)
        entries = self.archive.history()
        pairs = zip(before, entries, strict=False)
        kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1].hash, pairs))
        self._acknowledged = {
            position: entry_hash for position, entry_hash in self._acknowledged.items() if position <= kept
        }
        earlier = self.truth
        self.truth, self._folding, self.crowd = Truth(), Folding(self._families), CrowdJudge()
        for entry in entries:
            self._replay(entry.event)
            self.crowd.take_in(entry.event, self.truth)
            self.truth.apply(entry.event, entry.position)
            if isinstance(entry.event, StoreCheckpointed):
                self.truth.prune(entry.event.covers, self.archive.let_go_by(entry).get(LEASE, ()))
        self.company.start_over([Commit([entry], self.archive.let_go_by(entry)) for entry in entries])
        last_tick = earlier.ticks[-1].value
        same_era = bool(self.truth.ticks) and self.truth.ticks[-1].era == earlier.ticks[-1].era
        for lease_id, lease in earlier.leases.items():
            now = self.truth.leases.get(lease_id)
            same = now is not None and now.token == lease.token and now.end_tick >= lease.end_tick
            same = same and same_era  # Else the ends are told by different clocks.
            if not same or (now is not None and now.ended_position and not lease.ended_position):
                until_ns = self._stage.now_ns + max(0, lease.end_tick - last_tick)
                for token in lease.tokens:
                    self._forget(token, until_ns)

    def _forget(self, token: Token, until_ns: int) -> None:
        reason, earlier_ns = self.excuses.get(token, (FORGOTTEN, 0))
        if earlier_ns is not None:
            self.excuses[token] = (reason, max(until_ns, earlier_ns))
