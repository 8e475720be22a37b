"""Who shows a key, and the first key of a store."""

import threading

import pytest

from leasehold.access import authenticate, first_key
from leasehold.access.law.model import Role
from leasehold.access.secret import KeyText, drawn, read
from leasehold.engine.questions import FindHead
from leasehold.engine.registrar import Registrar
from leasehold.kernel.ledger.commands import Caller
from leasehold.testing.clock import FakeClock
from tests.access.keys import created, desk_of, revoke, rotate

HOUR_NS = 3600 * 10**9


def test_a_key_says_who_shows_it(registrar: Registrar) -> None:
    key = created(registrar, Role.HOLDER, "acme")
    assert authenticate(registrar, key.text) == Caller(access=key.key_id, tenant="acme", generation=1)


def test_a_key_for_all_tenants_is_bound_to_none(registrar: Registrar) -> None:
    key = created(registrar, Role.OPERATOR)
    assert authenticate(registrar, key.text) == Caller(access=key.key_id, generation=1)


def test_nothing_but_the_very_secret_opens(registrar: Registrar) -> None:
    key, other = created(registrar, Role.ADMIN), created(registrar, Role.ADMIN)
    texts = [
        "",
        "lh",
        "lh__",
        f"lh_{key.key_id}_",
        f"lh_{key.key_id}_{other.secret}",
        f"lh_{key.key_id}_{key.secret[:-1]}",
        f"lh_{key.key_id}_{key.secret}0",
        f"lh_{key.key_id}_{key.secret.upper()}",
        f"lh_{key.key_id}_{key.digest}",
        f"LH_{key.key_id}_{key.secret}",
        f"lh_{key.key_id}_{key.secret}_",
        f" {key.text}",
        f"{key.text}\n",
        f"lh_{drawn('').key_id}_{key.secret}",
        f"lh_{key.key_id}\x00_{key.secret}",
        f"lh_é_{key.secret}",
        "\ud800",
        f"lh_{'0' * 100_000}_{key.secret}",
    ]
    assert [text for text in texts if authenticate(registrar, text) is not None] == []


def test_the_secret_of_a_key_is_not_shown_by_accident() -> None:
    key = drawn("acme")
    assert key.secret not in repr(key)
    assert key.secret not in f"{key}"
    assert read(key.text) == key


def test_a_secret_has_256_random_bits() -> None:
    drawn_keys = [drawn("acme") for _ in range(100)]
    assert len({key.secret for key in drawn_keys}) == len({key.key_id for key in drawn_keys}) == 100
    assert all(len(bytes.fromhex(key.secret)) == 32 for key in drawn_keys)


def test_a_revoked_key_opens_nothing(registrar: Registrar) -> None:
    key = created(registrar, Role.VIEWER)
    registrar.call(revoke(key.key_id))
    assert authenticate(registrar, key.text) is None


def test_a_rotated_key_has_one_secret(registrar: Registrar) -> None:
    old = created(registrar, Role.VIEWER)
    new, command = rotate(old.key_id)
    registrar.call(command)
    assert authenticate(registrar, old.text) is None
    assert authenticate(registrar, new.text) == Caller(access=old.key_id, generation=2)


def test_the_old_secret_is_good_for_the_overlap(registrar: Registrar, clock: FakeClock) -> None:
    old = created(registrar, Role.VIEWER)
    new, command = rotate(old.key_id, overlap_ns=HOUR_NS)
    registrar.call(command)
    clock.advance(3599)
    assert authenticate(registrar, old.text) == Caller(access=old.key_id, generation=1)
    clock.advance(1)
    assert authenticate(registrar, old.text) is None
    assert authenticate(registrar, new.text) is not None


def test_a_second_rotation_ends_the_overlap_of_the_first(registrar: Registrar) -> None:
    first = created(registrar, Role.VIEWER)
    second, command = rotate(first.key_id, overlap_ns=HOUR_NS)
    registrar.call(command)
    third, command = rotate(first.key_id, overlap_ns=HOUR_NS)
    registrar.call(command)
    opens = [authenticate(registrar, key.text) is not None for key in (first, second, third)]
    assert opens == [False, True, True]


def test_a_key_expires(registrar: Registrar, clock: FakeClock) -> None:
    key = created(registrar, Role.VIEWER, lifetime_ns=HOUR_NS)
    clock.advance(3599)
    assert authenticate(registrar, key.text) is not None
    clock.advance(1)
    assert authenticate(registrar, key.text) is None


def test_a_store_gets_one_first_key(registrar: Registrar) -> None:
    text = first_key(registrar)
    assert text is not None
    assert authenticate(registrar, text) == Caller(access=text.split("_")[1], generation=1)
    assert first_key(registrar) is None


def test_a_store_whose_admin_keys_have_all_expired_gets_another(
    registrar: Registrar, clock: FakeClock
) -> None:
    created(registrar, Role.ADMIN, lifetime_ns=HOUR_NS)
    created(registrar, Role.ADMIN, "acme")
    created(registrar, Role.OPERATOR)
    assert first_key(registrar) is None
    clock.advance(3600)
    assert first_key(registrar) is not None


def test_of_registrars_that_start_at_once_one_creates_the_first_key(registrar: Registrar) -> None:
    texts: list[str | None] = []
    threads = [threading.Thread(target=lambda: texts.append(first_key(registrar))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([text for text in texts if text is not None]) == 1


def test_a_guest_closes_nothing(registrar: Registrar) -> None:
    guest = desk_of(registrar, created(registrar, Role.VIEWER))
    guest.stop_granting()
    guest.close()
    assert desk_of(registrar, created(registrar, Role.VIEWER)).ask(FindHead()) == registrar.ask(FindHead())


@pytest.mark.parametrize("shown", [KeyText("", ""), KeyText("x" * 60, "y" * 64)])
def test_a_key_that_nobody_knows_opens_nothing(registrar: Registrar, shown: KeyText) -> None:
    assert authenticate(registrar, shown.text) is None
