"""What can be asked of the registrar: what all commands have in common, and who asks.

Every command that changes something carries a request id. A repeat of the same request (same tenant,
holder, id and content) is recognised for an hour and answered from what happened the first time, so a
caller whose reply was lost can simply ask again.
"""

from enum import IntEnum
from functools import cache, cached_property
from typing import Any, ClassVar

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields, replace

REQUEST_MEMORY_NS = 3600 * 1_000_000_000

_encoder = msgspec.json.Encoder()


class Right(IntEnum):
    """What a caller must have the right to before it may ask for something; each includes those below it."""

    LOOK = 1
    """To ask, and to follow what happens."""
    HOLD = 2
    """To claim something, and to use, hand on and give back what one has."""
    OPERATE = 3
    """To change what others have, and how the store is run."""
    ADMINISTER = 4
    """To say who has which rights, and everything that nobody has classified."""


class Caller(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Who asks. It travels with every command, and every family may refuse to admit it."""

    access: str = ""
    """The access key that it has shown; empty for a program that has the store at hand itself."""
    tenant: str | None = None
    """The tenant that it is bound to; None: any."""
    generation: int = 0
    """Which secret of its access key it has shown: each rotation raises the number."""

    @property
    def bound(self) -> str:
        """Say of its access key which tenant that is bound to, and how to name that one."""
        tenant = self.tenant
        return (
            f"is bound to tenant {tenant}; name that one, by tenant={tenant!r}, --tenant {tenant}, or "
            f"LEASEHOLD_TENANT={tenant}"
        )


LOCAL = Caller()
"""A program that has the store at hand, and could change it without asking anybody."""


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True, tag_field="command"):
    """Something that is asked for. Each kind belongs to one family, whose rule decides it."""

    answer: ClassVar[Any]
    """The type of what is answered when it is not refused: tagged structs, which read back from a wire."""
    not_content: ClassVar[dict[str, Any]] = {"request_id": ""}
    """Fields, blanked, that do not make a request another one; all other fields do."""
    gives_back: ClassVar[bool] = True
    """Whether it is still run for a client that is being closed; False for what would give it something."""
    right: ClassVar[Right] = Right.ADMINISTER
    """What a caller with an access key needs to be allowed."""

    tenant: str = "default"
    request_id: str

    @cached_property
    def request_key(self) -> str:
        """Return the key under which the ledger remembers this request.

        The id comes first, so that time-ordered ids keep the index compact; the digest makes the same id
        with another holder or other content another request. Defaults are left out of it, so that a
        release that adds a field still knows the requests of the one before.
        """
        from hashlib import blake2b

        content = _encoder.encode(_content(replace(self, **self.not_content)))
        return f"{self.request_id}:{blake2b(content, digest_size=8).hexdigest()}"


@cache
def _defaults(kind: type[Struct]) -> list[tuple[str, Any]]:
    """Return the fields of a struct, each with its default, or with `NODEFAULT`, which nothing equals."""
    return [
        (field.name, field.default if field.default_factory is NODEFAULT else field.default_factory())
        for field in fields(kind)
    ]


def _content(value: Any) -> Any:
    """Return what tells a value from others, whoever has spelled it: equal values give the same.

    The encoder leaves out a default by what object it is, not by what it says: a text that has come over a
    wire, or from the environment, is never the very object that a default is.
    """
    if isinstance(value, Struct):
        config = value.__struct_config__
        said = {} if config.tag is None else {config.tag_field: config.tag}
        for name, default in _defaults(type(value)):
            given = getattr(value, name)
            if given != default:
                said[name] = _content(given)
        return said
    if isinstance(value, tuple) and value and isinstance(value[0], Struct):
        return [_content(one) for one in value]
    return value


class Swept(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """What time has done is recorded."""

    ended: bool
    """Whether it has ended the record just now: there is nothing left for time to do."""


class SweptDue(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """What time has done to overdue records is recorded."""

    ended: int
    """How many of them it had ended."""


class Sweep(Command, frozen=True, kw_only=True, omit_defaults=True, tag="sweep"):
    """Record what time has done to one record of any family, if it has done anything."""

    answer = Swept
    right = Right.OPERATE

    family: str
    key: str


class SweepDue(Command, frozen=True, kw_only=True, omit_defaults=True, tag="sweep_due"):
    """Sweep what is overdue, of any family, the longest overdue first. The engine knows what that is."""

    answer = SweptDue
    right = Right.OPERATE

    limit: int
