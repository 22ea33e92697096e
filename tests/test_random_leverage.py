"""Features drawn by leverage scores: the scores, the draws, and what they are good for."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats

from imparo.features import (
    Fourier,
    LeverageFeatures,
    Orthogonal,
    QuasiMonteCarlo,
    SplineFeatures,
    feature_scores,
    leverage,
)
from imparo.features.leverage import _pick
from imparo.kernels import Gaussian, Matern, Spline

often = settings(max_examples=30, deadline=None)


def exact_scores(map, rows, penalty):
    Psi = map.evaluate(rows)
    A = Psi.T @ Psi / len(map)
    scores = np.diag(A @ np.linalg.inv(A + len(rows) * penalty * np.eye(len(A))))
    return scores.reshape(-1, map.step).sum(axis=1)


@often
@given(
    s=st.integers(1, 40), f=st.integers(1, 30), log_penalty=st.floats(-6, 2), pair=st.booleans()
)
def test_scores_are_those_of_the_formula_by_features_and_by_rows(s, f, log_penalty, pair):
    rows = np.random.default_rng(s).normal(size=(s, 3))
    rule = Fourier("pair" if pair else "cosine")
    map, penalty = rule.draw(Gaussian(1.0), 3, f * rule.step, seed=f), 10.0**log_penalty
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leverage, "_BLOCK", 7)
        scores = feature_scores(map, rows, penalty)
        same = feature_scores(map, sparse.csr_array(rows), penalty)
    assert_allclose(scores, exact_scores(map, rows, penalty), atol=1e-8)
    assert_allclose(same, scores, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("m", [20, 200])
def test_the_sum_of_the_scores_is_the_effective_dimension(rng, m):
    rows = rng.normal(size=(60, 2))
    map = Fourier().draw(Gaussian(1.0), 2, m, seed=0)
    Phi = map.transform(rows)
    values = np.linalg.eigvalsh(Phi @ Phi.T)
    expected = np.sum(values / (values + 60 * 0.01))
    assert_allclose(feature_scores(map, rows, 0.01).sum(), expected, rtol=1e-9)


@pytest.mark.parametrize("m", [8, 100])
@pytest.mark.parametrize("penalty", [1e-300, 1e-18, 1e300])
def test_scores_of_extreme_penalties_and_equal_rows(m, penalty):
    rows = np.repeat([[0.0], [1.0]], 20, axis=0)
    scores = feature_scores(Fourier().draw(Gaussian(1.0), 1, m, seed=0), rows, penalty)
    assert ((scores >= 0) & (scores <= 2)).all()
    # Two rows have two dimensions, and 1e300 leaves nothing of them.
    assert_allclose(scores.sum(), 0 if penalty > 1 else 2, atol=1e-3)


@pytest.mark.parametrize("rows_type", [np.float32, np.int64])
def test_scores_are_computed_in_float64(rng, rows_type):
    rows = (5 * rng.normal(size=(30, 2))).astype(rows_type)
    map = Fourier().draw(Gaussian(4.0), 2, 20, seed=0)
    scores = feature_scores(map, rows, 1e-4)
    assert_allclose(scores, exact_scores(map, rows.astype(float), 1e-4), atol=1e-8)


# --- Draws -------------------------------------------------------------------------------


def test_features_are_drawn_by_their_scores():
    # A chi-square test at 1e-5; with equal probabilities it would reject.
    scores, rng = np.array([0.5, 0.0, 1.0, 0.1, 0.9]), np.random.default_rng(0)
    picked, weights = _pick(scores, 5000, rng)
    counts = np.bincount(picked, minlength=5)
    assert counts[1] == 0
    expected = 5000 * scores / scores.sum()
    keep = scores > 0
    assert stats.chisquare(counts[keep], expected[keep]).pvalue > 1e-5
    assert stats.chisquare(counts[keep]).pvalue < 1e-100
    # 1/(M·P) is what makes the mean over draws that of the pool.
    P = scores / scores.sum()
    assert_allclose(weights**2, 1 / (5 * P[picked]), rtol=1e-12)


@given(scores=st.lists(st.floats(0, 1), min_size=1, max_size=20), size=st.integers(1, 50))
@often
@pytest.mark.parametrize("last", [False, True])
def test_only_features_with_a_score_are_drawn(last, scores, size):
    scores, rng = np.array(scores), np.random.default_rng(1)
    if last:
        rng = SimpleNamespace(random=lambda size: np.full(size, 1 - 2.0**-53))
    picked, weights = _pick(scores, size, rng)
    assert len(picked) == len(weights) == size
    assert np.isfinite(weights).all()
    if scores.any():
        assert (scores[picked] > 0).all()
    else:
        assert_array_equal(weights, 1)


@pytest.mark.parametrize("base", [Fourier(), Orthogonal("cosine"), SplineFeatures()], ids=repr)
def test_features_are_those_of_the_pool_times_weights(rng, base):
    kernel = Spline(4.0) if isinstance(base, SplineFeatures) else Gaussian(0.5)
    X = rng.random((50, 1))
    pool = base.draw(kernel, 1, 40, seed=9)
    map = LeverageFeatures(base, penalty=0.01, pool=40).draw(kernel, 1, 30, 9, rows=X)
    P = exact_scores(pool, X, 0.01)
    P /= P.sum()
    step = base.step
    everything = pool.evaluate(X).reshape(50, -1, step) / np.sqrt(len(P) * P)[:, None]
    drawn = map.evaluate(X).reshape(50, -1, step)
    distances = abs(drawn[:, :, None] - everything[:, None]).max(axis=(0, 3))
    assert (distances.min(axis=1) < 1e-6).all()
    assert len(set(distances.argmin(axis=1))) > 5


def test_a_pool_that_grows_keeps_the_first_features(rng, monkeypatch):
    monkeypatch.setattr(leverage, "_FIRST", 8)
    X, seen = rng.normal(size=(30, 2)), []
    original = leverage.feature_scores

    def scores(map, rows, penalty):
        seen.append(len(map))
        return original(map, rows, penalty)

    monkeypatch.setattr(leverage, "feature_scores", scores)
    rule = LeverageFeatures(QuasiMonteCarlo())
    large = rule.draw(Gaussian(1.0), 2, 60, 1, rows=X).evaluate(X)
    assert seen == [32, 64, 128, 256]
    for m in (2, 8, 10, 16, 34, 58):
        small = rule.draw(Gaussian(1.0), 2, m, 1, rows=X).evaluate(X)
        assert_allclose(small, large[:, :m], rtol=0, atol=1e-12)


def test_every_pool_has_random_numbers_of_its_own(rng, monkeypatch):
    monkeypatch.setattr(leverage, "_FIRST", 8)
    # With equal scores, draws from pools of 32 and 64 features are at random parts of them.
    monkeypatch.setattr(
        leverage, "feature_scores", lambda map, rows, penalty: np.ones(len(map))
    )
    rule, X = LeverageFeatures(Fourier("cosine")), rng.normal(size=(30, 2))
    pool = rule.base.draw(Gaussian(1.0), 2, 64, seed=1).omega[:, 0].tolist()
    drawn = rule.draw(Gaussian(1.0), 2, 16, 1, rows=X).omega[:, 0]
    places = np.array([pool.index(value) for value in drawn])
    assert (places[8:] // 2 != places[:8]).any()


def test_pools_that_grow_leave_no_bias(rng, monkeypatch):
    # t statistics of 200 draws for ten pairs of rows: error probability 2e-6.
    monkeypatch.setattr(leverage, "_FIRST", 8)
    X, kernel, pairs = rng.normal(size=(5, 2)), Matern(1.5, 1.0), np.triu_indices(5, 1)
    found = []
    for seed in range(200):
        Phi = LeverageFeatures().draw(kernel, 2, 40, seed, rows=X).transform(X)
        found.append((Phi @ Phi.T - kernel(X))[pairs])
    error = np.std(found, axis=0, ddof=1) / np.sqrt(200)
    assert (abs(np.mean(found, axis=0)) < 5.5 * error).all()
    assert (error < 0.03).all()


def test_the_default_penalty_is_the_mean_of_the_kernel_over_the_root(rng, monkeypatch):
    seen = []

    def scores(map, rows, penalty):
        seen.append(penalty)
        return np.ones(len(map) // map.step)

    monkeypatch.setattr(leverage, "feature_scores", scores)
    LeverageFeatures().draw(3 * Gaussian(1.0), 2, 4, 0, rows=rng.normal(size=(25, 2)))
    LeverageFeatures(penalty=0.25).draw(Gaussian(1.0), 2, 4, 0, rows=rng.normal(size=(25, 2)))
    assert_allclose(seen, [3 / 5, 0.25])


# --- Fewer features ----------------------------------------------------------------------


def ridge_error(map, X, y, T, target, penalty):
    Phi, Psi = map.transform(X), map.transform(T)
    A = Phi.T @ Phi + len(X) * penalty * np.eye(len(map))
    return np.mean((Psi @ np.linalg.solve(A, Phi.T @ y) - target) ** 2)


def test_fewer_features_by_scores_do_what_more_uniform_ones_do():
    # A wave that grows faster and faster, from a kernel wide beside it: the frequencies that
    # matter are rare in the spectral measure. One-sided tests on 20 paired draws, at 1e-4.
    kernel, penalty = Matern(1.5, 0.3), 1e-4
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(1000 + seed)
        X, T = rng.random((300, 1)), rng.random((200, 1))
        y, target = (np.sin(6 * np.pi * Z[:, 0] ** 2) for Z in (X, T))
        y = y + 0.01 * rng.normal(size=300)
        by_scores = LeverageFeatures(penalty=penalty, pool=1024)
        maps = [
            by_scores.draw(kernel, 1, 40, seed, rows=X),
            Fourier().draw(kernel, 1, 40, seed),
            Fourier().draw(kernel, 1, 120, seed),
        ]
        errors.append([ridge_error(map, X, y, T, target, penalty) for map in maps])
    scored, as_many, thrice = np.log(errors).T
    assert stats.ttest_rel(scored, as_many, alternative="less").pvalue < 1e-4
    assert stats.ttest_rel(scored, thrice, alternative="less").pvalue < 1e-4
