"""The incremental Nyström algorithm as the thesis prints it: the tested reference.

:mod:`imparo.nested` computes the same path many times faster (``make bench``).
"""

from collections.abc import Iterator

import numpy as np

from imparo.engine import Array, default_engine, rotations
from imparo.errors import NotPositiveDefiniteError


def incremental_nystrom(K_nm: Array, K_mm: Array, Y: Array, penalty: float) -> Iterator[Array]:
    """Yield the Nyström KRLS coefficients for 1, 2, … m centers (thesis, Alg. 1).

    G_t = K_ntᵀK_nt + nλK_tt is bordered by c_t and γ_t, which are u_tu_tᵀ − v_tv_tᵀ with
    u_t = (c_t/(1 + g_t), g_t), v_t = (c_t/(1 + g_t), −1), g_t = √(1 + γ_t): two rank-one
    changes of the Cholesky factor a step. Cost O(nm² + m³).

    Parameters
    ----------
    K_nm : array of shape (n, m)
    K_mm : array of shape (m, m)
    Y : array of shape (n, T)
    penalty : float
        λ of the mean loss; the ridge is nλ.

    Yields
    ------
    array of shape (t, T)

    Raises
    ------
    NotPositiveDefiniteError
        Where G_t is singular in floating point: the printed form has no remedy.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.incremental_nystrom import incremental_nystrom
    >>> from imparo.kernels import Gaussian
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> K_nm, K_mm = Gaussian(0.3)(X, X[::7]), Gaussian(0.3)(X[::7])
    >>> *_, last = incremental_nystrom(K_nm, K_mm, np.sin(X), 1e-3)
    >>> G = K_nm.T @ K_nm + 20 * 1e-3 * K_mm
    >>> bool(np.allclose(last, np.linalg.solve(G, K_nm.T @ np.sin(X))))
    True
    """
    n, m = K_nm.shape
    engine, ridge = default_engine(), n * penalty
    R = np.zeros((m, m))  # row-major, as the rotations work on rows
    b = engine.product(K_nm.T, Y)
    for t in range(m):
        a = K_nm[:, t]
        c = engine.product(K_nm[:, :t].T, a[:, None])[:, 0] + ridge * K_mm[:t, t]
        gamma = a @ a + ridge * K_mm[t, t]
        if t == 0:
            R[0, 0] = np.sqrt(gamma)
        else:
            g = np.sqrt(1 + gamma)
            part = np.ascontiguousarray(R[: t + 1, : t + 1])
            u, v = np.append(c / (1 + g), g), np.append(c / (1 + g), -1.0)
            rotations.rotate_in(part, np.zeros((t + 1, 1)), u, np.zeros(1))
            _take_out(part, v)
            R[: t + 1, : t + 1] = part
        part = R[: t + 1, : t + 1]
        z = engine.solve_triangular(part, b[: t + 1], transpose=True)
        yield engine.solve_triangular(part, z)


def _take_out(R: Array, v: Array) -> None:
    """Make RᵀR smaller by vvᵀ, in place."""
    a = default_engine().solve_triangular(R, v[:, None], transpose=True)[:, 0]
    rest = 1 - a @ a
    if not rest > 0:
        raise NotPositiveDefiniteError(
            "the bordered matrix of the incremental algorithm is singular in floating point; "
            "use NystromRegressor, which drops dependent centers"
        )
    rotations.rotate_out(R, *rotations.downdate_rotations(a, float(np.sqrt(rest))))
