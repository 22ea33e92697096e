"""Where a block is computed: the few dense operations that everything uses.

:class:`Engine` is the whole interface. NumPy and SciPy stand behind it in main memory,
PyTorch on GPUs. Workers of a cluster have engines of their own (:mod:`imparo.cluster`).
"""

from imparo.engine.base import Array, Engine
from imparo.engine.blocks import (
    CACHED_COLUMNS,
    available_memory,
    parse_memory,
    row_blocks,
    rows_within,
)
from imparo.engine.choosing import (
    choose_engine,
    memory_for,
    told_of_failures,
    with_smaller_blocks,
)
from imparo.engine.current import (
    computing_on,
    default_engine,
    engine_holding,
    engine_of,
    host_engine,
    is_tensor,
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
    "choose_engine",
    "computing_on",
    "default_engine",
    "engine_holding",
    "engine_of",
    "factor_with_jitter",
    "host_engine",
    "is_tensor",
    "memory_for",
    "one_thread",
    "parse_memory",
    "power_of_two",
    "resolution",
    "row_blocks",
    "rows_within",
    "threads_for",
    "told_of_failures",
    "with_smaller_blocks",
]
