"""For resources: let in who holds the lease, and nobody with an older token.

- ``fence``     keeps the highest token of each resource, in memory or on disk
- ``enforcer``  certificate and fence together, also as a decorator
- ``asgi``      the same around a web application
- ``sql``       statements that compare the token and write in one step
"""

from leasehold.enforcing.asgi import LeaseMiddleware
from leasehold.enforcing.enforcer import Enforcer
from leasehold.enforcing.fence import Fence, SqliteFence
from leasehold.enforcing.sql import check_written, fenced_update, fenced_upsert

__all__ = [
    "Enforcer",
    "Fence",
    "LeaseMiddleware",
    "SqliteFence",
    "check_written",
    "fenced_update",
    "fenced_upsert",
]
