"""The law of settings: who may change one, to what, and what history keeps of it.

Pure. A setting that was changed has a record; to reset it removes the record, and its default is in force
again. Every change is an event that says what was in force before, and who changed it.
"""

from collections.abc import Iterable

import msgspec

from leasehold.kernel.ledger.commands import Caller, Command, Right
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import Event, Filing, stamp
from leasehold.kernel.ledger.family import Family
from leasehold.kernel.ledger.key import spell_key, split_key
from leasehold.kernel.ledger.limits import RESOURCE_BYTES, check_optional, check_text, invalid
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.state import State
from leasehold.settings.catalog import SETTINGS, Value, unknown

FAMILY = "settings"
STORE = ""
"""What stands in the place of a tenant where a setting is store-wide; no tenant can have that name."""


class SettingRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A setting that was changed."""

    key: str
    value: Value
    resource: str = ""
    """What it is set for; empty: for all that has no value of its own."""
    changed_at_ns: int
    changed_by: str


def scope_of(tenant: str, key: str) -> str:
    """Return whose setting it is when a tenant speaks of it: its own, or the store's."""
    return STORE if SETTINGS[key].is_store_wide else tenant


def record_key(tenant: str, key: str, resource: str = "") -> str:
    """Return the key of the record of a setting."""
    return spell_key(scope_of(tenant, key), resource, key)


class SettingChanged(Event, frozen=True, kw_only=True, omit_defaults=True, tag="settings.changed"):
    """A setting was given another value, or its default again."""

    is_remembered = True

    tenant: str
    """Empty for what holds for the whole store."""
    key: str
    resource: str = ""
    before: Value | None = None
    """None: its default was in force."""
    value: Value | None = None
    """None: its default is in force again."""

    @property
    def keys(self) -> tuple[str, ...]:
        return (spell_key(self.tenant, self.resource, self.key),)

    @property
    def filing(self) -> Filing:
        return (self.tenant or None, None, self.resource or None, self.actor, None)

    @property
    def story(self) -> str:
        before, after = (_spelled(value) for value in (self.before, self.value))
        return f"{self.key}: {before} → {after}"


def _spelled(value: Value | None) -> str:
    return "default" if value is None else str(value).lower()


class Changed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The setting has this value now."""

    key: str
    resource: str
    before: Value
    """What was in force before: for a resource, maybe that of its tenant, or the default."""
    value: Value


class ChangeSetting(Command, frozen=True, kw_only=True, omit_defaults=True, tag="change_setting"):
    """Set a setting; `value` None resets it to its default."""

    answer = Changed
    right = Right.OPERATE

    holder: str
    key: str
    value: Value | None = None
    resource: str = ""


def check(command: ChangeSetting) -> Refusal | None:
    """Refuse a setting that there is not, or a value that it cannot have."""
    setting = SETTINGS.get(command.key)
    if setting is None:
        return invalid("setting", unknown(command.key))
    for field in ("tenant", "request_id", "holder"):
        refusal = check_text(field, getattr(command, field))
        if refusal is not None:
            return refusal
    if command.resource and setting.is_store_wide:
        return invalid("resource", f"cannot be given: {command.key} is for the whole store")
    refusal = check_optional("resource", command.resource, RESOURCE_BYTES)
    if refusal is not None:
        return refusal
    problem = None if command.value is None else setting.problem_with(command.value)
    return None if problem is None else invalid("value", f"of {command.key} {problem}")


def admits(caller: Caller, command: Command, draft: Draft) -> Refusal | None:
    """Leave what holds for the whole store to callers that are not bound to one tenant."""
    del draft
    if caller.tenant is None or not isinstance(command, ChangeSetting):
        return None
    if not SETTINGS[command.key].is_store_wide:
        return None
    detail = f"{command.key} is for the whole store, and this caller is bound to tenant {caller.tenant}"
    return Refusal(code=RefusalCode.REFUSED, rule="NOT_PERMITTED", detail=f"{detail}; ask an operator")


def change(command: ChangeSetting, draft: Draft) -> Changed:
    """Change a setting.

    What is in force already is recorded, too: if that request were not remembered, a copy of it that arrives
    late would undo what somebody else has set since.
    """
    remembered = draft.remembered(command)
    if isinstance(remembered, SettingChanged):
        return _answer(command, remembered.before, remembered.value, draft)
    record: SettingRecord | None = draft.get(
        FAMILY, record_key(command.tenant, command.key, command.resource)
    )
    before = None if record is None else record.value
    draft.append(
        SettingChanged(
            **stamp(draft.now, scope_of(command.tenant, command.key), command.holder),
            request=command.request_key,
            key=command.key,
            resource=command.resource,
            before=before,
            value=command.value,
        )
    )
    return _answer(command, before, command.value, draft)


def _answer(command: ChangeSetting, before: Value | None, value: Value | None, draft: Draft) -> Changed:
    """Say what was and is in force where a value of its own is missing."""
    otherwise = SETTINGS[command.key].default
    if command.resource:
        general: SettingRecord | None = draft.get(FAMILY, record_key(command.tenant, command.key))
        otherwise = otherwise if general is None else general.value
    return Changed(
        key=command.key,
        resource=command.resource,
        before=otherwise if before is None else before,
        value=otherwise if value is None else value,
    )


def evolve(record: SettingRecord | None, event: SettingChanged, key: str) -> SettingRecord | None:
    """Return a setting after it was changed; one that has its value already keeps who set it, and when."""
    del key
    if event.value is None:
        return None
    if record is not None and record.value == event.value:
        return record
    return SettingRecord(
        key=event.key,
        value=event.value,
        resource=event.resource,
        changed_at_ns=event.at_ns,
        changed_by=event.actor,
    )


def invariants(state: State) -> Iterable[str]:
    """Yield a sentence for every record that no change could have left."""
    for key, record in state.of(FAMILY).items():
        setting = SETTINGS.get(record.key)
        scope, *place = split_key(key)
        if setting is None:
            yield f"there is a value for {record.key}, which is not a setting"
        elif place != [record.resource, record.key]:
            yield f"the value of {record.key} for {record.resource!r} is filed under another key"
        elif (scope == STORE) != setting.is_store_wide or (record.resource and setting.is_store_wide):
            yield f"the value of {record.key} is filed where nobody looks for it"
        elif (problem := setting.problem_with(record.value)) is not None:
            yield f"{record.key} is {record.value!r}, and {problem}"


def sweeps(draft: Draft) -> bool:
    """Say whether expiries are to be recorded in passing."""
    record: SettingRecord | None = draft.get(FAMILY, record_key(STORE, "auto_expire_enabled"))
    return record is None or bool(record.value)


def settings_family() -> Family:
    """Return the family of settings."""
    return Family(
        name=FAMILY,
        record=SettingRecord,
        events=(SettingChanged,),
        rules={ChangeSetting: change},
        check=check,
        admits=admits,
        evolve=evolve,
        invariants=invariants,
        sweeps=sweeps,
    )
