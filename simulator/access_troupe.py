"""Those who manage access keys in a simulated world, and who judge what they are told.

Every command here is about keys, and most are asked with one: of any role, bound to any tenant, with a secret
that is good, or was, or never will be. The judge tells from the ledger's events alone how every key stood at
each of them, with rules of its own: nothing happened that its author was not entitled to at that moment, and
nobody was refused who was. The last admin key for all tenants is never revoked.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from leasehold.access.law.commands import CreateAccessKey, RevokeAccessKey, RotateAccessKey
from leasehold.access.law.events import EVENTS, AccessKeyCreated, AccessKeyRevoked, AccessKeyRotated
from leasehold.access.law.family import access_family
from leasehold.access.law.model import ACCESS, AccessKey, Role, mark_of
from leasehold.engine.batch import Outcome
from leasehold.kernel.ledger.commands import LOCAL, Caller, Command
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Family
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from simulator.asking import Asker
from simulator.cast import Cast
from simulator.troupe import Commit, Moment, Scene, Troupe
from simulator.true_lease import request_id_of


class TrueKey(msgspec.Struct, kw_only=True):
    """A key as it should stand."""

    tenant: str
    role: str
    digests: list[str]
    """Of all the secrets that it has had."""
    ends: "tuple[Tick, int] | None" = None
    """When it was to end: by the authority's clock, and in wall time."""
    overlap: "tuple[Tick, int] | None" = None
    is_revoked: bool = False

    def is_live(self, tick: Tick, wall_ns: int) -> bool:
        return not self.is_revoked and (self.ends is None or not _is_over(self.ends, tick, wall_ns))

    def takes(self, generation: int, tick: Tick, wall_ns: int) -> bool:
        if not self.is_live(tick, wall_ns):
            return False
        newest = len(self.digests)
        overlaps = self.overlap is not None and not _is_over(self.overlap, tick, wall_ns)
        return generation == newest or (overlaps and generation == newest - 1)


def _is_over(end: tuple[Tick, int], tick: Tick, wall_ns: int) -> bool:
    return wall_ns >= end[1] or (end[0].era == tick.era and tick.value >= end[0].value)


def _after(event: Event, duration_ns: int) -> tuple[Tick, int] | None:
    tick = event.tick
    end = Tick(value=tick.value + duration_ns, era=tick.era, rate=tick.rate)
    return (end, event.at_ns + duration_ns) if duration_ns else None


class AccessPlay:
    """Creates, rotates and revokes keys, and judges what becomes of that."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stage = scene.stage
        self._random = scene.random
        self._cast = Cast(scene, self._act)
        self.noted = self._cast.noted
        self._sent: dict[str, tuple[Any, Caller]] = {}
        self._names: list[tuple[str, str]] = []
        """Every key that anybody ever asked for, and what it was to be bound to."""
        self._keys: dict[str, TrueKey] = {}
        self._done: dict[str, tuple[int, Event]] = {}
        """What each request has brought about, and at which position of the ledger."""

    # What actors do.

    def start(self) -> None:
        """Let three actors begin."""
        self._cast.start(3)

    def _act(self, actor: Asker) -> None:
        random = self._random
        if self._sent and random.random() < 0.15:
            command, caller = random.choice(list(self._sent.values())[-20:])
        else:
            caller = self._caller()
            command = self._command(caller)
        self._sent[command.request_id] = (command, caller)
        actor.ask(command, lambda outcome, sent_ns: None, caller=caller)

    def _caller(self) -> Caller:
        """Draw who asks: now and then a local program, else whoever has some key, or has had it."""
        random = self._random
        if not self._names or random.random() < 0.2:
            return LOCAL
        key_id, tenant = random.choice(self._names[-12:])
        generation = random.choice((1, 1, 1, 1, 2, 3))
        return Caller(access=key_id, tenant=tenant or None, generation=generation)

    def _command(self, caller: Caller) -> Command:
        random = self._random
        said: dict[str, Any] = {
            "request_id": self._stage.new_name("access"),
            "holder": "root",
            "tenant": random.choice(self._stage.plan.tenants) if caller.tenant is None else caller.tenant,
        }
        ttl_ns = self._stage.plan.ttl_ns
        step = random.random()
        if step < 0.4 or not self._names:
            for_all = random.random() < 0.5
            tenant = "" if for_all else said["tenant"]
            key_id = f"{mark_of(tenant)}{len(self._names):06x}"
            self._names.append((key_id, tenant))
            return CreateAccessKey(
                **said,
                key_id=key_id,
                digest=f"{random.getrandbits(256):064x}",
                role=random.choice((Role.ADMIN, Role.ADMIN, Role.OPERATOR, Role.VIEWER)),
                for_all=for_all,
                lifetime_ns=random.choice((0, 0, 0, 5 * ttl_ns)),
            )
        key_id, _ = random.choice(self._names[-12:])
        if step < 0.65:
            digest = f"{random.getrandbits(256):064x}"
            return RotateAccessKey(
                **said, key_id=key_id, digest=digest, overlap_ns=random.choice((0, 2 * ttl_ns))
            )
        return RevokeAccessKey(**said, key_id=key_id)

    # What the judge says.

    def saw(self, commit: Commit) -> str | None:
        """Take in what was committed."""
        for entry in commit.entries:
            if isinstance(entry.event, EVENTS):
                problem = self._saw(entry.position, entry.event)
                if problem is not None:
                    return problem
        for key in commit.let_go.get(ACCESS, ()):
            key_id = key.rpartition("\x01")[2]
            if not self._keys[key_id].is_revoked:
                return f"{key_id} was let go of, and is not revoked"
            del self._keys[key_id]
            self._cast.note("let go")
        return None

    def _saw(self, position: int, event: Any) -> str | None:
        request_id = request_id_of(event)
        command, caller = self._sent.get(request_id, (None, LOCAL))
        if command is None or (command.key_id, caller.access) != (event.key_id, event.by):
            return f"{request_id} did something to {event.key_id} that nobody asked for"
        earlier = self._done.get(request_id)
        if earlier is not None and self._scene.truth().is_known(earlier[0], event.tick):
            return f"{request_id} was carried out twice"
        problem = self._trespass(event, command, caller)
        self._take_in(position, event, command)
        return problem or self._locked_out(event)

    def _trespass(self, event: Any, command: Any, caller: Caller) -> str | None:
        """Say what the author of an event was not entitled to."""
        if not caller.access:
            return None
        key = self._keys.get(caller.access)
        if key is None or not key.takes(caller.generation, event.tick, event.at_ns):
            return f"{command} was carried out for key {caller.access}, which opened nothing"
        if key.role != "admin":
            return f"{command} was carried out for key {caller.access}, which is of a {key.role}"
        if key.tenant and event.tenant != key.tenant:
            return f"{command} was carried out for key {caller.access}, which is bound to {key.tenant}"
        return None

    def _locked_out(self, event: Any) -> str | None:
        """Say whether the last admin key for all tenants was revoked."""
        left = any(
            self._is_admin(one) and one.is_live(event.tick, event.at_ns) for one in self._keys.values()
        )
        revoked = self._keys[event.key_id]
        if not isinstance(event, AccessKeyRevoked) or left or not self._is_admin(revoked):
            return None
        was_live = msgspec.structs.replace(revoked, is_revoked=False).is_live(event.tick, event.at_ns)
        return f"{event.key_id} was revoked, and was the last admin key" if was_live else None

    @staticmethod
    def _is_admin(key: TrueKey) -> bool:
        return key.role == "admin" and not key.tenant

    def _take_in(self, position: int, event: Any, command: Any) -> None:
        self._done[request_id_of(event)] = (position, event)
        self._cast.note(type(event).__name__)
        if isinstance(event, AccessKeyCreated):
            self._keys[event.key_id] = TrueKey(
                tenant=event.tenant,
                role=event.role.value,
                digests=[event.digest],
                ends=_after(event, command.lifetime_ns),
            )
        elif isinstance(event, AccessKeyRotated):
            key = self._keys[event.key_id]
            key.digests.append(event.digest)
            key.overlap = _after(event, command.overlap_ns)
        else:
            self._keys[event.key_id].is_revoked = True

    def start_over(self, history: Sequence[Commit]) -> None:
        """Believe only what is left of the history."""
        self._keys, self._done = {}, {}
        for commit in history:
            for entry in commit.entries:
                if isinstance(entry.event, EVENTS):
                    self._take_in(entry.position, entry.event, self._sent[request_id_of(entry.event)][0])
            for key in commit.let_go.get(ACCESS, ()):
                self._keys.pop(key.rpartition("\x01")[2], None)
        self._cast.note("started over")

    def causes(self, event: Event, command: Command | None) -> bool:
        """Keys cause no events of leases."""
        del event, command
        return False

    def told(self, command: Command, outcome: Outcome, moment: Moment) -> str | None:
        """Judge an answer."""
        _, caller = self._sent[command.request_id]
        if isinstance(outcome, AccessKey):
            self._cast.note("answered")
            return self._misinformed(command, outcome, moment)
        if not isinstance(outcome, Refusal):
            return f"{command} was answered with {outcome}"
        self._cast.note(outcome.rule)
        if outcome.rule not in ("NOT_AUTHENTICATED", "NOT_PERMITTED") or not moment.alone:
            return None
        key = self._keys.get(caller.access)
        lasts = key is not None and key.ends is None and key.overlap is None and not key.is_revoked
        if key is None or not lasts or len(key.digests) != caller.generation:
            return None  # It may have been refused, or has to be; when it must not be is plain enough.
        is_entitled = key.role == "admin" and not (key.tenant and getattr(command, "for_all", False))
        return (
            f"{command} was refused to key {caller.access} without reason: {outcome}" if is_entitled else None
        )

    def _misinformed(self, command: Any, outcome: AccessKey, moment: Moment) -> str | None:
        """Say what an answer promises that the ledger does not say."""
        key = self._keys.get(command.key_id)
        if key is None:
            return f"{command} was answered with {outcome}, and there is no such key"
        done = key.is_revoked if isinstance(command, RevokeAccessKey) else command.digest in key.digests
        if not done:
            return f"{command} was answered with {outcome}, and is not in the ledger"
        if not moment.alone:
            return None
        said = (
            outcome.tenant or "",
            outcome.role.value,
            outcome.rotations,
            outcome.revoked_at_ns is not None,
        )
        true = (key.tenant, key.role, len(key.digests) - 1, key.is_revoked)
        return None if said == true else f"{command} was told {said}, and it is {true}"

    def problem_at_end(self, state: State) -> str | None:
        """Compare the records with how keys should stand."""
        said = {
            one.key_id: (
                one.tenant,
                one.role.value,
                one.digest,
                one.generation,
                one.revoked_at_ns is not None,
            )
            for one in state.of(ACCESS).values()
        }
        true = {
            key_id: (one.tenant, one.role, one.digests[-1], len(one.digests), one.is_revoked)
            for key_id, one in self._keys.items()
        }
        return None if said == true else f"access keys are {said}, and should be {true}"


class AccessTroupe(Troupe[AccessPlay]):
    """Access keys, played."""

    def __init__(self, family: Family | None = None) -> None:
        super().__init__(family or access_family(), AccessPlay)
