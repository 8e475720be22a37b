"""Settings as programs see them, on every store and over a wire."""

from pathlib import Path
from typing import Any

import pytest

from leasehold import InvalidInput
from leasehold.files import LeaseAcquisitionRequest, name_of
from tests.client.worlds import World
from tests.files.conftest import git


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


@pytest.mark.parametrize("text", ["src/app.py", "./src/app.py", "src/[ab].py", "service://db"])
async def test_a_path_means_the_file_that_it_means_elsewhere(
    leases: Any, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init")
    git(tmp_path, "config", "leasehold.project", "shop")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").touch()
    monkeypatch.chdir(tmp_path)
    changed = await leases.settings.set("max_renewals", 1, resource=text)
    assert changed.resource == name_of(text).resource
    for same in (text, name_of(text), changed.resource):
        assert await leases.settings.get("max_renewals", resource=same) == 1
    assert (
        await leases.files.acquire_lease(LeaseAcquisitionRequest(file_path=text, agent_id="agent-7"))
    ).lease.max_renewals == 1
    await leases.settings.reset("max_renewals", resource=text)
    assert await leases.settings.get("max_renewals", resource=text) == -1


async def test_a_path_object_is_a_path_and_text_like_it_a_name(leases: Any) -> None:
    await leases.settings.set("max_renewals", 1, resource=Path("app.py"))
    assert await leases.settings.get("max_renewals", resource="./app.py") == 1
    assert await leases.settings.get("max_renewals", resource="app.py") == -1


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
