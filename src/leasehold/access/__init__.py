"""Access keys: who may ask a registrar what, when it is asked from afar. `leases.access` is the way in.

- ``law``             what a key allows, and how keys come and go
- ``secret``          the text that a bearer shows
- ``authentication``  who shows it: for servers
- ``questions``       what can be asked
- ``aio``             the face for tasks; ``blocking``: for threads, generated
- ``commands``        `leasehold access`
"""

from leasehold.access.authentication import authenticate, first_key
from leasehold.access.errors import (
    AccessKeyEnded,
    AccessKeyExists,
    AccessKeyNotFound,
    LastAdminKey,
    NotAuthenticated,
)
from leasehold.access.law.model import AccessKey, Role
from leasehold.access.secret import IssuedKey

__all__ = [
    "AccessKey",
    "AccessKeyEnded",
    "AccessKeyExists",
    "AccessKeyNotFound",
    "IssuedKey",
    "LastAdminKey",
    "NotAuthenticated",
    "Role",
    "authenticate",
    "first_key",
]
