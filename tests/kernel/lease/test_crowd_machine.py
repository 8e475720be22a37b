"""Any sequence of waiting, cancelling, confirming, upgrading and handing over, against an oracle of its own.

After each step: no invariant is broken, so nobody is entitled to what it waits for, and nobody waits for
itself; nobody was overtaken; what was refused as held or as a deadlock was that; a claim on several
resources was granted whole. In the end, whoever goes on asking gets what it asks for.
"""

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, initialize, multiple, rule

from leasehold.kernel.lease.answers import Answer, Granted, Waiting
from leasehold.kernel.lease.commands import Acquire, Wanted
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.ledger.commands import Command, Swept
from leasehold.kernel.ledger.refusals import Refusal
from tests.kernel.crowd_oracle import check_crowd, check_kept, check_order
from tests.kernel.registrar import SECOND, Registrar, sweeping

RESOURCES = ("a", "b", "/", "/d", "/d/x", "/d/y", "/x", "/d/*", "/*/x", "/**/f.c", "/d/f.c", "/d/{x,y}")
HOLDERS = st.sampled_from(["ann", "bob", "cem", "dia"])
MODES = st.sampled_from(Mode)


class Crowd(RuleBasedStateMachine):
    """The registrar is asked, and the oracle looks at all records before and after."""

    claims: Bundle[Acquire] = Bundle("claims")
    """Claims that were granted, or wait, or did once."""

    def __init__(self) -> None:
        super().__init__()
        self.registrar = Registrar()

    @initialize()
    def open(self) -> None:
        self.registrar.now()

    def ask(self, command: Command) -> Answer | Swept | Refusal:
        before = list(self.registrar.state.of("lease").values())
        entries = len(self.registrar.ledger)
        now = self.registrar.now().tick
        answer = self.registrar.ask(command)
        check_order(before, now, command, self.registrar.ledger[entries:])
        after, outage = list(self.registrar.state.of("lease").values()), self.registrar.authority.outage
        check_crowd(before, after, now, command, answer, outage=outage)
        if outage is not None:
            check_kept(before, now, outage, self.registrar.ledger[entries:])
        return answer

    def standing(self) -> list[Lease]:
        return [one for one in self.registrar.state.of("lease").values() if one.state is LeaseState.ACTIVE]

    @rule(
        target=claims,
        holder=HOLDERS,
        resource=st.sampled_from(RESOURCES),
        mode=MODES,
        wait=st.booleans(),
        priority=st.sampled_from([1, 5, 5, 10]),
        ttl=st.integers(1, 60),
        more=st.lists(st.tuples(st.sampled_from(RESOURCES), MODES), max_size=2),
        options=st.fixed_dictionaries(
            {},
            optional={
                "lock_delay_ns": st.integers(1, 5).map(lambda seconds: seconds * SECOND),
                "adopt": st.just(True),
                "bound_to_boot": st.just(False),
            },
        ),
    )
    def acquire(
        self,
        *,
        holder: str,
        resource: str,
        mode: Mode,
        wait: bool,
        priority: int,
        ttl: int,
        more: list[tuple[str, Mode]],
        options: dict[str, object],
    ) -> Acquire | MultipleResults[Acquire]:
        also = tuple(Wanted(resource=name, mode=other) for name, other in more)
        claim = self.registrar.claim(
            holder,
            resource,
            mode=mode,
            wait=wait,
            priority=priority,
            ttl_ns=ttl * SECOND,
            also=also,
            **options,
        )
        answer = self.ask(claim)
        return claim if isinstance(answer, Granted | Waiting) else multiple()

    @rule(claim=claims)
    def ask_again(self, claim: Acquire) -> None:
        self.ask(claim)

    @rule(claim=claims)
    def cancel(self, claim: Acquire) -> None:
        self.registrar.cancel(claim)
        leases = [self.registrar.state.of("lease").get(lease_id) for lease_id in claim.lease_ids]
        assert all(lease is None or lease.is_terminal for lease in leases)
        again = self.ask(claim)
        assert not isinstance(again, Waiting)
        assert not isinstance(again, Granted) or again.ended

    @rule(data=st.data(), mode=MODES, wait=st.booleans())
    def change_mode(self, data: st.DataObject, mode: Mode, *, wait: bool) -> None:
        if leases := self.standing():
            lease = data.draw(st.sampled_from(leases))
            self.ask(self.registrar.change(lease, mode, wait=wait))

    @rule(data=st.data(), to=HOLDERS)
    def hand_over(self, data: st.DataObject, to: str) -> None:
        if leases := [one for one in self.standing() if one.holder != "registrar"]:
            self.ask(self.registrar.hand_over(data.draw(st.sampled_from(leases)), to))

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if leases := [one for one in self.standing() if one.holder != "registrar"]:
            self.registrar.release(data.draw(st.sampled_from(leases)))

    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        unended = [one for one in self.registrar.state.of("lease").values() if not one.is_terminal]
        if unended:
            self.registrar.revoke(data.draw(st.sampled_from(unended)))

    @rule()
    def sweep(self) -> None:
        for lease_id in tuple(self.registrar.state.of("lease")):
            self.ask(sweeping(lease_id))

    @rule(tenths=st.sampled_from([1, 5, 19, 20, 21, 100, 150, 299, 300, 301]))
    def time_passes(self, tenths: int) -> None:
        self.registrar.advance(tenths / 10)

    @rule(tenths=st.sampled_from([1, 20, 150]), settles=st.sampled_from([0, 1, 10, 20]))
    def outage(self, tenths: int, settles: int) -> None:
        self.registrar.now()
        since = self.registrar.clock
        self.registrar.advance(tenths / 10)
        self.registrar.resume(since, settles * SECOND)

    @rule()
    def reboot(self) -> None:
        self.registrar.reboot()

    def teardown(self) -> None:
        """Whoever waits is served or gone, once nobody new comes and everybody gives back what it has."""
        for _ in range(80):
            unended = [one for one in self.registrar.state.of("lease").values() if not one.is_terminal]
            if not unended:
                return
            for lease in unended:
                if lease.state is LeaseState.ACTIVE and lease.holder != "registrar":
                    self.registrar.release(lease)
            self.registrar.advance(0.5)
            self.sweep()
        raise AssertionError(f"these are still there: {unended}")


TestCrowd = Crowd.TestCase
TestCrowd.settings = settings(
    stateful_step_count=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
