"""Sparse rows in text: both routes give the same as scikit-learn, errors name the line."""

import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from imparo.data.readers import BadRows, ReadOptions, RowError, sparse_fast
from imparo.data.readers.sparse_scan import scan_chunk
from imparo.data.readers.sparse_text import SparseLines, open_sparse


def write(tmp_path, text, name="rows.svm"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def outcome(lines, chunk, fast, arrow=True):
    lines.fast = fast
    lines._bad.restart()
    found = sparse_fast.arrow_csv if arrow else lambda: None
    with mock.patch.object(sparse_fast, "arrow_csv", found):
        try:
            block = lines.parse(chunk, "file", 10)
        except ValueError as error:
            return str(error)
    return block.X.toarray().tolist(), block.y.tolist(), lines._bad.examples


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0.0, 0.3, 1.0]))
def test_matrices_come_back_as_scikit_learn_wrote_them(seed, from_zero, density):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((7, 12), density=density, rng=rng, data_sampler=rng.normal).tocsr()
    # The ends show how wide it is and where it begins.
    X = sparse.lil_array(X)
    X[0, 0], X[1, 11] = 1.5, -1e-9
    y = rng.integers(-1, 2, 7).astype(float)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.svm"
        dump_svmlight_file(sparse.csr_matrix(X), y, str(path), zero_based=from_zero,
                           comment="written here")  # fmt: skip
        expected, labels = load_svmlight_file(str(path), zero_based=from_zero)
        rows = open_sparse(path)
        assert (rows.n_rows, rows.n_columns) == (7, 12)
        assert (rows.is_sparse, rows.targets, rows.names) == (True, ["y"], [])
        for fast, arrow in [(True, True), (True, False), (False, False)]:
            rows.lines.fast = fast
            with mock.patch.object(
                sparse_fast, "arrow_csv", sparse_fast.arrow_csv if arrow else lambda: None
            ):
                block = next(rows.blocks())
            np.testing.assert_array_equal(block.X.toarray(), expected.toarray())
            np.testing.assert_array_equal(block.y, labels)


TOKENS = st.sampled_from(
    ["1", "-1", "+2.5", "a", "1:1", "2:0.5", "3:-1e-3", "4:+2", "0:1", "9:1", "2:", ":3", "1:x",
     "1:2:3", "qid:7", "qid:x", "-1:2", "3:nan", "3:inf", "1_0:1", "2:1_0", "1.0:2", "#", "1,2",
     "007:1", "3:0x1", "é", "2:-", "3:.", "2:1-5"]
)  # fmt: skip
LINES = st.lists(st.lists(TOKENS, max_size=5).map(" ".join), max_size=4)


@settings(max_examples=400, deadline=None)
@given(
    LINES,
    st.sampled_from(["\n", "\r\n", " \n"]),
    st.sampled_from(["stop", "skip"]),
    st.booleans(),
    st.integers(0, 1),
)
def test_routes_agree_on_any_lines_right_or_wrong(lines, end, policy, text, first):
    chunk = "".join(line + end for line in lines).encode()
    parser = SparseLines(4, first, text, ReadOptions(bad=BadRows(policy)))
    exact = outcome(parser, chunk, fast=False)
    assert outcome(parser, chunk, fast=True) == exact
    assert outcome(parser, chunk, fast=True, arrow=False) == exact


def test_well_formed_lines_take_the_fast_route(tmp_path):
    rows = open_sparse(write(tmp_path, "1 qid:1 1:1 3:2 # c\n\n0\n-1 2:1"))
    with mock.patch.object(rows.lines, "_exact_parts", side_effect=AssertionError):
        block = next(rows.blocks())
    assert block.X.toarray().tolist() == [[1, 0, 2], [0, 0, 0], [0, 1, 0]]
    assert block.y.tolist() == [1, 0, -1]


@given(st.lists(st.lists(st.integers(0, 10**6), max_size=4, unique=True).map(sorted)))
def test_the_scan_finds_rows_and_the_range_of_indices(rows):
    text = "".join("1 " + " ".join(f"{index}:2.5" for index in row) + "\n" for row in rows)
    indices = [index for row in rows for index in row]
    scan = scan_chunk(text.encode())
    assert scan.rows == len(rows)
    assert scan.smallest == min(indices, default=None)
    assert scan.largest == max(indices, default=0)


def test_the_scan_leaves_out_what_is_no_index():
    scan = scan_chunk(b"1 qid:7 4:1 5:2\n1 -3:1\n\n1 a9:1")
    assert (scan.rows, scan.smallest, scan.largest) == (3, 4, 5)


def test_blocks_have_the_size_asked_for_in_every_pass(tmp_path):
    rows = open_sparse(write(tmp_path, "".join(f"{i} {i % 3 + 1}:1\n" for i in range(25))))
    rows._chunk = 40
    for _ in range(2):
        blocks = list(rows.blocks(size=4))
        assert max(map(len, blocks)) <= 4
        assert np.concatenate([block.y for block in blocks]).tolist() == list(range(25))
        assert all(block.X.shape == (len(block), 3) for block in blocks)
        assert sparse.issparse(blocks[0].X)
    with pytest.raises(ValueError, match="no column 'a'"):
        list(rows.blocks(["a"]))


def test_labels_may_be_text(tmp_path):
    block = next(open_sparse(write(tmp_path, "cat 1:1\ndog 1:2\nnone 1:1\n? 1:0\n")).blocks())
    assert block.y.tolist() == ["cat", "dog", "none", None]


def test_a_given_number_of_columns_is_kept(tmp_path):
    path = write(tmp_path, "1 2:1\n")
    assert next(open_sparse(path, ReadOptions(n_columns=9)).blocks()).X.shape == (1, 9)


GOOD = "1 1:1 5:1\n" * 12


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        pytest.param("1 3:1 2:1", "the index 2 after 3; indices must ascend", id="descending"),
        pytest.param("1 3:1 3:2", "the index 3 twice", id="twice"),
        pytest.param("1 -1:2", "'-1:2' is not a whole number from 1 on", id="negative"),
        pytest.param("1 b:2", "'b:2' is not a whole number", id="not a number"),
        pytest.param("1 1:z", "the value of '1:z' is not a number", id="value"),
        pytest.param("1 1:inf", "the value of '1:inf' is not a number", id="infinity"),
        pytest.param("1 7", "'7' where index:value is expected", id="no colon"),
        pytest.param("1:1 2:1", "begins with '1:1', and not with a label", id="no label"),
        pytest.param("x 1:1", "the label 'x', where labels are numbers", id="label"),
    ],
)
def test_wrong_lines_are_told_with_their_number_or_skipped(tmp_path, line, sentence):
    path = write(tmp_path, f"# by hand\n{GOOD}{line}\n2 1:1\n")
    with pytest.raises(RowError, match=f"rows.svm, line 14: .*{sentence}"):
        list(open_sparse(path).blocks())
    rows = open_sparse(path, ReadOptions(bad=BadRows("skip")))
    for _ in range(2):
        assert sum(len(block) for block in rows.blocks()) == 13
        assert rows.bad.count == 1


def test_an_index_beyond_the_given_columns_is_a_bad_row(tmp_path):
    path = write(tmp_path, "1 2:1\n1 7:1\n")
    with pytest.raises(RowError, match="line 2: the index 7 is beyond the 5 columns"):
        list(open_sparse(path, ReadOptions(n_columns=5)).blocks())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param("# nothing\n", "is empty", id="comment only"),
        pytest.param("1\n2\n", "has no entry index:value", id="labels only"),
        pytest.param("1,3 1:1\n", "'1,3' are several labels", id="several labels"),
        pytest.param(b"1 1:1\n\0\0", "is not text", id="binary"),
    ],
)
def test_unusable_files_are_refused_in_a_sentence(tmp_path, text, sentence):
    with pytest.raises(ValueError, match=sentence):
        list(open_sparse(write(tmp_path, text)).blocks())
