"""Certificates: holders ask for them, and resources that cannot ask anybody check them.

A resource has the registrar's public keys, a fence, and the time of day. What it lets in is held against the
truth: the lease stood when the certificate was made, its foreseen end is not over, it is for this resource,
and nobody with a higher token that conflicts was there before. What was forged is never let in, however it
was forged. That a lease was released or revoked meanwhile cannot be known there, and is only counted.

Nothing in the world depends on any of this, and the dice are its own: worlds are what they were without it.
"""

from random import Random
from typing import cast

import msgspec

from leasehold.certificates.certificate import Certificate
from leasehold.certificates.errors import (
    CertificateExpired,
    CertificateKeyRetired,
    CertificateKeyUnknown,
    CertificateNotYetValid,
    NotProven,
    StaleToken,
)
from leasehold.certificates.issuing import certify, trusted_keys_of
from leasehold.certificates.keys import TrustedKeys
from leasehold.certificates.verifying import verify_certificate
from leasehold.enforcing.fence import Fence
from leasehold.engine.questions import Certify, ListKeys
from leasehold.engine.registrar import Registrar
from leasehold.engine.signing import key_id_of
from leasehold.errors import LeaseholdError
from leasehold.kernel.lease.records import ResourceKey
from leasehold.kernel.ledger.keys import Key
from simulator.beliefs import Resource
from simulator.client import SimulatedClient
from simulator.clocks import AuthorityClock
from simulator.forging import forgeries_of
from simulator.plan import SECOND
from simulator.stage import Stage
from simulator.store import SimulatedStore
from simulator.witness import Witness

_ROUNDING_NS = 2_000
"""A certificate gives times to the microsecond, and the time of day comes as a float."""


class _Desk:
    """As much of a registrar as it takes to make certificates."""

    def __init__(self, store: SimulatedStore) -> None:
        self.store = store

    def ask(self, question: ListKeys) -> list[Key]:
        del question
        with self.store.snapshot() as snapshot:
            return snapshot.signing_keys()


class Issued(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate, and what was true when it was made."""

    text: str
    key: ResourceKey
    token: int
    over_ns: int
    """When, in true time, the lease will be over unless it is renewed."""
    wall_offset_ns: int
    """How far the time of day was ahead: if it is set meanwhile, nothing about times can be told."""


class Notary:
    """Has certificates made now and then, and shows them around."""

    def __init__(
        self,
        stage: Stage,
        clock: AuthorityClock,
        witness: Witness,
        store: SimulatedStore,
        clients: list[SimulatedClient],
    ) -> None:
        self._stage = stage
        self._clock = clock
        self._witness = witness
        self._clients = clients
        self._registrar = cast(Registrar, _Desk(store))
        self._random = Random(f"notary {stage.plan.seed}")
        self._keys = TrustedKeys(())
        self._fences: dict[str, Fence] = {}
        """Of each tenant: the same name is another resource there."""
        self._told: dict[ResourceKey, Resource] = {}
        """What fences have seen, told a second time."""
        self._issued: list[Issued] = []

    def start(self) -> None:
        """Begin to do things, again and again."""
        if self._stage.plan.certifying:
            self._stage.after(self._some_time_ns(), self._go_round)

    def _some_time_ns(self) -> int:
        return int(self._stage.plan.ttl_ns * self._random.uniform(0.1, 0.8))

    def _go_round(self) -> None:
        if self._stage.calm:
            return
        holders = [client for client in self._clients if client.held]
        if holders:
            client = self._random.choice(holders)
            self._ask(client.tenant, self._random.choice(list(client.held)))
        if self._issued and self._random.random() < 0.5:
            self._show(self._random.choice(self._issued[-6:]))
        self._stage.after(self._some_time_ns(), self._go_round)

    def _ask(self, tenant: str, lease_id: str) -> None:
        """Have a lease certified; show the certificate at once, or later, or not at all."""
        stage = self._stage
        try:
            question = Certify(tenant=tenant, lease_id=lease_id)
            with self._registrar.store.snapshot() as snapshot:
                sign = certify(self._registrar, question, snapshot)
            text = sign()
        except LeaseholdError as error:
            stage.say("  no certificate of {}: {}", lease_id, error)
            stage.tally.note("certificate refused")
            self._check_refused(tenant, lease_id)
            return
        stage.tally.note("certificate issued")
        issued = self._note(text, lease_id)
        self._issued.append(issued)
        if self._random.random() < 0.6:
            self._show(issued)
        if self._random.random() < 0.3:
            delay_ns = self._random.randrange(1 + 3 * stage.plan.ttl_ns)
            stage.after(delay_ns, lambda: self._show(issued))
        if self._random.random() < 0.3:
            self._forge(issued)

    def _note(self, text: str, lease_id: str) -> Issued:
        """Note what is true about a lease that was certified; see that it stands."""
        truth, tick = self._witness.truth, self._clock.tick_ns()
        lease = truth.standing.get(lease_id)
        if lease is None:
            self._stage.violate("{} is over, and was certified", lease_id)
        assert lease is not None
        # After a reboot, or when the clock went back, what is left counts from the last entry of the ledger.
        left_ns = lease.end_tick - max(tick, truth.ticks[-1].value)
        if left_ns <= 0:
            self._stage.violate("{} had expired, and was certified", lease_id)
        return Issued(
            text=text,
            key=lease.key,
            token=lease.token,
            over_ns=self._stage.now_ns + left_ns,
            wall_offset_ns=self._clock.wall_ns() - self._stage.now_ns,
        )

    def _check_refused(self, tenant: str, lease_id: str) -> None:
        """Whoever holds a lease gets its certificate; nobody gets that of another tenant's."""
        truth, tick = self._witness.truth, self._clock.tick_ns()
        lease = truth.standing.get(lease_id)
        if lease is None or lease.key[0] != tenant or tick < truth.ticks[-1].value:
            return
        line = truth.accounts.line_of(lease)
        if all(one.end_tick > tick and one.ended_position is None and not one.rebooted for one in line):
            self._stage.violate("{} stands, and was not certified", lease_id)

    def _show(self, issued: Issued) -> None:
        """Show a certificate to its resource, and see that what that makes of it is right."""
        stage = self._stage
        undisturbed = self._clock.wall_ns() - stage.now_ns == issued.wall_offset_ns
        in_time = stage.now_ns < issued.over_ns
        try:
            certificate = self._admit(issued.text, issued.key)
        except StaleToken:
            stage.tally.note("stale certificate refused")
            if self._rival_of(issued.token, issued.key) is None:
                stage.violate("{} was refused because of a token that was never there", issued)
        except (CertificateExpired, CertificateNotYetValid):
            stage.tally.note("expired certificate refused" if undisturbed else "certificate of another time")
            if undisturbed and stage.now_ns < issued.over_ns - _ROUNDING_NS:
                stage.violate("{} was refused before its time was over", issued)
        except (CertificateKeyRetired, CertificateKeyUnknown) as error:
            # Unknown, if a copy of the store from before the key was put in place.
            stage.tally.note("certificate of a retired key refused")
            admitted = [
                key_id_of(key.public_key) for key in self._registrar.ask(ListKeys()) if key.is_admitted
            ]
            if error.facts.get("key_id") in admitted:
                stage.violate("{} was refused because of its key, which is admitted", issued)
        else:
            self._check_admitted(issued, certificate, too_late=undisturbed and not in_time)

    def _check_admitted(self, issued: Issued, certificate: Certificate, *, too_late: bool) -> None:
        stage, key = self._stage, issued.key
        said = (certificate.tenant, certificate.resource, certificate.token)
        if said != (*key, issued.token):
            stage.violate("{} says {}", issued, certificate)
        if too_late and stage.now_ns >= issued.over_ns + _ROUNDING_NS:
            stage.violate("{} was let in {} ns too late", issued, stage.now_ns - issued.over_ns)
        rival = self._told.setdefault(key, Resource()).act(certificate)
        if rival is not None:
            stage.violate("{} was let in behind {}", issued, rival)
        lease = self._witness.truth.leases.get(certificate.lease_id)
        stands = lease is not None and lease.ended_position is None and lease.token == certificate.token
        stage.tally.note("certificate let in" if stands else "certificate let in after its lease had ended")

    def _rival_of(self, token: int, key: ResourceKey) -> int | None:
        seen = self._told.get(key)
        return None if seen is None or seen.highest <= token else seen.highest

    def _forge(self, issued: Issued) -> None:
        """Show what was made of a certificate; and the certificate itself where it does not belong."""
        stage, (tenant, resource) = self._stage, issued.key
        kind, text = self._random.choice(forgeries_of(issued.text))
        for what, shown, key in (
            (kind, text, issued.key),
            ("another resource", issued.text, (tenant, f"{resource}-2")),
            ("another tenant", issued.text, (f"{tenant}-2", resource)),
        ):
            try:
                self._admit(shown, key)
            except StaleToken:
                stage.violate("a forged certificate got as far as the fence: {}", what)
            except NotProven:
                stage.tally.note("forged certificate refused")
            else:
                stage.violate("a forged certificate was let in: {}", what)

    def _admit(self, text: str, key: ResourceKey) -> Certificate:
        """Do as a resource does: fetch the keys if one is new, check the certificate, ask the fence."""
        tenant, resource = key
        try:
            certificate = self._verify(text, key)
        except (CertificateKeyUnknown, CertificateKeyRetired):
            self._keys = trusted_keys_of(self._registrar.ask(ListKeys()))
            certificate = self._verify(text, key)
        self._fences.setdefault(tenant, Fence()).admit(resource, certificate.token, certificate.mode)
        return certificate

    def _verify(self, text: str, key: ResourceKey) -> Certificate:
        tenant, resource = key
        now = self._clock.wall_ns() / SECOND
        return verify_certificate(text, keys=self._keys, tenant=tenant, resource=resource, now=now)
