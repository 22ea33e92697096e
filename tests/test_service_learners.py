"""Learners over HTTP are those of the library: the same answers, kept, moved and merged."""

import copy
import io
import zipfile

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image, ImageDraw

from imparo import IncrementalClassifier, RecursiveRegressor, load, save
from imparo.dynamics import NonparametricDynamics, SerialArm
from imparo.journal import decode
from imparo.persistence import fingerprint
from imparo.service import Limits, Settings, create_app
from test_durable_kills import bits

DH = [[0, 0, 0, 0], [1.0, 0, 0, 0]]


@pytest.fixture
def client(tmp_path):
    with opened(tmp_path / "learners") as made:
        yield made


def opened(folder, **settings):
    return TestClient(create_app(Settings(folder, **settings)), base_url="http://localhost")


def post(client, path, content, status=200):
    answer = client.post(path, json=content)
    assert answer.status_code == status, answer.text
    return answer.json()


def create(client, name, kind="classifier", features="vectors", **parameters):
    content = {"name": name, "kind": kind, "features": features, "parameters": parameters}
    return post(client, "/api/learners", content, 201)


def teach(client, name, X, y, kind="labels"):
    return post(client, f"/api/learners/{name}/teach", {"inputs": X.tolist(), kind: y})


def ask(client, name, X, **options):
    return post(client, f"/api/learners/{name}/ask", {"inputs": X.tolist(), **options})


def kept(client, name, folder):
    """Return the bits of all that is known of a learner."""
    exported = client.get(f"/api/learners/{name}/export").content
    with zipfile.ZipFile(io.BytesIO(exported)) as archive:
        (folder / "kept.imparo").write_bytes(archive.read("learner.imparo"))
        album, about = decode(archive.read("album.bin")), archive.read("about.json")
    return bits(load(folder / "kept.imparo")), fingerprint(album), about


def state(client, name):
    return client.get(f"/api/learners/{name}").json()


def objects(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    names = np.array(["mug", "ball", "rare"])
    return X, names[np.where(X[:, 0] > 1.3, 2, (X[:, 1] > 0).astype(int))].tolist()


def picture(kind, seed=0):
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (200, 200), "white")
    pen = ImageDraw.Draw(image)
    x, y = rng.uniform(60, 90, 2)
    if kind == "circle":
        pen.ellipse([x, y, x + 60, y + 60], outline="black", width=9)
    else:
        pen.line([x, y, x + 60, y + 60], fill="black", width=9)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def show(client, label, content):
    kind = {"content-type": "image/png"}
    path, given = "/api/learners/drawn/teach/image", {"label": label}
    client.post(path, params=given, content=content, headers=kind).raise_for_status()


# The same as in Python.


def test_a_classifier_answers_as_the_librarys_does(client):
    X, y = objects()
    create(client, "toys")
    for start in range(0, 120, 7):
        teach(client, "toys", X[start : start + 7], y[start : start + 7])
    local = IncrementalClassifier().partial_fit(X, y)
    found, T = ask(client, "toys", X[:20]), objects(20, 1)[0]
    assert found["classes"] == local.classes_.tolist()
    assert found["answers"] == local.predict(X[:20]).tolist()
    assert np.array_equal(found["probabilities"], local.predict_proba(X[:20]))
    novel = ask(client, "toys", T, novelty=True)["novelty"]
    assert np.array_equal(novel, local.novelty(T))
    shown = {part["label"]: part["shown"] for part in state(client, "toys")["classes"]}
    assert shown == {name: y.count(name) for name in set(y)}


def test_a_preview_of_recoding_is_what_setting_it_gives(client):
    X, y = objects()
    create(client, "toys")
    teach(client, "toys", X, y)
    usual = ask(client, "toys", X)
    preview = ask(client, "toys", X, recoding=0.0)
    assert ask(client, "toys", X) == usual  # nothing was set
    local = IncrementalClassifier().fit(X, y)
    assert np.array_equal(preview["probabilities"], local.assess(X, 0.0).probabilities)
    told = client.patch("/api/learners/toys", json={"recoding": 0.0}).json()
    assert told["recoding"] == {"setting": 0.0, "in_use": 0.0}
    local.recode(0.0)
    assert np.array_equal(ask(client, "toys", X)["probabilities"], local.predict_proba(X))
    naive = IncrementalClassifier(penalty=local.penalty_, recoding=0.0).fit(X, y)
    assert ask(client, "toys", X)["answers"] == naive.predict(X).tolist()


def test_the_curve_of_recoding_counts_what_is_held_out(client):
    X, y = objects(300)
    create(client, "toys")
    teach(client, "toys", X, y)
    told = client.get("/api/learners/toys/recoding").json()
    local = IncrementalClassifier().fit(X, y)
    alphas, found, judged = local.recoding_curve()
    assert min(judged) >= 3  # so that nothing else is asked
    assert told["alphas"] == alphas.round(6).tolist()
    assert [part["judged_by"] for part in told["classes"]] == judged.tolist()
    assert sum(judged) == local.n_held_out_
    assert np.array_equal([part["found"] for part in told["classes"]], found)
    assert np.allclose(told["accuracy"], found.mean(axis=0))


def test_a_class_shown_a_few_times_is_judged_by_leaving_each_out(client, rng):
    X = np.concatenate([rng.normal(size=(100, 4)), rng.normal(2, 1, size=(3, 4))])
    y = ["mug", "ball"] * 50 + ["rare"] * 3
    create(client, "toys", penalty=1.0, recoding=0.0)
    for x, label in zip(X, y, strict=True):
        teach(client, "toys", x[None], [label])
    told = client.get("/api/learners/toys/recoding").json()
    (rare,) = [part for part in told["classes"] if part["label"] == "rare"]
    assert rare["judged_by"] == 3
    for alpha in (0.0, 0.5, 1.0):
        right = 0
        for i in range(100, 103):
            rest = np.arange(103) != i
            local = IncrementalClassifier(penalty=1.0, recoding=alpha)
            local.fit(X[rest], np.array(y)[rest])
            right += local.predict_one(X[i]) == "rare"
        assert rare["found"][told["alphas"].index(alpha)] == pytest.approx(right / 3)
    assert rare["found"][0] < rare["found"][-1]  # what the slider is there to show


def test_a_regressor_answers_as_the_librarys_does(client, rng):
    X, Y = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    create(client, "arm", "regressor", penalty=0.5)
    teach(client, "arm", X, Y.tolist(), "outputs")
    mean, std = RecursiveRegressor(penalty=0.5).fit(X, Y).predict(X[:5], return_std=True)
    found = ask(client, "arm", X[:5])
    assert np.allclose(found["outputs"], mean, rtol=1e-12)
    assert np.allclose(found["deviations"], std, rtol=1e-12)
    one = post(client, "/api/learners/arm/ask", {"inputs": X[0].tolist()})
    assert np.allclose(one["outputs"], mean[:1])
    assert state(client, "arm")["n_outputs"] == 2


def test_a_single_output_may_be_a_list_of_numbers(client, rng):
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    create(client, "one", "regressor", penalty=1.0)
    teach(client, "one", X, y.tolist(), "outputs")
    local = RecursiveRegressor(penalty=1.0).fit(X, y)
    assert np.allclose(np.ravel(ask(client, "one", X)["outputs"]), local.predict(X))


def test_dynamics_are_learned_with_and_without_a_robot(client, rng):
    arm = SerialArm(DH)
    X = rng.uniform(-1, 1, size=(80, 6))
    Y = arm.regressor_of(X) @ rng.uniform(0.1, 1, len(arm.parameter_names))
    create(client, "np", "dynamics", n_features=50)
    teach(client, "np", X, Y.tolist(), "outputs")
    local = NonparametricDynamics(n_features=50).fit(X, Y)
    assert np.allclose(ask(client, "np", X)["outputs"], local.predict(X))
    for model in ("P", "SP"):
        create(client, model, "dynamics", model=model, robot={"dh": DH}, n_features=50)
        teach(client, model, X, Y.tolist(), "outputs")
        assert np.allclose(ask(client, model, X)["outputs"], Y, atol=1e-2)
    assert "needs a robot" in create_refused(client, "p2", "dynamics", model="P")


def create_refused(client, name, kind="classifier", status=422, **parameters):
    content = {"name": name, "kind": kind, "parameters": parameters}
    told = post(client, "/api/learners", content, status)["error"]
    assert client.get(f"/api/learners/{name}").status_code == 404
    return told


# Images.


@pytest.mark.parametrize("features", ["pixels", "network"])
def test_drawings_are_taught_by_showing(client, features):
    create(client, "drawn", features=features)
    kind = {"content-type": "image/png"}
    for seed in range(4):
        for label in ("circle", "line"):
            show(client, label, picture(label, seed))
    for label in ("circle", "line"):
        told = client.post(
            "/api/learners/drawn/ask/image", content=picture(label, 9), headers=kind
        ).json()
        assert told["answer"] == label
        assert told["confidence"] == max(told["probabilities"]) > 0.5
    classes = state(client, "drawn")["classes"]
    assert [len(part["thumbnails"]) for part in classes] == [4, 4]
    shown = client.get(classes[0]["thumbnails"][0])
    assert shown.headers["content-type"] == "image/jpeg"
    assert max(Image.open(io.BytesIO(shown.content)).size) == 112


def test_a_class_keeps_six_thumbnails_at_most(client):
    create(client, "drawn", features="pixels")
    for seed in range(8):
        show(client, "circle", picture("circle", seed))
    (only,) = state(client, "drawn")["classes"]
    assert (only["shown"], len(only["thumbnails"])) == (8, 6)


def test_another_picture_has_another_address_also_in_a_learner_made_anew(client):
    """Browsers keep what they were given under an address."""
    found = {}
    for seed in (1, 2, 1):
        create(client, "drawn", features="pixels")
        show(client, "circle", picture("circle", seed))
        (address,) = state(client, "drawn")["classes"][0]["thumbnails"]
        found.setdefault(address, set()).add(client.get(address).content)
        assert client.delete("/api/learners/drawn").status_code == 204
    assert [len(contents) for contents in found.values()] == [1, 1]


# Classes that go and change.


def test_classes_are_renamed_joined_and_forgotten_as_in_the_library(client):
    X, y = objects()
    create(client, "toys")
    teach(client, "toys", X, y)
    local = IncrementalClassifier().fit(X, y)
    post(client, "/api/learners/toys/rename", {"label": "mug", "new": "cup"})
    post(client, "/api/learners/toys/rename", {"label": "rare", "new": "ball"})
    local.rename("mug", "cup").rename("rare", "ball")
    assert ask(client, "toys", X)["answers"] == local.predict(X).tolist()
    labels = client.get("/api/learners/toys/history").json()["confusion"]["labels"]
    assert set(labels) <= {"cup", "ball"}
    told = post(client, "/api/learners/toys/forget", {"label": "cup"})
    assert [part["label"] for part in told["classes"]] == ["ball"]
    error = post(client, "/api/learners/toys/forget", {"label": "cup"}, 422)["error"]
    assert "'cup' is not among the classes" in error


def test_labels_may_be_numbers_and_stay_numbers(client):
    create(client, "digits")
    teach(client, "digits", np.eye(3), [7, 8, True])
    told = ask(client, "digits", np.eye(3))["answers"]
    assert told == [7, 8, True]
    assert [type(label) for label in told] == [int, int, bool]


# What is told.


def test_accuracy_and_confusion_are_of_answers_before_learning(client):
    X, y = objects(60)
    create(client, "toys")
    local, right, pairs = IncrementalClassifier(), 0, {}
    for x, label in zip(X, y, strict=True):
        before = None if not hasattr(local, "n_seen_") else local.predict_one(x)
        told = post(client, "/api/learners/toys/teach",
                    {"inputs": x.tolist(), "labels": label})  # fmt: skip
        assert told["answers"] == [before]
        local.learn_one(x, label)
        if before is not None:
            right += before == label
            pairs[label, before] = pairs.get((label, before), 0) + 1
    history = client.get("/api/learners/toys/history").json()
    labels, counts = history["confusion"]["labels"], history["confusion"]["counts"]
    assert {
        (a, b): n for a, row in zip(labels, counts, strict=True)
        for b, n in zip(labels, row, strict=True) if n
    } == pairs  # fmt: skip
    assert [place for place, _ in history["accuracy"]] == list(range(2, 61))
    assert np.trace(counts) == right
    assert history["memory"][-1][1] == state(client, "toys")["memory"] > 0


def test_errors_of_a_regressor_are_of_predictions_before_learning(client, rng):
    X = rng.normal(size=(3, 2))
    create(client, "arm", "regressor", penalty=1.0)
    local, squares = RecursiveRegressor(penalty=1.0), []
    for x, y in zip(X, [1.0, -2.0, 0.5], strict=True):
        if hasattr(local, "n_seen_"):
            squares.append((local.predict_one(x) - y) ** 2)
        teach(client, "arm", x[None], [y], "outputs")
        local.learn_one(x, y)
    last = client.get("/api/learners/arm/history").json()["error"][-1]
    assert last[0] == 3
    assert last[1] == pytest.approx(np.sqrt((0.99 * squares[0] + squares[1]) / 1.99))


# Kept, moved, merged.


def test_everything_is_there_after_a_restart(tmp_path):
    X, y = objects()
    with opened(tmp_path) as client:
        create(client, "toys")
        teach(client, "toys", X, y)
        create(client, "drawn", features="pixels")
        show(client, "circle", picture("circle"))
        client.patch("/api/learners/toys", json={"recoding": 0.4})
        before = [told(client) for told in (listed, history, pictured)]
        answers = ask(client, "toys", X)
    with opened(tmp_path) as client:
        assert [told(client) for told in (listed, history, pictured)] == before
        assert ask(client, "toys", X) == answers


def listed(client):
    learners = client.get("/api/learners").json()["learners"]
    # A snapshot may replace records, and a model is weighed now and then.
    return [{k: v for k, v in one.items() if k not in ("disk", "memory")} for one in learners]


def history(client):
    return client.get("/api/learners/toys/history").json()


def pictured(client):
    return client.get(state(client, "drawn")["classes"][0]["thumbnails"][0]).content


def test_an_exported_learner_goes_on_elsewhere(tmp_path):
    X, y = objects()
    with opened(tmp_path / "here") as client:
        create(client, "drawn", features="pixels")
        show(client, "circle", picture("circle"))
        create(client, "toys")
        teach(client, "toys", X[:60], y[:60])
        files = {n: client.get(f"/api/learners/{n}/export").content for n in ("toys", "drawn")}
        teach(client, "toys", X[60:], y[60:])
        answers, shown = ask(client, "toys", X), pictured(client)
    with opened(tmp_path / "there") as client:
        for name, content in files.items():
            assert client.post("/api/import", params={"name": name}, content=content).is_success
        teach(client, "toys", X[60:], y[60:])
        assert ask(client, "toys", X) == answers
        assert pictured(client) == shown
        assert history(client)["confusion"]["labels"]
        assert state(client, "drawn")["features"] == "pixels"
    names = zipfile.ZipFile(io.BytesIO(files["toys"])).namelist()
    assert sorted(names) == ["about.json", "album.bin", "learner.imparo"]


def test_a_model_file_of_the_library_is_imported(client, tmp_path):
    X, y = objects()
    local = IncrementalClassifier().fit(X, y)
    save(local, tmp_path / "model.imparo")
    content = (tmp_path / "model.imparo").read_bytes()
    assert client.post("/api/import?name=mine", content=content).status_code == 201
    assert ask(client, "mine", X)["answers"] == local.predict(X).tolist()


def test_merged_is_what_one_pass_gives(client, tmp_path):
    X, y = objects()
    for name, part in (("a", slice(60)), ("b", slice(60, 120))):
        create(client, name, penalty=1.0, recoding=0.3)
        teach(client, name, X[part], y[part])
    before = kept(client, "b", tmp_path)
    post(client, "/api/learners/a/merge", {"other": "b"})
    assert kept(client, "b", tmp_path) == before
    assert state(client, "a")["n_seen"] == 120
    local = [IncrementalClassifier(penalty=1.0, recoding=0.3).fit(X[p], y[p])
             for p in (slice(60), slice(60, 120))]  # fmt: skip
    merged = copy.deepcopy(local[0]).merge(local[1])
    found = ask(client, "a", X)["probabilities"]
    assert np.allclose(found, merged.predict_proba(X), atol=1e-9)


# What cannot be done.


@pytest.mark.parametrize(
    ("path", "content", "status", "said"),
    [
        ("toys/teach", {"inputs": [[1, 2]], "labels": ["a"]}, 422, "takes 4"),
        ("toys/teach", {"inputs": [[1, 2, 3, 4]], "labels": ["a", "b"]}, 422, "2 labels"),
        ("toys/teach", {"inputs": [[1, 2, 3, 4]], "outputs": [1.0]}, 422, "learns labels"),
        ("toys/teach", {"inputs": [[1, 2, 3, 4], [1, 2]], "labels": "a"}, 422, "row 1"),
        ("toys/teach", {"inputs": [], "labels": []}, 422, "expected"),
        ("toys/teach", {"inputs": [[]], "labels": ["a"]}, 422, "empty"),
        ("toys/teach", {"inputs": [["1", 2, 3, 4]], "labels": ["a"]}, 422, "not a number"),
        ("toys/teach", {"inputs": [[1, 2, 3, 1e200]], "labels": ["a"]}, 422, "beyond 1e100"),
        ("toys/teach", {"inputs": [[1, 2, 3, 4]], "labels": [" "]}, 422, "1 to 200"),
        ("toys/teach", {"inputs": [[1, 2, 3, 4]], "labels": [None]}, 422, "labels"),
        ("toys/teach", {"inputs": [[1, 2, 3, 4]], "labels": ["x"], "k": 1}, 422, "k"),
        ("toys/ask", {"inputs": [1, 2, 3]}, 422, "takes 4"),
        ("toys/ask", {"inputs": [1, 2, 3, 4], "recoding": 1.5}, 422, "recoding"),
        ("fresh/ask", {"inputs": [1, 2, 3, 4]}, 409, "nothing is known yet"),
        ("toys/rename", {"label": "nobody", "new": "x"}, 422, "not among the classes"),
        ("toys/merge", {"other": "toys"}, 422, "itself"),
        ("toys/merge", {"other": "fresh"}, 409, "'fresh' has learned nothing"),
        ("toys/merge", {"other": "nobody"}, 404, "no learner"),
        ("nobody/teach", {"inputs": [1], "labels": "a"}, 404, "no learner"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    client, tmp_path, path, content, status, said
):
    X, y = objects()
    create(client, "toys")
    create(client, "fresh")
    teach(client, "toys", X, y)
    before = [kept(client, name, tmp_path) for name in ("toys", "fresh")]
    error = post(client, f"/api/learners/{path}", content, status)["error"]
    assert said in error
    assert "\n" not in error
    assert [kept(client, name, tmp_path) for name in ("toys", "fresh")] == before


def test_what_cannot_be_made_is_said(client):
    create(client, "toys")
    assert "already" in post(client, "/api/learners",
                             {"name": "toys", "kind": "classifier"}, 409)["error"]  # fmt: skip
    assert "at most 4096" in create_refused(
        client, "big", status=413, fourier={"n_features": 5000, "sigma": 1.0}
    )
    assert "urdf must be the text" in create_refused(
        client, "x", "dynamics", model="P", robot={"urdf": "/etc/passwd"}
    )
    for name in ("", "../x", "a b", "x" * 65, "ä"):
        assert client.post("/api/learners", json={"name": name, "kind": "classifier"}
                           ).status_code == 422  # fmt: skip


def test_learners_end_where_memory_and_room_do(tmp_path):
    limits = Limits(learners=2, memory=10_000_000, classes=3)
    with opened(tmp_path, limits=limits) as client:
        create(client, "wide", n_inputs=500)
        teach(client, "wide", np.eye(500)[:3], ["a", "b", "c"])
        told = post(client, "/api/learners",
                    {"name": "more", "kind": "classifier", "parameters": {"n_inputs": 500}},
                    413)  # fmt: skip
        assert "are taken" in told["error"]
        content = {"inputs": np.eye(500)[4].tolist(), "labels": "d"}
        assert "3 classes" in post(client, "/api/learners/wide/teach", content, 413)["error"]
        create(client, "small", n_inputs=1)
        told = post(client, "/api/learners", {"name": "third", "kind": "classifier"}, 413)
        assert "at most 2" in told["error"]
        assert client.delete("/api/learners/small").status_code == 204
        create(client, "small", n_inputs=1)


def test_a_deleted_learner_is_gone_for_good(tmp_path):
    with opened(tmp_path) as client:
        create(client, "toys")
        teach(client, "toys", *objects())
        client.delete("/api/learners/toys").raise_for_status()
        assert client.get("/api/learners/toys").status_code == 404
        create(client, "toys")
        assert state(client, "toys")["n_seen"] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "toys"]


def test_a_damaged_learner_does_not_stop_the_others(tmp_path):
    with opened(tmp_path) as client:
        for name in ("good", "bad"):
            create(client, name)
            teach(client, name, *objects())
    (snapshot,) = (tmp_path / "bad" / "learner").glob("snapshot-*")
    snapshot.write_bytes(b"damaged")
    (tmp_path / ".making-x").mkdir()  # what a crash left
    with opened(tmp_path) as client:
        assert state(client, "good")["n_seen"] == 120
        told = state(client, "bad")
        assert told["status"] == "damaged"
        assert told["reason"]
        answer = client.post("/api/learners/bad/ask", json={"inputs": [1, 2, 3, 4]})
        # Not 503: to try again changes nothing.
        assert answer.status_code == 409
        assert "retry-after" not in answer.headers
        assert client.get("/health/ready").json()["damaged"] == ["bad"]
        assert not (tmp_path / ".making-x").exists()
        assert snapshot.read_bytes() == b"damaged"  # for whoever repairs it


def test_a_folder_is_served_once(tmp_path):
    with opened(tmp_path), pytest.raises(BlockingIOError, match="served already"):
        create_app(Settings(tmp_path))


@pytest.mark.parametrize(
    ("kind", "body", "content_type"),
    [
        ("teach", b'{"inputs": [[1, 2, 3, 4], [0, 1, 0, 1]], "labels": ["a", "b"]}', "json"),
        ("ask", b'{"inputs": [1, 2, 3, 4], "recoding": 0.2, "novelty": true}', "json"),
        ("ask", b'{"inputs": [1, 2, 3, 4]}', "json; charset=utf-8"),
        ("ask", b'{"inputs": [1, 2, 3, 4]}', "xml"),
        ("ask", b'{"inputs": [1, 2, 3]}', "json"),
        ("ask", b'{"inputs": ', "json"),
        ("ask", b"", "json"),
        ("teach", b'{"inputs": [1, 2, 3, 4], "labels": "\\ud800"}', "json"),
        ("teach", b'{"inputs": [1, 2, 3, 4]}', "json"),
    ],
)
def test_the_short_way_does_what_the_route_does(tmp_path, kind, body, content_type):
    told = []
    for way in ("short", "long"):
        app = create_app(Settings(tmp_path / way))
        whole = TestClient(app, base_url="http://localhost")
        route = TestClient(app.inner, base_url="http://localhost")
        with whole:
            create(whole, "toys", penalty=1.0)
            teach(whole, "toys", *objects())
            answer = (whole if way == "short" else route).post(
                f"/api/learners/toys/{kind}", content=body,
                headers={"content-type": f"application/{content_type}"},
            )  # fmt: skip
            told.append((answer.status_code, answer.json(), kept(whole, "toys", tmp_path)[:2]))
            if way == "long":
                assert "content-security-policy" not in answer.headers  # not by the guard
    (status, said, (model, _)), (other_status, other_said, (other_model, _)) = told
    assert (status, said, model) == (other_status, other_said, other_model)
