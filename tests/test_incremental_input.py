"""Incremental classifiers on input of any kind: what is bad leaves every bit as it was."""

import copy
import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from imparo import IncrementalClassifier
from imparo.errors import MemoryBudgetError
from imparo.lifelong.labels import labels_of
from imparo.persistence import fingerprint
from incremental_tools import batch, difference, differing, plain, stream, weights_of

PROBE = np.random.default_rng(9).normal(size=(7, 3))


@pytest.fixture
def rows():
    """Rows of three classes that are easy to tell apart, and their numbers."""
    return stream(5, 200, 3, spread=0.2)


# Labels.

LABELS = {
    "strings": (["mug", "ball", "a sponge"], "U"),
    "integers": ([3, -7, 12], "i"),
    "negative": ([-1, -2, -3], "i"),
    "booleans": ([True, False], "b"),
    "whole floats": ([1.0, -2.0, 0.0], "f"),
    "tuples": ([("a", 1), ("b", 2), ("a", 2)], "O"),
    "tuples of many lengths": ([(), (1,), (1, (2, 3))], "O"),
    "kinds mixed": ([1, "one", (1,)], "O"),
    "bytes": ([b"a", b"bc", b"d"], "O"),
    "large": ([2**70, 1, -(2**70)], "O"),
    "large beside negative": ([2**63 + 5, -1, 0], "O"),
    "dates": ([datetime.date(2020, 1, day) for day in (1, 2, 3)], "O"),
    "frozen sets": ([frozenset("a"), frozenset("b"), frozenset("cd")], "O"),
    "strings with a NUL": (["a", "a\0", "b"], "O"),
    "not ASCII": (["ä", "水", "🤖"], "U"),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_may_be_of_any_kind_and_come_back_as_they_were(rows, name):
    X, codes = rows
    names, kind = LABELS[name]
    codes = codes % len(names)
    y = [names[code] for code in codes]
    model, by_number = IncrementalClassifier(), IncrementalClassifier()
    for i in range(0, 200, 40):
        model.partial_fit(X[i : i + 40], y[i : i + 40])
        by_number.partial_fit(X[i : i + 40], codes[i : i + 40])
    answers = model.predict(X)
    assert answers.tolist() == [names[code] for code in by_number.predict(X)]
    assert {type(answer) for answer in answers.tolist()} <= {type(one) for one in names}
    assert answers.dtype.kind == model.classes_.dtype.kind == kind
    assert sorted(map(repr, model.classes_.tolist())) == sorted(map(repr, names))
    found = model.predict_one(X[0])
    assert found == y[0]
    assert type(found) is type(y[0])
    assert set(model.predict_proba_one(X[0])) == set(names)
    one = IncrementalClassifier()
    for x, label in zip(X, y, strict=True):
        one.learn_one(x, label)
    assert differing(one, model, PROBE) == []
    model.forget(names[0])
    assert names[0] not in model.classes_.tolist()
    model.rename(names[1], names[0])
    assert names[0] in model.classes_.tolist()


def test_labels_that_sort_are_sorted_and_others_stay_in_their_order(rows):
    X, codes = rows
    names = ["c", "a", "b"]
    assert plain().fit(X, [names[c] for c in codes]).classes_.tolist() == ["a", "b", "c"]
    names = ["c", 1, "b"]
    first = [names[c] for c in dict.fromkeys(codes.tolist())]
    assert plain().fit(X, [names[c] for c in codes]).classes_.tolist() == first


CONTAINERS = {
    "array": np.array,
    "array of objects": lambda y: np.array(y, object),
    "tuple": tuple,
    "series": pd.Series,
    "series of objects": lambda y: pd.Series(y, dtype=object),
    "categories": lambda y: pd.Series(y, dtype="category"),
    "index": pd.Index,
    "polars": pl.Series,
    "NumPy scalars": lambda y: list(np.array(y)),
    "a strange index": lambda y: pd.Series(y, index=range(1000, 1000 + len(y))),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("names", [("a", "bc", "d"), (5, -3, 0), (True, False, True)])
def test_labels_may_come_in_any_container(rows, container, names):
    X, codes = rows
    y = [names[code] for code in codes]
    expected = IncrementalClassifier().fit(X, y)
    model = IncrementalClassifier().fit(X, CONTAINERS[container](y))
    assert differing(model, expected, PROBE) == []
    assert {type(label) for label in model._labels} == {type(names[0])}


def test_special_containers_of_frames_are_plain_labels(rows):
    X, codes = rows
    words = np.array(["a", "bc", "d"])[codes]
    expected = IncrementalClassifier().fit(X, words)
    numbers = IncrementalClassifier().fit(X, codes)
    for y in (
        pd.Series(words, dtype="string"),
        pl.Series(words.tolist(), dtype=pl.Categorical),
        pl.Series(words.tolist(), dtype=pl.Enum(["d", "bc", "a"])),
    ):
        assert differing(IncrementalClassifier().fit(X, y), expected, PROBE) == []
    for y in (pd.Series(codes, dtype="Int64"), pl.Series(codes, dtype=pl.Int8)):
        assert differing(IncrementalClassifier().fit(X, y), numbers, PROBE) == []


def test_numbers_that_are_equal_are_one_class(rows):
    X, codes = rows
    model = IncrementalClassifier().fit(X, codes)
    for y in (codes * 1.0, codes.astype(np.uint8), codes.astype(object)):
        model.partial_fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]


def test_many_whole_floats_raise_no_alarm():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = plain().fit(np.eye(30), np.arange(30.0) % 20)
    assert len(model.classes_) == 20


# Bad input.

GOOD = np.array([[1.0, 2, 3], [4, 5, 6]])
NO_LABELS = {
    "None": ([0, None], "label"),
    "NaN": ([0, np.nan], "NaN"),
    "infinity": ([0, np.inf], "infinity"),
    "NaN beside text": (["a", np.nan], "no label"),
    "NaN among objects": (np.array(["a", np.nan], object), "no label"),
    "NA": (pd.Series(["a", None], dtype="string"), "no label"),
    "NA of integers": (pd.Series([1, None], dtype="Int64"), "label"),
    "a category that is missing": (pd.Series(["a", None], dtype="category"), "no label"),
    "null": (pl.Series(["a", None]), "no label"),
    "NaT": (pd.Series([pd.Timestamp("2020-01-01"), pd.NaT]), "label"),
    "fractions": ([0.5, 1.5], "[Uu]nknown label type"),
    "lists": ([[1, 2], [3]], "hashable|inhomogeneous"),
    "a dictionary": ([0, {}], "hashable"),
    "a set": ([0, {1}], "hashable"),
    "an array": ([(0,), np.array([1, 2])], "hashable"),
    "a tuple with a list": ([0, ([],)], "hashable"),
    "two columns": ([[0, 1], [1, 0]], "1d|one"),
    "text": ("ab", "1d|one"),
    "one label": (0, "1d|one"),
    "none": (None, "requires y"),
    "too few": ([0], "2 rows and y has 1"),
    "too many": ([0, 1, 2], "2 rows and y has 3"),
}


@pytest.fixture
def model(rows):
    X, y = rows
    model = IncrementalClassifier(holdout=2, holdout_size=20, drift="forget")
    return model.partial_fit(X, y, classes=[0, 1, 2, 9])


def assert_refused(model, words, call, *args, kinds=(ValueError, TypeError), **options):
    """Check that a call raises one sentence, and that not a bit of the model changes."""
    before, alone = fingerprint(model), copy.deepcopy(model)
    with pytest.raises(kinds, match=words) as caught:
        getattr(model, call)(*args, **options)
    assert fingerprint(model) == before
    # Nor of what comes after.
    for one in (model, alone):
        one.partial_fit(PROBE, [0, 1, 2, 0, 1, 2, "new"])
    assert differing(model, alone, PROBE) == []
    return caught.value


@pytest.mark.parametrize("name", NO_LABELS)
def test_what_is_no_label_is_refused(model, name):
    y, words = NO_LABELS[name]
    assert_refused(copy.deepcopy(model), words, "partial_fit", GOOD, y)
    assert_refused(copy.deepcopy(model), words, "fit", GOOD, y)
    if "too" not in name and name != "none":
        assert_refused(model, words, "partial_fit", GOOD, [0, 1], classes=y)
        with pytest.raises((ValueError, TypeError), match=words):
            labels_of(y)


BAD_ROWS = {
    "NaN": ([[1.0, 2, np.nan]] * 2, "NaN"),
    "infinity": ([[1.0, 2, np.inf]] * 2, "infinity|too large"),
    "None": ([[1.0, 2, None]] * 2, "NaN"),
    "text": ([["1", "2", "three"]] * 2, "text"),
    "no rows": (np.empty((0, 3)), "0 sample"),
    "no columns": (np.empty((2, 0)), "0 feature"),
    "too few columns": (GOOD[:, :2], "2 features.*3 features|3 features"),
    "too many columns": (np.hstack([GOOD, GOOD]), "6 features"),
    "a vector": ([1.0, 2], "2D array|Expected 2D"),
    "a number": (3.0, "2D array|Expected 2D|scalar"),
    "three axes": (np.ones((2, 3, 1)), "dim 3|2D|<= 2"),
    "complex numbers": (GOOD + 1j, "[Cc]omplex"),
    "lists of many lengths": ([[1.0, 2, 3], [1.0]], "inhomogeneous|sequence"),
    "sparse with NaN": (sparse.csr_matrix([[1.0, 0, np.nan]] * 2), "NaN"),
    "a frame with text": (
        pd.DataFrame({"a": [1.0, 2], "b": ["x", "y"], "c": [1, 2]}),
        "b hold",
    ),
    "a frame with gaps": (pd.DataFrame([[1.0, 2, np.nan]] * 2, columns=list("abc")), "NaN"),
    "polars with text": (pl.DataFrame({"a": [1.0, 2], "b": ["x", "y"], "c": [1, 2]}), "b hold"),
    "a dictionary": ({"a": 1.0}, "."),
}


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("name", BAD_ROWS)
def test_rows_that_cannot_be_learned_are_refused(model, name):
    X, words = BAD_ROWS[name]
    assert_refused(model, words, "partial_fit", X, [0, 7])
    if "columns" not in name or name == "no columns":
        assert_refused(model, words, "fit", X, [0, 7])
    for call in ("predict", "decision_function", "predict_proba", "leverage"):
        assert_refused(model, words, call, X)
    fresh = IncrementalClassifier()
    if "columns" not in name or name == "no columns":
        with pytest.raises((ValueError, TypeError), match=words):
            fresh.partial_fit(X, [0, 7])
        assert not [key for key in vars(fresh) if key.endswith("_") or key.startswith("_")]


WEIGHTS = {
    "negative": ([1, -1], "from 0 on"),
    "NaN": ([1, np.nan], "NaN"),
    "infinite": ([1, np.inf], "infinity"),
    "too few": ([1.0], "one number for each of the 2 rows"),
    "two columns": (np.ones((2, 2)), "one number for each|dim|shape"),
    "text": (["a", "b"], "."),
    "huge": ([1, 1e306], "overflow"),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_are_none_are_refused(model, name):
    weight, words = WEIGHTS[name]
    assert_refused(model, words, "partial_fit", GOOD, [0, 7], sample_weight=weight)
    assert_refused(model, words, "fit", GOOD, [0, 7], sample_weight=weight)


@pytest.mark.filterwarnings("error")
def test_rows_that_would_overflow_are_refused(model):
    assert_refused(model, "overflow", "partial_fit", 1e150 * GOOD, [0, 1])
    assert_refused(model, "overflow", "fit", 1e200 * GOOD, [0, 1])
    single = IncrementalClassifier(dtype="float32", penalty=1.0).fit(GOOD, [0, 1])
    assert_refused(single, "overflow", "partial_fit", 1e16 * GOOD, [0, 1])
    with pytest.raises(ValueError, match="overflow"):
        IncrementalClassifier(dtype="float32").fit(1e25 * GOOD, [0, 1])


def test_only_weights_of_0_begin_nothing_and_change_nothing_later(model):
    with pytest.raises(ValueError, match="zero for every row"):
        IncrementalClassifier().fit(GOOD, [0, 1], sample_weight=[0, 0])
    alone = copy.deepcopy(model)
    model.partial_fit(GOOD, [0, 1], sample_weight=[0, 0])
    assert model.n_seen_ == alone.n_seen_ + 2
    alone.n_seen_ += 2
    assert differing(model, alone, PROBE) == []


ONE = {
    "a matrix": ([[1.0, 2, 3]], "a vector"),
    "too long": ([1.0, 2, 3, 4], "4 features"),
    "NaN": ([1.0, 2, np.nan], "NaN"),
    "text": (["a", "b", "c"], "text"),
    "a number": (1.0, "a vector"),
    "too few names": ({"a": 1.0, "b": 2.0}, "2 features"),
}


@pytest.mark.parametrize("name", ONE)
def test_one_example_that_cannot_be_learned_is_refused(model, name):
    x, words = ONE[name]
    assert_refused(model, words, "learn_one", x, 0)
    assert_refused(model, words, "predict_one", x)
    assert_refused(model, words, "predict_proba_one", x)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_names_go_by_the_columns_that_are_known(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=["b", "a", "c"])
    by_frame = IncrementalClassifier(penalty=1.0).fit(frame, y)
    by_names = IncrementalClassifier(penalty=1.0)
    for row, label in zip(frame.to_dict(orient="records"), y, strict=True):
        by_names.learn_one(row, label)
    later = IncrementalClassifier(penalty=1.0).fit(X[:100], y[:100])
    for row, label in zip(frame[100:].to_dict(orient="records"), y[100:], strict=True):
        later.learn_one(row, label)
    expected = IncrementalClassifier(penalty=1.0).fit(X, y)
    for model in (by_frame, by_names, later):
        assert_array_equal(model.coef_, expected.coef_)
        for row in X[:20]:
            turned = {"a": row[1], "c": row[2], "b": row[0]}
            assert model.predict_one(turned) == expected.predict_one(row)
            assert_allclose(
                list(model.predict_proba_one(turned).values()), expected.predict_proba([row])[0]
            )
        message = str(
            assert_refused(model, "'d' is not among", "predict_one", {"a": 1.0, "d": 2.0})
        )
        assert "b, a, c" in message


def test_nothing_is_answered_before_anything_is_learned():
    model = IncrementalClassifier()
    calls = ("predict", "decision_function", "predict_proba", "confidence", "leverage")
    for name in calls:
        with pytest.raises(NotFittedError):
            getattr(model, name)(PROBE)
    for name in ("predict_one", "predict_proba_one"):
        with pytest.raises(NotFittedError):
            getattr(model, name)(PROBE[0])
    for name in ("coef_", "counts_", "penalty_", "recoding_", "prequential_error_"):
        with pytest.raises((NotFittedError, AttributeError)):
            getattr(model, name)
    for call in (lambda: model.forget(0), lambda: model.rename(0, 1)):
        with pytest.raises(NotFittedError):
            call()
    assert IncrementalClassifier().learn_one(PROBE[0], "a").predict_one(PROBE[1]) == "a"


def test_memory_that_is_not_there_is_asked_for_in_words():
    with pytest.raises(MemoryBudgetError, match="fewer features"):
        IncrementalClassifier().fit(np.ones((2, 200_000)), [0, 1])


PARAMETERS = {
    "penalty": [
        0,
        -1.0,
        np.nan,
        np.inf,
        "small",
        None,
        [],
        [1.0, 1.0],
        [[1.0]],
        True,
        [1, "a"],
    ],
    "recoding": [-0.1, 1.1, "much", None, np.nan, [0.5]],
    "holdout": [1, 0, -6, 2.5, "six", True],
    "holdout_size": [0, -1, 1.5, None, "all"],
    "unknown_below": [-0.1, 1.1, "half", None, np.nan],
    "forgetting": [0, 1.1, -1, np.nan, "some", None, True],
    "forgetting_kind": ["linear", None, 3],
    "intercept": ["yes", 1, None],
    "drift": ["stop", 3, True],
    "dtype": ["int64", "float16", "nonsense"],
    "random_state": [None, "seed", 1.5, np.random.RandomState(0), True],
    "features": ["gaussian", 3],
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_that_make_no_sense_are_refused_by_name(rows, name):
    X, y = rows
    for value in PARAMETERS[name]:
        model = IncrementalClassifier(**{name: value})
        with pytest.raises((ValueError, TypeError), match=name):
            model.fit(X, y)
        assert not hasattr(model, "n_seen_")


def test_choices_need_examples_that_are_held_out(rows):
    for parameters, words in (
        ({"recoding": 0.5}, "penalty='auto' leaves a choice"),
        ({"recoding": 0.5, "penalty": [1.0, 2.0]}, "leaves a choice"),
        ({"penalty": 1.0}, "recoding='auto' leaves a choice"),
        ({"penalty": 1.0, "recoding": 0.5, "unknown_below": 0.5}, "needs a confidence"),
    ):
        with pytest.raises(ValueError, match=words):
            IncrementalClassifier(holdout=None, **parameters).fit(*rows)
    assert plain(penalty=[2.0]).fit(*rows).penalty_ == 2.0


# Unusual, and right.


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1.0, 1e8, 1e100])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_of_any_scale_are_learned_with_the_penalty_that_goes_by_it(rows, scale, intercept):
    X, y = rows
    model = IncrementalClassifier(intercept=intercept).fit(scale * X, y)
    held = {row.tobytes() for row in model._reservoir.rows[:, int(intercept) :]}
    learned = [i for i, row in enumerate(scale * X) if row.tobytes() not in held]
    # The same problem in units in which nothing is large.
    Z = np.column_stack([np.ones(len(X)), X])[learned, int(not intercept) :]
    units = np.array([1.0] * intercept + [scale] * 3)
    A = Z.T @ Z + np.diag(model.penalty_ / units / units)
    W = np.linalg.solve(A, Z.T @ np.eye(3)[y[learned]]).T
    found = weights_of(model)[:, int(not intercept) :] * units
    assert difference(found, W) < 1e-8
    assert model.score(scale * X, y) > 0.9


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_tiny_penalty_is_no_harm(rows, dtype):
    X, y = rows
    model = plain(penalty=1e-15, dtype=dtype).fit(X, y)
    W, _ = batch(X, y, model.classes_, 1e-15)
    assert difference(weights_of(model), W) < (1e-8 if dtype == "float64" else 1e-2)


def test_rows_that_tell_little_are_learned(rows):
    X, y = rows
    for name, Z in {
        "one row": X[:1],
        "one row many times": np.repeat(X[:1], 200, axis=0),
        "constant columns": np.column_stack([np.ones(200), np.full(200, 3.0), X[:, 0]]),
        "zeros": np.zeros_like(X),
        "two columns alike": np.column_stack([X, X]),
        "more columns than rows": np.random.default_rng(0).normal(size=(200, 300)),
    }.items():
        labels = y[: len(Z)]
        model = plain(recoding=0.5).fit(Z, labels)
        W, _ = batch(Z, labels, model.classes_, 1.0)
        assert difference(weights_of(model), W) < 1e-8, name
        auto = IncrementalClassifier().fit(Z, labels)
        assert np.isfinite(auto.predict_proba(Z)).all(), name
