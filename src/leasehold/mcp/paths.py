"""How files are named between an agent and its server.

An agent writes paths as it would to any of its tools: absolute, or from the folder that the server was
started in. What it reads here it can pass back: told from the same folder, and escaped where it would be
taken for a pattern.
"""

import asyncio
import os
from collections.abc import Iterable
from functools import lru_cache

from leasehold.errors import InvalidInput
from leasehold.files.names import FileName, name_of, shown


async def named(paths: Iterable[str]) -> list[FileName]:
    """Return what paths are called. Git is asked, so not in the event loop."""
    return await asyncio.to_thread(lambda: [name_of(path) for path in paths])


def told(resource: str) -> str:
    """Return the path of a resource, from the folder we are in; one of another project as it is."""
    try:
        here = _here()
    except InvalidInput:  # We are in a repository that has no name yet: what is told of lies elsewhere.
        return resource
    names, project = resource.split("/", 2), here.split("/", 2)[1]
    if not project.startswith("@") or names[1:2] != [project]:
        return resource
    plain = os.path.relpath(shown(resource), shown(here))
    written = names[2] if len(names) == 3 else "."
    if written == shown(resource) or os.path.lexists(plain):
        return plain
    return os.path.relpath(written, shown(here))


@lru_cache(maxsize=1)
def _here() -> str:
    """Return the name of the folder we are in: a server never leaves it."""
    return name_of(".").resource.removesuffix("/**")
