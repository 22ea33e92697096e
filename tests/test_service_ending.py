"""What is told of work that ended in the middle, and how the service ends."""

import asyncio
import json
import signal
import time

import pytest
import websockets.exceptions
import websockets.sync.client
from fastapi.testclient import TestClient

from imparo.service import Settings, create_app
from service_tools import (
    LABELS,
    ROWS,
    connected,
    flood,
    frame,
    in_process,
    live_of,
    make,
    served,
    slowly,
    teach,
    until,
    upgraded,
)


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
    with served(tmp_path / "learners", program=slowly(0.7)) as service:
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


def test_who_does_not_read_does_not_hold_up_the_end(tmp_path):
    with served(tmp_path / "learners") as service:
        with service.client() as client:
            make(client)
            assert teach(client).is_success
        with upgraded(service) as bare:
            text = json.dumps({"id": 1, "ask": {"inputs": [[1, 0, 0]] * 1500}}).encode()
            bare.settimeout(2.0)
            with pytest.raises(TimeoutError):  # once nothing goes in any more
                flood(bare, frame(text))
            start = time.monotonic()
            service.process.send_signal(signal.SIGTERM)
            assert service.process.wait(20) == 0
            assert time.monotonic() - start < 8  # the grace of requests is ten seconds
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


def test_an_application_that_has_ended_says_that_it_is_not_started_again(tmp_path):
    app = create_app(Settings(tmp_path))
    with TestClient(app, base_url="http://localhost"):
        pass
    again = TestClient(app, base_url="http://localhost")
    with pytest.raises(RuntimeError, match="make another one with create_app"), again:
        pass
