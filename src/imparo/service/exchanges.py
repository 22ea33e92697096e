"""What a learner is taught and asked, however it was sent."""

from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from imparo.service.errors import Malformed, Refused, WrongKind
from imparo.service.keys import Key
from imparo.service.labels import Label, check_label
from imparo.service.schemas import Ask, Teach
from imparo.service.service import Service
from imparo.service.telling import told_of

Sent = TypeVar("Sent", bound=BaseModel)


def as_json(content: Any) -> bytes:
    """Return JSON, quickly; what it has no number for is null."""
    return to_json(content, inf_nan_mode="null")


def parsed(kind: type[Sent], content_type: str, body: bytes) -> Sent:
    """Return the JSON body of a request, checked.

    Parameters
    ----------
    kind : type
        Of :mod:`imparo.service.schemas`.
    content_type : str
        The header's value.
    body : bytes
    """
    given = content_type.partition(";")[0].strip().lower()
    if given != "application/json":
        raise WrongKind(
            f"the body is of type {given or 'unknown'!r:.60}; send JSON, with Content-Type: "
            "application/json"
        )
    try:
        content = from_json(body)
    except ValueError:
        raise Malformed("the body is not JSON") from None
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        told = told_of(error.errors(include_url=False), kind)
    # Not above: no collection sees what pydantic holds of errors, and a cycle would stay.
    raise Refused(told)


def _key(name: str, *parts: Any) -> Key:
    digest = blake2b(digest_size=8)
    for part in parts:
        digest.update(part)
    return Key(name, digest.hexdigest())


async def taught(service: Service, name: str, sent: Teach) -> dict[str, Any]:
    """Learn examples; return what is told when they are kept."""
    entry = service.learners.find(name)
    live = entry.at_work()
    X, y = service.lesson_of(entry, sent)
    key = None
    if sent.key is not None:
        key = _key(sent.key, X, y if isinstance(y, np.ndarray) else to_json(y))
    done = await live.teach(X, y, key=key)
    return {"number": done.number, "n_seen": done.seen, "answers": done.answers}


async def answered(service: Service, name: str, sent: Ask) -> dict[str, Any]:
    """Answer rows."""
    live = service.learners.find(name).at_work()
    return await live.ask(*service.question_of(sent))


async def taught_picture(
    service: Service, name: str, label: Label, key: str | None, content: bytes
) -> dict[str, Any]:
    """Learn what is on an image, and keep a small one of it."""
    entry = service.learners.find(name)
    live = entry.at_work()
    check_label(label, service.limits)
    row, small = await service.seen(entry, content)
    mark = None if key is None else _key(key, content, to_json(label))
    done = await live.teach(row, [label], [(label, small)], mark)
    return {"number": done.number, "n_seen": done.seen, "answers": done.answers}


async def answered_picture(
    service: Service, name: str, recoding: float | None, content: bytes
) -> dict[str, Any]:
    """Answer what is on an image."""
    entry = service.learners.find(name)
    live = entry.at_work()
    row, _ = await service.seen(entry, content)
    found = await live.ask(row, recoding)
    return {
        "answer": found["answers"][0], "confidence": found["confidence"][0],
        "classes": found["classes"], "probabilities": found["probabilities"][0],
    }  # fmt: skip
