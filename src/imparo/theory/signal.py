"""Signal and noise of a learning problem, from the spectrum of its kernel matrix.

With K = QΣQᵀ, z = Qᵀy and o = Qᵀ1, the fit at λ has the intercept b that makes the residuals
sλ/(σ_i + sλ)·(z_i − b·o_i) sum to 0, and the squared norm Σσ_i(z_i − b·o_i)²/(σ_i + sλ)², so
that every λ costs s operations. The penalty is the one with the smallest generalized
cross-validation error.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.engine import Array, default_engine, power_of_two
from imparo.theory.dimensions import Estimate, KernelSpectrum

_PENALTIES = 121
# A fit that uses more of the rows than this says nothing about the noise.
_MOST_FREEDOM = 0.98


@dataclass(frozen=True)
class Signal:
    """What a sample tells about signal and noise.

    Attributes
    ----------
    noise : Estimate
        σ², the variance of y about the regression function.
    norm : Estimate
        ‖f‖², the squared norm in the space of the kernel.
    snr : Estimate
        ‖f‖²/σ².
    penalty : Estimate
        λ*, the best penalty for all n rows: the one that generalized cross-validation prefers
        on the sample of s, times (s/n)^{1/(1+γ)}.
    safe_penalty : float
        1/(n·SNR), at which the risk is surely below σ²d_eff/n; never above the best one by
        much, and often far below it.
    explained : float
        Share of the variance of y that is not noise, between 0 and 1.
    error : float
        Root of the mean squared error that is expected on new rows, by the sample.
    """

    noise: Estimate
    norm: Estimate
    snr: Estimate
    penalty: Estimate
    safe_penalty: float
    explained: float
    error: float


def signal_of(spectrum: KernelSpectrum, y: Any) -> Signal:
    """Estimate noise, norm and signal-to-noise ratio (thesis, section 4.3).

    The error bars span the penalties that the sample cannot tell from the best one: those
    whose error is within one standard error of the smallest.

    Parameters
    ----------
    spectrum : KernelSpectrum
        Of the rows, or of a sample of them.
    y : array of shape (n,) or (n, T)
        Outputs of all rows. A constant is taken out first, as by an intercept.

    Returns
    -------
    Signal

    Notes
    -----
    SNR = ‖f_opt‖²/σ². The thesis prints λ* = 1/SNR; with its ridge nλ the bound
    σ²d_eff(λ*)/n holds at 1/(n·SNR) (:func:`krls_rule`), for the least favourable f. What a
    fit selects is larger wherever f is smoother than that, and it is this penalty that
    decides how many centers and steps are needed. It shrinks as n^{−1/(2r+γ)}, r = 1/2 where
    no more is known about f, with γ from the spectrum.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.kernels import Gaussian
    >>> from imparo.theory import KernelSpectrum, signal_of
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(800, 1))
    >>> y = np.sin(X[:, 0]) + 0.5 * rng.normal(size=800)
    >>> found = signal_of(KernelSpectrum(X, Gaussian(1.0)), y)
    >>> abs(found.noise.value - 0.25) < 0.05
    True
    """
    Y, scale = _outputs(spectrum, y)
    size, values = len(Y), spectrum.values
    product = default_engine().product
    Z = product(spectrum.vectors.T, Y)
    ones = product(spectrum.vectors.T, np.ones((size, 1)))[:, 0]
    total = float(np.square(Y).sum())
    # Where the kernel is 0 on all rows, any penalty is as good.
    grid = (spectrum.bound or 1.0) * np.geomspace(1, 1e-12, _PENALTIES)
    found = [_at(values, Z, ones, t) for t in grid]
    scores = np.array([f[0] for f in found])
    if total == 0 or not np.isfinite(scores).any():
        zero = Estimate(0.0, 0.0, 0.0, "exact: the outputs are constant")
        best_known = Estimate(float(grid[0]), float(grid[0]), float(grid[0]), zero.source)
        return Signal(zero, zero, zero, best_known, float(grid[0]), 0.0, 0.0)
    best = int(np.nanargmin(np.where(np.isfinite(scores), scores, np.inf)))
    # One standard error of a mean of squares, as of normal residuals.
    near = np.flatnonzero(scores <= scores[best] * (1 + np.sqrt(2 / size)))
    source = "GCV on " + ("all rows" if spectrum.exact else spectrum.sample)
    noises = [max(found[i][1], _least(total, size)) for i in near]
    norms = [found[i][2] for i in near]
    ratios = np.array(norms) / np.array(noises)
    noise, norm = max(found[best][1], _least(total, size)), found[best][2]
    ratio = max(norm / noise, np.finfo(float).tiny)
    shrink = (size / spectrum.n) ** (1 / (1 + spectrum.decay()))
    # Two standard errors of a variance, beside what the penalty makes of it.
    spread = 2 * float(np.sqrt(2 / size))
    noises += [noise * max(1 - spread, 0.0), noise * (1 + spread)]
    square = scale * scale
    return Signal(
        _between(noise, noises, source, square),
        _between(norm, norms, source, square),
        _between(ratio, ratios.tolist(), source),
        _between(shrink * float(grid[best]), (shrink * grid[near]).tolist(), source),
        1 / (spectrum.n * ratio),
        float(np.clip(1 - noise * size / total, 0.0, 1.0)),
        scale * float(np.sqrt(scores[best])),
    )


def _at(values: Array, Z: Array, ones: Array, penalty: float) -> tuple[float, float, float]:
    """Return the GCV error, the noise and the squared norm at one penalty."""
    size = len(values)
    ridge = size * penalty
    left = ridge / (values + ridge)
    # I − H = L − L11ᵀL/(1ᵀL1), with L = sλ(K + sλI)⁻¹.
    weights = left * ones
    whole = float(weights @ ones)
    second, third = float(weights @ weights), float(weights @ (left * weights))
    free = float(np.sum(left)) - second / whole
    if free < (1 - _MOST_FREEDOM) * size:
        return np.inf, 0.0, 0.0
    Z2 = np.square(Z - np.outer(ones, weights @ Z / whole)).sum(axis=1)
    residual = float(np.sum(np.square(left) * Z2))
    gcv = residual * size / free**2
    # E‖(I − H)y‖² = σ²Tr(I − H)² and what is left of the signal.
    trace = float(np.sum(np.square(left))) - 2 * third / whole + (second / whole) ** 2
    noise = residual / trace
    inner = values / np.square(values + ridge)
    fitted = float(np.sum(inner * Z2))
    # The norm of a fit to noise alone.
    alone = noise * float(np.sum(inner))
    return gcv, noise, max(fitted - alone, 1e-3 * fitted)


def _least(total: float, size: int) -> float:
    """Return the smallest noise that sums of squares can show."""
    return float(np.finfo(np.float64).eps) * total / size


def _between(value: float, values: list[float], source: str, unit: float = 1.0) -> Estimate:
    low, high = float(min(value, *values)), float(max(value, *values))
    return Estimate(unit * value, unit * low, unit * high, source)


def _outputs(spectrum: KernelSpectrum, y: Any) -> tuple[Array, float]:
    """Return the outputs of the rows used, centered and near 1, and their scale."""
    Y = np.asarray(y, np.float64)
    if Y.shape[:1] != (spectrum.n,):
        raise ValueError(
            f"y has shape {Y.shape} and there are {spectrum.n:,} rows; give an output for "
            "every row"
        )
    Y = Y.reshape(spectrum.n, -1)[spectrum.rows]
    if not np.isfinite(Y).all():
        raise ValueError("y holds NaN or infinity; give finite numbers")
    outer = power_of_two(Y)
    Y = Y / outer
    # The mean of equal numbers may differ from them in the last digits.
    Y = np.where(np.ptp(Y, axis=0) > 0, Y - Y.mean(axis=0), 0.0)
    inner = power_of_two(Y)
    return Y / inner, outer * inner
