"""The text that Prometheus reads."""

import re

from leasehold.metrics.tally import OTHERS, Holding, Tally
from leasehold.metrics.text import prometheus_text

KINDS = ("acquired", "renewed", "released", "expired", "revoked", "waited", "timed_out", "gave_up")
SAMPLE = re.compile(
    r'([a-z_]+)\{([a-z]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z]+="(?:[^"\\\n]|\\[\\"n])*")*)\} ([0-9.]+)'
)

TALLY = Tally(
    holders={
        'a "b" \\c\nd': Holding(leases=2, longest_held=1.5),
        OTHERS: Holding(leases=7, longest_held=90.0),
    },
    waiting=3,
    happened={kind: number for number, kind in enumerate(KINDS)},
)


def test_every_line_is_a_comment_or_a_sample_of_a_metric_that_was_introduced() -> None:
    introduced = set()
    for line in prometheus_text(TALLY, "default").splitlines():
        if line.startswith("# TYPE "):
            introduced.add(line.split()[2])
            assert line.split()[3] in ("gauge", "counter")
        elif not line.startswith("# HELP "):
            sample = SAMPLE.fullmatch(line)
            assert sample is not None, line
            assert sample[1] in introduced
    assert prometheus_text(TALLY, "default").endswith("\n")


def test_names_are_escaped_and_others_are_counted_together() -> None:
    text = prometheus_text(TALLY, "de\\fault")
    assert 'leasehold_active_leases{tenant="de\\\\fault",agent="a \\"b\\" \\\\c\\nd"} 2\n' in text
    assert 'leasehold_longest_held_seconds{tenant="de\\\\fault",agent="(others)"} 90.000\n' in text
    assert 'leasehold_timed_out_total{tenant="de\\\\fault"} 6\n' in text
    assert 'leasehold_waiting_claims{tenant="de\\\\fault"} 3\n' in text
