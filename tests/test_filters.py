"""Filters: closed forms, orthogonal polynomials and Krylov spaces are the references."""

import pickle
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.special import eval_jacobi

import imparo
from imparo.filters import (
    ConjugateGradient,
    CutOff,
    Landweber,
    NuMethod,
    Tikhonov,
    as_filter,
)
from imparo.filters.base import collect

SCALE = 2.0
SIGMA = np.array([0.0, 1e-6, 0.01, 0.3, 0.3, 1.0, 1.7, SCALE])
STEPS = [1, 2, 3, 7, 20]
LEVELS = {"penalty": [1e-3, 0.3, 5.0], "components": [0, 1, 3, 8], "iterations": STEPS}

DIRECT = [Tikhonov(), CutOff(), CutOff(by="components")]
STEPPING = [Landweber(), Landweber(step=0.3), Landweber(step=0.9)]
STEPPING += [NuMethod(0.5), NuMethod(1.0), NuMethod(2.0)]
LINEAR = [*DIRECT, *STEPPING]
ITERATIVE = [*STEPPING, ConjugateGradient()]
ALL = [*DIRECT, *ITERATIVE]

seeds = st.integers(0, 2**32 - 1)
often = settings(max_examples=30, deadline=None)


def per_filter(filters):
    return pytest.mark.parametrize("filter", filters, ids=repr)


def matrix(sigma, seed=0):
    """Return a random symmetric matrix with these eigenvalues, and its eigenvectors."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(len(sigma), len(sigma))))[0]
    K = (Q * sigma) @ Q.T
    return (K + K.T) / 2, Q


def outputs(n, seed=0, columns=1):
    return np.random.default_rng(seed + 100).normal(size=(n, columns))


def iterate(filter, M, y, steps, **options):
    """Return copies of the first iterates, shape (steps, n, T)."""
    return np.array([a.copy() for a in islice(filter.iterates(M, y, **options), steps)])


def gaussian(n, width, seed=0):
    x = np.random.default_rng(seed).uniform(size=(n, 1))
    return np.exp(-((x - x.T) ** 2) / (2 * width**2))


# Every filter: matrices, spectra, limits.


@per_filter(STEPPING)
@pytest.mark.parametrize("seed", range(3))
def test_iterates_are_the_filter_on_the_spectrum(filter, seed):
    K, Q = matrix(SIGMA, seed)
    y = outputs(len(K), seed, columns=2)
    found = collect(filter.iterates(K, y, SCALE), STEPS)
    g = filter.g(SIGMA, STEPS, SCALE)
    for solution, column in zip(found, g.T, strict=True):
        assert_allclose(solution, Q @ (column[:, None] * (Q.T @ y)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_cg_iterates_are_its_filter_for_this_output(seed):
    sigma = np.linspace(0.2, SCALE, 8)
    K, Q = matrix(sigma, seed)
    y = outputs(8, seed)
    components = (Q.T @ y)[:, 0]
    g = ConjugateGradient().g(sigma, [1, 2, 4], y=components)
    for solution, column in zip(
        iterate(ConjugateGradient(), K, y, 4)[[0, 1, 3]], g.T, strict=True
    ):
        assert_allclose(solution[:, 0], Q @ (column * components), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("ridge", LEVELS["penalty"])
def test_tikhonov_solves_the_shifted_system(ridge):
    K, Q = matrix(SIGMA)
    y = outputs(len(K))
    found = Q @ (Tikhonov().g(SIGMA, ridge) * (Q.T @ y))
    assert_allclose(found, np.linalg.solve(K + ridge * np.eye(len(K)), y), rtol=1e-9)
    assert_allclose(Tikhonov().g(SIGMA, ridge)[:, 0], 1 / (SIGMA + ridge), rtol=1e-15)


@pytest.mark.parametrize(
    ("filter", "level", "kept"),
    [
        (CutOff(), 0.2, 5),
        (CutOff(), 1.2, 2),
        (CutOff(), 9.0, 0),
        (CutOff(by="components"), 2, 2),
        (CutOff(by="components"), 5, 5),
        (CutOff(by="components"), 0, 0),
    ],
)
def test_cutoff_is_the_truncated_pseudoinverse(filter, level, kept):
    K, Q = matrix(SIGMA)
    y = outputs(len(K))
    order = np.random.default_rng(0).permutation(len(SIGMA))
    found = Q[:, order] @ (filter.g(SIGMA[order], level) * (Q[:, order].T @ y))
    # The singular values above and below the cut, halfway between them.
    cut = [3.0, 1.85, 1.35, 0.65, np.nan, 0.15][kept] / SCALE
    assert_allclose(found, np.linalg.pinv(K, rcond=cut, hermitian=True) @ y, atol=1e-12)


def test_cutoff_keeps_ties_by_penalty_and_counts_them_by_components():
    sigma = np.array([2.0, 1.0, 1.0, 0.5])
    assert_array_equal(CutOff().g(sigma, 1.0)[:, 0], [0.5, 1, 1, 0])
    assert_array_equal(CutOff(by="components").g(sigma, 2)[:, 0], [0.5, 1, 0, 0])
    assert_array_equal(CutOff().g(np.array([2.0, 0.0]), 0.0)[:, 0], [0.5, 0])


@per_filter(ALL)
def test_residual_is_one_minus_sigma_g(filter):
    levels = LEVELS[filter.parameter]
    g = filter.g(SIGMA, levels, SCALE)
    residual = filter.residual(SIGMA, levels, SCALE)
    assert g.shape == residual.shape == (len(SIGMA), len(levels))
    assert_allclose(residual, 1 - SIGMA[:, None] * g, rtol=1e-12, atol=1e-12)
    assert_array_equal(residual[0], 1)
    assert np.isfinite(g).all()


@per_filter(LINEAR)
@given(seed=seeds)
@often
def test_linear_filters_never_amplify_a_residual(filter, seed):
    sigma = np.random.default_rng(seed).uniform(0, SCALE, 20)
    residual = filter.residual(sigma, LEVELS[filter.parameter], SCALE)
    assert (np.abs(residual) <= 1 + 1e-12).all()


@per_filter(ALL)
def test_one_level_is_a_column_of_many(filter):
    levels = LEVELS[filter.parameter]
    many = filter.g(SIGMA, levels, SCALE)
    for i, level in enumerate(levels):
        assert_array_equal(filter.g(SIGMA, level, SCALE), many[:, [i]])
    assert_array_equal(filter.g(SIGMA, levels[::-1], SCALE), many[:, ::-1])


@per_filter(ALL)
def test_parameter_and_linearity(filter):
    expected = {Tikhonov: "penalty", CutOff: getattr(filter, "by", None)}
    assert filter.parameter == expected.get(type(filter), "iterations")
    assert filter.linear == (not isinstance(filter, ConjugateGradient))


@pytest.mark.parametrize(
    ("filter", "level", "tolerance"),
    [
        (Tikhonov(), 1e-14, 1e-10),
        (Tikhonov(), 0.0, 1e-15),
        (CutOff(), 1e-9, 1e-15),
        (CutOff(by="components"), 4, 1e-15),
        (Landweber(), 4000, 1e-10),
        (Landweber(step=0.9), 4000, 1e-10),
        (NuMethod(0.5), 20000, 1e-3),
        (NuMethod(1.0), 20000, 1e-6),
        (NuMethod(2.0), 20000, 1e-9),
        (ConjugateGradient(), 4, 1e-10),
    ],
    ids=repr,
)
def test_without_regularization_the_filter_is_the_inverse(filter, level, tolerance):
    sigma = np.array([0.02, 0.3, 1.1, SCALE])
    assert_allclose(filter.g(sigma, level, SCALE)[:, 0], 1 / sigma, rtol=tolerance)


@pytest.mark.parametrize(
    ("filter", "steps", "rank"),
    [
        (Landweber(), 600, 12),
        (Landweber(), 600, 8),
        (NuMethod(2.0), 3000, 12),
        (NuMethod(2.0), 3000, 8),
        # Slower: what rounding leaves off the range of K would show by then.
        (NuMethod(1.0), 30000, 12),
    ],
    ids=repr,
)
def test_many_steps_give_ordinary_least_squares(filter, steps, rank):
    K, _ = matrix(np.r_[np.zeros(12 - rank), np.linspace(0.1, 1, rank)])
    # In the range of K: off it the coefficients grow without end and fit nothing.
    y = K @ outputs(12)
    found = collect(filter.iterates(K, y), steps)[0]
    assert_allclose(found, np.linalg.pinv(K, rcond=1e-10) @ y, rtol=0, atol=1e-8)


# Landweber.


@pytest.mark.parametrize("step", [None, 0.3, 0.95])
def test_landweber_is_the_sum_of_powers(step):
    sigma = np.array([0.0, 1e-16, 1e-13, 1e-8, 1e-3, 0.4, 1.0, 1.9, SCALE])
    eta = step or 1 / SCALE
    steps = [1, 2, 10, 500]
    powers = (1 - eta * sigma[:, None].astype(np.longdouble)) ** np.arange(500)
    expected = eta * np.cumsum(powers, axis=1)[:, [t - 1 for t in steps]]
    found = Landweber(step).g(sigma, steps, SCALE)
    assert_allclose(found, expected.astype(float), rtol=1e-12)
    assert_array_equal(found[0], eta * np.array(steps))


def test_landweber_is_gradient_descent_on_the_empirical_error():
    rng = np.random.default_rng(0)
    Phi, y = rng.normal(size=(20, 4)), rng.normal(size=(20, 1))
    w, eta = np.zeros((4, 1)), 0.01
    steps = Landweber(eta).iterates(Phi.T @ Phi, Phi.T @ y)
    for iterate in islice(steps, 15):
        w = w - eta * Phi.T @ (Phi @ w - y)
        assert_allclose(iterate, w, rtol=1e-12)


@pytest.mark.parametrize("step", [0.5, 0.75, 100.0])
def test_landweber_step_too_large_names_the_limit(step):
    K, y = np.diag([4.0, 1.0]), np.ones((2, 1))
    sentence = r"must be below 2/4 = 0\.5"
    with pytest.raises(ValueError, match=sentence):
        Landweber(step).g(np.array([1.0, 4.0]), 3)
    with pytest.raises(ValueError, match=sentence):
        Landweber(step).residual(np.array([1.0]), 3, 4.0)
    with pytest.raises(ValueError, match=sentence):
        next(Landweber(step).iterates(K, y))
    below = collect(Landweber(0.499).iterates(K, y), 20_000)[0]
    assert_allclose(below[:, 0], [0.25, 1.0], rtol=1e-9)


# The ν-method.


@pytest.mark.parametrize("nu", [0.5, 1.0, 2.0, 3.7])
def test_nu_first_polynomial_by_hand(nu):
    x = SIGMA / SCALE
    first = (4 * nu + 2) / (4 * nu + 1)
    assert_allclose(NuMethod(nu).g(SIGMA, 1, SCALE)[:, 0], first / SCALE, rtol=1e-15)
    residual = NuMethod(nu).residual(SIGMA, 1, SCALE)[:, 0]
    assert_allclose(residual, 1 - first * x, rtol=1e-13, atol=1e-15)


def test_nu_second_and_third_polynomial_by_hand():
    # ν = 1: u_2 = 5/63, ω_2 = 40/21; u_3 = 7/30, ω_3 = 7/3.
    x = SIGMA / SCALE
    one = 1 - 6 * x / 5
    two = 1 - 16 * x / 5 + 16 * x**2 / 7
    three = two + 7 / 30 * (two - one) - 7 / 3 * x * two
    residual = NuMethod(1.0).residual(SIGMA, [2, 3], SCALE)
    assert_allclose(residual, np.stack([two, three], axis=1), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("nu", [0.5, 1.0, 2.0])
def test_nu_residuals_are_jacobi_polynomials(nu):
    # Engl, Hanke & Neubauer, section 6.3: weight x^(2ν − 1/2) (1 − x)^(−1/2) on [0, 1].
    sigma, steps = np.linspace(0, SCALE, 41), np.arange(1, 41)
    alpha, beta = 2 * nu - 0.5, -0.5
    x = 1 - 2 * sigma[:, None] / SCALE
    jacobi = eval_jacobi(steps, alpha, beta, x) / eval_jacobi(steps, alpha, beta, 1.0)
    residual = NuMethod(nu).residual(sigma, steps, SCALE)
    assert_allclose(residual, jacobi, rtol=1e-9, atol=1e-12)


def steps_until(filter, sigma, most):
    """Return the number of steps that bring the residual at σ below 1/e, scale 1."""
    residual = filter.residual(np.array([sigma]), np.arange(1, most), 1.0)[0]
    return 1 + int(np.argmax(residual <= np.exp(-1)))


@pytest.mark.parametrize("nu", [0.5, 1.0, 2.0])
def test_nu_needs_the_root_of_the_iterations_of_landweber(nu):
    assert steps_until(Landweber(), 1e-2, 200) == 100
    assert steps_until(Landweber(), 1e-4, 20_000) == 10_000
    few, more = (steps_until(NuMethod(nu), sigma, 400) for sigma in (1e-2, 1e-4))
    # σ a hundred times smaller: ten times as many, where Landweber needs a hundred.
    assert 50 < more < 250
    assert 8 < more / few < 12


# Conjugate gradient.


@pytest.mark.parametrize("distinct", [[1.0], [0.5, 2.0], [0.2, 0.9, 1.3, 4.0]])
def test_cg_ends_after_as_many_steps_as_distinct_eigenvalues(distinct):
    K, _ = matrix(np.repeat(distinct, 3))
    y = outputs(len(K))
    found = iterate(ConjugateGradient(), K, y, len(distinct) + 3)
    errors = np.linalg.norm(K @ found - y, axis=(1, 2)) / np.linalg.norm(y)
    assert (errors[: len(distinct) - 1] > 1e-3).all()
    assert (errors[len(distinct) - 1 :] < 1e-12).all()


def krylov_minimizer(K, y, t):
    """Return the α of span{y, …, K^(t−1)y} that minimises ‖y − Kα‖."""
    basis = y / np.linalg.norm(y)
    for _ in range(t - 1):
        new = K @ basis[:, -1:]
        for _ in range(2):
            new = new - basis @ (basis.T @ new)
        basis = np.hstack([basis, new / np.linalg.norm(new)])
    return basis @ np.linalg.lstsq(K @ basis, y, rcond=None)[0]


@given(seed=seeds)
@often
def test_cg_is_best_in_the_krylov_space(seed):
    K, _ = matrix(np.linspace(0.1, 1, 12), seed % 1000)
    y = outputs(12, seed % 1000)
    for t, found in enumerate(iterate(ConjugateGradient(), K, y, 6), start=1):
        assert_allclose(found, krylov_minimizer(K, y, t), rtol=1e-6, atol=1e-7)


def test_cg_error_never_rises_and_is_below_every_linear_method():
    K, y = gaussian(50, 0.2) + 1e-3 * np.eye(50), outputs(50)
    cg, landweber, nu = (
        np.linalg.norm(y - K @ iterate(filter, K, y, 20), axis=(1, 2))
        for filter in (ConjugateGradient(), Landweber(), NuMethod())
    )
    assert (np.diff(cg) <= 1e-12).all()
    assert (cg <= landweber + 1e-12).all()
    assert (cg <= nu + 1e-12).all()


@pytest.mark.parametrize("shape", [(30, 6), (6, 30), (10, 10)])
def test_cg_primal_and_dual_are_the_same_functions(shape):
    rng = np.random.default_rng(1)
    Phi, y = rng.normal(size=shape), rng.normal(size=(shape[0], 2))
    primal = iterate(ConjugateGradient(), Phi.T @ Phi, Phi.T @ y, 5, primal=True)
    dual = iterate(ConjugateGradient(), Phi @ Phi.T, y, 5)
    for w, alpha in zip(primal, dual, strict=True):
        assert_allclose(Phi @ w, Phi @ (Phi.T @ alpha), rtol=1e-7, atol=1e-7)
        assert_allclose(w, Phi.T @ alpha, rtol=1e-7, atol=1e-7)


def test_cg_primal_reaches_least_squares_and_stays():
    rng = np.random.default_rng(2)
    Phi, y = rng.normal(size=(40, 8)), rng.normal(size=(40, 2))
    found = iterate(ConjugateGradient(), Phi.T @ Phi, Phi.T @ y, 200, primal=True)
    expected = np.linalg.lstsq(Phi, y, rcond=None)[0]
    for w in found[9:]:
        assert_allclose(w, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 1e-4)])
def test_cg_solves_a_consistent_system_to_rounding(dtype, tolerance):
    for seed in range(10):
        K, _ = matrix(np.r_[np.zeros(5), np.logspace(-1, 0, 15)], seed)
        K = K.astype(dtype)
        y = K @ outputs(20, seed).astype(dtype)
        found = iterate(ConjugateGradient(), K, y, 200)
        errors = np.linalg.norm(K @ found - y, axis=(1, 2)) / np.linalg.norm(y)
        assert (errors[30:] < tolerance).all()


def inconsistent(rank, n, dtype, seed):
    """Return a singular K, y off its range, and the least-squares fit of y."""
    K, Q = matrix(np.r_[np.zeros(n - rank), np.logspace(-1, 0, rank)], seed)
    y = outputs(n, seed)
    range_of_K = Q[:, n - rank :]
    return K.astype(dtype), y.astype(dtype), range_of_K @ (range_of_K.T @ y)


SINGULAR = [(5, 20), (20, 50), (10, 200)]
# The energy ρᵀKρ of a residual off the range has rounding errors of ε, so that its
# size cannot be known better than to √ε.
DTYPES = [(np.float64, 1e-6), (np.float32, 2e-2)]


@pytest.mark.parametrize(("rank", "n"), SINGULAR)
@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_cg_reaches_the_least_squares_fit_of_an_inconsistent_system(rank, n, dtype, tolerance):
    for seed in range(10):
        K, y, fit = inconsistent(rank, n, dtype, seed)
        found = iterate(ConjugateGradient(), K, y, rank + 2)
        errors = np.linalg.norm(K @ found - fit, axis=(1, 2))
        assert errors.min() < tolerance * np.linalg.norm(fit)


@pytest.mark.parametrize(("rank", "n"), SINGULAR)
@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_cg_stays_at_the_least_squares_fit_of_an_inconsistent_system(rank, n, dtype, tolerance):
    for seed in range(10):
        K, y, fit = inconsistent(rank, n, dtype, seed)
        found = iterate(ConjugateGradient(), K, y, 200)
        assert np.isfinite(found).all()
        errors = np.linalg.norm(K @ found - fit, axis=(1, 2))[rank + 10 :]
        assert (errors < tolerance * np.linalg.norm(fit)).all()
        assert_array_equal(found[-1], found[-50])


def test_cg_on_repeated_rows_with_different_outputs_stays():
    x = np.repeat(np.linspace(0, 1, 6), 4)[:, None]
    K, y = np.exp(-((x - x.T) ** 2) / 0.02), outputs(24)
    means = np.repeat(y.reshape(6, 4).mean(axis=1), 4)[:, None]
    for alpha in iterate(ConjugateGradient(), K, y, 200)[12:]:
        assert_allclose(K @ alpha, means, rtol=0, atol=1e-6)


def test_cg_of_nothing_is_nothing():
    K, _ = matrix(SIGMA)
    y = outputs(len(K), columns=2)
    y[:, 1] = 0
    found = iterate(ConjugateGradient(), K, y, 50)
    assert np.isfinite(found).all()
    assert_array_equal(found[:, :, 1], 0)
    assert_array_equal(iterate(ConjugateGradient(), np.zeros((4, 4)), y[:4], 3), 0)


# Operators, types, outputs.


@per_filter(ITERATIVE)
@pytest.mark.parametrize("n", [10, 40])
def test_operators_are_as_good_as_matrices(filter, n):
    K, _ = matrix(np.linspace(0, SCALE, n))
    y = outputs(n, columns=2)
    expected = iterate(filter, K, y, 6)
    with_products = LinearOperator((n, n), matvec=lambda v: K @ v, matmat=lambda V: K @ V)
    for operator in (aslinearoperator(K), with_products, lambda V: K @ V):
        found = iterate(filter, operator, y, 6)
        assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@per_filter(ITERATIVE)
def test_outputs_do_not_mix(filter):
    K, _ = matrix(np.linspace(0.1, SCALE, 12))
    Y = outputs(12, columns=3)
    together = iterate(filter, K, Y, 6)
    for t in range(3):
        alone = iterate(filter, K, Y[:, [t]], 6)
        assert_allclose(together[:, :, [t]], alone, rtol=1e-9, atol=1e-10)


@per_filter(ITERATIVE)
def test_inputs_are_not_modified(filter):
    K, _ = matrix(np.linspace(0.1, SCALE, 12))
    y = outputs(12)
    kept = K.copy(), y.copy()
    iterate(filter, K, y, 6)
    assert_array_equal(K, kept[0])
    assert_array_equal(y, kept[1])


@per_filter(ITERATIVE)
@pytest.mark.parametrize("n", [12, 40])
def test_single_precision_iterates(filter, n):
    K, _ = matrix(np.linspace(0.1, SCALE, n))
    y = outputs(n)
    single = iterate(filter, K.astype(np.float32), y.astype(np.float32), 6)
    assert single.dtype == np.float32
    assert_allclose(single, iterate(filter, K, y, 6), rtol=1e-3, atol=1e-3)


@per_filter(ITERATIVE)
@pytest.mark.parametrize("n", [1, 5, 50])
def test_zero_matrix_iterates_stay_finite(filter, n):
    found = iterate(filter, np.zeros((n, n)), np.ones((n, 1)), 3)
    assert np.isfinite(found).all()


@per_filter([Landweber(), NuMethod(0.5), NuMethod(2.0)])
@pytest.mark.parametrize("n", [8, 40])
def test_scale_is_the_given_one_or_the_largest_eigenvalue(filter, n):
    K, _ = matrix(np.linspace(0, SCALE, n))
    y = outputs(n)
    own = iterate(filter, K, y, 3)
    assert_allclose(own, iterate(filter, K, y, 3, scale=SCALE), rtol=1e-4, atol=1e-5)
    assert_allclose(2 * next(filter.iterates(K, y, 2 * SCALE)), own[0], rtol=1e-5)


@per_filter(ITERATIVE)
@pytest.mark.parametrize("bad", [0, -1, 1.5, [1, 0], [2, 2.5], np.nan, [], [[1, 2]]])
def test_iterations_are_whole_numbers_from_1_on(filter, bad):
    with pytest.raises(ValueError, match="iterations must be"):
        filter.g(SIGMA, bad, SCALE)
    with pytest.raises(ValueError, match="iterations must be"):
        filter.residual(SIGMA, bad, SCALE)


@per_filter(ITERATIVE)
def test_iterations_are_finite(filter):
    with pytest.raises(ValueError, match="iterations must be"):
        filter.g(SIGMA, np.inf, SCALE)


def test_whole_floats_and_repeats_are_iterations():
    twice = NuMethod().g(SIGMA, [3.0, 1, 3], SCALE)
    assert_array_equal(twice, NuMethod().g(SIGMA, [3, 1, 3], SCALE))
    assert_array_equal(twice[:, 0], twice[:, 2])


# Names, values, files.


def test_names():
    assert as_filter("tikhonov") == Tikhonov()
    assert as_filter("cutoff") == CutOff(by="penalty")
    assert as_filter("components") == CutOff(by="components")
    assert as_filter("landweber") == Landweber()
    assert as_filter("nu") == NuMethod(1.0)
    assert as_filter("cg") == ConjugateGradient()


@per_filter(ALL)
def test_a_filter_is_its_own_filter(filter):
    assert as_filter(filter) is filter


@pytest.mark.parametrize("wrong", ["ridge", "", None, 3, ["nu"], Tikhonov])
def test_unknown_filters_are_answered_with_the_known_ones(wrong):
    known = "cg, components, cutoff, landweber, nu, tikhonov"
    with pytest.raises(ValueError, match=known):
        as_filter(wrong)


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf])
def test_steps_and_nu_are_positive(bad):
    with pytest.raises(ValueError, match="step must be a positive number"):
        Landweber(step=bad)
    with pytest.raises(ValueError, match="nu must be a positive number"):
        NuMethod(nu=bad)


def test_cutoff_is_by_penalty_or_components():
    with pytest.raises(ValueError, match="'penalty' or 'components'"):
        CutOff(by="rank")


@per_filter(ALL)
def test_filters_are_values(filter, tmp_path):
    imparo.save(filter, tmp_path / "filter.imparo")
    copies = [pickle.loads(pickle.dumps(filter)), imparo.load(tmp_path / "filter.imparo")]
    for same in (*copies, eval(repr(filter))):
        assert type(same) is type(filter)
        assert same == filter
        assert hash(same) == hash(filter)
        assert repr(same) == repr(filter)
        levels = LEVELS[filter.parameter]
        assert_array_equal(same.g(SIGMA, levels, SCALE), filter.g(SIGMA, levels, SCALE))
    assert [other for other in ALL if other == filter] == [filter]
    for name in vars(filter):
        with pytest.raises(AttributeError):
            setattr(filter, name, None)
