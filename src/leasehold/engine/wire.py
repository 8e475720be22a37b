"""How everything that crosses a desk is spelled on a wire, in both directions: as JSON.

A request carries items: a command, a question, or a call about a job each. A reply carries their outcomes, in
the same order: an `answer`, a `refusal`, or a `failure` each. A reply names the request that it answers, so
that nobody takes one that was meant for somebody else for its own.

A wire is made for certain families, questions and jobs. Everything else is refused, one item at a time: what
one caller has misspelled touches no other's item.

Promised: what is read is equal to what was spelled, or `Garbled` is raised. An entry of the ledger crosses as
the bytes that its hash covers, and its event is read from them. Not crossing: the exception inside a failure.
"""

from collections.abc import Iterable, Sequence
from functools import cache, reduce
from operator import or_
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from leasehold.engine.desk import Failure, JobStatus, Outcome
from leasehold.engine.jobs import Job
from leasehold.engine.questions import Followed, FollowLedger, Question, ReadLedger, answer_type
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.commands import Command, Sweep, SweepDue
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.refusals import Refusal

ITEMS_MAXIMUM = 1_000
"""How many items one request may carry."""


class Garbled(ValueError):
    """What has arrived cannot be read."""


class StartJob(Struct, frozen=True, kw_only=True):
    """Begin a job, unless it was begun already."""

    job_id: str
    job: Job


class FindJob(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Ask how a job stands: once it has ended, or done another amount than `seen`, or time is up."""

    job_id: str
    seen: int | None = None
    timeout: float = 0.0


class CancelJob(Struct, frozen=True, kw_only=True):
    """Let a job end before its next step."""

    job_id: str


Item = Command | Question[Any] | StartJob | FindJob | CancelJob


class _Request(Struct, frozen=True, kw_only=True):
    id: str
    items: list[Raw]


class _Reply(Struct, frozen=True, kw_only=True):
    id: str
    outcomes: list[Raw]


class _SpelledStart(Struct, frozen=True, kw_only=True):
    job_id: str
    job: Raw


class _SpelledEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry on its way: its event is in its body."""

    position: int
    body: bytes
    hash: bytes
    seal: bytes | None = None


class _SpelledFollowed(Struct, frozen=True, kw_only=True):
    entries: list[_SpelledEntry]
    end: int


class _SpelledStatus(Struct, frozen=True, kw_only=True):
    """How a job stands, on its way: what its result is of, the job says."""

    job_id: str
    job: Raw
    done: int = 0
    total: int = 0
    result: Raw = Raw(b"null")
    failure: Failure | None = None


_UNREADABLE = (ValueError, RecursionError)
"""What reading raises: msgspec's own errors are of the first kind."""

_spell = msgspec.json.Encoder(enc_hook=str).encode
_read_request = msgspec.json.Decoder(_Request).decode
_read_reply = msgspec.json.Decoder(_Reply).decode


def spell_request(request_id: str, items: Sequence[bytes]) -> bytes:
    """Put spelled items into one request."""
    return b'{"id":%s,"items":[%s]}' % (_spell(request_id), b",".join(items))


def read_request(body: bytes | bytearray) -> tuple[str, list[Raw]]:
    """Return the id of a request, and its items as they are spelled."""
    try:
        request = _read_request(body)
    except _UNREADABLE as error:
        raise Garbled(f"the request cannot be read: {error}") from error
    if not 1 <= len(request.items) <= ITEMS_MAXIMUM:
        raise Garbled(f"a request has from 1 to {ITEMS_MAXIMUM} items, and this one {len(request.items)}")
    return request.id, request.items


def spell_reply(request_id: str, outcomes: Sequence[bytes]) -> bytes:
    """Put spelled outcomes into the reply to a request."""
    return b'{"id":%s,"outcomes":[%s]}' % (_spell(request_id), b",".join(outcomes))


def read_reply(body: bytes | bytearray, request_id: str, count: int) -> list[Raw]:
    """Return the outcomes, as they are spelled, in the reply to a request with so many items."""
    try:
        reply = _read_reply(body)
    except _UNREADABLE as error:
        raise Garbled(f"the reply cannot be read: {error}") from error
    if reply.id != request_id:
        raise Garbled("the reply is to another request")
    if len(reply.outcomes) != count:
        raise Garbled(f"the reply has {len(reply.outcomes)} outcomes, and {count} were asked for")
    return reply.outcomes


class Wire:
    """Spells and reads what crosses a desk."""

    def __init__(
        self, families: Families, questions: Iterable[type[Question[Any]]], jobs: Iterable[type[Job]]
    ) -> None:
        self._families = families
        commands = reduce(or_, families.of_command, Sweep | SweepDue)
        item = msgspec.defstruct(
            "Item",
            [
                ("command", commands | UnsetType, UNSET),
                ("question", reduce(or_, questions) | UnsetType, UNSET),
                ("start_job", _SpelledStart | UnsetType, UNSET),
                ("find_job", FindJob | UnsetType, UNSET),
                ("cancel_job", CancelJob | UnsetType, UNSET),
            ],
            kw_only=True,
            forbid_unknown_fields=True,
        )
        self._items: msgspec.json.Decoder[Any] = msgspec.json.Decoder(item)
        self._jobs: msgspec.json.Decoder[Job] = msgspec.json.Decoder(reduce(or_, jobs))

    def spell(self, item: Item) -> bytes:
        """Spell one item of a request; raise UnicodeEncodeError if it holds what is not text."""
        return b'{"%s":%s}' % (_kind_of(item), _spell(item))

    def read(self, item: bytes | Raw) -> Item:
        """Return one item of a request."""
        try:
            read = self._items.decode(item)
            said = [given for given in msgspec.structs.astuple(read) if given is not UNSET]
            if len(said) != 1:
                raise Garbled("an item is one command, question, or call about a job")
            (found,) = said
            if isinstance(found, _SpelledStart):
                return StartJob(job_id=found.job_id, job=self._jobs.decode(found.job))
        except _UNREADABLE as error:
            raise Garbled(f"the item cannot be read: {error}") from error
        known: Item = found
        return known

    def spell_outcome(self, outcome: Outcome) -> bytes:
        """Spell what became of an item: an answer of any type, a `Refusal`, or a `Failure`."""
        match outcome:
            case Refusal():
                return b'{"refusal":%s}' % _spell(outcome)
            case Failure():
                return b'{"failure":%s}' % _spell(_without_cause(outcome))
            case JobStatus(failure=Failure() as failure):
                return b'{"answer":%s}' % _spell(replace(outcome, failure=_without_cause(failure)))
            case Followed():
                followed = _SpelledFollowed(entries=_spelled(outcome.entries), end=outcome.end)
                return b'{"answer":%s}' % _spell(followed)
            case [Entry(), *_]:
                return b'{"answer":%s}' % _spell(_spelled(outcome))
            case _:
                return b'{"answer":%s}' % _spell(outcome)

    def read_outcome(self, item: Item, outcome: bytes | Raw) -> Outcome:
        """Return what became of an item, read as what such an item may be answered."""
        try:
            read = _outcomes(type(item)).decode(outcome)
            said = [given for given in msgspec.structs.astuple(read) if given is not UNSET]
            if len(said) != 1:
                raise Garbled("an outcome is one answer, refusal or failure")
            (found,) = said
            match found:
                case _SpelledStatus():
                    return self._status(found)
                case _SpelledFollowed():
                    return Followed(entries=self._entries(found.entries), end=found.end)
                case [_SpelledEntry(), *_]:
                    return self._entries(found)
                case _:
                    return found
        except _UNREADABLE as error:
            raise Garbled(f"the outcome cannot be read: {error}") from error

    def _status(self, spelled: _SpelledStatus) -> JobStatus:
        job, result = self._jobs.decode(spelled.job), None
        if bytes(spelled.result) != b"null":
            result = msgspec.json.decode(spelled.result, type=type(job).result)
        return JobStatus(
            job_id=spelled.job_id,
            job=job,
            done=spelled.done,
            total=spelled.total,
            result=result,
            failure=spelled.failure,
        )

    def _entries(self, spelled: list[_SpelledEntry]) -> list[Entry]:
        return [
            Entry(
                position=one.position,
                event=self._families.decode_event(one.body),
                body=one.body,
                hash=one.hash,
                seal=one.seal,
            )
            for one in spelled
        ]


def _kind_of(item: Item) -> bytes:
    match item:
        case Command():
            return b"command"
        case Question():
            return b"question"
        case StartJob():
            return b"start_job"
        case FindJob():
            return b"find_job"
        case CancelJob():
            return b"cancel_job"


@cache
def _outcomes(kind: type[Item]) -> msgspec.json.Decoder[Any]:
    """Return what reads the outcomes of one kind of item."""
    fields: list[tuple[str, Any, Any]] = [
        ("answer", _answer_of(kind) | UnsetType, UNSET),
        ("failure", Failure | UnsetType, UNSET),
    ]
    if issubclass(kind, Command):
        fields.append(("refusal", Refusal | UnsetType, UNSET))
    outcome = msgspec.defstruct("Outcome", fields, kw_only=True, forbid_unknown_fields=True)
    return msgspec.json.Decoder(outcome)


def _answer_of(kind: type[Item]) -> Any:
    """Return the type that an answer to such an item is spelled as."""
    if issubclass(kind, ReadLedger):
        return list[_SpelledEntry]
    if issubclass(kind, FollowLedger):
        return _SpelledFollowed
    if issubclass(kind, Command):
        return kind.answer
    if issubclass(kind, Question):
        return answer_type(kind)
    return _SpelledStatus


def _spelled(entries: list[Entry]) -> list[_SpelledEntry]:
    return [
        _SpelledEntry(position=one.position, body=one.body, hash=one.hash, seal=one.seal) for one in entries
    ]


def _without_cause(failure: Failure) -> Failure:
    return failure if failure.cause is None else replace(failure, cause=None)
