"""What the chaos tests share."""

import os
import random

import pytest


@pytest.fixture
def seed() -> int:
    return int(os.environ.get("LEASEHOLD_CHAOS_SEED") or random.SystemRandom().randrange(2**32))
