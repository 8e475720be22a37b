from hashlib import blake2b

import pytest
from msgspec.structs import fields, replace

from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.commands import Acquire, ChangeMode, Derive, Wanted
from leasehold.kernel.lease.model import Mode, ReleaseReason
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.commands import Command
from tests.kernel.records import ACQUIRE, CHANGE_MODE, COMMANDS, DERIVE, RELEASE, RENEW, SWEEP, TRANSFER

OTHER_CONTENT = {
    "tenant": "other",
    "resource": "window",
    "holder": "bob",
    "ttl_ns": 7,
    "mode": Mode.SHARED,
    "adopt": True,
    "max_renewals": 7,
    "bound_to_boot": False,
    "metadata": {"a": 2**70},
    "config_version": "7",
    "zone_version": "7",
    "lease_ids": ("lease-2", "lease-1"),
    "reason": ReleaseReason.ABORTED,
    "operator": "otto",
    "scope": Scope(unlimited=True),
    "budget": Budget(tokens=7),
    "parent_id": "lease-7",
    "child_holder": "cem",
    "amounts": Amounts(tokens=7),
    "also": (Wanted(resource="window"),),
    "wait": True,
    "priority": 7,
    "lock_delay_ns": 7,
    "to": "otto",
    "family": "work",
    "key": "lease-7",
}


PROPOSED = {(Acquire, "lease_id"), (Derive, "lease_id")}
"""What a retry may propose anew."""


@pytest.mark.parametrize("command", COMMANDS)
def test_the_same_request_has_the_same_key(command: Command) -> None:
    assert command.request_key == replace(command).request_key


@pytest.mark.parametrize("command", COMMANDS)
def test_the_key_begins_with_the_id_so_that_ordered_ids_keep_an_index_compact(command: Command) -> None:
    assert command.request_key.startswith("r:")
    assert replace(command, request_id="s").request_key.startswith("s:")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        pytest.param(command, field.name, id=f"{type(command).__name__} {field.name}")
        for command in COMMANDS
        for field in fields(command)
        if field.name not in command.not_content
    ],
)
def test_the_same_id_with_other_content_is_another_request(command: Command, name: str) -> None:
    key = command.request_key

    other = replace(command, **{name: (OTHER_CONTENT | {"lease_id": "lease-9"})[name]})

    assert other.request_key != key


@pytest.mark.parametrize("claim", [ACQUIRE, DERIVE])
def test_a_retried_claim_may_propose_another_lease_id(claim: Acquire | Derive) -> None:
    assert replace(claim, lease_id="lease-9").request_key == claim.request_key


def test_a_retried_transfer_may_propose_another_lease_id() -> None:
    assert replace(TRANSFER, new_lease_id="lease-3").request_key == TRANSFER.request_key


@pytest.mark.parametrize("command", [ACQUIRE, CHANGE_MODE])
def test_a_retry_may_wait_somewhere_else(command: Acquire | ChangeMode) -> None:
    assert replace(command, wake="elsewhere").request_key == command.request_key


def test_the_same_id_for_another_kind_of_command_is_another_request() -> None:
    assert len({RENEW.request_key, RELEASE.request_key, SWEEP.request_key}) == 3


def test_the_key_of_a_request_stays_the_same_from_release_to_release() -> None:
    # A retry may come from, or reach, another version of this program than the first try. Defaults are
    # not part of the key, so a new field with a default leaves it as it was.
    content = (
        b'{"command":"acquire","request_id":"","lease_id":"","resource":"door","holder":"ann",'
        b'"ttl_ns":1000000000}'
    )

    assert ACQUIRE.request_key == f"r:{blake2b(content, digest_size=8).hexdigest()}"
