"""What the service refuses to import: archives, models and albums made to harm."""

import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as save_tensors

import imparo
from imparo.errors import FileFormatError
from imparo.journal import decode, encode
from imparo.lifelong import IncrementalClassifier, RecursiveRegressor
from imparo.service import Limits
from service_tools import bits, exported, in_process, populate, taught_service

taught = pytest.fixture(scope="module")(taught_service)


@pytest.fixture
def client(tmp_path):
    with in_process(tmp_path / "learners") as found:
        yield found


# Files to import.


def packed(parts, **how):
    """A ZIP file of (name, content) pairs, or of a dictionary."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **how) as archive:
        for name, content in parts.items() if isinstance(parts, dict) else parts:
            archive.writestr(name, content)
    return buffer.getvalue()


def bring(client, content, name="copy"):
    return client.post("/api/import", params={"name": name}, content=content)


def test_what_is_exported_can_be_imported(client, tmp_path):
    populate(client)
    for name in ("toys", "arm", "drawn"):
        content = client.get(f"/api/learners/{name}/export").content
        answer = bring(client, content, f"{name}-2")
        assert answer.status_code == 201, answer.text
        again = client.get(f"/api/learners/{name}-2/export").content
        assert bits(again, tmp_path) == bits(content, tmp_path)


def _archives(parts):
    model = parts["learner.imparo"]
    whole = packed(parts)
    lie = bytearray(whole)
    place = whole.index(b"PK\1\2")
    lie[place + 24 : place + 28] = b"\x0a\0\0\0"  # the size it unpacks to
    encrypted = bytearray(whole)
    encrypted[6] |= 1
    encrypted[place + 8] |= 1
    yield "another file", packed({**parts, "run.py": b"import os"})
    yield "a path", packed({**parts, "../../evil": b"x"})
    yield "paths only", packed({f"../{name}": content for name, content in parts.items()})
    yield "absolute", packed({f"/{name}": content for name, content in parts.items()})
    yield "twice", packed([*parts.items(), ("learner.imparo", model)])
    yield "a part less", packed({"learner.imparo": model, "about.json": parts["about.json"]})
    yield "nothing", packed({})
    yield "a lie of sizes", bytes(lie)
    yield "encrypted", bytes(encrypted)
    yield "in another way", packed(parts, compression=zipfile.ZIP_LZMA)
    yield "in yet another way", packed(parts, compression=zipfile.ZIP_BZIP2)
    yield "only entries", b"PK\3\4" + whole[place : place + 46 + 14] * 5000 + whole[-22:]
    yield "nested", packed({**parts, "learner.imparo": whole})
    for part in parts:
        yield f"no {part}", packed({**parts, part: b""})
        yield f"noise as {part}", packed({**parts, part: b"\xff" * 1000})
    for share in (0.02, 0.5, 0.99):
        yield f"cut at {share}", whole[: int(share * len(whole))]
    yield "a cut model", model[: len(model) // 2]
    yield "no bytes", b""
    yield "a pickle", b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94."
    yield "a number", b"PK\3\4"


def test_archives_that_are_not_what_was_exported_are_refused(taught):
    for what, content in _archives(exported(taught)):
        answer = bring(taught, content)
        assert answer.status_code == 422, what
        assert list(answer.json()) == ["error"]


def test_an_archive_that_unpacks_to_far_more_is_refused(tmp_path):
    with in_process(tmp_path / "learners", limits=Limits(import_bytes=10**6)) as client:
        client.post("/api/learners", json={"name": "toys", "kind": "classifier"})
        parts = exported(client)
        bomb = packed({**parts, "album.bin": bytes(10**8)}, compression=zipfile.ZIP_DEFLATED)
        assert len(bomb) < 10**6
        assert bring(client, bomb).status_code == 413


@pytest.mark.parametrize(
    "about",
    [b"", b"[]", b"null", b"{}", b'{"features": []}', b'{"features": "pickles"}',
     b"[" * 100_000,
     b'{"features": {"a": 1}}', b'{"features": NaN}', b'{"features": "pix\xff"}'],
)  # fmt: skip
def test_an_about_that_is_none_is_refused(taught, about):
    answer = bring(taught, packed({**exported(taught), "about.json": about}))
    assert answer.status_code == 422


def test_only_classifiers_learn_images(taught):
    about = json.dumps({"features": "pixels"})
    assert (
        bring(taught, packed({**exported(taught, "arm"), "about.json": about})).status_code
        == 422
    )


def test_models_of_other_kinds_are_refused(taught, tmp_path):
    X, y = np.eye(3), np.arange(3.0)
    for model in (imparo.KernelRegressor(penalty=0.1).fit(X, y), imparo.KernelRegressor()):
        imparo.save(model, tmp_path / "model.imparo")
        answer = bring(taught, (tmp_path / "model.imparo").read_bytes())
        assert answer.status_code == 422
        assert "KernelRegressor" in answer.json()["error"]


def test_a_learner_saved_by_the_library_can_be_imported(client, tmp_path):
    for name, learner, y in (
        ("c", IncrementalClassifier(), ["a", "b", "a"]), ("r", RecursiveRegressor(), [0.0, 1.0,
        2.0]),
    ):  # fmt: skip
        for number in (0, 1):
            imparo.save(learner, tmp_path / "model.imparo")
            learner.partial_fit(np.eye(3), y)
            answer = bring(client, (tmp_path / "model.imparo").read_bytes(), f"{name}{number}")
            assert answer.status_code == 201, answer.text
            assert answer.json()["n_seen"] == 3 * number


def test_nothing_is_left_of_what_was_refused(client, tmp_path):
    populate(client)
    before = sorted(path.name for path in (tmp_path / "learners").iterdir())
    parts = exported(client)
    for _, content in _archives(parts):
        assert bring(client, content).status_code == 422
    for about in (b"{}", json.dumps({"features": "pickles"})):
        assert bring(client, packed({**parts, "about.json": about})).status_code == 422
    assert sorted(path.name for path in (tmp_path / "learners").iterdir()) == before
    assert client.get("/health/ready").json() == {"status": "ready", "damaged": []}


# Model files whose header was made to harm.


def taken_apart(model, folder):
    (folder / "model.imparo").write_bytes(model)
    with safe_open(folder / "model.imparo", "numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        return json.loads(file.metadata()["imparo"]), arrays


def put_together(header, arrays):
    """A model file with all checksums right."""
    header["arrays"] = {
        name: imparo.persistence._digest(array) for name, array in arrays.items()
    }
    text = json.dumps(header)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return save_tensors(arrays, metadata={"imparo": text, "sha256": digest})


def state_of(header):
    """The attributes of a learner in a header, by name."""
    keys, values = header["object"]["$object"][1]["$dict"]
    return keys, values


HUGE = 10**12
RIGGED = [
    {"$objects": ["U1000000000", [4], ["a", "b", "c", "d"]]},
    {"$objects": ["<U100000000", [3], ["ball", "car", "mug"]]},
    {"$objects": ["S2000000000", [3], ["ball", "car", "mug"]]},
    {"$objects": ["1000000000f8", [3], [0, 0, 0]]},
    {"$objects": ["V1000000000", [1], [0]]},
    {"$objects": ["O", [HUGE], ["a"]]},
    {"$objects": ["O", [-1], []]},
    {"$objects": ["O", [3], [["a"], "b", {"$float": "nan"}]]},
    {"$scalar": ["V1", 4 * 10**9]},
    {"$scalar": ["1000000000f8", 0]},
    {"$sklearn": ["Pipeline", {"$dict": [["memory", "steps"], ["/tmp", []]]}, "1.0"]},
    {"$sklearn": ["FunctionTransformer", {"$dict": [[], []]}, "1.0"]},
    {"$splitter": ["__builtins__", {"$dict": [[], []]}]},
    {"$splitter": ["GridSearchCV", {"$dict": [[], []]}]},
    {"$object": ["os.system", {"$dict": [[], []]}]},
    {"$object": ["Recursion", {"$dict": [["root"], [1]]}]},
    {"$object": ["Recursion", []]},
    {"$array": ["../../etc/passwd", "C"]},
    {"$array": ["nothing", "C"]},
    {"$csr": {"$dict": [["data"], [1]]}},
    {"$randomstate": {"$tuple": ["MT19937", [0] * 624, HUGE, 0, 0.0]}},
    {"$range": [0, HUGE, 1]},
    {"$range": [0, 10, 0]},
    {"$dict": [[[], {}], [1, 2]]},
    {"$dict": [["a"], []]},
    {"$dtype": "nothing"},
    {"$float": "x"},
    {"$tuple": 5},
    {"$unknown": 1},
    {"a": 1, "b": 2},
    {},
    "x",
    -1,
    HUGE,
    [],
]


@pytest.mark.parametrize(
    "place", ["classes_", "_reservoir", "_recursions", "n_features_in_", "_codes"]
)
def test_a_header_that_was_made_to_harm_is_refused(taught, tmp_path, place):
    model = exported(taught)["learner.imparo"]
    for rigged in RIGGED:
        header, arrays = taken_apart(model, tmp_path)
        keys, values = state_of(header)
        values[keys.index(place)] = rigged
        answer = bring(taught, put_together(header, arrays))
        assert answer.status_code in (413, 422), rigged
        assert list(answer.json()) == ["error"]


def test_one_array_cannot_be_named_a_thousand_times(taught, tmp_path):
    header, arrays = taken_apart(exported(taught)["learner.imparo"], tmp_path)
    keys, values = state_of(header)
    name = next(iter(arrays))
    keys.append("more")
    values.append([{"$array": [name, "C"]}] * 1000)
    assert bring(taught, put_together(header, arrays)).status_code == 422


@pytest.mark.parametrize(
    ("part", "harm"),
    [
        ("root", lambda a: np.zeros((len(a), 1))), ("root", lambda a: np.zeros((2, 2))),
        ("root", lambda a: np.full_like(a, np.nan)), ("root", lambda a: a.astype(np.int64)),
        ("_gains", lambda a: np.zeros((32, 1))), ("_rows", lambda a: np.zeros((1, 1))),
        ("_coef", lambda a: np.zeros((0, 0))), ("_coef", lambda a: np.full_like(a, np.inf)),
        ("_targets", lambda a: np.zeros((32, 0))), ("_weights", lambda a: np.zeros(1)),
        ("_codes", lambda a: np.full_like(a, 2**40)), ("_codes", lambda a: np.full_like(a, -5)),
        ("_codes", lambda a: np.zeros(0, a.dtype)),
    ],
)  # fmt: skip
def test_arrays_that_do_not_go_together_are_refused(taught, tmp_path, part, harm):
    """Compiled loops do not look where they read and write."""
    header, arrays = taken_apart(exported(taught)["learner.imparo"], tmp_path)
    names = [name for name in arrays if name.endswith(part)]
    assert names
    for name in names:
        arrays[name] = np.ascontiguousarray(harm(arrays[name]))
    assert bring(taught, put_together(header, arrays)).status_code == 422


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("n_seen_", -1), ("n_seen_", "3"), ("n_seen_", 1e9), ("_best", 7), ("_shown", [1]),
     ("_shown", ["a", "b", "c"]), ("temperature_", {"$float": "nan"}), ("unknown_label", []),
     ("unknown_label", "x" * 1000), ("holdout_size", HUGE), ("n_features_in_", 2),
     ("_labels", ["mug", "mug", "mug"]), ("_alpha", {"$float": "inf"}), ("_until_selection",
     "x"),
     ("classes_", {"$objects": ["O", [3], [1.5, None, True]]})],
)  # fmt: skip
def test_values_that_do_not_go_together_are_refused(taught, tmp_path, attribute, value):
    header, arrays = taken_apart(exported(taught)["learner.imparo"], tmp_path)
    keys, values = state_of(header)
    values[keys.index(attribute)] = value
    assert bring(taught, put_together(header, arrays)).status_code in (413, 422)


def test_a_learner_that_has_learned_nothing_is_looked_at_too(taught, tmp_path):
    from imparo.estimators import RandomFeatures

    learner = IncrementalClassifier(RandomFeatures(sigma=1.0, n_features=10**9))
    imparo.save(learner, tmp_path / "model.imparo")
    assert bring(taught, (tmp_path / "model.imparo").read_bytes()).status_code == 413


def test_a_header_of_brackets_is_refused_before_it_is_read(taught):
    text = "[" + "[]," * 10**7 + "[]]"
    digest = hashlib.sha256(text.encode()).hexdigest()
    content = save_tensors({"a": np.zeros(1)}, metadata={"imparo": text, "sha256": digest})
    assert bring(taught, content).status_code == 422


@pytest.mark.parametrize(
    "rigged", [RIGGED[0], RIGGED[3], RIGGED[8], *RIGGED[10:14], *RIGGED[17:21], *RIGGED[23:31]]
)
def test_the_library_says_what_is_wrong_with_such_files_too(taught, tmp_path, rigged):
    header, arrays = taken_apart(exported(taught)["learner.imparo"], tmp_path)
    header["object"] = rigged
    (tmp_path / "rigged.imparo").write_bytes(put_together(header, arrays))
    with pytest.raises(FileFormatError):
        imparo.load(tmp_path / "rigged.imparo")


def test_texts_and_sparse_rows_that_are_whole_are_read_as_before(tmp_path):
    from imparo.persistence import _decode, _encode, _Parts

    arrays = {}
    texts = np.array(["a", "b" * 200, ""] * 100)
    state = np.random.RandomState(3)  # what scikit-learn keeps
    state.normal(size=3)
    whole = [texts, texts.astype(object), state, np.float32(1.5), np.str_("x")]
    parts = _Parts(arrays)
    tree = _encode(whole, parts, "value")
    parts.room = 2**20
    found = _decode(tree, parts, tmp_path)
    assert (found[0] == texts).all()
    assert found[0].dtype == texts.dtype
    assert (found[1] == texts).all()
    assert found[2].normal() == state.normal()
    assert found[3:] == whole[3:]


# Albums that were made to harm.


@pytest.mark.parametrize(
    "harm",
    [
        lambda s: s["curves"]["accuracy"].update(step=0),
        lambda s: s["curves"]["accuracy"].update(most=0),
        lambda s: s["curves"]["memory"].update(most=10**9),
        lambda s: s["curves"]["memory"].update(points=[[1, 1.0, 0]]),
        lambda s: s["curves"]["memory"].update(points=[["a", 1.0, 1]]),
        lambda s: s["curves"]["memory"].update(points=[[1, float("nan"), 1]]),
        lambda s: s["curves"].pop("error"),
        lambda s: s["means"].pop("error"),
        lambda s: s["means"].update(more=[0.0, 1.0]),
        lambda s: s["means"].update(error=["a", "b"]),
        lambda s: s["means"].update(error=[-1.0, 1.0]),
        lambda s: s["means"].update(accuracy=[float("inf"), 1.0]),
        lambda s: s["confusion"].append(["mug", "ball", 1]),
        lambda s: s["confusion"].append(['"mug"', '["ball"]', 1]),
        lambda s: s["confusion"].append(['"mug"', '"ball"', -1]),
        lambda s: s["confusion"].extend([[f'"{k}"', '"x"', 1] for k in range(30_000)]),
        lambda s: s["thumbnails"].update({'"mug"': {"1": np.frombuffer(b"<svg>", np.uint8)}}),
        lambda s: s["thumbnails"].update({'"mug"': {"../1": np.frombuffer(b"\xff\xd8",
        np.uint8)}}),
        lambda s: s["thumbnails"].update({"mug": {"1": np.frombuffer(b"\xff\xd8", np.uint8)}}),
        lambda s: s["thumbnails"].update({'"m"': {"1": np.zeros(10**6, np.uint8)}}),
        lambda s: s.update(drawn="x"),
        lambda s: s.update(drawn=-1),
        lambda s: s.pop("thumbnails"),
    ],
)  # fmt: skip
def test_an_album_that_could_not_be_gone_on_with_is_refused(taught, harm):
    parts = exported(taught)
    state = decode(parts["album.bin"])
    harm(state)
    answer = bring(taught, packed({**parts, "album.bin": encode(state)}))
    assert answer.status_code == 422


# Nothing is ever unpickled.


def test_no_module_of_the_service_unpickles():
    root = Path(imparo.__file__).parent
    files = [*root.joinpath("service").glob("*.py"), *root.joinpath("journal").glob("*.py"),
             root.joinpath("lifelong", "durable.py"), root / "persistence.py"]  # fmt: skip
    assert len(files) > 30
    for file in files:
        text = file.read_text(encoding="utf-8")
        for word in (
            "pickle.load",
            "joblib.load(",
            "allow_pickle=True",
            "marshal",
            "shelve",
            "eval(",
        ):
            assert word not in text, (file.name, word)
