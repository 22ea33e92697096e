"""A lesson with a key is learned once, however often and however it is sent."""

import asyncio
import json
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imparo import IncrementalClassifier
from imparo.persistence import fingerprint
from imparo.service import album, keys
from imparo.service.keys import Key, Keys, Learned
from service_tools import LABELS, ROWS, drawing, in_process, live_of, make, served
from service_tools import teach as _teach

PNG = {"content-type": "image/png"}


def teach(client, rows, labels, key=None, name="toys"):
    return _teach(client, name, rows, labels, key=key)


def seen(client, name="toys"):
    return client.get(f"/api/learners/{name}").json()["n_seen"]


def bits(learner):
    """What it knows, but what predictions leave behind."""
    for recursion in learner._recursions:
        recursion._errors = recursion._errors[:0]
    return fingerprint(learner)


def test_the_same_again_is_answered_as_before_and_not_learned(tmp_path):
    with in_process(tmp_path) as client:
        make(client)
        first = teach(client, ROWS[:4], LABELS[:4], "a").json()
        other = teach(client, ROWS[4:9], LABELS[4:9], "b").json()
        again = teach(client, ROWS[:4], LABELS[:4], "a").json()
        assert (again["number"], again["n_seen"]) == (first["number"], first["n_seen"])
        assert again["answers"] == [None] * 4
        assert other["n_seen"] == seen(client) == 9
        # Without a key, and under another one, it counts twice.
        assert teach(client, ROWS[:4], LABELS[:4]).json()["n_seen"] == 13
        assert teach(client, ROWS[:4], LABELS[:4], "c").json()["n_seen"] == 17


def test_what_was_learned_in_part_is_learned_to_its_end(tmp_path):
    with in_process(tmp_path) as client:
        make(client)
        live, parts = live_of(client), []
        learn = live.learner.learn
        live.desk.room, live.desk._pace = 16, lambda rows, seconds: None

        def full(X, y):
            if len(parts) == 2:
                raise OSError(28, "No space left on device")
            parts.append(len(X))
            return learn(X, y)

        live.learner.learn = full
        told = teach(client, ROWS, LABELS, "long")
        assert (told.status_code, told.json()["learned"]) == (503, 32)
        assert "with the same key" in told.json()["error"]
        assert told.headers["retry-after"] == "30"
        live.learner.learn = learn
    with in_process(tmp_path) as client:  # also after another start
        told = teach(client, ROWS, LABELS, "long").json()
        assert told["n_seen"] == seen(client) == 60
        assert told["answers"][:32] == [None] * 32
        once = IncrementalClassifier().partial_fit(ROWS, LABELS)
        assert live_of(client).learner.predict(ROWS).tolist() == once.predict(ROWS).tolist()
        assert teach(client, ROWS, LABELS, "long").json()["n_seen"] == 60


@given(order=st.lists(st.integers(0, 5), min_size=1, max_size=20))
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_in_any_order_each_lesson_counts_at_its_first_time(tmp_path_factory, order):
    parts = [(ROWS[10 * k : 10 * k + 10], LABELS[10 * k : 10 * k + 10]) for k in range(6)]
    once = IncrementalClassifier()
    for k in dict.fromkeys(order):
        once.partial_fit(*parts[k])
    with in_process(tmp_path_factory.mktemp("kept")) as client:
        make(client)
        for k in order:
            assert teach(client, *parts[k], f"lesson-{k}").is_success
        assert bits(live_of(client).learner._learner) == bits(once)


def test_many_at_once_are_one(tmp_path):
    with in_process(tmp_path) as client:
        make(client)
        live = live_of(client)
        live.desk.room, live.desk._pace = 16, lambda rows, seconds: None

        async def run():
            lessons = [live.teach(ROWS, LABELS, key=Key("a", "")) for _ in range(10)]
            few = ROWS[:5], LABELS[:5]
            lessons += [live.teach(*few, key=Key(f"b{k // 3}", "")) for k in range(9)]
            lessons += [live.teach(ROWS[:2], LABELS[:2]) for _ in range(4)]
            return await asyncio.gather(*lessons)

        done = asyncio.run(run())
        assert {len(job.answers) for job in done} == {60, 5, 2}
        assert seen(client) == 60 + 3 * 5 + 4 * 2
        with ThreadPoolExecutor(8) as pool:
            told = list(pool.map(lambda _: teach(client, ROWS[:3], LABELS[:3], "c"), range(16)))
        assert {answer.status_code for answer in told} == {200}
        assert seen(client) == 83 + 3


def test_a_key_is_known_though_the_album_could_not_be_written(tmp_path, monkeypatch):
    with in_process(tmp_path) as client:
        make(client)
        live, full = live_of(client), [True]
        append = type(live.album._journal).append

        def failing(journal, payload):
            if full and journal is not live.learner._journal:
                raise OSError(28, "No space left on device")
            return append(journal, payload)

        monkeypatch.setattr(type(live.album._journal), "append", failing)
        live.desk.room, live.desk._pace = 16, lambda rows, seconds: None
        for _ in range(2):
            assert teach(client, ROWS, LABELS, "a").json()["n_seen"] == 60
            assert seen(client) == 60
        full.clear()
        assert teach(client, ROWS[:3], LABELS[:3], "b").json()["n_seen"] == 63
        assert list(live.desk._unkept) == []
    with in_process(tmp_path) as client:
        for key, n in (("a", 60), ("b", 3)):
            assert teach(client, ROWS[:n], LABELS[:n], key).is_success
        assert seen(client) == 63


def test_a_key_whose_lesson_was_refused_is_free(tmp_path):
    with in_process(tmp_path) as client:
        make(client)
        assert teach(client, ROWS, LABELS, "a").is_success
        assert teach(client, ROWS[:, :2], LABELS, "b").status_code == 422
        assert teach(client, ROWS, LABELS, "b").json()["n_seen"] == 120


def test_what_would_be_refused_again_is_not_asked_for_again(tmp_path):
    with in_process(tmp_path) as client:
        make(client)
        live = live_of(client)
        live.desk.room, live.desk._pace = 16, lambda rows, seconds: None
        learn = live.learner.learn

        def refuse(X, y):
            if live.learner.number:
                raise ValueError("no more of this")
            return learn(X, y)

        live.learner.learn = refuse
        for key in ("a", None):
            told = teach(client, ROWS, LABELS, key)
            said = told.json()["error"]
            assert told.status_code == 422
            assert "again" not in said
            assert ("16 of 60 rows were learned" in said) == (key == "a")


def test_a_key_for_another_lesson_is_refused(tmp_path):
    with in_process(tmp_path) as client:
        make(client)
        make(client, "arm", "regressor")
        assert teach(client, ROWS[:9], LABELS[:9], "a").is_success
        others = [(ROWS[1:10], LABELS[:9]), (ROWS[:9], LABELS[1:10]), (ROWS[:8], LABELS[:8])]
        for rows, labels in others:
            told = teach(client, rows, labels, "a")
            assert told.status_code == 422
            assert "with another lesson" in told.json()["error"]
        sent = {"inputs": ROWS.tolist(), "outputs": ROWS[:, :2].tolist(), "key": "a"}
        assert client.post("/api/learners/arm/teach", json=sent).is_success
        sent["outputs"] = ROWS[:, 1:].tolist()
        assert client.post("/api/learners/arm/teach", json=sent).status_code == 422
        assert (seen(client), seen(client, "arm")) == (9, 60)
        # A part of what was sent in other words is the same lesson.
        again = {"inputs": ROWS[:9].tolist(), "labels": LABELS[:9], "outputs": None, "key": "a"}
        assert client.post("/api/learners/toys/teach", json=again).json()["n_seen"] == 9


def test_it_is_known_after_a_kill(tmp_path):
    with served(tmp_path) as service, service.client() as client:
        make(client)
        first = teach(client, ROWS, LABELS, "a").json()
        service.kill()
    with served(tmp_path) as service, service.client() as client:
        again = teach(client, ROWS, LABELS, "a").json()
        assert (again["number"], again["n_seen"]) == (first["number"], 60)
        assert seen(client) == 60


def test_pictures_streams_and_numbers(tmp_path):
    with in_process(tmp_path) as client:
        make(client, features="pixels")
        for _ in range(3):
            for key in ("a", "b"):
                told = client.post(
                    f"/api/learners/toys/teach/image?label=ring&key={key}",
                    content=drawing(), headers=PNG,
                )  # fmt: skip
                assert told.status_code == 200, told.text
        assert seen(client) == 2
        other = "/api/learners/toys/teach/image?label=cup&key=a"
        assert client.post(other, content=drawing(), headers=PNG).status_code == 422
        (ring,) = client.get("/api/learners/toys").json()["classes"]
        assert len(ring["thumbnails"]) == 2
        address = "/api/learners/toys/stream"
        with client.websocket_connect(address, headers={"host": "localhost"}) as socket:
            head = json.dumps({"id": 1, "teach_image": {"label": "ring", "key": "a"}}).encode()
            socket.send_bytes(struct.pack("<I", len(head)) + head + drawing())
            assert socket.receive_json()["result"]["n_seen"] == 1
            rows = np.zeros((2, 784))
            for _ in range(2):
                sent = {"inputs": rows.tolist(), "labels": ["x", "y"], "key": "c"}
                socket.send_json({"id": 2, "teach": sent})
                assert socket.receive_json()["result"]["n_seen"] == 4
        make(client, "arm", "regressor")
        sent = {"inputs": ROWS.tolist(), "outputs": ROWS[:, :2].tolist(), "key": "a"}
        for _ in range(3):
            told = client.post("/api/learners/arm/teach", json=sent).json()
            assert (told["n_seen"], told["answers"]) == (60, None)
        # One number a row: turned on its side for the learner, and the same lesson.
        make(client, "one", "regressor")
        sent = {"inputs": ROWS.tolist(), "outputs": ROWS[:, 0].tolist(), "key": "a"}
        for _ in range(2):
            assert client.post("/api/learners/one/teach", json=sent).json()["n_seen"] == 60


@pytest.mark.parametrize("key", ["", "x" * 65, "a b", "é", 7, ["a"]])
def test_what_is_no_key_is_told(tmp_path, key):
    with in_process(tmp_path) as client:
        make(client)
        told = teach(client, ROWS, LABELS, key)
        assert told.status_code == 422
        assert told.json()["error"].startswith("key")
        assert seen(client) == 0


def test_only_so_many_are_known_and_the_oldest_go(tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "KEYS", 3)
    monkeypatch.setattr(album, "_RECORDS", 500)
    with in_process(tmp_path) as client:
        make(client)
        for key in "abcd":
            teach(client, ROWS[:1], LABELS[:1], key)
        for key in "bcd":
            teach(client, ROWS[:1], LABELS[:1], key)
        assert seen(client) == 4
        teach(client, ROWS[:1], LABELS[:1], "a")
        assert seen(client) == 5
    with in_process(tmp_path) as client:
        assert [one.name for one in live_of(client).album.keys] == ["c", "d", "a"]


def test_what_is_learned_of_a_lesson_makes_its_key_the_youngest(monkeypatch):
    monkeypatch.setattr(keys, "KEYS", 2)
    known = Keys()
    known.add(Learned(name, "", rows, 1, 1) for name, rows in (("a", 1), ("b", 1), ("a", 2)))
    known.add([Learned("c", "", 1, 1, 1)])
    assert [(one.name, one.rows) for one in known] == [("a", 2), ("c", 1)]


def test_keys_are_for_the_learner_that_they_were_sent_to(tmp_path):
    with in_process(tmp_path) as client:
        make(client)
        teach(client, ROWS, LABELS, "a")
        content = client.get("/api/learners/toys/export").content
        assert client.post("/api/import?name=new", content=content).status_code == 201
        assert teach(client, ROWS, LABELS, "a", name="new").json()["n_seen"] == 120
