"""Recursive least squares: dense sums over all rows, solved anew, are the reference."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import imparo
from imparo.engine import inverse_roots
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
    lengths,
    often,
    seeds,
    some_rows,
)


@pytest.mark.parametrize("n", [0, 1, 2, DELAY - 1, DELAY, DELAY + 1, 3 * DELAY + 7])
@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_the_model_is_that_of_all_rows(n, forgetting):
    X, Y = some_rows(n, n)
    model = learned(X, Y, forgetting=forgetting)
    assert_is(model, Dense(D, T, PENALTY, forgetting).learn(X, Y))


@given(seeds, lengths, st.lists(st.integers(0, 3 * DELAY), max_size=8), st.booleans())
@often
def test_the_cuts_between_calls_change_no_bit(seed, n, cuts, directional):
    X, Y = some_rows(seed, n)
    for options in ({}, {"forgetting": 0.9, "directional": directional}):
        parts = Recursion(D, T, PENALTY, **options)
        edges = sorted({0, n, *(min(cut, n) for cut in cuts)})
        judged = [
            part
            for start, stop in itertools.pairwise(edges)
            for part in parts.learn(X[start:stop], Y[start:stop])
        ]
        whole = Recursion(D, T, PENALTY, **options)
        for part, other in zip(judged, whole.learn(X, Y), strict=True):
            assert_array_equal(part.predictions, other.predictions)
            assert_array_equal(part.targets, other.targets)
        assert_same_bits(parts, whole)


@given(seeds, lengths)
@often
def test_asking_changes_nothing(seed, n):
    X, Y = some_rows(seed, n)
    asked, quiet = Recursion(D, T, PENALTY), Recursion(D, T, PENALTY)
    for i in range(n):
        asked.learn(X[i : i + 1], Y[i : i + 1])
        if i % 3 == seed % 3:
            asked.predict(X), asked.coefficients(), asked.noise(), asked.leverage(X[:1])
    quiet.learn(X, Y)
    assert_array_equal(asked.predict(X), quiet.predict(X))
    assert_same_bits(asked, quiet)


@given(seeds, lengths, st.integers(0, 3 * DELAY), st.sampled_from([1.0, 0.9]))
@often
def test_settling_in_the_middle_changes_rounding_only(seed, n, cut, forgetting):
    X, Y = some_rows(seed, n)
    model = Recursion(D, T, PENALTY, forgetting=forgetting)
    model.learn(X[:cut], Y[:cut])
    before = model.predict(X), model.noise()
    model.settle()
    assert_allclose(model.predict(X), before[0], **CLOSE)
    assert_allclose(model.noise(), before[1], rtol=1e-9)
    model.learn(X[cut:], Y[cut:])
    assert_is(model, Dense(D, T, PENALTY, forgetting).learn(X, Y))


def test_the_order_of_rows_is_rounding_only():
    X, Y = some_rows(0, 80)
    order = np.random.default_rng(1).permutation(80)
    one, other = learned(X, Y), learned(X[order], Y[order])
    assert_allclose(one.coefficients(), other.coefficients(), **CLOSE)
    assert_allclose(one.root, other.root, **CLOSE)


def test_rows_are_judged_before_they_are_learned():
    X, Y = some_rows(2, 2 * DELAY + 5)
    model = Recursion(D, T, PENALTY, forgetting=0.95)
    judged = model.learn(X, Y)
    assert len(judged) == 2
    judged.append(model.settle())
    dense, expected = Dense(D, T, PENALTY, 0.95), []
    for i in range(len(X)):
        expected.append(dense.coef @ X[i])
        dense.learn(X[i : i + 1], Y[i : i + 1])
    assert_allclose(np.concatenate([part.predictions for part in judged]), expected, **CLOSE)
    assert_array_equal(np.concatenate([part.targets for part in judged]), Y)
    assert len(model.settle().targets) == 0


def test_the_residual_is_the_least_value_of_the_objective():
    X, Y = some_rows(3, 50)
    model = learned(X, Y)
    model.settle()
    W = model.coefficients()
    objective = ((Y - X @ W.T) ** 2).sum(axis=0) + PENALTY * (W**2).sum(axis=1)
    assert_allclose(model.residual, objective, rtol=1e-11)


def test_noise_is_not_known_before_any_row():
    assert np.isnan(Recursion(D, T, PENALTY).noise()).all()


def test_given_arrays_are_neither_kept_nor_changed():
    X, Y = some_rows(4, 10)
    model, other = learned(X, Y), learned(X.copy(), Y.copy())
    X[:], Y[:] = np.nan, np.nan
    assert_same_bits(model, other)


def test_panels_give_the_same_model(monkeypatch):
    X, Y = some_rows(5, 70)
    monkeypatch.setattr(inverse_roots, "compiled", lambda: None)
    assert_is(learned(X, Y), Dense(D, T, PENALTY).learn(X, Y))


def test_float32_is_kept_and_is_right_to_its_rounding():
    X, Y = (part.astype(np.float32) for part in some_rows(6, 200))
    model, dense = learned(X, Y, dtype=np.float32), Dense(D, T, PENALTY).learn(X, Y)
    assert model.root.dtype == model.coefficients().dtype == model.predict(X).dtype == "f4"
    assert_allclose(model.coefficients(), dense.coef, atol=1e-5)
    assert_allclose(model.noise(), dense.residual / 200, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
def test_a_tiny_penalty_gives_least_squares(scale):
    X, Y = some_rows(7, 100)
    X = X * scale ** np.linspace(0, 1, D)
    expected = np.linalg.lstsq(X, Y)[0].T
    size = np.abs(expected).max(axis=0)
    model = learned(X, Y, penalty=1e-15 * min(1.0, scale) ** 2)
    assert_allclose(model.coefficients() / size, expected / size, rtol=0, atol=1e-8)


# Copies.


@pytest.mark.parametrize("n", [3, DELAY, DELAY + 9])
def test_copies_go_on_to_the_last_bit(n, tmp_path):
    X, Y = some_rows(8, 2 * DELAY)
    model = learned(X[:n], Y[:n], forgetting=0.99)
    imparo.save(model, tmp_path / "a")
    copies = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        imparo.load(tmp_path / "a"),
    ]
    model.learn(X[n:], Y[n:])
    for other in copies:
        other.learn(X[n:], Y[n:])
        assert_same_bits(other, model)
