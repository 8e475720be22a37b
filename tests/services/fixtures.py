"""Services as fixtures. Each process that runs tests has its own instance, for as long as it runs."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NoReturn

import pytest

from tests.services.postgres import postgres
from tests.services.programs import Unavailable


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server on which databases may be created."""
    with ExitStack() as stack:
        try:
            url = stack.enter_context(postgres())
        except Unavailable as error:
            missing("PostgreSQL", error)
        yield url


def missing(service: str, why: Unavailable) -> NoReturn:
    """Skip a test whose service is not available; in CI, fail it."""
    message = f"{service} is not available: {why}"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)
