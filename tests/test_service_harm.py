"""Small requests that ask for much, files that were made to harm: told, and nothing breaks."""

import contextlib
import io
import json
import os
import struct
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import websockets.sync.client

import imparo
from imparo import IncrementalClassifier
from imparo.engine.inverse_roots import absorb_rows
from imparo.journal import decode, encode
from imparo.service.curves import Curve
from imparo.service.settings import Limits
from service_tools import (
    answer_of,
    connected,
    flood,
    frame,
    in_process,
    served,
    serving,
    upgraded,
)

ROWS = np.random.default_rng(0).normal(size=(60, 3))
LABELS = ["mug", "ball", "car"] * 20


@pytest.fixture
def client(tmp_path):
    with in_process(tmp_path / "learners") as client:
        yield client


def make(client, name="toys", kind="classifier", **more):
    return client.post("/api/learners", json={"name": name, "kind": kind, **more})


def teach(client, name="toys", rows=ROWS, labels=LABELS):
    sent = {"inputs": np.asarray(rows).tolist(), "labels": labels}
    return client.post(f"/api/learners/{name}/teach", json=sent)


def bring(client, content, name="new"):
    return client.post(f"/api/import?name={name}", content=content)


def saved(model, folder):
    imparo.save(model, folder / "model.imparo")
    return (folder / "model.imparo").read_bytes()


def repacked(exported, **changed):
    """An exported file with some of its parts changed."""
    with zipfile.ZipFile(io.BytesIO(exported)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            change = changed.get(name.partition(".")[0], lambda content: content)
            archive.writestr(name, change(content))
    return buffer.getvalue()


# Requests.


def test_a_million_bad_labels_are_told_as_one(client):
    make(client)
    sent = json.dumps({"inputs": [1, 2], "labels": [{}] * 1_000_000}).encode()
    answer = client.post("/api/learners/toys/teach", content=sent,
                         headers={"content-type": "application/json"})  # fmt: skip
    assert answer.status_code == 422
    assert answer.json()["error"] == (
        "labels: a label must be text, a whole number, true or false"
    )


@pytest.mark.parametrize(
    ("path", "sent", "said"),
    [
        ("learners", {"name": "a b", "kind": "classifier"}, "name must have 1 to 64 letters"),
        ("learners", {"name": "a"}, "kind must be"),
        ("learners", {"name": "a", "kind": "regressor", "parameter": {}}, "'parameter'; known"),
        ("learners", {"name": "a", "kind": "classifier", "parameters": {"recoding": 3}},
         "parameters.recoding: it must be less than or equal to 1, or it must be 'auto'"),
        ("learners", {"name": "a", "kind": "classifier", "parameters": {"alpha": 3}},
         "there is no 'alpha'; known are fourier"),
        ("learners", {"name": "a", "kind": "regressor", "parameters": {"n_outputs": 65}},
         "at most 64"),
        ("learners/toys/teach", {"inputs": [1, 2, 3], "label": "mug"},
         "there is no 'label'; known are inputs, labels, outputs"),
        ("learners/toys/teach", {"inputs": [1, 2, 3], "labels": 1.5}, "whole number"),
        ("learners/toys/teach", {"inputs": [1, 2, 3], "labels": 10**30}, "within ±2^53"),
        ("learners/toys/teach", {"inputs": [1, 2, 1e200], "labels": "mug"}, "beyond 1e100"),
        ("learners/toys/teach", [1], "the body must be a JSON object"),
        ("learners/toys/forget", {}, "label is missing; send it"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_the_words_of_who_sent_it(client, path, sent, said):
    make(client)
    answer = client.post(f"/api/{path}", json=sent)
    assert answer.status_code in (413, 422)
    assert said in answer.json()["error"]
    assert "Input should" not in answer.json()["error"]


def test_json_without_its_content_type_is_told_so(client):
    answer = client.post("/api/learners", content=b'{"name": "a", "kind": "classifier"}')
    assert answer.status_code == 415
    assert "Content-Type: application/json" in answer.json()["error"]


def test_an_answer_has_at_most_so_many_numbers(client):
    make(client, parameters={"penalty": 1.0})
    classes = 300
    assert teach(client, rows=np.eye(classes, 4), labels=list(range(classes))).is_success
    rows = np.zeros((1000, 4)).tolist()
    answer = client.post("/api/learners/toys/ask", json={"inputs": rows})
    assert answer.status_code == 413
    assert "ask 873 rows at once" in answer.json()["error"]
    answer = client.post("/api/learners/toys/ask", json={"inputs": rows[:873]})
    assert len(answer.json()["answers"]) == 873


def test_the_form_of_the_token_takes_a_token_and_no_more(tmp_path):
    with in_process(tmp_path / "learners", token="a-token-of-some-length") as client:
        kind = {"content-type": "application/x-www-form-urlencoded"}
        answer = client.post("/api/session", content=b"&".join([b"a=1"] * 50), headers=kind)
        assert answer.status_code == 422
        assert client.post("/api/session", content=b"x" * 5000, headers=kind).status_code == 413


def test_wrong_tokens_that_come_at_once_are_counted_before_they_are_compared(tmp_path):
    environment = {"IMPARO_TOKEN": "a-token-of-some-length"}
    with served(tmp_path / "learners", env={**os.environ, **environment}) as service:

        def wrong(k):
            with connected(service) as bare:
                body = b"token=wrong-wrong-%03d" % k
                bare.sendall(b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nConnection: "
                             b"close\r\nContent-Length: %d\r\n\r\n" % len(body))  # fmt: skip
                time.sleep(0.5)
                bare.sendall(body)
                return answer_of(bare)[0]

        with ThreadPoolExecutor(30) as pool:
            told = list(pool.map(wrong, range(30)))
    assert told.count(422) <= 11
    assert set(told) == {422, 429}


def test_a_right_token_costs_no_try(tmp_path):
    token = "a-token-of-some-length"
    with in_process(tmp_path / "learners", token=token) as client:
        for _ in range(20):
            client.cookies.clear()
            answer = client.post("/api/session", data={"token": token}, follow_redirects=False)
            assert answer.status_code == 303


# What stays in memory, or open.


def test_all_connections_cannot_be_held_by_empty_lines(tmp_path):
    program = serving(header_seconds=0.5, body_seconds=0.5)
    with served(tmp_path / "learners", program=program) as service, connected(service) as bare:
        bare.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
        bare.settimeout(5)
        assert bare.recv(2**16)
        bare.sendall(b"\r\n")
        answer_of(bare)  # until it is closed


def test_a_socket_stays_open_while_nothing_is_said(tmp_path):
    program = serving(header_seconds=0.3, body_seconds=0.3)
    with served(tmp_path / "learners", program=program) as service:
        with service.client() as http:
            make(http)
            assert teach(http).is_success
        address = f"ws://localhost:{service.port}/api"
        with (
            websockets.sync.client.connect(f"{address}/learners/toys/stream") as stream,
            websockets.sync.client.connect(f"{address}/robot") as robot,
        ):
            robot.recv(timeout=30)
            robot.send(json.dumps({"do": "pause", "on": True}))
            time.sleep(2)  # several times as long as a head, or a body, may take
            stream.send(json.dumps({"id": 1, "ask": {"inputs": [1, 2, 3]}}))
            assert "result" in json.loads(stream.recv(timeout=30))
            robot.send(json.dumps({"do": "pause", "on": False}))
            seen = {json.loads(robot.recv(timeout=30)).get("n", 0) for _ in range(40)}
            assert max(seen) > 30


def test_who_does_not_read_is_left(tmp_path):
    program = serving(header_seconds=30, body_seconds=0.5)
    with served(tmp_path / "learners", program=program) as service:
        with service.client() as http:
            make(http, parameters={"penalty": 1.0, "n_inputs": 2000})
            assert teach(http, rows=np.eye(3, 2000), labels=LABELS[:3]).is_success
            size = len(http.get("/api/learners/toys/export").content)
            assert size > 2**24
        with connected(service) as bare:
            bare.sendall(b"GET /api/learners/toys/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(3)
            assert len(answer_of(bare)[1]) < size
        assert service.bugs() == []


def test_who_does_not_read_pongs_is_left_before_there_are_many(tmp_path):
    program = serving(body_seconds=60)
    with served(tmp_path / "learners", program=program) as service:
        with service.client() as http:
            make(http)
        before = service.memory
        with upgraded(service) as bare, pytest.raises(ConnectionError):
            flood(bare, frame(b"x" * 120, opcode=9) * 100)
        assert service.memory < before + 2**25
        assert service.bugs() == []


@pytest.mark.parametrize(
    ("limits", "size"),
    [
        ({"body_seconds": 0.5}, 1000),
        ({"body_seconds": 60, "arriving_bytes": 2**20}, 2 * 2**20),
    ],
    ids=["too slow", "too much"],
)
def test_a_message_that_does_not_end_is_not_waited_for(tmp_path, limits, size):
    with served(tmp_path / "learners", program=serving(**limits)) as service:
        with service.client() as http:
            make(http)
        with upgraded(service, seconds=10) as bare:  # pings would end it after 40
            head = b"\x81\xff" + struct.pack(">Q", 2**22) + b"\0\0\0\0"
            with contextlib.suppress(ConnectionError):
                bare.sendall(head + b" " * size)
                answer_of(bare)  # until it is closed
        with service.client() as http:  # and there is room again
            assert teach(http).is_success


# Files.


def test_what_hides_in_an_array_of_objects_is_looked_at(client, tmp_path):
    model = IncrementalClassifier(penalty=1.0).fit(ROWS, LABELS)
    (recursion,) = model._recursions
    recursion.root = np.ascontiguousarray(recursion.root[:1])
    for hidden in (np.array([recursion, None])[:1], {0: recursion}, [[recursion]]):
        model._recursions = hidden
        answer = bring(client, saved(model, tmp_path))
        assert answer.status_code == 422, answer.text


def test_the_compiled_loop_looks_at_shapes_itself():
    with pytest.raises(ValueError, match="3 features"):
        absorb_rows(np.eye(3)[:1], np.ones((1, 3)))


@pytest.mark.parametrize(
    "points",
    [
        [[1, 1.0, 1], [0, 1.0, 1], [1, 1.0, 1], [0, 1.0, 1]], [[2, 1.0, 1], [2, 1.0, 1]],
        [[1, 1.0, 0]], [[1, 1e308, 1]], [[1, float("nan"), 1]], [[1.5, 1.0, 1]],
        [[k, 1.0, 1] for k in range(1, 6)],
    ],
)  # fmt: skip
def test_a_curve_that_could_not_go_on_is_refused(client, points):
    with pytest.raises(ValueError, match="curve"):
        Curve.of({"most": 4, "step": 1, "points": points})
    make(client)
    teach(client)

    def harmed(content):
        album = decode(content)
        album["curves"]["milliseconds"] = {"most": 4, "step": 1, "points": points}
        return encode(album)

    exported = client.get("/api/learners/toys/export").content
    assert bring(client, repacked(exported, album=harmed)).status_code == 422
    assert bring(client, repacked(exported)).status_code == 201


def test_counts_that_overflow_are_refused(client, tmp_path):
    model = IncrementalClassifier(penalty=1.0).fit(ROWS, LABELS)
    for name, value in (("_shown", [2**63 - 1, 1, 1]), ("n_seen_", 2**60)):
        kept = getattr(model, name)
        setattr(model, name, value)
        assert bring(client, saved(model, tmp_path)).status_code == 422
        setattr(model, name, kept)
    model.n_seen_ = 2**53
    assert bring(client, saved(model, tmp_path), "first").status_code == 201
    assert bring(client, saved(model, tmp_path), "second").status_code == 201
    answer = client.post("/api/learners/first/merge", json={"other": "second"})
    assert answer.status_code == 422
    assert "counted" in answer.json()["error"]
    assert client.get("/api/learners/first").json()["n_seen"] == 2**53


def test_examples_held_out_without_end_are_refused(client, tmp_path):
    model = IncrementalClassifier(penalty=1.0, intercept=False).fit(ROWS[:, :1], LABELS)
    held, n = model._reservoir, 90_000
    held._rows, held._codes = np.ones((n, held._rows.shape[1])), np.zeros(n, np.intp)
    held._weights, held._n, held.capacity = np.ones(n), n, n
    assert bring(client, saved(model, tmp_path)).status_code == 422


@pytest.mark.parametrize(
    "parameters", [{"recoding": -5.0}, {"holdout": None, "recoding": 0.5, "penalty": 1.0}]
)
def test_a_learner_that_could_not_be_asked_is_refused(client, tmp_path, parameters):
    assert (
        bring(client, saved(IncrementalClassifier(**parameters), tmp_path)).status_code == 422
    )


@pytest.mark.parametrize("label", ["a\nb", "\x1b[31m", "\u202e", " ", "x" * 201])
def test_labels_of_files_are_those_that_could_be_taught(client, tmp_path, label):
    model = IncrementalClassifier(penalty=1.0).fit(ROWS, LABELS).rename("mug", label)
    assert bring(client, saved(model, tmp_path)).status_code == 422


def test_robots_have_so_many_links_and_joints(client):
    def robot(n, kind):
        links = "".join(f'<link name="l{k}"/>' for k in range(n + 1))
        joints = "".join(
            f'<joint name="j{k}" type="{kind if k else "revolute"}"><parent link="l{k}"/>'
            f'<child link="l{k + 1}"/><axis xyz="0 0 1"/></joint>' for k in range(n)
        )  # fmt: skip
        return {"urdf": f"<robot name='r'>{links}{joints}</robot>"}

    for n, kind, said in ((5500, "fixed", "links or joints"), (65, "continuous", "64")):
        parameters = {"model": "P", "robot": robot(n, kind)}
        answer = make(client, "arm", "dynamics", parameters=parameters)
        assert answer.status_code in (413, 422)
        assert said in answer.json()["error"]


def test_what_is_said_of_a_robot_must_be_so(client):
    arm = {"dh": [[0.3, 0, 0, 0], [0.2, 0, 0, 0]]}
    new = {"model": "P", "robot": arm, "n_joints": 7}
    answer = make(client, "arm", "dynamics", parameters=new)
    assert answer.status_code == 422
    assert "n_joints=7, and for this robot it is 2" in answer.json()["error"]
    told = make(client, "arm", "dynamics", parameters={"model": "P", "robot": arm}).json()
    assert (told["n_inputs"], told["n_outputs"]) == (6, 2)


# Limits of learners.


def test_memory_is_kept_for_learners_that_have_not_learned_yet(tmp_path):
    limits = Limits(memory=30 * 2**20)
    with in_process(tmp_path / "learners", limits=limits) as client:
        waves = {"fourier": {"sigma": 1.0, "n_features": 1000}, "penalty": 1.0}
        told = [make(client, f"l{k}", parameters=waves).status_code for k in range(6)]
        assert told == [201, 201, 201, 413, 413, 413]
        assert client.delete("/api/learners/l2").status_code == 204
        # Of rows whose width is not known before the first one, that one is refused.
        assert make(client, "wide").status_code == 201
        answer = teach(client, "wide", rows=np.zeros((1, 1500)), labels=["mug"])
        assert answer.status_code == 413
        assert "GB are taken" in answer.json()["error"]
        assert teach(client, "wide", rows=np.zeros((1, 100)), labels=["mug"]).is_success
    # The same after a start.
    with in_process(tmp_path / "learners", limits=limits) as client:
        assert make(client, "more", parameters=waves).status_code == 201
        assert make(client, "again", parameters=waves).status_code == 413


def test_a_merge_keeps_to_the_number_of_classes(tmp_path):
    with in_process(tmp_path / "learners", limits=Limits(classes=5)) as client:
        for name in ("one", "two"):
            make(client, name, parameters={"penalty": 1.0})
            labels = [f"{name} {k}" for k in range(3)]
            assert teach(client, name, rows=np.eye(3), labels=labels).is_success
        answer = client.post("/api/learners/one/merge", json={"other": "two"})
        assert answer.status_code == 413
        assert len(client.get("/api/learners/one").json()["classes"]) == 3


def test_width_and_outputs_that_were_said_are_those_that_are_taken(client):
    make(client, parameters={"n_inputs": 4})
    assert "takes 4" in teach(client).json()["error"]
    make(client, "arm", "regressor", parameters={"n_outputs": 2})
    sent = {"inputs": [1, 2], "outputs": [1]}
    answer = client.post("/api/learners/arm/teach", json=sent)
    assert "has 2" in answer.json()["error"]


def test_true_is_one_for_the_learner_and_for_all_that_is_told(client):
    make(client, parameters={"penalty": 1.0})
    sent = {"inputs": [1, 2, 3], "labels": True}
    for label in (True, 1, True):
        sent["labels"] = label
        assert client.post("/api/learners/toys/teach", json=sent).is_success
    assert client.get("/api/learners/toys").json()["accuracy"] == 1
    told = client.get("/api/learners/toys/history").json()["confusion"]
    assert told == {"labels": [1], "counts": [[2]]}


# Done is done.


def test_what_was_learned_is_acknowledged_though_the_album_cannot_be_written(client, caplog):
    make(client)
    teach(client)
    live = client.app.service.learners.find("toys").at_work()
    append, full = live.album._journal.append, []

    def failing(payload):
        full.append(payload)
        raise OSError(28, "no space left on device")

    live.album._journal.append = failing
    told = teach(client, rows=ROWS[:2], labels=["mug", "new"]).json()
    assert told["n_seen"] == 62
    renamed = client.post("/api/learners/toys/rename", json={"label": "new", "new": "cup"})
    assert renamed.status_code == 200
    assert "cup" in [part["label"] for part in renamed.json()["classes"]]
    assert full
    assert "could not be kept" in caplog.text
    live.album._journal.append = append
    assert teach(client).json()["n_seen"] == 122


def test_merging_while_the_other_is_taught_is_done_once(client):
    for name in ("one", "two"):
        make(client, name, parameters={"penalty": 1.0})
        teach(client, name)

    def go_on():
        for k in range(40):
            teach(client, "two", rows=ROWS[:9], labels=[f"new {k}"] * 9)

    with ThreadPoolExecutor(2) as pool:
        busy = pool.submit(go_on)
        seen = 60
        for _ in range(6):
            answer = client.post("/api/learners/one/merge", json={"other": "two"})
            assert answer.status_code == 200, answer.text
            assert answer.json()["n_seen"] > seen
            seen = answer.json()["n_seen"]
        busy.result()


def test_a_learner_that_cannot_be_told_of_does_not_hide_the_others(client, monkeypatch):
    for name in ("good", "bad"):
        make(client, name)
        teach(client, name)
    client.get("/api/learners")

    def broken(self):
        raise OverflowError("as it was")

    live = client.app.service.learners.find("bad").at_work()
    monkeypatch.setattr(type(live.album), "lately", broken)
    answer = client.get("/api/learners")
    assert answer.status_code == 200
    assert [state["n_seen"] for state in answer.json()["learners"]] == [60, 60]
