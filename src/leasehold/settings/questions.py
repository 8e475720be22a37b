"""What can be asked about settings, and the answers, each as of one moment of the store."""

import msgspec

from leasehold.engine.port import Snapshot
from leasehold.engine.questions import Question
from leasehold.engine.registrar import Registrar
from leasehold.errors import StoreUnusable
from leasehold.kernel.ledger.commands import Right
from leasehold.kernel.ledger.key import under
from leasehold.kernel.ledger.records import Keys, Scan, Wanted
from leasehold.settings.catalog import SETTINGS, Value
from leasehold.settings.law import FAMILY, STORE, SettingRecord, record_key

_MOST = 10_000
"""How many values one answer lists, of a tenant's own."""


class SettingState(msgspec.Struct, frozen=True, kw_only=True):
    """A setting, and what is in force."""

    key: str
    value: Value
    default: Value
    value_type: str
    description: str
    scope: str
    """`global`, or `resource` for the value of one resource."""
    resource: str = ""
    requires_restart: bool = False
    changed_at_ns: int | None = None
    """When it was last set, in wall time; None: its default is in force."""
    changed_by: str | None = None


class Effective(msgspec.Struct, frozen=True, kw_only=True):
    """What is in force for a resource, or where no resource is meant."""

    default_ttl_seconds: int
    max_renewals: int
    acquisition_timeout_ms: int
    blocking_mode_enabled: bool
    auto_expire_enabled: bool
    cleanup_interval_seconds: int
    keep_history: bool
    history_retention_days: int


class ListSettings(Question[list[SettingState]], frozen=True, kw_only=True, tag="list_settings"):
    """Ask for every setting, and every value that was set for one resource."""

    right = Right.LOOK
    tells_time = False


class FindEffective(Question[Effective], frozen=True, kw_only=True, tag="find_effective_settings"):
    """Ask what is in force, for a resource or in general."""

    right = Right.LOOK
    tells_time = False

    resource: str = ""


def list_settings(registrar: Registrar, question: ListSettings, snapshot: Snapshot) -> list[SettingState]:
    """Return every setting in the order of the catalog, and behind them the values of single resources."""
    del registrar
    tenant = question.one_tenant
    scans = {Scan(*under(scope), _MOST) for scope in (STORE, tenant)}
    records = _read(snapshot, Wanted(scans=scans))
    general = [_state(key, records.pop(record_key(tenant, key), None)) for key in SETTINGS]
    return general + [_state(record.key, record) for record in records.values()]


def find_effective(registrar: Registrar, question: FindEffective, snapshot: Snapshot) -> Effective:
    """Return what is in force: the value of the resource, else the general one, else the default."""
    del registrar
    return effective(snapshot, question.one_tenant, question.resource)


def effective(snapshot: Snapshot, tenant: str, resource: str = "") -> Effective:
    """Return what is in force as of a snapshot."""
    places = {key: [record_key(tenant, key, resource), record_key(tenant, key)] for key in SETTINGS}
    records = _read(snapshot, Wanted(keys={place for both in places.values() for place in both}))
    values = {
        key: next((records[place].value for place in both if place in records), SETTINGS[key].default)
        for key, both in places.items()
    }
    return msgspec.convert(values, Effective)


def _read(snapshot: Snapshot, wanted: Wanted) -> dict[str, SettingRecord]:
    found: dict[str, SettingRecord] = snapshot.read(Keys(families={FAMILY: wanted})).families[FAMILY].records
    for record in found.values():
        setting = SETTINGS.get(record.key)
        if setting is None or setting.problem_with(record.value) is not None:
            # Nobody could have set it. To go on with its default could remove history that is to be kept.
            raise StoreUnusable(
                f"the tables say that setting {record.key!r} is {record.value!r}, which it cannot be; "
                "see what `leasehold verify` says"
            )
    return dict(sorted(found.items()))


def _state(key: str, record: SettingRecord | None) -> SettingState:
    setting = SETTINGS[key]
    return SettingState(
        key=key,
        value=setting.default if record is None else record.value,
        default=setting.default,
        value_type=setting.value_type,
        description=setting.description,
        scope="resource" if record is not None and record.resource else "global",
        resource="" if record is None else record.resource,
        requires_restart=setting.requires_restart,
        changed_at_ns=None if record is None else record.changed_at_ns,
        changed_by=None if record is None else record.changed_by,
    )
