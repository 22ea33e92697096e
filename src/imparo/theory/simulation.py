"""The learning rates of random features, simulated (thesis, section 5.4)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from imparo.conditions import check_rows
from imparo.progress import track
from imparo.theory.simulation_plot import RateSimulation, theoretical_exponents
from imparo.theory.spline_model import FourierSample, SplineModel

# Eight sizes from 10³ to 10⁴, as in the thesis.
_ROWS = (1000, 1389, 1931, 2683, 3728, 5179, 7197, 10000)
# Levels of noise to choose from, and how far local exponents may be from the theory's.
_NOISES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
_NEAR = 0.05
# How much more than KRLS random features may risk.
_EXCESS = 0.05


def simulate_rates(
    r: float,
    gamma: float,
    *,
    n: Sequence[int] = _ROWS,
    repetitions: int = 20,
    noise: float | None = None,
    epsilon: float = 0.01,
    x0: float = 0.5,
    random_state: Any = 0,
    progress: bool | Callable[[int, int, str], Any] = False,
) -> RateSimulation:
    """Measure how the best excess risk, λ and the number of random features grow with n.

    For every n and repetition, KRLS is solved on a new sample and takes the λ of the least
    excess risk; with the same λ, m is the smallest number of random features whose excess
    risk, averaged over ten draws, stays within 5 % of it. The theory (theorem 11 of section
    5.3.1) has n^{−2r/(2r+γ)}, n^{−1/(2r+γ)} and n^{c/(2r+γ)}, up to constants and logarithms.

    Parameters
    ----------
    r, gamma : float
        Smoothness of the target, in [1/2, 1], and size of the space, in (0, 1/2).
    n : sequence of int
        Numbers of rows, at least two different ones.
    repetitions : int
        At least two.
    noise : float, optional
        Standard deviation of the noise. If left out, the largest of 1, 0.3, 0.1, … 0.001
        that reaches the asymptotic regime: local exponents of :meth:`SplineModel.limit`
        are within 0.05 of the theory between all neighbours in ``n``.
    epsilon : float
        The ε > 0 of the target, whose rates are those of r + γε.
    x0 : float
        Peak of the target.
    random_state : int, RandomState or None
        More repetitions keep the first ones.
    progress : bool or callable, default False
        Draw a bar, or call ``progress(done, total, description)``.

    Returns
    -------
    RateSimulation

    Notes
    -----
    The thesis prints neither noise, ε nor x₀. Of these noise matters: with r = 11/16, γ = 1/8
    and noise 1, λ is above 10⁻³, KRLS resolves two frequencies, and λ and m step from one to
    the next: local exponents of λ in the limit go from −0.5 to −0.8 between 10³ and 10⁴ rows.
    At noise 0.03, which is chosen, they are within 0.04 of −2/3. With r = 7/8, γ = 1/4 noise 1
    is small enough.

    The best λ of one sample varies much, and so do the exponents of one repetition: by 0.25
    (risk), 0.4 or 0.25 (λ) and 0.5 (m) for these two. One standard deviation is therefore a
    wide margin. Means of hundreds of repetitions agree within two standard errors, below
    0.04, in the first; in the second they are −0.84 ± 0.01, −0.51 ± 0.01 and 0.44 ± 0.02, as
    with few effective dimensions logarithms spread less the larger n is. (The mean risk
    itself falls by −0.87.) Noise 0.1 has −0.867 ± 0.008, −0.495 ± 0.008 and 0.50 ± 0.04, at
    ten times as many features.

    Cost O((n + m)k + k³) for each size and repetition, k = (10⁴/λ)^γ.

    Examples
    --------
    >>> from imparo.theory import simulate_rates
    >>> print(simulate_rates(7 / 8, 1 / 4, n=(200, 400, 800), repetitions=5))
    r = 7/8, γ = 1/4, noise 1, n = 200 to 800, 5 repetitions
    exponent of n   theory    mean      sd
    excess risk     -0.875...
    """
    for rows in n:
        check_rows(rows)
    if len(set(n)) < 2:
        raise ValueError(f"n={n!r} must have two different numbers of rows to fit a rate to")
    whole = isinstance(repetitions, int | np.integer) and not isinstance(repetitions, bool)
    if not whole or repetitions < 2:
        raise ValueError(
            f"repetitions={repetitions!r} must be a whole number from 2 on: a standard "
            "deviation needs two"
        )
    model = SplineModel(r, gamma, 1.0 if noise is None else noise, epsilon, x0)
    if noise is None:
        model = _asymptotic(model, n)
    near = [model.limit(rows)[1] for rows in n]
    seeds = check_random_state(random_state).randint(2**31 - 1, size=(repetitions, len(n)))
    found = np.empty((repetitions, len(n), 3))
    for i in track(range(repetitions), repetitions, "repetitions", progress):
        for j, rows in enumerate(n):
            rng = np.random.default_rng(seeds[i, j])
            x, y = model.draw(rows, rng)
            sample = FourierSample(model, x, y, model.degree(near[j]))
            penalty, risk = sample.best_penalty(near[j])
            m = sample.features_needed(penalty, (1 + _EXCESS) * risk, rng)
            found[i, j] = risk, penalty, m
    risks, penalties, features = np.moveaxis(found, -1, 0)
    return RateSimulation(
        r, gamma, model.noise, epsilon, x0, np.array(n), risks, penalties, features.astype(int)
    )


def _asymptotic(model: SplineModel, n: Sequence[int]) -> SplineModel:
    """Return the model with the largest noise at which the limit has the theory's exponents.

    Where none comes near enough, the one that comes nearest.
    """
    theory = theoretical_exponents(model.r, model.gamma)
    expected = np.array([theory["risk"], theory["penalty"]])
    steps = np.diff(np.log(np.unique(n)))[:, None]
    gaps = []
    for noise in _NOISES:
        candidate = replace(model, noise=noise)
        limits = np.log([candidate.limit(rows) for rows in np.unique(n)])
        gaps.append(np.abs(np.diff(limits, axis=0) / steps - expected).max())
        if gaps[-1] <= _NEAR:
            return candidate
    return replace(model, noise=_NOISES[int(np.argmin(gaps))])
