"""A learner at work: one thread owns it, and takes what many clients send together.

What waits is learned in one block and written with one sync to disk, and what is asked is
answered by one product. So a busy learner is not slower than an idle one by the number of its
clients, and latency stays bounded: blocks are cut so that a round takes some 20 ms.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from imparo.engine import Array
from imparo.service.album import Album
from imparo.service.desk import Desk, Outcome
from imparo.service.errors import Busy, Missing, ServiceError, Unavailable, explained
from imparo.service.jobs import AskJob, CallJob, Job, Lane, TeachJob, begun, deliver
from imparo.service.keys import Key
from imparo.service.metrics import Metrics
from imparo.service.recipes import Wanted
from imparo.service.settings import Limits

Result = TypeVar("Result")
_log = logging.getLogger("imparo.service")

# Seconds that what waits has when the service ends.
_GRACE = 5.0
_ENDING = "the service is ending; nothing was done: try again later"


class LiveLearner:
    """A durable learner with its thread, its album and all that waits for it.

    All methods that are coroutines are called in one event loop.

    Parameters
    ----------
    folder : Path
        With the folders ``learner`` and ``album``.
    sync : "always", "never" or float
        When an example is acknowledged.
    limits : Limits
    metrics : Metrics
    wanted : Wanted, optional
        What was said of its rows when it was made.
    """

    def __init__(
        self, folder: Path, *, sync: str | float, limits: Limits, metrics: Metrics,
        wanted: Wanted | None = None,
    ) -> None:  # fmt: skip
        self.name = folder.name
        self._limits, self._metrics = limits, metrics
        self.desk = Desk(folder, sync=sync, limits=limits, metrics=metrics, wanted=wanted)
        self.learner = self.desk.learner
        self.is_classifier = self.desk.is_classifier
        self._condition = threading.Condition()
        self._lessons, self._questions = Lane(limits.waiting), Lane(limits.waiting)
        self._closing = False
        self._end: float | None = None  # when no more is done of what waits
        self._watchers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._deleted = False
        self._thread = threading.Thread(target=self._run, name=f"imparo-{self.name}")
        self._thread.start()

    @property
    def album(self) -> Album:
        """What is told beside the learner."""
        return self.desk.album

    # For the event loop.

    async def teach(
        self, X: Array, y: Any, pictures: list[tuple[Any, bytes]] | None = None,
        key: Key | None = None,
    ) -> TeachJob:  # fmt: skip
        """Learn rows; return when they are kept.

        Parameters
        ----------
        X : array of shape (n, d)
        y : list of labels, or array of shape (n, T)
        pictures : list of (label, bytes), optional
            Thumbnails to keep of them, where there is room.
        key : Key, optional
            Rows that were learned under it are not learned again.
        """
        job = TeachJob(self._future(), X=X, y=y, pictures=pictures or [], key=key)
        return await self._wait(job, self._lessons)

    async def ask(
        self, X: Array, recoding: float | None = None, novelty: bool = False
    ) -> dict[str, Any]:
        """Return answers for rows, as :class:`~imparo.service.schemas.Answers` has them."""
        job = AskJob(self._future(), X=X, recoding=recoding, novelty=novelty)
        return await self._wait(job, self._questions)

    async def change(self, work: Callable[[], Result]) -> Result:
        """Do something that changes the learner, after all that was sent before."""
        return await self._wait(CallJob(self._future(), work=work), self._lessons)

    async def look(self, work: Callable[[], Result]) -> Result:
        """Do something that only looks at it."""
        return await self._wait(CallJob(self._future(), work=work), self._questions)

    def watch(self) -> asyncio.Event:
        """Return an event that is set whenever the learner changes or ends.

        :meth:`unwatch` lets go of it.
        """
        event = asyncio.Event()
        self._watchers[event] = asyncio.get_running_loop()
        return event

    def unwatch(self, event: asyncio.Event) -> None:
        """Let go of an event."""
        self._watchers.pop(event, None)

    def _future(self) -> "asyncio.Future[Any]":
        return asyncio.get_running_loop().create_future()

    async def _wait(self, job: Job, lane: Lane) -> Any:
        with self._condition:
            if self._deleted:
                raise Missing(f"the learner {self.name!r} has just been deleted")
            if self._closing or self._end is not None:
                raise Unavailable(_ENDING)
            lane.put(job)
            self._condition.notify()
        try:
            async with asyncio.timeout(self._limits.answer_seconds):
                return await asyncio.shield(job.future)
        except TimeoutError:
            with self._condition:
                job.cancelled = not job.begun
            if job.cancelled:
                raise Busy(
                    "this learner has too much to do, and the request waited for "
                    f"{self._limits.answer_seconds:g} seconds; nothing was done: try again"
                ) from None
        return await job.future  # what has begun ends, and who sent it must know how

    # The thread.

    def _run(self) -> None:
        while True:
            with self._condition:
                while not (self._lessons or self._questions or self._closing):
                    self._condition.wait()
                if not (self._lessons or self._questions):
                    return
                late = self._end is not None and time.monotonic() > self._end
                refused = self._lessons.clear() + self._questions.clear() if late else []
                rows = self.desk.room
                lessons = self._lessons.take(rows)
                questions = self._questions.take(self.desk.asked)
            if refused:
                self._finish([(job, None, _unfinished(job)) for job in refused], changed=False)
            self._metrics.waiting.labels(self.name).set(self._lessons.rows)
            # Those who taught know before those who ask are answered.
            if lessons:
                outcomes = self._guarded(self.desk.teach, lessons, rows)
                self._finish(outcomes, changed=True)
                told = {id(job) for job, _, _ in outcomes}
                for job in lessons:
                    if id(job) not in told:  # a long block, of which a part is learned
                        self._go_on_with(job)
            if questions:
                self._finish(self._guarded(self.desk.answer, questions), changed=False)

    def _go_on_with(self, job: Job) -> None:
        with self._condition:
            self._lessons.put_back(job)

    def _finish(self, outcomes: list[Outcome], changed: bool) -> None:
        loops = {job.future.get_loop() for job, _, _ in outcomes}
        for loop in loops:
            mine = [out for out in outcomes if out[0].future.get_loop() is loop]
            try:
                loop.call_soon_threadsafe(self._tell, mine, changed)
            except RuntimeError:  # the loop has ended: nobody waits
                _log.warning("nobody waited for an answer", extra={"learner": self.name})

    def _tell(self, outcomes: list[Outcome], changed: bool) -> None:
        deliver(outcomes)
        if changed:
            for event in self._watchers:
                event.set()

    def _guarded(self, work: Callable[..., list[Outcome]], jobs: list[Job], *more: Any) -> Any:
        try:
            return work(jobs, *more)
        except BaseException as error:  # who waits must be told, whatever it was
            return [(job, None, explained(error)) for job in jobs]

    # Ending.

    def end_soon(self) -> None:
        """Take nothing new, and give what waits five seconds; who waits longer is told so."""
        with self._condition:
            if self._end is None:
                self._end = time.monotonic() + _GRACE

    def close(self, *, deleted: bool = False) -> None:
        """Do what waits, make it durable, and end.

        Parameters
        ----------
        deleted : bool, default False
            Whether what comes now is told that there is no such learner any more.
        """
        with self._condition:
            self._closing, self._deleted = True, deleted
            self._condition.notify()
        self._thread.join()
        self.desk.close()

    def tell_watchers(self) -> None:
        """Let everyone who watches look again: what they watch has ended."""
        for event, loop in list(self._watchers.items()):
            with suppress(RuntimeError):  # the loop has ended, too
                loop.call_soon_threadsafe(event.set)


def _unfinished(job: Job) -> ServiceError:
    """Return what is told of a job that will not be done, or not all of it."""
    if isinstance(job, TeachJob) and job.done:
        return begun(job, "the service is ending")
    return Unavailable(_ENDING)
