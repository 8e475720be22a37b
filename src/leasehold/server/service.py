"""What all routes of one server share."""

import asyncio
from functools import partial

from leasehold.client.aio.listening import AsyncListeners
from leasehold.engine.desk import Desk
from leasehold.engine.registrar import Registrar
from leasehold.kernel.ledger.commands import Caller
from leasehold.registry import wire
from leasehold.server.answers import Answers
from leasehold.server.configuration import Configuration
from leasehold.server.desk_route import DeskRoute
from leasehold.server.identity import Authenticate, Identity
from leasehold.server.metered_desk import MeteredDesk
from leasehold.server.meters import Meters
from leasehold.server.recent import Recent
from leasehold.server.sessions import Sessions


class Service:
    """One registrar, for callers over HTTP. Made, and stopped, in the event loop that serves them."""

    def __init__(
        self,
        registrar: Registrar,
        configuration: Configuration,
        meters: Meters,
        authenticate: Authenticate,
    ) -> None:
        self.registrar = registrar
        self.configuration = configuration
        self.meters = meters
        self.answers = Answers(configuration.answers_maximum)
        self.identity = Identity(
            authenticate,
            per_second=configuration.requests_per_second,
            burst=configuration.requests_burst,
            is_anonymous_allowed=configuration.anonymous,
        )
        self.sessions = Sessions(self.desk_for, self.identity)
        self.desk_route = DeskRoute(
            registrar,
            wire(),
            caller_of=self.identity.caller_of,
            desk_for=self.desk_for,
            answers=self.answers,
            ping_seconds=configuration.ping_seconds,
        )
        self.listeners = AsyncListeners(registrar.bells)
        """Where claims wait that came by plain REST."""
        self.recent = Recent(registrar, self.desk_route.follower, self._wake_waiters)
        self.stopping = asyncio.Event()

    def desk_for(self, caller: Caller) -> Desk:
        """Return the desk of a caller, at which everything is counted."""
        refuse_more = partial(self.answers.refuse_more, caller.access)
        return MeteredDesk(self.registrar.for_caller(caller), self.meters, refuse_more)

    def _wake_waiters(self) -> None:
        """Let all who wait ask again: an access key has changed, and it may have been theirs."""
        self.registrar.bells.ring([listener.address for listener in list(self.listeners.waiting)])

    def stop(self) -> None:
        """End all streams and waits."""
        self.stopping.set()
        self.desk_route.stop()

    async def close(self) -> None:
        """Let go of everything, once nothing is under way any more."""
        await self.recent.close()
        await self.listeners.dismiss(1.0)
        self.desk_route.close()
        await asyncio.get_running_loop().run_in_executor(None, partial(self.registrar.close))
