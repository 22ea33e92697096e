"""The parts of a cluster that need none: sums, recipes, partitions, files."""

import pickle
from dataclasses import dataclass
from functools import reduce

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from cluster_tools import CUTS, delayed, lazily, pieces, wave
from imparo.cluster import (
    Partition,
    added,
    is_dask,
    partitions_in_memory,
    partitions_of,
    recipes_of,
    task,
    tree_sum,
)
from imparo.cluster import partitions as partitions_module
from imparo.cluster.recipes import FileRows
from imparo.engine import host_engine
from imparo.statistics import Statistics

SEVEN = CUTS["seven"]


@dataclass(frozen=True)
class Two:
    a: np.ndarray
    b: float


# Sums


def test_sums_of_everything_that_passes_give():
    first = (1.0, [np.arange(3.0), Two(np.ones(2), 2.0)], (np.eye(2),))
    second = (2.0, [np.ones(3), Two(np.full(2, 3.0), 4.0)], (np.ones((2, 2)),))
    kept = pickle.dumps((first, second))
    total = added(first, second)
    assert total[0] == 3.0
    assert_array_equal(total[1][0], [1.0, 2.0, 3.0])
    assert_array_equal(total[1][1].a, [4.0, 4.0])
    assert total[1][1].b == 6.0
    assert_array_equal(total[2][0], [[2, 1], [1, 2]])
    assert pickle.dumps((first, second)) == kept  # a worker may be asked for them again


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_of_statistics(dtype):
    rng = np.random.default_rng(0)
    F, Y, weight = rng.normal(size=(40, 5)), rng.normal(size=(40, 2)), rng.random(40)
    whole, *parts = (Statistics(5, 2, np.dtype(dtype), host_engine()) for _ in range(3))
    F, Y, weight = (part.astype(dtype) for part in (F, Y, weight))
    whole.add(F, Y, weight)
    for part, rows in zip(parts, (slice(0, 15), slice(15, 40)), strict=True):
        part.add(F[rows], Y[rows], weight[rows])
    before = [part.A.copy() for part in parts]
    total = added(*parts)
    for name in ("A", "b", "feature_sum", "output_sum", "yy", "weight"):
        assert_allclose(getattr(total, name), getattr(whole, name), rtol=1e-5)
    for part, old in zip(parts, before, strict=True):
        assert_array_equal(part.A, old)
    total.add(F, Y, weight)  # it shares no memory with its parts
    assert_array_equal(parts[0].A, before[0])


def test_sums_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        added([1, 2], [1])


@given(st.integers(1, 40))
@settings(deadline=None, max_examples=20)
def test_trees(n):
    """Every part is counted once; neighbours come first, whatever is computed when."""
    parts = [task(str, "part", f"{i} ") for i in range(n)]
    with dask.config.set(scheduler="synchronous"):
        found = tree_sum(parts).compute()
        assert found == "".join(f"{i} " for i in range(n))
        numbers = [1e16, 1.0, -1e16, 1.0] * 10
        values = [task(float, "part", number) for number in numbers[:n]]
        first = tree_sum(values).compute()
        with dask.config.set(scheduler="threads"):
            assert tree_sum(values).compute() == first


def test_trees_are_not_chains():
    total = tree_sum([task(float, "part", 1.0) for _ in range(64)])
    graph = dict(total.__dask_graph__())

    def depth(key):
        return 1 + max((depth(k) for k in graph[key].dependencies), default=0)

    assert depth(total.key) == 1 + 6


def test_sums_reduce():
    """A tree gives what adding one by one gives, for numbers that are exact."""
    parts = [np.full(3, 2.0**-k) for k in range(20)]
    with dask.config.set(scheduler="synchronous"):
        found = tree_sum([task(np.array, "part", part) for part in parts]).compute()
    assert_array_equal(found, reduce(added, parts))


# Recipes


def parts_of(*rows):
    return partitions_of(*rows).parts


def test_partitions_that_stand_alone():
    X, y, weight = wave()
    given_ = [lazily(part, SEVEN) for part in (X, y, weight)]
    recipes = recipes_of(parts_of(*given_))
    assert len(recipes) == 7
    with dask.config.set(scheduler="nothing computes with this"):  # they need no scheduler
        for recipe, *expected in zip(recipes, *(pieces(p, SEVEN) for p in (X, y, weight)),
                                     strict=True):  # fmt: skip
            for found, part in zip(pickle.loads(pickle.dumps(recipe))(), expected, strict=True):
                assert_array_equal(found, part)
            (first,) = recipe.first()()
            assert_array_equal(first, expected[0])
    alone = recipes_of(parts_of(given_[0], y))
    assert alone[0]()[1:] == [None, None]


def test_the_recipe_of_rows_leaves_outputs_out():
    def never():
        raise AssertionError

    parts = parts_of([dask.delayed(np.ones)((2, 2))], [dask.delayed(never)()])
    (recipe,) = recipes_of(parts)
    assert_array_equal(recipe.first()()[0], np.ones((2, 2)))
    with pytest.raises(AssertionError):
        recipe()


@pytest.mark.parametrize(
    ("alone", "make"),
    [
        (True, lambda X: X.map_blocks(np.tanh)),
        (True, lambda X: X.rechunk((100, 2))),
        (True, lambda X: X[X[:, 0] > 0]),
        (True, lambda X: da.random.default_rng(0).normal(size=(300, 3), chunks=(60, 3))),
        (False, lambda X: X - X.mean(axis=0)),
        (False, lambda X: X.map_blocks(np.tanh).rechunk((7, 3))),
        (False, lambda X: da.from_delayed(dask.delayed(np.ones)((300, 3)), (300, 3), float)
         .rechunk((100, 3))),
    ],
)  # fmt: skip
def test_which_partitions_stand_alone(alone, make):
    X, _, _ = wave()
    found = recipes_of(parts_of(make(lazily(X, SEVEN)), np.zeros(300)))
    assert (found is not None) == alone


@pytest.mark.parametrize("n", [10, 200_000])
def test_data_in_common_are_copied_where_they_are_small(n):
    """A handle of a file may be in every recipe; a table is sent once, by Dask."""
    table = dask.delayed(np.zeros(n), traverse=False)
    parts = parts_of([dask.delayed(np.add)(table, i) for i in range(3)], np.zeros(3))
    assert (recipes_of(parts) is not None) == (n == 10)


def test_delayed_values_are_told_apart():
    """They have graphs that live only as long as someone looks at them."""
    X, y, _ = wave()
    for _ in range(20):
        recipes = recipes_of(parts_of(delayed(pieces(X, SEVEN)), delayed(pieces(y, SEVEN))))
        assert recipes is not None
        assert_array_equal(np.concatenate([recipe()[0] for recipe in recipes]), X)
        assert_array_equal(np.concatenate([recipe()[1] for recipe in recipes]), y)


# Partitions


def computed(values):
    with dask.config.set(scheduler="synchronous"):
        return dask.compute(*values)


def test_partitions_of_arrays():
    X, y, weight = wave(n_outputs=2)
    found = partitions_of(
        da.from_array(X, chunks=(SEVEN, (1, 2))), da.from_array(y, chunks=(50, 1)),
        lazily(weight, CUTS["two"]),
    )  # fmt: skip
    assert (found.y, found.weight, found.names) == (None, None, None)
    assert len(found.parts) == 7
    assert not any(part.together for part in found.parts)
    for name, whole in (("rows", X), ("outputs", y), ("weights", weight)):
        values = computed(getattr(part, name) for part in found.parts)
        for value, expected in zip(values, pieces(whole, SEVEN), strict=True):
            assert_array_equal(value, expected)


def test_partitions_of_lists():
    X, y, _ = wave()
    pairs = delayed(zip(pieces(X, SEVEN), pieces(y, SEVEN), strict=True))
    found = partitions_of(pairs)
    assert found.parts == [Partition(pair, together=True) for pair in pairs]
    one = partitions_of(pairs[0])
    assert one.parts == [Partition(pairs[0], together=True)]
    rows, outputs = delayed(pieces(X, SEVEN)), delayed(pieces(y, SEVEN))
    both = partitions_of(list(zip(rows, outputs, strict=True)))
    assert both.parts == partitions_of(rows, outputs).parts
    here = partitions_of(rows, y, y)
    assert here.parts == [Partition(part) for part in rows]
    assert here.y is y
    assert here.weight is y


def test_what_is_of_dask():
    X, _, _ = wave()
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_dict({"a": [1, 2]}, npartitions=1)
    many = [lazily(X, SEVEN), frame, frame["a"], dask.delayed(3), [dask.delayed(3)],
            [(dask.delayed(3), np.ones(2))], (dask.delayed(3),)]  # fmt: skip
    assert all(map(is_dask, many))
    none = [X, X.tolist(), [], (), [(X, X)], None, "text", sparse.csr_array(X), lambda: None]
    assert not any(map(is_dask, none))


@given(st.integers(1, 200), st.integers(1, 4), st.integers(1, 4000))
@settings(deadline=None, max_examples=30)
def test_rows_in_memory_are_cut_without_a_loss(n, d, size):
    X = np.arange(float(n * d)).reshape(n, d)
    y = np.arange(n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions_module, "_PART_BYTES", size)
        for rows in (X, sparse.csr_array(X), np.asfortranarray(X)):
            found = partitions_in_memory(rows, y, None)
            assert found.y is y
            blocks = [part.rows()[0] for part in found.parts]
            blocks = [b.toarray() if sparse.issparse(b) else b for b in blocks]
            assert_array_equal(np.concatenate(blocks), X)
            assert all(len(b) == 1 or b.nbytes <= size for b in blocks)


@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_files_are_read_where_the_map_is(data, tmp_path_factory):
    """Whatever is cut from a memory map, and from what was cut from it."""
    kind = data.draw(st.sampled_from(["<f8", "<f4", "<i2", ">f8"]))
    n, d = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 4))
    before = data.draw(st.integers(0, 20_000))  # beyond a page
    values = data.draw(hnp.arrays(kind, (n, d), elements=st.integers(-9, 9)))
    file = tmp_path_factory.mktemp("rows") / "rows"
    file.write_bytes(b"x" * before + values.tobytes())
    rows = np.memmap(file, kind, "r", before, (n, d))
    for _ in range(data.draw(st.integers(0, 3))):
        first = data.draw(st.integers(0, len(rows)))
        last = data.draw(st.integers(first, len(rows)))
        rows, values = rows[first:last], values[first:last]
    if not len(rows):
        return
    assert FileRows.can_read(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions_module, "_PART_BYTES", data.draw(st.integers(1, 300)))
        found = partitions_in_memory(rows, None, None)
    assert all(isinstance(part.rows, FileRows) for part in found.parts)
    blocks = [pickle.loads(pickle.dumps(part.rows))()[0] for part in found.parts]
    assert len(pickle.dumps(found.parts[0].rows)) < 1000
    assert_array_equal(np.concatenate(blocks), values)


def test_maps_that_are_not_rows_of_a_file_one_after_another(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(30.0).reshape(10, 3))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for some in (rows[::2], rows[:, 1:], rows[::-1], rows.T):
        assert not FileRows.can_read(some)
        blocks = [part.rows()[0] for part in partitions_in_memory(some, None, None).parts]
        assert_array_equal(np.concatenate(blocks), some)
    assert not FileRows.can_read(np.array(rows))


def test_files_that_are_not_there(tmp_path):
    recipe = FileRows(str(tmp_path / "none"), 0, (2, 2), np.dtype(float))
    with pytest.raises(OSError, match=r"a worker cannot read .*none"):
        recipe()
