"""Tables made fit for kernels, against scikit-learn's transformers and invariances."""

import datetime as dt
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import norm, rankdata
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, RobustScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from imparo import KernelRegressor
from imparo.preparation import DistinctColumns, KernelInputs
from imparo.preparation import groups as grouping
from imparo.preparation import inputs as module

SCALES = ("standard", "robust", "quantile", "none")
every_scale = pytest.mark.parametrize("numbers", SCALES)


def expected_failures(estimator):
    if getattr(estimator, "numbers", None) != "robust":
        return {}
    reason = "medians and quartiles of scikit-learn take no weights"
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{k}_data": reason for k in kinds}


@parametrize_with_checks(
    [*map(KernelInputs, SCALES), KernelInputs(missing="refuse"), DistinctColumns()],
    expected_failed_checks=expected_failures,
)
def test_conventions(estimator, check):
    check(estimator)


@pytest.fixture
def cells(rng):
    """Two hundred rows of every kind of column, with gaps, as lists."""
    n = 200
    start = dt.datetime(2023, 1, 1)
    table = {
        "age": rng.normal(40, 10, n).tolist(),
        "children": rng.integers(0, 5, n).tolist(),
        "member": (rng.random(n) < 0.05).tolist(),
        "city": rng.choice(
            ["Bonn", "Oslo", "Rome", "Ulm"], n, p=[0.3, 0.3, 0.38, 0.02]
        ).tolist(),
        "answer": rng.choice(["no", "yes"], n).tolist(),
        "seen": [start + dt.timedelta(hours=int(h)) for h in rng.integers(0, 9000, n)],
        "stay": [dt.timedelta(minutes=int(m)) for m in rng.integers(1, 999, n)],
        "constant": [3.5] * n,
        "nothing": [None] * n,
    }
    for name, step in (
        ("age", 9),
        ("children", 17),
        ("member", 20),
        ("city", 13),
        ("seen", 19),
    ):
        for i in range(3, n, step):
            table[name][i] = None
    table["fahrenheit"] = [None if a is None else 1.8 * a + 32 for a in table["age"]]
    return table


def as_pandas(cells):
    pd = pytest.importorskip("pandas")
    types = {"children": "Int64", "member": "boolean"}
    return pd.DataFrame({k: pd.Series(v, dtype=types.get(k)) for k, v in cells.items()})


def as_polars(cells):
    return pytest.importorskip("polars").DataFrame(cells)


def as_objects(cells):
    columns = [np.array(values, dtype=object) for values in cells.values()]
    return np.column_stack(columns)


def as_rows(cells):
    return [list(row) for row in zip(*cells.values(), strict=True)]


# The same table in whatever form.


@every_scale
def test_all_forms_of_a_table_give_the_same_matrix(cells, numbers):
    expected = KernelInputs(numbers).fit_transform(as_objects(cells))
    assert expected.shape == (200, 21)
    for form in (as_pandas, as_polars, as_rows):
        table = form(cells)
        assert_array_equal(KernelInputs(numbers).fit_transform(table), expected, form.__name__)


def test_names_sources_and_notes(cells):
    inputs = KernelInputs().fit(as_polars(cells))
    names = inputs.get_feature_names_out().tolist()
    circles = ["time of day", "day of week", "day of year"]
    assert names == [
        "age", "children", "seen: trend", "stay", "member", "age: missing", "children: missing",
        "member: missing", "seen: missing", "city = Bonn", "city = Oslo", "city = Rome",
        "city: missing", "city: rare", "answer = no",
        *(f"seen: {circle}, {wave}" for circle in circles for wave in ("sine", "cosine")),
    ]  # fmt: skip
    columns = list(cells)
    assert [columns[j] for j in inputs.sources_] == [
        n.split(":")[0].split(" =")[0] for n in names
    ]
    assert inputs.kinds_ == [
        "number", "number", "number", "text", "text", "date", "duration", "number", "empty",
        "number",
    ]  # fmt: skip
    assert inputs.notes_ == [
        "column 'nothing' has no value and was dropped",
        "column 'constant' is constant and was dropped",
        "column 'member' is a flag, with two values",
        "column 'city' became 5 columns of 0 and 1",
        "column 'answer' is a flag, with two values",
        "column 'seen' also gives its time of day, day of week and day of year",
        "missing values of 'age', 'children', 'member', 'seen' and 'fahrenheit' are filled and "
        "marked by a column each",
        "column 'fahrenheit' is the same as 'age' and was dropped",
        "column 'fahrenheit: missing' is the same as 'age: missing' and was dropped",
    ]


def test_long_notes_are_cut(rng):
    X = np.hstack([np.ones((50, 12)), np.tile(rng.normal(size=(50, 1)), 9)])
    notes = KernelInputs().fit(X).notes_
    assert notes[0] == (
        "columns 'x0', 'x1', 'x2', 'x3', 'x4' and 7 more are constant and were dropped"
    )
    assert notes[1] == "column 'x13' is the same as 'x12' and was dropped"
    assert notes[6:] == ["3 more columns are the same as others and were dropped"]


@every_scale
def test_the_pipeline_is_an_ordinary_one(cells, numbers):
    frame = as_pandas(cells)
    inputs = KernelInputs(numbers).fit(frame)
    Z = inputs.transform(frame)
    assert_array_equal(inputs.pipeline_.transform(frame), Z)
    # Fitted by scikit-learn from scratch it is the same, so no step was fitted oddly.
    assert_array_equal(clone(inputs.pipeline_).fit_transform(frame), Z)
    assert len(inputs.pipeline_.get_feature_names_out()) == Z.shape[1]


# Against scikit-learn's transformers and definitions.


def test_standard_and_robust_are_those_of_scikit_learn(rng):
    X = rng.gamma(2, size=(300, 4)) * [1, 10, 1e-3, 1e6] + [0, 5, 1, -1e6]
    X[::7, 2] = np.nan
    for numbers, scaler in (
        ("standard", StandardScaler()),
        ("robust", RobustScaler(unit_variance=True)),
    ):
        scaled = SimpleImputer(strategy="median").fit_transform(scaler.fit_transform(X))
        marks = np.where(np.isnan(X[:, 2]), 1.0, -1.0)
        expected = np.column_stack([scaled, marks])
        assert_allclose(KernelInputs(numbers).fit_transform(X), expected, atol=1e-12)


def test_robust_gives_a_normal_column_deviation_one(rng):
    X = rng.normal(3, 7, size=(50_000, 1))
    assert KernelInputs("robust").fit_transform(X).std() == pytest.approx(1, rel=0.02)
    X[:45_000] = 0.0  # both quartiles are 0
    assert_allclose(
        KernelInputs("robust").fit_transform(X), StandardScaler().fit_transform(X), atol=1e-12
    )


def test_quantiles_are_ranks_of_a_normal(rng):
    x = rng.exponential(size=(401, 1))
    few = rng.integers(0, 10, size=(401, 1))  # ten values: standardised
    Z = KernelInputs("quantile").fit_transform(np.hstack([x, few]))
    inner = slice(1, -1)  # the ends are cut, as they would be infinite
    order = np.argsort(x[:, 0])
    expected = norm.ppf((rankdata(x) - 1) / 400)
    assert_allclose(Z[order, 0][inner], expected[order][inner], atol=1e-6)
    assert_allclose(Z[:, [1]], StandardScaler().fit_transform(few), atol=1e-12)


def test_categories_are_those_of_scikit_learn(rng):
    X = rng.choice(["a", "b", "c", "d", "e"], size=(400, 2), p=[0.5, 0.3, 0.1, 0.09, 0.01])
    encoder = OneHotEncoder(
        min_frequency=10, max_categories=50, handle_unknown="infrequent_if_exist",
        sparse_output=False,
    ).fit(X)  # fmt: skip
    inputs = KernelInputs().fit(X)
    assert_array_equal(inputs.transform(X), encoder.transform(X))
    new = np.array([["a", "unseen"], ["e", "b"]])
    assert_array_equal(inputs.transform(new), encoder.transform(new))
    frequent = X[~(X == "e").any(axis=1)]
    Z = inputs.transform(frequent)
    apart = (frequent[:, None, :] != frequent[None, :, :]).sum(axis=2)
    assert_allclose(cdist(Z, Z, "sqeuclidean"), 2 * apart, atol=1e-12)


def test_unseen_values_share_the_column_of_rare_ones_or_have_none(rng):
    city = rng.choice(["Bonn", "Oslo", "Rome"], 100).tolist()
    plain = KernelInputs().fit([[c] for c in city])
    assert_array_equal(plain.transform([["Paris"], [None]]), np.zeros((2, 3)))
    with_rare = KernelInputs().fit([[c] for c in [*city, "Ulm", "Kiel"]])
    assert_array_equal(with_rare.transform([["Paris"], ["Ulm"]]), [[0, 0, 0, 1]] * 2)
    assert with_rare.notes_[1] == "2 rare values of 'x0' share one column"


def test_ten_thousand_values_are_bounded(rng):
    values = np.array([f"v{i}" for i in range(10_000)])
    X = rng.choice(values, size=(30_000, 1), p=np.arange(10_000) / np.arange(10_000).sum())
    for most in (2, 7, 50):
        inputs = KernelInputs(rare=1, max_categories=most).fit(X)
        # Of two columns one is enough.
        assert inputs.transform(X[:5]).shape[1] == (most if most > 2 else 1)
    with_number = np.column_stack([X.astype(object), np.arange(30_000.0)])
    notes = KernelInputs(rare=1000).fit(with_number).notes_
    assert notes[0].startswith("column 'x0' has rare values only, which share one column")


def test_flags_are_one_and_minus_one_however_rare(rng):
    X = np.zeros((1000, 3))
    X[:3, 0], X[:, 1], X[500:, 2] = 1, np.where(rng.random(1000) < 0.3, 7.25, -3), 1e-200
    for numbers in ("standard", "robust", "quantile"):
        Z = KernelInputs(numbers).fit_transform(X)
        assert_allclose(Z, np.where(X.max(axis=0) == X, 1, -1), atol=1e-14)
    assert_array_equal(KernelInputs("none").fit_transform(X), X)
    X[:100, 1] = np.nan
    Z = KernelInputs().fit_transform(X)
    assert_array_equal(Z[:100, 1], -np.ones(100))  # -3 is the more frequent one
    assert_array_equal(Z[:, 3], np.where(np.isnan(X[:, 1]), 1, -1))
    tied = KernelInputs().fit_transform([[0.0], [0.0], [1.0], [1.0], [np.nan]])
    assert tied[4, 0] in (-1, 1)


def test_a_flag_in_words_is_the_same_flag(rng):
    flag = rng.random(300) < 0.02
    words = np.where(flag, "yes", "no").astype(object)
    as_flag, as_text = KernelInputs().fit(flag[:, None]), KernelInputs().fit(words[:, None])
    assert_array_equal(as_text.transform(words[:, None]), -as_flag.transform(flag[:, None]))
    assert_array_equal(as_text.transform([["perhaps"]]), [[-1.0]])  # not "no"
    one_and_rare = np.where(flag, np.arange(300).astype(str), "no").astype(object)
    inputs = KernelInputs(rare=2).fit(one_and_rare[:, None])
    assert_array_equal(np.unique(inputs.transform(one_and_rare[:, None])), [-1, 1])


# Invariances.


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    a=st.floats(1e-6, 1e6),
    b=st.floats(-1e4, 1e4),
    sign=st.sampled_from([-1, 1]),
    numbers=st.sampled_from(["standard", "robust"]),
)
def test_affine_maps_change_nothing_but_the_sign(seed, a, b, sign, numbers):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=40), rng.integers(0, 4, 40), rng.random(40) < 0.3])
    mapped = sign * a * X + a * b
    expected = KernelInputs(numbers).fit_transform(X)
    assert_allclose(KernelInputs(numbers).fit_transform(mapped), sign * expected, atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), which=st.sampled_from(["exp", "cube", "arctan"]))
def test_increasing_maps_change_no_quantile(seed, which):
    f = {"exp": np.exp, "cube": lambda x: x**3, "arctan": np.arctan}[which]
    X = np.random.default_rng(seed).uniform(-2, 2, size=(60, 2))
    expected = KernelInputs("quantile").fit_transform(X)
    assert_allclose(KernelInputs("quantile").fit_transform(f(X)), expected, atol=1e-6)


@every_scale
def test_copies_of_columns_change_nothing(rng, numbers):
    X = np.column_stack(
        [rng.normal(size=(80, 3)), rng.integers(0, 3, 80), rng.random(80) < 0.5]
    )
    doubled = np.hstack([X, X[:, ::-1], 3 - 2 * X])
    inputs = KernelInputs(numbers).fit(doubled)
    Z = inputs.transform(doubled)
    assert_allclose(Z, KernelInputs(numbers).fit_transform(X), atol=1e-12)


def test_copies_of_rows_are_weights(rng, cells):
    frame = as_pandas(cells).drop(columns=["age", "fahrenheit", "children", "seen"])
    frame["x"] = rng.normal(size=200)
    weight = rng.integers(0, 4, 200)
    rows = np.repeat(np.arange(200), weight)
    weighted = KernelInputs(rare=1).fit(frame, sample_weight=weight * 1e-300)
    repeated = KernelInputs(rare=1).fit(frame.iloc[rows])
    assert_allclose(weighted.transform(frame), repeated.transform(frame), atol=1e-10)
    assert weighted.notes_ == repeated.notes_


@pytest.mark.parametrize("numbers", SCALES[:-1])
def test_powers_of_two_change_no_bit(rng, numbers):
    X = rng.normal(size=(100, 2))
    expected = KernelInputs(numbers).fit(X)
    for exponent in (-960, -300, 300, 1015):
        scaled = np.ldexp(X, exponent)
        inputs = KernelInputs(numbers).fit(scaled)
        assert_array_equal(inputs.transform(scaled), expected.transform(X))
    single = X.astype(np.float32)
    Z = KernelInputs(numbers).fit_transform(single)
    for exponent in (-110, 115):
        scaled = np.ldexp(single, exponent)
        assert_array_equal(KernelInputs(numbers).fit_transform(scaled), Z, strict=True)


def test_numbers_far_from_zero_keep_their_digits(rng):
    k = rng.integers(0, 40, size=(200, 1)).astype(float)
    expected = KernelInputs().fit_transform(k)
    for far in (2.0**50, -(2.0**52), 1e15):
        assert_allclose(KernelInputs().fit_transform(k + far), expected, atol=1e-14)
    # One in the last place is rounding, and no difference.
    rounded = np.where(k > 20, 0.3, 0.1 + 0.2)
    assert KernelInputs().fit(np.hstack([k, rounded])).notes_ == [
        "column 'x1' is constant and was dropped"
    ]


def test_blocks_change_nothing(cells, monkeypatch):
    frame = as_polars(cells)
    expected = KernelInputs().fit(frame)
    Z = expected.transform(frame)
    monkeypatch.setattr(module, "_BLOCK", 190)
    assert_array_equal(expected.transform(frame), Z)
    monkeypatch.setattr(grouping, "_BLOCK", 40)
    assert_allclose(KernelInputs().fit_transform(frame), Z, atol=1e-13)


# Types and memory.


def test_types(rng):
    X = rng.normal(5, 2, size=(300, 3))
    X[::9, 1] = np.nan
    single = X.astype(np.float32)
    for numbers in SCALES:
        Z = KernelInputs(numbers).fit_transform(single)
        assert Z.dtype == np.float32
        assert_allclose(Z, KernelInputs(numbers).fit_transform(X), atol=2e-4)
        assert_array_equal(
            KernelInputs(numbers, dtype="float64").fit(X).transform(single),
            KernelInputs(numbers).fit(X).transform(single.astype(np.float64)),
            strict=True,
        )
        assert KernelInputs(numbers, dtype=np.float32).fit_transform(X).dtype == np.float32
    assert KernelInputs().fit_transform((100 * X[:, :1]).astype(int)).dtype == np.float64


def test_types_of_frames(rng):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"x": rng.normal(size=90).astype(np.float32), "c": ["a", "b", "c"] * 30}
    )
    assert KernelInputs().fit_transform(frame).dtype == np.float32
    assert KernelInputs().fit_transform(frame.astype({"x": float})).dtype == np.float64


def test_memory_of_transform(rng, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 2**15)
    X = rng.normal(size=(100_000, 10)) + 1e3
    X[::3, 0] = np.nan
    inputs = KernelInputs().fit(X)
    tracemalloc.start()
    Z = inputs.transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < Z.nbytes + 0.3 * X.nbytes


def test_few_values_are_not_lost_in_a_sample(rng, monkeypatch):
    X = rng.normal(size=(5000, 2))
    X[:, 1] = np.nan
    X[[17, 1234, 4000], 1] = [1.0, 2.0, 4.0]
    monkeypatch.setattr(grouping, "_RANKED_ROWS", 100)
    for numbers in SCALES:
        inputs = KernelInputs(numbers).fit(X)
        assert inputs.sources_.tolist() == [0, 1, 1]
        at_median, filled = inputs.transform([[0.0, 2.0], [0.0, np.nan]])[:, 1]
        assert filled == pytest.approx(at_median, abs=1e-12)


def test_inputs_are_not_changed(rng, cells):
    X = rng.normal(size=(50, 3)) + 100
    X[3, 1] = np.nan
    S = sparse.csr_array(np.where(rng.random((50, 3)) < 0.5, 0, X * 1e200))
    before, data = X.copy(), S.data.copy()
    KernelInputs().fit(X).transform(X)
    KernelInputs().fit(S).transform(S)
    assert_array_equal(X, before)
    assert_array_equal(S.data, data)


# Sparse matrices.


@pytest.mark.parametrize("numbers", ["standard", "robust"])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_rows_have_the_distances_of_dense_ones(rng, numbers, make):
    X = np.where(
        rng.random((150, 6)) < 0.4, 0, rng.normal(size=(150, 6)) * 10.0 ** np.arange(6)
    )
    Z = KernelInputs(numbers).fit_transform(make(X))
    assert sparse.issparse(Z)
    assert Z.nnz == np.count_nonzero(X)
    dense = KernelInputs(numbers).fit_transform(X)
    assert_allclose(cdist(Z.toarray(), Z.toarray()), cdist(dense, dense), atol=1e-9)


def test_sparse_flags_gaps_and_copies(rng):
    X = np.where(rng.random((100, 4)) < 0.6, 0, rng.normal(size=(100, 4)))
    X[:, 1] = 3.0 * (X[:, 1] != 0)
    X[:, 3] = -2 * X[:, 0]
    X[X[:, 2] > 1.2, 2] = np.nan
    S = sparse.csr_array(X)
    inputs = KernelInputs().fit(S)
    assert inputs.get_feature_names_out().tolist() == ["x0", "x2", "x1", "x2: missing"]
    Z = inputs.transform(S)
    assert sparse.issparse(Z)
    assert_array_equal(Z.toarray()[:, 2], X[:, 1] != 0)
    assert_array_equal(Z.toarray()[:, 3], np.isnan(X[:, 2]))
    assert_array_equal(inputs.transform(X).toarray(), Z.toarray())  # dense rows later
    assert KernelInputs().fit_transform(S.astype(np.float32)).dtype == np.float32
    with pytest.raises(TypeError, match="would make a sparse matrix dense"):
        KernelInputs("quantile").fit(S)
    with pytest.raises(TypeError, match=r"was dense in fit; use X\.toarray"):
        KernelInputs().fit(X).transform(S)


def test_sparse_columns_of_two_values_and_cells_in_parts(rng):
    X = np.column_stack([rng.integers(1, 3, 50), rng.choice([-1, 1], 50), rng.random(50) < 0.5])
    Z = KernelInputs().fit_transform(sparse.csr_array(X.astype(float))).toarray()
    # Only 0 and another value are a flag: others cannot go to 0 and 1 by a factor.
    assert_allclose(Z[:, :2], X[:, :2] / X[:, :2].std(axis=0), atol=1e-12)
    assert_array_equal(Z[:, 2], X[:, 2])
    parts = sparse.csr_array(([1.0, 2.0, 4.0, 5.0], [0, 0, 0, 0], [0, 2, 3, 4]), shape=(3, 1))
    assert_array_equal(KernelInputs("none").fit_transform(parts).toarray(), [[3], [4], [5]])
    assert parts.nnz == 4


# In use.


def test_a_second_fit_forgets_the_first(rng, cells):
    X = rng.normal(size=(30, 2))
    inputs = KernelInputs().fit(as_polars(cells)).fit(X)
    assert vars(inputs).keys() == vars(KernelInputs().fit(X)).keys()
    assert inputs.get_feature_names_out().tolist() == ["x0", "x1"]


def test_in_a_pipeline_and_a_search(rng, cells):
    frame = as_pandas(cells)
    y = frame["age"].fillna(40).to_numpy() + 5 * (frame["city"] == "Rome").to_numpy(float)
    model = make_pipeline(KernelInputs(), KernelRegressor(penalty=1e-2))
    search = GridSearchCV(model, {"kernelinputs__numbers": ["standard", "quantile"]}, cv=3)
    assert search.fit(frame, y).best_score_ > 0.5


def test_frames_come_out_where_asked(cells):
    frame = as_polars(cells)
    inputs = KernelInputs().set_output(transform="polars").fit(frame)
    out = inputs.transform(frame)
    assert out.columns == inputs.get_feature_names_out().tolist()
    assert_array_equal(out.to_numpy(), KernelInputs().fit_transform(frame))
