"""Rows that are written are read back, and a file is there whole or not at all."""

import csv
import gzip
import io
import json
import os
import stat
import threading
from contextlib import redirect_stdout

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imparo.data import Frame, open_rows
from imparo.data.table_formats import FORMATS
from imparo.data.writers import open_writer

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")

SUFFIXES = ["csv", "tsv", "jsonl", "csv.gz", "jsonl.gz", "parquet", "arrow", "feather", "npz"]
NOON = np.datetime64("2024-02-29T12:00:00.000250")


def written(path, *frames):
    with open_writer(path, frames[0].columns) as writer:
        for frame in frames:
            writer.write(frame)
    assert writer.n_rows == sum(map(len, frames))
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    return path


def same(found, expected):
    if expected.dtype.kind == "O":
        return found.tolist() == expected.tolist()
    return np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_back(tmp_path, suffix):
    first = Frame(
        {
            "number": np.array([0.1, np.nan, -1e300]),
            "single": np.array([0.1, 1e-30, 3], np.float32),
            "whole": np.array([2**53, -5, 0]),
            "word": np.array(["Aix, \"Süd\"", None, "two\nlines"], object),
            "time": np.array([NOON, "NaT", NOON], "M8[us]"),
        }
    )  # fmt: skip
    second = first[::-1]
    path = written(tmp_path / f"rows.{suffix}", first, second)
    rows = open_rows(path)
    found, expected = Frame.stacked(list(rows.blocks(size=2))), Frame.stacked([first, second])
    assert found.columns == expected.columns
    for name in expected.columns:
        cells = found[name]
        if name == "single":
            cells = cells.astype(np.float32)
        if name == "time" and rows.kinds[name] == "text":
            cells = np.array(["NaT" if cell is None else cell for cell in cells], "M8[us]")
        assert same(cells, expected[name]), name


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet", "arrow", "npz"])
@settings(max_examples=25, deadline=None)
@given(
    cells=st.lists(
        st.tuples(
            st.floats(width=64),
            st.none()
            | st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
            st.booleans(),
        ),
        min_size=1,
        max_size=12,
    ),
    cut=st.integers(0, 12),
)
def test_any_rows_are_read_back(tmp_path_factory, suffix, cells, cut):
    numbers, words, flags = map(list, zip(*cells, strict=True))
    frame = Frame(
        {"x": np.array(numbers), "word": np.array(words, object), "flag": np.array(flags)}
    )
    path = tmp_path_factory.mktemp("rows") / f"rows.{suffix}"
    written(path, frame[:cut], frame[cut:])
    if suffix in ("csv", "tsv"):
        # As Python's own reader has it: what counts as missing there is not for here.
        with path.open(newline="", encoding="utf-8") as file:
            table = list(csv.reader(file, delimiter="\t" if suffix == "tsv" else ","))
        assert table.pop(0) == ["x", "word", "flag"]
        found = {
            "x": np.array([float(row[0] or "nan") for row in table]),
            "word": np.array([row[1] or None for row in table], object),
            "flag": np.array([int(row[2]) for row in table]),
        }
    elif suffix == "jsonl":
        lines = [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
        found = {
            "x": np.array([np.nan if line["x"] is None else line["x"] for line in lines]),
            "word": np.array([line["word"] for line in lines], object),
            "flag": np.array([line["flag"] for line in lines]),
        }
    else:
        blocks = list(open_rows(path).blocks(size=5))
        found = Frame.stacked(blocks)
    for name in frame.columns:
        assert same(np.asarray(found[name]), frame[name]), name


def test_numbers_alone_become_a_matrix_of_numpy(tmp_path, rng):
    X = rng.normal(size=(7, 3))
    frame = Frame.of_matrices([(["a", "b", "c"], X)])
    path = written(tmp_path / "rows.npy", frame[:5], frame[5:])
    assert np.array_equal(np.load(path), X)
    with pytest.raises(ValueError, match="'t' holds no numbers"):
        written(tmp_path / "text.npy", Frame({"t": ["a"]}))
    assert not (tmp_path / "text.npy").exists()


def test_text_that_looks_like_something_else_is_quoted(tmp_path):
    words = ["plain", "", None, " space", "a\rb", "tab\t", 'say "x"', "a;b"]
    path = written(tmp_path / "a.csv", Frame({"w": np.array(words, object), "n": range(8)}))
    lines = path.read_bytes().decode().split("\n")
    assert lines[0] == "w,n"
    assert lines[1:4] == ["plain,0", '"",1', ",2"]
    assert lines[4:7] == ['" space",3', '"a\rb",4', '"tab\t",5']
    assert lines[7:] == ['"say ""x""",6', "a;b,7", ""]


def test_a_missing_cell_of_a_single_column_is_a_row(tmp_path):
    path = written(tmp_path / "a.csv", Frame({"x": [1.0, np.nan, 3.0]}))
    assert path.read_text() == 'x\n1.0\n""\n3.0\n'


def test_numbers_are_the_shortest_that_read_the_same(tmp_path):
    frame = Frame(
        {
            "f": np.array([0.1], np.float32),
            "d": [0.1],
            "flag": np.array([True]),
            "span": np.array([1500], "m8[ms]"),
            "inf": [-np.inf],
        }
    )
    assert written(tmp_path / "a.csv", frame).read_text().split("\n")[1] == "0.1,0.1,1,1.5,-inf"
    line = (tmp_path / "b").with_suffix(".jsonl")
    os.remove(tmp_path / "a.csv")
    assert json.loads(written(line, frame).read_text()) == {
        "f": 0.1, "d": 0.1, "flag": True, "span": 1.5, "inf": -np.inf,
    }  # fmt: skip


@pytest.mark.parametrize("suffix", [*SUFFIXES, "npy"])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    path.write_bytes(b"old")

    def fail(writer):
        writer.write(Frame({"x": [1.0]}))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), open_writer(path, ["x"]) as writer:
        fail(writer)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match="no column 'x'"), open_writer(path, ["x"]) as writer:
        writer.write(Frame({"y": [1.0]}))
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("suffix", [*SUFFIXES, "npy"])
def test_a_full_disk_is_an_os_error_and_leaves_no_file(tmp_path, suffix, monkeypatch):
    """A file that takes 1000 bytes: what a disk that is full does."""
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    frame = Frame({"x": np.random.default_rng(0).normal(size=50_000)})
    path = tmp_path / f"rows.{suffix}"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        with pytest.raises(OSError), open_writer(path, ["x"]) as writer:
            writer.write(frame)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("format", [None, "csv", "jsonl", "parquet", "arrow"])
def test_a_device_is_written_to_as_it_is(format):
    with (
        pytest.raises(OSError, match="No space left"),
        open_writer("/dev/full", ["x"], format) as writer,
    ):
        writer.write(Frame({"x": np.arange(10.0)}))
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_a_pipe_takes_rows_as_they_come(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with open_writer(pipe, ["x"]) as writer:
        writer.write(Frame({"x": [1.0]}))
    reader.join()
    assert read == ["x\n1.0\n"]


@pytest.mark.parametrize("path", [None, "-"])
def test_standard_output_is_csv(path, capsysbinary):
    print("before")
    with open_writer(path, ["x"]) as writer:
        writer.write(Frame({"x": ["é"]}))
    print("after")
    assert capsysbinary.readouterr().out.decode() == "before\nx\né\nafter\n"
    with redirect_stdout(io.StringIO()) as kept, open_writer(path, ["x"], "jsonl") as writer:
        writer.write(Frame({"x": ["é"]}))
    assert kept.getvalue() == '{"x": "é"}\n'
    with pytest.raises(ValueError, match="parquet is not written to standard output"):
        open_writer(path, ["x"], "parquet")


def test_the_umask_holds_and_links_stay_links(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    old = os.umask(0o027)
    try:
        with open_writer(link, ["x"]) as writer:
            writer.write(Frame({"x": [1]}))
    finally:
        os.umask(old)
    assert link.is_symlink()
    assert real.read_text() == "x\n1\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.parametrize("suffix", [*SUFFIXES, "npy"])
def test_no_rows_make_a_file_with_names(tmp_path, suffix):
    with open_writer(tmp_path / f"a.{suffix}", ["x", "y"]):
        pass
    content = (tmp_path / f"a.{suffix}").read_bytes()
    if suffix.startswith("csv"):
        content = gzip.decompress(content) if suffix.endswith("gz") else content
        assert content == b"x,y\n"
    elif suffix == "npy":
        assert np.load(tmp_path / "a.npy").shape == (0, 2)
    elif suffix in ("parquet", "arrow", "npz"):
        with pytest.raises(ValueError, match="holds no rows"):
            open_rows(tmp_path / f"a.{suffix}")


@pytest.mark.parametrize("kind", list(FORMATS))
def test_nothing_is_written_to_a_file_that_is_abandoned(kind):
    file = io.BytesIO()
    format = FORMATS[kind](file, ["x"])
    format.write(Frame({"x": np.arange(2**17)}))
    size = len(file.getvalue())
    format.abandon()
    del format
    assert len(file.getvalue()) == size


def test_a_column_keeps_its_type(tmp_path):
    frames = Frame({"x": [1, 2]}), Frame({"x": ["a", "b"]})
    for suffix in ("parquet", "arrow", "npz"):
        with pytest.raises(ValueError, match="column 'x' holds"):
            written(tmp_path / f"a.{suffix}", *frames)
    narrow = Frame({"x": np.array([0.5])}), Frame({"x": np.array([2], np.int8)})
    found = open_rows(written(tmp_path / "b.parquet", *narrow))
    assert next(found.blocks())["x"].tolist() == [0.5, 2.0]


def test_a_file_that_is_closed_takes_no_rows(tmp_path):
    with open_writer(tmp_path / "a.csv", ["x"]) as writer:
        pass
    with pytest.raises(ValueError, match="the file is closed"):
        writer.write(Frame({"x": [1.0]}))


def test_what_cannot_be_written_is_refused_at_once(tmp_path):
    for name, match in {
        "a.xlsx": "no format that can be written",
        "a": "no format that can be written",
        "a.parquet.gz": "compressed twice",
    }.items():
        with pytest.raises(ValueError, match=match):
            open_writer(tmp_path / name, ["x"])
    with pytest.raises(ValueError, match="format 'xml'"):
        open_writer(tmp_path / "a.csv", ["x"], "xml")
    with pytest.raises(ValueError, match="several columns of the name 'x'"):
        open_writer(tmp_path / "a.csv", ["x", "x"])
    with pytest.raises(ValueError, match="no column to write"):
        open_writer(tmp_path / "a.csv", [])
    with pytest.raises(FileNotFoundError, match="no folder"):
        open_writer(tmp_path / "absent" / "a.csv", ["x"])
    with pytest.raises(IsADirectoryError, match="is a folder"):
        open_writer(tmp_path, ["x"], "csv")
    with pytest.raises(ValueError, match="cannot be written in UTF-8"):
        written(tmp_path / "a.csv", Frame({"x": np.array(["\ud800"], object)}))
    assert list(tmp_path.iterdir()) == []
