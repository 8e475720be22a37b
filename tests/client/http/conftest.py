"""A registrar behind a real server, and clients of it."""

from collections.abc import Iterator

import pytest

from leasehold.engine.questions import FindHead, FindWaiters
from leasehold.engine.registrar import Registrar
from leasehold.registry import REPLIES, all_families
from leasehold.stores.memory import MemoryStore
from tests.client.server import desk_server
from tests.client.worlds import SIGNAL_SECONDS


def until_waiting(registrar: Registrar, resource: str) -> None:
    """Return when somebody waits for a resource."""
    while True:
        head = registrar.ask(FindHead())
        if registrar.ask(FindWaiters(tenant="default", resource=resource)):
            return
        assert registrar.wait(head.position, SIGNAL_SECONDS)


@pytest.fixture
def registrar() -> Iterator[Registrar]:
    registrar = Registrar(MemoryStore(families=all_families()), also=REPLIES)
    yield registrar
    registrar.close()


@pytest.fixture
def url(registrar: Registrar) -> Iterator[str]:
    """The address of a desk of the registrar."""
    url = desk_server().mount(registrar)
    yield url
    desk_server().unmount(url)
