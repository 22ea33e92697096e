"""A journal gives back every record that it acknowledged, or says what is wrong."""

import errno
import math
import os
import shutil
import struct
import threading
import time
import zlib

import pytest

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
    reopened,
    segments,
    snapshots,
)

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
