import msgspec
import pytest

from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import (
    LeaseDelegated,
    LeaseExpired,
    LeaseIssued,
    LeaseRearmed,
    LeaseReclaimed,
    LeaseReleased,
    LeaseRenewed,
    LeaseRevoked,
    LeaseSpent,
)
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.lease.model import Mode, ReleaseReason
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.events import DecodeError, EpochRaised, Event, StoreOpened, encode_event
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.records import OF_LEASE, OF_STORE, TOKEN

EVENTS: list[tuple[str, Event]] = [
    (
        "lease.issued",
        LeaseIssued(
            **OF_LEASE,
            tenant="acme",
            request="r:1",
            mode=Mode.SHARED,
            ttl_ns=50,
            max_renewals=3,
            adopted_from="lease-0",
            bound_to_boot=False,
            signature=b"\x00\xff",
            metadata={"é": [1, 2.5, None, True, {"big": 2**70}]},
            config_version="c1",
            zone_version="z1",
            delegation=Delegation(
                scope=Scope(tools=("rm",)), budget=Budget(tokens=9), ancestors=("lease-0",), ttl_ns=50
            ),
        ),
    ),
    (
        "lease.renewed",
        LeaseRenewed(
            tick=Tick(value=1, era=2, rate=3),
            at_ns=1,
            actor="ann",
            holder="ann",
            renewals={"lease-1": 160, "lease-2": 170},
        ),
    ),
    ("lease.released", LeaseReleased(**OF_LEASE, reason=ReleaseReason.COMPLETED)),
    ("lease.expired", LeaseExpired(**OF_LEASE)),
    ("lease.revoked", LeaseRevoked(**OF_LEASE, reason="maintenance", orphaned=True)),
    ("lease.rearmed", LeaseRearmed(**OF_LEASE, expires_tick=77)),
    ("lease.delegated", LeaseDelegated(**OF_LEASE, child_id="lease-2", amounts=Amounts(tokens=7))),
    (
        "lease.reclaimed",
        LeaseReclaimed(
            **OF_LEASE,
            child_id="lease-2",
            granted=Amounts(tokens=7),
            spent=Amounts(tokens=3, episodes=1),
            delegated=Amounts(),
        ),
    ),
    ("lease.spent", LeaseSpent(**OF_LEASE, request="r:2", amounts=Amounts(tool_calls=1))),
    ("store.opened", StoreOpened(**OF_STORE, epoch=1)),
    ("store.epoch_raised", EpochRaised(**OF_STORE, epoch=2, reason="reboot")),
]
BY_NAME = dict(EVENTS)


@pytest.mark.parametrize(("name", "event"), EVENTS, ids=list(BY_NAME))
def test_an_event_reads_back_as_it_was_written(name: str, event: Event) -> None:
    body = encode_event(event)

    assert LEASES.decode_event(body) == event
    assert LEASES.decode_event(body.decode()) == event
    assert encode_event(LEASES.decode_event(body)) == body
    assert event.type == name
    assert msgspec.json.decode(body)["type"] == name


def test_an_event_says_which_leases_it_changes() -> None:
    changes = {name: event.keys for name, event in EVENTS}

    assert changes.pop("lease.renewed") == ("lease-1", "lease-2")
    assert changes.pop("store.opened") == changes.pop("store.epoch_raised") == ()
    assert set(changes.values()) == {("lease-1",)}


def test_an_event_says_under_what_it_is_found() -> None:
    door = ("default", "lease-1", "door", "ann", TOKEN)
    filed = {name: event.filing for name, event in EVENTS}

    assert filed.pop("lease.issued") == ("acme", *door[1:])
    assert filed.pop("lease.renewed") == ("default", None, None, "ann", None), "it is about two"
    assert filed.pop("store.opened") == filed.pop("store.epoch_raised") == (None, None, None, None, None)
    assert set(filed.values()) == {door}
    one = LeaseRenewed(
        tick=Tick(value=1),
        at_ns=1,
        actor="ann",
        holder="ann",
        renewals={"lease-1": 160},
        resource="door",
        token=TOKEN,
    )
    assert one.filing == door


def test_an_event_says_whether_it_drew_a_number_and_whether_a_retry_finds_it() -> None:
    assert {name for name, event in EVENTS if event.draws} == {"lease.issued"}
    assert {name for name, event in EVENTS if event.is_remembered} == {
        "lease.issued",
        "lease.renewed",
        "lease.spent",
    }
    assert {name for name, event in EVENTS if event.is_own} == {"store.opened", "store.epoch_raised"}
    assert BY_NAME["store.opened"].number == 0
    assert BY_NAME["lease.issued"].number == TOKEN


def test_an_event_has_no_more_to_tell_than_its_fields_unless_its_kind_says_so() -> None:
    assert {event.story for _, event in EVENTS} == {""}


def test_a_renewal_names_its_lease_only_if_there_is_just_one() -> None:
    def renewal(renewals: dict[str, int]) -> LeaseRenewed:
        return LeaseRenewed(tick=Tick(value=1), at_ns=1, actor="ann", holder="ann", renewals=renewals)

    assert renewal({"lease-1": 160}).lease_id == "lease-1"
    assert renewal({"lease-1": 160, "lease-2": 170}).lease_id is None


def test_defaults_are_not_written() -> None:
    body = encode_event(LeaseExpired(**OF_LEASE))

    assert body == (
        b'{"type":"lease.expired","tick":{"value":60},"at_ns":6000,"actor":"ann",'
        b'"lease_id":"lease-1","resource":"door","holder":"ann","token":%d}' % TOKEN
    )


def test_an_event_as_the_first_release_wrote_it_is_still_understood() -> None:
    body = (
        b'{"type":"lease.issued","tick":{"value":60,"era":2},"at_ns":6000,"actor":"ann","request":"r:1",'
        b'"lease_id":"lease-1","resource":"door","holder":"ann","token":8388609,"ttl_ns":50}'
    )

    event = LEASES.decode_event(body)

    assert isinstance(event, LeaseIssued)
    assert (event.mode, event.max_renewals, event.bound_to_boot, event.tenant, event.schema) == (
        Mode.EXCLUSIVE,
        -1,
        True,
        "default",
        1,
    )


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x00\x01", id="no JSON"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"{}", id="no type"),
        pytest.param(b'{"type":"lease.borrowed"}', id="an unknown type"),
        pytest.param(b'{"type":"lease.expired"}', id="missing fields"),
        pytest.param(
            encode_event(BY_NAME["lease.released"]).replace(b"completed", b"bored"), id="an unknown word"
        ),
        pytest.param(
            encode_event(BY_NAME["lease.expired"]).replace(b'"ann"', b'"\xff"'), id="bytes that are no text"
        ),
        pytest.param(
            encode_event(BY_NAME["lease.issued"]).replace(b"null", b"[" * 100_000), id="an endless nest"
        ),
        pytest.param(encode_event(BY_NAME["lease.expired"])[:-1], id="a torn end"),
    ],
)
def test_anything_else_is_a_decode_error(body: bytes) -> None:
    with pytest.raises(DecodeError):
        LEASES.decode_event(body)


def test_an_event_of_a_newer_schema_is_not_guessed_at() -> None:
    newer = LeaseExpired(**OF_LEASE, schema=2)

    with pytest.raises(DecodeError, match=r"lease\.expired has schema 2, and 1 is the newest known here"):
        LEASES.decode_event(encode_event(newer))
