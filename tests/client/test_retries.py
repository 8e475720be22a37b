"""A lost reply is unknown, never failed: the client asks again, and gets the answer of the first time."""

from collections.abc import Callable
from typing import Any

import pytest

import leasehold
from leasehold.engine.desk import Failure
from leasehold.kernel.ledger.commands import Command
from tests.client.worlds import World


@pytest.fixture
def leases(world: World) -> Any:
    """A client called ann, on a line that loses nothing but what a test loses."""
    return world.connect(holder="ann", is_steady=True)


class LostReplies:
    """Lets the registrar do its work, and loses so many of its replies."""

    def __init__(self, client: Any, count: int, error: leasehold.StoreError) -> None:
        self.commands: list[Command] = []
        self._left = count
        self._error = Failure.of(error)
        registrar = getattr(client, "target", client)._session.desk
        self._call, self._submit = registrar.call, registrar.submit
        registrar.call, registrar.submit = self.call, self.submit

    def _lose(self, command: Command) -> bool:
        self.commands.append(command)
        self._left -= 1
        return self._left >= 0

    def call(self, command: Command) -> Any:
        outcome = self._call(command)
        return self._error if self._lose(command) else outcome

    def submit(self, command: Command, deliver: Callable[[Any], None]) -> None:
        lost = self._lose(command)
        self._submit(command, lambda outcome: deliver(self._error if lost else outcome))


@pytest.mark.parametrize("lost", [1, 2])
async def test_a_grant_whose_reply_was_lost_is_not_a_second_grant(leases: Any, lost: int) -> None:
    replies = LostReplies(leases, lost, leasehold.StoreFailed("no answer"))
    lease = await leases.acquire("door")

    assert len({command.request_id for command in replies.commands}) == 1
    assert [status.lease.token for status in await leases.inspect("door")] == [lease.token]
    assert len(await leases.history(types=["lease.issued"])) == 1


async def test_who_never_gets_an_answer_is_told_how_to_ask_again(world: World) -> None:
    leases = world.connect(holder="ann", is_steady=True)
    failure = leasehold.StoreFailed("no answer")
    replies = LostReplies(leases, 3, failure)

    with pytest.raises(leasehold.StoreFailed) as unknown:
        await leases.acquire("door", ttl=30)

    assert unknown.value.request_id == replies.commands[0].request_id
    assert failure.request_id is None, "others may have got the same error for commands of their own"
    lease = await leases.acquire("door", ttl=30, request_id=unknown.value.request_id)
    assert len(await leases.history(types=["lease.issued"])) == 1
    lease.ensure()


async def test_an_error_that_changed_nothing_is_not_asked_about_again(leases: Any) -> None:
    replies = LostReplies(leases, 1, leasehold.StoreFull("no space"))

    with pytest.raises(leasehold.StoreFull):
        await leases.revoke("some-lease", reason="x")
    assert len(replies.commands) == 1


async def test_a_release_whose_reply_was_lost_has_happened(leases: Any, strangers: Any) -> None:
    lease = await leases.acquire("door")
    LostReplies(leases, 1, leasehold.StoreFailed("no answer"))
    assert await lease.release()

    await strangers.acquire("door")
    assert len(await leases.history(types=["lease.released"])) == 1


async def test_a_block_whose_release_had_to_be_asked_twice_has_lost_nothing(leases: Any) -> None:
    async with leases.acquire("door"):
        LostReplies(leases, 1, leasehold.StoreFailed("no answer"))

    assert len(await leases.history(types=["lease.released"])) == 1
