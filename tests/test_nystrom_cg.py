"""Nyström machines by preconditioned conjugate gradients against those by statistics."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from device_tools import use_blocks_of
from imparo import NystromRegressor
from imparo.data import load_concrete
from imparo.errors import MemoryBudgetError, PrecisionWarning
from imparo.estimators import large, large_base
from imparo.filters import preconditioned
from imparo.kernels import Gaussian, Matern

torch = pytest.importorskip("torch", reason="solver='cg' is tested on both engines")
# One core, as on the machines that run all tests beside each other.
torch.set_num_threads(1)

both_devices = pytest.mark.parametrize("device", ["cpu", "torch:cpu"])
both_types = pytest.mark.parametrize("dtype", ["float64", "float32"])


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(preconditioned, "_BLOCK", 4)


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(200, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=200)
    return X, y, rng.uniform(0.2, 2, 200), rng.normal(size=(50, 3))


def machine(solver="cg", **more):
    params = {"sigma": 1.0, "penalty": 1e-3, "n_centers": 30, "iterations": 200}
    return NystromRegressor(**params | {"random_state": 0, "solver": solver} | more)


def assert_close(found, expected, dtype, rough=5e-4):
    """To the residual at which iterations end: 1e-8 in float64, 1e-4 in float32."""
    tolerance = 1e-6 if dtype == "float64" else rough
    assert_allclose(found, expected, atol=tolerance * np.abs(expected).max(), rtol=0)


@both_devices
@both_types
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_cg_is_direct(rows, monkeypatch, small_blocks, device, dtype, intercept, weighted,
                      n_outputs):  # fmt: skip
    use_blocks_of(monkeypatch, 2**14)
    X, y, w, new = rows
    y = y + 10 * intercept
    y = y if n_outputs == 1 else np.column_stack([y, np.cos(X[:, 2]), y**2])
    how = {"intercept": intercept, "dtype": dtype, "device": device}
    direct = machine("direct", **how).fit(X, y, w if weighted else None)
    found = machine(**how).fit(X, y, w if weighted else None)
    assert (direct.solver_, found.solver_) == ("direct", "cg")
    assert found.iterations_ < 60  # which is what the preconditioner is for
    assert_close(found.predict(new), direct.predict(new), dtype)
    assert_allclose(found.intercept_, direct.intercept_, atol=0.02)
    assert found.predict(new).dtype == dtype
    assert_array_equal(found.centers_, direct.centers_)


@both_devices
@both_types
@pytest.mark.parametrize("kernel", [Gaussian(3.0), Gaussian(1.0), Matern(0.5, 1.0), "linear"])
@pytest.mark.parametrize("penalty", [1e-1, 1e-3])
def test_singular_kernel_matrices(rows, device, dtype, kernel, penalty):
    """Rounding errors decide a part of T, but not what iterations go to."""
    X, y, _, new = rows
    X[100:] = X[:100]
    how = {"kernel": kernel, "sigma": "median", "n_centers": 120, "penalty": penalty,
           "dtype": dtype, "device": device}  # fmt: skip
    found, direct = machine(**how).fit(X, y), machine("direct", **how).fit(X, y)
    # Directions that K_mm has nothing of are penalised by its shift; direct leaves them out.
    difference = np.abs(found.predict(new) - direct.predict(new)).max()
    assert difference < (1e-5 if dtype == "float64" else 5e-3) * np.abs(y).max()
    assert found.iterations_ < 60


@both_devices
@pytest.mark.parametrize("form", ["sparse", "blocks", "tensors", "sparse blocks"])
def test_cg_on_all_kinds_of_rows(rows, device, form):
    X, y, w, new = rows
    X[np.abs(X) < 0.5] = 0
    blocks = [(X[part], y[part], w[part]) for part in (slice(0, 70), slice(70, 200))]
    expected = machine(device=device).fit(X, y, w).predict(new)
    given_ = {
        "sparse": (sparse.csr_array(X), y, w),
        "blocks": (lambda: iter(blocks),),
        "tensors": tuple(torch.from_numpy(part) for part in (X, y, w)),
        "sparse blocks": ([(sparse.csr_array(a), b, c) for a, b, c in blocks],),
    }[form]
    found = machine(device=device).fit(*given_).predict(new)
    assert_allclose(found, expected, atol=1e-6)


@both_devices
def test_kernel_values_are_stored_or_computed_anew(rows, monkeypatch, device):
    use_blocks_of(monkeypatch, 2**15)
    X, y, w, new = rows
    how = {"penalty": [1e-1, 1e-2], "device": device, "validation": 0.3, "iterations": 8}
    models = []
    for store in (True, False):
        with monkeypatch.context() as patch:
            rows_ = large.kernel_rows_of

            def made(rows, map, *, store, kept=rows_, really=store):
                return kept(rows, map, store=really)

            patch.setattr(large, "kernel_rows_of", made)
            models.append(machine(**how).fit(X, y, w))
    assert_allclose(models[0].predict(new), models[1].predict(new), atol=1e-8)
    assert_allclose(models[0].path_.errors, models[1].path_.errors, rtol=1e-8)


# Paths


@pytest.fixture
def split(rng):
    order = rng.permutation(200)
    return order[:130], order[130:190]  # ten rows are on neither side


@both_devices
@pytest.mark.parametrize("intercept", [False, True])
def test_errors_on_the_path_are_those_of_models_with_so_many_iterations(
    rows, split, device, intercept
):
    X, y, w, _ = rows
    train, held = split
    centers = X[train[:30]]
    how = {"centers": centers, "intercept": intercept, "device": device, "iterations": 5}
    path = machine(penalty=[1e-1, 1e-2], n_centers=[10, 30], validation=[split], **how)
    path = path.fit(X, y, w).path_
    assert list(path.axes) == ["penalty", "n_centers", "iterations"]
    assert_array_equal(path.axes["iterations"], np.arange(1, 6))
    assert path.errors.shape == (2, 2, 5)
    for s, size in enumerate((10, 30)):
        for t in range(1, 6):
            model = machine(penalty=1e-1, n_centers=size, **how | {"iterations": t})
            model.fit(X[train], y[train], w[train])
            assert model.iterations_ == t
            squares = (model.predict(X[held]) - y[held]) ** 2
            error = np.sqrt(np.average(squares, weights=w[held]))
            assert path.errors[0, s, t - 1] == pytest.approx(error, rel=1e-6)


@both_devices
@pytest.mark.parametrize("intercept", [False, True])
def test_every_penalty_ends_where_a_cold_start_does(rows, split, device, intercept):
    """Each starts where the one before has ended, and converges to its own solution."""
    X, y, w, _ = rows
    penalties = [1.0, 1e-1, 1e-2, 1e-3]
    how = {
        "penalty": penalties,
        "validation": [split],
        "intercept": intercept,
        "device": device,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "_stagnates", lambda errors: False)
        found = machine(**how).fit(X, y, w).path_
    direct = machine("direct", **how).fit(X, y, w).path_
    assert_allclose(found.errors[:, 0, -1], direct.errors[:, 0], rtol=1e-5)
    # Where iterations end, the last error stands for those that were not made.
    assert (np.diff(found.errors, axis=-1)[..., -100:] == 0).all()


def test_folds_and_widths(rows):
    X, y, w, _ = rows
    how = {"penalty": [1e-1, 1e-3], "sigma": [0.5, 1.0], "validation": 3}
    found = machine(**how | {"iterations": 30}).fit(X, y, w)
    direct = machine("direct", **how).fit(X, y, w)
    assert list(found.path_.axes) == ["sigma", "penalty", "n_centers", "iterations"]
    assert_allclose(found.path_.errors[..., -1], direct.path_.errors, rtol=5e-3)
    assert found.path_.best["error"] <= direct.path_.best["error"] * 1.001
    assert found.sigma_ == direct.sigma_


# Which solver, and what is refused


@both_devices
def test_auto_takes_cg_where_statistics_do_not_fit(rows, device):
    X, y, _, new = rows
    for memory, solver in (("10MB", "direct"), ("200kB", "cg")):
        model = machine("auto", n_centers=60, penalty=1e-2, memory=memory, device=device)
        assert model.fit(X, y).solver_ == solver
        expected = machine("direct", n_centers=60, penalty=1e-2).fit(X, y)
        assert_allclose(model.predict(new), expected.predict(new), atol=1e-6)
    with pytest.raises(MemoryBudgetError, match=r"60 centers .*use at most"):
        machine("direct", n_centers=60, memory="200kB", device=device).fit(X, y)


@both_devices
@pytest.mark.parametrize("solver", ["cg", "auto"])
def test_a_preconditioner_that_does_not_fit(rows, device, solver):
    X, y, _, _ = rows
    with pytest.raises(MemoryBudgetError, match=r"preconditioner of 60 centers") as caught:
        machine(solver, n_centers=60, memory="20kB", device=device).fit(X, y)
    most = int(str(caught.value).split("use at most ")[1].split()[0])
    assert machine("cg", n_centers=most, memory="20kB", device=device).fit(X, y).solver_ == "cg"


def test_sizes_that_do_not_fit_are_refused_before_any_work(rows):
    X, y, _, _ = rows
    done = []
    model = machine(n_centers=[10, 60], memory="20kB", progress=lambda *args: done.append(args))
    with pytest.raises(MemoryBudgetError, match="60 centers"):
        model.fit(X, y)
    assert done == []


BAD = [
    ({"solver": "lu"}, "solver='lu' is not known; give 'auto', 'direct'"),
    ({"solver": None}, "solver=None is not known"),
    ({"iterations": 0}, "iterations=0 must be a whole number from 1 on"),
    ({"iterations": 1.5}, "iterations=1.5 must be a whole number"),
    ({"iterations": True}, "iterations=True must be a whole number"),
    ({"iterations": "many"}, "iterations='many' is not known"),
    ({"penalty": 0.0}, "penalty=0 needs solver='direct'"),
    ({"penalty": [1e-2, 0.0]}, "penalty=0 needs solver='direct'"),
    ({"validation": "gcv"}, "validation='gcv' needs solver='direct'"),
    ({"penalty": [1e-1, 1e-2], "validation": "gcv"}, "needs solver='direct'"),
]


@both_devices
@pytest.mark.parametrize(("params", "message"), BAD, ids=str)
def test_bad_parameters_get_one_sentence(rows, params, message, device):
    X, y, _, new = rows
    model = machine(device=device).fit(X, y)
    expected, before = model.predict(new), model.get_params()
    with pytest.raises(ValueError, match=message) as caught:
        model.set_params(**params).fit(X, y)
    assert "\n" not in str(caught.value)
    assert_array_equal(model.set_params(**before).predict(new), expected)


def test_a_model_without_statistics_does_not_grow(rows):
    X, y, _, _ = rows
    with pytest.raises(ValueError, match="statistics"):
        machine().fit(X, y).grow(40, X, y)


def test_iterations_that_do_not_converge_are_told(rows, monkeypatch):
    X, y, _, _ = rows
    monkeypatch.setattr(large_base, "MOST_STEPS", 2)
    with pytest.warns(PrecisionWarning, match="2 iterations did not converge"):
        machine(iterations="auto").fit(X, y)
    machine(iterations=2).fit(X, y)  # as was asked for


@both_devices
@both_types
@pytest.mark.parametrize(("intercept", "shift"), [(False, 0.0), (True, 0.0), (True, 2000.0)])
@pytest.mark.parametrize("penalty", [1e-6, 1e-9, "auto"])
@pytest.mark.filterwarnings("ignore::imparo.errors.JitterWarning")  # 1e-9 in float32
def test_small_penalties_and_outputs_far_from_0(device, dtype, intercept, penalty, shift):
    """Products and solves must be of one matrix to the last digits, or iterations diverge."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(600, 2))
    y = shift + np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=600)
    how = {"sigma": 2.0, "n_centers": 150, "penalty": penalty, "iterations": 300,
           "intercept": intercept, "dtype": dtype, "device": device}  # fmt: skip
    found = machine(**how).fit(X, y).score(X, y)
    assert found > machine("direct", **how).fit(X, y).score(X, y) - 0.02


@both_devices
def test_the_final_fit_makes_the_iterations_that_were_judged(device):
    """Iterations regularize: to go on from the best one would make twice as many."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.sin(X[:, 0]) + rng.normal(size=400)
    how = {"sigma": 1.0, "n_centers": 100, "iterations": 40, "device": device}
    model = machine(penalty=[1e-7, 1e-8], **how).fit(X, y)
    assert model.iterations_ == model.path_.best["iterations"]
    if model.penalty_ == 1e-7:  # the first began with coefficients 0
        alone = machine(**how | {"penalty": 1e-7, "iterations": model.iterations_}).fit(X, y)
        assert_allclose(model.predict(X), alone.predict(X), atol=1e-6)


def test_paths_over_iterations_are_drawn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    for sizes, label in (([10, 30], "centers m"), (30, "iterations t")):
        model = machine(sigma=1.0, n_centers=sizes, penalty=[1e-1, 1e-3]).fit(X, X[:, 0])
        assert model.path_.plot().get_xlabel() == label


def test_centers_by_the_kernel_come_from_a_pool(monkeypatch):
    """More than the pool has are not asked for: sizes of the path are those in use."""
    monkeypatch.setattr("imparo.estimators.subsampled._POOL", 50)
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = machine(sigma=1.0, n_centers=[60, 80], centers="pivoted", penalty=[1e-1, 1e-3])
    sizes = model.fit(X, X[:, 0]).path_.sizes
    assert len(sizes) == 1
    assert sizes[0] <= 50


@both_devices
def test_penalties_that_products_do_not_resolve(device):
    """Without a shift by the penalty the iterations diverge: R² was −8."""
    concrete = load_concrete()
    X = (concrete.X - concrete.X.mean(axis=0)) / concrete.X.std(axis=0)
    how = {"sigma": "median", "n_centers": 400, "penalty": 1e-12, "iterations": 100,
           "device": device}  # fmt: skip
    fitted, held = slice(0, None, 2), slice(1, None, 2)
    scores = [
        machine(solver, **how)
        .fit(X[fitted], concrete.y[fitted])
        .score(X[held], concrete.y[held])
        for solver in ("direct", "cg")
    ]
    assert scores[1] > scores[0] - 0.1
