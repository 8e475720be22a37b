"""The pleasant way: a block that owns what it names."""

import gc
import os
import queue
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold.client.aio import waiting_room as async_waiting_room
from leasehold.client.blocking import waiting_room
from leasehold.client.blocking.calls import Calls
from leasehold.client.blocking.claims import Claims
from leasehold.errors import Held, InvalidInput, LeaseLost, WaitTimeout
from leasehold.files.blocking.lease import HeldFiles
from leasehold.files.names import FileName
from leasehold.files.values import LeaseAcquisitionRequest
from tests.client.worlds import SIGNAL_SECONDS, World


async def test_a_block_owns_a_file_as_long_as_it_runs(leases: Any, strangers: Any, repository: Path) -> None:
    async with leases.files.lease("src/app.py", agent="agent-7", reason="parser") as lease:
        assert (lease.agent, lease.paths) == ("agent-7", ["src/app.py"])
        assert lease.token > 0
        assert await strangers.files.is_file_locked("src/app.py")
        (found,) = await strangers.files.get_file_leases(repository / "src")
        assert (found.id, found.agent_id, found.reason) == (lease.lease_id, "agent-7", "parser")
        lease.ensure()
        await lease.renew(7_200)
    assert not await strangers.files.is_file_locked("src/app.py")


async def test_a_refusal_names_who_why_since_until_where_and_what_next(
    leases: Any, strangers: Any, repository: Path
) -> None:
    held = await leases.files.lease("src/", agent="agent-7", reason="moving it", ttl=600)
    with pytest.raises(Held) as caught:
        await strangers.files.lease("src/app.py", agent="agent 9", wait=False)
    error = caught.value
    assert (error.holder, error.facts["reason"], error.position) == ("agent-7", "moving it", 1)
    assert error.expires_in == pytest.approx(600)
    assert error.since is not None
    message = str(error)
    assert "src is held by agent-7 (moving it) since " in message
    assert ", until " in message
    assert "you would be number 1 in the queue" in message
    assert message.endswith("Next: leasehold acquire src/app.py --as 'agent 9' --wait 30s")
    assert held.lease_id == error.lease_id


async def test_a_lease_for_the_agent_of_the_environment(
    leases: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEASEHOLD_AGENT", "agent-3")
    async with leases.files.lease("src/app.py") as lease:
        assert lease.agent == "agent-3"
    monkeypatch.delenv("LEASEHOLD_AGENT")
    async with leases.files.lease("src/app.py") as lease:
        assert lease.agent == "ann"


async def test_of_several_all_are_held_or_none(leases: Any, strangers: Any, repository: Path) -> None:
    await leases.files.lease("src/app.py", agent="a")
    with pytest.raises(Held):
        await strangers.files.lease("docs/", "src/*.py", agent="b", wait=False)
    assert not await strangers.files.is_file_locked("docs/")
    async with strangers.files.lease("docs/", "docs/a.md", "tests/**", agent="b", wait=False) as lease:
        assert lease.paths == ["docs", "tests/**"]
    assert await strangers.files.get_agent_leases("b") == []


@pytest.mark.parametrize("again", ["src/app.py", "src/new.py", "src/*.py", "src"])
async def test_who_claims_what_it_holds_or_something_below_has_that_renewed(
    leases: Any, strangers: Any, world: World, repository: Path, again: str
) -> None:
    """Never a wait, nor an error; and it stays the agent's after the second block."""
    first = await leases.files.lease("src", agent="a", ttl=60)
    world.clock.advance(30)  # type: ignore[attr-defined]
    async with strangers.files.lease(again, agent="a", ttl=60, wait=False) as lease:
        assert lease.lease_id == first.lease_id
        (found,) = await leases.files.get_agent_leases("a")
        assert found.time_remaining == pytest.approx(60)
    async with leases.files.lease(again, agent="a", ttl=60, wait=False) as lease:
        assert lease.lease_id == first.lease_id
    (found,) = await leases.files.get_agent_leases("a")
    assert found.is_valid


async def test_what_an_agent_only_shares_is_upgraded_when_it_claims_it(
    leases: Any, strangers: Any, repository: Path
) -> None:
    shared = await leases.files.lease("src/app.py", agent="a", mode="shared")
    async with leases.files.lease("src/app.py", agent="a", wait=False) as lease:
        assert lease.lease_id == shared.lease_id
        assert lease.leases[0].mode == "exclusive"
    await shared.release()
    await leases.files.lease("src/app.py", agent="a", mode="shared")
    await strangers.files.lease("src/app.py", agent="b", mode="shared")
    with pytest.raises(Held, match="held by b"):
        await leases.files.lease("src/app.py", agent="a", wait=False)


async def test_a_claim_that_cannot_upgrade_what_it_has_leaves_nothing_new_behind(
    leases: Any, strangers: Any, repository: Path
) -> None:
    shared = await leases.files.lease("src/app.py", agent="a", mode="shared")
    await strangers.files.lease("src/app.py", agent="b", mode="shared")
    with pytest.raises(Held):
        await leases.files.lease("docs/", "src/app.py", agent="a", wait=False)
    async with strangers.files.lease("docs/", agent="b", wait=True):
        assert [one.id for one in await leases.files.get_agent_leases("a")] == [shared.lease_id]
    shared.ensure()


async def test_an_agent_claims_again_what_lapsed_and_nobody_took(
    leases: Any, world: World, repository: Path
) -> None:
    first = await leases.files.lease("src/app.py", agent="a", ttl=10)
    first.leases[0].detach()
    world.clock.advance(20)  # type: ignore[attr-defined]
    second = await leases.files.lease("src/app.py", agent="a", wait=False)
    assert second.lease_id != first.lease_id
    assert second.token > first.token


async def test_a_heartbeat_renews_everything_of_an_agent(leases: Any, world: World, repository: Path) -> None:
    for path in ("src/app.py", "docs/"):
        (await leases.files.lease(path, agent="a", ttl=60)).leases[0].detach()
    world.clock.advance(50)  # type: ignore[attr-defined]
    assert {one.file_path for one in await leases.files.heartbeat("a")} == {"src/app.py", "docs"}
    assert [one.time_remaining for one in await leases.files.get_agent_leases("a")] == pytest.approx([60, 60])
    assert await leases.files.heartbeat("nobody") == []


async def test_who_waits_in_vain_is_told_where_it_stood(real_world: World, repository: Path) -> None:
    leases, strangers = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    await leases.files.lease("src/*.py", agent="a", reason="lint")
    with pytest.raises(WaitTimeout, match=r"held by a \(lint\).*you were number 1.*--wait 30s"):
        await strangers.files.lease("src/app.py", agent="b", wait=0.05)


async def test_somebody_has_to_be_named(leases: Any, repository: Path) -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        await leases.files.lease(agent="a")
    for bad in ({"ttl": 0}, {"mode": "mine"}, {"priority": 99}, {"agent": ""}, {"reason": 7}):
        with pytest.raises(leasehold.LeaseholdError):
            await leases.files.lease("a", **bad)
    assert await leases.files.get_all_leases() == []


async def test_what_is_written_takes_the_place_of_the_file_when_it_is_closed(
    leases: Any, repository: Path
) -> None:
    file = repository / "src/app.py"
    file.chmod(0o640)
    (repository / "link.py").symlink_to("src/app.py")
    async with leases.files.lease("src/", agent="a") as lease:
        async with lease.open("link.py", "w", encoding="utf-8") as out:
            out.write("second\n")
            assert file.read_text() == "first\n"
        assert file.read_text() == "second\n"
        async with lease.open("src/app.py", "ab") as out:
            out.write(b"third\n")
        async with lease.open("src/app.py") as read:
            assert list(read) == ["second\n", "third\n"]
        async with lease.open("src/new.py", "x") as out:
            out.write("new")
        with pytest.raises(FileExistsError):
            await lease.open("src/new.py", "x")
        late = await lease.open("src/late.py", "x")
        (repository / "src/late.py").write_text("somebody")
        with pytest.raises(FileExistsError):
            await late.close()
    assert (repository / "link.py").is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(repository / "src")) == ["app.py", "late.py", "new.py"]
    assert (repository / "src/late.py").read_text() == "somebody"


async def test_a_device_is_not_replaced(leases: Any, repository: Path) -> None:
    os.mkfifo(repository / "src/pipe")
    async with leases.files.lease("src/", agent="a") as lease:
        for mode in ("w", "a"):
            with pytest.raises(InvalidInput, match="device"):
                await lease.open("src/pipe", mode)
    assert (repository / "src/pipe").is_fifo()


async def test_a_block_that_raises_leaves_the_file_as_it_was(leases: Any, repository: Path) -> None:
    async with leases.files.lease("src/app.py", agent="a") as lease:
        with pytest.raises(ZeroDivisionError):
            async with lease.open("src/app.py", "w") as out:
                out.write(f"half {1 / 0}")
        kept = await lease.open("src/app.py", "w")
        kept.discard()
        await kept.close()
    assert (repository / "src/app.py").read_text() == "first\n"
    assert os.listdir(repository / "src") == ["app.py"]


async def test_who_has_lost_the_lease_overwrites_nothing(
    leases: Any, strangers: Any, repository: Path
) -> None:
    """The keeper has not noticed the revocation; the registrar is asked, at open and before the rename."""
    lease = await leases.files.lease("src/app.py", agent="a")
    out = await lease.open("src/app.py", "w")
    out.write("stale")
    assert await strangers.files.force_release_agent_leases("a") == 1
    async with (
        strangers.files.lease("src/app.py", agent="b") as theirs,
        theirs.open("src/app.py", "w") as new,
    ):
        new.write("theirs")
    with pytest.raises(LeaseLost):
        await out.close()
    with pytest.raises(LeaseLost):
        await lease.open("src/app.py", "w")
    assert (repository / "src/app.py").read_text() == "theirs"
    assert os.listdir(repository / "src") == ["app.py"]


async def test_who_only_shares_the_file_by_now_overwrites_nothing(
    leases: Any, strangers: Any, repository: Path
) -> None:
    lease = await leases.files.lease("src/app.py", agent="a")
    out = await lease.open("src/app.py", "w")
    out.write("mine")
    downgraded = lease.leases[0].downgrade()
    if downgraded is not None:  # The asynchronous client's.
        await downgraded
    async with strangers.files.lease("src/app.py", agent="b", mode="shared"):
        with pytest.raises(LeaseLost, match="only shared"):
            await out.close()
    assert (repository / "src/app.py").read_text() == "first\n"
    assert os.listdir(repository / "src") == ["app.py"]


async def test_a_link_that_is_swapped_while_a_file_is_opened_leads_nowhere(
    leases: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name was looked at, and then the registrar was asked: meanwhile, the path leads elsewhere."""
    (repository / "docs").mkdir()
    (repository / "docs/app.py").write_text("another's")
    (repository / "link").symlink_to("src")
    async with leases.files.lease("src/", agent="a") as lease:
        target = getattr(lease, "target", lease)
        validate = target.validate

        def swap(*given: Any, **named: Any) -> Any:
            (repository / "link").unlink()
            (repository / "link").symlink_to("docs")
            (repository / "src").rename(repository / "moved")
            (repository / "src").symlink_to("docs")
            return validate(*given, **named)

        monkeypatch.setattr(target, "validate", swap)
        with pytest.raises(InvalidInput, match="leads elsewhere"):
            await lease.open("link/app.py", "w")
    assert (repository / "docs/app.py").read_text() == "another's"
    assert os.listdir(repository / "docs") == ["app.py"]


async def test_a_path_with_escapes_opens_the_file_that_it_names(leases: Any, repository: Path) -> None:
    path = r"src/new\[1].txt"
    async with leases.files.lease(path, agent="a") as lease, lease.open(path, "w") as out:
        out.write("x")
    assert sorted(os.listdir(repository / "src")) == ["app.py", "new[1].txt"]
    async with leases.files.lease("service://db", agent="a") as lease:
        with pytest.raises(InvalidInput, match="not a file"):
            await lease.open("service://db", "w")


async def test_only_what_the_lease_covers_can_be_opened(leases: Any, repository: Path) -> None:
    async with leases.files.lease("src/*.py", agent="a") as lease:
        with pytest.raises(InvalidInput, match="not covered"):
            await lease.open("README.md", "w")
        with pytest.raises(InvalidInput, match="mode must be"):
            await lease.open("src/app.py", "w+")
        async with lease.open("src/app.py", "w") as out:
            out.write("x")
    async with leases.files.lease("src/app.py", agent="a", mode="shared") as lease:
        with pytest.raises(InvalidInput, match="upgrade it to write"):
            await lease.open("src/app.py", "w")
        async with lease.open("src/app.py") as read:
            assert read.read() == "x"


async def test_an_open_that_fails_or_is_interrupted_leaves_nothing_behind(
    leases: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look() -> tuple[int, list[str]]:
        return len(os.listdir("/proc/self/fd")), os.listdir("src")

    async with leases.files.lease("src/app.py", agent="a") as lease:
        before = look()
        for wrong in ({"encoding": "no such"}, {"newline": "no"}, {"buffering": 0}, {"no_option": 1}):
            with pytest.raises((LookupError, ValueError, TypeError)):
                await lease.open("src/app.py", "w", **wrong)
        for mode in (None, "", "rw"):
            with pytest.raises(InvalidInput, match="mode must be"):
                await lease.open("src/app.py", mode)
        file = await lease.open("src/app.py", "w")
        file.write("never to be seen")
        assert look() != before
        del file
        gc.collect()
        assert look() == before
        make = os.open

        def interrupted(path: Any, *arguments: Any, **options: Any) -> int:
            handle = make(path, *arguments, **options)
            if not str(path).endswith(".leasehold"):
                return handle
            os.close(handle)
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "open", interrupted)
        with pytest.raises(KeyboardInterrupt):
            await lease.open("src/app.py", "w")
        assert look() == before


async def test_a_name_with_an_extension_is_a_file_until_there_is_a_folder_unless_it_has_a_slash(
    leases: Any, strangers: Any, repository: Path
) -> None:
    async with leases.files.lease("conf.d", agent="a"):
        with pytest.raises(Held):
            await strangers.files.lease("conf.d/x", agent="b", wait=False)
        async with strangers.files.lease("*/x", agent="b", wait=False):
            pass
    async with leases.files.lease("conf.d/", agent="a"):
        with pytest.raises(Held):
            await strangers.files.lease("*/x", agent="b", wait=False)


async def test_a_loss_is_told_to_who_wants_to_hear_of_it(leases: Any, world: World, repository: Path) -> None:
    heard: list[Any] = []
    leases.files.on(heard.append)
    lease = await leases.files.lease("src/app.py", agent="a", ttl=10)
    world.clock.advance(11)  # type: ignore[attr-defined]
    with pytest.raises(LeaseLost):
        lease.ensure()
    assert repr(lease) == "<file lease on src/app.py by a>"


async def test_blocks_of_one_agent_share_a_lease_which_ends_with_the_last_of_them(
    leases: Any, strangers: Any, repository: Path
) -> None:
    first = await leases.files.lease("src/", agent="a")
    async with leases.files.lease("src/app.py", agent="a") as second:
        assert second.lease_id == first.lease_id
        assert await first.release()
        with pytest.raises(LeaseLost, match="was given back here"):
            first.ensure()
        assert not await first.release()
        second.ensure()
        with pytest.raises(Held):
            await strangers.files.lease("src/app.py", agent="b", wait=False)
        async with second.open("src/app.py", "w") as out:
            out.write("second")
    assert not await strangers.files.is_file_locked("src/app.py")


async def test_a_block_may_be_over_before_the_one_that_it_has_its_lease_from(
    leases: Any, strangers: Any, repository: Path
) -> None:
    async with leases.files.lease("src/", agent="a") as first:
        async with leases.files.lease("src/app.py", agent="a") as second:
            assert await second.release()
        first.ensure()
        assert await strangers.files.is_file_locked("src/app.py")
    assert not await strangers.files.is_file_locked("src/app.py")


async def test_a_block_that_cannot_begin_keeps_nothing(leases: Any, strangers: Any, repository: Path) -> None:
    block = await leases.files.lease("src/", "docs/", agent="a")
    await leases.revoke(block.leases[0].lease_id, reason="hangs")
    with pytest.raises(LeaseLost):
        async with block:
            pytest.fail("entered without the lease")
    async with strangers.files.lease("src/", "docs/", agent="b", wait=SIGNAL_SECONDS):
        pass


async def test_who_gives_back_what_several_blocks_use_is_heard_by_all(
    leases: Any, strangers: Any, repository: Path
) -> None:
    first = await leases.files.lease("src/", agent="a")
    second = await leases.files.lease("src/", agent="a")
    async with _raises_loss(), second, _raises_loss(), first:
        await leases.release(first.lease_id, holder="a")
    async with strangers.files.lease("src/", agent="b", wait=SIGNAL_SECONDS):
        pass


async def test_a_claim_that_was_made_anew_while_it_waited_ends_with_its_block(
    leases: Any, strangers: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in (waiting_room.WaitingRoom, async_waiting_room.AsyncWaitingRoom):
        ask = room._ask_until_granted

        def stopped_once(self: Any, claim: Any, *given: Any, ask: Any = ask) -> Any:
            claim.renew(self._session.ids.new())  # As after having been stopped for too long.
            return ask(self, claim, *given)

        monkeypatch.setattr(room, "_ask_until_granted", stopped_once)
    async with leases.files.lease("src/", agent="a", wait=5):
        assert await strangers.files.is_file_locked("src/")
    assert not await strangers.files.is_file_locked("src/")


async def test_every_block_that_shares_a_lease_hears_of_its_loss_and_none_that_has_ended(
    leases: Any, world: World, repository: Path
) -> None:
    heard: queue.SimpleQueue[str] = queue.SimpleQueue()
    over = await leases.files.lease("src/", agent="a", ttl=10, on_lost=lambda _: heard.put("over"))
    async with AsyncExitStack() as blocks:
        for name in ("second", "third"):
            lease = leases.files.lease("src/", agent="a", ttl=10, on_lost=lambda _, n=name: heard.put(n))
            await blocks.enter_async_context(_raises_loss())
            last = await blocks.enter_async_context(lease)
        await over.release()
        world.clock.advance(11)  # type: ignore[attr-defined]
        with pytest.raises(LeaseLost):
            last.ensure()
    assert {heard.get(timeout=SIGNAL_SECONDS) for _ in range(2)} == {"second", "third"}
    assert heard.empty()


@asynccontextmanager
async def _raises_loss() -> AsyncIterator[None]:
    with pytest.raises(LeaseLost):
        yield


async def test_what_an_agent_has_claimed_to_stay_outlives_the_block_that_acquired_it(
    leases: Any, strangers: Any, repository: Path
) -> None:
    request = LeaseAcquisitionRequest(file_path="src/app.py", agent_id="a")
    async with leases.files.lease("src/app.py", agent="a"):
        assert (await leases.files.acquire_lease(request)).success
        async with leases.files.lease("src/app.py", agent="a") as third:
            third.detach()
    assert await strangers.files.is_file_locked("src/app.py")


def test_who_claims_what_the_last_block_is_just_giving_back_gets_a_lease_of_its_own(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, got = threading.Event(), list[HeldFiles]()
    until, release = Calls.until, Claims.release_together

    def noticed(calls: Calls, *arguments: Any) -> None:
        waits.set()
        until(calls, *arguments)

    def release_late(claims: Claims, *arguments: Any) -> bool:
        second.start()
        assert waits.wait(SIGNAL_SECONDS)
        return release(claims, *arguments)

    with leasehold.connect("memory:") as leases:
        first = leases.files.lease("src/app.py", agent="a")
        second = threading.Thread(target=lambda: got.append(leases.files.lease("src/app.py", agent="a")))
        monkeypatch.setattr(Calls, "until", noticed)
        monkeypatch.setattr(Claims, "release_together", release_late)
        assert first.release()
        second.join()
        got[0].ensure()
        assert got[0].lease_id != first.lease_id
        assert leases.files.is_file_locked("src/app.py")


@pytest.mark.parametrize("pattern", ["/a[", "/{a", "/*\\", "/{a,b,c,d,e,f}{a,b,c,d,e,f}"])
def test_a_pattern_that_cannot_be_read_is_refused_in_questions_as_well(tmp_path: Path, pattern: str) -> None:
    name = FileName(pattern, pattern)
    with leasehold.connect(tmp_path / "store") as client, client.acquire("/a/*"):
        for ask in (
            lambda: client.queue(pattern),
            lambda: client.files.get_file_leases(name),
            lambda: client.files.in_the_way(name),
        ):
            with pytest.raises(InvalidInput, match="cannot be read"):
                ask()
