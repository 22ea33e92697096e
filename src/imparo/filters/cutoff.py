"""Spectral cut-off: truncated SVD, principal component regression."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.filters.base import Filter
from imparo.persistence import persistent


@persistent
@dataclass(frozen=True)
class CutOff(Filter):
    """g(σ) = 1/σ on the largest eigenvalues, 0 on the rest (thesis, section 3.3).

    The same as least squares on the leading principal components.

    Parameters
    ----------
    by : {"penalty", "components"}
        Keep σ ≥ nλ, or a number of components.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.filters import CutOff
    >>> CutOff().g(np.array([4.0, 2.0, 1.0]), 2.0).T
    array([[0.25, 0.5 , 0.  ]])
    >>> CutOff(by="components").g(np.array([4.0, 2.0, 1.0]), 1).T
    array([[0.25, 0.  , 0.  ]])
    """

    by: str = "penalty"

    def __post_init__(self) -> None:
        if self.by not in ("penalty", "components"):
            raise ValueError(f"by must be 'penalty' or 'components', not {self.by!r}")

    @property
    def parameter(self) -> str:
        """What the cut is counted in."""
        return self.by

    def g(self, sigma: Array, levels: Any, scale: float | None = None) -> Array:
        """Return 1/σ for the eigenvalues that are kept, 0 for the rest."""
        sigma = np.asarray(sigma)
        kept = self._kept(sigma, np.atleast_1d(levels))
        inverse = np.divide(1.0, sigma, out=np.zeros_like(sigma), where=sigma > 0)
        return np.where(kept, inverse[:, None], 0.0).astype(sigma.dtype)

    def residual(self, sigma: Array, levels: Any, scale: float | None = None) -> Array:
        """Return 0 for the eigenvalues that are kept, 1 for the rest."""
        sigma = np.asarray(sigma)
        kept = self._kept(sigma, np.atleast_1d(levels)) & (sigma > 0)[:, None]
        return np.where(kept, 0.0, 1.0).astype(sigma.dtype)

    def _kept(self, sigma: Array, levels: Array) -> Array:
        if self.by == "penalty":
            return sigma[:, None] >= levels
        rank = np.empty(len(sigma), int)
        rank[np.argsort(-sigma, kind="stable")] = np.arange(len(sigma))
        return rank[:, None] < levels
