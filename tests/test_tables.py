"""Tables in files: what is read, what is left out, and what is said about it."""

import gzip
import io

import numpy as np
import pytest

from imparo.data.tables import read_table


@pytest.fixture
def read(tmp_path):
    """A function that writes a file of some name and reads it."""

    def from_text(text, target=None, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_table(path, target)

    return from_text


def npy(array, **settings):
    file = io.BytesIO()
    np.save(file, array, **settings)
    return file.getvalue()


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


NAMED = [["a", "b"], "c", [[1, 2], [4, 5]], [3, 6]]
NUMBERED = [["column 0", "column 1"], "column 2", [[1, 2], [4, 5]], [3, 6]]


def found(table):
    return [table.columns, table.target, table.X.tolist(), table.y.tolist()]


# Text.


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a,b,c\n1,2,3\n4,5,6\n", "data.csv"),
        ("a,b,c\n1,2,3\n4,5,6", "DATA.CSV"),
        ("a, b, c\n1, 2, 3\n4, 5, 6\n", "data.csv"),
        ("a;b;c\n1;2;3\n4;5;6\n", "data.csv"),
        ("a\tb\tc\n1\t2\t3\n4\t5\t6\n", "data.tsv"),
        ("a\tb\tc\n1\t2\t3\n4\t5\t6\n", "data.txt"),
        ("a b c\n1 2 3\n4 5 6\n", "data.txt"),
        ("  a  b   c\n 1   2 3\n 4 5     6\n", "data.data"),
        ("a b c \n1 2 3 \n4 5 6\n", "data.txt"),
        ('"a","b","c"\n"1","2","3"\n"4","5","6"\n', "data.csv"),
        ("\ufeffa,b,c\n1,2,3\n4,5,6\n", "data.csv"),
        ("a,b,c\r\n1,2,3\r\n4,5,6\r\n", "data.csv"),
        ("a,b,c\r1,2,3\r4,5,6\r", "data.csv"),
        ("\n\na,b,c\n1,2,3\n\n4,5,6\n\n", "data.csv"),
        ("a,b,c\n1,2,3\n  \n4,5,6\n", "data.csv"),
        ("a,b,c,\n1,2,3,\n4,5,6,\n", "data.csv"),
        ("a,b,c\n1.0,2e0,+3\n4,0.5e1,6.\n", "data.csv"),
    ],
    ids=repr,
)
def test_the_same_table_in_many_dialects(text, name, read):
    table = read(text, name=name)
    assert found(table) == NAMED
    assert table.notes == []
    assert table.X.dtype == table.y.dtype == np.float64
    packed = read(gzip.compress(text.encode()), name=name + ".gz")
    assert found(packed) == NAMED


@pytest.mark.parametrize(
    "text", ["1,2,3\n4,5,6\n", "\ufeff1,2,3\r\n4,5,6\r\n", "1 2 3\n4 5 6\n", "1;2;3\n4;5;6\n"]
)
def test_tables_without_names(text, read):
    assert found(read(text)) == NUMBERED


def test_names_may_be_numbers_and_hold_delimiters(read):
    table = read("2019,2020,price\n1,2,3\n4,5,6\n")
    assert found(table) == [["2019", "2020"], "price", *NAMED[2:]]
    table = read('"width, m";"height, m, top";"c\n2"\n1;2;3\n4;5;6\n')
    assert found(table) == [["width, m", "height, m, top"], "c\n2", *NAMED[2:]]


def test_text_in_quotes(read):
    table = read('a,"the ""class"""\n1,"x, y"\n2,"z"\n')
    assert table.target == 'the "class"'
    assert table.y.tolist() == ["x, y", "z"]


@pytest.mark.parametrize(
    ("target", "name", "columns"),
    [
        (None, "c", ["a", "b"]),
        ("b", "b", ["a", "c"]),
        ("0", "a", ["b", "c"]),
        ("2", "c", ["a", "b"]),
        ("-1", "c", ["a", "b"]),
        ("-3", "a", ["b", "c"]),
    ],
)
def test_targets_by_name_and_number(target, name, columns, read):
    values = {"a": [1, 4], "b": [2, 5], "c": [3, 6]}
    table = read("a,b,c\n1,2,3\n4,5,6\n", target)
    assert (table.target, table.columns) == (name, columns)
    assert table.y.tolist() == values[name]
    assert table.X.T.tolist() == [values[column] for column in columns]
    rows = npy(np.array([[1, 2, 3], [4, 5, 6]]))
    if target != "b":
        table = read(rows, target, "rows.npy")
        assert table.y.tolist() == values[name]
        numbers = [f"column {'abc'.index(column)}" for column in columns]
        assert (table.target, table.columns) == (f"column {'abc'.index(name)}", numbers)


@pytest.mark.parametrize("target", ["d", "3", "-4", "", "--1", "1.0", "²", "A"])
def test_targets_that_are_not_there(target, read):
    with pytest.raises(ValueError, match=r"there is no column '.*'; there are a, b, c"):
        read("a,b,c\n1,2,3\n4,5,6\n", target)


def test_targets_of_numbers_and_of_text(read):
    assert read("a,y\n1,0\n2,1\n").y.dtype == np.float64
    for text in ("a,y\n1,x\n2,y\n", "a,y\n1,0\n2,y\n"):
        assert read(text).y.dtype.kind == "U"
    # A name of a class is not a missing value.
    table = read("a,y\n1,none\n2,mild\n3,none\n")
    assert table.y.tolist() == ["none", "mild", "none"]
    assert table.notes == []


def test_columns_of_text_are_left_out(read):
    table = read("a,town,b,y\n1,x,2,3\n4,5,5,6\n")
    assert found(table) == [["a", "b"], "y", *NAMED[2:]]
    assert table.notes == ["columns without numbers were left out: town"]
    # Also one without any value, and one with an infinite one.
    assert read("a,e,i,y\n1,,inf,3\n2,,1,4\n").columns == ["a"]


@pytest.mark.parametrize("hole", ["", "NA", "n/a", "NaN", "null", "None", "?", "  "])
def test_rows_with_holes_are_left_out(hole, read):
    table = read(f"a,b,town,y\n1,2,x,3\n{hole},2,x,3\n1,2,x,{hole}\n4,5,{hole},6\n")
    assert found(table) == [["a", "b"], "y", *NAMED[2:]]
    assert table.notes == [
        "columns without numbers were left out: town",
        "2 of 4 rows with missing values were left out",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("a,b\n", "has names and no rows"),
        ("a\n1\n2\n", "has one column"),
        ("1\n2\n", "has one column"),
        ("a,b,c\n1,2,3\n1,2\n", "row 3: 2 values where the first row has 3"),
        ("a,b\n1,2\n3,4\n5,6,7\n", "row 4: 3 values where the first row has 2"),
        ("a,b\nx,y\nz,w\n", "no column but the target holds numbers"),
        ("a,y\n1,\n,2\n", "a value is missing in every row"),
        # Commas within numbers are not understood, and must not be taken for delimiters.
        ("1,5;2,5\n2,5;3,5\n", "no column but the target holds numbers"),
        (b"a,b\n\xff,2\n", "not delimited text in UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "not delimited text in UTF-8"),
        ('a,b\n"' + 200_000 * "x" + '",2\n', "not delimited text"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_text_that_is_no_table(text, message, read):
    with pytest.raises(ValueError, match=message) as error:
        read(text)
    assert "\n" not in str(error.value)


def test_archives_that_are_damaged(read):
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 500, mtime=0)
    for bad in (packed[: len(packed) // 2], packed[:10] + b"\xff" * 20, b"a,b\n1,2\n"):
        with pytest.raises(ValueError, match="not delimited text"):
            read(bad, name="data.csv.gz")


# NumPy's files.


def test_arrays_of_rows(read):
    rows = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for dtype in (np.float64, np.float32, np.int64):
        table = read(npy(rows.astype(dtype)), name="rows.npy")
        assert found(table) == NUMBERED
    assert found(read(npy(np.asfortranarray(rows)), name="rows.NPY")) == NUMBERED


@pytest.mark.parametrize("names", [("X", "y"), ("X_train", "y_train"), ("X", "Y")])
def test_archives_of_rows_and_outputs(names, read):
    X, y = np.arange(6.0).reshape(3, 2), np.array([1, 0, 1])
    table = read(npz(**dict(zip(names, (X, y), strict=True)), other=y), name="data.npz")
    assert found(table) == [["column 0", "column 1"], names[1], X.tolist(), y.tolist()]
    # Pictures become rows.
    images = read(npz(X=np.zeros((3, 4, 5)), y=y), name="data.npz")
    assert images.X.shape == (3, 20)
    outputs = read(npz(X=X, y=X), name="data.npz")
    assert outputs.y.shape == (3, 2)


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (npy(np.arange(3.0)), "a.npy", "has shape"),
        (npy(np.zeros((3, 1))), "a.npy", "at least two columns"),
        (npy(np.zeros((2, 2, 2))), "a.npy", "has shape"),
        (npy(np.array([[{}, 1]], object), allow_pickle=True), "a.npy", "a.npy"),
        (b"", "a.npy", "a.npy"),
        (b"hello", "a.npy", "a.npy"),
        (npy(np.zeros((2, 2))), "a.npz", "a.npz"),
        (npz(X=np.zeros((2, 2)), y=np.zeros(2)), "a.npy", "a.npy"),
        (npz(X=np.zeros((2, 2)), y=np.zeros(2))[:200], "a.npz", "a.npz"),
        (b"", "a.npz", "a.npz"),
        (b"hello", "a.npz", "a.npz"),
        (npz(A=np.zeros(2)), "a.npz", "holds A; X and y, or X_train and y_train, are needed"),
        (npz(X=np.zeros(2), y=np.zeros(2)), "a.npz", "has shape"),
        (gzip.compress(npy(np.zeros((2, 2))), mtime=0), "a.npy.gz", "no kind that can be read"),
        (b"1,2\n", "a.xls", "no kind that can be read"),
        (b"1,2\n", "a", "no kind that can be read"),
        (b"1,2\n", "a.gz", "no kind that can be read"),
    ],
    ids=lambda value: str(len(value)) if isinstance(value, bytes) else value,
)
def test_files_that_are_no_table(content, name, message, read):
    with pytest.raises(ValueError, match=message) as error:
        read(content, name=name)
    assert "\n" not in str(error.value)
    # What to do about pickles is not a question here.
    assert "pickle" not in str(error.value) or "Object arrays" in str(error.value)


def test_a_target_apart_is_not_asked_for(read):
    with pytest.raises(ValueError, match="holds X and y apart; leave the target out"):
        read(npz(X=np.zeros((2, 2)), y=np.zeros(2)), "y", "data.npz")


def test_files_that_are_not_there(tmp_path):
    for path in (tmp_path / "nothing.csv", tmp_path):
        with pytest.raises(ValueError, match="there is no file"):
            read_table(path)


def test_a_cell_that_is_no_number_among_numbers_is_named(tmp_path):
    path = tmp_path / "stray.csv"
    path.write_text("x,y\n1,2\n2,\n3,12a\n4,5\n5,6\n")
    with pytest.raises(ValueError, match="'y' holds numbers but for '12a' in row 3"):
        read_table(path)
