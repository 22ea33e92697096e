"""Learning within a budget: the best complete model, whatever happens."""

import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

import imparo
from auto_tools import (
    Clock,
    comparable,
    prepared,
)
from imparo import AutoClassifier, AutoRegressor, NystromRegressor
from imparo.estimators import auto_search
from imparo.kernels import Linear


@pytest.fixture
def surface(rng):
    X = rng.uniform(-3, 3, size=(900, 2))
    return X, np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.05 * rng.normal(size=900)


@pytest.fixture
def no_clock(monkeypatch):
    """Time stands still: fits end when nothing more is worth trying."""
    monkeypatch.setattr("time.monotonic", lambda: 0.0)


@pytest.fixture
def no_average(monkeypatch):
    monkeypatch.setattr(auto_search, "averaged", lambda *_: None)


def test_the_model_is_its_best_trial(surface, no_average):
    X, y = surface
    model = AutoRegressor(budget=5, random_state=0).fit(X, y)
    best = min(comparable(model), key=lambda t: t.error)
    assert best.error == pytest.approx(model.path_.best["error"])
    assert (best.n_centers, best.sigma, best.penalty, best.method) == (
        model.n_centers_, model.sigma_, model.penalty_, model.method_,
    )  # fmt: skip
    assert (best.inputs, best.target) == (model.inputs_.numbers, model.target_)
    assert best.kernel.startswith(type(model.kernel_).__name__)
    assert "better" in best.note
    assert model.score(X, y) > 0.98


@pytest.mark.parametrize("sigma", ["auto", 0.8])
def test_it_is_the_model_that_its_parameters_say(surface, no_average, monkeypatch, sigma):
    """The coefficients are Nyström KRLS of the centers, widths and penalty reported."""
    X, y = surface
    monkeypatch.setattr(auto_search, "_EXACT_ROWS", 0)
    model = AutoRegressor(sigma=sigma, budget=4, random_state=0, intercept=False).fit(X, y)
    assert model.method_ == "nystrom"
    rows = prepared(model, X)
    K, K_mm = model.kernel_(rows, model.centers_), model.kernel_(model.centers_)
    G = K.T @ K + len(y) * model.penalty_ * K_mm
    alpha = np.linalg.lstsq(G, K.T @ y, rcond=1e-15)[0]
    assert_allclose(model.predict(X), K @ alpha, atol=1e-3)


def test_small_data_may_become_exact(rng):
    X = rng.normal(size=(150, 3))
    y = X[:, 0] + np.sin(3 * X[:, 1])
    model = AutoRegressor(sigma=1.0, budget=20, random_state=0).fit(X, y)
    assert "exact" in {t.method for t in model.record_}
    if model.method_ == "exact":
        assert model.centers_.shape == (150, 3)


def test_classes(tmp_path):
    X, y = load_digits(return_X_y=True)
    names = np.array(list("abcdefghij"))[y]
    model = AutoClassifier(budget=8, random_state=0).fit(X[::2], names[::2])
    assert model.score(X[1::2], names[1::2]) > 0.97
    imparo.save(model, tmp_path / "model")
    same = imparo.load(tmp_path / "model")
    assert (same.predict(X) == model.predict(X)).all()
    assert [t.error for t in same.record_] == [t.error for t in model.record_]


def test_weights_and_several_outputs(surface):
    X, y = surface
    X, y = X[:800], y[:800]
    weight = np.where(X[:, 0] > 0, 1.0, 0.0)
    Y = np.column_stack([y, 100 - y])
    model = AutoRegressor(budget=3, random_state=0).fit(X, Y, weight)
    alone = AutoRegressor(budget=3, random_state=0).fit(X[weight > 0], Y[weight > 0])
    there = X[X[:, 0] > 0]
    assert model.predict(there).shape == (len(there), 2)
    # Rows of weight 0 are not learned from: both know as much as the other.
    assert_allclose(model.predict(there), alone.predict(there), atol=0.3)


def test_blocks_and_maps_are_as_good_as_arrays(surface, tmp_path, no_clock):
    X, y = surface
    X, y = X[:700], y[:700]
    settings = {"kernel": "gaussian", "sigma": "median", "random_state": 0}
    array = AutoRegressor(**settings).fit(X, y)
    blocks = [(X[i : i + 150], y[i : i + 150]) for i in range(0, 700, 150)]
    listed = AutoRegressor(**settings).fit(blocks)
    stored = np.memmap(tmp_path / "X", float, "w+", shape=X.shape)
    stored[:] = X
    mapped = AutoRegressor(**settings).fit(
        np.memmap(tmp_path / "X", float, "r", shape=X.shape), y
    )
    for other in (listed, mapped):
        assert_allclose(other.predict(X), array.predict(X), atol=1e-6)


# Budgets


def test_a_larger_budget_comes_further(surface, monkeypatch):
    X, y = surface
    found = {}
    for budget in (0.5, 1000):
        with monkeypatch.context() as patch:
            Clock(patch, operations=1e9)
            model = AutoRegressor("gaussian", sigma=0.5, budget=budget, random_state=0)
            found[budget] = model.fit(X, y)
    few, many = (comparable(model) for model in found.values())
    assert max(t.n_centers for t in few) < max(t.n_centers for t in many)
    assert "budget" in found[0.5].stopped_
    assert "budget" not in found[1000].stopped_
    assert min(t.error for t in many) <= min(t.error for t in few)


@pytest.mark.parametrize("operations", [3e7, 1e8, 1e9, 1e10])
def test_the_budget_is_kept_on_the_clock(surface, monkeypatch, operations):
    X, y = surface
    clock = Clock(monkeypatch, operations)
    model = AutoRegressor(budget=5, random_state=0).fit(X, y)
    # The first model is small, and made whatever it takes; a block of rows, a part of the
    # path or a step of learning is not given up in the middle.
    first = model.record_[0].seconds
    assert clock.now <= max(5.0, first) * 1.05 + clock.longest


@pytest.mark.parametrize("last", [2, 3, 6])
def test_a_trial_out_of_time_is_written_down_and_harmless(surface, monkeypatch, last):
    X, y = surface
    started = []
    trial = auto_search.Search._trial

    def late(search, machine, method, m, rows, note, **settings):
        started.append(m)
        if len(started) == last:
            search._deadline = -np.inf
        return trial(search, machine, method, m, rows, note, **settings)

    monkeypatch.setattr(auto_search.Search, "_trial", late)
    model = AutoRegressor("gaussian", budget=100, random_state=0).fit(X, y)
    assert len(model.record_) == last
    assert model.record_[-1].error == np.inf
    assert "out of time" in model.record_[-1].note
    assert "budget" in model.stopped_
    best = min(t.error for t in comparable(model))
    assert model.path_.best["error"] == pytest.approx(best)
    assert np.isfinite(model.predict(X)).all()


def test_few_rows_where_all_take_too_long(rng, monkeypatch):
    X = rng.normal(size=(60_000, 2))
    y = np.sin(X[:, 0])
    Clock(monkeypatch, operations=2e7)
    model = AutoRegressor(budget=60, random_state=0).fit(X, y)
    rows = {t.n_rows for t in model.record_ if np.isfinite(t.error)}
    assert max(rows) < 60_000
    assert "rows" in model.stopped_
    assert model.score(X, y) > 0.9


def test_no_more_centers_than_memory_holds(surface):
    X, y = surface
    model = AutoRegressor(
        "gaussian", budget=5, memory=12_000_000, random_state=0, sigma="median"
    ).fit(X, y)
    most = max(t.n_centers for t in model.record_)
    assert 8 * most**2 * 10 < 12_000_000


def test_conjugate_gradients_are_tried_where_statistics_are_too_dear(surface, monkeypatch):
    X, y = surface
    monkeypatch.setattr(auto_search.Search, "_largest_affordable", lambda *_: 0)
    expected = auto_search.Search._expected

    def dear(search, n, m, *more):
        return np.inf if m > 300 else expected(search, n, m, *more)

    monkeypatch.setattr(auto_search.Search, "_expected", dear)
    monkeypatch.setattr(auto_search, "_STEPS", 0)
    model = AutoRegressor("gaussian", sigma=0.5, budget=60, random_state=0).fit(X, y)
    tried = [t for t in model.record_ if t.method == "nytro"]
    assert len(tried) == 1
    assert tried[0].penalty is None
    assert model.stopped_ == "the budget does not allow for more centers"


# Interruption


def test_an_interruption_returns_the_best_so_far(surface, monkeypatch):
    X, y = surface
    trial = auto_search.Search._trial
    count = []

    def interrupted(search, *arguments, **settings):
        count.append(1)
        if len(count) == 4:
            raise KeyboardInterrupt
        return trial(search, *arguments, **settings)

    monkeypatch.setattr(auto_search.Search, "_trial", interrupted)
    model = AutoRegressor(budget=100, random_state=0).fit(X, y)
    assert model.stopped_ == "interrupted"
    assert len(model.record_) == 3
    assert np.isfinite(model.predict(X)).all()


def test_an_interruption_in_the_middle_of_growing_leaves_the_best_whole(surface, monkeypatch):
    X, y = surface
    grow = auto_search.NystromMachine._grow

    def broken(machine, *arguments, **settings):
        grow(machine, *arguments, **settings)
        machine.centers_ = machine.centers_[:1]
        raise KeyboardInterrupt

    monkeypatch.setattr(auto_search.NystromMachine, "_grow", broken)
    model = AutoRegressor("gaussian", sigma=1.0, budget=100, random_state=0).fit(X, y)
    assert model.stopped_ == "interrupted"
    assert len(model.centers_) == len(model.dual_coef_) > 1
    assert np.isfinite(model.predict(X)).all()


def test_an_interruption_before_any_model_is_one(surface, monkeypatch):
    X, y = surface

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(auto_search.Search, "_trial", interrupted)
    model = AutoRegressor(budget=100)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "intercept_")


def test_ctrl_c_in_a_real_process():
    code = """
        import numpy as np
        from imparo import AutoRegressor
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30_000, 8))
        y = np.sin(X[:, 0]) + rng.normal(size=30_000)
        told = []
        def progress(done, total, what):
            if what == "growing" and not told:
                told.append(1)
                print("now", flush=True)
        settings = {"budget": 600, "random_state": 0, "progress": progress}
        model = AutoRegressor("gaussian", sigma=3.0, **settings).fit(X, y)
        print(model.stopped_, np.isfinite(model.predict(X[:5])).all())
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "now\n"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert output == "interrupted True\n"


# Parameters


@pytest.mark.parametrize("budget", [0, -1, np.nan, np.inf, "10", True, None])
def test_bad_budgets(surface, budget):
    X, y = surface
    model = AutoRegressor(sigma=1.0, budget=5, random_state=0).fit(X[:200], y[:200])
    before = model.predict(X)
    with pytest.raises(ValueError, match="positive number of seconds"):
        model.set_params(budget=budget).fit(X, y)
    assert (model.predict(X) == before).all()


def test_a_given_width_is_not_searched(surface):
    X, y = surface
    X, y = X[:500], y[:500]
    model = AutoRegressor(sigma=1.25, budget=5, random_state=0).fit(X, y)
    assert {t.sigma for t in model.record_} == {1.25}
    linear = AutoRegressor(Linear(), budget=5, random_state=0, sigma="median").fit(X, y)
    assert {t.sigma for t in linear.record_} == {None}


def test_a_kernel_without_width(surface):
    X, y = surface
    y = X[:, 0] - X[:, 1]
    assert AutoRegressor("linear", budget=5, random_state=0).fit(X, y).score(X, y) > 0.999


def test_one_row_is_refused():
    with pytest.raises(ValueError, match="1 sample"):
        AutoRegressor().fit([[1.0]], [1.0])


def test_two_rows_will_do():
    model = AutoRegressor(budget=5, random_state=0).fit([[0.0], [1.0]], [0.0, 1.0])
    assert np.isfinite(model.predict([[0.5]])).all()


def test_never_worse_than_the_default(surface):
    X, y = surface
    X, rest = X[:700], X[700:]
    auto = AutoRegressor(budget=5, random_state=0).fit(X, y[:700])
    plain = NystromRegressor(random_state=0).fit(X, y[:700])
    truth = np.sin(2 * rest[:, 0]) * np.cos(rest[:, 1])
    errors = [np.sqrt(np.mean((m.predict(rest) - truth) ** 2)) for m in (auto, plain)]
    assert errors[0] <= errors[1] * 1.05


# What reviewers found


def test_a_grown_model_finds_its_own_penalty(surface, monkeypatch):
    """Penalties go on from the best so far: those of the first few centers do not bind."""
    X, y = surface
    grow, judged = auto_search.NystromMachine._grow, []

    def watched(machine, *arguments, **settings):
        before = machine.penalty_
        result = grow(machine, *arguments, **settings)
        judged.append((before, result[1].penalties))
        return result

    monkeypatch.setattr(auto_search.NystromMachine, "_grow", watched)
    AutoRegressor(sigma=1.0, budget=20, random_state=0).fit(X, y)
    assert judged
    for before, penalties in judged:
        # Room below the penalty so far, as far as the first grid went, and some above.
        assert penalties.min() <= max(before / 1000, 2e-12)
        assert penalties.max() >= 8 * before


@pytest.mark.parametrize("centers", ["pivoted", "given"])
def test_fewer_centers_than_asked_for_end_the_search(rng, centers):
    X = np.linspace(0, 1, 1500)[:, None]
    y = np.sin(6 * X[:, 0])
    given = X[rng.permutation(1500)[:150]] if centers == "given" else centers
    model = AutoRegressor("gaussian", centers=given, budget=4, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.score(X, y) > 0.999


def test_a_failing_trial_leaves_the_best_model(surface):
    X, y = surface

    def kernel(A, B):
        K = np.exp(-((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))
        return K if min(len(A), len(B)) < 200 or len(A) > 1000 else K - 0.5

    model = AutoRegressor(kernel, budget=20, random_state=0).fit(X, y)
    assert any("not positive definite" in t.note for t in model.record_)
    assert np.isfinite(model.predict(X)).all()


def test_a_grid_of_widths_is_searched_with_more_centers_too(rng):
    X = rng.normal(size=(2200, 3))
    y = np.sin(4 * X[:, 0]) + 0.5 * np.sin(4 * X[:, 1]) + 0.1 * rng.normal(size=2200)
    grid = [0.3, 0.6, 1.2, 2.5, 5.0, 10.0]
    model = AutoRegressor(sigma=grid, budget=6, random_state=0).fit(X, y)
    assert model.sigma_ in (0.3, 0.6, 1.2)
    assert {t.sigma for t in model.record_} - {None} <= set(grid)  # None: out of time


def test_more_classes_than_held_out_rows(rng):
    y = np.arange(1500) % 350
    X = rng.normal(size=(350, 4))[y] + 0.1 * rng.normal(size=(1500, 4))
    model = AutoClassifier(budget=1, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.1


def test_a_width_for_a_kernel_without_one_is_refused(surface):
    with pytest.raises(ValueError, match="has no effect"):
        AutoRegressor("linear", sigma=3.0).fit(*surface)


def test_little_memory(surface):
    model = AutoRegressor(memory="1MB", budget=5, random_state=0).fit(*surface)
    assert np.isfinite(model.predict(surface[0])).all()


def test_a_trial_is_a_line(surface):
    model = AutoRegressor(budget=3, random_state=0).fit(surface[0][:500], surface[1][:500])
    lines = [str(trial) for trial in model.record_]
    assert all("\n" not in line and len(line) < 180 for line in lines)
    assert "first model" in lines[0]


def test_a_bar_is_drawn(surface, capsys):
    X, y = surface
    AutoRegressor(budget=2, random_state=0, progress=True).fit(X[:500], y[:500])
    assert "best so far" in capsys.readouterr().out
