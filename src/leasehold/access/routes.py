"""Plain REST for access keys. The text of a key is in the answer that makes it, and nowhere else."""

from typing import Annotated, Any

from litestar import Router
from litestar.params import FromPath, QueryParameter
from msgspec import Meta, Struct

from leasehold.access.aio.access import AsyncAccess
from leasehold.access.law.model import AccessKey, Role
from leasehold.access.questions import ListAccessKeys
from leasehold.server.bodies import NextPage, Taken
from leasehold.server.routing import Asking, Limit, get, post
from leasehold.shapes import utc


class CreateKeyBody(Taken, kw_only=True):
    """A key that is wanted."""

    role: Role
    all_tenants: Annotated[bool, Meta(description="Not only for the tenant of the request.")] = False
    holders: Annotated[
        list[str], Meta(description="The holders that a holder key may act as: `ann`, `ci-*`. Empty: any.")
    ] = []
    description: str = ""
    expires: Annotated[float | None, Meta(description="After so many seconds; null: never.")] = None


class RotateKeyBody(Taken, kw_only=True):
    """Another secret for a key."""

    overlap: Annotated[float, Meta(description="Seconds for which the old secret stays good.")] = 0.0


class RevokeKeyBody(Taken, kw_only=True):
    """A key that is to open nothing any more."""

    reason: str = ""


class AccessKeyBody(Struct, kw_only=True):
    """An access key, without its secret."""

    key_id: str
    tenant: Annotated[str | None, Meta(description="What it is bound to; null: all tenants.")]
    role: Role
    holders: list[str]
    description: str
    created_at: str | None
    created_by: str
    expires_at: str | None
    revoked_at: str | None
    rotations: int
    is_live: bool


class MadeKeyBody(Struct, kw_only=True):
    """A key, and its text, which is never shown again."""

    key: AccessKeyBody
    text: str


class AccessKeysBody(Struct, kw_only=True):
    """A page of access keys."""

    keys: list[AccessKeyBody]
    next: NextPage


class BearerBody(Struct, kw_only=True):
    """Who asks."""

    key: AccessKeyBody | None


def _body(key: AccessKey) -> AccessKeyBody:
    return AccessKeyBody(
        key_id=key.key_id,
        tenant=key.tenant,
        role=key.role,
        holders=list(key.holders),
        description=key.description,
        created_at=utc(key.created_at_ns),
        created_by=key.created_by,
        expires_at=utc(key.expires_at_ns),
        revoked_at=utc(key.revoked_at_ns),
        rotations=key.rotations,
        is_live=key.is_live,
    )


_KEY_EXAMPLE: dict[str, Any] = {
    "key_id": "1271cf25196c3add3721bfeb",
    "tenant": "default",
    "role": "holder",
    "holders": ["ci-*"],
    "description": "continuous integration",
    "created_at": "2026-11-17T12:00:00.000000Z",
    "created_by": "9a0b1c2d196c3add3721bfeb",
    "expires_at": None,
    "revoked_at": None,
    "rotations": 0,
    "is_live": True,
}
_MADE_EXAMPLE = {"key": _KEY_EXAMPLE, "text": "lh_1271cf25196c3add3721bfeb_…"}


@post(
    "/v1/access",
    "Create an access key",
    409,
    body={"role": "holder", "holders": ["ci-*"]},
    answer=_MADE_EXAMPLE,
    status=201,
)
async def create_key(session: Asking, data: CreateKeyBody) -> MadeKeyBody:
    """Make a key for the tenant of the request, or for all. Its text is shown this once."""
    made = await AsyncAccess(session).create(
        data.role,
        all_tenants=data.all_tenants,
        holders=data.holders,
        description=data.description,
        expires=data.expires,
    )
    return MadeKeyBody(key=_body(made.key), text=made.text)


@get("/v1/access", "List access keys", answer={"keys": [_KEY_EXAMPLE], "next": None})
async def list_keys(
    session: Asking,
    after: Annotated[str, QueryParameter(description="`next` of the page before.")] = "",
    limit: Limit = 100,
) -> AccessKeysBody:
    """Return a page of the keys of the tenant of the request, in the order of their ids."""
    keys = await session.ask(ListAccessKeys(tenant=session.tenant, after=after, limit=limit))
    return AccessKeysBody(
        keys=[_body(key) for key in keys], next=keys[-1].key_id if len(keys) == limit else None
    )


@get("/v1/access/bearer", "Which access key is this?", answer={"key": _KEY_EXAMPLE})
async def get_bearer(session: Asking) -> BearerBody:
    """Return the key that the request was sent with."""
    key = await AsyncAccess(session).bearer()
    return BearerBody(key=None if key is None else _body(key))


@post(
    "/v1/access/{key_id:str}/rotate",
    "Rotate an access key",
    404,
    409,
    body={"overlap": 3600},
    answer=_MADE_EXAMPLE,
)
async def rotate_key(session: Asking, key_id: FromPath[str], data: RotateKeyBody) -> MadeKeyBody:
    """Give a key another secret; the old one stays good for `overlap` seconds. It is shown this once."""
    made = await AsyncAccess(session).rotate(key_id, overlap=data.overlap)
    return MadeKeyBody(key=_body(made.key), text=made.text)


@post(
    "/v1/access/{key_id:str}/revoke",
    "Revoke an access key",
    404,
    409,
    body={"reason": "left the company"},
    answer=_KEY_EXAMPLE | {"is_live": False},
)
async def revoke_key(session: Asking, key_id: FromPath[str], data: RevokeKeyBody) -> AccessKeyBody:
    """Let a key open nothing any more, from this moment on: also not what it has opened."""
    return _body(await AsyncAccess(session).revoke(key_id, reason=data.reason))


router = Router(
    path="/", route_handlers=[create_key, list_keys, get_bearer, rotate_key, revoke_key], tags=["access"]
)
