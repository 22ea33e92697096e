"""Figures and table of chapter 6 on the thesis' data and settings (needs ``IMPARO_DATA``)."""

import numpy as np
import pytest

from imparo import SGMClassifier

trials = pytest.mark.parametrize("trials", [1, pytest.param(3, marks=pytest.mark.slow)])


@pytest.fixture
def held_losses(real_data):
    """Return a function: mean hinge loss on test rows along a path, n = 1000 of adult."""
    data = real_data("adult")
    X, X_test = (2.0 * data[f"X_{part}"][:-1] - 1 for part in ("train", "test"))
    y, y_test = (data[f"y_{part}"][:-1] for part in ("train", "test"))

    def along(trials=3, **settings):
        found = []
        for seed in range(trials):
            rng = np.random.RandomState(seed)
            fitted, held = rng.permutation(len(y))[:1000], rng.permutation(len(y_test))[:2000]
            model = SGMClassifier(
                sigma=4.0, features="exact", average=False, patience=None, random_state=seed,
                validation=[(np.arange(1000), np.arange(1000, 3000))], **settings,
            )  # fmt: skip
            model.fit(np.vstack([X[fitted], X_test[held]]), np.append(y[fitted], y_test[held]))
            found.append(model.path_.losses)
        return np.mean(found, axis=0)

    return along


@trials
def test_many_passes_with_a_fixed_step_over_fit(held_losses, trials):
    """Figure 6.1 (a): the least loss is reached before 20 passes, then it grows."""
    losses = held_losses(trials, step=1 / np.sqrt(1000), epochs=np.arange(1, 81))
    best = losses.argmin() + 1
    assert 2 < best < 20
    assert losses[-1] > 1.04 * losses.min()
    assert losses[0] > 1.1 * losses.min()


@trials
def test_many_passes_with_a_decaying_step_do_not(held_losses, trials):
    """Figure 6.1 (b): no over-fitting in the first passes, and slower."""
    losses = held_losses(trials, step=0.25, decay=0.5, epochs=[1, 5, 10, 20, 40, 80])
    assert (np.diff(losses) < 0).all()
    assert losses[-1] > 0.38


def test_a_large_step_over_fits_and_a_small_one_over_smooths(held_losses):
    """Figure 6.2 (a): one pass, η from 1e-3 to 1."""
    losses = held_losses(step=np.geomspace(1e-3, 1, 30))
    assert 5 < losses.argmin() < 29
    assert losses[-1] > 1.03 * losses.min()
    assert losses[0] > 2 * losses.min()


def test_a_fast_decay_over_smooths(held_losses):
    """Figure 6.2 (b): one pass, η = ¼; the least loss is at a slow decay."""
    losses = held_losses(step=0.25, decay=np.linspace(0, 1, 30))
    assert losses.argmin() < 6
    assert losses[-1] > 2 * losses.min()


def test_adult(real_data):
    """Table 6.2: 15.2 ± 0.8 % with a constant step, LIBSVM 15.3 %."""
    data = real_data("adult")
    X, X_test = (2 * data[f"X_{part}"].astype("float32") - 1 for part in ("train", "test"))
    for features, m in (("nystrom", 1000), ("fourier", 4000)):
        model = SGMClassifier(sigma=4.0, features=features, n_features=m, random_state=0)
        model.fit(X, data["y_train"])
        assert len(model.path_.axes["step"]) == 30
        assert model.n_steps_ == len(X)
        assert model.score(X_test, data["y_test"]) >= 1 - 0.153


@pytest.mark.parametrize(
    "mode",
    [
        {},
        {"average": False, "decay": "auto"},
        {"average": False, "step": "nonsmooth-constant", "epochs": range(1, 61)},
    ],
)
def test_breast_cancer(real_data, mode):
    """Table 6.2: 3.0 to 3.2 ± 1.1 % over ten trials."""
    data = real_data("breastcancer_thesis")
    X = np.vstack([data["X_train"], data["X_test"]])
    y = np.append(data["y_train"], data["y_test"])
    errors = []
    for seed in range(10):
        order = np.random.RandomState(seed).permutation(len(y))
        fitted, held = order[:400], order[400:]
        model = SGMClassifier(sigma=0.4, random_state=seed, **mode).fit(X[fitted], y[fitted])
        errors.append(1 - model.score(X[held], y[held]))
    assert np.mean(errors) <= 0.032
