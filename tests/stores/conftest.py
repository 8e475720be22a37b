"""What the tests of all stores share."""

import pytest

pytest.register_assert_rewrite("leasehold.testing.conformance")
