"""Learners and the robot over WebSockets: what comes in, what goes out, what is refused."""

import json
import struct

import numpy as np
import pytest
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from imparo import IncrementalClassifier
from imparo.service import Limits, Settings, create_app
from test_service_learners import picture

TOYS = "/api/learners/toys/stream"


@pytest.fixture
def client(tmp_path):
    with opened(tmp_path) as made:
        yield made


def opened(folder, **settings):
    app = create_app(Settings(folder, **settings))
    return TestClient(app, base_url="http://localhost")


def create(client, name="toys", features="vectors"):
    content = {"name": name, "kind": "classifier", "features": features}
    client.post("/api/learners", json=content).raise_for_status()


def examples(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] > 0, "a", "b").tolist()


def connected(client, path):
    return client.websocket_connect(path, headers={"host": "localhost"})


def exchange(socket, **message):
    socket.send_json(message)
    return socket.receive_json()


def binary(header, image):
    text = json.dumps(header).encode()
    return struct.pack("<I", len(text)) + text + image


def test_examples_and_questions_go_in_and_answers_come_out(client):
    create(client)
    X, y = examples(50)
    with connected(client, TOYS) as socket:
        for i in range(40):
            told = exchange(socket, id=i, teach={"inputs": X[i].tolist(), "labels": y[i]})
            assert (told["id"], told["result"]["n_seen"]) == (i, i + 1)
        found = exchange(socket, id="x", ask={"inputs": X[40:].tolist()})["result"]
    local = IncrementalClassifier().partial_fit(X[:40], y[:40])
    assert found["answers"] == local.predict(X[40:]).tolist()


def test_messages_are_answered_though_none_is_waited_for(client):
    create(client)
    X, y = examples(100)
    with connected(client, TOYS) as socket:
        for i in range(100):
            socket.send_json({"id": i, "teach": {"inputs": X[i].tolist(), "labels": y[i]}})
        told = [socket.receive_json() for _ in range(100)]
    assert sorted(one["id"] for one in told) == list(range(100))
    assert all("result" in one for one in told)
    assert client.get("/api/learners/toys").json()["n_seen"] == 100


def test_who_watches_hears_of_what_others_teach(client):
    create(client)
    X, y = examples(10)
    with connected(client, TOYS) as socket:
        assert exchange(socket, id=1, watch=True)["result"] == {"watching": True}
        first = socket.receive_json()
        assert (first["event"], first["state"]["n_seen"]) == ("state", 0)
        content = {"inputs": X.tolist(), "labels": y}
        client.post("/api/learners/toys/teach", json=content).raise_for_status()
        told = socket.receive_json()
        while told["state"]["n_seen"] == 0:
            told = socket.receive_json()
        assert {part["label"]: part["shown"] for part in told["state"]["classes"]} == {
            label: y.count(label) for label in set(y)
        }
        client.delete("/api/learners/toys").raise_for_status()
        assert "no learner" in exchange(socket, id=2, ask={"inputs": [1, 2, 3]})["error"]


def test_images_follow_their_header(client):
    create(client, features="pixels")
    with connected(client, TOYS) as socket:
        for seed in range(3):
            for label in ("circle", "line"):
                header = {"id": seed, "teach_image": {"label": label}}
                socket.send_bytes(binary(header, picture(label, seed)))
                assert "result" in socket.receive_json()
        socket.send_bytes(binary({"id": 9, "ask_image": {}}, picture("line", 7)))
        assert socket.receive_json()["result"]["answer"] == "line"
    (circle, _) = client.get("/api/learners/toys").json()["classes"]
    assert len(circle["thumbnails"]) == 3


@pytest.mark.parametrize(
    ("message", "status", "said"),
    [
        ("not json", 422, "not JSON"),
        ("[1, 2]", 422, "JSON object"),
        ("{}", 422, "one of teach, ask"),
        ('{"teach": {}, "ask": {}}', 422, "one of teach, ask"),
        ('{"dance": true}', 422, "one of teach, ask"),
        ('{"teach": {"inputs": [1, 2, 3]}}', 422, "send labels"),
        ('{"teach": {"inputs": [1, 2], "labels": "a"}}', 422, "takes 3"),
        ('{"ask": {"inputs": [NaN, 1, 2]}}', 422, "finite"),
        ('{"ask": {"inputs": [1, 2, 3], "recoding": 7}}', 422, "recoding"),
        ('{"ask_image": {}}', 422, "binary messages"),
        ('{"watch": "yes please"}', 422, "bool"),
        ("[" * 100_000, 422, "not JSON"),
        (b"", 422, "length of its JSON header"),
        (b"\xff\xff\xff\xff{}", 422, "longer than the message"),
        (binary({"id": 5, "ask_image": {}}, b"no image"), 422, "takes vectors"),
    ],
)
def test_what_makes_no_sense_is_said_and_the_stream_goes_on(client, message, status, said):
    create(client)
    X, y = examples(10)
    with connected(client, TOYS) as socket:
        exchange(socket, id=0, teach={"inputs": X.tolist(), "labels": y})
        (socket.send_bytes if isinstance(message, bytes) else socket.send_text)(message)
        told = socket.receive_json()
        assert told["status"] == status
        assert said in told["error"]
        assert "\n" not in told["error"]
        assert exchange(socket, id=1, ask={"inputs": X[0].tolist()})["result"]["answers"]
    assert client.get("/api/learners/toys").json()["n_seen"] == 10


def test_a_stream_to_nobody_says_so_and_ends(client):
    with connected(client, "/api/learners/nobody/stream") as socket:
        assert "no learner 'nobody'" in socket.receive_json()["error"]
        with pytest.raises(WebSocketDisconnect):
            socket.receive_json()


def test_sockets_are_counted_and_limited(tmp_path):
    with opened(tmp_path, limits=Limits(sockets=1)) as client:
        create(client)
        with connected(client, TOYS) as first:
            assert exchange(first, id=1, watch=False)["result"] == {"watching": False}
            with connected(client, TOYS) as second:
                assert "the most here" in second.receive_json()["error"]
        with connected(client, TOYS) as third:
            assert exchange(third, id=1, watch=False)["result"] == {"watching": False}


def test_messages_count_as_requests(tmp_path):
    with opened(tmp_path) as client:
        create(client)
    limits = Limits(rate=0.5)  # one at once, which opens the socket, and the next in 2 s
    with opened(tmp_path, limits=limits) as client, connected(client, TOYS) as socket:
        told = exchange(socket, id=1, watch=False)
        assert told["status"] == 429
        assert "too many messages" in told["error"]


# The robot.


def test_the_arm_plays_obeys_and_ends_with_its_socket(client):
    with connected(client, "/api/robot") as socket:
        about = socket.receive_json()["about"]
        assert about["learners"] == ["P", "NP", "SP"]
        frames = [socket.receive_json() for _ in range(3)]
        assert [frame["n"] for frame in frames] == [1, 2, 3]
        assert not frames[0]["payload"]
        socket.send_json({"do": "payload", "on": True})
        assert any(socket.receive_json().get("payload") for _ in range(20))
        socket.send_json({"do": "dance"})
        told = [socket.receive_json() for _ in range(20)]
        assert sum("error" in one for one in told) == 1
        socket.send_text("not json")
        assert any("error" in socket.receive_json() for _ in range(20))


def test_only_so_many_arms_move_at_once(tmp_path):
    limits = Limits(robots=0)
    with opened(tmp_path, limits=limits) as client, connected(client, "/api/robot") as socket:
        assert "arms are moving" in socket.receive_json()["error"]
