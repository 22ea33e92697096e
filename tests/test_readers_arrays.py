"""Archives of NumPy and HDF5 files: which arrays are columns, and their rows in blocks."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from scipy import sparse

from imparo.data import Frame
from imparo.data.readers import BadRows, ReadOptions, RowError, numpy_arrays
from imparo.data.readers.hdf5 import open_hdf5
from imparo.data.readers.numpy_arrays import open_npy, open_npz

h5py = pytest.importorskip("h5py")


def write_hdf5(path, **named):
    with h5py.File(path, "w") as file:
        for name, array in named.items():
            if array.dtype.kind == "U":
                array = array.astype(h5py.string_dtype())
            if array.ndim:
                file.create_dataset(name, data=array, compression="gzip", chunks=True)
            else:
                file[name] = array


FORMATS = {
    "packed": (open_npz, np.savez_compressed),
    "stored": (open_npz, np.savez),
    "hdf5": (open_hdf5, write_hdf5),
}


@pytest.fixture(params=list(FORMATS))
def opened(request, tmp_path):
    """A function that writes named arrays in a format and opens the file."""
    opener, write = FORMATS[request.param]

    def made(named, **options):
        path = tmp_path / ("rows.h5" if request.param == "hdf5" else "rows.npz")
        write(path, **{name: np.asarray(array) for name, array in named.items()})
        return opener(path, ReadOptions(**options))

    return made


def whole(rows, columns=None, size=3):
    parts = list(rows.blocks(columns, size))
    assert all(0 < len(part) <= size for part in parts)
    return Frame.stacked(parts)


def test_x_holds_the_inputs_and_y_the_target(opened, rng):
    X, y, view = rng.normal(size=(7, 3)), np.arange(7) % 2, np.arange(7, dtype=np.uint8)
    rows = opened({"X": X, "y": y, "view": view, "names": np.array(["a", "b"])})
    assert set(rows.names) == {"X[0]", "X[1]", "X[2]", "y", "view"}
    assert rows.groups == {"X": ["X[0]", "X[1]", "X[2]"]}
    assert rows.targets == ["y"]
    assert rows.left_out == {"names": "it has 2 rows where the table has 7"}
    assert (rows.n_rows, rows.n_columns, rows.part) == (7, 5, None)
    frame = whole(rows)
    assert np.array_equal(frame.matrix(rows.groups["X"]), X)
    assert np.array_equal(frame["y"], y)
    assert frame["view"].dtype == np.uint8
    picked = whole(rows, ["y", "X[2]", "X[0]"])
    assert picked.columns == ["y", "X[2]", "X[0]"]
    assert np.array_equal(picked.matrix(["X[2]", "X[0]"]), X[:, [2, 0]])
    with pytest.raises(ValueError, match=r"'names' of .* cannot be read: it has 2 rows"):
        rows.blocks(["names"])


def test_several_outputs_are_targets(opened, rng):
    rows = opened({"X": rng.normal(size=(4, 2)), "Y": rng.normal(size=(4, 2))})
    assert rows.targets == ["Y[0]", "Y[1]"]
    rows = opened({"X": rng.normal(size=(4, 2)), "y": rng.normal(size=(4, 1))})
    assert rows.targets == ["y"]


def test_arrays_of_more_axes_are_columns_row_by_row(opened):
    images = np.arange(5 * 2 * 3 * 2, dtype=np.uint8).reshape(5, 2, 3, 2)
    rows = opened({"X": images, "y": np.arange(5)})
    frame = whole(rows)
    assert frame["X[7]"].tolist() == [image.ravel()[7] for image in images]
    assert frame.matrix(rows.groups["X"]).dtype == np.uint8
    block = next(rows.blocks())
    assert np.shares_memory(block["X[0]"], block.matrix(rows.groups["X"]))


PARTS = {
    "ends": "{name}_{part}",
    "folder": "{part}/{name}",
    "begins": "{part}_{name}",
}


@pytest.mark.parametrize("pattern", list(PARTS.values()), ids=list(PARTS))
def test_parts_have_the_same_columns_and_train_comes_first(opened, pattern):
    sizes = {"test": 3, "train": 5, "val": 2}
    named = {"extra": np.arange(10)}
    for part, n in sizes.items():
        named[pattern.format(name="X", part=part)] = np.full((n, 2), n)
        named[pattern.format(name="y", part=part)] = np.arange(n)
    for part, n in sizes.items():
        rows = opened(named, part=part)
        assert (sorted(rows.names), rows.targets) == (["X[0]", "X[1]", "y"], ["y"])
        assert (rows.part, whole(rows)["X[1]"].tolist()) == (part, [n] * n)
        assert "extra" in rows.left_out
    assert opened(named).part == "train"
    assert opened(named, part="validation").part == "val"
    del named[pattern.format(name="X", part="train")]
    assert opened(named).part == "test"
    with pytest.raises(ValueError, match="no part 'train'; there is test and val"):
        opened(named, part="train")


def test_a_part_that_is_not_there_is_refused_where_all_rows_are_one(opened):
    with pytest.raises(ValueError, match="no part 'test'; all its rows are one part"):
        opened({"X": np.eye(3), "y": np.zeros(3)}, part="test")
    assert opened({"X": np.eye(3), "X_test": np.eye(4)[:, :3]}).n_rows == 3
    assert opened({"X": np.eye(3), "X_test": np.eye(4)[:, :3]}, part="train").n_rows == 3


def test_without_x_the_arrays_of_the_most_common_length_are_columns(opened):
    rows = opened({"t": np.zeros(9), "q": np.ones((9, 2)), "names": np.zeros(3), "one": 1.0})
    assert set(rows.names) == {"t", "q[0]", "q[1]"}
    assert rows.targets == []
    assert rows.left_out["one"] == "it is a single value"


def test_arrays_of_many_lengths_are_no_table(opened):
    with pytest.raises(ValueError, match=r"holds no table: .* \(7 in axis, low; 8 in mass\)"):
        opened({"axis": np.zeros((7, 3)), "low": np.zeros(7), "mass": np.zeros((8, 3))})


def test_outputs_and_inputs_of_other_lengths_are_refused(opened):
    with pytest.raises(ValueError, match=r"y.* cannot be used: it has 3 rows where .* 4"):
        opened({"X": np.zeros((4, 2)), "y": np.zeros(3)})
    with pytest.raises(ValueError, match="holds no rows"):
        opened({"X": np.zeros((0, 2)), "y": np.zeros(0)})


def test_types_become_those_that_everything_takes(opened):
    half, flags = np.array([0.1, 2.0], np.float16), np.array([True, False])
    rows = opened(
        {"X": half[:, None], "flag": flags, "big": np.array([1.5, 2.5], ">f8"),
         "word": np.array(["é", ""])}
    )  # fmt: skip
    frame = whole(rows)
    assert frame["X"].dtype == np.float32
    assert np.array_equal(frame["X"], half.astype(np.float32))
    assert (frame["flag"].dtype.kind, frame["flag"].tolist()) == ("u", [1, 0])
    assert frame["big"].dtype == np.dtype("=f8")
    assert frame["word"].tolist() == ["é", None]
    assert rows.kinds == {"X": "number", "flag": "number", "big": "number", "word": "text"}


def test_complex_numbers_are_named_where_they_matter(opened):
    rows = opened({"X": np.eye(2), "z": np.array([1j, 2j])})
    assert "complex" in rows.left_out["z"]
    with pytest.raises(ValueError, match="complex"):
        opened({"X": np.eye(2) * 1j})


def test_whole_numbers_that_floats_cannot_hold_are_bad_rows(opened):
    ids = np.array([1, 2, 3, 2**53 + 1, 5])
    named = {"X": np.zeros((5, 2)), "id": ids}
    with pytest.raises(RowError, match="row 3: the whole number 9007199254740993 in 'id'"):
        whole(opened(named))
    rows = opened(named, bad=BadRows("skip"))
    assert whole(rows)["id"].tolist() == [1, 2, 3, 5]
    assert rows.bad.count == 1
    assert whole(opened(named, text=("id",)))["id"][3] == "9007199254740993"


def test_a_column_of_a_matrix_can_be_text_and_the_others_numbers(opened):
    rows = opened({"X": np.array([[1, 2], [3, 4]]), "y": np.zeros(2)}, text=("X[0]",))
    frame = whole(rows)
    assert rows.kinds["X[0]"] == "text"
    assert frame["X[0]"].tolist() == ["1", "3"]
    assert frame["X[1]"].dtype.kind == "i"
    assert frame.columns == rows.names


def test_structured_arrays_give_their_fields(tmp_path, opened):
    fields = [("age", "f4"), ("name", "S3"), ("at", "f8", (2,))]
    people = np.array([(1, b"Bo", (1, 2)), (2, b"", (3, 4))], fields)
    np.save(tmp_path / "people.npy", people)
    for rows in (open_npy(tmp_path / "people.npy"), opened({"people": people})):
        assert rows.names == ["age", "name", "at[0]", "at[1]"]
        frame = whole(rows)
        assert frame["name"].tolist() == ["Bo", None]
        assert frame.matrix(["at[0]", "at[1]"]).tolist() == [[1, 2], [3, 4]]
        assert frame["age"].dtype == np.float32


def test_bytes_that_are_no_text_are_bad_rows(opened):
    rows = opened({"word": np.array([b"a", b"\xe9", b"c"])}, bad=BadRows("skip"))
    assert whole(rows)["word"].tolist() == ["a", "c"]
    assert "row 1: the bytes in 'word' are not text in utf-8" in rows.bad.examples[0]
    rows = opened({"word": np.array([b"a", b"\xe9"])}, encoding="latin-1")
    assert whole(rows)["word"].tolist() == ["a", "é"]


def test_dates_are_read_with_microseconds(tmp_path):
    days = np.array(["2024-02-29", "NaT"], "M8[D]")
    spans = np.array([90, 1], "m8[s]")
    np.savez(tmp_path / "a.npz", day=days, span=spans, years=np.array([1, 2], "m8[Y]"))
    rows = open_npz(tmp_path / "a.npz")
    frame = whole(rows)
    assert rows.kinds == {"day": "date", "span": "duration"}
    assert frame["day"].dtype == np.dtype("M8[us]")
    assert frame["day"][0] == days[0]
    assert np.isnat(frame["day"][1])
    assert frame["span"].tolist() == spans.astype("m8[us]").tolist()
    assert "years" in rows.left_out


@pytest.mark.parametrize("by_columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("where", ["npy", "packed", "unpacked", "hdf5"])
@settings(max_examples=10, deadline=None)
@given(shape=array_shapes(min_dims=1, max_dims=3, max_side=9), size=st.integers(1, 5))
@example(shape=(4, 3), size=3)
@example(shape=(3, 2, 2), size=2)
def test_any_array_is_read_in_any_blocks(tmp_path_factory, shape, size, by_columns, where):
    path = tmp_path_factory.mktemp("rows") / "a"
    array = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    array = np.asfortranarray(array) if by_columns else array
    if where == "npy":
        with path.open("wb") as file:
            np.save(file, array)
        rows = open_npy(path)
    elif where == "hdf5":
        write_hdf5(path, X=array)
        rows = open_hdf5(path)
    else:
        with path.open("wb") as file:
            np.savez_compressed(file, X=array)
        rows = open_npz(path)
    loaded = numpy_arrays._LOADED
    try:
        numpy_arrays._LOADED = 0 if where == "unpacked" else loaded
        frame = whole(rows, size=size)
        last = whole(rows, rows.names[-1:], size=size)
    finally:
        numpy_arrays._LOADED = loaded
    flat = array.reshape(len(array), -1)
    assert np.array_equal(frame.matrix(), flat)
    assert np.array_equal(last.matrix(), flat[:, -1:])


def test_an_array_alone_has_numbered_columns(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    assert open_npy(tmp_path / "a.npy").names == ["column 0", "column 1", "column 2"]
    np.save(tmp_path / "a.npy", np.arange(3))
    assert open_npy(tmp_path / "a.npy").names == ["column 0"]
    np.save(tmp_path / "a.npy", np.float64(3))
    with pytest.raises(ValueError, match=r"shape \(\)"):
        open_npy(tmp_path / "a.npy")


def test_blocks_of_a_mapped_file_stay_when_the_pass_goes_on(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(8.0).reshape(4, 2))
    blocks = list(open_npy(tmp_path / "a.npy").blocks(size=1))
    np.save(tmp_path / "a.npy", np.zeros((4, 2)))
    assert [block["column 0"][0] for block in blocks] == [0, 2, 4, 6]


def test_python_objects_are_not_read(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects, which are not read"):
        open_npy(tmp_path / "a.npy")
    cells = np.array([{}, 1], dtype=object)
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=cells, allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects, which are not read"):
        open_npz(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", X=np.eye(2), note=cells)
    assert "Python objects" in open_npz(tmp_path / "b.npz").left_out["note"]


def test_a_sparse_matrix_of_scipy_is_named(tmp_path):
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_matrix(np.eye(3)))
    with pytest.raises(ValueError, match="sparse matrix of SciPy"):
        open_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("kind", ["npy", "npz", "hdf5"])
def test_damaged_files_are_told_in_one_sentence(kind, tmp_path, rng):
    path = tmp_path / "rows"
    opener = {"npy": open_npy, "npz": open_npz, "hdf5": open_hdf5}[kind]
    X = rng.normal(size=(500, 4))
    if kind == "hdf5":
        write_hdf5(path, X=X)
    else:
        held = io.BytesIO()
        np.save(held, X) if kind == "npy" else np.savez_compressed(held, X=X)
        path.write_bytes(held.getvalue())
    content = path.read_bytes()
    for wrong in (content[: len(content) // 2], content[:20], b"a,b\n1,2\n" * 9, b"\x00" * 99):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=r"rows is (damaged, )?cut off") as caught:
            list(opener(path).blocks())
        assert "\n" not in str(caught.value)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="is empty"):
        opener(path)
    with pytest.raises(FileNotFoundError):
        opener(tmp_path / "absent")


def test_wrong_bytes_within_an_archive_are_found(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=np.zeros((500, 4)))
    content = bytearray(path.read_bytes())
    content[8000] ^= 1  # stored as it is: only its check sum is wrong now
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="is damaged, cut off"):
        list(open_npz(path).blocks())
    np.savez_compressed(path, X=np.zeros((500, 4)))
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 16] ^= 1  # the check sum itself
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="is damaged, cut off"):
        list(open_npz(path).blocks())
    with zipfile.ZipFile(path, "w") as archive:
        whole_array = io.BytesIO()
        np.save(whole_array, np.zeros((50, 4)))
        archive.writestr("X.npy", whole_array.getvalue()[:-8])
    with pytest.raises(ValueError, match="ends early"):
        list(open_npz(path).blocks())


def test_every_set_of_the_benchmark_data_is_a_table_or_said_to_be_none(real_data):
    real_data("cpu_small")  # or skips
    folder = Path(os.environ["IMPARO_DATA"])
    for path in sorted(folder.glob("*.npz")):
        if path.name.startswith("model_"):
            with pytest.raises(ValueError, match="holds no table"):
                open_npz(path)
            continue
        rows = open_npz(path)
        assert rows.n_rows == len(next(rows.blocks(rows.names[:1], size=10**9)))
        assert bool(rows.targets) == ("X" in rows.groups), path.name


def test_the_rows_of_real_archives_are_those_that_numpy_loads(real_data):
    folder = os.environ.get("IMPARO_DATA", "")
    for name, suffix in (("sarcos_inv_test_only", "_test"), ("adult", "_train")):
        held = real_data(name)
        rows = open_npz(Path(folder) / f"{name}.npz")
        frame = whole(rows, size=5000)
        assert np.array_equal(frame.matrix(rows.groups["X"]), held[f"X{suffix}"])
        y = held[f"y{suffix}"].reshape(len(frame), -1)
        assert np.array_equal(frame.matrix(rows.targets), y)


# Frames whose columns are those of matrices.


def test_a_frame_of_matrices_behaves_as_one_of_columns(rng):
    X, y = rng.normal(size=(6, 4)), np.arange(6)
    names = ["a", "b", "c", "d"]
    one = Frame.of_matrices([(names, X), (["y"], y)])
    other = Frame({**{name: X[:, j] for j, name in enumerate(names)}, "y": y})
    mask = np.array([True, False, True, True, False, True])
    for change in (
        lambda frame: frame,
        lambda frame: frame[2:5],
        lambda frame: frame[mask],
        lambda frame: frame[mask, [3, 0, 4]],
        lambda frame: frame[:, 1:3],
        lambda frame: frame.select(["c", "d", "y", "a"]),
        lambda frame: frame.without(["b"]),
        lambda frame: frame.with_column("b", np.zeros(6)).with_column("e", y),
        lambda frame: frame.with_column("y", np.zeros(6)),
        lambda frame: Frame.stacked([frame, frame[:2]]),
        lambda frame: Frame.stacked([frame, other]),
        lambda frame: Frame.stacked([frame.with_column("d", y), other.with_column("d", y)]),
    ):
        left, right = change(one), change(other)
        assert (left.columns, left.shape, left.dtypes) == (
            right.columns, right.shape, right.dtypes,
        )  # fmt: skip
        assert left.nbytes == right.nbytes
        assert all(np.array_equal(left[name], right[name]) for name in right.columns)
        assert np.array_equal(np.asarray(left), np.asarray(right))


def test_frames_that_lie_otherwise_in_memory_are_stacked(rng):
    X, y = rng.normal(size=(6, 4)), np.arange(6)
    wide = Frame.of_matrices([(list("abcd"), X), (["y"], y)]).with_column("d", y)
    narrow = Frame.of_matrices([(list("abc"), X[:, :3]), (["y"], y)]).with_column("d", y)
    both = Frame.stacked([wide, narrow])
    assert both.columns == ["a", "b", "c", "d", "y"]
    assert both["d"].tolist() == [*y, *y]
    assert np.array_equal(both.matrix(["a", "b", "c"]), np.vstack([X[:, :3]] * 2))


def test_columns_side_by_side_are_a_matrix_without_a_copy(rng):
    X = rng.normal(size=(6, 4))
    frame = Frame.of_matrices([(list("abcd"), X)])
    assert np.shares_memory(frame.matrix(), X)
    assert np.shares_memory(frame[2:].select(["b", "c"]).matrix(), X)
    assert np.array_equal(frame.matrix(["b", "c"]), X[:, 1:3])
    assert np.array_equal(frame.matrix(["c", "b"]), X[:, [2, 1]])
    assert not np.shares_memory(np.array(frame), X)
    with pytest.raises(KeyError, match="no column 'z'"):
        frame.matrix(["z"])
    with pytest.raises(ValueError, match="3 names for an array of shape"):
        Frame.of_matrices([(list("abc"), X)])
    with pytest.raises(ValueError, match="several columns have one name"):
        Frame.of_matrices([(list("abca"), X)])


def test_a_frame_is_filled_with_other_rows(rng):
    X, y = rng.normal(size=(6, 2)), np.arange(6)
    frame = Frame.of_matrices([(["a", "b"], X[:4]), (["y"], y[:4])])
    rest = frame.refilled([X[4:], y[4:]])
    assert rest["b"].tolist() == X[4:, 1].tolist()
    assert (rest["y"].tolist(), len(frame)) == ([4, 5], 4)
    with pytest.raises(ValueError, match="do not have the columns"):
        frame.refilled([X[4:, :1], y[4:]])
