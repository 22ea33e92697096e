"""What a learner says of itself."""

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from imparo.service.album import key_of
from imparo.service.errors import Missing
from imparo.service.live import LiveLearner

if TYPE_CHECKING:
    from imparo.service.learners import Entry

_ALPHAS = 21
# Numbers that examples are answered with to judge by them.
_JUDGED = 2**22
# Seconds that a list of learners waits for one that is merging, say.
_PATIENCE = 0.5


async def state_of(entry: "Entry", work: Callable[[], object] | None = None) -> dict[str, Any]:
    """Return a :class:`~imparo.service.schemas.State`, after a change if one is given.

    Parameters
    ----------
    entry : Entry
    work : function, optional
        Changes the learner, in its thread.
    """
    live = entry.live
    if live is None:
        return told(entry)
    if work is None:
        found = await live.look(partial(told, entry))
    else:
        found = await live.change(partial(_changed, entry, work))
    entry.last = found
    return found


def told(entry: "Entry") -> dict[str, Any]:
    """Return the state of a learner; in its thread, or while it has nothing to do."""
    about = {
        "name": entry.name, "kind": entry.about["kind"], "features": entry.about["features"],
        "created": entry.about["created"], "n_inputs": entry.about.get("n_inputs"),
        "n_outputs": entry.about.get("n_outputs"), "status": "open", "reason": None,
        "n_seen": 0, "number": 0, "classes": [], "recoding": None, "milliseconds": None,
        "accuracy": None, "error": None, "memory": 0, "disk": 0,
    }  # fmt: skip
    live = entry.live
    if live is None:
        return {**about, "status": "damaged", "reason": entry.reason}
    return {**about, **_known(live)}


def _changed(entry: "Entry", work: Callable[[], object]) -> dict[str, Any]:
    # In one turn: once it is done, nothing may be in the way of saying so. While it is being
    # done, a merge say, the list tells what was known before.
    entry.last = told(entry)
    work()
    return told(entry)


async def states_of(entries: "list[Entry]") -> list[dict[str, Any]]:
    """Return the states of all; of one that is busy for long, the last that was told."""
    found = await asyncio.gather(*(_soon(entry) for entry in entries))
    return [state for state in found if state is not None]


async def _soon(entry: "Entry") -> dict[str, Any] | None:
    asked = asyncio.create_task(state_of(entry))
    done, _ = await asyncio.wait([asked], timeout=_PATIENCE)
    if not done:
        asked.add_done_callback(lambda task: task.exception())  # told to nobody
        return entry.last
    error = asked.exception()
    if error is None:
        return asked.result()
    return None if isinstance(error, Missing) else entry.last


def _known(live: LiveLearner) -> dict[str, Any]:
    album, learner = live.album, live.learner
    found: dict[str, Any] = {
        "n_seen": live.desk.n_seen, "number": learner.number, "memory": live.desk.memory,
        "disk": learner.size + album.size, "classes": [], "recoding": None,
        "milliseconds": album.lately("milliseconds"), "accuracy": album.lately("accuracy"),
        "error": album.lately("error"),
    }  # fmt: skip
    if live.desk.n_seen:
        found["n_inputs"] = int(learner.n_features_in_)
        if not live.is_classifier:
            found["n_outputs"] = live.desk.n_outputs
    if live.is_classifier:
        found["recoding"] = _recoding(live)
        found["classes"] = _classes(live)
    return found


def _recoding(live: LiveLearner) -> dict[str, Any]:
    setting = live.learner.recoding
    return {
        "setting": setting if isinstance(setting, str) else float(setting),
        "in_use": float(live.learner.recoding_) if live.desk.n_seen else None,
    }


def _classes(live: LiveLearner) -> list[dict[str, Any]]:
    if not live.desk.n_seen:
        return []
    pictures = live.album.thumbnails
    shown = live.learner.shown_.tolist()
    return [
        {
            "label": label,
            "shown": count,
            "thumbnails": [
                f"/api/learners/{live.name}/thumbnails/{key}"
                for key in pictures.get(key_of(label), {})
            ],
        }
        for label, count in zip(live.learner.classes_.tolist(), shown, strict=True)
    ]


def recoding_curve(live: LiveLearner) -> dict[str, Any]:
    """Return a :class:`~imparo.service.schemas.RecodingCurve`; in the learner's thread."""
    told = {**_recoding(live), "alphas": [round(i / (_ALPHAS - 1), 6) for i in range(_ALPHAS)]}
    if not live.desk.n_seen:
        return {**told, "classes": [], "accuracy": [None] * _ALPHAS}
    most = _JUDGED // max(1, len(live.learner.shown_))
    rows, labels = live.album.judges(most, live.desk.known())
    exact = rows and live.learner.forgetting == 1 and live.learner.drift != "forget"
    learned = (np.array(rows), labels) if exact else None
    _, found, held = live.learner.recoding_curve(told["alphas"], learned=learned)
    names, shown = live.learner.classes_.tolist(), live.learner.shown_.tolist()
    classes = [
        {"label": label, "shown": n, "judged_by": int(h), "found": _plain(row)}
        for label, n, h, row in zip(names, shown, held, found.tolist(), strict=True)
    ]
    known = found[held > 0]
    accuracy = known.mean(axis=0).tolist() if len(known) else [math.nan] * _ALPHAS
    return {**told, "classes": classes, "accuracy": _plain(accuracy)}


def _plain(numbers: list[float]) -> list[float | None]:
    return [None if math.isnan(x) else x for x in numbers]
