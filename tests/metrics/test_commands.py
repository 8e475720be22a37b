"""`leasehold metrics`, as a user at a shell would use it."""

from tests.cli.shell import Shell


def test_metrics_are_printed_for_prometheus_and_as_json(shell: Shell) -> None:
    shell.run("acquire", "a", "--holder", "ann")
    text = shell.run("metrics").out
    assert '\nleasehold_active_leases{tenant="default",agent="ann"} 1\n' in text
    assert '\nleasehold_acquired_total{tenant="default"} 1\n' in text
    found = shell.json("metrics")
    assert found["happened"]["acquired"] == 1
    assert found["holders"]["ann"]["leases"] == 1


def test_without_a_store_there_is_nothing_to_measure(shell: Shell) -> None:
    assert "there is no store" in shell.run("metrics", code=1).err
