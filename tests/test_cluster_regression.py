"""Regression on rows of a cluster against the same rows in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from cluster_tools import (
    CUTS,
    assert_same,
    at_work,
    kinds_and_cuts,
    lazily,
    shared_client,
    wave,
)
from imparo import NystromRegressor, NytroRegressor, RandomFeatureRegressor
from imparo.cluster import costs
from imparo.estimators import nytro_base

PENALTIES = [1e-1, 1e-2, 1e-3]
KINDS = ["direct", "one", "cg", "features", "nytro"]


@pytest.fixture
def client(request):
    with at_work(shared_client(request.config)) as client:
        yield client


def machine(kind, **more):
    """Return an estimator with few parameters to choose from."""
    params = {"sigma": 1.0, "random_state": 0, "n_centers": 25}
    if kind == "features":
        del params["n_centers"]
        params |= {"n_features": [16, 32], "penalty": PENALTIES}
        return RandomFeatureRegressor(**params | more)
    if kind == "nytro":
        return NytroRegressor(**params | {"iterations": [2, 4, 8]} | more)
    params |= {
        "direct": {"penalty": PENALTIES, "n_centers": [10, 25]},
        "one": {"penalty": 1e-2},
        "cg": {"penalty": [1e-1, 1e-2], "solver": "cg", "iterations": 4},
    }[kind]
    return NystromRegressor(**params | more)


def there_and_here(model, X, y, weight=None, cuts=CUTS["uneven"]):
    """Return the model fitted to rows on the cluster, and to the same rows in memory."""
    given = [None if part is None else lazily(part, cuts) for part in (X, y, weight)]
    return clone(model).fit(*given), clone(model).fit(X, y, weight)


@kinds_and_cuts(KINDS, iterated=["cg"])
def test_partitions_change_nothing(client, monkeypatch, kind, cuts):
    monkeypatch.setattr(costs, "LEAST_ROWS", 1)  # every partition is a group
    X, y, _ = wave()
    there, here = there_and_here(machine(kind), X, y, cuts=cuts)
    assert_same(there, here, X[:50])
    if kind != "features":
        assert_array_equal(there.centers_, here.centers_)
        assert_array_equal(there.center_rows_, here.center_rows_)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("validation", [0.3, 3])
def test_weights_outputs_and_intercept(client, kind, validation):
    X, y, weight = wave(n_outputs=2)
    assert (weight == 0).any()
    model = machine(kind, intercept=True, validation=validation)
    there, here = there_and_here(model, X, y, weight)
    assert there.predict(X[:5]).shape == (5, 2)
    assert_same(there, here, X[:50])
    assert_allclose(there.intercept_, here.intercept_, rtol=1e-10)
    ones, _ = there_and_here(model, X, y)
    assert np.abs(ones.predict(X) - there.predict(X)).max() > 1e-3  # weights count


@pytest.mark.parametrize("kind", ["direct", "features"])
def test_gcv(client, kind):
    X, y, weight = wave()
    there, here = there_and_here(machine(kind, validation="gcv"), X, y, weight)
    assert there.path_.method == "generalized cross-validation"
    assert_same(there, here, X[:50])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_single_precision(client, kind):
    """Blocks of other rows are added in another order: digits of float32 differ."""
    X, y, weight = wave()
    there, here = there_and_here(machine(kind), X.astype("f"), y.astype("f"), weight)
    assert there.predict(X[:5].astype("f")).dtype == np.float32
    assert_same(there, here, X[:50].astype("f"), tolerance=1e-4)
    there, _ = there_and_here(machine(kind, dtype="float32"), X, y, weight)
    assert there.predict(X[:5]).dtype == np.float32
    assert_same(there, here, X[:50].astype("f"), tolerance=1e-4)


def test_partitions_of_different_types(client):
    from dask import delayed

    X, y, _ = wave()
    model = machine("direct")
    parts = [X[:100], X[100:180].astype("f"), np.round(X[180:]).astype(int)]
    given = [delayed((rows, part)) for rows, part in zip(parts, np.split(y, [100, 180]),
                                                         strict=True)]  # fmt: skip
    there = clone(model).fit(given)
    assert there.centers_.dtype == np.float64
    assert_same(there, clone(model).fit(np.concatenate(parts), y), X[:50])


@pytest.mark.parametrize("kind", KINDS)
def test_widths_to_choose_from(client, kind):
    X, y, _ = wave()
    there, here = there_and_here(machine(kind, sigma=[0.5, 2.0, 1.0]), X, y)
    assert there.sigma_ == here.sigma_
    assert there.path_.errors.shape[0] == 3
    assert_same(there, here, X[:50])


@pytest.mark.parametrize("sigma", ["median", "scale", "learned", "per-feature"])
def test_widths_from_rows(client, sigma):
    X, y, _ = wave()
    there, here = there_and_here(machine("direct", sigma=sigma), X, y)
    assert_allclose(there.sigma_, here.sigma_, rtol=1e-12)
    assert_same(there, here, X[:50])


@pytest.mark.parametrize("kind", ["direct", "nytro"])
@pytest.mark.parametrize("centers", ["leverage", "pivoted", "given"])
def test_rules_for_centers(client, kind, centers):
    X, y, weight = wave()
    centers = X[20:45] if centers == "given" else centers
    there, here = there_and_here(machine(kind, centers=centers), X, y, weight)
    assert_array_equal(there.centers_, here.centers_)
    assert_array_equal(there.center_weights_, here.center_weights_)
    assert_same(there, here, X[:50])


@pytest.mark.parametrize("form", ["gram", "recomputed"])
@pytest.mark.parametrize("filter", ["nu", "landweber", "cg"])
def test_forms_of_early_stopping(client, monkeypatch, form, filter):
    X, y, weight = wave(n_outputs=2)
    monkeypatch.setattr(nytro_base, "cheapest_form", lambda *_, **__: form)
    model = machine("nytro", filter=filter, iterations=[2, 3], intercept=True)
    there, here = there_and_here(model, X, y, weight)
    assert there.form_ == here.form_ == form
    assert_same(there, here, X[:50])
    assert_allclose(there.at(1).predict(X[:50]), here.at(1).predict(X[:50]), atol=1e-9)


def test_workers_store_no_kernel_values(client, monkeypatch):
    X, y, _ = wave()
    asked = []

    def told(*args, **more):
        asked.append(more)
        return "recomputed"

    monkeypatch.setattr(nytro_base, "cheapest_form", told)
    there_and_here(machine("nytro", iterations=2), X, y)
    assert asked == [{"may_store": False}, {"may_store": True}]


def test_unbounded_kernels(client):
    """The bound of the step comes from the rows: the largest K(x, x) of all groups."""
    X, y, _ = wave()
    X[290] = 9.0
    model = machine("nytro", kernel="linear", step="bound", filter="landweber", sigma="median")
    there, here = there_and_here(model, X, y, cuts=CUTS["seven"])
    assert_same(there, here, X[:50])


def test_automatic_parameters(client):
    """The same point is chosen; rounding of the statistics counts by ε/λ, on any machine."""
    X, y, _ = wave()
    for cls in (NystromRegressor, RandomFeatureRegressor):
        there, here = there_and_here(cls(random_state=0), X, y)
        assert there.path_.best_index == here.path_.best_index
        assert there.get_params() == here.get_params()
        amplified = 1e-10 * np.maximum(1.0, 1e-6 / here.path_.penalties)
        scale = np.abs(here.path_.errors).max()
        apart = np.abs(there.path_.errors - here.path_.errors).max(axis=1) / scale
        assert (apart <= amplified).all()
        allowed = 1e-10 * max(1.0, 1e-6 / here.penalty_)
        apart = np.abs(there.predict(X[:50]) - here.predict(X[:50])).max()
        assert apart <= allowed * np.abs(here.predict(X[:50])).max()


@pytest.mark.parametrize("kind", ["direct", "features"])
def test_growing(client, kind):
    X, y, weight = wave()
    cuts = CUTS["seven"]
    given = [lazily(part, cuts) for part in (X, y, weight)]
    model = machine(kind, intercept=True)
    expected = clone(model).fit(X, y, weight).grow(48, X, y, weight)
    grown = clone(model).fit(*given).grow(48, *given)
    assert_same(grown, expected, X[:50])
    # Rows may have moved in between, in either direction.
    assert_same(clone(model).fit(X, y, weight).grow(48, *given), expected, X[:50])
    assert_same(clone(model).fit(*given).grow(48, X, y, weight), expected, X[:50])
    whole = clone(model).set_params(**{grown._size: [*getattr(model, grown._size), 48]})
    assert_same(grown, whole.fit(*given), X[:50], tolerance=1e-8)


def test_growing_on_other_rows(client):
    X, y, _ = wave()
    cuts = CUTS["two"]
    model = machine("direct").fit(lazily(X, cuts), lazily(y, cuts))
    before = model.predict(X[:50])
    with pytest.raises(ValueError, match="not those that the model was fitted to"):
        model.grow(40, lazily(X, cuts), lazily(y[::-1].copy(), cuts))
    assert_array_equal(model.predict(X[:50]), before)
