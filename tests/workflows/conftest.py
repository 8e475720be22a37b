"""Worlds for workflows: every store, every desk, both colours."""

from tests.client.conftest import (  # noqa: F401
    client_kind,
    leases,
    pytest_pyfunc_call,
    real_world,
    store_kind,
    strangers,
    world,
)
