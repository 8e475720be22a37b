"""Which files belong to the repository that a hook is installed in.

A hook knows of one repository, or of one folder that is in none. What lies elsewhere is left alone,
whatever is the matter with it; work trees and clones of the same repository are not elsewhere, because
their files have the same names. Who writes a folder around the repository, writes all of the repository.
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
        found = [self._around(path) or path for path in paths]
        return [path for path in found if self._has(os.path.realpath(path))]

    def _around(self, path: str) -> str | None:
        """Return our own folder for one that it is in; None for any other path."""
        own, place = self._top or self._folder, os.path.realpath(path)
        return own if own != place and f"{own}/".startswith(f"{place.rstrip('/')}/") else None

    def _has(self, place: str) -> bool:
        top = top_of(place)
        if self._top is None:
            return top is None and f"{place}/".startswith(f"{self._folder.rstrip('/')}/")
        return top == self._top or (top is not None and self._is_copy(top))

    def _is_copy(self, top: str) -> bool:
        """Say whether another work tree is of the same project."""
        try:
            own, other = project_of(self._folder), project_of(top)
        except InvalidInput:  # One of them has no name, so nothing can be leased in both.
            return False
        return own is not None and other is not None and own.name == other.name
