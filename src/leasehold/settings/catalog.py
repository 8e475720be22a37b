"""Every setting there is: its type, its default, and where it can be set.

Pure, and the only list of them. A setting without an entry of its own is in force with its default.
"""

from difflib import get_close_matches

import msgspec

from leasehold.kernel.ledger.limits import RENEWALS_MAXIMUM

Value = bool | int

_SECONDS_PER_DAY = 86_400


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting, and what may be set."""

    key: str
    default: Value
    description: str
    is_store_wide: bool = False
    """One value for the whole store, whoever its tenants are; else one for each tenant and resource."""
    minimum: int = 0
    maximum: int = 0
    requires_restart: bool = False
    """No setting does: all are read whenever they are used."""

    @property
    def value_type(self) -> str:
        """Return the type of its values, as people write it."""
        return "bool" if isinstance(self.default, bool) else "int"

    def problem_with(self, value: object) -> str | None:
        """Say why a value cannot be set; None: it can be."""
        if isinstance(self.default, bool):
            return None if isinstance(value, bool) else "must be true or false"
        if isinstance(value, bool) or not isinstance(value, int):
            return "must be a whole number"
        if not self.minimum <= value <= self.maximum:
            return f"must be from {self.minimum} to {self.maximum}"
        return None


SETTINGS = {
    one.key: one
    for one in (
        Setting(
            key="default_ttl_seconds",
            default=3600,
            minimum=1,
            maximum=30 * _SECONDS_PER_DAY,
            description="how long a file lease lasts if its request does not say",
        ),
        Setting(
            key="max_renewals",
            default=-1,
            minimum=-1,
            maximum=RENEWALS_MAXIMUM,
            description="how often a file lease can be renewed if its request does not say; -1: no limit",
        ),
        Setting(
            key="acquisition_timeout_ms",
            default=30_000,
            minimum=0,
            maximum=_SECONDS_PER_DAY * 1_000,
            description="how long a blocking request waits for a file if it does not say",
        ),
        Setting(
            key="blocking_mode_enabled",
            default=True,
            description="whether a request may wait for a file; if not, it is answered at once",
        ),
        Setting(
            key="auto_expire_enabled",
            default=True,
            is_store_wide=True,
            description="whether expiries are recorded in the background; expired leases never block anybody",
        ),
        Setting(
            key="cleanup_interval_seconds",
            default=300,
            is_store_wide=True,
            minimum=1,
            maximum=_SECONDS_PER_DAY,
            description="how often every process that is connected records expiries in the background",
        ),
        Setting(
            key="keep_history",
            default=True,
            is_store_wide=True,
            description="whether history is kept for history_retention_days; if not, for an hour",
        ),
        Setting(
            key="history_retention_days",
            default=30,
            is_store_wide=True,
            minimum=1,
            maximum=36_500,
            description="how many days of history are kept; older entries are pruned once a day",
        ),
    )
}
"""Every setting, by its key."""


def unknown(key: str) -> str:
    """Say that there is no such setting, and which one may have been meant."""
    near = get_close_matches(key, SETTINGS, n=1)
    step = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(SETTINGS)}"
    return f"{key!r} does not exist; {step}"
