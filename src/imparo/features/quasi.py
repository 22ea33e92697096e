"""Random Fourier features with frequencies from low-discrepancy sequences."""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special
from scipy.stats import qmc

from imparo.engine import Array
from imparo.features.drawn import DIRECTIONS, stream
from imparo.features.fourier import FourierMap, WaveRule, amplitudes_of
from imparo.features.spectral import Spectrum
from imparo.kernels import Laplacian
from imparo.persistence import persistent

# Sobol points lie on a grid of this spacing.
_BITS = 30


@persistent
@dataclass(frozen=True)
class QuasiMonteCarlo(WaveRule):
    """Frequencies that fill the spectral measure evenly (Yang, Sindhwani and others, 2014).

    A scrambled sequence u_1, u_2, … in the unit cube goes through the inverses of the
    distribution functions: of the normal law for the Gaussian kernel, of the Cauchy law for
    the Laplacian one, and for Matérn kernels of the normal law and, with one more coordinate,
    of χ²_{2ν}. The phases of cosines are another coordinate. Each u_i is uniform by itself,
    so that features have no bias, and in few dimensions the error falls nearly as 1/m in the
    place of 1/√m; it is lowest where the number of frequencies is a power of two.

    Parameters
    ----------
    form : {"pair", "cosine"}
        See :class:`Fourier`.
    sequence : {"sobol", "halton"}
        Sobol's sequence, up to 21,201 dimensions, or Halton's, which is for few.

    Notes
    -----
    Cost md to draw, and that of :class:`Fourier` to evaluate.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.features import QuasiMonteCarlo
    >>> from imparo.kernels import Gaussian
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> Phi = QuasiMonteCarlo().draw(Gaussian(1.0), 2, n_features=2048, seed=0).transform(X)
    >>> bool(np.allclose(Phi @ Phi.T, Gaussian(1.0)(X), atol=1e-3))
    True
    """

    sequence: str = "sobol"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sequence not in ("sobol", "halton"):
            raise ValueError(
                f"sequence={self.sequence!r} is not known; give 'sobol' or 'halton'"
            )

    def _check(self, spectrum: Spectrum, n_columns: int) -> None:
        dimensions, limit = self._dimensions(spectrum, n_columns), qmc.Sobol.MAXDIM
        if self.sequence == "sobol" and dimensions > limit:
            raise ValueError(
                f"Sobol's sequence has {limit:,} dimensions and rows of {n_columns:,} columns "
                f"need {dimensions:,}; use Fourier or Orthogonal, or reduce the columns first"
            )

    def _dimensions(self, spectrum: Spectrum, n_columns: int) -> int:
        return n_columns + (spectrum.degrees is not None) + (self.form == "cosine")

    def _draw(self, spectrum: Spectrum, n_columns: int, size: int, seed: int) -> FourierMap:
        u = points(self.sequence, self._dimensions(spectrum, n_columns), size, seed)
        v, extra = u[:, :n_columns], iter(u[:, n_columns:].T)
        if isinstance(spectrum.kernel, Laplacian):
            omega = np.tan(np.pi * (v - 0.5))
        else:
            omega = special.ndtri(v)
        if spectrum.degrees is not None:
            chi2 = 2 * special.gammaincinv(spectrum.degrees / 2, next(extra))
            omega *= np.sqrt(spectrum.degrees / chi2)[:, None]
        omega /= spectrum.sigma
        phases = 2 * np.pi * next(extra) if self.form == "cosine" else None
        return FourierMap(omega, amplitudes_of(spectrum, size), phases)


def points(sequence: str, dimensions: int, size: int, seed: int) -> Array:
    """Return the first points of a scrambled sequence, inside the open cube.

    Parameters
    ----------
    sequence : {"sobol", "halton"}
    dimensions : int
    size : int
    seed : int

    Returns
    -------
    array of shape (size, dimensions)
        Above 0 and below 1.
    """
    # SciPy 1.15 gave the argument another name, and a later one will warn of the old one.
    name = "rng" if "rng" in inspect.signature(qmc.Sobol).parameters else "seed"
    options: dict[str, Any] = {name: stream(seed, DIRECTIONS)}
    if sequence == "halton":
        u = qmc.Halton(dimensions, scramble=True, **options).random(size)
        return np.clip(u, 2.0**-53, 1 - 2.0**-53)
    sobol = qmc.Sobol(dimensions, scramble=True, bits=_BITS, **options)
    # A power of two, as SciPy warns of any other number; from corners of cells to middles.
    u = sobol.random(1 << (size - 1).bit_length())[:size]
    return u + 0.5 * 2.0**-_BITS
