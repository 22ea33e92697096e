"""Stochastic gradient estimators on bad input, which leaves the model alone, and odd sizes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold

from imparo import SGMClassifier, SGMRegressor
from imparo.errors import SelectionWarning
from imparo.kernels import Gaussian
from model_tools import assert_untouched, values
from sgm_input_tools import SPACES, both_faces, outputs_for, per_space

LOSSES = ["square", "absolute", "epsilon_insensitive"]


with_and_without = pytest.mark.parametrize("intercept", [False, True])


# Parameters: what is wrong, in words that the message must have.

PARAMETERS = {
    "kernel": [("gausian", "not known; give one of"), (3, "must be a name")],
    "sigma": [
        (0, "positive"),
        (-1.0, "positive"),
        (np.nan, "positive"),
        ("wide", "not known"),
        ([], "not a width"),
        ([1.0, -2.0], "positive"),
        (None, "not a width"),
        (True, "not a width"),
    ],
    "loss": [
        ("squared", "not known; give one of"),
        (None, "must be a loss object"),
        (2.0, "must be a loss object"),
        ("zero_one", "not convex"),
    ],
    "step": [
        (0, "above 0"),
        (-1.0, "above 0"),
        ([0.1, -0.1], "above 0"),
        (np.nan, "above 0"),
        (np.inf, "above 0"),
        ("fast", "not known; give a number"),
        ("smooth", "not known; give a number"),
        ([], "not a number"),
        ([[0.1]], "not a number"),
        (None, "not a number"),
        (True, "not a number"),
    ],
    "decay": [
        (-0.1, "from 0 on"),
        (np.nan, "from 0 on"),
        (np.inf, "from 0 on"),
        ([0.0, -1.0], "from 0 on"),
        ("slow", "not known"),
        ([], "not a number"),
        (None, "not a number"),
        (True, "not a number"),
    ],
    "beta": [
        (0, "above 0 and at most 1"),
        (1.5, "above 0 and at most 1"),
        (np.nan, "above 0 and at most 1"),
        ("1", "above 0 and at most 1"),
        (None, "above 0 and at most 1"),
        (True, "above 0 and at most 1"),
        (0.5, "no effect"),
    ],
    "epochs": [
        (0, "whole numbers from 1 on"),
        (-2, "whole numbers from 1 on"),
        (1.5, "whole numbers from 1 on"),
        ([1, 0], "whole numbers from 1 on"),
        (np.inf, "whole numbers from 1 on"),
        (np.nan, "whole numbers from 1 on"),
        ("many", "not known"),
        ("rule", "needs a rule"),
        ([], "not a number"),
        (None, "not a number"),
        (True, "not a number"),
    ],
    "patience": [(bad, "None or a whole number from 1") for bad in (0, -1, 1.5, "5", True)],
    "checks_per_epoch": [
        (bad, "a whole number from 1") for bad in (0, -1, 1.5, "5", None, True)
    ],
    "batch_size": [(bad, "a whole number from 1") for bad in (0, -1, 1.5, "5", None, True)],
    "average": [(bad, "True or False") for bad in ("yes", 1, None)],
    "warm_start": [(bad, "True or False") for bad in ("yes", 1, None)],
    "intercept": [(bad, "True or False") for bad in ("yes", 1, None)],
    "sampling": [(bad, "'shuffled' or 'replacement'") for bad in ("random", None, 3)],
    "features": [
        ("nystroem", "not known"),
        (None, "must be a name"),
        (3, "must be a name"),
    ],
    "n_features": [
        (bad, "a whole number from 1 on, or 'auto'")
        for bad in (0, -1, 1.5, "many", None, True, [10, 20])
    ],
    "centers": [("leverage", "no effect"), (np.zeros((2, 3)), "no effect")],
    "validation": [
        (1.5, "fraction between 0 and 1 or a number of folds"),
        (1, "number of folds"),
        (61, "more than the number of rows"),
        (0, "number of folds"),
        (np.inf, "number of folds"),
        (KFold, "not known"),
        ("cv", "not known"),
        (None, "not known"),
        ("gcv", "closed form"),
        ("loo", "closed form"),
        ([], "no split"),
        ([(np.arange(50), np.array([99]))], "beyond"),
        ([(np.arange(50), np.arange(40, 60))], "both sides"),
        ([(np.arange(50), np.array([55, 55]))], "more than once"),
        ([1, 2], "pairs"),
        (GroupKFold(3), "needs groups"),
    ],
    "memory": [("lots", "not an amount"), (-5, "at least one byte"), (0, "at least one byte")],
    "dtype": [("int32", "float32, float64"), ("foo", "float32, float64")],
    "progress": [("yes", "True, False or a function"), (None, "True, False or a function")],
}


@both_faces
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, *case) for name, cases in PARAMETERS.items() for case in cases],
)
def test_a_bad_parameter_is_named_and_leaves_the_model_as_it_was(
    wave, make, name, value, message
):
    X, y = wave
    y = outputs_for(make, y)
    model = make(sigma=1.0, step=[0.1, 0.2], random_state=0).fit(X, y)
    expected = values(model, X)
    model.set_params(**{name: value})
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        model.fit(X, y)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert_untouched(model, before)
    model.set_params(**{name: make().get_params()[name]})
    assert_array_equal(values(model, X), expected)


TOGETHER = [
    ({"step": "smooth-constant", "decay": 0.5}, "decay=0.5 has no effect"),
    ({"step": "smooth-constant", "decay": "auto"}, "decay='auto' has no effect"),
    ({"step": "smooth-constant", "loss": "absolute"}, "use 'nonsmooth-constant'"),
    ({"step": 0.1, "epochs": "rule"}, "epochs='rule' needs a rule"),
    ({"step": 0.1, "beta": 0.3}, "beta=0.3 has no effect"),
    ({"features": "exact", "n_features": 5}, "n_features=5 has no effect"),
    ({"kernel": "linear", "n_features": 5}, "n_features=5 has no effect"),
    ({"kernel": "linear", "sigma": 1.0}, "sigma=1.0 has no effect"),
    ({"kernel": Gaussian(1.0), "sigma": 2.0}, "sigma=2.0 has no effect"),
    ({"kernel": "precomputed"}, "precomputed"),
    ({"kernel": "linear", "features": "fourier"}, "not of Linear"),
    ({"features": "fourier", "n_features": 7}, "multiples of 2"),
    ({"features": "fourier", "centers": "leverage"}, "centers='leverage' has no effect"),
    ({"features": "nystrom", "centers": "some"}, "centers='some' is not known"),
    ({"features": "nystrom", "centers": np.zeros((4, 2))}, "centers have 2 columns"),
    ({"features": "spline"}, "spline kernel"),
]


@pytest.mark.parametrize(("settings", "message"), TOGETHER)
def test_parameters_that_do_not_fit_together(wave, settings, message):
    X, y = wave
    model = SGMRegressor(random_state=0).fit(X, y).set_params(**settings)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(X, y)
    assert "\n" not in str(caught.value)
    assert_untouched(model, before)


# Epochs and validation have no part in a stream.
IN_STREAMS = {n: c for n, c in PARAMETERS.items() if n not in ("epochs", "validation")}


@both_faces
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, *case) for name, cases in IN_STREAMS.items() for case in cases],
)
def test_a_bad_parameter_of_a_stream(wave, make, name, value, message):
    X, y = wave
    y = outputs_for(make, y)
    classes = {"classes": ["few", "much"]} if make is SGMClassifier else {}
    model = make(**{name: value})
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        model.partial_fit(X, y, **classes)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert_untouched(model, before)


@pytest.mark.parametrize(
    ("weights", "message"),
    [({"few": -1.0}, "from 0 on"), ({"other": 2.0}, "class_weight"), ("even", "class_weight")],
)
def test_bad_weights_of_classes(wave, weights, message):
    X, y = wave
    y = outputs_for(SGMClassifier, y)
    model = SGMClassifier(sigma=1.0, step=0.1, random_state=0).fit(X, y)
    model.set_params(class_weight=weights)
    before = dict(vars(model))
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            learn(X, y)
        assert_untouched(model, before)


def test_balanced_weights_are_not_for_streams(wave):
    X, y = wave
    with pytest.raises(ValueError, match="needs all rows"):
        SGMClassifier(class_weight="balanced").partial_fit(X, y > 0, classes=[False, True])


# Rows

ROWS = {
    "NaN": (lambda X: np.where(X[3, 0] == X, np.nan, X), "NaN"),
    "infinity": (lambda X: np.where(X[3, 0] == X, np.inf, X), "infinity"),
    "text": (lambda X: X.astype(str), "text"),
    "objects of text": (lambda X: X.astype(str).astype(object), "text"),
    "one dimension": (lambda X: X[:, 0], "2D"),
    "three dimensions": (lambda X: X[None], "dim"),
    "no rows": (lambda X: X[:0], "0 sample"),
    "no columns": (lambda X: X[:, :0], "0 feature"),
    "too few rows": (lambda X: X[:-1], "inconsistent"),
    "complex": (lambda X: X + 1j, "omplex"),
}


@both_faces
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_bad_rows_leave_the_model_as_it_was(wave, make, name, how):
    X, y = wave
    y = outputs_for(make, y)
    spoil, message = ROWS[name]
    model = make(sigma=1.0, step=0.1).fit(X, y)
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(model, how)(spoil(X), y)
    assert_untouched(model, before)


def test_bad_rows_leave_a_new_model_new(wave):
    X, y = wave
    model = SGMRegressor()
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(ROWS["NaN"][0](X), y)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_other_columns_than_before(wave):
    X, y = wave
    for make in (SGMRegressor, SGMClassifier):
        target = outputs_for(make, y)
        model = make(sigma=1.0, step=0.1).fit(X, target)
        before = dict(vars(model))
        with pytest.raises(ValueError, match="2 features, but"):
            model.partial_fit(X[:, :2], target)
        with pytest.raises(ValueError, match="2 features, but"):
            model.predict(X[:, :2])
        model.set_params(warm_start=True)
        before["warm_start"] = True
        with pytest.raises(ValueError, match="3 columns"):
            model.fit(X[:, :2], target)
        assert_untouched(model, before)


BAD_OUTPUTS = [
    (np.full(60, np.nan), "NaN"),
    (np.full(60, np.inf), "infinity"),
    (np.array(["a", "b"] * 30), "text"),
    (np.zeros((60, 2, 2)), "dim"),
    (np.zeros(59), "inconsistent"),
    (None, "y"),
]


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
@pytest.mark.parametrize(("y", "message"), BAD_OUTPUTS)
def test_bad_outputs_of_a_regressor(wave, how, y, message):
    X, good = wave
    model = SGMRegressor(sigma=1.0, step=0.1).fit(X, good)
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(model, how)(X, y)
    assert_untouched(model, before)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(60), "one class"),
        (np.linspace(0, 1, 60), "continuous"),
        (np.tile([[1, 2]], (60, 1)) + np.arange(60)[:, None], "MultiOutputClassifier"),
        (np.full(60, np.nan), "NaN"),
        (None, "y"),
    ],
)
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_bad_classes(wave, y, message):
    X, good = wave
    model = SGMClassifier(sigma=1.0, step=0.1).fit(X, good > 0)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert_untouched(model, before)


BAD_STREAMS = {
    "an unknown class": ((["a", "x"], None), "'x', which is not among the classes"),
    "other classes": ((["a", "b"], ["a", "b"]), "not those of the first call"),
    "labels": ((np.array([[0, 1, 0], [1, 1, 0]]), None), "."),
    "two columns": ((np.array([[0, 1], [1, 1]]), None), "."),
    "numbers": (([0, 1], None), "not among the classes"),
    "NaN": (([np.nan, 1.0], None), "."),
}


@pytest.mark.parametrize("name", BAD_STREAMS)
def test_bad_classes_of_a_stream(wave, name):
    (y, classes), message = BAD_STREAMS[name]
    X = wave[0]
    names = np.array(["a", "b", "c"] * 20)
    for begin in ("fit", "partial_fit"):
        model = SGMClassifier(sigma=1.0, step=0.1)
        model.fit(X, names) if begin == "fit" else model.partial_fit(X, names, ["c", "b", "a"])
        before = dict(vars(model))
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X[:2], y, classes=classes)
        assert_untouched(model, before)


def test_classes_are_no_labels(wave):
    """A model of three labels does not take one of three classes for them."""
    X, y = wave
    labels = np.column_stack([y > 0, y > 0.5, X[:, 0] > 0]).astype(int)
    for begin in ("fit", "partial_fit"):
        model = getattr(SGMClassifier(sigma=1.0, step=0.1), begin)(X, labels)
        before = dict(vars(model))
        for bad in (np.arange(60) % 3, labels[:, :2], labels[:, 0], 2 * labels):
            with pytest.raises(ValueError, match="label"):
                model.partial_fit(X, bad)
            assert_untouched(model, before)


def test_a_stream_must_be_told_its_classes(wave):
    X, y = wave
    model = SGMClassifier(sigma=1.0, step=0.1)
    before = dict(vars(model))
    for classes, message in ((None, "first call"), ([1], "one class"), ([0, 2], "not among")):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, (y > 0).astype(int), classes=classes)
        assert_untouched(model, before)


def test_other_outputs_than_before(wave):
    X, y = wave
    model = SGMRegressor(sigma=1.0, step=0.1, warm_start=True).fit(X, np.column_stack([y, y]))
    before = dict(vars(model))
    with pytest.raises(ValueError, match="1 outputs and the model has 2"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="2 outputs"):
        model.fit(X, y)
    assert_untouched(model, before)


def test_other_classes_than_before(wave):
    X, y = wave
    model = SGMClassifier(sigma=1.0, step=0.1, warm_start=True).fit(X, y > 0)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="the classes"):
        model.fit(X, np.where(y > 0, "b", "a"))
    with pytest.raises(ValueError, match="outputs"):
        model.fit(X, np.digitize(y, [0, 1]))
    assert_untouched(model, before)


@both_faces
@pytest.mark.parametrize("how", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("weight", "message"),
    [(-np.ones(60), "from 0 on"), (np.full(60, np.nan), "NaN"), (np.ones(59), "shape")],
)
def test_bad_weights(wave, make, how, weight, message):
    X, y = wave
    y = outputs_for(make, y)
    model = make(sigma=1.0, step=0.1).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        getattr(model, how)(X, y, sample_weight=weight)
    assert_untouched(model, before)


def test_a_fit_needs_some_weight(wave):
    with pytest.raises(ValueError, match=r"non-zero|0 for every row"):
        SGMRegressor(sigma=1.0, step=0.1).fit(*wave, np.zeros(60))


@both_faces
@pytest.mark.parametrize("space", ["exact", "linear"])
@pytest.mark.parametrize("step", [0.1, [0.02, 0.1]])
def test_rows_of_weight_0_are_as_if_left_out(wave, make, space, step):
    X, y = wave
    settings = SPACES[space]
    y = outputs_for(make, y)
    weight = np.tile([1.0, 0.0, 3.0], 20)
    kept = weight > 0
    model = make(step=step, random_state=0, **settings).fit(X, y, weight)
    part = make(step=step, random_state=0, **settings).fit(X[kept], y[kept], weight[kept])
    assert model.n_steps_ == 40
    assert_allclose(values(model, X), values(part, X), rtol=1e-9)


# Few rows, and rows that are alike


@per_space
def test_one_row(space):
    X, y = np.array([[2.0, 1.0]]), np.array([6.0])
    model = SGMRegressor(step=0.1, average=False, random_state=0, **SPACES[space]).fit(X, y)
    # One step of size 0.1 from 0: f = 2·0.1·6·K(x, x).
    assert_allclose(model.predict(X), 1.2 * (5.0 if space == "linear" else 1.0))
    stream = SGMRegressor(step=0.1, average=False, random_state=0, **SPACES[space])
    assert_allclose(stream.partial_fit(X, y).predict(X), model.predict(X))
    with pytest.raises(ValueError, match="1 sample"):
        SGMRegressor(**SPACES[space]).fit(X, y)


def test_the_first_of_several_iterates_is_0():
    """The average after one step is w₁."""
    model = SGMRegressor(sigma=1.0, step=0.1).fit([[2.0]], [6.0])
    assert model.predict([[2.0]]) == 0
    assert SGMRegressor(sigma=1.0, step=0.1, intercept=True).fit([[2.0]], [6.0]).predict(
        [[2.0]]
    ) == pytest.approx(6.0)


@both_faces
def test_two_rows_can_be_selected_on(make):
    y = [1.0, 2.0] if make is SGMRegressor else ["a", "b"]
    model = make(sigma=1.0, random_state=0).fit([[0.0], [1.0]], y)
    assert np.isfinite(values(model, [[0.5]])).all()
    assert model.n_steps_ == 2


@per_space
@with_and_without
def test_rows_that_are_all_alike_are_told_their_mean(space, intercept):
    X, y = np.full((90, 3), 0.5), np.tile([0.0, 1.0, 2.0], 30)
    model = SGMRegressor(
        step=0.2, epochs=99, batch_size=90, average=False, intercept=intercept, random_state=0,
        **SPACES[space],
    )  # fmt: skip
    assert_allclose(model.fit(X, y).predict(X), 1.0, rtol=1e-9)
    chosen = SGMRegressor(epochs=9, intercept=intercept, random_state=0, **SPACES[space])
    assert_allclose(chosen.fit(X, y).predict(X), 1.0, atol=0.3)


def test_constant_columns_change_nothing_for_a_gaussian(wave):
    X, y = wave
    more = np.column_stack([X, np.full(60, 5.0)])
    settings = {"sigma": 1.0, "epochs": [1, 3], "random_state": 0}
    assert_allclose(
        SGMRegressor(**settings).fit(more, y).predict(more),
        SGMRegressor(**settings).fit(X, y).predict(X),
        rtol=1e-9,
    )


@pytest.mark.parametrize("value", [0.0, 4.0, 1e-10, -1e100])
def test_constant_outputs(wave, value):
    """Left derivatives are −1 where an absolute loss is 0: the least steps are taken."""
    X, _ = wave
    for loss in LOSSES:
        model = SGMRegressor(loss=loss, intercept=True, random_state=0)
        found = model.fit(X, np.full(60, value)).predict(X)
        size = 1e-3 if loss == "absolute" else 1e-12
        assert_allclose(found, value, rtol=size, atol=size if value == 0 else 0)


def test_duplicate_rows_and_centers(wave):
    X, y = wave
    X, y = np.repeat(X[:20], 3, axis=0), np.repeat(y[:20], 3)
    model = SGMRegressor(
        sigma=1.0, features="nystrom", n_features=60, step=0.3, epochs=50, random_state=0
    ).fit(X, y)
    assert len(model.map_) == 20
    exact = SGMRegressor(sigma=1.0, features="exact", step=0.3, epochs=50, random_state=0).fit(
        X, y
    )
    assert_allclose(model.predict(X), exact.predict(X), rtol=1e-7)


# Sizes of numbers


@per_space
@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("settings", [{}, {"epochs": [1, 2, 3]}, {"step": 0.1}])
@with_and_without
def test_square_losses_have_no_unit(wave, space, scale, settings, intercept):
    X, y = wave
    settings = SPACES[space] | settings | {"intercept": intercept, "random_state": 0}
    plain = SGMRegressor(**settings).fit(X, y)
    scaled = SGMRegressor(**settings).fit(X, scale * y)
    assert scaled.step_ == plain.step_
    assert_allclose(scaled.predict(X) / scale, plain.predict(X), rtol=1e-9)
    if plain.path_ is not None:
        assert_allclose(scaled.path_.errors / scale, plain.path_.errors, rtol=1e-9)


@per_space
@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1e150])
@pytest.mark.parametrize("step", ["auto", 0.1, [0.01, 0.1]])
@with_and_without
def test_steps_of_absolute_losses_have_the_unit_of_outputs(wave, space, scale, step, intercept):
    X, y = wave
    settings = {"loss": "absolute", "intercept": intercept, "random_state": 0} | SPACES[space]
    plain = SGMRegressor(step=step, **settings).fit(X, y)
    units = step if isinstance(step, str) else scale * np.asarray(step)
    scaled = SGMRegressor(step=units, **settings).fit(X, scale * y)
    assert_allclose(scaled.step_ / scale, plain.step_)
    assert_allclose(scaled.predict(X) / scale, plain.predict(X), rtol=1e-7)
    if plain.path_ is not None:
        assert_allclose(scaled.path_.errors / scale, plain.path_.errors, rtol=1e-7)
        assert_allclose(scaled.path_.losses / scale, plain.path_.losses, rtol=1e-7)


def test_what_costs_nothing_is_not_learned(wave):
    """Outputs far below ε give no slope, far above it those of the absolute loss."""
    X, y = wave
    settings = {"sigma": 1.0, "random_state": 0}
    tiny = SGMRegressor(loss="epsilon_insensitive", **settings).fit(X, 1e-150 * y)
    assert_array_equal(tiny.predict(X), np.zeros(60))
    huge = SGMRegressor(loss="epsilon_insensitive", **settings).fit(X, 1e150 * y)
    plain = SGMRegressor(loss="absolute", **settings).fit(X, 1e150 * y)
    assert_allclose(huge.predict(X), plain.predict(X), rtol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_a_stream_of_any_size(wave, loss, scale):
    X, y = wave
    model = SGMRegressor(loss=loss, sigma=1.0, random_state=0).partial_fit(X, scale * y)
    model.partial_fit(X, scale * y)
    if loss == "epsilon_insensitive" and scale < 1:
        assert_array_equal(model.predict(X), np.zeros(60))
        return
    wrong = np.abs(model.predict(X) / scale - y)
    assert wrong.mean() < np.abs(y).mean()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_steps_of_a_stream_have_the_unit_of_its_outputs(wave, scale):
    X, y = wave
    settings = {"loss": "absolute", "sigma": 1.0, "random_state": 0}
    plain = SGMRegressor(**settings).partial_fit(X, y)
    scaled = SGMRegressor(**settings).partial_fit(X, scale * y)
    assert_allclose(scaled.step_ / scale, plain.step_)
    assert_allclose(scaled.predict(X) / scale, plain.predict(X), rtol=1e-7)


@pytest.mark.parametrize("loss", ["square", "absolute"])
@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_a_float32_stream_of_any_size(wave, loss, scale):
    X, y = wave
    settings = {"loss": loss, "sigma": 1.0, "dtype": "float32", "random_state": 0}
    plain = SGMRegressor(**settings).partial_fit(X, y)
    scaled = SGMRegressor(**settings).partial_fit(X, scale * y)
    assert_allclose(scaled.predict(X) / scale, plain.predict(X), atol=1e-3)


@pytest.mark.parametrize("scale", [1e-100, 1e-10, 1e10, 1e100])
@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
def test_rows_of_any_size(wave, kernel, scale):
    """Widths and the steps to try go with the rows."""
    X, y = wave
    plain = SGMRegressor(kernel, random_state=0).fit(X, y)
    scaled = SGMRegressor(kernel, random_state=0).fit(scale * X, y)
    assert_allclose(scaled.predict(scale * X), plain.predict(X), rtol=1e-6)


@both_faces
@per_space
@pytest.mark.parametrize("step", [0.1, [0.05, 0.1]])
def test_float32_stays_float32_and_is_close(wave, make, space, step):
    X, y = wave
    y = outputs_for(make, y)
    X = X.astype(np.float32).astype(float)  # the same rows for both
    settings = {"step": step, "epochs": 3, "intercept": True, "random_state": 0}
    settings |= SPACES[space] | {"loss": "square"}
    wide = make(**settings).fit(X, y)
    narrow = make(**settings).fit(X.astype(np.float32), y)
    asked = make(**settings, dtype="float32").fit(X, y)
    assert values(narrow, X).dtype == values(asked, X).dtype == np.float32
    assert_allclose(values(narrow, X), values(wide, X), atol=2e-3)
    assert_array_equal(values(narrow, X), values(asked, X))
    for model in (wide, narrow):
        model.partial_fit(X, y)
    assert values(narrow, X).dtype == np.float32
    assert_allclose(values(narrow, X), values(wide, X), atol=2e-3)


@pytest.mark.parametrize("loss", ["square", "absolute"])
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_float32_outputs_of_any_size(wave, loss, scale):
    X, y = wave
    settings = {"loss": loss, "sigma": 1.0, "dtype": "float32", "random_state": 0}
    plain = SGMRegressor(**settings).fit(X, y)
    scaled = SGMRegressor(**settings).fit(X, scale * y)
    assert_allclose(scaled.predict(X) / scale, plain.predict(X), atol=1e-3)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
def test_float32_rows_of_any_size(wave, kernel, scale):
    X, y = wave
    settings = {"dtype": "float32", "random_state": 0}
    plain = SGMRegressor(kernel, **settings).fit(X, y)
    scaled = SGMRegressor(kernel, **settings).fit(scale * X, y)
    assert_allclose(scaled.predict(scale * X), plain.predict(X), atol=1e-3)


@pytest.mark.parametrize("loss", ["square", "absolute"])
@pytest.mark.parametrize(("scale", "dtype"), [(1e160, "float64"), (1e30, "float32")])
@pytest.mark.filterwarnings("error")
def test_models_of_huge_outputs_learn_on(wave, loss, scale, dtype):
    X, y = wave
    settings = {"loss": loss, "sigma": 1.0, "features": "exact", "dtype": dtype}
    models = [SGMRegressor(**settings, random_state=0).fit(X, s * y) for s in (1, scale)]
    for model, s in zip(models, (1, scale), strict=True):
        model.partial_fit(X, s * y)
        model.set_params(warm_start=True, step=0.1 * s if loss == "absolute" else 0.1)
        model.fit(X, s * y)
    plain, huge = (model.predict(X) for model in models)
    assert_allclose(huge / scale, plain, atol=1e-3)


# Steps that are too large


@per_space
@pytest.mark.parametrize("average", [False, True])
def test_a_step_that_is_far_too_large(wave, space, average):
    X, y = wave
    settings = {"step": 1e200, "average": average} | SPACES[space]
    with pytest.raises(ValueError, match=r"step=1e\+200 is too large"):
        SGMRegressor(**settings).fit(X, y)
    model = SGMRegressor(**settings)
    with pytest.raises(ValueError, match=r"step=1e\+200 is too large"):
        model.partial_fit(X, y)
    assert not hasattr(model, "intercept_")
    model.set_params(step=0.01).fit(X, y).set_params(step=[1e200, 1e250], epochs=[1, 2])
    before = dict(vars(model))
    with pytest.raises(ValueError, match="smaller steps"):
        model.fit(X, y)
    assert_untouched(model, before)


@pytest.mark.parametrize("loss", ["square", "exponential"])
def test_steps_that_overflow_are_not_chosen(wave, loss):
    X, y = wave
    model = SGMClassifier(
        sigma=1.0, loss=loss, step=[0.1, 1e200], epochs=[1, 2, 3], random_state=0
    ).fit(X, y > 0)
    assert model.step_ == 0.1
    assert np.isfinite(model.path_.errors[0]).all()
    assert not np.isfinite(model.path_.errors[1]).any()
    alone = SGMClassifier(
        sigma=1.0, loss=loss, step=0.1, epochs=model.epochs_, random_state=0
    ).fit(X, y > 0)
    assert_allclose(model.decision_function(X), alone.decision_function(X), rtol=1e-9)


def test_a_pass_that_overflows_on_the_rows_held_out(wave):
    """They can be judged: squares of 1e100 are numbers. Two steps on them are too much.

    What was judged is a model of the other rows, and better than none.
    """
    X, y = wave
    X = np.where(np.arange(60)[:, None] < 50, X, 1e100 * X)
    split = (np.arange(50), np.arange(50, 60))
    model = SGMRegressor("linear", step=[0.001, 0.01], validation=[split])
    with pytest.warns(SelectionWarning, match="too large.*has not seen the rows held out"):
        model.fit(X, y)
    assert model.n_steps_ == 50
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("loss", ["hinge", "logistic", "exponential"])
def test_losses_of_classes_are_not_for_numbers(wave, loss):
    with pytest.raises(ValueError, match=f"loss='{loss}' is for classes.*SGMClassifier"):
        SGMRegressor(loss=loss).fit(*wave)


def test_unknown_features_are_told_all_names(wave):
    with pytest.raises(ValueError, match="'auto', 'exact', 'nystrom', one of fastfood"):
        SGMRegressor(features="nystroem").fit(*wave)


def test_a_stream_that_overflows_is_left_where_it_was(wave):
    X, y = wave
    model = SGMRegressor("linear", step=0.1, average=False).partial_fit(X[:10], y[:10])
    before = dict(vars(model))
    with pytest.raises(ValueError, match=r"step=0\.1 is too large for these rows"):
        model.partial_fit(1e150 * X, y)
    assert_untouched(model, before)
