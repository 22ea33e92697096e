"""The spectrum of a kernel matrix, by the cheaper of two exact routes."""

from dataclasses import dataclass

import numpy as np

from imparo.engine import Array, Engine, default_engine, resolution
from imparo.errors import NotPositiveDefiniteError

# Below this share of full rank, a pivoted Cholesky, a QR and an eigendecomposition of
# size r cost less than one of size n.
LOW_RANK = 0.7
_WORTH_TRYING = 256


@dataclass(frozen=True)
class Spectrum:
    """The eigenpairs of a positive semidefinite matrix that are not numerically zero.

    Attributes
    ----------
    values : array of shape (r,)
        Eigenvalues, not negative.
    vectors : array of shape (n, r)
        Orthonormal; the directions that are left out have eigenvalue 0 to rounding.
    floor : float
        Smaller eigenvalues are not resolved (:func:`resolution`). No direction is ever
        amplified by more than 1/floor, which makes λ = 0 the pseudo-inverse.
    """

    values: Array
    vectors: Array
    floor: float

    @classmethod
    def of(
        cls,
        K: Array,
        *,
        overwrite: bool = False,
        engine: Engine | None = None,
    ) -> "Spectrum":
        """Decompose K. Cost about 9n³, or n²r + 8nr² + 9r³ where the rank r is low.

        The low-rank route is as exact as the other: the part of K that it leaves out is
        below the rounding error of its eigenvalues.

        Parameters
        ----------
        K : array of shape (n, n)
            Symmetric positive semidefinite.
        overwrite : bool
            Whether K may be used as working space.
        engine : Engine, optional

        Returns
        -------
        Spectrum

        Raises
        ------
        NotPositiveDefiniteError
            If K has an eigenvalue that is negative beyond rounding.

        Examples
        --------
        >>> import numpy as np
        >>> from imparo.filters import Spectrum
        >>> Spectrum.of(np.array([[2.0, 0.0], [0.0, 1.0]])).values
        array([1., 2.])
        """
        engine = engine or default_engine()
        n = len(K)
        pairs = _low_rank_pairs(K, engine) if n >= _WORTH_TRYING else None
        values, vectors = pairs or engine.eigh(K, overwrite=overwrite)
        floor = resolution(K.dtype) * float(np.max(np.abs(values), initial=0.0))
        smallest = float(np.min(values, initial=0.0))
        if smallest < -100 * floor:
            raise NotPositiveDefiniteError(
                f"the kernel matrix has the negative eigenvalue {smallest:.2g}; a kernel "
                "must be positive definite: check the kernel function or matrix"
            )
        return cls(np.maximum(values, 0), vectors, floor)


def _low_rank_pairs(K: Array, engine: Engine) -> tuple[Array, Array] | None:
    n = len(K)
    rng = np.random.RandomState(0)
    tolerance = 8 * float(np.finfo(K.dtype).eps * np.max(np.diagonal(K)))
    # Half of the rows tell, at an eighth of the price, whether the rank may be low.
    half = rng.permutation(n)[: n // 2]
    if engine.pivoted_cholesky(K[np.ix_(half, half)], tolerance)[0].shape[1] > 0.9 * len(half):
        return None
    L, _ = engine.pivoted_cholesky(K, tolerance)
    if L.shape[1] > LOW_RANK * n:
        return None
    # An indefinite matrix can stop the pivoting early with much left off the diagonal.
    probe = rng.choice([-1.0, 1.0], (n, 1)).astype(K.dtype)
    left_over = engine.product(K, probe) - engine.product(L, engine.product(L.T, probe))
    if np.abs(left_over).max() > 1000 * n * tolerance:
        return None
    Q, R = engine.orthonormalize(L)
    values, V = engine.eigh(engine.product(R, R.T), overwrite=True)
    return values, engine.product(Q, V)
