"""Plain REST for settings: `/v1/settings…`.

A setting's key is one of a few known words, so it stands in the path; a resource can be called anything, and
travels in the query or the body. That of a file is its canonical name, such as `/@shop/src/app.py`.
"""

from typing import Annotated, Any

import msgspec
from litestar import Router
from litestar.params import FromPath, QueryParameter
from msgspec import Meta, Struct

from leasehold.files.names import FileName
from leasehold.server.bodies import Taken
from leasehold.server.routing import Asking, get, put
from leasehold.settings.aio.settings import AsyncSettings
from leasehold.settings.catalog import Value
from leasehold.settings.shapes import setting_shape

_Resource = Annotated[str, QueryParameter(description="For this resource; left out: in general.")]


class SettingBody(Struct, kw_only=True):
    """A setting, and what is in force."""

    key: str
    value: Value
    default: Value
    type: str
    scope: str
    resource: str | None
    requires_restart: bool
    changed_at: str | None
    changed_by: str | None
    description: str


class SettingsBody(Struct, kw_only=True):
    """Every setting, and behind them the values that were set for single resources."""

    settings: list[SettingBody]


class EffectiveBody(Struct, kw_only=True):
    """What is in force."""

    key: str
    value: Value
    resource: str | None


class ChangeBody(Taken, kw_only=True):
    """Another value for a setting."""

    value: Annotated[Value | None, Meta(description="Null: its default, or the general value, again.")]
    holder: Annotated[str, Meta(description="Who changes it, for history.")]
    resource: Annotated[str, Meta(description="Only for this resource.")] = ""


class ChangedBody(Struct, kw_only=True):
    """What was in force before, and what is now."""

    key: str
    before: Value
    value: Value
    resource: str | None


_SETTING_EXAMPLE: dict[str, Any] = {
    "key": "default_ttl_seconds",
    "value": 600,
    "default": 3600,
    "type": "int",
    "scope": "global",
    "resource": None,
    "requires_restart": False,
    "changed_at": "2026-11-17T12:00:00.000000Z",
    "changed_by": "olga",
    "description": "how long a file lease lasts if its request does not say",
}


@get("/", "List settings", answer={"settings": [_SETTING_EXAMPLE]})
async def list_settings(session: Asking) -> SettingsBody:
    """Return every setting, and behind them the values that were set for single resources."""
    found = await AsyncSettings(session).list()
    return SettingsBody(settings=[msgspec.convert(setting_shape(one), SettingBody) for one in found])


@get("/{key:str}", "Get a setting", answer={"key": "default_ttl_seconds", "value": 600, "resource": None})
async def get_setting(session: Asking, key: FromPath[str], resource: _Resource = "") -> EffectiveBody:
    """Return what is in force for a resource, or in general."""
    value = await AsyncSettings(session).get(key, resource=_as_it_is(resource))
    return EffectiveBody(key=key, value=value, resource=resource or None)


@put(
    "/{key:str}",
    "Change a setting",
    409,
    body={"value": 600, "holder": "olga"},
    answer={"key": "default_ttl_seconds", "before": 3600, "value": 600, "resource": None},
)
async def change_setting(session: Asking, key: FromPath[str], data: ChangeBody) -> ChangedBody:
    """Change a setting for a resource, or in general: for operators. It is in force at once."""
    settings, resource = AsyncSettings(session.acting_as(data.holder)), _as_it_is(data.resource)
    if data.value is None:
        changed = await settings.reset(key, resource=resource)
    else:
        changed = await settings.set(key, data.value, resource=resource)
    return ChangedBody(
        key=changed.key, before=changed.before, value=changed.value, resource=changed.resource or None
    )


def _as_it_is(resource: str) -> FileName:
    """Name a resource as its caller has spelled it, who means no path of the server's machine."""
    return FileName(resource, resource)


router = Router(
    path="/v1/settings", route_handlers=[list_settings, get_setting, change_setting], tags=["settings"]
)
