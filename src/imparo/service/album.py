"""What is told about a learner beside the learner: pictures, tallies and curves.

An album has a journal of its own. It is written after the learner's and before an example is
acknowledged, so that a killed process loses nothing of it; it is made durable once a second,
so that a power cut may cost pictures and counts of the last second, and of the learner nothing.
"""

import hashlib
import json
import logging
import math
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imparo.journal import Journal, decode, encode, folders
from imparo.service.curves import Curve, FadedMean
from imparo.service.keys import Keys, Learned

_log = logging.getLogger("imparo.service")
# Thumbnails of one class, and of all; pairs of labels that the confusion counts.
_EACH, _ALL, _PAIRS = 6, 2000, 20_000
# Examples of one class that are kept to judge it by while few are held out, and bytes of all.
_ROWS, _ROW_BYTES = 4, 2**24
# Records are replaced by a snapshot when they take so many bytes.
_RECORDS = 2**22
_CURVES = ("accuracy", "error", "milliseconds", "memory")


class Lesson(NamedTuple):
    """Examples that were learned together.

    Attributes
    ----------
    seen : int
        Examples of the learner after them.
    n : int
        How many they are.
    pairs : list of (str, str, int)
        What was shown, what was answered before, how often; as keys of labels.
    right : int or None
        How many were answered rightly before; None if nothing could be.
    squares : float or None
        Mean squared error before, for numbers.
    seconds : float
    memory : int
        Bytes of the model.
    keys : sequence of Learned
        Of what was sent under a key.
    """

    seen: int
    n: int
    pairs: list[tuple[str, str, int]]
    right: int | None
    squares: float | None
    seconds: float
    memory: int
    keys: Sequence[Learned] = ()


def key_of(label: Any) -> str:
    """Return a label as text that tells "1" from 1; to learners, true is 1."""
    return json.dumps(int(label) if isinstance(label, bool) else label)


class Album:
    """Thumbnails, confusion and curves of one learner, kept in a folder.

    Parameters
    ----------
    folder : Path
        Made if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._clear()
        self._journal = Journal(folder, sync=1.0)
        self._written = 0
        try:
            path = self._journal.snapshot_path
            if path is not None:
                self._restore(decode(path.read_bytes()))
            for _, payload in self._journal.records():
                self._apply(decode(payload))
                self._written += len(payload)
            with suppress(OSError):  # of a full disk: the records are there
                self._replace_records()
        except BaseException:
            self._journal.close()
            raise

    def _clear(self) -> None:
        self.confusion: Counter[tuple[str, str]] = Counter()
        self.thumbnails: dict[str, dict[str, bytes]] = {}
        self.examples: dict[str, list[Any]] = {}
        self.curves = {name: Curve() for name in _CURVES}
        self.means = {name: FadedMean() for name in ("accuracy", "error", "milliseconds")}
        self.keys = Keys()
        self._drawn = 0

    # Changes.

    def note(self, lesson: Lesson) -> None:
        """Count examples that were learned."""
        keys = [list(one) for one in lesson.keys]
        self._change({"op": "lesson", "lesson": [*lesson[:-1], keys]})

    def wants_picture(self, label: Any) -> bool:
        """Return whether there is room for a thumbnail of this class."""
        kept = self.thumbnails.get(key_of(label), {})
        return len(kept) < _EACH and sum(map(len, list(self.thumbnails.values()))) < _ALL

    def add_picture(self, label: Any, jpeg: bytes) -> None:
        """Keep a thumbnail, if there is room."""
        if self.wants_picture(label):
            content = np.frombuffer(jpeg, np.uint8)
            self._change({"op": "picture", "label": key_of(label), "jpeg": content})

    def wants_example(self, label: Any) -> bool:
        """Return whether an example of this class would be kept to judge it by."""
        return len(self.examples.get(key_of(label), ())) < _ROWS

    def wanted(self, labels: list[Any], shown: Counter[str], holdout: int) -> list[int]:
        """Return which of the examples that come to keep, to judge by while few are held out.

        Parameters
        ----------
        labels : list
            Of the examples, in their order.
        shown : Counter
            Examples of each class before, by its key.
        holdout : int
            Of each class the learner holds out every so many: those are not learned.
        """
        shown, places = shown.copy(), []
        for i, label in enumerate(labels):
            key = key_of(label)
            shown[key] += 1
            if self.wants_example(label) and shown[key] % holdout:
                places.append(i)
        return places

    def add_example(self, label: Any, row: Any) -> None:
        """Keep an example that was learned, if there is room."""
        kept = sum(part.nbytes for rows in self.examples.values() for part in rows)
        if self.wants_example(label) and kept + row.nbytes <= _ROW_BYTES:
            self._change({"op": "example", "label": key_of(label), "row": row.copy()})

    def forget(self, label: Any) -> None:
        """Forget a class: its thumbnails, and what was counted of it."""
        self._change({"op": "forget", "label": key_of(label)})

    def rename(self, old: Any, new: Any) -> None:
        """Count one class as another."""
        self._change({"op": "rename", "old": key_of(old), "new": key_of(new)})

    def keep_only(self, labels: set[str]) -> None:
        """Forget every class but these, given by their keys."""
        if self._labels() - labels:
            self._change({"op": "only", "labels": sorted(labels)})

    def adopt(self, other: dict[str, Any]) -> None:
        """Take over pictures and examples of another album, by its state."""
        for label, pictures in other["thumbnails"].items():
            for jpeg in pictures.values():
                self.add_picture(json.loads(label), jpeg.tobytes())
        for label, rows in other["examples"].items():
            for row in rows:
                self.add_example(json.loads(label), row)

    def _change(self, record: dict[str, Any]) -> None:
        payload = encode(record)
        self._journal.append(payload)
        self._apply(record)
        self._written += len(payload)
        self._replace_records()

    def _replace_records(self) -> None:
        # Counted over starts, too: a robot that is switched off each night writes little a day.
        if self._written > _RECORDS:
            content = encode(self.state())
            self._journal.snapshot(lambda path: path.write_bytes(content))
            self._written = 0

    def _apply(self, record: dict[str, Any]) -> None:
        kind = record["op"]
        if kind == "lesson":
            self._count(Lesson(*record["lesson"]))
        elif kind == "picture":
            self._drawn += 1
            kept = self.thumbnails.setdefault(record["label"], {})
            jpeg = record["jpeg"].tobytes()
            # Browsers keep a picture by its address: another one under the same address, of a
            # learner that was deleted and made anew, would never be seen.
            kept[f"{self._drawn:x}{hashlib.sha256(jpeg).hexdigest()[:12]}"] = jpeg
        elif kind == "example":
            self.examples.setdefault(record["label"], []).append(record["row"])
        elif kind == "forget":
            self._forget({record["label"]})
        elif kind == "only":
            self._forget(self._labels() - set(record["labels"]))
        elif kind == "rename" and record["old"] != record["new"]:
            self._rename(record["old"], record["new"])

    def _count(self, lesson: Lesson) -> None:
        for shown, answered, count in lesson.pairs:
            if (shown, answered) in self.confusion or len(self.confusion) < _PAIRS:
                self.confusion[shown, answered] += count
        self.keys.add(Learned(*one) for one in lesson.keys)
        if lesson.right is not None:
            mean = self.means["accuracy"].add(lesson.right / lesson.n, lesson.n)
            self.curves["accuracy"].add(lesson.seen, mean)
        if lesson.squares is not None:
            mean = self.means["error"].add(lesson.squares, lesson.n)
            self.curves["error"].add(lesson.seen, math.sqrt(mean))
        each = 1e3 * lesson.seconds / lesson.n
        self.means["milliseconds"].add(each, lesson.n)
        self.curves["milliseconds"].add(lesson.seen, each)
        self.curves["memory"].add(lesson.seen, float(lesson.memory))

    def _labels(self) -> set[str]:
        pairs = (label for pair in self.confusion for label in pair)
        return {*self.thumbnails, *self.examples, *pairs}

    def _forget(self, gone: set[str]) -> None:
        for label in gone:
            self.examples.pop(label, None)
            self.thumbnails.pop(label, None)
        for pair in [pair for pair in self.confusion if not gone.isdisjoint(pair)]:
            del self.confusion[pair]

    def _rename(self, old: str, new: str) -> None:
        pictures = self.thumbnails.pop(old, {})
        kept = self.thumbnails.setdefault(new, {})
        for key, jpeg in pictures.items():
            if len(kept) < _EACH:
                kept[key] = jpeg
        rows = self.examples.pop(old, [])
        self.examples[new] = (self.examples.get(new, []) + rows)[:_ROWS]
        for pair in [pair for pair in self.confusion if old in pair]:
            shown, answered = (new if part == old else part for part in pair)
            self.confusion[shown, answered] += self.confusion.pop(pair)

    # What is told.

    def judges(self, most: int, known: set[str]) -> tuple[list[Any], list[Any]]:
        """Return examples of known classes that were learned, at most so many, and labels."""
        kept = [(key, rows) for key, rows in self.examples.items() if key in known]
        pairs = [(row, key) for key, rows in kept for row in rows][:most]
        return [row for row, _ in pairs], [json.loads(key) for _, key in pairs]

    def picture(self, key: str) -> bytes | None:
        """Return a thumbnail."""
        for pictures in list(self.thumbnails.values()):
            found = pictures.get(key)
            if found is not None:
                return found
        return None

    def lately(self, name: str) -> float | None:
        """Return the faded mean of "accuracy", "error" or "milliseconds", None before any."""
        value = self.means[name].value
        if math.isnan(value):
            return None
        return math.sqrt(value) if name == "error" else value

    def history(self, most: int = 30) -> dict[str, Any]:
        """Return curves, and the confusion of the labels that were shown most."""
        shown: Counter[str] = Counter()
        for (label, _), count in self.confusion.items():
            shown[label] += count
        chosen = [label for label, _ in shown.most_common(most)]
        answered = {said for _, said in self.confusion} - set(shown)  # such as "unknown"
        labels = sorted(chosen) + sorted(answered)[: max(0, most - len(chosen))]
        counts = [[self.confusion[a, b] for b in labels] for a in labels]
        found: dict[str, Any] = {
            name: curve.points() for name, curve in self.curves.items() if curve.points()
        }
        names = [json.loads(label) for label in labels]
        return {**found, "confusion": {"labels": names, "counts": counts}}

    # Keeping.

    @property
    def size(self) -> int:
        """Bytes on disk, also where it has failed and could not be opened again."""
        return folders.size(self._journal.folder)

    def state(self) -> dict[str, Any]:
        """Return all that there is, as a record."""
        pairs = [[shown, said, n] for (shown, said), n in self.confusion.items()]
        pictures = {
            label: {key: np.frombuffer(jpeg, np.uint8) for key, jpeg in found.items()}
            for label, found in self.thumbnails.items()
        }
        return {
            "confusion": pairs,
            "thumbnails": pictures,
            "examples": {label: list(rows) for label, rows in self.examples.items()},
            "curves": {name: curve.state() for name, curve in self.curves.items()},
            "means": {name: [m.total, m.weight] for name, m in self.means.items()},
            "drawn": self._drawn,
            "keys": list(map(list, self.keys)),
        }

    @classmethod
    def check(cls, state: dict[str, Any]) -> None:
        """Raise, whatever it may be, unless a state from outside can be gone on with."""
        album = cls.__new__(cls)
        album._clear()
        album._restore(state)
        album._check_pictures()
        json.dumps(album.history(), allow_nan=False)

    def _check_pictures(self) -> None:
        """Raise unless thumbnails are JPEG files of labels, and not too many."""
        pictures = [jpeg for found in self.thumbnails.values() for jpeg in found.values()]
        fits = all(jpeg[:2] == b"\xff\xd8" and len(jpeg) < 2**16 for jpeg in pictures)
        keys = [key for found in self.thumbnails.values() for key in found]
        if not fits or len(pictures) > _ALL or not all(key.isalnum() for key in keys):
            raise ValueError("these are no thumbnails")
        for label in [*self.thumbnails, *self.examples]:
            json.loads(label)
        rows = [row for found in self.examples.values() for row in found[:_ROWS]]
        if len(rows) < sum(map(len, self.examples.values())) or not all(
            row.ndim == 1 and row.dtype == np.float64 for row in rows
        ):
            raise ValueError("these are no examples")

    def _restore(self, state: dict[str, Any]) -> None:
        self.confusion = Counter({(a, b): int(n) for a, b, n in state["confusion"]})
        self.thumbnails = {
            label: {key: jpeg.tobytes() for key, jpeg in found.items()}
            for label, found in state["thumbnails"].items()
        }
        self.examples = {label: list(rows) for label, rows in state["examples"].items()}
        self.curves = {name: Curve.of(state["curves"][name]) for name in _CURVES}
        self.means = {name: FadedMean(*found) for name, found in state["means"].items()}
        self._drawn = int(state["drawn"])
        self.keys.add(Learned(*one) for one in state.get("keys", []))

    def close(self) -> None:
        """Make the rest durable."""
        self._journal.close()


def open_album(folder: Path) -> Album:
    """Open the album in a folder; one that is damaged is put aside, and an empty one begun.

    Parameters
    ----------
    folder : Path
        Made if it is missing.
    """
    try:
        return Album(folder)
    except (OSError, MemoryError):  # of the disk, or the machine: the album may be whole
        raise
    except Exception as error:
        aside = folder.with_name(f"{folder.name}.damaged-{time.time_ns()}")
        folder.rename(aside)
        _log.error("pictures and curves are damaged, and were put aside; the learner is not",
                   exc_info=error, extra={"folder": str(aside)})  # fmt: skip
        return Album(folder)
