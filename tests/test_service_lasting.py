"""What years do to a service, and what is told of work that ended in the middle."""

import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import websockets.exceptions
import websockets.sync.client
from fastapi import FastAPI
from fastapi.testclient import TestClient

from imparo.cli import serve as command
from imparo.journal import encode
from imparo.service import Limits, Settings, album, create_app
from imparo.service.album import Album, Lesson
from imparo.service.errors import Refused
from imparo.service.streams import Stream
from imparo.service.tokens import Doorkeeper
from service_tools import connected, frame, in_process, served, until

ROWS = np.random.default_rng(0).normal(size=(60, 3))
LABELS = ["mug", "ball", "car"] * 20


def make(client, name="toys", **more):
    made = client.post("/api/learners", json={"name": name, "kind": "classifier", **more})
    assert made.status_code == 201, made.text


def teach(client, name="toys", rows=ROWS, labels=LABELS):
    sent = {"inputs": np.asarray(rows).tolist(), "labels": labels}
    return client.post(f"/api/learners/{name}/teach", json=sent)


def live_of(client, name="toys"):
    return client.app.service.learners.find(name).at_work()


def full_after(live, parts, room=16):
    """Let a disk be full after so many parts of a block."""
    learn, learned = live.learner.learn, []
    live.desk.room, live.desk._pace = room, lambda rows, seconds: None

    def full(X, y):
        if len(learned) == parts:
            raise OSError(28, "No space left on device")
        learned.append(len(X))
        return learn(X, y)

    live.learner.learn = full
    return learn


# An end in the middle: who sends all of it again would teach a part twice.


def test_of_a_block_that_was_learned_in_part_the_rest_can_be_sent(tmp_path):
    with in_process(tmp_path) as client:
        make(client)
        live = live_of(client)
        learn = full_after(live, parts=2)
        answer = teach(client)
        assert answer.status_code == 409
        assert "retry-after" not in answer.headers
        assert answer.json()["learned"] == 32
        assert "32 of 60 rows were learned" in answer.json()["error"]
        # With nothing learned it may be sent again, as it is.
        answer = teach(client)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
        assert set(answer.json()) == {"error"}
        live.learner.learn = learn
        assert teach(client, rows=ROWS[32:], labels=LABELS[32:]).json()["n_seen"] == 60


def test_the_same_over_a_stream(tmp_path):
    with in_process(tmp_path) as client:
        make(client)
        full_after(live_of(client), parts=1)
        address = "/api/learners/toys/stream"
        with client.websocket_connect(address, headers={"host": "localhost"}) as socket:
            sent = {"inputs": ROWS.tolist(), "labels": LABELS}
            socket.send_json({"id": 1, "teach": sent})
            told = socket.receive_json()
        assert (told["id"], told["status"], told["learned"]) == (1, 409, 16)


def test_whoever_is_cut_off_is_told_that_it_may_be_done(tmp_path):
    async def cut_off(method, path="/toys/teach", **more):
        app = create_app(Settings(tmp_path / f"{method}{path}{len(more)}".replace("/", "-")))
        begun, sent = asyncio.Event(), []

        async def stand_still(*_):
            begun.set()
            await asyncio.sleep(60)

        async def send(message):
            sent.append(message)

        app._app = stand_still
        scope = {
            "type": "http", "method": method, "path": f"/api/learners{path}",
            "query_string": b"", "headers": [(b"host", b"localhost")],
            "client": ("127.0.0.1", 1), **more,
        }  # fmt: skip
        task = asyncio.create_task(app(scope, None, send))
        await begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return sent[0]["status"], json.loads(sent[1]["body"])

    status, told = asyncio.run(cut_off("POST"))
    assert (status, told["learned"]) == (409, None)
    assert "may have been done" in told["error"]
    for method, path, more in (
        ("GET", "", {}),
        ("POST", "/toys/ask", {}),
        ("POST", "/toys/teach", {"imparo.key": True}),
    ):
        status, told = asyncio.run(cut_off(method, path, **more))
        assert (status, set(told)) == (503, {"error"})


def test_streams_answer_what_they_have_taken_before_the_service_ends(tmp_path):
    program = """
import sys, time
from imparo.lifelong.durable import DurableLearner
learn = DurableLearner.learn
def slow(self, X, y):
    time.sleep(0.7)
    return learn(self, X, y)
DurableLearner.learn = slow
from imparo.service import Settings, serve
from imparo.service.logs import set_up
set_up("json", "info")
serve(Settings(sys.argv[1], port=0))
"""
    with served(tmp_path / "learners", program=program) as service:
        with service.client() as client:
            make(client)
        address = f"ws://localhost:{service.port}/api"
        with (
            websockets.sync.client.connect(f"{address}/learners/toys/stream") as stream,
            websockets.sync.client.connect(f"{address}/robot") as robot,
        ):
            robot.recv(timeout=30)
            stream.send(json.dumps({"id": 1, "teach": {"inputs": [1, 0], "labels": "mug"}}))
            time.sleep(0.2)
            service.process.send_signal(signal.SIGTERM)
            told = json.loads(stream.recv(timeout=10))
            assert (told["id"], told["result"]["n_seen"]) == (1, 1)
            with pytest.raises(websockets.exceptions.ConnectionClosed) as caught:
                stream.recv(timeout=10)
            assert caught.value.rcvd.code == 1012
        assert service.process.wait(20) == 0
        assert service.bugs() == []


def test_who_leaves_before_the_end_of_a_request_is_no_fault_of_the_service(tmp_path):
    with served(tmp_path / "learners") as service, service.client() as client:
        make(client)
        for path, method in (("teach", "POST"), ("ask", "POST"), ("rename", "POST")):
            with connected(service) as bare:
                bare.sendall(
                    f"{method} /api/learners/toys/{path} HTTP/1.1\r\nHost: localhost\r\n"
                    "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
                )
                time.sleep(0.1)
        found = []

        def counted():
            lines = client.get("/metrics").text.splitlines()
            found[:] = [line for line in lines if line.startswith("imparo_requests_total{")]
            return sum('status="400"' in line for line in found) == 3

        until(counted)
        assert not any('status="5' in line for line in found)


# Years.


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


def test_who_does_not_read_does_not_hold_up_the_end(tmp_path):
    with served(tmp_path / "learners") as service:
        with service.client() as client:
            make(client)
            assert teach(client).is_success
        with connected(service) as bare:
            bare.sendall(
                b"GET /api/learners/toys/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: "
                b"websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            text = json.dumps({"id": 1, "ask": {"inputs": [[1, 0, 0]] * 1500}}).encode()
            bare.settimeout(1.0)
            with contextlib.suppress(OSError):
                for _ in range(400):  # until nothing goes in any more
                    bare.sendall(frame(text))
            start = time.monotonic()
            service.process.send_signal(signal.SIGTERM)
            assert service.process.wait(20) == 0
            assert time.monotonic() - start < 8  # the grace of requests is ten seconds
            assert service.bugs() == []


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
        client.app.service.exports = 8
        answer = client.get("/api/learners/toys/export")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        client.app.service.exports = 7
        assert client.get("/api/learners/toys/export").is_success
        assert client.app.service.exports == 7


def test_messages_that_wait_are_counted_until_they_are_answered(tmp_path):
    limits = Limits(arriving_bytes=100_000)
    with in_process(tmp_path, limits=limits) as client:
        make(client)
        teach(client)
        service = client.app.service
        begun, go_on = threading.Event(), threading.Event()

        def work():
            begun.set()
            assert go_on.wait(30)

        holder = threading.Thread(target=lambda: asyncio.run(live_of(client).change(work)))
        holder.start()
        assert begun.wait(30)
        text = json.dumps({"id": 1, "teach": {"inputs": [1, 2, 3], "labels": "mug"}})
        with client.websocket_connect(
            "/api/learners/toys/stream", headers={"host": "localhost"}
        ) as socket:
            for _ in range(6):  # of which three have room
                socket.send_text(text + " " * 30_000)
            told = [socket.receive_json() for _ in range(3)]
            assert {one["status"] for one in told} == {503}
            assert all("arriving" in one["error"] for one in told)
            assert 90_000 < service.arriving._held < 100_000
            go_on.set()
            told = [socket.receive_json() for _ in range(3)]
            assert all("result" in one for one in told)
        holder.join()
        until(lambda: service.arriving._held == 0)


# One that is busy does not stand in the way of the others.


@pytest.fixture
def holding():
    """Let a learner be at work until it may go on."""
    threads, go_on = [], threading.Event()

    def hold(live):
        begun = threading.Event()

        def work():
            begun.set()
            assert go_on.wait(30)

        thread = threading.Thread(target=lambda: asyncio.run(live.change(work)))
        threads.append(thread)
        thread.start()
        assert begun.wait(30)

    hold.go_on = go_on.set
    yield hold
    go_on.set()
    for thread in threads:
        thread.join()


def test_after_a_start_the_list_tells_of_busy_learners_too(tmp_path, holding):
    with in_process(tmp_path) as client:
        for name in ("busy", "idle"):
            make(client, name)
            teach(client, name)
    with in_process(tmp_path, limits=Limits(answer_seconds=0.2)) as client:
        holding(live_of(client, "busy"))
        answer = client.get("/api/learners")
        assert answer.status_code == 200
        told = {state["name"]: state["n_seen"] for state in answer.json()["learners"]}
        assert told == {"busy": 60, "idle": 60}
        holding.go_on()


def test_the_list_tells_what_was_known_when_a_merge_began(tmp_path, monkeypatch):
    with in_process(tmp_path) as client:
        for name in ("one", "two"):
            make(client, name)
            teach(client, name)
        live = live_of(client, "one")
        merge, begun, go_on = live.learner.merge, threading.Event(), threading.Event()

        def slow(other):
            begun.set()
            assert go_on.wait(30)
            return merge(other)

        live.learner.merge = slow
        merging = threading.Thread(
            target=lambda: client.post("/api/learners/one/merge", json={"other": "two"})
        )
        merging.start()
        assert begun.wait(30)
        told = {
            one["name"]: one["n_seen"] for one in client.get("/api/learners").json()["learners"]
        }
        assert told == {"one": 60, "two": 60}
        go_on.set()
        merging.join()
        assert client.get("/api/learners/one").json()["n_seen"] == 120


def test_deletions_wait_for_their_turn_and_hold_nobody_up(tmp_path, holding):
    names = [f"n{k}" for k in range(12)]
    with in_process(tmp_path, limits=Limits(answer_seconds=0.5)) as client:
        for name in names:
            make(client, name)
            teach(client, name)
            holding(live_of(client, name))
        told = []
        threads = [
            threading.Thread(
                target=lambda name=name: told.append(client.delete(f"/api/learners/{name}"))
            )
            for name in names
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        start = time.monotonic()
        make(client, "another")  # which is made in a thread, too
        assert time.monotonic() - start < 10
        for thread in threads:
            thread.join()
        assert {answer.status_code for answer in told} == {503}
        holding.go_on()
        assert client.delete("/api/learners/n0").status_code == 204
        assert client.get("/api/learners/n0").status_code == 404
        assert client.get("/api/learners/n1").json()["n_seen"] == 60


# What is around it.


def test_an_application_that_has_ended_says_that_it_is_not_started_again(tmp_path):
    app = create_app(Settings(tmp_path))
    with TestClient(app, base_url="http://localhost"):
        pass
    with pytest.raises(RuntimeError, match="make another one with create_app"):  # noqa: SIM117
        with TestClient(app, base_url="http://localhost"):
            pass


def test_a_damaged_package_is_told_as_that(tmp_path, monkeypatch):
    from service_tools import drawing

    with in_process(tmp_path) as client:
        make(client, features="network")
        # It can be found, and not be imported.
        folder = tmp_path / "damaged"
        folder.mkdir()
        (folder / "onnxruntime.py").write_text("raise ImportError('no libgomp here')")
        monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
        monkeypatch.syspath_prepend(folder)
        client.app.service._network = None
        answer = client.post(
            "/api/learners/toys/teach/image?label=mug", content=drawing(),
            headers={"content-type": "image/png"},
        )  # fmt: skip
        assert answer.status_code == 503
        assert "onnxruntime" in answer.json()["error"]
        assert "no libgomp here" in answer.json()["error"]


def test_two_services_of_one_machine_do_not_log_each_other_out(tmp_path):
    # Browsers share cookies between ports, by their names.
    keepers = [Doorkeeper(f"a-token-of-sixteen-{k}", tls=False) for k in range(2)]
    pairs = [keeper.cookie().split(";")[0] for keeper in keepers]
    jar = dict(pair.split("=") for pair in pairs)
    header = "; ".join(f"{name}={value}" for name, value in jar.items()).encode()
    assert all(keeper.admits({b"cookie": header}) for keeper in keepers)
    swapped = pairs[0].split("=")[0] + "=" + pairs[1].split("=")[1]
    assert not any(keeper.admits({b"cookie": swapped.encode()}) for keeper in keepers)


def test_the_cookie_of_a_mounted_service_is_for_its_path(tmp_path):
    token = "a-token-of-some-length"
    inner = create_app(Settings(tmp_path, token=token))
    program = FastAPI(lifespan=lambda program: inner.lifespan())
    program.mount("/teach", inner)
    with TestClient(program, base_url="http://localhost", follow_redirects=False) as client:
        for answer in (
            client.get(f"/teach/?token={token}"),
            client.post("/teach/api/session", data={"token": token}),
        ):
            assert "Path=/teach;" in answer.headers["set-cookie"]


def test_any_token_can_be_in_the_link(tmp_path, monkeypatch):
    token, opened = "a+b&c#d%20e/f?g=héé ü", []
    monkeypatch.setattr(command.click, "launch", opened.append)
    monkeypatch.setattr(
        "imparo.service.serve", lambda settings, told, **more: told("http://localhost:1/")
    )
    command.serve.main(
        [str(tmp_path), "--token", token, "--open"], standalone_mode=False, prog_name="serve"
    )
    (link,) = opened
    with in_process(tmp_path / "learners", token=token) as client:
        answer = client.get(link.removeprefix("http://localhost:1"), follow_redirects=False)
        assert answer.status_code == 303


def test_a_merge_takes_over_no_picture_of_what_the_other_forgot_meanwhile(
    tmp_path, monkeypatch
):
    from service_tools import drawing

    with in_process(tmp_path) as client:
        for name in ("one", "two"):
            make(client, name, features="pixels")
        for name, label in (("one", "ring"), ("two", "disc"), ("two", "dot")):
            told = client.post(
                f"/api/learners/{name}/teach/image?label={label}", content=drawing(),
                headers={"content-type": "image/png"},
            )  # fmt: skip
            assert told.is_success
        other = live_of(client, "two")
        state = other.album.state

        def late():  # forgotten after its pictures were looked up
            found = state()
            other.learner.forget("dot")
            return found

        monkeypatch.setattr(other.album, "state", late)
        told = client.post("/api/learners/one/merge", json={"other": "two"})
        assert told.is_success
        assert {part["label"] for part in told.json()["classes"]} == {"ring", "disc"}
        album = live_of(client, "one").album
        assert set(album.thumbnails) == set(album.examples) == {'"ring"', '"disc"'}


def test_a_learner_that_cannot_say_what_it_is_leaves_no_thread(tmp_path, monkeypatch):
    with in_process(tmp_path) as client:
        make(client)
        teach(client)
    with monkeypatch.context() as patched:
        patched.setattr(Album, "lately", lambda self, name: 1 / 0)
        with in_process(tmp_path) as client:
            (state,) = client.get("/api/learners").json()["learners"]
            assert state["status"] == "damaged"
            names = {thread.name for thread in threading.enumerate()}
            assert "imparo-toys" not in names
    with in_process(tmp_path) as client:
        assert client.get("/api/learners/toys").json()["n_seen"] == 60


def test_words_that_are_no_method_make_no_metrics(tmp_path):
    with in_process(tmp_path) as client:
        for word in ("BREW", "PROPFIND", "WHENEVER"):
            client.request(word, "/api/learners")
        told = client.get("/metrics").text
        assert 'method="other"' in told
        assert "BREW" not in told


def test_who_is_told_to_wait_is_told_how_long(tmp_path):
    token = "a-token-of-some-length"
    with in_process(tmp_path, token=token) as client:
        for _ in range(12):
            answer = client.get("/?token=wrong", headers={"accept": "text/html"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "6")
        client.app.service.learners.ready = False
        headers = {"authorization": f"Bearer {token}"}
        answer = client.get("/health/ready", headers=headers)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
