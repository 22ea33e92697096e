"""Synthetic data: what theory says of their laws holds in the rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from imparo.data.synthetic import gaussians, rkhs_function, spline
from imparo.kernels import Gaussian, Spline
from imparo.theory.spline_model import SplineModel

SAMPLES = {
    "gaussians": lambda n, rng: gaussians(n, deviations=(0.3, 1), share=0.7, rng=rng),
    "spline": lambda n, rng: spline(n, rng=rng),
    "rkhs": lambda n, rng: rkhs_function(n, 3, 10.0, rng=rng),
}
each = pytest.mark.parametrize("make", SAMPLES.values(), ids=SAMPLES)


# Samples.


@each
@settings(deadline=None, max_examples=15)
@given(size=st.integers(1, 60_000))
def test_rows_do_not_depend_on_the_size_of_blocks(make, size):
    size = max(size, 200)
    sample = make(40_000, 3)
    X, y = sample
    blocks = list(make(40_000, 3).blocks(size))
    assert all(len(part) == size for part, _ in blocks[:-1])
    np.testing.assert_array_equal(np.concatenate([part for part, _ in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([part for _, part in blocks]), y)


@each
def test_fewer_rows_are_the_first_of_more(make):
    many = make(50_000, 1)
    for n in (1000, 20_000):
        few = make(n, 1)
        np.testing.assert_array_equal(few.X, many.X[:n])
        np.testing.assert_array_equal(few.y, many.y[:n])


@each
def test_blocks_of_rows_have_no_memory_in_common(make):
    (X, y), (Z, _) = list(make(20, 1).blocks(10))
    assert X.base is None
    assert y.base is None
    assert not np.shares_memory(X, Z)


@each
def test_seeds_and_streams_give_different_rows(make):
    X = make(40_000, 0).X
    assert len(np.unique(X[:, 0])) == len(X)
    assert not np.isin(make(40_000, 1).X[:, 0], X[:, 0]).any()
    generator = np.random.default_rng(0)
    assert make(10, generator).seed != make(10, generator).seed


@each
def test_another_sample_has_the_same_law_and_other_rows(make):
    sample = make(1000, 0)
    other = sample.another(500, rng=9)
    assert other.law is sample.law
    assert other.X.shape == (500, sample.law.d)
    assert not np.isin(other.X, sample.X).any()


@each
def test_frames_hold_the_columns_and_the_target(make):
    sample = make(30, 0)
    first, second = sample.frames(20)
    assert first.columns == sample.names
    assert len(second) == 10
    both = np.concatenate([np.asarray(first, float), np.asarray(second, float)])
    np.testing.assert_array_equal(both, np.column_stack([sample.X, sample.y]))


@each
def test_outputs_scatter_about_the_function_as_much_as_the_law_says(make):
    sample = make(60_000, 0)
    residuals = sample.y - sample.law.function(sample.X)
    variance = 1 - sample.law.function(sample.X) ** 2
    if len(np.unique(sample.y)) > 2:
        variance = np.full(len(residuals), sample.bayes_error)
        assert residuals.var() == pytest.approx(sample.bayes_error, rel=0.03)
    # The mean is that of the function, also in parts of the space.
    for part in (sample.X[:, 0] > 0.2, sample.X[:, 0] < 0.6):
        error = np.sqrt(variance[part].sum()) / part.sum()
        assert abs(residuals[part].mean()) < 4 * error


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gaussians(0), "n=0"),
        (lambda: gaussians(2.5), "n=2.5"),
        (lambda: gaussians(5, share=1.0), "share=1.0"),
        (lambda: gaussians(5, deviations=(1, 2, 3)), "one or two"),
        (lambda: gaussians(5, deviations=0), "above 0"),
        (lambda: gaussians(5, means=[(0, 1), (2,)]), "two points"),
        (lambda: gaussians(5, means=[(0, np.nan), (2, 1)]), "finite"),
        (lambda: gaussians(5, rng=-1), "rng=-1"),
        (lambda: spline(5, r=0.4), "r=0.4"),
        (lambda: spline(5, gamma=0.5), "gamma=0.5"),
        (lambda: spline(5, noise=0), "noise=0"),
        (lambda: rkhs_function(5, 0, 1.0), "d=0"),
        (lambda: rkhs_function(5, 1, -1.0), "snr=-1.0"),
        (lambda: rkhs_function(5, 1, 1.0, kernel=Gaussian(1.0), sigma=2.0), "sigma"),
        (lambda: list(gaussians(5).blocks(0)), "size=0"),
    ],
    ids=range(15),
)
def test_wrong_parameters_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# Gaussians.


def test_the_classes_have_the_means_covariances_and_share_asked_for():
    sample = gaussians(
        200_000, means=[(2, -1, 0), (0, 1, 3)], deviations=(0.5, 2), share=0.2, rng=0
    )
    assert np.mean(sample.y == 1) == pytest.approx(0.2, abs=0.004)
    for label, mean, deviation in ((-1, (2, -1, 0), 0.5), (1, (0, 1, 3), 2)):
        X = sample.X[sample.y == label]
        np.testing.assert_allclose(X.mean(axis=0), mean, atol=0.04)
        np.testing.assert_allclose(np.cov(X.T), deviation**2 * np.eye(3), atol=0.08)


def test_the_defaults_are_the_example_of_the_thesis():
    sample = gaussians(10, rng=0)
    assert sample.law.means == ((-1, 0), (1, 0))
    assert sample.law.deviations == (0.6, 0.6)
    # Balanced, equal deviations: Φ(−‖μ₁ − μ₋₁‖/2σ).
    assert sample.bayes_error == pytest.approx(norm.cdf(-1 / 0.6))


@pytest.mark.parametrize("deviations", [(0.6, 0.6), (0.3, 1.0), (1.0, 0.3)], ids=str)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_bayes_error_is_the_integral_of_the_smaller_density(deviations, share):
    law = gaussians(1, means=[(1, 0), (-1, 0)], deviations=deviations, share=share).law
    densities = [
        multivariate_normal(mean, s**2) for mean, s in zip(law.means, deviations, strict=True)
    ]
    # A sum over a fine grid is exact to far more digits for such smooth tails.
    step = 0.02
    grid = np.stack(np.meshgrid(np.arange(-8, 8, step), np.arange(-7, 7, step)), axis=-1)
    smaller = np.minimum((1 - share) * densities[0].pdf(grid), share * densities[1].pdf(grid))
    assert law.bayes_error == pytest.approx(smaller.sum() * step**2, rel=2e-3)


def test_a_class_may_be_so_rare_that_the_rule_never_names_it():
    law = gaussians(1, means=[(0.0,), (0.0,)], deviations=(1.0, 1.1), share=0.999).law
    assert law.bayes_error == pytest.approx(0.001)
    assert gaussians(1, means=[(0.0,), (0.0,)], share=0.3).bayes_error == pytest.approx(0.3)


def test_probabilities_follow_from_the_densities_and_the_rules_from_them():
    law = gaussians(1, deviations=(0.3, 1), share=0.8).law
    X = np.random.default_rng(0).uniform(-2, 2, size=(5000, 2))
    first, second = (
        multivariate_normal(mean, s**2).pdf(X)
        for mean, s in zip(law.means, law.deviations, strict=True)
    )
    expected = 0.8 * second / (0.8 * second + 0.2 * first)
    np.testing.assert_allclose(law.probability(X), expected, rtol=1e-10)
    np.testing.assert_array_equal(law.rule(X), np.where(expected > 0.5, 1, -1))
    np.testing.assert_array_equal(law.rule(X, rebalanced=True), np.sign(second - first))


def test_rebalancing_does_not_depend_on_the_share():
    # The figure of section 7.3.3: the rebalanced boundary stays where it is.
    X = np.random.default_rng(0).uniform(-3, 3, size=(500, 2))
    laws = [
        gaussians(1, means=[(1, 0), (-1, 0)], deviations=(0.3, 1), share=share).law
        for share in (0.5, 0.9)
    ]
    rules = [law.rule(X, rebalanced=True) for law in laws]
    np.testing.assert_array_equal(rules[0], rules[1])
    assert np.any(laws[0].rule(X) != laws[1].rule(X))


# The spline model.


@pytest.mark.parametrize(
    ("r", "gamma", "epsilon"),
    [(0.5, 0.25, 0.01), (7 / 8, 0.25, 0.01), (11 / 16, 1 / 8, 0.01), (0.5, 0.49, 0.001),
     (0.5, 0.2, 0.5), (0.5, 0.25, 0.5), (1, 0.02, 0.01), (0.5, 0.2, 0.50001)],
    ids=range(8),
)  # fmt: skip
def test_the_function_is_the_spline_kernel_at_its_peak(r, gamma, epsilon):
    law = spline(1, r, gamma, epsilon=epsilon, x0=0.3).law
    X = np.append(np.linspace(0, 1, 201), [0.3, 0.3 + 1e-9])[:, None]
    kernel = Spline(law.order)(X, np.array([[0.3]]))[:, 0]
    np.testing.assert_allclose(law.function(X), kernel, atol=2e-9)


def test_the_model_is_that_of_the_simulation():
    law = spline(1, 7 / 8, 1 / 4, noise=0.2, x0=0.4).law
    model = SplineModel(7 / 8, 1 / 4, noise=0.2, x0=0.4)
    x, y = model.draw(4000, np.random.default_rng(0))
    assert law.order == model.order
    assert np.std(y - law.function(x[:, None])) == pytest.approx(0.2, rel=0.05)


def test_the_coefficients_of_the_function_fall_as_its_order_says():
    law = spline(1, 7 / 8, 1 / 4, x0=0.0).law
    grid = np.arange(4096) / 4096
    found = np.fft.rfft(law.function(grid[:, None])).real / 4096
    assert found[0] == pytest.approx(1)
    np.testing.assert_allclose(found[1:21], law.coefficients(20), rtol=1e-3)
    assert quad(lambda x: law.function([[x]])[0], 0, 1)[0] == pytest.approx(1, abs=1e-6)


def test_eigenvalues_of_the_kernel_at_the_rows_fall_as_the_law_says():
    sample = spline(1500, 0.5, 0.25, rng=0)
    assert sample.X.min() >= 0
    assert sample.X.max() <= 1
    spectrum = np.linalg.eigvalsh(Spline(1 / 0.25)(sample.X))[::-1] / 1500
    pairs = spectrum[1:11].reshape(5, 2).mean(axis=1)
    np.testing.assert_allclose(pairs, sample.law.eigenvalues(5), rtol=0.15)
    assert spectrum[0] == pytest.approx(1, rel=0.15)


# Functions of a kernel's space.


@pytest.mark.parametrize("snr", [0.1, 10.0, 1e4])
def test_the_snr_of_the_rows_is_the_one_asked_for(snr):
    sample = rkhs_function(600, 2, snr, rng=0)
    K = Gaussian(np.sqrt(2))(sample.X)
    # α_opt = K⁺μ and ‖f_opt‖² = αᵀKα, as in section 4.3.2, with a ridge for rounding.
    mu = sample.law.function(sample.X)
    alpha = np.linalg.solve(K + 1e-10 * np.eye(600), mu)
    measured = alpha @ K @ alpha / sample.bayes_error
    assert measured == pytest.approx(snr, rel=0.02)
    assert sample.law.snr_at(sample.X) == pytest.approx(snr, rel=0.02)
    assert sample.law.snr == pytest.approx(snr)


def test_the_norm_is_that_of_the_kernel_given():
    kernel = Gaussian(0.7)
    sample = rkhs_function(10, 4, 5.0, kernel=kernel, norm=3.0, centers=7, rng=0)
    law = sample.law
    assert law.weights @ kernel(law.centers) @ law.weights == pytest.approx(9)
    assert sample.bayes_error == pytest.approx(9 / 5)
    expected = kernel(sample.X, law.centers) @ law.weights
    np.testing.assert_allclose(law.function(sample.X), expected)


def test_few_rows_tell_a_part_of_the_function_alone():
    sample = rkhs_function(5, 8, 100.0, sigma=1.0, rng=0)
    assert sample.law.snr_at(sample.X) < 50


def test_columns_are_standard_normal_and_more_rows_keep_the_function():
    few, many = rkhs_function(10, 3, 1.0, rng=5), rkhs_function(50_000, 3, 1.0, rng=5)
    np.testing.assert_array_equal(few.law.centers, many.law.centers)
    np.testing.assert_allclose(np.cov(many.X.T), np.eye(3), atol=0.03)
    np.testing.assert_allclose(many.X.mean(axis=0), 0, atol=0.02)
