"""Learning within a budget: rows of every kind, and the rows that judge."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.model_selection import KFold, ShuffleSplit

from auto_tools import FIXED, as_pandas, comparable
from imparo import AutoClassifier, AutoRegressor, NystromRegressor
from imparo.data.sources import ArraySource
from imparo.estimators import auto_search
from imparo.estimators.auto_average import averaged
from imparo.estimators.inputs import scaled_outputs
from imparo.estimators.map_search import held_out_predictions
from imparo.preparation import KernelInputs

# Rows of every kind.


def test_rows_of_weight_zero_are_as_none(households, no_clock):
    """Columns are prepared without them, too."""
    columns, y = households
    frame = as_pandas(columns)
    odd = frame[:60].assign(income=1e9, city="Atlantis")
    both = pd.concat([odd, frame], ignore_index=True)
    weight = np.r_[np.zeros(60), np.ones(len(y))]
    model = AutoRegressor(**FIXED).fit(both, np.r_[np.full(60, 1e6), y], weight)
    expected = KernelInputs().fit(frame).transform(frame)
    assert_allclose(model.inputs_.transform(frame), expected, atol=1e-12)
    assert np.sqrt(np.mean((model.predict(frame) - y) ** 2)) < 0.3 * y.std()


def test_single_precision_stays(waves):
    X, y = waves[0].astype(np.float32), waves[1]
    model = AutoRegressor(budget=1, random_state=0).fit(X, y)
    for member in model.members_:
        assert member.coef.dtype == member.centers.dtype == np.float32
    assert model.predict(X).dtype == np.float32
    assert model.score(X, y) > 0.95
    asked = AutoRegressor(budget=1, random_state=0, dtype="float32").fit(waves[0], y)
    assert asked.dual_coef_.dtype == np.float32


def test_sparse_rows(rng):
    X = sparse.random_array((400, 30), density=0.2, rng=rng, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel()
    model = AutoRegressor(budget=2, random_state=0).fit(X, y)
    assert sparse.issparse(model.centers_)
    assert model.score(X, y) > 0.8
    classes = AutoClassifier(budget=2, random_state=0).fit(X, y > np.median(y))
    assert classes.score(X, y > np.median(y)) > 0.8


@pytest.mark.parametrize("form", ["map", "blocks"])
def test_maps_and_blocks_are_prepared_as_they_are_read(waves, tmp_path, no_clock, form):
    X, y = waves[0] * 1000, waves[1]
    if form == "map":
        rows = np.memmap(tmp_path / "X", float, "w+", shape=X.shape)
        rows[:] = X
        model = AutoRegressor(**FIXED).fit(rows, y)
    else:
        blocks = [(X[i : i + 70], y[i : i + 70]) for i in range(0, 300, 70)]
        model = AutoRegressor(**FIXED).fit(blocks)
    expected = AutoRegressor(**FIXED).fit(X, y)
    assert model.inputs_ is not None
    assert_allclose(model.predict(X), expected.predict(X), atol=1e-6)


def test_classes_with_names_and_several_labels(waves):
    X, y = waves
    names = np.where(y > 0, "up", "down")
    model = AutoClassifier(budget=1, random_state=0).fit(X, names)
    assert set(model.predict(X)) == {"up", "down"}
    assert model.score(X, names) > 0.9
    labels = np.column_stack([y > 0, X[:, 1] > 0]).astype(int)
    several = AutoClassifier(budget=1, random_state=0).fit(X, labels)
    assert several.predict(X).shape == (300, 2)
    assert np.mean(several.predict(X) == labels) > 0.9


def test_several_skewed_outputs(incomes):
    X, y = incomes[0][:400], incomes[1][:400]
    Y = np.column_stack([y, 1000 / y])
    model = AutoRegressor("gaussian", target="log", budget=1, random_state=0).fit(X, Y)
    assert model.predict(X).shape == (400, 2)
    assert np.corrcoef(np.log(model.predict(X)[:, 1]), np.log(Y[:, 1]))[0, 1] > 0.9


def test_few_rows_of_a_table():
    frame = pd.DataFrame({"city": ["Rome", "Oslo"], "day": pd.to_datetime(["2020", "2021"])})
    model = AutoRegressor(budget=2, random_state=0).fit(frame, [0.0, 1.0])
    assert np.isfinite(model.predict(frame)).all()
    classes = AutoClassifier(budget=2, random_state=0).fit(frame, ["a", "b"])
    assert set(classes.predict(frame)) <= {"a", "b"}


@pytest.mark.parametrize("target", ["auto", "log", "yeo-johnson"])
def test_constant_outputs(waves, target):
    model = AutoRegressor(budget=1, target=target, random_state=0).fit(
        waves[0], np.full(300, 7)
    )
    assert_allclose(model.predict(waves[0]), 7, rtol=1e-6)


def test_columns_without_values_are_left_out(waves):
    X, y = waves
    empty = np.column_stack([X, np.full(300, np.nan)])
    model = AutoRegressor(budget=1, random_state=0).fit(empty, y)
    assert model.n_features_in_ == 5
    assert 4 not in model.inputs_.sources_
    assert model.score(empty, y) > 0.9
    constant = AutoRegressor(budget=1, random_state=0).fit(np.ones((300, 2)), y)
    assert_allclose(constant.predict(np.ones((3, 2))), y.mean(), atol=1e-6)


def test_gaps_are_filled_with_little_memory_too(rng):
    X = rng.normal(size=(5000, 8))
    y = np.sin(2 * X[:, 0])
    X[::7, 1] = np.nan
    model = AutoRegressor("gaussian", memory="1MB", budget=1, random_state=0).fit(X, y)
    assert model.inputs_ is not None
    assert model.score(X, y) > 0.1


def test_one_row_of_weight(waves):
    with pytest.raises(ValueError, match="1 sample"):
        AutoRegressor().fit(*waves, np.arange(300) == 0)


@pytest.mark.parametrize("budget", [1e-9, 0.5])
def test_little_time_is_enough_for_a_model(households, budget):
    frame, y = as_pandas(households[0]), households[1]
    model = AutoRegressor(budget=budget, random_state=0).fit(frame, y)
    assert np.isfinite(model.predict(frame)).all()
    assert model.record_[0].note.startswith("first model")
    classes = AutoClassifier(budget=budget, random_state=0).fit(frame, y > 2)
    assert set(classes.predict(frame)) <= {True, False}


# Rows that judge.


PAIRS = [(np.arange(100, 300), np.arange(100)), (np.arange(200), np.arange(200, 300))]


@pytest.mark.parametrize(
    ("validation", "n_held"),
    [("auto", 300), ("last", 60), (0.25, 75), (3, 300), (KFold(4), 300), (PAIRS, 200)],
    ids=["auto", "last", "fraction", "folds", "splitter", "pairs"],
)
@pytest.mark.parametrize("sigma", ["median", "learned"])
def test_what_judges_can_be_chosen(waves, validation, n_held, sigma):
    model = AutoRegressor("gaussian", sigma=sigma, validation=validation, budget=1)
    model.fit(*waves)
    assert {t.n_held for t in comparable(model)} == {n_held}


def test_the_last_rows_judge_a_series(rng):
    t = np.linspace(0, 60, 1000)
    X = np.column_stack([np.sin(t), rng.normal(size=1000)])
    y = X[:, 0] + 0.1 * rng.normal(size=1000)
    order = rng.permutation(1000)
    settings = {**FIXED, "budget": 1}
    model = AutoRegressor(**settings).fit(X, y)
    assert model.validation_.startswith("the last 200 rows")
    assert {trial.n_held for trial in comparable(model)} == {200}
    shuffled = AutoRegressor(**settings).fit(X[order], y[order])
    assert shuffled.validation_ == "5-fold"


def test_rows_that_are_held_out_twice_are_not_averaged(incomes, always_averaged, no_clock):
    """There would be two predictions of them, and errors would not compare."""
    X, y = incomes[0][:150], incomes[1][:150]
    splits = ShuffleSplit(4, test_size=0.3, random_state=0)
    model = AutoRegressor("gaussian", sigma=[0.5, 1.0], validation=splits, random_state=0)
    model.fit(X, y)
    assert len(model.members_) == 1
    assert model.path_.best["error"] == min(t.error for t in comparable(model))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("validation", ["hold-out", "folds"])
def test_predictions_of_held_out_rows_are_those_of_separate_fits(waves, validation, intercept):
    X, y = waves
    parts = np.array_split(np.random.default_rng(2).permutation(300), 4)
    parts = parts[:1] if validation == "hold-out" else parts
    splits = [(np.setdiff1d(np.arange(300), part), part) for part in parts]
    Y = np.column_stack([y, 1 + y**2])
    model = NystromRegressor(
        sigma=1.5, penalty=[1e-4, 1e-3], n_centers=[20, 40], intercept=intercept,
        validation=splits, random_state=0,
    ).fit(X, Y)  # fmt: skip
    for penalty, m in ((1e-4, 40), (1e-3, 20)):
        rows, F = held_out_predictions(
            model.statistics_, ArraySource(X, X.dtype), penalty, m, intercept
        )
        assert sorted(rows) == sorted(np.concatenate(parts))
        expected = np.full(Y.shape, np.nan)
        for fitted, held in splits:
            alone = NystromRegressor(
                sigma=1.5, penalty=penalty, intercept=intercept, n_centers=m,
                centers=model.statistics_.map.centers[:m],
            ).fit(X[fitted], Y[fitted])  # fmt: skip
            expected[held] = alone.predict(X[held])
        # Outputs are scaled for the fit and, with an intercept, centered.
        scale, shift = scaled_outputs(Y, np.ones(300), intercept, Y.dtype)[1:]
        assert_allclose(F * scale + shift, expected[rows], atol=1e-6)


@pytest.mark.parametrize("kind", ["numbers", "logarithms", "classes", "weights"])
def test_the_error_of_a_model_is_that_of_its_held_out_predictions(incomes, monkeypatch, kind):
    """In the pool that averages are chosen from, whatever the score and the outputs."""
    X, y = incomes[0][:400], incomes[1][:400]
    make, settings, weight, seen = AutoRegressor, {"target": "none"}, None, []
    if kind == "logarithms":
        settings = {"target": "log"}
    if kind == "classes":
        make, settings, y = AutoClassifier, {}, np.digitize(y, [0.5, 2])
    if kind == "weights":
        weight = np.random.default_rng(3).integers(0, 3, 400)

    def watched(pool, Y, weight, error):
        for best in pool:
            held = np.isfinite(best.held).all(axis=1)
            seen.append(best.error)
            assert_array_equal(held, weight > 0)
            found = error(best.held[held].astype(float), Y[held], weight[held])
            assert found == pytest.approx(best.error, rel=1e-4)
        return averaged(pool, Y, weight, error)

    monkeypatch.setattr(auto_search, "averaged", watched)
    make("gaussian", budget=2, random_state=0, **settings).fit(X, y, weight)
    assert len(seen) > 1
