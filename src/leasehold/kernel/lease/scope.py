"""What may be done under a lease: on which work, with which tools, in which namespaces.

A scope allows what it names and nothing else; an empty one allows nothing. A namespace is a path, and
covers everything below it: `data` covers `data/raw`, and not `database`. A path with a `..` component is
refused whatever the scope, because what it leads to cannot be told from its text.
"""

import msgspec

PARTS = ("work_ids", "tools", "namespaces")


class Scope(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What a lease allows. `unlimited` allows everything, and stands alone."""

    work_ids: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    unlimited: bool = False

    def canonical(self) -> "Scope":
        """Return the same scope, spelled in the one way that is kept and signed: sorted, nothing twice."""
        return Scope(
            work_ids=tuple(sorted(set(self.work_ids))),
            tools=tuple(sorted(set(self.tools))),
            namespaces=tuple(sorted(set(self.namespaces))),
            unlimited=self.unlimited,
        )

    def exceeds(self, other: "Scope") -> str | None:
        """Say what of this scope the other one does not allow; None: this is a part of it."""
        if other.unlimited:
            return None
        if self.unlimited:
            return "everything"
        return next(
            (
                f"{kind} {name!r}"
                for kind, names in (
                    ("work id", self.work_ids),
                    ("tool", self.tools),
                    ("namespace", self.namespaces),
                )
                for name in names
                if not other._names(kind, name)
            ),
            None,
        )

    def denies(
        self, *, work_id: str | None = None, tool: str | None = None, namespace: str | None = None
    ) -> str | None:
        """Say what of an access is not allowed; None: all of it is."""
        for kind, name in (("work id", work_id), ("tool", tool), ("namespace", namespace)):
            if name is None:
                continue
            if kind == "namespace" and climbs(name):
                return f"namespace {name!r}, which climbs out of itself"
            if not self.unlimited and not self._names(kind, name):
                return f"{kind} {name!r}"
        return None

    def _names(self, kind: str, name: str) -> bool:
        if kind == "work id":
            return name in self.work_ids
        if kind == "tool":
            return name in self.tools
        return any(_covers(namespace, name) for namespace in self.namespaces)


def climbs(path: str) -> bool:
    """Say whether a path has a `..` component, also for readers that take a backslash for a separator."""
    return ".." in path.replace("\\", "/").split("/")


def _covers(namespace: str, path: str) -> bool:
    if namespace.startswith("/") != path.startswith("/"):
        return False
    above, below = _components(namespace), _components(path)
    return below[: len(above)] == above


def _components(path: str) -> list[str]:
    return [component for component in path.split("/") if component not in ("", ".")]
