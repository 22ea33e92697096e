"""A shorter way for the two requests that come most: to teach rows, and to ask.

FastAPI looks for the route, resolves what it depends on and wraps it in five layers, which
takes longer than to learn an example. These two go the short way, and do the same
(``exchanges.py``); all else, and the description of the API, is FastAPI's.
"""

import json
import re
from typing import Any

from imparo.service.errors import LEFT, Malformed, explained
from imparo.service.exchanges import answered, as_json, parsed, taught
from imparo.service.replies import path_of
from imparo.service.schemas import Ask, Teach
from imparo.service.service import Service

_PATH = re.compile(r"/api/learners/([A-Za-z0-9_-]{1,64})/(teach|ask)")


class Shortcut:
    """ASGI: answers what it knows, and hands on the rest.

    Parameters
    ----------
    app : ASGI application
    service : Service
    """

    def __init__(self, app: Any, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer, or hand on."""
        found = None
        if scope["type"] == "http" and scope["method"] == "POST":
            found = _PATH.fullmatch(path_of(scope))
        if found is None:
            await self._app(scope, receive, send)
            return
        name, kind = found.groups()
        # For metrics: the route that FastAPI would have found.
        scope["imparo.route"] = f"/api/learners/{{name}}/{kind}"
        status, headers = 200, [(b"content-type", b"application/json")]
        try:
            content = as_json(await self._done(name, kind, scope, receive))
        except Exception as error:
            told = explained(error)
            status, content = told.status, json.dumps(told.content()).encode()
            if told.retry_after is not None:
                headers.append((b"retry-after", str(told.retry_after).encode()))
        headers.append((b"content-length", str(len(content)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _done(self, name: str, kind: str, scope: Any, receive: Any) -> dict[str, Any]:
        body = await _body(receive)
        given = next((value for key, value in scope["headers"] if key == b"content-type"), b"")
        content_type = given.decode("latin-1")
        if kind == "teach":
            sent = parsed(Teach, content_type, body)
            scope["imparo.key"] = sent.key is not None
            return await taught(self._service, name, sent)
        return await answered(self._service, name, parsed(Ask, content_type, body))


async def _body(receive: Any) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Malformed(LEFT)
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)
