"""The workers behind a client of Dask: work for them, waiting, and what may go wrong."""

import asyncio
import contextlib
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from typing import Any

from imparo.errors import ClusterError
from imparo.extras import require

# Seconds between looks at the workers, and those that a cluster may be without any.
_LOOK, _PATIENCE = 0.5, 60.0
# Seconds that a scheduler has to answer.
_ANSWER = 30.0
# Clients of addresses that were given, for the next fit.
_CLIENTS: dict[str, Any] = {}
#: The setting of Dask that says how long a cluster may be without workers.
PATIENCE = "imparo.patience"


def find_client(cluster: Any) -> Any | None:
    """Return the client that ``cluster`` stands for, or None if there is none.

    Parameters
    ----------
    cluster : Client, str or None
        A client, or the address of a scheduler. None: the client that is current in Dask.

    Returns
    -------
    Client or None
    """
    if _within_a_task():
        return None  # a task that waits for others keeps its worker from doing them
    found = _current() if cluster is None else cluster
    if found is None:
        return None
    distributed = require("distributed", "dask")
    if isinstance(found, str):
        found = _connected(found)
    if not isinstance(found, distributed.Client):
        raise TypeError(
            f"cluster={cluster!r:.60} must be a dask.distributed.Client or the address of a "
            "scheduler, such as 'tcp://10.0.0.1:8786'"
        )
    if found.status != "running":
        raise ClusterError(
            f"the client is {found.status}; make another: Client(address), or give the "
            "address itself"
        )
    if found.asynchronous:
        raise ValueError(
            "an asynchronous client cannot be waited for; give Client(..., asynchronous=False)"
        )
    return found


def _within_a_task() -> bool:
    if "distributed" not in sys.modules:
        return False
    from distributed.worker import get_worker

    with contextlib.suppress(ValueError):
        get_worker()
        return True
    return False


def _current() -> Any | None:
    if "distributed" not in sys.modules:  # nobody can have made a client
        return None
    from distributed import default_client

    with contextlib.suppress(ValueError):
        return default_client()
    return None


def _connected(address: str) -> Any:
    """Return a client of a scheduler: the current one, or that of a fit before."""
    distributed = require("distributed", "dask")
    current, known = _current(), _CLIENTS.get(address)
    if current is not None and _address(current) == address and current.status == "running":
        return current
    if known is not None and known.status == "running":
        return known
    _check_address(address)
    # In a thread: a scheduler that is frozen accepts the connection, and never answers.
    waiting = ThreadPoolExecutor(1)
    made = waiting.submit(distributed.Client, address, timeout="10s", set_as_default=False)
    try:
        _CLIENTS[address] = made.result(_ANSWER)
        return _CLIENTS[address]
    except (OSError, ValueError, TimeoutError, AssertionError) as error:
        told = [*str(error).splitlines(), "no answer"][0]
        raise ClusterError(
            f"no scheduler of Dask answers at {address} ({told}); start one with: dask "
            "scheduler, or check the address"
        ) from error
    finally:
        waiting.shutdown(wait=False)


def _check_address(address: str) -> None:
    """Raise unless an address can be one: half a client would wait long to be closed."""
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import backends

    try:
        scheme, place = parse_address(address)
        if scheme not in backends:
            raise ValueError(f"{scheme} is not a way to connect that Dask knows")
        if scheme in ("tcp", "tls", "ws", "wss"):
            parse_host_port(place)
    except ValueError as error:
        raise ClusterError(
            f"{address!r} is no address of a scheduler ({error}); give one such as "
            "'tcp://10.0.0.1:8786'"
        ) from error


def _address(client: Any) -> str:
    return str(client.scheduler.address) if client.scheduler is not None else ""


class WorkersReplacedError(Exception):
    """None of the workers that work was made for is there any more, and others are."""


class Team:
    """The workers of a client, and how to wait for what they do.

    Parameters
    ----------
    client : Client
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._homes: set[str] = set()

    @property
    def address(self) -> str:
        """Where the scheduler is."""
        return _address(self.client)

    def slots(self) -> list[str]:
        """Return the worker of every thread there is; waits for the first of them."""
        until = time.monotonic() + self._patience()
        while True:
            found = self._threads()
            if found:
                return [worker for worker, count in found.items() for _ in range(count)]
            if time.monotonic() > until:
                raise ClusterError(self._without_workers())
            time.sleep(_LOOK)

    def memory_limit(self) -> tuple[int, int] | None:
        """Return bytes and threads of the worker with the least memory for a task, if known."""
        infos = self._asked(self.client.scheduler.identity, n_workers=-1)["workers"].values()
        found = [
            (int(info["memory_limit"]), int(info["nthreads"]))
            for info in infos
            if info.get("memory_limit")
        ]
        return min(found, key=lambda pair: pair[0] / pair[1]) if found else None

    def where(self, futures: list[Any]) -> list[str]:
        """Return the worker that holds each future, "" where that is not known."""
        found = self._asked(self.client.scheduler.who_has, keys=[f.key for f in futures])
        return [next(iter(found.get(f.key, ())), "") for f in futures]

    def hold(self, value: Any, name: str, worker: str = "") -> Any:
        """Return a future of a value, which Dask can make again if its worker is lost."""
        free = "workers" not in require("dask", "dask").get_annotations()
        near = {"workers": [worker], "allow_other_workers": True} if worker and free else {}
        with _large_graphs(), self.client.as_current():
            return self.client.submit(_same, value, key=_key(name), pure=False, **near)

    def hold_all(self, values: list[Any], name: str) -> list[Any]:
        """Return futures of many values, spread over the workers."""
        with _large_graphs(), self.client.as_current():
            return list(self.client.map(_same, values, key=_key(name), pure=False))

    def compute(
        self,
        wanted: list[Any],
        what: str,
        progress: Any = False,
        steps: list[Any] | None = None,
        homes: list[str] | None = None,
    ) -> list[Any]:
        """Compute delayed objects on the workers and return their values.

        Parameters
        ----------
        wanted : list of Delayed
        what : str
            What is being done, for people.
        progress : bool or callable
        steps : list of Delayed, optional
            Whose number tells how far the work is.
        homes : list of str, optional
            The workers that tasks were made for.

        Returns
        -------
        list

        Raises
        ------
        WorkersReplacedError
            If none of ``homes`` is there any more, and others are.
        """
        steps, self._homes = steps or [], set(homes or ())
        shown = steps if callable(progress) else []
        futures: list[Any] = []
        with _failures(what), self.client.as_current():
            try:
                with _large_graphs():
                    futures = self.client.compute([*wanted, *shown])
                with self._bar(futures, what, progress):
                    return self._gathered(futures, len(wanted), what, progress)
            except BaseException:
                with contextlib.suppress(Exception):
                    self.client.cancel(futures)
                raise

    def _gathered(self, futures: list[Any], count: int, what: str, progress: Any) -> list[Any]:
        """Return the values of the first futures; the others only tell how far the work is."""
        from distributed import wait as wait_for

        steps, told = futures[count:], [0]

        def finished() -> bool:
            try:
                wait_for(futures, timeout=_LOOK)
                done = True
            except TimeoutError:
                done = any(f.status in ("error", "cancelled") for f in futures)
            now = sum(step.status == "finished" for step in steps)
            for number in range(told[0], now):
                progress(number + 1, len(steps), what)
            told[0] = max(now, told[0])
            return done

        self._until(finished)
        if any(future.status == "cancelled" for future in futures):
            raise ClusterError(_lost(what))
        # Not by the client's blocking call: where results are lost with the last worker
        # before they are sent, that would wait for ever.
        coming = asyncio.run_coroutine_threadsafe(
            _values(self.client, futures[:count]), self.client.loop.asyncio_loop
        )
        try:
            self._until(lambda: bool(wait([coming], _LOOK).done))
            return coming.result()
        finally:
            coming.cancel()

    def _until(self, done: Callable[[], bool]) -> None:
        """Wait until something is done, or raise when there has been no worker for too long."""
        alone = 0.0
        while not done():
            found = self._threads()
            if found:
                # Dask never gives tasks that were made for workers to others, if there was a
                # moment without any worker.
                if self._homes and not self._homes & set(found):
                    raise WorkersReplacedError
                alone = 0.0
                continue
            alone = alone or time.monotonic()
            if time.monotonic() - alone > self._patience():
                raise ClusterError(self._without_workers())

    def _threads(self) -> dict[str, int]:
        found = self._asked(self.client.scheduler.ncores, workers=None)
        return {worker: count for worker, count in found.items() if count}

    def _asked(self, what: Callable[..., Any], **how: Any) -> Any:
        """Return what the scheduler answers, or raise where it does not."""
        try:
            return self.client.sync(what, **how, callback_timeout=_ANSWER)
        except (OSError, ValueError, TimeoutError, RuntimeError) as error:
            raise ClusterError(_gone(_address(self.client))) from error

    def _patience(self) -> float:
        dask = require("dask", "dask")
        return float(dask.config.get(PATIENCE, _PATIENCE))

    def _without_workers(self) -> str:
        return (
            f"the scheduler at {_address(self.client)} has had no worker for "
            f"{self._patience():g} seconds; start some with: dask worker "
            f"{_address(self.client)}, or set imparo.patience in Dask's configuration to wait "
            "longer"
        )

    @contextlib.contextmanager
    def _bar(self, futures: list[Any], what: str, progress: Any) -> Iterator[None]:
        """Show Dask's own bar, if asked for."""
        if progress is not True:
            yield
            return
        from distributed.diagnostics.progressbar import TextProgressBar
        from distributed.diagnostics.progressbar import progress as widget
        from distributed.utils import is_kernel

        if is_kernel():
            from IPython.display import display

            display(widget(futures))
            yield
            return
        print(f"{what}:")
        bar = TextProgressBar(futures, start=False)
        drawn = asyncio.run_coroutine_threadsafe(bar.listen(), self.client.loop.asyncio_loop)
        try:
            yield
            wait([drawn], 1.0)
        finally:
            drawn.cancel()
            print(flush=True)


async def _values(client: Any, futures: list[Any]) -> list[Any]:
    return list(await client.gather(futures, asynchronous=True))


def _gone(address: str) -> str:
    return (
        f"the scheduler at {address} no longer answers; the model is as it was before: start "
        "the cluster again, and fit again"
    )


def died_again(what: str) -> str:
    """Return the sentence for workers that do not survive the work."""
    return (
        f"workers died again and again while {what}, most often because they had too little "
        "memory; give workers more, use fewer centers or features, or smaller partitions"
    )


def most_deaths() -> int:
    """Return how often workers may die of the same work: a setting of Dask."""
    dask = require("dask", "dask")
    return int(dask.config.get("distributed.scheduler.allowed-failures", 3))


def _lost(what: str) -> str:
    return (
        f"the cluster was lost while {what}, or the work was cancelled there; the model is as "
        "it was before: check the scheduler, and fit again"
    )


@contextlib.contextmanager
def _failures(what: str) -> Iterator[None]:
    """Turn what a cluster may fail with into one sentence each."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import NoValidWorkerError

    try:
        yield
    except KilledWorker as error:
        raise ClusterError(died_again(what)) from error
    except NoValidWorkerError as error:
        raise ClusterError(
            f"no worker of the cluster may do the work ({str(error).splitlines()[0]}); check "
            "the resources that are asked for"
        ) from error
    except RuntimeError as error:
        if "deserialization of the task graph" not in str(error):
            raise
        raise ClusterError(
            "the scheduler cannot read the work: it must have the same packages as this "
            "machine, imparo among them, and see the modules that the rows are made with"
        ) from error
    except (FutureCancelledError, CancelledError, CommClosedError) as error:
        raise ClusterError(_lost(what)) from error


@contextlib.contextmanager
def _large_graphs() -> Iterator[None]:
    """Keep Dask from warning of a large graph: what is sent is sent once, and on purpose."""
    dask = require("dask", "dask")
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        yield


def _key(name: str) -> str:
    return f"imparo-{name}-{uuid.uuid4().hex}"


def _same(value: Any) -> Any:
    return value


def task(function: Callable[..., Any], name: str, *args: Any, worker: str = "") -> Any:
    """Return a delayed call with a name that Dask's dashboard shows.

    Parameters
    ----------
    function : callable
        At the top of a module, so that workers find it.
    name : str
    *args
        Delayed objects and futures are replaced by their values; other arguments must not
        hold any.
    worker : str, optional
        Who is to do it, unless it is gone, or others have nothing to do.

    Returns
    -------
    Delayed
    """
    dask = require("dask", "dask")
    # Who says which workers are to do it is obeyed.
    free = "workers" not in dask.get_annotations()
    near = {"workers": [worker], "allow_other_workers": True} if worker and free else {}
    with dask.annotate(**near):
        made = dask.delayed(function, pure=False, traverse=False)
        return made(*args, dask_key_name=_key(name))
