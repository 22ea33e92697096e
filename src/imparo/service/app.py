"""The ASGI application: routes behind the guard, errors as sentences, a start and an end."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from imparo import __version__
from imparo.service import pages, robot_routes, routes, streams
from imparo.service.errors import LEFT, ServiceError
from imparo.service.guard import Guard
from imparo.service.service import Service
from imparo.service.settings import Settings
from imparo.service.shortcut import Shortcut
from imparo.service.telling import told_of

_log = logging.getLogger("imparo.service")


def create_app(settings: Settings, *, wait: bool = True) -> Any:
    """Return the service as an ASGI application, for any server that speaks it.

    One process serves one folder: run it with one worker. A program that mounts it runs its
    ``lifespan()``, an asynchronous context manager, as part of its own.

    Parameters
    ----------
    settings : Settings
    wait : bool, default True
        Whether all learners are opened before the first request is answered; else requests are
        answered with 503 until they are.

    Returns
    -------
    ASGI application

    Examples
    --------
    >>> import tempfile
    >>> from fastapi.testclient import TestClient
    >>> from imparo.service import Settings, create_app
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     app = create_app(Settings(folder))
    ...     with TestClient(app, base_url="http://localhost") as client:
    ...         _ = client.post("/api/learners", json={"name": "toys", "kind": "classifier"})
    ...         for label, row in (("mug", [1.0, 0.0]), ("ball", [0.0, 1.0])):
    ...             sent = {"inputs": row, "labels": label}
    ...             told = client.post("/api/learners/toys/teach", json=sent).json()
    ...         print(told["n_seen"])
    ...         sent = {"inputs": [0.9, 0.2]}
    ...         print(client.post("/api/learners/toys/ask", json=sent).json()["answers"])
    2
    ['mug']
    """
    service = Service(settings)
    app = FastAPI(
        title="imparo",
        summary="Learners that are taught by showing, and never stop.",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,  # their scripts come from elsewhere
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.service, app.state.wait = service, wait
    for part in (routes, streams, robot_routes, pages):
        app.include_router(part.router)
    app.add_exception_handler(ServiceError, _of_service)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(ClientDisconnect, _of_leaving)
    app.add_exception_handler(Exception, _of_bugs)
    guard = Guard(
        Shortcut(app, service), settings, service.metrics, service.rates, service.arriving
    )
    app.state.guard = guard
    guard.inner, guard.service = app, service
    guard.lifespan = partial(_lifespan, app)
    return guard


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    if service.learners.begun:
        raise RuntimeError(
            "this application was started before, and is started once only; make another one "
            "with create_app"
        )
    service.learners.begun = True
    service.opening = asyncio.create_task(asyncio.to_thread(service.learners.open_all))
    try:
        if app.state.wait:
            await service.opening
        yield
    finally:
        service.end_soon()
        await asyncio.wait([service.opening])
        await asyncio.to_thread(service.close)
        _log.info("closed")


def _said(status: int, sentence: str, **headers: str) -> JSONResponse:
    return JSONResponse(ServiceError(sentence).content(), status, headers=headers)


async def _of_service(request: Request, error: Any) -> JSONResponse:
    # A body that is too large, or too slow, may still be coming.
    headers = {"connection": "close"} if "imparo.problem" in request.scope else {}
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    return JSONResponse(error.content(), error.status, headers=headers)


async def _of_validation(request: Request, error: Any) -> JSONResponse:
    errors = error.errors()
    if errors and errors[0].get("type") == "json_invalid":
        return _said(400, "the body is not JSON; send it with Content-Type: application/json")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if errors and tuple(errors[0].get("loc", ())) == ("body",) and kind != "application/json":
        return _said(415, f"the body is of type {kind or 'unknown'!r:.60}; send JSON, with "
                          "Content-Type: application/json")  # fmt: skip
    return _said(422, told_of(errors))


async def _of_http(request: Request, error: Any) -> JSONResponse:
    problem = request.scope.get("imparo.problem")
    if problem is not None:
        return await _of_service(request, problem)
    return _said(error.status_code, str(error.detail), **(error.headers or {}))


async def _of_leaving(request: Request, error: Any) -> JSONResponse:
    return _said(400, LEFT)


async def _of_bugs(request: Request, error: Exception) -> JSONResponse:
    _log.error("a bug", exc_info=error, extra={"path": request.url.path})
    return _said(500, f"this is a bug of imparo ({type(error).__name__}); see the log")
