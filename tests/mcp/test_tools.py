"""The tools, called by a real client of the protocol; it compares each answer with the tool's schema."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from tests.cli.shell import Shell
from tests.mcp.agent import agent, holders, wait_until_nobody_waits, wait_until_queued, waiters
from tests.server.running import RunningServer


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_claims_checks_renews_and_releases(shell: Shell, mode: str) -> None:
    async with agent(shell, "agent-7", mode=mode) as own:
        names = [tool.name for tool in (await own.client.list_tools()).tools]
        assert names == ["claim", "wait", "renew", "release", "check", "list", "history", "transfer"]
        before = await own("check", paths=["src/app.py"])
        assert (before["yours"], before["free"]) == (False, True)
        claimed = await own.next(before)
        assert claimed["granted"]
        assert [lease["path"] for lease in claimed["leases"]] == ["src/app.py"]
        assert (await own("check", paths=["src/app.py"]))["yours"]

        renewed = await own("renew", ttl_seconds=7200)
        assert renewed["leases"][0]["expires_in"] > 7000
        assert renewed["leases"][0]["token"] == claimed["leases"][0]["token"]
        again = await own("claim", paths=["./src/../src/app.py"])
        assert again["leases"][0]["token"] == claimed["leases"][0]["token"]

        assert (await own("release", paths=["src/app.py"]))["released"] == ["src/app.py"]
        assert (await own("release", paths=["src/app.py"]))["not_held"] == ["src/app.py"]
        assert (await own("list"))["leases"] == []


async def test_who_is_refused_is_told_who_why_until_when_and_the_next_call(shell: Shell) -> None:
    async with agent(shell, "agent-7") as first, agent(shell, "agent-9") as second:
        assert (await first("claim", paths=["src/"], reason="new parser", ttl_seconds=600))["granted"]
        refused = await second("claim", paths=["src/app.py", "docs/"], reason="typos")
        assert refused["granted"] is False
        assert (refused["path"], refused["held_by"], refused["reason"]) == ("src", "agent-7", "new parser")
        assert (refused["position"], 590 < refused["expires_in"] <= 600) == (1, True)
        assert refused["until"] in refused["message"]
        assert refused["next"] == {
            "tool": "wait",
            "arguments": {"paths": ["src/app.py", "docs/"], "reason": "typos"},
        }
        assert (await second("list", agent="agent-9"))["total"] == 0, "all, or none"
        seen = await second("check", paths=["src/app.py"])
        assert [lease["agent"] for lease in seen["held"]] == ["agent-7"]

        waiting = asyncio.create_task(second.next(refused))
        await asyncio.to_thread(wait_until_queued, shell, "src/app.py")
        await first("release", all=True)
        won = await waiting
        assert won["granted"]
        assert {lease["path"] for lease in won["leases"]} == {"src/app.py", "docs"}
        assert {lease["reason"] for lease in won["leases"]} == {"typos"}
    assert holders(shell) == {"agent-9"}, "what an agent holds under its name outlives its server"


async def test_a_wait_that_ends_in_vain_leaves_nothing_in_the_queue(shell: Shell) -> None:
    async with agent(shell, "agent-7") as first, agent(shell, "agent-9") as second:
        await first("claim", paths=["src/app.py"])
        refused = await second("wait", paths=["src/app.py"], seconds=0.2)
        assert (refused["granted"], refused["held_by"]) == (False, "agent-7")
        assert refused["next"]["tool"] == "wait"
        assert waiters(shell, "src/app.py") == []


async def test_a_wait_that_is_cancelled_leaves_nothing_in_the_queue(shell: Shell) -> None:
    async with agent(shell, "agent-7") as first, agent(shell, "agent-9") as second:
        await first("claim", paths=["src/app.py"])
        waiting = asyncio.create_task(second("wait", paths=["src/app.py"]))
        await asyncio.to_thread(wait_until_queued, shell, "src/app.py")
        refused = await second("wait", paths=["src/app.py"])
        assert "waits for this already" in refused["message"]
        waiting.cancel()
        await asyncio.to_thread(wait_until_nobody_waits, shell, "src/app.py")
        await first("release", all=True)
        assert (await second("claim", paths=["src/app.py"]))["granted"]


async def test_a_circle_of_waits_is_refused_and_says_what_to_release(shell: Shell) -> None:
    async with agent(shell, "agent-7") as first, agent(shell, "agent-9") as second:
        await first("claim", paths=["ink"])
        await second("claim", paths=["paper"])
        one = asyncio.create_task(first("wait", paths=["paper"]))
        other = asyncio.create_task(second("wait", paths=["ink"]))
        done, _ = await asyncio.wait((one, other), return_when=asyncio.FIRST_COMPLETED)
        refused, own = (one, first) if one in done else (other, second)
        answer = await refused
        assert " → " in answer["message"]
        assert answer["next"]["tool"] == "release"
        assert (await own.next(answer))["released"] == (["ink"] if own is first else ["paper"])
        assert (await (other if refused is one else one))["granted"]


async def test_of_two_agents_exactly_one_gets_each_file(shell: Shell) -> None:
    async with agent(shell, "agent-7") as first, agent(shell, "agent-9") as second:
        calls = [own("claim", paths=[f"part-{number}.py"]) for number in range(25) for own in (first, second)]
        answers = await asyncio.gather(*calls)
        winners = [[one["granted"] for one in answers[place : place + 2]] for place in range(0, 50, 2)]
        assert all(sum(pair) == 1 for pair in winners)
        assert (await first("list"))["total"] == 25


async def test_a_lease_is_handed_to_another_agent(shell: Shell) -> None:
    async with agent(shell, "agent-7") as own:
        claimed = await own("claim", paths=["src/app.py"], reason="new parser")
        handed = await own("transfer", path="src/app.py", to="agent-9")
        (lease,) = handed["leases"]
        assert (lease["agent"], lease["reason"]) == ("agent-9", "new parser")
        assert lease["token"] > claimed["leases"][0]["token"]
        refused = await own("transfer", path="src/app.py", to="agent-8")
        assert (refused["granted"], refused["next"]["tool"]) == (False, "claim")
        assert (await own("renew", paths=["src/app.py"]))["granted"] is False
        assert (await own("renew", paths=["src/app.py"], agent="agent-9"))["granted"]

        await own("claim", paths=["ink"])
        waiting = asyncio.create_task(own("wait", paths=["ink"], agent="agent-9"))
        await asyncio.to_thread(wait_until_queued, shell, "ink")
        refused = await own("transfer", path="ink", to="agent-9")
        assert "waits for it already" in refused["message"]
        assert (await own.next(refused))["released"] == ["ink"]
        assert (await waiting)["leases"][0]["agent"] == "agent-9"


async def test_what_has_ended_or_may_not_be_renewed_is_not_renewed(shell: Shell) -> None:
    shell.run("config", "set", "max_renewals", "0")
    async with agent(shell, "agent-7") as own:
        await own("claim", paths=["src/app.py"])
        refused = await own("renew")
        assert (refused["granted"], refused["next"]["tool"]) == (False, "release")
        assert "renewed as often as it may be" in refused["message"]
        await own("claim", paths=["docs/"])
        shell.revoke_all()
        refused = await own("renew", paths=["docs/"])
        assert (refused["granted"], refused["next"]["tool"]) == (False, "claim")
        assert (await own.next(refused))["granted"]


async def test_history_tells_the_last_of_what_happened_to_a_path(shell: Shell) -> None:
    async with agent(shell, "agent-7") as own:
        await own("claim", paths=["src/app.py"], reason="new parser")
        await own("renew")
        await own("release", paths=["src/app.py"])
        await own("claim", paths=["src/app.py"], agent="agent-9")
        told = await own("history", path="src/app.py")
        assert told["path"] == "src/app.py"
        assert [(one["what"], one["agent"]) for one in told["events"]] == [
            ("issued", "agent-7"),
            ("released", "agent-7"),
            ("issued", "agent-9"),
        ]
        assert told["events"][0]["reason"] == "new parser"
        (last,) = (await own("history", path="src/app.py", limit=1))["events"]
        assert last["agent"] == "agent-9"


async def test_sharers_read_side_by_side(shell: Shell) -> None:
    async with agent(shell, "agent-7") as own:
        for name in ("agent-7", "agent-8"):
            answer = await own("claim", paths=["docs/"], shared=True, agent=name)
            assert answer["leases"][0]["shared"] is True
        refused = await own("claim", paths=["docs/"])
        assert (refused["granted"], refused["held_by"]) == (False, "agent-8")
        seen = await own("check", paths=["docs/"])
        assert (seen["yours"], seen["free"]) == (False, False)
        answer = await own("release", paths=["docs/readme.md"])
        assert "covered by your lease on docs" in answer["message"]
        assert (await own("list", path="docs/readme.md"))["total"] == 2


async def test_what_is_told_can_be_passed_back_from_wherever_the_server_is(
    shell: Shell, repository: Path
) -> None:
    (repository / "app").mkdir()
    (repository / "app" / "[id].ts").touch()
    shell.folder = repository / "src"
    async with agent(shell, "agent-7") as own:
        wanted = ["app.py", "../docs", "../app/[id].ts", r"../app/\[new].ts", "**/*.py", "/elsewhere/x"]
        for path in wanted:
            (lease,) = (await own("claim", paths=[path], agent=f"agent of {path}", shared=True))["leases"]
            assert lease["path"] == path
            assert (await own("release", paths=[path], agent=lease["agent"]))["released"] == [path]


async def test_misuse_is_an_error_that_names_the_argument(shell: Shell) -> None:
    async with agent(shell, "agent-7") as own:
        assert await own.error("claim", path="x") == "there is no argument 'path'; did you mean 'paths'?"
        assert await own.error("list", everything=True) == (
            "there is no argument 'everything'; there are agent, path"
        )
        assert await own.error("claim") == "missing argument `paths`"
        assert await own.error("claim", paths="x") == "paths: expected `array`, got string"
        assert await own.error("claim", paths=[7]) == "paths[0]: expected string, got integer"
        assert await own.error("wait", paths=["x"], seconds=51) == "seconds: expected number <= 50.0"
        assert await own.error("claim", paths=["x"], agent=None) == "agent: expected string, got `null`"
        assert "either paths, or all" in await own.error("release")
        assert "either paths, or all" in await own.error("release", paths=["x"], all=True)
        with pytest.raises(MCPError, match=r"there is no tool 'clam'; did you mean 'claim'\?"):
            await own("clam", paths=["x"])
        assert (await own("list"))["total"] == 0


async def test_hostile_arguments_are_refused_in_few_words(shell: Shell) -> None:
    async with agent(shell, "agent-7") as own:
        hostile: tuple[dict[str, Any], ...] = (
            {"paths": ["x" * 2_000_000]},
            {"paths": ["x"] * 65},
            {"paths": []},
            {"paths": [""]},
            {"paths": ["a\0b"]},
            {"paths": ["a\nb"]},
            {"paths": ["a[b"]},
            {"paths": ["x"], "reason": "y" * 201},
            {"paths": ["x"], "agent": "\x1b[31m"},
            {"paths": ["x"], "agent": "z" * 129},
            {"paths": ["x"], "agent": ""},
            {"paths": ["x"], "ttl_seconds": 0},
            {"paths": ["x"], "ttl_seconds": 1e300},
            {"paths": ["x"], "y" * 100_000: 1},
        )
        for arguments in hostile:
            assert len(await own.error("claim", **arguments)) < 300
        assert (await own.error("claim", paths=["x"], agent="\n")).startswith("agent must not contain")
        assert await own.error("claim", paths=["x"], ttl_seconds=0) == "ttl_seconds: expected number >= 0.001"
        meant = await own.error("wait", paths=["x"], wait_seconds=5)
        assert meant == "there is no argument 'wait_seconds'; did you mean 'seconds'?"
        assert "did you mean 'paths'?" in await own.error("claim", path="x")
        assert "did you mean" not in await own.error("claim", paths=["x"], wait_seconds=5)
        assert "expected string of length" in await own.error("list", agent="")
        assert (await own("list"))["total"] == 0
        outside = await own("claim", paths=["../../outside", "/etc/hosts"])
        assert outside["granted"], "a path outside the repository is a name like any other"


async def test_an_agent_whose_key_is_bound_to_a_tenant_works_in_a_repository_that_names_it(
    shell: Shell, tmp_path: Path
) -> None:
    with RunningServer(tmp_path / "served") as server:
        made = server.ask("POST", "/v1/access", {"role": "holder"}, headers={"Leasehold-Tenant": "acme"})
        shell.environment["LEASEHOLD_API_KEY"] = made.body["text"]
        shell.run("guard", "install", "--store", server.url, "--tenant", "acme")
        async with agent(shell, "agent-7") as own:
            assert (await own("claim", paths=["src/app.py"]))["granted"]
            assert (await own("list"))["total"] == 1
