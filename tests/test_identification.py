"""Identified parameters against the truth, with deviations that hold, and their bodies."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dynamics_tools import arm, sensed
from imparo.dynamics import (
    NonparametricDynamics,
    check_consistency,
    identify,
    output_groups,
    plot_stream,
    prequential,
    streamed,
    windowed_rmse,
)


def truth(robot, n=400, seed=0):
    """States, outputs without noise, and the parameters that made them: of a robot that is
    heavier than its description, but as it in shape."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, robot.n_inputs))
    parameters = 1.2 * robot.parameters
    return X, robot.regressor_of(X) @ parameters, parameters


def lasting(shape, rng, keep=0.97):
    """Errors of deviation 1 that last for some 1/(1 − keep) samples."""
    noise = np.sqrt(1 - keep**2) * rng.normal(size=shape)
    for i in range(1, len(noise)):
        noise[i] += keep * noise[i - 1]
    return noise


@pytest.mark.parametrize("robot", [arm, sensed], ids=["torques", "wrench"])
def test_without_noise_the_parameters_are_found_and_possible(robot):
    X, Y, parameters = truth(robot())
    found = identify(robot(), X, Y)
    base = found.model.base_
    assert_allclose(found.values[: base.rank], base.of(parameters), atol=1e-5)
    assert_allclose(found.values[base.rank :], 0, atol=1e-5)
    assert_allclose(found.description[: base.rank], base.of(robot().parameters))
    assert np.isnan(found.description[base.rank :]).all()
    assert found.consistency.ok
    assert check_consistency(robot(), found.parameters).ok
    assert (found.rmse < 1e-5).all()


@pytest.mark.parametrize("kind", ["white", "lasting"])
def test_deviations_hold_for_errors_that_last_too(kind):
    robot, scores, naive = arm(), [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        t = np.arange(600) / 50
        speeds = rng.uniform(0.5, 3, size=(1, 6))
        X = np.sin(t[:, None] * speeds + rng.uniform(0, 6, size=6)) * 2
        parameters = robot.parameters
        Y = robot.regressor_of(X) @ parameters
        noise = lasting(Y.shape, rng) if kind == "lasting" else rng.normal(size=Y.shape)
        found = identify(robot, X, Y + 0.2 * noise, extras=())
        errors = found.values - found.model.base_.of(parameters)
        scores.append(errors / found.std)
        naive.append(errors / found.model.parameter_std_)
    # 30 streams of several parameters: of deviation 1, of which these are rough estimates.
    assert 0.7 < np.sqrt(np.mean(np.square(scores))) < 1.8
    if kind == "lasting":
        assert np.sqrt(np.mean(np.square(naive))) > 1.5 * np.sqrt(np.mean(np.square(scores)))


def test_outputs_are_weighted_by_their_noise():
    robot = sensed()
    X, Y, parameters = truth(robot, 800)
    rng = np.random.default_rng(1)
    sizes = np.array([5.0, 5.0, 5.0, 0.01, 0.01, 0.01])
    noisy = Y + sizes * rng.normal(size=Y.shape)
    found = identify(robot, X, noisy)
    assert_allclose(found.rmse, sizes, rtol=0.15)
    assert_allclose(found.model._scale, sizes, rtol=0.15)
    base = found.model.base_
    errors = (found.values[: base.rank] - base.of(parameters)) / found.std[: base.rank]
    assert np.abs(errors).max() < 6


def test_offsets_and_friction_are_told_apart_from_bodies():
    robot = arm()
    X, Y, _ = truth(robot, 800)
    friction = 0.7 * X[:, 2:4] + 0.4 * np.tanh(X[:, 2:4] / 0.02)
    Y = Y + friction + [3.0, -2.0]
    found = identify(robot, X, Y, extras=("offset", "viscous", "coulomb"))
    values = dict(zip(found.names, found.values, strict=True))
    assert values["offset of shoulder"] == pytest.approx(3, abs=1e-3)
    assert values["viscous of elbow"] == pytest.approx(0.7, abs=1e-3)
    assert values["coulomb of shoulder"] == pytest.approx(0.4, abs=1e-3)


def test_what_motion_does_not_show_stays_as_described():
    robot = arm()
    X, _, parameters = truth(robot, 300)
    X[:, [1, 3, 5]] = 0  # the elbow rests
    Y = robot.regressor_of(X) @ parameters
    found = identify(robot, X, Y, extras=())
    assert (found.rmse < 1e-4).all()
    # Of all parameters that explain the outputs those nearest to the description, up to λ.
    base = found.model.base_
    said, true = base.of(robot.parameters), base.of(parameters)
    assert np.linalg.norm(found.values - said) < np.linalg.norm(true - said) + 1e-3


def test_bodies_that_cannot_exist_are_noticed():
    robot = arm()
    X, _, _ = truth(robot, 400)
    parameters = robot.parameters.copy()
    parameters[14:20] *= -3  # inertia of the lower arm below 0
    Y = robot.regressor_of(X) @ parameters
    noise = 0.01 * np.random.default_rng(0).normal(size=Y.shape)
    found = identify(robot, X, Y + noise)
    assert found.distance > 3
    assert found.consistency.ok  # of the nearest that can


def test_bad_input_is_refused():
    X, Y, _ = truth(arm(), 20)
    with pytest.raises(ValueError, match="rows"):
        identify(arm(), X, Y[:10])
    with pytest.raises(ValueError, match="columns"):
        identify(arm(), X[:, :5], Y)
    with pytest.raises(ValueError, match="NaN"):
        identify(arm(), X, np.full_like(Y, np.nan))


# Streams side by side.


def test_pieces_begin_alike_and_one_piece_is_learned_by_the_model_itself():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    Y = np.sin(X[:, :2])
    before = NonparametricDynamics(n_features=16).fit(X[:30], Y[:30])
    errors = streamed({"NP": before}, X[30:], Y[30:], pieces=3, window=5)["NP"]
    assert errors.shape == (3, 20, 2)
    assert before.n_seen_ == 30
    for k in range(3):
        twin = NonparametricDynamics(n_features=16).fit(X[:30], Y[:30])
        part = slice(30 + 20 * k, 50 + 20 * k)
        expected = windowed_rmse(prequential(twin, X[part], Y[part]) - Y[part], 5)
        assert_allclose(errors[k], expected, rtol=1e-10)
    streamed({"NP": before}, X[30:], Y[30:])
    assert before.n_seen_ == 90
    with pytest.raises(ValueError, match="cannot be cut"):
        streamed({"NP": before}, X[:2], Y[:2], pieces=3)


def test_the_picture_has_a_panel_for_each_unit_and_a_line_for_each_learner():
    plt = pytest.importorskip("matplotlib.pyplot")
    errors = {name: np.random.default_rng(0).random((3, 40, 6)) for name in ("P", "NP", "SP")}
    groups = output_groups(("Fx", "Fy", "Fz", "Tx", "Ty", "Tz"))
    figure = plot_stream(errors, groups, 0.1, floor={"force (N)": 0.5}, title="one")
    assert [ax.get_ylabel() for ax in figure.axes] == [
        "RMSE of force (N)", "RMSE of torque (Nm)",
    ]  # fmt: skip
    assert [len(ax.lines) for ax in figure.axes] == [4, 3]
    line = figure.axes[0].lines[0]
    assert_allclose(line.get_xdata()[[0, -1]], [0.1, 4.0])
    assert_allclose(line.get_ydata(), errors["P"][:, :, :3].mean(axis=(0, 2)))
    plt.close(figure)
