"""Records as bytes: what is encoded is decoded, and what is damaged refused."""

import math
import signal
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from imparo.errors import FileFormatError
from imparo.journal import Journal, decode, encode
from imparo.persistence import load, save

# Records as bytes


LABELS = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(),
        st.integers(-(2**31), 2**31 - 1).map(np.int32),
        st.floats(width=32).map(np.float32), st.floats().map(np.float64),
        st.booleans().map(np.bool_), st.text().map(np.str_), st.binary().map(np.bytes_),
        st.complex_numbers().map(np.complex128),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(), inner, max_size=4),
    ),
    max_leaves=12,
)  # fmt: skip


ARRAYS = arrays_of.arrays(
    st.one_of(
        arrays_of.boolean_dtypes(), arrays_of.integer_dtypes(endianness="?"),
        arrays_of.unsigned_integer_dtypes(), arrays_of.floating_dtypes(endianness="?"),
        arrays_of.complex_number_dtypes(), arrays_of.unicode_string_dtypes(),
        arrays_of.byte_string_dtypes(), arrays_of.datetime64_dtypes(),
    ),
    arrays_of.array_shapes(min_dims=0, min_side=0, max_side=4),
)  # fmt: skip


def same(a, b):
    """Equal in type and in every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.str_ | np.bytes_):
        return list(a) == list(b)
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return struct.pack("d", a) == struct.pack("d", b) if isinstance(a, float) else a == b


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(st.text(), st.one_of(LABELS, ARRAYS, st.tuples(LABELS, ARRAYS))))
def test_records_round_trip_bit_by_bit(record):
    payload = encode(record)
    assert same(decode(payload), record)
    assert encode(decode(payload)) == payload


VALUES = [
    "1", 1, 1.0, True, None, 0.0, -0.0, False, "", "\ud800", "$tuple", {"$int": "0x1"}, {}, (),
    [], ("a", (1, [2.5])), 10**5000, -(2**64), 2**63, 5e-324, math.inf, -math.nan,
    struct.unpack("<d", bytes.fromhex("010000000000f87f"))[0], np.float64("nan"),
    np.datetime64("2020-01-01", "D"), np.timedelta64("NaT"), np.longdouble(1) / 3,
    np.str_("a\0"), np.array("x"), np.array([""]), np.zeros((0, 3)), np.array(["a", "bcd"]),
    np.array([], "U"), np.zeros(2, "U0"),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_stay_what_they_are(value):
    assert same(decode(encode({"value": value})), {"value": value})


def test_arrays_keep_their_memory_order_and_are_copies():
    x = np.arange(24.0).reshape(2, 3, 4)
    for array in (x, np.asfortranarray(x), x[0].T, x[:, ::2], x[..., 1], x[::-1]):
        back = decode(encode({"x": array}))["x"]
        assert same(back, array)
        assert back.flags.writeable
        if array.flags.forc:
            assert back.flags.c_contiguous == array.flags.c_contiguous
            assert back.flags.f_contiguous == array.flags.f_contiguous


OTHERS = [
    b"bytes", {1, 2}, 1j, object(), len, {1: "key"}, {np.str_("a"): 1}, np.array([None]),
    np.ma.masked_array([1.0]), np.zeros(2, [("a", int)]), [1, {"a": {2}}], float, Path("a"),
    np.void(b"a"), signal.SIGKILL, {10**5000: 1},
]  # fmt: skip


@pytest.mark.parametrize("value", OTHERS, ids=lambda value: type(value).__name__)
def test_other_values_are_refused(value):
    with pytest.raises(TypeError, match=r"record\['value'\].*(cannot hold|keys of records)"):
        encode({"value": value})


def test_records_that_are_not_dictionaries_or_contain_themselves_are_refused():
    with pytest.raises(TypeError, match="a record is a dictionary, not list"):
        encode([1])
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        encode({"loop": loop})


def test_bytes_that_are_no_record_are_refused():
    payload = encode({"a": np.arange(3), "b": ("c", math.inf)})
    for size in range(len(payload)):
        with pytest.raises(FileFormatError):
            decode(payload[:size])
    for wrong in (b"", b"\x80\x04.", bytes(100), payload + b"0"):
        with pytest.raises(FileFormatError, match="not a record"):
            decode(wrong)
    with pytest.raises(FileFormatError, match="upgrade"):
        decode(payload.replace(b'"format":1', b'"format":2'))
    with pytest.raises(FileFormatError, match=r"\$tupla, unknown"):
        decode(payload.replace(b"$tuple", b"$tupla"))


def test_models_and_records_live_in_one_journal(tmp_path):
    from imparo import KernelRegressor

    X, y = np.random.default_rng(0).normal(size=(2, 10, 1))
    model = KernelRegressor(penalty=0.1).fit(X, y[:, 0])
    with Journal(tmp_path) as journal:
        journal.append(encode({"X": X, "y": y}))
        journal.snapshot(lambda path: save(model, path))
        journal.append(encode({"X": X[:1], "label": "cup"}))
    with Journal(tmp_path) as journal:
        assert (load(journal.snapshot_path).predict(X) == model.predict(X)).all()
        ((number, payload),) = journal.records()
        assert number == 2
        assert same(decode(payload), {"X": X[:1], "label": "cup"})
