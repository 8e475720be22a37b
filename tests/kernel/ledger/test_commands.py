from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.commands import Acquire, Renew, Wanted
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.ledger.commands import LOCAL, Caller, Command, Sweep, Swept
from tests.kernel.counters import Do

SWEEP = Sweep(request_id="r", family="counter", key="a")
DO = Do(request_id="r", what="it")


@pytest.mark.parametrize("command", [DO, SWEEP])
def test_a_request_is_known_again_by_its_id_and_its_content(command: Command) -> None:
    key = command.request_key

    assert key.startswith("r:")
    assert replace(command).request_key == key
    assert replace(command, tenant="acme").request_key != key
    assert replace(command, request_id="s").request_key == f"s:{key.removeprefix('r:')}"


def test_a_field_that_has_its_default_is_no_content_so_that_a_new_one_changes_no_key() -> None:
    class Older(Command, frozen=True, kw_only=True, omit_defaults=True, tag="do"):
        """What `Do` was before it had anything to say."""

    assert Older(request_id="r").request_key == Do(request_id="r").request_key


def test_sweeps_of_two_records_are_two_requests() -> None:
    sweeps = [SWEEP, replace(SWEEP, key="b"), replace(SWEEP, family="lease")]

    assert len({sweep.request_key for sweep in sweeps}) == 3


def test_what_would_give_a_client_that_is_being_closed_nothing_is_still_run() -> None:
    assert SWEEP.gives_back


def test_who_has_the_store_at_hand_shows_no_key_and_is_bound_to_no_tenant() -> None:
    assert Caller() == LOCAL
    assert (LOCAL.access, LOCAL.tenant) == ("", None)
    assert msgspec.json.encode(LOCAL) == b"{}"


@pytest.mark.parametrize("value", [SWEEP, Caller(access="k", tenant="acme"), Swept(ended=True)])
def test_what_is_asked_and_answered_crosses_a_wire_as_it_is(value: msgspec.Struct) -> None:
    assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value


def test_equal_commands_are_one_request_whoever_has_spelled_them() -> None:
    """A text that was read, and is not the very object that a default is, made a retry a second request."""
    plain = Renew(lease_ids=("a",), holder="ann", request_id="r")
    spelled = Renew(lease_ids=("a",), holder="ann", request_id="r", tenant="".join(["def", "ault"]))
    read = msgspec.json.decode(msgspec.json.encode(spelled), type=Renew)
    assert plain.request_key == spelled.request_key == read.request_key
    other = Renew(lease_ids=("a",), holder="ann", request_id="r", tenant="other")
    assert other.request_key != plain.request_key


def test_what_lies_deeper_in_a_command_counts_as_well() -> None:
    def key(**wanted: Any) -> str:
        also = (Wanted(resource="gate", **wanted),)
        return Acquire(
            lease_id="x", request_id="r", resource="door", holder="ann", ttl_ns=1, also=also
        ).request_key

    assert key() == key(mode=Mode.EXCLUSIVE)
    assert key() != key(mode=Mode.SHARED)
