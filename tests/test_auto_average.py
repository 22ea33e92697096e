"""Learning within a budget: averages of several models."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import imparo
from auto_tools import as_pandas, by_hand, comparable
from imparo import AutoClassifier, AutoRegressor
from imparo.estimators import auto_search
from imparo.estimators.auto_average import Average, averaged
from imparo.estimators.auto_trials import Best

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
