"""A tally in the text format that Prometheus reads, version 0.0.4."""

from collections.abc import Iterator

from leasehold.metrics.tally import OTHERS, Tally

_HAPPENED = {
    "acquired": "Leases that were granted.",
    "renewed": "Renewals of leases.",
    "released": "Leases that their holders gave back.",
    "expired": "Leases whose expiry was recorded (cleanup).",
    "revoked": "Leases that an operator ended.",
    "waited": "Claims that had to wait.",
    "timed_out": "Waits that were given up by their owners, mostly because time was up.",
    "gave_up": "Waits that ended because nothing was heard of their owners, or for a deadlock.",
}


def prometheus_text(tally: Tally, tenant: str) -> str:
    """Return the metrics of one tenant."""
    return "".join(f"{line}\n" for line in _lines(tally, f'tenant="{_escaped(tenant)}"'))


def _lines(tally: Tally, tenant: str) -> Iterator[str]:
    yield from _head("leasehold_active_leases", "gauge", "Leases that are held now, by agent (holder).")
    for holder, holding in tally.holders.items():
        yield f'leasehold_active_leases{{{tenant},agent="{_agent(holder)}"}} {holding.leases}'
    yield from _head(
        "leasehold_longest_held_seconds", "gauge", "Age of the oldest lease that is held, by agent."
    )
    for holder, holding in tally.holders.items():
        labels = f'{tenant},agent="{_agent(holder)}"'
        yield f"leasehold_longest_held_seconds{{{labels}}} {holding.longest_held:.3f}"
    yield from _head("leasehold_waiting_claims", "gauge", "Claims that wait now.")
    yield f"leasehold_waiting_claims{{{tenant}}} {tally.waiting}"
    for kind, help_text in _HAPPENED.items():
        name = f"leasehold_{kind}_total"
        yield from _head(name, "counter", help_text)
        yield f"{name}{{{tenant}}} {tally.happened[kind]}"


def _head(name: str, kind: str, help_text: str) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"


def _agent(holder: str) -> str:
    return "(others)" if holder == OTHERS else _escaped(holder)


def _escaped(text: str) -> str:
    """Return a text as a label. What is not printable is spelled out: the text may go to a terminal."""
    text = "".join(one if one.isprintable() or one == "\n" else f"\\u{ord(one):04x}" for one in text)
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
