"""Robots in the coordinates of their motors, against joints and virtual work."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import imparo
from imparo.dynamics import (
    GearedRobot,
    ParametricDynamics,
    Robot,
    base_parameters,
    check_consistency,
    identify,
)
from robot_tools import ALL, GRAVITY, TEXT, random_states, reference, states_of, torque_of

pytest.importorskip("pinocchio")

# Motors 4 and 5 drive a wrist together; motor 3 turns backwards.
COUPLING = np.array(
    [
        [1.0, 0, 0, 0, 0],
        [0.5, 1.0, 0, 0, 0],
        [0, 0, -2.0, 0, 0],
        [0, 0, 0, 1.0, 0.7],
        [0, 0, 0, 1.0, -0.7],
    ]
)
INVERSE = np.linalg.inv(COUPLING)


def geared(coupling=COUPLING, **keywords):
    return GearedRobot(
        TEXT, **({"joints": ALL, "gravity": GRAVITY, "coupling": coupling} | keywords)
    )


def couplings(seed):
    """Matrices in general position that have an inverse."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(5, 5)) + 4 * np.diag(rng.choice([-1.0, 1.0], 5))


@given(seed=st.integers(0, 10**6), sign=st.sampled_from([1, -1]))
@settings(max_examples=20, deadline=None)
def test_torques_of_motors_do_the_work_of_newtons_and_eulers_torques_of_joints(seed, sign):
    C = couplings(seed)
    robot = geared(C, sign=sign)
    q, dq, ddq = random_states(seed, 5)
    expected = np.empty((5, 5))
    for i in range(5):
        _, axes = reference(TEXT, states_of(ALL, q[i], dq[i], ddq[i]), GRAVITY)
        torques = sign * np.array([torque_of(axes, name) for name in ALL])
        expected[i] = np.linalg.solve(C.T, torques)  # τ_θᵀ C = τ_qᵀ
    motors = [part @ C.T for part in (q, dq, ddq)]
    close = {"rtol": 0, "atol": 1e-9 * np.abs(expected).max()}
    assert_allclose(robot.inverse_dynamics(*motors), expected, **close)
    assert_allclose(robot.regressor(*motors) @ robot.parameters, expected, **close)
    assert_allclose(robot.regressor_of(np.hstack(motors)) @ robot.parameters, expected, **close)


def test_one_motor_for_each_joint_is_the_robot_itself():
    robot, same = Robot(TEXT, joints=ALL, gravity=GRAVITY), geared(np.eye(5))
    states = random_states(1, 5)
    assert_array_equal(same.regressor(*states), robot.regressor(*states))
    assert_array_equal(same.inverse_dynamics(*states), robot.inverse_dynamics(*states))
    assert_array_equal(same.position_limits, robot.position_limits)
    assert_array_equal(same.velocity_limits, robot.velocity_limits)


def test_one_state_is_a_row_of_many_and_velocities_are_0_where_not_given():
    robot, states = geared(), random_states(2, 5)
    zero = np.zeros((5, 5))
    for method in (robot.regressor, robot.inverse_dynamics):
        many = method(*states)
        for i in range(5):
            assert_allclose(method(*states[:, i]), many[i], rtol=0, atol=1e-12)
        assert_array_equal(method(states[0]), method(states[0], zero, zero))
        assert method(np.empty((0, 5))).shape == (0, *many.shape[1:])


def test_positions_are_those_of_the_joints_and_jacobians_their_derivatives_by_motors():
    robot, joints = geared(), Robot(TEXT, joints=ALL, gravity=GRAVITY)
    q = random_states(3, 5)[0]
    theta = q @ COUPLING.T
    assert_allclose(robot.position(theta, "finger"), joints.position(q, "finger"), atol=1e-12)
    J = robot.jacobian(theta, "finger")
    for k, step in enumerate(1e-6 * np.eye(5)):
        ends = [robot.position(theta + sign * step, "finger") for sign in (1, -1)]
        assert_allclose(J[:, :, k], (ends[0] - ends[1]) / 2e-6, rtol=0, atol=1e-8)


def test_limits_are_the_furthest_and_fastest_that_motors_can_be():
    names = ("turn", "slide", "grip", "wag")
    C = np.array([[1.0, 2, 0, 0], [0, -1, 0, 0], [0, 0, 3, -1], [0, 0, 1, 1]])
    robot = GearedRobot(TEXT, joints=names, coupling=C)
    ends = Robot(TEXT, joints=names).position_limits
    corners = np.array(np.meshgrid(*ends)).reshape(4, -1)
    motors = C @ corners
    assert_allclose(robot.position_limits, np.stack([motors.min(1), motors.max(1)], axis=1))
    speeds = C @ (3 * np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1))
    assert_allclose(robot.velocity_limits, speeds.max(axis=1))
    # A joint without limits leaves those motors without that it turns, and no others.
    free = GearedRobot(TEXT, joints=("spin", "turn"), coupling=[[-1, 1], [0, 1]])
    assert_array_equal(free.position_limits, [[-np.inf, np.inf], [-2, 1.5]])


def test_gears_hide_and_reveal_no_parameters():
    """C⁻ᵀ has an inverse, so that combinations of parameters without effect stay the same."""
    robot, joints = geared(), Robot(TEXT, joints=ALL, gravity=GRAVITY)
    base, expected = base_parameters(robot), base_parameters(joints)
    assert base.rank == expected.rank
    assert base.names == expected.names
    assert_allclose(base.combinations, expected.combinations, rtol=0, atol=1e-8)
    states = random_states(4, 5, 20)
    Phi = robot.regressor(*states)
    pi = np.random.default_rng(4).normal(size=Phi.shape[-1])
    full = Phi @ pi
    assert_allclose(
        base.reduce(Phi) @ base.of(pi), full, rtol=0, atol=1e-9 * np.abs(full).max()
    )


# Friction and rotors.

VISCOUS, COULOMB, ROTOR = np.random.default_rng(5).uniform(0.1, 1, (3, 5))
EXTRAS = ("viscous", "coulomb", "rotor")


def log_of_motors(n=400, noise=0.0):
    """States of motors, and their torques: of the bodies, and of friction in each motor."""
    rng = np.random.default_rng(6)
    q, dq, ddq = random_states(6, 5, n)
    joints = Robot(TEXT, joints=ALL, gravity=GRAVITY)
    theta, speed, rise = (part @ COUPLING.T for part in (q, dq, ddq))
    bodies = joints.inverse_dynamics(q, dq, ddq) @ INVERSE
    friction = VISCOUS * speed + COULOMB * np.tanh(speed / 0.02) + ROTOR * rise
    Y = bodies + friction + noise * rng.standard_normal(bodies.shape)
    return np.hstack([theta, speed, rise]), Y


def test_friction_and_rotors_are_those_of_the_motors():
    X, Y = log_of_motors()
    new, truth = X[300:], Y[300:]
    model = ParametricDynamics(geared(), extras=EXTRAS).fit(X[:300], Y[:300])
    assert_allclose(model.predict(new), truth, rtol=0, atol=1e-4 * np.abs(truth).max())
    found = model.parameters_[model.base_.rank :].reshape(3, 5)
    # The rotor of a motor that drives one joint alone is no different from a body.
    assert_allclose(found[:2], [VISCOUS, COULOMB], rtol=0, atol=1e-3)
    assert model.parameter_names_[-1] == f"rotor of {ALL[-1]}"
    # Joints cannot explain friction that depends on sums of their velocities.
    torques = Y @ COUPLING
    joints = Robot(TEXT, joints=ALL, gravity=GRAVITY)
    states = np.hstack([part @ INVERSE.T for part in np.split(X, 3, axis=1)])
    other = ParametricDynamics(joints, extras=EXTRAS).fit(states[:300], torques[:300])
    errors = other.predict(states[300:]) - torques[300:]
    assert np.sqrt(np.mean(errors**2)) > 0.1


def test_parameters_of_a_geared_robot_can_be_identified():
    X, Y = log_of_motors(noise=0.01)
    Y = Y - ROTOR * X[:, 10:]  # rotors of single joints could not be told from bodies
    robot = geared()
    found = identify(robot, X, Y, extras=("viscous", "coulomb"), penalty=1e-9)
    assert_allclose(found.rmse, 0.01, rtol=0.2)
    rank = found.model.base_.rank
    assert np.abs((found.values - found.description)[:rank] / found.std[:rank]).max() < 5
    assert_allclose(found.values[rank:], [*VISCOUS, *COULOMB], rtol=0, atol=0.01)
    assert found.consistency.ok
    assert check_consistency(robot, found.parameters).ok


# Files and copies, and what is refused.


@pytest.mark.parametrize("how", ["save", "pickle", "deepcopy"])
@pytest.mark.parametrize("used", [False, True])
def test_geared_robots_survive_files_and_copies(tmp_path, how, used):
    robot, states = geared(sign=-1), random_states(7, 5)
    expected = geared(sign=-1).regressor(*states)
    if used:
        robot.regressor(*states)
    if how == "save":
        imparo.save(robot, tmp_path / "robot.imparo")
        same = imparo.load(tmp_path / "robot.imparo")
    else:
        same = pickle.loads(pickle.dumps(robot)) if how == "pickle" else copy.deepcopy(robot)
    assert type(same) is GearedRobot
    assert_array_equal(same.regressor(*states), expected)
    assert_array_equal(same.coupling, COUPLING)
    assert_array_equal(same.position_limits, robot.position_limits)


def test_a_learner_with_a_geared_robot_survives_files(tmp_path):
    X, Y = log_of_motors(60)
    model = ParametricDynamics(geared(), extras=EXTRAS).fit(X[:40], Y[:40])
    imparo.save(model, tmp_path / "model.imparo")
    same = imparo.load(tmp_path / "model.imparo")
    for learner in (model, same):
        learner.partial_fit(X[40:50], Y[40:50])
    assert_array_equal(same.predict(X[50:]), model.predict(X[50:]))


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"coupling": np.eye(4)}, r"coupling has the shape \(4, 4\); 5 rows of 5 finite"),
        ({"coupling": np.full((5, 5), np.inf)}, "5 rows of 5 finite numbers were expected"),
        ({"coupling": "geared"}, "coupling='geared' must be 5 rows of 5 finite numbers"),
        ({"coupling": np.ones((5, 5))}, "coupling is singular: .*; give a matrix that has an"),
        ({"sensor": "ft"}, "sensor 'ft' does not depend on gears; use Robot"),
    ],
    ids=["shape", "infinite", "text", "singular", "sensor"],
)
def test_gears_that_cannot_be_are_refused(keywords, sentence):
    with pytest.raises(ValueError, match=sentence):
        geared(**keywords)


@pytest.mark.parametrize("method", ["regressor", "inverse_dynamics"])
@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        ((np.zeros((2, 4)),), r"q has the shape \(2, 4\); one column"),
        ((np.zeros(5), np.zeros(4)), r"dq has the shape \(4,\) and q has \(5,\)"),
        ((np.zeros(5), None, np.full(5, np.nan)), "ddq holds NaN"),
    ],
    ids=["columns", "differ", "nan"],
)
def test_bad_states_of_motors_are_named(method, states, sentence):
    with pytest.raises(ValueError, match=sentence):
        getattr(geared(), method)(*states)
