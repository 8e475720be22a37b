"""Access keys for programs: creating, listing, rotating and revoking them.

A secret is drawn here, and only its digest leaves: whoever creates or rotates a key gets its text, this once.
"""

from collections.abc import Iterable

from leasehold.access.law.commands import CreateAccessKey, RevokeAccessKey, RotateAccessKey
from leasehold.access.law.model import ALL, AccessKey, Role
from leasehold.access.questions import FindBearer, ListAccessKeys
from leasehold.access.secret import IssuedKey, KeyText, drawn, redrawn
from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import Duration, duration_ns, name, several, text
from leasehold.engine.desk import answer_of
from leasehold.errors import InvalidInput

_PAGE = 1_000


class AsyncAccess:
    """The access keys of a store, for admins. What is changed here holds at once."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    def __repr__(self) -> str:
        return self._session.face("access keys")

    async def create(
        self,
        role: Role | str,
        *,
        all_tenants: bool = False,
        holders: Iterable[str] = (),
        description: str = "",
        expires: Duration | None = None,
    ) -> IssuedKey:
        """Create a key for this client's tenant, or for all tenants, and return it with its text.

        The roles are viewer, holder, operator and admin. A holder key can be bound to `holders`, each a name,
        or the beginning of names with a `*` behind it. The key ends by itself after `expires` seconds.
        """
        key = drawn(ALL if all_tenants else self._session.tenant)
        command = CreateAccessKey(
            tenant=self._session.tenant,
            request_id=self._session.ids.name(),
            holder=self._session.holders.current(),
            key_id=key.key_id,
            digest=key.digest,
            role=_role(role),
            for_all=all_tenants,
            holders=tuple(text("holders", one) for one in several("holders", holders)),
            description=text("description", description),
            lifetime_ns=_lifetime_ns(expires),
        )
        return await self._issued(command, key)

    async def rotate(self, key_id: str, *, overlap: Duration = 0) -> IssuedKey:
        """Give a key another secret, and return it with its new text. Its id and all else stay.

        The old secret stays good for `overlap` seconds; by default, it is not any more.
        """
        key = redrawn(text("key_id", key_id))
        command = RotateAccessKey(
            tenant=self._session.tenant,
            request_id=self._session.ids.name(),
            holder=self._session.holders.current(),
            key_id=key.key_id,
            digest=key.digest,
            overlap_ns=duration_ns("overlap", overlap),
        )
        return await self._issued(command, key)

    async def revoke(self, key_id: str, *, reason: str = "") -> AccessKey:
        """Let a key open nothing any more, from this moment on.

        Raises `LastAdminKey` for the only live admin key for all tenants.
        """
        command = RevokeAccessKey(
            tenant=self._session.tenant,
            request_id=self._session.ids.name(),
            holder=self._session.holders.current(),
            key_id=text("key_id", key_id),
            reason=text("reason", reason),
        )
        return answer_of(await self._session.send(command), AccessKey)

    async def list(self, *, tenant: str | None = None) -> list[AccessKey]:
        """Return the keys that are bound to a tenant; without one, all that there are for who asks."""
        bound_to = None if tenant is None else name("tenant", tenant)
        keys: list[AccessKey] = []
        while True:
            after = keys[-1].key_id if keys else ""
            page = await self._session.ask(ListAccessKeys(tenant=bound_to, after=after, limit=_PAGE))
            keys += page
            if not page:
                return keys

    async def bearer(self) -> AccessKey | None:
        """Return the key that this client shows; None if it has the store at hand."""
        found = await self._session.ask(FindBearer())
        return found.key

    async def _issued(self, command: CreateAccessKey | RotateAccessKey, key: KeyText) -> IssuedKey:
        return IssuedKey(key=answer_of(await self._session.send(command), AccessKey), text=key.text)


def _role(role: Role | str) -> Role:
    try:
        return Role(text("role", role).lower())
    except ValueError:
        raise InvalidInput(f"role must be one of {', '.join(Role)}", field="role") from None


def _lifetime_ns(expires: Duration | None) -> int:
    if expires is None:
        return 0
    lifetime_ns = duration_ns("expires", expires)
    if lifetime_ns == 0:
        raise InvalidInput("expires must be in the future", field="expires")
    return lifetime_ns
