"""Dimensions and signal: exact against inverses, estimates against what they estimate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from scipy.special import zeta

from imparo.centers import approximate_leverage_scores
from imparo.errors import MemoryBudgetError
from imparo.kernels import (
    Constant,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    Spline,
)
from imparo.theory import KernelSpectrum, dimensions_of, signal_of
from imparo.theory.dimensions import EXACT_ROWS, Estimate

KERNELS = [
    Gaussian(1.0),
    Gaussian(0.05),
    Laplacian(3.0),
    Matern(1.5, 2.0),
    Linear(),
    Polynomial(2),
    Gaussian(2.0) + Linear(),
    Constant(2.0),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def scores_of(kernel, X, penalty):
    """Return the leverage scores by an inverse."""
    K = kernel(np.asarray(X, float))
    n = len(K)
    return np.diag(K @ np.linalg.inv(K + n * penalty * np.eye(n)))


def primal_scores(Phi, penalty):
    """Return the leverage scores of K = ΦΦᵀ from the d × d side, fine for every penalty."""
    A = Phi.T @ Phi + len(Phi) * penalty * np.eye(Phi.shape[1])
    return np.einsum("ij,ji->i", Phi, np.linalg.solve(A, Phi.T))


# Exact dimensions.


@every_kernel
@pytest.mark.parametrize("penalty", [1e-6, 1e-3, 1.0, 1e6])
def test_dimensions_are_those_of_the_inverse(kernel, penalty, rng):
    X = rng.normal(size=(60, 3))
    expected = scores_of(kernel, X, penalty)
    spectrum = KernelSpectrum(X, kernel)
    found = spectrum.dimensions(penalty)
    # An inverse loses as many digits as K + nλI has in its condition number.
    atol = 1e-15 * (1 + spectrum.norm / penalty)
    np.testing.assert_allclose(spectrum.leverage_scores(penalty), expected, 1e-8, atol)
    assert found.effective.value == pytest.approx(expected.sum(), rel=1e-7)
    assert found.maximal.value == pytest.approx(60 * expected.max(), rel=1e-7)
    assert found.full.value == np.linalg.matrix_rank(kernel(X), hermitian=True)
    largest = np.diag(kernel(X)).max()
    bound = kernel.bound if np.isfinite(kernel.bound) else largest
    assert found.bound == pytest.approx(bound / penalty)
    assert found == dimensions_of(X, kernel, penalty)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(KERNELS),
    st.integers(1, 25),
    st.integers(1, 3),
    st.floats(-15, 6),
    st.booleans(),
    st.integers(0, 10_000),
)
def test_dimensions_are_ordered(kernel, n, d, exponent, whole, seed):
    X = np.random.default_rng(seed).normal(size=(n, d))
    # Whole numbers repeat: the kernel matrix is then singular.
    spectrum, penalty = KernelSpectrum(np.round(X) if whole else X, kernel), 10.0**exponent
    found = spectrum.dimensions(penalty)
    effective, maximal, rank = found.effective.value, found.maximal.value, found.full.value
    slack = 1 + 1e-9
    assert 0 <= effective <= maximal * slack
    assert maximal <= found.bound * slack
    assert effective <= rank * slack
    assert maximal <= n * slack
    assert rank <= n
    # σ/(σ + λ) falls with λ, and slower than 1/λ.
    double = spectrum.effective(2 * penalty).value
    assert double <= effective * slack
    assert effective <= 2 * double * slack


@pytest.mark.parametrize("penalty", 10.0 ** np.arange(-15, 7, 3))
def test_singular_matrices_keep_their_digits(penalty, rng):
    Phi = np.repeat(rng.normal(size=(12, 4)), 5, axis=0)
    spectrum = KernelSpectrum(Phi, Linear())
    expected = primal_scores(Phi, penalty)
    np.testing.assert_allclose(spectrum.leverage_scores(penalty), expected, rtol=1e-9)
    assert spectrum.effective(penalty).value == pytest.approx(expected.sum(), rel=1e-9)
    assert spectrum.maximal(penalty).value == pytest.approx(60 * expected.max(), rel=1e-9)
    assert spectrum.full == Estimate(4.0, 4.0, 4.0, "exact")


def test_limits_of_the_penalty(rng):
    X = np.repeat(rng.normal(size=(7, 2)), 3, axis=0)
    spectrum = KernelSpectrum(X, Gaussian(1.0))
    assert spectrum.full.value == 7
    assert spectrum.effective(1e-15).value == pytest.approx(7, rel=1e-6)
    # Tr K/(nλ) with K(x, x) = 1.
    assert spectrum.effective(1e6).value == pytest.approx(1e-6, rel=1e-5)


@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("penalty", [1e-15, 0.3, 1e6])
def test_rows_that_are_equal(n, penalty):
    # K = κ²11ᵀ: one eigenvalue, and every row has the n-th part of its share.
    spectrum = KernelSpectrum(np.full((n, 2), 1.5), Linear())
    share = 4.5 / (4.5 + penalty)
    assert spectrum.full.value == 1
    assert spectrum.effective(penalty).value == pytest.approx(share)
    assert spectrum.maximal(penalty).value == pytest.approx(share)


def test_a_kernel_that_is_0_has_no_dimension():
    spectrum = KernelSpectrum(np.zeros((5, 2)), Linear())
    found = spectrum.dimensions(0.1)
    assert (found.full.value, found.effective.value, found.maximal.value) == (0, 0, 0)
    assert spectrum.decay() == 0


@pytest.mark.parametrize("q", [1.5, 2.0, 4.0])
def test_spectrum_of_the_spline_kernel(q):
    # On a grid of n points K is circulant, with Σ_j|k + jn|^{−q} for eigenvalues of K/n.
    n = 400
    spectrum = KernelSpectrum(np.arange(n)[:, None] / n, Spline(q))
    k = np.arange(1, n) / n
    expected = np.append((zeta(q, k) + zeta(q, 1 - k)) / n**q, 1 + 2 * zeta(q) / n**q)
    np.testing.assert_allclose(spectrum.values / n, np.sort(expected), rtol=1e-8, atol=1e-13)
    assert spectrum.norm == pytest.approx(expected.max())


@pytest.mark.parametrize("q", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("drawn", [False, True])
def test_decay_of_the_spline_kernel(q, drawn, rng):
    X = rng.uniform(size=600) if drawn else np.arange(600) / 600
    assert KernelSpectrum(X[:, None], Spline(q)).decay() == pytest.approx(1 / q, rel=0.2)


@pytest.mark.parametrize("gamma", [0.25, 0.5, 0.8])
def test_decay_of_powers(gamma, rng):
    # K/n with the eigenvalues k^{−1/γ}, in any basis.
    n = 500
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    X = np.sqrt(n) * Q * np.arange(1, n + 1.0) ** (-0.5 / gamma)
    assert KernelSpectrum(X, Linear()).decay() == pytest.approx(gamma, rel=0.2)


def test_decay_at_its_ends(rng):
    assert KernelSpectrum(rng.normal(size=(50, 1)), Linear()).decay() == 0
    far = KernelSpectrum(np.arange(300.0)[:, None], Gaussian(1e-3))
    # K = I, and d_eff(λ) = n/(1 + nλ).
    assert far.decay() == pytest.approx(1, abs=0.15)


# Estimates from a sample of the rows.


def _low(rng):
    return rng.normal(size=(700, 2)), Gaussian(1.0)


def _high(rng):
    return rng.normal(size=(700, 20)), Gaussian(6.0)


def _rough(rng):
    return rng.uniform(size=(700, 2)), Matern(1.5, 0.5)


SPECTRA = [_low, _high, _rough]
every_spectrum = pytest.mark.parametrize("make", SPECTRA, ids=lambda f: f.__name__)
SAMPLE, SEEDS = 150, 40


@every_spectrum
@pytest.mark.parametrize("penalty", [1e-2, 1e-3])
def test_bars_contain_the_effective_dimension(make, penalty, rng):
    X, kernel = make(rng)
    exact = scores_of(kernel, X, penalty).sum()
    samples = [
        KernelSpectrum(X, kernel, exact_rows=SAMPLE, random_state=s) for s in range(SEEDS)
    ]
    found = [sample.effective(penalty) for sample in samples]
    # The bar is two standard errors beyond both sides, so that one in twenty is a miss at
    # most: more than five in forty have a probability below 2 %; measured: none.
    assert sum(e.low <= exact <= e.high for e in found) >= SEEDS - 5
    assert all(e.low < e.value < e.high and not e.exact for e in found)
    assert np.median([e.value for e in found]) == pytest.approx(exact, rel=0.2)
    # What is inside falls short and what is left out exceeds, in expectation: were it not
    # so, a t above 3.3 would have a probability below 0.1 % for each.
    inside = np.array([sample.leverage_scores(penalty).sum() for sample in samples])
    shares = np.array([sample.leverage_scores(penalty) for sample in samples])
    outside = SAMPLE * (shares / (1 - shares)).mean(axis=1)
    assert stats.ttest_1samp(inside, exact).statistic < -3.3
    assert stats.ttest_1samp(outside, exact).statistic > 3.3
    assert all(e.low <= i <= e.value for e, i in zip(found, inside, strict=True))
    assert all(e.value <= o <= e.high for e, o in zip(found, outside, strict=True))


def test_rows_left_out_are_scored_by_the_others(rng):
    # The upper estimate is a mean of ⟨K_x, (C + λI)⁻¹K_x⟩, C of the other rows of the
    # sample over its size s; Woodbury's identity gives it by K of those rows alone.
    X, kernel, penalty, s = rng.normal(size=(90, 2)), Gaussian(1.0), 0.01, 30
    spectrum = KernelSpectrum(X, kernel, exact_rows=s, random_state=0)
    K = kernel(X[spectrum.rows])
    values = []
    for i in range(s):
        rest = np.delete(np.arange(s), i)
        inner = np.linalg.inv(K[np.ix_(rest, rest)] + s * penalty * np.eye(s - 1))
        values.append((K[i, i] - K[i, rest] @ inner @ K[rest, i]) / penalty)
    found = spectrum.effective(penalty)
    outside, error = np.mean(values), 2 * np.std(values) / np.sqrt(s)
    assert found.high == pytest.approx(outside + error)
    inside = s * spectrum.leverage_scores(penalty)
    below = 2 * np.std(inside) / np.sqrt(s)
    assert found.low == pytest.approx(inside.mean() - below)
    assert found.value == pytest.approx(np.sqrt(inside.mean() * outside))


def test_estimates_say_what_they_are_from(rng):
    X, kernel = _low(rng)
    whole, part = (dimensions_of(X, kernel, 1e-2, exact_rows=s) for s in (700, 150))
    for name in ("full", "effective", "maximal"):
        exact, estimate = getattr(whole, name), getattr(part, name)
        assert exact.exact
        assert exact.low == exact.value == exact.high
        assert "(exact)" in str(exact)
        assert not estimate.exact
        assert estimate.low <= estimate.value <= estimate.high
        assert "150 of 700 rows" in estimate.source
        assert "150 of 700 rows" in str(estimate)
    assert float(whole.effective) == whole.effective.value
    assert whole.full.value >= part.full.value
    lines = str(part).splitlines()
    assert len(lines) == 5
    assert "150 of 700" in lines[2]


def test_a_sample_is_drawn_from_its_seed(rng):
    X, kernel = _low(rng)
    rows = [KernelSpectrum(X, kernel, exact_rows=50, random_state=s).rows for s in (0, 0, 1)]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert (rows[0] != rows[2]).any()
    assert len(np.unique(rows[0])) == 50
    np.testing.assert_array_equal(KernelSpectrum(X, kernel).rows, np.arange(700))
    assert KernelSpectrum(X, kernel).exact
    assert len(X) <= EXACT_ROWS


@every_spectrum
def test_scores_from_a_pilot_are_within_a_factor_of_two(make, rng):
    X, kernel = make(rng)
    penalty = 0.05
    exact = scores_of(kernel, X, penalty)
    pilot = int(np.ceil(5 * len(X) * exact.max()))
    assert pilot < len(X) / 2
    within = 0
    for seed in range(20):
        rows = np.random.default_rng(seed).choice(len(X), pilot, replace=False)
        ratio = approximate_leverage_scores(kernel, X, penalty, rows) / exact
        within += 0.5 <= ratio.min() <= ratio.max() <= 2
    # Bernstein's inequality leaves a few in a hundred at 5·max n·l_i; measured: none.
    assert within >= 19


@every_spectrum
def test_maximal_dimension_is_within_a_factor_of_two(make, rng):
    X, kernel = make(rng)
    penalty = 0.05
    exact = len(X) * scores_of(kernel, X, penalty).max()
    size = int(np.ceil(5 * exact))
    for seed in range(5):
        spectrum = KernelSpectrum(X, kernel, exact_rows=size, random_state=seed)
        found = spectrum.maximal(penalty)
        assert exact / 2 <= found.value <= 2 * exact
        scores = approximate_leverage_scores(kernel, X, penalty, spectrum.rows)
        rest = np.setdiff1d(np.arange(len(X)), spectrum.rows)
        assert found.value == pytest.approx(len(X) * scores[rest].max())
        assert found.value <= min(len(X), kernel.bound / penalty)
        assert "largest of" in found.source


def test_the_bound_is_above_rows_outside_the_sample(rng):
    X = rng.normal(size=(400, 2))
    X[:4] *= 100
    exact = len(X) * primal_scores(X, 1.0).max()
    for seed in range(5):
        found = dimensions_of(X, Linear(), 1.0, exact_rows=40, random_state=seed)
        assert found.bound == pytest.approx(np.square(X).sum(axis=1).max())
        assert found.bound >= exact


def test_curve_holds_the_estimates(rng):
    X, kernel = _low(rng)
    spectrum, grid = (
        KernelSpectrum(X, kernel, exact_rows=80, random_state=0),
        np.geomspace(1, 1e-4, 5),
    )
    curve = spectrum.curve(grid)
    for i, penalty in enumerate(grid):
        found = spectrum.effective(penalty)
        row = (curve.penalties[i], curve.low[i], curve.effective[i], curve.high[i])
        assert row == (penalty, found.low, found.value, found.high)
    assert (np.diff(curve.effective) > 0).all()
    assert (curve.low <= curve.effective).all()


@pytest.mark.parametrize("exact_rows", [EXACT_ROWS, 60])
def test_sparse_and_single_precision_rows(exact_rows, rng):
    X = rng.normal(size=(150, 4)) * (rng.uniform(size=(150, 4)) < 0.5)
    X = X.astype(np.float32)
    given = {"exact_rows": exact_rows, "random_state": 0}
    expected = dimensions_of(X.astype(float), Gaussian(1.0), 1e-2, **given)
    for rows in (X, sparse.csr_matrix(X), sparse.csr_array(X)):
        found = dimensions_of(rows, Gaussian(1.0), 1e-2, **given)
        assert found.effective.value == pytest.approx(expected.effective.value, rel=1e-6)
        assert found.maximal.value == pytest.approx(expected.maximal.value, rel=1e-3)


@pytest.mark.parametrize("penalty", [0, -1.0, np.nan, np.inf, "auto", None, True])
def test_penalties_that_are_none(penalty, rng):
    X = rng.normal(size=(10, 2))
    for ask in (KernelSpectrum.dimensions, KernelSpectrum.effective, KernelSpectrum.maximal):
        with pytest.raises(ValueError, match=r"penalty=.* must be a positive, finite number"):
            ask(KernelSpectrum(X, Gaussian(1.0)), penalty)


@pytest.mark.parametrize("exact_rows", [0, -3, 2.5, "all", None])
def test_samples_that_are_none(exact_rows, rng):
    with pytest.raises(ValueError, match=r"exact_rows=.* must be a whole number above 0"):
        KernelSpectrum(rng.normal(size=(10, 2)), Gaussian(1.0), exact_rows=exact_rows)


def test_rows_and_kernels_without_a_spectrum(rng):
    X = rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match=r"the width of .* is not set"):
        KernelSpectrum(X, Gaussian())
    with pytest.raises(ValueError, match="not a precomputed matrix"):
        KernelSpectrum(X @ X.T, Precomputed())
    with pytest.raises(ValueError, match="there are no rows"):
        KernelSpectrum(X[:0], Gaussian(1.0))
    with pytest.raises(MemoryBudgetError, match="lower exact_rows or raise memory"):
        KernelSpectrum(X, Gaussian(1.0), memory=1000)
    X[3, 1] = np.nan
    for kernel in (Gaussian(1.0), Linear()):
        with pytest.raises(ValueError, match="NaN or infinity"):
            KernelSpectrum(X, kernel)


# Signal and noise.


def gcv(K, y, penalty):
    """Return the error of a fit with a free intercept, and Tr(I − H), by a bordered matrix."""
    n = len(K)
    A = np.block([[K + n * penalty * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), 0]])
    # The coefficients are (I − H)y/(nλ).
    left = n * penalty * np.linalg.inv(A)[:n, :n]
    return n * np.square(left @ y).sum() / np.trace(left) ** 2


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(1.5, 2.0), Linear(), Polynomial(2)],
                         ids=repr)  # fmt: skip
def test_penalty_has_the_smallest_gcv_error(kernel, rng):
    X = 2 + rng.normal(size=(120, 2))
    y = X[:, 0] + 0.2 * X[:, 1] ** 2 + 0.5 * rng.normal(size=120)
    found, K = signal_of(KernelSpectrum(X, kernel), y), kernel(X)
    assert gcv(K, y, found.penalty.value) == pytest.approx(found.error**2, rel=1e-5)
    top = np.diag(K).max() if not np.isfinite(kernel.bound) else kernel.bound
    others = [gcv(K, y, penalty) for penalty in top * np.geomspace(1, 1e-8, 50)]
    assert found.error**2 <= 1.005 * min(others)


def _drawn(kernel, X, rng, noise):
    """Return outputs of a function of the space with noise, and its squared norm."""
    centers, coef = X[:6], rng.normal(size=6)
    norm = coef @ kernel(centers) @ coef
    return kernel(X, centers) @ coef + noise * rng.normal(size=len(X)), norm


@pytest.mark.parametrize("noise", [0.1, 0.4])
@pytest.mark.parametrize(
    ("kernel", "low", "d"),
    [(Gaussian(2.0), -2, 3), (Matern(1.5, 1.0), -2, 2), (Spline(2.0), 0, 1)],
)
def test_noise_and_norm_of_a_known_function(kernel, low, d, noise, rng):
    X = rng.uniform(low, 2 if low else 1, size=(600, d))
    spectrum, noises, norms = KernelSpectrum(X, kernel), [], []
    for _ in range(20):
        y, norm = _drawn(kernel, X, rng, noise)
        found = signal_of(spectrum, y)
        noises.append(found.noise.value / noise**2)
        norms.append(found.norm.value / norm)
        assert found.snr.value == pytest.approx(found.norm.value / found.noise.value)
        assert found.safe_penalty == pytest.approx(1 / (600 * found.snr.value))
        assert found.explained == pytest.approx(1 - found.noise.value / y.var(), abs=0.01)
        assert found.penalty.low <= found.penalty.value <= found.penalty.high
    # The relative standard error is √(2/600) = 6 %, and a fit leaves signals of up to 5 % of
    # the noise: 15 % are exceeded by one in twenty, and by five with a probability of 0.3 %.
    assert np.sum(np.abs(np.array(noises) - 1) > 0.15) <= 4
    assert np.mean(noises) == pytest.approx(1, abs=0.1)
    assert 0.5 <= np.median(norms) <= 2


@pytest.mark.parametrize("noise", [0.1, 0.4])
def test_the_bar_contains_the_noise(noise, rng):
    X, kernel, inside = rng.uniform(-2, 2, size=(400, 2)), Gaussian(2.0), 0
    spectrum = KernelSpectrum(X, kernel)
    for _ in range(40):
        found = signal_of(spectrum, _drawn(kernel, X, rng, noise)[0]).noise
        inside += found.low <= noise**2 <= found.high
    # Two standard errors miss one in twenty: seven or more in forty with a probability
    # below 0.4 %. A bar of one, which misses a third, passes with one below 2 %.
    assert inside >= 34


def test_a_linear_function_far_from_the_origin(rng):
    # The constant is no function of this space: without an intercept all but a tenth of y
    # would be taken for noise.
    X = 5 + rng.normal(size=(400, 2))
    y = 100 + X @ [1.0, 2.0] + 0.1 * rng.normal(size=400)
    found = signal_of(KernelSpectrum(X, Linear()), y)
    # Four standard errors of 7 %.
    assert found.noise.value == pytest.approx(0.01, rel=0.28)
    assert found.norm.value == pytest.approx(5, rel=0.1)
    assert found.explained > 0.99


@pytest.mark.parametrize("constant", [0.0, 0.1, -7.7, 1e10 / 3])
def test_constant_outputs(constant, rng):
    spectrum = KernelSpectrum(rng.normal(size=(300, 2)), Gaussian(1.0))
    found = signal_of(spectrum, np.full(300, constant))
    assert (found.noise.value, found.norm.value, found.explained) == (0, 0, 0)
    assert "constant" in found.noise.source
    assert 0 < found.penalty.value < np.inf


def test_pure_noise(rng):
    spectrum = KernelSpectrum(rng.normal(size=(500, 3)), Gaussian(2.0))
    explained, noises = [], []
    for _ in range(10):
        found = signal_of(spectrum, 3 * rng.normal(size=500))
        explained.append(found.explained)
        noises.append(found.noise.value / 9)
    assert np.median(explained) < 0.02
    assert max(explained) < 0.1
    # Five standard errors of √(2/500).
    assert np.abs(np.array(noises) - 1).max() < 0.32


def test_a_kernel_that_is_0_explains_nothing(rng):
    y = rng.normal(size=40)
    found = signal_of(KernelSpectrum(np.zeros((40, 2)), Linear()), y)
    assert found.noise.value == pytest.approx(y.var(ddof=1), rel=1e-6)
    assert (found.norm.value, found.explained) == (0, 0)
    assert 0 < found.penalty.value < np.inf


def _wave(rng, n=200):
    X = rng.uniform(-3, 3, size=(n, 1))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)


def _same(found, expected, factor=1.0):
    assert found.noise.value == pytest.approx(factor**2 * expected.noise.value, rel=1e-6)
    assert found.norm.value == pytest.approx(factor**2 * expected.norm.value, rel=1e-4)
    assert found.error == pytest.approx(abs(factor) * expected.error, rel=1e-6)
    _same_ratios(found, expected)


def _same_ratios(found, expected):
    assert found.penalty.value == pytest.approx(expected.penalty.value)
    assert found.snr.value == pytest.approx(expected.snr.value, rel=1e-4)
    assert found.explained == pytest.approx(expected.explained, rel=1e-6)


@pytest.mark.parametrize("factor", [1e-3, -7.0, 1e6])
def test_outputs_in_another_unit(factor, rng):
    X, y = _wave(rng)
    spectrum = KernelSpectrum(X, Gaussian(1.0))
    _same(signal_of(spectrum, factor * y), signal_of(spectrum, y), factor)


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_outputs_whose_squares_leave_the_range(factor, rng):
    X, y = _wave(rng)
    spectrum = KernelSpectrum(X, Gaussian(1.0))
    _same_ratios(signal_of(spectrum, factor * y), signal_of(spectrum, y))


@pytest.mark.parametrize("constant", [3.0, -1e4])
def test_outputs_with_a_constant(constant, rng):
    X, y = _wave(rng)
    spectrum = KernelSpectrum(X, Gaussian(1.0))
    _same(signal_of(spectrum, y + constant), signal_of(spectrum, y))


def test_many_outputs_add_up(rng):
    X, y = _wave(rng)
    spectrum = KernelSpectrum(X, Gaussian(1.0))
    one = signal_of(spectrum, y)
    _same(signal_of(spectrum, y[:, None]), one)
    # Twice the same output, or one that is split over a rotated basis.
    _same(signal_of(spectrum, np.column_stack([y, y])), one, np.sqrt(2))
    _same(signal_of(spectrum, np.column_stack([0.6 * y, -0.8 * y])), one)


def test_the_penalty_of_a_sample_is_brought_to_all_rows(rng):
    X, y = _wave(rng, 800)
    kernel = Matern(1.5, 1.0)
    part = KernelSpectrum(X, kernel, exact_rows=200, random_state=0)
    alone = KernelSpectrum(X[part.rows], kernel)
    found, expected = signal_of(part, y), signal_of(alone, y[part.rows])
    # λ* falls as n^{−1/(1 + γ)}.
    shrink = (200 / 800) ** (1 / (1 + alone.decay()))
    assert found.penalty.value == pytest.approx(shrink * expected.penalty.value)
    assert found.noise.value == pytest.approx(expected.noise.value)
    assert found.safe_penalty == pytest.approx(expected.safe_penalty / 4)
    assert "200 of 800 rows" in found.noise.source
    assert "all rows" in expected.noise.source


def test_outputs_that_are_none(rng):
    spectrum = KernelSpectrum(rng.normal(size=(20, 2)), Gaussian(1.0))
    with pytest.raises(ValueError, match=r"y has shape \(9,\) and there are 20 rows"):
        signal_of(spectrum, np.zeros(9))
    y = np.zeros(20)
    y[4] = np.nan
    with pytest.raises(ValueError, match="y holds NaN or infinity"):
        signal_of(spectrum, y)
