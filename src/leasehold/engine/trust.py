"""How long a holder may believe in its lease without hearing from the registrar.

The registrar answers a grant or renewal with how long it is good for. The holder counts that from *before
it sent the request*, on a clock that also runs while the machine sleeps, and stops a little early: the two
clocks may run at slightly different rates, and acting takes time. So the holder's belief always ends
before the registrar gives the resource to somebody else, however slowly the answer travelled.
"""

import msgspec

PARTS_PER_MILLION = 1_000_000


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """How careful a holder is."""

    drift_ppm: int = 1_000
    """How much slower than the registrar's the holder's clock may run, in parts per million."""
    margin_ns: int = 1_000_000
    """Time kept in reserve between the last check of the lease and the act it permits."""

    def deadline_ns(self, sent_ns: int, expires_in_ns: int) -> int:
        """Return when, on the holder's clock, belief in a lease ends."""
        drift_ns = expires_in_ns * self.drift_ppm // PARTS_PER_MILLION
        return sent_ns + max(0, expires_in_ns - drift_ns - self.margin_ns)
