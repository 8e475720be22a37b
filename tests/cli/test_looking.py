import signal

from tests.cli.shell import Shell, until


def test_ls_lists_what_stands_in_aligned_columns(shell: Shell) -> None:
    assert shell.run("acquire", "cameras/1", "--holder", "ann").code == 0
    shell.run("acquire", "doors/1", "--holder", "ben", "--mode", "shared")
    header, *rows = shell.run("ls").out.splitlines()
    assert header.split() == ["RESOURCE", "HOLDER", "MODE", "STATE", "TOKEN", "EXPIRES", "LEASE"]
    assert [row.split()[:4] for row in rows] == [
        ["cameras/1", "ann", "exclusive", "active"],
        ["doors/1", "ben", "shared", "active"],
    ]
    for heading, cell in (("HOLDER", "ann"), ("MODE", "exclusive"), ("LEASE", rows[0].split()[-1])):
        assert header.index(heading) == rows[0].index(cell)
    assert [line.split()[0] for line in shell.run("ls", "doors/").out.splitlines()[1:]] == ["doors/1"]
    assert [line.split()[0] for line in shell.run("ls", "--holder", "ann").out.splitlines()[1:]] == [
        "cameras/1"
    ]
    assert shell.run("ls", "nothing").out == "no leases\n"


def test_ls_goes_by_the_clock_and_not_by_what_was_recorded(shell: Shell) -> None:
    with shell.client() as client:
        client.acquire("over", ttl=0.2).detach()
        client.acquire("revoked").release()
        client.acquire("stands", ttl=60).detach()
        until(lambda: not client.inspect("over"))

    def resources(*options: str) -> list[str]:
        return [lease["resource"] for lease in shell.json("ls", *options)["leases"]]

    assert resources() == ["stands"]
    assert resources("--state", "expired") == ["over"]
    assert resources("--state", "Expired", "--state", "released") == ["over", "revoked"]
    assert resources("--all") == ["over", "revoked", "stands"]
    states = [line.split()[3] for line in shell.run("ls", "--all").out.splitlines()[1:]]
    assert states == ["expired", "released", "active"]


def test_ls_can_be_read_page_by_page(shell: Shell) -> None:
    with shell.client() as client:
        for number in range(5):
            client.acquire(f"r{number}", ttl=60).detach()
    first = shell.json("ls", "--limit", "2")
    assert [lease["resource"] for lease in first["leases"]] == ["r0", "r1"]
    last = shell.json("ls", "--limit", "3", "--after", first["next"])
    assert [lease["resource"] for lease in last["leases"]] == ["r2", "r3", "r4"]
    assert last["next"] is None
    assert f"go on with --after {first['next']}" in shell.run("ls", "--limit", "2").out


def test_show_tells_who_holds_a_resource(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann", "--ttl", "5m", "--metadata", "why=test")
    text = shell.run("show", "door").out
    facts = {line[2:].split("  ")[0]: line[2:].split("  ")[-1].strip() for line in text.splitlines()[1:]}
    assert text.startswith("door is held\n")
    assert facts["holder"] == "ann"
    assert facts["renewals"] == "0"
    assert facts["metadata"] == "why=test"
    assert facts["until"].endswith("(in 4m59s)") or facts["until"].endswith("(in 5m)")
    assert {"since", "token", "lease", "ttl"} <= facts.keys()
    shown = shell.json("show", "door")
    assert (shown["kind"], shown["held"], len(shown["leases"])) == ("resource", True, 1)


def test_show_tells_everything_about_a_lease_also_when_it_is_over(shell: Shell) -> None:
    lease = shell.json("acquire", "door", "--holder", "ann", "--max-renewals", "5")["lease_id"]
    shell.run("renew", lease, "--holder", "ann")
    shell.run("revoke", lease, "--reason", "stuck", "--operator", "boss")
    text = shell.run("show", lease).out
    assert "by boss: stuck" in text
    assert "1 of at most 5, last " in text
    assert [line.split()[3] for line in text.split("\n\n")[1].splitlines()[1:]] == [
        "issued",
        "renewed",
        "revoked",
    ]
    shown = shell.json("show", lease)
    assert shown["kind"] == "lease"
    assert shown["lease"]["state"] == "revoked"
    assert [entry["type"] for entry in shown["history"]] == ["lease.issued", "lease.renewed", "lease.revoked"]


def test_show_of_a_free_resource_is_no_error(shell: Shell) -> None:
    shell.run("acquire", "door")
    assert shell.run("show", "window").out == "nobody holds window\n"
    assert shell.json("show", "window") == {
        "kind": "resource",
        "resource": "window",
        "held": False,
        "leases": [],
    }


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
