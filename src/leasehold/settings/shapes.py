"""What programs are told about settings: by `--json`, and by the server."""

from typing import Any

from leasehold.settings.questions import SettingState
from leasehold.shapes import utc


def setting_shape(one: SettingState) -> dict[str, Any]:
    """Return a setting, and what is in force."""
    return {
        "key": one.key,
        "value": one.value,
        "default": one.default,
        "type": one.value_type,
        "scope": one.scope,
        "resource": one.resource or None,
        "requires_restart": one.requires_restart,
        "changed_at": utc(one.changed_at_ns),
        "changed_by": one.changed_by,
        "description": one.description,
    }
