"""What must not grow: files, memory and metrics, over years or in a minute."""

import asyncio
import contextlib
import gc
import json
import os
import zipfile
from pathlib import Path

import numpy as np

from imparo.journal import encode
from imparo.service import Limits, album
from imparo.service.album import Album, Lesson
from imparo.service.errors import Refused
from imparo.service.streams import Stream
from service_tools import (
    LABELS,
    at_work,
    connected,
    in_process,
    live_of,
    make,
    served,
    teach,
    until,
)


def test_an_album_that_is_opened_often_does_not_grow(tmp_path, monkeypatch):
    monkeypatch.setattr(album, "_RECORDS", 2000)

    def lesson(k):
        return Lesson(k, 1, [('"mug"', '"ball"', 1)], 0, None, 0.001, 1000)

    n = 0
    for _ in range(40):
        kept = Album(tmp_path)
        for _ in range(10):  # by far too few for a snapshot
            n += 1
            kept.note(lesson(n))
        assert kept.size < len(encode(kept.state())) + 2 * 2000
        kept.close()
    kept = Album(tmp_path)
    assert kept.confusion['"mug"', '"ball"'] == n == 400
    kept.close()


def test_an_album_on_a_full_disk_opens(tmp_path, monkeypatch):
    kept = Album(tmp_path)
    for k in range(10):
        kept.add_picture("mug" if k % 2 else "ball", b"\xff\xd8" + bytes([k]) * 50)
    kept.close()

    def full(self, write):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(album, "_RECORDS", 100)
    monkeypatch.setattr(album.Journal, "snapshot", full)
    kept = Album(tmp_path)
    assert {label: len(found) for label, found in kept.thumbnails.items()} == {
        '"mug"': 5, '"ball"': 5,
    }  # fmt: skip
    kept.close()


def test_who_wishes_to_watch_and_leaves_at_once_is_not_watched_for(tmp_path):
    class Leaving:
        """A socket whose client sends a wish and a farewell in one piece."""

        client, scope = None, {}

        def __init__(self):
            self.messages = [
                {"type": "websocket.receive", "text": '{"id": 1, "watch": true}'},
                {"type": "websocket.disconnect"},
            ]

        async def receive(self):
            return self.messages.pop(0)

        async def send_text(self, text):
            raise RuntimeError("it has gone")

    with in_process(tmp_path) as client:
        make(client)

        async def run():
            await Stream(Leaving(), client.app.service, "toys").run()
            await asyncio.sleep(0.2)
            return len(asyncio.all_tasks()) - 1

        assert asyncio.run(run()) == 0
        assert not live_of(client)._watchers


def test_messages_that_are_refused_leave_nothing_behind(tmp_path):
    wrong = [{"inputs": [1, None]}, {"inputs": [10**400, 0]}, {"inputs": 1}, {"inputs": []}]
    with in_process(tmp_path) as client:
        make(client)
        for _ in range(5):
            with client.websocket_connect(
                "/api/learners/toys/stream", headers={"host": "localhost"}
            ) as socket:
                for sent in wrong:
                    for kind in ("teach", "ask"):
                        socket.send_json({"id": 1, kind: sent})
                        assert socket.receive_json()["status"] == 422
                    assert teach(client, rows=[[1.0]], labels=[None]).status_code == 422
        until(lambda: client.app.service.sockets == 0)
        gc.collect()
        held = [one for one in gc.get_objects() if isinstance(one, Stream | Refused)]
        assert held == []


def test_messages_that_wait_are_counted_until_they_are_answered(tmp_path):
    limits = Limits(arriving_bytes=100_000)
    with in_process(tmp_path, limits=limits) as client:
        make(client)
        teach(client)
        service = client.app.service
        text = json.dumps({"id": 1, "teach": {"inputs": [1, 2, 3], "labels": "mug"}})
        with client.websocket_connect(
            "/api/learners/toys/stream", headers={"host": "localhost"}
        ) as socket:
            with at_work(live_of(client)):
                for _ in range(6):  # of which three have room
                    socket.send_text(text + " " * 30_000)
                told = [socket.receive_json() for _ in range(3)]
                assert {one["status"] for one in told} == {503}
                assert all("arriving" in one["error"] for one in told)
                assert 90_000 < service.arriving._held < 100_000
            told = [socket.receive_json() for _ in range(3)]
            assert all("result" in one for one in told)
        until(lambda: service.arriving._held == 0)


def test_memory_is_kept_for_classes_too(tmp_path):
    def size(classes):  # of factors and coefficients
        return 8 * 150 * (150 + classes)

    limits = Limits(memory=size(250) + size(0))
    names = [f"thing {k}" for k in range(300)]
    rows = np.random.default_rng(0).normal(size=(300, 150))
    with in_process(tmp_path, limits=limits) as client:
        for name in ("toys", "more"):
            make(client, name, parameters={"penalty": 1, "n_inputs": 150, "intercept": False})
        refused = teach(client, rows=rows, labels=names)
        assert refused.status_code == 413
        assert "features, or classes" in refused.json()["error"]
        assert client.get("/api/learners/toys").json()["n_seen"] == 0
        assert teach(client, rows=rows[:100], labels=names[:100]).is_success
        told = [
            teach(client, "more", rows=rows[k : k + 1], labels=names[k : k + 1]).status_code
            for k in range(300)
        ]
        taken = told.count(200)
        assert told == [200] * taken + [413] * (300 - taken)
        assert size(100) + size(taken) <= limits.memory
        # Names that are known need no more.
        assert teach(client, "more", rows=rows[:taken], labels=names[:taken]).is_success


def test_a_merge_for_which_there_is_no_memory_is_refused(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 100))

    def begin(client):
        for name in ("one", "two"):
            known = {"penalty": 1, "n_inputs": 100, "intercept": False}
            make(client, name, parameters=known)
            assert teach(client, name, rows, [f"{name} {k}" for k in range(60)]).is_success
        return client.get("/api/learners/two").json()["memory"]

    def merged(client):
        return client.post("/api/learners/one/merge", json={"other": "two"})

    with in_process(tmp_path / "large") as client:
        size = begin(client)
        assert merged(client).json()["n_seen"] == 120
    # Enough for both, and not for one with the classes of both beside the other.
    limits = Limits(memory=size + 8 * 100 * (100 + 90))
    with in_process(tmp_path / "small", limits=limits) as client:
        begin(client)
        assert merged(client).status_code == 413
        assert client.get("/api/learners/one").json()["n_seen"] == 60
        # One that is refused for another reason keeps no room.
        entry = client.app.service.learners.find("one")
        before = entry.reserved
        make(client, "slim", parameters={"penalty": 1})
        assert teach(client, "slim", np.eye(3), ["x", "y", "z"]).is_success
        told = client.post("/api/learners/one/merge", json={"other": "slim"})
        assert told.status_code == 422
        assert entry.reserved == before


def test_a_learner_larger_than_the_first_zip_files_can_be_exported(tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10_000)
    with in_process(tmp_path) as client:
        make(client, parameters={"n_inputs": 60})
        assert teach(client, rows=np.eye(60), labels=LABELS).is_success
        content = client.get("/api/learners/toys/export").content
        assert len(content) > 10_000
        answer = client.post("/api/import?name=again", content=content)
        assert answer.status_code == 201, answer.text
        assert answer.json()["n_seen"] == 60


def test_an_export_whose_reader_leaves_keeps_no_file(tmp_path):
    with served(tmp_path / "learners") as service, service.client() as client:
        make(client, parameters={"penalty": 1.0, "n_inputs": 1500})
        assert teach(client, rows=np.eye(3, 1500), labels=LABELS[:3]).is_success

        def left():
            held = 0
            for path in Path(f"/proc/{service.process.pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    held += "(deleted)" in os.readlink(path)
            return held

        for _ in range(20):  # more than may be on their way at once
            with connected(service) as bare:
                bare.sendall(
                    b"GET /api/learners/toys/export HTTP/1.1\r\nHost: localhost\r\n\r\n"
                )
                assert bare.recv(1000).startswith(b"HTTP/1.1 200")
            until(lambda: left() == 0)
        assert client.get("/api/learners/toys/export").is_success


def test_only_so_many_exports_are_on_their_way(tmp_path):
    with in_process(tmp_path) as client:
        make(client)
        assert teach(client).is_success
        client.app.service.exporting = asyncio.Semaphore(0)
        answer = client.get("/api/learners/toys/export")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        client.app.service.exporting = asyncio.Semaphore(1)
        for _ in range(3):  # each makes room for the next
            assert client.get("/api/learners/toys/export").is_success
        client.app.service.learners.find("toys").live.learner.save = None  # it fails
        for _ in range(3):
            assert client.get("/api/learners/toys/export").status_code == 422


def test_words_that_are_no_method_make_no_metrics(tmp_path):
    with in_process(tmp_path) as client:
        for word in ("BREW", "PROPFIND", "WHENEVER"):
            client.request(word, "/api/learners")
        told = client.get("/metrics").text
        assert 'method="other"' in told
        assert "BREW" not in told
