"""Stochastic gradients: sizes of steps, the search among them, and when to stop."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from imparo import SGMClassifier, SGMRegressor
from imparo.errors import SelectionWarning
from imparo.kernels import Polynomial
from imparo.losses import EpsilonInsensitive
from imparo.steps import step_rule
from sgm_tools import (
    AT_THE_END_OF_THE_SEARCH,
    GUESSES,
    SIGMA,
    SPACES,
    VALUES,
    assert_close,
    few_rows,
    gaussian,
    in_steps,
    inner,
    last_or_average,
    loop,
    noisy_rows,
    passes_of,
    per_space,
    places,
    rmse,
    stream,
    two_sides,
    walked,
)

rows = pytest.fixture(few_rows)
split = pytest.fixture(two_sides)
noisy = pytest.fixture(noisy_rows)


# Step sizes

RULES = {
    "smooth-constant": lambda n, b: (n**-0.5, 0, n ** ((1 - b) / (2 * (1 + b)))),
    "smooth-decaying": lambda n, b: (1, 0.5, n ** ((1 - b) / (1 + b))),
    "smooth-one-pass-constant": lambda n, b: (n ** (-b / (b + 1)), 0, 1),
    "smooth-one-pass-decaying": lambda n, b: (1, b / (b + 1), 1),
    "nonsmooth-constant": lambda n, b: (n**-0.5, 0, n ** ((1 - 2 * b) / (4 * b + 2))),
    "nonsmooth-decaying": lambda n, b: (1, 0.5, n ** ((1 - 2 * b) / (2 * b + 1))),
    "nonsmooth-one-pass-constant": lambda n, b: (n ** (-2 * b / (2 * b + 1)), 0, 1),
    "nonsmooth-one-pass-decaying": lambda n, b: (1, 2 * b / (2 * b + 1), 1),
}


@pytest.mark.parametrize("beta", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("name", RULES)
def test_rules_are_those_of_the_corollaries(rows, name, beta):
    """Corollaries 2 to 9, the numbers of steps divided by n and rounded up."""
    X, y, _ = rows
    eta, theta, epochs = RULES[name](42, beta)
    loss = "logistic" if name.startswith("smooth") else "hinge"
    # 2/(κ²L) is 8 for the logistic loss, whose L is ¼.
    first = 8 if name.startswith("smooth") else 1
    epochs = max(1, int(np.ceil(epochs - 1e-9)))
    model = SGMClassifier(
        sigma=SIGMA, loss=loss, step=name, beta=beta, epochs="rule", random_state=0
    ).fit(X, y > 0)
    assert model.step_ == pytest.approx(first * eta)
    assert model.decay_ == pytest.approx(theta)
    assert (model.epochs_, model.n_steps_) == (epochs, 42 * epochs)
    assert model.path_ is None
    plain = SGMClassifier(
        sigma=SIGMA, loss=loss, step=model.step_, decay=model.decay_, epochs=epochs,
        random_state=0,
    ).fit(X, y > 0)  # fmt: skip
    assert_close(model.decision_function(X), plain.decision_function(X))


def test_a_rule_may_be_an_object_and_make_any_number_of_passes(rows):
    X, y, _ = rows
    named = SGMRegressor(sigma=SIGMA, step="smooth-decaying", epochs=3, random_state=0)
    given = SGMRegressor(sigma=SIGMA, step=step_rule("smooth-decaying"), epochs=3)
    assert named.fit(X, y).epochs_ == 3
    predictions = given.set_params(random_state=0).fit(X, y).predict(X)
    assert_array_equal(named.predict(X), predictions)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_first_step_is_as_long_as_the_features_allow(rows, intercept):
    """η₁ = 2/(κ²L), κ² being the largest K(x, x), and 1 more with an intercept."""
    X, y, _ = rows
    sizes = {
        "gaussian": 1.0,
        "linear": (X**2).sum(axis=1).max(),
        Polynomial(2): ((X**2).sum(axis=1) + 1).max() ** 2,
    }
    for kernel, size in sizes.items():
        model = SGMRegressor(
            kernel, step="smooth-decaying", intercept=intercept, random_state=0
        ).fit(X, y)
        assert model.step_ == pytest.approx(1 / (size + intercept))


@pytest.mark.parametrize("loss", ["hinge", "absolute", "exponential", EpsilonInsensitive(0.3)])
def test_smooth_rules_are_for_smooth_losses(rows, loss):
    X, y, _ = rows
    for name in RULES:
        model = SGMClassifier(sigma=SIGMA, loss=loss, step=name)
        if name.startswith("nonsmooth"):
            model.fit(X, y > 0)
            continue
        with pytest.raises(ValueError, match=f"use 'non{name}'"):
            model.fit(X, y > 0)


def test_a_rule_goes_by_the_rows_that_are_fitted(rows):
    """Steps of the search are those of 30 rows, and of the model those of 42."""
    X, y, _ = rows
    split = (np.arange(30), np.arange(30, 42))
    settings = {"sigma": SIGMA, "step": "smooth-constant", "batch_size": 42}
    model = SGMRegressor(**settings, epochs=[1, 2, 3], validation=[split]).fit(X, y)
    assert model.step_ == pytest.approx(42**-0.5)
    for epochs, error in zip([1, 2, 3], model.path_.errors, strict=True):
        part = SGMRegressor(**settings, epochs=epochs).fit(X[:30], y[:30])
        assert part.step_ == pytest.approx(30**-0.5)
        assert error == pytest.approx(np.sqrt(np.mean((part.predict(X[30:]) - y[30:]) ** 2)))


def test_a_stream_takes_the_rules_that_do_not_ask_for_n(rows):
    X, y, Z = rows
    model = SGMRegressor(
        sigma=SIGMA, features="exact", step="smooth-one-pass-decaying", beta=0.5
    )
    stream(model, X, y, [5])
    steps = in_steps(np.arange(42))
    found = loop(gaussian(X, X), y, "square", steps, 1.0, decay=1 / 3).solution(True)
    assert_close(model.predict(Z), gaussian(Z, X) @ found[:, 0])
    with pytest.raises(ValueError, match="depends on the number of rows"):
        SGMRegressor(sigma=SIGMA, step="smooth-constant").partial_fit(X, y)


# The search


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("loss", "largest"),
    [("square", 1), ("logistic", 8), ("hinge", 8), ("absolute", 8), ("exponential", 8)],
)
def test_thirty_steps_are_tried(rows, loss, largest, intercept):
    """Of outputs ±1, absolute and exponential slopes at 0 are 1 as well."""
    X, y, _ = rows
    model = SGMClassifier(sigma=SIGMA, loss=loss, intercept=intercept, random_state=0)
    model.fit(X, y > 0)
    axes = model.path_.axes
    assert list(axes) == ["step"]
    assert_allclose(axes["step"], largest / (1 + intercept) * GUESSES)
    assert model.path_.errors.shape == (30,)
    assert model.step_ == model.path_.best["step"]


def test_steps_that_are_tried_have_the_units_of_the_outputs(rows):
    X, y, _ = rows
    for scale in (1e-3, 1.0, 1e3):
        model = SGMRegressor(sigma=SIGMA, loss="absolute", random_state=0).fit(X, scale * y)
        largest = 8 * scale * np.sqrt(np.mean(y**2))
        assert_allclose(model.path_.axes["step"], largest * GUESSES)


def test_thirty_decays_are_tried(rows):
    X, y, _ = rows
    model = SGMClassifier(sigma=SIGMA, decay="auto", random_state=0).fit(X, y > 0)
    assert list(model.path_.axes) == ["decay"]
    assert_allclose(model.path_.axes["decay"], np.arange(30) / 29)
    assert model.step_ == pytest.approx(1 / 4)
    assert model.decay_ == model.path_.best["decay"]
    given = SGMClassifier(sigma=SIGMA, decay="auto", step=0.25, random_state=0).fit(X, y > 0)
    assert_allclose(given.path_.errors, model.path_.errors)


def test_the_step_of_decays_that_are_tried_has_the_units_of_the_outputs(rows):
    X, y, _ = rows
    for scale in (1e-3, 1e3):
        model = SGMRegressor(sigma=SIGMA, loss="absolute", decay="auto", random_state=0)
        expected = scale * np.sqrt(np.mean(y**2)) / 4
        assert model.fit(X, scale * y).step_ == pytest.approx(expected)


@per_space
@last_or_average
def test_errors_of_the_search_follow_the_definition(rows, split, space, average):
    X, y, _ = rows
    fitted, held = split
    steps, decays, epochs = [0.01, 0.1, 0.4], [0.0, 0.5], [1, 3]
    model = SGMRegressor(
        step=steps, decay=decays, epochs=epochs, average=average, validation=[split],
        patience=None, random_state=0, **SPACES[space],
    ).fit(X, y)  # fmt: skip
    path = model.path_
    assert list(path.axes) == ["step", "decay", "epochs"]
    assert path.errors.shape == path.losses.shape == (3, 2, 2)
    passes = walked(X, 3, [split], random_state=0)
    assert {frozenset(order.tolist()) for order in passes} == {frozenset(fitted.tolist())}
    K = inner(model, X, X)
    for i, eta in enumerate(steps):
        for j, theta in enumerate(decays):
            for k, count in enumerate(epochs):
                order = np.concatenate(passes[:count])
                found = loop(K, y, "square", in_steps(order), eta, decay=theta)
                f = (K[held] @ found.solution(average))[:, 0]
                assert path.errors[i, j, k] == pytest.approx(rmse(y[held], f), rel=1e-8)
                assert path.losses[i, j, k] == pytest.approx(rmse(y[held], f) ** 2, rel=1e-8)
    i, j, k = np.unravel_index(np.argmin(path.errors), (3, 2, 2))
    assert (model.step_, model.decay_, model.epochs_) == (steps[i], decays[j], epochs[k])
    assert path.best["error"] == path.errors.min()


@pytest.mark.parametrize("loss", ["absolute", "epsilon_insensitive"])
def test_regression_is_selected_by_its_loss(rows, split, loss):
    X, y, _ = rows
    held = split[1]
    y = 1000 * y
    weight = np.random.default_rng(5).uniform(0.5, 3, 42)
    steps = [10.0, 100.0, 1000.0]
    model = SGMRegressor(
        sigma=SIGMA, features="exact", loss=loss, step=steps, validation=[split],
        random_state=0,
    ).fit(X, y, weight)  # fmt: skip
    (order,) = walked(X, 1, [split], random_state=0)
    K, shares = gaussian(X, X), weight / weight.mean()
    for eta, error, mean in zip(steps, model.path_.errors, model.path_.losses, strict=True):
        found = loop(K, y, loss, in_steps(order), eta, weight=shares).solution(True)
        lost = VALUES[loss](y[held], (K[held] @ found)[:, 0])
        assert error == pytest.approx(np.average(lost, weights=weight[held]))
        assert mean == pytest.approx(error)
    assert model.step_ == steps[np.argmin(model.path_.errors)]


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_classes_are_selected_by_their_errors_and_ties_by_the_loss(rows, split, loss):
    X, y, _ = rows
    held = split[1]
    y = np.digitize(y, [-0.5, 0.5])
    steps = [0.02, 0.05, 0.1, 0.5, 1.0]
    model = SGMClassifier(
        sigma=SIGMA, features="exact", loss=loss, step=steps, validation=[split], random_state=0
    ).fit(X, y)
    (order,) = walked(X, 1, [split], random_state=0)
    K, Y = gaussian(X, X), np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    found = []
    for eta in steps:
        F = K[held] @ loop(K, Y, loss, in_steps(order), eta).solution(True)
        found.append((np.mean(F.argmax(axis=1) != y[held]), np.mean(VALUES[loss](Y[held], F))))
    assert_allclose(model.path_.errors, [error for error, _ in found])
    assert_allclose(model.path_.losses, [mean for _, mean in found])
    assert len({error for error, _ in found}) < len(found)
    assert model.step_ == steps[found.index(min(found))]


@pytest.mark.parametrize("grid", [{"epochs": [1, 2]}, {"epochs": [2, 5], "decay": [0.1, 0.3]}])
def test_steps_side_by_side_are_as_if_alone(rows, split, grid):
    X, y, _ = rows
    settings = {"sigma": SIGMA, "validation": [split], "patience": None, "random_state": 0}
    together = SGMRegressor(step=[0.03, 0.1, 0.3], **settings, **grid).fit(X, y)
    for i, eta in enumerate([0.03, 0.1, 0.3]):
        alone = SGMRegressor(step=eta, **settings, **grid).fit(X, y)
        assert_close(together.path_.errors[i], alone.path_.errors, rtol=1e-10)
        assert_close(together.path_.losses[i], alone.path_.losses, rtol=1e-10)


def test_folds_are_judged_together(rows):
    X, y, _ = rows
    pairs = [(np.flatnonzero(np.arange(42) % 3 != i), np.arange(i, 42, 3)) for i in range(3)]
    weight = np.random.default_rng(5).uniform(0.5, 3, 42)
    settings = {"sigma": SIGMA, "epochs": [1, 2], "batch_size": 42}
    model = SGMRegressor(step=[0.5, 1.5], validation=pairs, **settings).fit(X, y, weight)
    for i, eta in enumerate([0.5, 1.5]):
        for k, epochs in enumerate([1, 2]):
            squares = np.empty(42)
            for fitted, held in pairs:
                # A step has the weights of its rows over the mean of all, not of the fold.
                step = eta * weight[fitted].mean() / weight.mean()
                part = SGMRegressor(**(settings | {"epochs": epochs}), step=step)
                part.fit(X[fitted], y[fitted], weight[fitted])
                squares[held] = (part.predict(X[held]) - y[held]) ** 2
            expected = np.sqrt(np.average(squares, weights=weight))
            assert model.path_.errors[i, k] == pytest.approx(expected)


@pytest.mark.parametrize("validation", [0.2, 0.5])
def test_one_pass_goes_on_over_the_rows_held_out(rows, validation):
    X, y, Z = rows
    (order,) = walked(X, 1, validation, random_state=0)
    n = 42 - round(42 * validation)
    assert len(order) == n
    (whole,) = passes_of(X, 1, validation=validation, step=[0.5, 1.0], random_state=0)
    assert_array_equal(whole[:n], order)
    assert_array_equal(np.sort(whole), np.arange(42))
    model = SGMRegressor(
        sigma=SIGMA, features="exact", step=[0.1, 0.3], validation=validation, random_state=0
    ).fit(X, y)
    found = loop(gaussian(X, X), y, "square", in_steps(whole), model.step_).solution(True)
    assert_close(model.predict(Z), gaussian(Z, X) @ found[:, 0])
    assert (model.n_steps_, model.epochs_) == (42, 1)


ANEW = {
    "folds": {"validation": 3},
    "pairs": {"validation": [(np.arange(30), np.arange(30, 42)), (np.arange(12, 42), [0, 1])]},
    "a pair that leaves rows out": {"validation": [(np.arange(30), np.arange(30, 40))]},
    "several passes": {"epochs": 2},
    "a grid of passes": {"epochs": [1, 2]},
}


@pytest.mark.parametrize("how", ANEW)
def test_otherwise_the_model_is_trained_anew_on_all_rows(rows, how):
    X, y, Z = rows
    settings = {"sigma": SIGMA, "random_state": 0, "features": "exact"}
    model = SGMRegressor(step=[0.05, 0.2], **settings, **ANEW[how]).fit(X, y)
    alone = SGMRegressor(step=model.step_, epochs=model.epochs_, **settings).fit(X, y)
    assert_close(model.predict(Z), alone.predict(Z), rtol=1e-10)
    assert model.n_steps_ == 42 * model.epochs_


def test_rows_drawn_with_replacement_are_drawn_anew_for_the_model(rows):
    X, y, Z = rows
    settings = {"sigma": SIGMA, "random_state": 0, "sampling": "replacement"}
    model = SGMRegressor(step=[0.05, 0.2], **settings).fit(X, y)
    alone = SGMRegressor(step=model.step_, **settings).fit(X, y)
    assert_close(model.predict(Z), alone.predict(Z), rtol=1e-10)


def test_centers_are_not_taken_from_rows_held_out(rows, split):
    X, y, _ = rows
    model = SGMRegressor(
        sigma=0.5, features="nystrom", n_features=31, step=[0.1, 0.2], validation=[split],
        random_state=0,
    ).fit(X, y)  # fmt: skip
    assert set(places(model.map_.centers, X)) <= set(split[0])


# Early stopping


def stops(errors, patience):
    """Return after how many judgements errors have not improved for so long."""
    least, since = np.inf, 0
    for k, error in enumerate(errors, start=1):
        since = 0 if error < 0.999 * least else since + 1
        least = min(least, error)
        if since >= patience:
            return k
    return len(errors)


def test_passes_are_chosen_by_early_stopping(noisy):
    X, y = noisy
    model = SGMRegressor(sigma=0.5, epochs="auto", random_state=0).fit(X, y)
    path = model.path_
    assert list(path.axes) == ["step", "epochs"]
    assert_array_equal(path.axes["epochs"], np.arange(1, path.errors.shape[1] + 1))
    judged = np.isfinite(path.errors)
    assert judged[:, 0].all()
    # Once given up, a step size does not come back.
    assert (judged[:, 1:] <= judged[:, :-1]).all()
    assert_array_equal(np.isnan(path.losses), ~judged)
    assert not judged.all()
    assert judged[:, -1].any()
    assert model.path_.best["error"] == np.nanmin(path.errors)
    assert (model.step_, model.epochs_) == (path.best["step"], path.best["epochs"])
    assert isinstance(model.epochs_, int)
    assert model.stopped_ == "patience"
    assert model.n_steps_ == 80 * model.epochs_


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_patience_is_the_number_of_judgements_without_improvement(noisy, patience):
    X, y = noisy
    settings = {"sigma": 0.5, "step": 0.5, "validation": 0.3, "random_state": 0}
    every = SGMRegressor(epochs=range(1, 41), patience=None, **settings).fit(X, y)
    assert every.stopped_ == "passes"
    assert every.path_.errors.shape == (40,)
    assert np.isfinite(every.path_.errors).all()
    count = stops(every.path_.errors, patience)
    assert count < 40
    stopped = SGMRegressor(epochs="auto", patience=patience, **settings).fit(X, y)
    assert stopped.stopped_ == "patience"
    assert_allclose(stopped.path_.errors, every.path_.errors[:count])
    assert stopped.epochs_ == 1 + np.argmin(every.path_.errors[:count])


def test_every_step_size_has_its_own_patience(noisy):
    X, y = noisy
    settings = {"sigma": 0.5, "step": [0.02, 0.2, 0.7], "validation": 0.3, "random_state": 0}
    every = SGMRegressor(epochs=range(1, 41), patience=None, **settings).fit(X, y)
    stopped = SGMRegressor(epochs=range(1, 41), patience=3, **settings).fit(X, y)
    found = stopped.path_.errors
    for errors, part in zip(every.path_.errors, found, strict=True):
        count = int(np.isfinite(part).sum())
        assert_allclose(part[:count], errors[:count])
        assert 1 <= count <= stops(errors, 3)
    assert stopped.path_.best == every.path_.best
    assert_close(stopped.predict(X), every.predict(X))


def test_hopeless_steps_are_given_up_before_the_others(noisy):
    X, y = noisy
    model = SGMRegressor(
        sigma=0.5, step=[1e-9, 0.2], epochs=range(1, 41), validation=0.3, random_state=0
    ).fit(X, y)
    judged = np.isfinite(model.path_.errors).sum(axis=1)
    assert judged[0] < judged[1]


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("batch", [1, 5])
def test_parts_of_passes_are_judged_and_chosen(rows, split, parts, batch):
    X, y, Z = rows
    held = split[1]
    settings = {
        "sigma": SIGMA, "features": "exact", "step": 0.3, "batch_size": batch,
        "random_state": 0,
    }  # fmt: skip
    model = SGMRegressor(
        epochs=2, checks_per_epoch=parts, validation=[split], patience=None, **settings
    ).fit(X, y)
    path = model.path_
    assert list(path.axes) == ["epochs"]
    assert_allclose(path.axes["epochs"], np.arange(1, 2 * parts + 1) / parts)
    K = gaussian(X, X)
    passes = walked(X, 2, [split], random_state=0)
    steps = [step for order in passes for step in in_steps(order, batch)]
    per_pass = len(steps) // 2
    for check, error in enumerate(path.errors, start=1):
        whole, part = divmod(check, parts)
        count = whole * per_pass + int(np.round(part / parts * per_pass))
        found = loop(K, y, "square", steps[:count], 0.3).solution(True)
        assert error == pytest.approx(rmse(y[held], (K[held] @ found)[:, 0]))
    assert model.epochs_ == path.best["epochs"]
    # The model: as large a part of a pass, over all rows.
    everything = [
        step for order in passes_of(X, 2, random_state=0) for step in in_steps(order, batch)
    ]
    per_pass = -(-42 // batch)
    whole, part = divmod(round(model.epochs_ * parts), parts)
    count = whole * per_pass + int(np.round(part / parts * per_pass))
    found = loop(K, y, "square", everything[:count], 0.3).solution(True)
    assert model.n_steps_ == count
    assert_close(model.predict(Z), gaussian(Z, X) @ found[:, 0])


def test_more_judgements_than_steps_are_no_harm(rows):
    X, y, _ = rows
    model = SGMRegressor(
        sigma=SIGMA, step=0.3, batch_size=20, checks_per_epoch=7, random_state=0
    ).fit(X, y)
    assert np.isfinite(model.path_.errors).all()
    assert model.epochs_ == model.path_.best["epochs"]


@pytest.mark.parametrize("loss", ["square", "absolute"])
def test_losses_are_those_of_a_model_stopped_there(noisy, loss):
    X, y = noisy
    split = (np.arange(60), np.arange(60, 80))
    settings = {
        "sigma": 0.5, "loss": loss, "validation": [split], "random_state": 0, "step": [0.1, 0.4]
    }  # fmt: skip
    path = SGMRegressor(epochs=range(1, 6), patience=None, **settings).fit(X, y).path_
    for k in (1, 3, 5):
        model = SGMRegressor(epochs=k, progress=AT_THE_END_OF_THE_SEARCH, **settings)
        model.fit(X, y)
        assert model.stopped_ == "interrupted"
        assert len(model.X_fit_) == 60
        mean = np.mean(VALUES[loss](y[60:], model.predict(X[60:])))
        chosen = [0.1, 0.4].index(model.step_)
        assert path.losses[chosen, k - 1] == pytest.approx(mean, rel=1e-8)


def test_full_batches_are_judged_like_separate_fits(noisy):
    X, y = noisy
    split = (np.arange(60), np.arange(60, 80))
    settings = {"sigma": 0.5, "step": 2.0, "batch_size": 80}
    model = SGMRegressor(epochs=[1, 4, 9, 30], validation=[split], **settings).fit(X, y)
    for k, error in zip([1, 4, 9, 30], model.path_.errors, strict=True):
        part = SGMRegressor(epochs=k, **settings).fit(X[:60], y[:60])
        assert error == pytest.approx(rmse(y[60:], part.predict(X[60:])))


def test_of_models_without_any_loss_the_one_in_use_is_the_best_of_the_path():
    """The small step reaches the hinge loss 0 in two passes, the large one in one."""
    y = np.tile([1, -1], 6)
    model = SGMClassifier(
        "linear", step=[0.07, 0.5], epochs=[1, 2, 3], average=False, random_state=0,
        validation=[(np.arange(8), np.arange(8, 12))],
    ).fit(y[:, None], y)  # fmt: skip
    assert_array_equal(model.path_.losses == 0, [[False, True, True], [True, True, True]])
    best = model.path_.best
    assert (model.step_, model.epochs_) == (best["step"], best["epochs"])


def test_a_step_size_given_up_at_the_last_judgement_may_be_the_best():
    """Errors of both become 0; the larger step has not improved on it, but has less loss."""
    y = np.tile([1, -1], 6)
    X = y[:, None].astype(float)
    # Every step is the same, whatever the row.
    model = SGMClassifier("linear", loss="logistic", step=0.1, average=False, random_state=0)
    model.fit(-X, y)
    model.set_params(
        warm_start=True, step=[0.13, 1.0], checks_per_epoch=2, patience=1,
        validation=[(np.arange(8), np.arange(8, 12))],
    ).fit(X, y)  # fmt: skip
    assert_array_equal(model.path_.errors, [[1, 0], [0, 0]])
    assert model.step_ == 1.0
    assert model.n_steps_ == 24


def test_the_last_of_the_automatic_passes_is_warned_of(rows):
    X, _, _ = rows
    model = SGMRegressor("linear", step=1e-4, epochs="auto", random_state=0)
    with pytest.warns(SelectionWarning, match="100 passes"):
        model.fit(X, X[:, 0])
    assert model.epochs_ == 100
    assert model.stopped_ == "passes"


def test_a_width_is_chosen(rows):
    X, y, _ = rows
    settings = {"step": [0.1, 0.3], "epochs": [1, 4], "validation": 3, "random_state": 0}
    model = SGMRegressor(sigma=[0.01, SIGMA], **settings).fit(X, y)
    assert list(model.path_.axes) == ["sigma", "step", "epochs"]
    assert model.sigma_ == model.path_.best["sigma"] == SIGMA
    assert model.kernel_.sigma == SIGMA
    for i, sigma in enumerate([0.01, SIGMA]):
        alone = SGMRegressor(sigma=sigma, **settings).fit(X, y)
        assert_close(model.path_.errors[i], alone.path_.errors)
    assert_close(model.predict(X), alone.predict(X))
