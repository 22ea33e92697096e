"""Classes that are forgotten, renamed and merged: a ledger of all examples is the reference."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from imparo import IncrementalClassifier, RecursiveRegressor
from imparo.features import NystromMap
from imparo.kernels import Gaussian
from imparo.persistence import fingerprint
from incremental_tools import (
    batch,
    difference,
    differing,
    held_rows,
    plain,
    scores,
    shown,
    stream,
    weights_of,
)

seeds = st.integers(0, 2**32 - 1)
often = settings(max_examples=30, deadline=None)
PROBE = np.random.default_rng(9).normal(size=(7, 3))
NAMES = ["ant", "bee", "cat", "dog", "eel"]


class Ledger:
    """A model, and all examples that it was shown with the labels that they have now."""

    def __init__(self, rng, **parameters):
        self.rng = rng
        self.model = IncrementalClassifier(penalty=0.5, recoding=0.4, **parameters)
        self.rows, self.labels = [], []
        self.learned, self.held, self.known = set(), set(), set()

    def _settle(self, candidates):
        places = {row.tobytes(): i for i, row in enumerate(self.rows)}
        self.held = {places[row.tobytes()] for row in held_rows(self.model)}
        self.learned |= candidates - self.held

    def show(self, n):
        for _ in range(n):
            label = NAMES[self.rng.integers(len(NAMES))]
            self.rows.append(self.rng.normal(size=3) + NAMES.index(label) / 4)
            self.labels.append(label)
            self.known.add(label)
            self.model.partial_fit(self.rows[-1][None], [label])
            self._settle(self.held | {len(self.rows) - 1})

    def forget(self, label):
        self.model.forget(label)
        self.known.remove(label)
        own = {i for i, known in enumerate(self.labels) if known == label}
        self.held -= own
        for i in own:
            self.labels[i] = None

    def rename(self, old, new):
        self.model.rename(old, new)
        self.known = (self.known - {old}) | {new}
        self.labels = [new if label == old else label for label in self.labels]

    def merge(self, other):
        first = len(self.rows)
        self.model.merge(other.model)
        self.rows += other.rows
        self.labels += other.labels
        self.known |= other.known
        self.learned |= {first + i for i in other.learned}
        self._settle(self.held | {first + i for i in other.held})

    def check(self):
        model, rows = self.model, sorted(self.learned)
        assert model.classes_.tolist() == sorted(self.known)
        X, y = np.array(self.rows)[rows], [self.labels[i] for i in rows]
        W, counts = batch(X, y, sorted(self.known), 0.5)
        assert difference(weights_of(model), W) < 1e-8
        assert_array_equal(model.counts_, counts)
        if counts.any():
            S = scores(W, PROBE)[:, counts > 0] * (counts.sum() / counts[counts > 0]) ** 0.4
            assert difference(model._scores(PROBE)[:, counts > 0], S) < 1e-8
            assert set(model.predict(PROBE)) <= {
                sorted(self.known)[i] for i in counts.nonzero()[0]
            }
            assert not model.predict_proba(PROBE)[:, counts == 0].any()
        names = [model._labels[code] for code in model._reservoir.codes]
        places = {row.tobytes(): i for i, row in enumerate(self.rows)}
        assert names == [self.labels[places[row.tobytes()]] for row in held_rows(model)]
        assert {places[row.tobytes()] for row in held_rows(model)} == self.held
        assert model.n_held_out_ <= model.holdout_size


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from([{"holdout": 2, "holdout_size": 5}, {"holdout": 3}]))
def test_whatever_is_learned_forgotten_renamed_and_merged_the_model_is_exact(seed, parameters):
    rng = np.random.default_rng(seed)
    ledger = Ledger(rng, **parameters)
    ledger.show(rng.integers(1, 40))
    for _ in range(8):
        known = sorted(ledger.known)
        act = rng.integers(4)
        if act == 0 or not known:
            ledger.show(rng.integers(1, 40))
        elif act == 1:
            ledger.forget(known[rng.integers(len(known))])
        elif act == 2:
            new = [*NAMES, "fox", "gnu"][rng.integers(7)]
            ledger.rename(known[rng.integers(len(known))], new)
        else:
            other = Ledger(rng, **parameters)
            other.show(rng.integers(1, 60))
            before = copy.deepcopy(other.model)
            ledger.merge(other)
            assert differing(other.model, before, PROBE) == []
        ledger.check()
    ledger.show(20)
    ledger.check()


# Forgetting.


def test_a_class_that_is_forgotten_is_not_answered_until_it_is_shown_again():
    X, y = stream(0, 320, 3, spread=0.3)
    model = IncrementalClassifier(penalty=1.0, recoding=0.5).fit(X, y)
    near = X[y == 1][:20]
    assert (model.predict(near) == 1).mean() > 0.5
    assert model.forget(1) is model
    assert model.classes_.tolist() == [0, 2]
    assert not (model.predict(1000 * PROBE) == 1).any()
    assert not (model.predict(near) == 1).any()
    assert model.predict_proba(near).shape == (20, 2)
    model.partial_fit(X[y == 1], y[y == 1])
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict(near) == 1).mean() > 0.5


def test_forgetting_leaves_the_weights_of_others_to_the_last_bit():
    """After a multiple of 32 examples no row waits, and not even rounding changes."""
    X, y = stream(0, 320, 4)
    model = plain(recoding=0.7).fit(X, y)
    coef, intercept, counts = model.coef_, model.intercept_, model.counts_
    model.forget(2)
    assert_array_equal(model.coef_, coef[[0, 1, 3]])
    assert_array_equal(model.intercept_, intercept[[0, 1, 3]])
    assert_array_equal(model.counts_, counts[[0, 1, 3]])


@often
@given(seeds, st.integers(1, 100))
def test_what_is_learned_after_forgetting_counts_the_rows_as_those_of_no_class(seed, stop):
    X, y = stream(seed, 150)
    model = plain().fit(X[:stop], y[:stop])
    model.forget(0)
    model.partial_fit(X[stop:], y[stop:])
    early = (np.arange(150) < stop) & (y == 0)
    W, counts = batch(X, np.where(early, -1, y), model.classes_, 1.0)
    assert difference(weights_of(model), W) < 1e-8
    assert_array_equal(model.counts_, counts)


def test_all_classes_may_be_forgotten_and_learning_goes_on():
    X, y = stream(0, 90, 2)
    model = IncrementalClassifier().fit(X, y)
    model.forget(0).forget(1)
    assert len(model.classes_) == model.n_held_out_ == 0
    for ask in (model.predict, model.decision_function, model.predict_proba):
        with pytest.raises(NotFittedError, match="no class is known"):
            ask(PROBE)
    with pytest.raises(ValueError, match="1 is not among the classes that are known"):
        model.forget(1)
    model.partial_fit(X, np.array(["no", "yes"])[y])
    assert model.score(X, np.array(["no", "yes"])[y]) > 0.5


# Renaming.


def test_a_new_name_changes_nothing_else():
    X, y = stream(0, 200, 3)
    model = IncrementalClassifier().fit(X, np.array(["b", "c", "d"])[y])
    same = IncrementalClassifier().fit(X, np.array(["b", "a", "d"])[y])
    assert model.rename("c", "a") is model
    assert differing(model, same, PROBE) == []
    model.rename("a", "a")
    assert differing(model, same, PROBE) == []
    for one in (model, same):
        one.partial_fit(X, np.array(["b", "a", "d"])[y])
    assert differing(model, same, PROBE) == []


def test_a_new_name_may_be_of_another_kind():
    X, y = stream(0, 200, 3, spread=0.3)
    model = IncrementalClassifier().fit(X, y)
    before = model.predict(X)
    model.rename(np.int64(1), ("a", "pair"))
    found = model.predict(X)
    assert [("a", "pair") if label == 1 else label for label in before] == found.tolist()
    model.rename(("a", "pair"), 1.0)
    assert_array_equal(model.predict(X), before)


@often
@given(seeds)
def test_two_classes_become_one_as_if_they_had_always_been(seed):
    X, y = stream(seed, 100, 4)
    model = plain(recoding=0.6).fit(X, y).rename(3, 1)
    always = plain(recoding=0.6).fit(X, np.where(y == 3, 1, y))
    assert_array_equal(model.classes_, always.classes_)
    assert_array_equal(model.counts_, always.counts_)
    assert difference(model.coef_, always.coef_) < 1e-9
    assert difference(model.decision_function(PROBE), always.decision_function(PROBE)) < 1e-9
    for one in (model, always):
        one.partial_fit(X[::-1], np.where(y == 3, 1, y)[::-1])
    assert difference(model.coef_, always.coef_) < 1e-9


def test_a_class_may_become_one_that_was_named_and_not_shown():
    X, y = stream(0, 100, 2)
    model = plain().partial_fit(X, y, classes=[0, 1, 5])
    coef = model.coef_
    model.rename(1, 5)
    assert model.classes_.tolist() == [0, 5]
    assert_allclose(model.coef_, coef[:2], atol=1e-12)


@pytest.mark.parametrize("new", [None, np.nan, ["a"], {}])
def test_what_is_no_label_is_no_new_name(new):
    X, y = stream(0, 100, 2)
    model = IncrementalClassifier().fit(X, y)
    before = fingerprint(model)
    with pytest.raises((ValueError, TypeError), match=r"label|1d"):
        model.rename(1, new)
    with pytest.raises((ValueError, TypeError), match=r"label|known|1d"):
        model.rename(new, 1)
    with pytest.raises((ValueError, TypeError), match=r"label|known|1d"):
        model.forget(new)
    with pytest.raises(ValueError, match="'mug' is not among the classes that are known: 0, 1"):
        model.rename("mug", 1)
    assert fingerprint(model) == before


# Merging.


@often
@given(seeds, st.integers(1, 79), st.sampled_from([0, 2, 4]))
def test_merged_models_are_the_model_of_all_examples(seed, cut, shift):
    """Classes that both have, some, or none."""
    X, y = stream(seed, 80)
    y[cut:] += shift
    first, second = plain(recoding=0.5), plain(recoding=0.5)
    first.fit(X[:cut], y[:cut])
    second.fit(X[cut:], y[cut:])
    assert first.merge(second) is first
    whole = plain(recoding=0.5).fit(X, y)
    assert_array_equal(first.classes_, whole.classes_)
    assert_array_equal(first.counts_, whole.counts_)
    assert first.n_seen_ == 80
    assert difference(first.coef_, whole.coef_) < 1e-8
    assert difference(first.decision_function(PROBE), whole.decision_function(PROBE)) < 1e-8
    assert_allclose(first.leverage(PROBE), whole.leverage(PROBE), rtol=1e-8)
    for one in (first, whole):
        one.partial_fit(X, y)
    assert difference(first.coef_, whole.coef_) < 1e-8


def test_many_merges_and_a_tiny_penalty_stay_exact():
    X, y = stream(0, 600, 5)
    for penalty in (1.0, 1e-15):
        model = plain(penalty=penalty).fit(X[:20], y[:20])
        for start in range(20, 600, 20):
            part = slice(start, start + 20)
            model.merge(plain(penalty=penalty).fit(X[part], y[part]))
        W, _ = batch(X, y, model.classes_, penalty)
        assert difference(weights_of(model), W) < 1e-8


@often
@given(seeds)
def test_what_was_forgotten_stays_forgotten_in_a_merge(seed):
    X, y = stream(seed, 100)
    own = {"forgetting": 0.95}
    first, second = plain(**own).fit(X[:60], y[:60]), plain(**own).fit(X[60:], y[60:])
    first.merge(second)
    left = 0.95 ** np.append(np.arange(59, -1, -1), np.arange(39, -1, -1))
    W, counts = batch(X, y, first.classes_, 1.0, weight=left, prior=0.95**60)
    assert difference(weights_of(first), W) < 1e-8
    assert_allclose(first.counts_, counts, rtol=1e-9)


def test_examples_that_the_other_holds_out_are_held_out_or_learned():
    X, y = stream(0, 400, 4)
    for size in (5, 30, 1000):
        first = IncrementalClassifier(penalty=1.0, holdout=2, holdout_size=size)
        second = IncrementalClassifier(penalty=1.0, holdout=2)
        shown(first, X[:200], y[:200])
        shown(second, X[200:], y[200:])
        offered = first.n_held_out_ + second.n_held_out_
        first.merge(second)
        assert first.n_held_out_ == min(size, offered)
        assert first.counts_.sum() == 400 - first.n_held_out_


def test_a_model_that_holds_nothing_out_learns_what_the_other_holds_out():
    X, y = stream(0, 300, 4)
    first = plain().fit(X[:100], y[:100])
    first.merge(IncrementalClassifier(penalty=1.0).fit(X[100:], y[100:]))
    assert first.n_held_out_ == 0
    W, counts = batch(X, y, first.classes_, 1.0)
    assert_array_equal(first.counts_, counts)
    assert difference(weights_of(first), W) < 1e-8


def test_penalties_side_by_side_are_merged_each():
    X, y = stream(0, 200, 3)
    penalties = [1e-3, 1.0, 1e3]
    first, second = (IncrementalClassifier(penalty=penalties) for _ in range(2))
    order = [*shown(first, X[:100], y[:100])[0]]
    order += [100 + i for i in shown(second, X[100:], y[100:])[0]]
    first.merge(second)
    for number, penalty in enumerate(penalties):
        first._best = number
        W, _ = batch(X[order], y[order], first.classes_, penalty)
        assert difference(weights_of(first), W) < 1e-8


def test_a_merge_that_is_interrupted_changes_nothing(monkeypatch):
    X, y = stream(0, 300, 5)
    model = IncrementalClassifier(holdout=2, holdout_size=30).fit(X[:150], y[:150])
    other = IncrementalClassifier(holdout=2).fit(X[150:], y[150:])
    model._detector = None  # it only counts
    before, its = fingerprint(model), copy.deepcopy(other)

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(model, "_select", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.merge(other)
    monkeypatch.undo()
    assert fingerprint(model) == before
    assert differing(other, its, PROBE) == []


def refused_merges(X, y):
    wide = np.column_stack([X, X[:, 0]])
    features = NystromMap(Gaussian(1.0), X[:3])
    yield "only another IncrementalClassifier", RecursiveRegressor(penalty=1.0).fit(X, y)
    yield "only another IncrementalClassifier", None
    yield "must have learned something", IncrementalClassifier(penalty=1.0)
    yield "4 columns and this one 3", IncrementalClassifier(penalty=1.0).fit(wide, y)
    yield "the same numbers", IncrementalClassifier(penalty=2.0).fit(X, y)
    yield "the same numbers", IncrementalClassifier(penalty=[1.0, 2.0]).fit(X, y)
    yield "the same map", IncrementalClassifier(penalty=1.0, intercept=False).fit(X, y)
    yield "the same map", IncrementalClassifier(features, penalty=1.0).fit(X, y)
    yield (
        "in directions",
        IncrementalClassifier(penalty=1.0, forgetting=0.9, forgetting_kind="directional").fit(
            X, y
        ),
    )


def test_what_cannot_be_merged_is_refused_and_nothing_changes():
    X, y = stream(0, 100)
    model = IncrementalClassifier(penalty=1.0).fit(X, y)
    before = fingerprint(model)
    for words, other in refused_merges(X, y):
        with pytest.raises((ValueError, TypeError), match=words):
            model.merge(other)
        assert fingerprint(model) == before
    with pytest.raises(ValueError, match="merged with itself"):
        model.merge(model)
    with pytest.raises(NotFittedError):
        IncrementalClassifier(penalty=1.0).merge(model)
    assert fingerprint(model) == before
