"""The parts of a measurement, and what all of them were measured on."""

import importlib
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from imparo.measuring.timing import Measurement

#: Names of the parts, and the functions that measure them.
PARTS = {
    "machine": "imparo.measuring.machine:measure_machine",
    "fits": "imparo.measuring.fits:measure_fits",
    "readers": "imparo.measuring.files:measure_readers",
    "stream": "imparo.measuring.streams:measure_stream",
}


def measure(parts: list[str], seconds: float) -> list[Measurement]:
    """Measure some parts within about so many seconds, shared evenly.

    Parameters
    ----------
    parts : list of str
        Names among :data:`PARTS`.
    seconds : float

    Returns
    -------
    list of Measurement
    """
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ValueError(f"there is no part {unknown[0]!r} to measure: {', '.join(PARTS)}")
    if not seconds > 0:
        raise ValueError(f"seconds={seconds} must be above 0")
    share = seconds / len(parts) if parts else 0.0
    return [line for part in parts for line in _function_of(part)(share)]


def _function_of(part: str) -> Callable[[float], list[Measurement]]:
    module, _, function = PARTS[part].partition(":")
    return getattr(importlib.import_module(module), function)


def surroundings() -> dict[str, Any]:
    """Return what the figures depend on: processor, cores, threads and versions.

    Examples
    --------
    >>> from imparo.measuring import surroundings
    >>> sorted(surroundings()["versions"])
    ['imparo', 'numpy', 'python', 'scikit-learn', 'scipy']
    """
    packages = ("imparo", "numpy", "scipy", "scikit-learn")
    return {
        "processor": platform.processor() or platform.machine(),
        "system": platform.platform(terse=True),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "threads": _threads(),
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in packages},
    }


def _threads() -> int | None:
    """Return how many threads the library of matrices runs; None if it does not tell."""
    import numpy  # noqa: F401  # its library is looked at
    from threadpoolctl import threadpool_info

    counts = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(counts, default=None)
