"""What mutations of the source showed to be untested: rare, and easily broken unseen."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression

import imparo
from imparo import KernelClassifier, KernelRegressor, Path
from imparo.errors import FileFormatError, MemoryBudgetError, NotPositiveDefiniteError
from imparo.kernels import Gaussian
from imparo.scores import Misclassification


def recorder(calls):
    def kernel(A, B):
        calls.append((A[:, 0].copy(), B[:, 0].copy()))
        return A @ B.T

    return kernel


@pytest.mark.parametrize(("validation", "held"), [(0.2, 20), (5, 20)])
def test_held_out_parts_have_their_size_and_every_class(rng, validation, held):
    y = np.array([0] * 90 + [1] * 10)
    X = np.column_stack([y, rng.normal(size=100)])
    calls = []
    KernelClassifier(recorder(calls), penalty=[0.1, 1.0], validation=validation,
                     random_state=0).fit(X, y)  # fmt: skip
    parts = [(a, b) for a, b in calls if len(a) == held and len(b) == 100 - held]
    assert len(parts) == (1 if validation == 0.2 else validation)
    for a, b in parts:
        assert (a.sum(), b.sum()) == (2, 8)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("validation", [0.2, 3])
def test_a_class_of_one_row_can_be_split(rng, validation):
    X, y = rng.normal(size=(40, 2)), np.array([0] * 20 + [1] * 19 + [2])
    model = KernelClassifier(validation=validation, random_state=0).fit(X, y)
    assert np.isfinite(model.path_.best["error"])


def test_rows_without_weight_are_not_there_for_stratified_folds(wave):
    X, y = wave[0], (wave[1] > 0.5).astype(int)
    w = np.arange(60) % 4 != 0
    settings = {"sigma": 1.0, "validation": 3, "random_state": 0}
    weighted = KernelClassifier(**settings).fit(X, y, w)
    dropped = KernelClassifier(**settings).fit(X[w], y[w])
    assert_allclose(weighted.path_.errors, dropped.path_.errors)


def test_index_pairs_count_the_rows_that_were_given(wave):
    X, y = wave
    w = np.ones(60)
    w[:20] = 0
    settings = {"sigma": 1.0, "penalty": [1e-2, 1e-4]}
    pairs = [(np.arange(40), np.arange(40, 50))]
    model = KernelRegressor(**settings, validation=pairs).fit(X, y, w)
    for penalty, error in zip(settings["penalty"], model.path_.errors, strict=True):
        fit = KernelRegressor(sigma=1.0, penalty=penalty).fit(X[20:40], y[20:40])
        expected = np.sqrt(np.mean((fit.predict(X[40:50]) - y[40:50]) ** 2))
        assert error == pytest.approx(expected, rel=1e-8)
    with pytest.raises(ValueError, match="no split with rows"):
        KernelRegressor(validation=[(np.arange(20), np.arange(20, 40))]).fit(X, y, w)


def test_gcv_of_a_classifier_is_that_of_its_codes(wave):
    X, y = wave
    settings = {"sigma": 1.0, "penalty": [1.0, 1e-2, 1e-4], "validation": "gcv"}
    classes = KernelClassifier(**settings).fit(X, y > 0).path_
    codes = KernelRegressor(**settings).fit(X, np.where(y > 0, 1.0, -1.0)).path_
    assert_allclose(classes.errors, codes.errors)
    assert classes.metric == "root mean squared error"


@pytest.mark.parametrize("validation", ["loo", "gcv"])
def test_training_errors_of_closed_forms_are_those_of_fits(wave, validation):
    X, y = wave
    model = KernelRegressor(sigma=1.0, penalty=[1e-3, 1.0], validation=validation).fit(X, y)
    for penalty, error in zip(model.path_.penalties, model.path_.train_errors, strict=True):
        fit = KernelRegressor(sigma=1.0, penalty=penalty).fit(X, y)
        assert error == pytest.approx(np.sqrt(np.mean((fit.predict(X) - y) ** 2)), rel=1e-8)


def test_a_repeated_column_is_one_column_of_root_two(wave):
    X, y = wave
    twice = KernelRegressor("linear", penalty=[1e-10, 1e-2]).fit(X[:, [0, 1, 2, 2]], y)
    once = KernelRegressor("linear", penalty=[1e-10, 1e-2]).fit(X * [1, 1, np.sqrt(2)], y)
    assert_allclose(twice.path_.errors, once.path_.errors, rtol=1e-8)


def test_automatic_components_reach_the_rank(wave):
    X, y = wave
    linear = KernelRegressor("linear", filter="components", validation=3).fit(X, y)
    assert linear.path_.components.tolist() == [1, 2, 3]
    gaussian = KernelRegressor(filter="components", validation=3).fit(X, y)
    assert gaussian.path_.components[-1] == 60


def test_a_failed_first_fit_leaves_nothing_behind(wave):
    model = KernelRegressor(penalty=-1)
    before = set(vars(model))
    with pytest.raises(ValueError, match="from 0 on"):
        model.fit(*wave)
    assert set(vars(model)) == before


@pytest.mark.parametrize("validation", ["loo", 3])
def test_progress_is_told_the_end(wave, validation):
    calls = []
    KernelRegressor(sigma=[0.5, 1.0], validation=validation,
                    progress=lambda *a: calls.append(a[:2])).fit(*wave)  # fmt: skip
    total = 2 if validation == "loo" else 6
    assert calls == [(i, total) for i in range(1, total + 1)]


def test_a_prediction_that_is_nan_is_wrong():
    Y, F = np.array([[1.0], [-1.0]]), np.full((2, 1, 1), np.nan)
    assert Misclassification()(Y, F, np.array([1.0, 2.0]))[0] == 3.0


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 1, 0]])
def test_ties_go_to_the_smaller_squared_error_wherever_it_stands(order):
    penalties = np.array([1.0, 0.1, 0.01])[order]
    errors, ties = np.array([0.1, 0.1, 0.2])[order], np.array([3.0, 2.0, 1.0])[order]
    path = Path(errors, {"penalty": penalties}, "rate", "hold-out", errors, ties)
    assert path.best["penalty"] == 0.1
    unknown = np.where(ties == 3.0, np.nan, ties)
    path = Path(errors, {"penalty": penalties}, "rate", "hold-out", errors, unknown)
    assert path.best["penalty"] == 0.1


def test_plot_with_an_infinite_error():
    errors = np.array([1.0, 0.5, np.inf])
    axes = {"components": np.array([1, 2, 3])}
    ax = Path(errors, axes, "root mean squared error", "gcv", errors, errors).plot()
    low, high = ax.get_ylim()
    assert low < 0.5 < 1.0 < high < 2.0


def test_an_indefinite_matrix_that_looks_of_low_rank():
    K = np.ones((300, 300))
    K[-2:], K[:, -2:] = 0, 0
    K[-1, -2] = K[-2, -1] = 1  # eigenvalue −1, and no pivot will meet it
    with pytest.raises(NotPositiveDefiniteError, match="negative eigenvalue"):
        KernelRegressor("precomputed").fit(K, np.arange(300.0))


def test_any_altered_byte_of_the_headers_is_noticed(wave, tmp_path):
    path = tmp_path / "m"
    imparo.save(KernelRegressor(penalty=0.1).fit(*wave), path)
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    for place in range(start):
        altered = bytearray(content)
        altered[place] ^= 1
        path.write_bytes(bytes(altered))
        with pytest.raises(FileFormatError):
            imparo.load(path)


def test_another_shape_of_the_same_numbers_is_noticed(wave, tmp_path):
    path = tmp_path / "m"
    imparo.save(KernelRegressor(penalty=0.1).fit(*wave), path)
    content = path.read_bytes()
    assert content.count(b"[60,3]") == 1
    path.write_bytes(content.replace(b"[60,3]", b"[3,60]"))
    with pytest.raises(FileFormatError, match="checksum"):
        imparo.load(path)


def test_order_bytes_and_names_of_arrays(tmp_path):
    model = KernelRegressor()
    model.extra_ = {
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big-endian": np.arange(3, dtype=">f8"),
        1: np.zeros(2),
        "1": np.ones(2),
    }
    imparo.save(model, tmp_path / "m")
    same = imparo.load(tmp_path / "m").extra_
    assert same["columns"].flags.f_contiguous
    assert same["big-endian"].tolist() == [0, 1, 2]
    assert (same[1].tolist(), same["1"].tolist()) == ([0, 0], [1, 1])


def test_a_kernel_with_the_name_of_another_is_not_saved_as_it(tmp_path):
    class Twice(Gaussian):
        pass

    Twice.__name__ = "Gaussian"
    with pytest.raises(TypeError, match=r"KernelRegressor\.kernel is"):
        imparo.save(KernelRegressor(Twice(1.0)), tmp_path / "m")


@pytest.mark.parametrize("filter", ["landweber", "cg"])
def test_iterations_without_end_and_an_intercept_are_least_squares(rng, filter):
    X, y = rng.normal(size=(30, 4)) + 3, rng.normal(size=30) + 5
    ours = KernelRegressor("linear", filter=filter, iterations=1500, intercept=True).fit(X, y)
    expected = LinearRegression().fit(X, y)
    assert_allclose(ours.coef_, expected.coef_, rtol=1e-8)
    assert_allclose(ours.intercept_, expected.intercept_, rtol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_null_space_of_a_low_rank_has_its_part_of_the_coefficients(rng, intercept):
    X = rng.normal(size=(300, 1))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=300)
    settings = {"sigma": 1.0, "intercept": intercept}
    path = KernelRegressor(penalty=[1e-4, 1e3], **settings).fit(X, y)
    assert path.penalty_ == 1e-4
    alone = KernelRegressor(penalty=1e-4, **settings).fit(X, y)
    assert_allclose(path.dual_coef_, alone.dual_coef_, rtol=1e-6, atol=1e-6)


def test_hold_out_on_the_low_rank_route_is_a_fit(rng):
    X = rng.normal(size=(400, 1))
    y = np.sin(3 * X[:, 0]) + rng.normal(size=400)
    split = [(np.arange(300), np.arange(300, 400))]
    penalties = [1e-10, 1e-9]
    path = KernelRegressor(sigma=1.0, penalty=penalties, validation=split).fit(X, y).path_
    for penalty, error in zip(path.penalties, path.errors, strict=True):
        fit = KernelRegressor(sigma=1.0, penalty=penalty).fit(X[:300], y[:300])
        expected = np.sqrt(np.mean((fit.predict(X[300:]) - y[300:]) ** 2))
        assert error == pytest.approx(expected, rel=1e-6)


# Faults found by reading


def test_float32_leave_one_out_of_a_million_rows(rng):
    X = rng.normal(size=(900_000, 1)).astype(np.float32)
    y = X[:, 0] + rng.normal(size=900_000).astype(np.float32)
    path = KernelRegressor("linear", penalty=[1.0, 1e-3]).fit(X, y).path_
    assert path.errors[-1] == pytest.approx(1.0, rel=1e-2)


def test_memory_binds_the_primal_form_and_tiny_penalties(rng):
    with pytest.raises(MemoryBudgetError, match="400 columns"):
        KernelRegressor("linear", memory="100kB").fit(rng.normal(size=(600, 400)), np.ones(600))
    few = int(2.5 * 8 * 60**2)
    with pytest.raises(MemoryBudgetError, match="60 rows"):
        KernelRegressor(penalty=1e-14, memory=few).fit(rng.normal(size=(60, 3)), np.ones(60))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_class_weight_below_float32_is_no_weight(wave):
    X, y = wave
    weights = {False: 1e-60, True: 1.0}
    model = KernelClassifier(sigma=1.0, class_weight=weights, dtype="float32").fit(X, y > 0)
    assert np.isfinite(model.path_.errors).all()
