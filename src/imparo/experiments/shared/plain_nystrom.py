"""NKRLS and NYTRO with the operations that the thesis counts, by plain BLAS."""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, cholesky, lapack, solve_triangular

from imparo.engine import Array
from imparo.experiments.shared.data import Split
from imparo.experiments.shared.trials import root_mean_square, timed
from imparo.kernels import Gaussian


class Values(NamedTuple):
    """Kernel values of rows to fit and rows held out, of the centers, and the outputs."""

    K: Array
    K_held: Array
    K_mm: Array
    y: Array
    y_held: Array


def counted_seconds(n: int, m: int, d: int, penalties: int) -> float:
    """Return the seconds of NKRLS with one solve for each penalty, where K_nm is too large.

    Kernel values, K_nmᵀK_nm and solves are each measured on a part, and counted up.

    Parameters
    ----------
    n, m, d : int
        Rows to fit, centers and columns.
    penalties : int

    Returns
    -------
    float
    """
    rng, rows = np.random.default_rng(0), 4096
    X, Z = rng.normal(size=(rows, d)), rng.normal(size=(m, d))
    block, K = timed(partial(Gaussian(float(np.sqrt(d))), X, Z))
    product, G = timed(lambda: blas.dsyrk(1.0, K.T))
    G[np.diag_indices(m)] += rows
    solve, _ = timed(lambda: lapack.dposv(G, np.ones(m)))
    return (block + product) * n / rows + penalties * solve


def kernel_values(split: Split, sigma: float, m: int, seed: int) -> Values:
    """Return K_nm for four fifths of the rows and for the others, held out.

    Parameters
    ----------
    split : Split
    sigma : float
    m : int
        Centers, the first rows of a random order.
    seed : int

    Returns
    -------
    Values
        8nm bytes.
    """
    order = np.random.default_rng(seed).permutation(len(split.y))
    held, fitted = np.split(order, [len(order) // 5])
    kernel, Z = Gaussian(sigma), split.X[fitted[:m]].astype(float)
    K, K_held = (kernel(split.X[rows].astype(float), Z) for rows in (fitted, held))
    return Values(K, K_held, kernel(Z), split.y[fitted].astype(float), split.y[held])


def solve_one_by_one(values: Values, penalties: Array) -> tuple[float, float]:
    """Return the seconds of K_nmᵀK_nm, and those of one penalty: a Cholesky factor and a test.

    Parameters
    ----------
    values : Values
    penalties : array
        To take the mean over; m³/3 operations each.

    Returns
    -------
    product, solve : float
    """

    def solve(penalty: float) -> float:
        _, alpha, info = lapack.dposv(G + len(values.y) * penalty * values.K_mm, b)
        left = blas.dgemv(1.0, values.K_held.T, alpha, trans=1) - values.y_held
        return np.inf if info else root_mean_square(left)

    product, (G, b) = timed(
        lambda: (blas.dsyrk(1.0, values.K.T), blas.dgemv(1.0, values.K.T, values.y))
    )
    return product, float(np.mean([timed(partial(solve, p))[0] for p in penalties]))


def iterate(values: Values, steps: int) -> float:
    """Return the seconds of gradient descent with K_nm, 4nm operations a step (eq. 4.26).

    Every step is judged on the rows held out.

    Parameters
    ----------
    values : Values
    steps : int

    Returns
    -------
    float
    """

    def work() -> float:
        n, m = values.K.shape
        # K_mm + a shift = TᵀT, so that R = T⁻¹.
        T = cholesky(values.K_mm + 1e-10 * m * np.eye(m))
        beta, least = np.zeros(m), np.inf
        for _ in range(steps):
            alpha = solve_triangular(T, beta, check_finite=False)
            left = blas.dgemv(1.0, values.K.T, alpha, trans=1) - values.y
            slope = blas.dgemv(1.0, values.K.T, left)
            beta -= solve_triangular(T, slope, trans=1, check_finite=False) / n
            held = blas.dgemv(1.0, values.K_held.T, alpha, trans=1) - values.y_held
            least = min(least, root_mean_square(held))
        return least

    return timed(work)[0]
