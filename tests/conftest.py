"""Shared fixtures: small data, and the real data of ``IMPARO_DATA``."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from durable_tools import Slow
from imparo.estimators import auto_search
from imparo.estimators.auto_average import Average
from imparo.lifelong import durable

# The first draw of text in a process makes tables, which takes seconds on a busy machine.
settings.register_profile("imparo", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("imparo")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Tell of what is expected to fail without sources: to parse scikit-learn's takes long."""
    style = item.config.option.tbstyle
    if item.get_closest_marker("xfail"):
        item.config.option.tbstyle = "value"
    try:
        return (yield)
    finally:
        item.config.option.tbstyle = style


@pytest.fixture(autouse=True)
def _same_draws_in_every_run():
    """Seed what ``random_state=None`` draws from: a test fails always or never."""
    np.random.seed(0)  # noqa: NPY002  # scikit-learn's default is this global state


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def wave(rng):
    """Sixty rows of a noisy smooth function of three columns."""
    X = rng.normal(size=(60, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=60)


@pytest.fixture
def real_data():
    """A function that reads an archive of the benchmark data, or skips saying why."""
    folder = os.environ.get("IMPARO_DATA")

    def read(name):
        if not folder:
            pytest.skip("IMPARO_DATA does not name a folder with the benchmark data")
        path = Path(folder) / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"IMPARO_DATA has no {path.name}")
        with np.load(path) as archive:
            return {key: archive[key] for key in archive.files}

    return read


# For the tests of learning within a budget.


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


@pytest.fixture
def waves(rng):
    """Rows of which two columns count and two do not."""
    X = rng.normal(size=(300, 4))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 2] + 0.05 * rng.normal(size=300)


@pytest.fixture
def incomes(rng):
    """Outputs whose logarithms are a function of x and normal noise."""
    X = rng.uniform(-2, 2, size=(1000, 2))
    return X, np.exp(2 * np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=1000))


@pytest.fixture
def always_averaged(monkeypatch):
    """Averages are taken whatever their error: two thirds of the best, a third of the last."""

    def forced(pool, *_):
        return Average([(pool[0], 2 / 3), (pool[-1], 1 / 3)], 0.0)

    monkeypatch.setattr(auto_search, "averaged", forced)


# For the tests of lifelong learners.


@pytest.fixture
def data(rng):
    X = rng.normal(size=(60, 4))
    return X, rng.integers(0, 3, 60)


@pytest.fixture
def small_snapshots(monkeypatch):
    """Snapshots are written, by their thread, every few changes."""
    monkeypatch.setattr(durable, "_LEAST_RECORDS", 500)


@pytest.fixture
def slow_save(monkeypatch, small_snapshots):
    slow = Slow()
    monkeypatch.setattr(durable, "save", slow)
    yield slow
    slow.go_on.set()
