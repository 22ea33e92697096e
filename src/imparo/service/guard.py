"""What every request passes before it reaches a route, and every answer on its way out."""

import asyncio
import ipaddress
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any
from urllib.parse import parse_qs, urlsplit

from imparo.service.errors import Begun, Busy, ServiceError, Throttled, TooMuch, Unavailable
from imparo.service.metrics import Metrics
from imparo.service.rates import Arriving, Rates
from imparo.service.replies import Reply, Scope, Send, login_page, path_of, root_of
from imparo.service.settings import Settings
from imparo.service.tokens import Doorkeeper

Receive = Callable[[], Awaitable[dict[str, Any]]]

_log = logging.getLogger("imparo.service")
# Wrong tokens from one address: ten, and then one in six seconds.
_WRONG, _WRONG_RATE = 10.0, 1 / 6
_LOGIN_BYTES = 4096
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# Where browsers say that the link of an address was: here, or nowhere.
_OWN = (b"none", b"same-origin", b"same-site")
# Bodies that hold no rows, no picture and no robot.
_SMALL_BYTES = 2**16
# Requests that take longer are told in the log.
_SLOW = 1.0


class Guard:
    """ASGI middleware: host and origin, token, rate, sizes and times; headers of answers.

    Parameters
    ----------
    app : ASGI application
    settings : Settings
    metrics : Metrics
    rates : Rates
        Of requests, by address.
    arriving : Arriving
    """

    def __init__(
        self, app: Any, settings: Settings, metrics: Metrics, rates: Rates, arriving: Arriving
    ) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._limits = settings.limits
        #: The application behind everything that stands before it, and its service.
        self.inner = app
        self.service: Any = None
        #: To be run by a program that mounts this one: opens the learners, and closes them.
        self.lifespan: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
        self._keeper = Doorkeeper(settings.token, settings.tls)
        self._rates = rates
        self._wrong = Rates(_WRONG_RATE, _WRONG)
        self.arriving = arriving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        start, headers = time.perf_counter(), _headers_of(scope)
        address = (scope.get("client") or ("unknown", 0))[0]
        reply = Reply(scope, send)
        try:
            refusal = self._refusal(scope, headers, address)
            # Nobody reads cookies further on, and some take the standard library seconds.
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"cookie"]
            if refusal is not None:
                await refusal(reply)
            elif scope["type"] == "websocket":
                await self._app(scope, receive, send)
            else:
                await self._app(scope, self._limited(scope, headers, receive), reply.send)
        except ServiceError as error:
            if reply.begun:
                raise
            await reply.problem(error)
        except asyncio.CancelledError:
            # The service ends, and this took longer than it waits for.
            if reply.begun or scope["type"] != "http":
                raise
            await reply.problem(_cut_off(scope))
        finally:
            self.arriving.add(-scope.get("imparo.bytes", 0))
            self._tell(scope, reply, time.perf_counter() - start)

    # Whether it may pass.

    def _refusal(
        self, scope: Scope, headers: dict[bytes, bytes], address: str
    ) -> "Callable[[Reply], Awaitable[None]] | None":
        host = headers.get(b"host", b"").decode("latin-1")
        if self._settings.token is None and not _is_local(host):
            # A page elsewhere could have its name point here (DNS rebinding).
            return self._no("host", 403, f"this service is not {host!r:.80}; use localhost")
        origin = headers.get(b"origin")
        foreign = origin is not None and _place(origin.decode("latin-1")) != host
        visits = path_of(scope) == "/" and headers.get(b"sec-fetch-mode") == b"navigate"
        # A link to the page, in a letter say, may be followed: the page does nothing by itself.
        if foreign or (headers.get(b"sec-fetch-site") == b"cross-site" and not visits):
            return self._no("origin", 403, "requests from pages of other sites are refused")
        if not self._rates.take(address):
            told = Throttled(
                f"more than {self._limits.rate:g} requests a second came from {address}; "
                "send fewer, or several rows in one"
            )
            return self._no("rate", told.status, str(told), told.retry_after)
        if self._settings.token is not None:
            return self._door(scope, headers, address)
        return None

    def _door(
        self, scope: Scope, headers: dict[bytes, bytes], address: str
    ) -> "Callable[[Reply], Awaitable[None]] | None":
        path = path_of(scope) if scope["type"] == "http" else ""
        shown = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        at_page, is_login = path == "/", path == "/api/session"
        root = root_of(scope)
        wants_page = b"text/html" in headers.get(b"accept", b"") and scope["type"] == "http"
        # Old browsers do not say where a link was.
        elsewhere = wants_page and headers.get(b"sec-fetch-site") not in _OWN
        if self._keeper.admits(headers):
            if at_page and shown:  # addresses are kept and shown by browsers
                return lambda reply: reply.welcome(self._keeper.cookie(root), elsewhere)
            return None
        tries = is_login or shown is not None or b"authorization" in headers
        if tries and not self._wrong.has(address):
            wait = round(1 / _WRONG_RATE)
            told = f"too many wrong tokens; wait {wait} seconds"
            if wants_page:
                self._metrics.refused.labels("wrong token").inc()
                return lambda reply: reply.page(*login_page(told, root, 429), wait)
            return self._no("wrong token", 429, told, wait)
        if is_login and scope["method"] == "POST":
            # The route looks at the token, by :meth:`login`. A try is taken before its body has
            # come, or many at once would all be looked at.
            self._wrong.take(address)
            return None
        if at_page and shown and self._keeper.knows(shown[0].encode("utf-8", "replace")):
            return lambda reply: reply.welcome(self._keeper.cookie(root), elsewhere)
        if tries:
            self._wrong.take(address)
        said = "this is not the token" if tries else "a token is needed"
        said += "; open the link that imparo serve has printed"
        if wants_page:
            return lambda reply: reply.page(*login_page(said, root))
        return self._no("token", 401, f"{said}, or send it as Authorization: Bearer TOKEN")

    def login(self, token: str, address: str, root: str) -> str | None:
        """Return the cookie for a token, None for a wrong one.

        Parameters
        ----------
        token : str
        address : str
            Who gets back the try that was taken at the door, if it is the right one.
        root : str
            Below which path the service is.
        """
        if self._keeper.token is None or self._keeper.knows(token.encode("utf-8", "replace")):
            self._wrong.give_back(address)
            return self._keeper.cookie(root)
        return None

    def _no(
        self, reason: str, status: int, said: str, retry_after: int | None = None
    ) -> "Callable[[Reply], Awaitable[None]]":
        self._metrics.refused.labels(reason).inc()
        return lambda reply: reply.say(status, {"error": said}, retry_after)

    # Size and time of what comes in.

    def _most(self, path: str) -> int:
        if path == "/api/session":  # it needs no token
            return _LOGIN_BYTES
        if path == "/api/import":
            return self._limits.import_bytes
        if path.endswith("/image"):
            return self._limits.image_bytes
        if path.endswith(("/teach", "/ask", "/api/learners")):
            return self._limits.body_bytes
        return min(_SMALL_BYTES, self._limits.body_bytes)

    def _limited(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive) -> Receive:
        most = self._most(path_of(scope))
        too_much = TooMuch(f"the request is larger than {most:,} bytes, which is the most here")
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > most):
            raise too_much
        deadline = asyncio.get_running_loop().time() + self._limits.body_seconds
        got, ended = 0, False

        async def limited() -> dict[str, Any]:
            nonlocal got, ended
            if ended:  # what comes now is that the client has gone
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise _noted(scope, Busy(
                    f"the request took more than {self._limits.body_seconds:g} seconds to "
                    "arrive; nothing was done: send it again"
                )) from None  # fmt: skip
            if message["type"] == "http.request":
                got += (size := len(message.get("body", b"")))
                self.arriving.add(size)
                scope["imparo.bytes"] = got
                ended = not message.get("more_body", False)
                if got > most:
                    raise _noted(scope, too_much)
                if self.arriving.full:
                    raise _noted(scope, Busy("too much is arriving at once; try again"))
            return message

        return limited

    def _tell(self, scope: Scope, reply: "Reply", seconds: float) -> None:
        if scope["type"] != "http":
            return
        route = scope.get("imparo.route") or getattr(scope.get("route"), "path", "other")
        status = reply.status or 500
        # Some servers take any word for a method, and each would be a line of the metrics.
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.requests.labels(method, route, status).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        level = logging.WARNING if status >= 500 or seconds > _SLOW else logging.DEBUG
        if _log.isEnabledFor(level):
            _log.log(level, "request", extra={
                "method": scope["method"], "path": scope["path"], "status": status,
                "seconds": round(seconds, 4), "client": (scope.get("client") or ("",))[0],
            })  # fmt: skip


def _headers_of(scope: Scope) -> dict[bytes, bytes]:
    # Of a header that comes twice the first counts, but two hosts are none.
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name == b"host" and name in found:
            value = b""
            found[name] = value
        found.setdefault(name, value)
    return found


def _noted(scope: Scope, error: ServiceError) -> ServiceError:
    """Keep an error where the handlers of errors find it: on its way it may become another."""
    scope["imparo.problem"] = error
    return error


def _cut_off(scope: Scope) -> ServiceError:
    asks = scope["method"] in ("GET", "HEAD") or path_of(scope).endswith(("/ask", "/ask/image"))
    if asks or scope.get("imparo.key"):  # under its key a lesson is learned once
        return Unavailable("the service ended before this was answered; send it again later")
    return Begun(
        "the service ended before this was done; it may have been done all the same: look at "
        "the learner before you send it again"
    )


def _place(origin: str) -> str | None:
    """Return host and port of an Origin header, None if it is none."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


def _is_local(host: str) -> bool:
    """Return whether a Host header names this machine as it names itself."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
