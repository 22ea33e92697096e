"""Every estimator on the PyTorch engine against the same on NumPy."""

import numpy as np
import pytest

from device_tools import use_blocks_of
from imparo import (
    AutoClassifier,
    AutoRegressor,
    KernelClassifier,
    KernelRegressor,
    NystromClassifier,
    NystromRegressor,
    NytroClassifier,
    NytroRegressor,
    RandomFeatureClassifier,
    RandomFeatureRegressor,
    SGMClassifier,
    SGMRegressor,
)
from imparo.engine import NumpyEngine, sending
from imparo.engine.torch import TorchEngine
from imparo.estimators import devices, nytro_base, passes
from imparo.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Spline

torch = pytest.importorskip("torch", reason="device='torch:cpu' needs PyTorch")
# One core, as on the machines that run all tests beside each other.
torch.set_num_threads(1)

N = 150
PENALTIES = [1.0, 1e-1, 1e-2, 1e-3]
# Both engines round, in another order: well-conditioned problems keep that small.
TOLERANCE = {"float64": 1e-8, "float32": 1e-4}

both_types = pytest.mark.parametrize("dtype", ["float64", "float32"])


@pytest.fixture(autouse=True)
def _several_blocks(monkeypatch):
    """Blocks of some dozen rows, so that every pass has many."""
    use_blocks_of(monkeypatch, 2**15)


@pytest.fixture
def rows(rng):
    """Rows, a smooth function of them with noise, weights, and new rows."""
    X = rng.normal(size=(N, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=N)
    return X, y, rng.uniform(0.2, 2, N), rng.normal(size=(40, 3))


def classes_of(y):
    return np.array(["low", "middle", "high"])[np.digitize(y, [0.3, 1.2])]


def assert_same(found, expected, dtype, what=""):
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert found.shape == expected.shape, what
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(found), finite, what)
    scale = np.abs(expected[finite]).max(initial=1e-300)
    np.testing.assert_allclose(
        found[finite], expected[finite], rtol=0, atol=TOLERANCE[dtype] * scale, err_msg=what
    )


def assert_same_model(found, expected, new, dtype):
    """Predictions, what was chosen, and the errors on the way there."""
    if hasattr(expected, "classes_"):
        np.testing.assert_array_equal(found.classes_, expected.classes_)
        ours, theirs = found.decision_function(new), expected.decision_function(new)
        np.testing.assert_array_equal(found.predict(new), expected.predict(new))
    else:
        ours, theirs = found.predict(new), expected.predict(new)
    assert isinstance(ours, np.ndarray)
    assert ours.dtype == theirs.dtype == dtype
    assert_same(ours, theirs, dtype, "predictions")
    for name in ("penalty_", "iterations_", "components_", "n_centers_", "n_features_",
                 "sigma_", "kernel_", "step_", "center_rows_"):  # fmt: skip
        np.testing.assert_equal(getattr(found, name, 0), getattr(expected, name, 0), name)
    assert (found.path_ is None) == (expected.path_ is None)
    if expected.path_ is not None:
        assert found.path_.axes.keys() == expected.path_.axes.keys()
        assert found.path_.best_index == expected.path_.best_index
        assert_same(found.path_.errors, expected.path_.errors, dtype, "errors")
        assert_same(found.path_.train_errors, expected.path_.train_errors, dtype, "train")


def compare(make, settings, X, y, new, dtype, weight=None):
    """Fit on both engines, compare, and return the one of PyTorch."""
    found, expected = (
        make(**settings, dtype=dtype, device=device).fit(X, y, weight)
        for device in ("torch:cpu", "cpu")
    )
    assert found.device_ == "torch:cpu, float64 products"
    assert expected.device_ == "cpu"
    assert_same_model(found, expected, new, dtype)
    return found


# Kernels and filters


def by_hand(A, B):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / 2)


KERNELS = [
    "gaussian", "laplacian", Matern(0.5, 1.0), Matern(1.5, 1.0), Matern(2.5, 1.0), "linear",
    Polynomial(2), Gaussian(1.0) + 0.5 * Linear(), Gaussian(1.5) * Laplacian(2.0), by_hand,
    Gaussian((1.0, 2.0, 0.7)), Laplacian((1.0, 2.0, 0.7)), Gaussian(1.0) + Laplacian((1, 2, 3)),
]  # fmt: skip


def name_of(value):
    return getattr(value, "__name__", str(value))


@both_types
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_every_kernel(rows, kernel, dtype):
    X, y, w, new = rows
    settings = {"kernel": kernel, "penalty": PENALTIES}
    if kernel in ("gaussian", "laplacian"):
        settings["sigma"] = 1.0
    compare(KernelRegressor, settings, X, y, new, dtype, w)
    settings |= {"n_centers": [10, 30], "random_state": 0}
    compare(NystromRegressor, settings, X, y, new, dtype, w)


@both_types
def test_the_spline_kernel(rng, dtype):
    X = rng.uniform(size=(80, 1))
    y = np.sin(6 * X[:, 0])
    settings = {"kernel": Spline(4), "penalty": PENALTIES}
    compare(KernelRegressor, settings, X, y, X, dtype)
    compare(NystromRegressor, settings | {"n_centers": 10, "random_state": 0}, X, y, X, dtype)
    settings |= {"features": "spline", "n_features": [16, 32], "random_state": 0}
    compare(RandomFeatureRegressor, settings, X, y, X, dtype)


def test_a_precomputed_kernel(rows):
    X, y, _, new = rows
    kernel = Gaussian(1.0)
    settings = {"kernel": "precomputed", "penalty": PENALTIES}
    compare(KernelRegressor, settings, kernel(X), y, kernel(new, X), "float64")


FILTERS = {
    "tikhonov": {"penalty": PENALTIES},
    # Above the largest eigenvalue there is no model but 0.
    "cutoff": {"penalty": PENALTIES[1:]},
    "components": {"components": [1, 5, 20]},
    "landweber": {"iterations": [1, 10, 50]},
    "nu": {"iterations": [1, 10, 20]},
    "cg": {"iterations": [1, 3, 5]},
}


# Closed forms are there for linear filters, leave-one-out for Tikhonov's.
JUDGED = [(name, way) for name in FILTERS for way in (0.3, 3)]
JUDGED += [(name, "gcv") for name in FILTERS if name != "cg"] + [("tikhonov", "loo")]


@both_types
@pytest.mark.parametrize(("filter", "validation"), JUDGED)
def test_every_filter_and_validation(rows, filter, validation, dtype):
    X, y, w, new = rows
    settings = {"sigma": 1.0, "filter": filter, "validation": validation, "random_state": 0}
    settings |= FILTERS[filter]
    compare(KernelRegressor, settings | {"intercept": True}, X, y, new, dtype, w)
    compare(KernelClassifier, settings, X, classes_of(y), new, dtype)


@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
def test_one_penalty_and_several_outputs(rows, kernel):
    X, y, _, new = rows
    Y = np.column_stack([y, np.cos(X[:, 2]), 1e3 + y])
    compare(KernelRegressor, {"kernel": kernel, "penalty": 1e-3}, X, Y, new, "float64")
    settings = {"kernel": kernel, "penalty": 1e-3, "n_centers": 20, "random_state": 0}
    compare(NystromRegressor, settings | {"intercept": True}, X, Y, new, "float64")


# Machines on centers


NYSTROM = {
    "grids": {},
    "one point": {"penalty": 1e-3, "n_centers": 25},
    "no fewer than all sizes": {"penalty": [1e-2], "n_centers": np.arange(1, 26)},
    "many penalties": {"penalty": np.logspace(0, -3, 30), "n_centers": 25},
    "folds": {"validation": 3},
    "gcv": {"validation": "gcv"},
    "gcv, many penalties": {"validation": "gcv", "penalty": np.logspace(0, -3, 30)},
    "intercept": {"intercept": True},
    "intercept, gcv": {"intercept": True, "validation": "gcv"},
    "penalty by size": {"penalty": "n_centers"},
    "pivoted": {"centers": "pivoted"},
    "leverage": {"centers": "leverage"},
    "recursive": {"centers": "recursive"},
    "given": {"centers": np.random.default_rng(1).normal(size=(30, 3))},
    "widths": {"sigma": [0.7, 1.0, 1.5]},
    "float64 asked for": {"precision": "float64"},
}


@both_types
@pytest.mark.parametrize("case", NYSTROM)
@pytest.mark.parametrize("make", [NystromRegressor, NystromClassifier])
@pytest.mark.parametrize("weighted", [False, True])
def test_nystrom(rows, make, case, weighted, dtype):
    X, y, w, new = rows
    settings = {"sigma": 1.0, "penalty": PENALTIES, "n_centers": [10, 25], "random_state": 0}
    y = y if make is NystromRegressor else classes_of(y)
    compare(make, settings | NYSTROM[case], X, y, new, dtype, w if weighted else None)


@both_types
def test_small_penalties_and_rows_that_are_whitened_one_by_one(rows, monkeypatch, dtype):
    X, y, _, new = rows
    monkeypatch.setattr(passes, "_RAW_ERROR", 0.0)
    smallest = 1e-6 if dtype == "float64" else 1e-3
    settings = {"sigma": 1.0, "penalty": [1.0, smallest], "n_centers": 40, "random_state": 0}
    compare(NystromRegressor, settings, X, y, new, dtype)


def test_rows_that_are_there_twice(rows):
    X, y, _, new = rows
    X[100:] = X[:50]
    settings = {"sigma": 1.0, "penalty": PENALTIES, "n_centers": [20, 100], "random_state": 0}
    found = compare(NystromRegressor, settings, X, y, new, "float64")
    assert any("equal to center" in dropped.reason for dropped in found.dropped_centers_)
    # All centers: those of the map are the distinct rows.
    assert len(found.centers_) == len(np.unique(found.centers_, axis=0))


@pytest.mark.parametrize("form", ["gram", "stored", "recomputed"])
@both_types
@pytest.mark.parametrize("filter", ["landweber", "nu", "cg"])
def test_nytro(rows, monkeypatch, form, dtype, filter):
    monkeypatch.setattr(nytro_base, "cheapest_form", lambda *_, **__: form)
    X, y, w, new = rows
    settings = {"sigma": 1.0, "n_centers": 20, "iterations": [1, 3, 6], "random_state": 0,
                "filter": filter}  # fmt: skip
    found = compare(NytroRegressor, settings | {"intercept": True}, X, y, new, dtype, w)
    assert found.form_ == form
    compare(NytroClassifier, settings, X, classes_of(y), new, dtype)
    compare(NytroClassifier, settings | {"validation": 3}, X, y > 0.5, new, dtype, w)


# Random features and stochastic gradients


@both_types
@pytest.mark.parametrize(
    "features", ["fourier", "orthogonal", "qmc", "sorf", "fastfood", "leverage"]
)
def test_random_features(rows, features, dtype):
    X, y, w, new = rows
    settings = {"sigma": 1.0, "features": features, "n_features": [16, 64],
                "penalty": PENALTIES, "random_state": 0}  # fmt: skip
    compare(RandomFeatureRegressor, settings | {"intercept": True}, X, y, new, dtype, w)
    compare(RandomFeatureClassifier, settings | {"validation": 3}, X, classes_of(y), new, dtype)


def test_random_cosines(rows):
    from imparo.features import Fourier

    X, y, _, new = rows
    settings = {"sigma": 1.0, "features": Fourier("cosine"), "n_features": [15, 30],
                "penalty": "n_features", "random_state": 0}  # fmt: skip
    compare(RandomFeatureRegressor, settings, X, y, new, "float64")


@both_types
@pytest.mark.parametrize("features", ["exact", "nystrom", "fourier", "linear"])
def test_stochastic_gradients(rows, features, dtype):
    X, y, _, new = rows
    settings = {"sigma": 1.0, "features": features, "epochs": 2, "random_state": 0}
    if features == "linear":
        settings = {"kernel": "linear", "epochs": 2, "random_state": 0}
    compare(SGMRegressor, settings, X, y, new, dtype)
    compare(SGMClassifier, settings, X, classes_of(y), new, dtype)


def test_learned_widths(rows):
    """Steps of a search end where they gain nothing: equal but for the last digits."""
    X, y, _, new = rows
    settings = {"sigma": "learned", "penalty": 1e-3, "n_centers": 20, "random_state": 0}
    found, expected = (
        NystromRegressor(**settings, device=device).fit(X, y) for device in ("torch:cpu", "cpu")
    )
    np.testing.assert_allclose(found.sigma_, expected.sigma_, rtol=1e-3)
    np.testing.assert_allclose(found.predict(new), expected.predict(new), rtol=0, atol=1e-2)


@pytest.mark.parametrize("make", [AutoRegressor, AutoClassifier])
def test_within_a_budget(rng, no_clock, make):
    """Averages and searches amplify rounding, so models are asked to be as good."""
    X = rng.normal(size=(300, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    y = y if make is AutoRegressor else classes_of(y)
    settings = {"kernel": "gaussian", "sigma": "median", "budget": 5.0, "random_state": 0}
    found, expected = (
        make(**settings, device=device).fit(X[:200], y[:200]) for device in ("torch:cpu", "cpu")
    )
    assert found.device_ == "torch:cpu, float64 products"
    score = found.score(X[200:], y[200:])
    assert score > 0.85
    assert score == pytest.approx(expected.score(X[200:], y[200:]), abs=0.03)


# What makes the comparisons above mean something


@pytest.mark.parametrize(
    "model",
    [KernelRegressor(sigma=1.0, penalty=PENALTIES),
     NystromRegressor(sigma=1.0, penalty=PENALTIES, n_centers=[5, 10], random_state=0),
     NystromRegressor(sigma=1.0, penalty=1e-2, n_centers=10, solver="cg", random_state=0),
     NytroRegressor(sigma=1.0, n_centers=10, iterations=[1, 5], random_state=0),
     RandomFeatureRegressor(sigma=1.0, n_features=10, penalty=0.1, random_state=0)],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_numpy_has_no_part_in_it(rows, monkeypatch, model):
    """Kernels, sums and factors are PyTorch's: NumPy's are not even asked."""
    X, y, _, new = rows

    def refuse(*args, **kwargs):
        raise AssertionError("NumPy was asked")

    for name in ("squared_distances", "accumulate_gram", "cholesky", "whiten", "eigh"):
        monkeypatch.setattr(NumpyEngine, name, refuse)
    model.set_params(device="torch:cpu").fit(X, y).predict(new)
    with pytest.raises(AssertionError, match="NumPy was asked"):
        model.set_params(device="cpu").fit(X, y).predict(new)


TWICE = {
    "nystrom": (NystromRegressor, {"penalty": PENALTIES, "n_centers": [10, 25]}),
    "folds": (NystromClassifier, {"penalty": PENALTIES, "n_centers": 25, "validation": 3}),
    "cg": (NystromRegressor, {"penalty": [1e-1, 1e-2], "n_centers": 25, "solver": "cg"}),
    "logistic": (
        NystromClassifier, {"penalty": 1e-2, "n_centers": 25, "loss": "logistic",
                            "iterations": 40}),
    "nytro": (NytroRegressor, {"n_centers": 20, "iterations": [1, 5]}),
    "features": (RandomFeatureRegressor, {"penalty": PENALTIES, "n_features": [16, 32]}),
}  # fmt: skip


@both_types
@pytest.mark.parametrize("case", TWICE)
def test_two_devices_are_as_good_as_one(rows, monkeypatch, case, dtype):
    X, y, w, new = rows
    make, settings = TWICE[case]
    settings = settings | {
        "sigma": 1.0,
        "random_state": 0,
        "dtype": dtype,
        "device": "torch:cpu",
    }
    y = classes_of(y) if make is NystromClassifier else y
    expected = make(**settings).fit(X, y, w)
    pair, used = TorchEngine(["cpu", "cpu"]), []
    send = sending.Sender.send
    monkeypatch.setattr(
        sending.Sender, "send", lambda self, X: used.append(self._engine) or send(self, X)
    )
    monkeypatch.setattr(devices, "choose_engine", lambda *args: pair)
    found = make(**settings).fit(X, y, w)
    assert_same_model(found, expected, new, dtype)
    assert set(used) == set(pair.replicas)  # both had their share
