"""`leases.work`: exclusive, ordered processing of the offsets of each domain.

Each method is one command, decided in one commit, or one question, which waits for no writer. A reply that is
lost is asked for again under the same request id, and is the same: `succeed` counts once, `try_acquire` gives
one token. What nobody can ask for again, because the caller was cancelled or interrupted, is given back.
"""

from collections.abc import Callable, Iterable
from typing import Literal

from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import Duration, duration_ns, several, sought, text, whole_number
from leasehold.engine.desk import answer_of
from leasehold.engine.port import EntryQuery
from leasehold.engine.questions import ReadLedger
from leasehold.errors import InvalidInput, LeaseExpired, LeaseTerminal, error_of
from leasehold.kernel.ledger.chain import Entry
from leasehold.work.aio.consumer import AsyncConsumer
from leasehold.work.consuming import Backoff, Handler, Progress, Source, checked_concurrency
from leasehold.work.errors import LeaseNotFoundException, TokenMismatchException
from leasehold.work.hearing import Hearing
from leasehold.work.law.answers import (
    Acquired,
    Failed,
    FailOutcome,
    GivenBack,
    Kept,
    Queueing,
    Started,
    Succeeded,
    SucceedOutcome,
)
from leasehold.work.law.check import check_offset
from leasehold.work.law.commands import (
    DEFAULT_MAX_RETRIES,
    Enqueue,
    Fail,
    GiveBack,
    KeepAlive,
    StartAt,
    Succeed,
    TryAcquire,
)
from leasehold.work.law.model import resource_of
from leasehold.work.questions import (
    DomainState,
    FailedOffset,
    FindDomain,
    FindWatermark,
    ListDomains,
    ListFailed,
)

OnMismatch = Literal["raise", "ignore"]


class AsyncWork:
    """Work leases of one tenant."""

    def __init__(
        self,
        session: AsyncSession,
        *,
        max_retries: int = DEFAULT_MAX_RETRIES,
        ttl: Duration | None = None,
        hand_off: bool = False,
        on_mismatch: OnMismatch = "raise",
    ) -> None:
        self._session = session
        self._hearing = Hearing(session)
        self._max_retries = whole_number("max_retries", max_retries, minimum=0)
        self._ttl = ttl
        self._ttl_ns = _ttl_ns(ttl)
        self._hand_off = hand_off
        self._on_mismatch = _mismatch(on_mismatch)

    def __repr__(self) -> str:
        return self._session.face("work leases")

    def configured(
        self,
        *,
        max_retries: int | None = None,
        ttl: Duration | None = None,
        hand_off: bool | None = None,
        on_mismatch: OnMismatch | None = None,
    ) -> "AsyncWork":
        """Return the same face with other defaults for its calls; what is not given stays as it is."""
        return AsyncWork(
            self._session,
            max_retries=self._max_retries if max_retries is None else max_retries,
            ttl=self._ttl if ttl is None else ttl,
            hand_off=self._hand_off if hand_off is None else hand_off,
            on_mismatch=self._on_mismatch if on_mismatch is None else on_mismatch,
        )

    async def try_acquire(
        self,
        domain: str,
        offset: int,
        *,
        ttl: Duration | None = None,
        max_retries: int | None = None,
        wake: str = "",
        request_id: str | None = None,
    ) -> Acquired:
        """Ask to work on an offset; `outcome` says whether you may: only with ACQUIRED.

        Raises `BacklogOrderingException` if the domain is idle and another offset is at the head of its
        backlog. With a `ttl` the offset goes back there after so many seconds without `keep_alive`, as after
        a failed attempt; without one it is yours until you end it. `max_retries` is how often it may fail and
        still be tried again. `wake` is an address to ring at, for consumers. `request_id` makes a later call
        with the same arguments a retry of this one.

        Raises `LeaseTerminal` if what was acquired has ended since, or may have: a retry can be late, and so
        can the answer. Who is cancelled, or interrupted by Ctrl-C, gives back what was acquired meanwhile.
        """
        command = TryAcquire(
            **self._hearing.said(domain, request_id),
            offset=whole_number("offset", offset),
            ttl_ns=self._ttl_ns if ttl is None else _ttl_ns(ttl),
            max_retries=whole_number(
                "max_retries", self._max_retries if max_retries is None else max_retries
            ),
            wake=text("wake", wake),
        )
        sent_ns = self._session.clock.tick_ns()
        with self._hearing.or_given_back(command):
            acquired = answer_of(await self._session.send(command), Acquired)
            if acquired.ended or not self._hearing.is_ours(acquired, domain, sent_ns):
                raise LeaseTerminal(
                    f"request {command.request_id} acquired offset {offset} of {domain} under token "
                    f"{acquired.token}, which has ended since; ask again with a new request id",
                    request_id=command.request_id,
                    domain=domain,
                )
            return acquired

    async def succeed(
        self,
        domain: str,
        token: str,
        *,
        hand_off: bool | None = None,
        on_mismatch: OnMismatch | None = None,
        request_id: str | None = None,
    ) -> Succeeded:
        """Say that the offset in flight is processed; `next_offset` is the head of the backlog, if any.

        With `hand_off` that is acquired in the same commit, and `acquired` has its token, unless it has
        ended since, or may have: a retry can be late, and so can the answer. Raises
        `LeaseNotFoundException` or `TokenMismatchException` if the token is not that of the offset in flight;
        with `on_mismatch="ignore"` the outcome is IGNORED then.
        """
        command = Succeed(
            **self._hearing.said(domain, request_id),
            token=text("token", token),
            hand_off=self._hand_off if hand_off is None else hand_off,
        )
        sent_ns = self._session.clock.tick_ns()
        try:
            with self._hearing.or_given_back(command):
                succeeded = answer_of(await self._session.send(command), Succeeded)
                return self._hearing.handed_off(succeeded, domain, sent_ns)
        except (LeaseNotFoundException, TokenMismatchException):
            if not self._ignores(on_mismatch):
                raise
            return Succeeded(outcome=SucceedOutcome.IGNORED)

    async def fail(
        self,
        domain: str,
        token: str,
        *,
        reason: str = "",
        max_retries: int | None = None,
        hand_off: bool | None = None,
        on_mismatch: OnMismatch | None = None,
        request_id: str | None = None,
    ) -> Failed:
        """Say that an attempt at the offset in flight has failed.

        It stays in flight, to be tried again when you see fit, unless it has failed `max_retries` times
        before (default: as it was acquired with): then it is given up. The rest is as with `succeed`.
        """
        command = Fail(
            **self._hearing.said(domain, request_id),
            token=text("token", token),
            reason=text("reason", reason),
            max_retries=None if max_retries is None else whole_number("max_retries", max_retries),
            hand_off=self._hand_off if hand_off is None else hand_off,
        )
        sent_ns = self._session.clock.tick_ns()
        try:
            with self._hearing.or_given_back(command):
                failed = answer_of(await self._session.send(command), Failed)
                return self._hearing.handed_off(failed, domain, sent_ns)
        except (LeaseNotFoundException, TokenMismatchException):
            if not self._ignores(on_mismatch):
                raise
            return Failed(outcome=FailOutcome.IGNORED)

    async def give_back(self, domain: str, token: str) -> int:
        """Let the offset in flight go back to the head of the backlog, uncounted; return which one it is."""
        command = GiveBack(**self._hearing.said(domain), token=text("token", token))
        return answer_of(await self._session.send(command), GivenBack).offset

    async def keep_alive(self, domain: str, token: str, *, ttl: Duration | None = None) -> Kept:
        """Give the offset in flight more time: for `ttl` seconds from now, or its own TTL again.

        Raises `LeaseExpired` if the answer comes so late that this time, too, may be over.
        """
        command = KeepAlive(**self._hearing.said(domain), token=text("token", token), ttl_ns=_ttl_ns(ttl))
        sent_ns = self._session.clock.tick_ns()
        kept = answer_of(await self._session.send(command), Kept)
        if self._session.is_over(sent_ns, kept.expires_in_ns):
            raise LeaseExpired(
                f"the offset in flight in {domain} was kept alive, but the answer came too late to rely on; "
                f"stop working under token {token}",
                domain=domain,
            )
        return kept

    async def enqueue(
        self, domain: str, offsets: Iterable[int], *, wake: str = "", request_id: str | None = None
    ) -> int:
        """Put offsets at the end of the backlog, up to 1,000 in one call; return how many were new.

        Those that are there already, in flight or terminal are left out. All others are taken, or none.
        """
        command = Enqueue(
            **self._hearing.said(domain, request_id),
            offsets=tuple(whole_number("offsets", one) for one in several("offsets", offsets)),
            wake=text("wake", wake),
        )
        return answer_of(await self._session.send(command), Queueing).added

    async def start_at(self, domain: str, offset: int) -> int:
        """Let every offset below this one count as processed; return where the domain starts now.

        It never goes back. Raises `WorkBelowStart` if something below is in flight or in the backlog.
        """
        command = StartAt(**self._hearing.said(domain), offset=whole_number("offset", offset))
        return answer_of(await self._session.send(command), Started).start

    async def state(self, domain: str, *, ranges_from: int = 0, limit: int = 100) -> DomainState:
        """Return how a domain stands, with up to `limit` ranges of processed and of failed offsets.

        `more_from` of the answer, as `ranges_from`, continues them.
        """
        question = FindDomain(
            tenant=self._session.tenant,
            domain=sought("domain", domain),
            ranges_from=_sought_offset("ranges_from", ranges_from),
            limit=whole_number("limit", limit),
        )
        found: DomainState = await self._session.ask(question)
        return found

    async def domains(self, *, after: str = "", limit: int = 100) -> list[DomainState]:
        """Return a page of domains in the order of their names, after one of them, without their ranges."""
        question = ListDomains(
            tenant=self._session.tenant, after=sought("after", after), limit=whole_number("limit", limit)
        )
        found: list[DomainState] = await self._session.ask(question)
        return found

    async def watermark(self, domain: str) -> int:
        """Return below which offset everything is terminal: what to commit upstream."""
        question = FindWatermark(tenant=self._session.tenant, domain=sought("domain", domain))
        found: int = await self._session.ask(question)
        return found

    async def failed(self, domain: str, *, after: int = -1, limit: int = 100) -> list[FailedOffset]:
        """Return a page of the offsets that were given up, lowest first, with the reason for each."""
        question = ListFailed(
            tenant=self._session.tenant,
            domain=sought("domain", domain),
            after=_sought_offset("after", after, minimum=-1),
            limit=whole_number("limit", limit),
        )
        found: list[FailedOffset] = await self._session.ask(question)
        return found

    async def history(self, domain: str, offset: int, *, after: int = 0, limit: int = 1_000) -> list[Entry]:
        """Return what happened to an offset, oldest first."""
        tenant = self._session.tenant
        resource = resource_of(sought("domain", domain), _sought_offset("offset", offset))
        query = EntryQuery(
            tenant=tenant,
            resource=resource,
            after=_sought_offset("after", after),
            limit=whole_number("limit", limit),
        )
        entries: list[Entry] = await self._session.ask(ReadLedger(tenant=tenant, query=query))
        return entries

    async def consume(
        self,
        handler: Handler,
        *,
        source: Source,
        concurrency: int = 8,
        backoff: Backoff | None = None,
        ttl: Duration = 60.0,
        max_retries: int | None = None,
        stop: Callable[[], bool] | None = None,
        handle_signals: bool = True,
        progress: Callable[[Progress], None] | None = None,
    ) -> Progress:
        """Process what `source` yields, in order within each domain, and return how that went.

        `source` yields (domain, offset, payload). `handler` is called with a `Message`, in up to
        `concurrency` domains at a time (at most 1,000), and only for offsets that this consumer has acquired;
        what it raises is a failed attempt, which is repeated after `backoff`. Every offset is held with a
        `ttl`, and kept alive meanwhile. Consumers in other processes may have the same domains: whoever waits
        is woken.

        It ends when the source does, and everything it has yielded is terminal. What the source raises, and
        something in it that is no message, ends it in the same way: what came before is brought to its end,
        then the error is raised. An offset that is given up is logged, with the traceback.

        On SIGTERM or SIGINT (if `handle_signals`, in the main thread), or once `stop()` is true, no handler
        is started any more, those that run are waited for, and what is waiting for another attempt is given
        back. `progress` is called with the figures, about once a second while something happens.
        """
        consumer = AsyncConsumer(
            self._session,
            self.configured(
                ttl=ttl,
                max_retries=max_retries,
                hand_off=False,
                on_mismatch="raise",
            ),
            handler,
            source,
            backoff=backoff or Backoff(),
            ttl_ns=duration_ns("ttl", ttl),
            concurrency=checked_concurrency(whole_number("concurrency", concurrency, minimum=1)),
            stop=stop,
            tell=progress,
        )
        return await consumer.run(handle_signals=handle_signals)

    def _ignores(self, on_mismatch: OnMismatch | None) -> bool:
        return (self._on_mismatch if on_mismatch is None else _mismatch(on_mismatch)) == "ignore"


def _ttl_ns(ttl: Duration | None) -> int:
    """Return a time to live in nanoseconds; 0 for none. One that is too short is refused."""
    if ttl is None:
        return 0
    nanoseconds = duration_ns("ttl", ttl)
    if nanoseconds == 0:
        raise InvalidInput("ttl must be more than 0; leave it out for no end", field="ttl")
    return nanoseconds


def _mismatch(word: object) -> OnMismatch:
    if word not in ("raise", "ignore"):
        raise InvalidInput(f"on_mismatch must be 'raise' or 'ignore', not {word!r}", field="on_mismatch")
    return word


def _sought_offset(field: str, value: object, minimum: int = 0) -> int:
    """Return an offset to look for; refuse one that no store could contain."""
    number = whole_number(field, value, minimum=minimum)
    refusal = check_offset(max(number, 0), field)
    if refusal is not None:
        raise error_of(refusal)
    return number
