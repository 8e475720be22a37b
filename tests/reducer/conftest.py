import pytest

from tests.reducer.histories import History


@pytest.fixture
def history() -> History:
    return History()
