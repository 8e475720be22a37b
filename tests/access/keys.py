"""Keys for tests, made as the face makes them."""

import itertools
from typing import Any

from leasehold.access.authentication import authenticate
from leasehold.access.law.commands import CreateAccessKey, RevokeAccessKey, RotateAccessKey
from leasehold.access.law.model import ALL, AccessKey, Role
from leasehold.access.secret import KeyText, drawn, redrawn
from leasehold.engine.registrar import Registrar
from tests.engine.doubles import expect

_numbers = itertools.count(1)


def create(role: Role, tenant: str | None = None, **fields: Any) -> tuple[KeyText, CreateAccessKey]:
    """A new key, and the command that creates it; without a tenant, for all of them."""
    key = drawn(ALL if tenant is None else tenant)
    defaults: dict[str, Any] = {"request_id": f"create-{next(_numbers)}", "holder": "ann"}
    if tenant is not None:
        defaults["tenant"] = tenant
    command = CreateAccessKey(
        key_id=key.key_id, digest=key.digest, role=role, for_all=tenant is None, **(defaults | fields)
    )
    return key, command


def rotate(key_id: str, **fields: Any) -> tuple[KeyText, RotateAccessKey]:
    """Another secret for a key, and the command that gives it."""
    key = redrawn(key_id)
    defaults: dict[str, Any] = {"request_id": f"rotate-{next(_numbers)}", "holder": "ann"}
    return key, RotateAccessKey(key_id=key_id, digest=key.digest, **(defaults | fields))


def revoke(key_id: str, **fields: Any) -> RevokeAccessKey:
    """The command that revokes a key."""
    defaults: dict[str, Any] = {"request_id": f"revoke-{next(_numbers)}", "holder": "ann"}
    return RevokeAccessKey(key_id=key_id, **(defaults | fields))


def created(registrar: Registrar, role: Role, tenant: str | None = None, **fields: Any) -> KeyText:
    """A key that was created."""
    key, command = create(role, tenant, **fields)
    expect(AccessKey, registrar.call(command))
    return key


def desk_of(registrar: Registrar, key: KeyText) -> Registrar:
    """The desk of whoever shows a key."""
    caller = authenticate(registrar, key.text)
    assert caller is not None, "the key opens nothing"
    return registrar.for_caller(caller)
