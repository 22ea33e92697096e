"""Recordings of robots: read from files and bags, resampled and differentiated causally."""

from imparo.dynamics.logs.differentiation import CausalDerivative, differentiate
from imparo.dynamics.logs.log import Log, concatenate
from imparo.dynamics.logs.reading import read_log
from imparo.dynamics.logs.signals import low_pass, resample

__all__ = [
    "CausalDerivative",
    "Log",
    "concatenate",
    "differentiate",
    "low_pass",
    "read_log",
    "resample",
]
