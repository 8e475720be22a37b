"""Certificates as a client gets them from the registrar."""

from typing import Any

import pytest
from msgspec.structs import replace

import leasehold
from leasehold.certificates.errors import CertificateExpired, CertificateKeyRetired, CertificateKeyUnknown
from leasehold.certificates.issuing import trusted_keys_of
from leasehold.engine.keyholding import rotate
from leasehold.engine.questions import ListKeys
from leasehold.engine.signing import SigningKey
from leasehold.kernel.lease.commands import Acquire, Derive
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.keys import Key, voucher_message
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND
from leasehold.testing.clock import FakeClock
from tests.client.worlds import World
from tests.engine.doubles import registrar_of


def checked(text: str, keys: Any, clock: FakeClock, resource: str = "door") -> leasehold.Certificate:
    now = clock.wall_ns() / NANOSECONDS_PER_SECOND
    return leasehold.verify_certificate(text, keys=keys, resource=resource, now=now)


async def test_a_held_lease_proves_itself_to_who_knows_only_the_public_key(
    leases: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door", ttl=30)
    clock.advance(10)
    keys = (await leases.certificate_keys()).to_jwks()

    proven = checked(await lease.certificate(), keys, clock)

    assert (proven.resource, proven.holder, proven.tenant) == ("door", "ann", "default")
    assert (proven.lease_id, proven.token, proven.mode) == (lease.lease_id, lease.token, lease.mode)
    assert proven.position == (await leases.history())[-1].position
    assert proven.issued_at_ns == clock.wall_ns()
    assert proven.expires_at_ns == clock.wall_ns() + 20 * 10**9
    assert proven.granted_at_ns == clock.wall_ns() - 10 * 10**9
    assert proven.issuer == f"leasehold:{keys['keys'][0]['kid']}"


async def test_anybody_who_reaches_the_registrar_can_have_a_lease_certified(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door")
    text = await strangers.certificate(lease.lease_id)
    assert checked(text, await leases.certificate_keys(), clock).holder == "ann"


async def test_its_expiry_follows_the_authority_s_clock_and_not_a_wall_clock_that_was_turned(
    leases: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door", ttl=30)
    clock.jump_wall(3_600)
    proven = checked(await lease.certificate(), await leases.certificate_keys(), clock)
    assert proven.expires_at_ns == clock.wall_ns() + 30 * 10**9


async def test_a_renewal_asks_for_a_new_certificate(leases: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("door", ttl=30)
    keys = await leases.certificate_keys()
    old = await lease.certificate()
    clock.advance(20)
    await lease.renew()
    new = await lease.certificate()
    clock.advance(15)
    with pytest.raises(CertificateExpired):
        checked(old, keys, clock)
    assert checked(new, keys, clock).token == lease.token


async def test_a_revocation_is_not_in_a_certificate_that_was_made_before(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    """What a certificate cannot know; the documentation says so, and the next token makes up for it."""
    lease = await leases.acquire("door")
    keys, text = await leases.certificate_keys(), await lease.certificate()
    await leases.revoke(lease.lease_id, reason="test")
    assert checked(text, keys, clock).token == lease.token
    successor = await strangers.acquire("door")
    newer = checked(await successor.certificate(), keys, clock)
    with pytest.raises(leasehold.StaleToken):
        leasehold.verify_certificate(
            text,
            keys=keys,
            resource="door",
            minimum_token=newer.token,
            now=clock.wall_ns() / NANOSECONDS_PER_SECOND,
        )


async def test_what_does_not_stand_gets_no_certificate(leases: Any, clock: FakeClock) -> None:
    released = await leases.acquire("released")
    await released.release()
    revoked = await leases.acquire("revoked")
    await leases.revoke(revoked.lease_id, reason="test")
    expired = await leases.acquire("expired", ttl=5)
    clock.advance(5)
    for lease_id, error in (
        (released.lease_id, leasehold.LeaseTerminal),
        (revoked.lease_id, leasehold.LeaseTerminal),
        (expired.lease_id, leasehold.LeaseExpired),
        ("nonsense", leasehold.LeaseNotFound),
    ):
        with pytest.raises(error) as refused:
            await leases.certificate(lease_id)
        assert type(refused.value) is error
        assert refused.value.lease_id == lease_id


async def test_who_only_waits_gets_no_certificate(leases: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = await leases.acquire("door")
    pending = replace(lease.lease, state=leasehold.LeaseState.PENDING)
    status = leasehold.LeaseStatus(lease=pending, expires_in=30.0)
    monkeypatch.setattr("leasehold.certificates.issuing.status_of", lambda *_: status)
    with pytest.raises(leasehold.LeaseLost, match="once it is granted"):
        await leases.certificate(lease.lease_id)


async def test_a_lost_lease_proves_nothing_any_more(leases: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("door", ttl=5)
    clock.advance(5)
    with pytest.raises(leasehold.LeaseLost):
        await lease.certificate()


async def test_another_tenant_s_lease_is_not_certified(leases: Any, world: World) -> None:
    lease = await leases.acquire("door")
    others = world.connect(holder="ann", tenant="acme")
    with pytest.raises(leasehold.LeaseNotFound):
        await others.certificate(lease.lease_id)


async def test_the_keys_of_another_store_do_not_do(
    leases: Any, clock: FakeClock, store_kind: str, client_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = World(store_kind, client_kind, clock, tmp_path_factory.mktemp("elsewhere"))
    other = elsewhere.connect(holder="ann")
    await other.acquire("door")
    text = await (await leases.acquire("door")).certificate()
    with pytest.raises(CertificateKeyUnknown):
        checked(text, await other.certificate_keys(), clock)
    await elsewhere.close()


async def test_after_a_reboot_a_lease_that_survived_is_certified_with_what_it_has_left(
    leases: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door", ttl=60, survives_reboot=True)
    clock.advance(20)
    await leases.acquire("window")
    clock.reboot(down_seconds=100)
    await leases.acquire("gate")
    text = await leases.certificate(lease.lease_id)
    proven = checked(text, await leases.certificate_keys(), clock)
    assert proven.expires_at_ns == clock.wall_ns() + 40 * 10**9


async def test_a_child_is_certified_with_its_scope_until_any_lease_above_it_ends(
    leases: Any, clock: FakeClock
) -> None:
    registrar = registrar_of(leases)
    scope = Scope(tools=("search",))
    registrar.call(
        Acquire(
            request_id="r-1",
            lease_id="parent",
            resource="work",
            holder="ann",
            ttl_ns=60 * 10**9,
            scope=Scope(unlimited=True),
        )
    )
    registrar.call(
        Derive(
            request_id="r-2",
            parent_id="parent",
            holder="ann",
            lease_id="child",
            resource="part",
            child_holder="bob",
            scope=scope,
        )
    )
    keys = await leases.certificate_keys()
    assert checked(await leases.certificate("child"), keys, clock, "part").scope == scope
    assert checked(await leases.certificate("parent"), keys, clock, "work").scope == Scope(unlimited=True)

    await leases.revoke("parent", reason="test")
    with pytest.raises(leasehold.LeaseLost):
        await leases.certificate("child")


async def test_after_a_rotation_the_new_key_signs_and_the_retired_one_proves_nothing(
    leases: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door")
    before, published = await lease.certificate(), (await leases.certificate_keys()).to_jwks()
    rotate(registrar_of(leases).store, actor="olga")

    keys = await leases.certificate_keys()
    after = await lease.certificate()

    assert checked(after, keys, clock).issuer == checked(before, published, clock).issuer
    with pytest.raises(CertificateKeyRetired):
        checked(before, keys, clock)
    with pytest.raises(CertificateKeyUnknown):
        checked(after, published, clock)


async def test_a_key_that_nobody_vouches_for_is_not_published(leases: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("door")
    store = registrar_of(leases).store
    first, impostor = registrar_of(leases).ask(ListKeys())[0], SigningKey(bytes(32))
    lonely = Key(
        public_key=impostor.public_key, number=2, enrolled_at_ns=0, enrolled_by="mallory", vouched_by=b""
    )
    liar = replace(lonely, vouched_by=first.public_key, voucher=impostor.sign(b"trust me"))
    own = store.sealer.key_for(None, lambda: [first])
    friend = replace(
        lonely, vouched_by=first.public_key, voucher=own.sign(voucher_message(impostor.public_key))
    )
    for key, trusted in ((lonely, 1), (liar, 1), (friend, 2)):
        keys = trusted_keys_of([first, key])
        assert len(keys.to_jwks()["keys"]) == trusted
        assert checked(await lease.certificate(), keys, clock).holder == "ann"
