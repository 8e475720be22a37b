"""The worlds of the client's tests, and a shell."""

from tests.cli.conftest import shell, signals_as_at_a_terminal
from tests.client.conftest import client_kind, leases, pytest_pyfunc_call, store_kind, strangers, world

__all__ = [
    "client_kind",
    "leases",
    "pytest_pyfunc_call",
    "shell",
    "signals_as_at_a_terminal",
    "store_kind",
    "strangers",
    "world",
]
