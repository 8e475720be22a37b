"""Which files belong to the repository that a hook is installed in.

A hook knows of one repository, or of one folder that is in none. What lies elsewhere is left alone,
whatever is the matter with it; work trees and clones of the same repository are not elsewhere, because
their files have the same names.
"""

import os
from collections.abc import Iterable

from leasehold.errors import InvalidInput
from leasehold.files.project import project_of, top_of


class Home:
    """The repository around a folder, or the folder itself."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.realpath(folder)
        self._top = top_of(self._folder)

    def own(self, paths: Iterable[str]) -> list[str]:
        """Return those of some absolute paths that belong here."""
        return [path for path in paths if self._has(os.path.realpath(path))]

    def _has(self, place: str) -> bool:
        if self._top is None:
            return place == self._folder or place.startswith(f"{self._folder.rstrip('/')}/")
        top = top_of(place)
        if top is None or top == self._top:
            return top is not None
        try:
            other = project_of(top)
        except InvalidInput:  # Nobody can tell what is in there, and nothing of it was ever leased from here.
            return False
        own = project_of(self._top)
        return own is not None and other is not None and own.name == other.name
