"""How the key of a record is spelled, so that records can be kept, and scanned, in order.

A key is a tuple of texts and whole numbers, the tenant first. It is spelled once, here, and compared byte by
byte everywhere. Names cannot contain control characters, so a shorter key sorts right before all that begin
with it, and what lies under a prefix is one range.
"""

from leasehold.kernel.ledger.limits import NUMBER_MAXIMUM, NUMBER_MINIMUM

SEPARATOR = "\x01"
_AFTER_SEPARATOR = "\x02"
_OFFSET = 1 << 63

Part = str | int


def spell_key(*parts: Part) -> str:
    """Return the text that a key is kept, and sorted, by."""
    return SEPARATOR.join(part if isinstance(part, str) else spell_number(part) for part in parts)


def spell_number(number: int) -> str:
    """Return sixteen hexadecimal digits that sort as the number does."""
    if not NUMBER_MINIMUM <= number <= NUMBER_MAXIMUM:
        raise ValueError(f"{number} does not fit into 64 bits")
    return f"{number + _OFFSET:016x}"


def read_number(part: str) -> int:
    """Return the number that a part of a key spells."""
    return int(part, 16) - _OFFSET


def split_key(key: str) -> list[str]:
    """Return the parts of a key, numbers as they are spelled."""
    return key.split(SEPARATOR)


def under(*prefix: Part) -> tuple[str, str]:
    """Return the range of all keys that begin with these parts and go on: its first, and its end."""
    spelled = spell_key(*prefix)
    return spelled + SEPARATOR, spelled + _AFTER_SEPARATOR


def shown(key: str) -> str:
    """Spell a key for people."""
    return key.replace(SEPARATOR, "/")
