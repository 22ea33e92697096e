"""Learners over HTTP: made, taught, asked, changed, merged, moved."""

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Query, Request, Response

from imparo.service import moving
from imparo.service.errors import Busy, Missing, Refused, WrongKind
from imparo.service.exchanges import (
    answered,
    answered_picture,
    as_json,
    parsed,
    taught,
    taught_picture,
)
from imparo.service.labels import check_label
from imparo.service.live import LiveLearner
from imparo.service.moving import check_merge
from imparo.service.schemas import (
    Answers,
    Ask,
    Change,
    Forget,
    History,
    ImageAnswer,
    Key,
    Merge,
    Name,
    NewLearner,
    Problem,
    Recoding,
    RecodingCurve,
    Rename,
    State,
    States,
    Taught,
    Teach,
)
from imparo.service.service import Service
from imparo.service.states import recoding_curve, state_of, states_of

_IMAGES = ("image/jpeg", "image/png", "image/webp")
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            kind: {"schema": {"type": "string", "format": "binary"}} for kind in _IMAGES
        },
    }
}
# Bodies of the two that are called most are read here, at a third of what it costs elsewhere.
_LESSON, _QUESTION = (
    {"requestBody": {"required": True,
                     "content": {"application/json": {"schema": model.model_json_schema()}}}}
    for model in (Teach, Ask)
)  # fmt: skip
_FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string",
                                                             "format": "binary"}}},
    }
}  # fmt: skip
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in (
        (400, "The body is not JSON."), (401, "A token is needed."),
        (403, "The request comes from elsewhere."), (404, "There is no such thing."),
        (409, "It does not go with what is there, or is done in part."),
        (413, "It is too large."),
        (415, "Its content is of another kind."), (422, "It cannot be done as it is."),
        (429, "Too many requests."), (503, "Not now; try again."),
    )
}  # fmt: skip

router = APIRouter(prefix="/api", responses=_PROBLEMS)


def service_of(request: Request) -> Service:
    """Return the service that a request is for."""
    return request.app.state.service


def _live(request: Request, name: str) -> LiveLearner:
    return service_of(request).learners.find(name).at_work()


def _classifier(request: Request, name: str) -> LiveLearner:
    live = _live(request, name)
    if not live.is_classifier:
        raise Refused(f"the learner {name!r} has no classes; it learns numbers")
    return live


def _json(content: dict[str, Any], status: int = 200) -> Response:
    # What is answered is made here; to check it once more costs more than to make it.
    return Response(as_json(content), status, media_type="application/json")


async def _state(
    request: Request, name: str, work: Callable[[], object] | None = None, status: int = 200
) -> Response:
    return _json(await state_of(service_of(request).learners.find(name), work), status)


# Learners.


@router.get("/learners", response_model=States)
async def learners(request: Request) -> Any:
    """List all learners."""
    service = service_of(request)
    service.learners.check_ready()
    return _json({"learners": await states_of(service.learners.all())})


@router.post("/learners", response_model=State, status_code=201)
async def create(request: Request, new: NewLearner) -> Any:
    """Make a learner that has learned nothing."""
    service = service_of(request)
    reason = service.missing(new.features)
    if reason is not None:
        raise Refused(reason)
    await service.learners.create(new)
    return await _state(request, new.name, status=201)


@router.get("/learners/{name}", response_model=State)
async def learner(request: Request, name: Name) -> Any:
    """Tell what a learner knows."""
    return await _state(request, name)


@router.delete("/learners/{name}", status_code=204)
async def delete(request: Request, name: Name) -> Response:
    """Remove a learner and all that it knows."""
    await service_of(request).learners.delete(name)
    return Response(status_code=204)


@router.patch("/learners/{name}", response_model=State)
async def change(request: Request, name: Name, wanted: Change) -> Any:
    """Set α, from 0, none, to 1, classes count as if they were equally frequent."""
    live = _classifier(request, name)
    return await _state(request, name, lambda: live.learner.recode(wanted.recoding))


@router.get("/learners/{name}/history", response_model=History)
async def history(request: Request, name: Name) -> Any:
    """Tell how a learner has done: errors before learning, times, memory, confusion."""
    live = _live(request, name)
    return _json(await live.look(live.album.history))


@router.get("/learners/{name}/recoding", response_model=RecodingCurve)
async def recoding(request: Request, name: Name) -> Any:
    """Tell how often each class is found at each α, on examples that are held out."""
    live = _classifier(request, name)
    return _json(await live.look(lambda: recoding_curve(live)))


@router.get(
    "/learners/{name}/thumbnails/{key}", response_class=Response,
    responses={200: {"content": {"image/jpeg": {}}}},
)  # fmt: skip
async def thumbnail(request: Request, name: Name, key: str) -> Response:
    """Return a picture of a class."""
    live = _live(request, name)
    found = live.album.picture(key)
    if found is None:
        raise Missing(f"the learner {name!r} has no picture {key!r:.40}")
    kept = {"cache-control": "private, max-age=86400, immutable"}
    return Response(found, media_type="image/jpeg", headers=kept)


# Teaching and asking.


@router.post("/learners/{name}/teach", response_model=Taught, openapi_extra=_LESSON)
async def teach(request: Request, name: Name) -> Any:
    """Learn examples; they are kept when this is answered.

    Under a key that came before only what is left of them is learned.
    """
    sent = parsed(Teach, request.headers.get("content-type", ""), await request.body())
    return _json(await taught(service_of(request), name, sent))


@router.post("/learners/{name}/teach/image", response_model=Taught, openapi_extra=_BODY)
async def teach_image(
    request: Request,
    name: Name,
    label: str = Query(min_length=1, max_length=1000),
    key: Key | None = None,
) -> Any:
    """Learn what is on an image; under a key that came before, nothing."""
    content = await _image(request)
    request.scope["imparo.key"] = key is not None
    return _json(await taught_picture(service_of(request), name, label, key, content))


@router.post("/learners/{name}/ask", response_model=Answers, openapi_extra=_QUESTION)
async def ask(request: Request, name: Name) -> Any:
    """Answer rows; nothing is learned."""
    sent = parsed(Ask, request.headers.get("content-type", ""), await request.body())
    return _json(await answered(service_of(request), name, sent))


@router.post("/learners/{name}/ask/image", response_model=ImageAnswer, openapi_extra=_BODY)
async def ask_image(request: Request, name: Name, recoding: Recoding | None = None) -> Any:
    """Answer what is on an image; nothing is learned."""
    content = await _image(request)
    return _json(await answered_picture(service_of(request), name, recoding, content))


async def _image(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (*_IMAGES, "application/octet-stream"):
        raise WrongKind(
            f"the body is of type {kind or 'unknown'!r:.60}; send the bytes of an image, as "
            f"{', '.join(_IMAGES)}"
        )
    return await request.body()


# Classes.


@router.post("/learners/{name}/forget", response_model=State)
async def forget(request: Request, name: Name, wanted: Forget) -> Any:
    """Forget a class."""
    live = _classifier(request, name)

    def work() -> None:
        live.learner.forget(wanted.label)
        live.desk.beside.do(lambda: live.album.forget(wanted.label))

    return await _state(request, name, work)


@router.post("/learners/{name}/rename", response_model=State)
async def rename(request: Request, name: Name, wanted: Rename) -> Any:
    """Rename a class; if there is one of that name, the two become one."""
    live = _classifier(request, name)
    check_label(wanted.new, service_of(request).limits)

    def work() -> None:
        live.learner.rename(wanted.label, wanted.new)
        live.desk.beside.do(lambda: live.album.rename(wanted.label, wanted.new))

    return await _state(request, name, work)


# Merging and moving.


@router.post("/learners/{name}/merge", response_model=State)
async def merge(request: Request, name: Name, wanted: Merge) -> Any:
    """Learn all that another learner has learned; that one is not changed."""
    live, other = _live(request, name), _live(request, wanted.other)
    if live is other:
        raise Refused("a learner cannot be merged with itself; name another one")
    pictures = await other.look(other.album.state)
    most = service_of(request).limits.classes

    def work() -> None:
        check_merge(live, other, most)
        try:
            live.learner.merge(other.learner)
        except BaseException:
            live.desk.give_back_room()
            raise
        live.desk.beside.do(lambda: live.album.adopt(pictures))
        live.desk.beside.reconcile()  # the other may have forgotten a class meanwhile

    return await _state(request, name, work)


@router.get(
    "/learners/{name}/export", response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}},
)  # fmt: skip
async def export(request: Request, name: Name) -> Response:
    """Return a learner as one file, pictures and curves included."""
    service = service_of(request)
    entry = service.learners.find(name)
    live = entry.at_work()
    if service.exporting.locked():  # for as long as others read: nobody waits for that
        raise Busy("too many learners are being exported already; try again in a second")
    await service.exporting.acquire()
    try:
        file = await live.look(lambda: moving.exported(live, entry.about))
        return moving.Sent(file, moving.as_file_name(entry), service.exporting.release)
    except BaseException:
        service.exporting.release()
        raise


@router.post("/import", response_model=State, status_code=201, openapi_extra=_FILE)
async def bring(request: Request, name: Name) -> Any:
    """Make a learner of a file: an exported one, or one of imparo.save."""
    service = service_of(request)
    content = await request.body()
    async with service.importing:  # to look at one takes several times its size
        found = await asyncio.to_thread(moving.Imported, content, service.limits)
        await service.learners.add(name, found.about, found.learner, found.size, found.filler())
    return await _state(request, name, status=201)
