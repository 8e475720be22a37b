"""The services, until `tests/conftest.py` gives them to all tests."""

from tests.services.fixtures import postgres_url

__all__ = ["postgres_url"]
