"""Text tables: both routes give the same, kinds are found, and errors name file and line."""

import csv
import io
import tempfile
from datetime import datetime
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from imparo.data.readers import BadRows, ReadOptions, RowError, text_fast
from imparo.data.readers.compression import ByteReader
from imparo.data.readers.text_chunks import whole_lines
from imparo.data.readers.text_table import open_text

NUMBERS = st.one_of(
    st.floats(-1e12, 1e12).map(repr),
    st.integers(-(10**6), 10**6).map(str),
    st.sampled_from(["1e-3", ".5", "5.", "+7", "-0", "1E4", " 2 ", "1e300", "0001"]),
)
GAPS = st.sampled_from(["", "NA", "nan", "NaN", "null", "none", "?", "N/A", " "])
WORDS = st.text("ab\" ,;\n'é?0", max_size=6).map(lambda word: "w" + word)
DAYS = st.datetimes(datetime(1900, 1, 1)).map(lambda day: day.isoformat())


def write(tmp_path, text, name="rows.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path, **settings):
    """Return all columns as lists, with None for what is missing."""
    rows = open_text(path, ReadOptions(**settings))
    blocks = list(rows.blocks())
    return {name: plain(np.concatenate([b[name] for b in blocks])) for name in rows.names}


def plain(cells):
    return [None if cell is None or cell != cell else cell for cell in cells.tolist()]


def outcome(lines, chunk, fast, arrow=True):
    """Return what a route makes of a chunk: its columns, or the error."""
    lines.fast = fast
    lines._bad.restart()
    with mock.patch.object(
        text_fast, "arrow_csv", text_fast.arrow_csv if arrow else lambda: None
    ):
        try:
            frame = lines.parse(chunk, "file", 10)
        except ValueError as error:
            return str(error)
    return {name: plain(frame[name]) for name in frame.columns}, lines._bad.examples


@st.composite
def tables(draw):
    """A table as text, its delimiter and the values of its columns."""
    kinds = draw(st.lists(st.sampled_from("ntd"), min_size=2, max_size=4))
    n = draw(st.integers(1, 8))
    columns = []
    for kind in kinds:
        cells = {"n": NUMBERS, "t": WORDS, "d": DAYS}[kind]
        # A first cell that is there tells the kind.
        columns.append([draw(cells), *draw(st.lists(cells | GAPS, min_size=n, max_size=n))])
    delimiter = draw(st.sampled_from(",;\t"))
    out = io.StringIO()
    writer = csv.writer(
        out,
        delimiter=delimiter,
        lineterminator=draw(st.sampled_from(["\n", "\r\n"])),
        quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    )
    writer.writerow([f"c{j}" for j in range(len(kinds))])
    writer.writerows(zip(*columns, strict=True))
    return (
        out.getvalue(),
        delimiter,
        {
            f"c{j}": [value_of(cell.strip(" \t"), kind) for cell in columns[j]]
            for j, kind in enumerate(kinds)
        },
    )


def value_of(cell, kind):
    missing = {"", "na", "nan", "null", "?", "n/a"} | ({"none"} if kind != "t" else set())
    if cell.lower() in missing:
        return None
    if kind == "n":
        return float(cell)
    return np.datetime64(cell, "us").item() if kind == "d" else cell


@settings(max_examples=120, deadline=None)
@given(tables())
def test_every_route_gives_the_values_that_were_written(table):
    text, delimiter, expected = table
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), text)
        rows = open_text(path, ReadOptions(delimiter=delimiter, header=True))
    # Few cells of text among many gaps may be fewer than a tenth: the kind is given here.
    wanted = {
        name: "number"
        if all(isinstance(v, float | None) for v in values)
        else "text"
        if any(isinstance(v, str) for v in values)
        else "date"
        for name, values in expected.items()
    }
    rows.kinds.update(wanted)
    chunk = text.encode()[text.encode().index(b"\n") + 1 :]
    for fast, arrow in [(True, True), (True, False), (False, False)]:
        assert outcome(rows.lines, chunk, fast, arrow) == (expected, [])


@settings(max_examples=300, deadline=None)
@given(
    st.text('a1.,"\n\r ;-e+x?', max_size=30),
    st.sampled_from(["stop", "skip"]),
    st.sampled_from([",", ";", " ", "\t"]),
    st.sampled_from(["number", "text"]),
)
@example(" ,1\n3,4\n", "stop", ",", "number")
@example("1,2\r3,4\n", "stop", ",", "number")
@example("1 2\t\n3\t4\n", "skip", "\t", "number")
@example('1, "x"\n', "stop", ",", "text")
@example("1-2 3\n4\n", "skip", " ", "number")
def test_routes_agree_on_any_text_right_or_wrong(text, policy, delimiter, kind):
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), delimiter.join("pq") + "\n" + delimiter.join("12") + "\n")
        options = ReadOptions(delimiter=delimiter, header=True, bad=BadRows(policy))
        rows = open_text(path, options)
    rows.kinds["q"] = kind
    exact = outcome(rows.lines, text.encode(), fast=False)
    assert outcome(rows.lines, text.encode(), fast=True) == exact
    assert outcome(rows.lines, text.encode(), fast=True, arrow=False) == exact


def ends_within_quotes(text):
    """Return whether a quoted cell is open at the end, one character after the other."""
    state = "start"
    for mark in text:
        if state == "start" and mark == '"':
            state = "quoted"
        elif state == "quoted":
            state = "quote" if mark == '"' else "quoted"
        elif state == "quote" and mark == '"':
            state = "quoted"
        elif mark in ",\n\r":
            state = "start"
        elif not (state == "start" and mark == " "):
            state = "plain"
    return state == "quoted"


@settings(max_examples=300, deadline=None)
@given(st.text('ab,"\n\r ', max_size=60), st.integers(1, 20))
def test_chunks_are_cut_between_rows_whatever_their_size(text, size):
    def rows_of(part):
        return list(csv.reader(io.StringIO(part, newline=""), skipinitialspace=True))

    file = ByteReader("f", io.BytesIO(text.encode()))
    if ends_within_quotes(text):
        with pytest.raises(ValueError, match="a quote opens here"):
            list(whole_lines(file, "f", ",", size))
        return
    chunks = list(whole_lines(file, "f", ",", size))
    assert b"".join(chunk.content for chunk in chunks).decode() == text
    apart = [row for chunk in chunks for row in rows_of(chunk.content.decode())]
    assert [r for r in apart if r] == [r for r in rows_of(text) if r]
    for chunk in chunks:
        before = text.encode()[: chunk.offset].decode().replace("\r\n", "\n")
        assert chunk.line == 1 + before.replace("\r", "\n").count("\n")
        assert text.encode()[chunk.offset :].startswith(chunk.content)


@pytest.mark.parametrize(
    ("cell", "is_number"),
    [
        *[(cell, True) for cell in ("1e17", "-2.5E-3", "+4", ".5", "5.", "9007199254740992")],
        *[(cell, False) for cell in ("-nan", "nan(1)", "inf", "-Infinity", "1e999", "0x1A")],
        *[(cell, False) for cell in ("9007199254740993", "-9007199254740993", "1_0", "1 2")],
        *[(cell, False) for cell in ("\u0661", "1\u00a0", "1d5", "+-1", "1-", "true")],
    ],
    ids=ascii,
)
def test_every_route_knows_a_number(tmp_path, cell, is_number):
    rows = open_text(write(tmp_path, "a,b\n1,2\n"), ReadOptions(bad=BadRows("skip")))
    chunk = f"3,4\n{cell},5\n".encode()
    expected = {"a": [3, float(cell)], "b": [4, 5]} if is_number else {"a": [3], "b": [4]}
    for fast, arrow in [(True, True), (True, False), (False, False)]:
        found, told = outcome(rows.lines, chunk, fast, arrow)
        assert found == expected
        assert len(told) == (not is_number)


def test_numbers_without_text_take_the_fast_routes(tmp_path, rng):
    X = rng.normal(size=(50, 3))
    text = "\n".join(",".join(map(repr, row)) for row in X.tolist())
    rows = open_text(write(tmp_path, text))
    for arrow in (True, False):
        with (
            mock.patch.object(rows.lines, "_exact", side_effect=AssertionError),
            mock.patch.object(
                text_fast, "arrow_csv", text_fast.arrow_csv if arrow else lambda: None
            ),
        ):
            np.testing.assert_array_equal(np.asarray(next(rows.blocks())), X)


def test_blocks_have_the_size_and_columns_asked_for_in_every_pass(tmp_path):
    path = write(tmp_path, "a,b,c\n" + "".join(f"{i},{i + 1},t{i}\n" for i in range(25)))
    rows = open_text(path)
    for _ in range(2):
        blocks = list(rows.blocks(["c", "a"], size=10))
        assert [len(block) for block in blocks] == [10, 10, 5]
        assert blocks[0].columns == ["c", "a"]
        assert np.concatenate([block["a"] for block in blocks]).tolist() == list(range(25))
    with pytest.raises(ValueError, match=r"no column 'bb'; did you mean 'b'\?"):
        rows.blocks(["bb"])


def test_memory_is_that_of_a_chunk_whatever_the_size_of_the_file(tmp_path):
    path = write(tmp_path, "a,b\n" + '12345,"x\ny"\n' * 50_000)
    rows = open_text(path)
    rows._chunk = 10_000
    sizes = [len(chunk.content) for chunk in rows._chunks()]
    assert len(sizes) > 50
    assert max(sizes) < 10_100
    assert sum(len(block) for block in rows.blocks()) == 50_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a,b\n1,2\n", {"a": [1], "b": [2]}, id="comma"),
        pytest.param("a;b\n1;2\n", {"a": [1], "b": [2]}, id="semicolon"),
        pytest.param("a|b\n1|x\n", {"a": [1], "b": ["x"]}, id="bar"),
        pytest.param("a b\n 1   2 \n", {"a": [1], "b": [2]}, id="blanks"),
        pytest.param("1 2\t\"n m\"\n3 4\t\"o\"\n", {"column 0": [1, 3], "column 1": [2, 4],
                     "column 2": ["n m", "o"]}, id="blanks and tabs"),
        pytest.param("1,2\n3,4", {"column 0": [1, 3], "column 1": [2, 4]}, id="no names"),
        pytest.param("x,1\ny,2\nx,3\n", {"column 0": ["x", "y", "x"], "column 1": [1, 2, 3]},
                     id="text without names"),
        pytest.param("p,q\nr,s\np,q\n", {"column 0": ["p", "r", "p"],
                     "column 1": ["q", "s", "q"]}, id="nothing but text, repeated"),
        pytest.param("\ufeffa,b\r\n1,2\r\n\r\n3,4\r\n", {"a": [1, 3], "b": [2, 4]},
                     id="mark and line ends of Windows"),
        pytest.param("a,b\r1,2\r3,4\r", {"a": [1, 3], "b": [2, 4]}, id="old line ends"),
        pytest.param("a,b,\n1,2,\n3,4,\n", {"a": [1, 3], "b": [2, 4]}, id="delimiters at ends"),
        pytest.param("a,b\n1,2,\n", {"a": [1], "b": [2]}, id="delimiters at ends of rows"),
        pytest.param(",b\n1,2\n", {"column 0": [1], "b": [2]}, id="a name left out"),
        pytest.param("a;b\n1,5;2\n,5;-3,25\n", {"a": [1.5, 0.5], "b": [2, -3.25]},
                     id="decimal comma"),
        pytest.param("a;b\n1,234;2\n", {"a": ["1,234"], "b": [2]}, id="thousands stay text"),
        pytest.param("a;b\n1,5;2.5\n", {"a": ["1,5"], "b": [2.5]}, id="comma and point"),
        pytest.param("a, b\n1, \"x, y\"\n", {"a": [1], "b": ["x, y"]}, id="blank before quote"),
        pytest.param("d,b\n2020-02-29,1\n?,2\n", {"b": [1, 2], "d": [
                     np.datetime64("2020-02-29", "us").item(), None]}, id="dates"),
        pytest.param("d,b\n2020-02-29T01:00+02:00,1\n", {"b": [1],
                     "d": [np.datetime64("2020-02-28T23:00", "us").item()]}, id="offset"),
        pytest.param("d,b\n2020-02-30,1\n", {"d": ["2020-02-30"], "b": [1]}, id="no such day"),
        pytest.param("e,b\n,1\nNA,2\n", {"e": [None, None], "b": [1, 2]}, id="empty column"),
        pytest.param("c,b\nnone,1\nlow,none\n", {"c": ["none", "low"], "b": [1, None]},
                     id="none among text"),
    ],
)  # fmt: skip
def test_tables_are_understood(tmp_path, text, expected):
    assert read(write(tmp_path, text)) == expected


@pytest.mark.parametrize(
    ("text", "settings", "sentence"),
    [
        pytest.param("", {}, "is empty", id="empty"),
        pytest.param("\n \n", {}, "is empty", id="blank"),
        pytest.param("a,b\n", {}, "has a line of names and no rows", id="names only"),
        pytest.param(b"\x89PNG\0\0", {}, "is not text", id="binary"),
        pytest.param(b"a,b\n1,2\n3,\xe9\n", {},
                     r"line 3: byte 10 \(0xe9\) is not UTF-8; give its enc", id="encoding"),
        pytest.param("a,b\n1,2\n", {"encoding": "x-8"}, "no encoding 'x-8'", id="no encoding"),
        pytest.param('a,b\n1,2\n3,"x\n5,y\n', {}, "line 3: a quote opens here and is not "
                     "closed", id="open quote"),
        pytest.param("a,b,a,b\n1,2,3,4\n", {}, "several columns of the name 'a', 'b'",
                     id="names twice"),
        pytest.param("a;b\n1;2\n", {"delimiter": ","}, "split at each comma; its lines hold a "
                     "semicolon", id="wrong delimiter"),
        pytest.param("a\n1\n2\n", {}, "one column when split at each comma", id="one column"),
        pytest.param("a,b\n1,2\n", {"delimiter": "ab"}, "one character", id="long delimiter"),
        pytest.param("age,b\n1,2\n", {"text": ("agee",)}, "did you mean 'age'",
                     id="no text column"),
    ],
)  # fmt: skip
def test_unusable_files_are_refused_in_a_sentence(tmp_path, text, settings, sentence):
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=sentence) as error:
        read(path, **settings)
    assert "\n" not in str(error.value)


MANY = "".join(f"{i},{i}.5\n" for i in range(30))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        pytest.param("abc,1", "'abc' in column 'a', which holds numbers; correct it, read",
                     id="text"),
        pytest.param("inf,1", "'inf' in column 'a'", id="infinity"),
        pytest.param("1_000,1", "'1_000' in column 'a'", id="underscore"),
        pytest.param("9007199254740993,1", "column 'a' holds 9007199254740993, and whole "
                     "numbers beyond 2⁵³ lose digits; leave the column out", id="large"),
        pytest.param("1", "1 value where 2 columns are", id="too few"),
        pytest.param("1,2,3", "3 values where 2 columns are", id="too many"),
    ],
)  # fmt: skip
def test_bad_rows_are_told_with_their_line_or_skipped(tmp_path, line, sentence):
    # A quoted line end before it: lines of the file are counted, not rows.
    path = write(tmp_path, f'a,b\n"1",2\n{MANY}"1\n",3\n{line}\n4,5\n')
    with pytest.raises(RowError, match=f"rows.csv, line 35: {sentence}"):
        read(path)
    rows = open_text(path, ReadOptions(bad=BadRows("skip")))
    for _ in range(2):
        assert sum(len(block) for block in rows.blocks()) == 33
        assert rows.bad.count == 1
        assert sentence.split(";")[0] in rows.bad.examples[0]


def test_kinds_hold_for_the_whole_file(tmp_path):
    rows = open_text(write(tmp_path, "day,b\n2020-01-01,\n2020-01-02,\n"))
    with pytest.raises(RowError, match="line 7: 'soon' in column 'day', which holds dates"):
        rows.lines.parse(b"soon,1\n", "file", 7)
    with pytest.raises(RowError, match="line 8: 'x' in column 'b', which holds numbers"):
        rows.lines.parse(b"2020-01-01,1\n2020-01-01,x\n", "file", 7)


def test_a_column_that_cannot_be_read_can_be_left_out_or_read_as_text(tmp_path):
    path = write(tmp_path, "id,b\n9007199254740993,1\n9007199254740995,2\n")
    assert next(open_text(path).blocks(["b"]))["b"].tolist() == [1, 2]
    assert read(path, text=("id",))["id"] == ["9007199254740993", "9007199254740995"]


def test_large_numbers_with_a_point_or_exponent_are_no_bad_rows(tmp_path):
    path = write(tmp_path, "a,b\n1e20,9007199254740992\n2.5e300,-9007199254740992\n")
    assert read(path) == {"a": [1e20, 2.5e300], "b": [2.0**53, -(2.0**53)]}


def test_kinds_are_found_in_a_thousand_rows_even_if_these_are_long(tmp_path):
    long = "z" * 9_000
    text = "a,b\n" + f"1,{long}\n" * 500 + f"x,{long}\n" * 100
    assert open_text(write(tmp_path, text)).kinds["a"] == "text"


def test_rows_that_are_all_bad_are_an_error_even_if_bad_ones_are_skipped(tmp_path):
    path = write(tmp_path, "a,b\n1\n2\n")
    rows = open_text(path, ReadOptions(bad=BadRows("skip")))
    with pytest.raises(ValueError, match=r"no row that can be used.*line 2: 1 value"):
        list(rows.blocks())


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "utf-32", "cp1252"])
def test_other_encodings_are_read_if_given(tmp_path, encoding):
    path = write(tmp_path, ("stadt,b\n" + "Köln,1\n" * 5000).encode(encoding))
    assert read(path, encoding=encoding)["stadt"] == ["Köln"] * 5000
