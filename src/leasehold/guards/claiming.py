"""How an agent comes by the file that it is about to change: by looking first, and claiming if it has to.

Most of the time the agent has the file already, with time enough left: then nothing is written, and nobody is
waited for.
"""

from collections.abc import Sequence

from leasehold.errors import Held
from leasehold.files.names import FileName
from leasehold.guards.asking import (
    Asker,
    Target,
    claim,
    record_bypass,
    refusals,
    refused,
    standing,
)
from leasehold.guards.records import opened
from leasehold.guards.rivals import has_long

_FRESH = 0.5
"""Which part of its TTL a lease must have left, or it is renewed in passing."""


def take(
    names: Sequence[FileName], asker: Asker, *, claimed: Sequence[FileName], reason: str, bypass: str
) -> str:
    """Own files for an agent, or go past who owns them; return why not, or nothing.

    Nobody else may have any of them; only those that are to be `claimed` are the agent's afterwards.
    """
    targets = [Target(name) for name in names]
    with opened(asker.place.address) as records:
        if records is not None:
            found = refused(records, targets, asker)
            if found and not bypass:
                return "\n".join(refusals(records, found, asker))
            if not found and all(
                has_long(standing(records, name, asker), asker.agent, name.resource, _FRESH)
                for name in claimed
            ):
                return ""
    if records is not None and found:
        record_bypass(found, asker, bypass)
        return ""
    if not claimed:
        return ""
    try:
        claim(claimed, asker, reason)
    except Held as error:  # Somebody was quicker.
        with opened(asker.place.address) as records:
            found = [] if records is None else refused(records, targets, asker)
            return "\n".join(refusals(records, found, asker)) if records and found else str(error)
    return ""
