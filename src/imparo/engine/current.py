"""Which engine computes: that of the estimator at work, or that of the arrays given.

An estimator sets the engine for the time of one call, from its ``device`` and its rows; other
threads and other estimators do not see it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from imparo.engine.base import Engine
from imparo.engine.numpy import NumpyEngine

_NUMPY = NumpyEngine()
_CURRENT: ContextVar[Engine] = ContextVar("imparo_engine", default=_NUMPY)


def host_engine() -> Engine:
    """Return the engine for arrays in main memory."""
    return _NUMPY


def default_engine() -> Engine:
    """Return the engine of the call at work; outside of any, that of main memory."""
    return _CURRENT.get()


def is_tensor(A: Any) -> bool:
    """Return whether A is a tensor of PyTorch, without importing it."""
    return type(A).__module__.partition(".")[0] == "torch"


def engine_of(A: Any) -> Engine:
    """Return the engine that computes with A.

    Parameters
    ----------
    A : array, sparse matrix or tensor
        A tensor is computed with where it is; anything else where the call at work computes.

    Returns
    -------
    Engine
    """
    current = default_engine()
    if not is_tensor(A):
        return current
    for engine in current.replicas:
        if getattr(engine, "device", None) == A.device:
            return engine
    from imparo.engine.choosing import choose_engine

    return choose_engine(None, A)


def engine_holding(A: Any) -> Engine:
    """Return the engine in whose memory A is: that of its device, or of main memory."""
    return engine_of(A) if is_tensor(A) else _NUMPY


@contextmanager
def computing_on(engine: Engine) -> Iterator[None]:
    """Make :func:`default_engine` return an engine within a block.

    Parameters
    ----------
    engine : Engine
    """
    token = _CURRENT.set(engine)
    try:
        yield
    finally:
        _CURRENT.reset(token)
