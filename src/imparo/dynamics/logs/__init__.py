"""Recordings of robots: read from files and bags, resampled and differentiated causally."""

from imparo.dynamics.logs.differentiation import (
    CausalDerivative,
    differentiate,
    low_pass,
    resample,
)
from imparo.dynamics.logs.log import Log, concatenate
from imparo.dynamics.logs.reading import read_log

__all__ = [
    "CausalDerivative",
    "Log",
    "concatenate",
    "differentiate",
    "low_pass",
    "read_log",
    "resample",
]
