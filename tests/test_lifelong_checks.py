"""Every lifelong learner passes the public suite, and river's own checks."""

import numpy as np
import pytest
from river import checks as river_checks
from sklearn.preprocessing import StandardScaler

from dynamics_tools import Folded
from imparo import IncrementalClassifier, RandomFeatures, RecursiveRegressor
from imparo.dynamics import NonparametricDynamics, ParametricDynamics, SemiparametricDynamics
from imparo.features import NystromMap
from imparo.kernels import Gaussian
from imparo.lifelong import as_river
from imparo.lifelong.checks import check_id, incremental_checks

CENTERS = np.random.default_rng(0).normal(size=(30, 8))
FOURIER = RandomFeatures(sigma=3.0, n_features=40, random_state=0)
# The order of rows does not matter where λ is given and nothing is forgotten or held out.
ORDER_FREE = [
    RecursiveRegressor(penalty=1.0, drift=None),
    RecursiveRegressor(NystromMap(Gaussian(3.0), CENTERS), penalty=0.1),
    IncrementalClassifier(penalty=1.0, recoding=0.7, holdout=None),
    IncrementalClassifier(FOURIER, penalty=0.1, recoding=0.0, holdout=None),
    ParametricDynamics(Folded(), penalty=0.1),
]
OTHERS = [
    RecursiveRegressor(),
    RecursiveRegressor(FOURIER, forgetting=0.99, drift="forget"),
    RecursiveRegressor(penalty=1.0, forgetting=0.99, forgetting_kind="directional"),
    # So few held out that the reservoir is full before memory is compared.
    IncrementalClassifier(holdout_size=20),
    IncrementalClassifier(FOURIER, holdout_size=20, drift="forget"),
    IncrementalClassifier(holdout_size=20, forgetting=0.995),
    ParametricDynamics(Folded(), forgetting=0.99, prior="robot"),
]
# These keep 256 rows, by which inputs are normalised.
KEEPING = [
    NonparametricDynamics(n_features=40),
    NonparametricDynamics(n_features=40, forgetting=0.99, forgetting_kind="directional"),
    SemiparametricDynamics(Folded(), NonparametricDynamics(n_features=40)),
    SemiparametricDynamics(
        ParametricDynamics(Folded(), forgetting=0.99), NonparametricDynamics(n_features=40)
    ),
]
CHECKS = [
    pair
    for learners, options in (
        (ORDER_FREE, {"order_free": True}),
        (OTHERS, {}),
        (KEEPING, {"rows": 300}),
    )
    for learner in learners
    for pair in incremental_checks(learner, **options)
]


@pytest.mark.parametrize(("learner", "check"), CHECKS, ids=check_id)
def test_the_suite_for_incremental_estimators(learner, check):
    check(learner)


FACES = [
    as_river(learner)
    for learner in (
        IncrementalClassifier(),
        IncrementalClassifier(penalty=1.0, recoding=0.0, holdout=None),
        RecursiveRegressor(),
        RecursiveRegressor(forgetting=0.999, forgetting_kind="directional"),
    )
]


def checks_of_river():
    pairs, known = [], set()
    for face in FACES:
        for check in river_checks.yield_checks(face):
            # Its streams are ten times as long as others: one for each type is enough.
            long = check.__name__ == "check_bounded_memory_growth"
            marks = pytest.mark.slow if long and type(face) in known else ()
            if long:
                known.add(type(face))
            pairs.append(pytest.param(face, check, marks=marks))
    return pairs


@pytest.mark.parametrize(("face", "check"), checks_of_river(), ids=check_id)
def test_checks_of_river(face, check):
    check(face.clone())


def test_a_column_that_emerges_late_was_zero_before():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), rng.normal(size=90)
    X[:40, 2] = 0
    face = as_river(RecursiveRegressor(penalty=0.5))
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        names = "abc" if i >= 40 else "ab"
        face.learn_one(dict(zip(names, x, strict=False)), target)
    expected = RecursiveRegressor(penalty=0.5).fit(X, y)
    probe = rng.normal(size=3)
    assert face.predict_one(dict(zip("cab", probe[[2, 0, 1]], strict=True))) == pytest.approx(
        expected.predict_one(probe), rel=1e-10
    )


def test_columns_cannot_emerge_for_a_map():
    face = as_river(RecursiveRegressor(FOURIER))
    face.learn_one({"a": 1.0, "b": 2.0}, 1.0)
    before = face.predict_one({"a": 1.0, "b": 2.0})
    with pytest.raises(ValueError, match="columns can emerge only where features=None"):
        face.learn_one({"a": 1.0, "c": 2.0}, 1.0)
    assert face.predict_one({"a": 1.0, "b": 2.0}) == before
    face.learn_one({"b": 1.0, "a": 2.0}, 1.0)


def test_only_learners_have_the_face_of_river():
    with pytest.raises(TypeError, match="not a lifelong learner"):
        as_river(StandardScaler())


def test_an_absent_river_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "imparo.lifelong.river_face", None)
    monkeypatch.delattr("imparo.lifelong.river_face", raising=False)
    with pytest.raises(ImportError, match=r"pip install imparo\[river\]"):
        as_river(RecursiveRegressor())
