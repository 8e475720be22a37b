"""The simulator's tests break the code on purpose: patches are watched, and searches pinned."""

from tests.mutations.plugin import monkeypatch, pytest_collection_modifyitems, pytest_runtest_call

__all__ = ["monkeypatch", "pytest_collection_modifyitems", "pytest_runtest_call"]
