"""Answers on their way out: the headers of all, and those that no route makes."""

import base64
import hashlib
import html
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from imparo.service.errors import ServiceError

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "media-src 'self' blob:; connect-src 'self'; font-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
#: Of every answer.
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(self), microphone=(), geolocation=()"),
]
_STYLE = """
:root{color-scheme:light dark;--ink:#1b2230;--paper:#f4f6f9;--card:#fff;--edge:#7b869c;--main:#b01339;--on:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e8edf6;--paper:#10131a;--card:#191e28;--edge:#8290a8;--main:#ff8fa5;--on:#10131a}}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--paper);color:var(--ink);font:1.1rem/1.5 system-ui,sans-serif}
main{background:var(--card);padding:2rem;margin:1rem;border-radius:14px;max-width:26rem}
h1{margin:0 0 .5rem}input,button{font:inherit;box-sizing:border-box;width:100%;padding:.7rem;border-radius:8px;border:2px solid var(--edge);margin-top:.4rem}
button{background:var(--main);color:var(--on);border-color:var(--main);font-weight:700;margin-top:1rem}
:focus-visible{outline:3px solid var(--main);outline-offset:2px}
"""  # noqa: E501
_LOGIN = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<title>Token · imparo</title><meta name="viewport" content="width=device-width">
<style>{style}</style></head><body><main><h1>imparo</h1><p role="alert">{said}</p>
<form method="post" action="{root}/api/session"><label>Token <input name="token" type="password"
autocomplete="current-password" required autofocus></label><button>Open</button></form>
</main></body></html>"""
_ONWARD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>imparo</title>
<meta http-equiv="refresh" content="0;url={place}"></head><body><p><a href="{place}">Go on to
the page</a></p></body></html>"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()


def root_of(scope: Mapping[str, Any]) -> str:
    """Return below which path the service is, "" where it is alone."""
    return str(scope.get("root_path", "")).rstrip("/")


def path_of(scope: Mapping[str, Any]) -> str:
    """Return the path of a request, as the service knows it wherever it is mounted."""
    path, root = str(scope["path"]), root_of(scope)
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def login_page(said: str, root: str, status: int = 401) -> tuple[int, str, str]:
    """Return status, page and policy of the page that asks for the token.

    Parameters
    ----------
    said : str
        Why it is asked for.
    root : str
        Below which path the service is.
    status : int, default 401
    """
    words = f"{said[:1].upper()}{said[1:]}."
    policy = POLICY.replace("style-src 'self'", f"style-src 'sha256-{_STYLE_HASH}'")
    text = _LOGIN.format(style=_STYLE, said=html.escape(words), root=html.escape(root))
    return status, text, policy


class Reply:
    """The answer to one request: its status is kept, and headers are added to it."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send = scope, send
        self.status: int | None = None
        self.begun = False

    async def send(self, message: dict[str, Any]) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status, self.begun = message["status"], True
            named = {name for name, _ in message.get("headers", [])}
            more = [pair for pair in HEADERS if pair[0] not in named]
            if b"cache-control" not in named:
                more.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await self._send(message)

    async def say(
        self, status: int, content: dict[str, Any], retry_after: int | None = None
    ) -> None:
        """Answer with JSON; a WebSocket is not opened."""
        if self._scope["type"] == "websocket":
            await self._send({"type": "websocket.close", "code": 1008,
                              "reason": str(content.get("error", ""))[:100]})  # fmt: skip
            return
        more = [] if retry_after is None else [(b"retry-after", str(retry_after).encode())]
        if status == 401:
            more.append((b"www-authenticate", b"Bearer"))
        await self._whole(status, b"application/json", json.dumps(content).encode(), more)

    async def problem(self, error: ServiceError) -> None:
        """Answer with what was wrong, and close the connection: a body may still be coming."""
        content = json.dumps(error.content()).encode()
        more = [(b"connection", b"close")]
        if error.retry_after is not None:
            more.append((b"retry-after", str(error.retry_after).encode()))
        await self._whole(error.status, b"application/json", content, more)

    async def page(
        self, status: int, text: str, policy: str, retry_after: int | None = None
    ) -> None:
        """Answer with a page."""
        more = [(b"www-authenticate", b"Bearer"), (b"content-security-policy", policy.encode())]
        if retry_after is not None:
            more.append((b"retry-after", str(retry_after).encode()))
        await self._whole(status, b"text/html; charset=utf-8", text.encode(), more)

    async def welcome(self, cookie: str, from_elsewhere: bool) -> None:
        """Set the cookie, and send the browser to the page without the token.

        Parameters
        ----------
        cookie : str
        from_elsewhere : bool
            Whether a link of another site may have been followed, in a letter say. To where it
            is redirected, the browser would not send the cookie; to where a page of ours sends
            it, it does.
        """
        place = f"{root_of(self._scope)}/"
        more = [(b"set-cookie", cookie.encode())]
        if from_elsewhere:
            text = _ONWARD.format(place=html.escape(place)).encode()
            await self._whole(200, b"text/html; charset=utf-8", text, more)
        else:
            more.append((b"location", place.encode()))
            await self._whole(303, b"text/plain", b"", more)

    async def _whole(
        self, status: int, kind: bytes, content: bytes, more: list[tuple[bytes, bytes]]
    ) -> None:
        length = str(len(content)).encode()
        headers = [(b"content-type", kind), (b"content-length", length), *more]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": content})
