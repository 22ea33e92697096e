"""Learning within a budget from any table: columns, widths, outputs and averages chosen."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.model_selection import KFold, ShuffleSplit

import imparo
from imparo import AutoClassifier, AutoRegressor, NystromRegressor
from imparo.data.sources import ArraySource
from imparo.estimators import auto_search, auto_widths
from imparo.estimators.auto_average import Average, averaged
from imparo.estimators.auto_trials import Best
from imparo.estimators.inputs import scaled_outputs
from imparo.estimators.map_search import held_out_predictions
from imparo.kernels import Gaussian, Matern
from imparo.preparation import KernelInputs
from test_auto import comparable

# With these, and a clock that stands still, nothing is left to chance or to time.
FIXED = {"kernel": "gaussian", "sigma": "median", "random_state": 0}


@pytest.fixture
def no_clock(monkeypatch):
    """Time stands still: fits end when nothing more is worth trying."""
    monkeypatch.setattr("time.monotonic", lambda: 0.0)


@pytest.fixture
def households(rng):
    """Columns of numbers, text, dates and flags, with gaps in some, and an output."""
    n = 200
    first, days = np.datetime64("2020-01-01", "us"), rng.integers(0, 700, n)
    columns = {
        "income": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n)),
        "city": rng.choice(["Rome", "Oslo", "Bonn"], n).astype(object),
        "moved": first + days * np.timedelta64(86_400_000_000, "us"),
        "owner": rng.random(n) < 0.5,
    }
    y = np.sin(days / 58) + (columns["city"] == "Rome") + np.nan_to_num(columns["income"]) / 20
    columns["city"][::17] = None
    return columns, y + 0.05 * rng.normal(size=n)


def as_pandas(columns):
    return pd.DataFrame(columns)


def as_polars(columns):
    return pl.DataFrame({name: _plain(values) for name, values in columns.items()})


def as_objects(columns):
    table = np.empty((len(columns["city"]), len(columns)), dtype=object)
    for j, values in enumerate(columns.values()):
        table[:, j] = values.tolist()
    return table


def _plain(values):
    return values.tolist() if values.dtype == object else values


@pytest.fixture
def waves(rng):
    """Rows of which two columns count and two do not."""
    X = rng.normal(size=(300, 4))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 2] + 0.05 * rng.normal(size=300)


def by_hand(member, X):
    """Return what a member of a model predicts, from its parts."""
    rows = np.asarray(X) if member.inputs is None else member.inputs.transform(X)
    F = member.kernel(rows, member.centers) @ member.coef + member.intercept
    return F if member.target is None else member.target.mean(F)


# Tables.


@pytest.mark.parametrize("make", [AutoRegressor, AutoClassifier])
def test_a_table_is_the_same_in_every_form(households, no_clock, make):
    columns, y = households
    y = y > np.median(y) if make is AutoClassifier else y
    found = []
    for form in (as_pandas, as_polars, as_objects):
        model, X = make(**FIXED).fit(form(columns), y), form(columns)
        found.append(model.predict(X))
        assert model.score(X, y) > 0.9
        assert model.inputs_.kinds_ == ["number", "text", "date", "number"]
    assert_array_equal(found[1], found[0])
    assert_array_equal(found[2], found[0])


def test_a_table_is_prepared_and_fitted_as_by_hand(households, no_clock):
    """A Nyström model of the same centers, width and penalty on rows of KernelInputs."""
    frame, y = as_pandas(households[0]), households[1]
    model = AutoRegressor(**FIXED).fit(frame, y)
    rows = KernelInputs().fit_transform(frame)
    assert_array_equal(model.inputs_.transform(frame), rows)
    assert_array_equal(model.inputs_.pipeline_.transform(frame), rows)
    same = NystromRegressor(
        "gaussian", sigma=model.sigma_, penalty=model.penalty_, centers=model.centers_,
        n_centers=len(model.centers_), intercept=True,
    )  # fmt: skip
    assert [member.share for member in model.members_] == [1.0]
    assert_allclose(model.predict(frame), same.fit(rows, y).predict(rows), atol=1e-5)


def test_new_categories_and_new_gaps_are_predicted(households):
    frame, y = as_pandas(households[0]), households[1]
    model = AutoRegressor(budget=2, random_state=0).fit(frame, y)
    new = frame[:4].copy()
    new.loc[0, "city"] = "Paris"
    new["moved"] = new["moved"].where(new.index != 1)
    new["owner"] = new["owner"].astype(object).where(new.index != 2, None)
    predicted, before = model.predict(new), model.predict(frame[:4])
    assert np.isfinite(predicted).all()
    assert predicted[3] == pytest.approx(before[3])
    assert (predicted[:3] >= y.min() - np.ptp(y)).all()
    assert (predicted[:3] <= y.max() + np.ptp(y)).all()


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_other_columns_than_in_fit_are_refused(households):
    frame, y = as_pandas(households[0]), households[1]
    model = AutoRegressor(**FIXED, budget=1).fit(frame, y)
    for other, match in (
        (frame.drop(columns="city"), "feature names"),
        (frame[frame.columns[::-1]], "feature names"),
        (frame.to_numpy()[:, :3], "3 features, but .* expecting 4 features"),
        (frame.assign(city=1.0), "'city' was of kind text in fit and is of kind number now"),
        (frame.assign(income=np.inf), "infinite"),
    ):
        with pytest.raises(ValueError, match=match):
            model.predict(other)


def test_units_and_origins_of_columns_do_not_count(waves, no_clock):
    X, y = waves
    moved = X * [1e6, 1, 1e-6, 1] + [3e6, 0, 0, -50]
    one = AutoRegressor(**FIXED).fit(X, y).predict(X)
    other = AutoRegressor(**FIXED).fit(moved, y).predict(moved)
    assert_allclose(other, one, atol=1e-6 * np.ptp(y))


def test_units_do_not_count_where_everything_is_learned(waves, no_clock):
    """Powers of two change no digit, so that the two searches go the same way."""
    X, y = waves[0][:100], waves[1][:100]
    scaled = X * [2.0**20, 1, 2.0**-20, 4]
    one, other = (AutoRegressor("gaussian", random_state=0).fit(Z, y) for Z in (X, scaled))
    assert [t.note for t in other.record_] == [t.note for t in one.record_]
    assert_allclose(other.predict(scaled), one.predict(X), rtol=1e-9)


@pytest.mark.parametrize("inputs", ["standard", "robust", "range", "quantile", "none"])
def test_inputs_that_are_asked_for_are_used(households, inputs):
    frame, y = as_pandas(households[0]), households[1]
    model = AutoRegressor(inputs=inputs, budget=0.5, random_state=0).fit(frame, y)
    assert model.inputs_.numbers == inputs
    assert {t.inputs for t in model.record_ if t.method != "average"} == {inputs}
    expected = KernelInputs(inputs).fit_transform(frame)
    assert_array_equal(model.inputs_.transform(frame), expected)


def test_a_kernel_that_is_asked_for_is_used(waves):
    model = AutoRegressor(Matern(1.5), budget=1, random_state=0).fit(*waves)
    assert {t.kernel for t in model.record_ if t.method != "average"} == {"Matern 3/2"}


def test_kernels_are_compared(waves, no_clock):
    X, y = waves
    model = AutoRegressor(random_state=0).fit(X[:80], y[:80])
    names = {t.kernel for t in model.record_}
    assert {"Gaussian", "Matern 1/2", "Matern 3/2", "Laplacian"} <= names


def test_a_rough_function_has_a_rough_kernel(rng, no_clock):
    """Steps along the axes: a Gaussian kernel rings, that of absolute distances does not."""
    X = rng.uniform(-1, 1, size=(200, 2))
    y = np.floor(3 * X[:, 0]) + np.floor(3 * X[:, 1]) + 0.05 * rng.normal(size=200)
    model = AutoRegressor(random_state=0).fit(X, y)
    assert not isinstance(model.kernel_, Gaussian)


# Columns that are left as they are.


@pytest.fixture
def odd(rng):
    """Numbers, with a flag, a constant and a copy among the columns."""
    X = rng.normal(size=(200, 5))
    X[:, 1], X[:, 2], X[:, 3] = rng.integers(0, 2, 200), 5.0, X[:, 0]
    return X, np.sin(X[:, 0]) + X[:, 1]


def as_frame(X):
    return pd.DataFrame(X, columns=list("abcde"))


FORMS = pytest.mark.parametrize(
    "form", [np.array, as_frame, np.ndarray.tolist, sparse.csr_array]
)


@FORMS
def test_a_given_width_is_in_the_units_of_x(odd, form):
    """Flags, constants, copies and the order of columns stay: distances are those of X."""
    X, y = odd
    model = AutoRegressor("gaussian", sigma=2.0, budget=1, random_state=0).fit(form(X), y)
    assert not hasattr(model, "relevance_")
    assert not hasattr(model, "unused_")
    assert {t.sigma for t in model.record_ if t.method != "average"} == {2.0}
    same = NystromRegressor(
        "gaussian", sigma=2.0, penalty=model.penalty_, centers=model.centers_,
        n_centers=model.centers_.shape[0], intercept=True,
    )  # fmt: skip
    assert len(model.members_) == 1
    expected = same.fit(form(X), y).predict(form(X))
    assert_allclose(model.predict(form(X)), expected, atol=1e-4)


@FORMS
def test_given_centers_are_in_the_units_of_x(odd, form):
    X, y = odd
    settings = {"centers": X[:50], "budget": 1, "random_state": 0}
    model = AutoRegressor("gaussian", **settings).fit(form(X), y)
    centers = model.centers_
    for center in centers.toarray() if sparse.issparse(centers) else centers:
        assert (center == X).all(axis=1).any()
    assert model.score(form(X), y) > 0.99


@FORMS
def test_a_kernel_with_a_width_for_every_column_has_them_in_order(odd, form):
    X, y = odd
    kernel = Gaussian((1.0, 1.0, 1.0, 1.0, 1e6))
    model = AutoRegressor(kernel, budget=1, random_state=0).fit(form(X), y)
    other = X.copy()
    other[:, 4] = other[::-1, 4]  # of no weight at its width
    assert_allclose(model.predict(form(other)), model.predict(form(X)), atol=1e-6)


def test_a_given_width_and_a_table_of_text(households):
    frame, y = as_pandas(households[0]), households[1]
    model = AutoRegressor("gaussian", sigma=[3.0, 10.0], budget=1, random_state=0)
    assert model.fit(frame, y).sigma_ in (3.0, 10.0)
    assert model.inputs_.numbers == "none"
    assert np.isfinite(model.predict(frame)).all()


# Columns that count.


def test_columns_that_do_not_count_are_named(rng, no_clock):
    X = rng.normal(size=(300, 4))
    y = np.sin(2 * X[:, 0]) + np.cos(2 * X[:, 2]) + 0.05 * rng.normal(size=300)
    names = ["wave", "noise", "other wave", "more noise", "always", "wave again"]
    frame = pd.DataFrame(np.column_stack([X, np.ones(300), 3 * X[:, 0] - 1]), columns=names)
    model = AutoRegressor("gaussian", sigma="per-feature", random_state=0).fit(frame, y)
    assert model.unused_ == ["noise", "more noise", "always", "wave again"]
    assert model.relevance_.shape == (6,)
    assert model.relevance_.sum() == pytest.approx(1)
    assert_array_equal(model.relevance_[[1, 3, 4, 5]], 0)
    assert (model.relevance_[[0, 2]] > 0.1).all()


def test_relevance_is_that_of_columns_of_the_table(rng, no_clock):
    """A category, which turns a wave around, and the wave; dates and numbers of no use."""
    n = 200
    city, size = rng.choice(["Rome", "Oslo", "Bonn"], n), rng.normal(size=n)
    days = rng.integers(0, 1000, n) * np.timedelta64(1, "D")
    frame = pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "city": city,
            "moved": np.datetime64("2020-01-01", "us") + days,
            "size": size,
        }
    )
    y = np.sin(2 * size) * np.where(city == "Rome", 1, -1) + 0.05 * rng.normal(size=n)
    model = AutoRegressor("gaussian", sigma="per-feature", random_state=0).fit(frame, y)
    relevance = dict(zip(frame.columns, model.relevance_, strict=True))
    assert len(model.inputs_.sources_) > len(relevance) == 4
    assert sum(relevance.values()) == pytest.approx(1)
    assert relevance["city"] + relevance["size"] > 0.9
    assert min(relevance["city"], relevance["size"]) > max(
        relevance["noise"], relevance["moved"]
    )
    assert not {"city", "size"} & set(model.unused_)
    assert all(relevance[name] == 0 for name in model.unused_)


def test_relevance_of_another_fit_is_forgotten(waves):
    X, y = waves
    model = AutoRegressor("gaussian", sigma="per-feature", budget=1, random_state=0).fit(X, y)
    assert len(model.relevance_) == 4
    model.set_params(sigma=1.0).fit(X, y)
    assert not hasattr(model, "relevance_")
    assert not hasattr(model, "unused_")


# Widths.


@pytest.mark.parametrize("make", [AutoRegressor, AutoClassifier])
def test_learned_is_one_width(waves, make):
    X, y = waves
    y = y > 0 if make is AutoClassifier else y
    model = make("gaussian", sigma="learned", budget=2, random_state=0).fit(X * 1000, y)
    assert isinstance(model.sigma_, float)
    assert all(isinstance(member.kernel.sigma, float) for member in model.members_)
    # Rows are prepared, and the width is not in the units of X.
    assert 0.1 < model.sigma_ < 100
    assert model.score(X * 1000, y) > 0.9


@pytest.mark.parametrize("seed", [0, 1])
def test_per_feature_is_a_width_for_every_column(no_clock, seed):
    """Where one width would do as well, too."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 3))
    y = np.sin(X.sum(axis=1)) + 0.3 * rng.normal(size=120)
    model = AutoRegressor("gaussian", sigma="per-feature", random_state=0).fit(X, y)
    assert len(model.sigma_) == 3
    assert all(len(member.kernel.sigma) == 3 for member in model.members_)


@pytest.mark.parametrize("sigma", ["learned", "per-feature"])
@pytest.mark.parametrize("kernel", ["linear", "polynomial", Gaussian(2.0)])
def test_kernels_without_a_width_to_learn(waves, kernel, sigma):
    with pytest.raises(ValueError, match=r"has no effect|can be learned"):
        AutoRegressor(kernel, sigma=sigma).fit(*waves)


def test_widths_are_learned_without_the_rows_that_judge(rng, monkeypatch):
    X = rng.normal(size=(10_500, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=len(X))
    learn, split, seen, held = (
        auto_widths.learn_widths, auto_search.Search._make_splits, [], [],
    )  # fmt: skip

    def watched(kernel, rows, *arguments, **settings):
        seen.append(rows[:, 0])
        return learn(kernel, rows, *arguments, **settings)

    def kept(search, *arguments):
        splits = split(search, *arguments)
        held.extend(X[part, 0] for _, part in splits)
        return splits

    monkeypatch.setattr(auto_widths, "learn_widths", watched)
    monkeypatch.setattr(auto_search.Search, "_make_splits", kept)
    AutoRegressor("gaussian", inputs="none", budget=4, random_state=0).fit(X, y)
    assert len(held) == 1
    assert len(seen) > 0
    for rows in seen:
        assert np.isin(rows, X[:, 0]).all()
        assert not np.isin(rows, held[0]).any()


def test_widths_are_learned_from_the_same_rows_once(waves, no_clock):
    X, y = waves
    model = AutoRegressor("gaussian", sigma="per-feature", random_state=0).fit(X, y)
    again = [t.sigma for t in model.record_ if "other rows" in t.note]
    assert len(set(again)) == len(again)


def test_an_interruption_while_widths_are_learned(waves, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(auto_widths, "learn_widths", interrupted)
    model = AutoRegressor(budget=100, random_state=0).fit(*waves)
    assert model.stopped_ == "interrupted"
    assert np.isfinite(model.predict(waves[0])).all()


def test_widths_that_cannot_be_learned_do_no_harm(waves, monkeypatch):
    def failing(*_, **__):
        raise ValueError("the kernel matrix is not positive definite")

    monkeypatch.setattr(auto_widths, "learn_widths", failing)
    model = AutoRegressor(budget=1, random_state=0).fit(*waves)
    assert model.score(*waves) > 0.9
    assert not hasattr(model, "relevance_")


# Outputs.


@pytest.fixture
def incomes(rng):
    """Outputs whose logarithms are a function of x and normal noise."""
    X = rng.uniform(-2, 2, size=(1000, 2))
    return X, np.exp(2 * np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=1000))


def test_skewed_outputs_are_transformed(incomes, rng):
    X, y = incomes
    settings = {"kernel": "gaussian", "budget": 4, "random_state": 0}
    model = AutoRegressor(**settings).fit(X, y)
    plain = AutoRegressor(**settings, target="none").fit(X, y)
    assert model.target_ in ("log", "yeo-johnson")
    assert plain.target_ == "none"
    fresh = rng.uniform(-2, 2, size=(20_000, 2))
    # Squared errors ask for the mean, which is above the median by exp(0.5²/2).
    mean = np.exp(2 * np.sin(2 * fresh[:, 0]) + 0.125)
    one, other = (np.sqrt(np.mean((m.predict(fresh) - mean) ** 2)) for m in (model, plain))
    assert one <= other
    assert model.predict(fresh).mean() == pytest.approx(mean.mean(), rel=0.05)


def test_symmetric_outputs_are_left_as_they_are(waves):
    model = AutoRegressor("gaussian", budget=1, random_state=0).fit(*waves)
    assert {t.target for t in model.record_} == {"none"}


@pytest.mark.parametrize("sigma", ["auto", "median", 2.0])
@pytest.mark.parametrize("target", ["log", "yeo-johnson"])
def test_a_target_that_is_asked_for_is_used(waves, target, sigma):
    """Where outputs as they are would do better, too."""
    X, y = waves[0], 2 + waves[0][:, 0]
    y = y - y.min() + 0.01
    model = AutoRegressor("gaussian", sigma=sigma, target=target, budget=1, random_state=0)
    model.fit(X, y)
    assert model.target_ == target
    assert {member.target.kind for member in model.members_} == {target}


@pytest.mark.parametrize("budget", [1e-6, 0.1, 0.2, 0.3, 0.4, 0.5])
def test_a_target_and_little_time(incomes, budget):
    X, y = incomes[0][:300], incomes[1][:300]
    model = AutoRegressor(target="log", budget=budget, random_state=0).fit(X, y)
    assert model.target_ == "log"
    assert (model.predict(X) > 0).all()


def test_logarithms_of_outputs_below_zero_are_refused(waves):
    X, y = waves
    model = AutoRegressor(sigma=1.0, budget=1, random_state=0).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="above 0 and y goes down to -"):
        model.set_params(target="log").fit(X, y)
    assert_array_equal(model.predict(X), before)
    assert model.target_ == "none"


@pytest.mark.parametrize("target", ["none", "log", "yeo-johnson"])
def test_errors_are_in_the_units_of_the_outputs(incomes, no_clock, target):
    X, y = incomes[0][:300], incomes[1][:300]
    one = AutoRegressor(**FIXED, target=target).fit(X, y)
    other = AutoRegressor(**FIXED, target=target).fit(X, 1000 * y)
    assert one.target_ == other.target_ == target
    for a, b in zip(one.record_, other.record_, strict=True):
        assert b.error == pytest.approx(1000 * a.error, rel=1e-6)
    assert_allclose(other.predict(X), 1000 * one.predict(X), atol=1e-3 * np.ptp(y))


# Rows that judge.


PAIRS = [(np.arange(100, 300), np.arange(100)), (np.arange(200), np.arange(200, 300))]


@pytest.mark.parametrize(
    ("validation", "n_held"),
    [("auto", 300), ("last", 60), (0.25, 75), (3, 300), (KFold(4), 300), (PAIRS, 200)],
    ids=["auto", "last", "fraction", "folds", "splitter", "pairs"],
)
@pytest.mark.parametrize("sigma", ["median", "learned"])
def test_what_judges_can_be_chosen(waves, validation, n_held, sigma):
    model = AutoRegressor("gaussian", sigma=sigma, validation=validation, budget=1)
    model.fit(*waves)
    assert {t.n_held for t in comparable(model)} == {n_held}


def test_the_last_rows_judge_a_series(rng):
    t = np.linspace(0, 60, 1000)
    X = np.column_stack([np.sin(t), rng.normal(size=1000)])
    y = X[:, 0] + 0.1 * rng.normal(size=1000)
    order = rng.permutation(1000)
    settings = {**FIXED, "budget": 1}
    model = AutoRegressor(**settings).fit(X, y)
    assert model.validation_.startswith("the last 200 rows")
    assert {trial.n_held for trial in comparable(model)} == {200}
    shuffled = AutoRegressor(**settings).fit(X[order], y[order])
    assert shuffled.validation_ == "5-fold"


def test_rows_that_are_held_out_twice_are_not_averaged(incomes, always_averaged, no_clock):
    """There would be two predictions of them, and errors would not compare."""
    X, y = incomes[0][:150], incomes[1][:150]
    splits = ShuffleSplit(4, test_size=0.3, random_state=0)
    model = AutoRegressor("gaussian", sigma=[0.5, 1.0], validation=splits, random_state=0)
    model.fit(X, y)
    assert len(model.members_) == 1
    assert model.path_.best["error"] == min(t.error for t in comparable(model))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("validation", ["hold-out", "folds"])
def test_predictions_of_held_out_rows_are_those_of_separate_fits(waves, validation, intercept):
    X, y = waves
    parts = np.array_split(np.random.default_rng(2).permutation(300), 4)
    parts = parts[:1] if validation == "hold-out" else parts
    splits = [(np.setdiff1d(np.arange(300), part), part) for part in parts]
    Y = np.column_stack([y, 1 + y**2])
    model = NystromRegressor(
        sigma=1.5, penalty=[1e-4, 1e-3], n_centers=[20, 40], intercept=intercept,
        validation=splits, random_state=0,
    ).fit(X, Y)  # fmt: skip
    for penalty, m in ((1e-4, 40), (1e-3, 20)):
        rows, F = held_out_predictions(
            model.statistics_, ArraySource(X, X.dtype), penalty, m, intercept
        )
        assert sorted(rows) == sorted(np.concatenate(parts))
        expected = np.full(Y.shape, np.nan)
        for fitted, held in splits:
            alone = NystromRegressor(
                sigma=1.5, penalty=penalty, intercept=intercept, n_centers=m,
                centers=model.statistics_.map.centers[:m],
            ).fit(X[fitted], Y[fitted])  # fmt: skip
            expected[held] = alone.predict(X[held])
        # Outputs are scaled for the fit and, with an intercept, centered.
        scale, shift = scaled_outputs(Y, np.ones(300), intercept, Y.dtype)[1:]
        assert_allclose(F * scale + shift, expected[rows], atol=1e-6)


@pytest.mark.parametrize("kind", ["numbers", "logarithms", "classes", "weights"])
def test_the_error_of_a_model_is_that_of_its_held_out_predictions(incomes, monkeypatch, kind):
    """In the pool that averages are chosen from, whatever the score and the outputs."""
    X, y = incomes[0][:400], incomes[1][:400]
    make, settings, weight, seen = AutoRegressor, {"target": "none"}, None, []
    if kind == "logarithms":
        settings = {"target": "log"}
    if kind == "classes":
        make, settings, y = AutoClassifier, {}, np.digitize(y, [0.5, 2])
    if kind == "weights":
        weight = np.random.default_rng(3).integers(0, 3, 400)

    def watched(pool, Y, weight, error):
        for best in pool:
            held = np.isfinite(best.held).all(axis=1)
            seen.append(best.error)
            assert_array_equal(held, weight > 0)
            found = error(best.held[held].astype(float), Y[held], weight[held])
            assert found == pytest.approx(best.error, rel=1e-4)
        return averaged(pool, Y, weight, error)

    monkeypatch.setattr(auto_search, "averaged", watched)
    make("gaussian", budget=2, random_state=0, **settings).fit(X, y, weight)
    assert len(seen) > 1


# Averages.


def root_mean_square(F, Y, weight):
    return float(np.sqrt(np.average(np.mean((F - Y) ** 2, axis=1), weights=weight)))


def pool_of(predictions, Y, weight):
    """Return models that are known by their predictions of held-out rows, best first."""
    held = np.isfinite(predictions[0]).all(axis=1)
    found = [
        Best(
            root_mean_square(F[held], Y[held], weight[held]), None, None, "nystrom", len(Y),
            None, {}, None, F.astype(np.float32),
        )
        for F in predictions
    ]  # fmt: skip
    return sorted(found, key=lambda best: best.error)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000), size=st.integers(1, 4), outputs=st.integers(1, 2),
    spread=st.sampled_from([0.0, 0.1, 1.0]),
)  # fmt: skip
def test_an_average_is_a_weighted_mean_and_no_worse_than_the_best(seed, size, outputs, spread):
    rng = np.random.default_rng(seed)
    Y, weight = rng.normal(size=(20, outputs)), rng.uniform(0.1, 1, 20)
    common = 0.3 * rng.normal(size=(20, outputs))
    predictions = [Y + common + spread * rng.normal(size=Y.shape) for _ in range(size)]
    for F in predictions:
        F[:5] = np.nan  # rows that no split holds out
    pool = pool_of(predictions, Y, weight)
    Z, w = Y[5:], weight[5:]
    held = [np.asarray(best.held, float)[5:] for best in pool]
    found = averaged(pool, Y, weight, root_mean_square)
    if found is None:
        for F in held:  # there is no second model that helps
            assert root_mean_square((held[0] + F) / 2, Z, w) >= pool[0].error * (1 - 1e-6)
        return
    shares = {id(best): share for best, share in found.members}
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) > 0
    mean = sum(
        shares.get(id(best), 0.0) * F for best, F in zip(pool, held, strict=True)
    )  # fmt: skip
    assert found.error == pytest.approx(root_mean_square(mean, Z, w))
    assert found.error <= pool[0].error * (1 + 1e-6)
    assert found.members[0][0] is pool[0]
    pairs = [root_mean_square((held[0] + F) / 2, Z, w) for F in held]
    assert found.error <= min(pairs) * (1 + 1e-6)
    # No convex combination is better than the best of all, by least squares on the simplex.
    fits = [root_mean_square(_mixed(held, p), Z, w) for p in _simplex(size, 12)]
    assert min(fits) - 1e-9 <= found.error


def _mixed(held, shares):
    return sum(p * F for p, F in zip(shares, held, strict=True))


def _simplex(size, parts):
    """Return all shares of a pool that are multiples of 1/k, k up to some number of parts."""
    if size == 1:
        return [(1.0,)]
    found = []
    for k in range(1, parts + 1):
        counts = np.array(np.meshgrid(*[np.arange(k + 1)] * (size - 1))).reshape(size - 1, -1)
        rest = k - counts.sum(axis=0)
        found += [(*(c / k), r / k) for c, r in zip(counts.T, rest, strict=True) if r >= 0]
    return found


def test_the_average_of_two_opposite_errors_is_right():
    Y, error = np.zeros((10, 1)), np.linspace(1, 2, 10)[:, None]
    weight = np.ones(10)
    found = averaged(pool_of([Y + error, Y - error], Y, weight), Y, weight, root_mean_square)
    assert [share for _, share in found.members] == [0.5, 0.5]
    assert found.error == 0
    same = pool_of([Y + error, Y + error, Y + 2 * error], Y, weight)
    assert averaged(same, Y, weight, root_mean_square) is None


@pytest.fixture
def always_averaged(monkeypatch):
    """Averages are taken whatever their error: two thirds of the best, a third of the last."""

    def forced(pool, *_):
        return Average([(pool[0], 2 / 3), (pool[-1], 1 / 3)], 0.0)

    monkeypatch.setattr(auto_search, "averaged", forced)


@pytest.mark.parametrize("kind", ["numbers", "logarithms", "classes", "a width"])
def test_an_average_predicts_the_mean_of_its_members(
    households, always_averaged, no_clock, tmp_path, kind
):
    columns, y = households
    make, settings = AutoRegressor, {"kernel": "gaussian", "random_state": 0}
    if kind == "logarithms":
        y, settings["target"] = np.exp(y), "log"
    if kind == "classes":
        make, y = AutoClassifier, np.array(["low", "middle", "high"])[np.digitize(y, [2, 3])]
    frame = as_pandas(columns)
    if kind == "a width":
        settings["sigma"] = [1.0, 2.0]
        frame = frame[["income", "owner"]].fillna(40).astype(float)
    model = make(**settings).fit(frame, y)
    assert [member.share for member in model.members_] == pytest.approx([2 / 3, 1 / 3])
    one, other = model.members_
    assert (one.kernel, one.inputs) != (other.kernel, other.inputs)
    F = model.decision_function(frame) if kind == "classes" else model.predict(frame)
    first, second = (by_hand(member, frame).reshape(F.shape) for member in model.members_)
    assert not np.allclose(first, second, atol=1e-3)
    assert_allclose(F, (2 * first + second) / 3, atol=1e-4)
    imparo.save(model, tmp_path / "model")
    same = imparo.load(tmp_path / "model")
    assert_array_equal(same.predict(frame), model.predict(frame))
    assert [t.error for t in same.record_] == [t.error for t in model.record_]
    assert len(same.members_) == 2


def test_the_attributes_of_an_average_are_those_of_its_first_member(
    waves, no_clock, monkeypatch
):
    """The best model may be none of them: exact fits, for instance, are never averaged."""

    def forced(pool, *_):
        return Average([(pool[1], 0.5), (pool[-1], 0.5)], 0.0)

    monkeypatch.setattr(auto_search, "averaged", forced)
    X, y = waves[0][:150], waves[1][:150]
    model = AutoRegressor("gaussian", sigma=[0.5, 1.0, 2.0], random_state=0).fit(X, y)
    first = model.members_[0]
    assert len(model.members_) == 2
    assert model.centers_ is first.centers
    assert (model.kernel_, model.sigma_) == (first.kernel, first.kernel.sigma)
    assert len(model.dual_coef_) == len(model.centers_)
    rows = X if model.inputs_ is None else model.inputs_.transform(X)
    F = model.kernel_(rows, model.centers_) @ model.dual_coef_ + model.intercept_
    assert_allclose(F, by_hand(first, X)[:, 0])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_never_worse_than_the_best_that_was_tried(incomes, monkeypatch, seed):
    X, y = incomes[0][:300], incomes[1][:300]
    pools = []

    def watched(pool, *arguments):
        pools.append((pool, arguments[0]))
        return averaged(pool, *arguments)

    monkeypatch.setattr(auto_search, "averaged", watched)
    model = AutoRegressor("gaussian", budget=1.5, random_state=seed).fit(X, y)
    trials = comparable(model)
    best = min((t for t in trials if t.method != "average"), key=lambda t: t.error)
    if len(model.members_) == 1:
        found = best.kernel, best.sigma, best.penalty, best.n_centers, best.inputs, best.target
        assert found == (
            "Gaussian", model.sigma_, model.penalty_, model.n_centers_, model.inputs_.numbers,
            model.target_,
        )  # fmt: skip
        return
    # Errors of the average and of the best model, from what they predict of held-out rows.
    pool, Y = pools[-1]
    shares = {id(member.centers): member.share for member in model.members_}
    held = {id(b.values["centers_"]): b.held.astype(float) for b in pool}
    mean = sum(share * held[key] for key, share in shares.items())
    ratio = np.sqrt(np.mean((mean - Y) ** 2) / np.mean((pool[0].held - Y) ** 2))
    assert ratio <= 1
    single = min(t.error for t in trials if t.method == "nystrom")
    average = model.record_[-1]
    assert average.method == "average"
    assert average.error == pytest.approx(ratio * single, rel=1e-4)
    assert average.error <= best.error


def test_a_model_without_errors_is_the_last(rng, monkeypatch):
    """What cannot be better is not tried for the rest of the budget."""
    X = rng.normal(size=(60, 2))
    X[:30] += 20
    count, trial = [], auto_search.Search._trial

    def counted(search, *arguments, **settings):
        count.append(1)
        if len(count) > 150:
            raise KeyboardInterrupt
        return trial(search, *arguments, **settings)

    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    monkeypatch.setattr(auto_search.Search, "_trial", counted)
    model = AutoClassifier("gaussian", random_state=0).fit(X, np.arange(60) < 30)
    assert min(t.error for t in comparable(model)) == 0
    assert model.stopped_ != "interrupted"


# Rows of every kind.


def test_rows_of_weight_zero_are_as_none(households, no_clock):
    """Columns are prepared without them, too."""
    columns, y = households
    frame = as_pandas(columns)
    odd = frame[:60].assign(income=1e9, city="Atlantis")
    both = pd.concat([odd, frame], ignore_index=True)
    weight = np.r_[np.zeros(60), np.ones(len(y))]
    model = AutoRegressor(**FIXED).fit(both, np.r_[np.full(60, 1e6), y], weight)
    expected = KernelInputs().fit(frame).transform(frame)
    assert_allclose(model.inputs_.transform(frame), expected, atol=1e-12)
    assert np.sqrt(np.mean((model.predict(frame) - y) ** 2)) < 0.3 * y.std()


def test_single_precision_stays(waves):
    X, y = waves[0].astype(np.float32), waves[1]
    model = AutoRegressor(budget=1, random_state=0).fit(X, y)
    for member in model.members_:
        assert member.coef.dtype == member.centers.dtype == np.float32
    assert model.predict(X).dtype == np.float32
    assert model.score(X, y) > 0.95
    asked = AutoRegressor(budget=1, random_state=0, dtype="float32").fit(waves[0], y)
    assert asked.dual_coef_.dtype == np.float32


def test_sparse_rows(rng):
    X = sparse.random_array((400, 30), density=0.2, rng=rng, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel()
    model = AutoRegressor(budget=2, random_state=0).fit(X, y)
    assert sparse.issparse(model.centers_)
    assert model.score(X, y) > 0.8
    classes = AutoClassifier(budget=2, random_state=0).fit(X, y > np.median(y))
    assert classes.score(X, y > np.median(y)) > 0.8


@pytest.mark.parametrize("form", ["map", "blocks"])
def test_maps_and_blocks_are_prepared_as_they_are_read(waves, tmp_path, no_clock, form):
    X, y = waves[0] * 1000, waves[1]
    if form == "map":
        rows = np.memmap(tmp_path / "X", float, "w+", shape=X.shape)
        rows[:] = X
        model = AutoRegressor(**FIXED).fit(rows, y)
    else:
        blocks = [(X[i : i + 70], y[i : i + 70]) for i in range(0, 300, 70)]
        model = AutoRegressor(**FIXED).fit(blocks)
    expected = AutoRegressor(**FIXED).fit(X, y)
    assert model.inputs_ is not None
    assert_allclose(model.predict(X), expected.predict(X), atol=1e-6)


def test_classes_with_names_and_several_labels(waves):
    X, y = waves
    names = np.where(y > 0, "up", "down")
    model = AutoClassifier(budget=1, random_state=0).fit(X, names)
    assert set(model.predict(X)) == {"up", "down"}
    assert model.score(X, names) > 0.9
    labels = np.column_stack([y > 0, X[:, 1] > 0]).astype(int)
    several = AutoClassifier(budget=1, random_state=0).fit(X, labels)
    assert several.predict(X).shape == (300, 2)
    assert np.mean(several.predict(X) == labels) > 0.9


def test_several_skewed_outputs(incomes):
    X, y = incomes[0][:400], incomes[1][:400]
    Y = np.column_stack([y, 1000 / y])
    model = AutoRegressor("gaussian", target="log", budget=1, random_state=0).fit(X, Y)
    assert model.predict(X).shape == (400, 2)
    assert np.corrcoef(np.log(model.predict(X)[:, 1]), np.log(Y[:, 1]))[0, 1] > 0.9


def test_few_rows_of_a_table():
    frame = pd.DataFrame({"city": ["Rome", "Oslo"], "day": pd.to_datetime(["2020", "2021"])})
    model = AutoRegressor(budget=2, random_state=0).fit(frame, [0.0, 1.0])
    assert np.isfinite(model.predict(frame)).all()
    classes = AutoClassifier(budget=2, random_state=0).fit(frame, ["a", "b"])
    assert set(classes.predict(frame)) <= {"a", "b"}


@pytest.mark.parametrize("target", ["auto", "log", "yeo-johnson"])
def test_constant_outputs(waves, target):
    model = AutoRegressor(budget=1, target=target, random_state=0).fit(
        waves[0], np.full(300, 7)
    )
    assert_allclose(model.predict(waves[0]), 7, rtol=1e-6)


def test_columns_without_values_are_left_out(waves):
    X, y = waves
    empty = np.column_stack([X, np.full(300, np.nan)])
    model = AutoRegressor(budget=1, random_state=0).fit(empty, y)
    assert model.n_features_in_ == 5
    assert 4 not in model.inputs_.sources_
    assert model.score(empty, y) > 0.9
    constant = AutoRegressor(budget=1, random_state=0).fit(np.ones((300, 2)), y)
    assert_allclose(constant.predict(np.ones((3, 2))), y.mean(), atol=1e-6)


def test_gaps_are_filled_with_little_memory_too(rng):
    X = rng.normal(size=(5000, 8))
    y = np.sin(2 * X[:, 0])
    X[::7, 1] = np.nan
    model = AutoRegressor("gaussian", memory="1MB", budget=1, random_state=0).fit(X, y)
    assert model.inputs_ is not None
    assert model.score(X, y) > 0.1


def test_one_row_of_weight(waves):
    with pytest.raises(ValueError, match="1 sample"):
        AutoRegressor().fit(*waves, np.arange(300) == 0)


@pytest.mark.parametrize("budget", [1e-9, 0.5])
def test_little_time_is_enough_for_a_model(households, budget):
    frame, y = as_pandas(households[0]), households[1]
    model = AutoRegressor(budget=budget, random_state=0).fit(frame, y)
    assert np.isfinite(model.predict(frame)).all()
    assert model.record_[0].note.startswith("first model")
    classes = AutoClassifier(budget=budget, random_state=0).fit(frame, y > 2)
    assert set(classes.predict(frame)) <= {True, False}


# What is refused.


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"inputs": "best"}, "inputs='best' must be one of 'auto', 'standard'"),
        ({"inputs": None}, "inputs=None must be one of"),
        ({"inputs": ["standard"]}, "must be one of"),
        ({"target": "sqrt"}, "target='sqrt' must be one of 'auto', 'none'"),
        ({"target": None}, "target=None must be one of"),
        ({"sigma": "best"}, "sigma='best' is not known"),
        ({"sigma": -1.0}, "positive number"),
        ({"sigma": np.nan}, "positive number"),
        ({"sigma": []}, "not a width"),
        ({"sigma": None}, "sigma=None"),
        ({"kernel": "best"}, "kernel='best' is not known"),
        ({"dtype": "int"}, "float32, float64 or None"),
        ({"validation": "loo"}, "validation='loo' is not known"),
        ({"validation": 1.5}, "a fraction between 0 and 1 or a number of folds"),
    ],
    ids=str,
)
def test_bad_parameters_are_one_sentence_and_change_nothing(waves, settings, match):
    X, y = waves
    model = AutoRegressor(sigma=1.0, budget=1, random_state=0).fit(X[:50], y[:50])
    before, known = model.predict(X), vars(model).copy()
    with pytest.raises(ValueError, match=match) as caught:
        model.set_params(**settings).fit(X, y)
    assert "\n" not in str(caught.value)
    assert vars(model).keys() == known.keys()
    assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda X, y: (X, np.where(y > 1, np.nan, y)), "NaN"),
        (lambda X, y: (X, y.astype(str)), "y holds text"),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
        (lambda X, y: (np.where(X > 2, np.inf, X), y), "infini"),
        (lambda X, y: (np.full_like(X, np.nan), y), "every cell is missing"),
        (lambda X, y: (X, None), "requires y"),
    ],
    ids=["gaps in y", "text in y", "a row too many", "infinite", "no value", "no y"],
)
def test_bad_rows_are_one_sentence_and_change_nothing(waves, change, match):
    X, y = waves
    model = AutoRegressor(sigma=1.0, budget=1, random_state=0).fit(X[:50], y[:50])
    before = model.predict(X)
    with pytest.raises(ValueError, match=match):
        model.fit(*change(X, y))
    assert_array_equal(model.predict(X), before)


def test_one_class_is_refused(waves):
    with pytest.raises(ValueError, match="one class only"):
        AutoClassifier(budget=1).fit(waves[0], np.ones(300))


def test_mixed_columns_are_refused(waves):
    mixed = waves[0].astype(object)
    mixed[3, 1], mixed[4, 2] = "three", datetime.date(2020, 1, 1)
    with pytest.raises(ValueError, match="'x1' holds numbers and text"):
        AutoRegressor(budget=1).fit(mixed, waves[1])
