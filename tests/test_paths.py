"""What a path shows, and the measured bias and variance."""

import json

import matplotlib as mpl
import matplotlib.pyplot
import numpy as np
import pytest

from imparo import KernelClassifier, KernelRegressor
from imparo.estimators.decomposition import bias_variance

mpl.use("agg")


@pytest.mark.parametrize("sigma", [1.0, [0.5, 1.0, 2.0]])
@pytest.mark.parametrize("filter", ["tikhonov", "components", "nu"])
def test_plot_marks_the_best_point(wave, sigma, filter):
    X, y = wave
    model = KernelRegressor(sigma=sigma, filter=filter, validation=3, random_state=0)
    path = model.fit(X, y).path_
    ax = path.plot()
    marker = next(line for line in ax.lines if line.get_label() == "chosen")
    name = list(path.axes)[-1]
    assert marker.get_xdata()[0] == path.best[name]
    assert marker.get_ydata()[0] == path.best["error"]
    curves = [line for line in ax.lines if len(line.get_xdata()) > 1]
    assert len(curves) == np.size(sigma) + 1
    low, high = ax.get_ylim()
    assert low < path.best["error"] < high
    mpl.pyplot.close(ax.figure)


def test_plot_draws_where_it_is_told(wave):
    X, y = wave
    figure, ax = mpl.pyplot.subplots()
    path = KernelClassifier(sigma=1.0).fit(X, y > 0).path_
    assert path.plot(ax) is ax
    assert ax.get_ylabel() == "misclassification rate"
    mpl.pyplot.close(figure)


def test_to_dict_is_json_and_complete(wave):
    path = KernelRegressor(sigma=[0.5, 1.0], penalty=[1.0, 0.1]).fit(*wave).path_
    tree = json.loads(json.dumps(path.to_dict()))
    np.testing.assert_array_equal(tree["errors"], path.errors)
    assert tree["axes"] == {"sigma": [0.5, 1.0], "penalty": [1.0, 0.1]}
    assert tree["best"] == path.best


def test_errors_of_a_classifier_by_gcv_are_of_one_kind(wave):
    X, y = wave
    codes = np.where(y > 1, 1.0, -1.0)
    classes = KernelClassifier(sigma=1.0, validation="gcv").fit(X, y > 1).path_
    numbers = KernelRegressor(sigma=1.0, validation="gcv").fit(X, codes).path_
    np.testing.assert_allclose(classes.errors, numbers.errors)
    np.testing.assert_allclose(classes.train_errors, numbers.train_errors)


def test_infinite_errors_are_none_in_json(wave):
    path = KernelRegressor(sigma=0.1, penalty=[1.0, 0.0]).fit(*wave).path_
    assert json.loads(json.dumps(path.to_dict(), allow_nan=False))["errors"][1] is None


def test_no_penalty_has_its_place_on_the_plot(wave):
    path = KernelRegressor("linear", penalty=[1.0, 1e-2, 0.0]).fit(*wave).path_
    ax = path.plot()
    assert ax.lines[0].get_xdata().tolist() == [1.0, 1e-2, 1e-3]
    assert [text.get_text() for text in ax.texts] == ["λ = 0"]
    mpl.pyplot.close(ax.figure)


def test_repr_is_one_line(wave):
    path = KernelRegressor(sigma=[0.5, 1.0]).fit(*wave).path_
    assert repr(path).startswith("Path(leave-one-out, 2 sigma × 100 penalty, best={'sigma'")
    assert "\n" not in repr(path)


def test_axes_by_name(wave):
    path = KernelRegressor(sigma=[0.5, 1.0], filter="nu", iterations=[1, 5]).fit(*wave).path_
    assert path.sigmas.tolist() == [0.5, 1.0]
    assert path.iterations.tolist() == [1, 5]
    assert path.penalties is None
    assert path.components is None
    components = KernelRegressor(filter="components", components=[1, 2]).fit(*wave).path_
    assert components.components.tolist() == [1, 2]


@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
def test_bias_and_variance_are_those_of_separate_fits(wave, kernel):
    X, y = wave
    penalties = [1e-2, 1e-4]
    sigma = 1.0 if kernel == "gaussian" else "median"
    model = KernelRegressor(kernel, sigma=sigma, penalty=penalties, intercept=True)
    model.fit(X[:40], y[:40])
    parts = bias_variance(model, X[:40], y[:40], X[40:], y[40:], repeats=5, random_state=1)
    rng = np.random.RandomState(1)
    predictions = []
    for _ in range(5):
        rows = rng.choice(40, 20, replace=False)
        fits = [
            KernelRegressor(kernel, sigma=sigma, penalty=p, intercept=True) for p in penalties
        ]
        predictions.append([f.fit(X[rows], y[rows]).predict(X[40:]) for f in fits])
    predictions = np.array(predictions)
    mean = predictions.mean(axis=0)
    np.testing.assert_allclose(parts.bias, ((mean - y[40:]) ** 2).mean(axis=1), rtol=1e-8)
    np.testing.assert_allclose(parts.variance, predictions.var(axis=0).mean(axis=1), rtol=1e-8)
    expected = ((predictions - y[40:]) ** 2).mean(axis=(0, 2))
    np.testing.assert_allclose(parts.total, expected, rtol=1e-8)


def test_variance_grows_and_bias_falls_as_the_penalty_falls(rng):
    X = rng.uniform(-3, 3, (300, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=300)
    model = KernelRegressor(sigma=0.5, penalty=np.logspace(0, -5, 6)).fit(X[:200], y[:200])
    parts = bias_variance(model, X[:200], y[:200], X[200:], y[200:])
    assert (np.diff(parts.variance) > 0).all()
    assert parts.bias[0] > 3 * parts.bias[2]
    ax = parts.plot(chosen=1e-2)
    assert ax.get_xlabel() == "penalty λ"
    mpl.pyplot.close(ax.figure)


def test_bias_and_variance_need_a_path_of_penalties(wave):
    X, y = wave
    model = KernelRegressor(penalty=0.1).fit(X, y)
    with pytest.raises(ValueError, match="path of penalties"):
        bias_variance(model, X, y, X, y)
