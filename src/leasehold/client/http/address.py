"""Which server is meant, and the access key that is shown to it.

A key is sent to the very server that was named and to no other: redirects are not followed, and an address
with a user name in it, which may belong to somebody else's host, is refused. Neither a key nor a password in
an address is ever repeated in a message.
"""

import os
import re
from urllib.parse import urlsplit

from leasehold.errors import InvalidInput

KEY_VARIABLE = "LEASEHOLD_API_KEY"
_KEY = re.compile(r"[\x21-\x7e]{1,512}", re.ASCII)
_PLAIN = re.compile(r"[\x21-\x7e]{1,2048}", re.ASCII)
_EXAMPLE = "use http://host:port or https://host"


def base_of(url: str) -> str:
    """Return the address of a server in its plain form: scheme, host, port if any, and a path if any."""
    if not _PLAIN.fullmatch(url):
        raise _invalid("it has spaces, or characters that have to be escaped")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise _invalid(str(error)) from None
    if "@" in parts.netloc:
        raise _invalid(f"it has a user name; show an access key with api_key, or ${KEY_VARIABLE}")
    if not host or "%" in host or "\\" in url:
        raise _invalid("it names no host")
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise _invalid("it has a query or a fragment")
    if any(part in (".", "..") for part in parts.path.split("/")):
        raise _invalid("its path has . or ..")
    named = f"[{host}]" if ":" in host else host
    return f"{parts.scheme.lower()}://{named}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"


def key_of(api_key: object) -> str | None:
    """Return the access key to show: the one given, or else that of the environment."""
    given = os.environ.get(KEY_VARIABLE) or None if api_key is None else api_key
    if given is None:
        return None
    where = f"${KEY_VARIABLE}" if api_key is None else "api_key"
    if not isinstance(given, str) or not _KEY.fullmatch(given):
        raise InvalidInput(
            f"{where} is not the text of an access key: it is empty, too long, or has spaces or control "
            "characters; copy it as `leasehold access create` showed it",
            field="api_key",
        )
    return given


def _invalid(why: str) -> InvalidInput:
    return InvalidInput(f"invalid address of a server: {why}; {_EXAMPLE}", field="url")
