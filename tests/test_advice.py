"""Advice: options within their limits, and advice that can be followed."""

import json
import math
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from scipy import sparse

import imparo
from imparo.estimators.grids import halves
from imparo.kernels import Gaussian, Spline, median_width
from imparo.theory import Cost, Machine, advise, compare, this_machine
from imparo.theory.costs import (
    Problem,
    as_bytes,
    as_time,
    entry_seconds,
    exact_cost,
    feature_seconds,
    nystrom_cost,
    nytro_cost,
    random_feature_cost,
)
from imparo.theory.options import CENTER_PENALTIES, STEPS, Option, choose, options

METHODS = ("exact", "nystrom", "nytro", "random features")


def machine(speed=1e9):
    """Return a machine of one speed at all sizes."""
    kinds = {field.name: getattr(this_machine(), field.name) for field in fields(Machine)}
    return Machine(**{
        name: tuple(speed for _ in value) if isinstance(value, tuple) else value
        for name, value in kinds.items()
    })  # fmt: skip


def problem(**changes):
    given = {
        "n": 10_000, "d": 5, "outputs": 1, "classes": False, "itemsize": 8, "entry": 1e-8,
        "feature": 1e-8, "rank": 0.9,
    }  # fmt: skip
    return Problem(**(given | changes))


# Costs.


COSTS = {
    "exact": lambda p, m, machine: exact_cost(p, 100, machine),
    "nystrom": lambda p, m, machine: nystrom_cost(p, m, 40, halves(m), machine),
    "nytro": lambda p, m, machine: nytro_cost(p, m, STEPS, machine),
    "random features": lambda p, m, machine: random_feature_cost(p, m, 40, halves(m), machine),
}


@pytest.mark.parametrize("method", METHODS)
def test_costs_grow_with_the_problem(method):
    def cost(m=256, speed=1e9, **changes):
        found = COSTS[method](problem(**changes), m, machine(speed))
        assert 0 < found.seconds < math.inf
        assert 0 < found.bytes < math.inf
        return found

    base = cost()
    assert cost(n=20_000).seconds > base.seconds
    assert cost(n=20_000).bytes >= base.bytes
    assert cost(speed=1e8).seconds > base.seconds
    assert cost(outputs=10).seconds > base.seconds
    assert cost(entry=1e-6, feature=1e-6).seconds > base.seconds
    if method != "exact":
        sizes = [cost(m=m) for m in (2, 16, 128, 1024, 8192)]
        assert all(a.seconds < b.seconds for a, b in pairwise(sizes))
        assert sizes[0].bytes < sizes[-1].bytes
    if method in ("nystrom", "random features"):
        assert cost(classes=True).seconds > base.seconds


def test_speeds_are_measured_once_and_read_between_sizes():
    found = this_machine()
    assert found is this_machine()
    for field in fields(Machine):
        speeds = getattr(found, field.name)
        if isinstance(speeds, tuple):
            assert all(0 < speed < math.inf for speed in speeds)
            between = [found.rate(field.name, size) for size in (1, 64, 100, 1000, 10**6)]
            assert min(speeds) * 0.999 <= min(between) <= max(between) <= max(speeds) * 1.001
    flat = machine(2e9)
    assert flat.rate("gram", 300) == pytest.approx(2e9)


def test_kernel_values_and_features_are_timed(rng):
    X = rng.normal(size=(100, 3))
    assert 0 < entry_seconds(Gaussian(1.0), X) < math.inf
    assert 0 < feature_seconds(Gaussian(1.0), X) < math.inf
    assert feature_seconds(imparo.kernels.Polynomial(2), X) == math.inf


@settings(deadline=None, max_examples=200)
@given(st.floats(1, 1e14))
@example(999.9)
@example(999_999.0)
def test_amounts_are_written_as_people_do(amount):
    # At any size: no powers of ten, and no more than 1000 of a unit.
    text, unit = as_bytes(amount).split()
    assert unit in ("B", "kB", "MB", "GB", "TB")
    assert "e" not in text
    factor = 1000.0 ** ("B", "kB", "MB", "GB", "TB").index(unit)
    assert float(text) * factor == pytest.approx(amount, rel=0.006)


@pytest.mark.parametrize(
    ("seconds", "unit"),
    [(0.25, "s"), (30.0, "s"), (90.0, "min"), (3599.0, "min"), (7200.0, "h"), (9e8, "h")],
)
def test_times_are_written_as_people_do(seconds, unit):
    text, found = as_time(seconds).split()
    assert found == unit
    assert "e" not in text
    number = float(text.replace(",", "")) * {"s": 1, "min": 60, "h": 3600}[unit]
    assert number == pytest.approx(seconds, rel=0.06)


# Options, and the choice among them.


def limits():
    """Return strategies for a problem, what it needs, and what is allowed."""
    return (
        st.builds(
            problem, n=st.integers(1, 10**6), d=st.integers(1, 100), outputs=st.integers(1, 10),
            classes=st.booleans(), rank=st.floats(0.01, 1),
            feature=st.sampled_from([1e-8, math.inf]),
        ),
        st.integers(1, 5000),
        st.integers(1, 400),
        st.floats(-5, 4),
        st.floats(3, 11),
    )  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(*limits())
def test_options_keep_to_the_limits(data, needed, steps, log_budget, log_memory):
    budget, memory = 10.0**log_budget, int(10.0**log_memory)
    found = options(data, needed, steps, budget, memory, machine())
    names = [option.method for option in found]
    # Only a kernel with random features has them as an option.
    assert names == list(METHODS[: 4 if math.isfinite(data.feature) else 3])
    for option in found:
        within = option.cost.seconds <= budget and option.cost.bytes <= memory
        assert option.fits == within
        assert option.size >= 1
        wanted = min(needed, data.n)
        if option.method == "exact":
            assert (option.size, option.enough) == (data.n, True)
        elif option.method == "random features":
            assert option.size % 2 == 0
            assert not option.enough or option.size >= wanted
        else:
            assert option.size <= wanted
            assert not option.enough or option.size == wanted
        if option.method == "nytro" and steps > STEPS:
            assert not option.enough
        if option.method == "nystrom" and not option.fits:
            assert option.size <= 16
        if option.method == "nystrom" and option.fits and not option.enough:
            # No more would do: sizes are even, and a cost may not change with every center.
            m = option.size + 4
            more = nystrom_cost(data, m, CENTER_PENALTIES, halves(m), machine())
            assert m > wanted or more.seconds > budget or more.bytes > memory
    _check_choice(found)


def _check_choice(found):
    chosen, reason = choose(found)
    assert chosen in found
    complete = [option for option in found if option.fits and option.enough]
    if complete:
        assert chosen in complete
        cheapest = min(complete, key=lambda option: option.cost.seconds)
        if "cheapest" in reason:
            assert chosen is cheapest
        if "no other" in reason:
            assert complete == [chosen]
        assert "do not allow" not in reason
        assert "nothing is within" not in reason
    elif any(option.fits for option in found):
        assert chosen.fits
        assert "do not allow" in reason
    else:
        assert "nothing is within the budget and memory" in reason


@settings(deadline=None, max_examples=100)
@given(*limits(), st.floats(1, 100), st.booleans())
def test_more_is_never_less(data, needed, steps, log_budget, log_memory, factor, in_time):
    budget, memory = 10.0**log_budget, int(10.0**log_memory)
    before = options(data, needed, steps, budget, memory, machine())
    if in_time:
        budget *= factor
    else:
        memory = int(memory * factor)
    after = options(data, needed, steps, budget, memory, machine())
    for few, many in zip(before, after, strict=True):
        assert many.size >= few.size
        assert many.fits >= few.fits
        assert many.enough >= few.enough


def option(method, seconds, fits=True, enough=True, size=100):
    return Option(method, size, Cost(seconds, 1e6), fits, enough)


@pytest.mark.parametrize(
    ("found", "method", "reason"),
    [
        # Nyström in case of doubt.
        ([option("exact", 0.9), option("nystrom", 1.0), option("nytro", 0.9)],
         "nystrom", "path comes at one price"),
        # What is clearly cheaper.
        ([option("exact", 0.1), option("nystrom", 1.0), option("nytro", 0.2)],
         "exact", "cheapest"),
        # Cheap, but too small.
        ([option("exact", 9.0, fits=False), option("nystrom", 1.0),
          option("nytro", 0.1, enough=False)], "nystrom", "path comes at one price"),
        # Only one is large enough.
        ([option("exact", 9.0, fits=False), option("nystrom", 5.0, enough=False),
          option("nytro", 1.0)], "nytro", "no other method"),
        # Two are, and Nyström is not: it is not the only one.
        ([option("exact", 2.0), option("nystrom", 5.0, enough=False), option("nytro", 1.0)],
         "nytro", "cheapest"),
        # None is: the largest, two random features for a center.
        ([option("exact", 9.0, fits=False), option("nystrom", 1.0, enough=False, size=50),
          option("nytro", 1.0, enough=False, size=90),
          option("random features", 1.0, enough=False, size=120)], "nytro", "do not allow"),
        # Nothing is possible.
        ([option("exact", 9.0, fits=False), option("nystrom", 5.0, fits=False, enough=False),
          option("nytro", 1.0, fits=False)], "nystrom", "nothing is within"),
    ],
)  # fmt: skip
def test_the_choice_and_its_reason(found, method, reason):
    chosen, why = choose(found)
    assert chosen.method == method
    assert reason in why
    _check_choice(found)


# Prediction and fit.


def test_a_fit_is_compared_with_what_was_expected():
    calls = []
    found = compare(Cost(seconds=2.0, bytes=1e6), lambda: calls.append(1))
    assert calls == [1]
    assert found.time_ratio == found.seconds / 2.0
    assert 0 < found.time_ratio < 1
    assert found.memory_ratio is None or found.memory_ratio > 0
    assert "expected 2 s" in str(found)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["time_ratio"] == found.time_ratio


def test_peak_memory_is_that_of_the_fit():
    size = 60_000_000
    found = compare(Cost(1.0, size), lambda: np.ones(size // 8).sum())
    if found.bytes is None:
        pytest.skip("this system does not tell peaks")
    # Pages and what the allocator keeps are a few megabytes.
    assert found.bytes == pytest.approx(size, rel=0.2)
    assert found.memory_ratio == pytest.approx(1, abs=0.1)
    assert "at the peak" in str(found)
    # A peak of the past is forgotten.
    assert compare(Cost(1.0, 1.0), lambda: None).bytes < size / 4


def test_an_error_of_the_fit_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        compare(Cost(1.0, 1.0), lambda: 1 / 0)


# Advice.


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(150, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=150)


@pytest.fixture(scope="module")
def advice(data):
    return advise(*data)


def findings(advice):
    """Return what does not depend on the speed of the machine."""
    return (
        advice.task, advice.n, advice.d, advice.kernel, advice.dimensions, advice.signal,
        advice.decay, advice.regime, advice.needed, advice.penalty, advice.iterations,
    )  # fmt: skip


def check(advice, n):
    """Check that an advice is complete and can be shown."""
    assert advice.n == n
    assert 1 <= advice.needed <= n
    assert 0 < advice.penalty < np.inf
    assert 0 <= advice.dimensions.effective.value <= n
    assert 0 <= advice.signal.explained <= 1
    assert advice.method in [option.method for option in advice.options]
    assert {advice.cost.seconds, advice.cost.bytes} <= {
        v for option in advice.options for v in (option.cost.seconds, option.cost.bytes)
    }
    plain = json.loads(json.dumps(advice.to_dict(), allow_nan=False))
    assert plain["method"] == advice.method
    assert str(advice.size) in str(advice).replace(",", "")
    assert advice.reason in str(advice)


def test_advice_on_a_smooth_function(data, advice):
    check(advice, 150)
    assert advice.task == "regression"
    # Noise of variance 0.01, with a standard error of √(2/120) = 13 %: three of them.
    assert advice.signal.noise.value == pytest.approx(0.01, rel=0.4)
    assert advice.signal.explained > 0.97
    assert advice.dimensions.effective.exact
    # The width is one of five about the median distance.
    multiple = advice.kernel.sigma / median_width(data[0])
    assert np.log2(multiple) in (-2, -1, 0, 1, 2)
    assert advice.iterations == math.ceil(1 / advice.penalty)
    assert advice.notes == ()
    assert advice.prescriptions
    model = advice.estimator(random_state=0).fit(*data)
    assert model.score(*data) > 0.95


def test_the_same_seed_gives_the_same_advice(data, advice, rng, monkeypatch):
    assert findings(advise(*data)) == findings(advice)
    monkeypatch.setattr("imparo.theory.advising._SAMPLE", 300)
    rows = 600
    X = rng.uniform(-2, 2, size=(rows, 1))
    y = np.sin(X[:, 0]) + rng.normal(size=rows)
    one, same, other = (
        advise(X, y, sigma=1.0, random_state=seed) for seed in (3, np.int64(3), 4)
    )
    assert findings(one) == findings(same)
    assert one.dimensions != other.dimensions
    for found in (one, other):
        check(found, rows)
        assert not found.dimensions.effective.exact
        assert "300 of 600 rows" in found.dimensions.effective.source
    # Both bars are of the same number.
    first, second = one.dimensions.effective, other.dimensions.effective
    assert max(first.low, second.low) < min(first.high, second.high)


@pytest.mark.parametrize(
    "kind",
    [
        lambda X: X.tolist(),
        lambda X: np.asfortranarray(X),
        lambda X: pd.DataFrame(X, columns=["a", "b"], index=np.arange(len(X))[::-1]),
        lambda X: pl.DataFrame(X, schema=["a", "b"]),
    ],
    ids=["list", "fortran", "pandas", "polars"],
)
def test_the_same_rows_in_other_containers(kind, data, advice):
    X, y = data
    frame = kind(X)
    module = type(frame).__module__.partition(".")[0]
    outputs = {"pandas": pd.Series, "polars": pl.Series}.get(module, list)(y)
    assert findings(advise(frame, outputs)) == findings(advice)


def test_sparse_and_single_precision_rows(data, advice):
    X, y = data
    for rows in (X.astype(np.float32), sparse.csr_matrix(X), sparse.csc_array(X)):
        found = advise(rows, y)
        check(found, 150)
        assert found.kernel.sigma == pytest.approx(advice.kernel.sigma, rel=1e-5)
        assert found.signal.noise.value == pytest.approx(advice.signal.noise.value, rel=1e-2)
        effective = found.dimensions.effective.value
        assert effective == pytest.approx(advice.dimensions.effective.value, rel=1e-2)
        found.estimator(random_state=0).fit(rows, y)


def targets(data):
    X, y = data
    few = np.digitize(y, [-0.5, 0.5])
    return {
        "binary": (y > 0).astype(int),
        "boolean": y > 0,
        "signs": np.where(y > 0, 1.0, -1.0),
        "three": few,
        "text": np.array(["low", "middle", "high"])[few],
        "objects": np.array(["low", "middle", "high"], dtype=object)[few],
        "categories": pd.Categorical(np.array(["low", "middle", "high"])[few]),
        "labels": np.column_stack([y > 0, X[:, 0] > 0]).astype(int),
        "letters": np.array([chr(97 + i % 26) for i in range(len(y))]),
    }


@pytest.mark.parametrize(
    "name",
    ["binary", "boolean", "signs", "three", "text", "objects", "categories", "labels",
     "letters"],
)  # fmt: skip
def test_classes(name, data):
    X, y = data[0], targets(data)[name]
    found = advise(X, y, sigma=1.0)
    check(found, 150)
    assert found.task == "classification"
    model = found.estimator(random_state=0).fit(X, y)
    assert len(model.predict(X)) == 150
    if name != "letters":
        assert model.score(X, y) > 0.7
    assert findings(found) == findings(advise(X, y, sigma=1.0, task="classification"))


def test_names_of_classes_do_not_matter(data):
    X, of = data[0], targets(data)
    one, other = (advise(X, of[name], sigma=1.0) for name in ("three", "text"))
    # The classes come in another order, and one against all does not see it.
    assert one.dimensions.full == other.dimensions.full
    assert one.penalty == pytest.approx(other.penalty)
    assert one.signal.noise.value == pytest.approx(other.signal.noise.value)


def test_numbers_are_not_classes(data):
    X, y = data
    for outputs in (y, y.astype(np.float32), np.arange(150), np.round(1000 * y)):
        assert advise(X, outputs, sigma=1.0).task == "regression"
    # Every number once tells nothing about classes.
    assert advise(X[:12], np.arange(12)).task == "regression"
    assert advise(X, np.arange(150) % 3, task="regression", sigma=1.0).task == "regression"


def test_many_outputs(data):
    X, y = data
    found = advise(X, np.column_stack([y, y**2, -y]))
    check(found, 150)
    assert found.task == "regression"
    model = found.estimator(random_state=0).fit(X, np.column_stack([y, y**2, -y]))
    assert model.predict(X).shape == (150, 3)
    single = advise(X, y[:, None])
    assert findings(single) == findings(advise(X, y))


@pytest.mark.parametrize("n", range(2, 11))
def test_a_handful_of_rows(n, rng):
    X = rng.normal(size=(n, 2))
    for y in (X[:, 0], np.arange(n) % 2):
        found = advise(X, y)
        check(found, n)
        model = found.estimator(random_state=0).fit(X, y)
        assert len(model.predict(X)) == n


def _same_rows(rng):
    X = rng.normal(size=(8, 2))
    return np.repeat(X, 10, axis=0), np.repeat(X[:, 0], 10)


@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
@pytest.mark.parametrize(
    "make",
    [
        lambda rng: (rng.normal(size=(80, 1)), rng.normal(size=80)),
        lambda rng: (np.c_[rng.normal(size=80), np.ones(80)], rng.normal(size=80)),
        lambda rng: (np.ones((80, 2)), rng.normal(size=80)),
        lambda rng: (np.zeros((80, 2)), rng.normal(size=80)),
        lambda rng: (rng.normal(size=(80, 2)), np.full(80, 0.1)),
        lambda rng: (rng.normal(size=(80, 2)), np.tile([0.1, 0.7], (80, 1))),
        _same_rows,
    ],
    ids=["one column", "a constant column", "equal rows", "zeros", "constant y",
         "constant outputs", "copies"],
)  # fmt: skip
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_that_tell_little(make, kernel, rng):
    X, y = make(rng)
    found = advise(X, y, kernel=kernel)
    check(found, 80)
    found.estimator(random_state=0).fit(X, y)
    if (np.ptp(X, axis=0) == 0).all() or (np.ptp(y, axis=0) == 0).all():
        assert found.signal.explained == 0
        assert any("hardly any of the variance" in note for note in found.notes)


@pytest.mark.parametrize(
    "kernel", ["laplacian", "matern12", "matern32", "matern52", "linear", "polynomial"]
)
def test_kernels(kernel, data):
    X, y = data
    found = advise(X, y, kernel=kernel)
    check(found, 150)
    assert found.signal.explained > 0.2
    possible = [option.method for option in found.options]
    # Functions of the inner product are none of the difference of two rows.
    assert ("random features" in possible) == (kernel not in ("linear", "polynomial"))
    found.estimator(random_state=0).fit(X, y)


def test_a_linear_kernel_is_exact_on_a_few_columns(rng):
    # KernelRegressor then solves for d weights, and has no n × n matrix.
    X = rng.normal(size=(1500, 3))
    found = advise(X, X[:, 0] + rng.normal(size=1500), kernel="linear")
    exact = found.options[0]
    assert exact.method == "exact"
    assert exact.cost.bytes < 8 * 1500**2
    assert exact.fits
    assert found.dimensions.full.value == 3


def test_the_spline_kernel_and_one_that_is_a_function(rng):
    X = rng.uniform(size=(150, 1))
    y = np.sin(2 * np.pi * X[:, 0]) + 0.1 * rng.normal(size=150)
    found = advise(X, y, kernel="spline")
    check(found, 150)
    assert found.kernel == Spline()
    assert found.decay == pytest.approx(0.5, rel=0.2)
    found.estimator(random_state=0).fit(X, y)
    check(advise(X, y, kernel=lambda A, B: A @ B.T), 150)


def test_widths(data):
    X, y = data
    assert advise(X, y, sigma=0.7).kernel == Gaussian(0.7)
    assert advise(X, y, sigma=2).kernel == Gaussian(2.0)
    assert advise(X, y, kernel=Gaussian(0.3)).kernel == Gaussian(0.3)
    assert advise(X, y, sigma="median").kernel == Gaussian(median_width(X))
    # Of widths that are no different, the median distance.
    assert advise(X, np.full(150, 0.5)).kernel == Gaussian(median_width(X))
    with pytest.raises(ValueError, match="is a grid; give one width"):
        advise(X, y, sigma=[0.1, 1.0])


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_be_taken(method, classes, data):
    X, y = data
    y = y > 0 if classes else y
    size = {"exact": 150, "random features": 64}.get(method, 40)
    found = replace(advise(X, y, sigma=1.0), method=method, size=size)
    model = found.estimator(random_state=0)
    names = {"exact": "Kernel", "nystrom": "Nystrom", "nytro": "Nytro"}
    kind = names.get(method, "RandomFeature") + ("Classifier" if classes else "Regressor")
    assert type(model) is getattr(imparo, kind)
    assert model.kernel == found.kernel
    model.fit(X, y)
    assert model.score(X, y) > 0.8
    if method == "nystrom":
        assert model.path_.sizes.max() == 40
    other = found.estimator(random_state=7, validation=3)
    assert (other.random_state, other.validation) == (7, 3)


def test_a_fit_that_was_advised_is_compared(data, advice):
    found = advice.compare(*data, random_state=0)
    assert found.expected == advice.cost
    assert found.time_ratio > 0
    assert found.memory_ratio is None or found.memory_ratio > 0
    json.dumps(found.to_dict(), allow_nan=False)


def test_budgets_and_memory(data):
    X, y = data
    free = advise(X, y, sigma=1.0)
    for settings_ in ({"budget": 1e-12}, {"memory": 1000}):
        found = advise(X, y, sigma=1.0, **settings_)
        check(found, 150)
        assert "nothing is within the budget and memory" in found.reason
        assert found.needed == free.needed
        assert not any(option.fits for option in found.options)
    found = advise(X, y, sigma=1.0, memory="1GiB", budget=np.float32(5))
    assert found.memory == 2**30
    assert found.estimator().memory == 2**30
    assert found.cost.seconds <= found.budget == 5


def test_fewer_centers_than_needed_are_noted(data):
    X, y = data
    sizes = []
    for memory in (20_000, 60_000, 200_000, 10**9):
        found = advise(X, y, sigma=0.2, memory=memory)
        few = found.method != "exact" and found.size < found.needed
        assert any("call for about" in note for note in found.notes) == few
        sizes.append(next(o.size for o in found.options if o.method == "nystrom"))
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_uneven_columns_and_outputs_without_signal_are_noted(data, rng):
    X, y = data
    found = advise(X * [1.0, 100.0], y)
    assert any("StandardScaler" in note for note in found.notes)
    assert not any("e+" in note for note in found.notes)
    found = advise(X, rng.normal(size=150))
    assert any("hardly any of the variance" in note for note in found.notes)


def test_advice_is_drawn(advice):
    ax = advice.plot()
    assert isinstance(ax, Axes)
    _, own = plt.subplots()
    assert advice.plot(own) is own
    assert "you are here" in [text.get_text() for text in own.texts] + [
        line.get_label() for line in own.get_lines()
    ]
    plt.close("all")


NAN = np.array([0.0, np.nan, 1.0])


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"X": [[1.0], [np.nan], [2.0]]}, "NaN"),
        ({"X": [[1.0], [np.inf], [2.0]]}, "infinity"),
        ({"X": [["a"], ["b"], ["c"]]}, "X holds text"),
        (
            {"X": pd.DataFrame({"a": [1, 2, 3], "town": ["x", "y", "z"]})},
            "the columns town hold",
        ),
        ({"X": np.empty((0, 2)), "y": []}, "0 sample"),
        ({"X": np.empty((3, 0))}, "0 feature"),
        ({"y": [1.0, 2.0]}, r"y has shape \(2,\) and X has 3 rows"),
        ({"y": None}, r"y has shape \(\) and X has 3 rows"),
        ({"y": np.zeros((3, 2, 2))}, r"y has shape \(3, 2, 2\)"),
        ({"y": NAN}, "y holds NaN"),
        ({"y": NAN, "task": "regression"}, "y holds NaN"),
        ({"y": NAN, "task": "classification"}, "NaN"),
        ({"y": np.array(["a", None, "b"], dtype=object)}, "None|NaN|missing"),
        ({"y": ["a", "b", "c"], "task": "regression"}, "y holds text"),
        ({"y": [1, 1, 1]}, "one class only"),
        ({"y": [0.5, 1.5, 2.5], "task": "classification"}, "Unknown label type: continuous"),
        (
            {"y": [[0, 1], [1, 2], [2, 0]], "task": "classification"},
            "several columns of classes",
        ),
        ({"task": "clustering"}, "task='clustering' is not known; give"),
        ({"kernel": "rbf"}, "kernel='rbf' is not known; give"),
        ({"kernel": 3}, "kernel must be a name"),
        ({"kernel": "precomputed"}, "not a precomputed matrix; give another kernel"),
        ({"kernel": "spline"}, r"defined on \[0, 1\]"),
        ({"sigma": "wide"}, "sigma='wide' is not known; give"),
        ({"sigma": -1.0}, "sigma must be a positive number"),
        ({"sigma": None}, "sigma=None is not a width"),
        ({"budget": 0}, "budget=0 must be a number of seconds above 0"),
        ({"budget": -2.0}, "budget=-2.0 must be"),
        ({"budget": math.nan}, "budget=nan must be"),
        ({"budget": "60"}, "budget='60' must be"),
        ({"budget": True}, "budget=True must be"),
        ({"memory": "lots"}, "memory='lots' is not an amount of memory"),
        ({"memory": 0}, "memory=0 must be at least one byte"),
        ({"memory": -5}, "memory=-5 must be at least one byte"),
        ({"X": sparse.csr_matrix(np.eye(3)), "kernel": "laplacian"}, "takes dense rows"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_bad_input_is_answered_in_one_sentence(settings_, message):
    given = {"X": [[0.0], [1.0], [3.0]], "y": [0.5, 0.2, 0.9]} | settings_
    with pytest.raises((ValueError, TypeError), match=message) as error:
        advise(**given)
    assert "\n" not in str(error.value)


def test_a_sample_that_calls_for_more_says_so(rng, monkeypatch):
    """Without noise every center helps; with much of it few are enough."""
    monkeypatch.setattr("imparo.theory.advising._SAMPLE", 200)
    X = rng.uniform(-1, 1, size=(900, 3))
    clean = np.sin(3 * X).sum(axis=1)
    noisy = X[:, 0] + 3 * rng.normal(size=900)
    notes = [advise(X, y, sigma=0.6).notes for y in (clean, noisy)]
    assert any("still falling" in note for note in notes[0])
    assert not any("still falling" in note for note in notes[1])
