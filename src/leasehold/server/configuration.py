"""What the server can be told, and where each value came from.

A TOML file (table `[serve]`) is overridden by the environment (`LEASEHOLD_SERVE_PORT`), and that by flags
(`--port`). What is not a setting, or can never be right, is refused with what was probably meant; the server
does not start with a value that nobody wanted.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta

from leasehold.errors import InvalidInput
from leasehold.kernel.lease.quotas import Quotas
from leasehold.stores.locate import ENVIRONMENT as STORE_VARIABLE

TABLE = "serve"
PREFIX = "LEASEHOLD_SERVE_"
CONFIG_VARIABLE = "LEASEHOLD_SERVE_CONFIG"
"""Names the file; it is not a setting itself."""


def _setting(description: str, **limits: Any) -> Meta:
    return Meta(description=description, **limits)


class Configuration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting, with its default."""

    store: Annotated[str, _setting("the store: a folder, or sqlite:///path (default: the nearest one)")] = ""
    host: Annotated[str, _setting("the address to listen on", min_length=1)] = "127.0.0.1"
    port: Annotated[int, _setting("the port to listen on; 0: any that is free", ge=0, le=65535)] = 7017
    tls_certificate: Annotated[str, _setting("a file with the certificate chain, in PEM")] = ""
    tls_key: Annotated[str, _setting("a file with the certificate's private key, in PEM")] = ""
    plain_http: Annotated[
        bool, _setting("listen beyond loopback without TLS: only behind a proxy that adds it")
    ] = False
    anonymous: Annotated[
        bool, _setting("let anybody on this machine do anything without a key; loopback only")
    ] = False
    requests_per_second: Annotated[float, _setting("how often one access key may ask", gt=0, le=1e6)] = 2000.0
    requests_burst: Annotated[int, _setting("how often at once", ge=1, le=1_000_000)] = 4000
    body_maximum: Annotated[int, _setting("the largest body, in bytes", ge=1024, le=1 << 30)] = 8 << 20
    header_maximum: Annotated[
        int, _setting("the largest request line and headers together, in bytes", ge=8192, le=1 << 20)
    ] = 32 << 10
    header_timeout: Annotated[
        float, _setting("seconds for the headers of a request, and between two requests", ge=1, le=3600)
    ] = 30.0
    body_timeout: Annotated[float, _setting("seconds for the body of a request", ge=0.1, le=3600)] = 30.0
    send_timeout: Annotated[
        float, _setting("seconds for a client to take what it is sent, before it is cut off", ge=0.1, le=3600)
    ] = 10.0
    wait_maximum: Annotated[float, _setting("the longest wait of one request, in seconds", ge=0, le=3600)] = (
        300.0
    )
    ping_seconds: Annotated[
        float, _setting("after how many silent seconds a stream gets a sign of life", ge=0.1, le=300)
    ] = 15.0
    streams_maximum: Annotated[int, _setting("how many streams may be open at once", ge=1, le=100_000)] = 5000
    connections_maximum: Annotated[
        int, _setting("how many connections may be open at once", ge=1, le=1_000_000)
    ] = 20_000
    answers_maximum: Annotated[
        int, _setting("how many bytes of large answers one access key may have open", ge=1 << 20, le=1 << 40)
    ] = 128 << 20
    store_timeout: Annotated[
        float, _setting("seconds to wait for another process to finish writing", ge=0.1, le=3600)
    ] = 30.0
    settling: Annotated[
        float, _setting("seconds, at most, that lapsed resources are kept for their holders", ge=0, le=86400)
    ] = 300.0
    leases_per_holder: Annotated[
        int, _setting("how many leases a holder may have at once; 0: any number", ge=0, le=1 << 53)
    ] = 0
    leases_per_tenant: Annotated[
        int, _setting("how many leases a tenant may have at once; 0: any number", ge=0, le=1 << 53)
    ] = 0
    stop_timeout: Annotated[
        float, _setting("seconds for requests under way to be finished at a stop", ge=0, le=3600)
    ] = 10.0
    log_level: Annotated[str, _setting("debug, info, warning or error")] = "info"
    log_requests: Annotated[bool, _setting("log every request, not only what went wrong")] = True

    @property
    def quotas(self) -> Quotas:
        """Return how many leases there may be."""
        return Quotas(
            leases_per_holder=self.leases_per_holder or None, leases_per_tenant=self.leases_per_tenant or None
        )

    @property
    def is_tls(self) -> bool:
        """Say whether clients are spoken to over TLS."""
        return bool(self.tls_certificate)


SETTINGS = Configuration.__struct_fields__
_TYPES = get_type_hints(Configuration, include_extras=True)
_LEVELS = ("debug", "info", "warning", "error")


def described(setting: str) -> str:
    """Return what a setting means, for people."""
    (meta,) = _TYPES[setting].__metadata__
    return str(meta.description)


def is_switch(setting: str) -> bool:
    """Say whether a setting is on or off."""
    return _TYPES[setting].__origin__ is bool


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """What is in force, and where each value came from."""

    values: Configuration
    origins: dict[str, str]
    """By setting: `default`, the file, the variable or the flag."""


def configured(file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]) -> Configured:
    """Return what is in force; refuse what is no setting, or can never be right."""
    said: dict[str, tuple[Any, str]] = {}
    if file is not None:
        said |= {name: (value, str(file)) for name, value in _from_file(file).items()}
    if environment.get(STORE_VARIABLE):
        said["store"] = (environment[STORE_VARIABLE], f"${STORE_VARIABLE}")
    said |= _from_environment(environment)
    said |= {name: (value, f"--{name.replace('_', '-')}") for name, value in flags.items()}
    values = {name: _read(name, value, origin) for name, (value, origin) in said.items()}
    configuration = Configuration(**values)
    _check(configuration)
    origins = {name: said[name][1] if name in said else "default" for name in SETTINGS}
    return Configured(values=configuration, origins=origins)


def _from_file(file: Path) -> dict[str, Any]:
    import tomllib  # Every command of the command line loads this module.

    try:
        said = tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} is not TOML: {error}", field="config", path=str(file)) from None
    for table in said:
        if table != TABLE:
            raise _unknown(
                f"table or setting {table!r} in {file}", table, [TABLE], f"write it below [{TABLE}]"
            )
    settings = said.get(TABLE, {})
    if not isinstance(settings, dict):
        raise InvalidInput(f"{TABLE} in {file} must be a table: [{TABLE}]", field=TABLE)
    for name in settings:
        if name not in SETTINGS:
            raise _unknown(f"setting {name!r} in {file}", name, SETTINGS)
    return settings


def _from_environment(environment: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for variable, value in environment.items():
        if not variable.startswith(PREFIX) or variable == CONFIG_VARIABLE:
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name not in SETTINGS:
            known = [f"{PREFIX}{one.upper()}" for one in SETTINGS]
            raise _unknown(f"setting ${variable}", variable, known)
        found[name] = (value, f"${variable}")
    return found


def _unknown(what: str, given: str, known: Iterable[str], otherwise: str = "") -> InvalidInput:
    near = get_close_matches(given, list(known), n=1, cutoff=0.6)
    step = f"did you mean {near[0]!r}? " if near else f"{otherwise}; " if otherwise else ""
    return InvalidInput(f"there is no {what}; {step}`leasehold serve --show-config` lists all", field=given)


def _read(name: str, value: Any, origin: str) -> Any:
    """Return a value as its setting takes it; texts of the environment and of flags may spell numbers."""
    try:
        return msgspec.convert(value, _TYPES[name], strict=not isinstance(value, str))
    except msgspec.ValidationError as error:
        said = str(error).replace("`", "")
        raise InvalidInput(f"{name} cannot be {value!r:.80} ({origin}): {said}", field=name) from None


def _check(configuration: Configuration) -> None:
    """Refuse what makes no sense together."""
    if bool(configuration.tls_certificate) != bool(configuration.tls_key):
        raise InvalidInput(
            "tls_certificate and tls_key belong together; set both, or neither", field="tls_certificate"
        )
    if configuration.log_level not in _LEVELS:
        raise InvalidInput(f"log_level must be one of {', '.join(_LEVELS)}", field="log_level")
    if is_loopback(configuration.host):
        return
    if configuration.anonymous:
        raise InvalidInput(
            f"anonymous is for loopback only, and host is {configuration.host}; make access keys instead: "
            "`leasehold access create`",
            field="anonymous",
        )
    if not configuration.is_tls and not configuration.plain_http:
        raise InvalidInput(
            f"{configuration.host} can be reached by other machines, which would send their access keys in "
            "clear; set tls_certificate and tls_key, or plain_http behind a proxy that adds TLS",
            field="host",
        )


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine, under a name that cannot come to mean another."""
    import ipaddress

    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
