"""Figures of chapter 4 on the thesis' data, splits and settings (needs ``IMPARO_DATA``)."""

import numpy as np
import pytest

from imparo import KernelRegressor, NystromClassifier, NystromRegressor, NytroRegressor

PENALTIES = np.logspace(-12, 0, 25)
SIZES = [128, 256, 512, 1024, 2048]
# The largest takes longer than all others together.
sizes = pytest.mark.parametrize(
    "sizes", [SIZES[:-1], pytest.param(SIZES, marks=pytest.mark.slow)], ids=lambda s: s[-1]
)


def scaled(X, low=0.0, high=1.0):
    X = X.astype(float)
    least, span = X.min(axis=0), np.ptp(X, axis=0)
    return low + (high - low) * (X - least) / np.where(span > 0, span, 1.0)


def rmse(model, X, y):
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


@sizes
def test_cpu(real_data, sizes):
    """Table 4.1: 2.8466 ± 0.0497 over ten trials, m up to 2048."""
    data = real_data("cpu_act")
    X, y = scaled(data["X"]), data["y"].astype(float)
    errors = [
        rmse(
            NystromRegressor(
                sigma=1.0, penalty=PENALTIES, n_centers=sizes, random_state=seed
            ).fit(X[:6554], y[:6554]),
            X[6554:],
            y[6554:],
        )
        for seed in range(3)
    ]
    assert np.mean(errors) <= 2.85


@sizes
def test_insurance(real_data, sizes):
    """Table 4.1: 0.23180 ± 4e-5."""
    data = real_data("insurance_coil2000")
    X = scaled(np.vstack([data["X_train"], data["X_test"]]), -1, 1)
    n, y, y_test = len(data["y_train"]), data["y_train"].astype(float), data["y_test"]
    errors = [
        rmse(
            NystromRegressor(
                sigma=3.0, penalty=PENALTIES, n_centers=sizes, random_state=seed
            ).fit(X[:n], y),
            X[n:],
            y_test,
        )
        for seed in range(3)
    ]
    assert np.mean(errors) <= 0.232


def test_breast_cancer(real_data):
    """Section 4.2.4: 1.86 % with few centers, 1.24 % with many."""
    data = real_data("breastcancer_thesis")
    sizes = np.linspace(5, 300, 20).astype(int)
    errors = []
    for seed in range(10):
        model = NystromClassifier(
            sigma=0.9, penalty=np.logspace(-12, -3, 20), n_centers=sizes, random_state=seed
        ).fit(data["X_train"], data["y_train"])
        errors.append(1 - model.score(data["X_test"], data["y_test"]))
    assert np.mean(errors) <= 0.019


def test_few_centers_are_enough_on_pumadyn(real_data):
    """Section 4.2.4: m = 62 has the error, 0.033, of m = 1000; here of exact KRLS.

    Over eight seeds 150 centers or fewer have 0.03292 ± 3e-5, exact KRLS has 0.03290.
    """
    data = real_data("pumadyn32nh")
    X, y = scaled(data["X"], -1, 1), data["y"].astype(float)
    train, test = slice(0, 4096), slice(4096, None)
    penalties = np.logspace(-7, 0, 20)
    # The penalty that leave-one-out selects of these: tests/test_exact.py.
    exact = KernelRegressor(sigma=2.66, penalty=penalties[11]).fit(X[train], y[train])
    errors = []
    for seed in range(4):
        model = NystromRegressor(
            sigma=2.66, penalty=penalties, n_centers=[50, 100, 150], validation=5,
            random_state=seed,
        ).fit(X[train], y[train])  # fmt: skip
        errors.append(rmse(model, X[test], y[test]))
    assert np.mean(errors) <= 1.003 * rmse(exact, X[test], y[test])


def test_a_penalty_of_1e_15_on_cpu_small(real_data):
    """Section 4.2.4: σ = 0.1, λ down to 1e-15; the thesis has 13.3 at m = 2679."""
    data = real_data("cpu_small")
    X, y = scaled(data["X"]), data["y"].astype(float)
    model = NystromRegressor(
        sigma=0.1, penalty=[1e-15, 1e-13, 1e-12], n_centers=[500, 1500], random_state=0
    ).fit(X[:6554], y[:6554])
    assert np.isfinite(model.path_.errors).all()
    assert rmse(model, X[6554:], y[6554:]) < 20


def test_early_stopping_has_the_error_of_a_penalty_on_insurance(real_data):
    """Table 4.3: NYTRO and NKRLS both have 0.4651 (labels ±1, so twice the error of 0/1)."""
    data = real_data("insurance_coil2000")
    X = scaled(np.vstack([data["X_train"], data["X_test"]]), -1, 1)
    n = len(data["y_train"])
    y, y_test = 2.0 * data["y_train"] - 1, 2.0 * data["y_test"] - 1
    model = NytroRegressor(sigma=3.0, n_centers=1000, filter="nu", random_state=0)
    assert rmse(model.fit(X[:n], y), X[n:], y_test) <= 0.4675
