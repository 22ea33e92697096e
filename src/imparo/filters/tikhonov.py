"""Tikhonov regularization: ridge regression, the filter of KRLS."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.filters.base import Filter
from imparo.persistence import persistent


@persistent
@dataclass(frozen=True)
class Tikhonov(Filter):
    """g(σ) = 1/(σ + nλ) (thesis, section 3.2); 1/σ, the pseudo-inverse, at λ = 0.

    It lowers the condition number to (σ_max + nλ)/(σ_min + nλ).

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.filters import Tikhonov
    >>> Tikhonov().g(np.array([0.0, 1.0]), [1.0, 3.0])
    array([[1.        , 0.33333333],
           [0.5       , 0.25      ]])
    """

    @property
    def parameter(self) -> str:
        """The penalty λ."""
        return "penalty"

    def g(self, sigma: Array, levels: Any, scale: float | None = None) -> Array:
        """Return 1/(σ + nλ), infinite where both are 0."""
        with np.errstate(divide="ignore"):
            return 1 / (np.asarray(sigma)[:, None] + np.atleast_1d(levels))

    def residual(self, sigma: Array, levels: Any, scale: float | None = None) -> Array:
        """Return nλ/(σ + nλ), without the cancellation of 1 − σg(σ)."""
        levels = np.atleast_1d(levels)
        total = np.asarray(sigma)[:, None] + levels
        return np.divide(levels, total, out=np.ones_like(total), where=total > 0)
