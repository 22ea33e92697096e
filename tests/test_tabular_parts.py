"""The parts of a fit to a table: roles, targets, splits, scratch files, judging."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import metrics as reference

from imparo.data import Frame
from imparo.data.readers import BadRows, RowError
from imparo.data.readers.in_memory import ArrayRows
from imparo.tabular.gathering import gather
from imparo.tabular.judging import Judge
from imparo.tabular.roles import Roles, assign_roles
from imparo.tabular.scratch import DiskTable, Scratch, SparseDisk
from imparo.tabular.splitting import make_split
from imparo.tabular.targets import settle_task


def table(n=6, **more):
    cells = {"a": np.arange(n) * 1.0, "b": np.arange(n)[::-1] * 1.0, "y": np.ones(n)}
    return Frame(cells | more)


def test_the_last_column_is_the_target_unless_another_is_named():
    rows = ArrayRows(table())
    assert assign_roles(rows).target == ["y"]
    assert assign_roles(rows, "b").inputs == ["a", "y"]
    assert assign_roles(rows, "0").target == ["a"]
    assert assign_roles(rows, "-2").target == ["b"]


def test_what_a_file_calls_its_target_is_the_target():
    rows = ArrayRows(table(), ["b"])
    assert assign_roles(rows).target == ["b"]


def test_inputs_of_an_archive_are_those_of_x():
    rows = ArrayRows(table(), ["y"], {"X": ["a"]})
    found = assign_roles(rows)
    assert found.inputs == ["a"]
    assert found.dropped == ["b"]


def test_an_array_of_targets_is_named_as_a_whole():
    rows = ArrayRows(table(), [], {"Y": ["b", "y"]})
    assert assign_roles(rows, "Y").target == ["b", "y"]


def test_groups_times_and_weights_are_not_learned_from():
    rows = ArrayRows(table(g=np.arange(6), t=np.arange(6), w=np.ones(6)))
    found = assign_roles(rows, "y", group="g", time="t", weight="w")
    assert found.inputs == ["a", "b"]
    assert {found.use_of(name) for name in "gtw"} == {"group", "time", "weight"}
    assert assign_roles(rows, "y", time="t", columns=["a", "t"]).inputs == ["a", "t"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"target": "z"}, "target: there is no column 'z' among 'a', 'b' and 'y'"),
        ({"target": "aa"}, "did you mean 'a'"),
        ({"target": "7"}, "there is no column '7'"),
        ({"target": "y", "drop": ["a", "b"]}, "no column is left"),
        ({"target": "y", "columns": ["y", "a"]}, "cannot be learned and be learned from"),
        ({"target": "y", "weight": "mass"}, "weight: there is no column 'mass'"),
    ],
)
def test_wrong_roles_are_one_sentence(settings, words):
    with pytest.raises(ValueError, match=words):
        assign_roles(ArrayRows(table()), **settings)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.array(["b", "a"] * 10, object), "classification"),
        (np.tile([0.5, 2.5], 10), "regression"),
        (np.tile([0.0, 2.0], 3), "classification"),
        (np.arange(60.0) % 3, "classification"),
        (np.arange(30.0), "regression"),
        (np.linspace(0, 1, 12), "regression"),
        (np.tile([0.5, 1.5, 2.5], 10), "regression"),
        (np.ones((5, 2)), "regression"),
    ],
)
def test_the_task_is_found_from_the_target(y, task):
    assert settle_task(y, ["y"], "auto")[0] == task


def test_whole_numbers_become_whole_labels():
    assert settle_task(np.tile([1.0, 2.0], 9), ["y"], "classification")[1].dtype == np.int64
    with pytest.raises(ValueError, match="numbers of classes are whole"):
        settle_task(np.tile([0.5, 2.0], 9), ["y"], "classification")


@pytest.mark.parametrize(
    ("y", "task", "words"),
    [
        (np.array(["a"] * 5, object), "auto", "one class only"),
        (np.array(["a", "b"], object), "regression", "holds text, such as 'a'"),
        (np.arange(100.0), "classification", "too many for classes"),
        (np.ones((5, 2)), "classification", "are several, which only numbers can be"),
        (np.ones(5), "guess", "task='guess' is not known"),
    ],
)
def test_targets_that_cannot_be_learned_are_one_sentence(y, task, words):
    with pytest.raises(ValueError, match=words):
        settle_task(y, ["y"], task)


def gathered(frame, roles=None, **settings):
    rows = ArrayRows(frame)
    rows.bad = settings.pop("bad", BadRows())
    roles = roles or assign_roles(rows, "y")
    memory = settings.pop("memory", 10**9)
    scratches = []

    def place():
        scratches.append(Scratch())
        return scratches[-1]

    return gather(rows, roles, memory, place, **settings), scratches


def mixed(n, seed=0):
    rng = np.random.default_rng(seed)
    words = np.array(["x", "yy", None], object)[rng.integers(0, 3, n)]
    dates = np.datetime64("2020-01-01", "us") + rng.integers(0, 10**12, n).astype("m8[us]")
    dates[:: max(2, n // 5)] = np.datetime64("NaT")
    numbers = rng.normal(size=n)
    numbers[::7] = np.nan
    return Frame({"n": numbers, "t": words, "d": dates, "i": rng.integers(0, 9, n),
                  "y": rng.normal(size=n)})  # fmt: skip


@pytest.mark.parametrize("names", [["n", "i"], ["n", "t", "d", "i"]])
def test_rows_on_disk_are_those_in_memory(names):
    frame = mixed(1000)
    roles = Roles(names, ["y"])
    here, none = gathered(frame, roles)
    there, scratches = gathered(frame, roles, memory=100)
    assert there.on_disk
    assert not here.on_disk
    assert not none
    for places in (slice(3, 400), np.array([5, 2, 999, 2])):
        one, other = here.rows(places), there.rows(places)
        if len(names) == 2:
            np.testing.assert_array_equal(one, other)
        else:
            assert other.columns == names
            for name in names:
                np.testing.assert_array_equal(one[name], other[name])
                assert (one[name].dtype.kind in "if") == (other[name].dtype.kind == "f")
    np.testing.assert_array_equal(here.y, there.y)
    scratches[0].close()
    assert not scratches[0].path.exists()


def test_small_types_stay_small_on_disk():
    with Scratch() as scratch:
        single = Frame({"a": np.ones(3, np.float32), "b": np.ones(3, np.uint8)})
        assert DiskTable(scratch, single).dtype == np.float32
    with Scratch() as scratch:
        assert DiskTable(scratch, single.with_column("c", np.ones(3))).dtype == np.float64
    with Scratch() as scratch:
        wide = single.with_column("c", np.ones(3, np.int32))
        assert DiskTable(scratch, wide).dtype == np.float64


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_sparse_rows_on_disk_are_those_in_memory(seed, n):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, 7), density=0.3, format="csr", rng=rng)
    cut = int(rng.integers(0, n + 1))
    with Scratch() as scratch:
        disk = SparseDisk(scratch, 7, np.float64)
        for part in (X[:cut], X[cut:]):
            disk.append(part)
        disk.finish()
        places = rng.integers(0, n, 5)
        np.testing.assert_array_equal(disk.rows(places).toarray(), X.toarray()[places])
        np.testing.assert_array_equal(disk.rows(slice(cut, n)).toarray(), X[cut:].toarray())


def test_a_missing_target_is_a_bad_row():
    frame = table().with_column("y", np.array([1.0, np.nan, 2, 3, np.inf, 4]))
    with pytest.raises(RowError, match="row 1: the target 'y' is missing"):
        gathered(frame)
    found, _ = gathered(frame, bad=BadRows("skip"))
    assert found.y.tolist() == [1, 2, 3, 4]
    assert found.bad == 2
    np.testing.assert_array_equal(found.X[:, 0], [0, 2, 3, 5])


def test_missing_inputs_are_filled_skipped_or_refused():
    frame = table().with_column("a", np.array([1.0, np.nan, 2, 3, 4, 5]))
    filled, _ = gathered(frame, missing="fill")
    assert len(filled.y) == 6
    skipped, _ = gathered(frame, missing="skip")
    assert (len(skipped.y), skipped.missing) == (5, 1)
    with pytest.raises(ValueError, match="row 1 has no value in column 'a'"):
        gathered(frame, missing="refuse")
    with pytest.raises(ValueError, match="missing='guess' must be one of"):
        gathered(frame, missing="guess")


def test_weights_must_be_numbers_from_0_on():
    frame = table(w=np.array([1, -1, 1, 1, 1, 1]))
    roles = assign_roles(ArrayRows(frame), "y", weight="w")
    with pytest.raises(ValueError, match="'w' of weights must hold numbers from 0 on"):
        gathered(frame, roles)


def split_of(n, kind, share, **columns):
    roles = Roles(["a"], ["y"], None, "g" if "g" in columns else None,
                  "t" if "t" in columns else None)  # fmt: skip
    frame = Frame({"a": np.arange(n) * 1.0, "y": np.arange(n) * 1.0, **columns})
    rows, _ = gathered(frame, roles)
    return make_split(rows, rows.y, "regression", kind, share, 0), rows


@given(st.integers(4, 60), st.floats(0.01, 0.6), st.sampled_from(["random", "time", "group"]))
def test_every_row_is_fitted_or_tested_and_none_is_both(n, share, kind):
    rng = np.random.default_rng(n)
    columns = {"t": rng.permutation(n) * 1.0} if kind == "time" else {}
    columns = {"g": np.arange(n) // 2 * 1.0} if kind == "group" else columns
    if kind == "group" and n < 6:
        return
    found, rows = split_of(n, kind, share, **columns)
    assert sorted([*found.fit, *found.test]) == list(range(n))
    for train, held in found.validation or []:
        assert not set(train) & set(held)
        assert max(*train, *held) < len(found.fit)
        if kind == "time":
            assert rows.time[found.fit][train].max() < rows.time[found.fit][held].min()
        if kind == "group":
            groups = rows.group[found.fit]
            assert not set(groups[train]) & set(groups[held])
    if kind == "time":
        assert rows.time[found.fit].max() < rows.time[found.test].min()
    if kind == "group":
        assert not set(rows.group[found.fit]) & set(rows.group[found.test])


def test_a_split_by_time_without_times_is_by_the_order_of_the_file():
    found, _ = split_of(10, "time", 0.2)
    assert found.test.tolist() == [8, 9]
    assert found.validation[0][1].tolist() == [7]


def test_splits_that_cannot_be_made_are_one_sentence():
    with pytest.raises(ValueError, match="2 rows are too few"):
        split_of(2, "random", 0.5)
    with pytest.raises(ValueError, match="needs the column of groups"):
        split_of(9, "group", 0.5)
    with pytest.raises(ValueError, match="holds 1 group"):
        split_of(9, "group", 0.5, g=np.zeros(9))
    with pytest.raises(ValueError, match="test=1 must be a share"):
        split_of(9, "random", 1)


def test_regression_is_judged_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(500, 2)) * [1, 50] + [0, 1e6]
    F = y + rng.normal(size=y.shape)
    judge = Judge("regression", ["a", "b"], [], y.mean(axis=0).tolist(), "rows")
    for part in np.array_split(np.arange(500), 7):
        judge.add(y[part], F[part])
    found = judge.finished()
    assert found.metrics["rmse"] == pytest.approx(reference.root_mean_squared_error(y, F))
    assert found.metrics["mae"] == pytest.approx(reference.mean_absolute_error(y, F))
    assert found.metrics["r2"] == pytest.approx(reference.r2_score(y, F))
    assert found.baseline["r2"] == pytest.approx(0, abs=1e-9)
    assert found.parts[1]["deviation"] == pytest.approx(y[:, 1].std())
    assert found.parts[1]["mean"] == pytest.approx(y[:, 1].mean())


def test_classes_are_judged_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    names = np.array(["a", "b", "c"])
    true, said = (names[rng.integers(0, 3, 400)] for _ in range(2))
    P = rng.dirichlet(np.ones(3), 400)
    judge = Judge("classification", ["y"], names.tolist(), "b", "rows")
    for part in np.array_split(np.arange(400), 5):
        judge.add(true[part], said[part], P[part])
    found = judge.finished()
    np.testing.assert_array_equal(found.confusion, reference.confusion_matrix(true, said))
    assert found.metrics["error"] == pytest.approx(np.mean(true != said))
    balanced = reference.balanced_accuracy_score(true, said)
    assert found.metrics["balanced_error"] == pytest.approx(1 - balanced)
    brier = np.mean(((true[:, None] == names) - P) ** 2) * 3
    assert found.metrics["brier"] == pytest.approx(brier)
    table = reference.classification_report(true, said, output_dict=True)
    for part in found.parts:
        expected = table[part["class"]]
        assert part["rows"] == expected["support"]
        for name, other in (
            ("precision", "precision"),
            ("recall", "recall"),
            ("f1", "f1-score"),
        ):
            assert part[name] == pytest.approx(expected[other])
    assert found.baseline["error"] == pytest.approx(np.mean(true != "b"))


def test_a_class_that_the_model_does_not_know_counts_as_wrong():
    judge = Judge("classification", ["y"], ["a", "b"], "a", "rows")
    judge.add(np.array(["a", "z"]), np.array(["a", "b"]), np.array([[1.0, 0], [0.2, 0.8]]))
    found = judge.finished()
    assert found.classes == ["a", "b", "z"]
    assert found.metrics["error"] == 0.5
    assert found.metrics["brier"] == pytest.approx((0.2**2 + 0.8**2 + 1) / 2)


def test_the_sample_for_pictures_is_random_and_bounded():
    judge = Judge("regression", ["y"], [], [0.0], "rows")
    for start in range(0, 200_000, 10_000):
        y = np.arange(start, start + 10_000) * 1.0
        judge.add(y, y)
    sample = judge.finished().observed[:, 0]
    assert len(sample) == len(set(sample)) == 20_000
    counts = np.histogram(sample, 10, (0, 200_000))[0]
    assert np.abs(counts - 2000).max() < 6 * np.sqrt(2000)
