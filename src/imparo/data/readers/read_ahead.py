"""Blocks read in a thread while the one before is worked on."""

import contextlib
import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

Block = TypeVar("Block")

# Seconds to wait for the thread when the rest is not wanted: one that waits for a pipe
# may never come back, and ends with the process.
_PATIENCE = 10.0


def read_ahead(blocks: Iterable[Block], depth: int = 1) -> Iterator[Block]:
    """Yield the same blocks, made by a thread that is ``depth`` of them ahead.

    An error in the iterator is raised here, in the place of the block that it prevented.
    Closing the generator that this returns, or leaving it to be collected, ends the thread
    and closes the iterator.

    Parameters
    ----------
    blocks : iterable
    depth : int, default 1
        How many blocks may wait; the memory is that of ``depth + 1`` of them.

    Examples
    --------
    >>> from imparo.data.readers.read_ahead import read_ahead
    >>> list(read_ahead(range(3)))
    [0, 1, 2]
    """
    if depth < 1:
        raise ValueError(f"depth is {depth}; give 1 or more")
    return _ahead(blocks, depth)


def _ahead(blocks: Iterable[Block], depth: int) -> Iterator[Block]:
    ready: queue.SimpleQueue[tuple[str, object]] = queue.SimpleQueue()
    free, stop = threading.Semaphore(depth), threading.Event()

    def work() -> None:
        iterator: Iterator[Block] | None = None
        try:
            iterator = iter(blocks)
            while True:
                free.acquire()
                if stop.is_set():
                    return
                ready.put(("block", next(iterator)))
        except StopIteration:
            ready.put(("end", None))
        except BaseException as error:
            ready.put(("error", error))
        finally:
            with contextlib.suppress(Exception):
                iterator.close()  # type: ignore[union-attr]  # where it is a generator

    # A daemon: a program that ends does not wait for a block that nobody wants.
    thread = threading.Thread(target=work, name="imparo-read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            what, found = ready.get()
            if what == "end":
                return
            if what == "error":
                raise found  # type: ignore[misc]
            free.release()
            yield found  # type: ignore[misc]
    finally:
        stop.set()
        free.release()
        thread.join(_PATIENCE)
