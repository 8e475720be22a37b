"""Who shows a key: for servers, which let callers in by what they show.

To be let in is not to be allowed anything. Each command, question and job of a caller is admitted by how its
key stands at that moment, so what is answered here can be kept for a while: a key that is revoked or rotated
meanwhile still loses at once.
"""

from hmac import compare_digest

from leasehold.access.errors import AccessKeyExists
from leasehold.access.law.commands import CreateAccessKey
from leasehold.access.law.model import ACCESS, ALL, AccessKey, AccessRecord, Role, record_key
from leasehold.access.secret import drawn, read
from leasehold.engine.desk import answer_of
from leasehold.engine.registrar import Registrar
from leasehold.kernel.ledger.authority import now_of
from leasehold.kernel.ledger.commands import Caller
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.records import Keys, Wanted

_NO_DIGEST = "0" * 64


def authenticate(registrar: Registrar, text: str) -> Caller | None:
    """Return who shows the text of a key; None if no key has it that stands."""
    shown = read(text)
    if shown is None:
        return None
    wanted = Keys(families={ACCESS: Wanted(keys={record_key(shown.key_id)})})
    with registrar.store.snapshot() as snapshot:
        authority = snapshot.authority
        if authority is None:
            return None
        records: dict[str, AccessRecord] = snapshot.read(wanted).families[ACCESS].records
        now = now_of(authority, snapshot.reading())
    record = next(iter(records.values()), None)
    # Both comparisons, and for no key as for any: how long it takes tells nothing.
    digest = shown.digest
    is_present = compare_digest(digest, _NO_DIGEST if record is None else record.digest)
    is_earlier = compare_digest(digest, (record and record.earlier_digest) or _NO_DIGEST)
    if record is None or not (is_present or is_earlier):
        return None
    generation = record.generation if is_present else record.generation - 1
    if not record.takes(generation, now):
        return None
    return Caller(access=record.key_id, tenant=record.tenant or None, generation=generation)


def first_key(registrar: Registrar) -> str | None:
    """Create an admin key for all tenants if the store has none that is live; return its text, this once.

    Of several registrars that start at the same time, one creates it.
    """
    key = drawn(ALL)
    command = CreateAccessKey(
        request_id=registrar.ids.new(),
        holder=REGISTRAR,
        key_id=key.key_id,
        digest=key.digest,
        role=Role.ADMIN,
        for_all=True,
        description="created at the first start",
        only_first=True,
    )
    try:
        answer_of(registrar.call(command), AccessKey)
    except AccessKeyExists:
        return None
    return key.text
