"""Learning within a budget: which widths, and which transform of the outputs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from auto_tools import (
    FIXED,
)
from imparo import AutoClassifier, AutoRegressor
from imparo.estimators import auto_search, auto_widths
from imparo.kernels import Gaussian

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
