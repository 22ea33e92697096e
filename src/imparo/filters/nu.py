"""The ν-method: Landweber with momentum, about √t iterations in place of t."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.filters.base import Iterative, as_operator, largest_eigenvalue
from imparo.persistence import persistent


@persistent
@dataclass(frozen=True)
class NuMethod(Iterative):
    """α_i = α_{i−1} + u_i(α_{i−1} − α_{i−2}) + (ω_i/σ_max)(y − Mα_{i−1}).

    u_i = (i−1)(2i−3)(2i+2ν−1) / ((i+2ν−1)(2i+4ν−1)(2i+2ν−3)),
    ω_i = 4(2i+2ν−1)(i+ν−1) / ((i+2ν−1)(2i+4ν−1)).

    Brakhage's semi-iterative method (Engl, Hanke & Neubauer, section 6.3), one of the
    iterative methods that the thesis names (Introduction).

    Parameters
    ----------
    nu : float
        ν > 0; larger values saturate later and are smoother.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.filters import NuMethod
    >>> NuMethod().g(np.array([1.0]), [1, 10, 100]).round(4)
    array([[1.2   , 0.9938, 0.9999]])
    """

    nu: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.nu < np.inf:
            raise ValueError(f"nu must be a positive number, not {self.nu!r}")

    def iterates(
        self, M: Any, y: Array, scale: float | None = None, *, primal: bool = False
    ) -> Iterator[Array]:
        """Yield the solutions after 1, 2, … steps."""
        product, nu = as_operator(M), self.nu
        scale = largest_eigenvalue(M, len(y)) if scale is None else scale
        scale = scale if scale > 0 else 1.0
        before = np.zeros_like(y)
        solution = (4 * nu + 2) / (4 * nu + 1) / scale * y
        i = 1
        while True:
            yield solution
            i += 1
            common = (i + 2 * nu - 1) * (2 * i + 4 * nu - 1)
            u = (i - 1) * (2 * i - 3) * (2 * i + 2 * nu - 1) / (common * (2 * i + 2 * nu - 3))
            omega = 4 * (2 * i + 2 * nu - 1) * (i + nu - 1) / common
            step = u * (solution - before) + omega / scale * (y - product(solution))
            before, solution = solution, solution + step
