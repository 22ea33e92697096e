"""Random features: no bias, the laws of frequencies, and how fast the error falls.

All seeds are fixed. Each test says how likely it was to fail before they were.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from imparo.features import (
    Fastfood,
    Fourier,
    LeverageFeatures,
    Orthogonal,
    QuasiMonteCarlo,
    Sorf,
    SplineFeatures,
)
from imparo.features.drawn import DIRECTIONS, PHASES, stream
from imparo.features.structured import random_signs
from imparo.kernels import Gaussian, Laplacian, Matern, Spline

ROUND = [Gaussian(1.5), Matern(0.5, 2.0), Matern(1.5, 1.0), Matern(2.5, 0.7)]
FORMS = ("pair", "cosine")
ANY = [
    *map(Fourier, FORMS),
    *(QuasiMonteCarlo(f, s) for f in FORMS for s in ("sobol", "halton")),
]
TURNED = [rule(form) for rule in (Orthogonal, Fastfood, Sorf) for form in FORMS]
CASES = [
    *((rule, kernel) for rule in ANY for kernel in (*ROUND, Laplacian(2.0), 3 * Gaussian(1.0))),
    *((rule, kernel) for rule in TURNED for kernel in (*ROUND, 3 * Gaussian(1.0))),
    *((SplineFeatures(), kernel) for kernel in (Spline(2.5), Spline(4.0), 2 * Spline(3.0))),
    (LeverageFeatures(pool=64), Gaussian(1.5)),
    (LeverageFeatures(Fourier("cosine"), penalty=1e-3, pool=64), Laplacian(2.0)),
    (LeverageFeatures(Orthogonal(), penalty=1e-2, pool=64), Matern(1.5, 1.0)),
    (LeverageFeatures(SplineFeatures(), penalty=0.1, pool=64), Spline(4.0)),
]


def estimates(rule, kernel, X, m, seeds):
    """Return φ(x)ᵀφ(x') of pairs of rows, one row for each seed, and K(x, x')."""
    pairs = np.triu_indices(len(X), 1)
    found = []
    for seed in seeds:
        Phi = rule.draw(kernel, X.shape[1], m, seed, rows=X).transform(X)
        found.append((Phi @ Phi.T)[pairs])
    return np.array(found), kernel(X)[pairs]


# --- No bias -----------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "kernel"), CASES, ids=repr)
def test_the_mean_of_the_estimates_is_the_kernel(rule, kernel):
    # t statistics of 160 draws for ten pairs of rows: the largest exceeds 5.5 with
    # probability 10·1.5e-7, in any of the 70 cases with 1e-4.
    rng = np.random.default_rng(7)
    is_spline = isinstance(getattr(rule, "base", rule), SplineFeatures)
    X = rng.random((5, 1)) if is_spline else rng.normal(size=(5, 3))
    values, K = estimates(rule, kernel, X, 32, range(160))
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    assert (error < 0.12 * kernel.bound).all()
    # Signs alone leave the directions of SORF a little off.
    bias = 2e-3 * kernel.bound if isinstance(rule, Sorf) else 0.0
    assert (abs(values.mean(axis=0) - K) <= 5.5 * error + bias).all()


@pytest.mark.parametrize("d", [1, 2, 5, 32])
def test_structured_features_have_no_bias_in_any_direction(d):
    # Rows along an axis and along the diagonal, for which too few signs would show most:
    # the bias of SORF with 2 columns that are not padded is 0.2. Error probability 1e-5.
    X = np.stack([np.zeros(d), 2 * np.eye(d)[0], np.full(d, 2 / np.sqrt(d))])
    for rule in (Fastfood(), Sorf()):
        values, K = estimates(rule, Gaussian(1.0), X, 128, range(150))
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert (abs(values.mean(axis=0) - K) <= 5.5 * error + 2e-3).all()
        assert (error < 0.01).all()


def test_pairs_have_less_variance_than_cosines():
    # (v + ½)/m and 2v/m, v = (1 − K²)²/2, within 30 %: an F test with 400 draws each has
    # probability 1e-4 of being off by that.
    X, kernel, m = np.array([[0.0, 0.0], [0.6, 0.8]]), Gaussian(1.0), 16
    v = (1 - kernel(X)[0, 1] ** 2) ** 2 / 2
    for form, expected in (("pair", 2 * v / m), ("cosine", (v + 0.5) / m)):
        values, _ = estimates(Fourier(form), kernel, X, m, range(400))
        assert_allclose(values.var(), expected, rtol=0.3)


# --- Laws --------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*ROUND, Laplacian(2.0)], ids=repr)
def test_kernels_are_the_characteristic_functions_of_the_laws(kernel):
    law = coordinate_law(kernel)
    for r in (0.1, 0.7, 2.0, 5.0):
        value = 2 * integrate.quad(law.pdf, 0, np.inf, weight="cos", wvar=r, limlst=500)[0]
        expected = kernel(np.zeros((1, 1)), np.full((1, 1), r))[0, 0]
        assert_allclose(value, expected, atol=1e-7)


def coordinate_law(kernel):
    """Return the law of one coordinate of ω."""
    if isinstance(kernel, Laplacian):
        return stats.cauchy(scale=1 / kernel.sigma)
    if isinstance(kernel, Matern):
        return stats.t(2 * kernel.order, scale=1 / kernel.sigma)
    return stats.norm(scale=1 / kernel.sigma)


def squared_length_law(kernel, d):
    if isinstance(kernel, Matern):
        return stats.f(d, 2 * kernel.order, scale=d / kernel.sigma**2)
    return stats.chi2(d, scale=1 / kernel.sigma**2)


@pytest.mark.parametrize(
    ("rule", "kernel"),
    [
        *((rule, kernel) for rule in TURNED[::2] for kernel in ROUND),
        *((rule(), kernel) for rule in (Fourier, QuasiMonteCarlo) for kernel in ROUND),
        *((rule(), Laplacian(2.0)) for rule in (Fourier, QuasiMonteCarlo)),
    ],
    ids=repr,
)
def test_frequencies_have_the_laws_of_the_kernel(rule, kernel):
    # Kolmogorov and Smirnov at 1e-5, for each coordinate of the first frequency of a block
    # (those of one block depend on each other) and for its length; 3e-4 in all.
    d = 32 if isinstance(rule, Sorf) else 4
    if isinstance(rule, QuasiMonteCarlo):
        omega = rule.draw(kernel, d, 2048, seed=0).frequencies()
    else:
        draws = [rule.draw(kernel, d, 2, seed) for seed in range(800)]
        omega = np.concatenate([map.frequencies() for map in draws])
    for j in (0, 1, d - 1):
        assert stats.kstest(omega[:, j], coordinate_law(kernel).cdf).pvalue > 1e-5
    if not isinstance(kernel, Laplacian):
        squares = np.sum(omega**2, axis=1)
        assert stats.kstest(squares, squared_length_law(kernel, d).cdf).pvalue > 1e-5
    else:
        # Independent, not only Cauchy: signs of two coordinates, and which is the larger.
        large = abs(omega) > 1 / kernel.sigma
        table = [
            [np.sum((large[:, 0] == a) & (large[:, 1] == b)) for a in (0, 1)] for b in (0, 1)
        ]
        assert stats.chi2_contingency(table).pvalue > 1e-5


@pytest.mark.parametrize("rule", [Orthogonal(), Fastfood(), Sorf()], ids=repr)
def test_lengths_of_a_block_are_independent(rule):
    # 32 lengths of each of 40 blocks, against χ²; probability 1e-5.
    d = 32
    omega = rule.draw(Gaussian(1.0), d, 2 * 40 * d, seed=2).frequencies()
    squares = np.sum(omega**2, axis=1)
    assert stats.kstest(squares, stats.chi2(d).cdf).pvalue > 1e-5
    assert stats.spearmanr(squares[:-1], squares[1:]).pvalue > 1e-5


@pytest.mark.parametrize("rule", [Fourier("cosine"), QuasiMonteCarlo("cosine")], ids=repr)
def test_phases_are_uniform_and_independent_of_frequencies(rule):
    # Error probability 4e-5 each. First draws of many seeds, as two streams that are the same
    # soon fall out of step.
    map = rule.draw(Gaussian(1.0), 2, 2000, seed=1)
    assert stats.kstest(map.phases / (2 * np.pi), "uniform").pvalue > 1e-5
    maps = [rule.draw(Gaussian(1.0), 1, 1, seed) for seed in range(500)]
    omega, phases = (np.concatenate([getattr(m, k) for m in maps]) for k in ("omega", "phases"))
    assert stats.kstest(phases / (2 * np.pi), "uniform").pvalue > 1e-5
    assert stats.spearmanr(phases, omega[:, 0]).pvalue > 1e-5
    # NumPy makes a normal number of all but the first three bits of a uniform one.
    assert stats.spearmanr(phases % (np.pi / 4), abs(omega[:, 0])).pvalue > 1e-5


def test_streams_and_signs():
    values = {
        (purpose, block): tuple(stream(5, purpose, block).random(3))
        for purpose in (DIRECTIONS, PHASES)
        for block in (0, 1)
    }
    assert len(set(values.values())) == 4
    signs = random_signs(stream(0, 0), 10_000)
    assert stats.binomtest(int((signs == 1).sum()), 10_000).pvalue > 1e-5
    assert set(signs) == {-1, 1}


# --- How fast the error falls ------------------------------------------------------------


def squared_errors(rule, kernel, X, sizes, seeds):
    """Return squared errors, averaged over pairs of rows: one row a seed, a column a size."""
    pairs = np.triu_indices(len(X), 1)
    K = kernel(X)[pairs]
    errors = np.empty((len(seeds), len(sizes)))
    for i, seed in enumerate(seeds):
        F = rule.draw(kernel, X.shape[1], max(sizes), seed).evaluate(X)
        left, right = F[pairs[0]], F[pairs[1]]
        sums = np.cumsum(left * right, axis=1)[:, np.array(sizes) - 1]
        errors[i] = np.mean((sums / sizes - K[:, None]) ** 2, axis=0)
    return errors


def slope(errors, sizes, groups=20):
    """Return the log-log slope of the root mean square error, and its standard error.

    From groups of seeds that are independent of each other.
    """
    rms = np.log(errors.reshape(groups, -1, len(sizes)).mean(axis=1)) / 2
    x = np.log(sizes) - np.mean(np.log(sizes))
    slopes = rms @ x / (x @ x)
    return slopes.mean(), slopes.std(ddof=1) / np.sqrt(groups)


def plane(n=5, d=2):
    return np.random.default_rng(11).normal(size=(n, d))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(2.0), Matern(1.5, 1.0)], ids=repr)
def test_the_error_falls_as_one_over_the_root(form, kernel):
    # Beyond 4.5 standard errors (t with 19 degrees of freedom) with probability 2.5e-4.
    sizes = 2 ** np.arange(4, 11)
    errors = squared_errors(Fourier(form), kernel, plane(), sizes, range(200))
    mean, error = slope(errors, sizes)
    assert abs(mean + 0.5) < 4.5 * error
    assert error < 0.02


@pytest.mark.parametrize("sequence", ["sobol", "halton"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(2.0), Matern(2.5, 1.0)], ids=repr)
def test_the_error_of_sequences_falls_faster(sequence, form, kernel):
    # If it fell as 1/√m, it would seem to fall faster with probability 1e-4.
    sizes = 2 ** np.arange(4, 11)
    rule = QuasiMonteCarlo(form, sequence)
    errors = squared_errors(rule, kernel, plane(), sizes, range(60))
    mean, error = slope(errors, sizes)
    assert mean + 4.5 * error < -0.5
    plain = squared_errors(Fourier(form), kernel, plane(), sizes, range(60))
    assert errors[:, -1].mean() < plain[:, -1].mean() / 4


@pytest.mark.parametrize("rule", [Orthogonal(), Sorf()], ids=repr)
def test_orthogonal_errors_fall_faster_within_a_block(rule):
    # As above; for independent frequencies the slope is −1/2.
    d = 32
    X = np.stack([np.zeros(d), np.full(d, 1 / np.sqrt(d)), np.eye(d)[0]])
    sizes = 2 * 2 ** np.arange(0, 6)
    errors = squared_errors(rule, Gaussian(1.0), X, sizes, range(400))
    mean, error = slope(errors, sizes)
    assert mean + 4.5 * error < -0.5
    assert mean < -0.6


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(2.5, 1.0)], ids=repr)
@pytest.mark.parametrize("rule", [Orthogonal(), Sorf()], ids=repr)
def test_orthogonal_errors_are_smaller_beyond_a_block(rule, kernel):
    # Four blocks and a half. If errors had the same law, a rank test on 200 draws of each
    # would say otherwise with probability 1e-5.
    d = 32
    X = 0.7 * np.random.default_rng(1).normal(size=(6, d)) / np.sqrt(d)
    size = [2 * d * 9 // 2]
    errors = squared_errors(rule, kernel, X, size, range(200))[:, 0]
    plain = squared_errors(Fourier(), kernel, X, size, range(1000, 1200))[:, 0]
    test = stats.mannwhitneyu(errors, plain, alternative="less")
    assert test.pvalue < 1e-5
    assert errors.mean() < 0.75 * plain.mean()
