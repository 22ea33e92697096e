"""Fits to tables from Python: what they are made of, step by step."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest

import imparo
from imparo import AutoRegressor, NystromClassifier, NystromRegressor
from imparo.data import Frame, load_concrete
from imparo.errors import MemoryBudgetError
from imparo.preparation import KernelInputs
from imparo.tabular import as_rows, evaluate_table, fit_table, predict_blocks


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    size, city = rng.uniform(0, 3, n), np.array(["Rome", "Oslo", "Bonn"], object)
    city = city[rng.integers(0, 3, n)]
    size[::11] = np.nan
    price = np.nan_to_num(np.sin(size)) + (city == "Rome") + 0.05 * rng.normal(size=n)
    return Frame({"size": size, "city": city, "who": rng.integers(0, 20, n), "price": price})


QUICK = {"method": "nystrom", "n_centers": 80}


@pytest.mark.parametrize("disk", [False, True])
def test_a_fit_is_preparation_and_a_machine(disk, monkeypatch):
    if disk:
        monkeypatch.setattr("imparo.tabular.gathering._SHARE", 1e-9)
    frame = table()
    fitted = fit_table(frame, "price", **QUICK)
    assert (fitted.account.cost.scratch_bytes > 0) == disk
    rows = np.arange(400)
    test = np.sort(np.random.RandomState(0).permutation(400)[:80])
    assert fitted.account.rows_tested == 80
    fit = np.setdiff1d(rows, test)
    X = frame.without(["price"])
    inputs = KernelInputs().fit(X[fit])
    machine = NystromRegressor(n_centers=80, intercept=True, random_state=0)
    machine.fit(inputs.transform(X[fit]), frame["price"][fit])
    expected = machine.predict(inputs.transform(X))
    np.testing.assert_allclose(fitted.model.predict(frame), expected, rtol=1e-7, atol=1e-9)
    error = np.sqrt(np.mean((expected[test] - frame["price"][test]) ** 2))
    assert fitted.evaluation.metrics["rmse"] == pytest.approx(error)


def test_all_rows_are_fitted_without_a_test():
    frame = table()
    fitted = fit_table(frame, "price", test=0, **QUICK)
    assert fitted.evaluation is None
    assert fitted.account.rows_fitted == 400
    assert any("no rows were kept" in sentence for sentence in fitted.account.warnings)


def test_frames_of_all_kinds_give_the_same_model():
    frame = table()
    cells = {name: frame[name] for name in frame.columns}
    polars = pl.DataFrame({**cells, "city": list(cells["city"])})
    models = [
        fit_table(rows, "price", **QUICK).model for rows in (frame, pd.DataFrame(cells), polars)
    ]
    answers = [model.predict(frame) for model in models]
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_allclose(answers[0], answers[2], rtol=1e-9)
    np.testing.assert_array_equal(models[0].predict(pd.DataFrame(cells)), answers[0])


def test_a_saved_model_answers_as_before(tmp_path):
    frame = table()
    model = fit_table(frame, "price", group="who", **QUICK).model
    imparo.save(model, tmp_path / "m.imparo")
    same = imparo.load(tmp_path / "m.imparo")
    np.testing.assert_array_equal(same.predict(frame), model.predict(frame))
    assert same.columns == ["size", "city"]
    assert same.made["split"].endswith("no group is both fitted and judged by")


def test_rows_of_weight_0_are_as_none():
    frame = table()
    weight = np.ones(400)
    weight[::4] = 0
    kept = np.flatnonzero(weight)
    settings = {"test": 0, "sigma": 1.0, "penalty": 1e-3, "method": "exact"}
    one = fit_table(frame.with_column("w", weight), "price", weight="w", **settings).model
    other = fit_table(frame[kept], "price", **settings).model
    np.testing.assert_allclose(one.predict(frame), other.predict(frame), rtol=1e-9, atol=1e-9)


def test_probabilities_are_what_square_loss_aims_at():
    frame = table()
    label = np.where(frame["price"] > 0.8, "dear", "cheap").astype(object)
    model = fit_table(frame.with_column("price", label), "price", **QUICK).model
    P = model.predict_proba(frame)
    F = model.machine.decision_function(model.prepared(frame))
    np.testing.assert_allclose(P[:, 1], np.clip((1 + F) / 2, 0, 1))
    np.testing.assert_array_equal(model.predict(frame), np.array(model.classes)[P.argmax(1)])
    with pytest.raises(ValueError, match="probabilities are of classes"):
        fit_table(frame, "price", **QUICK).model.predict_proba(frame)


def test_probabilities_of_many_classes_sum_to_1():
    fitted = fit_table("digits", method="nystrom", n_centers=100)
    assert isinstance(fitted.model.machine, NystromClassifier)
    rows = as_rows("digits")
    block = next(iter(predict_blocks(fitted.model, rows, probabilities=True)))
    P = np.column_stack([block[f"P({k})"] for k in range(10)])
    np.testing.assert_allclose(P.sum(axis=1), 1)
    judged = evaluate_table(fitted.model, rows)
    assert judged.metrics["error"] == pytest.approx(
        np.mean(block["prediction"] != next(iter(rows.blocks()))["digit"])
    )


def test_the_learning_curve_falls_and_ends_with_all_rows():
    frame = table(1600)
    curve = fit_table(frame, "price", curve=True, **QUICK).account.curve
    sizes = [point["rows"] for point in curve]
    assert sizes[-1] == 1280
    assert all(b // 2 == a for a, b in itertools.pairwise(sizes))
    assert curve[-1]["error"] < curve[0]["error"]


def test_a_search_leaves_prepared_rows_as_they_are():
    X = np.random.default_rng(0).normal(size=(300, 2)) * [1, 100]
    y = np.sin(X[:, 0])
    model = AutoRegressor(budget=1, inputs=None, random_state=0).fit(X, y)
    assert model.inputs_ is None
    assert model.centers_.std(axis=0)[1] > 50


def test_columns_that_are_missing_or_of_another_kind_are_one_sentence():
    model = fit_table(table(), "price", **QUICK).model
    with pytest.raises(ValueError, match="the model needs 'city': there is no column 'city'"):
        model.predict(table().without(["city"]))
    wrong = table().with_column("city", np.ones(400))
    with pytest.raises(
        ValueError, match="column 'city' holds numbers, and held text in the fit"
    ):
        evaluate_table(model, as_rows(wrong))
    with pytest.raises(ValueError, match="the model needs 3 columns"):
        model.predict(np.ones((5, 2)))
    with pytest.raises(ValueError, match="to judge, the target is needed"):
        evaluate_table(model, as_rows(table().without(["price"])))


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"method": "best"}, ValueError, "method='best' must be one of"),
        ({"method": "exact", "n_centers": 5}, ValueError, "n_centers has no effect"),
        ({"method": "nystrom", "budget": 5}, ValueError, "budget has no effect"),
        ({"memory": "1MB"}, MemoryBudgetError, "memory is 1,000,000 bytes"),
        ({"split": "time", "group": "who"}, ValueError, "has no use for the group"),
        ({"scratch": "nowhere"}, FileNotFoundError, "there is no folder nowhere"),
    ],
)
def test_wrong_parameters_are_one_sentence(settings, kind, words, monkeypatch):
    monkeypatch.setattr("imparo.tabular.gathering._SHARE", 1e-9)
    with pytest.raises(kind, match=words):
        fit_table(table(), "price", **settings)


def test_sources_that_are_none_are_one_sentence():
    with pytest.raises(TypeError, match="is no source of rows"):
        fit_table(7)
    with pytest.raises(ValueError, match="there is no data set 'concreet'; did you mean"):
        fit_table("concreet")


def test_the_shipped_data_are_a_frame():
    concrete = load_concrete()
    frame = concrete.frame
    np.testing.assert_array_equal(frame.matrix(concrete.feature_names), concrete.X)
    np.testing.assert_array_equal(frame[concrete.target_name], concrete.y)
