"""Plain REST for file leases: `/v1/files…`.

A path travels as text, in the query or the body, and its files are on the caller's machine: nothing is looked
up on the server's. So a caller names the project and the path inside its repository, or the name that the
store has for it (`files.names.name_elsewhere`).

- ``changing``  acquire, renew, release, upgrade, transfer, force-release
- ``claiming``  what an agent has already is renewed, the rest acquired: all, or nothing
- ``looking``   which leases there are, and who is in the way
- ``bodies``    what is taken and given
"""

from litestar import Router

from leasehold.files.routes import changing, looking

router = Router(path="/v1/files", route_handlers=[*changing.HANDLERS, *looking.HANDLERS], tags=["files"])
