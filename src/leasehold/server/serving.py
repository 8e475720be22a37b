"""The life of a server: start, serve, stop.

Start: the store is opened, unless another server has it. That the registrar was down is recorded, so that
what lapsed meanwhile stays closed to newcomers until its holders could come back. The first access key is
made if there is none.

Stop, at SIGTERM or SIGINT: nothing new is taken, streams and waits are ended and told so, and what is under
way is finished. What is not finished in time, or when a second signal comes, is broken off, and its client
told to ask again. The store is closed last. A stream that is open, or a client that does not read, never
keeps the server from ending.
"""

import asyncio
import logging
import resource
import signal
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from leasehold import access
from leasehold.client.connect import Opening, open_registrar
from leasehold.enforcing.asgi import Application
from leasehold.engine.recording import resume
from leasehold.engine.registrar import Registrar
from leasehold.errors import LeaseholdError, StoreUnusable
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND
from leasehold.server.app import application
from leasehold.server.configuration import Configuration
from leasehold.server.front import Front
from leasehold.server.logs import FIELDS, log_as_json
from leasehold.server.meters import Meters
from leasehold.server.service import Service
from leasehold.stores.locate import is_server, locate, sqlite_path
from leasehold.stores.sqlite.server_lock import sole_server

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_THREADS = 16
"""How many questions of plain REST are looked up at once."""
_BACKLOG = 1024
_DESCRIPTORS_LEAST = 64
_DESCRIPTORS_SHARE = 4
"""So many file descriptors, or one in so many, are kept for the store, bells and jobs."""
_LISTENING_SECONDS = 10.0
_LAST_WORDS_SECONDS = 1.0
"""How long those who were broken off have to be told so."""
_CONNECTIONS_SECONDS = 2.0
"""How long connections have to end that nothing is under way on."""

_logger = logging.getLogger(__name__)


class CannotListen(LeaseholdError, code="CANNOT_LISTEN"):
    """The server cannot listen where it was told to."""


def serve(configuration: Configuration, *, group: bool, print_key: Callable[[str], None]) -> bool:
    """Serve until a signal comes. `print_key` gets the text of the first access key, once and never again.

    Returns whether all is over. If not, threads of the HTTP server are left, for clients that do not go: then
    the process had better end without taking leave of them.
    """
    log_as_json(configuration.log_level)
    if configuration.is_tls:
        _check_tls(configuration)
    url = locate(configuration.store or None)
    if is_server(url):
        raise StoreUnusable(
            f"{url} is the address of a server, and what is served is a folder on this machine; name it with "
            "--store, or unset $LEASEHOLD_URL"
        )
    _folder_of(url)
    configuration = _within_descriptors(configuration)
    _free_port(configuration)  # A start that is bound to fail records nothing, and makes no key.
    meters = Meters()
    opening = Opening(group=group, timeout=configuration.store_timeout, quotas=configuration.quotas)
    registrar = open_registrar(url, opening, observe=meters.batch)
    try:
        with sole_server(_folder_of(registrar.url)):
            return _serve(registrar, configuration, meters, print_key)
    finally:
        registrar.close()


def _within_descriptors(configuration: Configuration) -> Configuration:
    """Return a configuration whose connections leave enough file descriptors for the store.

    This process may have as many as the hard limit allows.
    """
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    wanted = configuration.connections_maximum
    room = max(1, limit - max(_DESCRIPTORS_LEAST, limit // _DESCRIPTORS_SHARE))
    if room >= wanted:
        return configuration
    _log(
        "takes fewer connections than connections_maximum; raise the hard limit of open files for more",
        connections=room,
        open_files=limit,
    )
    return msgspec.structs.replace(configuration, connections_maximum=room)


def _folder_of(url: str) -> Path:
    """Return the folder of the store that is served; refuse what is none."""
    path = sqlite_path(url)
    if path is None:
        raise StoreUnusable("a server does not keep its leases in memory; name a folder with --store")
    return path


def _serve(
    registrar: Registrar, configuration: Configuration, meters: Meters, print_key: Callable[[str], None]
) -> bool:
    """Serve a store that has no other server."""
    resumed = resume(registrar.store, longest_ns=round(configuration.settling * NANOSECONDS_PER_SECOND))
    if resumed is not None:
        settling = (resumed.settles_until - resumed.tick.value) / NANOSECONDS_PER_SECOND
        _log("what lapsed while no server was up is kept for its holders", settling_seconds=settling)
    if configuration.anonymous:
        _logger.warning(
            "every program on this machine is let in without an access key, with all rights; leave out "
            "anonymous to have keys asked for"
        )
    key = access.first_key(registrar)
    if key is not None:
        print_key(key)
    life = _Life(registrar, configuration, meters)
    asyncio.run(life.live())
    return not life.lingers


def _check_tls(configuration: Configuration) -> None:
    """Refuse files that cannot be used, before anything is opened."""
    certificate, key = configuration.tls_certificate, configuration.tls_key
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:
        raise CannotListen(
            f"{certificate} and {key} cannot be used for TLS: {error}; give a certificate chain and its "
            "private key, in PEM"
        ) from error


def _log(message: str, **fields: object) -> None:
    _logger.info(message, extra={FIELDS: fields})


class _Life:
    """One run of a server, in one event loop."""

    def __init__(self, registrar: Registrar, configuration: Configuration, meters: Meters) -> None:
        self._registrar = registrar
        self._configuration = configuration
        self._meters = meters
        self._signal_name = ""
        self._signalled = asyncio.Event()
        self._hurried = asyncio.Event()
        self.lingers = False
        """Whether the HTTP server has not ended in time."""

    async def live(self) -> None:
        """Serve until a signal comes, and stop in order."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="leasehold-route"))
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._note_signal, number)
        service = Service(
            self._registrar,
            self._configuration,
            self._meters,
            lambda text: access.authenticate(self._registrar, text),
        )
        await service.recent.start()
        front = Front(
            application(service), service.identity, self._configuration, self._meters, service.answers
        )
        port = _free_port(self._configuration)
        server = _server(front, self._configuration, port)
        serving = asyncio.create_task(server.serve())
        signalled = asyncio.create_task(self._signalled.wait())
        try:
            await _until_listening(self._configuration.host, port, serving)
            scheme = "https" if self._configuration.is_tls else "http"
            host = self._configuration.host
            shown = f"[{host}]" if ":" in host else host
            _log("listening", url=f"{scheme}://{shown}:{port}", store=self._registrar.url)
            await asyncio.wait({serving, signalled}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
                raise CannotListen("the HTTP server has ended by itself; its log may say why")
        finally:
            signalled.cancel()
            await self._stop(service, front, server, serving)

    def _note_signal(self, number: int) -> None:
        if self._signalled.is_set():
            _log("hurrying", signal=signal.Signals(number).name)
            self._hurried.set()
        else:
            self._signal_name = signal.Signals(number).name
            self._signalled.set()

    async def _stop(
        self, service: Service, front: Front, server: Server, serving: "asyncio.Task[None]"
    ) -> None:
        front.stop()
        service.stop()
        if self._signal_name:
            _log("stopping", signal=self._signal_name)  # Only now: whoever reads it may rely on it.
        finished = asyncio.create_task(front.finish(self._configuration.stop_timeout))
        hurried = asyncio.create_task(self._hurried.wait())
        await asyncio.wait({finished, hurried}, return_when=asyncio.FIRST_COMPLETED)
        if not (finished.done() and finished.result()):
            front.hurry()
            await front.finish(_LAST_WORDS_SECONDS)
        for task in (finished, hurried):
            task.cancel()
        server.stop()  # type: ignore[no-untyped-call]
        await asyncio.wait({serving}, timeout=_CONNECTIONS_SECONDS)
        self.lingers = not serving.done()
        serving.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await serving
        await service.close()
        front.close()
        _log("stopped")


def _server(front: Application, configuration: Configuration, port: int) -> Server:
    return Server(
        front,
        address=configuration.host,
        port=port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(
            header_read_timeout=round(configuration.header_timeout * 1000),
            max_buffer_size=configuration.header_maximum,
        ),
        websockets=False,
        backlog=_BACKLOG,
        backpressure=configuration.connections_maximum,
        log_enabled=False,
        ssl_cert=Path(configuration.tls_certificate) if configuration.is_tls else None,
        ssl_key=Path(configuration.tls_key) if configuration.is_tls else None,
    )


def _free_port(configuration: Configuration) -> int:
    """Return the port to listen on; refuse one that somebody else listens on.

    The HTTP server would share it with another one, and neither would notice.
    """
    family = socket.AF_INET6 if ":" in configuration.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((configuration.host, configuration.port))
            port: int = probe.getsockname()[1]
            return port
    except OSError as error:
        raise CannotListen(
            f"cannot listen on {configuration.host}, port {configuration.port}: {error.strerror or error}; "
            "choose others with --host and --port, or end who listens there"
        ) from error


async def _until_listening(host: str, port: int, serving: "asyncio.Task[None]") -> None:
    """Return once the server takes connections; raise why it does not."""
    async with asyncio.timeout(_LISTENING_SECONDS):
        while not serving.done():
            try:
                _, writer = await asyncio.open_connection(host, port)
            except OSError:
                await asyncio.sleep(0.01)
                continue
            writer.close()
            return
    serving.result()
