"""How many threads small matrices get: one."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

# Factors of matrices up to this size gain nothing from a second thread, and OpenBLAS' threads
# wait for each other by spinning: on a busy machine that made them a hundred times slower.
SMALL = 256


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def threads_for(size: int) -> AbstractContextManager[Any]:
    """Return a context in which matrices of this size get the threads that help them.

    Parameters
    ----------
    size : int

    Returns
    -------
    context manager
    """
    return nullcontext() if size > SMALL else one_thread()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which matrices get one thread.

    Returns
    -------
    context manager
    """
    return _controller().limit(limits=1, user_api="blas")
