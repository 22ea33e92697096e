"""Spectral measures of kernels: the laws that random frequencies are drawn from."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.features.drawn import STRETCHES, stream
from imparo.kernels import Constant, Gaussian, Kernel, Laplacian, Matern, Product


@dataclass(frozen=True)
class Spectrum:
    """The law of ω in K(x, x') = a²·E cos ωᵀ(x − x') (Bochner).

    Frequencies are those of width 1 divided by σ:

    - Gaussian: ω ~ N(0, I);
    - Laplacian: independent Cauchy coordinates, whose characteristic function is exp(−|t|);
    - Matérn of order ν: Student's t with 2ν degrees of freedom, z·√(2ν/χ²_{2ν}) with z
      Gaussian, whose characteristic function is the kernel as a function of √(2ν)r.

    Parameters
    ----------
    kernel : Gaussian, Laplacian or Matern
    amplitude : float
        a, so that multiples of kernels have features too.
    """

    kernel: Gaussian | Laplacian | Matern
    amplitude: float

    @property
    def is_round(self) -> bool:
        """Whether rotated frequencies have the same law."""
        return not isinstance(self.kernel, Laplacian)

    @property
    def degrees(self) -> float | None:
        """2ν of a Matérn kernel, and None of the others."""
        return 2 * self.kernel.order if isinstance(self.kernel, Matern) else None

    @property
    def sigma(self) -> Any:
        """The width, or an array of those of the columns."""
        if self.kernel.sigma is None:
            raise ValueError(
                f"the width of {self.kernel!r} is not set; give sigma, or fit it with an "
                "estimator"
            )
        widths = self.kernel.sigma
        return np.array(widths) if isinstance(widths, tuple) else float(widths)

    def stretches(self, size: int, seed: int) -> Array:
        """Return what Gaussian frequencies are multiplied with, one number for each.

        Parameters
        ----------
        size : int
        seed : int

        Returns
        -------
        array of shape (size,)
            √(2ν/χ²_{2ν}) for a Matérn kernel, and ones for the Gaussian.
        """
        if self.degrees is None:
            return np.ones(size)
        return np.sqrt(self.degrees / stream(seed, STRETCHES).chisquare(self.degrees, size))


def spectrum_of(kernel: Kernel, rule: str) -> Spectrum:
    """Return the spectral measure of a kernel, or raise where it has none here.

    Parameters
    ----------
    kernel : Kernel
    rule : str
        Who asks, for the message.

    Returns
    -------
    Spectrum
    """
    part, factor = unscaled(kernel)
    if not isinstance(part, Gaussian | Laplacian | Matern):
        raise ValueError(
            f"{rule} has features of the Gaussian, Laplacian and Matérn kernels and of their "
            f"positive multiples, not of {kernel!r}; use one of these, or a Nyström estimator, "
            "which takes any kernel"
        )
    return Spectrum(part, float(np.sqrt(factor)))


def unscaled(kernel: Kernel) -> tuple[Kernel, float]:
    """Return K and c of a kernel cK, with c = 1 where it is no multiple."""
    if isinstance(kernel, Product):
        for constant, other in ((kernel.left, kernel.right), (kernel.right, kernel.left)):
            if isinstance(constant, Constant):
                part, factor = unscaled(other)
                return part, constant.value * factor
    return kernel, 1.0
