"""Who asks: the caller that a request's access key stands for.

`Authorization: Bearer lh_…` is the only way to show a key. Who shows none gets nothing, except on a server
that was told to let anybody in: that one listens on loopback only, and answers only requests that were meant
for it, so that no page in a browser can speak to it under another name.

What a key may do is not decided here, but with every command and question, against the key's state then. This
only finds out which key it is, and remembers that for a while: who was let in by a key that is revoked or
rotated meanwhile gets nothing any more. And it says how often a key may ask: each has a bucket that fills at
a steady rate, and a request takes one out.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256

from leasehold.enforcing.asgi import Scope
from leasehold.errors import NotAuthenticated, RateLimited
from leasehold.kernel.ledger.commands import LOCAL, Caller
from leasehold.server.configuration import is_loopback

CALLER = "leasehold.caller"
"""Where the caller is in the scope of its request."""

_GOOD_SECONDS = 10.0
"""How long it is remembered who shows a text."""
_CALLERS_MAXIMUM = 10_000
"""How many texts and buckets are remembered; a bucket that nobody has used for so long was full."""

Authenticate = Callable[[str], Caller | None]
"""Returns the caller that the text of an access key stands for; None if it is no key, or not any more."""


class Identity:
    """Finds out who asks, and how often it may."""

    def __init__(
        self,
        authenticate: Authenticate,
        *,
        per_second: float,
        burst: int,
        is_anonymous_allowed: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._authenticate = authenticate
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()
        """Who shows a text, by its digest, and until when that is believed."""
        self._buckets = Buckets(per_second=per_second, burst=burst, clock=clock)
        self._is_anonymous_allowed = is_anonymous_allowed

    def caller_of(self, scope: Scope) -> Caller:
        """Return who sends a request; raise NotAuthenticated, or RateLimited if it asks too often.

        It is found out once for each request, and remembered in its scope.
        """
        known: Caller | None = scope.get(CALLER)
        if known is None:
            known = scope[CALLER] = self._find(scope)
        return known

    def _find(self, scope: Scope) -> Caller:
        headers = {name: value for name, value in scope["headers"] if name in _HEADERS}
        text = _shown_key(headers.get(b"authorization"))
        if text is None:
            if not self._is_anonymous_allowed or not _is_meant_for_loopback(headers):
                raise NotAuthenticated(
                    "show an access key: `Authorization: Bearer lh_…`, or with leasehold's own client "
                    "$LEASEHOLD_API_KEY; an administrator makes one with `leasehold access create`"
                )
            return LOCAL
        caller = self._bearer(text)
        if caller is None:
            raise NotAuthenticated(
                "this access key is not known, or not any more; ask an administrator for another one"
            )
        self._buckets.take(caller.access)
        return caller

    def _bearer(self, text: str) -> Caller | None:
        """Return who shows the text of a key; None if no key has it."""
        digest = sha256(text.encode()).digest()
        caller, good_until = self._known.get(digest, (None, 0.0))
        if caller is not None and self._clock() < good_until:
            return caller
        self._known.pop(digest, None)
        caller = self._authenticate(text)
        if caller is not None:
            self._known[digest] = (caller, self._clock() + _GOOD_SECONDS)
            if len(self._known) > _CALLERS_MAXIMUM:
                self._known.popitem(last=False)
        return caller


_HEADERS = frozenset({b"authorization", b"host", b"origin"})


def _shown_key(header: bytes | None) -> str | None:
    """Return the text of the key that a request shows; None: it shows none."""
    if header is None:
        return None
    scheme, _, text = header.partition(b" ")
    if scheme.lower() != b"bearer" or not text.strip():
        raise NotAuthenticated("show an access key as `Authorization: Bearer lh_…`; nothing else is taken")
    return text.strip().decode("latin-1")


def _is_meant_for_loopback(headers: dict[bytes, bytes]) -> bool:
    """Say whether a request was addressed to this machine, and by no page of another site."""
    places = [headers.get(b"host", b"").decode("latin-1")]
    if b"origin" in headers:
        places.append(headers[b"origin"].decode("latin-1").partition("://")[2])
    return all(is_loopback(_host_of(place)) for place in places)


def _host_of(place: str) -> str:
    if place.startswith("["):
        return place[1:].partition("]")[0]
    return place.partition(":")[0]


class Buckets:
    """How often each caller may still ask."""

    def __init__(self, *, per_second: float, burst: int, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By caller: what was left, and when that was. A caller that is not here has a full bucket."""

    def take(self, caller: str) -> None:
        """Take one from a caller's bucket; raise RateLimited if it is empty."""
        now = self._clock()
        left, then = self._left.pop(caller, (float(self._burst), now))
        left = min(float(self._burst), left + (now - then) * self._per_second)
        self._left[caller] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if len(self._left) > _CALLERS_MAXIMUM:
            self._left.popitem(last=False)
        if left < 1:
            raise RateLimited(
                f"this access key may ask {self._per_second:g} times a second; ask less often, "
                "or put more into one request",
                retry_after=(1 - left) / self._per_second,
            )
