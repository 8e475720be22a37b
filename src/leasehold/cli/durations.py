"""Durations as people write them: 90, 90s, 5m, 1h30m, 500ms."""

import argparse
import re

_NUMBER = r"(\d+(?:\.\d+)?)"
_DURATION = re.compile(
    rf"(?:{_NUMBER}d)?(?:{_NUMBER}h)?(?:{_NUMBER}m(?!s))?(?:{_NUMBER}s)?(?:{_NUMBER}ms)?", re.ASCII
)
_SECONDS_PER_UNIT = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)


def parse_duration(text: str) -> float:
    """Return the seconds that `text` means; a number alone counts seconds."""
    if re.fullmatch(_NUMBER, text, re.ASCII):
        return float(text)
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise argparse.ArgumentTypeError(f"invalid duration {text!r}; write 90, 90s, 5m, 1h30m or 500ms")
    amounts = zip(match.groups(), _SECONDS_PER_UNIT, strict=True)
    return sum(float(amount) * seconds for amount, seconds in amounts if amount is not None)


def format_duration(seconds: float) -> str:
    """Spell seconds so that `parse_duration` would read them: 500ms, 1.5s, 42s, 1m30s, 2h5m, 3d4h."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (rest, "s")]
    first = next(index for index, (amount, _) in enumerate(parts) if amount)
    return "".join(f"{amount}{unit}" for amount, unit in parts[first : first + 2] if amount)
