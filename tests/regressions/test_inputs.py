"""What passed for something else, or was refused in words that nobody could understand."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold.stores.sqlite.backup import backup, restore


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        (
            "history",
            {"types": ["renwed"]},
            "types 'renwed' is not one of: confirmed, delegated, doubted,",
        ),
        ("renew_many", {"leases": "abc"}, "leases must be a list, not 'abc'"),
        (
            "acquire",
            {"resource": "door", "ttl": True},
            "ttl must be seconds from 0 on, as a number or a timedelta, not True",
        ),
        (
            "acquire",
            {"resource": "door", "ttl": -1},
            "ttl must be seconds from 0 on, as a number or a timedelta, not -1",
        ),
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


NOT_UTF_8 = "caf\udce9"
"""As Python spells what a shell hands over in another encoding."""


@pytest.mark.parametrize("address", ["memory:", "sqlite:///{folder}/leases"])
@pytest.mark.parametrize(
    ("method", "field", "others"),
    [
        ("get", "lease_id", {}),
        ("inspect", "resource", {}),
        ("children", "lease_id", {}),
        ("queue", "resource", {}),
        ("certificate", "lease_id", {}),
        ("history", "lease_id", {}),
        ("history", "resource", {}),
        ("history", "holder", {}),
        ("list", "prefix", {}),
        ("list", "resource", {}),
        ("list", "holder", {}),
        ("list", "after", {}),
        ("held_at", "holder", {"moment": 0}),
        ("adopt", "lease_id", {"holder": "ann"}),
        ("release_all", "holder", {}),
    ],
)
def test_who_looks_for_what_no_store_can_contain_is_told_so(
    address: str, method: str, field: str, others: dict[str, Any], tmp_path: Path
) -> None:
    with (
        leasehold.connect(address.format(folder=tmp_path)) as leases,
        pytest.raises(leasehold.InvalidInput, match=f"^{field} must be text that UTF-8 can carry"),
    ):
        getattr(leases, method)(**{field: NOT_UTF_8}, **others)


@pytest.mark.parametrize("address", ["memory:", "sqlite:///{folder}/leases"])
@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("history", {"after": 1 << 63}),
        ("held_at", {"moment": 1e12}),
        ("held_at", {"moment": datetime(9999, 1, 1, tzinfo=UTC)}),
    ],
)
def test_who_looks_beyond_all_that_a_store_can_contain_is_told_so(
    address: str, method: str, arguments: dict[str, Any], tmp_path: Path
) -> None:
    with (
        leasehold.connect(address.format(folder=tmp_path)) as leases,
        pytest.raises(leasehold.InvalidInput, match=f"^{next(iter(arguments))} is beyond all"),
    ):
        getattr(leases, method)(**arguments)


@pytest.mark.parametrize("name", [f"{NOT_UTF_8}.db", "no\0thing.db", f"{NOT_UTF_8}/.leasehold/leases"])
def test_a_path_that_is_not_utf_8_is_refused_and_nothing_is_made(name: str, tmp_path: Path) -> None:
    with pytest.raises(leasehold.StoreUnusable, match="is no path in UTF-8, as SQLite wants it") as refused:
        leasehold.connect(tmp_path / name)
    assert str(refused.value).isascii()
    assert list(tmp_path.iterdir()) == []


def test_a_backup_is_not_made_under_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    leasehold.connect(tmp_path / "leases").close()
    before = sorted(tmp_path.iterdir())
    for action in (backup, restore):
        with pytest.raises(leasehold.StoreUnusable, match="is no path in UTF-8"):
            action(tmp_path / "leases", tmp_path / NOT_UTF_8)
    assert sorted(tmp_path.iterdir()) == before


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
