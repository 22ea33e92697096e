"""Outputs and columns that come and go, merging and fading: dense sums are the reference."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from imparo.lifelong.recursion import DELAY, Recursion
from recursion_tools import (
    CLOSE,
    PENALTY,
    D,
    Dense,
    T,
    assert_is,
    assert_same_bits,
    learned,
    often,
    seeds,
    some_rows,
)

# Outputs and columns that come and go.


@pytest.mark.parametrize("n", [0, 10, DELAY, DELAY + 10])
def test_an_output_that_comes_late_was_zero(n):
    X, Y = some_rows(9, 2 * DELAY + 20)
    Y[:n, 1:] = 0
    Y[: n + 15, 2:] = 0
    model = Recursion(D, 1, PENALTY)
    model.learn(X[:n], Y[:n, :1])
    model.predict(X)
    model.add_outputs(1)
    model.learn(X[n : n + 15], Y[n : n + 15, :2])
    model.noise()
    model.add_outputs(1)
    model.learn(X[n + 15 :], Y[n + 15 :])
    assert_is(model, Dense(D, T, PENALTY).learn(X, Y))


@given(seeds, st.integers(2, 40), st.integers(1, 8), st.integers(1, DELAY - 2))
@often
def test_who_asked_before_an_output_came_changes_no_bit(seed, d, outputs, n):
    X, Y = some_rows(seed, DELAY + n + 1, d, outputs)
    asked, quiet = learned(X[:-1], Y[:-1]), learned(X[:-1], Y[:-1])
    asked.predict(X)
    last = np.append(Y[-1:], [[1.0]], axis=1)
    for model in (asked, quiet):
        model.add_outputs(1)
        model.learn(X[-1:], last)
    assert_array_equal(asked.predict(X), quiet.predict(X))
    assert_same_bits(asked, quiet)


@pytest.mark.parametrize("gone", range(T))
@pytest.mark.parametrize("n", [10, DELAY, DELAY + 10])
def test_an_output_that_goes_leaves_the_others(gone, n):
    X, Y = some_rows(10, n + 10)
    model, rest = learned(X[:n], Y[:n]), np.delete(Y, gone, axis=1)
    model.add_outputs(3)
    for _ in range(3):
        model.remove_output(T)
    model.remove_output(gone)
    model.learn(X[n:], rest[n:])
    assert_is(model, Dense(D, T - 1, PENALTY).learn(X, rest))


def test_an_output_that_comes_where_one_went_begins_at_zero():
    X, Y = some_rows(11, DELAY + 30)
    n = DELAY + 10
    model = learned(X[:n], Y[:n])
    model.remove_output(T - 1)
    model.add_outputs(1)
    model.learn(X[n:], Y[n:])
    Y[:n, T - 1] = 0
    assert_is(model, Dense(D, T, PENALTY).learn(X, Y))


@pytest.mark.parametrize(("kept", "gone"), [(0, 2), (2, 0), (1, 2)])
def test_two_outputs_become_their_sum(kept, gone):
    X, Y = some_rows(12, DELAY + 10)
    model = learned(X, Y)
    model.join_outputs(kept, gone)
    Y[:, kept] += Y[:, gone]
    expected = Dense(D, T - 1, PENALTY).learn(X, np.delete(Y, gone, axis=1))
    assert_allclose(model.coefficients(), expected.coef, **CLOSE)


@pytest.mark.parametrize("n", [0, 10, DELAY, 600])
@pytest.mark.parametrize("forgetting", [1.0, 0.98])
def test_columns_that_come_late_were_zero(n, forgetting):
    X, Y = some_rows(13, n + 50)
    X[:n, 3:] = 0
    model = Recursion(3, T, PENALTY, forgetting=forgetting)
    model.learn(np.ascontiguousarray(X[:n, :3]), Y[:n])
    model.add_features(2)
    dense = Dense(D, T, PENALTY, forgetting).learn(X[:n], Y[:n])
    assert_is(model, dense)
    model.learn(X[n:], Y[n:])
    assert_is(model, dense.learn(X[n:], Y[n:]))


def test_columns_may_come_after_the_penalty_has_faded_to_nothing():
    X, Y = some_rows(14, 20_100)
    model = Recursion(3, T, PENALTY, forgetting=0.95)
    model.learn(np.ascontiguousarray(X[:20_000, :3]), Y[:20_000])
    model.add_features(2)
    model.learn(X[20_000:], Y[20_000:])
    fades = 0.95 ** np.arange(99, -1, -1)[:, None]
    recent = np.linalg.lstsq(np.sqrt(fades) * X[20_000:], np.sqrt(fades) * Y[20_000:])[0]
    assert np.isfinite(model.predict(X)).all()
    assert_allclose(model.coefficients(), recent.T, atol=0.1)


# Merging and fading.


@pytest.mark.parametrize("n", [5, DELAY, DELAY + 5])
@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_a_merged_model_is_that_of_the_rows_of_both(n, forgetting):
    X, Y = some_rows(15, 2 * n + 30)
    one = learned(X[:n], Y[:n], forgetting=forgetting)
    other = learned(X[n : 2 * n], Y[n : 2 * n, ::-1], forgetting=forgetting)
    kept = copy.deepcopy(other)
    assert one.merge(other, np.array([2, 1, 0])) is one
    assert_same_bits(other, kept)
    dense = Dense(D, T, PENALTY, forgetting).learn(X[:n], Y[:n])
    dense.merge(Dense(D, T, PENALTY, forgetting).learn(X[n : 2 * n], Y[n : 2 * n]))
    assert_is(one, dense)
    one.learn(X[2 * n :], Y[2 * n :])
    assert_is(one, dense.learn(X[2 * n :], Y[2 * n :]))


def test_a_merge_may_name_some_outputs_only():
    X, Y = some_rows(16, 60)
    one, other = learned(X[:30], Y[:30]), learned(X[30:], Y[30:, [2, 0]])
    Y[30:, 1] = 0
    one.merge(other, np.array([2, 0]))
    assert_is(one, Dense(D, T, PENALTY).learn(X, Y))


@pytest.mark.parametrize("penalty", [1e-15, 1e-12, 1e-6])
def test_models_of_columns_that_depend_on_each_other_can_be_merged(penalty):
    # In two directions A is the penalty alone, below the rounding of its other entries.
    X, Y = some_rows(17, 60, d=3)
    X = np.hstack([X, X[:, :2] + X[:, 1:]])
    one, other = learned(X[:30], Y[:30], penalty), learned(X[30:], Y[30:], penalty)
    one.merge(other, np.arange(T))
    expected = X @ np.linalg.lstsq(X, Y)[0]
    assert_allclose(one.predict(X), expected, rtol=0, atol=1e-6)
    one.learn(X, Y)
    assert_allclose(one.predict(X), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("n", [10, DELAY, DELAY + 10])
def test_faded_rows_count_less(n):
    X, Y = some_rows(18, n + 40)
    model, dense = learned(X[:n], Y[:n]), Dense(D, T, PENALTY).learn(X[:n], Y[:n])
    model.fade(0.2)
    dense.fade(0.2)
    assert_is(model, dense)
    model.learn(X[n:], Y[n:])
    assert_is(model, dense.learn(X[n:], Y[n:]))
    assert_allclose(model.prior, 0.2 * PENALTY)


# Any life.


@given(seeds, st.sampled_from([1.0, 0.97]))
@settings(max_examples=60, deadline=None)
def test_after_any_life_the_model_is_what_the_sums_say(seed, forgetting):
    rng = np.random.default_rng(seed)
    model = Recursion(3, 2, PENALTY, forgetting=forgetting)
    dense = Dense(3, 2, PENALTY, forgetting)
    for event in rng.integers(0, 9, size=20):
        n, d, t = int(rng.integers(1, 2 * DELAY)), model.n_features, model.n_outputs
        X, Y = rng.normal(size=(n, d)), rng.normal(size=(n, t))
        if event == 0:
            model.settle()
        elif event == 1 and t < 6:
            model.add_outputs(2)
            dense.add_outputs(2)
        elif event == 2 and t > 1:
            model.remove_output(int(n % t))
            dense.remove_output(int(n % t))
        elif event == 3 and d < 8:
            model.add_features(1)
            dense.add_features(1)
        elif event == 4:
            model.fade(0.5)
            dense.fade(0.5)
        elif event == 5:
            model.merge(learned(X, Y, forgetting=forgetting), np.arange(t))
            dense.merge(Dense(d, t, PENALTY, forgetting).learn(X, Y))
        else:
            model.learn(X, Y)
            dense.learn(X, Y)
            model.predict(X)
    assert_is(model, dense)
