"""A learner in a folder is the learner in memory, to the last bit, whatever happens to it."""

import contextlib
import copy
import io
import os
import tempfile
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
from durable_tools import (
    CENTERS,
    MAKERS,
    as_frame,
    blocks,
    files,
    in_threads,
    opened,
    records,
    reopened_bits,
)
from imparo import RandomFeatures, RecursiveRegressor
from imparo.errors import RecoveryWarning
from imparo.journal import Journal
from imparo.lifelong import durable
from imparo.lifelong.recursion import Recursion
from test_durable_kills import LEARNERS, bits, change

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
            robot.unknown_name  # noqa: B018 (it is to fail)
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
