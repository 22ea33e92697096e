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
from imparo import AutoClassifier, AutoRegressor, NystromRegressor
from imparo.estimators import auto_search
from imparo.kernels import Linear


class Clock:
    """A clock that the trials move: one second for so many operations."""

    def __init__(self, monkeypatch, operations):
        self.now, self.longest, self._operations = 0.0, 0.0, operations
        monkeypatch.setattr(auto_search.time, "monotonic", lambda: self.now)
        trial = auto_search.Search._trial

        def timed(search, machine, method, m, rows, note, **settings):
            # Half of the work in reading rows, half in solving.
            splits = len(search._splits)
            cost = search._cost(len(rows), m, 41, splits) / self._operations
            shares = {"reading rows": 0.5, "growing": 0.5, "penalties": 0.5 / splits}
            wrapped = machine.progress

            def progress(done, total, what):
                step = shares.get(what, 0.02) * cost / total
                self.now, self.longest = self.now + step, max(self.longest, step)
                wrapped(done, total, what)

            machine.progress = progress
            result = trial(search, machine, method, m, rows, note, **settings)
            machine.progress = wrapped
            return result

        monkeypatch.setattr(auto_search.Search, "_trial", timed)


@pytest.fixture
def surface(rng):
    X = rng.uniform(-3, 3, size=(4000, 2))
    return X, np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.05 * rng.normal(size=4000)


def test_the_model_is_its_best_trial(surface):
    X, y = surface
    model = AutoRegressor(budget=20, random_state=0).fit(X, y)
    whole = [t for t in model.record_ if t.n_rows == len(y)]
    assert min(t.error for t in whole) == pytest.approx(model.path_.best["error"])
    best = min(whole, key=lambda t: t.error)
    assert (best.n_centers, best.sigma, best.penalty, best.method) == (
        model.n_centers_, model.sigma_, model.penalty_, model.method_,
    )  # fmt: skip
    assert "better" in best.note
    assert model.score(X, y) > 0.98


def test_it_is_the_model_that_its_parameters_say(surface, monkeypatch):
    """The coefficients are Nyström KRLS of the centers, width and penalty reported."""
    X, y = surface
    monkeypatch.setattr(auto_search, "_EXACT_ROWS", 0)
    model = AutoRegressor(budget=20, random_state=0, intercept=False).fit(X, y)
    assert model.method_ == "nystrom"
    K, K_mm = model.kernel_(X, model.centers_), model.kernel_(model.centers_)
    G = K.T @ K + len(y) * model.penalty_ * K_mm
    alpha = np.linalg.lstsq(G, K.T @ y, rcond=1e-15)[0]
    assert_allclose(model.predict(X), K @ alpha, atol=1e-3)


def test_small_data_may_become_exact(rng):
    X = rng.normal(size=(150, 3))
    y = X[:, 0] + np.sin(3 * X[:, 1])
    model = AutoRegressor(budget=20, random_state=0).fit(X, y)
    assert "exact" in {t.method for t in model.record_}
    if model.method_ == "exact":
        assert model.centers_.shape == (150, 3)


def test_classes(tmp_path):
    X, y = load_digits(return_X_y=True)
    names = np.array(list("abcdefghij"))[y]
    model = AutoClassifier(budget=10, random_state=0).fit(X[::2], names[::2])
    assert model.score(X[1::2], names[1::2]) > 0.97
    imparo.save(model, tmp_path / "model")
    same = imparo.load(tmp_path / "model")
    assert (same.predict(X) == model.predict(X)).all()
    assert [t.error for t in same.record_] == [t.error for t in model.record_]


def test_weights_and_several_outputs(surface):
    X, y = surface
    X, y = X[:1000], y[:1000]
    weight = np.where(X[:, 0] > 0, 1.0, 0.0)
    Y = np.column_stack([y, 100 - y])
    model = AutoRegressor(budget=10, random_state=0).fit(X, Y, weight)
    alone = AutoRegressor(budget=10, random_state=0).fit(X[weight > 0], Y[weight > 0])
    there = X[X[:, 0] > 0]
    assert model.predict(there).shape == (len(there), 2)
    # Rows of weight 0 are not learned from: both know as much as the other.
    assert_allclose(model.predict(there), alone.predict(there), atol=0.3)


def test_blocks_and_maps_are_as_good_as_arrays(surface, tmp_path):
    X, y = surface
    array = AutoRegressor(budget=30, random_state=0).fit(X, y)
    blocks = [(X[i : i + 700], y[i : i + 700]) for i in range(0, 4000, 700)]
    listed = AutoRegressor(budget=30, random_state=0).fit(blocks)
    stored = np.memmap(tmp_path / "X", float, "w+", shape=X.shape)
    stored[:] = X
    mapped = AutoRegressor(budget=30, random_state=0).fit(
        np.memmap(tmp_path / "X", float, "r", shape=X.shape), y
    )
    for other in (listed, mapped):
        assert_allclose(other.predict(X), array.predict(X), atol=0.05)


# Budgets


def test_a_larger_budget_comes_further(surface, monkeypatch):
    X, y = surface
    found = {}
    for budget in (1, 1000):
        with monkeypatch.context() as patch:
            Clock(patch, operations=1e9)
            model = AutoRegressor(budget=budget, random_state=0).fit(X, y)
            found[budget] = model
    largest = {
        b: max(t.n_centers * (t.n_rows == 4000) for t in m.record_) for b, m in found.items()
    }
    assert largest[1] < largest[1000]
    assert "budget" in found[1].stopped_
    assert "no longer" in found[1000].stopped_
    assert found[1000].path_.best["error"] <= found[1].path_.best["error"]


def test_the_budget_is_kept_on_the_clock(surface, monkeypatch):
    X, y = surface
    for operations in (1e8, 1e9, 1e10):
        with monkeypatch.context() as patch:
            clock = Clock(patch, operations)
            model = AutoRegressor(budget=5, random_state=0).fit(X, y)
            # The first model is small, and made whatever it takes; a block of rows or a part
            # of the path is not given up in the middle.
            first = model.record_[0].seconds
            assert clock.now <= max(5.0, first) * 1.05 + clock.longest


def test_a_trial_out_of_time_is_written_down_and_harmless(surface, monkeypatch):
    X, y = surface
    started = []
    trial = auto_search.Search._trial

    def late(search, machine, method, m, rows, note, **settings):
        started.append(m)
        if len(started) == 5:
            search._deadline = -np.inf
        return trial(search, machine, method, m, rows, note, **settings)

    monkeypatch.setattr(auto_search.Search, "_trial", late)
    model = AutoRegressor(budget=100, random_state=0).fit(X, y)
    assert model.record_[-1].error == np.inf
    assert "out of time" in model.record_[-1].note
    assert "budget" in model.stopped_
    whole = [t.error for t in model.record_[:-1] if t.n_rows == len(y)]
    assert model.path_.best["error"] == pytest.approx(min(whole))
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
    model = AutoRegressor(budget=20, memory=12_000_000, random_state=0).fit(X, y)
    most = max(t.n_centers for t in model.record_)
    assert 8 * most**2 * 10 < 12_000_000


def test_conjugate_gradients_are_tried_where_statistics_are_too_dear(surface, monkeypatch):
    X, y = surface
    monkeypatch.setattr(auto_search.Search, "_largest_affordable", lambda *_: 0)
    expected = auto_search.Search._expected

    def dear(search, n, m, penalties):
        return np.inf if m > 300 else expected(search, n, m, penalties)

    monkeypatch.setattr(auto_search.Search, "_expected", dear)
    monkeypatch.setattr(auto_search, "_STEPS", 0)
    model = AutoRegressor(budget=60, random_state=0).fit(X, y)
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
    model = AutoRegressor(budget=100, random_state=0).fit(X, y)
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
        model = AutoRegressor(budget=600, random_state=0, progress=progress).fit(X, y)
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
    model = AutoRegressor(budget=5, random_state=0).fit(X[:200], y[:200])
    before = model.predict(X)
    with pytest.raises(ValueError, match="positive number of seconds"):
        model.set_params(budget=budget).fit(X, y)
    assert (model.predict(X) == before).all()


def test_a_given_width_is_not_searched(surface):
    X, y = surface
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
    auto = AutoRegressor(budget=30, random_state=0).fit(X[:3000], y[:3000])
    plain = NystromRegressor(random_state=0).fit(X[:3000], y[:3000])
    truth = np.sin(2 * X[3000:, 0]) * np.cos(X[3000:, 1])
    errors = [np.sqrt(np.mean((m.predict(X[3000:]) - truth) ** 2)) for m in (auto, plain)]
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
    X = np.linspace(0, 1, 3000)[:, None]
    y = np.sin(6 * X[:, 0])
    given = X[rng.permutation(3000)[:150]] if centers == "given" else centers
    model = AutoRegressor(centers=given, budget=10, random_state=0).fit(X, y)
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
    X = rng.normal(size=(6000, 3))
    y = np.sin(4 * X[:, 0]) + 0.5 * np.sin(4 * X[:, 1]) + 0.1 * rng.normal(size=6000)
    grid = [0.3, 0.6, 1.2, 2.5, 5.0, 10.0]
    model = AutoRegressor(sigma=grid, budget=30, random_state=0).fit(X, y)
    assert model.sigma_ in (0.3, 0.6, 1.2)
    assert {t.sigma for t in model.record_} - {None} <= set(grid)  # None: out of time


def test_more_classes_than_held_out_rows(rng):
    y = np.arange(3000) % 700
    X = rng.normal(size=(700, 4))[y] + 0.1 * rng.normal(size=(3000, 4))
    model = AutoClassifier(budget=3, random_state=0).fit(X, y)
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
    assert all("\n" not in line and len(line) < 140 for line in lines)
    assert "first model" in lines[0]


def test_a_bar_is_drawn(surface, capsys):
    X, y = surface
    AutoRegressor(budget=2, random_state=0, progress=True).fit(X[:500], y[:500])
    assert "best so far" in capsys.readouterr().out
