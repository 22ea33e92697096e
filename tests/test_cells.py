"""Cells, passes over rows, and the errors and models that come from their statistics."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, TimeSeriesSplit

import imparo
from imparo.data.sources import ArraySource
from imparo.engine import blocks as engine_blocks
from imparo.errors import MemoryBudgetError
from imparo.estimators import blocks, map_search
from imparo.estimators.blocks import Stream
from imparo.estimators.cells import Cells
from imparo.estimators.map_search import Fitted, Grid, judge, solve
from imparo.estimators.passes import (
    Models,
    accumulate,
    extend,
    raw_is_accurate,
    score_models,
    smallest_eigenvalue,
)
from imparo.features import NystromMap
from imparo.kernels import Gaussian, Laplacian, Linear
from imparo.scores import Misclassification, RootMeanSquare
from imparo.statistics import Statistics

N = 30
FIELDS = ("A", "b", "yy", "feature_sum", "output_sum", "weight")

seeds = st.integers(0, 2**32 - 1)
often = settings(max_examples=40, deadline=None)
both_routes = pytest.mark.parametrize("raw", [False, True])


@st.composite
def random_splits(draw, n=N, most=6):
    """Draw rows that are kept and splits of them, overlapping in any way."""
    rng = np.random.default_rng(draw(seeds))
    kept = np.sort(rng.choice(n, draw(st.integers(4, n)), replace=False))
    splits = []
    for _ in range(draw(st.integers(0, most))):
        order = rng.permutation(len(kept))
        fitted, held = rng.integers(1, len(kept) - 1), rng.integers(1, 4)
        splits.append((order[:fitted], order[fitted : fitted + held]))
    return kept, splits


def statistics_of(Phi, Y, weight, rows):
    return Statistics(Phi.shape[1], Y.shape[1]).add(Phi[rows], Y[rows], weight[rows])


def assert_same(ours, theirs, **tolerance):
    for name in FIELDS:
        one, other = getattr(ours, name), getattr(theirs, name)
        assert_allclose(one, other, err_msg=name, **tolerance)


# Cells.


@given(case=random_splits())
@often
def test_cells_are_the_coarsest_partition_that_every_split_respects(case):
    kept, splits = case
    cells = Cells.of(splits, kept, N)
    unused = np.setdiff1d(np.arange(N), kept)
    assert (cells.of_row[unused] == -1).all()
    assert cells.fitted.shape == cells.held.shape == (len(splits), len(cells))
    assert not (cells.fitted & cells.held).any()
    for v, (fitted, held) in enumerate(splits):
        inside = np.isin(cells.of_row, np.flatnonzero(cells.fitted[v]))
        outside = np.isin(cells.of_row, np.flatnonzero(cells.held[v]))
        assert np.flatnonzero(inside).tolist() == sorted(kept[fitted])
        assert np.flatnonzero(outside).tolist() == sorted(kept[held])
    patterns = {(*cells.fitted[:, c], *cells.held[:, c]) for c in range(len(cells))}
    assert len(patterns) == len(cells) == len(set(cells.of_row[kept].tolist()))


@given(case=random_splits(), seed=seeds)
@often
def test_parts_are_the_statistics_of_fitted_and_held_out_rows(case, seed):
    kept, splits = case
    rng = np.random.default_rng(seed)
    Phi, Y = rng.normal(size=(N, 3)), rng.normal(size=(N, 2))
    w = rng.uniform(0.1, 2, N)
    cells = Cells.of(splits, kept, N)
    each = [statistics_of(Phi, Y, w, cells.of_row == c) for c in range(len(cells))]
    before = [np.array(s.A) for s in each]
    assert_same(cells.total(each), statistics_of(Phi, Y, w, kept), rtol=1e-9, atol=1e-9)
    for v, (fitted, held) in enumerate(splits):
        inside, outside = cells.parts(each, v)
        assert_same(inside, statistics_of(Phi, Y, w, kept[fitted]), rtol=1e-9, atol=1e-9)
        assert_same(outside, statistics_of(Phi, Y, w, kept[held]), rtol=1e-9, atol=1e-9)
    for statistics, A in zip(each, before, strict=True):
        assert_array_equal(statistics.A, A)


def test_no_split_is_one_cell():
    cells = Cells.of([], np.array([0, 2]), 4)
    assert cells.of_row.tolist() == [0, -1, 0, -1]
    assert len(cells) == 1
    assert cells.fitted.shape == (0, 1)
    assert cells.may_be_centers().tolist() == [True, False, True, False]


@pytest.mark.parametrize("n", [10, 39, 40, 60])
def test_leaving_one_out_has_as_many_cells_as_rows(n):
    # From 40 splits on their codes no longer fit into 64 bits.
    splits = list(LeaveOneOut().split(np.zeros(n)))
    cells = Cells.of(splits, np.arange(n), n)
    assert len(cells) == n
    for v, (fitted, held) in enumerate(splits):
        assert cells.held[v, cells.of_row[held]].all()
        assert cells.fitted[v, cells.of_row[fitted]].all()
        assert np.count_nonzero(cells.held[v]) == 1


def test_folds_and_hold_outs_have_as_few_cells_as_can_be():
    rows = np.arange(N)
    folds = Cells.of(list(KFold(5).split(rows)), rows, N)
    assert (len(folds), folds.of_row.dtype) == (5, np.int16)
    hold_out = Cells.of(list(ShuffleSplit(1, random_state=0).split(rows)), rows, N)
    assert len(hold_out) == 2
    series = Cells.of(list(TimeSeriesSplit(4).split(rows)), rows, N)
    assert len(series) == 5


def test_centers_may_not_be_rows_that_are_only_held_out():
    rows = np.arange(10)
    (split,) = ShuffleSplit(1, test_size=3, train_size=5, random_state=0).split(rows)
    allowed = Cells.of([split], rows, 10).may_be_centers()
    assert np.flatnonzero(~allowed).tolist() == sorted(split[1])
    assert Cells.of(list(KFold(5).split(rows)), rows, 10).may_be_centers().all()
    last = Cells.of(list(TimeSeriesSplit(4).split(rows)), rows, 10).may_be_centers()
    assert np.flatnonzero(~last).tolist() == [8, 9]


def test_saved_cells(tmp_path):
    cells = Cells.of(list(KFold(3).split(np.arange(N))), np.arange(N), N)
    imparo.save(cells, tmp_path / "cells.imparo")
    loaded = imparo.load(tmp_path / "cells.imparo")
    for name in ("of_row", "fitted", "held"):
        assert_array_equal(getattr(loaded, name), getattr(cells, name))


# Passes.


def problem(seed=0, n=60, m=9, outputs=2, splits=(), form=np.asarray, dtype=np.float64,
            weighted=True, kernel=None, drop=True):  # fmt: skip
    """Return rows, a map of well separated centers, and the features and weights of all."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 2)).astype(dtype)
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])[:, :outputs]
    Y = (Y + 0.1 * rng.normal(size=Y.shape)).astype(dtype)
    w = (rng.choice([0.25, 0.5, 1.0], n) if weighted else np.ones(n)).astype(dtype)
    kept = np.flatnonzero(rng.uniform(size=n) < 0.9) if drop else np.arange(n)
    place = {row: i for i, row in enumerate(kept)}
    pairs = [[np.array([place[r] for r in side if r in place]) for side in s] for s in splits]
    cells = Cells.of(pairs, kept, n)
    source = ArraySource(form(X), np.dtype(dtype))
    rows = Stream(source, Y, w, cells.of_row, len(cells), 2**30, False)
    kernel = kernel or Laplacian(1.0)
    map = NystromMap(kernel, form(rng.uniform(-3, 3, size=(m, 2)).astype(dtype)))
    return rows, map, cells, X.astype(np.float64)


def expected_statistics(rows, map, cells, X):
    """Return the statistics of every cell from a Cholesky factor of NumPy's."""
    centers = map.centers.toarray() if sparse.issparse(map.centers) else map.centers
    centers = centers.astype(np.float64)
    L = np.linalg.cholesky(map.kernel(centers))
    Phi = np.linalg.solve(L, map.kernel(X, centers).T).T
    Y, w = rows.Y.astype(np.float64), rows.weight.astype(np.float64)
    return [statistics_of(Phi, Y, w, cells.of_row == c) for c in range(len(cells))]


FOLDS = list(KFold(4, shuffle=True, random_state=0).split(np.arange(60)))
RANDOM = list(ShuffleSplit(3, test_size=20, train_size=25, random_state=0).split(range(60)))


@both_routes
@pytest.mark.parametrize("splits", [(), FOLDS[:1], FOLDS, RANDOM])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("block", [1, 7, 10_000])
def test_a_pass_gives_the_statistics_of_every_cell(monkeypatch, raw, splits, weighted, block):
    rows, map, cells, X = problem(splits=splits, weighted=weighted)
    per_row = (4 * len(map) + 3 * 2) * 8
    monkeypatch.setattr(engine_blocks, "PREFERRED_BLOCK_BYTES", block * per_row)
    monkeypatch.setattr(blocks, "_HIGH", 1)
    assert rows.block_size(len(map)) == block
    found = accumulate(rows, map, raw=raw)
    for ours, theirs in zip(found, expected_statistics(rows, map, cells, X), strict=True):
        assert_same(ours, theirs, rtol=1e-8, atol=1e-10)


@both_routes
@pytest.mark.parametrize("before", [1, 4, 8])
@pytest.mark.parametrize("splits", [(), FOLDS, RANDOM])
@pytest.mark.parametrize("weighted", [False, True])
def test_extending_statistics_is_taking_all_columns_at_once(raw, before, splits, weighted):
    rows, map, cells, X = problem(splits=splits, weighted=weighted)
    part = NystromMap(map.kernel, map.centers[:before])
    grown = part.grow(map.centers[before:])
    for first in (False, True):
        old = accumulate(rows, part, raw=first)
        kept = [np.array(s.A) for s in old]
        found = extend(rows, grown, old, raw=raw)
        for ours, theirs in zip(found, expected_statistics(rows, map, cells, X), strict=True):
            assert_same(ours, theirs, rtol=1e-8, atol=1e-10)
        for statistics, A in zip(old, kept, strict=True):
            assert_array_equal(statistics.A, A)


@both_routes
def test_extending_by_centers_that_add_nothing_changes_nothing(raw):
    rows, map, *_ = problem()
    old = accumulate(rows, map, raw=False)
    grown = map.grow(map.centers[:2])
    assert len(grown) == len(map)
    for ours, theirs in zip(extend(rows, grown, old, raw=raw), old, strict=True):
        assert_same(ours, theirs, rtol=0, atol=0)


@both_routes
def test_extending_a_map_without_columns(raw):
    rows, map, cells, X = problem(kernel=Linear(), m=2)
    nothing = NystromMap(map.kernel, np.zeros((1, 2)))
    assert len(nothing) == 0
    old = accumulate(rows, nothing, raw=raw)
    found = extend(rows, nothing.grow(map.centers), old, raw=raw)
    for ours, theirs in zip(found, expected_statistics(rows, map, cells, X), strict=True):
        assert_same(ours, theirs, rtol=1e-8, atol=1e-10)


@both_routes
def test_sparse_rows_have_the_statistics_of_dense_ones(raw):
    rows, map, cells, X = problem(form=sparse.csr_array, splits=FOLDS, kernel=Gaussian(0.7))
    found = accumulate(rows, map, raw=raw)
    for ours, theirs in zip(found, expected_statistics(rows, map, cells, X), strict=True):
        assert_same(ours, theirs, rtol=1e-7, atol=1e-9)


@both_routes
@pytest.mark.parametrize("weighted", [False, True])
def test_single_precision_features_have_double_precision_sums(raw, weighted):
    # Enough rows that float32 sums are flushed more than once.
    rows, map, cells, X = problem(
        n=9000, m=6, splits=[(np.arange(5000), np.arange(5000, 9000))], weighted=weighted,
        dtype=np.float32,
    )  # fmt: skip
    found = accumulate(rows, map, raw=raw)
    half = NystromMap(map.kernel, map.centers[:3])
    steps = extend(rows, half.grow(map.centers[3:]), accumulate(rows, half, raw=raw), raw=raw)
    expected = expected_statistics(rows, map, cells, X)
    for ours in (found, steps):
        for statistics, theirs in zip(ours, expected, strict=True):
            assert statistics.A.dtype == statistics.b.dtype == np.float64
            assert_same(statistics, theirs, rtol=1e-5, atol=1e-6 * theirs.weight)


def test_a_pass_reports_its_progress():
    calls = []
    rows, map, cells, _ = problem()
    rows = Stream(rows.source, rows.Y, rows.weight, rows.cell, len(cells), 2**30,
                lambda *a: calls.append(a))  # fmt: skip
    accumulate(rows, map, raw=False)
    assert calls == [(1, 1, "reading rows")]


def test_a_row_that_does_not_fit_into_memory():
    rows, map, cells, _ = problem()
    rows = Stream(rows.source, rows.Y, rows.weight, rows.cell, len(cells), 1000, False)
    with pytest.raises(MemoryBudgetError, match="one row of features needs"):
        accumulate(rows, map, raw=False)


@given(seed=seeds, size=st.integers(1, 40), spread=st.floats(0.5, 12))
@often
def test_the_smallest_eigenvalue_is_found_from_the_factor(seed, size, spread):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(size, size)))[0]
    values = 10 ** rng.uniform(-spread, 0, size)
    values[0] = 10**-spread
    T = np.linalg.cholesky((Q * values) @ Q.T).T
    exact = np.linalg.svd(T, compute_uv=False)[-1] ** 2
    found = smallest_eigenvalue(T)
    # An iterate cannot be below; ten steps bring it near whatever the others are.
    assert exact * (1 - 1e-3) <= found <= exact * 1.5


def test_raw_statistics_are_taken_only_where_they_are_accurate():
    rows, map, *_ = problem()
    least = np.linalg.eigvalsh(map.kernel(map.centers))[0]
    raw, error = raw_is_accurate(map, 1e-2, rows, 0.0)
    assert raw
    # ε n √m / σ_min, K(x, x) being 1.
    expected = np.finfo(float).eps * rows.weight.sum() * np.sqrt(len(map)) / least
    assert error == pytest.approx(expected, rel=0.1)
    assert not raw_is_accurate(map, 1e-15, rows, 0.0)[0]
    assert raw_is_accurate(map, 1e-15, rows, 1.0)[0]  # the centers are among the rows
    close = NystromMap(Gaussian(1.0), np.linspace(0, 2, 9)[:, None] * [[1.0, 0.0]])
    assert not raw_is_accurate(close, 1e-6, rows, 1.0)[0]


def test_the_error_of_raw_statistics_is_as_large_as_said():
    rows, *_ = problem(n=300, drop=False)
    map = NystromMap(Gaussian(1.0), np.linspace(-3, 3, 14)[:, None] * [[1.0, 0.3]])
    raw, error = raw_is_accurate(map, 1e-3, rows, 0.0)
    exact, rough = (accumulate(rows, map, raw=route)[0].A for route in (False, True))
    difference = np.linalg.norm(exact - rough, 2)
    assert difference <= error
    assert difference > 1e-4 * error  # and not by far
    assert raw == (error <= 1e-3 * 1e-3 * rows.weight.sum())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_kernels_of_any_size_have_a_route(scale):
    rows, _, cells, X = problem(m=2)
    source = ArraySource(X * scale, np.dtype(float))
    rows = Stream(source, rows.Y, rows.weight, rows.cell, len(cells), 2**30, False)
    map = NystromMap(Linear(), np.array([[1.0, 0.0], [0.5, 1.0]]) * scale)
    raw, _ = raw_is_accurate(map, 1e-3, rows, 0.0)
    found = accumulate(rows, map, raw=raw)[0]
    w = rows.weight * (rows.cell >= 0)
    assert_allclose(np.trace(found.A) / scale**2, w @ (X**2).sum(axis=1), rtol=1e-9)


def test_a_map_without_columns_has_a_route_too():
    rows, *_ = problem()
    nothing = NystromMap(Linear(), np.zeros((3, 2)))
    assert raw_is_accurate(nothing, 1e-3, rows, 0.0) == (False, 0.0)
    (found,) = accumulate(rows, nothing, raw=False)
    assert found.A.shape == (0, 0)
    assert found.weight == pytest.approx(rows.weight[rows.cell >= 0].sum())


@pytest.mark.parametrize(
    "score", [RootMeanSquare(), Misclassification(), Misclassification(True)]
)
def test_scores_of_models_are_those_of_their_predictions(score):
    rows, map, cells, X = problem(splits=RANDOM)
    rng = np.random.default_rng(1)
    sizes = [2, 5, len(map)]
    models = Models(
        [rng.normal(size=(size, 3, 2)) for size in sizes], rng.normal(size=(3, 3, 2))
    )
    chosen = rng.uniform(size=len(cells)) < 0.5
    found = score_models(rows, chosen, map, models, score)
    used = np.isin(cells.of_row, np.flatnonzero(chosen))
    K = map.kernel(X[used], map.centers)
    for s, coef in enumerate(models.coefficients):
        for i in range(3):
            F = K[:, : sizes[s]] @ coef[:, i] + models.intercepts[i, s]
            expected = score(rows.Y[used], F[:, None, :], rows.weight[used])[:, 0]
            assert_allclose(found[:, i, s], expected, rtol=1e-9)


# Judging and solving.


def test_statistics_remember_how_they_were_taken():
    rows, map, *_ = problem()
    part = NystromMap(map.kernel, map.centers[:4])
    error = raw_is_accurate(part, 1e-2, rows, 0.0)[1]
    raw, exact = (Fitted.to(rows, part, penalty, 0.0) for penalty in (1e-2, 1e-15))
    assert (raw.raw, raw.floor) == (True, error)
    assert (exact.raw, exact.floor) == (False, 0.0)
    # A grown map has the errors of its columns, old and new.
    error = raw_is_accurate(map, 1e-2, rows, 0.0)[1]
    assert exact.grown(rows, map, 1e-2, 0.0).floor == error >= raw.floor
    assert raw.grown(rows, map, 1e-15, 0.0).floor == raw.floor


def test_errors_below_those_of_raw_statistics_come_from_residuals(monkeypatch):
    # Where wᵀAw is known to 1e-6‖w‖² only, small errors are not taken from it.
    rows, map, cells, _ = problem(splits=FOLDS[:1])
    grid = Grid(np.array([[1e-2]]), np.array([9]))
    statistics = accumulate(rows, map, raw=False)
    plain = judge(
        Fitted(map, statistics, False, 0.0), rows, cells, grid, RootMeanSquare(), True
    )
    passes = []
    monkeypatch.setattr(
        map_search, "score_models", lambda *a: passes.append(1) or score_models(*a)
    )
    for floor, n_passes in ((1e-12, 0), (1.0, 1)):
        fitted = Fitted(map, statistics, True, floor)
        again = judge(fitted, rows, cells, grid, RootMeanSquare(), True)
        assert len(passes) == n_passes
        assert_allclose(again.errors, plain.errors, rtol=1e-8)


def weighted_ridge(Phi, Y, weight, penalty, intercept):
    root, p = np.sqrt(weight)[:, None], Phi.shape[1]
    left = np.hstack([root * Phi, root * intercept])
    below = np.hstack([np.sqrt(weight.sum() * penalty) * np.eye(p), np.zeros((p, 1))])
    right = np.vstack([root * Y, np.zeros((p, Y.shape[1]))])
    w = np.linalg.lstsq(np.vstack([left, below]), right, rcond=None)[0]
    return lambda new: new @ w[:p] + w[p] * intercept


def features(map, X):
    L = np.linalg.cholesky(map.kernel(map.centers))
    return np.linalg.solve(L, map.kernel(X, map.centers).T).T


@both_routes
@pytest.mark.parametrize("splits", [FOLDS[:1], FOLDS, RANDOM])
@pytest.mark.parametrize("intercept", [False, True])
def test_errors_of_a_grid_are_those_of_separate_fits(raw, splits, intercept):
    rows, map, cells, X = problem(splits=splits)
    fitted = Fitted(map, accumulate(rows, map, raw=raw), raw, 0.0)
    sizes, values = np.array([1, 3, 9]), np.array([1.0, 1e-2, 1e-4])
    grid = Grid(np.broadcast_to(values[:, None], (3, 3)), sizes)
    scores = judge(fitted, rows, cells, grid, RootMeanSquare(), intercept)
    Phi, w, used = features(map, X), rows.weight, rows.cell >= 0
    for i, penalty in enumerate(values):
        for s, size in enumerate(sizes):
            sums = np.zeros((2, 2))
            for pair in splits:
                train, held = (np.intersect1d(part, np.flatnonzero(used)) for part in pair)
                f = weighted_ridge(
                    Phi[train, :size], rows.Y[train], w[train], penalty, intercept
                )
                for side, part in enumerate((held, train)):
                    squares = ((f(Phi[part, :size]) - rows.Y[part]) ** 2).mean(axis=1)
                    sums[side] += w[part] @ squares, w[part].sum()
            expected = np.sqrt(sums[:, 0] / sums[:, 1])
            assert scores.errors[i, s] == pytest.approx(expected[0], rel=1e-7)
            assert scores.train_errors[i, s] == pytest.approx(expected[1], rel=1e-7)
    f = weighted_ridge(Phi[used, :3], rows.Y[used], w[used], 1e-2, intercept)
    model = solve(fitted, rows, cells, 1e-2, 3, intercept)
    ours = map.kernel(X, map.centers[:3]) @ model.coef + model.intercept
    assert_allclose(ours, f(Phi[:, :3]), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_generalized_cross_validation_is_its_definition(intercept):
    rows, map, cells, X = problem()
    fitted = Fitted(map, accumulate(rows, map, raw=False), False, 0.0)
    sizes, values = np.array([1, 4, 9]), np.array([1.0, 1e-3])
    grid = Grid(np.broadcast_to(values[:, None], (2, 3)), sizes)
    scores = judge(fitted, rows, cells, grid, RootMeanSquare(), intercept)
    used = rows.cell >= 0
    Phi, Y, w = features(map, X)[used], rows.Y[used], rows.weight[used]
    for i, penalty in enumerate(values):
        for s, size in enumerate(sizes):
            # Column j of the hat matrix is the fit to the j-th unit vector.
            H = weighted_ridge(Phi[:, :size], np.eye(len(w)), w, penalty, intercept)(
                Phi[:, :size]
            )
            mean = (w @ ((Y - H @ Y) ** 2).mean(axis=1)) / w.sum()
            freedom = 1 - np.trace(H) / len(w)
            assert scores.errors[i, s] == pytest.approx(np.sqrt(mean) / freedom, rel=1e-7)
            assert scores.train_errors[i, s] == pytest.approx(np.sqrt(mean), rel=1e-7)


def test_penalties_may_depend_on_the_size():
    rows, map, cells, _ = problem(splits=FOLDS)
    fitted = Fitted(map, accumulate(rows, map, raw=False), False, 0.0)
    sizes, penalties = np.array([2, 5, 9]), np.array([0.3, 0.1, 0.01])
    together = judge(
        fitted, rows, cells, Grid(penalties[None, :], sizes), RootMeanSquare(), True
    )
    for s, (size, penalty) in enumerate(zip(sizes, penalties, strict=True)):
        grid = Grid(np.array([[penalty]]), np.array([size]))
        alone = judge(fitted, rows, cells, grid, RootMeanSquare(), True)
        assert together.errors[0, s] == pytest.approx(alone.errors[0, 0], rel=1e-9)


def test_misclassification_rates_are_counted_in_few_models_at_a_time():
    rows, map, cells, _ = problem(splits=FOLDS)
    rows = Stream(
        rows.source, np.sign(rows.Y), rows.weight, rows.cell, len(cells), 2**30, False
    )
    fitted = Fitted(map, accumulate(rows, map, raw=False), False, 0.0)
    sizes, values = np.array([1, 3, 9]), np.geomspace(1, 1e-6, 8)
    grid = Grid(np.broadcast_to(values[:, None], (8, 3)), sizes)
    large = judge(fitted, rows, cells, grid, Misclassification(True), False)
    rows = Stream(rows.source, rows.Y, rows.weight, rows.cell, len(cells), 12_000, False)
    small = judge(fitted, rows, cells, grid, Misclassification(True), False)
    assert_allclose(small.errors, large.errors, rtol=1e-12)
    assert np.isnan(large.train_errors).all()
    assert len(np.unique(large.errors)) > 3
