"""Rows from anywhere: arrays, memory maps, frames and blocks give one and the same model."""

import itertools
import mmap

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from imparo import NystromClassifier, NystromRegressor
from imparo.data.sources import ArraySource, BlockSource, check_finite, opener_of

DOUBLE = np.dtype(np.float64)
SETTINGS = {"sigma": 1.0, "n_centers": [5, 12], "penalty": [1e-1, 1e-3], "random_state": 0}

cuts = st.lists(st.integers(0, 23), max_size=8).map(sorted)
often = settings(max_examples=50, deadline=None)


def table(n=23, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def from_blocks(X, cuts=(7, 7, 20), dtype=DOUBLE):
    parts = np.split(X, cuts)
    return BlockSource(lambda: iter(parts), X.shape, dtype)


def mapped(path, X, mode="r"):
    X.tofile(path)
    return np.memmap(path, dtype=X.dtype, mode=mode, shape=X.shape)


def assert_covers(source, X, size):
    """The blocks are the rows of X, in order, none larger than ``size``."""
    stop = 0
    for rows, block in source.blocks(size):
        assert rows.start == stop
        assert 0 < rows.stop - rows.start <= size
        stop = rows.stop
        block = block.toarray() if sparse.issparse(block) else block
        assert block.dtype == source.dtype
        assert_array_equal(block, X[rows])
    assert stop == len(X)


# Sources.


@given(cuts=cuts, size=st.integers(1, 30))
@often
def test_blocks_are_cut_and_put_together_to_the_size_asked_for(cuts, size):
    X = table()
    source = from_blocks(X, cuts)
    assert source.shape == (23, 3)
    assert_covers(source, X, size)
    assert_covers(source, X, size)  # as often as one likes
    # Small blocks are put together: any two neighbours are more than fits.
    lengths = [rows.stop - rows.start for rows, _ in source.blocks(size)]
    given_parts = [min(size, len(part)) for part in np.split(X, cuts) if len(part)]
    assert len(lengths) <= len(given_parts) + 23 // size
    if max(given_parts) * 2 <= size:
        assert all(a + b > size // 2 for a, b in itertools.pairwise(lengths))


@given(cuts=cuts, positions=st.lists(st.integers(0, 22), min_size=1, max_size=30))
@often
def test_rows_are_taken_in_the_order_asked_for(cuts, positions):
    X, positions = table(), np.array(positions)
    for source in (from_blocks(X, cuts), ArraySource(X, DOUBLE)):
        assert_array_equal(source.take(positions), X[positions])
    parts = [sparse.csr_array(part) for part in np.split(X, cuts)]
    mixed = BlockSource(lambda: iter(parts), X.shape, DOUBLE)
    assert_array_equal(mixed.take(positions).toarray(), X[positions])


@given(
    cuts=cuts, size=st.integers(1, 30), forms=st.lists(st.booleans(), min_size=9, max_size=9)
)
@often
def test_sparse_blocks_are_those_of_dense_ones(cuts, size, forms):
    X = table() * (table(seed=1) > 0)
    parts = [
        sparse.csr_matrix(part) if thin else part
        for part, thin in zip(np.split(X, cuts), forms, strict=False)
    ]
    assert_covers(BlockSource(lambda: iter(parts), X.shape, DOUBLE), X, size)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array,
                                  sparse.csr_matrix])  # fmt: skip
@pytest.mark.parametrize("given", [np.int16, np.float32, np.float64, np.uint8, bool])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_converted_block_by_block(form, given, dtype):
    X = np.abs(10 * table()).astype(given)
    source = ArraySource(form(X), np.dtype(dtype))
    assert_covers(source, X.astype(dtype), 5)
    found = source.take(np.array([3, 0, 3]))
    found = found.toarray() if sparse.issparse(found) else found
    assert_array_equal(found, X[[3, 0, 3]].astype(dtype))
    assert found.dtype == dtype


def test_blocks_of_an_array_in_the_right_type_are_views():
    X = table()
    (_, block), *_ = ArraySource(X, DOUBLE).blocks(5)
    assert np.shares_memory(block, X)


@pytest.mark.parametrize("dtype", [np.int16, np.float32, np.float64])
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_memory_maps(tmp_path, dtype, mode):
    X = (100 * table(2000)).astype(dtype)
    file = mapped(tmp_path / "rows", X, mode)
    if mode != "r":
        X = (X / 2).astype(dtype)
        file[:] = X  # not on the disk, and must not be lost
    source = ArraySource(file, DOUBLE)
    assert_covers(source, X.astype(float), 333)
    assert_array_equal(source.take(np.array([1999, 0])), X[[1999, 0]])
    assert_array_equal(file, X)


@pytest.mark.parametrize("flags", ["private", "shared"])
def test_rows_in_anonymous_memory_are_not_lost(flags):
    X = table(2000)
    kind = mmap.MAP_PRIVATE if flags == "private" else mmap.MAP_SHARED
    memory = mmap.mmap(-1, X.nbytes, flags=kind | mmap.MAP_ANONYMOUS)
    rows = np.ndarray(X.shape, buffer=memory)
    rows[:] = X
    assert_covers(ArraySource(rows, DOUBLE), X, 333)
    assert_array_equal(rows, X)


def test_what_can_be_opened_again():
    assert list(opener_of([1, 2])()) == [1, 2]
    assert list(opener_of(lambda: iter([1, 2]))()) == [1, 2]
    assert list(opener_of(lambda: [1, 2])()) == [1, 2]
    again = opener_of(range(3))
    assert list(again()) == list(again()) == [0, 1, 2]
    with pytest.raises(ValueError, match=r"can be read once.*give the function"):
        opener_of(iter([1, 2]))
    with pytest.raises(TypeError, match="must be a function or an iterable, not 3"):
        opener_of(3)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_numbers_that_are_not_finite_are_found_and_their_row_is_told(form, value, name):
    X = table()
    check_finite(form(X), 0)
    check_finite(form(np.full((3, 2), 1e308)), 0)  # their sum overflows
    X[17, 1] = value
    with pytest.raises(ValueError, match=f"X contains {name} in row 1,017 and must"):
        check_finite(form(X), 1000)
    with pytest.raises(ValueError, match=f"X contains {name} and must"):
        check_finite(form(X), None)
    parts = [form(part) for part in np.split(X, [5, 11])]
    for size in (1, 4, 100):
        source = BlockSource(lambda: iter(parts), X.shape, DOUBLE)
        with pytest.raises(ValueError, match=f"{name} in row 17 "):
            list(source.blocks(size))
        with pytest.raises(ValueError, match=f"{name} in row 17 "):
            list(ArraySource(form(X), DOUBLE, check=True).blocks(size))


@pytest.mark.parametrize("later", [10, 22, 24])
def test_another_number_of_rows_in_a_later_pass(later):
    X = table(30)
    source = BlockSource(lambda: iter([X[:5], X[5:later]]), (23, 3), DOUBLE)
    message = f"gave 23 rows in the first pass and {later} in a later one"
    with pytest.raises(ValueError, match=message):
        list(source.blocks(4))
    with pytest.raises(ValueError, match=message):
        source.take(np.array([22, 0, 3]))


def test_other_columns_in_a_later_block():
    X = table()
    source = BlockSource(lambda: iter([X[:5], X[5:, :2]]), X.shape, DOUBLE)
    with pytest.raises(ValueError, match="a block has 2 columns and the first had 3"):
        list(source.blocks(4))
    with pytest.raises(ValueError, match="a block has 2 columns and the first had 3"):
        source.take(np.array([6]))


def test_blocks_may_come_in_the_same_array_again_and_again():
    X = table(24)

    def refilled():
        buffer = np.empty((4, 3))
        for part in np.split(X, 6):
            buffer[:] = part
            yield buffer

    for size in (1, 3, 4, 10, 24):
        assert_covers(BlockSource(refilled, X.shape, DOUBLE), X, size)


# Through the estimators.


def data(n=90):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)


def pairs(X, y, cuts, weight=None):
    columns = (X, y) if weight is None else (X, y, weight)
    return list(zip(*(np.split(column, cuts) for column in columns), strict=True))


def assert_same_model(ours, theirs, X, rtol=1e-9):
    assert_array_equal(ours.center_rows_, theirs.center_rows_)
    assert_allclose(ours.path_.errors, theirs.path_.errors, rtol=rtol)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=rtol, atol=rtol)
    assert ours.n_features_in_ == theirs.n_features_in_


@given(cuts=st.lists(st.integers(0, 90), max_size=6).map(sorted), weighted=st.booleans())
@settings(max_examples=15, deadline=None)
def test_blocks_of_any_size_give_the_model_of_the_array(cuts, weighted):
    X, y = data()
    w = np.random.default_rng(2).uniform(0.5, 2, len(y)) if weighted else None
    whole = NystromRegressor(**SETTINGS).fit(X, y, w)
    blocks = pairs(X, y, cuts, w)
    assert_same_model(NystromRegressor(**SETTINGS).fit(blocks), whole, X)
    function = NystromRegressor(**SETTINGS).fit(lambda: (block for block in blocks))
    assert_same_model(function, whole, X)


class Reader:
    """Something to iterate over many times, as a reader of files is."""

    def __init__(self, blocks):
        self.blocks, self.opened = blocks, 0

    def __iter__(self):
        self.opened += 1
        return iter(self.blocks)


def test_an_iterable_is_opened_anew_for_every_pass():
    X, y = data()
    reader = Reader(pairs(X, y, [40]))
    model = NystromRegressor(**SETTINGS).fit(reader)
    assert_same_model(model, NystromRegressor(**SETTINGS).fit(X, y), X)
    assert 2 <= reader.opened <= 6


@pytest.mark.parametrize("sigma", [1.0, "median"])
def test_small_blocks_of_features_give_the_same_model(monkeypatch, sigma):
    X, y = data()
    settings = SETTINGS | {"sigma": sigma, "intercept": True, "validation": 4}
    whole = NystromRegressor(**settings).fit(X, y)
    monkeypatch.setattr("imparo.engine.blocks.PREFERRED_BLOCK_BYTES", 4096)
    for rows in ((X, y), (pairs(X, y, [13, 14, 60]),)):
        assert_same_model(NystromRegressor(**settings).fit(*rows), whole, X)


@pytest.mark.parametrize("dtype", [np.int16, np.float32, np.float64])
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_a_memory_map_gives_the_model_of_the_array(tmp_path, dtype, mode):
    X, y = data()
    X = (4 * X).astype(dtype)
    file = mapped(tmp_path / "rows", X, mode)
    settings = SETTINGS | {"sigma": 4.0}
    ours = NystromRegressor(**settings).fit(file, y)
    theirs = NystromRegressor(**settings).fit(X, y)
    assert_same_model(ours, theirs, X, rtol=1e-9 if dtype != np.float32 else 1e-5)
    assert ours.dual_coef_.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert_array_equal(file, X)
    assert_allclose(ours.predict(file), theirs.predict(X), rtol=1e-5)


def test_a_memory_map_may_be_refused_when_its_rows_are_read(tmp_path):
    X, y = data()
    X[77, 2] = np.nan
    file = mapped(tmp_path / "rows", X)
    good = NystromRegressor(**SETTINGS).fit(np.nan_to_num(X), y)
    before = dict(vars(good))
    with pytest.raises(ValueError, match=r"X contains NaN( in row 77)? and must hold finite"):
        good.fit(file, y)
    assert vars(good).keys() == before.keys()
    assert all(vars(good)[key] is before[key] for key in before)
    X[77, 2] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        good.fit(mapped(tmp_path / "rows", X), y)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("kernel", ["gaussian", "linear", "polynomial"])
def test_sparse_rows_give_the_dense_model(form, kernel):
    X, y = data()
    X = X * (np.abs(X) > 0.5)
    settings = SETTINGS | ({} if kernel == "gaussian" else {"sigma": "median"})
    dense = NystromRegressor(kernel, **settings).fit(X, y)
    thin = NystromRegressor(kernel, **settings).fit(form(X), y)
    assert sparse.issparse(thin.centers_)
    assert_same_model(thin, dense, X, rtol=1e-6)
    assert_allclose(thin.predict(form(X)), dense.predict(X), rtol=1e-6, atol=1e-8)
    blocks = [(form(X[:50]), y[:50]), (X[50:], y[50:])]
    assert_same_model(NystromRegressor(kernel, **settings).fit(blocks), dense, X, rtol=1e-6)


def test_frames_give_the_model_of_the_array():
    X, y = data()
    whole = NystromRegressor(**SETTINGS).fit(X, y)
    names = ["a", "b", "c"]
    for frame in (
        pd.DataFrame(X, columns=names),
        pl.DataFrame(dict(zip(names, X.T, strict=True))),
    ):
        model = NystromRegressor(**SETTINGS).fit(frame, y)
        assert model.feature_names_in_.tolist() == names
        assert_allclose(model.predict(frame), whole.predict(X), rtol=1e-9)
        blocks = [(frame[:30], y[:30]), (frame[30:], y[30:])]
        in_blocks = model.fit(blocks)
        assert not hasattr(in_blocks, "feature_names_in_")
        assert_allclose(in_blocks.predict(X), whole.predict(X), rtol=1e-9)


def test_single_precision_is_close_to_double_precision():
    X, y = data(400)
    settings = SETTINGS | {"n_centers": [10, 40]}
    wide = NystromRegressor(**settings).fit(X, y)
    for narrow in (
        NystromRegressor(**settings).fit(X.astype(np.float32), y),
        NystromRegressor(**settings, dtype="float32").fit(X, y),
        NystromRegressor(**settings).fit([(X.astype(np.float32), y)]),
    ):
        assert narrow.dual_coef_.dtype == narrow.predict(X).dtype == np.float32
        assert_allclose(narrow.path_.errors, wide.path_.errors, rtol=1e-3)
        assert_allclose(narrow.predict(X), wide.predict(X), atol=1e-3)
    back = NystromRegressor(**settings, dtype="float64").fit(X.astype(np.float32), y)
    assert back.dual_coef_.dtype == np.float64


@pytest.mark.parametrize("order", [1, -1])
def test_blocks_of_two_types_have_the_type_of_them_together(order):
    X, y = data()
    blocks = [(X[:40].astype(np.float32), y[:40]), (X[40:], y[40:])][::order]
    model = NystromRegressor(**SETTINGS).fit(blocks)
    assert model.dual_coef_.dtype == np.float64
    rows = np.concatenate([block[0] for block in blocks])
    whole = NystromRegressor(**SETTINGS).fit(rows, np.concatenate([b[1] for b in blocks]))
    assert_same_model(model, whole, X)


def test_outputs_and_rows_may_come_in_the_same_arrays_again_and_again():
    X, y = data()

    def refilled():
        rows, outputs, weight = np.empty((30, 3)), np.empty(30), np.ones(30)
        for part in np.split(np.arange(90), 3):
            rows[:], outputs[:], weight[:] = X[part], y[part], 1 + part % 2
            yield rows, outputs, weight

    whole = NystromRegressor(**SETTINGS).fit(X, y, 1 + np.arange(90) % 2)
    assert_same_model(NystromRegressor(**SETTINGS).fit(refilled), whole, X)


def test_blocks_with_and_without_weights_and_without_rows():
    X, y = data()
    empty = (np.empty((0, 3)), np.empty(0))
    blocks = [empty, (X[:50], y[:50], np.full(50, 2.0)), empty, (X[50:], y[50:]), empty]
    w = np.repeat([2.0, 1.0], [50, 40])
    whole = NystromRegressor(**SETTINGS).fit(X, y, w)
    assert_same_model(NystromRegressor(**SETTINGS).fit(blocks), whole, X)


@pytest.mark.parametrize("labels", ["words", "several", "many at once"])
def test_classes_in_blocks(labels):
    X, y = data()
    classes = {
        "words": np.where(y > 0.5, "much", "few"),
        "several": np.digitize(y, [0, 1]),
        "many at once": (X > 0).astype(int),
    }[labels]
    whole = NystromClassifier(**SETTINGS).fit(X, classes)
    ours = NystromClassifier(**SETTINGS).fit(pairs(X, classes, [20, 21, 60]))
    assert_array_equal(ours.classes_, whole.classes_)
    assert_array_equal(ours.predict(X), whole.predict(X))
    assert_allclose(ours.path_.errors, whole.path_.errors)


def test_a_class_name_that_is_longer_in_a_later_block():
    X, y = data()
    names = np.where(y > 0.5, "b", "a")
    longer = np.where(y > 0.5, "b", "aardvark")
    model = NystromClassifier(**SETTINGS).fit([(X[:50], names[:50]), (X[50:], longer[50:])])
    assert model.classes_.tolist() == ["a", "aardvark", "b"]


def test_growing_on_blocks():
    X, y = data()
    blocks = pairs(X, y, [33, 70])
    whole = NystromRegressor(**SETTINGS).fit(X, y).grow(20, X, y)
    assert_same_model(NystromRegressor(**SETTINGS).fit(blocks).grow(20, blocks), whole, X)


X_BAD, Y_BAD = data()
BLOCKS = {
    "a generator": (lambda: ((X_BAD, Y_BAD) for _ in range(1)), "can be read once"),
    "an iterator": (lambda: iter([(X_BAD, Y_BAD)]), "can be read once"),
    "no blocks": (lambda: lambda: iter([]), "hold no row"),
    "no rows": (lambda: [(X_BAD[:0], Y_BAD[:0])], "hold no row"),
    "columns": (
        lambda: [(X_BAD[:50], Y_BAD[:50]), (X_BAD[50:, :2], Y_BAD[50:])],
        "a block has 2 columns and the first had 3",
    ),
    "outputs": (lambda: [(X_BAD, Y_BAD[1:])], "a block has 90 rows and 89 outputs"),
    "weights": (lambda: [(X_BAD, Y_BAD, np.ones(89))], "shape"),
    "negative weights": (lambda: [(X_BAD, Y_BAD, -np.ones(90))], "from 0 on"),
    "NaN": (lambda: [(X_BAD, Y_BAD), (np.full((2, 3), np.nan), np.ones(2))], "NaN"),
    "NaN in y": (lambda: [(X_BAD, Y_BAD), (X_BAD, np.full(90, np.nan))], "NaN"),
    "bare arrays": (lambda: lambda: iter([X_BAD]), "must be pairs"),
    "four things": (lambda: [(X_BAD, Y_BAD, Y_BAD, Y_BAD)], "must be pairs"),
    "one dimension": (lambda: [(X_BAD[:, 0], Y_BAD)], "2D"),
    "text": (lambda: [(X_BAD.astype(str), Y_BAD)], "text|strings"),
    "text in y": (lambda: [(X_BAD, np.array(["a"] * 90))], "text"),
    "shapes of y": (
        lambda: [(X_BAD, Y_BAD), (X_BAD, Y_BAD[:, None])],
        "outputs",
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_bad_blocks_get_one_sentence_and_leave_a_fitted_model(name):
    make, message = BLOCKS[name]
    model = NystromRegressor(**SETTINGS).fit(X_BAD, Y_BAD)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(make())
    # scikit-learn shows an array of one dimension, on lines of its own.
    assert "\n" not in str(caught.value) or name == "one dimension"
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is before[key] for key in before)


def test_no_outputs():
    X, y = data()
    with pytest.raises(ValueError, match=r"requires y to be passed.*or blocks of pairs"):
        NystromRegressor().fit(X)
    with pytest.raises(ValueError, match="requires y to be passed"):
        NystromClassifier().fit([[0.0], [1.0]])
    with pytest.raises(ValueError, match="must come with them, as triples"):
        NystromRegressor().fit([(X, y)], sample_weight=np.ones(90))


@pytest.mark.parametrize("sigma", [1.0, "median"])
@pytest.mark.parametrize("later", [0, 40, 89, 95])
def test_blocks_that_change_between_passes(sigma, later):
    X, y = data(100)
    opened = []

    def blocks():
        n = later if opened else 90
        opened.append(n)
        return iter([(X[:n], y[:n])])

    model = NystromRegressor(**SETTINGS | {"sigma": sigma, "n_centers": 40})
    with pytest.raises(ValueError, match=f"gave 90 rows in the first pass and {later} in"):
        model.fit(blocks)
    assert not hasattr(model, "n_features_in_")


def test_nan_that_comes_in_a_later_pass():
    X, y = data()
    opened = []

    def blocks():
        opened.append(1)
        rows = X.copy()
        rows[5] = np.nan if len(opened) > 1 else 0.0
        return iter([(rows, y)])

    with pytest.raises(ValueError, match="NaN"):
        NystromRegressor(**SETTINGS).fit(blocks)
