"""What is kept beside the ledger, and can be lost without harm."""

from collections.abc import Mapping, Sequence


class MemorySoftState:
    """Values by family and key. Each step is one operation on one dictionary, so threads need no lock."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, bytes]] = {}

    def put(self, family: str, values: Mapping[str, bytes]) -> None:
        """Keep values by key, each in the place of the one before; an empty one takes its key away."""
        here = self._values.setdefault(family, {})
        here.update({key: value for key, value in values.items() if value})
        for key, value in values.items():
            if not value:
                here.pop(key, None)

    def get(self, family: str) -> dict[str, bytes]:
        """Return all values of a family, by key."""
        return dict(self._values.get(family, {}))

    def forget(self, forgotten: Mapping[str, Sequence[str]]) -> None:
        """Let go of what was kept beside records that are gone."""
        for family, keys in forgotten.items():
            self.put(family, dict.fromkeys(keys, b""))
