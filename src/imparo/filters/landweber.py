"""Landweber iteration: gradient descent on the empirical error, stopped early."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.filters.base import Iterative, as_operator, check_steps, largest_eigenvalue
from imparo.persistence import persistent


@persistent
@dataclass(frozen=True)
class Landweber(Iterative):
    """α_t = α_{t−1} + η(y − Mα_{t−1}), so g_t(σ) = η Σ_{i<t}(1 − ησ)^i.

    Thesis, section 3.4.1, with the printed (I − nσ)^i corrected. Roughly t ~ 1/λ.

    Parameters
    ----------
    step : float, optional
        η, with 0 < η < 2/σ_max; 1/σ_max if left out.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.filters import Landweber
    >>> Landweber().g(np.array([2.0, 1.0]), [1, 2, 50])
    array([[0.5 , 0.5 , 0.5 ],
           [0.5 , 0.75, 1.  ]])
    """

    step: float | None = None

    def __post_init__(self) -> None:
        if self.step is not None and not 0 < self.step < np.inf:
            raise ValueError(f"step must be a positive number, not {self.step!r}")

    def _step(self, scale: float) -> float:
        if self.step is None:
            return 1 / scale if scale > 0 else 1.0
        if self.step * scale >= 2:
            raise ValueError(
                f"step={self.step:g} makes the iteration diverge: it must be below "
                f"2/{scale:.3g} = {2 / scale:.3g}, or left out"
            )
        return self.step

    def iterates(
        self, M: Any, y: Array, scale: float | None = None, *, primal: bool = False
    ) -> Iterator[Array]:
        """Yield the solutions after 1, 2, … steps."""
        product = as_operator(M)
        eta = self._step(largest_eigenvalue(M, len(y)) if scale is None else scale)
        solution = eta * y
        while True:
            yield solution
            solution = solution + eta * (y - product(solution))

    def g(self, sigma: Array, levels: Any, scale: float | None = None) -> Array:
        """Return (1 − (1 − ησ)^t)/σ, and ηt at σ = 0, in closed form."""
        sigma = np.asarray(sigma, np.float64)[:, None]
        t = check_steps(levels)
        eta = self._step(float(np.max(sigma, initial=0.0)) if scale is None else scale)
        small = eta * sigma < 0.5
        # expm1 keeps the digits that 1 − (1 − ησ)^t loses where ησt is small.
        fitted = np.where(
            small,
            -np.expm1(t * np.log1p(-eta * np.where(small, sigma, 0.0))),
            1 - np.power(1 - eta * sigma, t),
        )
        return np.divide(fitted, sigma, out=eta * t + 0 * fitted, where=sigma > 0)

    def residual(self, sigma: Array, levels: Any, scale: float | None = None) -> Array:
        """Return (1 − ησ)^t."""
        sigma = np.asarray(sigma, np.float64)[:, None]
        eta = self._step(float(np.max(sigma, initial=0.0)) if scale is None else scale)
        return np.power(1 - eta * sigma, check_steps(levels))
