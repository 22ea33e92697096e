"""A service at work: listening, until it is told to end."""

import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import uvicorn

from imparo.engine import one_thread
from imparo.service.app import create_app
from imparo.service.protocol import limited_protocol
from imparo.service.settings import Settings

_log = logging.getLogger("imparo.service")
# Seconds that requests have to end when the service is told to; learners are closed after that.
_GRACE = 10
# Seconds after which a thread lets others have the interpreter.
_SWITCH = 0.0005


class _Server(uvicorn.Server):
    """A server that says where it listens once it does."""

    def __init__(self, config: uvicorn.Config, settings: Settings, told: Any) -> None:
        super().__init__(config)
        self._settings, self._told = settings, told

    async def startup(self, sockets: Any = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if not self.started:
            return
        # What there is now stays: looking through all of it again would stop the service for
        # a tenth of a second, now and then.
        gc.collect()
        gc.freeze()
        port = self.servers[0].sockets[0].getsockname()[1]
        url = address_of(self._settings, port)
        _log.info("ready", extra={"url": url, "folder": str(self._settings.folder)})
        self._told(url)


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
    config = uvicorn.Config(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        http=limited_protocol(limits),
        ws="websockets-sansio",
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
    server = _Server(config, settings, told)
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
            server.run()
    except SystemExit as error:
        raise OSError(
            f"the service could not listen on {settings.host}:{settings.port}; is the port "
            "taken? Give another --port"
        ) from error
    finally:
        sys.setswitchinterval(interval)
        for number, handler in usual.items():
            signal.signal(number, handler)
