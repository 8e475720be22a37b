"""What passed for something else, or was refused in words that nobody could understand."""

from typing import Any

import pytest

import leasehold


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("history", {"types": ["renwed"]}, "types 'renwed' is none of: confirmed, delegated, expired,"),
        ("renew_many", {"leases": "abc"}, "leases must be a list, not 'abc'"),
        ("acquire", {"resource": "door", "ttl": True}, "ttl must be a number of seconds from 0 on, not True"),
        ("acquire", {"resource": "door", "ttl": -1}, "ttl must be a number of seconds from 0 on, not -1"),
        ("acquire_all", {"resources": ["a", "a"]}, "resources must not name a twice"),
        ("acquire_all", {"resources": ["/a/b", "/a"]}, "resources must not name /a beside /a/b: one covers"),
    ],
)
def test_what_can_never_be_right_is_named_as_its_caller_does(
    method: str, arguments: dict[str, Any], message: str
) -> None:
    with leasehold.connect("memory:") as leases:
        with pytest.raises(leasehold.InvalidInput, match=f"^{message}"):
            getattr(leases, method)(**arguments)
        assert leases.history() == []


def test_types_of_events_have_short_names() -> None:
    with leasehold.connect("memory:") as leases:
        leases.acquire("door").release()
        for name in ("released", "lease.released", "Released"):
            assert [entry.event.type for entry in leases.history(types=[name])] == ["lease.released"]


def test_a_quota_is_refused_with_the_next_step() -> None:
    with leasehold.connect("memory:", holder="ann", leases_per_holder=2) as leases:
        leases.acquire_all(["door", "gate"])
        with pytest.raises(leasehold.LimitExceeded) as refused:
            leases.acquire("window")
    told = (
        "ann has 2 leases; at most 2 are allowed (leases_per_holder); release some first, or raise the quota"
    )
    assert str(refused.value).startswith(told)
