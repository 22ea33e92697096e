"""A learner in a folder is the learner in memory, to the last bit, whatever happens to it."""

import contextlib
import copy
import errno
import io
import itertools
import os
import shutil
import signal
import tempfile
import threading
import traceback
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

import imparo
from imparo import IncrementalClassifier, RandomFeatures, RecursiveRegressor, lifelong
from imparo import persistence as files_of_models
from imparo.errors import FileFormatError, RecoveryWarning
from imparo.features import NystromMap
from imparo.journal import Journal, encode
from imparo.kernels import Gaussian
from imparo.lifelong import durable
from imparo.lifelong.recursion import Recursion
from test_durable_kills import LEARNERS, bits, change

CENTERS = np.random.default_rng(1).normal(size=(15, 4))
MAP = NystromMap(Gaussian(2.0), CENTERS)
WAVES = RandomFeatures(sigma=2.0, n_features=20, random_state=0)
MAKERS = {
    "classifier": lambda: IncrementalClassifier(drift="forget", holdout=3, holdout_size=20),
    "naive": lambda: IncrementalClassifier(penalty=1.0, recoding=0.0, holdout=None),
    "fading": lambda: IncrementalClassifier(MAP, forgetting=0.99, unknown_below=0.3),
    "directional": lambda: IncrementalClassifier(
        WAVES, penalty=[0.1, 1.0], forgetting=0.95, forgetting_kind="directional", drift=None
    ),
    "regressor": lambda: RecursiveRegressor(penalty=[1e-3, 0.1, 10.0], drift="forget"),
    "float32": lambda: RecursiveRegressor(dtype="float32", intercept=False),
    "waves": lambda: RecursiveRegressor(WAVES),
    "drawn": lambda: RecursiveRegressor(copy.deepcopy(WAVES).fit(CENTERS).map_, penalty=0.1),
    "nystrom": lambda: RecursiveRegressor(MAP, penalty=[0.01, 1.0], forgetting=0.98),
}
CLASSIFIERS = [name for name in MAKERS if isinstance(MAKERS[name](), IncrementalClassifier)]


def opened(path, learner=None, **options):
    return lifelong.open(path, learner, **{"sync": "never", **options})


def reopened_bits(path):
    with opened(path) as robot:
        return bits(robot)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def records(folder):
    return sorted(folder.glob("records-*"))


def blocks(name, n=420, seed=0):
    """Blocks of one to forty rows whose outputs mean something else in the second half."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    s = X[:, 0] + 0.5 * X[:, 1] ** 2
    if name in CLASSIFIERS:
        y = np.digitize(s, [-0.5, 0.5, 1.5])
        y[n // 2 :] = 3 - y[n // 2 :]
        y = np.array(["mug", "ball", "pen", "rare"])[y]
    else:
        y = np.where(np.arange(n) < n // 2, s, 5 - 3 * s) + 0.1 * rng.normal(size=n)
    start = 0
    while start < n:
        stop = start + int(rng.choice([1, 1, 3, 17, 40]))
        yield X[start:stop], y[start:stop]
        start = stop


@pytest.fixture
def small_snapshots(monkeypatch):
    """Snapshots are written, by their thread, every few changes."""
    monkeypatch.setattr(durable, "_LEAST_RECORDS", 500)


@pytest.fixture
def data(rng):
    X = rng.normal(size=(60, 4))
    return X, rng.integers(0, 3, 60)


# The same model


@pytest.mark.parametrize("name", MAKERS)
def test_a_reopened_learner_is_the_same_to_the_last_bit_and_learns_on(tmp_path, name):
    make, asked = MAKERS[name], CENTERS[:3]
    reference, robot, replayed = make(), opened(tmp_path, make()), 0
    for i, (X, y) in enumerate(blocks(name), start=1):
        assert robot.learn(X, y) == robot.number == i
        reference.partial_fit(X, y)
        if i % 3 == 1:
            robot.novelty(X)
            robot.predict(X)
        if i % 9 == 6:
            robot.snapshot()
        if i % 4 == 0:
            robot.close()
            robot = opened(tmp_path, *([make()] if i % 8 else []))
            assert robot.number == i
            assert robot.cut is None
            replayed += robot.n_replayed
        assert bits(robot) == bits(reference)
        np.testing.assert_array_equal(robot.predict(asked), reference.predict(asked))
    robot.close()
    assert replayed > 10
    if make().drift is not None and name not in ("naive", "fading"):
        assert reference.drifts_  # or nothing was tested of drifts
    assert robot.n_seen_ == 420
    assert reopened_bits(tmp_path) == bits(reference)


@pytest.mark.parametrize("sync", ["always", "never", 0.001, 100])
def test_every_policy_keeps_all_changes(tmp_path, small_snapshots, sync):
    reference = LEARNERS["classifier"]()
    with opened(tmp_path, reference, sync=sync) as robot:
        for number in range(1, 40):
            change(robot, number)
            change(reference, number)
        assert robot.number == 39
    assert reopened_bits(tmp_path) == bits(reference)
    assert Journal(tmp_path, writable=False).snapshot_number > 0


def test_predictions_between_changes_leave_no_trace(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 5))
    make = MAKERS["naive"]
    reference = make()
    with opened(tmp_path, make()) as robot:
        for i in range(30):  # classes appear while rows wait to enter the weights
            robot.learn(X[i], i // 3)
            reference.partial_fit(X[i : i + 1], [i // 3])
            for ask in (robot.predict, robot.decision_function, robot.novelty):
                ask(X)
            assert robot.coef_.shape == (i // 3 + 1, 5)
        asked = robot.decision_function(X)
    np.testing.assert_array_equal(asked, reference.decision_function(X))
    with opened(tmp_path) as robot:
        np.testing.assert_array_equal(robot.decision_function(X), asked)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RecursiveRegressor(RandomFeatures(sigma=2.0, n_features=20), penalty=1.0),
        lambda: imparo.SGMRegressor(),
    ],
)
def test_what_is_drawn_without_a_seed_is_drawn_once_or_refused(tmp_path, data, make):
    try:
        robot = opened(tmp_path / "robot", make())
    except ValueError as refused:
        sentence = str(refused)
    else:
        with robot:
            robot.learn(*data)
            before = bits(robot)
        assert reopened_bits(tmp_path / "robot") == before
        return
    assert "random_state" in sentence
    assert not (tmp_path / "robot").exists()


def test_other_estimators_that_learn_on_can_be_kept(tmp_path, data):
    X, y = data
    reference = imparo.SGMClassifier(random_state=0)
    with opened(tmp_path, reference) as robot:
        for rows in (slice(0, 30), slice(30, 60)):
            robot.learn(X[rows], y[rows], classes=[0, 1, 2])
            reference.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
            assert bits(robot) == bits(reference)
    assert reopened_bits(tmp_path) == bits(reference)


# What can be learned from


def as_frame(X):
    return pd.DataFrame(X, columns=list("abcd"))


FORMS = {
    "arrays": lambda X, y: (X, y),
    "lists": lambda X, y: (X.tolist(), y.tolist()),
    "tuples": lambda X, y: (tuple(map(tuple, X)), tuple(y.tolist())),
    "float32": lambda X, y: (X.astype(np.float32), y),
    "float16": lambda X, y: (X.astype(np.float16), y),
    "long": lambda X, y: (X.astype(np.longdouble), y),
    "integers": lambda X, y: ((100 * X).astype(int), y.astype(np.int8)),
    "booleans": lambda X, y: (X > 0, y),
    "objects": lambda X, y: (X.astype(object), y.astype(object)),
    "columns": lambda X, y: (np.asfortranarray(X), y),
    "strides": lambda X, y: (np.repeat(X, 2, axis=1)[:, ::2], np.repeat(y, 2)[::2]),
    "backwards": lambda X, y: (X[::-1], y[::-1]),
    "big-endian": lambda X, y: (X.astype(">f8"), y.astype(">i8")),
    "csr": lambda X, y: (sparse.csr_array(X * (X > 0)), y),
    "csc": lambda X, y: (sparse.csc_matrix(X * (X > 0)), y),
    "pandas": lambda X, y: (as_frame(X), pd.Series(y, index=np.arange(len(y)) + 7)),
    "pandas mixed": lambda X, y: (
        as_frame(X).astype({"a": "float32", "b": "Float64"}).assign(c=X[:, 2] > 0), y
    ),
    "pandas numbered": lambda X, y: (pd.DataFrame(X), y),
    "polars": lambda X, y: (pl.DataFrame(X, schema=list("abcd")), pl.Series(y)),
    "polars mixed": lambda X, y: (
        pl.DataFrame(X, schema=list("abcd")).cast({"a": pl.Float32, "b": pl.Int64}), y
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_rows_of_any_form_are_kept(tmp_path, data, form, name):
    reference = MAKERS[name]()
    robot = opened(tmp_path, reference)
    for rows in (slice(0, 1), slice(1, 30), slice(30, 60)):
        X, y = FORMS[form](data[0][rows], data[1][rows])
        robot.learn(X, y)
        reference.partial_fit(X, y)
        assert bits(robot) == bits(reference)
        robot.close()
        robot = opened(tmp_path)
        assert bits(robot) == bits(reference)
        np.testing.assert_array_equal(robot.predict(X), reference.predict(X))
    named = form in ("pandas", "pandas mixed", "polars", "polars mixed")
    assert hasattr(robot, "feature_names_in_") == named
    if named:
        assert robot.feature_names_in_.tolist() == list("abcd")
    robot.close()


@pytest.mark.parametrize("form", ["pandas", "polars"])
def test_names_of_columns_survive_and_are_checked(tmp_path, data, form):
    X, y = FORMS[form](*data)
    with opened(tmp_path, MAKERS["classifier"]()) as robot:
        robot.learn(X, y)
    for _ in range(2):  # replayed, then from a snapshot
        with opened(tmp_path) as robot:
            before, number = bits(robot), robot.number
            for use in (robot.learn, lambda X, y: robot.predict(X)):
                with pytest.raises(ValueError, match="feature names should match"):
                    use(X[list("dcba")], y)
            assert (bits(robot), robot.number) == (before, number)
            robot.learn(X, y)
            robot.snapshot()


@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_single_rows_are_kept(tmp_path, data, name):
    X, y = data
    reference = MAKERS[name]()
    with opened(tmp_path, reference) as robot:
        for i, form in enumerate([np.asarray, list, tuple, np.float32, pd.Series] * 5):
            reference.partial_fit(np.asarray(form(X[i]))[None], y[i : i + 1])
            assert robot.learn(form(X[i]), y[i]) == robot.number
        for i in range(25, 50):
            reference.learn_one(X[i], y[i])
            assert robot.learn_one(X[i].tolist(), y[i]) is robot
        assert robot.partial_fit(X[50:], y[50:]) is robot
        assert bits(robot) == bits(reference.partial_fit(X[50:], y[50:]))
        assert robot.number == 51
    assert reopened_bits(tmp_path) == bits(reference)


@pytest.mark.parametrize("name", ["classifier", "regressor"])
@pytest.mark.parametrize("first", ["dictionary", "vector"])
def test_dictionaries_are_kept_with_the_order_of_their_names(tmp_path, name, first):
    reference = MAKERS[name]()
    with opened(tmp_path, reference) as robot:
        for learner in (robot, reference):
            if first == "vector":
                learner.learn_one([1.0, 2.0, 3.0], 1)
            learner.learn_one({"b": 1.0, "a": 2.0, 3: -1.0}, 0)
            learner.learn_one({"3": 1.0, "a": 0.5, "b": 4.0}, 1)
        assert bits(robot) == bits(reference)
    with opened(tmp_path) as robot:
        assert bits(robot) == bits(reference)
        if first == "dictionary":
            for learner in (robot, reference):
                learner.learn_one({"a": 2.0}, 0)
            with pytest.raises(ValueError, match="'new' is not among the columns b, a, 3"):
                robot.learn_one({"new": 1.0}, 0)
        row = {"b": 1.0, "a": 2.0, "3": 0.0}
        assert robot.predict_one(row) == reference.predict_one(row)
        assert bits(robot) == bits(reference)
    assert reopened_bits(tmp_path) == bits(reference)


@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_weights_and_several_outputs_are_kept(tmp_path, data, name):
    X, y = data
    weight = np.arange(60) % 4 / 2
    if name == "regressor":
        y = np.column_stack([y, -y])
    reference = MAKERS[name]()
    with opened(tmp_path, reference) as robot:
        for learner in (robot, reference):
            learner.partial_fit(X[:20], y[:20], sample_weight=weight[:20])
            learner.partial_fit(X[20:40], y[20:40], sample_weight=weight[20:40].tolist())
            learner.partial_fit(X[40:41], y[40:41], sample_weight=3)
            learner.partial_fit(X[41:42], y[41:42], sample_weight=[0.0])
        robot.learn(X[42:], y[42:], pd.Series(weight[42:]))
        robot.learn(X[0], y[0], sample_weight=0.25)
        reference.partial_fit(X[42:], y[42:], sample_weight=weight[42:])
        reference.partial_fit(X[:1], y[:1], sample_weight=[0.25])
        assert bits(robot) == bits(reference)
    assert reopened_bits(tmp_path) == bits(reference)


LABELS = [
    "mug", "", "naïve ☕", 3, -1, 2**70, True, 2.0, ("cup", 1), ("cup", (2, None)),
    np.str_("text"), np.int8(7), np.float64(5),
]  # fmt: skip


def test_labels_of_any_kind_are_kept(tmp_path, data):
    X, _ = data
    reference = MAKERS["classifier"]()
    with opened(tmp_path, reference) as robot:
        for i, label in enumerate(LABELS * 2):
            robot.learn(X[i], label)
            reference.partial_fit(X[i : i + 1], [label])
        robot.learn(X[:2], ["mug", ("cup", 1)], classes=["known", 99, ("cup", 3)])
        reference.partial_fit(X[:2], ["mug", ("cup", 1)], classes=["known", 99, ("cup", 3)])
        assert bits(robot) == bits(reference)
    with opened(tmp_path) as robot:
        assert bits(robot) == bits(reference)
        assert {type(label) for label in robot.classes_} == {str, int, bool, float, tuple}
        assert robot.predict_one(X[0]) == reference.predict_one(X[0])
        robot.snapshot()
    assert reopened_bits(tmp_path) == bits(reference)


# Classes that go, change and come from elsewhere


def test_forgotten_renamed_and_joined_classes_stay_so(tmp_path, data):
    X, y = data
    reference = MAKERS["classifier"]()
    with opened(tmp_path, reference) as robot:
        for learner in (robot, reference):
            learner.partial_fit(X, y, classes=[7, "x"])
            learner.forget(np.int64(1))
            learner.rename(2, "two")
            learner.rename(np.str_("two"), 0)
            learner.partial_fit(X[:7], y[:7])
            learner.forget("x")
        assert robot.number == 6
        assert bits(robot) == bits(reference)
        assert robot.classes_.tolist() == [0, 1, 2, 7]
    assert reopened_bits(tmp_path) == bits(reference)


@pytest.mark.parametrize("name", ["classifier", "naive", "regressor", "nystrom"])
@pytest.mark.parametrize("kind", ["plain", "durable", "reader", "closed"])
def test_what_was_merged_stays_merged(tmp_path, name, kind):
    first, second, third = list(blocks(name))[:9][::4]
    reference, other = MAKERS[name](), MAKERS[name]()
    if "penalty" in vars(reference) and isinstance(reference.penalty, str):
        reference.penalty = other.penalty = [0.1, 1.0, 10.0]
    with opened(tmp_path / "it", other) as its:
        its.learn(*second)
    other.partial_fit(*second)
    given = other if kind == "plain" else its
    if kind in ("durable", "reader"):
        given = opened(tmp_path / "it", writable=kind == "durable")
    before = bits(given)
    with opened(tmp_path / "own", reference) as robot:
        robot.learn(*first)
        assert robot.merge(given) == robot.number == 2
        reference.partial_fit(*first).merge(other)
        assert bits(robot) == bits(reference)
        assert bits(given) == before
        # The other goes on alone.
        if kind in ("plain", "durable"):
            given.partial_fit(*third)
            assert bits(robot) == bits(reference)
        robot.learn(*third)
        reference.partial_fit(*third)
    assert reopened_bits(tmp_path / "own") == bits(reference)
    if kind != "plain":
        given.close()


def test_merges_that_cannot_be_are_refused(tmp_path, data):
    X, y = data
    with opened(tmp_path / "own", MAKERS["naive"]()) as robot:
        with pytest.raises(NotFittedError):
            robot.merge(MAKERS["naive"]().fit(X, y))
        robot.learn(X, y)
        before, kept = bits(robot), files(tmp_path / "own")
        reader = opened(tmp_path / "own", writable=False)
        for other, message in [
            (robot, "cannot be merged with itself"),
            (MAKERS["naive"](), "must have learned something"),
            (MAKERS["naive"]().fit(X[:, :2], y), "2 columns and this one 4"),
            (MAKERS["naive"]().set_params(penalty=2.0).fit(X, y), r"penalty=\[2.0\]"),
            (MAKERS["regressor"]().fit(X, y), "only another IncrementalClassifier"),
            (None, "NoneType"),
            ("other", "str"),
        ]:
            with pytest.raises((ValueError, TypeError), match=message):
                robot.merge(other)
        assert (bits(robot), files(tmp_path / "own")) == (before, kept)
        with pytest.raises(io.UnsupportedOperation, match="writable=False"):
            reader.merge(MAKERS["naive"]().fit(X, y))
        assert bits(reader) == before


def test_two_learners_may_merge_each_other_at_once(tmp_path, data):
    X, y = data
    with (
        opened(tmp_path / "a", MAKERS["naive"]()) as a,
        opened(tmp_path / "b", MAKERS["naive"]()) as b,
    ):
        a.learn(X[:20], y[:20])
        b.learn(X[20:], y[20:])
        in_threads(lambda: a.merge(b), lambda: b.merge(a))
        assert a.n_seen_ + b.n_seen_ in (60 + 60, 60 + 80, 60 + 100)  # who is first?


@pytest.mark.parametrize("name", ["naive", "regressor"])
def test_a_merge_that_fails_in_the_middle_changes_nothing(tmp_path, monkeypatch, name):
    first, second, third = list(blocks(name))[:9][::4]
    reference, merge, calls = MAKERS[name](), Recursion.merge, []

    def failing(self, other, outputs):
        result = merge(self, other, outputs)
        calls.append(1)
        raise np.linalg.LinAlgError("not positive definite")
        return result

    with opened(tmp_path, reference) as robot:
        robot.learn(*first)
        reference.partial_fit(*first)
        with monkeypatch.context() as patch:
            patch.setattr(Recursion, "merge", failing)
            with pytest.raises(np.linalg.LinAlgError):
                robot.merge(MAKERS[name]().fit(*second))
        assert calls
        assert bits(robot) == bits(reference)
        robot.learn(*third)
        assert bits(robot) == bits(reference.partial_fit(*third))
        assert robot.number == 2
    assert reopened_bits(tmp_path) == bits(reference)


# Bad input


BAD = {
    "nan": lambda r, X, y: r.learn([[np.nan] * 4], [0]),
    "infinite": lambda r, X, y: r.learn([1.0, 2.0, np.inf, 0.0], 0),
    "huge": lambda r, X, y: r.learn(X * 1e200, y),
    "narrow": lambda r, X, y: r.learn(X[:, :3], y),
    "empty": lambda r, X, y: r.learn(X[:0], y[:0]),
    "short": lambda r, X, y: r.learn(X, y[:-1]),
    "text": lambda r, X, y: r.learn([["a", "b", "c", "d"]], [0]),
    "number": lambda r, X, y: r.learn(3.0, 0),
    "cube": lambda r, X, y: r.learn(X[None], y),
    "ragged": lambda r, X, y: r.learn([[1.0], [1.0, 2.0]], [0, 1]),
    "complex": lambda r, X, y: r.learn(X * 1j, y),
    "none": lambda r, X, y: r.learn(None, y),
    "dictionary": lambda r, X, y: r.learn({"a": 1.0}, 0),
    "no label": lambda r, X, y: r.learn(X, None),
    "label none": lambda r, X, y: r.learn(X[0], None),
    "label nan": lambda r, X, y: r.learn(X[0], np.nan),
    "label infinite": lambda r, X, y: r.learn(X[:2], [0, np.inf]),
    "label matrix": lambda r, X, y: r.learn(X, np.column_stack([y, y])),
    "label complex": lambda r, X, y: r.learn(X[:2], np.array([1j, 2j])),
    "short weight": lambda r, X, y: r.learn(X, y, sample_weight=[1.0]),
    "negative weight": lambda r, X, y: r.learn(X, y, sample_weight=-np.ones(60)),
    "nan weight": lambda r, X, y: r.learn(X, y, sample_weight=np.full(60, np.nan)),
    "text weight": lambda r, X, y: r.learn(X, y, sample_weight=["heavy"] * 60),
    "one narrow": lambda r, X, y: r.learn_one([1.0], 0),
    "one matrix": lambda r, X, y: r.learn_one(X, 0),
    "one nan": lambda r, X, y: r.learn_one([np.nan] * 4, 0),
    "one none": lambda r, X, y: r.learn_one(X[0], None),
    "frame with text": lambda r, X, y: r.learn(as_frame(X).assign(a="text"), y),
    "frame with gaps": lambda r, X, y: r.learn(as_frame(X).assign(a=None), y),
    "frame with NA": lambda r, X, y: r.learn(
        as_frame(X).assign(a=pd.array([pd.NA] * 60, "Int64")), y
    ),
    "polars with gaps": lambda r, X, y: r.learn(pl.DataFrame({"a": [1, None]}), [0, 1]),
}  # fmt: skip
BAD_LABELS = {
    "unhashable": lambda r, X, y: r.learn(X[0], [1, 2]),
    "bytes": lambda r, X, y: r.learn(X[0], b"mug"),
    "object": lambda r, X, y: r.learn(X[:2], [object(), 1]),
    "fraction": lambda r, X, y: r.learn(X[0], 0.5),
    "classes": lambda r, X, y: r.learn(X, y, classes=[None]),
    "forget unknown": lambda r, X, y: r.forget("unknown"),
    "rename unknown": lambda r, X, y: r.rename("unknown", 1),
    "rename to none": lambda r, X, y: r.rename(0, None),
    "rename to object": lambda r, X, y: r.rename(0, object()),
}
BAD_OUTPUTS = {
    "text outputs": lambda r, X, y: r.learn(X[:2], ["1", "2"]),
    "text output": lambda r, X, y: r.learn_one(X[0], "1"),
    "huge outputs": lambda r, X, y: r.learn(X, y * 1e200),
    "classes": lambda r, X, y: r.learn(X, y, classes=[1]),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_bad_input_writes_nothing_and_changes_nothing(tmp_path, data, name, fresh):
    X, y = data
    bad = {**BAD, **(BAD_LABELS if name == "classifier" else BAD_OUTPUTS)}
    if fresh:
        bad.pop("narrow"), bad.pop("one narrow"), bad.pop("label matrix")
    if name == "regressor":
        bad.pop("label matrix", None)
        bad["outputs matrix"] = BAD["label matrix"]
        if fresh:
            bad.pop("outputs matrix")
    with opened(tmp_path, MAKERS[name]()) as robot:
        if not fresh:
            robot.learn(X, y)
        before, kept, number = bits(robot), files(tmp_path), robot.number
        for kind, act in bad.items():
            with pytest.raises((ValueError, TypeError, AttributeError)) as caught:
                pytest.fail(f"{kind}: learned as {act(robot, X, y)}")
            assert str(caught.value), kind
            assert (
                caught.value.__context__ is None
                or caught.value.__suppress_context__
                or (not isinstance(caught.value.__context__, OSError))
            ), kind
            assert bits(robot) == before, kind
            assert files(tmp_path) == kept, kind
            assert robot.number == number
        robot.learn(X, y)
        after = bits(robot)
    assert reopened_bits(tmp_path) == after


def test_what_the_caller_holds_is_not_shared(tmp_path, data):
    X, y = (part.copy() for part in data)
    weight, features = np.ones(60), NystromMap(Gaussian(2.0), CENTERS.copy())
    given = IncrementalClassifier(features, penalty=[0.1, 1.0])
    fresh = bits(given)
    reference = copy.deepcopy(given).partial_fit(X, y, sample_weight=weight)
    with opened(tmp_path, given) as robot:
        robot.learn(X, y, weight)
        assert bits(given) == fresh
        other = copy.deepcopy(reference)
        robot.merge(other)
        reference.merge(other)
        given.partial_fit(X[:9], y[:9])
        features.centers[:], X[:], y[:], weight[:] = 9, 9, 9, 9
        for recursion in other._recursions:
            recursion.root[:] = 9
        assert bits(robot) == bits(reference)
        robot.learn(data[0][:5], data[1][:5])
        assert bits(robot) == bits(reference.partial_fit(data[0][:5], data[1][:5]))
    assert reopened_bits(tmp_path) == bits(reference)


# Opening


def test_opening_says_what_is_wrong_and_changes_nothing(tmp_path, data):
    for options in ({}, {"learner": MAKERS["naive"](), "writable": False}):
        with pytest.raises(FileNotFoundError, match="there is no learner in"):
            opened(tmp_path / "none", **options)
    for learner, message in [
        (imparo.KernelRegressor(), "cannot learn on"),
        (3, "cannot learn on"),
        (IncrementalClassifier(features=len), "cannot be saved without pickle"),
        (IncrementalClassifier, "cannot be saved without pickle"),
    ]:
        with pytest.raises(TypeError, match=message):
            opened(tmp_path / "none", learner)
    with pytest.raises(ValueError, match="sync must be"):
        opened(tmp_path / "none", MAKERS["naive"](), sync="sometimes")
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").write_text("a file")
    with pytest.raises(FileExistsError):
        opened(tmp_path / "file", MAKERS["naive"]())

    folder = tmp_path / "folder"
    with opened(folder, MAKERS["fading"]()) as robot:
        robot.learn(*data)
        with pytest.raises(TypeError, match="cannot be saved without pickle"):
            opened(tmp_path / "none", robot)
    kept = files(folder)
    for learner, message in [
        (RecursiveRegressor(), "holds a IncrementalClassifier, not a RecursiveRegressor"),
        (MAKERS["fading"]().set_params(forgetting=0.9), "has forgetting=0.99, not 0.9"),
        (MAKERS["fading"]().set_params(features=None), "has features=.*, not None"),
        (
            MAKERS["fading"]().set_params(features=NystromMap(Gaussian(2.0), CENTERS + 1)),
            "has features=",
        ),
    ]:
        for _ in range(2):  # the lock is given back
            with pytest.raises(ValueError, match=message):
                opened(folder, learner)
    assert files(folder) == kept
    with opened(folder, MAKERS["fading"]()) as robot:
        assert robot.number == 1


def test_a_learner_that_knows_something_may_be_given(tmp_path, data):
    X, y = data
    given = MAKERS["classifier"]().fit(as_frame(X), y)
    with opened(tmp_path, given) as robot:
        assert robot.number == robot.n_replayed == 0
        assert bits(robot) == bits(given)
        robot.learn(as_frame(X[:5]), y[:5])
    assert reopened_bits(tmp_path) == bits(given.partial_fit(as_frame(X[:5]), y[:5]))


def test_records_that_belong_to_no_learner_are_not_taken(tmp_path, data):
    with Journal(tmp_path) as journal:
        journal.append(b"something else")
    kept = files(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no learner"):
        opened(tmp_path)
    with pytest.raises(FileFormatError, match="no learner that they belong to"):
        opened(tmp_path, MAKERS["naive"]())
    assert files(tmp_path) == kept


def test_records_of_a_newer_imparo_are_refused_and_kept(tmp_path, data):
    with opened(tmp_path, MAKERS["naive"]()) as robot:
        robot.learn(*data)
    with Journal(tmp_path) as journal:
        journal.append(encode({"op": "dream"}))
    kept = files(tmp_path)
    for writable in (True, False):
        with pytest.raises(FileFormatError, match="'dream'"):
            opened(tmp_path, writable=writable)
    assert files(tmp_path) == kept


def test_damage_is_told_from_a_torn_end(tmp_path, data):
    with opened(tmp_path, MAKERS["naive"]()) as robot:
        for _ in range(3):
            robot.learn(*data)
    (path,) = records(tmp_path)
    (snapshot,) = tmp_path.glob("snapshot-*")
    for damaged, place in ((path, path.stat().st_size // 2), (snapshot, 50)):
        content = damaged.read_bytes()
        flipped = bytearray(content)
        flipped[place] ^= 1
        damaged.write_bytes(flipped)
        kept = files(tmp_path)
        for learner in (None, MAKERS["naive"]()):
            with pytest.raises(FileFormatError):
                opened(tmp_path, learner)
        assert files(tmp_path) == kept
        damaged.write_bytes(content)
    with opened(tmp_path) as robot:
        assert robot.n_seen_ == 180


def test_a_torn_last_record_is_cut_off_and_reported(tmp_path, data):
    X, y = data
    reference = MAKERS["classifier"]().fit(X, y)
    with opened(tmp_path / "whole", MAKERS["classifier"]()) as robot:
        robot.learn(X, y)
        (path,) = records(tmp_path / "whole")
        whole = path.stat().st_size
        robot.learn(X[:3], y[:3])
        content = path.read_bytes()
    for size in [whole + 1, whole + 23, whole + 24, whole + 100, len(content) - 1]:
        folder = tmp_path / str(size)
        shutil.copytree(tmp_path / "whole", folder)
        os.truncate(records(folder)[0], size)
        kept = files(folder)
        # To a reader it may be a write that is going on: no reason to warn.
        with opened(folder, writable=False) as reader:
            assert reader.cut.bytes == size - whole
            assert (reader.number, bits(reader)) == (1, bits(reference))
        assert files(folder) == kept
        with pytest.warns(RecoveryWarning, match=f"{size - whole} bytes of an unfinished"):
            robot = opened(folder)
        with robot:
            assert robot.cut.bytes == size - whole
            assert (robot.number, bits(robot)) == (1, bits(reference))
            assert robot.learn(X[:3], y[:3]) == 2
        with opened(folder) as robot:
            assert robot.cut is None
            assert bits(robot) == bits(copy.deepcopy(reference).partial_fit(X[:3], y[:3]))


def test_an_empty_learner_that_was_not_finished_is_begun_again(tmp_path, data):
    with opened(tmp_path, MAKERS["naive"]()):
        pass
    (snapshot,) = tmp_path.glob("snapshot-*")
    snapshot.rename(tmp_path / "unfinished-0123456789abcdef")
    with pytest.raises(FileNotFoundError, match="there is no learner"):
        opened(tmp_path)
    with opened(tmp_path, MAKERS["naive"]()) as robot:
        robot.learn(*data)
        assert not list(tmp_path.glob("unfinished*"))


# One writer, many readers


def in_threads(*functions):
    """Run functions at once; raise what they raise; fail if one of them hangs."""
    errors = []

    def run(function):
        try:
            function()
        except BaseException:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=run, args=(f,), daemon=True) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    assert not errors, "\n".join(errors)


def in_a_fork(function, seconds=20):
    """Return the text that a function returns or raises in a fork; it dies if it hangs."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            os.close(read)
            try:
                text = str(function())
            except BaseException:
                text = traceback.format_exc()
            os.write(write, text.encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0, f"the fork hangs: {text}"
    return text


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@forks
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_second_writer_is_refused_with_the_name_of_the_process(tmp_path, data):
    with opened(tmp_path, MAKERS["naive"]()) as robot:
        robot.learn(*data)
        with pytest.raises(BlockingIOError, match=rf"this process \({os.getpid()}\)"):
            opened(tmp_path)
        told = in_a_fork(lambda: opened(tmp_path))
        assert "BlockingIOError" in told
        assert f"another process ({os.getpid()})" in told
        assert in_a_fork(lambda: opened(tmp_path, writable=False).n_seen_) == "60"
        robot.learn(*data)
    assert in_a_fork(lambda: opened(tmp_path).n_seen_) == "120"


@forks
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_predicts_and_writes_nothing(tmp_path, data, monkeypatch):
    X, y = data
    with opened(tmp_path, MAKERS["naive"]()) as robot:
        robot.learn(X, y)
        before, kept = bits(robot), files(tmp_path)
        answer = robot.decision_function(X[:2])

        def fork():
            np.testing.assert_array_equal(robot.decision_function(X[:2]), answer)
            for use in (
                lambda: robot.learn(X, y), lambda: robot.forget(0), robot.snapshot,
                lambda: robot.merge(MAKERS["naive"]().fit(X, y)), lambda: robot.rename(0, 1),
            ):  # fmt: skip
                with pytest.raises(RuntimeError, match="is a fork; open it after forking"):
                    use()
            assert bits(robot) == before
            robot.close()
            return "as it should be"

        assert in_a_fork(fork) == "as it should be"
        assert files(tmp_path) == kept
        with pytest.raises(BlockingIOError):
            opened(tmp_path)
        robot.learn(X, y)
        after = bits(robot)
    assert reopened_bits(tmp_path) == after


@forks
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_made_during_a_snapshot_does_not_hang(tmp_path, data, slow_save):
    X, y = data
    robot = opened(tmp_path, MAKERS["naive"]())
    slow_save.hold()
    robot.learn(X, y)
    assert slow_save.begun.wait(10)

    def fork():
        robot.predict(X[:2])
        robot.close()
        return "closed"

    told = in_a_fork(fork, seconds=5)
    slow_save.go_on.set()
    robot.close()
    assert told == "closed"
    with opened(tmp_path) as robot:
        assert robot.n_seen_ == 60


def test_readers_follow_the_writer(tmp_path, small_snapshots):
    reference = LEARNERS["classifier"]()
    with opened(tmp_path, reference) as writer:
        with (
            opened(tmp_path, writable=False) as reader,
            opened(tmp_path, writable=False) as slow,
        ):
            assert bits(reader) == bits(reference)
            for number in range(1, 60):
                change(writer, number)
                change(reference, number)
                assert reader.refresh() == reader.number == number
                assert bits(reader) == bits(reference)
                if number % 17 == 0:
                    assert slow.refresh() == number
                    assert bits(slow) == bits(reference)
                if number % 10 == 0:
                    with opened(tmp_path, LEARNERS["classifier"](), writable=False) as late:
                        assert late.number == number
                        assert bits(late) == bits(reference)
            with pytest.raises(io.UnsupportedOperation, match="readers"):
                writer.refresh()
        assert writer._journal.snapshot_number > 0


def test_a_reader_writes_nothing(tmp_path, data):
    X, y = data
    with opened(tmp_path, MAKERS["naive"]()) as writer:
        writer.learn(X, y)
        with opened(tmp_path, writable=False) as reader:
            writer.learn(X[:5], y[:5])
            writer.snapshot()
            before, kept = bits(reader), files(tmp_path)
            for use in (
                lambda: reader.learn(X, y), lambda: reader.learn_one(X[0], 0), reader.snapshot,
                lambda: reader.forget(0), lambda: reader.rename(0, 5),
                lambda: reader.partial_fit(X, y),
            ):  # fmt: skip
                with pytest.raises(io.UnsupportedOperation, match="writable=False"):
                    use()
                assert (bits(reader), reader.number) == (before, 1)
            assert files(tmp_path) == kept
            assert reader.refresh() == 2
            assert bits(reader) == bits(writer)


def meanwhile(monkeypatch, where, name, act, before):
    """Let ``act`` happen once, just before or after the next call of a function."""
    real, due = getattr(where, name), [True]

    def acting(*args, **kwargs):
        now = due and due.pop()
        if now and before:
            act()
        result = real(*args, **kwargs)
        if now and not before:
            act()
        return result

    monkeypatch.setattr(where, name, acting)


@pytest.mark.parametrize("how", ["open", "refresh"])
@pytest.mark.parametrize(
    ("where", "name", "before"),
    [
        (durable, "load", True),
        (durable, "load", False),
        (files_of_models, "safe_open", True),
        (durable, "decode", True),
    ],
)
def test_a_reader_whose_files_are_replaced_under_its_hands_begins_again(
    tmp_path, monkeypatch, data, how, where, name, before
):
    X, y = data
    with opened(tmp_path, MAKERS["naive"]()) as writer:
        writer.learn(X, y)
        reader = opened(tmp_path, writable=False)
        writer.learn(X[:9], y[:9])
        writer.snapshot()
        writer.learn(X[:8], y[:8])
        writer.learn(X[:7], y[:7])

        def replace():
            writer.learn(X[:6], y[:6])
            writer.snapshot()

        with monkeypatch.context() as patch:
            meanwhile(patch, where, name, replace, before)
            if how == "open":
                reader = opened(tmp_path, writable=False)
            else:
                reader.refresh()
        seen, reference = reader.number, MAKERS["naive"]().fit(X, y)
        assert seen >= 4  # all that there was when it began to look
        for k in (9, 8, 7, 6)[: seen - 1]:
            reference.partial_fit(X[:k], y[:k])
        assert bits(reader) == bits(reference)
        assert reader.refresh() == 5
        assert bits(reader) == bits(writer)


def test_a_reader_whose_records_are_gone_when_it_comes_to_them_is_not_left_behind(
    tmp_path, monkeypatch, data
):
    X, y = data
    with opened(tmp_path, MAKERS["naive"]()) as writer:
        writer.learn(X, y)
        reader = opened(tmp_path, writable=False)
        writer.learn(X[:9], y[:9])
        meanwhile(monkeypatch, Journal, "refresh", writer.snapshot, before=False)
        assert reader.refresh() == 2
        assert bits(reader) == bits(writer)


def test_a_reader_that_was_interrupted_leaves_nothing_out(tmp_path, data, monkeypatch):
    X, y = data
    with opened(tmp_path, MAKERS["naive"]()) as writer:
        reader = opened(tmp_path, writable=False)
        for _ in range(3):
            writer.learn(X[:5], y[:5])

        def interrupt():
            raise KeyboardInterrupt

        for before in (True, False):
            writer.learn(X, y)
            with monkeypatch.context() as patch:
                meanwhile(patch, durable, "apply", interrupt, before)
                with pytest.raises(KeyboardInterrupt):
                    reader.refresh()
            assert reader.refresh() == writer.number
            assert bits(reader) == bits(writer)


def test_readers_beside_a_busy_writer_see_only_what_was(tmp_path, small_snapshots):
    reference, expected = LEARNERS["classifier"](), []
    expected.append(bits(reference))
    for number in range(1, 81):
        change(reference, number)
        expected.append(bits(reference))
    writer, done, seen = opened(tmp_path, LEARNERS["classifier"]()), threading.Event(), set()

    def write():
        try:
            for number in range(1, 81):
                change(writer, number)
        finally:
            done.set()

    def read():
        reader, last = opened(tmp_path, writable=False), False
        while not last:
            last, acknowledged = done.is_set(), writer.number
            if len(seen) % 5 == 4:
                reader = opened(tmp_path, writable=False)
            assert reader.refresh() == reader.number >= acknowledged
            assert bits(reader) == expected[reader.number]
            seen.add(reader.number)

    with writer:
        in_threads(write, read, read)
    assert 80 in seen
    assert len(seen) > 5


# What fails


class Slow:
    """Saving, which the test can hold up."""

    def __init__(self):
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        self.seconds, self.error = 20.0, None

    def hold(self):
        self.go_on.clear()

    def __call__(self, model, path):
        if threading.current_thread() is not threading.main_thread():
            self.begun.set()
            self.go_on.wait(self.seconds)
            if self.error is not None:
                raise self.error
        files_of_models.save(model, path)


@pytest.fixture
def slow_save(monkeypatch, small_snapshots):
    slow = Slow()
    monkeypatch.setattr(durable, "save", slow)
    yield slow
    slow.go_on.set()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_change_that_cannot_be_written_is_not_made(tmp_path, monkeypatch, data, error):
    X, y = data
    reference = MAKERS["classifier"]()
    with opened(tmp_path, reference) as robot:
        robot.learn(X, y)
        robot.learn(X[:5], y[:5])
        reference.partial_fit(X, y).partial_fit(X[:5], y[:5])
        for act in (
            lambda: robot.learn(X, y), lambda: robot.learn_one(X[0], "new"),
            lambda: robot.forget(0), lambda: robot.rename(0, 1),
            lambda: robot.merge(MAKERS["classifier"]().fit(X, y)),
            lambda: robot.learn(X[0], 1, classes=[9]),
        ):  # fmt: skip
            with monkeypatch.context() as patch:

                def fail(payload):
                    raise error

                patch.setattr(robot._journal, "append", fail)
                with pytest.raises(type(error)):
                    act()
            assert bits(robot) == bits(reference)
            assert (robot.number, robot.n_seen_) == (2, 65)
        robot.learn(X[:9], y[:9])
        assert bits(robot) == bits(reference.partial_fit(X[:9], y[:9]))
    assert reopened_bits(tmp_path) == bits(reference)


def test_a_change_that_could_not_be_undone_is_undone_by_the_next(tmp_path, monkeypatch, data):
    X, y = data
    reference = MAKERS["naive"]().fit(X, y)
    with opened(tmp_path, MAKERS["naive"]()) as robot:
        robot.learn(X, y)
        with monkeypatch.context() as patch:

            def fail(*_):
                raise OSError(errno.EIO, "broken disk")

            patch.setattr(os, "write", fail)
            patch.setattr(durable, "load", fail)
            with pytest.raises(OSError, match="broken disk"):
                robot.learn(X, y)
        robot.learn(X[:5], y[:5])
        assert bits(robot) == bits(reference.partial_fit(X[:5], y[:5]))
    assert reopened_bits(tmp_path) == bits(reference)


def test_errors_that_overflow_leave_memory_and_disk_the_same(tmp_path):
    with opened(tmp_path, RecursiveRegressor(penalty=1e-10)) as robot:
        robot.learn(np.full((20, 1), 1e-3), np.full(20, 1e140))
        with contextlib.suppress(ValueError), np.errstate(all="ignore"):
            robot.learn(np.full((20, 1), 1e100), np.zeros(20))
        left = bits(robot)
    with np.errstate(all="ignore"):
        assert reopened_bits(tmp_path) == left


def test_the_first_change_may_fail_too(tmp_path, monkeypatch, data):
    X, y = data
    with opened(tmp_path, MAKERS["classifier"]()) as robot:
        for rows in (X, as_frame(X)):
            with monkeypatch.context() as patch:
                patch.setattr(os, "write", lambda *_: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    robot.learn(rows, y)
            assert bits(robot) == bits(MAKERS["classifier"]())
            with pytest.raises(NotFittedError):
                robot.predict(X)
        robot.learn_one({"a": 1.0}, 0)
    assert reopened_bits(tmp_path) == bits(MAKERS["classifier"]().learn_one({"a": 1.0}, 0))


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), FloatingPointError()])
@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_a_change_that_is_interrupted_is_not_made(
    tmp_path, monkeypatch, data, name, error, after
):
    X, y = data
    reference = MAKERS[name]()
    with opened(tmp_path, reference) as robot:
        robot.learn(X[:50], y[:50])
        reference.partial_fit(X[:50], y[:50])
        learn, calls = Recursion.learn, []

        def failing(self, *args):
            calls.append(1)
            if len(calls) == 2 and not after:
                raise error
            result = learn(self, *args)
            if len(calls) == 2:
                raise error
            return result

        with monkeypatch.context() as patch:
            patch.setattr(Recursion, "learn", failing)
            with pytest.raises(type(error)):
                robot.learn(X[50:], [7] * 10)
        assert bits(robot) == bits(reference)
        robot.learn(X[50:], y[50:])
        assert bits(robot) == bits(reference.partial_fit(X[50:], y[50:]))
    assert reopened_bits(tmp_path) == bits(reference)


def test_a_failing_write_during_a_snapshot_loses_nothing(
    tmp_path, monkeypatch, data, slow_save
):
    X, y = data
    reference = MAKERS["naive"]()
    with opened(tmp_path, reference) as robot:
        slow_save.hold()
        slow_save.seconds = 0.5  # it may be waited for
        robot.learn(X, y)  # after which the snapshot is begun
        assert slow_save.begun.wait(10)
        robot.learn(X[:7], y[:7])
        reference.partial_fit(X, y).partial_fit(X[:7], y[:7])

        def fail(payload):
            raise OSError(errno.ENOSPC, "full")

        def finish():  # after the old snapshot was read, and before its records are
            slow_save.go_on.set()
            if robot._snapshot_thread is not None:
                robot._snapshot_thread.join()

        with monkeypatch.context() as patch:
            patch.setattr(robot._journal, "append", fail)
            meanwhile(patch, durable, "load", finish, before=False)
            with pytest.raises(OSError, match="full"):
                robot.learn(X[:5], y[:5])
        assert bits(robot) == bits(reference)
        robot.learn(X[:3], y[:3])
        assert bits(robot) == bits(reference.partial_fit(X[:3], y[:3]))
    assert reopened_bits(tmp_path) == bits(reference)


def test_a_snapshot_that_fails_is_reported_by_the_next_change_and_loses_nothing(
    tmp_path, data, slow_save
):
    X, y = data
    reference = MAKERS["naive"]()
    with opened(tmp_path, reference) as robot:
        slow_save.error = OSError(errno.ENOSPC, "no room")
        for round in range(3):
            assert robot.learn(X, y) == round + 1
            reference.partial_fit(X, y)
            robot._snapshot_thread.join()
            with pytest.raises(OSError, match=r"could not be written.*no room.*tried again"):
                robot.learn(X, y)
            assert bits(robot) == bits(reference)
        slow_save.error = None
        assert robot.learn(X, y) == 4
        robot._snapshot_thread.join()
        assert robot.learn(X[:2], y[:2]) == 5
        assert bits(robot) == bits(reference.partial_fit(X, y).partial_fit(X[:2], y[:2]))
        assert robot._journal.snapshot_number == 4
    assert reopened_bits(tmp_path) == bits(reference)


def test_a_snapshot_that_succeeds_makes_good_one_that_failed(tmp_path, data, slow_save):
    X, y = data
    with opened(tmp_path, MAKERS["naive"]()) as robot:
        slow_save.error = OSError(errno.ENOSPC, "no room")
        robot.learn(X, y)
        robot._snapshot_thread.join()
        slow_save.error = None
        robot.snapshot()
        assert robot.learn(X, y) == 2


@pytest.mark.parametrize("where", ["thread", "copy"])
def test_a_snapshot_that_cannot_begin_does_not_undo_the_change(
    tmp_path, monkeypatch, data, small_snapshots, where
):
    X, y = data
    reference = MAKERS["naive"]().fit(X, y)
    with opened(tmp_path, MAKERS["naive"]()) as robot:
        with monkeypatch.context() as patch:

            def fail(*_):
                raise (RuntimeError if where == "thread" else MemoryError)("too many")

            if where == "thread":
                patch.setattr(threading.Thread, "start", fail)
            else:
                patch.setattr(durable.copy, "deepcopy", fail)
            assert robot.learn(X, y) == 1  # it is made and kept
        with pytest.raises(OSError, match="too many"):
            robot.learn(X, y)
        assert (robot.number, bits(robot)) == (1, bits(reference))
        robot.learn(X, y)
        robot.snapshot()
        assert bits(robot) == bits(reference.partial_fit(X, y))
    assert reopened_bits(tmp_path) == bits(reference)


STEPS = ["write", "fsync", "replace", "unlink", "ftruncate"]


@contextlib.contextmanager
def at_each_step(act, torn=False):
    """Call ``act(before, name)`` around each system call that changes the disk.

    Calls of the snapshot's thread and of ours come one at a time; writes may come in halves.
    """
    one_at_a_time, write = threading.RLock(), os.write
    shortened = {"fsync": lambda handle: None}
    if torn:
        halves = itertools.cycle([2, 1])
        shortened["write"] = lambda handle, data: write(
            handle, data[: -(-len(data) // next(halves))]
        )
    with pytest.MonkeyPatch.context() as patch:
        for name in STEPS:
            real = shortened.get(name, getattr(os, name))

            def stepping(*args, name=name, real=real, **elsewhere):
                with one_at_a_time:
                    if not elsewhere:
                        act(True, name)
                    result = real(*args, **elsewhere)
                    if not elsewhere:
                        act(False, name)
                    return result

            patch.setattr(os, name, stepping)
        yield


@pytest.mark.parametrize("name", LEARNERS)
def test_a_kill_at_any_step_loses_nothing_acknowledged(tmp_path, small_snapshots, name):
    n, acknowledged, copies = 26, -1, {}
    folder, make = tmp_path / "robot", LEARNERS[name]

    def copy_folder(before, step):
        if folder.exists():
            content = tuple(sorted(files(folder).items()))
            copies[content] = max(acknowledged, copies.get(content, -1))

    with at_each_step(copy_folder, torn=True):
        robot = opened(folder, make(), sync="always")
        for number in range(1, n + 1):
            acknowledged = number - 1
            change(robot, number)
        acknowledged = n
        robot.close()
    reference, expected = make(), []
    for number in range(1, n + 2):
        expected.append(bits(reference))
        change(reference, number)
    expected.append(bits(reference))
    assert len(copies) > 2 * n
    bases, cuts = set(), 0
    for content, acknowledged in copies.items():
        left = tmp_path / "left"
        left.mkdir()
        for file, data in content:
            (left / file).write_bytes(data)
        if acknowledged < 0 and not list(left.glob("snapshot-*")):
            with pytest.raises(FileNotFoundError):
                opened(left)
        with (
            opened(left, writable=False)
            if list(left.glob("snapshot-*"))
            else (contextlib.nullcontext()) as reader
        ):
            torn = reader is not None and reader.cut is not None
        with pytest.warns(RecoveryWarning) if torn else contextlib.nullcontext():
            robot = opened(left, make())
        with robot:
            found, cuts = robot.number, cuts + torn
            assert max(acknowledged, 0) <= found <= acknowledged + 1
            assert bits(robot) == expected[found]
            bases.add(robot._journal.snapshot_number)
            change(robot, found + 1)
            assert bits(robot) == expected[found + 1]
        shutil.rmtree(left)
    assert len(bases) > 3
    assert cuts >= n // 2


class Crash(BaseException):
    pass


@pytest.mark.parametrize("error", [Crash(), OSError(errno.EIO, "broken disk")])
@pytest.mark.parametrize("when", [True, False])
def test_after_an_error_at_any_step_memory_and_disk_agree(
    tmp_path, small_snapshots, error, when
):
    make, n = LEARNERS["classifier"], 15
    reference, expected = make(), []
    for number in range(1, n + 2):
        expected.append(bits(reference))
        change(reference, number)
    expected.append(bits(reference))
    for failing in range(500):
        folder, step = tmp_path / str(failing), -1
        robot = opened(folder, make())

        def fail(before, name, failing=failing):
            nonlocal step
            if before == when and threading.current_thread() is threading.main_thread():
                step += 1
                if step == failing:
                    raise error

        failed = False
        with at_each_step(fail):
            try:
                for number in range(1, n + 1):
                    change(robot, number)
                    if number % 5 == 0:
                        robot.snapshot()
            except type(error):
                failed = True
        acknowledged = robot.number
        assert bits(robot) == expected[acknowledged]
        with contextlib.suppress(OSError):  # if the disk is in doubt it is refused
            change(robot, robot.number + 1)
        assert bits(robot) == expected[robot.number]
        robot.close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecoveryWarning)
            with opened(folder) as robot:
                assert acknowledged <= robot.number <= acknowledged + 1
                assert bits(robot) == expected[robot.number]
        if not failed:
            break
    assert failing > 15


# Disk


def test_disk_use_is_bounded_on_a_ten_times_longer_stream(tmp_path, monkeypatch, rng):
    monkeypatch.setattr(durable, "_LEAST_RECORDS", 20_000)
    peaks, X = [], rng.normal(size=(20, 4))
    for n in (60, 600):
        peak = 0
        with opened(tmp_path / str(n), MAKERS["classifier"]()) as robot:
            for i in range(n):
                robot.learn(X + i % 7, (np.arange(20) + i) % 3)
                if robot._snapshot_thread is not None:
                    robot._snapshot_thread.join()
                (snapshot,) = (tmp_path / str(n)).glob("snapshot-*")
                model = snapshot.stat().st_size
                assert robot.size <= model + max(20_000, model) + 4000
                peak = max(peak, robot.size)
            assert robot.number == n
            assert len(list((tmp_path / str(n)).iterdir())) <= 4
        peaks.append(peak)
        assert opened(tmp_path / str(n), writable=False).n_replayed < 60
    assert peaks[1] < 1.2 * peaks[0]


def test_snapshots_come_by_themselves_only_when_records_outgrow_the_model(tmp_path, data):
    X, y = data
    with opened(tmp_path, MAKERS["naive"]()) as robot:
        for _ in range(100):
            robot.learn(X, y)
        assert robot._journal.snapshot_number == 0
        before = robot.size
        robot.snapshot()
        assert robot._journal.snapshot_number == 100
        assert robot.size < before / 10
        state = bits(robot)
    with opened(tmp_path) as robot:
        assert robot.n_replayed == 0
        assert bits(robot) == state
        assert str(tmp_path) in repr(robot)
        assert "100 changes" in repr(robot)


# Threads


def test_threads_learn_and_ask_at_once_and_nothing_is_lost(tmp_path, small_snapshots, rng):
    X, numbers = rng.normal(size=(4, 40, 3)), {}
    with opened(tmp_path, LEARNERS["classifier"]()) as robot:
        robot.learn(X[0], np.arange(40) % 3)

        def work(k):
            for i in range(40):
                number = robot.learn(X[k, i], (k, i % 3))
                numbers[number] = (k, i)
                assert number <= robot.number
                assert robot.predict(X[0]).shape == (40,)
                assert robot.coef_.shape[1] == 3
                if i % 10 == k:
                    robot.snapshot()

        in_threads(*(lambda k=k: work(k) for k in range(4)))
        assert robot.n_seen_ == 200
        assert robot.number == 161
        after = bits(robot)
    assert sorted(numbers) == list(range(2, 162))
    reference = LEARNERS["classifier"]().partial_fit(X[0], np.arange(40) % 3)
    for number in sorted(numbers):  # in the order in which they were acknowledged
        k, i = numbers[number]
        reference.partial_fit(X[k, i : i + 1], [(k, i % 3)])
    assert after == bits(reference)
    assert reopened_bits(tmp_path) == after


@pytest.mark.parametrize("asked", ["coef_", "intercept_", "predict", "novelty", "merge"])
def test_who_asks_waits_while_another_thread_learns(tmp_path, monkeypatch, data, asked):
    X, y = data
    learning, may_end, order = threading.Event(), threading.Event(), []
    with (
        opened(tmp_path / "own", MAKERS["naive"]()) as robot,
        opened(tmp_path / "other", MAKERS["naive"]()) as other,
    ):
        robot.learn(X, y)
        other.learn(X, y)
        learn = Recursion.learn

        def slow(self, *args):
            result = learn(self, *args)
            if not learning.is_set():
                learning.set()
                may_end.wait(20)
                order.append("learned")
            return result

        def ask():
            if asked == "merge":
                other.merge(robot)
            elif asked in ("predict", "novelty"):
                getattr(robot, asked)(X)
            else:
                getattr(robot, asked)
            order.append("answered")

        monkeypatch.setattr(Recursion, "learn", slow)
        learner = threading.Thread(target=robot.learn, args=(X[:5], y[:5]))
        learner.start()
        assert learning.wait(10)
        asker = threading.Thread(target=ask)
        asker.start()
        asker.join(0.3)
        may_end.set()
        learner.join()
        asker.join()
    assert order == ["learned", "answered"]


def test_learning_goes_on_while_a_snapshot_is_written(tmp_path, data, slow_save):
    X, y = data
    reference = MAKERS["naive"]().fit(X, y)
    with opened(tmp_path, MAKERS["naive"]()) as robot:
        slow_save.hold()
        robot.learn(X, y)
        assert slow_save.begun.wait(10)
        for _ in range(5):
            robot.learn(X[:5], y[:5])
            reference.partial_fit(X[:5], y[:5])
        robot.forget(0)
        reference.forget(0)
        assert robot._journal.snapshot_number == 0
        # Killed now, nothing is lost.
        shutil.copytree(tmp_path, tmp_path / "killed")
        assert reopened_bits(tmp_path / "killed") == bits(reference)
        slow_save.go_on.set()
        robot._snapshot_thread.join()
        assert robot._journal.snapshot_number == 1
        assert bits(robot) == bits(reference)
    with opened(tmp_path) as robot:
        assert robot.n_replayed == 6
        assert bits(robot) == bits(reference)


@pytest.mark.parametrize("closed", [True, False])
def test_a_snapshot_whose_thread_is_late_stands_for_what_was_copied(
    tmp_path, data, small_snapshots, monkeypatch, closed
):
    X, y = data
    reference = MAKERS["naive"]().fit(X, y)
    robot, go_on = opened(tmp_path, MAKERS["naive"]()), threading.Event()
    snapshot = robot._journal.snapshot

    def late(*args, **kwargs):
        assert go_on.wait(20)
        return snapshot(*args, **kwargs)

    monkeypatch.setattr(robot._journal, "snapshot", late)
    robot.learn(X, y)
    robot.learn(X[:5], y[:5])
    reference.partial_fit(X[:5], y[:5])
    if closed:
        threading.Timer(0.2, go_on.set).start()
        robot.close()
        assert go_on.is_set()
    else:
        go_on.set()
        robot._snapshot_thread.join()
        robot.learn(X[:9], y[:9])
        reference.partial_fit(X[:9], y[:9])
        robot.close()
    with opened(tmp_path) as robot:
        assert robot._journal.snapshot_number == 1
        assert robot.n_replayed == (1 if closed else 2)
        assert bits(robot) == bits(reference)


# Closing


def test_closing_waits_for_the_snapshot(tmp_path, data, slow_save):
    robot = opened(tmp_path, MAKERS["naive"]())
    slow_save.hold()
    robot.learn(*data)
    assert slow_save.begun.wait(10)
    thread = robot._snapshot_thread
    threading.Timer(0.2, slow_save.go_on.set).start()
    robot.close()
    assert slow_save.go_on.is_set()
    assert not thread.is_alive()
    assert len(list(tmp_path.glob("snapshot-*"))) == 1
    with opened(tmp_path) as robot:
        assert robot._journal.snapshot_number == 1


def test_closing_waits_for_a_change_in_another_thread(tmp_path, monkeypatch, data):
    X, y = data
    robot = opened(tmp_path, MAKERS["naive"]())
    robot.learn(X, y)
    learning, learn, results = threading.Event(), Recursion.learn, []

    def slow(self, *args):
        if not learning.is_set():
            learning.set()
            threading.Event().wait(0.3)
        return learn(self, *args)

    monkeypatch.setattr(Recursion, "learn", slow)
    thread = threading.Thread(target=lambda: results.append(robot.learn(X[:5], y[:5])))
    thread.start()
    assert learning.wait(10)
    robot.close()
    thread.join()
    assert results == [2]
    with opened(tmp_path) as robot:
        assert robot.n_seen_ == 65


def test_a_closed_learner_says_so_and_stays_as_it_was(tmp_path, data):
    X, y = data
    robot = opened(tmp_path, MAKERS["naive"]())
    robot.learn(X, y)
    reader = opened(tmp_path, writable=False)
    before = bits(robot)
    for learner in (robot, reader):
        learner.close()
        learner.close()
    kept = files(tmp_path)
    uses = [
        lambda: robot.learn(X, y), lambda: robot.learn_one(X[0], 0), lambda: robot.forget(0),
        lambda: robot.rename(0, 1), lambda: robot.partial_fit(X, y), robot.snapshot,
        lambda: robot.merge(MAKERS["naive"]().fit(X, y)), lambda: robot.size, reader.refresh,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(ValueError, match="is closed; open it again") as caught:
            use()
        assert caught.value.__context__ is None
        assert bits(robot) == bits(reader) == before
    assert files(tmp_path) == kept
    assert robot.n_seen_ == 60


def test_an_error_in_the_block_closes_the_learner(tmp_path, data):
    def work():
        with opened(tmp_path, MAKERS["naive"]()) as robot:
            robot.learn(*data)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    with opened(tmp_path) as robot:
        assert robot.n_seen_ == 60


# What is not recorded


def test_what_would_change_the_learner_unrecorded_is_refused(tmp_path, data):
    X, y = data
    with opened(tmp_path, MAKERS["naive"]()) as robot:
        robot.learn(X, y)
        for name in ("fit", "set_params"):
            assert not hasattr(robot, name)
            with pytest.raises(AttributeError, match=f"{name} would change .* not recorded"):
                getattr(robot, name)
        with pytest.raises(AttributeError, match="_recursions"):
            robot._recursions  # noqa: B018 (it is to fail)
        with pytest.raises(AttributeError, match="unknown_name"):
            robot.unknown_name  # noqa: B018
        assert not hasattr(robot, "predict_proba")  # nothing is held out
        assert robot.get_params()["penalty"] == 1.0
        assert robot.score(X, y) == MAKERS["naive"]().fit(X, y).score(X, y)
        with pytest.raises(TypeError):
            copy.deepcopy(robot)


# Any order of events


SEEDS, NAMES = st.integers(0, 2**16), st.integers(0, 3)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("learn"), st.tuples(SEEDS, st.integers(1, 40))),
        st.tuples(st.just("weigh"), st.tuples(SEEDS, st.integers(1, 9))),
        st.tuples(st.just("one"), st.tuples(SEEDS, NAMES)),
        st.tuples(st.just("forget"), NAMES),
        st.tuples(st.just("rename"), st.tuples(NAMES, NAMES)),
        st.tuples(st.just("merge"), SEEDS),
        st.tuples(st.sampled_from(["ask", "snapshot", "reopen", "fail", "refuse"]), st.none()),
        st.tuples(st.just("tear"), st.integers(1, 60)),
    ),
    max_size=20,
)


def make_event(learner, event, value):
    """Make one change to a learner, durable or not; an event that is refused raises."""
    rng = np.random.default_rng(value if event in ("merge",) else 0)
    if event in ("learn", "weigh", "one"):
        seed, size = value
        rng = np.random.default_rng(seed)
        n = 1 if event == "one" else size
        X, y = rng.normal(size=(n, 2)), rng.integers(0, 4, n)
        if event == "one":
            learner.learn_one(X[0], size)
        elif event == "weigh":
            learner.partial_fit(X, y, sample_weight=rng.integers(0, 3, n) + 0.5, classes=[9])
        else:
            learner.partial_fit(X, y)
    elif event == "forget":
        learner.forget(value)
    elif event == "rename":
        learner.rename(*value)
    else:
        other = LEARNERS["classifier"]().fit(rng.normal(size=(8, 2)), np.arange(8) % 5)
        learner.merge(other)


@settings(deadline=None, max_examples=60)
@given(EVENTS, st.sampled_from([500, 10_000_000]))
def test_any_order_of_events_keeps_the_model(events, least):
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as name:
        patch.setattr(durable, "_LEAST_RECORDS", least)
        folder, history = Path(name) / "robot", [LEARNERS["classifier"]()]
        robot = opened(folder, history[0])
        reader = opened(folder, writable=False)
        for event, value in events:
            number = robot.number
            if event == "snapshot":
                robot.snapshot()
            elif event == "ask":
                with contextlib.suppress(NotFittedError):
                    robot.predict(np.ones((3, 2)))
                    robot.predict_proba_one([1.0, 2.0])
            elif event == "refuse":
                with pytest.raises(ValueError):
                    robot.learn([[np.nan, 1.0]], [17])
            elif event == "fail":
                with patch.context() as broken:
                    broken.setattr(os, "write", lambda *_: 1 / 0)
                    with pytest.raises(ZeroDivisionError):
                        robot.learn([[1.0, 2.0]], ["unseen"])
            elif event in ("reopen", "tear"):
                robot.close()
                torn = event == "tear" and robot._journal.snapshot_number < number
                if torn:
                    path = records(folder)[-1]
                    os.truncate(path, path.stat().st_size - value)
                    history.pop()
                    reader = None
                warned = pytest.warns(RecoveryWarning) if torn else contextlib.nullcontext()
                with warned:
                    robot = opened(folder)
                assert (robot.cut is not None) == torn
                if torn:
                    reader = opened(folder, writable=False)
            else:
                wanted = copy.deepcopy(history[-1])
                try:
                    make_event(wanted, event, value)
                except ValueError as error:
                    with pytest.raises(type(error)):
                        make_event(robot, event, value)
                else:
                    make_event(robot, event, value)
                    history.append(wanted)
            assert robot.number == len(history) - 1
            assert bits(robot) == bits(history[-1])
            assert reader.refresh() == robot.number
            assert bits(reader) == bits(history[-1])
        robot.close()
