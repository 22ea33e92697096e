"""When something fails, or several things happen at once, memory and disk agree."""

import contextlib
import errno
import itertools
import os
import shutil
import threading
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from durable_tools import (
    MAKERS,
    as_frame,
    files,
    in_threads,
    meanwhile,
    opened,
    reopened_bits,
)
from imparo import RecursiveRegressor
from imparo.errors import RecoveryWarning
from imparo.lifelong import durable
from imparo.lifelong.recursion import Recursion
from test_durable_kills import LEARNERS, bits, change

# What fails


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


BROKEN = OSError(errno.EIO, "broken disk")


@pytest.mark.parametrize(
    ("error", "when"),
    [
        (Crash(), True),
        (BROKEN, False),
        pytest.param(Crash(), False, marks=pytest.mark.slow),
        pytest.param(BROKEN, True, marks=pytest.mark.slow),
    ],
)
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
