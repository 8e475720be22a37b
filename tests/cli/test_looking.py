from leasehold.cli.output import width_of
from tests.cli.shell import Shell, until
from tests.engine.doubles import claim


def test_ls_lists_what_stands_in_aligned_columns(shell: Shell) -> None:
    assert shell.run("acquire", "camera-1", "--holder", "ann").code == 0
    shell.run("acquire", "door-1", "--holder", "ben", "--mode", "shared")
    header, *rows = shell.run("ls").out.splitlines()
    assert header.split() == ["RESOURCE", "HOLDER", "MODE", "STATE", "TOKEN", "EXPIRES", "LEASE"]
    assert [row.split()[:4] for row in rows] == [
        ["camera-1", "ann", "exclusive", "active"],
        ["door-1", "ben", "shared", "active"],
    ]
    for heading, cell in (("HOLDER", "ann"), ("MODE", "exclusive"), ("LEASE", rows[0].split()[-1])):
        assert header.index(heading) == rows[0].index(cell)
    assert [line.split()[0] for line in shell.run("ls", "door-").out.splitlines()[1:]] == ["door-1"]
    assert [line.split()[0] for line in shell.run("ls", "--holder", "ann").out.splitlines()[1:]] == [
        "camera-1"
    ]
    assert shell.run("ls", "nothing").out == "no leases\n"


def test_ls_goes_by_the_clock_and_not_by_what_was_recorded(shell: Shell) -> None:
    with shell.client() as client:
        client._session.desk.call(claim("over", lease_id="0", ttl_ns=200_000_000))
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
    assert f"continue with --after {first['next']}" in shell.run("ls", "--limit", "2").out


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
        "waiters": [],
    }


def test_columns_are_straight_whatever_is_in_them(shell: Shell) -> None:
    for resource in ("door", "共有資源", "cafe\u0301"):
        shell.run("acquire", resource, "--holder", "ann")
    heading, *rows = shell.run("ls").out.splitlines()
    assert len(rows) == 3
    assert {width_of(row[: row.index("ann")]) for row in rows} == {heading.index("HOLDER")}
