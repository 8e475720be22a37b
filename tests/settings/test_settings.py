"""Settings as programs see them, on every store and over a wire."""

from typing import Any

import pytest

from leasehold import InvalidInput
from tests.client.worlds import World


async def test_a_change_is_in_force_at_once_for_everybody(leases: Any, strangers: Any) -> None:
    assert await strangers.settings.get("default_ttl_seconds") == 3600
    changed = await leases.settings.set("default_ttl_seconds", 60)
    assert (changed.before, changed.value) == (3600, 60)
    assert await strangers.settings.get("default_ttl_seconds") == 60
    assert (await strangers.settings.reset("default_ttl_seconds")).value == 3600
    assert await leases.settings.get("default_ttl_seconds") == 3600


async def test_a_resource_can_have_a_value_of_its_own(leases: Any) -> None:
    await leases.settings.set("max_renewals", 5)
    await leases.settings.set("max_renewals", 1, resource="door")
    assert await leases.settings.get("max_renewals", resource="door") == 1
    assert await leases.settings.get("max_renewals", resource="window") == 5
    assert (await leases.settings.effective(resource="door")).max_renewals == 1


async def test_all_settings_are_listed_with_who_changed_them(world: World, leases: Any) -> None:
    await leases.settings.set("keep_history", False)
    await leases.settings.set("max_renewals", 1, resource="door")
    found = await leases.settings.list()
    assert len(found) == 9
    changed = [one for one in found if one.changed_by is not None]
    assert [(one.key, one.value, one.resource, one.scope, one.changed_by) for one in changed] == [
        ("keep_history", False, "", "global", "ann"),
        ("max_renewals", 1, "door", "resource", "ann"),
    ]
    assert changed[0].changed_at_ns == world.clock.wall_ns()
    assert not any(one.requires_restart for one in found)


async def test_tenants_have_settings_of_their_own(world: World, leases: Any) -> None:
    await leases.settings.set("max_renewals", 1, resource="door")
    others = world.connect(tenant="blue")
    assert await others.settings.get("max_renewals", resource="door") == -1
    assert len(await others.settings.list()) == 8


async def test_every_change_is_in_history(leases: Any) -> None:
    await leases.settings.set("max_renewals", 1, resource="door")
    await leases.settings.reset("max_renewals", resource="door")
    events = [one.event for one in await leases.history() if one.event.type == "settings.changed"]
    assert [(one.key, one.resource, one.before, one.value) for one in events] == [
        ("max_renewals", "door", None, 1),
        ("max_renewals", "door", 1, None),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("max_renewal", 1), "setting 'max_renewal' does not exist; did you mean 'max_renewals'?"),
        (("max_renewals", True), "value of max_renewals must be a whole number"),
        (("max_renewals", 1.5), "value must be true, false or a whole number"),
        (("keep_history", "no"), "value must be true, false or a whole number"),
        (("history_retention_days", 0), "value of history_retention_days must be from 1 to 36500"),
        ((5, 1), "key must be text"),
    ],
)
async def test_what_cannot_be_set_is_refused(leases: Any, arguments: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message.replace("?", "\\?")):
        await leases.settings.set(*arguments)
    assert all(one.changed_by is None for one in await leases.settings.list())


async def test_what_does_not_exist_cannot_be_asked_for(leases: Any) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        await leases.settings.get("max_renewal")
