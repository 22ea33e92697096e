"""What the thread of a learner does with what many clients sent together."""

import logging
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

import imparo.lifelong
from imparo.engine import Array
from imparo.service.album import Album, Lesson, key_of
from imparo.service.answering import answers_of
from imparo.service.beside import Beside
from imparo.service.errors import Conflict, Refused, ServiceError, TooMuch, explained
from imparo.service.jobs import AskJob, CallJob, Job, TeachJob, failed
from imparo.service.keys import Key, Keys, Learned
from imparo.service.metrics import Metrics
from imparo.service.recipes import Wanted, check_features, size_of
from imparo.service.settings import Limits
from imparo.service.sizes import bytes_of

Outcome = tuple[Job, Any, BaseException | None]
_log = logging.getLogger("imparo.service")

# Rows that are learned together before it is known how long that takes, and at most.
_ROOM, _MOST = 16, 1024
# Seconds that learning may take while others wait: with less there is room for twice as many
# rows, with twice as much for half of them.
_ROUND = 0.02
# Lessons after which the size of the model is looked at again.
_WEIGH = 64
# Rows that are answered by one product, and numbers of one answer.
_ASKED, _ANSWER = 4096, 2**18
# Seconds of learning, and of opening, that a snapshot at the end saves at the next start.
_LONG, _SLOW = 1.0, 3.0


class Desk:
    """A durable learner and its album; to be used by one thread.

    Parameters
    ----------
    folder : Path
        With the folders ``learner`` and ``album``.
    sync : "always", "never" or float
        When an example is acknowledged.
    limits : Limits
    metrics : Metrics
    wanted : Wanted, optional

    Attributes
    ----------
    learner : DurableLearner
    album : Album
    is_classifier : bool
    room : int
        Rows that are learned together, so that those that ask need not wait for long.
    asked : int
        Rows that are answered together.
    """

    def __init__(
        self, folder: Path, *, sync: str | float, limits: Limits, metrics: Metrics,
        wanted: Wanted | None = None,
    ) -> None:  # fmt: skip
        self.name = folder.name
        self._limits, self._metrics = limits, metrics
        self._wanted = wanted or Wanted()
        start = time.perf_counter()
        self.learner: Any = imparo.lifelong.open(folder / "learner", sync=sync)
        self._opened = time.perf_counter() - start
        self.is_classifier = is_classifier(self.learner._learner)
        try:
            self.beside = Beside(folder / "album", self.name, self._told)
        except BaseException:
            self.learner.close()
            raise
        self.beside.reconcile()
        self._unkept = Keys()  # which the album could not take yet
        self.room, self.asked = _ROOM, _ASKED
        self._memory, self._since_weighed = 0, _WEIGH
        self._learned = 0.0  # seconds of learning so far
        self._pace_answers()

    def call(self, job: CallJob) -> list[Outcome]:
        """Do other work on the learner."""
        try:
            return [(job, job.work(), None)]
        except BaseException as error:
            return [(job, None, explained(error))]
        finally:
            self._pace_answers()

    @property
    def album(self) -> Album:
        """What is told beside the learner."""
        return self.beside.album

    def _told(self) -> set[str] | None:
        return (
            {*self.known(), key_of(self.learner.unknown_label)} if self.is_classifier else None
        )

    def known(self) -> set[str]:
        """Return the keys of the classes that the learner knows."""
        return set(map(key_of, self._classes()))

    # Teaching.

    def teach(self, jobs: list[Any], most: int) -> list[Outcome]:
        """Learn what came together; a block of which a part is left has no outcome yet.

        Parameters
        ----------
        jobs : list of TeachJob, or of one CallJob
        most : int
            Rows of a long block that are learned now.
        """
        if isinstance(jobs[0], CallJob):
            self._since_weighed = _WEIGH
            return self.call(jobs[0])
        outcomes: list[Outcome] = []
        fitting: list[TeachJob] = []
        known = self.known() if self.is_classifier else set()
        keys: set[str] = set()
        for job in jobs:
            if job.key is not None:
                if job.key.name in keys:
                    continue  # the same twice: once the first is done, it is known
                keys.add(job.key.name)
                try:
                    self._recall(job, job.key)
                except ServiceError as error:
                    outcomes.append((job, None, error))
                    continue
                if job.done == len(job.X):
                    outcomes.append((job, job, None))
                    continue
            # Nothing is known: the first that is taken says how long rows are.
            first = fitting[0] if fitting else job
            try:
                self._check(job, self._width(first), self._n_outputs(first), known)
                fitting.append(job)
            except ServiceError as error:
                outcomes.append((job, None, error))
        if len(fitting) == 1:
            return outcomes + self._teach_one(fitting[0], most)
        return outcomes + (self._teach_together(fitting) if fitting else [])

    def _recall(self, job: TeachJob, key: Key) -> None:
        """Go on after the rows that were learned under the same key."""
        known = self._unkept.get(key.name) or self.album.keys.get(key.name)
        if known is None:
            return
        if known.digest != key.digest:
            raise Refused(
                f"the key {key.name!r} came before, with another lesson; give each lesson a "
                "key of its own"
            )
        if known.rows > job.done:
            job.done, job.number, job.seen = known.rows, known.number, known.seen
            if self.is_classifier:
                told = job.answers or []
                job.answers = told + [None] * (job.done - len(told))

    def _teach_together(self, jobs: list[TeachJob]) -> list[Outcome]:
        try:
            # Of a long block, a part of which is learned, this may be the end.
            self._learn([(job, job.X[job.done :], job.y[job.done :]) for job in jobs])
        except (ValueError, TypeError):
            # Nothing was learned: what comes after learning raises nothing.
            # One of them is refused: each by itself, and only that one fails.
            return [told for job in jobs for told in self._teach_one(job, len(job.X))]
        except BaseException as error:
            return [(job, None, failed(job, error)) for job in jobs]
        return [(job, job, None) for job in jobs]

    def _teach_one(self, job: TeachJob, most: int) -> list[Outcome]:
        """Learn what is left of a block, or the next part of a long one."""
        part = slice(job.done, job.done + most)
        try:
            self._learn([(job, job.X[part], job.y[part])])
        except BaseException as error:
            return [(job, None, failed(job, error))]
        return [] if job.done < len(job.X) else [(job, job, None)]

    def _learn(self, parts: list[tuple[TeachJob, Array, Any]]) -> None:
        X = parts[0][1] if len(parts) == 1 else np.concatenate([x for _, x, _ in parts])
        if self.is_classifier:
            y: Any = [label for _, _, labels in parts for label in labels]
        else:
            y = np.concatenate([np.asarray(outputs) for _, _, outputs in parts])
        answers, squares = self._before(X, y)
        kept = []
        if self.is_classifier and any(map(self.album.wants_example, set(y))):
            kept = self.album.wanted(y, self._shown(), self.learner.holdout)
        start = time.perf_counter()
        number = self.learner.learn(X, y)
        seconds = time.perf_counter() - start
        self._learned += seconds
        self._pace(len(X), seconds)
        seen = int(self.learner.n_seen_)
        self._unkept.add(
            Learned(*job.key, job.done + len(rows), number, seen)
            for job, rows, _ in parts
            if job.key is not None
        )
        if self.beside.do(partial(self._note, y, answers, squares, seconds, seen)):
            self._unkept.clear()
        for i in kept:
            self.beside.do(partial(self.album.add_example, y[i], X[i]))
        for job, _, _ in parts:
            for label, jpeg in job.pictures:
                self.beside.do(partial(self.album.add_picture, label, jpeg))
            job.pictures = []
        self._pace_answers()
        place = 0
        for job, rows, _ in parts:
            job.done += len(rows)
            job.number, job.seen = number, seen
            if answers is not None or self.is_classifier:
                its = [None] * len(rows) if answers is None else answers[place:][: len(rows)]
                job.answers = (job.answers or []) + its
            place += len(rows)

    def _shown(self) -> Counter[str]:
        if not self.n_seen:
            return Counter()
        counts = self.learner.shown_.tolist()
        return Counter(dict(zip(map(key_of, self._classes()), counts, strict=True)))

    def _pace(self, rows: int, seconds: float) -> None:
        # Not by seconds a row: a block has a cost of its own, a sync to disk above all.
        if seconds > 2 * _ROUND:
            self.room = max(1, min(self.room, rows) // 2)
        elif seconds < _ROUND and rows > self.room // 2:
            self.room = min(2 * self.room, _MOST)

    def _pace_answers(self) -> None:
        # At most some rows of many classes, as at most many rows of some.
        self.asked = max(1, min(_ASKED, _ANSWER // max(1, self._answer_width())))

    def _answer_width(self) -> int:
        if self.is_classifier:
            return len(getattr(self.learner._learner, "_labels", ()))
        return self.n_outputs or 1

    def _before(self, X: Array, y: Any) -> tuple[list[Any] | None, float | None]:
        """Return answers before learning, or the mean squared error, if anything is known."""
        try:
            found = self.learner.predict(X)
        except NotFittedError:
            return None, None
        if self.is_classifier:
            return found.tolist(), None
        errors = np.clip(np.asarray(found).reshape(len(X), -1) - y, -1e100, 1e100)
        return None, float(np.mean(np.square(errors)))

    def _note(
        self,
        y: Any,
        answers: list[Any] | None,
        squares: float | None,
        seconds: float,
        seen: int,
    ) -> None:
        pairs: Counter[tuple[str, str]] = Counter()
        right = None
        if answers is not None:
            pairs.update((key_of(a), key_of(b)) for a, b in zip(y, answers, strict=True))
            right = sum(count for (shown, said), count in pairs.items() if shown == said)
        told = [(shown, said, count) for (shown, said), count in pairs.items()]
        memory, n = self._weigh(), len(y)
        self._metrics.learned(self.name, n, seconds, memory)
        keys = list(self._unkept)
        self.album.note(Lesson(seen, n, told, right, squares, seconds, memory, keys))

    def _weigh(self) -> int:
        self._since_weighed += 1
        if self._since_weighed > _WEIGH:
            self._memory, self._since_weighed = bytes_of(self.learner._learner), 0
        return self._memory

    def _check(self, job: TeachJob, width: int, outputs: int | None, known: set[str]) -> None:
        """Raise unless rows fit the learner; keep room, and add their labels to the known."""
        if job.X.shape[1] != width:
            raise Refused(
                f"an example has {job.X.shape[1]} numbers, and this learner takes {width}"
            )
        if job.checked:
            return  # before it was begun
        new: set[str] = set()
        if self.is_classifier:
            new = set(map(key_of, job.y)) - known
            if len(known) + len(new) > self._limits.classes:
                raise TooMuch(
                    f"this learner knows {len(known)} classes, and the service takes at most "
                    f"{self._limits.classes}; forget some first"
                )
        elif job.y.shape[1] != outputs:
            raise Refused(
                f"an example has {job.y.shape[1]} outputs, and this learner has {outputs}"
            )
        self._keep_room(width, len(known) + len(new) if new else 0)
        known |= new
        job.checked = True

    def _width(self, job: TeachJob) -> int:
        """Return the width of rows; the first row of all decides."""
        found = getattr(self.learner, "n_features_in_", self._wanted.n_inputs)
        if found is not None:
            return int(found)
        width = int(job.X.shape[1])
        if getattr(self.learner._learner, "features", 0) is None:
            check_features(width, self._limits)
        return width

    def _keep_room(self, width: int, classes: int) -> None:
        """Raise where there is no memory for the width of the first row, or for new classes."""
        unknown = not self.n_seen and getattr(self.learner._learner, "features", 0) is None
        if unknown or classes:
            self._wanted.room(size_of(self.learner._learner, width, classes))

    def keep_room(self, classes: int) -> None:
        """Raise where there is no memory for so many classes of a learner that knows some."""
        self._keep_room(int(self.learner.n_features_in_), classes)

    def give_back_room(self) -> None:
        """Keep no more than is needed for the classes that are known."""
        if self.is_classifier and self.n_seen:
            with suppress(ServiceError):
                self.keep_room(len(self.known()))

    def _n_outputs(self, job: TeachJob) -> int | None:
        if self.is_classifier:
            return None
        return self.n_outputs or self._wanted.n_outputs or int(job.y.shape[1])

    # Answering.

    def answer(self, jobs: list[Any]) -> list[Outcome]:
        """Answer what was asked together.

        Parameters
        ----------
        jobs : list of AskJob, or of one CallJob
        """
        if isinstance(jobs[0], CallJob):
            return self.call(jobs[0])
        outcomes: list[Outcome] = []
        fitting: list[AskJob] = []
        width = getattr(self.learner, "n_features_in_", None)
        for job in jobs:
            error: ServiceError | None = None
            if width is None:
                error = Conflict("nothing is known yet; teach some examples first")
            elif len(job.X) * self._answer_width() > _ANSWER:
                error = TooMuch(
                    f"{len(job.X)} rows would be answered with {self._answer_width()} numbers "
                    f"each; ask {self.asked} rows at once"
                )
            elif job.X.shape[1] != width:
                error = Refused(
                    f"a row has {job.X.shape[1]} numbers, and this learner takes {width}"
                )
            if error is None:
                fitting.append(job)
            else:
                outcomes.append((job, None, error))
        if fitting:
            outcomes += self._answer_together(fitting)
        self._metrics.answered(self.name, sum(len(job.X) for job in fitting))
        return outcomes

    def _answer_together(self, jobs: list[AskJob]) -> list[Outcome]:
        try:
            results = answers_of(self.learner, jobs)
        except BaseException as problem:
            if len(jobs) > 1:  # one of them is refused: each by itself, and only that one fails
                return [told for job in jobs for told in self._answer_together([job])]
            return [(jobs[0], None, explained(problem))]
        return [(job, found, None) for job, found in zip(jobs, results, strict=True)]

    # What is known.

    def _classes(self) -> list[Any]:
        return list(self.learner.classes_.tolist()) if self.n_seen else []

    @property
    def n_seen(self) -> int:
        """Examples so far."""
        return int(getattr(self.learner, "n_seen_", 0))

    @property
    def n_outputs(self) -> int | None:
        """Outputs of a regressor that has learned."""
        if self.is_classifier or not self.n_seen:
            return None
        return int(self.learner._learner._n_outputs())

    @property
    def memory(self) -> int:
        """Bytes of the model, when it was last weighed."""
        return self._memory or bytes_of(self.learner._learner)

    def close(self) -> None:
        """Make everything durable, and the next start quick."""
        self.beside.close()
        self._wanted = Wanted()  # which knows who knows this: all would wait for a collection
        if self._learned > _LONG or self._opened > _SLOW:
            try:
                self.learner.snapshot()
            except Exception as error:  # the records are there
                _log.warning("no snapshot at the end", exc_info=error,
                             extra={"learner": self.name})  # fmt: skip
        self.learner.close()
