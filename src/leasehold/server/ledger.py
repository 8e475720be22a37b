"""Plain REST for what happened, and for the keys that vouch for it."""

from typing import Annotated

from litestar import Router
from litestar.params import FromQuery, QueryParameter

from leasehold.client.aio.reader import AsyncReader
from leasehold.server.bodies import HistoryBody, KeysBody, entry_body
from leasehold.server.routing import Asking, Limit, get

_ENTRY_EXAMPLE = {
    "position": 7,
    "type": "lease.issued",
    "at": "2026-11-17T12:00:00.000000Z",
    "actor": "ann",
    "tenant": "default",
    "lease_id": "01999b2a-5c7d-7b0e-8f3a-6c1d2e4f5a6b",
    "resource": "report-42",
    "holder": "ann",
    "token": 229613453148161,
}
_KEY_EXAMPLE = {
    "kty": "OKP",
    "crv": "Ed25519",
    "kid": "5f1c7d8e9a0b1c2d",
    "use": "sig",
    "alg": "EdDSA",
    "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
}


@get("/v1/history", "Read history", answer={"entries": [_ENTRY_EXAMPLE], "next": 7, "pruned": 0})
async def get_history(
    *,
    session: Asking,
    lease_id: FromQuery[str | None] = None,
    resource: FromQuery[str | None] = None,
    holder: FromQuery[str | None] = None,
    type: Annotated[
        list[str] | None, QueryParameter(description="Only of these types: `issued` means `lease.issued`.")
    ] = None,
    after: Annotated[int, QueryParameter(ge=0, description="Continue after this position.")] = 0,
    limit: Limit = 100,
) -> HistoryBody:
    """Return what happened, oldest first."""
    reader = AsyncReader(session)
    entries = await reader.history(
        lease_id=lease_id, resource=resource, holder=holder, types=type or (), after=after, limit=limit
    )
    begins = await reader.history_begins()
    return HistoryBody(
        entries=[entry_body(entry) for entry in entries],
        next=entries[-1].position if len(entries) == limit else None,
        pruned=0 if begins is None else begins.pruned,
    )


@get("/v1/keys", "Get the public keys of the registrar", answer={"keys": [_KEY_EXAMPLE]})
async def get_keys(session: Asking) -> KeysBody:
    """Return the keys by which certificates of leases are checked, as a JSON Web Key Set."""
    trusted = await AsyncReader(session).certificate_keys()
    return KeysBody(keys=trusted.to_jwks()["keys"])


router = Router(path="/", route_handlers=[get_history, get_keys], tags=["ledger"])
