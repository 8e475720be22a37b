"""metrics: what a monitoring system wants to know."""

from argparse import Namespace

from leasehold.cli.connecting import connected, tenant_named
from leasehold.cli.output import Output
from leasehold.cli.parser import Commands


def add_commands(commands: Commands) -> None:
    """Add the command of this module."""
    commands.add(
        "metrics",
        _metrics,
        "print metrics in the text format of Prometheus",
        details="""\
Active leases and the age of the oldest one by agent, waiting claims, and how often leases were granted,
renewed, released, expired (cleanup), revoked, waited for, and given up. Run it regularly, and let the
text-file collector of node_exporter read the result; `docs/how-to/monitor.md` has alert rules. Counting goes
on where the last run ended.

examples:
  leasehold metrics
  leasehold metrics > /var/lib/node_exporter/leasehold.prom.new
  leasehold metrics --json

exit codes: 0 done · 1 error · 2 wrong usage""",
    )


def _metrics(arguments: Namespace, out: Output) -> None:
    import msgspec

    from leasehold.metrics.text import prometheus_text

    with connected(arguments) as client:
        tally = client.tally()
    if out.as_json:
        out.json(msgspec.to_builtins(tally))
    else:
        for line in prometheus_text(tally, tenant_named(arguments)).removesuffix("\n").split("\n"):
            out.line(line)
