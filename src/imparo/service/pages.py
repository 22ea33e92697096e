"""The page and what surrounds it: sessions, health, metrics, what the service is."""

import mimetypes
from dataclasses import asdict
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from imparo import __version__
from imparo.service.errors import Missing, Refused
from imparo.service.replies import login_page, root_of
from imparo.service.routes import service_of
from imparo.service.schemas import About, Features
from imparo.service.service import FEATURES

router = APIRouter()
_KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def _page_files() -> dict[str, tuple[bytes, str]]:
    """Return the files of the page by name: only these can be asked for."""
    found = {}
    for file in files("imparo.service").joinpath("page").iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        kind = _KINDS.get(suffix) or mimetypes.guess_type(file.name)[0] or "text/plain"
        if file.is_file():
            found[file.name] = (file.read_bytes(), kind)
    return found


_PAGE = _page_files()


@router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def page() -> Response:
    """Return the page."""
    return await page_file("index.html")


@router.get("/page/{name}", include_in_schema=False)
async def page_file(name: str) -> Response:
    """Return a file of the page."""
    if name not in _PAGE:
        raise Missing("there is no such file of the page")
    content, kind = _PAGE[name]
    return Response(content, media_type=kind, headers={"cache-control": "no-cache"})


@router.get("/favicon.ico", include_in_schema=False)
async def icon() -> Response:
    """Return the mark of the page."""
    return await page_file("favicon.svg")


@router.post("/api/session", include_in_schema=False)
async def session(request: Request) -> Response:
    """Give a browser a cookie for the token."""
    try:
        sent = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=8)
    except ValueError:
        raise Refused("the form has too many fields; send the token alone") from None
    token = sent.get("token", [""])[0]
    client = request.client.host if request.client else "unknown"
    cookie = request.app.state.guard.login(token, client, root_of(request.scope))
    if cookie is None:
        said = "this is not the token; open the link that imparo serve has printed"
        if "text/html" not in request.headers.get("accept", ""):
            raise Refused(said)
        status, text, policy = login_page(said, root_of(request.scope))
        return Response(text, status, {"content-security-policy": policy}, "text/html")
    place = f"{root_of(request.scope)}/"
    return RedirectResponse(place, 303, headers={"set-cookie": cookie})


@router.get("/api/about", response_model=About)
async def about(request: Request) -> Any:
    """Tell what service this is, and how much it takes."""
    settings = service_of(request).settings
    return {
        "version": __version__,
        "token_needed": settings.token is not None,
        "limits": asdict(settings.limits),
    }


@router.get("/api/features", response_model=Features)
async def features(request: Request) -> Any:
    """List what a learner can look at."""
    service = service_of(request)
    told = []
    for name, words in FEATURES.items():
        reason = service.missing(name)
        told.append({"name": name, "available": reason is None, "reason": reason,
                     "about": words})  # fmt: skip
    return {"features": told}


@router.get("/health/live")
async def live() -> Any:
    """Tell that the service answers."""
    return {"status": "live"}


@router.get("/health/ready", responses={503: {"description": "Starting or ending."}})
async def ready(request: Request) -> Any:
    """Tell whether learners can be taught and asked."""
    learners = service_of(request).learners
    damaged = [entry.name for entry in learners.all() if entry.live is None]
    status = 200 if learners.ready else 503
    told = {"status": "ready" if learners.ready else "not ready", "damaged": damaged}
    return JSONResponse(told, status, None if learners.ready else {"retry-after": "1"})


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Return counters for Prometheus."""
    text = service_of(request).metrics.text()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
