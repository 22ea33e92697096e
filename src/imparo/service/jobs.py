"""What waits for a learner: rows to learn, rows to answer, and work that needs it alone."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.service.errors import Begun, Busy, ServiceError, Unavailable, explained
from imparo.service.keys import Key

# Numbers that count as one row of what may wait.
_ROW = 1024


def _no_rows() -> Array:
    return np.empty((0, 0))


def _length(X: Array) -> int:
    return max(1, -(-X.shape[1] // _ROW))


@dataclass(eq=False)
class Job:
    """Something to do with a learner, and who waits for it.

    Attributes
    ----------
    future : Future
        Of the loop that waits.
    begun, cancelled : bool
        What has begun is finished; what was cancelled before is not done.
    """

    future: "asyncio.Future[Any]"
    begun: bool = False
    cancelled: bool = False

    @property
    def weight(self) -> int:
        """How many rows it counts for; a long row counts for several."""
        return 1


@dataclass(eq=False)
class TeachJob(Job):
    """Rows to learn; a long block is learned in parts, so that others are answered between.

    Attributes
    ----------
    X : array of shape (n, d)
    y : list of labels, or array of shape (n, T)
    done : int
        Rows that are learned.
    pictures : list of (label, bytes)
        Thumbnails to keep once the rows are learned.
    key : Key or None
        By which it is known should it be sent again.
    checked : bool
        Whether it was looked at.
    answers : list
        What was answered before each was learned.
    number, seen : int
        Of the last change, and the examples of the learner after it.
    """

    X: Array = field(default_factory=_no_rows)
    y: Any = None
    pictures: "list[tuple[Any, bytes]]" = field(default_factory=list)
    key: Key | None = None
    checked: bool = False
    done: int = 0
    answers: "list[Any] | None" = None
    number: int = 0
    seen: int = 0

    @property
    def weight(self) -> int:
        """How many rows it counts for; a long row counts for several."""
        return (len(self.X) - self.done) * _length(self.X)


@dataclass(eq=False)
class AskJob(Job):
    """Rows to answer.

    Attributes
    ----------
    X : array of shape (n, d)
    recoding : float or None
    novelty : bool
    """

    X: Array = field(default_factory=_no_rows)
    recoding: float | None = None
    novelty: bool = False

    @property
    def weight(self) -> int:
        """How many rows it counts for; a long row counts for several."""
        return len(self.X) * _length(self.X)


@dataclass(eq=False)
class CallJob(Job):
    """Work on the learner, alone with it.

    Attributes
    ----------
    work : function
        Without arguments.
    """

    work: Callable[[], Any] = lambda: None


class Lane:
    """Jobs in their order, and how many rows they hold; not safe for threads by itself.

    Parameters
    ----------
    most : int
        Rows that may wait.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.rows = 0
        self._jobs: deque[Job] = deque()

    def __len__(self) -> int:
        return len(self._jobs)

    def put(self, job: Job) -> None:
        """Add a job, or raise ``Busy`` where too much is waiting.

        A block that alone is more than may wait is taken by an empty lane.
        """
        if self._jobs and self.rows + job.weight > self.most:
            raise Busy(
                f"{self.rows} rows are waiting for this learner already; nothing was done: try "
                "again in a second, with fewer clients or smaller blocks"
            )
        self._jobs.append(job)
        self.rows += job.weight

    def put_back(self, job: Job) -> None:
        """Let a job go on first."""
        self._jobs.appendleft(job)
        self.rows += job.weight

    def take(self, most: int) -> list[Job]:
        """Return the jobs that come next: up to ``most`` rows, at least one, calls alone."""
        taken: list[Job] = []
        rows = 0
        while self._jobs:
            job = self._jobs[0]
            if job.cancelled:
                self._drop()
                continue
            alone = isinstance(job, CallJob)
            if taken and (alone or rows + job.weight > most):
                break
            self._drop()
            job.begun = True
            taken.append(job)
            rows += job.weight
            if alone:
                break
        return taken

    def clear(self) -> list[Job]:
        """Return all jobs that wait, and let none wait."""
        jobs = [job for job in self._jobs if not job.cancelled]
        self._jobs.clear()
        self.rows = 0
        return jobs

    def _drop(self) -> None:
        self.rows -= self._jobs.popleft().weight


def deliver(outcomes: Iterable[tuple[Job, Any, BaseException | None]]) -> None:
    """Give results and errors to those who wait; in the loop that they wait in."""
    for job, result, error in outcomes:
        if job.future.done():
            continue
        if error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)


def failed(job: TeachJob, error: BaseException) -> ServiceError:
    """Return what is told of a block that was not learned, or not all of it."""
    told = explained(error)
    if not job.done:
        return told
    said = str(told).removesuffix("; nothing was done")
    return begun(job, said, type(told) if told.retry_after is None else Begun)


def begun(job: TeachJob, why: str, kind: type[ServiceError] = Begun) -> ServiceError:
    """Return what is told of a block of which a part was learned, and no more will be."""
    said = f"{why}; {job.done} of {len(job.X)} rows were learned, the others not"
    if kind is not Begun:  # what would fail again
        error = kind(said)
    elif job.key is None:
        error = Begun(f"{said}: send only those")
    else:  # which makes it safe to send all of it
        error = Unavailable(f"{said}: send all of it again, with the same key")
    error.learned = job.done
    return error
