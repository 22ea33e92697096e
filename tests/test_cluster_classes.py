"""Classification on rows of a cluster against the same rows in memory."""

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
from imparo import NystromClassifier, NytroClassifier, RandomFeatureClassifier
from imparo.cluster import costs
from imparo.estimators import logistic

KINDS = ["direct", "cg", "logistic", "features", "nytro"]


@pytest.fixture
def client(request):
    with at_work(shared_client(request.config)) as client:
        yield client


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """Newton steps are made here, with products by the workers: few tell as much as many."""
    monkeypatch.setattr(logistic, "_NEWTON", 3)


def machine(kind, **more):
    """Return a classifier with few parameters to choose from."""
    params = {"sigma": 1.0, "random_state": 0, "n_centers": 25}
    if kind == "features":
        del params["n_centers"]
        params |= {"n_features": [16, 32], "penalty": [1e-1, 1e-2, 1e-3]}
        return RandomFeatureClassifier(**params | more)
    if kind == "nytro":
        return NytroClassifier(**params | {"iterations": [2, 4, 8]} | more)
    params |= {
        "direct": {"penalty": [1e-1, 1e-2, 1e-3], "n_centers": [10, 25]},
        "cg": {"penalty": [1e-1, 1e-2], "solver": "cg", "iterations": 4},
        "logistic": {"penalty": [1e-1, 1e-2], "loss": "logistic", "iterations": 3},
    }[kind]
    return NystromClassifier(**params | more)


def classes(n_classes, values=None):
    """Return rows, classes and weights."""
    X, y, weight = wave()
    codes = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    return X, codes if values is None else np.array(values)[codes], weight


def there_and_here(model, X, y, weight=None, cuts=CUTS["uneven"]):
    """Return the model fitted to rows on the cluster, and to the same rows in memory."""
    given = [None if part is None else lazily(part, cuts) for part in (X, y, weight)]
    return clone(model).fit(*given), clone(model).fit(X, y, weight)


def assert_same_classes(there, here, new, tolerance=1e-10):
    assert_same(there, here, new, tolerance)
    assert_array_equal(there.classes_, here.classes_)
    assert there.classes_.dtype == here.classes_.dtype
    assert_array_equal(there.predict(new), here.predict(new))


@kinds_and_cuts(KINDS, iterated=["cg", "logistic"])
def test_partitions_change_nothing(client, monkeypatch, kind, cuts):
    monkeypatch.setattr(costs, "LEAST_ROWS", 1)  # every partition is a group
    X, y, _ = classes(2)
    there, here = there_and_here(machine(kind), X, y, cuts=cuts)
    assert_same_classes(there, here, X[:50])


@pytest.mark.parametrize("kind", KINDS)
def test_names_weights_and_intercept(client, kind):
    X, y, weight = classes(3, ["low", "middle", "high"])
    model = machine(kind, intercept=True, validation=3, class_weight="balanced")
    there, here = there_and_here(model, X, y, weight)
    assert_array_equal(there.classes_, ["high", "low", "middle"])
    assert there.decision_function(X[:5]).shape == (5, 3)
    assert_same_classes(there, here, X[:50])
    assert_allclose(there.intercept_, here.intercept_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_that_do_not_exclude_each_other(client, kind):
    X, y, weight = classes(4)
    labels = np.column_stack([y > 0, y % 2, y > 2]).astype(int)
    there, here = there_and_here(machine(kind), X, labels, weight)
    assert there.predict(X[:5]).shape == (5, 3)
    assert_same_classes(there, here, X[:50])


def test_names_as_objects_in_frames(client):
    """Names of a column of a data frame, of which a partition has not all."""
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    X, y, _ = classes(3, ["low", "middle", "high"])
    order = np.argsort(y, kind="stable")
    frame = pd.DataFrame(X[order], columns=list("abc")).assign(kind=y[order])
    parts = dd.from_pandas(frame, npartitions=5)
    assert parts["kind"].partitions[0].nunique().compute() == 1
    there = machine("direct").fit(parts[list("abc")], parts["kind"])
    here = machine("direct").fit(frame[list("abc")], frame["kind"])
    assert_array_equal(there.predict(frame[list("abc")]), here.predict(frame[list("abc")]))
    assert_allclose(there.path_.errors, here.path_.errors, atol=1e-12)


def test_classes_of_rows_on_the_cluster_that_are_here(client):
    X, y, weight = classes(3)
    there = machine("direct").fit(lazily(X, CUTS["seven"]), y, weight)
    assert_same_classes(there, machine("direct").fit(X, y, weight), X[:50])


def test_one_class_is_refused(client):
    X, y, _ = classes(2)
    with pytest.raises(ValueError, match="class") as told:
        machine("direct").fit(lazily(X, CUTS["two"]), lazily(np.zeros_like(y), CUTS["two"]))
    with pytest.raises(ValueError, match="class") as expected:
        machine("direct").fit(X, np.zeros_like(y))
    assert str(told.value) == str(expected.value)


def test_growing(client):
    X, y, weight = classes(3)
    given = [lazily(part, CUTS["seven"]) for part in (X, y, weight)]
    there = machine("direct").fit(*given).grow(48, *given)
    here = machine("direct").fit(X, y, weight).grow(48, X, y, weight)
    assert there.n_centers_ in (10, 25, 48)
    assert there.path_.errors.shape == (3, 3)
    assert_same_classes(there, here, X[:50])
