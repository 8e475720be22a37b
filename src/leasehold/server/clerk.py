"""Who has the items of a request carried out.

Items are answered one by one, in order: commands that follow one another are handed to the engine together,
which puts them into one batch with those of other requests; a question is asked when everything before it has
its outcome. What is wrong with one item touches no other.

Commands take no thread: their outcomes come back to the event loop, and wake it once for a whole batch.

A command of a remote caller is bound to nothing on this machine, and has nobody rung but its own client,
whatever it says.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from typing import Any

from msgspec import Raw
from msgspec.structs import fields, replace

from leasehold.engine.desk import DEFECT, Desk, Failure, JobStatus, Outcome
from leasehold.engine.questions import Question
from leasehold.engine.wire import CancelJob, FindJob, Garbled, Item, StartJob, Wire
from leasehold.errors import InvalidInput, LeaseholdError, LimitExceeded
from leasehold.kernel.ledger.commands import Caller, Command, Right
from leasehold.server.answers import Answers
from leasehold.server.doorbells import Doorbells
from leasehold.server.problems import ServerStopping, discreet

_THREADS = 16
"""How many questions are looked up at once."""
_NEWS_SECONDS = 30.0
"""How long a caller can wait for news of a job in one go."""
_LOOK_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.25)
"""How long to wait from one look at a job to the next; the last is for all further ones."""
_ANSWERS_BYTES = 64 << 20
"""How much is answered in one reply before further questions in it are put off: a request is small, and can
ask for a thousand pages. Commands are bounded by their number."""
_FULL = Failure.of(
    LimitExceeded(
        f"the answers before this one have more than {_ANSWERS_BYTES} bytes; ask this in another request",
        limit=_ANSWERS_BYTES,
    )
)

_logger = logging.getLogger(__name__)


class Clerk:
    """Has items carried out, at the desks of their callers."""

    def __init__(self, wire: Wire, doorbells: Doorbells, answers: Answers) -> None:
        self._wire = wire
        self._doorbells = doorbells
        self._answers = answers
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="leasehold-clerk")
        self._finished: deque[_Batch] = deque()
        self._is_rung_for = False
        self._is_closed = False

    async def carry_out(
        self, caller: Caller, desk: Desk, items: Sequence[Raw], take_in: Callable[[Item | Failure], None]
    ) -> list[bytes]:
        """Return the outcomes of items, as they are spelled; `take_in` is shown each item before."""
        with self._answers.of(caller.access) as hold:
            return await self._outcomes(caller, desk, items, take_in, hold)

    async def _outcomes(
        self,
        caller: Caller,
        desk: Desk,
        items: Sequence[Raw],
        take_in: Callable[[Item | Failure], None],
        hold: Callable[[int], None],
    ) -> list[bytes]:
        spell = self._wire.spell_outcome
        outcomes: list[bytes] = []
        size = 0
        commands: list[Command] = []
        for spelled in items:
            item = self._read(spelled)
            take_in(item)
            if isinstance(item, Command):
                commands.append(self._from_afar(caller, item))
                continue
            if commands:
                outcomes += map(spell, await self._run(desk, commands))
                commands = []
            if size > _ANSWERS_BYTES:
                item = _FULL
            outcomes.append(spell(item if isinstance(item, Failure) else await self._ask(desk, item)))
            size += len(outcomes[-1])
            hold(len(outcomes[-1]))
        if commands:
            outcomes += map(spell, await self._run(desk, commands))
        return outcomes

    async def aside(self, function: Callable[..., Any], *given: Any) -> Any:
        """Call something that blocks, without holding up the event loop."""
        if self._is_closed:
            raise ServerStopping("the server is being stopped; ask again when it is back")
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *given)

    def close(self) -> None:
        """Take no more questions."""
        self._is_closed = True
        self._threads.shutdown(wait=False)

    def _read(self, spelled: Raw) -> Item | Failure:
        try:
            return self._wire.read(spelled)
        except Garbled as error:
            return Failure.of(
                InvalidInput(f"{error}; is the client of another release than the server?", field="items")
            )

    def _from_afar(self, caller: Caller, command: Command) -> Command:
        """Return a command as it is run for a remote caller."""
        is_bound, wakes = _ties(type(command))
        if is_bound:
            command = replace(command, bound_to_boot=False)
        if wakes:
            command = replace(command, wake=self._doorbells.address_of(caller, command.wake))  # type: ignore[attr-defined]
        return command

    async def _run(self, desk: Desk, commands: list[Command]) -> list[Outcome]:
        """Run commands, and wait for all their outcomes; take back what the store's turn never came for."""
        batch = _Batch(len(commands), self._finish)
        calls = [_submit(desk, command, partial(batch.deliver, i)) for i, command in enumerate(commands)]
        with suppress(TimeoutError):
            async with asyncio.timeout(desk.timeout):
                await asyncio.shield(batch.done)
        if not batch.done.done():
            for number, call in enumerate(calls):
                if batch.outcomes[number] is None and call is not None:
                    busy = desk.withdraw(call)
                    if busy is not None:
                        batch.deliver(number, busy)
            await batch.done
        return [_discreet(outcome) for outcome in batch.outcomes]

    def _finish(self, batch: "_Batch") -> None:
        """Let a batch go on, from the thread that has its last outcome."""
        self._finished.append(batch)
        # In this order: the loop notes first that nobody has rung for it, and then takes what has arrived.
        if not self._is_rung_for:
            self._is_rung_for = True
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                batch.loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self._is_rung_for = False
        while self._finished:
            done = self._finished.popleft().done
            if not done.done():
                done.set_result(None)

    async def _ask(self, desk: Desk, item: Item) -> Outcome:
        try:
            return _discreet(await self._asked(desk, item))
        except Exception as error:
            return _discreet(Failure.of(error))

    async def _asked(self, desk: Desk, item: Item) -> Outcome:
        match item:
            case Question():
                return await self.aside(desk.ask, item)
            case StartJob():
                return await self.aside(desk.start_job, item.job_id, item.job)
            case FindJob():
                return await self._find_job(desk, item)
            case CancelJob():
                return await self.aside(desk.cancel_job, item.job_id)
            case _:
                raise TypeError(f"{type(item).__name__} is nothing that can be asked")

    async def _find_job(self, desk: Desk, item: FindJob) -> JobStatus:
        """Wait for news of a job without taking a thread for as long as that takes."""
        delays = deque(_LOOK_SECONDS)
        timeout = min(max(item.timeout, 0.0), _NEWS_SECONDS)  # not a number: no time at all
        deadline = asyncio.get_running_loop().time() + timeout
        while True:
            status: JobStatus = await self.aside(desk.find_job, item.job_id)
            is_new = status.is_finished or (item.seen is not None and status.done != item.seen)
            left = deadline - asyncio.get_running_loop().time()
            if is_new or not left > 0:
                return status
            await asyncio.sleep(min(left, delays.popleft() if len(delays) > 1 else delays[0]))


class _Batch:
    """Commands that were handed in together, and their outcomes."""

    def __init__(self, count: int, finish: "Callable[[_Batch], None]") -> None:
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.outcomes: list[Outcome] = [None] * count
        self._arrived: list[int] = []
        self._finish = finish

    def deliver(self, number: int, outcome: Outcome) -> None:
        """Take in an outcome, from whichever thread has it."""
        self.outcomes[number] = outcome
        self._arrived.append(number)
        # Appended before it is counted: of two threads, at least the later one sees that these are all.
        if len(self._arrived) == len(self.outcomes):
            self._finish(self)


def _submit(desk: Desk, command: Command, deliver: Callable[[Outcome], None]) -> Any:
    try:
        return desk.submit(command, deliver)
    except LeaseholdError as error:  # The registrar was closed.
        deliver(Failure.of(error))
        return None


@cache
def _ties(kind: type[Command]) -> tuple[bool, bool]:
    """Say whether such a command can be bound to this machine's boot, and whether it can have one woken."""
    names = {field.name for field in fields(kind)}
    return "bound_to_boot" in names, "wake" in names


def _discreet(outcome: Outcome) -> Outcome:
    """Tell a remote caller nothing of the server's inside."""
    match outcome:
        case Failure(code=code, cause=cause) if code == DEFECT:
            _logger.error("a defect was answered to a remote caller", exc_info=cause)
            return Failure(code=DEFECT, message="the server hit a defect; its log says more", is_unknown=True)
        case Failure(cause=LeaseholdError(path=str()) as error):
            return Failure.of(discreet(error))
        case JobStatus(failure=Failure() as failure, job=job) if (
            # Who may have files written on this machine names them, and hears what is wrong with them.
            failure.code == DEFECT or job.right is not Right.ADMINISTER
        ):
            return replace(outcome, failure=_discreet(failure))
        case _:
            return outcome
