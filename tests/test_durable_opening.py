"""What is refused, and who may open a learner, read it and write to it."""

import copy
import io
import os
import shutil
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
import safetensors

import imparo
from durable_tools import (
    CENTERS,
    MAKERS,
    as_frame,
    files,
    in_a_fork,
    in_threads,
    meanwhile,
    opened,
    records,
    reopened_bits,
)
from imparo import IncrementalClassifier, RecursiveRegressor
from imparo.errors import FileFormatError, RecoveryWarning
from imparo.features import NystromMap
from imparo.journal import Journal, encode
from imparo.kernels import Gaussian
from imparo.lifelong import durable
from test_durable_kills import LEARNERS, bits, change

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


@pytest.mark.parametrize("how", ["open", "refresh"])
@pytest.mark.parametrize(
    ("where", "name", "before"),
    [
        (durable, "load", True),
        (durable, "load", False),
        (safetensors, "safe_open", True),
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
