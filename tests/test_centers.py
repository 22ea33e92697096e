"""Centers: their laws, their scores against exact ones, and that a larger m keeps them."""

import tracemalloc
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

import imparo
from imparo.centers import (
    CenterRule,
    LeverageScores,
    PivotedCholesky,
    RecursiveScores,
    Uniform,
    approximate_leverage_scores,
    as_rule,
    leverage_scores,
    uniform,
    uniform_positions,
)
from imparo.centers.base import draw
from imparo.centers.pivoted import Residual
from imparo.centers.recursive import _levels
from imparo.centers.scores import Dictionary, Scorer
from imparo.engine import resolution
from imparo.errors import MemoryBudgetError
from imparo.kernels import CallableKernel, Gaussian, Linear, Matern, Polynomial, Precomputed

RULES = [
    Uniform(),
    LeverageScores(),
    LeverageScores(penalty=1e-3, pilot=7),
    RecursiveScores(),
    RecursiveScores(penalty=1e-3, oversampling=2.0),
    PivotedCholesky(),
    PivotedCholesky(block=5),
]
BY_SCORES = [LeverageScores(), RecursiveScores()]

every_rule = pytest.mark.parametrize("rule", RULES, ids=repr)
by_scores = pytest.mark.parametrize("rule", BY_SCORES, ids=repr)


def seed(number=0):
    return np.random.RandomState(number)


def rows_of(rule, X, kernel, m, number=0, memory=None):
    return rule.choose(X, kernel, m, seed(number), memory).rows


def clusters(n, rng):
    """Return rows of which most lie in one cluster, and a few in seven others."""
    sizes = np.array([n - 7 * (n // 50), *7 * [n // 50]])
    return np.repeat(6 * rng.randn(8, 3), sizes, axis=0) + 0.3 * rng.randn(n, 3)


def left_by(K, rows):
    """Return the diagonal of K − K(·, S)K(S, S)⁻¹K(S, ·), one pivot after the other."""
    F, left = np.zeros((len(K), len(rows)), np.longdouble), np.diagonal(K).astype(np.longdouble)
    for k, i in enumerate(rows):
        F[:, k] = (K[:, i] - F[:, :k] @ F[i, :k]) / np.sqrt(left[i])
        left = left - F[:, k] ** 2
    return left.astype(float)


def is_likely(counts, expected):
    """Return whether a chi-square test leaves counts possible; rare cells are pooled."""
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] == 0:
        assert counts[-1] == 0
        counts, expected = counts[:-1], expected[:-1]
    return stats.chisquare(counts, expected).pvalue > 1e-3


def ratio(scores, exact):
    """Return the least T for which the scores are T-approximate."""
    return max(np.max(scores / exact), np.max(exact / scores))


# --- Uniform positions -------------------------------------------------------------------


@given(n=st.integers(0, 40), k=st.integers(0, 50), chunk=st.integers(1, 50))
def test_positions_are_the_order_of_random_keys_whatever_the_chunk(n, k, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uniform, "_ROWS_AT_ONCE", chunk)
        positions = uniform_positions(n, k, seed())
    np.testing.assert_array_equal(positions, np.argsort(seed().random_sample(n))[:k])
    assert positions.dtype == np.intp


def test_every_ordered_pair_is_drawn_equally_often():
    rng, pairs = seed(1), list(permutations(range(5), 2))
    drawn = [tuple(uniform_positions(5, 2, rng)) for _ in range(2000)]
    assert is_likely([drawn.count(pair) for pair in pairs], np.full(20, 100.0))


@given(mask=st.lists(st.booleans(), max_size=30), k=st.integers(0, 30))
def test_rows_that_are_not_allowed_only_drop_out(mask, k):
    allowed = np.array(mask, bool)
    everything = uniform_positions(len(mask), len(mask), seed())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uniform, "_ROWS_AT_ONCE", 4)
        rng = seed()
        positions = uniform_positions(len(mask), k, rng, allowed)
    np.testing.assert_array_equal(positions, everything[allowed[everything]][:k])
    reference = seed()
    reference.random_sample(len(mask))
    assert rng.random_sample() == reference.random_sample()


class FewKeys:
    """A generator whose keys are often equal."""

    def __init__(self):
        self.rng = seed(2)

    def random_sample(self, size):
        return self.rng.randint(4, size=size) / 4


@pytest.mark.parametrize("chunk", [1, 7, 100])
@pytest.mark.parametrize("k", [1, 10, 30, 60])
def test_equal_keys_go_by_the_number_of_the_row(monkeypatch, chunk, k):
    monkeypatch.setattr(uniform, "_ROWS_AT_ONCE", chunk)
    keys = FewKeys().random_sample(50)
    expected = np.lexsort([np.arange(50), keys])[:k]
    np.testing.assert_array_equal(uniform_positions(50, k, FewKeys()), expected)


def test_keys_are_not_held_for_all_rows():
    n = 2**24
    tracemalloc.start()
    uniform_positions(n, 100, seed())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n / 2


@pytest.mark.parametrize(
    ("n", "k", "allowed"),
    [
        (-1, 2, None),
        (5, -1, None),
        (5, 2, np.ones(4, bool)),
        (5, 2, np.arange(5)),
    ],
)
def test_positions_of_nonsense_are_refused(n, k, allowed):
    with pytest.raises(ValueError, match="must"):
        uniform_positions(n, k, seed(), allowed)


# --- What holds for every rule -----------------------------------------------------------


@every_rule
@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 60), m=st.integers(1, 80), more=st.integers(0, 80), s=st.integers(0, 9))
def test_more_centers_keep_the_first_ones(rule, n, m, more, s):
    X = seed(s).randn(n, 2).round(1)
    few = rule.choose(X, Gaussian(0.5), m, seed(s))
    many = rule.choose(X, Gaussian(0.5), m + more, seed(s))
    np.testing.assert_array_equal(few.rows, many.rows[: len(few.rows)])
    np.testing.assert_array_equal(few.weights, many.weights[: len(few.rows)])
    if len(few.rows) < m:
        assert len(many.rows) == len(few.rows)


@every_rule
def test_the_seed_decides(rule):
    X = seed().randn(200, 3)
    first, again, other = (rows_of(rule, X, Gaussian(1.0), 20, s) for s in (4, 4, 5))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@every_rule
def test_how_many_there_are(rule):
    X = seed().randn(12, 2)
    chosen = rule.choose(X, Gaussian(0.1), 40, seed())
    with_replacement = isinstance(rule, LeverageScores | RecursiveScores)
    assert len(chosen.rows) == len(chosen.weights) == (40 if with_replacement else 12)
    if not with_replacement:
        assert sorted(chosen.rows) == list(range(12))
        assert (chosen.weights == 1).all()


@every_rule
def test_one_row(rule):
    chosen = rule.choose(np.array([[2.0, 1.0]]), Gaussian(1.0), 3, seed())
    assert set(chosen.rows) == {0}
    np.testing.assert_allclose(chosen.weights, 1)


@every_rule
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()], ids=repr)
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_equal_rows(rule, kernel, value):
    # With value 0 the linear kernel is 0 throughout.
    chosen = rule.choose(np.full((30, 2), value), kernel, 8, seed())
    assert len(chosen.rows) == (1 if isinstance(rule, PivotedCholesky) else 8)
    np.testing.assert_allclose(chosen.weights, 1)


@every_rule
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()], ids=repr)
def test_sparse_rows_are_as_good_as_dense_ones(rule, kernel):
    X = seed().randn(150, 6) * (seed(1).rand(150, 6) < 0.4)
    dense = rule.choose(X, kernel, 15, seed())
    for form in (sparse.csr_array, sparse.csr_matrix, sparse.coo_array):
        chosen = rule.choose(form(X), kernel, 15, seed())
        np.testing.assert_array_equal(chosen.rows, dense.rows)
        np.testing.assert_allclose(chosen.weights, dense.weights, rtol=1e-9)


@every_rule
def test_memory_changes_blocks_not_centers(rule):
    X = seed().randn(3000, 4)
    # Enough for the proposals or dictionaries, and for blocks of a few rows.
    memory = "7MB" if rule == PivotedCholesky() else "1MB"
    plenty = rule.choose(X, Gaussian(1.5), 40, seed())
    scarce = rule.choose(X, Gaussian(1.5), 40, seed(), memory)
    np.testing.assert_array_equal(plenty.rows, scarce.rows)
    np.testing.assert_allclose(plenty.weights, scarce.weights, rtol=1e-9)


@every_rule
def test_float32_rows(rule):
    X = clusters(400, seed(3)).astype(np.float32)
    chosen = rule.choose(X, Gaussian(1.0), 30, seed())
    double = rule.choose(X.astype(np.float64), Gaussian(1.0), 30, seed())
    same = chosen.rows == double.rows
    assert same.mean() > 0.8  # a draw may fall beside a boundary that rounding has moved
    np.testing.assert_allclose(chosen.weights[same], double.weights[same], rtol=1e-3)


@every_rule
def test_rules_are_values_and_can_be_saved(rule, tmp_path):
    imparo.save(rule, tmp_path / "rule.imparo")
    assert imparo.load(tmp_path / "rule.imparo") == rule
    assert rule.needs_kernel == (rule != Uniform())
    with pytest.raises(AttributeError):
        rule.penalty = 3.0


# --- Leverage scores ---------------------------------------------------------------------


def test_exact_scores_are_those_of_the_definition():
    X, n, t = seed().randn(40, 3), 40, 1e-3
    K = Matern(1.5, 1.0)(X)
    expected = np.diagonal(K @ np.linalg.inv(K + t * n * np.eye(n)))
    np.testing.assert_allclose(leverage_scores(Matern(1.5, 1.0), X, t), expected, rtol=1e-10)


def test_scores_of_a_linear_kernel_are_those_of_ridge_regression():
    X, t = seed().randn(50, 4), 1e-9
    hat = X @ np.linalg.solve(X.T @ X + t * 50 * np.eye(4), X.T)
    scores = leverage_scores(Linear(), X, t)
    np.testing.assert_allclose(scores, np.diagonal(hat), rtol=1e-8)
    assert scores.sum() == pytest.approx(4, rel=1e-6)  # the effective dimension


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear(), Matern(0.5, 2.0)], ids=repr)
@pytest.mark.parametrize("penalty", [1e-6, 1e-2, 10.0])
def test_a_pilot_of_all_rows_gives_exact_scores(kernel, penalty):
    X = seed().randn(60, 3)
    scores = approximate_leverage_scores(kernel, X, penalty, seed().permutation(60))
    np.testing.assert_allclose(scores, leverage_scores(kernel, X, penalty), rtol=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(0.5, 1.0)], ids=repr)
def test_scores_from_a_pilot_are_approximate_in_the_sense_of_the_thesis(kernel):
    X = clusters(1000, seed())
    for penalty in (0.3, 0.03):
        exact = leverage_scores(kernel, X, penalty)
        pilot = min(1000, int(5 * exact.sum() * np.log(1000)))
        factors = [
            ratio(
                approximate_leverage_scores(
                    kernel, X, penalty, uniform_positions(1000, pilot, seed(s))
                ),
                exact,
            )
            for s in range(5)
        ]
        assert max(factors) < 1.6
    # At the default penalty and pilot.
    exact = leverage_scores(kernel, X, 1000**-0.5)
    scores = approximate_leverage_scores(
        kernel, X, 1000**-0.5, uniform_positions(1000, 95, seed())
    )
    assert ratio(scores, exact) < 2
    # The constant is right, not only the shape.
    assert scores.sum() == pytest.approx(exact.sum(), rel=0.15)


@given(s=st.integers(0, 1000), penalty=st.floats(1e-12, 1e3))
@settings(max_examples=25, deadline=None)
def test_scores_stay_within_the_bounds_of_exact_ones(s, penalty):
    X = seed(s).standard_t(2, size=(40, 2))
    K = X @ X.T
    scores = approximate_leverage_scores(Linear(), X, penalty, np.arange(3))
    ridge, diagonal = 40 * penalty, np.diagonal(K)
    assert (scores >= diagonal / (np.trace(K) + ridge) * (1 - 1e-12)).all()
    assert (scores <= diagonal / (diagonal + ridge) * (1 + 1e-12)).all()


def test_scores_in_float32():
    X = clusters(300, seed()).astype(np.float32)
    rows = np.arange(0, 300, 5)
    single = approximate_leverage_scores(Gaussian(1.0), X, 1e-2, rows)
    double = approximate_leverage_scores(Gaussian(1.0), X.astype(np.float64), 1e-2, rows)
    np.testing.assert_allclose(single, double, rtol=1e-3)


def test_dictionaries_of_recursive_scores_are_unbiased():
    # Σ_J w_jx_jx_jᵀ is XᵀX on average, whether candidates are drawn (R < n) or all taken.
    X, rng = seed().randn(40, 2) * [1.0, 3.0], seed(1)
    scorer = Scorer(Linear(), X, 10**8)
    rule = RecursiveScores(oversampling=2.0)
    before = Dictionary(np.array([3, 8]), np.array([25.0, 15.0]))
    for level in (scorer.diagonal.max() / 5, scorer.diagonal.max() / 25):
        sums = []
        for _ in range(2000):
            made = rule._refined(scorer, before, level, rng)
            assert len(made.rows) < 30
            sums.append((X[made.rows] * made.weights[:, None]).T @ X[made.rows])
        error = np.std(sums, axis=0) / np.sqrt(len(sums))
        assert (abs(np.mean(sums, axis=0) - X.T @ X) < 4 * error).all()
        assert (error < 0.05 * abs(np.diagonal(X.T @ X)).max()).all()


@given(largest=st.floats(1e-6, 1e6), penalty=st.floats(1e-12, 1e6))
def test_penalties_of_recursive_scores_halve_down_to_the_one_asked_for(largest, penalty):
    levels = _levels(largest, penalty)
    assert levels[-1] == penalty
    np.testing.assert_allclose(levels[:-1], 2 * levels[1:])
    if penalty < largest:  # the first is the largest there is, or up to half of it
        assert largest / 2 * (1 - 1e-9) <= levels[0] <= largest * (1 + 1e-9)


@pytest.mark.parametrize(
    ("kernel", "penalty"),
    [
        (Gaussian(1.0), 0.2),
        (Gaussian(1.0), 0.03),
        (Gaussian(1.0), 0.003),
        (Matern(0.5, 1.0), 0.03),
    ],
    ids=repr,
)
def test_recursive_scores_are_approximate_in_the_sense_of_the_thesis(kernel, penalty):
    X = clusters(800, seed())
    exact = leverage_scores(kernel, X, penalty)
    scorer, factors, sums = Scorer(kernel, X, 10**9), [], []
    for s in range(5):
        dictionary = RecursiveScores()._dictionary(scorer, penalty, seed(s))
        scores = scorer.scores(dictionary, penalty)
        factors.append(ratio(scores, exact))
        sums.append(scores.sum())
        # As many rows as the effective dimension wants, some of them drawn more than once.
        assert 2 * exact.sum() < len(dictionary.rows) <= 8 * 1.3 * exact.sum() + 1
    assert max(factors) < 3
    assert np.median(factors) < 2
    assert np.mean(sums) == pytest.approx(exact.sum(), rel=0.15)


def test_recursive_scores_take_all_rows_where_a_sample_saves_nothing():
    X = seed().randn(50, 3)
    scorer = Scorer(Gaussian(0.3), X, 10**8)
    dictionary = RecursiveScores()._dictionary(scorer, 1e-6, seed())
    np.testing.assert_allclose(
        scorer.scores(dictionary, 1e-6), leverage_scores(Gaussian(0.3), X, 1e-6), rtol=1e-9
    )


def test_draws_by_a_pilot_have_the_probabilities_of_its_scores():
    X, kernel, t = clusters(100, seed()), Gaussian(1.0), 1e-2
    chosen = LeverageScores(t, pilot=30).choose(X, kernel, 20_000, seed(7))
    scores = approximate_leverage_scores(kernel, X, t, uniform_positions(100, 30, seed(7)))
    P = scores / scores.sum()
    np.testing.assert_allclose(chosen.weights, 1 / (100 * P[chosen.rows]), rtol=1e-9)
    assert is_likely(np.bincount(chosen.rows, minlength=100), 20_000 * P)


def test_a_pilot_larger_than_the_data_is_the_data():
    X = seed().randn(30, 2)
    chosen = LeverageScores(0.01, pilot=1000).choose(X, Gaussian(1.0), 50, seed())
    exact = leverage_scores(Gaussian(1.0), X, 0.01)
    np.testing.assert_allclose(chosen.weights, exact.sum() / (30 * exact[chosen.rows]))


def test_the_penalty_left_out_is_the_mean_of_the_diagonal_over_the_root_of_n():
    X = seed().randn(64, 2)
    default = LeverageScores(pilot=64).choose(X, Linear(), 20, seed())
    given = LeverageScores((X**2).sum() / 64 / 8, pilot=64).choose(X, Linear(), 20, seed())
    np.testing.assert_allclose(default.weights, given.weights)


@by_scores
def test_weights_are_of_the_probabilities_that_rows_are_drawn_with(rule):
    X = clusters(60, seed())
    chosen = rule.choose(X, Gaussian(1.0), 30_000, seed(2))
    rows, first = np.unique(chosen.rows, return_index=True)
    P = 1 / (60 * chosen.weights[first])
    assert len(rows) == 60
    assert P.sum() == pytest.approx(1)
    assert P.max() > 3 * P.min()
    assert is_likely(np.bincount(chosen.rows), 30_000 * P)


@by_scores
def test_weighted_draws_estimate_the_second_moment(rule):
    X = clusters(200, seed()) + 1
    chosen = rule.choose(X, Gaussian(1.0), 50_000, seed(3))
    drawn = X[chosen.rows]
    terms = chosen.weights[:, None, None] * drawn[:, :, None] * drawn[:, None, :]
    error = terms.std(axis=0) / np.sqrt(50_000)
    moment = X.T @ X / 200
    assert (abs(terms.mean(axis=0) - moment) < 4 * error).all()
    unweighted = (drawn[:, :, None] * drawn[:, None, :]).mean(axis=0)
    assert (abs(unweighted - moment) > 10 * error).any()


def test_draws_never_hit_what_has_no_weight():
    scores = np.array([0.0, 2.0, 0.0, 0.0, 1.0, 0.0])
    assert set(draw(scores, 1000, seed())) == {1, 4}

    class Edges:
        def random_sample(self, size):
            return np.array([0.0, 2 / 3, 1 - 2**-53])

    assert set(draw(scores, 3, Edges())) <= {1, 4}


# --- Pivoted Cholesky --------------------------------------------------------------------


def law_of_pivots(K, length):
    """Return the probability of every sequence of the first pivots taken one by one."""
    law = {}
    for pivots in permutations(range(len(K)), length):
        law[pivots] = 1.0
        for k, i in enumerate(pivots):
            left = left_by(K, pivots[:k])
            law[pivots] *= left[i] / left.sum()
    return law


SIX = np.array([[0.0], [0.3], [1.0], [1.2], [2.5], [2.6]])
LAWFUL = {"even": Gaussian(0.7), "uneven": Gaussian(0.7) * Polynomial(1)}
# Several blocks and one block for all pivots, of kernels with and without a constant diagonal.
QUICK = {("even", 5), ("uneven", 2), ("uneven", 64)}


@pytest.mark.parametrize(
    ("kernel", "block"),
    [
        pytest.param(
            kernel, block, id=f"{name}-{block}",
            marks=() if (name, block) in QUICK else pytest.mark.slow,
        )
        for name, kernel in LAWFUL.items()
        for block in (1, 2, 5, 64)
    ],
)  # fmt: skip
def test_blocks_have_the_law_of_pivots_taken_one_by_one(kernel, block):
    law, rng, draws = law_of_pivots(kernel(SIX), 3), seed(block), 2000
    assert sum(law.values()) == pytest.approx(1)
    rule = PivotedCholesky(block)
    drawn = [tuple(rule.choose(SIX, kernel, 3, rng).rows) for _ in range(draws)]
    counts = [drawn.count(pivots) for pivots in law]
    assert sum(counts) == draws
    assert is_likely(counts, draws * np.array(list(law.values())))


@pytest.mark.parametrize("block", [3, 40, 512])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "kernel", [Gaussian(1.0), Matern(2.5, 1.0), Polynomial(3), 5 * Gaussian(0.5)], ids=repr
)
def test_the_residual_is_the_diagonal_of_the_schur_complement(block, dtype, kernel):
    X, rng = seed().randn(120, 3).astype(dtype), seed(1)
    K = kernel(X.astype(np.float64))
    residual = Residual(kernel, X, 10**8)
    for _ in range(5):
        if not residual.exhausted:
            proposals = draw(residual.diagonal, block, rng)
            residual.extend(proposals, rng.random_sample(block), 1000)
    expected = left_by(K, residual.rows)
    floor = resolution(dtype) * K.max()  # what is less is put to 0
    np.testing.assert_allclose(residual.diagonal, expected, atol=floor)
    assert (residual.diagonal[residual.rows] == 0).all()
    assert len(residual.rows) > 4


def test_the_error_is_near_that_of_the_best_rank():
    # Chen, Epperly, Tropp and Webber, theorem 2.3, with ε = 1.
    X = clusters(300, seed())
    K = Gaussian(1.0)(X)
    values = np.linalg.eigvalsh(K)[::-1]
    for rank in (5, 15):
        best = values[rank:].sum()
        m = int(np.ceil(rank + rank * np.log(np.trace(K) / best)))
        errors = [
            left_by(K, rows_of(PivotedCholesky(16), X, Gaussian(1.0), m, s)).sum()
            for s in range(15)
        ]
        assert np.mean(errors) <= 2 * best


@pytest.mark.parametrize(
    "rule", [LeverageScores(), RecursiveScores(), PivotedCholesky()], ids=repr
)
def test_small_clusters_are_not_missed(rule):
    X, kernel = clusters(400, seed()), Gaussian(1.0)
    K = kernel(X)

    def error(rule, s):
        return left_by(K, np.unique(rows_of(rule, X, kernel, 40, s))).sum()

    errors, uniform_errors = ([error(r, s) for s in range(8)] for r in (rule, Uniform()))
    assert np.mean(errors) < 0.7 * np.mean(uniform_errors)
    if rule == PivotedCholesky():
        assert np.mean(errors) < 0.3 * np.mean(uniform_errors)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("block", [4, 512])
def test_of_equal_rows_only_one_is_chosen(dtype, block):
    X = seed().randint(4, size=(400, 2)).astype(dtype) + dtype(0.1)
    distinct = len(np.unique(X, axis=0))
    for s in range(5):
        rows = rows_of(PivotedCholesky(block), X, Gaussian(0.6), 100, s)
        assert len(np.unique(X[rows], axis=0)) == len(rows) == distinct


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("kernel", "rank"), [(Linear(), 4), (Polynomial(2), 15), (Linear() + 1, 5)], ids=repr
)
def test_pivots_end_at_the_rank(kernel, rank, dtype):
    X = seed().randn(300, 4).astype(dtype)
    for block in (1, 32, 512):
        rows = rows_of(PivotedCholesky(block), X, kernel, 100)
        assert len(rows) == rank
        S = kernel(X[rows].astype(np.float64))
        assert np.linalg.matrix_rank(S) == rank


def test_pivots_end_where_only_rounding_errors_are_left():
    X = seed().rand(500, 1)
    K = Gaussian(0.5)(X)
    for block in (8, 512):
        rows = rows_of(PivotedCholesky(block), X, Gaussian(0.5), 500)
        assert len(rows) < 40
        assert left_by(K, rows).max() < resolution(np.float64)


def test_a_row_that_rounding_proposes_is_proposed_once():
    X = np.arange(1.0, 9.0).reshape(8, 1)
    residual = Residual(Linear(), X, 10**8)
    residual.extend(np.array([3]), np.array([0.5]), 8)
    assert residual.exhausted
    residual.diagonal[5] = 0.01  # as errors of a larger problem may do
    residual.extend(np.array([5, 5]), np.array([0.1, 0.0]), 8)
    assert residual.exhausted
    assert residual.rows.tolist() == [3]


def test_pivots_of_columns_of_very_different_size():
    X = seed().randn(200, 4) * [1.0, 1e-2, 1e-3, 1e-5]
    assert len(rows_of(PivotedCholesky(), X, Linear(), 10)) == 4


def test_columns_are_never_held_for_all_rows():
    X = seed().randn(20_000, 3)
    tracemalloc.start()
    rows = rows_of(PivotedCholesky(block=64), X, Gaussian(0.5), 300, memory="6MB")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(rows) == 300
    assert peak < 8 * X.shape[0] * 300 / 5


# --- Names and bad input -----------------------------------------------------------------


def test_names_of_rules():
    names = {
        "uniform": Uniform(),
        "leverage": LeverageScores(),
        "recursive": RecursiveScores(),
        "pivoted": PivotedCholesky(),
    }
    for name, rule in names.items():
        assert as_rule(name) == rule
        assert as_rule(rule) is rule
        assert isinstance(rule, CenterRule)


@pytest.mark.parametrize("centers", ["random", None, 3, Uniform, np.zeros((2, 2))], ids=repr)
def test_unknown_rules_are_named_with_those_there_are(centers):
    with pytest.raises(ValueError, match="leverage, pivoted, recursive, uniform"):
        as_rule(centers)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LeverageScores(penalty=0.0), "penalty=0.0 must be a positive"),
        (lambda: LeverageScores(penalty=float("nan")), "penalty=nan must be a positive"),
        (lambda: RecursiveScores(penalty=-1), "penalty=-1 must be a positive"),
        (lambda: RecursiveScores(penalty="auto"), "penalty='auto' must be a positive"),
        (lambda: RecursiveScores(penalty=True), "penalty=True must be a positive"),
        (lambda: RecursiveScores(oversampling=0.5), "oversampling=0.5 must be at least 1"),
        (lambda: RecursiveScores(oversampling=np.inf), "oversampling=inf must be a positive"),
        (lambda: LeverageScores(pilot=0), "pilot=0 must be a whole number from 1"),
        (lambda: LeverageScores(pilot=2.5), "pilot=2.5 must be a whole number from 1"),
        (lambda: PivotedCholesky(block=0), "block=0 must be a whole number from 1"),
        (lambda: PivotedCholesky(block=None), "block=None must be a whole number from 1"),
        (lambda: leverage_scores(Linear(), np.eye(2), 0), "penalty=0 must be a positive"),
        (
            lambda: approximate_leverage_scores(Linear(), np.eye(2), -1.0, np.arange(2)),
            "penalty=-1.0 must be a positive",
        ),
        (
            lambda: approximate_leverage_scores(Linear(), np.eye(2), 1.0, np.arange(0)),
            "pilot_rows is empty",
        ),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@every_rule
@pytest.mark.parametrize("m", [0, -3, 2.0, True, None])
def test_bad_numbers_of_centers(rule, m):
    with pytest.raises(ValueError, match=r"n_centers=.* must be a whole number from 1"):
        rule.choose(np.eye(3), Gaussian(1.0), m, seed())


@every_rule
def test_no_rows(rule):
    with pytest.raises(ValueError, match="there are no rows"):
        rule.choose(np.empty((0, 3)), Gaussian(1.0), 2, seed())


@pytest.mark.parametrize("rule", RULES[1:], ids=repr)
def test_bad_kernels(rule):
    with pytest.raises(ValueError, match="by a kernel, and kernel is None"):
        rule.choose(np.eye(3), None, 2, seed())
    with pytest.raises(ValueError, match="not a precomputed matrix"):
        rule.choose(np.eye(3), Precomputed(), 2, seed())
    with pytest.raises(ValueError, match="negative or not finite"):
        rule.choose(np.full((3, 1), 1e200), Linear(), 2, seed())
    with pytest.raises(ValueError, match="negative or not finite"):
        rule.choose(np.eye(3), CallableKernel(lambda X, Z: -X @ Z.T), 2, seed())
    with pytest.raises(ValueError, match="width"):
        rule.choose(np.eye(3), Gaussian(), 2, seed())


@pytest.mark.parametrize("rule", RULES[1:], ids=repr)
def test_too_little_memory_is_said(rule):
    with pytest.raises(MemoryBudgetError, match="raise memory"):
        rule.choose(seed().randn(100, 3), Gaussian(1.0), 50, seed(), memory=900)
