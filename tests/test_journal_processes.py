"""Writers and readers of a journal side by side, killed, in any order of events."""

import gc
import io
import math
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imparo.errors import FileFormatError
from imparo.journal import Journal
from imparo.journal import segments as reading
from journal_tools import (
    HEAD,
    START,
    files,
    filled,
    flip,
    history,
    keep,
    kept,
    reopened,
    segments,
)

# Writers and readers


def test_there_is_one_writer_and_its_process_is_named(tmp_path):
    code = "import sys; from imparo.journal import Journal; Journal(sys.argv[1]).append(b'two')"
    with Journal(tmp_path) as journal:
        journal.append(b"one")
        with pytest.raises(BlockingIOError, match=f"in this process \\({os.getpid()}\\)"):
            Journal(tmp_path)
        other = subprocess.run(
            [sys.executable, "-c", code, tmp_path], capture_output=True, text=True
        )
        assert f"another process ({os.getpid()}); close it there" in other.stderr
        assert reopened(tmp_path, writable=False) == [b"one"]
    filled(tmp_path, [b"two"])
    assert reopened(tmp_path) == [b"one", b"two"]


def test_the_lock_of_a_forgotten_journal_is_released(tmp_path):
    journal = Journal(tmp_path)
    journal.append(b"one")
    del journal
    gc.collect()
    assert reopened(tmp_path) == [b"one"]


def test_a_journal_that_failed_to_open_holds_no_lock(tmp_path):
    filled(tmp_path, [b"one", b"two"])
    flip(segments(tmp_path)[0], START + HEAD)
    for _ in range(2):
        with pytest.raises(FileFormatError):
            Journal(tmp_path)


def _in_a_fork(journal, pipe):
    try:
        journal.append(b"fork")
    except RuntimeError as error:
        pipe.send(str(error))
    pipe.recv()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_cannot_write_and_does_not_keep_the_lock(tmp_path):
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    journal = Journal(tmp_path)
    child = context.Process(target=_in_a_fork, args=(journal, there), daemon=True)
    child.start()
    assert "is a fork; open it after forking" in here.recv()
    journal.close()
    filled(tmp_path, [b"one"])  # while the child lives
    here.send("end")
    child.join()
    assert reopened(tmp_path) == [b"one"]


def test_a_reader_sees_what_was_added_since(tmp_path):
    tmp_path.joinpath("empty").mkdir()
    reader = Journal(tmp_path / "empty", writable=False)
    with Journal(tmp_path / "empty", segment_size=60) as writer:
        assert list(reader.records()) == []
        for i in range(10):
            writer.append(bytes([i]) * 20)
            update = reader.refresh()
            assert update.snapshot is None
            assert list(update.records) == [(i + 1, bytes([i]) * 20)]
            assert list(reader.refresh().records) == []
        assert len(segments(tmp_path / "empty")) > 3
        assert reader.number == 10
        # It was up to date, so that a snapshot is nothing new to it.
        writer.snapshot(lambda path: path.write_text("ten"))
        writer.append(b"eleven")
        assert reader.refresh().snapshot is None
        assert list(reader.refresh().records) == [(11, b"eleven")]


def test_a_reader_left_behind_is_told_to_load_the_snapshot(tmp_path):
    with Journal(tmp_path) as writer:
        writer.append(b"one")
        writer.snapshot(keep([b"one"]))
        reader = Journal(tmp_path, writable=False)
        assert history(reader) == [b"one"]
        writer.append(b"two")
        writer.snapshot(keep([b"one", b"two"]))
        writer.append(b"three")
        update = reader.refresh()
        assert update.snapshot == writer.snapshot_path == reader.snapshot_path
        assert kept(update.snapshot) == [b"one", b"two"]
        assert list(update.records) == [(3, b"three")]
        update = reader.refresh()
        assert update.snapshot is None
        assert list(update.records) == []


def test_a_snapshot_gone_before_it_was_loaded_is_followed_by_the_next(tmp_path):
    with Journal(tmp_path) as writer:
        writer.snapshot(lambda path: path.write_text("[]"))
        reader = Journal(tmp_path, writable=False)
        writer.snapshot(lambda path: path.write_text("[ ]"))  # of the same number
        assert not reader.snapshot_path.exists()
        assert reader.refresh().snapshot == writer.snapshot_path
        assert reader.refresh().snapshot is None


def test_records_of_a_reader_end_where_a_writer_removed_them(tmp_path):
    state = [bytes([i]) * 20 for i in range(10)]
    with Journal(tmp_path, segment_size=60) as writer:
        for payload in state:
            writer.append(payload)
        reader = Journal(tmp_path, writable=False)
        records = reader.records()
        found = [next(records)[1] for _ in range(3)]
        writer.snapshot(keep(state))
        found += [payload for _, payload in records]
        assert found == state[: len(found)]
        assert len(found) < 10
        assert kept(reader.refresh().snapshot) == state


def test_a_reader_does_not_mistake_a_record_being_written_for_damage(tmp_path):
    filled(tmp_path, [b"one", b"two", b"three"])
    (path,) = segments(tmp_path)
    content = path.read_bytes()
    first = START + HEAD + 3
    path.write_bytes(content[:first])
    reader = Journal(tmp_path, writable=False)
    assert list(reader.records()) == [(1, b"one")]
    for size in range(first, first + HEAD + 3):
        path.write_bytes(content[:size])
        assert list(reader.refresh().records) == []
    path.write_bytes(content)
    assert list(reader.refresh().records) == [(2, b"two"), (3, b"three")]


def test_a_file_that_grows_while_it_is_read_is_not_damaged(tmp_path, monkeypatch):
    filled(tmp_path, [b"one", b"two", b"three"])
    (path,) = segments(tmp_path)
    content = path.read_bytes()
    fits = reading._length

    def grow(head, room):
        path.write_bytes(content)
        return fits(head, room)

    monkeypatch.setattr(reading, "_length", grow)
    path.write_bytes(content[: START + HEAD + 3 + HEAD + 1])
    reader = reading.SegmentReader(reading.Segment(1, path))
    assert list(reader.records()) == [(1, b"one")]
    assert reader.tail.bytes == HEAD + 1


def test_readers_beside_a_busy_writer_see_a_consistent_prefix(tmp_path):
    state, seen, done, errors = [], [0], threading.Event(), []
    writer = Journal(tmp_path, sync="never", segment_size=300)

    def read():
        try:
            reader, found = Journal(tmp_path, writable=False), None
            while not (done.is_set() and found is not None and len(found) == len(state)):
                if found is None:
                    path, records = reader.snapshot_path, reader.records()
                else:
                    path, records = reader.refresh()
                if found is None or path is not None:
                    try:
                        found = kept(path)
                    except FileNotFoundError:
                        reader = Journal(tmp_path, writable=False)
                        found = None
                        continue
                for number, payload in records:
                    found.append(payload)
                    assert number == len(found)
                copy = list(state)
                assert found[: len(copy)] == copy[: len(found)]
                seen[0] = max(seen[0], len(found))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    rng = random.Random(0)
    for i in range(400):
        payload = b"%d" % i * rng.randrange(1, 20)
        state.append(payload)
        writer.append(payload)
        if rng.random() < 0.1:
            writer.snapshot(keep(state))
    done.set()
    for thread in threads:
        thread.join()
    writer.close()
    assert not errors
    assert seen[0] == 400


def test_a_reader_changes_nothing_and_may_not_write(tmp_path):
    filled(tmp_path, [b"one", b"two"])
    (path,) = segments(tmp_path)
    os.truncate(path, path.stat().st_size - 1)
    (tmp_path / "unfinished-0123456789abcdef").write_text("half")
    before = files(tmp_path)
    with Journal(tmp_path, writable=False) as reader:
        assert reader.cut.bytes == HEAD + 2
        assert list(reader.refresh().records) == [(1, b"one")]
        with pytest.raises(io.UnsupportedOperation, match="writable=False"):
            reader.append(b"three")
        with pytest.raises(io.UnsupportedOperation, match="writable=False"):
            reader.snapshot(keep([]))
    assert files(tmp_path) == before
    with pytest.raises(FileNotFoundError, match="there is no journal"):
        Journal(tmp_path / "missing", writable=False)
    assert not (tmp_path / "missing").exists()


def test_a_closed_journal_says_so(tmp_path):
    journal = Journal(tmp_path)
    journal.close()
    journal.close()
    for use in (
        lambda: journal.append(b""), journal.records, journal.refresh, lambda: journal.size,
        lambda: journal.snapshot(keep([])),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="is closed"):
            use()


def test_wrong_arguments_are_refused(tmp_path):
    for sync in ("sometimes", 0, -1.0, math.inf, math.nan, True, None):
        with pytest.raises(ValueError, match="sync must be"):
            Journal(tmp_path / "never made", sync=sync)
    assert not (tmp_path / "never made").exists()
    with Journal(tmp_path) as journal:
        with pytest.raises(TypeError, match="bytes, not str"):
            journal.append("text")
        with pytest.raises(io.UnsupportedOperation, match="readers"):
            journal.refresh()
        assert journal.number == 0


# Really killed


# Lives of a writer, one for each line it is given: it prints its process id, then each number
# that was acknowledged. Forked, so that the library is imported once.
WRITER = """
import os, random, sys
from imparo.journal import Journal

def payload(number):
    return random.Random(number).randbytes(number % 400)

def live(folder, seed, sync):
    rng = random.Random(seed)
    os.write(1, b"pid %d\\n" % os.getpid())
    journal = Journal(folder, sync=sync, segment_size=5000)
    while True:
        number = journal.append(payload(journal.number + 1))
        os.write(1, b"%d\\n" % number)
        if rng.random() < 0.05:
            journal.snapshot(lambda path: path.write_text(str(number)))

for line in sys.stdin:
    folder, seed, sync = line.split()
    child = os.fork()
    if child == 0:
        try:
            live(folder, int(seed), float(sync) if sync[0].isdigit() else sync)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    os.write(1, b"end %d\\n" % status)
"""


def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path):
    kills, rng = int(os.environ.get("IMPARO_KILLS", 30)), random.Random(0)
    folder, acknowledged, snapshots_seen, cuts = tmp_path / "journal", 0, set(), 0
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with writer:
        for kill in range(kills):
            sync = ("always", "0.01", "never")[kill % 3]
            writer.stdin.write(f"{folder} {kill} {sync}\n")
            writer.stdin.flush()
            word, child = writer.stdout.readline().split()
            assert word == "pid"
            time.sleep(rng.random() * 0.05)
            os.kill(int(child), signal.SIGKILL)
            for line in writer.stdout:
                if line.startswith("end"):
                    assert int(line.split()[1]) == signal.SIGKILL
                    break
                assert int(line) > acknowledged  # it went on where the last one ended
                acknowledged = int(line)
            if not folder.exists():
                assert acknowledged == 0
                continue
            with Journal(folder, writable=False) as journal:
                path, number = journal.snapshot_path, journal.snapshot_number
                assert path is None or path.read_text() == str(number)
                snapshots_seen.add(number)
                cuts += journal.cut is not None
                for record, payload in journal.records():
                    number += 1
                    assert record == number
                    assert payload == random.Random(number).randbytes(number % 400)
                assert number in (acknowledged, acknowledged + 1)
                acknowledged = number
        writer.stdin.close()
    assert acknowledged > kills
    assert len(snapshots_seen) > 1


# Any order of events


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.binary(max_size=60)),
        st.tuples(st.just("append"), st.binary(max_size=60)),
        st.tuples(st.just("snapshot"), st.none()),
        st.tuples(st.just("reopen"), st.sampled_from(["always", "never", 1000.0])),
        st.tuples(st.just("tear"), st.floats(0, 1)),
        st.tuples(st.just("zeros"), st.integers(1, 100)),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=100)
@given(EVENTS, st.integers(1, 300))
def test_any_order_of_events_keeps_the_state(events, segment_size):
    with tempfile.TemporaryDirectory() as name:
        folder, state, last = Path(name), [], 0  # last: bytes of the last record
        reader_state, reader = [], None
        journal = Journal(folder, sync="never", segment_size=segment_size)
        for event, value in events:
            if event == "append":
                assert journal.append(value) == len(state) + 1
                state.append(value)
                last = HEAD + len(value)
            elif event == "snapshot":
                journal.snapshot(keep(state))
                last = 0
            else:
                journal.close()
                path = segments(folder)[-1]
                size, reader = path.stat().st_size, None
                if event == "tear" and last:
                    os.truncate(path, size - max(1, math.ceil(value * last)))
                    state.pop()
                    last = 0
                if event == "zeros":
                    os.truncate(path, size + value)
                journal = Journal(
                    folder, sync=value if event == "reopen" else "never",
                    segment_size=segment_size,
                )  # fmt: skip
                if event != "tear":
                    assert (journal.cut is not None) == (event == "zeros")
            assert history(journal) == state
            if reader is None:
                reader = Journal(folder, writable=False)
                reader_state = history(reader)
            else:
                snapshot, records = reader.refresh()
                reader_state = kept(snapshot) if snapshot else reader_state
                reader_state += [payload for _, payload in records]
            assert reader_state == state
        journal.close()
