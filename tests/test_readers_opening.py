"""Opening: the format by the name, compressed files, folders, patterns and pipes."""

import bz2
import gzip
import io
import json
import lzma
import os
import threading
import types
from pathlib import Path

import numpy as np
import pytest

from imparo.data import open_rows
from imparo.data.readers import BadRows, ReadOptions, RowError, compression
from imparo.data.readers.several_files import natural_order
from imparo.data.readers.standard_input import StandardInput

TEXT = "a,b\n1,x\n2,y\n"


def write(path, text=TEXT):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def column(rows, name):
    return [cell for block in rows.blocks([name]) for cell in block[name].tolist()]


def packed(suffix, content=b"a,b\n1,x\n2,y\n"):
    if suffix in (".zst", ".lz4"):
        pa = pytest.importorskip("pyarrow")
        out = pa.BufferOutputStream()
        kind = {".zst": "zstd", ".lz4": "lz4"}[suffix]
        with pa.CompressedOutputStream(out, kind) as file:
            file.write(content)
        return out.getvalue().to_pybytes()
    return {".gz": gzip, ".bz2": bz2, ".xz": lzma}[suffix].compress(content)


SUFFIXES = [".gz", ".bz2", ".xz", ".zst", ".lz4"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_compressed_text_is_read_like_plain_text(tmp_path, suffix):
    rows = open_rows(write(tmp_path / f"A.CSV{suffix.upper()}", packed(suffix)))
    for _ in range(2):
        assert column(rows, "a") == [1, 2]
    lines = b'{"a": 1}\n{"a": 2}\n'
    assert column(
        open_rows(write(tmp_path / f"a.jsonl{suffix}", packed(suffix, lines))), "a"
    ) == [1, 2]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_compressed_files_are_told_in_a_sentence(tmp_path, suffix, rng):
    whole = packed(suffix, rng.bytes(50_000).hex().encode())
    for wrong in (whole[: len(whole) // 2], b"not packed at all, but text\n" * 20):
        path = write(tmp_path / f"rows.csv{suffix}", wrong)
        with pytest.raises(
            ValueError, match="is damaged, cut short or not compressed"
        ) as error:
            list(open_rows(path).blocks())
        assert str(path) in str(error.value)


def test_compressions_of_an_extra_are_named_where_it_is_missing(tmp_path, monkeypatch):
    def missing(module, extra):
        raise ImportError(f"imparo[{extra}]")

    path = write(tmp_path / "a.csv.zst", packed(".zst"))
    monkeypatch.setattr(compression, "require", missing)
    with pytest.raises(ImportError, match="files"):
        open_rows(path)


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.tsv", "a\tb\n1\t2\n", "csv"),
        ("a.txt", "a b\n1 2\n", "csv"),
        ("a.data", TEXT, "csv"),
        ("a.ndjson", '{"a": 1}', "json"),
        ("a.json", '[{"a": 1}]', "json"),
        ("a.svm", "1 1:1", "libsvm"),
        ("a.libsvm", "1 1:1", "libsvm"),
    ],
)
def test_the_end_of_the_name_tells_the_format(tmp_path, name, content, format):
    rows = open_rows(str(write(tmp_path / name, content)))
    assert rows.format == format
    assert rows.files == [tmp_path / name]


def test_binary_formats_are_opened_by_their_own_modules(tmp_path, monkeypatch):
    from imparo.data.readers import opening

    asked = []
    module = types.SimpleNamespace(open_parquet=lambda path, options: asked.append(path))
    monkeypatch.setattr(opening.importlib, "import_module", lambda name: module)
    open_rows(write(tmp_path / "a.pq"))
    assert asked == [tmp_path / "a.pq"]
    with pytest.raises(ValueError, match="unpack it first"):
        open_rows(write(tmp_path / "a.parquet.gz"))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a.xlsx", "save the sheet as CSV"),
        ("a.mat", "numpy.savez"),
        ("a.pkl", "can run any code"),
        ("a.sqlite", "is a database"),
        ("a.zip", "unpack it"),
        ("a.doc", r"ends with \.csv"),
        ("noend", r"ends with \.csv"),
    ],
)
def test_other_formats_are_refused_with_what_to_do(tmp_path, name, sentence):
    with pytest.raises(ValueError, match=sentence):
        open_rows(write(tmp_path / name))


def test_missing_files_are_named_with_a_near_one(tmp_path):
    write(tmp_path / "people.csv")
    with pytest.raises(
        FileNotFoundError, match=r"there is no file .*peopel.csv; did you mean .*people"
    ):
        open_rows(tmp_path / "peopel.csv")
    with pytest.raises(FileNotFoundError, match="nor a folder"):
        open_rows(tmp_path / "no" / "a.csv")
    with pytest.raises(FileNotFoundError, match="no file is like"):
        open_rows(tmp_path / "*.tsv")


def test_settings_are_fields_of_the_options_and_win_over_them(tmp_path):
    path = write(tmp_path / "a.csv", "a;b\n1;2\n")
    options = ReadOptions(delimiter=",", text=("a",))
    assert open_rows(path, options, delimiter=";").kinds == {"a": "text", "b": "number"}
    assert open_rows(path, text="b").kinds == {"a": "number", "b": "text"}
    with pytest.raises(TypeError, match="no setting 'delim'; there are delimiter"):
        open_rows(path, delim=";")


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (b"a,b\n1,x\n2,y\n", "csv"),
        (b'\n{"a": 1, "b": "x"}\n{"a": 2}\n', "json"),
        (b'[{"a": 1}, {"a": 2}]', "json"),
    ],
    ids=["csv", "lines", "array"],
)
def test_a_pipe_is_read_as_often_as_needed(monkeypatch, content, format):
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(content)))
    rows = open_rows("-")
    assert rows.format == format
    for _ in range(2):
        assert column(rows, "a") == [1, 2]
    assert rows.files == [Path("-")]


def test_a_named_pipe_is_read_as_often_as_needed(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(TEXT,))
    writer.start()
    rows = open_rows(path)
    writer.join()
    assert column(rows, "a") == column(rows, "a") == [1, 2]


def test_a_wrong_line_of_a_pipe_is_told(monkeypatch):
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(b"a,b\n1,2\n1\n")))
    with pytest.raises(RowError, match="standard input, line 3: 1 value"):
        list(open_rows("-").blocks())


def test_two_readers_of_a_pipe_do_not_disturb_each_other():
    kept = StandardInput(io.BytesIO(b"abcdef"))
    one, two = kept.open(), kept.open()
    assert (one.read(3), two.read(2), one.read(9), two.read(9)) == (
        b"abc",
        b"ab",
        b"def",
        b"cdef",
    )


def test_a_folder_is_read_in_natural_order_without_what_is_no_data(tmp_path):
    for number in (10, 2, 1):
        write(tmp_path / f"part-{number}.csv", f"a,b\n{number},x\n")
    for name in (".hidden.csv", "_SUCCESS", "_metadata", "c.csv.tmp", "d.csv.part",
                 ".a.csv.crc", "_tmp/e.csv"):  # fmt: skip
        write(tmp_path / name)
    write(tmp_path / "part-3.csv", "")
    rows = open_rows(tmp_path)
    assert [path.name for path in rows.files] == ["part-1.csv", "part-2.csv", "part-10.csv"]
    assert column(rows, "a") == [1, 2, 10]
    pattern = open_rows(f"{tmp_path}/part-1*.csv")
    assert column(pattern, "a") == [1, 10]
    some = open_rows([tmp_path / "part-10.csv", tmp_path / "part-2.csv"])
    assert column(some, "a") == [10, 2]


def test_a_pattern_may_go_through_all_folders(tmp_path):
    for place in ("a.csv", "x/b.csv", "x/y/c.csv"):
        write(tmp_path / place)
    assert len(open_rows(f"{tmp_path}/**/*.csv").files) == 3


def test_natural_order_counts_numbers():
    names = ["b10", "b9", "a2/c1", "a10/c", "a2/c", "b"]
    assert [str(p) for p in natural_order(map(Path, names))] == [
        "a2/c", "a2/c1", "a10/c", "b", "b9", "b10"
    ]  # fmt: skip


def test_folders_of_several_or_no_formats_are_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no file of rows"):
        open_rows(tmp_path)
    write(tmp_path / "a.csv")
    write(tmp_path / "b.csv")
    write(tmp_path / "c.svm")
    with pytest.raises(ValueError, match=r"several formats \(2 of csv, 1 of libsvm\)"):
        open_rows(tmp_path)


def test_columns_of_files_may_be_in_another_order_but_not_others(tmp_path):
    write(tmp_path / "1.csv", "a,b\n1,x\n")
    write(tmp_path / "2.csv", "b,a\ny,2\n")
    rows = open_rows(tmp_path)
    frames = list(rows.blocks())
    assert [frame.columns for frame in frames] == [["a", "b"]] * 2
    assert [frame["b"].tolist() for frame in frames] == [["x"], ["y"]]
    write(tmp_path / "3.csv", "a,c\n1,x\n")
    with pytest.raises(ValueError, match=r"3.csv has also 'c' and lacks 'b', unlike .*1.csv"):
        open_rows(tmp_path)


def test_kinds_of_the_first_file_hold_for_all_and_bad_rows_are_counted_over_all(tmp_path):
    write(tmp_path / "1.csv", "a,b,e\n" + "1,x,\n" * 20 + "1,2\n")
    write(tmp_path / "2.csv", "a,b,e\nq,5,\nr,6,\n3,7,4\n")
    write(tmp_path / "3.csv", "a,b,e\n4,8,t\n5,9,6\n")
    with pytest.raises(RowError, match=r"1.csv, line 22: 2 values"):
        list(open_rows(tmp_path).blocks())
    bad = BadRows("skip")
    rows = open_rows(tmp_path, bad=bad)
    assert rows.kinds == {"a": "number", "b": "text", "e": "number"}
    for _ in range(2):
        assert column(rows, "a") == [1] * 20 + [3, 4, 5]
        assert len(column(rows, "e")) == 20 + 3 + 1
        blocks = list(rows.blocks())
        assert np.concatenate([block["b"] for block in blocks])[20:].tolist() == ["7", "9"]
        assert bad.count == 4
        assert [Path(told.split(",")[0]).name[0] for told in bad.examples] == [
            "1",
            "2",
            "2",
            "3",
        ]
    assert rows.bad is bad


def test_files_with_names_and_no_rows_are_fine_beside_others(tmp_path):
    write(tmp_path / "1.csv", TEXT)
    write(tmp_path / "2.csv", "a,b\n")
    assert column(open_rows(tmp_path), "a") == [1, 2]


def test_json_files_share_the_keys_of_the_first(tmp_path):
    write(tmp_path / "1.jsonl", '{"a": 1, "b": "x"}\n')
    write(tmp_path / "2.jsonl", '{"a": 2, "c": 3}\n')
    rows = open_rows(tmp_path)
    assert column(rows, "a") == [1, 2]
    assert column(rows, "b") == ["x", None]
    write(tmp_path / "3.jsonl", '{"a": "q"}\n')
    with pytest.raises(RowError, match=r"3.jsonl, line 1: 'q' in column 'a'"):
        column(open_rows(tmp_path), "a")


def test_sparse_files_agree_on_indices(tmp_path):
    write(tmp_path / "1.svm", "1 1:1 2:1\n")
    write(tmp_path / "2.svm", "2 0:1 4:1\n")
    rows = open_rows(tmp_path)
    assert (rows.n_rows, rows.n_columns) == (2, 5)
    X = np.concatenate([block.X.toarray() for block in rows.blocks()])
    np.testing.assert_array_equal(X, [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1]])


def test_names_of_folders_make_columns(tmp_path):
    write(tmp_path / "year=2020" / "city=S%C3%A8te" / "1.csv")
    write(tmp_path / "year=2021" / "city=__HIVE_DEFAULT_PARTITION__" / "1.csv")
    rows = open_rows(tmp_path)
    assert rows.names == ["a", "b", "year", "city"]
    assert (rows.kinds["year"], rows.kinds["city"]) == ("number", "text")
    assert column(rows, "year") == [2020, 2020, 2021, 2021]
    assert column(rows, "city") == ["Sète", "Sète", None, None]
    assert next(rows.blocks(["city", "a"])).columns == ["city", "a"]
    assert column(open_rows(tmp_path, text="year"), "year")[:1] == ["2020"]
    assert column(open_rows(f"{tmp_path}/*/*/*.csv"), "year") == [2020, 2020, 2021, 2021]
    write(tmp_path / "year=2022" / "1.csv")
    with pytest.raises(ValueError, match="not in folders of the same names"):
        open_rows(tmp_path)


def test_columns_that_are_not_there_are_named_with_near_ones(tmp_path):
    write(tmp_path / "1.csv", "age,b\n1,2\n")
    write(tmp_path / "2.csv", "age,b\n1,2\n")
    write(tmp_path / "3.json", json.dumps([{"age": 1}]))
    for source in ("1.csv", "[12].csv", "3.json"):
        with pytest.raises(ValueError, match=r"no column 'aeg'; did you mean 'age'\?"):
            open_rows(tmp_path / source).blocks(["aeg"])
