"""What a client makes of the answers to its commands about work; nothing here waits.

Promised: an offset is relied on only for as long as its TTL, counted from before the question was sent. What
was acquired, and is heard of too late, or never because its caller was cancelled or interrupted, is given
back in the background. Not promised: that, for a process that is killed, or a registrar that cannot be
reached; then the TTL ends it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec.structs import replace

from leasehold.client.inputs import text
from leasehold.client.session import AnySession
from leasehold.errors import ClientClosed, LeaseholdError
from leasehold.work.law.answers import Acquired, AcquireOutcome, Failed, Succeeded
from leasehold.work.law.commands import Fail, GiveBack, Succeed, TryAcquire

_Ended = TypeVar("_Ended", Succeeded, Failed)


class Hearing:
    """How one client hears of what it has acquired."""

    def __init__(self, session: AnySession) -> None:
        self._session = session

    def said(self, domain: object, request_id: str | None = None) -> dict[str, Any]:
        """Return what every command says."""
        return {
            "tenant": self._session.tenant,
            "request_id": self._session.ids.name() if request_id is None else text("request_id", request_id),
            "domain": text("domain", domain),
            "holder": self._session.holders.current(),
        }

    @contextmanager
    def or_given_back(self, command: TryAcquire | Succeed | Fail) -> Iterator[None]:
        """Give back what a command acquires whose caller is interrupted, and so never hears of it."""
        try:
            yield
        except BaseException as error:
            acquires = isinstance(command, TryAcquire) or command.hand_off
            if acquires and (isinstance(error, ClientClosed) or not isinstance(error, LeaseholdError)):
                said = self.said(command.domain)
                self._session.send_blindly(GiveBack(**said, acquired_by=command.request_key))
            raise

    def is_ours(self, acquired: Acquired, domain: str, sent_ns: int) -> bool:
        """Say whether to believe an answer; give back what was acquired if it has come too late for that."""
        is_acquired = acquired.outcome is AcquireOutcome.ACQUIRED
        if not is_acquired or not self._session.is_over(sent_ns, acquired.expires_in_ns):
            return True
        self.leave(domain, str(acquired.token))
        return False

    def handed_off(self, ended: _Ended, domain: str, sent_ns: int) -> _Ended:
        """Return how an offset has ended, without what was handed off if that may be over by now."""
        if ended.acquired is None or self.is_ours(ended.acquired, domain, sent_ns):
            return ended
        return replace(ended, acquired=None)

    def leave(self, domain: str, token: str) -> None:
        """Give an offset back without waiting for that."""
        self._session.send_blindly(GiveBack(**self.said(domain), token=token))

    def tell_success(self, domain: str, token: str, request_id: str) -> None:
        """Say that an offset is processed without waiting for that; one request is carried out once."""
        self._session.send_blindly(Succeed(**self.said(domain, request_id), token=token))
