"""Recursion on random features against sums of all rows, and a scale of the past only."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dynamics_tools import scale_after, waves, weighted_ridge
from imparo.dynamics import NonparametricDynamics
from imparo.dynamics.running_scale import RunningScale
from imparo.persistence import fingerprint

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None)


def stream(n, seed=0, d=3, T=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.1, 10, d) + rng.normal(size=d)
    Y = np.sin(X[:, :1]) + rng.normal(size=(1, T)) * X[:, 1:2] + 0.1 * rng.normal(size=(n, T))
    return X, Y


def small(**options):
    return NonparametricDynamics(**{"n_features": 24, "penalty": 0.1, **options})


# What is learned.


@given(seeds, st.integers(1, 400), st.sampled_from([0.97, 0.99, 1.0]))
@few
def test_the_model_is_that_of_all_rows_in_the_last_scale(seed, n, gamma):
    X, Y = stream(n, seed)
    model = small(sigma=1.7, forgetting=gamma, random_state=3).fit(X, Y)
    mean, scale = scale_after(X)
    assert_allclose(model.scale_.mean, mean, rtol=1e-12, atol=1e-12)
    assert_allclose(model.scale_.scale, scale, rtol=1e-12)
    Phi = waves((X - mean) / scale, 1.7, 24, seed=3)
    W, A = weighted_ridge(Phi, Y, 0.1, gamma)
    probe = stream(7, seed)[0] + 0.1
    rows = waves((probe - mean) / scale, 1.7, 24, seed=3)
    F, std = model.predict(probe, return_std=True)
    assert_allclose(F, rows @ W, rtol=1e-6, atol=1e-7 * np.abs(Y).max())
    # (1 + φᵀA⁻¹φ) s², with s² what is left for the weight of all rows.
    left = gamma ** np.arange(n - 1, -1, -1.0)
    least = left @ (Y - Phi @ W) ** 2 + 0.1 * gamma**n * np.sum(W**2, axis=0)
    spread = 1 + np.einsum("nd,de,ne->n", rows, np.linalg.inv(A), rows)
    expected = np.sqrt(spread[:, None] * least / left.sum())
    assert_allclose(std, expected, rtol=1e-5, atol=1e-7 * np.abs(Y).max())


def test_the_width_is_by_default_the_usual_distance_of_normalised_rows():
    X, Y = stream(64, d=5)
    model = small().fit(X, Y)
    assert model.sigma_ == pytest.approx(np.sqrt(10))
    assert_array_equal(model.predict(X), small(sigma=np.sqrt(10)).fit(X, Y).predict(X))


def test_deviations_are_those_of_new_samples_and_grow_where_none_were():
    # Outputs that the features can make: errors are the noise, and that of 50 weights.
    X, _ = stream(2000)
    mean, scale = scale_after(X)
    rng = np.random.default_rng(1)
    W = rng.normal(size=(51, 2))
    Y = waves((X - mean) / scale, 3.0, 50) @ W + 0.3 * rng.normal(size=(2000, 2))
    model = small(n_features=50, sigma=3.0).fit(X[:1500], Y[:1500])
    F, std = model.predict(X[1500:], return_std=True)
    # Of 1000 errors 95.4 % ± 0.7 % are within 2σ; s² is taken without the 50 weights' share.
    assert 0.92 < np.mean(np.abs(F - Y[1500:]) < 2 * std) < 0.98
    far = model.predict(X[1500:] + 100, return_std=True)[1]
    assert far.mean() > 1.5 * std.mean()


def test_forgetting_follows_a_change_and_no_forgetting_does_not():
    X, Y = stream(900, T=1)
    Y[500:] *= -1
    errors = {}
    for gamma in (0.98, 1.0):
        model = small(forgetting=gamma).fit(X[:800], Y[:800])
        errors[gamma] = np.abs(model.predict(X[800:]) - Y[800:]).mean()
    assert errors[0.98] < 0.6 * errors[1.0]
    turned = small(forgetting=0.98, forgetting_kind="directional").fit(X[:800], Y[:800])
    assert np.abs(turned.predict(X[800:]) - Y[800:]).mean() < 0.7 * errors[1.0]


# The scale.


@given(st.integers(0, 599), st.integers(0, 599), seeds)
@few
def test_no_later_sample_changes_an_earlier_prediction_by_a_bit(change, asked, seed):
    """Predictions before sample `asked` do not depend on sample `change` from there on."""
    asked = min(asked, change)
    X, Y = stream(600)
    other = X.copy(), Y.copy()
    rng = np.random.default_rng(seed)
    other[0][change], other[1][change] = 1e3 * rng.normal(size=3), rng.normal(size=2)
    found = []
    for rows, outputs in ((X, Y), other):
        model = small(n_features=6)
        model.partial_fit(rows[: max(asked, 1)], outputs[: max(asked, 1)])
        found.append(model.predict(X[-3:], return_std=True))
    if asked > 0:
        assert_array_equal(found[0], found[1])


def test_a_stream_is_predicted_by_its_past_only_to_the_bit():
    X, Y = stream(300)

    def predictions(rows, outputs):
        model, found = small(n_features=8), []
        for x, y in zip(rows, outputs, strict=True):
            if model.__dict__.get("n_seen_"):
                found.append(model.predict(x[None])[0])
            model.partial_fit(x[None], y[None])
        return np.array(found)

    expected = predictions(X, Y)
    for k in (1, 2, 3, 127, 255, 256, 257):
        rows, outputs = X.copy(), Y.copy()
        rows[k + 1 :] *= 1000
        outputs[k:] = 7
        assert_array_equal(predictions(rows, outputs)[:k], expected[:k])


def test_the_scale_is_set_after_1_2_4_to_256_samples_and_kept():
    X, Y = stream(1200)
    model, changes, last = small(n_features=4), [], None
    for i in range(len(X)):
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
        now = model.scale_.mean.tolist(), model.scale_.scale.tolist()
        if now != last:
            changes.append(i + 1)
            used = X[: i + 1]
            assert_allclose(now[0], used.mean(axis=0), rtol=1e-12, atol=1e-12)
            assert_allclose(now[1], used.std(axis=0) if i else np.ones(3), rtol=1e-12)
        last = now
    assert changes == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert model.rescaled_ == []
    assert model.scale_.n_seen == 1200


def test_constant_columns_stay_finite_and_have_the_scale_1():
    X, Y = stream(300)
    X[:, 1] = 0.1 * 3
    model = small().fit(X, Y)
    assert model.scale_.scale[1] == 1.0
    assert np.isfinite(model.predict(X + 1, return_std=True)).all()
    for rows in (np.zeros((300, 3)), np.full((300, 3), 0.3)):
        still = small().fit(rows, Y)
        assert_allclose(still.predict(rows[:1])[0], Y.mean(axis=0), atol=0.01)


IDLE = {"still": 0.0, "trembling": 1e-9}


@pytest.mark.parametrize("kind", list(IDLE))
@pytest.mark.parametrize("idle", [500, 512, 700])
def test_a_robot_that_starts_to_move_after_a_rest_is_learned_as_if_it_had_not_rested(
    kind, idle
):
    rng = np.random.default_rng(0)
    X = 30 * rng.uniform(-1, 1, size=(2200, 3))
    X[:idle] = 0.3 + IDLE[kind] * rng.normal(size=(idle, 3))
    Y = np.sin(X / 10)
    model = NonparametricDynamics(n_features=150).fit(X[:2000], Y[:2000])
    awake = NonparametricDynamics(n_features=150).fit(X[idle:2000], Y[idle:2000])
    # Noticed at the first or second multiple of 256 in motion, put right at the next.
    assert len(model.rescaled_) == 2
    first, last = model.rescaled_
    assert idle < first < idle + 512
    assert first % 256 == 0
    assert last == first + 256
    used = X[first:last]
    assert_allclose(model.scale_.mean, used.mean(axis=0), rtol=1e-9)
    assert_allclose(model.scale_.scale, used.std(axis=0), rtol=1e-9)
    errors = [np.abs(m.predict(X[2000:]) - Y[2000:]).mean() for m in (model, awake)]
    assert errors[0] < 1.5 * errors[1] + 0.01


@pytest.mark.parametrize("kind", list(IDLE))
def test_a_robot_that_moves_a_little_between_two_rests_does_not_forget_it(kind):
    rng = np.random.default_rng(0)
    X = 30 * rng.uniform(-1, 1, size=(1500, 3))
    still = np.r_[:600, 720:1300]
    X[still] = 0.3 + IDLE[kind] * rng.normal(size=(len(still), 3))
    Y = np.sin(X / 10)
    model = NonparametricDynamics(n_features=150).fit(X[:768], Y[:768])
    assert model.rescaled_ == [768]
    scale, before = model.scale_.scale, np.abs(model.predict(X[1300:]) - Y[1300:]).mean()
    model.partial_fit(X[768:1300], Y[768:1300])
    assert_array_equal(model.scale_.scale, scale)
    assert np.abs(model.predict(X[1300:]) - Y[1300:]).mean() < 1.2 * before


@pytest.mark.parametrize("spike", [10, 100, 300, 1000])
def test_a_spike_of_a_sensor_does_not_hide_the_motion(spike):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1700, 3))
    Y = np.sin(3 * X)
    clean = NonparametricDynamics(n_features=150).fit(X[:1500], Y[:1500])
    spoiled = X[:1500].copy()
    spoiled[spike] = 1e4
    model = NonparametricDynamics(n_features=150).fit(spoiled, Y[:1500])
    assert_allclose(model.scale_.scale, clean.scale_.scale, rtol=0.2)
    assert model.rescaled_ == []
    errors = [np.abs(m.predict(X[1500:]) - Y[1500:]).mean() for m in (model, clean)]
    assert errors[0] < 1.5 * errors[1]


def test_a_robot_at_rest_for_long_learns_what_motion_of_about_1_means():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2200, 3))
    X[:600] = 0.3
    Y = np.sin(3 * X)
    model = NonparametricDynamics(n_features=150, penalty=0.01).fit(X[:2000], Y[:2000])
    assert np.sqrt(np.mean((model.predict(X[2000:]) - Y[2000:]) ** 2)) < 0.5 * Y[2000:].std()


def test_after_a_new_scale_the_model_is_that_of_the_last_256_samples_and_later_ones():
    X, Y = stream(700)
    X[256:] = 50 * X[256:]
    model = small(sigma=2.0).fit(X, Y)
    assert model.rescaled_ == [512]
    mean, scale = X[256:512].mean(axis=0), X[256:512].std(axis=0)
    Z = (X[256:] - mean) / scale
    W, _ = weighted_ridge(waves(Z, 2.0, 24), Y[256:], 0.1)
    assert_allclose(model.predict(X[256:]), waves(Z, 2.0, 24) @ W, rtol=1e-7, atol=1e-8)


def test_only_columns_that_outgrow_their_scale_get_another():
    X, Y = stream(700)
    X[256:, 1] *= 30
    X[256:, 2] += 30 * X[:256, 2].std()  # elsewhere, and not larger
    model = small().fit(X, Y)
    assert model.rescaled_ == [512]
    assert_allclose(model.scale_.scale[[0, 2]], X[:256, [0, 2]].std(axis=0), rtol=1e-12)
    assert_allclose(model.scale_.mean[1], X[256:512, 1].mean(), rtol=1e-12)


@given(seeds)
@few
def test_a_scale_counts_rows_alike_however_they_come(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(900, 2)) * np.where(np.arange(900) < 400, 1, 100)[:, None]
    scales = []
    for most in (1, 7, 10**6):
        scale, seen = RunningScale(2, 256), 0
        while seen < 900:
            step = min(int(rng.integers(1, most + 1)), scale.until_next, 900 - seen)
            assert step >= 1
            seen += step
            scale.advance(step, rows[max(0, seen - 256) : seen])
        assert scale.n_seen == 900
        scales.append(np.append(scale.mean, scale.scale))
    assert_array_equal(scales[0], scales[1])
    assert_array_equal(scales[0], scales[2])


# How samples come.


def test_samples_one_by_one_in_blocks_or_at_once_give_one_model():
    X, Y = stream(1100)
    X[700:] *= 40  # a new scale in the middle of a block
    whole, single, blocks = (small(forgetting=0.999) for _ in range(3))
    whole.fit(X, Y)
    for x, y in zip(X, Y, strict=True):
        single.learn(x[:1], x[1:2], x[2:], y)
    for part in np.split(np.arange(1100), [3, 4, 200, 900]):
        blocks.partial_fit(X[part], Y[part])
    expected = whole.predict(X[-50:], return_std=True)
    for model in (single, blocks):
        assert_allclose(model.predict(X[-50:], return_std=True), expected, rtol=1e-9, atol=1e-9)
        assert model.rescaled_ == whole.rescaled_ == [768, 1024]
        assert model.n_seen_ == 1100


def test_all_forms_of_predicting_agree():
    X, Y = stream(100, d=6)
    model = small().fit(X, Y)
    F = model.predict(X)
    q, dq, ddq = X[:, :2], X[:, 2:4], X[:, 4:]
    assert_array_equal(model.predict(q, dq, ddq), F)
    assert model.predict(q[0], dq[0], ddq[0]).shape == (2,)
    assert_allclose(model.predict(q[0], dq[0], ddq[0]), F[0], rtol=1e-10, atol=1e-10)
    assert_allclose(model.predict(sparse.csr_array(X)), F, rtol=1e-10, atol=1e-10)
    assert_allclose(model.predict(X.astype(np.float32)), F, rtol=1e-4, atol=1e-4)
    assert model.predict(X.astype(np.float32)).dtype == np.float64
    assert_allclose(model.predict(np.asfortranarray(X)), F, rtol=1e-10, atol=1e-10)
    long = np.vstack([X] * 12)  # more than are held at a time
    assert_allclose(model.predict(long), np.vstack([F] * 12), rtol=1e-10, atol=1e-10)


def test_a_vector_of_outputs_is_predicted_as_a_vector():
    X, Y = stream(100, d=6, T=1)
    flat, table = small().fit(X, Y[:, 0]), small().fit(X, Y)
    assert flat.predict(X).shape == (100,)
    assert_array_equal(flat.predict(X), table.predict(X)[:, 0])
    assert np.ndim(flat.predict(X[0, :2], X[0, 2:4], X[0, 4:])) == 0


def test_frames_give_names_and_the_array_model():
    X, Y = stream(100)
    expected = small().fit(X, Y).predict(X)
    for frame in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))):
        model = small().fit(frame, Y)
        assert list(model.feature_names_in_) == list("abc")
        assert_array_equal(model.predict(frame), expected)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(pd.DataFrame(X, columns=list("bac")))
        before = fingerprint(model)
        with pytest.raises(ValueError, match="feature names"):
            model.partial_fit(pd.DataFrame(X, columns=list("bac")), Y)
        assert fingerprint(model) == before


def test_copies_are_independent_and_clones_empty():
    X, Y = stream(300)
    model = small().fit(X, Y)
    twin, same = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    model.partial_fit(X, -Y)
    assert_array_equal(twin.predict(X), same.predict(X))
    assert np.abs(model.predict(X) - twin.predict(X)).max() > 0.1
    assert not hasattr(clone(model), "n_seen_")
    assert_array_equal(model.fit(X, Y).predict(X), twin.predict(X))
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


def test_inputs_are_neither_changed_nor_kept():
    X, Y = stream(200)
    kept = X.copy(), Y.copy()
    model, twin = small().fit(X, Y), small().fit(*kept)
    assert_array_equal(X, kept[0])
    X[:], Y[:] = 7, 7
    for one in (model, twin):  # learned anew with rows that are kept, at 256
        one.partial_fit(*stream(56, seed=1))
    assert_array_equal(model.predict(kept[0]), twin.predict(kept[0]))


@pytest.mark.parametrize("size", [1e-200, 1e-100, 1e-12, 1e12, 1e47])
def test_units_of_inputs_and_outputs_do_not_matter(size):
    X, Y = stream(300)
    expected = small().fit(X, Y).predict(X)
    if size > 1e-190:
        assert_allclose(small().fit(size * X, Y).predict(size * X), expected, rtol=1e-6)
    assert_allclose(small().fit(X, size * Y).predict(X), size * expected, rtol=1e-9)


# What is refused.

WRONG = {
    "width 0": {"sigma": 0.0},
    "width NaN": {"sigma": np.nan},
    "width text": {"sigma": "wide"},
    "width None": {"sigma": None},
    "no penalty": {"penalty": 0},
    "no random state": {"random_state": None},
    "random state below 0": {"random_state": -1},
    "forgetting": {"forgetting": 1.5},
    "forgetting kind": {"forgetting_kind": None},
    "no features": {"n_features": 0},
    "features": {"features": "wavelets"},
}


@pytest.mark.parametrize("case", list(WRONG))
def test_wrong_parameters_are_refused_in_a_sentence(case):
    (name,) = WRONG[case]
    model = small(**WRONG[case])
    before = fingerprint(model)
    with pytest.raises((ValueError, TypeError), match=name) as caught:
        model.fit(*stream(5))
    assert "\n" not in str(caught.value)
    assert fingerprint(model) == before


def _with(X, value):
    bad = X.copy()
    bad[-1, -1] = value
    return bad


BAD = {
    "a column too few": (lambda X, Y: (X[:, 1:], Y), "features"),
    "an output too few": (lambda X, Y: (X, Y[:, :1]), "1 outputs and the model has 2"),
    "a row too few": (lambda X, Y: (X, Y[1:]), "rows"),
    "NaN": (lambda X, Y: (_with(X, np.nan), Y), "NaN"),
    "infinity": (lambda X, Y: (_with(X, np.inf), Y), "infinity"),
    "NaN in y": (lambda X, Y: (X, _with(Y, np.nan)), "NaN"),
    "no rows": (lambda X, Y: (X[:0], Y[:0]), "0 sample"),
    "text": (lambda X, Y: (X.astype(str), Y), "text"),
    "no motion of a robot": (lambda X, Y: (_with(X, -1e60), Y), "no motion of a robot"),
    "outputs beyond squares": (lambda X, Y: (X, _with(Y, 1e200)), "cannot hold"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_samples_leave_the_model_as_it_was(case):
    X, Y = stream(40)
    spoil, message = BAD[case]
    model = small().fit(X, Y)
    before = fingerprint(model)
    for learn in (model.partial_fit, model.fit):
        if learn == model.fit and ("column" in case or "output too" in case):
            continue
        with pytest.raises(ValueError, match=message):
            learn(*spoil(X, Y))
        assert fingerprint(model) == before
    bad = spoil(X, Y)[0]
    if len(bad) and bad is not X:
        with pytest.raises(ValueError, match=message):
            model.predict(bad)
    assert fingerprint(model) == before
