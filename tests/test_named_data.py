"""Data sets by name: what is found where, and what is put right."""

import hashlib
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_breast_cancer, load_digits

from imparo.data import Frame, load_concrete
from imparo.data.named import (
    DATASETS,
    UnknownDataset,
    cache_folder,
    content_checksum,
    find,
    locate,
    names,
    verify,
    where,
)
from imparo.data.readers.in_memory import ArrayRows

THESIS = [
    "cpuSmall", "CPU", "pumadyn32nh", "breastCancer", "Insurance Company", "CT slices",
    "YearPredictionMSD", "Forest", "Adult", "Ijcnn", "CovertypeBinary", "MNIST",
    "iCubWorld28", "RGB-D",
]  # fmt: skip


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An empty IMPARO_DATA and an empty cache."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    cache.mkdir()
    monkeypatch.setenv("IMPARO_DATA", str(data))
    monkeypatch.setenv("IMPARO_CACHE", str(cache))
    return data, cache


def table_of(rows, columns=None, size=None):
    frames = list(rows.blocks(columns, size))
    return np.concatenate([np.asarray(frame) for frame in frames])


# The registry.


@pytest.mark.parametrize("name", THESIS)
def test_every_data_set_of_the_thesis_is_known_by_the_name_it_has_there(name):
    assert DATASETS[name].thesis or DATASETS[name].name == "breast-cancer"


def test_names_are_found_in_any_spelling():
    assert DATASETS["CPU_small"] is DATASETS["cpu-small"] is DATASETS["cpuSmall"]
    assert DATASETS["puma32H"].name == "pumadyn32nm"
    assert names() == list(DATASETS)


@pytest.mark.parametrize(
    ("wrong", "near"), [("adlt", "adult"), ("covtyp", "covtype"), ("m-nist", "mnist")]
)
def test_a_slip_is_told_with_the_names_near_it(wrong, near):
    if wrong == "m-nist":
        assert DATASETS[wrong].name == near
        return
    with pytest.raises(UnknownDataset, match=f"did you mean {near}"):
        find(wrong)
    with pytest.raises(ValueError, match="datasets list"):
        find("nothing of the kind")


@pytest.mark.parametrize("name", names())
def test_entries_are_complete(name):
    dataset = DATASETS[name]
    assert dataset.title
    assert dataset.licence
    assert dataset.source
    assert dataset.task in ("regression", "classification")
    assert len(dataset.column_names) in (0, dataset.columns)
    assert len(set(dataset.column_names)) == len(dataset.column_names)
    assert dataset.to_dict()["rows"] == dataset.rows
    assert where(dataset) in ("shipped", "data", "cache", "download", "none")
    if dataset.recipe is not None:
        for part in dataset.parts.values():
            for array in dataset.arrays:
                key = f"{array}_{part.suffix}" if part.suffix else array
                assert dataset.recipe.shapes[key][0] >= part.first + part.rows
        assert dataset.archives


def test_downloads_are_from_publishers_and_no_registry_of_packages():
    addresses = [
        address
        for dataset in DATASETS.values()
        if dataset.recipe
        for original in dataset.recipe.originals
        for address in original.addresses
    ]
    assert len(addresses) > 15
    hosts = {re.match("https://([^/]+)/", address)[1] for address in addresses}
    assert hosts == {
        "archive.ics.uci.edu", "www.csie.ntu.edu.tw", "gaussianprocess.org",
        "raw.githubusercontent.com", "storage.googleapis.com",
        "ossci-datasets.s3.amazonaws.com",
    }  # fmt: skip


# Rows without a file.


def test_concrete_and_the_sets_of_scikit_learn_need_no_file(folders):
    concrete, digits, cancer = find("concrete"), find("digits"), find("breast-cancer")
    shipped = load_concrete()
    assert concrete.names == [*shipped.feature_names, "compressive_strength"]
    np.testing.assert_array_equal(
        table_of(concrete, size=100), np.column_stack([shipped.X, shipped.y])
    )
    assert digits.targets == ["digit"]
    np.testing.assert_array_equal(table_of(digits, digits.names[:-1]), load_digits().data)
    given = load_breast_cancer()
    (block,) = cancer.blocks(["diagnosis"])
    np.testing.assert_array_equal(block["diagnosis"] == "malignant", given.target == 0)
    assert cancer.kinds["diagnosis"] == "text"
    assert verify("concrete") == []


def test_rows_in_memory_are_cut_into_blocks_of_the_columns_asked_for():
    frame = Frame({"a": np.arange(5), "b": list("vwxyz"), "t": np.arange("2020", "2025",
                   dtype="M8[Y]")})  # fmt: skip
    rows = ArrayRows(frame, targets=["b"])
    assert rows.kinds == {"a": "number", "b": "text", "t": "date"}
    assert (rows.n_rows, rows.n_columns, rows.targets) == (5, 3, ["b"])
    blocks = list(rows.blocks(["b", "a"], size=2))
    assert [block.columns for block in blocks] == [["b", "a"]] * 3
    assert [block["a"].tolist() for block in blocks] == [[0, 1], [2, 3], [4]]
    assert len(list(rows.blocks())) == 1
    with pytest.raises(ValueError, match="'c'"):
        list(rows.blocks(["c"]))


@pytest.mark.parametrize(
    "call",
    [
        lambda: ArrayRows(Frame({"a": [1]}), targets=["y"]),
        lambda: ArrayRows.from_arrays(np.zeros(3)),
        lambda: ArrayRows.from_arrays(np.zeros((3, 2)), names=["a"]),
        lambda: ArrayRows.from_arrays(np.zeros((3, 2)), names=["a", "y"]),
    ],
    ids=["target", "shape", "count", "twice"],
)
def test_rows_in_memory_refuse_what_does_not_fit(call):
    with pytest.raises(ValueError):
        call()


# Where files are looked for.


def save_kin40k(path, value):
    y = np.full(40_000, value, np.float32)
    np.savez_compressed(path, X=np.zeros((40_000, 8), np.float32), y=y)


def test_the_users_folder_comes_before_the_cache(folders):
    data, cache = folders
    assert locate("kin40k") is None
    assert where(DATASETS["kin40k"]) == "download"
    save_kin40k(cache / "uci_kin40k.npz", 1)
    assert where(DATASETS["kin40k"]) == "cache"
    assert next(find("kin40k").blocks(["distance"], 5))["distance"][0] == 1
    save_kin40k(data / "uci_kin40k.npz", 2)
    assert locate("kin40k") == data / "uci_kin40k.npz"
    assert next(find("kin40k").blocks(["distance"], 5))["distance"][0] == 2


def test_a_part_that_one_file_lacks_is_taken_from_the_other(folders):
    data, cache = folders
    test = {"X_test": np.zeros((4449, 21)), "y_test": np.zeros((4449, 7))}
    np.savez(data / "sarcos_inv_test_only.npz", **test)
    assert find("sarcos").n_rows == 4449
    with pytest.raises(FileNotFoundError, match=r"the part 'train' of sarcos .* get sarcos"):
        find("sarcos", "train")
    train = {"X_train": np.ones((44_484, 21), "f4"), "y_train": np.ones((44_484, 7), "f4")}
    np.savez(cache / "sarcos_inv.npz", **train, **test)
    assert locate("sarcos", "train") == cache / "sarcos_inv.npz"
    assert locate("sarcos", "test") == data / "sarcos_inv_test_only.npz"
    rows = find("sarcos", "train")
    assert rows.targets == [f"tau{j}" for j in range(1, 8)]
    assert rows.groups["y"] == rows.targets


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("year-prediction", "imparo datasets get year-prediction"),
        ("icub-arm", r"put icub_arm_ft_small\.npz in the folder"),
        ("icubworld28", "cannot be had: G. Pasquale"),
    ],
)
def test_what_is_not_here_is_told_with_what_to_do(folders, name, words):
    with pytest.raises(FileNotFoundError, match=words):
        find(name)


def test_an_unknown_part_is_told_with_those_there_are(folders):
    with pytest.raises(ValueError, match="its parts are train, val, test"):
        find("ijcnn1", "all")
    with pytest.raises(ValueError, match="its parts are all"):
        find("concrete", "train")


def test_files_that_are_other_than_they_should_be_are_refused(folders):
    data, _ = folders
    path = data / "uci_kin40k.npz"
    path.write_text("no archive")
    with pytest.raises(ValueError, match="damaged"):
        find("kin40k")
    np.savez(path, X=np.zeros((40_000, 7)), y=np.zeros(40_000))
    with pytest.raises(ValueError, match="7 columns to learn from where kin40k has 8"):
        find("kin40k")
    np.savez(path, X=np.zeros((300, 8)), y=np.zeros(300))
    with pytest.raises(ValueError, match="300 rows where 40,000"):
        find("kin40k")
    save_kin40k(path, 0)
    with pytest.raises(ValueError, match="other values in X"):
        verify("kin40k")
    np.savez(path, Z=np.zeros(3))
    assert locate("kin40k") is None


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("IMPARO_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("IMPARO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "imparo"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "imparo"


# Corrections, on the real files.


def test_the_artefacts_of_adult_are_left_out(real_data):
    given = real_data("adult")
    for part, n in (("train", 32_561), ("test", 16_281)):
        artefact = given[f"X_{part}"][-1]
        assert not artefact.any()
        rows = find("adult", part)
        assert rows.n_rows == n == len(given[f"X_{part}"]) - 1
        found = table_of(rows, ["X[0]", "X[122]", "income_above_50k"], 5000)
        expected = [given[f"X_{part}"][:-1, j] for j in (0, 122)]
        expected.append(given[f"y_{part}"][:-1])
        np.testing.assert_array_equal(found, np.column_stack(expected))


def test_parts_that_the_thesis_cuts_out_are_its_rows(real_data):
    given = real_data("cpu_small")
    for part, cut in (("train", slice(6554)), ("test", slice(6554, None)), (None, slice(None))):
        rows = find("cpuSmall", part)
        expected = np.column_stack([given["X"], given["y"]])[cut]
        assert rows.n_rows == len(expected)
        for size in (1000, None):
            blocks = list(rows.blocks(size=size))
            assert all(len(block) <= (size or 10**9) for block in blocks)
            found = np.concatenate([np.asarray(block) for block in blocks])
            np.testing.assert_array_equal(found, expected)
    assert rows.names[9:] == ["runqsz", "freemem", "freeswap", "usr"]


def test_the_shifted_rows_of_computer_activity_are_as_the_note_says(real_data):
    given = real_data("cpu_act")
    X = dict(zip(DATASETS["cpu-act"].column_names, given["X"].T, strict=True))
    moved = X["freeswap"] < 1000
    assert moved.sum() == 294
    assert "294" in DATASETS["cpu-small"].notes[0]
    assert X["freeswap"][~moved].min() > 900_000
    # User, system and waiting time make up all of it; idle time is missing.
    total = X["freemem"][moved] + X["freeswap"][moved] + given["y"][moved]
    assert 97 <= total.min() <= total.max() <= 101
    assert given["y"][moved].max() == 2
    assert np.median(X["runqsz"][moved]) > 100 > np.median(X["runqsz"][~moved])


def test_the_classes_of_covertype_become_two(real_data):
    given = real_data("covtype")["y"]
    found = table_of(find("covtype-binary", "test"), ["lodgepole_pine"])[:, 0]
    np.testing.assert_array_equal(found, np.where(given[522_910:] == 2, 1, -1))
    assert find("covtype").names[:2] == ["elevation", "aspect"]


def test_views_of_the_turntable_are_apart(real_data):
    given = real_data("icub_camera49_effnetlite0")
    for part, mask in (("train", given["view"] < 36), ("test", given["view"] >= 36)):
        rows = find("icub-camera49", part)
        assert rows.names[-2:] == ["X[1279]", "object"]
        assert rows.n_rows == mask.sum()
        found = table_of(rows, ["object", "X[3]"], 500)
        expected = np.column_stack([given["y"][mask], given["X"][mask, 3]])
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["adult", "insurance", "pumadyn32nh", "panda", "ijcnn1"])
def test_the_shared_files_have_the_checksums_of_the_catalogue(name, real_data):
    real_data(DATASETS[name].archives[0].removesuffix(".npz"))
    assert len(verify(name)) == len(DATASETS[name].checksums) > 1


# Checksums.


def reference(array):
    """The checksum by its definition, a number at a time."""
    digest = hashlib.sha256(",".join(map(str, array.shape)).encode() + b"\n")
    for value in array.ravel().tolist():
        digest.update(struct.pack("<d", float(value) + 0.0))
    return digest.hexdigest()


@given(
    arrays(np.int16, st.tuples(st.integers(0, 40), st.integers(1, 5))),
    st.sampled_from(["<i2", ">i4", "<f4", ">f8"]),
)
def test_checksums_are_of_shape_and_values_alone(array, dtype):
    assert content_checksum(np.asfortranarray(array.astype(dtype))) == reference(array)


def test_checksums_tell_shapes_and_values_apart():
    a = np.arange(6.0)
    others = [a.reshape(2, 3), a.reshape(3, 2), a[::-1], a + 1e-12]
    assert len({content_checksum(x) for x in [a, *others]}) == 5
    assert content_checksum(np.array([0.0, np.nan])) == content_checksum(
        np.array([-0.0, -np.nan])
    )
    big = np.arange(3_000_000, dtype=np.float32).reshape(-1, 3)
    assert content_checksum(big[:0]) != content_checksum(big)
    with pytest.raises(TypeError, match="rows of numbers"):
        content_checksum(np.array(["a"]))


def test_the_page_of_data_sets_has_them_all():
    page = Path(__file__).parents[1] / "docs" / "datasets.md"
    table = [line.split("|") for line in page.read_text().splitlines() if "| `" in line[:3]]
    told = {cells[1].strip(" `"): cells for cells in table}
    assert list(told) == names()
    for name, cells in told.items():
        dataset = DATASETS[name]
        assert f"{dataset.columns:,}" == cells[4].strip()
        assert dataset.licence == cells[6].strip()
        assert all(f"{part.rows:,}" in cells[3] for part in dataset.parts.values())
        assert ("download" in cells[7]) == (dataset.recipe is not None)
