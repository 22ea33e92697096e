"""Stochastic gradient estimators on rows of any form: sparse, frames, maps, blocks, kernels."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from imparo import SGMClassifier, SGMRegressor
from imparo.errors import MemoryBudgetError
from imparo.kernels import pairwise
from imparo.losses import EpsilonInsensitive, Loss
from model_tools import assert_untouched, values
from sgm_input_tools import SPACES, both_faces, gaussian, outputs_for, per_space

# Kinds of rows


@both_faces
@per_space
@pytest.mark.parametrize("settings", [{"step": 0.1}, {"epochs": [1, 2]}])
def test_sparse_rows_are_as_dense_ones(rng, make, space, settings):
    X = np.where(rng.random((60, 5)) < 0.5, rng.normal(size=(60, 5)), 0)
    y = outputs_for(make, X[:, 0] + X[:, 1] ** 2)
    settings = settings | SPACES[space] | {"intercept": True, "random_state": 0}
    dense = make(**settings).fit(X, y)
    for kind in (sparse.csr_array, sparse.csc_matrix):
        model = make(**settings).fit(kind(X), y)
        assert_allclose(values(model, kind(X)), values(dense, X), rtol=1e-8, atol=1e-9)
        assert_allclose(values(model, X), values(dense, X), rtol=1e-8, atol=1e-9)
    model.partial_fit(sparse.csr_array(X), y)
    assert_allclose(values(model, X), values(dense.partial_fit(X, y), X), rtol=1e-8, atol=1e-9)


def test_sparse_rows_for_a_dense_kernel(wave):
    X, y = sparse.csr_array(wave[0]), wave[1]
    with pytest.raises(TypeError, match="dense rows"):
        SGMRegressor("laplacian", sigma=1.0, step=0.1).fit(X, y)


def test_sparse_labels(wave):
    X, y = wave
    labels = np.column_stack([y > 0, y > 0.5, X[:, 0] > 0]).astype(int)
    settings = {"sigma": 1.0, "step": 0.1, "random_state": 0}
    dense = SGMClassifier(**settings).fit(X, labels)
    model = SGMClassifier(**settings).fit(X, sparse.csr_matrix(labels))
    assert_array_equal(model.decision_function(X), dense.decision_function(X))


@both_faces
def test_frames(wave, make):
    X, y = wave
    y = outputs_for(make, y)
    settings = {"sigma": 1.0, "step": [0.1, 0.2], "random_state": 0}
    plain = make(**settings).fit(X, y)
    names = ["a", "b", "c"]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = make(**settings).fit(frame, y)
        assert model.feature_names_in_.tolist() == names
        assert_allclose(values(model, frame), values(plain, X), rtol=1e-12)
        model.partial_fit(frame[:10], y[:10])
        stream = make(**settings).fit(X, y).partial_fit(X[:10], y[:10])
        assert_allclose(values(model, frame), values(stream, X), rtol=1e-12)
        with pytest.raises(ValueError, match="feature names"):
            model.partial_fit(frame[["b", "a", "c"]], y)


def test_text_columns_of_frames_are_named(wave):
    X, y = wave
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(city="Genova")
    model = SGMRegressor()
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="columns city hold text"):
            learn(frame, y)


@pytest.mark.parametrize("dtype", [int, bool, np.int8, np.float16, object])
def test_other_kinds_of_numbers(wave, dtype):
    X = (10 * np.abs(wave[0])).astype(int).astype(dtype)
    settings = {"sigma": 1.0, "step": 0.1, "random_state": 0}
    model = SGMRegressor(**settings).fit(X, wave[1]).partial_fit(X, wave[1])
    plain = X.astype(float)
    expected = SGMRegressor(**settings).fit(plain, wave[1]).partial_fit(plain, wave[1])
    assert_allclose(model.predict(X), expected.predict(plain), rtol=1e-5)


# Memory maps and blocks


@pytest.fixture
def many(rng):
    """Four hundred rows, outputs and weights."""
    X = rng.normal(size=(400, 3))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=400), rng.uniform(0.5, 2, 400)


def mapped(X, y, w, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r"), y, w


def parts(X, y, w):
    return ((X[i : i + 90], y[i : i + 90], w[i : i + 90]) for i in range(0, 400, 90))


FORMS = {
    "memory map": mapped,
    "blocks": lambda X, y, w, folder: (list(parts(X, y, w)),),
    "a function of blocks": lambda X, y, w, folder: (lambda: parts(X, y, w),),
}


per_form = pytest.mark.parametrize("form", FORMS)


@both_faces
@per_form
@pytest.mark.parametrize(
    ("space", "memory"),
    [(space, "8MB") for space in (*SPACES, "many")]
    + [(space, "500kB") for space in ("nystrom", "random", "linear", "many")],
)
def test_streams_of_full_batches_are_as_arrays(many, tmp_path, make, form, memory, space):
    """Whether features are stored or computed in every pass."""
    X, y, w = many
    y = outputs_for(make, y)
    settings = SPACES.get(space, {"features": "fourier", "n_features": 100, "sigma": 1.0})
    split = (np.arange(0, 400, 2), np.arange(1, 400, 2))
    settings = settings | {
        "batch_size": 400, "epochs": [2, 3, 4], "step": [0.1, 0.5], "validation": [split],
        "random_state": 0, "intercept": True,
    }  # fmt: skip
    plain = make(**settings).fit(X, y, w)
    model = make(**settings, memory=memory).fit(*FORMS[form](X, y, w, tmp_path))
    assert_allclose(model.path_.errors, plain.path_.errors, rtol=1e-9)
    assert_allclose(values(model, X), values(plain, X), rtol=1e-7, atol=1e-9)


@per_form
@pytest.mark.parametrize("space", SPACES)
def test_one_step_a_row_over_streams(many, tmp_path, form, space):
    """What is read together is shuffled like an array; here that is all."""
    X, y, w = many
    settings = {"step": 0.1, "epochs": 2, "random_state": 0} | SPACES[space]
    plain = SGMRegressor(**settings).fit(X, y, w)
    model = SGMRegressor(**settings).fit(*FORMS[form](X, y, w, tmp_path))
    assert model.n_steps_ == plain.n_steps_ == 800
    error = np.mean((model.predict(X) - y) ** 2)
    assert error == pytest.approx(np.mean((plain.predict(X) - y) ** 2), rel=0.2)


def test_rows_of_a_stream_are_shuffled_among_those_read_together(tmp_path):
    """On columns of an identity, weights of constant slopes tell when a row was met."""
    X, y = np.eye(60), np.full(60, 1e6)
    np.save(tmp_path / "X.npy", X)
    rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    settings = {"loss": "absolute", "step": 1.0, "decay": 0.5, "average": False}
    found = {}
    for memory in (300_000, "1GB"):
        model = SGMRegressor("linear", **settings, memory=memory, random_state=0).fit(rows, y)
        times = np.rint(model.coef_**-2.0).astype(int)
        assert_array_equal(np.sort(times), np.arange(1, 61))
        found[memory] = times - 1
    few = found[300_000]
    moved = np.abs(few - np.arange(60))
    assert 0 < moved.max() < 20  # blocks of a few rows, in their order
    assert (np.diff(few) != 1).any()
    assert np.abs(found["1GB"] - np.arange(60)).max() > 30


def test_drawing_from_a_stream_needs_rows_at_hand(many, tmp_path):
    X, y, w = many
    rows, *_ = mapped(X, y, w, tmp_path)
    settings = {"sampling": "replacement", "step": 0.1, "random_state": 0}
    with pytest.raises(ValueError, match="sampling='replacement' draws rows from all over"):
        SGMRegressor("linear", **settings).fit(rows, y)
    # Features that are stored are at hand, and so are points.
    for space in ("exact", "nystrom", "random"):
        model = SGMRegressor(**settings, **SPACES[space]).fit(rows, y)
        plain = SGMRegressor(**settings, **SPACES[space]).fit(X, y)
        assert_allclose(model.predict(X), plain.predict(X), rtol=1e-7)


def test_bad_blocks_leave_the_model_as_it_was(many):
    X, y, w = many
    model = SGMRegressor(sigma=1.0, step=0.1).fit(X, y)
    before = dict(vars(model))
    spoiled = X.copy()
    spoiled[200] = np.nan
    for blocks, message in (
        (lambda: parts(spoiled, y, w), "NaN"),
        (parts(X, y, w), "read once"),
        (lambda: iter([]), "no row"),
        (lambda: iter([(X, y[:9])]), "outputs"),
        (lambda: iter([(X, y), (X[:, :2], y)]), "columns"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(blocks)
        assert_untouched(model, before)


def test_a_memory_map_is_searched_for_nan(many, tmp_path):
    X, y, w = many
    X = X.copy()
    X[333, 1] = np.nan
    rows, *_ = mapped(X, y, w, tmp_path)
    for space in SPACES:
        with pytest.raises(ValueError, match="NaN"):
            SGMRegressor(step=0.1, **SPACES[space]).fit(rows, y)


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_too_little_memory(many, how):
    X, y, _ = many
    for settings in (
        {"features": "exact", "sigma": 1.0, "memory": "10kB"},
        {"features": "fourier", "sigma": 1.0, "n_features": 400, "memory": "10kB"},
    ):
        model = SGMRegressor(step=0.1, **settings)
        before = dict(vars(model))
        with pytest.raises(MemoryBudgetError, match="memory"):
            getattr(model, how)(X, y)
        assert_untouched(model, before)


def test_too_little_memory_for_the_weights_of_all_steps(many):
    X, y, _ = many
    settings = {"sigma": 1.0, "features": "fourier", "n_features": 200, "random_state": 0}
    outputs = np.column_stack([y] * 20)
    with pytest.raises(MemoryBudgetError, match="30 steps, 20 outputs"):
        SGMRegressor(**settings, memory="3MB").fit(X, outputs)
    SGMRegressor(**settings, step=0.1, memory="3MB").fit(X, outputs)


# Kernels and widths


def test_kernels_of_ones_own(wave):
    X, y = wave
    settings = {"step": [0.05, 0.2], "epochs": [1, 3], "random_state": 0}
    plain = SGMRegressor(sigma=1.0, **settings).fit(X, y)
    for kernel in (gaussian, pairwise(lambda a, b: np.exp(-np.sum((a - b) ** 2) / 2))):
        model = SGMRegressor(kernel, **settings).fit(X, y)
        assert_allclose(model.predict(X), plain.predict(X), rtol=1e-8)
        assert_allclose(model.path_.errors, plain.path_.errors, rtol=1e-8)
        few = SGMRegressor(kernel, features="nystrom", centers=X[:9], step=0.1).fit(X, y)
        expected = SGMRegressor(
            sigma=1.0, features="nystrom", centers=X[:9], step=0.1, random_state=0
        )
        few.set_params(random_state=0).fit(X, y)
        assert_allclose(few.predict(X), expected.fit(X, y).predict(X), rtol=1e-8)
    assert model.partial_fit(X, y).n_steps_ > 0


def test_a_kernel_of_ones_own_is_not_asked_about_no_points(wave):
    """Where nothing costs anything no row gets a coefficient."""
    X, y = wave

    def kernel(A, B):
        assert len(A)
        assert len(B)
        return gaussian(A, B)

    model = SGMRegressor(kernel, loss=EpsilonInsensitive(100.0), step=0.1, features="exact")
    assert_array_equal(model.fit(X, y).predict(X), np.zeros(60))
    assert len(model.X_fit_) == 0
    model.set_params(loss="square").partial_fit(X, y)
    assert np.abs(model.predict(X)).max() > 0
    assert len(model.X_fit_) == 60


def test_a_stream_with_a_kernel_of_ones_own_has_centers(wave):
    model = SGMRegressor(gaussian, step=0.1, random_state=0).partial_fit(*wave)
    assert model.features_ == "nystrom"


def test_rows_that_overflow(wave):
    X, y = wave
    for kernel in ("linear", "polynomial"):
        with pytest.raises(ValueError, match="overflows on these rows; scale"):
            SGMRegressor(kernel).fit(1e200 * X, y)


def test_kernels_that_do_not_work(wave):
    X, y = wave
    model = SGMRegressor(sigma=1.0, step=0.1).fit(X, y)
    for kernel, message in (
        (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN"),
        (lambda a, b: np.exp(-np.sum((a - b) ** 2)), "pairwise"),
    ):
        for features in ("exact", "nystrom"):
            model.set_params(kernel=kernel, sigma="median", features=features)
            before = dict(vars(model))
            with pytest.raises(ValueError, match=message):
                model.fit(X, y)
            assert_untouched(model, before)


def test_a_kernel_that_interrupts(wave):
    X, y = wave
    model = SGMRegressor(sigma=1.0, step=0.1).fit(X, y)

    def interrupted(A, B):
        raise KeyboardInterrupt

    model.set_params(kernel=interrupted, sigma="median")
    before = dict(vars(model))
    for learn in (model.fit, model.set_params(step=[0.1, 0.2]).fit):
        before["step"] = model.step
        with pytest.raises(KeyboardInterrupt):
            learn(X, y)
        assert_untouched(model, before)


def test_a_stream_cannot_choose_a_width(wave):
    X, y = wave
    model = SGMRegressor(sigma=[0.5, 1.0])
    with pytest.raises(ValueError, match="partial_fit cannot choose"):
        model.partial_fit(X, y)
    model.fit(X, y)
    assert model.partial_fit(X, y).sigma_ in (0.5, 1.0)


def test_the_width_of_a_stream_is_that_of_its_first_rows(wave):
    X, y = wave
    model = SGMRegressor(step=0.1, random_state=0).partial_fit(X[:30], y[:30])
    sigma = model.sigma_
    assert sigma == SGMRegressor(step=0.1).fit(X[:30], y[:30]).sigma_
    assert model.partial_fit(100 * X[30:], y[30:]).sigma_ == sigma


@pytest.mark.parametrize("sigma", ["median", "scale", "auto"])
def test_widths_by_name(wave, sigma):
    X, y = wave
    model = SGMRegressor(sigma=sigma, random_state=0).fit(X, y)
    assert model.sigma_ > 0
    assert ("sigma" in model.path_.axes) == (sigma == "auto")
    assert np.mean((model.predict(X) - y) ** 2) < np.var(y)


@both_faces
@pytest.mark.parametrize("sigma", ["learned", "per-feature"])
@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_learned_widths(waves, make, sigma, how):
    """Columns that do not count are found out, whatever the features."""
    X, y = waves
    y = outputs_for(make, y)
    more = {"classes": ["few", "much"]} if (make, how) == (SGMClassifier, "partial_fit") else {}
    for features in ("exact", "nystrom", "fourier"):
        model = make(sigma=sigma, features=features, random_state=0)
        getattr(model, how)(X, y, **more)
        assert model.relevance_.shape == (4,)
        if sigma == "per-feature":
            assert min(model.relevance_[[0, 2]]) > max(model.relevance_[[1, 3]])
        assert np.isfinite(values(model, X)).all()
        assert model.kernel_.bound == 1
    model.set_params(sigma=1.0, features="auto").fit(X, y)
    assert not hasattr(model, "relevance_")


def test_a_warm_start_keeps_learned_widths(waves):
    X, y = waves
    model = SGMRegressor(sigma="per-feature", step=0.1, random_state=0).fit(X, y)
    kernel, relevance = model.kernel_, model.relevance_
    model.set_params(warm_start=True).fit(X, y)
    assert model.kernel_ is kernel
    assert model.relevance_ is relevance


# What a review found


class Huber(Loss):
    """A loss of one's own."""

    def _value(self, y, a):
        away = np.abs(a - y)
        return np.where(away < 1, away**2 / 2, away - 0.5)

    def _derivative(self, y, a):
        return np.clip(a - y, -1, 1)


def test_a_loss_of_ones_own_needs_a_step(wave):
    X, y = wave
    model = SGMRegressor(loss=Huber(), sigma=1.0, step=[0.1, 0.3], epochs=5, random_state=0)
    assert model.fit(X, y).score(X, y) > 0.5
    with pytest.raises(ValueError, match=r"constants of Huber are not known.*numbers as steps"):
        model.set_params(step="auto").fit(X, y)


def test_centers_that_memory_does_not_allow(rng):
    X, y = rng.normal(size=(900, 2)), rng.normal(size=900)
    model = SGMRegressor(sigma=0.3, features="nystrom", memory="4MB", random_state=0)
    assert len(model.fit(X, y).map_) <= 290  # 4e6 bytes are six matrices of 288 x 288
    with pytest.raises(MemoryBudgetError, match=r"720 centers need .* at most 288 centers"):
        model.set_params(n_features=720).fit(X, y)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_a_warm_start_keeps_rows_that_it_is_given_again_once(rng, as_rows):
    X, y = rng.choice([0.0, 0.0, 1.0, 2.0], size=(40, 6)), rng.normal(size=40)
    X = np.vstack([X, X[:5]])  # equal rows among them
    y = np.append(y, rng.normal(size=5))
    settings = {"sigma": 1.0, "step": 0.1, "batch_size": 45, "random_state": 0}
    once = SGMRegressor(**settings, epochs=9).fit(as_rows(X), y)
    model = SGMRegressor(**settings, epochs=3, warm_start=True)
    for _ in range(3):
        model.fit(as_rows(X), y)
    assert model.X_fit_.shape[0] == len(np.unique(X, axis=0))
    assert_allclose(model.predict(as_rows(X)), once.predict(as_rows(X)), rtol=1e-10)


def test_the_weights_of_a_stream_stay_within_memory(rng):
    X, y = rng.normal(size=(50, 2000)), rng.normal(size=50)
    model = SGMRegressor("linear", memory="1.5MB")
    with pytest.raises(MemoryBudgetError, match="weights of 30 steps, 1 outputs and 2,000"):
        model.partial_fit(X, y)
    model.set_params(step=0.001).partial_fit(X[:5], y[:5])


def test_pace_is_counted_in_passes(wave):
    """The last judgement is far off: a small step has the time to catch up."""
    X, y = wave
    model = SGMRegressor(
        sigma=1.0, step=[0.01, 1.0], epochs=[1, 2, 3, 4, 5, 6, 200], patience=5, random_state=0
    ).fit(X, y)
    assert np.isfinite(model.path_.errors[0]).all()
