"""Ends in the middle, disks that fail, learners that go: nothing is lost, and all are told."""

import asyncio
import gc
import json
import logging
import time
import weakref
from pathlib import Path

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import imparo
from imparo import IncrementalClassifier, RandomFeatures
from imparo.service import Limits, Settings, beside, create_app
from imparo.service.album import Album
from service_tools import at_work, drawing

ROWS = np.random.default_rng(0).normal(size=(60, 3))
LABELS = ["mug", "ball", "car"] * 20
BINARY = {"content-type": "application/octet-stream"}
PNG = {"content-type": "image/png"}


def opened(folder, **settings):
    return TestClient(create_app(Settings(folder, **settings)), base_url="http://localhost")


def create(client, name="toys", **more):
    return client.post("/api/learners", json={"name": name, "kind": "classifier", **more})


def teach(client, name="toys", rows=ROWS, labels=LABELS):
    sent = {"inputs": rows.tolist(), "labels": labels}
    return client.post(f"/api/learners/{name}/teach", json=sent)


def populate(client):
    assert create(client).is_success
    assert teach(client).is_success


def live_of(client, name="toys"):
    return client.app.service.learners.find(name).at_work()


def state(client, name="toys"):
    return client.get(f"/api/learners/{name}").json()


# An end between the learner's change and that of its pictures.


@pytest.mark.parametrize("change", ["forget", "rename"])
def test_an_end_between_learner_and_album(tmp_path, change):
    with opened(tmp_path) as client:
        assert create(client, features="pixels").is_success
        for k in range(6):
            label = ("mug", "ball")[k % 2]
            told = client.post(
                "/api/learners/toys/teach/image", params={"label": label},
                content=drawing(k), headers=PNG,
            )  # fmt: skip
            assert told.is_success
        learner = live_of(client).learner
        learner.forget("mug") if change == "forget" else learner.rename("mug", "cup")
        assert client.get("/api/learners/toys/recoding").status_code == 200
    for _ in range(2):  # also once it is shown again: its old pictures do not come back
        with opened(tmp_path) as client:
            assert client.get("/api/learners/toys/recoding").status_code == 200
            told = client.get("/api/learners/toys/history").json()
            assert "mug" not in told["confusion"]["labels"]
            pictures = {c["label"]: len(c["thumbnails"]) for c in state(client)["classes"]}
            assert pictures.pop("ball") == 3
            assert not any(pictures.values())
            learner = live_of(client).learner
            row = np.zeros((1, learner.n_features_in_))
            learner.learn(row, ["mug"])
            learner.forget("mug")


# Pictures and curves do not take a learner away.


def test_a_damaged_album_is_put_aside(tmp_path):
    with opened(tmp_path) as client:
        populate(client)
        before = client.post("/api/learners/toys/ask", json={"inputs": ROWS[0].tolist()}).json()
    (records,) = (tmp_path / "toys" / "album").glob("records-*")
    content = bytearray(records.read_bytes())
    content[3] ^= 255
    records.write_bytes(content)
    with opened(tmp_path) as client:
        assert (state(client)["status"], state(client)["n_seen"]) == ("open", 60)
        sent = {"inputs": ROWS[0].tolist()}
        assert client.post("/api/learners/toys/ask", json=sent).json() == before
        assert teach(client).is_success
        assert client.get("/api/learners/toys/history").json()["confusion"]["labels"]
    (aside,) = (tmp_path / "toys").glob("album.damaged-*")
    assert (aside / records.name).read_bytes() == content  # for whoever repairs it


def test_an_album_that_failed_is_opened_again_and_told_once(tmp_path, caplog):
    with opened(tmp_path) as client:
        populate(client)
        live_of(client).album._journal.close()  # so it is after the disk has failed once
        with caplog.at_level(logging.ERROR, "imparo.service"):
            for _ in range(5):
                assert teach(client).is_success
        told = [one for one in caplog.records if "could not be kept" in one.message]
        assert len(told) == 1
        before = client.get("/api/learners/toys/history").json()
        assert before["accuracy"][-1][0] == 360
    with opened(tmp_path) as client:
        assert client.get("/api/learners/toys/history").json() == before


def test_an_album_that_goes_on_failing_is_not_opened_for_each_lesson(
    tmp_path, caplog, monkeypatch
):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    with opened(tmp_path) as client:
        populate(client)
        n, often, open_album = state(client)["n_seen"], [], beside.open_album
        monkeypatch.setattr(Album, "_change", refuse)
        monkeypatch.setattr(beside, "open_album", lambda at: often.append(at) or open_album(at))
        with caplog.at_level(logging.ERROR, "imparo.service"):
            for k in range(1, 6):
                assert teach(client).json()["n_seen"] == n * (k + 1)
        assert len(often) == 1
        told = [one for one in caplog.records if "could not be kept" in one.message]
        assert len(told) == 1


def test_what_was_forgotten_while_the_album_failed_is_gone_from_it(tmp_path, monkeypatch):
    with opened(tmp_path) as client:
        populate(client)
        label = state(client)["classes"][0]["label"]
        appender, fails = live_of(client).album._journal, [OSError(5, "Input/output error")]

        def append(payload):
            if fails:
                raise fails.pop()
            return type(appender).append(appender, payload)

        monkeypatch.setattr(appender, "append", append)
        told = client.post("/api/learners/toys/forget", json={"label": label})
        assert told.is_success
        assert fails == []
        labels = client.get("/api/learners/toys/history").json()["confusion"]["labels"]
        assert labels
        assert label not in labels


def test_a_learner_whose_album_cannot_be_opened_again_is_taught_and_told_of(
    tmp_path, monkeypatch
):
    def refuse(*_):
        raise OSError(30, "Read-only file system")

    with opened(tmp_path) as client:
        populate(client)
        n, sent = state(client)["n_seen"], {"inputs": ROWS[0].tolist()}
        with monkeypatch.context() as patch:
            patch.setattr(Album, "_change", refuse)
            patch.setattr(beside, "open_album", refuse)
            assert teach(client).is_success
            assert (state(client)["status"], state(client)["n_seen"]) == ("open", 2 * n)
            assert client.get("/api/learners").json()["learners"][0]["n_seen"] == 2 * n
            assert client.post("/api/learners/toys/ask", json=sent).is_success
            assert client.get("/api/learners/toys/history").is_success
            assert client.get("/api/learners/toys/export").is_success
        live_of(client).desk.beside._again = 0.0
        disk = state(client)["disk"]
        assert teach(client).is_success
        assert teach(client).is_success
        assert state(client)["disk"] > disk
        assert client.get("/api/learners/toys/history").json()["accuracy"][-1][0] == 4 * n


# Learners that are deleted.


def test_a_learner_that_cannot_be_deleted_is_there_as_before(tmp_path, monkeypatch):
    real = Path.rename

    def refuse(self, target):
        if ".gone-" in str(target):
            raise OSError(30, "Read-only file system")
        return real(self, target)

    with opened(tmp_path) as client:
        populate(client)
        monkeypatch.setattr(Path, "rename", refuse)
        answer = client.delete("/api/learners/toys")
        assert (answer.status_code, "Read-only" in answer.json()["error"]) == (503, True)
        assert state(client)["n_seen"] == 60
        assert teach(client).json()["n_seen"] == 120
        monkeypatch.undo()
        assert client.delete("/api/learners/toys").status_code == 204
        assert client.get("/api/learners/toys").status_code == 404


def test_a_deletion_that_cannot_be_made_durable_is_undone(tmp_path, monkeypatch):
    def refuse(folder):
        raise OSError(5, "Input/output error")

    with opened(tmp_path) as client:
        populate(client)
        # The disk does not take the last pictures, either.
        monkeypatch.setattr(Album, "close", lambda album: refuse(album._journal.close()))
        monkeypatch.setattr("imparo.service.learners.sync_folder", refuse)
        answer = client.delete("/api/learners/toys")
        assert (answer.status_code, "Input/output" in answer.json()["error"]) == (503, True)
        assert (state(client)["status"], state(client)["n_seen"]) == ("open", 60)
        monkeypatch.undo()
        assert not list(tmp_path.glob(".gone-*"))
        assert teach(client).json()["n_seen"] == 120
        assert 'imparo_learners{status="open"} 1.0' in client.get("/metrics").text


def test_who_watches_a_learner_that_could_not_be_deleted_can_go_on(tmp_path, monkeypatch):
    with opened(tmp_path) as client:
        populate(client)
        with client.websocket_connect(
            "/api/learners/toys/stream", headers={"host": "localhost"}
        ) as socket:
            for _ in range(2):
                socket.send_json({"id": 1, "watch": True})
                while "event" not in socket.receive_json():
                    pass
                with monkeypatch.context() as patch:
                    patch.setattr(Path, "rename", _refuse)
                    assert client.delete("/api/learners/toys").status_code == 503
                while (told := socket.receive_json()).get("event") != "end":
                    pass
                assert "opened anew" in told["error"]


def _refuse(*_):
    raise OSError(30, "Read-only file system")


def test_a_learner_whose_folder_was_removed_by_hand_can_be_deleted(tmp_path):
    import shutil

    with opened(tmp_path) as client:
        populate(client)
        shutil.rmtree(tmp_path / "toys")
        assert client.delete("/api/learners/toys").status_code == 204
        populate(client)


@pytest.mark.parametrize("anew", [False, True])
def test_who_watches_is_told_that_a_learner_is_gone(tmp_path, anew):
    with opened(tmp_path) as client:
        populate(client)
        gc.collect()
        gc.disable()  # what is left is held by somebody
        try:
            kept = weakref.ref(live_of(client).learner._learner)
            with client.websocket_connect(
                "/api/learners/toys/stream", headers={"host": "localhost"}
            ) as socket:
                socket.send_json({"id": 1, "watch": True})
                told = [socket.receive_json(), socket.receive_json()]
                assert {"event" in one for one in told} == {True, False}
                assert client.delete("/api/learners/toys").status_code == 204
                if anew:
                    populate(client)
                while (told := socket.receive_json())["event"] == "state":
                    pass
                assert told["event"] == "end"
                assert "toys" in told["error"]
            assert kept() is None
        finally:
            gc.enable()


def test_what_waits_for_a_learner_that_goes_is_told_so(tmp_path):
    with opened(tmp_path) as client:
        populate(client)
        live = live_of(client)
        assert client.delete("/api/learners/toys").status_code == 204

        async def late():
            await live.look(lambda: None)

        with pytest.raises(Exception, match="deleted") as caught:
            asyncio.run(late())
        assert caught.value.status == 404


# Room is kept before it is waited for.


def test_learners_made_at_once_share_the_memory_that_there_is(tmp_path):
    waves = {"penalty": 1.0, "fourier": {"sigma": 1.0, "n_features": 500}}
    limits = Limits(memory=2 * 8 * 500**2 + 1000)

    async def run():
        app = create_app(Settings(tmp_path, limits=limits))
        async with (
            app.lifespan(),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app, client=("127.0.0.1", 1)),
                base_url="http://localhost",
            ) as client,
        ):
            made = await asyncio.gather(*(
                client.post("/api/learners", json={
                    "name": f"n{k}", "kind": "classifier", "parameters": waves,
                })
                for k in range(6)
            ))  # fmt: skip
            for one in made[:1]:
                assert (await client.delete(f"/api/learners/{one.json()['name']}")).is_success
            model = IncrementalClassifier(
                RandomFeatures(sigma=1.0, n_features=500, random_state=0), penalty=1.0
            )
            imparo.save(model, tmp_path / "fresh.imparo")  # it has learned nothing, and will
            content = (tmp_path / "fresh.imparo").read_bytes()
            brought = await asyncio.gather(*(
                client.post(f"/api/import?name=i{k}", content=content, headers=BINARY)
                for k in range(3)
            ))  # fmt: skip
        return [one.status_code for one in made], [one.status_code for one in brought]

    made, brought = asyncio.run(run())
    assert sorted(made) == [201, 201, 413, 413, 413, 413]
    assert sorted(brought) == [201, 413, 413]


def test_a_first_row_that_is_too_wide_does_not_spoil_the_next(tmp_path):
    with opened(tmp_path, limits=Limits(features=10)) as client:
        assert create(client).is_success
        live = live_of(client)

        async def run():
            rows = [np.ones((1, 50)), np.ones((1, 3)), np.zeros((1, 3))]
            return await asyncio.gather(
                *(live.teach(row, ["mug"]) for row in rows), return_exceptions=True
            )

        wide, *others = asyncio.run(run())
        assert wide.status == 413
        assert [one.done for one in others] == [1, 1]
        assert state(client)["n_seen"] == 2


def test_a_first_lesson_that_is_refused_decides_nothing(tmp_path):
    with opened(tmp_path, limits=Limits(classes=2)) as client:
        assert create(client).is_success
        live = live_of(client)

        async def run():
            lessons = [(np.ones((3, 5)), ["a", "b", "c"]), (np.eye(3), ["a", "b", "a"])]
            return await asyncio.gather(
                *(live.teach(*lesson) for lesson in lessons), return_exceptions=True
            )

        refused, taken = asyncio.run(run())
        assert (refused.status, taken.done) == (413, 3)
        assert state(client)["n_inputs"] == 3


def test_what_was_learned_of_a_block_is_told_when_the_disk_is_full(tmp_path):
    with opened(tmp_path) as client:
        populate(client)
        live, learned = live_of(client), []
        live.desk.room = 16
        live.desk._pace = lambda rows, seconds: None
        learn = live.learner.learn

        def full(X, y):
            if learned:
                raise OSError(28, "No space left on device")
            learned.append(len(X))
            return learn(X, y)

        async def run():
            live.learner.learn = full
            return await asyncio.gather(
                live.teach(ROWS[:20], LABELS[:20]), live.teach(ROWS[:1], LABELS[:1]),
                live.teach(ROWS[:1, :2], LABELS[:1]), return_exceptions=True,
            )  # fmt: skip

        block, single, narrow = asyncio.run(run())
        assert learned == [16]
        assert "16 of 20 rows were learned" in str(block)
        assert "nothing was done" in str(single)
        assert (block.status, single.status, narrow.status) == (409, 503, 422)
        assert (block.learned, single.learned) == (16, None)
        assert state(client)["n_seen"] == 76


def test_who_watches_a_busy_learner_hears_of_it_later(tmp_path, monkeypatch):
    monkeypatch.setattr("imparo.service.streams._LATER", 0.05)
    with opened(tmp_path, limits=Limits(answer_seconds=0.2)) as client:
        populate(client)
        live = live_of(client)
        with client.websocket_connect(
            "/api/learners/toys/stream", headers={"host": "localhost"}
        ) as socket:
            with at_work(live):
                socket.send_json({"id": 1, "watch": True})
                assert socket.receive_json()["id"] == 1
                time.sleep(0.5)  # longer than it may take to answer
            told = socket.receive_json()
            assert (told["event"], told["state"]["n_seen"]) == ("state", 60)


# Backups.


def test_a_learner_that_has_forgotten_everything_can_be_moved(tmp_path):
    with opened(tmp_path) as client:
        populate(client)
        for label in set(LABELS):
            sent = {"label": label}
            assert client.post("/api/learners/toys/forget", json=sent).is_success
        file = client.get("/api/learners/toys/export").content
        answer = client.post("/api/import?name=back", content=file, headers=BINARY)
        assert answer.status_code == 201, answer.text
        assert [teach(client, name).json()["n_seen"] for name in ("toys", "back")] == [120, 120]


@pytest.mark.parametrize(
    "parameters", [{"forgetting": 1e-300}, {"forgetting": 0}, {"holdout_size": 5000}]
)
def test_what_could_not_be_moved_later_is_not_made(tmp_path, parameters):
    with opened(tmp_path) as client:
        answer = create(client, parameters=parameters)
        assert answer.status_code == 422
        assert next(iter(parameters)) in answer.json()["error"]


# What is sent.


@pytest.mark.parametrize("path", ["ask", "teach", "forget", "rename", "merge"])
def test_objects_with_many_members_are_refused_as_one(tmp_path, path):
    with opened(tmp_path) as client:
        populate(client)
        sent = {f"k{k}": 0 for k in range(1000)}
        answer = client.post(f"/api/learners/toys/{path}", json=sent)
        assert answer.status_code == 422
        assert "1000 members" in answer.json()["error"]
        if path not in ("ask", "teach"):
            answer = client.post(f"/api/learners/toys/{path}", json={"label": "x" * 100_000})
            assert answer.status_code == 413


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("ask", {"inputs": [1, 2, 3], "recoding": True}),
        ("ask", {"inputs": [1, 2, 3], "recoding": "0.3"}),
        ("ask", {"inputs": [1, 2, 3], "novelty": "yes"}),
        ("", {"recoding": "0.3"}),
        ("", {"recoding": True}),
    ],
)
def test_numbers_are_numbers_and_not_text(tmp_path, path, sent):
    with opened(tmp_path) as client:
        populate(client)
        method = "POST" if path else "PATCH"
        url = f"/api/learners/toys/{path}".rstrip("/")
        answer = client.request(method, url, json=sent)
        assert answer.status_code == 422, answer.text
        assert next(key for key in sent if key != "inputs") in answer.json()["error"]
        assert state(client)["recoding"]["setting"] == "auto"


def test_whole_numbers_are_numbers_too(tmp_path):
    with opened(tmp_path) as client:
        populate(client)
        sent = {"inputs": [1, 2, 3], "recoding": 1}
        assert client.post("/api/learners/toys/ask", json=sent).is_success


# Who comes from where.


@pytest.mark.parametrize(
    ("path", "mode", "status"),
    [("/", "navigate", 200), ("/", "no-cors", 403), ("/api/learners", "navigate", 403)],
)
def test_a_link_to_the_page_may_be_followed_from_elsewhere(tmp_path, path, mode, status):
    with opened(tmp_path) as client:
        headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": mode}
        assert client.get(path, headers=headers).status_code == status


def test_the_page_can_be_looked_for(tmp_path):
    with opened(tmp_path) as client:
        answer = client.head("/")
        assert (answer.status_code, answer.content) == (200, b"")


# Within another program.


def test_a_program_that_mounts_it_runs_its_lifespan(tmp_path):
    token = "a-token-of-some-length"
    inner = create_app(Settings(tmp_path, token=token, limits=Limits(import_bytes=1000)))
    program = FastAPI(lifespan=lambda program: inner.lifespan())
    program.mount("/teach", inner)
    with TestClient(program, base_url="http://localhost", follow_redirects=False) as client:
        answer = client.get("/teach/", headers={"accept": "text/html"})
        assert answer.status_code == 401
        assert 'action="/teach/api/session"' in answer.text
        answer = client.get(f"/teach/?token={token}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/teach/")
        assert client.get("/teach/").status_code == 200  # by the cookie
        again = client.get(f"/teach/?token={token}")  # which it has
        assert (again.status_code, again.headers["location"]) == (303, "/teach/")
        assert client.post("/teach/api/session", data={"token": token}).headers[
            "location"
        ] == "/teach/"  # fmt: skip
        made = client.post("/teach/api/learners", json={"name": "toys", "kind": "classifier"})
        assert made.status_code == 201
        sent = {"inputs": ROWS.tolist(), "labels": LABELS}
        assert client.post("/teach/api/learners/toys/teach", json=sent).json()["n_seen"] == 60
        answer = client.post("/teach/api/import?name=x", content=b"x" * 2000, headers=BINARY)
        assert answer.status_code == 413
        answer = client.post("/teach/api/learners/toys/forget", content=b"x" * 100_000)
        assert answer.status_code == 413
    with opened(tmp_path, token=token) as client:
        client.headers["authorization"] = f"Bearer {token}"
        assert state(client)["n_seen"] == 60


def test_a_program_that_does_not_is_told(tmp_path):
    program = FastAPI()
    program.mount("/teach", create_app(Settings(tmp_path)))
    with TestClient(program, base_url="http://localhost") as client:
        answer = client.get("/teach/api/learners")
        assert answer.status_code == 503
        assert "lifespan()" in answer.json()["error"]


# Album.


def test_keep_only_forgets_the_rest_for_good(tmp_path):
    album = Album(tmp_path)
    for label in ("a", "b"):
        album.add_picture(label, b"\xff\xd8" + label.encode())
        album.add_example(label, np.ones(2))
    size = album.size
    album.keep_only({json.dumps("a"), json.dumps("b")})
    assert album.size == size  # nothing to write
    album.keep_only({json.dumps("b")})
    album.close()
    album = Album(tmp_path)
    assert [*album.thumbnails, *album.examples] == ['"b"', '"b"']
    album.close()
