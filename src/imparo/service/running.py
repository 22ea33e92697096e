"""A service at work: listening, until it is told to end."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn

from imparo.engine import one_thread
from imparo.service.app import create_app
from imparo.service.listening import check_certificate, listen
from imparo.service.protocol import limited_protocol, limited_sockets
from imparo.service.service import Service
from imparo.service.settings import Settings

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

_log = logging.getLogger("imparo.service")
# Seconds that requests have to end when the service is told to; learners are closed after that.
_GRACE = 10
# Files that may be open; a hard limit of "any number" is not one to ask for.
_FILES = 65_536
# Seconds of opening learners after which that is told.
_PATIENCE = 1.0
# Seconds after which a thread lets others have the interpreter.
_SWITCH = 0.0005


class _Server(uvicorn.Server):
    """A server that says where it listens once it does."""

    def __init__(
        self, config: uvicorn.Config, settings: Settings, service: Service, told: Any
    ) -> None:
        super().__init__(config)
        self._settings, self._service, self._told = settings, service, told
        self._opening: asyncio.Task[None] | None = None
        #: What kept learners from being opened.
        self.problem: BaseException | None = None

    async def startup(self, sockets: Any = None) -> None:
        """Begin to listen, and to open learners: until all are, requests are told to wait."""
        await super().startup(sockets)
        if self.started:
            port = self.servers[0].sockets[0].getsockname()[1]
            url = address_of(self._settings, port)
            self._opening = asyncio.create_task(self._open(url))

    async def _open(self, url: str) -> None:
        opening = self._service.opening
        assert opening is not None
        done, _ = await asyncio.wait([opening], timeout=_PATIENCE)
        if not done:
            _log.info("opening learners", extra={"url": url})
            await asyncio.wait([opening])
        self.problem = opening.exception()
        if self.problem is not None or not self._service.learners.ready:
            self.should_exit = True
            return
        # What there is now stays: looking through all of it again would stop the service for
        # a tenth of a second, now and then.
        gc.collect()
        gc.freeze()
        _log.info("ready", extra={"url": url, "folder": str(self._settings.folder)})
        self._told(url)

    async def shutdown(self, sockets: Any = None) -> None:
        """Let learners finish what they can, while requests are waited for."""
        self._service.end_soon()
        await super().shutdown(sockets)


def _raise_files() -> None:
    """Let the process open as many files as it may: sockets are files, and so are journals."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems have a limit of their own
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, _FILES)), hard))


def address_of(settings: Settings, port: int) -> str:
    """Return the address of the page.

    Parameters
    ----------
    settings : Settings
    port : int
        Where it listens.

    Examples
    --------
    >>> from imparo.service import Settings
    >>> from imparo.service.running import address_of
    >>> address_of(Settings("learners", host="::1"), 8765)
    'http://[::1]:8765/'
    """
    host = {"0.0.0.0": "localhost", "::": "localhost"}.get(settings.host, settings.host)
    host = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.tls else 'http'}://{host}:{port}/"


def serve(
    settings: Settings,
    *,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    told: Callable[[str], object] = lambda url: None,
) -> None:
    """Serve until SIGINT or SIGTERM; then finish what was begun, and keep all of it.

    Parameters
    ----------
    settings : Settings
    certificate, key : path-like, optional
        PEM files, for https.
    told : function
        Called with the address once the service listens.

    Raises
    ------
    OSError
        If the port is taken, or another service has the folder.
    """
    limits = settings.limits
    if certificate is not None:
        check_certificate(certificate, key)
    _raise_files()
    listening = listen(settings)
    app = create_app(settings, wait=False)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=limited_protocol(limits),
        ws=limited_sockets(limits, app.arriving),
        ws_max_size=limits.image_bytes + 2**16,
        ws_max_queue=8,
        ws_per_message_deflate=False,
        loop="auto",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # An address that a client writes into a header is not where it comes from.
        proxy_headers=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    server = _Server(config, settings, app.service, told)
    # The server raises its signals again once it has ended; to end is what they asked for.
    usual = {
        number: signal.signal(number, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    interval = sys.getswitchinterval()
    # Threads of learners hold the interpreter for moments only; who waits for it 5 ms each
    # time, as is usual, learns at a tenth of the rate.
    sys.setswitchinterval(_SWITCH)
    try:
        # Small products by many threads wait for each other, and for the server.
        with one_thread():
            server.run(sockets=listening)
    finally:
        for one in listening:
            one.close()
        sys.setswitchinterval(interval)
        for number, handler in usual.items():
            signal.signal(number, handler)
    if server.problem is not None:
        raise server.problem
