import signal

from leasehold.client.inputs import event_type
from leasehold.registry import FAMILIES
from tests.cli.shell import Shell


def test_history_tells_what_happened_in_order_and_can_be_narrowed(shell: Shell) -> None:
    lease = shell.json("acquire", "door", "--holder", "ann")["lease_id"]
    shell.run("renew", lease, "--holder", "ann")
    shell.run("acquire", "gate", "--holder", "ben")
    shell.run("revoke", lease, "--reason", "stuck", "--operator", "boss")
    header, *rows = shell.run("history").out.splitlines()
    assert header.split() == ["#", "WHEN", "WHAT", "RESOURCE", "HOLDER", "TOKEN", "DETAILS"]
    assert [row.split()[3] for row in rows] == ["issued", "renewed", "issued", "revoked"]
    assert rows[-1].endswith(f"lease {lease} by boss (stuck)")

    def types(*options: str) -> list[str]:
        return [entry["type"] for entry in shell.run("history", "--json", *options).json_lines]

    assert types("door") == ["lease.issued", "lease.renewed", "lease.revoked"]
    assert types("--holder", "ben") == ["lease.issued"]
    assert types("--lease", lease, "--type", "issued", "--type", "lease.revoked") == [
        "lease.issued",
        "lease.revoked",
    ]
    assert types("--limit", "2") == ["lease.issued", "lease.renewed"]
    assert shell.run("history", "nothing").out == "nothing happened\n"


def test_history_can_be_narrowed_to_events_of_every_family(shell: Shell) -> None:
    shell.run("acquire", "./door", "--holder", "ann")
    shell.run("guard", "./door", "--bypass", "it burns", "--holder", "ben")
    told = shell.run("history", "--help").out
    for family in FAMILIES:
        assert family.name in told
        for event in family.events:
            kind = str(event.__struct_config__.tag)
            assert event_type("type", kind) == kind

    found = shell.run("history", "--json", "--type", "guard.bypassed").json_lines

    assert [entry["type"] for entry in found] == ["guard.bypassed"]
    refused = shell.run("history", "--type", "guard.bypast", code=2).err
    assert "issued" in refused
    assert "guard.bypassed" in refused


def test_history_as_json_has_a_stable_shape(shell: Shell) -> None:
    lease = shell.json("acquire", "door", "--holder", "ann", "--ttl", "90", "--metadata", "a=b")
    (entry,) = shell.run("history", "--json").json_lines
    assert len(entry.pop("hash")) == 64
    assert entry.pop("at") == lease["issued_at"]
    assert entry.pop("tick") > 0
    assert entry == {
        "position": 2, "type": "lease.issued", "era": 1, "actor": "ann", "lease_ids": [lease["lease_id"]],
        "tenant": "default", "lease_id": lease["lease_id"], "resource": "door", "holder": "ann",
        "token": lease["token"], "mode": "exclusive", "ttl": 90.0, "max_renewals": -1, "adopted_from": None,
        "survives_reboot": True, "metadata": {"a": "b"}, "config_version": "", "zone_version": "",
        "delegation": None,
        "lock_delay": 0.0, "claim_window": 0.0, "group": [], "delayed_for": None,
    }  # fmt: skip
    assert shell.run("history", "--after", "2", "--json").out == ""


def test_long_histories_are_printed_whole(shell: Shell) -> None:
    with shell.client() as client:
        lease = client.acquire("door", ttl=60)
        for _ in range(1_100):
            lease.renew()
        lease.detach()
    assert len(shell.run("history").out.splitlines()) == 1_102
    assert len(shell.run("history", "--json", "--limit", "1050").json_lines) == 1_050


def test_watch_follows_until_it_is_interrupted(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    as_json = shell.start("watch", "--json", "--after", "0", "--resource", "door")
    for_people = shell.start("watch", "--after", "0", "--holder", "ann")
    assert for_people.line().split()[0] == "#"
    assert '"lease.issued"' in as_json.line()
    assert "issued" in for_people.line()
    shell.run("acquire", "gate", "--holder", "ben")
    shell.run("release", "--all", "--holder", "ann")
    assert '"lease.released"' in as_json.line()
    assert "released" in for_people.line()
    for watching in (as_json, for_people):
        watching.send(signal.SIGINT)
        result = watching.end()
        assert (result.code, result.out, result.err) == (130, "", "")


def test_watch_keeps_apart_what_is_wider_than_its_column(shell: Shell) -> None:
    shell.run("work", "acquire", "orders", "41", "--as", "ann")
    watching = shell.start("watch", "--after", "0", "--holder", "ann")
    watching.line()
    assert "work.acquired" in watching.line().split()
    watching.send(signal.SIGINT)
    assert watching.end().code == 130


def test_history_shows_no_token_of_those_who_wait_and_no_reason_twice(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    shell.run("acquire", "door", "--holder", "ben", "--wait", "10ms", code=75)
    key = shell.json("access", "create", "holder")["key_id"]
    shell.run("access", "revoke", key, "--reason", "laptop stolen")
    rows = shell.run("history").out.splitlines()[1:]
    assert [row.split()[6] for row in rows if row.split()[3] in ("queued", "left")] == ["-", "-"]
    assert rows[-1].count("laptop stolen") == 1


def test_a_domain_of_work_whose_name_a_shell_would_split_is_told_in_quotes(shell: Shell) -> None:
    shell.run("work", "acquire", "my orders", "7")
    told = shell.run("history", "my orders").err
    assert "leasehold history --domain 'my orders'" in told
