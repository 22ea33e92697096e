"""All learners of a service: a folder, with a folder for each."""

import asyncio
import json
import logging
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import imparo.lifelong
from imparo.journal.locks import Lock
from imparo.lifelong import IncrementalClassifier
from imparo.persistence import sync_folder, write_atomically
from imparo.service.errors import (
    Begun,
    Conflict,
    Damaged,
    Missing,
    TooMuch,
    Unready,
    explained,
)
from imparo.service.live import LiveLearner
from imparo.service.metrics import Metrics
from imparo.service.recipes import (
    New,
    Wanted,
    check_features,
    features_of,
    learner_of,
    n_inputs_of,
    n_outputs_of,
    size_of,
)
from imparo.service.settings import Settings
from imparo.service.states import told

_log = logging.getLogger("imparo.service")
_ABOUT = "about.json"
_FORMAT = 1
# Folders that are being made, or being removed; swept away at the next start.
_MAKING, _GONE = ".making-", ".gone-"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Entry:
    """A learner, open or damaged, and what was said of it when it was made.

    Attributes
    ----------
    about : dict
        kind, features, created, n_inputs and n_outputs, as they are kept.
    live : LiveLearner or None
        None where it is damaged.
    reason : str or None
        Why it could not be opened.
    last : dict or None
        Its state when it was last told.
    reserved : int
        Bytes that it will take at least once it has learned.
    """

    def __init__(self, name: str, about: dict[str, Any]) -> None:
        self.name, self.about = name, about
        self.live: LiveLearner | None = None
        self.reason: str | None = None
        self.last: dict[str, Any] | None = None
        self.reserved = int(about.get("bytes", 0))

    def at_work(self) -> LiveLearner:
        """Return the learner, or raise where it is damaged."""
        if self.live is None:
            raise Damaged(f"the learner {self.name!r} could not be opened: {self.reason}")
        return self.live

    @property
    def memory(self) -> int:
        """Bytes that it takes, or will take."""
        return max(self.reserved, self.live.desk.memory) if self.live is not None else 0


class Learners:
    """The learners of a service; one process at a time.

    Parameters
    ----------
    settings : Settings
    metrics : Metrics

    Raises
    ------
    BlockingIOError
        If another service has the folder.
    """

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings, self.metrics = settings, metrics
        self.folder = Path(settings.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._lock = Lock(self.folder / "lock")
        except BlockingIOError as error:
            raise BlockingIOError(
                f"{self.folder} is served already; end that service, or give another folder"
            ) from error
        self._entries: dict[str, Entry] = {}
        #: Names that are being made or removed, and the bytes that each will take.
        self._busy: dict[str, int] = {}
        self._gate, self._room = threading.Lock(), threading.Lock()
        self._ended = False
        #: Whether it was begun to open learners; else whoever holds the service forgot to.
        self.begun = False
        self.ready = False

    # Opening and closing.

    def open_all(self) -> None:
        """Open every learner in the folder; one that is damaged does not stop the others."""
        _warm_up()
        for path in sorted(self.folder.iterdir()):
            if self._ended:
                return
            if path.name.startswith((_MAKING, _GONE)):
                shutil.rmtree(path, ignore_errors=True)
            elif not (path / _ABOUT).is_file() and not (path / "learner").is_dir():
                continue
            elif _NAME.fullmatch(path.name):
                self._open(path)
            else:
                _log.error("a folder is no learner by its name; rename it to letters, digits, "
                           "- and _", extra={"folder": path.name})  # fmt: skip
        self._count()
        self.ready = True

    def _open(self, path: Path) -> None:
        entry = Entry(path.name, {"kind": "unknown", "features": "unknown", "created": ""})
        self._entries[path.name] = entry
        start = time.perf_counter()
        try:
            entry.about = {**entry.about, **_read_about(path / _ABOUT)}
            entry.reserved = int(entry.about.get("bytes", 0))
            self._start(entry, path)
        except Exception as error:
            entry.reason = " ".join(str(error).split())
            _log.error("a learner could not be opened", extra={
                "learner": path.name, "reason": entry.reason,
            })  # fmt: skip
        else:
            seconds = round(time.perf_counter() - start, 3)
            seen = entry.at_work().desk.n_seen
            told = {"learner": path.name, "examples": seen, "seconds": seconds}
            _log.info("opened", extra=told)

    def _start(self, entry: Entry, path: Path) -> None:
        wanted = Wanted(
            entry.about.get("n_inputs"), entry.about.get("n_outputs"),
            lambda size: self.reserve(entry, size),
        )  # fmt: skip
        entry.live = LiveLearner(
            path, sync=self.settings.sync, limits=self.settings.limits, metrics=self.metrics,
            wanted=wanted,
        )  # fmt: skip
        try:
            entry.last = told(entry)
        except BaseException:
            live, entry.live = entry.live, None
            live.close()
            raise

    def end_soon(self) -> None:
        """Take nothing new, and give what waits a few seconds."""
        self._ended, self.ready = True, False
        for entry in self.all():
            if entry.live is not None:
                entry.live.end_soon()

    def close(self) -> None:
        """Finish what waits, make all durable, and let another process have the folder."""
        with self._gate:  # what is being made now will see that it is too late
            self._ended, self.ready = True, False
        for entry in self._entries.values():
            if entry.live is not None:
                try:
                    entry.live.close()
                except Exception as error:
                    _log.error("a learner did not close", exc_info=error,
                               extra={"learner": entry.name})  # fmt: skip
        self._lock.release()

    # Which there are.

    def all(self) -> list[Entry]:
        """Return every learner, by name."""
        # A copy: learners ask from their own threads.
        entries = self._entries.copy()
        return [entries[name] for name in sorted(entries)]

    def check_ready(self) -> None:
        """Raise while learners are being opened or closed."""
        if not self.begun:
            raise Unready(
                "the service was not started: a program that mounts it must run its "
                "lifespan(), see its guide"
            )
        if not self.ready:
            raise Unready("the service is starting or ending; try again in a moment")

    def find(self, name: str) -> Entry:
        """Return a learner, or raise ``Missing``."""
        self.check_ready()
        found = self._entries.get(name)
        if found is None:
            raise Missing(f"there is no learner {name!r:.80}")
        return found

    # Making and removing.

    async def create(self, new: New) -> Entry:
        """Make a learner that has learned nothing."""
        learner = await asyncio.to_thread(learner_of, new, self.settings.limits)
        width = n_inputs_of(new, learner)
        about = {
            "kind": new.kind, "features": new.features, "n_inputs": width,
            "n_outputs": n_outputs_of(new, learner),
        }  # fmt: skip
        size = size_of(learner, width)
        check_features(features_of(learner, width), self.settings.limits)
        return await self.add(new.name, about, learner, size)

    async def add(
        self, name: str, about: dict[str, Any], learner: Any, size: int,
        fill: Callable[[Path], None] = lambda folder: None,
    ) -> Entry:  # fmt: skip
        """Make a learner that goes on from another one.

        Parameters
        ----------
        name : str
        about : dict
        learner : estimator
        size : int
            Bytes that it takes, or will take once it has learned.
        fill : function
            Puts more into the new folder.
        """
        self.check_ready()
        if name in self._entries or name in self._busy:
            raise Conflict(f"there is a learner {name!r} already; choose another name")
        if len(self._entries) + len(self._busy) >= self.settings.limits.learners:
            raise TooMuch(
                f"there are {len(self._entries)} learners, and this service keeps at most "
                f"{self.settings.limits.learners}; delete some first"
            )
        if (self.folder / name).exists():
            raise Conflict(
                f"{name!r} is taken by another file in the folder; choose another name"
            )
        with self._room:
            self._check_room(size)
            self._busy[name] = size
        created = datetime.now(UTC).isoformat(timespec="seconds")
        about = {"format": _FORMAT, **about, "bytes": size, "created": created}
        entry = Entry(name, about)
        try:
            await asyncio.to_thread(self._make, entry, learner, fill)
        except Exception as error:
            raise explained(error) from error
        finally:
            del self._busy[name]
        self._count()
        _log.info("created", extra={"learner": name})
        return entry

    def _make(self, entry: Entry, learner: Any, fill: Callable[[Path], None]) -> None:
        making = self.folder / f"{_MAKING}{secrets.token_hex(8)}"
        making.mkdir()
        try:
            imparo.lifelong.open(making / "learner", learner).close()
            fill(making)
            write_atomically(making / _ABOUT, json.dumps(entry.about).encode())
            sync_folder(making)
            # There or not there: a folder is never half a learner.
            making.rename(self.folder / entry.name)
            sync_folder(self.folder)
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise
        try:
            self._start(entry, self.folder / entry.name)
        except BaseException:
            self._remove(entry)
            raise
        with self._gate:
            if not self._ended:
                self._entries[entry.name] = entry
                return
        entry.at_work().close()
        raise Begun(f"the service is ending; {entry.name!r} was made all the same")

    async def delete(self, name: str) -> None:
        """Remove a learner and all that it knows."""
        entry = self.find(name)
        if entry.live is not None:
            # Its turn: who deletes a learner that merges waits here, and not in a thread.
            await entry.live.change(lambda: None)
        if self.find(name) is not entry or name in self._busy:
            raise Conflict(f"the learner {name!r} is in use; try again in a moment")
        del self._entries[name]
        self._busy[name] = 0
        watched = entry.live
        try:
            await asyncio.to_thread(self._remove, entry)
        except Exception as error:
            # The disk did not take it: the learner is there as it was.
            await asyncio.to_thread(self._put_back, entry)
            raise explained(error) from error
        finally:
            del self._busy[name]
            if name not in self._entries:
                self.metrics.forget(name)
            self._count()
            if watched is not None:
                watched.tell_watchers()
        _log.info("deleted", extra={"learner": name})

    def _remove(self, entry: Entry) -> None:
        if entry.live is not None:
            entry.live.close(deleted=True)
        gone = self.folder / f"{_GONE}{secrets.token_hex(8)}"
        try:
            (self.folder / entry.name).rename(gone)
        except FileNotFoundError:
            return  # somebody has removed it by hand
        try:
            sync_folder(self.folder)
        except OSError:
            gone.rename(self.folder / entry.name)
            raise
        shutil.rmtree(gone, ignore_errors=True)

    def _put_back(self, entry: Entry) -> None:
        """Open a learner that could not be removed."""
        path = self.folder / entry.name
        if path.exists():
            self._open(path)

    def reserve(self, entry: Entry, size: int) -> None:
        """Keep room for a learner whose size is now known, or raise where there is none."""
        with self._room:
            self._check_room(size, entry)
            entry.reserved = size

    def _check_room(self, size: int, mine: Entry | None = None) -> None:
        """Raise where there is no memory left for a learner of so many bytes."""
        limit = self.settings.limits.memory
        used = sum(entry.memory for entry in self.all() if entry is not mine)
        used += sum(self._busy.copy().values())
        if used + size > limit:
            raise TooMuch(
                f"the learner would take {size / 1e9:.2f} GB, and {used / 1e9:.2f} of "
                f"{limit / 1e9:.2f} GB are taken; delete others, or use fewer features, or "
                "classes"
            )

    def _count(self) -> None:
        damaged = sum(entry.live is None for entry in self._entries.values())
        self.metrics.learners.labels("open").set(len(self._entries) - damaged)
        self.metrics.learners.labels("damaged").set(damaged)


def _read_about(path: Path) -> dict[str, Any]:
    """Return what was said of a learner when it was made."""
    if not path.is_file():
        raise ValueError(f"its file {path.name} is missing; restore it from a copy")
    try:
        about = dict(json.loads(path.read_text("utf-8")))
        newer = about["format"] > _FORMAT
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"its file {path.name} is damaged; restore it from a copy") from error
    if newer:
        raise ValueError("it was made by a newer imparo: upgrade this one")
    return about


def _warm_up() -> None:
    """Load what the first example needs: compiled loops, and what is imported late."""
    X, y = np.eye(40, 4), ["a", "b"] * 20
    learner = IncrementalClassifier().fit(X, y)
    learner.assess(X)
    learner.recoding_curve()
