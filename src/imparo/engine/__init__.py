"""Where a block is computed: the few dense operations that everything uses.

:class:`Engine` is the whole interface. NumPy and SciPy stand behind it today; a
GPU or a cluster is another class with the same methods, and no caller changes.
"""

from imparo.engine.base import Array, Engine
from imparo.engine.blocks import (
    CACHED_COLUMNS,
    available_memory,
    parse_memory,
    row_blocks,
    rows_within,
)
from imparo.engine.jitter import factor_with_jitter
from imparo.engine.numpy import NumpyEngine
from imparo.engine.scaling import power_of_two, resolution
from imparo.engine.threads import one_thread, threads_for
from imparo.engine.tridiagonal import Tridiagonal

__all__ = [
    "CACHED_COLUMNS",
    "Array",
    "Engine",
    "NumpyEngine",
    "Tridiagonal",
    "available_memory",
    "default_engine",
    "factor_with_jitter",
    "one_thread",
    "parse_memory",
    "power_of_two",
    "resolution",
    "row_blocks",
    "rows_within",
    "threads_for",
]

_NUMPY = NumpyEngine()


def default_engine() -> Engine:
    """Return the engine for arrays in main memory."""
    return _NUMPY
