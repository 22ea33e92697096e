"""What the tests of incremental classifiers share: streams, and references from the text."""

import numpy as np

from imparo import IncrementalClassifier


def stream(seed, n=120, n_classes=4, columns=3, spread=1.0):
    """Return rows, and numbers of classes that appear one after the other."""
    rng = np.random.default_rng(seed)
    appeared = 1 + np.arange(n) * n_classes // n
    codes = (rng.random(n) * appeared).astype(int)
    first = np.searchsorted(appeared, np.arange(1, n_classes + 1))[:n]
    codes[first] = np.arange(n_classes)[: len(first)]
    centers = rng.normal(size=(n_classes, columns))
    return centers[codes] + spread * rng.normal(size=(n, columns)), codes


def held_rows(model):
    """Return the rows that are held out now, without the constant."""
    return model._reservoir.rows[:, int(model.intercept) :]


def shown(model, X, y, weight=None):
    """Show rows one by one; return which were learned, in their order, and which are held."""
    places = {row.tobytes(): i for i, row in enumerate(X)}
    order, held = [], set()
    for i in range(len(X)):
        own = None if weight is None else weight[i : i + 1]
        model.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=own)
        now = {places[row.tobytes()] for row in held_rows(model)}
        if weight is None or weight[i] > 0:
            order += sorted((held | {i}) - now)
        held = now
    return order, held


def batch(X, y, classes, penalty, *, forgetting=1.0, weight=None, prior=None, intercept=True):
    """Return W of one solve, shape (T, D), the constant first, and the examples by class.

    ``weight`` is what is left of each row in the end, if it is not γ^age.
    """
    n = len(X)
    fades = forgetting ** np.arange(n - 1, -1, -1.0)
    s = fades if weight is None else fades * weight
    Z = np.column_stack([np.ones(n), X]) if intercept else np.asarray(X)
    Y = np.array([[float(label == c) for c in classes] for label in y]).reshape(n, -1)
    prior = penalty * forgetting**n if prior is None else prior
    A = (Z * s[:, None]).T @ Z + prior * np.eye(Z.shape[1])
    return np.linalg.solve(A, (Z * s[:, None]).T @ Y).T, s @ Y


def weights_of(model):
    """Return W̃, the constant first."""
    return np.column_stack([model.intercept_, model.coef_])


def scores(W, X):
    return W[:, 0] + X @ W[:, 1:].T


def difference(found, expected):
    """Return the largest difference, in units of the largest number or of 1."""
    return np.abs(found - expected).max(initial=0) / np.abs(expected).max(initial=1)


def plain(**parameters):
    """Return a classifier that learns everything and chooses nothing."""
    settings = {"penalty": 1.0, "recoding": 0.0, "holdout": None}
    return IncrementalClassifier(**{**settings, **parameters})


def facts(model, X):
    """Return all that a model says and has chosen, to compare bit for bit."""
    known = {
        name: getattr(model, name)
        for name in (
            "classes_", "coef_", "intercept_", "counts_", "n_seen_", "n_held_out_", "penalty_",
            "recoding_", "temperature_", "prequential_error_", "drifts_",
        )
    }  # fmt: skip
    known["rows"], known["codes"] = model._reservoir.rows, model._reservoir.codes
    known["scores"], known["answers"] = model.decision_function(X), model.predict(X)
    known["novelty"] = model.novelty(X)
    return known


def differing(model, other, X):
    """Return the names of what differs between two models."""
    ours, theirs = facts(model, X), facts(other, X)
    return [name for name in ours if not _equal(ours[name], theirs[name])]


def _equal(a, b):
    if isinstance(a, list):
        return a == b
    a, b = np.asarray(a), np.asarray(b)
    numbers = a.dtype.kind in "fiub"
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=numbers)
