"""scikit-learn's own checks, and what its users take for granted."""

import itertools
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import RFE
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from dynamics_tools import Folded
from imparo import (
    AutoClassifier,
    AutoRegressor,
    IncrementalClassifier,
    KernelClassifier,
    KernelRegressor,
    NystromClassifier,
    NystromRegressor,
    NytroClassifier,
    NytroRegressor,
    RandomFeatureClassifier,
    RandomFeatureRegressor,
    RandomFeatures,
    RecursiveRegressor,
    SGMClassifier,
    SGMRegressor,
)
from imparo.dynamics import NonparametricDynamics, ParametricDynamics, SemiparametricDynamics
from imparo.kernels import Gaussian, Laplacian, Linear
from imparo.lifelong import RebalancedClassifier

FIXED = {"sigma": 20.0, "penalty": 1e-3}
ESTIMATORS, MORE = [], []


def add(regressor, classifier, usual, others, **common):
    """Check usual settings of both, and others of one or the other in turn.

    What a setting does is the same code for both, so that the rest repeats it: ``MORE``.
    """
    ESTIMATORS.extend(make(**s, **common) for make in (regressor, classifier) for s in usual)
    for i, settings in enumerate(others):
        pair = [make(**settings, **common) for make in (regressor, classifier)]
        ESTIMATORS.append(pair[i % 2])
        MORE.append(pair[1 - i % 2])


add(
    KernelRegressor,
    KernelClassifier,
    [{}, FIXED],
    [
        {"sigma": "auto", "validation": 3},
        {"kernel": "linear", "intercept": True},
        {"filter": "nu"},
        {"filter": "landweber", "iterations": 200},
        {"filter": "cg"},
        {"filter": "components"},
    ],
)
# With random_state=None a fit draws new centers, and fits of one estimator would differ.
add(
    NystromRegressor,
    NystromClassifier,
    [{}, FIXED],
    [
        {"validation": 3, "centers": "pivoted", "sigma": [2.0, 20.0]},
        {"penalty": "n_centers", "intercept": True},
        {"validation": "gcv", "centers": "leverage"},
    ],
    random_state=0,
)
add(
    NytroRegressor,
    NytroClassifier,
    [],
    [
        {"filter": "landweber", "iterations": 500, "sigma": 5.0},
        {"filter": "nu", "intercept": True},
        {"filter": "cg", "validation": 3},
    ],
    random_state=0,
)
add(
    RandomFeatureRegressor,
    RandomFeatureClassifier,
    [{}, {**FIXED, "n_features": 32}],
    [
        {"validation": "gcv", "features": "leverage"},
        {"penalty": "n_features", "intercept": True},
        {"validation": 3, "features": "sorf", "n_features": [8, 32]},
    ],
    random_state=0,
)
add(
    SGMRegressor,
    SGMClassifier,
    [{}],
    [
        {"epochs": "auto", "average": False, "intercept": True, "sigma": 5.0},
        {"kernel": "linear", "intercept": True, "batch_size": 4},
        {"features": "fourier", "n_features": 64, "sampling": "replacement"},
        {"features": "nystrom", "loss": "square", "validation": 3, "sigma": 5.0},
    ],
    random_state=0,
)
ESTIMATORS += [
    RandomFeatures(**settings, random_state=0)
    for settings in (
        {},
        {"kernel": "laplacian", "sigma": 2.0, "n_features": 16},
        {"features": "leverage", "n_features": "sqrt"},
    )
]
ESTIMATORS += [make(random_state=0) for make in (AutoRegressor, AutoClassifier)]
ESTIMATORS += [
    RecursiveRegressor(),
    RecursiveRegressor(penalty=FIXED["penalty"], intercept=False),
    RecursiveRegressor(StandardScaler(), forgetting=0.999, forgetting_kind="directional"),
    IncrementalClassifier(),
    IncrementalClassifier(penalty=FIXED["penalty"], recoding=0.5, holdout=None),
    IncrementalClassifier(RandomFeatures(sigma=2.0, n_features=64, random_state=0)),
    RebalancedClassifier(),
]
# Robots have a number of columns of their own; this physics takes any.
ESTIMATORS += [
    NonparametricDynamics(n_features=64),
    NonparametricDynamics(n_features=64, forgetting=0.999, forgetting_kind="directional"),
    ParametricDynamics(Folded()),
    ParametricDynamics(Folded(), forgetting=0.999, prior="robot", output_scale=[2.0]),
    SemiparametricDynamics(Folded(), NonparametricDynamics(n_features=64)),
    SemiparametricDynamics(ParametricDynamics(Folded()), NonparametricDynamics(n_features=64)),
]
# Searches that try more: every kernel, and seven widths for two.
MORE += [make(random_state=0) for make in (AutoRegressor, AutoClassifier)]
MORE += [
    make(validation=3, centers="pivoted", sigma="auto", random_state=0)
    for make in (NystromRegressor, NystromClassifier)
]


def expected_failures(estimator):
    """Return the checks that cannot hold, each with its reason in one line."""
    if isinstance(estimator, RandomFeatures):
        return {}
    if isinstance(estimator, ParametricDynamics | SemiparametricDynamics):
        return {"check_regressor_multioutput": "a robot has a number of outputs of its own"}
    weights = "copies of a row change what is left out, held out, or the median distance"
    given = estimator.get_params().get("penalty")
    failures = {}
    if given == "n_centers" and isinstance(estimator, NystromRegressor):
        failures["check_regressors_train"] = "log(m)/m is too much of a penalty on 200 rows"
    if isinstance(estimator, NystromRegressor | NystromClassifier):
        weights = "copies of a row change which rows are drawn as centers, and held out"
        given = None
    if isinstance(estimator, RandomFeatureRegressor | RandomFeatureClassifier):
        weights = "copies of a row change how many features there are, and what is held out"
    if isinstance(estimator, AutoClassifier):
        failures["check_class_weight_classifiers"] = (
            "with weights of 1e7 to 1, errors of 50 rows differ by chance in the eighth digit"
        )
    if isinstance(estimator, SGMRegressor | SGMClassifier):
        weights = "two steps of a row are not one of twice the length"
        if estimator.batch_size > 1:
            failures["check_class_weight_classifiers"] = (
                "twelve steps do not learn weights of 1e7 to 1"
            )
        if estimator.loss == "square":
            failures["check_classifiers_multilabel_output_format_predict_proba"] = (
                "predictions below -1 mean a probability of 0, and the check wants more"
            )
    if isinstance(estimator, IncrementalClassifier):
        weights = "copies of a row change what is held out"
    if isinstance(estimator, RecursiveRegressor):
        weights = "for each copy of a row what came before is forgotten again"
        given = FIXED["penalty"] if estimator.forgetting == 1 else given
    if given != FIXED["penalty"]:
        failures["check_sample_weight_equivalence_on_dense_data"] = weights
        failures["check_sample_weight_equivalence_on_sparse_data"] = weights
    return failures


def shorten(monkeypatch, steps, tick):
    """Make a search within a budget repeatable, with fewer steps of every descent."""
    # What is tried depends on how long it takes, and checks compare fits: all that takes
    # time is to look at the clock.
    clock = itertools.count()
    monkeypatch.setattr("time.monotonic", lambda: tick * next(clock))
    # Conventions are not about errors.
    for module in ("auto_search", "auto_widths"):
        monkeypatch.setattr(f"imparo.estimators.{module}._LEARN_STEPS", steps)


@pytest.mark.filterwarnings("ignore::imparo.errors.SelectionWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_conventions(estimator, check, monkeypatch):
    if isinstance(estimator, AutoRegressor | AutoClassifier):
        shorten(monkeypatch, steps=2, tick=0.45)
        # A kernel for all rows, and one that sparse rows cannot have.
        kernels = (Gaussian(), Laplacian())
        monkeypatch.setattr("imparo.estimators.auto_widths._KERNELS", kernels)
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::imparo.errors.SelectionWarning")
@parametrize_with_checks(MORE, expected_failed_checks=expected_failures)
def test_conventions_of_more_settings(estimator, check, monkeypatch):
    if isinstance(estimator, AutoRegressor | AutoClassifier):
        shorten(monkeypatch, steps=8, tick=0.0)
    check(estimator)


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X, y


def test_frames_give_feature_names_and_the_array_model():
    X, y = breast_cancer()
    scaled = StandardScaler().set_output(transform="pandas").fit_transform(X)
    expected = KernelClassifier().fit(scaled.to_numpy(), y.to_numpy())
    for frame in (scaled, pl.from_pandas(scaled)):
        model = KernelClassifier().fit(frame, y)
        assert list(model.feature_names_in_) == list(X.columns)
        assert (
            model.decision_function(frame) == expected.decision_function(scaled.values)
        ).all()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(scaled[scaled.columns[::-1]])


def test_outputs_may_be_series():
    X, y = breast_cancer()
    for series in (y, pl.Series(y.to_numpy()), pd.Series(y, dtype="category")):
        model = KernelClassifier("linear", intercept=True, penalty=1e-3).fit(X, series)
        assert model.score(X, y) > 0.9


def test_pipeline_passes_frames_through():
    X, y = breast_cancer()
    pipeline = make_pipeline(StandardScaler(), KernelClassifier())
    pipeline.set_output(transform="pandas").fit(X, y)
    assert list(pipeline[-1].feature_names_in_) == list(X.columns)
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.95


def test_grid_search_over_kernels_filters_and_penalties(wave):
    X, y = wave
    grid = {
        "kernel": [Gaussian(1.0), Gaussian(1.0) + Linear(), "matern32"],
        "penalty": [1e-3, 1e-1],
        "filter": ["tikhonov", "cutoff"],
    }
    search = GridSearchCV(KernelRegressor(), grid, cv=3).fit(X, y)
    assert len(search.cv_results_["params"]) == 12
    scores = search.cv_results_["mean_test_score"]
    assert len(np.unique(scores)) == 12  # every setting has an effect


def test_grid_search_slices_a_precomputed_kernel(wave):
    X, y = wave
    K = Gaussian(1.0)(X)
    grid = {"penalty": [1e-4, 1e-2, 1.0]}
    on_matrix = GridSearchCV(KernelRegressor("precomputed"), grid, cv=3).fit(K, y)
    on_rows = GridSearchCV(KernelRegressor(Gaussian(1.0)), grid, cv=3).fit(X, y)
    np.testing.assert_allclose(
        on_matrix.cv_results_["mean_test_score"], on_rows.cv_results_["mean_test_score"]
    )


def test_feature_selection_by_weights_of_a_linear_kernel(rng):
    X = rng.normal(size=(100, 5))
    y = X[:, 0] - 2 * X[:, 3] + 0.1 * rng.normal(size=100)
    chosen = RFE(KernelRegressor("linear"), n_features_to_select=2).fit(X, y).support_
    assert chosen.tolist() == [True, False, False, True, False]
    with pytest.raises(ValueError, match="coef_"):
        RFE(KernelRegressor()).fit(X, y)


def test_no_weights_are_left_over_from_another_kernel(wave):
    model = KernelRegressor("linear").fit(*wave)
    model.set_params(kernel="gaussian").fit(*wave)
    assert not hasattr(model, "coef_")
    assert hasattr(model, "dual_coef_")


def test_clone_keeps_parameters_and_drops_the_fit(wave):
    model = KernelRegressor(Gaussian(2.0), penalty=[0.1, 1.0], validation=3).fit(*wave)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "coef_")


@pytest.mark.parametrize("dump", [pickle.dumps, lambda m: pickle.dumps(m, protocol=2)])
def test_pickle(wave, dump):
    X, y = wave
    model = KernelRegressor(sigma=[0.5, 1.0]).fit(X, y)
    same = pickle.loads(dump(model))
    assert (same.predict(X) == model.predict(X)).all()
    assert same.path_.best == model.path_.best


def test_joblib(wave, tmp_path):
    X, y = wave
    model = KernelClassifier(sigma=1.0).fit(X, y > 0)
    joblib.dump(model, tmp_path / "model")
    assert (joblib.load(tmp_path / "model").predict(X) == model.predict(X)).all()


def test_calibrated_probabilities_come_from_the_decision_function():
    X, y = breast_cancer()
    X = StandardScaler().fit_transform(X)
    calibrated = CalibratedClassifierCV(KernelClassifier(penalty=1e-3), cv=3).fit(
        X[::2], y[::2]
    )
    p = calibrated.predict_proba(X[1::2])[:, 1]
    assert np.mean((p - y[1::2]) ** 2) < 0.05  # the Brier score of a coin is 0.25


def test_rows_are_not_aliased(wave):
    X, y = wave[0].copy(), wave[1].copy()
    model = KernelRegressor(sigma=1.0, penalty=1e-3).fit(X, y)
    before = model.predict(wave[0])
    X[:], y[:] = 0, 0
    assert (model.predict(wave[0]) == before).all()


def test_inputs_are_not_changed(wave):
    X, y = wave
    K, w = Gaussian(1.0)(X), np.linspace(0.5, 1.5, len(y))
    copies = [a.copy() for a in (X, y, K, w)]
    nu = {"filter": "nu", "iterations": [1, 9]}
    for settings in ({}, {"penalty": 0.1}, nu, {"validation": 3}):
        KernelRegressor("precomputed", intercept=True, **settings).fit(K, y, w)
        KernelRegressor("linear", intercept=True, **settings).fit(X, y, w)
    assert all((a == b).all() for a, b in zip((X, y, K, w), copies, strict=True))


def test_sparse_formats(wave):
    X, y = wave
    X = np.where(np.abs(X) > 1, X, 0)
    expected = KernelRegressor("linear", penalty=0.1).fit(X, y).predict(X)
    for kind in (sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix, sparse.lil_array):
        model = KernelRegressor("linear", penalty=0.1).fit(kind(X), y)
        np.testing.assert_allclose(model.predict(kind(X)), expected)
