"""Answers of incremental classifiers: rare classes, confidence, the unknown, and drift."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from imparo import IncrementalClassifier
from incremental_tools import batch, difference, shown, stream, weights_of

seeds = st.integers(0, 2**32 - 1)
often = settings(max_examples=25, deadline=None)


def clouds(seed, counts, distance=3.0, columns=2):
    """Return shuffled rows about the corners of a simplex, so many of each class."""
    rng = np.random.default_rng(seed)
    centers = distance * np.eye(len(counts), max(columns, len(counts)))
    y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return centers[y] + rng.normal(size=(len(y), centers.shape[1])), y


# Rare classes.


def test_a_rare_class_is_ignored_without_recoding_and_found_with_it():
    X, y = clouds(0, [1000, 1000, 10])
    X_test, y_test = clouds(1, [500, 500, 500])
    rare, found = y_test == 2, {}
    for alpha in (0.0, "auto"):
        answers = IncrementalClassifier(recoding=alpha).fit(X, y).predict(X_test)
        found[alpha] = (answers == y_test)[rare].mean(), (answers == y_test)[~rare].mean()
    assert found[0.0][0] < 0.05
    assert found["auto"][0] > 0.5
    assert found["auto"][1] > found[0.0][1] - 0.05


@often
@given(seeds)
def test_the_more_recoding_the_more_rows_are_answered_with_the_rarest_class(seed):
    """Where its score is above 0, the ratio to every other score grows with α."""
    X, y = clouds(seed, [100, 50, 10])
    probe, _ = clouds(seed + 1, [100, 100, 100])
    before = np.zeros(300, bool)
    for alpha in (0.0, 0.2, 0.5, 0.8, 1.0):
        model = IncrementalClassifier(penalty=1.0, recoding=alpha, holdout=None).fit(X, y)
        F = model.intercept_ + probe @ model.coef_.T
        rare = (model.predict(probe) == 2) & (F[:, 2] > 0)
        assert (rare | ~before).all()
        before = rare
    assert before.sum() > 50


@often
@given(seeds, st.floats(0, 1))
def test_recoding_does_nothing_where_classes_are_even(seed, alpha):
    X, y = stream(seed, 300, 3)
    X, y = X[np.argsort(y, kind="stable")], np.repeat([0, 1, 2], 100)
    probe = np.random.default_rng(seed).normal(size=(20, 3))
    models = [IncrementalClassifier(penalty=1.0, recoding=a) for a in (0.0, alpha)]
    for model in models:
        model.fit(X, y)
        assert len(set(model.counts_)) == 1
        # The last selection saw other counts.
        model._select()
    assert_array_equal(models[0].predict(probe), models[1].predict(probe))
    assert_allclose(models[0].temperature_, models[1].temperature_, rtol=1e-3)
    P, Q = (model.predict_proba(probe) for model in models)
    assert_allclose(P, Q, atol=1e-3)
    ratio = models[1].decision_function(probe) / models[0].decision_function(probe)
    assert_allclose(ratio, 3**alpha, rtol=1e-9)


# Confidence.


@often
@given(seeds, st.sampled_from(["auto", 0.0, 0.7]))
def test_probabilities_are_the_softmax_of_scores_and_agree_with_answers(seed, alpha):
    X, y = stream(seed, 200, 4)
    model = IncrementalClassifier(recoding=alpha).fit(X, y)
    S = model.decision_function(X) * model.temperature_ / 4**model.recoding_
    expected = np.exp(S - S.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    P = model.predict_proba(X)
    assert_allclose(P, expected, rtol=1e-9)
    assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
    assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    assert_array_equal(model.confidence(X), P.max(axis=1))


def calibration_error(confidence, right):
    bins = np.minimum((confidence * 15).astype(int), 14)
    return sum(
        abs(confidence[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean()
        for b in np.unique(bins)
    )


@pytest.mark.parametrize("distance", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("counts", [[1000] * 3, [2000, 1500, 300], [400] * 8])
def test_confidence_can_be_trusted(distance, counts):
    """Expected calibration error where classes are as frequent as in the stream."""
    X, y = clouds(0, counts, distance)
    X_test, y_test = clouds(1, [4 * n for n in counts], distance)
    model = IncrementalClassifier().fit(X, y)
    right = model.predict(X_test) == y_test
    assert calibration_error(model.confidence(X_test), right) < 0.05
    # Not all alike: those that are surer are more often right.
    confidence = model.confidence(X_test)
    surer = confidence > np.median(confidence)
    assert right[surer].mean() > right[~surer].mean()


def test_without_examples_held_out_there_is_no_confidence():
    X, y = stream(0, 50)
    model = IncrementalClassifier(penalty=1.0, recoding=0.5, holdout=None).fit(X, y)
    for name in ("predict_proba", "predict_proba_one", "confidence"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match="has no attribute") as caught:
            getattr(model, name)
        assert "held out" in str(caught.value.__cause__)
        assert "decision_function" in str(caught.value.__cause__)
    assert model.predict(X).shape == (50,)
    assert hasattr(IncrementalClassifier(), "predict_proba")


# The unknown.

UNKNOWN = [
    (("mug", "ball"), "unknown", "U"),
    (("mug", "ball"), "?", "U"),
    (("mug", "ball"), "a name longer than any", "U"),
    (("mug", "ball"), None, "O"),
    (("mug", "ball"), -1, "O"),
    (("mug", "ball"), ("no", "idea"), "O"),
    ((0, 1), -1, "i"),
    ((0, 1), "unknown", "O"),
    ((0, 1), None, "O"),
    ((0, 1), (0, 1), "O"),
    ((0.0, 1.0), -1.0, "f"),
    ((True, False), -1, "O"),
    ((True, False), "unknown", "O"),
    ((("a", 1), ("b", 2)), ("c", 3), "O"),
    ((1, "one"), "neither", "O"),
]


@pytest.mark.parametrize(("labels", "unknown", "kind"), UNKNOWN)
def test_the_unknown_is_answered_where_confidence_is_below(labels, unknown, kind):
    X, y = clouds(0, [150, 150], 1.5)
    names = [labels[code] for code in y]
    sure = IncrementalClassifier().fit(X, names)
    unsure = IncrementalClassifier(unknown_below=0.8, unknown_label=unknown).fit(X, names)
    low = sure.confidence(X) < 0.8
    assert 10 < low.sum() < 290
    answers = unsure.predict(X)
    assert answers.dtype.kind == kind
    plain = sure.predict(X).tolist()
    expected = [
        unknown if is_low else answer for is_low, answer in zip(low, plain, strict=True)
    ]
    assert answers.tolist() == expected
    for n in (1, 2, 3):
        assert unsure.predict(X[low][:n]).tolist() == [unknown] * n
    assert unsure.predict_one(X[low][0]) == unknown
    assert unsure.predict_one(X[~low][0]) == sure.predict_one(X[~low][0])


def test_the_unknown_is_no_class():
    X, y = clouds(0, [150, 150], 1.5)
    model = IncrementalClassifier(unknown_below=1.0).fit(X, np.array(["a", "b"])[y])
    assert set(model.predict(X)) <= {"a", "b", "unknown"}
    assert model.classes_.tolist() == ["a", "b"]
    model.set_params(unknown_below=0.0)
    assert "unknown" not in model.predict(X)


def test_what_is_far_from_all_examples_is_new():
    X, y = clouds(0, [150, 150])
    model = IncrementalClassifier(penalty=1.0).fit(X, y)
    familiar, far = model.novelty(X), model.novelty(50 * X)
    assert familiar.max() < far.min()
    assert ((familiar >= 0) & (familiar < 1)).all()
    assert_allclose(familiar, model.leverage(X) / (1 + model.leverage(X)))
    with pytest.raises(NotFittedError):
        IncrementalClassifier().novelty(X)


# Drift.


def swapped(seed, n=1200):
    """Return a stream whose labels are swapped from the middle on."""
    X, y = clouds(seed, [n, n], 2.0)
    y[n:] = 1 - y[n:]
    return X, y


def test_a_swap_of_labels_is_recorded_and_forgetting_recovers_faster():
    errors = {}
    for drift in (None, "record", "forget"):
        wrong = []
        for seed in range(3):
            X, y = swapped(seed)
            model = IncrementalClassifier(penalty=1.0, drift=drift).fit(X[:1200], y[:1200])
            if drift is not None:
                assert model.drifts_ == []
                assert 0 < model.prequential_error_ < 0.25
            for start in range(1200, 2000, 50):
                part = slice(start, start + 50)
                wrong.append((model.predict(X[part]) != y[part]).mean())
                model.partial_fit(X[part], y[part])
            check_records(model, drift)
        errors[drift] = np.mean(wrong)
    assert errors[None] == errors["record"]
    assert errors["forget"] < 0.6 * errors["record"]


def check_records(model, drift):
    if drift is None:
        assert model.drifts_ == []
        assert np.isnan(model.prequential_error_)
        return
    assert 1 <= len(model.drifts_) <= 4
    first = model.drifts_[0]
    assert 1000 < first.change.at < 1200
    assert first.change.after > first.change.before
    words = "recorded only" if drift == "record" else "faded to"
    assert words in first.action


@pytest.mark.parametrize("seed", range(4))
def test_after_a_drift_earlier_examples_are_faded_and_later_ones_are_not(seed):
    """What is left of an example: the product of what later drifts kept."""
    X, y = swapped(seed, 500)
    model = IncrementalClassifier(penalty=1.0, recoding=0.3, drift="forget", holdout=4)
    order, held, left, prior, known = [], set(), np.zeros(0), 1.0, 0
    for i in range(len(X)):
        places = {row.tobytes(): j for j, row in enumerate(X)}
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        now = {places[row.tobytes()] for row in model._reservoir.rows[:, 1:]}
        drifted = len(model.drifts_) - known
        # At a drift all that is held out is let go, and the example of the moment is learned.
        new = [i] if drifted else sorted((held | {i}) - now)
        order, left, held = order + new, np.append(left, np.ones(len(new))), now
        for drift in model.drifts_[known:]:
            kept = drift.change.n_after / (drift.change.n_before + drift.change.n_after)
            left, prior = left * kept, prior * kept
            assert drift.change.at == len(order)
            assert not now
        known = len(model.drifts_)
    assert known >= 1
    W, counts = batch(X[order], y[order], model.classes_, 1.0, weight=left, prior=prior)
    assert difference(weights_of(model), W) < 1e-8
    assert_allclose(model.counts_, counts, rtol=1e-9)


def test_the_prequential_error_is_that_of_answers_before_learning():
    X, y = clouds(0, [300, 300], 1.5)
    model = IncrementalClassifier(penalty=1.0, recoding=0.0, holdout=None)
    model.learn_one(X[0], y[0])
    wrong = 0
    for x, label in zip(X[1:576], y[1:576], strict=True):
        wrong += model.predict_one(x) != label
        model.learn_one(x, label)
    # Nothing can be said about the first.
    assert wrong <= round(576 * model.prequential_error_) <= wrong + 1


# Forgetting.


def test_a_memory_of_a_hundred_examples_follows_a_drift():
    X, y = swapped(0, 600)
    long = IncrementalClassifier(penalty=1.0).fit(X[:900], y[:900])
    short = IncrementalClassifier(penalty=1.0, forgetting=0.99).fit(X[:900], y[:900])
    assert short.score(X[900:], y[900:]) > 0.8 > 0.6 > long.score(X[900:], y[900:])


def test_a_class_not_seen_for_long_does_not_take_over_where_directions_are_forgotten():
    """Its factor would grow without bound if its count faded and its weights did not."""
    X, y = clouds(0, [100, 100, 100])
    more, labels = clouds(1, [1000, 1000])
    more = np.column_stack([more, np.random.default_rng(2).normal(size=2000)])
    model = IncrementalClassifier(
        penalty=1.0, recoding=0.7, forgetting=0.98, forgetting_kind="directional"
    )
    model.fit(X, y).partial_fit(more, labels)
    assert model.score(more[-500:], labels[-500:]) > 0.9


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_class_that_faded_away_leaves_finite_answers(dtype):
    X, y = clouds(0, [40, 40, 40])
    model = IncrementalClassifier(
        penalty=1.0, recoding=1.0, forgetting=0.5, dtype=dtype, holdout=3
    ).fit(X, y)
    two = y < 2
    with np.errstate(all="raise", under="ignore"):
        for _ in range(16):
            model.partial_fit(X[two], y[two])
            P = model.predict_proba(X)
            assert np.isfinite(P).all()
            assert_allclose(P.sum(axis=1), 1, rtol=1e-9)
    assert not (model.predict(X[two]) == 2).any()
    model.partial_fit(X[~two], y[~two])
    assert (model.predict_proba(X[~two])[:, 2] > 0).all()


def test_examples_that_were_shown_are_all_learned_or_held_out_with_forgetting():
    X, y = stream(0, 200)
    model = IncrementalClassifier(penalty=1.0, forgetting=0.97)
    order, held = shown(model, X, y)
    assert sorted([*order, *held]) == list(range(200))


def test_a_recoding_that_is_set_later_counts_at_once(rng):
    X = np.concatenate([rng.normal(size=(300, 3)), rng.normal(1.5, size=(5, 3))])
    y = ["often"] * 300 + ["rare"] * 5
    model = IncrementalClassifier(penalty=1.0, recoding=0.0, holdout=None).fit(X, y)
    expected = IncrementalClassifier(penalty=1.0, recoding=0.9, holdout=None).fit(X, y)
    assert (model.predict(X[300:]) == "often").all()
    model.set_params(recoding=0.9)
    assert model.recoding_ == 0.9
    assert (model.decision_function(X) == expected.decision_function(X)).all()
    assert (model.predict(X[300:]) == "rare").any()
