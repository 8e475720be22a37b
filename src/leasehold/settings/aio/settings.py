"""Settings for programs: what is in force, for how long it has been, and changing it."""

import os

from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import text
from leasehold.engine.desk import answer_of
from leasehold.errors import InvalidInput
from leasehold.files.names import AnyPath, FileName, resource_of
from leasehold.settings.catalog import SETTINGS, Value, unknown
from leasehold.settings.law import Changed, ChangeSetting
from leasehold.settings.questions import Effective, FindEffective, ListSettings, SettingState


class AsyncSettings:
    """The settings of a store. A change is in force at once, in every process that is connected.

    A resource is named as on the command line: text with a `/`, or a `.` at its beginning, is a path, and
    means the file that `leases.files` means by it, as does a path object. Other text is a plain name. A
    `FileName` is taken as it is.
    """

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    def __repr__(self) -> str:
        return self._session.face("settings")

    async def get(self, key: str, *, resource: AnyPath | FileName = "") -> Value:
        """Return what is in force for a resource, or in general."""
        if text("key", key) not in SETTINGS:
            raise InvalidInput(f"setting {unknown(key)}", field="setting")
        found: Value = getattr(await self.effective(resource=resource), key)
        return found

    async def set(self, key: str, value: Value, *, resource: AnyPath | FileName = "") -> Changed:
        """Change a setting for a resource, or in general; return what was in force before, and what is now.

        Raises `InvalidInput` for a setting that there is not, or a value that it cannot have.
        """
        if not isinstance(value, bool | int):
            raise InvalidInput(f"value must be true, false or a whole number, not {value!r}", field="value")
        return await self._change(key, value, resource)

    async def reset(self, key: str, *, resource: AnyPath | FileName = "") -> Changed:
        """Let the default, or for a resource the general value, be in force again."""
        return await self._change(key, None, resource)

    async def effective(self, *, resource: AnyPath | FileName = "") -> Effective:
        """Return everything that is in force for a resource, or in general."""
        return await self._session.ask(FindEffective(tenant=self._session.tenant, resource=_named(resource)))

    async def list(self) -> list[SettingState]:
        """Return every setting, and behind them the values that were set for single resources."""
        return await self._session.ask(ListSettings(tenant=self._session.tenant))

    async def _change(self, key: str, value: Value | None, resource: AnyPath | FileName) -> Changed:
        command = ChangeSetting(
            tenant=self._session.tenant,
            request_id=self._session.ids.name(),
            holder=self._session.holders.current(),
            key=text("key", key),
            value=value,
            resource=_named(resource),
        )
        return answer_of(await self._session.send(command), Changed)


def _named(resource: AnyPath | FileName) -> str:
    """Return the name of a resource; empty if none was given."""
    if isinstance(resource, FileName):
        return resource.resource
    return resource_of(resource if isinstance(resource, os.PathLike) else text("resource", resource))
