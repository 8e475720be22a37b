"""What can be asked about access keys, and how it is answered: never with a secret, or a digest of one."""

from typing import Any

import msgspec

from leasehold.access.law.model import (
    ACCESS,
    AccessKey,
    AccessRecord,
    every_key,
    keys_of,
    record_key,
    shown,
)
from leasehold.engine.port import Snapshot
from leasehold.engine.questions import Question, check_limit
from leasehold.engine.registrar import Registrar
from leasehold.kernel.ledger.authority import now_of
from leasehold.kernel.ledger.commands import Right
from leasehold.kernel.ledger.records import Found, Keys, Scan, Wanted


class Bearer(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, as the registrar knows it."""

    key: AccessKey | None
    """The access key that was shown; None: the store is at hand."""


class ListAccessKeys(Question[list[AccessKey]], frozen=True, kw_only=True, tag="list_access_keys"):
    """Ask for a page of access keys, in the order of their ids: of a tenant, or of whatever there is."""

    right = Right.ADMINISTER
    tells_time = False

    after: str = ""
    limit: int = 1_000


class FindBearer(Question[Bearer], frozen=True, kw_only=True, tag="find_bearer"):
    """Ask which access key one is asking with."""

    right = Right.LOOK
    tells_time = False


def list_access_keys(registrar: Registrar, question: ListAccessKeys, snapshot: Snapshot) -> list[AccessKey]:
    """Return a page of keys."""
    del registrar
    check_limit(question.limit)
    tenant, after = question.tenant, question.after
    bounds = every_key(after) if tenant is None else keys_of(tenant, after)
    scan = Scan(*bounds, question.limit)
    found = _read(snapshot, Wanted(scans={scan}))
    records: list[AccessRecord] = [found.records[key] for key in found.scans[scan]]
    return _shown([one for one in records if tenant in (None, one.tenant)], snapshot)


def find_bearer(registrar: Registrar, question: FindBearer, snapshot: Snapshot) -> Bearer:
    """Return the key that the caller has shown."""
    del question
    access = registrar.caller.access
    found = _read(snapshot, Wanted(keys={record_key(access)})).records if access else {}
    keys = _shown(list(found.values()), snapshot)
    return Bearer(key=keys[0] if keys else None)


REPLIES: dict[type[Question[Any]], Any] = {ListAccessKeys: list_access_keys, FindBearer: find_bearer}
"""Who answers each of these questions."""


def _read(snapshot: Snapshot, wanted: Wanted) -> Found:
    found: Found = snapshot.read(Keys(families={ACCESS: wanted})).families[ACCESS]
    return found


def _shown(records: list[AccessRecord], snapshot: Snapshot) -> list[AccessKey]:
    authority = snapshot.authority
    if authority is None:
        return []
    now = now_of(authority, snapshot.reading())
    return [shown(one, now) for one in records]
