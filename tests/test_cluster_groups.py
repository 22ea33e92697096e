"""What workers are given besides the rows, and what they are expected to hold."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from imparo.cluster import worker_bytes
from imparo.cluster.costs import most_columns, n_groups
from imparo.engine import host_engine
from imparo.estimators.cluster_work import Group, How, Settings

# Groups


@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_cells", [2, 5, 128, 200, 300])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_groups_arrive_as_they_were_sent(codes, weighted, n_cells, dtype):
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(400, 2)).astype(dtype)
    Y = np.sign(Y) if codes else Y
    weight = (rng.random(400) if weighted else np.ones(400)).astype(dtype)
    cell = rng.integers(-1, n_cells, 400)
    cell[:2] = n_cells - 1, -1
    blocks = [rng.normal(size=(150, 3)), rng.normal(size=(250, 3))]
    group = Group([None, None], [How(False, None)] * 2, [150, 250], Y, weight, cell)
    sent = pickle.dumps(group)
    group = pickle.loads(sent)
    how = Settings(3, dtype, n_cells, None, None, None)
    rows = group.stream(blocks, how, host_engine())
    for found, expected in ((rows.Y, Y), (rows.weight, weight)):
        assert found.dtype == dtype
        assert_array_equal(found, expected)
    assert_array_equal(rows.cell, cell)
    assert rows.source.shape == (400, 3)
    found = np.concatenate([X for _, X in rows.source.blocks(64)])
    assert_array_equal(found, np.concatenate(blocks).astype(dtype))
    small = 400 * (2 if codes else 2 * np.dtype(dtype).itemsize)
    small += 400 * np.dtype(dtype).itemsize * weighted + 400 * (1 if n_cells <= 128 else 8)
    assert len(sent) < small + 1500


def test_groups_are_refused_where_rows_are_missing():
    Y, weight, cell = np.ones((10, 1)), np.ones(10), np.zeros(10, int)
    group = Group([None], [How(False, None)], [10], Y, weight, cell)
    rows = group.stream([np.zeros((9, 2))], Settings(2, "float64", 1, None, None, None),
                        host_engine())  # fmt: skip
    with pytest.raises(ValueError, match="the same rows every time"):
        list(rows.source.blocks(4))


# Costs


@given(st.integers(10**8, 10**11), st.integers(1, 8), st.integers(1, 10),
       st.integers(0, 10**8))  # fmt: skip
def test_the_most_columns_are_those_that_fit(limit, threads, n_cells, partition):
    m = most_columns(limit, threads, n_cells, partition)
    assert m >= 1
    if m > 1:
        assert worker_bytes(m, n_cells, partition, threads) <= 0.8 * limit * (1 + 1e-6)
    elif worker_bytes(1, n_cells, partition, threads) < 0.8 * limit:
        assert worker_bytes(3, n_cells, partition, threads) > 0.8 * limit


@given(st.integers(1, 10**9), st.integers(1, 500), st.integers(1, 10**4))
def test_numbers_of_groups(n, slots, n_partitions):
    found = n_groups(n, slots, n_partitions)
    assert 1 <= found <= n_partitions
    assert found >= min(slots, n_partitions)  # nobody waits for the others
    assert found <= 4 * slots
