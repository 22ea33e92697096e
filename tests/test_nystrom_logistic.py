"""Logistic regression on centers against scikit-learn's on the same Nyström features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_sample_weight

import imparo
from device_tools import use_blocks_of
from imparo import NystromClassifier
from imparo.estimators import large_base
from imparo.features import NystromMap
from imparo.kernels import Gaussian, Laplacian

torch = pytest.importorskip("torch", reason="loss='logistic' is tested on both engines")
# One core, as on the machines that run all tests beside each other.
torch.set_num_threads(1)

both_devices = pytest.mark.parametrize("device", ["cpu", "torch:cpu"])
with_and_without = pytest.mark.parametrize("intercept", [False, True])


@pytest.fixture(autouse=True)
def _several_blocks(monkeypatch):
    use_blocks_of(monkeypatch, 2**14)


@pytest.fixture
def rows(rng):
    """Rows, three classes that overlap, weights, and new rows."""
    X = rng.normal(size=(200, 3))
    y = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=200), [-0.5, 0.7])
    return X, y, rng.uniform(0.2, 2, 200), rng.normal(size=(50, 3))


def machine(**more):
    params = {"sigma": 1.0, "penalty": 1e-2, "n_centers": 25, "iterations": 60}
    return NystromClassifier(**params | {"loss": "logistic", "random_state": 0} | more)


def scikit(model, X, codes, weight, new, intercept=False):
    """Return decisions for new rows: C = 1/(2λΣw) on features with φᵀφ = K projected."""
    weight = np.ones(len(X)) if weight is None else weight
    map = NystromMap(model.kernel_, model.centers_)
    reference = LogisticRegression(
        C=1 / (2 * model.penalty_ * weight.sum()), fit_intercept=intercept,
        solver="newton-cholesky", tol=1e-10, max_iter=500,
    )  # fmt: skip
    reference.fit(map.transform(X), codes, weight)
    return reference.decision_function(map.transform(new))


@both_devices
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", [1.0, 1e-2, 1e-4])
@with_and_without
def test_two_classes(rows, device, intercept, weighted, penalty):
    X, y, w, new = rows
    weight = w if weighted else None
    model = machine(device=device, intercept=intercept, penalty=penalty)
    model.fit(X, y > 0, weight)
    expected = scikit(model, X, y > 0, weight, new, intercept)
    assert_allclose(model.decision_function(new), expected, atol=1e-5, rtol=1e-5)
    assert_allclose(model.predict_proba(new)[:, 1], expit(expected), atol=1e-5)
    assert_array_equal(model.predict(new), model.predict_proba(new)[:, 1] > 0.5)
    assert model.solver_ == "cg"


@both_devices
@with_and_without
def test_many_classes_are_one_against_the_rest(rows, device, intercept):
    X, y, w, new = rows
    names = np.array(["low", "middle", "top"])
    model = machine(device=device, intercept=intercept).fit(X, names[y], w)
    expected = np.column_stack([scikit(model, X, y == k, w, new, intercept) for k in range(3)])
    assert_allclose(model.decision_function(new), expected, atol=1e-5, rtol=1e-5)
    P = model.predict_proba(new)
    assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
    assert_allclose(P, expit(expected) / expit(expected).sum(axis=1, keepdims=True), atol=1e-5)
    assert_array_equal(model.predict(new), model.classes_[P.argmax(axis=1)])


@both_devices
def test_labels_are_each_a_problem_of_their_own(rows, device):
    X, y, _, new = rows
    labels = np.column_stack([y > 0, X[:, 2] > 0.3]).astype(int)
    model = machine(device=device).fit(X, labels)
    expected = np.column_stack([scikit(model, X, labels[:, k], None, new) for k in range(2)])
    assert_allclose(model.decision_function(new), expected, atol=1e-5)
    assert_allclose(model.predict_proba(new), expit(expected), atol=1e-5)
    assert_array_equal(model.predict(new), (expected > 0).astype(int))


@pytest.mark.parametrize("class_weight", ["balanced", {0: 5.0, 1: 1.0, 2: 0.5}])
def test_weights_of_classes_multiply_those_of_rows(rows, class_weight):
    X, y, w, new = rows
    model = machine(class_weight=class_weight).fit(X, y, w)
    whole = w * compute_sample_weight(class_weight, y)
    by_hand = machine().fit(X, y, whole)
    assert_allclose(model.decision_function(new), by_hand.decision_function(new), atol=1e-8)
    expected = scikit(model, X, y == 2, whole, new)
    assert_allclose(model.decision_function(new)[:, 2], expected, atol=1e-5)


def test_only_ratios_of_weights_count_and_a_weight_is_so_many_rows(rows):
    X, y, _, new = rows
    counts = np.random.default_rng(1).integers(0, 4, 200)
    centers = X[counts > 0][:25]
    weighted = machine(centers=centers).fit(X, y, counts)
    repeated = machine(centers=centers).fit(X.repeat(counts, axis=0), y.repeat(counts))
    scaled = machine(centers=centers).fit(X, y, 1e6 * counts)
    for other in (repeated, scaled):
        found = other.decision_function(new)
        assert_allclose(found, weighted.decision_function(new), atol=1e-5)


@both_devices
@with_and_without
def test_single_precision(rows, device, intercept):
    X, y, w, new = rows
    found = machine(device=device, dtype="float32", intercept=intercept).fit(X, y > 0, w)
    assert found.decision_function(new).dtype == np.float32
    expected = scikit(found, X.astype(float), y > 0, w, new, intercept)
    assert_allclose(found.decision_function(new), expected, atol=2e-3)


@both_devices
@pytest.mark.parametrize("kernel", [Gaussian(3.0), Laplacian(1.0), Gaussian((1.0, 2.0, 3.0))])
def test_kernels_and_centers_that_are_there_twice(rows, device, kernel):
    """A singular kernel matrix has more than one solution, and one function."""
    X, y, _, new = rows
    X[100:] = X[:100]
    how = {"kernel": kernel, "sigma": "median", "n_centers": 60, "device": device}
    found = machine(**how).fit(X, y > 0)
    distinct = np.unique(found.centers_, axis=0)
    assert len(distinct) < 60
    expected = machine(**how | {"centers": distinct}).fit(X, y > 0)
    assert_allclose(found.decision_function(new), expected.decision_function(new), atol=1e-4)


@both_devices
@pytest.mark.parametrize("form", ["sparse", "blocks"])
def test_rows_of_other_kinds(rows, device, form):
    X, y, w, new = rows
    X[np.abs(X) < 0.5] = 0
    expected = machine(device=device).fit(X, y, w).predict_proba(new)
    given_ = (sparse.csr_array(X), y, w)
    if form == "blocks":
        given_ = ([(X[:70], y[:70], w[:70]), (X[70:], y[70:], w[70:])],)
    found = machine(device=device).fit(*given_).predict_proba(new)
    assert_allclose(found, expected, atol=1e-6)


# Paths


@both_devices
def test_errors_on_the_path_are_those_of_every_penalty(rows, device):
    X, y, w, _ = rows
    penalties, (train, held) = [1.0, 1e-1, 1e-2, 1e-3], np.split(np.arange(190), [130])
    model = machine(penalty=penalties, validation=[(train, held)], device=device)
    model.fit(X, y, w)
    assert list(model.path_.axes) == ["penalty", "n_centers"]
    assert model.path_.errors.shape == (4, 1)
    losses = []
    for i, penalty in enumerate(penalties):
        one = machine(penalty=penalty, centers=model.centers_, intercept=False)
        one.fit(X[train], y[train], w[train])
        expected = np.column_stack(
            [scikit(one, X[train], y[train] == k, w[train], X[held]) for k in range(3)]
        )
        wrong = np.average(expected.argmax(axis=1) != y[held], weights=w[held])
        assert model.path_.errors[i, 0] == pytest.approx(wrong)
        margins = expected * np.where(y[held][:, None] == np.arange(3), 1, -1)
        losses.append(
            (wrong, np.average(np.logaddexp(0, -margins).mean(axis=1), weights=w[held]))
        )
    # The least error, the least loss among equals.
    assert model.penalty_ == penalties[min(range(4), key=losses.__getitem__)]


def test_the_model_at_the_end_is_that_of_all_rows(rows):
    X, y, _, new = rows
    searched = machine(penalty=[1.0, 1e-1, 1e-2], n_centers=[10, 25]).fit(X, y)
    alone = machine(penalty=searched.penalty_, centers=searched.centers_,
                    n_centers=searched.n_centers_).fit(X, y)  # fmt: skip
    assert_allclose(searched.predict_proba(new), alone.predict_proba(new), atol=1e-5)


def test_automatic_penalties(rows):
    X, y, _, _ = rows
    model = machine(penalty="auto", iterations="auto").fit(X, y)
    assert (np.diff(model.path_.penalties) < 0).all()
    assert model.path_.penalties.min() > 0
    assert model.score(X, y) > 0.7


def test_classes_that_can_be_told_apart(rng):
    """Weights grow without bound as the penalty goes to 0, and probabilities to 0 and 1."""
    X = np.concatenate([rng.normal(size=(50, 2)) - 8, rng.normal(size=(50, 2)) + 8])
    y = np.arange(100) >= 50
    sure = []
    for penalty in (1e-1, 1e-3, 1e-6):
        model = machine(sigma=8.0, penalty=penalty, n_centers=10).fit(X, y)
        P = model.predict_proba(X)
        assert np.isfinite(P).all()
        assert_array_equal(model.predict(X), y)
        sure.append(P[y, 1].min())
    assert sure[0] < sure[1] < sure[2]
    assert sure[2] > 0.999


# Conventions


def test_passes_are_not_taken_for_iterations(rows, monkeypatch):
    """A Newton step has 20 iterations at most; 20 passes in all are nothing to warn of."""
    solve = large_base.solve_logistic
    monkeypatch.setattr(large_base, "solve_logistic", lambda *args: (solve(*args)[0], 20))
    machine(iterations="auto").fit(*rows[:2])


@both_devices
def test_saved_models(rows, device, tmp_path):
    X, y, _, new = rows
    model = machine(device=device, intercept=True).fit(X, y)
    imparo.save(model, tmp_path / "model.imparo")
    loaded = imparo.load(tmp_path / "model.imparo")
    assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    assert_array_equal(clone(model).fit(X, y).predict_proba(new), model.predict_proba(new))


def test_least_squares_tell_no_probabilities(rows):
    X, y, _, new = rows
    model = machine(loss="square").fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(new)
    sentences = f"{caught.value} {caught.value.__cause__}"
    assert "loss='square' tells no probabilities; use loss='logistic'" in sentences
    assert hasattr(machine(), "predict_proba")
    assert model.decision_function(new).shape == (50, 3)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "hinge"}, "loss='hinge' is not known; give 'square' or 'logistic'"),
        ({"loss": None}, "loss=None is not known"),
        ({"solver": "direct"}, "solver='direct' is there for the square loss"),
        ({"penalty": 0.0}, "penalty=0 needs solver='direct'|positive"),
        ({"iterations": 0}, "iterations=0 must be a whole number"),
        ({"penalty": [1e-1, 1e-2], "validation": "gcv"}, "gcv"),
    ],
)
def test_bad_parameters_get_one_sentence(rows, params, message):
    X, y, _, new = rows
    model = machine().fit(X, y)
    kept, expected = model.get_params(), model.predict_proba(new)
    with pytest.raises(ValueError, match=message) as caught:
        model.set_params(**params).fit(X, y)
    assert "\n" not in str(caught.value)
    assert_array_equal(model.set_params(**kept).predict_proba(new), expected)
