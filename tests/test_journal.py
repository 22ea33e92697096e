"""A journal gives back every record that it acknowledged, or says what is wrong."""

import contextlib
import errno
import gc
import io
import json
import math
import multiprocessing
import os
import random
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from imparo.errors import FileFormatError
from imparo.journal import Journal, decode, encode
from imparo.journal import segments as reading
from imparo.persistence import load, save

HEAD = 24  # bytes of a record beside its payload
START = 33  # bytes of a segment before its first record


# The state of these tests is the list of all payloads; a snapshot is that list.


def keep(state):
    return lambda path: path.write_text(json.dumps([payload.hex() for payload in state]))


def kept(path):
    return [bytes.fromhex(text) for text in json.loads(path.read_text())] if path else []


def history(journal):
    state = kept(journal.snapshot_path)
    assert len(state) == journal.snapshot_number
    for number, payload in journal.records():
        state.append(payload)
        assert number == len(state)
    return state


def reopened(folder, writable=True):
    with Journal(folder, writable=writable) as journal:
        return history(journal)


def filled(folder, payloads, **options):
    with Journal(folder, **options) as journal:
        for payload in payloads:
            journal.append(payload)


def segments(folder):
    return sorted(folder.glob("records-*"))


def snapshots(folder):
    return sorted(folder.glob("snapshot-*"))


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def flip(path, place, bits=0xFF):
    content = bytearray(path.read_bytes())
    content[place] ^= bits
    path.write_bytes(content)


# Appending and reading


@pytest.mark.parametrize("sync", ["always", "never", 0.01, 100])
def test_records_come_back_in_order_after_reopening(tmp_path, sync):
    state = [b"", b"one", bytes(100_000), b"\n"]
    with Journal(tmp_path / "a" / "b", sync=sync) as journal:
        assert [journal.append(payload) for payload in state] == [1, 2, 3, 4]
        assert history(journal) == state
        assert journal.number == 4
    with Journal(tmp_path / "a" / "b", sync=sync) as journal:
        assert journal.cut is None
        assert history(journal) == state
        assert journal.append(b"five") == 5
        assert history(journal) == [*state, b"five"]


def test_a_record_is_laid_out_as_documented(tmp_path):
    filled(tmp_path, [b"abc", b"de"])
    (path,) = segments(tmp_path)
    content = path.read_bytes()
    assert path.name == f"records-{1:020d}"
    assert content.startswith(b"imparo journal 1\n")
    mark, first, check = struct.unpack("<4sQI", content[17:START])
    assert first == 1
    assert check == zlib.crc32(content[: START - 4])
    place = START
    for number, payload in enumerate([b"abc", b"de"], start=1):
        head, crc = content[place : place + 20], content[place + 20 : place + 24]
        assert struct.unpack("<4sIIQ", head) == (mark, len(payload), 0, number)
        assert struct.unpack("<I", crc)[0] == zlib.crc32(head + payload)
        assert content[place + HEAD : place + HEAD + len(payload)] == payload
        place += HEAD + len(payload)
    assert place == len(content)


def test_full_segments_are_followed_by_new_ones(tmp_path):
    state = [bytes([i]) * 50 for i in range(20)]
    filled(tmp_path, state, segment_size=200)
    assert len(segments(tmp_path)) > 4
    assert reopened(tmp_path) == state


def test_always_means_that_the_record_is_synced_before_it_is_acknowledged(
    tmp_path, monkeypatch
):
    synced = watch_syncs(monkeypatch)
    with Journal(tmp_path) as journal:
        for i in range(5):
            journal.append(bytes(i))
            (path,) = segments(tmp_path)
            assert synced[path.stat().st_ino] == path.stat().st_size


def test_group_commit_goes_on_after_there_were_too_many_files(tmp_path, monkeypatch):
    synced, refused, duplicate = watch_syncs(monkeypatch), [], os.dup

    def once(handle):
        if not refused:
            refused.append(handle)
            raise OSError(errno.EMFILE, "Too many open files")
        return duplicate(handle)

    monkeypatch.setattr("imparo.journal.appending.os.dup", once)
    with Journal(tmp_path, sync=0.05) as journal:
        journal.append(b"one")
        (path,) = segments(tmp_path)
        patience = time.monotonic() + 30
        while synced[path.stat().st_ino] != path.stat().st_size and time.monotonic() < patience:
            time.sleep(0.001)
        assert refused
        assert synced[path.stat().st_ino] == path.stat().st_size


def test_group_commit_syncs_by_itself_and_never_does_not(tmp_path, monkeypatch):
    synced = watch_syncs(monkeypatch)
    with Journal(tmp_path / "group", sync=0.001) as journal:
        for i in range(5):
            journal.append(bytes(i))
        (path,) = segments(tmp_path / "group")
        patience = time.monotonic() + 30
        while synced[path.stat().st_ino] != path.stat().st_size and time.monotonic() < patience:
            time.sleep(0.001)
        assert synced[path.stat().st_ino] == path.stat().st_size
    with Journal(tmp_path / "never", sync="never") as journal:
        synced.clear()
        for i in range(5):
            journal.append(bytes(i))
        assert not synced
    with Journal(tmp_path / "slow", sync=1000) as journal:
        journal.append(b"one")
        (path,) = segments(tmp_path / "slow")
        assert synced[path.stat().st_ino] < path.stat().st_size
        # Too long ago: the next append waits for the disk.
        monkeypatch.setattr("imparo.journal.appending.time.monotonic", lambda: math.inf)
        journal.append(b"two")
        assert synced[path.stat().st_ino] == path.stat().st_size


def watch_syncs(monkeypatch):
    """Size of each file when it was last synced, by inode."""
    synced, fsync = {}, os.fsync

    def watched(handle):
        fsync(handle)
        synced[os.fstat(handle).st_ino] = os.fstat(handle).st_size

    monkeypatch.setattr(os, "fsync", watched)
    return synced


def test_threads_append_while_another_makes_snapshots(tmp_path):
    state, lock = [], threading.Lock()
    with Journal(tmp_path, sync="never", segment_size=500) as journal:

        def append(letter):
            for i in range(200):
                with lock:  # state and journal in the same order
                    state.append(f"{letter}{i}".encode())
                    journal.append(state[-1])

        threads = [threading.Thread(target=append, args=(letter,)) for letter in "abc"]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            with lock:
                copy = list(state)
            journal.snapshot(keep(copy), at=len(copy))
            assert journal.snapshot_number == len(copy)
        assert history(journal) == state
    assert len(state) == 600
    assert reopened(tmp_path) == state


# Torn ends


def test_no_byte_of_a_mark_is_zero():
    # A torn record that begins with one would be taken for room that was never written to.
    marks = b"".join(reading.mark_of(reading.start(1)) for _ in range(5000))
    assert len(marks) == 20_000
    assert 0 not in marks
    assert len(set(marks)) == 255


def test_a_last_record_cut_anywhere_is_dropped_and_reported(tmp_path):
    state = [b"one", b"two, which is longer", b"three"]
    filled(tmp_path / "whole", state)
    content = segments(tmp_path / "whole")[0].read_bytes()
    last = len(content) - HEAD - len(state[-1])
    for size in range(last, len(content) + 1):
        folder = tmp_path / str(size)
        shutil.copytree(tmp_path / "whole", folder)
        os.truncate(segments(folder)[0], size)
        before = files(folder)
        expected = state if size == len(content) else state[:2]
        torn = last < size < len(content)
        with Journal(folder, writable=False) as reader:
            assert history(reader) == expected
            assert files(folder) == before
            assert (reader.cut.bytes if reader.cut else 0) == (size - last if torn else 0)
        with Journal(folder) as journal:
            assert history(journal) == expected
            if torn:
                assert journal.cut.bytes == size - last
                assert journal.cut.reason == "record 3 is incomplete"
            else:
                assert journal.cut is None
            assert journal.append(b"next") == len(expected) + 1
        assert reopened(folder) == [*expected, b"next"]
        assert Journal(folder, writable=False).cut is None


@pytest.mark.parametrize("bits", [0x01, 0x80, 0xFF])
def test_a_damaged_byte_of_the_last_record_drops_it_of_an_earlier_one_is_an_error(
    tmp_path, bits
):
    state = [b"one", b"two", b"three"]
    filled(tmp_path, state)
    (path,) = segments(tmp_path)
    content = path.read_bytes()
    last = len(content) - HEAD - len(state[-1])
    for place in range(START, len(content)):
        flip(path, place, bits)
        before = files(tmp_path)
        if place >= last:
            with Journal(tmp_path, writable=False) as reader:
                assert history(reader) == state[:2]
                assert reader.cut.bytes == len(content) - last
        else:
            record = 1 if place < START + HEAD + 3 else 2
            for writable in (False, True):
                with pytest.raises(FileFormatError, match=f"in record {record}, while later"):
                    Journal(tmp_path, writable=writable)
            assert {**files(tmp_path), "lock": b""} == {**before, "lock": b""}
        flip(path, place, bits)
    assert reopened(tmp_path) == state


def test_a_damaged_beginning_of_a_segment_is_an_error(tmp_path):
    filled(tmp_path, [b"one"])
    (path,) = segments(tmp_path)
    for place in range(START):
        flip(path, place)
        with pytest.raises(FileFormatError):
            Journal(tmp_path)
        flip(path, place)
    assert reopened(tmp_path) == [b"one"]


@pytest.mark.parametrize("zeros", [1, HEAD - 1, HEAD, HEAD + 1, 5000])
def test_zeros_at_the_end_are_a_torn_write(tmp_path, zeros):
    filled(tmp_path, [b"one", b"two"])
    (path,) = segments(tmp_path)
    os.truncate(path, path.stat().st_size + zeros)
    with Journal(tmp_path) as journal:
        assert journal.cut == (zeros, "the end of the segment is zeros")
        assert history(journal) == [b"one", b"two"]
        journal.append(b"three")
    # Zeros in place of the second half of a record.
    size = path.stat().st_size
    os.truncate(path, size - 3)
    os.truncate(path, size + zeros)
    with Journal(tmp_path) as journal:
        assert journal.cut.bytes == HEAD + len(b"three") + zeros
        assert history(journal) == [b"one", b"two"]


@pytest.mark.parametrize("size", [0, 5, START - 1, START])
def test_a_last_segment_that_was_never_filled_is_begun_again(tmp_path, size):
    filled(tmp_path, [b"one" * 100, b"two" * 100], segment_size=100)
    path = segments(tmp_path)[-1]
    whole = path.read_bytes()
    for content in (bytes(size), bytes(size + 300), whole[:size]):
        path.write_bytes(content)
        with Journal(tmp_path) as journal:
            assert history(journal) == [b"one" * 100]
            assert (journal.cut is None) == (content == whole[:START])
            assert journal.append(b"next") == 2
        assert reopened(tmp_path) == [b"one" * 100, b"next"]


def test_a_payload_that_holds_records_is_not_taken_for_them(tmp_path):
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    filled(inner, [b"one", b"two", b"three"])
    filled(outer, [b"first", segments(inner)[0].read_bytes() + b"end"])
    path = segments(outer)[0]
    os.truncate(path, path.stat().st_size - 2)
    assert reopened(outer) == [b"first"]


def test_a_hole_in_what_was_not_yet_synced_is_cut_with_all_that_follows(tmp_path):
    state = [b"one", b"two", b"three", b"four"]
    for sync, safe in ((1000, False), ("never", True), ("always", True)):
        folder = tmp_path / str(sync)
        filled(folder, [b"old"])
        filled(folder, state, sync=sync)
        flip(segments(folder)[0], START + 2 * (HEAD + 3) + 5)  # in record 3
        if safe:
            with pytest.raises(FileFormatError, match="in record 3"):
                Journal(folder)
        else:
            assert reopened(folder) == [b"old", b"one"]
    # What an earlier writer synced is not forgiven.
    folder = tmp_path / "older"
    filled(folder, [b"old", b"older"])
    filled(folder, state, sync=1000)
    flip(segments(folder)[0], START + HEAD + 4)
    with pytest.raises(FileFormatError, match="in record 2"):
        Journal(folder)


# Damage


def test_a_missing_segment_is_an_error_and_nothing_is_deleted(tmp_path):
    state = [bytes([i]) * 50 for i in range(20)]
    filled(tmp_path / "whole", state, segment_size=200)
    for path in segments(tmp_path / "whole")[:-1]:
        folder = tmp_path / path.name
        shutil.copytree(tmp_path / "whole", folder)
        (folder / path.name).unlink()
        before = files(folder)
        with pytest.raises(FileFormatError, match="is missing"):
            Journal(folder)
        assert {**files(folder), "lock": b""} == {**before, "lock": b""}


def test_a_missing_segment_after_a_snapshot_is_an_error(tmp_path):
    with Journal(tmp_path) as journal:
        journal.append(b"one")
        journal.snapshot(keep([b"one"]))
    segments(tmp_path)[0].unlink()
    with pytest.raises(FileFormatError, match="the segment with record 2 is missing"):
        Journal(tmp_path)


def test_a_segment_cut_before_its_end_is_an_error_if_others_follow(tmp_path):
    filled(tmp_path, [bytes([i]) * 50 for i in range(20)], segment_size=200)
    path = segments(tmp_path)[1]
    for size in (path.stat().st_size - 1, path.stat().st_size - HEAD - 50):
        os.truncate(path, size)
        with pytest.raises(FileFormatError, match="missing or incomplete"):
            Journal(tmp_path)


def test_a_record_taken_out_is_an_error(tmp_path):
    filled(tmp_path, [b"one", b"two", b"end"])
    (path,) = segments(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: START + HEAD + 3] + content[START + 2 * (HEAD + 3) :])
    with pytest.raises(FileFormatError, match="holds record 3 where 2 was expected"):
        Journal(tmp_path)


def test_a_renamed_segment_and_one_of_a_newer_format_are_errors(tmp_path):
    filled(tmp_path, [b"one"])
    (path,) = segments(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"journal 1", b"journal 2"))
    with pytest.raises(FileFormatError, match=r"format 2.*upgrade"):
        Journal(tmp_path)
    path.write_bytes(content)
    with Journal(tmp_path) as journal:
        journal.snapshot(keep([b"one"]))
    (path,) = segments(tmp_path)
    path.rename(tmp_path / f"records-{1:020d}")
    with pytest.raises(FileFormatError, match="was renamed"):
        Journal(tmp_path)


def test_a_damaged_snapshot_is_replaced_by_an_older_one_while_its_records_last(tmp_path):
    state = [b"one", b"two", b"three"]
    with Journal(tmp_path / "journal") as journal:
        journal.append(b"one")
        journal.snapshot(keep(state[:1]))
        journal.append(b"two")
        shutil.copytree(tmp_path / "journal", tmp_path / "between")
        journal.snapshot(keep(state[:2]))
        journal.append(b"three")
    # As if the crash came before anything was deleted.
    folder = tmp_path / "between"
    for path in (tmp_path / "journal").iterdir():
        shutil.copy(path, folder)
    old, new = snapshots(folder)
    before = files(folder)
    assert reopened(folder, writable=False) == state
    for damage in (
        lambda: flip(new, 3),
        lambda: os.truncate(new, 2),
        lambda: os.truncate(new, 0),
    ):
        new.write_bytes(before[new.name])
        damage()
        with Journal(folder) as journal:
            assert journal.damaged == [new]
            assert journal.snapshot_path == old
            assert history(journal) == state
    assert set(files(folder)) == set(before)
    flip(old, 3)
    with pytest.raises(FileFormatError, match="is damaged, and"):
        Journal(folder)
    flip(old, 3)
    with Journal(folder) as journal:
        journal.snapshot(keep(state))
        assert journal.damaged == []
    assert len(snapshots(folder)) == len(segments(folder)) == 1
    assert reopened(folder) == state


def test_a_damaged_snapshot_without_its_records_is_an_error(tmp_path):
    with Journal(tmp_path) as journal:
        journal.append(b"one")
        journal.snapshot(keep([b"one"]))
        journal.append(b"two")
    flip(snapshots(tmp_path)[0], 0)
    before = files(tmp_path)
    with pytest.raises(FileFormatError, match=r"snapshot.*is damaged, and the segment"):
        Journal(tmp_path)
    assert files(tmp_path).keys() == before.keys()


def test_a_damaged_first_snapshot_is_not_needed_while_all_records_are_there(tmp_path):
    filled(tmp_path, [b"one", b"two"])
    shutil.copy(segments(tmp_path)[0], tmp_path / "aside")
    with Journal(tmp_path) as journal:
        journal.snapshot(keep([b"one", b"two"]))
    shutil.copy(tmp_path / "aside", tmp_path / f"records-{1:020d}")
    flip(snapshots(tmp_path)[0], 0)
    with Journal(tmp_path) as journal:
        assert journal.snapshot_path is None
        assert history(journal) == [b"one", b"two"]
    # The snapshot proves that there were two.
    os.truncate(tmp_path / f"records-{1:020d}", START + HEAD + 3)
    segments(tmp_path)[-1].unlink()
    with pytest.raises(FileFormatError, match="damaged, and the segment with record 2"):
        Journal(tmp_path)


def test_files_of_others_are_left_alone(tmp_path):
    for name in ("notes.txt", "records-1", "unfinished", "snapshot-1", ".records-x"):
        (tmp_path / name).write_text(name)
    (tmp_path / "unfinished-0123456789abcdef").write_text("of a snapshot that was never made")
    with Journal(tmp_path) as journal:
        journal.append(b"one")
        journal.snapshot(keep([b"one"]))
    found = files(tmp_path)
    for name in ("notes.txt", "records-1", "unfinished", "snapshot-1", ".records-x"):
        assert found[name] == name.encode()
    assert "unfinished-0123456789abcdef" not in found


# Snapshots


def test_a_snapshot_replaces_all_records_before_it(tmp_path):
    state = [bytes(1000)] * 20
    with Journal(tmp_path, segment_size=3000) as journal:
        for payload in state:
            journal.append(payload)
        path = journal.snapshot(keep(state))
        assert path == journal.snapshot_path == snapshots(tmp_path)[0]
        assert journal.snapshot_number == 20
        assert list(journal.records()) == []
        assert journal.size == path.stat().st_size + START
        assert len(segments(tmp_path)) == len(snapshots(tmp_path)) == 1
        assert journal.append(b"next") == 21
        assert list(journal.records()) == [(21, b"next")]
    assert reopened(tmp_path) == [*state, b"next"]


def test_a_snapshot_may_stand_for_no_record_and_be_made_again(tmp_path):
    with Journal(tmp_path) as journal:
        first = journal.snapshot(lambda path: path.write_text("[]"))
        assert journal.snapshot(lambda path: path.write_text("[]")) == first
        second = journal.snapshot(lambda path: path.write_text("[ ]"))
        assert snapshots(tmp_path) == [second]
        assert journal.append(b"one") == 1
    assert reopened(tmp_path) == [b"one"]


def test_a_snapshot_of_an_earlier_record_keeps_those_after_it(tmp_path):
    state = [b"one", b"two", b"three"]
    with Journal(tmp_path) as journal:
        for payload in state:
            journal.append(payload)
        journal.snapshot(keep(state[:2]), at=2)
        assert list(journal.records()) == [(3, b"three")]
        for wrong in (1, 4):
            with pytest.raises(ValueError, match="from 2 to 3"):
                journal.snapshot(keep(state), at=wrong)
    assert reopened(tmp_path) == state


def test_a_snapshot_that_fails_changes_nothing(tmp_path):
    def fail(path):
        path.write_text("half")
        raise KeyError("the caller's own")

    with Journal(tmp_path) as journal:
        journal.append(b"one")
        journal.snapshot(keep([b"one"]))
        journal.append(b"two")
        before = files(tmp_path)
        with pytest.raises(KeyError):
            journal.snapshot(fail)
        with pytest.raises(FileNotFoundError, match="wrote no file"):
            journal.snapshot(lambda path: None)
        with pytest.raises(RuntimeError, match="another"):
            journal.snapshot(lambda path: journal.snapshot(keep([])))
        assert {name: files(tmp_path)[name] for name in before} == before
        journal.append(b"three")
        assert history(journal) == [b"one", b"two", b"three"]
    assert reopened(tmp_path) == [b"one", b"two", b"three"]


def test_a_snapshot_that_the_disk_does_not_give_back_is_not_relied_on(tmp_path, monkeypatch):
    replace = os.replace

    def spoil(source, target):
        replace(source, target)
        if Path(target).name.startswith("snapshot"):
            flip(Path(target), 0)

    with Journal(tmp_path) as journal:
        journal.append(b"one")
        journal.snapshot(keep([b"one"]))
        journal.append(b"two")
        monkeypatch.setattr(os, "replace", spoil)
        with pytest.raises(FileFormatError, match="read back"):
            journal.snapshot(keep([b"one", b"two"]))
        monkeypatch.undo()
        journal.append(b"three")
        assert history(journal) == [b"one", b"two", b"three"]
    assert reopened(tmp_path) == [b"one", b"two", b"three"]


def test_disk_use_is_bounded_over_many_appends(tmp_path):
    rng = random.Random(0)
    with Journal(tmp_path, sync="never", segment_size=4096) as journal:
        for number in range(1, 10_001):
            journal.append(rng.randbytes(rng.randrange(100)))
            if number % 100 == 0:
                # 100 records, the segments' beginnings and the snapshot before.
                assert journal.size <= 100 * (100 + HEAD) + 5 * START + 10
                journal.snapshot(lambda path: path.write_bytes(bytes(10)))
                assert journal.size == 10 + START
                assert len(list(tmp_path.iterdir())) == 3
    assert Journal(tmp_path, writable=False).number == 10_000


# Crashes at every step


@pytest.fixture
def no_waiting():
    """Crashes are simulated here: no need to wait for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


STEPS = ["write", "fsync", "replace", "unlink", "ftruncate"]


def at_each_step(monkeypatch, act):
    """Call ``act(before, name)`` around each system call that changes the disk."""
    for name in STEPS:
        real = getattr(os, name)

        def stepping(*args, name=name, real=real):
            act(True, name)
            result = real(*args)
            act(False, name)
            return result

        monkeypatch.setattr(os, name, stepping)


def live(journal, state):
    """Appends and snapshots in segments of some records; state is what was acknowledged."""
    for i in range(9):
        payload = bytes([i]) * 40
        journal.append(payload)
        state.append(payload)
        if i in (4, 7):
            journal.snapshot(keep(state))


def test_a_kill_at_any_step_loses_nothing_acknowledged(tmp_path, monkeypatch, no_waiting):
    folder, state, copies = tmp_path / "journal", [], []

    def copy(before, name):
        if folder.exists():
            copies.append((files(folder), len(state)))

    at_each_step(monkeypatch, copy)
    with Journal(folder, segment_size=150) as journal:
        live(journal, state)
    monkeypatch.undo()
    assert len(copies) > 100
    for i, (content, acknowledged) in enumerate(copies):
        survives(tmp_path / str(i), content, state, acknowledged)


def survives(folder, content, state, acknowledged):
    folder.mkdir()
    for name, data in content.items():
        (folder / name).write_bytes(data)
    found = reopened(folder, writable=False)
    assert found == state[: len(found)]
    assert acknowledged <= len(found) <= acknowledged + 1
    with Journal(folder, sync="never") as journal:
        assert history(journal) == found
        assert journal.append(b"next") == len(found) + 1
        journal.snapshot(keep([*found, b"next"]))
        assert len(list(folder.iterdir())) == 3
    assert reopened(folder) == [*found, b"next"]
    shutil.rmtree(folder)


class Disk:
    """What a power cut may leave: names and contents as last synced, or newer, or zeros."""

    def __init__(self, folder):
        self.folder = folder
        self.held = {}  # inode: open file, so that no number is used twice
        self.names, self.contents = {}, {}

    def look(self):
        names = {}
        for path in self.folder.glob("[!l]*"):  # all but the lock
            inode = path.stat().st_ino
            names[path.name] = inode
            if inode not in self.held:
                self.held[inode] = open(path, "rb")  # noqa: SIM115 (held open, as its name says)
        return names

    def synced(self, handle):
        names, status = self.look(), os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            self.names = names
        else:
            self.contents[status.st_ino] = self.now(status.st_ino)

    def now(self, inode):
        self.held[inode].seek(0)
        return self.held[inode].read()

    def left(self):
        current = self.look()
        for names in (self.names, current):
            safe = {name: self.contents.get(inode, b"") for name, inode in names.items()}
            written = {name: self.now(inode) for name, inode in names.items()}
            yield safe
            yield written
            yield {name: safe[name].ljust(len(written[name]), b"\0") for name in names}


@pytest.mark.parametrize("sync", ["always", 1000])
def test_a_power_cut_at_any_step_loses_nothing_promised(
    tmp_path, monkeypatch, no_waiting, sync
):
    folder, state, cuts = tmp_path / "journal", [], {}
    folder.mkdir()
    disk, fsync = Disk(folder), os.fsync

    def sync_and_note(handle):
        fsync(handle)
        with contextlib.suppress(KeyError):  # folders above ours
            disk.synced(handle)

    def cut(before, name):
        for content in disk.left():
            key = tuple(sorted(content.items()))
            cuts[key] = max(len(state) if sync == "always" else 0, cuts.get(key, 0))

    monkeypatch.setattr(os, "fsync", sync_and_note)
    at_each_step(monkeypatch, cut)
    with Journal(folder, sync=sync, segment_size=150) as journal:
        live(journal, state)
    monkeypatch.undo()
    for file in disk.held.values():
        file.close()
    assert len(cuts) > 30
    for i, (content, acknowledged) in enumerate(cuts.items()):
        if sync == "always":
            survives(tmp_path / str(i), dict(content), state, acknowledged)
        else:  # some are lost, but the journal opens with those before them
            (tmp_path / str(i)).mkdir()
            for name, data in content:
                (tmp_path / str(i) / name).write_bytes(data)
            found = reopened(tmp_path / str(i))
            assert found == state[: len(found)]


class Crash(BaseException):
    pass


@pytest.mark.parametrize("error", [Crash(), OSError(errno.EIO, "broken disk")])
@pytest.mark.parametrize("when", [True, False])
def test_an_error_at_any_step_loses_nothing_acknowledged(
    tmp_path, monkeypatch, no_waiting, error, when
):
    for failing in range(1000):
        folder, state, step = tmp_path / str(failing), [], -1
        journal = Journal(folder, segment_size=150)

        def fail(before, name, failing=failing):
            nonlocal step
            if before == when:
                step += 1
                if step == failing:
                    raise error

        with monkeypatch.context() as patch:
            at_each_step(patch, fail)
            try:
                live(journal, state)
            except type(error):
                pass
            else:
                break
        found = reopened(folder, writable=False)
        assert len(state) <= len(found) <= len(state) + 1
        assert found[: len(state)] == state
        # Going on works, or is refused.
        with contextlib.suppress(OSError):
            journal.append(b"after")
            found.append(b"after")
            journal.snapshot(keep(found))
        with contextlib.suppress(OSError):
            journal.close()
        assert reopened(folder) == found
    assert failing > 30
    journal.close()


# Full disks


def full(monkeypatch, after):
    """Let this many bytes through, then fail as a full disk does."""
    write, room = os.write, [after]

    def writing(handle, data):
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = write(handle, bytes(data)[: room[0]])
        room[0] -= done
        return done

    monkeypatch.setattr(os, "write", writing)


@pytest.mark.parametrize("sync", ["always", "never", 1000])
def test_a_full_disk_fails_the_append_and_no_other(tmp_path, sync):
    with Journal(tmp_path, sync=sync) as journal:
        journal.append(b"one")
        size = journal.size
        for after in range(HEAD + 3):
            with pytest.MonkeyPatch.context() as patch:
                full(patch, after)
                with pytest.raises(OSError, match="No space left"):
                    journal.append(b"two")
            assert journal.size == size
            assert journal.number == 1
        assert journal.append(b"three") == 2
    assert reopened(tmp_path) == [b"one", b"three"]


def test_a_journal_that_cannot_undo_a_write_refuses_more_until_opened_again(
    tmp_path, monkeypatch
):
    def broken(*_):
        raise OSError(errno.EIO, "broken disk")

    journal = Journal(tmp_path)
    journal.append(b"one")
    full(monkeypatch, 10)
    monkeypatch.setattr(os, "ftruncate", broken)
    with pytest.raises(OSError, match="No space left"):
        journal.append(b"two")
    monkeypatch.undo()
    with pytest.raises(OSError, match="takes no more records, because a record could not"):
        journal.append(b"three")
    assert history(journal) == [b"one"]
    journal.close()
    with Journal(tmp_path) as journal:
        assert journal.cut.bytes == 10
        assert journal.append(b"four") == 2


@pytest.mark.parametrize("sync", ["always", 0.001])
def test_a_disk_that_does_not_confirm_ends_the_appends(tmp_path, monkeypatch, sync):
    def broken(_):
        raise OSError(errno.EIO, "broken disk")

    journal = Journal(tmp_path, sync=sync)
    monkeypatch.setattr(os, "fsync", broken)
    patience = time.monotonic() + 30
    with contextlib.suppress(OSError):
        while time.monotonic() < patience:
            journal.append(b"one")
            time.sleep(0.001)
    monkeypatch.undo()
    with pytest.raises(OSError, match=r"did not confirm.*open it again"):
        journal.append(b"two")
    journal.close()
    assert len(reopened(tmp_path)) == journal.number


def test_a_full_disk_at_a_new_segment_fails_the_append_and_no_other(tmp_path, monkeypatch):
    state = [bytes(100)]
    with Journal(tmp_path, segment_size=100) as journal:
        journal.append(state[0])
        opened = os.open

        def no_room(path, flags, *mode):
            if flags & os.O_CREAT:
                raise OSError(errno.ENOSPC, "No space left on device")
            return opened(path, flags, *mode)

        monkeypatch.setattr(os, "open", no_room)
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                journal.append(b"two")
        monkeypatch.undo()
        assert journal.append(b"three") == 2
        assert history(journal) == [*state, b"three"]
    assert reopened(tmp_path) == [*state, b"three"]


def test_a_segment_that_was_made_but_not_confirmed_ends_the_appends(tmp_path, monkeypatch):
    replace = os.replace

    def half(*paths):
        replace(*paths)
        raise OSError(errno.EIO, "broken disk")

    journal = Journal(tmp_path)
    journal.append(b"one")
    monkeypatch.setattr(os, "replace", half)
    with pytest.raises(OSError, match="broken disk"):
        journal.snapshot(keep([b"one"]))
    monkeypatch.undo()
    # In the old segment it would overlap the new one.
    with pytest.raises(OSError, match="a new segment could not be finished"):
        journal.append(b"two")
    journal.close()
    filled(tmp_path, [b"two"])
    assert reopened(tmp_path) == [b"one", b"two"]


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


# Records as bytes


LABELS = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(),
        st.integers(-(2**31), 2**31 - 1).map(np.int32),
        st.floats(width=32).map(np.float32), st.floats().map(np.float64),
        st.booleans().map(np.bool_), st.text().map(np.str_), st.binary().map(np.bytes_),
        st.complex_numbers().map(np.complex128),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(), inner, max_size=4),
    ),
    max_leaves=12,
)  # fmt: skip
ARRAYS = arrays_of.arrays(
    st.one_of(
        arrays_of.boolean_dtypes(), arrays_of.integer_dtypes(endianness="?"),
        arrays_of.unsigned_integer_dtypes(), arrays_of.floating_dtypes(endianness="?"),
        arrays_of.complex_number_dtypes(), arrays_of.unicode_string_dtypes(),
        arrays_of.byte_string_dtypes(), arrays_of.datetime64_dtypes(),
    ),
    arrays_of.array_shapes(min_dims=0, min_side=0, max_side=4),
)  # fmt: skip


def same(a, b):
    """Equal in type and in every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.str_ | np.bytes_):
        return list(a) == list(b)
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return struct.pack("d", a) == struct.pack("d", b) if isinstance(a, float) else a == b


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(st.text(), st.one_of(LABELS, ARRAYS, st.tuples(LABELS, ARRAYS))))
def test_records_round_trip_bit_by_bit(record):
    payload = encode(record)
    assert same(decode(payload), record)
    assert encode(decode(payload)) == payload


VALUES = [
    "1", 1, 1.0, True, None, 0.0, -0.0, False, "", "\ud800", "$tuple", {"$int": "0x1"}, {}, (),
    [], ("a", (1, [2.5])), 10**5000, -(2**64), 2**63, 5e-324, math.inf, -math.nan,
    struct.unpack("<d", bytes.fromhex("010000000000f87f"))[0], np.float64("nan"),
    np.datetime64("2020-01-01", "D"), np.timedelta64("NaT"), np.longdouble(1) / 3,
    np.str_("a\0"), np.array("x"), np.array([""]), np.zeros((0, 3)), np.array(["a", "bcd"]),
    np.array([], "U"), np.zeros(2, "U0"),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_stay_what_they_are(value):
    assert same(decode(encode({"value": value})), {"value": value})


def test_arrays_keep_their_memory_order_and_are_copies():
    x = np.arange(24.0).reshape(2, 3, 4)
    for array in (x, np.asfortranarray(x), x[0].T, x[:, ::2], x[..., 1], x[::-1]):
        back = decode(encode({"x": array}))["x"]
        assert same(back, array)
        assert back.flags.writeable
        if array.flags.forc:
            assert back.flags.c_contiguous == array.flags.c_contiguous
            assert back.flags.f_contiguous == array.flags.f_contiguous


OTHERS = [
    b"bytes", {1, 2}, 1j, object(), len, {1: "key"}, {np.str_("a"): 1}, np.array([None]),
    np.ma.masked_array([1.0]), np.zeros(2, [("a", int)]), [1, {"a": {2}}], float, Path("a"),
    np.void(b"a"), signal.SIGKILL, {10**5000: 1},
]  # fmt: skip


@pytest.mark.parametrize("value", OTHERS, ids=lambda value: type(value).__name__)
def test_other_values_are_refused(value):
    with pytest.raises(TypeError, match=r"record\['value'\].*(cannot hold|keys of records)"):
        encode({"value": value})


def test_records_that_are_not_dictionaries_or_contain_themselves_are_refused():
    with pytest.raises(TypeError, match="a record is a dictionary, not list"):
        encode([1])
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        encode({"loop": loop})


def test_bytes_that_are_no_record_are_refused():
    payload = encode({"a": np.arange(3), "b": ("c", math.inf)})
    for size in range(len(payload)):
        with pytest.raises(FileFormatError):
            decode(payload[:size])
    for wrong in (b"", b"\x80\x04.", bytes(100), payload + b"0"):
        with pytest.raises(FileFormatError, match="not a record"):
            decode(wrong)
    with pytest.raises(FileFormatError, match="upgrade"):
        decode(payload.replace(b'"format":1', b'"format":2'))
    with pytest.raises(FileFormatError, match=r"\$tupla, unknown"):
        decode(payload.replace(b"$tuple", b"$tupla"))


def test_models_and_records_live_in_one_journal(tmp_path):
    from imparo import KernelRegressor

    X, y = np.random.default_rng(0).normal(size=(2, 10, 1))
    model = KernelRegressor(penalty=0.1).fit(X, y[:, 0])
    with Journal(tmp_path) as journal:
        journal.append(encode({"X": X, "y": y}))
        journal.snapshot(lambda path: save(model, path))
        journal.append(encode({"X": X[:1], "label": "cup"}))
    with Journal(tmp_path) as journal:
        assert (load(journal.snapshot_path).predict(X) == model.predict(X)).all()
        ((number, payload),) = journal.records()
        assert number == 2
        assert same(decode(payload), {"X": X[:1], "label": "cup"})
