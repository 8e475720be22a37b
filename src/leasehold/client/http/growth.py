"""Waiting for the ledger to grow, with one request for all who do.

The request waits at the server, and is sent again as long as anybody has waited here lately. It is answered
with where the ledger ends, which also answers whoever comes a moment later.
"""

import asyncio
import random
import time

import msgspec

from leasehold.client.http.exchange import Exchange, NotAnswered
from leasehold.client.http.line import Line
from leasehold.engine.news import News
from leasehold.errors import LeaseholdError

_ROUND_SECONDS = 20.0
_SPARE_SECONDS = 10.0
"""How much longer a reply may take than it has to."""
_LINGER_SECONDS = 5.0
_PAUSE_SECONDS = 0.1
_PAUSE_MAXIMUM_SECONDS = 2.0


class _Grown(msgspec.Struct, frozen=True):
    position: int


class Growth:
    """Knows where the ledger of one server ends, while anybody wants to know."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._news = News()
        self._known = 0
        self._error: LeaseholdError | None = None
        """Why nobody can wait here; to be raised once."""
        self._wanted_until = 0.0
        self._is_asking = False

    def wait(self, position: int, timeout: float) -> bool:
        """Return True once the ledger goes beyond `position`, or False after `timeout` seconds.

        A server that cannot be reached is waited for as well; one that refuses raises why.
        """
        self._wanted_until = time.monotonic() + timeout + _LINGER_SECONDS

        def is_over() -> bool:
            self._keep_asking()
            return self._known > position or self._error is not None

        grown = self._news.wait_for(is_over, timeout)
        error, self._error = self._error, None
        if error is not None:
            raise error
        return grown

    def _keep_asking(self) -> None:
        if self._is_asking or self._error is not None:
            return
        try:
            self._is_asking = True
            self._line.run(self._ask)
        except BaseException:  # Ctrl-C: the next one asks.
            self._is_asking = False
            raise

    async def _ask(self, exchange: Exchange) -> None:
        pause = _PAUSE_SECONDS
        try:
            while time.monotonic() < self._wanted_until:
                body = msgspec.json.encode({"position": self._known, "timeout": _ROUND_SECONDS})
                self._line.requests += 1
                try:
                    reply = await exchange.post(
                        "/v1/desk/wait", body, timeout=_ROUND_SECONDS + _SPARE_SECONDS
                    )
                    self._known = msgspec.json.decode(reply, type=_Grown).position
                    pause = _PAUSE_SECONDS
                    self._news.tell()
                except NotAnswered as trouble:
                    if not trouble.is_passing:
                        self._error = trouble.error
                        return
                    await asyncio.sleep(max(pause * random.uniform(0.5, 1.5), trouble.error.retry_after or 0))
                    pause = min(pause * 2, _PAUSE_MAXIMUM_SECONDS)
                except ValueError:  # Not what a server of ours says; whoever asks it something hears of that.
                    await asyncio.sleep(_PAUSE_MAXIMUM_SECONDS)
        finally:
            self._is_asking = False
            self._news.tell()
