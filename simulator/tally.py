"""What has happened in simulated worlds, counted.

A simulator that has become tame still reports that all is well. So everything that is meant to happen has
its name here, and the tests see to it that each of them does.
"""

from collections import Counter

FAULTS = (
    "request lost",
    "request delayed",
    "request duplicated",
    "reply lost",
    "reply delayed",
    "reply duplicated",
    "engine crashed before its batch",
    "engine crashed between commit and reply",
    "engine stalled",
    "another engine came in between",
    "store was busy",
    "store met a conflict",
    "store rejected a batch",
    "store was full",
    "store failed before the commit",
    "store failed after the commit",
    "failed commit came to light after a reboot",
    "commit took long",
    "holder paused",
    "holder paused beyond its lease",
    "holder died",
    "holder came back under its name",
    "two incarnations at once",
    "act arrived late",
    "request id used again",
    "ring lost",
    "bell rang for nothing",
    "look taken in late",
    "waiter stopped asking",
    "wait cancelled",
    "wait timed out",
    "wall clock jumped",
    "authority clock went back",
    "machine rebooted",
    "power cut lost history",
    "restored from a backup",
    "key rotated",
    "file copied",
    "file copied and machine rebooted",
    "registrar was down",
    "history to be pruned",
    "tables damaged and rebuilt",
)
"""What goes wrong."""

OUTCOMES = (
    "granted exclusive",
    "granted shared",
    "granted by adoption",
    "granted where a lease had expired",
    "grant repeated",
    "grant repeated after its end",
    "refused HELD",
    "refused ALREADY_HELD",
    "refused LEASE_EXISTS",
    "refused LEASE_NOT_FOUND",
    "refused LEASE_TERMINAL",
    "refused LEASE_EXPIRED",
    "refused NOT_HOLDER",
    "refused RENEWALS_EXHAUSTED",
    "refused RENEWAL_DOES_NOT_EXTEND",
    "refused LIMIT_EXCEEDED",
    "refused INVALID_INPUT",
    "renewed one",
    "renewed many",
    "renewal repeated",
    "released",
    "released already",
    "end repeated",
    "revoked by an operator",
    "revoked by a reboot",
    "expired",
    "rearmed",
    "swept",
    "epoch raised: reboot",
    "epoch raised: reboot, copied",
    "epoch raised: clock went back",
    "epoch raised: clock went back, copied",
    "epoch raised: copied",
    "epoch raised: restored",
    "granted with a budget",
    "derived",
    "derived from a child",
    "spent",
    "spending repeated",
    "reclaimed",
    "fell with its parent",
    "child was over: renew",
    "child was over: spend",
    "child was over: derive",
    "refused NOTHING_GRANTED",
    "refused SCOPE_EXCEEDED",
    "refused BUDGET_EXCEEDED",
    "refused BUDGET_EXHAUSTED",
    "refused OUTLIVES_PARENT",
    "key.enrolled",
    "key.retired",
    "lapsed while the registrar was down",
    "kept closed after an outage",
    "came back after an outage",
    "store failed, outcome known",
    "store failed, outcome unknown",
    "request answered after a retry",
    "request given up",
    "reply came too late",
    "lease lost: window closed",
    "lease lost: refused",
    "act accepted",
    "stale act accepted",
    "stale act refused",
    "two trusted at once: revoked",
    "two trusted at once: adopted",
    "two trusted at once: parent ended",
    "two trusted at once: forgotten",
    "request repeated after it was forgotten",
    "history pruned",
    "leases let go of",
    "certificate issued",
    "certificate refused",
    "certificate let in",
    "certificate let in after its lease had ended",
    "stale certificate refused",
    "expired certificate refused",
    "certificate of another time",
    "certificate of a retired key refused",
    "forged certificate refused",
    "waited",
    "waiter rung for",
    "lease won by looking",
    "queued",
    "left",
    "confirmed",
    "mode changed",
    "upgrade queued",
    "upgrade left",
    "doubted",
    "deadlock prevented",
    "refused DEADLOCK",
    "refused ALREADY_WAITING",
    "refused LEASE_PENDING",
)
"""What comes of it."""

_KNOWN = frozenset((*FAULTS, *OUTCOMES))


class Tally:
    """Counts of what has happened, by name."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def note(self, name: str, times: int = 1) -> None:
        """Count something that happened."""
        if name not in _KNOWN:
            raise KeyError(f"{name!r} is not among what is meant to happen")
        self.counts[name] += times

    def missing(self) -> list[str]:
        """Return what was meant to happen and did not."""
        return [name for name in (*FAULTS, *OUTCOMES) if not self.counts[name]]

    def lines(self) -> list[str]:
        """Return one line for each thing that can happen, faults first."""
        return [f"{self.counts[name]:>10,}  {name}" for name in (*FAULTS, *OUTCOMES)]
