"""The parts of the preparation: dates, distinct columns, bad tables and what is refused."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import MinMaxScaler

from imparo.preparation import DateParts, DistinctColumns, KernelInputs
from imparo.preparation.columns import listed

# Dates.


def test_parts_are_those_of_the_calendar(rng):
    start = dt.datetime(2019, 3, 1)
    times = [start + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 3 * 525_600, 300)]
    parts = DateParts().fit([[time] for time in times])
    assert parts.cycles_ == [("time of day", "day of week", "day of year")]
    got = parts.transform([[time] for time in times])

    def place(time):  # Python's own calendar, in a leap year
        in_year = time.replace(year=2020).timetuple().tm_yday - 1
        return [(time.hour + time.minute / 60) / 24, time.weekday() / 7, in_year / 366]

    angle = 2 * np.pi * np.array([place(time) for time in times])
    assert_allclose(got[:, 1::2], np.sin(angle), atol=1e-12)
    assert_allclose(got[:, 2::2], np.cos(angle), atol=1e-12)
    days = [(time - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1) for time in times]
    assert_allclose(got[:, 0], days, rtol=1e-14)


def test_dates_before_1970():
    parts = DateParts().fit(np.arange("1890-01-01", "1891-01-01", dtype="M8[h]")[:, None])
    row = parts.transform(np.array([["1901-12-25T18:00"]], "M8[m]"))[0]
    weekday = dt.date(1901, 12, 25).weekday()
    assert (
        row[0]
        == (dt.datetime(1901, 12, 25, 18) - dt.datetime(1970, 1, 1)).total_seconds() / 86400
    )
    assert_allclose(
        row[1:5], [-1, 0, np.sin(w := 2 * np.pi * weekday / 7), np.cos(w)], atol=1e-12
    )


@pytest.mark.parametrize(
    ("start", "stop", "step", "expected"),
    [
        ("2024-01-01", "2025-01-01", "D", ("day of week", "day of year")),
        ("2024-01-01", "2024-03-31", "D", ("day of week",)),  # less than a quarter of a year
        ("2024-01-01", "2024-01-02", "D", ()),
        ("2024-01-01T00", "2024-01-03T00", "h", ("time of day", "day of week")),
        ("2024-01-01T00", "2024-01-01T05", "h", ()),
        ("2000-01-01", "2024-01-01", "Y", ("day of week",)),  # always the first of January
    ],
)
def test_only_what_varies_is_told(start, stop, step, expected):
    dates = np.arange(start, stop, dtype=f"M8[{step}]")[:, None]
    parts = DateParts().fit(dates)
    assert parts.cycles_ == [expected]
    assert parts.transform(dates).shape == (len(dates), 1 + 2 * len(expected))
    without = DateParts(trend=False).fit(dates)
    assert_array_equal(without.transform(dates), parts.transform(dates)[:, 1:])
    names = parts.get_feature_names_out(["when"]).tolist()
    assert names == ["when: trend"] + [
        f"when: {cycle}, {wave}" for cycle in expected for wave in ("sine", "cosine")
    ]


def test_the_first_of_march_is_one_place_in_all_years():
    dates = np.array([f"{year}-03-01" for year in range(2000, 2012)], "M8[D]")[:, None]
    assert "day of year" not in DateParts().fit(dates).cycles_[0]


def test_forms_of_dates_and_time_zones():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rome = "Europe/Rome"
    walls = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=5 * k) for k in range(2000)]
    walls[7] = None
    frame = pd.DataFrame({"when": pd.Series(walls)})
    assert DateParts().fit(frame).feature_names_in_.tolist() == ["when"]
    expected = DateParts().fit_transform(frame)
    assert np.isnan(expected[7]).all()
    zoned = frame["when"].dt.tz_localize(rome, nonexistent="shift_forward", ambiguous="NaT")
    polars = pl.DataFrame({"when": walls})
    tables = [
        polars,
        np.array(walls, dtype="M8[s]")[:, None],
        np.array(walls, dtype=object)[:, None],
        frame.astype("datetime64[ns]"),
    ]
    for table in tables:
        assert_allclose(DateParts().fit_transform(table), expected, atol=1e-9, equal_nan=True)
    # The clock in Rome, not in Greenwich.
    kept = zoned.notna().to_numpy() & (zoned.dt.tz_localize(None) == frame["when"]).to_numpy()
    assert kept.sum() > 1990
    aware = [None if pd.isna(t) else t.to_pydatetime() for t in zoned]
    for table in (
        pd.DataFrame({"when": zoned}),
        pl.DataFrame({"when": pl.Series(aware, dtype=pl.Datetime("us", rome))}),
        np.array(aware, dtype=object)[:, None],
    ):
        got = DateParts().fit_transform(table)
        assert_allclose(got[kept], expected[kept], atol=1e-9)


def test_missing_dates_are_filled_and_marked():
    dates = np.arange("2024-01-01", "2024-03-01", dtype="M8[D]")[:, None]
    dates[5:9] = "NaT"
    inputs = KernelInputs().fit(dates)
    Z = inputs.transform(dates)
    names = inputs.get_feature_names_out(["when"]).tolist()
    assert names[:2] == ["when: trend", "when: missing"]
    there = np.ones(len(dates), bool)
    there[5:9] = False
    assert_array_equal(Z[:, 1], np.where(there, -1, 1))
    assert_allclose(Z[~there, 0], np.median(Z[there, 0]), atol=1e-12)
    assert_allclose(Z[~there, 2:], [Z[there, 2:].mean(axis=0)] * 4, atol=1e-12)
    assert_allclose([Z[there, 0].mean(), Z[there, 0].std()], [0, 1], atol=1e-12)


def test_date_parts_refuse_what_is_no_date():
    with pytest.raises(ValueError, match="column 'x0' holds numbers and must hold dates"):
        DateParts().fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match="column 'x0' holds text and must hold dates"):
        DateParts().fit([["2024-01-01"]])
    with pytest.raises(ValueError, match="trend=3 must be True or False"):
        DateParts(trend=3).fit(np.array([["2024-01-01"]], "M8[D]"))
    with pytest.raises(NotFittedError):
        DateParts().transform(np.array([["2024-01-01"]], "M8[D]"))
    assert clone(DateParts(trend=False)).trend is False


# Distinct columns.


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    single=st.booleans(),
    as_sparse=st.booleans(),
    scale=st.sampled_from([1e-30, 1.0, 1e30]),
)
def test_copies_up_to_sign_and_scale_are_found(seed, single, as_sparse, scale):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(40, 6)) * scale
    source = rng.integers(0, 6, 25)
    factor = rng.choice([-3.0, -1.0, 1 / 7, 1.0, 1.8], 25)
    shift = rng.choice([0.0, 1.0, 32.0], 25) * scale
    X = (base[:, source] * factor + shift).astype(np.float32 if single else np.float64)
    constant = rng.random(25) < 0.2
    X[:, constant] = 0.3 * scale
    distinct = DistinctColumns().fit(sparse.csr_array(X) if as_sparse else X)
    first = {}
    expected = [-1 if constant[j] else first.setdefault(source[j], j) for j in range(25)]
    assert distinct.same_as_.tolist() == expected
    assert distinct.kept_.tolist() == sorted(first.values())
    assert_array_equal(distinct.transform(X), X[:, distinct.kept_], strict=True)


def test_columns_that_differ_in_one_row_stay(rng):
    X = np.tile(rng.normal(size=(10_000, 1)), 3)
    X[77, 1] += 1e-6
    assert DistinctColumns().fit(X).kept_.tolist() == [0, 1]
    X[77, 1] = X[77, 0] + 1e-10
    assert DistinctColumns().fit(X).kept_.tolist() == [0]
    # One different row among few that are not 0.
    X = np.zeros((10_000, 2))
    X[:3, 0], X[:4, 1] = 1, 1
    assert DistinctColumns().fit(X).kept_.tolist() == [0, 1]


def test_five_thousand_columns(rng):
    X = rng.normal(size=(50, 5000)).astype(np.float32)
    assert len(DistinctColumns().fit(X).kept_) == 5000
    X[:, 2500:] = X[:, 2499::-1]
    assert DistinctColumns().fit(X).same_as_[2500:].tolist() == list(range(2499, -1, -1))


def test_dropped_columns_are_named():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"postcode": [1, 2, 4], "one": [1, 1, 1], "zip": [1, 2, 4]})
    distinct = DistinctColumns().fit(frame)
    assert distinct.dropped_ == [("one", "is constant"), ("zip", "is the same as 'postcode'")]
    assert distinct.get_feature_names_out().tolist() == ["postcode"]


def test_constant_columns_only_and_extreme_ones():
    assert DistinctColumns().fit(np.ones((4, 3))).kept_.tolist() == [0]
    assert DistinctColumns().fit([[1.0, 2.0]]).kept_.tolist() == [0]
    rounded = np.array([[0.3, 1.0], [0.1 + 0.2, 2.0]])
    assert DistinctColumns().fit(rounded).same_as_.tolist() == [-1, 1]
    x = np.array([1.0, 2.0, 5.0])
    X = np.column_stack([x * 1e-310, x * 1e307, x**2, np.full(3, 1e308), x * -1e-300])
    assert DistinctColumns().fit(X).same_as_.tolist() == [0, 0, 2, -1, 0]


def test_a_failed_fit_leaves_the_object_as_it_was():
    distinct = DistinctColumns().fit([[1.0, 1.0], [2.0, 3.0]])
    before = dict(vars(distinct))
    with pytest.raises(ValueError, match="NaN"):
        distinct.fit([[np.nan], [1.0]])
    assert vars(distinct) == before


# What cannot be prepared.


TABLE = [[1.0, "a"], [2.0, "b"], [3.0, "c"]]
BAD = {
    "mixed": ([[1.0, "a"], ["b", "c"]], ValueError, "column 'x0' holds numbers and text"),
    "dates and numbers": (
        [[dt.date(2024, 1, 1)], [3.5]], ValueError, "column 'x0' holds dates and numbers",
    ),
    "a dict": ([[1.0, {}], [2.0, {}]], TypeError, "column 'x1' holds a cell of type dict"),
    "times": ([[dt.time(3)], [dt.time(4)]], TypeError, "cell of type time"),
    "bytes": (np.array([[b"a"], [b"b"]]), TypeError, "must hold numbers, text or dates"),
    "infinite": ([[1.0, np.inf], [2.0, 3.0]], ValueError, "column 'x1' holds infinite values"),
    "both infinite": (
        [[-np.inf, np.inf]], ValueError, "columns 'x0' and 'x1' hold infinite values",
    ),
    "sparse infinite": (
        sparse.csr_array([[0.0, np.inf], [2.0, 3.0]]), ValueError, "column 'x1' holds infinite",
    ),
    "ragged": ([[1.0, 2.0], [3.0]], ValueError, "do not all have the same number of cells"),
    "no values": ([[None, np.nan], [None, np.nan]], ValueError, "every cell is missing"),
    "too large": ([[10**400], [1]], ValueError, "column 'x0' holds a number beyond"),
    "one dimension": ([1.0, 2.0], ValueError, "Reshape your data"),
    "no rows": (np.empty((0, 2)), ValueError, r"0 sample\(s\)"),
    "no columns": (np.empty((2, 0)), ValueError, r"0 feature\(s\)"),
    "complex": ([[1j], [2.0]], ValueError, "Complex data not supported"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_refused_and_change_nothing(name):
    X, error, words = BAD[name]
    inputs = KernelInputs(rare=1).fit(TABLE)
    before = dict(vars(inputs))
    with pytest.raises(error, match=words):
        inputs.fit(X)
    assert vars(inputs) == before


def test_bad_frames():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    with pytest.raises(ValueError, match="several columns of one name, 'a'; rename"):
        KernelInputs().fit(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        KernelInputs().fit(pl.DataFrame({"a": []}))
    with pytest.raises(TypeError, match="column 'a' holds a cell of type Interval"):
        KernelInputs().fit(pd.DataFrame({"a": pd.interval_range(0, 3)}))
    with pytest.raises(TypeError, match="column 'a' holds a cell of type ndarray"):
        KernelInputs().fit(pl.DataFrame({"a": [[1], [2]]}))
    with pytest.raises(TypeError, match=r"lazy frame .* use X\.collect"):
        KernelInputs().fit(pl.LazyFrame({"a": [1, 2]}))


def test_tables_unlike_the_one_of_fit(rng):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": rng.normal(size=30), "c": ["a", "b", "c"] * 10})
    inputs = KernelInputs().fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        inputs.transform(frame.rename(columns={"x": "y"}))
    with pytest.raises(ValueError, match="feature names"):
        inputs.transform(frame[["c", "x"]])
    with pytest.raises(ValueError, match="feature names"):
        inputs.transform(frame[["x"]])
    with pytest.raises(ValueError, match="X has 1 features"):
        KernelInputs().fit(frame.to_numpy()).transform(np.ones((2, 1)))
    with pytest.raises(
        ValueError, match="'c' was of kind text in fit and is of kind number now"
    ):
        inputs.transform(frame.assign(c=1.0))
    with pytest.raises(
        ValueError, match="'x' was of kind number in fit and is of kind text now"
    ):
        inputs.transform(frame.assign(x="1.0"))
    with pytest.raises(ValueError, match="column 'x' holds infinite values"):
        inputs.transform(frame.assign(x=np.inf))
    with pytest.raises(NotFittedError):
        KernelInputs().transform(frame)
    # A column without any value is of every kind.
    Z = inputs.transform(frame.assign(c=np.nan, x=None))
    assert_array_equal(Z[:, 1:], np.zeros((30, 3)))
    assert_allclose(Z[:, 0], np.median(inputs.transform(frame)[:, 0]))


def test_missing_values_later_are_filled_without_a_mark(rng):
    X = rng.normal(size=(51, 2))
    inputs = KernelInputs().fit(X)
    Z = inputs.transform([[np.nan, X[0, 1]]])
    assert_allclose(Z, [[np.median(inputs.transform(X)[:, 0]), inputs.transform(X)[0, 1]]])


def test_missing_values_refused():
    X = np.array([[1.0, "a", None], [2.0, "b", 3.0], [np.nan, None, 4.0]], dtype=object)
    refuse = KernelInputs(missing="refuse")
    with pytest.raises(ValueError, match=r"columns 'x0', 'x1' and 'x2' hold missing values"):
        refuse.fit(X)
    with pytest.raises(ValueError, match=r"column 'x2' holds missing values .*'indicate'"):
        refuse.fit(X[:2])
    refuse.fit(X[:2, :2])
    with pytest.raises(ValueError, match=r"columns 'x0' and 'x1' hold missing values"):
        refuse.transform(X[2:, :2])
    S = sparse.csr_array([[0.0, np.nan], [1.0, 2.0]])
    with pytest.raises(ValueError, match="column 'x1' holds missing values"):
        refuse.fit(S)


def test_no_overflow_is_silent(rng):
    X = rng.normal(size=(40, 2))
    inputs = KernelInputs().fit(X * 1e-200)
    with pytest.raises(ValueError, match=r"hold values up to 1e[+]200, and went up to .e-200"):
        inputs.transform(np.full((1, 2), 1e200))
    with pytest.raises(ValueError, match="too large for float32"):
        KernelInputs("none", dtype="float32").fit(X * 1e300)
    with pytest.raises(ValueError, match="too large for float32"):
        KernelInputs(dtype="float32").fit(X).transform(np.full((1, 2), 1e60))
    assert np.isfinite(KernelInputs().fit(X).transform(np.full((1, 2), 1e100))).all()


PARAMETERS = {
    "numbers": (["minmax", None, 3], "must be one of 'standard', 'robust', 'range', "),
    "missing": (["drop", None], "must be one of 'indicate', 'refuse'"),
    "rare": ([0, 2.5, True, "10"], "must be a whole number from 1 on"),
    "max_categories": ([1, None, 3.0], "must be a whole number from 2 on"),
    "dtype": (["int", "half", int, "nonsense"], "must be float32, float64 or None"),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_bad_parameters(name):
    values, words = PARAMETERS[name]
    for value in values:
        with pytest.raises(ValueError, match=f"{name}=.* {words}"):
            KernelInputs(**{name: value}).fit(TABLE)


@pytest.mark.parametrize(
    ("weight", "words"),
    [([1, 2], "shape"), ([1, -1, 1], "from 0 on"), ([0, 0, 0], "zero")],
)
def test_bad_weights(weight, words):
    with pytest.raises(ValueError, match=words):
        KernelInputs().fit(TABLE, sample_weight=weight)


# Small tables and odd cells.


def test_one_row_and_constant_columns():
    inputs = KernelInputs().fit([[3.0, "a"]])
    assert inputs.transform([[3.0, "a"]]).shape == (1, 1)
    assert inputs.notes_ == ["every column is constant; 'x1' was kept all the same"]
    rare = KernelInputs().fit([["a"], ["b"], ["c"]])
    assert_array_equal(rare.transform([["a"]]), [[1.0]])
    assert rare.notes_[1] == (
        "column 'x0' has rare values only, which share one column; lower rare"
    )
    gaps = KernelInputs().fit([[1.0], [np.nan], [1.0]])
    assert_array_equal(gaps.transform([[1.0], [np.nan]]), [[-1.0], [1.0]])
    assert gaps.notes_[0] == "column 'x0' is constant and was dropped"


def test_cells_of_many_types_are_numbers():
    cells = [[Decimal("1.5")], [np.float32(2)], [7], [np.int8(3)], [None], [float("nan")]]
    Z = KernelInputs("none").fit_transform(cells)
    assert_array_equal(Z, [[1.5, 0], [2, 0], [7, 0], [3, 0], [2.5, 1], [2.5, 1]])
    assert_array_equal(KernelInputs("none").fit_transform([[True], [False]]), [[1.0], [0.0]])


def test_durations_are_seconds():
    spans = np.array([[90], [3600], [86_400], [30]], "m8[s]")
    expected = [[90.0], [3600.0], [86_400.0], [30.0]]
    assert_array_equal(KernelInputs("none").fit_transform(spans), expected)


def test_words_of_a_list():
    assert listed(["a"]) == "'a'"
    assert listed(list("abcde")) == "'a', 'b', 'c', 'd' and 'e'"
    assert listed(list("abcdef")) == "'a', 'b', 'c', 'd', 'e' and 1 more"


def test_range_is_scikit_learns_scaler(rng):
    X = rng.normal(size=(200, 3)) * [1.0, 1e-3, 1e6] + 5
    expected = MinMaxScaler((-1, 1)).fit_transform(X)
    assert_allclose(KernelInputs("range").fit_transform(X), expected, rtol=1e-9, atol=1e-12)
