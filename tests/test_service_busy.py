"""A learner that is busy, or in trouble, stands in the way of no other."""

import contextlib
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from imparo.service import Limits
from imparo.service.album import Album
from service_tools import (
    at_work,
    drawing,
    in_process,
    live_of,
    make,
    teach,
)


def test_after_a_start_the_list_tells_of_busy_learners_too(tmp_path):
    with in_process(tmp_path) as client:
        for name in ("busy", "idle"):
            make(client, name)
            teach(client, name)
    with in_process(tmp_path, limits=Limits(answer_seconds=0.2)) as client:
        with at_work(live_of(client, "busy")):
            answer = client.get("/api/learners")
        assert answer.status_code == 200
        told = {state["name"]: state["n_seen"] for state in answer.json()["learners"]}
        assert told == {"busy": 60, "idle": 60}


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


def test_deletions_wait_for_their_turn_and_hold_nobody_up(tmp_path):
    names = [f"n{k}" for k in range(12)]
    with in_process(tmp_path, limits=Limits(answer_seconds=0.5)) as client:
        for name in names:
            make(client, name)
            teach(client, name)
        with contextlib.ExitStack() as busy, ThreadPoolExecutor(len(names)) as pool:
            for name in names:
                busy.enter_context(at_work(live_of(client, name)))
            told = [pool.submit(client.delete, f"/api/learners/{name}") for name in names]
            make(client, "another")  # which is made in a thread, too
            assert {answer.result().status_code for answer in told} == {503}
        assert client.delete("/api/learners/n0").status_code == 204
        assert client.get("/api/learners/n0").status_code == 404
        assert client.get("/api/learners/n1").json()["n_seen"] == 60


def test_a_merge_takes_over_no_picture_of_what_the_other_forgot_meanwhile(
    tmp_path, monkeypatch
):
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


def test_a_damaged_package_is_told_as_that(tmp_path, monkeypatch):
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
