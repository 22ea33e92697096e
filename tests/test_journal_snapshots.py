"""Snapshots of a journal, crashes at every step, and disks that are full."""

import contextlib
import errno
import os
import random
import shutil
import stat
import time
from pathlib import Path

import pytest

from imparo.errors import FileFormatError
from imparo.journal import Journal
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
