"""The spline model of the simulation: rows, targets and risks by Fourier coefficients.

Rows x and the points ω that make features are uniform on [0, 1]. With the spline kernels
K_q of :class:`imparo.kernels.Spline`, features are ψ(ω, x) = K_{1/2γ}(ω, x), so that the
kernel is K_{1/γ}; the target is f(x) = K_p(x, x₀), p = r/γ + 1/2 + ε, plus Gaussian noise.
In the basis 1, √2cos 2πkx, √2sin 2πkx all of this is diagonal and an excess risk is a squared
distance of coefficients: nothing is estimated from test rows.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import hankel, lu_factor, lu_solve, toeplitz
from scipy.optimize import minimize_scalar
from scipy.special import zeta

from imparo.conditions import check_number
from imparo.engine import Array, default_engine
from imparo.kernels import Spline

# Frequencies whose eigenvalue is below this share of the best penalty are left out; that
# changes the risk at this penalty by some 1e-6 of it, and a hundredth of it by 1e-4.
_NEGLIGIBLE = 1e-4
# The best penalty of a sample is looked for within this factor of that in the limit.
_AWAY = 1e3
# Draws of random features to average over.
_DRAWS = 10
# Numbers of features are told apart by a 16th of an octave, 4.4 %.
_STEPS = 16
_MOST_FEATURES = 2**20


@dataclass(frozen=True)
class SplineModel:
    """Rows, targets and noise of the simulation.

    Parameters
    ----------
    r, gamma : float
        Smoothness of the target, in [1/2, 1], and size of the space, in (0, 1/2).
    noise : float
        Standard deviation of the noise.
    epsilon : float
        Smoothness beyond r, which makes ‖L^{−r}f‖ finite.
    x0 : float
        Where the target has its peak. Results do not depend on it but for the draw, as
        rows and features are uniform on a circle.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.theory.spline_model import SplineModel
    >>> x, y = SplineModel(r=0.5, gamma=0.25, noise=0.1).draw(3, np.random.default_rng(0))
    >>> x.shape, y.shape
    ((3,), (3,))
    """

    r: float
    gamma: float
    noise: float = 1.0
    epsilon: float = 0.01
    x0: float = 0.5

    def __post_init__(self) -> None:
        check_number("r", self.r, least=0.5, most=1)
        check_number("gamma", self.gamma, above=0, below=0.5)
        check_number("noise", self.noise, above=0)
        check_number("epsilon", self.epsilon, above=0)
        check_number("x0", self.x0, least=0, most=1)

    @property
    def order(self) -> float:
        """The power p = r/γ + 1/2 + ε by which the target's coefficients fall."""
        return self.r / self.gamma + 0.5 + self.epsilon

    def degree(self, penalty: float) -> int:
        """Return the frequency from which on eigenvalues are negligible beside ``penalty``."""
        return int(np.ceil((_NEGLIGIBLE * penalty) ** -self.gamma))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return n rows, as a vector, and their noisy targets."""
        x = rng.random(n)
        f = Spline(self.order)(x[:, None], np.array([[self.x0]]))[:, 0]
        return x, f + self.noise * rng.standard_normal(n)

    def limit(self, n: int) -> tuple[float, float]:
        """Return the least excess risk of KRLS and its λ, for the covariance of all rows.

        The least over λ of Σ_k (λ/(σ_k + λ))²c_k² + (noise²/n)·Σ_k (σ_k/(σ_k + λ))², where
        σ_k = k^{−1/γ} and c_k are the target's coefficients: what a sample does on average
        if its covariance is exact. It tells where the asymptotic regime is, without a draw.
        """
        k = np.arange(1, 2049)
        sigma = np.append(1.0, k ** (-1 / self.gamma))
        weights = np.append(1.0, np.full(len(k), 2.0))
        target = weights * np.append(1.0, k ** (-2 * self.order))

        def log_risk(t: Array) -> Array:
            share = 1 / (1 + sigma / np.exp(t)[:, None])
            variance = self.noise**2 / n * np.square(1 - share)
            return np.log(np.square(share).dot(target) + variance.dot(weights))

        value, t = _minimum(log_risk, np.log(np.logspace(-14, 2, 161)))
        return float(np.exp(value)), float(np.exp(t))


class FourierSample:
    """KRLS and its random features on one sample, by their Fourier coefficients.

    With F the n × (2k + 1) values of the basis at the rows, D = diag(k^{−1/2γ}) and S the
    same matrix FᵀF/m of the m points ω (S = I for the kernel itself), the coefficients are
    D·S·(H·S + λI)⁻¹h, H = DFᵀFD/n, h = DFᵀy/n: ridge regression on the features ψ/√m.
    FᵀF is made of the sums of cos 2πkx and sin 2πkx up to twice the degree, so costs in n
    and m are O(nk) and O(mk); all else is O(k³).

    Parameters
    ----------
    model : SplineModel
    x, y : arrays of shape (n,)
    degree : int
        The largest frequency k.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.theory.spline_model import FourierSample, SplineModel
    >>> model = SplineModel(r=0.5, gamma=0.25, noise=0.1)
    >>> sample = FourierSample(model, *model.draw(500, np.random.default_rng(0)), degree=20)
    >>> risks = sample.risk(sample.krls(np.array([1.0, 1e-3, 1e-9])))
    >>> bool(risks[1] < risks[0] and risks[1] < risks[2])
    True
    """

    def __init__(self, model: SplineModel, x: Array, y: Array, degree: int) -> None:
        k = np.arange(1, degree + 1.0)
        orders = np.concatenate([[1.0], k, k])
        self.degree = degree
        self.scale = orders ** (-0.5 / model.gamma)
        peak = fourier_sums(np.array([model.x0]), degree)[:, 0]
        self.target = orders**-model.order * _real(peak)
        #: Of the target's ‖f‖², what is beyond the degree.
        self.beyond = float(2 * zeta(2 * model.order, degree + 1))
        sums = fourier_sums(x, 2 * degree)[:, 0]
        weighted = fourier_sums(x, degree, weights=y)[:, 0]
        self.h = self.scale * _real(weighted) / len(x)
        self.H = self.scale[:, None] * gram(sums / len(x)) * self.scale
        engine = default_engine()
        self.spectrum, self.vectors = engine.eigh(self.H)
        self.rotated = engine.product(self.vectors.T, self.h[:, None])

    def krls(self, penalties: Array) -> Array:
        """Return the coefficients of KRLS for every penalty, shape (2k + 1, L)."""
        z = self.rotated / (np.maximum(self.spectrum, 0)[:, None] + penalties)
        return self.scale[:, None] * default_engine().product(self.vectors, z)

    def random_features(self, penalty: float, means: Array) -> Array:
        """Return the coefficients of RF-KRLS, shape (2k + 1, 1).

        ``means`` are those of e^{2πikω} over the points ω, k = 0 … 2·degree.
        """
        S = gram(means)
        system = default_engine().product(self.H, S)
        system[np.diag_indices_from(system)] += penalty
        w = lu_solve(lu_factor(system, overwrite_a=True, check_finite=False), self.h)
        return self.scale[:, None] * default_engine().product(S, w[:, None])

    def risk(self, coefficients: Array) -> Array:
        """Return the excess risk ‖c − c_f‖² of every column."""
        return np.square(coefficients - self.target[:, None]).sum(axis=0) + self.beyond

    def best_penalty(self, near: float) -> tuple[float, float]:
        """Return the penalty of the least excess risk of KRLS, and this risk."""
        grid = np.log(near) + np.linspace(-np.log(_AWAY), np.log(_AWAY), 81)
        value, t = _minimum(lambda t: self.risk(self.krls(np.exp(t))), grid)
        return float(np.exp(t)), value

    def features_needed(self, penalty: float, most: float, rng: np.random.Generator) -> int:
        """Return the smallest m from which on RF-KRLS risks no more than ``most``.

        The excess risk is the mean over ten draws, in each of which more features keep the
        first ones. Sizes double until two in a row are within ``most``; between the last
        that is not and the next, m is found by bisection.
        """
        m, before, within = 0, np.zeros((2 * self.degree + 1, _DRAWS)), None
        while m < _MOST_FEATURES:
            sizes = _octave(m)
            points = rng.random((_DRAWS, sizes[-1] - m))
            starts = np.append(m, sizes[:-1]) - m
            sums = np.cumsum(fourier_sums(points, 2 * self.degree, starts=starts), axis=-1)
            means = (before[..., None] + sums) / sizes
            m = int(sizes[-1])
            before = m * means[..., -1]
            if self._mean_risk(penalty, means[..., -1]) > most:
                within = None
            elif within is None:
                within = sizes, means
            else:
                return self._first_within(penalty, most, *within)
        raise ValueError(
            f"more than {_MOST_FEATURES:,} random features are needed at λ = {penalty:.1e}; "
            "simulate with more noise or fewer rows"
        )

    def _first_within(self, penalty: float, most: float, sizes: Array, means: Array) -> int:
        """Return the first of the sizes that is within ``most``; the last one is."""

        def fits(i: int) -> bool:
            return self._mean_risk(penalty, means[..., i]) <= most

        return int(sizes[bisect_left(range(len(sizes) - 1), True, key=fits)])

    def _mean_risk(self, penalty: float, means: Array) -> float:
        """Return the excess risk of RF-KRLS, averaged over draws; means of shape (·, draws)."""
        found = [self.random_features(penalty, draw) for draw in means.T]
        return float(self.risk(np.hstack(found)).mean())


def fourier_sums(
    x: Array, degree: int, weights: Array | None = None, starts: Any = (0,)
) -> Array:
    """Return Σ_i w_i·e^{2πikx_i}, k = 0 … degree, over runs of x.

    Parameters
    ----------
    x : array of shape (..., n)
    degree : int
    weights : array of shape (..., n), optional
    starts : sequence of int
        Where each run begins.

    Returns
    -------
    array of shape (degree + 1, ..., runs)
    """
    turn = np.exp(2j * np.pi * x)
    power = np.ones_like(turn) if weights is None else weights.astype(complex)
    sums = np.empty((degree + 1, *x.shape[:-1], len(starts)), complex)
    for k in range(degree + 1):
        np.add.reduceat(power, starts, axis=-1, out=sums[k])
        power *= turn
    return sums


def gram(means: Array) -> Array:
    """Return FᵀF/n from the means of e^{2πikx}, k = 0 … 2·degree.

    As 2cos a·cos b = cos(a − b) + cos(a + b) and so on, its blocks are sums of Toeplitz and
    Hankel matrices.
    """
    k = len(means) // 2
    cosine, sine = means.real, means.imag
    even = toeplitz(cosine[: k + 1])
    total = hankel(cosine[: k + 1], cosine[k:])
    odd = hankel(sine[: k + 1], sine[k:]) - toeplitz(sine[: k + 1], -sine[: k + 1])
    G = np.empty((2 * k + 1, 2 * k + 1))
    G[: k + 1, : k + 1] = even + total
    G[k + 1 :, k + 1 :] = (even - total)[1:, 1:]
    G[: k + 1, k + 1 :] = odd[:, 1:]
    G[0] /= np.sqrt(2)  # the constant is 1, not √2cos 0
    G[:, 0] /= np.sqrt(2)
    G[k + 1 :, : k + 1] = G[: k + 1, k + 1 :].T
    return G


def _real(values: Array) -> Array:
    """Return rows 1, √2Re, √2Im of complex ones, k = 0 … degree."""
    parts = [values[:1].real, np.sqrt(2) * values[1:].real, np.sqrt(2) * values[1:].imag]
    return np.concatenate(parts)


def _octave(m: int) -> Array:
    """Return the numbers of features to tell apart above m, up to 2m."""
    sizes = np.round(max(m, 0.5) * 2 ** (np.arange(1, _STEPS + 1) / _STEPS)).astype(int)
    return np.unique(sizes[sizes > m])


def _minimum(f: Callable[[Array], Array], grid: Array) -> tuple[float, float]:
    """Return the least value of f, and where: the best of a grid, refined to its neighbours.

    The grid alone would make steps in the exponents.
    """
    values = f(grid)
    i = int(np.argmin(values))
    bounds = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
    found = minimize_scalar(
        lambda t: float(f(np.array([t]))[0]),
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-6},
    )
    return min((float(found.fun), float(found.x)), (float(values[i]), float(grid[i])))
