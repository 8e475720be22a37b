"""Any sequence of commands, in any order, against a model that shares no code with the kernel."""

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.commands import Acquire, Release, Renew, Revoke
from leasehold.kernel.lease.model import Mode, ReleaseReason
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.limits import TTL_MINIMUM_NS
from tests.kernel.model import Model
from tests.kernel.oracle import UNIT, check_answer
from tests.kernel.registrar import Registrar, sweeping

TENANTS = st.sampled_from(["acme", "umbrella"])
RESOURCES = st.sampled_from(["door", "window"])
HOLDERS = st.sampled_from(["ann", "bob", "cem"])
UNITS = st.integers(1, 6)


class Leases(RuleBasedStateMachine):
    """The registrar and the model are asked the same, and never disagree."""

    claims: Bundle[Acquire] = Bundle("claims")
    """Claims that were granted."""

    def __init__(self) -> None:
        super().__init__()
        self.registrar = Registrar()
        self.model = Model()
        self.requests = 0

    @initialize()
    def open(self) -> None:
        self.registrar.now()
        assert TTL_MINIMUM_NS <= UNIT

    def ask(self, command: Command) -> object:
        before = len(self.registrar.ledger)
        answer = self.registrar.ask(command)
        events = len(self.registrar.ledger) - before
        check_answer(self.model, command, answer, events)
        if events:
            self.model.happened()
        return answer

    def request(self) -> str:
        self.requests += 1
        return f"request-{self.requests}"

    @rule(
        target=claims,
        tenant=TENANTS,
        resource=RESOURCES,
        holder=HOLDERS,
        ttl=UNITS,
        mode=st.sampled_from(Mode),
        adopt=st.booleans(),
        bound=st.booleans(),
        max_renewals=st.integers(-2, 2),
    )
    def acquire(
        self,
        *,
        tenant: str,
        resource: str,
        holder: str,
        ttl: int,
        mode: Mode,
        adopt: bool,
        bound: bool,
        max_renewals: int,
    ) -> Acquire | MultipleResults[Acquire]:
        request = self.request()
        claim = Acquire(
            tenant=tenant,
            request_id=request if mode is Mode.EXCLUSIVE else f"lease-of-{request}",
            lease_id=f"lease-of-{request}",
            resource=resource,
            holder=holder,
            ttl_ns=ttl * UNIT,
            mode=mode,
            adopt=adopt,
            bound_to_boot=bound,
            max_renewals=max_renewals,
        )
        answer = self.ask(claim)
        return claim if isinstance(answer, Granted) else multiple()

    def something_was_granted(self) -> bool:
        return bool(self.model.grants)

    @rule(claim=claims)
    def retry(self, claim: Acquire) -> None:
        answer = self.ask(claim)
        assert isinstance(answer, Granted)
        assert answer.repeated
        assert answer.lease.lease_id == claim.lease_id

    @precondition(something_was_granted)
    @rule(named=st.lists(claims, min_size=1, max_size=4), ttl=st.none() | UNITS, data=st.data())
    def renew(self, named: list[Acquire], ttl: int | None, data: st.DataObject) -> None:
        tenant, holder = self.somebody(named, data)
        self.ask(
            Renew(
                tenant=tenant,
                request_id=self.request(),
                lease_ids=tuple({claim.lease_id: None for claim in named}),
                holder=holder,
                ttl_ns=None if ttl is None else ttl * UNIT,
            )
        )

    @precondition(something_was_granted)
    @rule(
        named=st.lists(claims, min_size=1, max_size=4), reason=st.sampled_from(ReleaseReason), data=st.data()
    )
    def release(self, named: list[Acquire], reason: ReleaseReason, data: st.DataObject) -> None:
        tenant, holder = self.somebody(named, data)
        lease_ids = tuple({claim.lease_id: None for claim in named})
        self.ask(
            Release(
                tenant=tenant, request_id=self.request(), lease_ids=lease_ids, holder=holder, reason=reason
            )
        )

    def somebody(self, named: list[Acquire], data: st.DataObject) -> tuple[str, str]:
        """Mostly the holder of the first of the named leases; sometimes anybody."""
        if data.draw(st.integers(0, 3)):
            return named[0].tenant, named[0].holder
        return data.draw(TENANTS), data.draw(HOLDERS)

    @rule(claim=claims, tenant=TENANTS)
    def revoke(self, claim: Acquire, tenant: str) -> None:
        self.ask(
            Revoke(
                tenant=tenant,
                request_id=self.request(),
                lease_id=claim.lease_id,
                operator="olga",
                reason="maintenance",
            )
        )

    @precondition(something_was_granted)
    @rule(named=st.lists(claims, min_size=1, max_size=9))
    def sweep(self, named: list[Acquire]) -> None:
        for lease_id in (claim.lease_id for claim in named):
            self.ask(sweeping(lease_id))
            assert self.registrar.lease(lease_id).is_terminal != self.model.is_live(lease_id)

    @rule(units=UNITS)
    def time_passes(self, units: int) -> None:
        self.registrar.clock += units * UNIT
        self.model.now += units

    @rule(clock=st.integers(0, 10**12))
    def reboot(self, clock: int) -> None:
        self.registrar.reboot(clock)
        self.registrar.now()
        self.model.new_clock(rebooted=True)
        self.model.happened()

    @rule(back=st.integers(1, 5))
    def clock_goes_back(self, back: int) -> None:
        self.registrar.clock = self.registrar.authority.tick - back
        self.registrar.now()
        self.model.new_clock(rebooted=False)
        self.model.happened()

    @rule()
    def file_is_copied(self) -> None:
        self.registrar.identity = f"8:{self.request()}"
        self.registrar.now()
        self.model.happened()

    @rule(jump=st.integers(-(10**18), 10**18))
    def wall_clock_is_changed(self, jump: int) -> None:
        self.registrar.wall_ns = max(0, self.registrar.wall_ns + jump)

    @invariant()
    def nothing_has_ended_early(self) -> None:
        for lease_id, lease in self.registrar.state.of("lease").items():
            assert not (lease.is_terminal and self.model.is_live(lease_id))

    @invariant()
    def nobody_holds_what_somebody_else_has_for_himself(self) -> None:
        for one in self.model.grants.values():
            if self.model.is_live(one.lease_id) and not one.shared:
                assert self.model.live_on(one.tenant, one.resource) == [one]


TestLeases = Leases.TestCase
TestLeases.settings = settings(
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow],
)
