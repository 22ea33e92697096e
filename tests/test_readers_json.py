"""JSON lines and arrays of objects: columns, kinds, and what is wrong with a line."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imparo.data.readers import BadRows, ReadOptions, RowError, json_lines
from imparo.data.readers.json_lines import JsonLines, open_json
from imparo.data.readers.json_values import schema_of


def write(tmp_path, content, name="rows.jsonl"):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


def lines_of(objects):
    return "".join(json.dumps(found) + "\n" for found in objects)


def read(rows):
    blocks = list(rows.blocks())
    return {name: plain(np.concatenate([b[name] for b in blocks])) for name in rows.names}


def plain(cells):
    return [None if cell is None or cell != cell else cell for cell in cells.tolist()]


VALUES = {
    "number": st.integers(-(2**53), 2**53) | st.floats(allow_infinity=False) | st.booleans(),
    "text": st.text(max_size=5).map(lambda text: "t" + text),
}


@given(st.data())
def test_values_come_back_as_they_were_written(data):
    keys = data.draw(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, unique=True))
    kinds = {key: data.draw(st.sampled_from(["number", "text"])) for key in keys}
    full = {key: data.draw(VALUES[kind]) for key, kind in kinds.items()}
    objects = [full]
    for _ in range(data.draw(st.integers(0, 5))):
        some = data.draw(st.lists(st.sampled_from(keys), unique=True))
        objects.append({key: data.draw(st.none() | VALUES[kinds[key]]) for key in some})
    lines = JsonLines(schema_of(objects, (), "file"), ReadOptions())
    frame = lines.parse(lines_of(objects).encode(), "file", 1)
    for key in keys:
        for found, written in zip(
            frame[key], [found.get(key) for found in objects], strict=True
        ):
            if written is None or written != written:
                assert found is None or math.isnan(found)
            else:
                assert found == written


def test_objects_within_objects_and_lists_of_numbers_become_columns(tmp_path):
    path = write(
        tmp_path,
        lines_of(
            [
                {"x": [1, 2.5], "a": {"b": {"c": 3}, "d": "u"}, "day": "2020-01-31"},
                {"x": [3, None], "a": {"b": None, "d": "v"}, "day": None, "tags": ["p", "q"]},
                {"a": None, "day": "2020-02-01T12:00:00Z", "new": True},
            ]
        ),
    )
    rows = open_json(path)
    assert rows.groups == {"x": ["x[0]", "x[1]"]}
    assert read(rows) == {
        "x[0]": [1, 3, None],
        "x[1]": [2.5, None, None],
        "a.b.c": [3, None, None],
        "a.d": ["u", "v", None],
        "day": [
            np.datetime64("2020-01-31", "us").item(),
            None,
            np.datetime64("2020-02-01T12:00", "us").item(),
        ],
        "tags": [None, '["p", "q"]', None],
        "new": [None, None, 1],
    }
    assert rows.kinds["day"] == "date"


def test_keys_that_appear_after_the_first_lines_are_ignored(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "sample_of", lambda *args: _first_lines(*args))
    path = write(tmp_path, lines_of([{"a": 1}] * 10 + [{"a": 2, "late": 3}]))
    rows = open_json(path)
    assert rows.names == ["a"]
    assert read(rows)["a"] == [1] * 10 + [2]


def _first_lines(path, encoding, delimiter):
    from imparo.data.readers.text_chunks import Chunk

    return Chunk(b"\n".join(path.read_bytes().split(b"\n")[:5]), 1, 0)


GOOD = [{"n": 1, "t": "a", "x": [1, 2], "o": {"k": 1}, "d": "2020-01-01"}] * 12


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        pytest.param('{"n": 1', "wrong JSON", id="cut short"),
        pytest.param('{"n": 1} {"n": 2}', "wrong JSON, extra data", id="two objects"),
        pytest.param("[1, 2]", r"\[1, 2\] is no object", id="an array"),
        pytest.param('{"n": "one"}', "'one' in column 'n', which holds numbers", id="text"),
        pytest.param('{"n": {"m": 1}}', "in column 'n', which holds numbers", id="an object"),
        pytest.param('{"n": Infinity}', "'Infinity' in column 'n'", id="infinity"),
        pytest.param('{"n": 9007199254740993}', "whole numbers beyond 2⁵³", id="large"),
        pytest.param('{"n": 1' + "0" * 400 + "}", "whole numbers beyond 2⁵³", id="very large"),
        pytest.param('{"t": 5}', "'5' in column 't', which holds text", id="number for text"),
        pytest.param('{"x": [1]}', "1 values in 'x', which holds lists of 2", id="short list"),
        pytest.param(
            '{"x": [1, "b"]}', "'x', which holds lists of 2 numbers", id="list of text"
        ),
        pytest.param('{"x": [1, Infinity]}', "'Infinity' in column 'x'", id="infinity in list"),
        pytest.param('{"o": 5}', "'5' in column 'o.k'", id="number for object"),
    ],
)
def test_wrong_lines_are_told_with_their_number_or_skipped(tmp_path, line, sentence):
    path = write(tmp_path, "\n" + lines_of(GOOD) + line + "\n" + lines_of(GOOD[:1]))
    with pytest.raises(RowError, match=f"rows.jsonl, line 14: .*{sentence}"):
        read(open_json(path))
    rows = open_json(path, ReadOptions(bad=BadRows("skip")))
    assert read(rows)["n"] == [1] * 13
    assert rows.bad.count == 1


def test_a_later_value_that_is_no_date_is_a_bad_row():
    lines = JsonLines(schema_of(GOOD, (), "file"), ReadOptions())
    with pytest.raises(RowError, match="line 8: 'soon' in column 'd', which holds dates"):
        lines.parse(lines_of([*GOOD[:1], {"d": "soon"}]).encode(), "file", 7)


def test_columns_that_are_not_asked_for_are_not_looked_at(tmp_path):
    path = write(tmp_path, lines_of([*GOOD, {"n": "one", "t": "b"}]))
    block = next(open_json(path).blocks(["t"]))
    assert block.columns == ["t"]
    assert block["t"].tolist() == ["a"] * 12 + ["b"]


def test_numbers_can_be_read_as_text(tmp_path):
    path = write(tmp_path, lines_of([{"id": 9007199254740993, "y": 1}, {"id": "b", "y": 2}]))
    assert read(open_json(path, ReadOptions(text=("id",))))["id"] == ["9007199254740993", "b"]


def test_values_of_several_types_are_text(tmp_path):
    path = write(tmp_path, lines_of([{"a": 1, "y": 1}, {"a": "b", "y": 2}]))
    assert read(open_json(path))["a"] == ["1", "b"]


def test_an_array_of_objects_gives_the_same_as_lines(tmp_path):
    objects = [{"a": i, "b": f"t{i}", "x": [i, 2 * i]} for i in range(30)]
    expected = read(open_json(write(tmp_path, lines_of(objects))))
    for indent in (None, 2):
        path = write(tmp_path, "\n" + json.dumps(objects, indent=indent), "rows.json")
        rows = open_json(path)
        assert read(rows) == expected
        assert rows.groups == {"x": ["x[0]", "x[1]"]}
        assert [len(block) for block in rows.blocks(["b"], size=20)] == [20, 10]


def test_wrong_elements_of_an_array_are_told_with_their_line(tmp_path):
    path = write(tmp_path, json.dumps([*GOOD, {"n": "one"}], indent=1), "rows.json")
    line = 1 + path.read_text().split('"one"')[0].count("\n") - 1
    with pytest.raises(RowError, match=f"line {line}: 'one' in column 'n'"):
        read(open_json(path))
    with pytest.raises(ValueError, match=r"rows.json, line 2: expecting"):
        read(open_json(write(tmp_path, '[{"a": 1},\n{"a": ', "rows.json")))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param("[]", "holds no objects", id="an array of nothing"),
        pytest.param("a,b\n1,2\n", "is not JSON lines: line 1 holds wrong JSON", id="csv"),
        pytest.param('{"a": 1, "a.b": 2, "a": {"b": 3}}', "several columns of the name 'a.b'",
                     id="names twice"),
    ],
)  # fmt: skip
def test_unusable_files_are_refused_in_a_sentence(tmp_path, content, sentence):
    with pytest.raises(ValueError, match=sentence):
        open_json(write(tmp_path, content))


def test_arrays_too_large_to_be_held_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "_LARGEST_ARRAY", 20)
    with pytest.raises(ValueError, match="write it as JSON lines"):
        open_json(write(tmp_path, json.dumps([{"a": 1}] * 10), "rows.json"))
