"""Plain REST for work: `/v1/work…`.

A domain can be called anything, so it travels in the query or the body. Every answer is that of one command
or question at the caller's desk, and has the shape that `leasehold work … --json` prints.

- ``changing``  acquire, succeed, fail, give back, keep alive, enqueue, start at
- ``looking``   how domains stand, what was given up, what happened to an offset
- ``bodies``    what is taken and given
"""

from litestar import Router

from leasehold.work.routes import changing, looking

router = Router(path="/v1/work", route_handlers=[*changing.HANDLERS, *looking.HANDLERS], tags=["work"])
