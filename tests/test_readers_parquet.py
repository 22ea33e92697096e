"""Parquet, Arrow and Feather files are read in blocks, and blocks are read ahead."""

import datetime
import gc
import threading
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imparo.data.readers import BadRows, ReadOptions, RowError
from imparo.data.readers.arrow_files import open_arrow
from imparo.data.readers.parquet import open_parquet
from imparo.data.readers.read_ahead import read_ahead

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


def write_stream(table, path):
    with pa.ipc.new_stream(str(path), table.schema) as stream:
        stream.write_table(table, 3)


def write_plain(table, path):
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write_table(table, 3)


FORMATS = {
    "parquet": (
        open_parquet,
        lambda table, path: pq.write_table(table, path, row_group_size=3),
    ),
    "arrow": (open_arrow, write_plain),
    "stream": (open_arrow, write_stream),
    "feather": (
        open_arrow,
        lambda table, path: feather.write_feather(table, path, chunksize=3),
    ),
}


@pytest.fixture(params=list(FORMATS))
def opened(request, tmp_path):
    """A function that writes a table in a format and opens the file."""
    opener, write = FORMATS[request.param]

    def made(table, **options):
        path = tmp_path / f"rows.{request.param}"
        write(table, path)
        return opener(path, ReadOptions(**options))

    return made


def whole(rows, columns=None, size=2):
    parts = list(rows.blocks(columns, size))
    assert all(len(part) <= size for part in parts)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns}


def same(cells, expected):
    """Whether cells are those of a list with None, or NaN or NaT, where one is missing."""
    return all(
        (cell is None or bool(cell != cell)) if value is None else cell == value
        for cell, value in zip(cells, expected, strict=True)
    )


def test_every_type_is_read_as_plain_cells(opened):
    day = datetime.date(2024, 2, 29)
    noon = datetime.datetime(2024, 7, 1, 12, 0, 0, 250)
    hour = datetime.timedelta(hours=1)
    gaps = {
        "int": ([1, None, -3, 4], pa.int32(), "number", np.float64),
        "whole": ([1, 2, 3, 4], pa.int16(), "number", np.int16),
        "flag": ([True, False, None, True], pa.bool_(), "number", np.float64),
        "set": ([True, False, True, True], pa.bool_(), "number", np.uint8),
        "half": ([0.5, None, 2.0, -1.0], pa.float16(), "number", np.float32),
        "single": ([0.1, None, 2.0, -1.0], pa.float32(), "number", np.float32),
        "double": ([0.1, None, 2.0, -1.0], pa.float64(), "number", np.float64),
        "money": ([Decimal("1.25"), None, Decimal("-3.50"), Decimal(0)], pa.decimal128(9, 2),
                  "number", np.float64),
        "text": (["a", None, "", "a"], pa.string(), "text", object),
        "large": (["a", None, "é", "a"], pa.large_string(), "text", object),
        "class": (["a", None, "b", "a"], pa.dictionary(pa.int8(), pa.string()), "text", object),
        "day": ([day, None, day, day], pa.date32(), "date", "M8[us]"),
        "time": ([noon, None, noon, noon], pa.timestamp("us"), "date", "M8[us]"),
        "span": ([hour, None, hour, hour], pa.duration("ms"), "duration", "m8[us]"),
        "clock": ([datetime.time(1), None, datetime.time(1), datetime.time(1)], pa.time32("s"),
                  "duration", "m8[us]"),
        "none": ([None] * 4, pa.null(), "number", np.float64),
    }  # fmt: skip
    table = pa.table({name: pa.array(cells, kind) for name, (cells, kind, *_) in gaps.items()})
    rows = opened(table)
    found = whole(rows)
    assert rows.names == list(gaps) == list(found)
    for name, (cells, _, kind, dtype) in gaps.items():
        assert rows.kinds[name] == kind, name
        assert found[name].dtype == dtype, name
        expected = [hour if type(cell) is datetime.time else cell for cell in cells]
        if name == "single":
            expected = [cell if cell is None else np.float32(cell) for cell in cells]
        if name == "money":
            expected = [cell if cell is None else float(cell) for cell in cells]
        plain = found[name].astype("O") if found[name].dtype.kind in "Mm" else found[name]
        if name == "day":
            plain = [cell and cell.date() for cell in plain]
        assert same(plain, expected), name


@pytest.mark.parametrize("zone", ["Europe/Rome", "+02:00"])
def test_a_time_with_a_zone_is_what_the_clock_there_shows(opened, zone):
    instant = datetime.datetime(2024, 7, 1, 10, tzinfo=datetime.UTC)  # noon there, in summer
    rows = opened(pa.table({"t": pa.array([instant], pa.timestamp("ns", zone))}))
    assert next(rows.blocks())["t"] == np.array(["2024-07-01T12:00"], "M8[us]")


def test_lists_of_fixed_size_are_columns_of_a_group_whatever_slice_they_are(opened):
    cells = [[1, 2], None, [5, None], [7, 8], [9, 10]]
    column = pa.array(cells, pa.list_(pa.int32(), 2))
    rows = opened(pa.table({"v": column, "w": [0.0] * 5}).slice(1))
    assert rows.names == ["v[0]", "v[1]", "w"]
    assert rows.groups == {"v": ["v[0]", "v[1]"]}
    found = whole(rows, ["v[1]", "v[0]"])
    assert same(found["v[0]"], [None, 5, 7, 9])
    assert same(found["v[1]"], [None, None, 8, 10])


def test_what_lies_under_a_missing_list_is_not_read(opened):
    hidden = pa.FixedSizeListArray.from_arrays(
        pa.array([1.0, 2.0, 3.0, 4.0]), 2, mask=pa.array([False, True])
    )
    found = whole(opened(pa.table({"v": hidden})))
    assert same(found["v[0]"], [1.0, None])
    assert same(found["v[1]"], [2.0, None])


def test_nested_columns_are_left_out_and_refused_when_asked_for(opened):
    table = pa.table({"x": [1.0], "many": [[1, 2]], "pair": [{"a": 1}], "raw": [b"\x00"]})
    rows = opened(table)
    assert rows.names == ["x"]
    assert set(rows.left_out) == {"many", "pair", "raw"}
    with pytest.raises(
        ValueError, match=r"column 'pair' of .* cannot be read: it holds struct"
    ):
        rows.blocks(["pair"])
    with pytest.raises(ValueError, match="no column 'z'"):
        rows.blocks(["z"])
    with pytest.raises(ValueError, match="no column that can be read"):
        opened(table.select(["many"]))


def test_columns_come_in_the_order_asked_for_and_none_can_be_asked_for(opened):
    rows = opened(pa.table({"a": [1, 2, 3, 4], "a.b": [5, 6, 7, 8], "c": list("wxyz")}))
    block = next(rows.blocks(["c", "a"]))
    assert block.columns == ["c", "a"]
    assert sum(len(block) for block in rows.blocks([])) == 4
    assert rows.n_rows in (4, None)
    rows = opened(pa.table({"a": [{"b": 1, "c": 2}] * 4, "a.b": [5, 6, 7, 8]}))
    assert whole(rows)["a.b"].tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_whole_numbers_that_floats_cannot_hold_are_bad_rows(opened, value):
    table = pa.table({"id": [1, 2, 3, value, None], "x": [0.0, 1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(RowError, match=rf"row 3: the whole number {value} in 'id'"):
        whole(opened(table))
    bad = BadRows("skip")
    rows = opened(table, bad=bad)
    for _ in range(2):  # every pass counts anew
        assert whole(rows)["x"].tolist() == [0.0, 1.0, 2.0, 4.0]
        assert bad.count == 1
    assert whole(rows, ["x"])["x"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert whole(opened(table, text=("id",)))["id"].tolist() == [
        "1",
        "2",
        "3",
        str(value),
        None,
    ]
    assert whole(opened(pa.table({"id": [2**53, -(2**53)]})))["id"].tolist() == [
        2**53,
        -(2**53),
    ]


def test_columns_can_be_read_as_text(opened):
    day = datetime.date(2024, 2, 29)
    rows = opened(
        pa.table({"code": [7, None], "part": [0.5, float("nan")], "day": [day, None]}),
        text=("code", "part", "day", "absent"),
    )
    assert set(rows.kinds.values()) == {"text"}
    found = whole(rows)
    assert found["code"].tolist() == ["7", None]
    assert found["part"].tolist() == ["0.5", None]
    assert found["day"][0].startswith("2024-02-29")
    assert found["day"][1] is None


def test_bytes_that_are_no_text_are_bad_rows(opened):
    broken = pa.array([b"a", b"\xff", b"c"]).view(pa.string())
    rows = opened(pa.table({"t": broken}), bad=BadRows("skip"))
    assert whole(rows)["t"].tolist() == ["a", "c"]
    assert "row 1: the bytes in 't'" in rows.bad.examples[0]


def test_columns_of_one_name_are_refused(opened):
    with pytest.raises(ValueError, match="several columns of the name 'a'"):
        opened(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]))


def test_files_without_rows_are_refused(opened):
    with pytest.raises(ValueError, match="holds no rows"):
        opened(pa.table({"a": pa.array([], pa.float64())}))


@pytest.mark.parametrize("kind", list(FORMATS))
def test_damaged_files_are_told_in_one_sentence(kind, tmp_path, rng):
    opener, write = FORMATS[kind]
    path = tmp_path / "rows"
    write(pa.table({"a": rng.normal(size=2000), "t": ["word"] * 2000}), path)
    content = path.read_bytes()
    for wrong in (content[: len(content) // 2], b"a,b\n1,2\n" * 9, b"\x00" * 500, b"P"):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match="rows is damaged, cut off or no") as caught:
            list(opener(path).blocks())
        assert "\n" not in str(caught.value)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="is empty"):
        opener(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        opener(tmp_path / "absent")


def test_a_page_that_is_damaged_is_found_when_it_is_read(tmp_path, rng):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": rng.normal(size=5000)}), path, use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56  # the header of the first page
    path.write_bytes(bytes(content))
    rows = open_parquet(path)
    with pytest.raises(ValueError, match="damaged"):
        list(rows.blocks())


def test_the_first_version_of_feather_is_named(tmp_path):
    (tmp_path / "old.feather").write_bytes(b"FEA1" + b"\x00" * 90)
    with pytest.raises(ValueError, match="version 1"):
        open_arrow(tmp_path / "old.feather")


def test_a_block_is_about_two_million_cells_by_default(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({f"c{j}": np.zeros(5000) for j in range(700)}), path)
    assert [len(block) for block in open_parquet(path).blocks()] == [2**21 // 700, 5000 - 2995]
    with pytest.raises(ValueError, match="blocks of 0 rows"):
        open_parquet(path).blocks(size=0)


def test_a_batch_is_read_without_the_rest_of_its_row_group(tmp_path, rng):
    path = tmp_path / "rows.parquet"
    table = pa.table({f"c{j}": rng.normal(size=400_000) for j in range(4)})
    pq.write_table(table, path, row_group_size=400_000, use_dictionary=False)
    group = table.nbytes
    del table
    before, held = pa.total_allocated_bytes(), []
    for block in open_parquet(path).blocks(size=20_000):
        held.append(pa.total_allocated_bytes() - before)
        del block
    # A page of about 1 MB of every column, packed and unpacked, and not the 12.8 MB of all.
    assert group == 12_800_000
    assert len(held) == 20
    assert max(held) < 0.75 * group


@pytest.mark.parametrize("kind", ["arrow", "stream"])
def test_an_arrow_file_that_is_not_compressed_is_not_copied(kind, tmp_path, rng):
    path = tmp_path / "rows"
    FORMATS[kind][1](pa.table({"a": rng.normal(size=9), "b": rng.normal(size=9)}), path)
    before = pa.total_allocated_bytes()
    rows = open_arrow(path)
    blocks = list(rows.blocks(["b"]))
    assert len(blocks) == 3
    assert pa.total_allocated_bytes() == before


@settings(max_examples=25, deadline=None)
@given(
    cells=st.lists(
        st.tuples(
            st.none() | st.integers(-(2**53), 2**53),
            st.none() | st.text(max_size=5),
            st.none() | st.floats(allow_nan=False),
        ),
        min_size=1,
        max_size=20,
    ),
    size=st.integers(1, 7),
    group=st.integers(1, 9),
    columns=st.permutations(["i", "t", "f"]),
)
def test_any_table_is_read_back_in_any_blocks(tmp_path_factory, cells, size, group, columns):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    types = {"i": pa.int64(), "t": pa.string(), "f": pa.float64()}
    given = dict(zip("itf", map(list, zip(*cells, strict=True)), strict=True))
    table = pa.table({name: pa.array(given[name], types[name]) for name in "itf"})
    pq.write_table(table, path, row_group_size=group)
    found = whole(open_parquet(path), columns, size)
    assert list(found) == columns
    assert all(same(found[name], given[name]) for name in columns)


# Reading ahead.


def workers():
    return [t for t in threading.enumerate() if t.name == "imparo-read-ahead"]


def counting(n, made, closed):
    try:
        for i in range(n):
            made.append(i)
            yield i
    finally:
        closed.append(threading.current_thread().name)


def test_reading_ahead_gives_the_same_blocks_made_by_another_thread():
    closed = []
    assert list(read_ahead(counting(50, [], closed), depth=3)) == list(range(50))
    assert closed == ["imparo-read-ahead"]
    assert not workers()


@pytest.mark.parametrize("depth", [1, 3])
def test_reading_ahead_is_so_many_blocks_ahead_and_no_more(depth):
    made, seen = [], threading.Semaphore(0)

    def blocks():
        for i in range(20):
            made.append(i)
            seen.release()
            yield i

    ahead = read_ahead(blocks(), depth)
    assert next(ahead) == 0
    for _ in range(depth + 1):
        assert seen.acquire(timeout=10)
    assert not seen.acquire(timeout=0.05)
    assert len(made) == depth + 1
    ahead.close()


def test_an_error_comes_in_the_place_of_the_block_that_it_prevents():
    def blocks():
        yield 1
        yield 2
        raise RowError("line 3")

    ahead = read_ahead(blocks())
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(RowError, match="line 3"):
        next(ahead)
    assert not workers()
    assert list(ahead) == []


@pytest.mark.parametrize("how", ["close", "collect", "error"])
def test_leaving_early_ends_the_thread_and_closes_the_iterator(how):
    made, closed = [], []
    ahead = read_ahead(counting(1000, made, closed))
    assert next(ahead) == 0
    if how == "error":
        with pytest.raises(KeyError):
            ahead.throw(KeyError)
    if how == "close":
        ahead.close()
    del ahead
    gc.collect()
    assert not workers()
    assert closed == ["imparo-read-ahead"]
    assert len(made) < 5


def test_a_thread_is_not_begun_for_blocks_that_nobody_reads():
    made = []
    read_ahead(counting(3, made, []))
    assert made == []
    assert not workers()
    with pytest.raises(ValueError, match="depth is 0"):
        read_ahead([], 0)


def test_blocks_that_were_read_are_not_held():
    class Block:
        alive = 0

        def __init__(self):
            Block.alive += 1

        def __del__(self):
            Block.alive -= 1

    most = 0
    for block in read_ahead(Block() for _ in range(30)):
        most = max(most, Block.alive)
        del block
    assert most <= 2
