"""Who trusts which lease at this very moment, in true time; and what the resources make of it.

The promise that everything else serves: no two holders trust conflicting leases at the same time. A holder
trusts a lease inside its trust window and as long as it has not heard of its end, however long it pauses,
however its clock drifts, whatever happens to its messages.

Four things are done over a holder's head, and nobody can tell it in time: an operator revokes its lease;
another incarnation under its name adopts it; a lease that it was derived from ends; the store forgets the
lease, because a backup or a copy was put in its place. Then two may trust at once, and what is left is the
promise of the tokens: the newer grant has the higher one, and a resource that has seen it refuses the older.
"""

from typing import TYPE_CHECKING

from leasehold.certificates.certificate import Certificate
from leasehold.engine.kept import Kept
from leasehold.kernel.lease.model import Lease, Mode
from leasehold.kernel.lease.records import ResourceKey
from leasehold.kernel.ledger.events import Token
from simulator.stage import Stage
from simulator.true_lease import touch
from simulator.witness import Witness

if TYPE_CHECKING:
    from simulator.client import SimulatedClient


class Belief:
    """One holder's trust in one lease."""

    __slots__ = ("client", "kept", "lease", "life")

    def __init__(self, client: "SimulatedClient", kept: Kept) -> None:
        self.client = client
        self.life = client.life
        self.kept = kept
        self.lease: Lease = kept.lease
        """As the holder uses it: who asks to share it stops before that to use it alone."""

    @property
    def is_over(self) -> bool:
        """Say whether the holder has given it up, for good."""
        return self.client.life != self.life or self.client.held.get(self.lease.lease_id) is not self

    @property
    def is_trusted(self) -> bool:
        """Say whether the holder would act on it at this moment."""
        return not self.is_over and self.kept.trusted_for_ns > 0


class Resource:
    """Something out there that checks tokens: it never takes a lower one after a higher one."""

    def __init__(self) -> None:
        self.highest = 0
        self._highest_exclusive = 0

    def act(self, lease: Lease | Certificate) -> Token | None:
        """Take an act, or return the higher token that stands against it.

        Sharers do not exclude each other, so their tokens count only against exclusive holders.
        """
        rival = self.highest if lease.mode is Mode.EXCLUSIVE else self._highest_exclusive
        if lease.token < rival:
            return rival
        self.highest = max(self.highest, lease.token)
        if lease.mode is Mode.EXCLUSIVE:
            self._highest_exclusive = max(self._highest_exclusive, lease.token)
        return None


class Beliefs:
    """All trust there is."""

    def __init__(self, stage: Stage, witness: Witness) -> None:
        self._stage = stage
        self._witness = witness
        self._beliefs: dict[str, list[Belief]] = {}
        """Of each tenant."""
        self._resources: dict[ResourceKey, Resource] = {}

    def begin(self, client: "SimulatedClient", kept: Kept) -> Belief:
        """Note that a holder has heard of its lease, and check it against everybody else's."""
        belief = Belief(client, kept)
        self._beliefs.setdefault(belief.lease.tenant, []).append(belief)
        self.check(belief)
        return belief

    def check(self, belief: Belief) -> None:
        """See that nobody else trusts a conflicting lease; called whenever a belief begins or grows."""
        if not belief.is_trusted:
            return
        tenant = belief.lease.tenant
        others = [other for other in self._beliefs[tenant] if other is belief or not other.is_over]
        self._beliefs[tenant] = others
        for other in others:
            if other.is_trusted and _conflict(belief.lease, other.lease):
                self._excuse(belief.lease, other.lease)

    def _excuse(self, one: Lease, other: Lease) -> None:
        excuse = self._witness.excuse_of(one.token) or self._witness.excuse_of(other.token)
        if excuse is None:
            self._stage.violate(
                "{} trusts {} and {} trusts {} at once",
                one.holder,
                one.lease_id,
                other.holder,
                other.lease_id,
            )
        self._stage.tally.note(f"two trusted at once: {excuse}")

    def act(self, belief: Belief, lease: Lease) -> None:
        """Let an act arrive at its resource, which its holder decided on while it trusted its lease."""
        rival = self._resources.setdefault(_key_of(lease), Resource()).act(lease)
        # A downgrade keeps the token: what was decided on before it is stale all the same.
        unchanged = (belief.lease.token, belief.lease.mode) == (lease.token, lease.mode)
        trusted = belief.is_trusted and unchanged
        note = self._stage.tally.note
        self._stage.say("  act of {} with {}: {}", lease.holder, lease.token, rival or "accepted")
        if rival is None:
            note("act accepted" if trusted else "stale act accepted")
        elif not trusted:
            note("stale act refused")
        elif not (lease.token in self._witness.excuses or self._witness.is_forgotten(rival)):
            self._stage.violate("{} was trusted, and refused because of {}", lease.lease_id, rival)


def _key_of(lease: Lease) -> ResourceKey:
    return (lease.tenant, lease.resource)


def _conflict(one: Lease, other: Lease) -> bool:
    """Say whether two leases exclude each other; who has a directory may have something in it besides."""
    own = one.holder == other.holder and (one.lease_id == other.lease_id or one.resource != other.resource)
    return not own and touch(_key_of(one), _key_of(other)) and one.mode.conflicts_with(other.mode)
