"""The arm in NumPy alone against d'Alembert's principle, energy, and Pinocchio."""

import copy
import pickle
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import imparo
from imparo.dynamics import ParametricDynamics, Robot, SerialArm, base_parameters, circle
from imparo.dynamics.urdf_tables import urdf_of_dh
from robot_tools import GRAVITY, of_rpy, random_states

ROWS = np.array(
    [(0.1, 0.3, 0.2, 0.5), (0.0, -1.2, 0.1, 0.0), (0.3, 1.5, -0.2, 1.0), (0.1, 0.4, 0.3, -2.0)]
)
J = len(ROWS)
DOWN = np.array(GRAVITY)


class Points:
    """An arm whose bodies are some points with masses: no formula of rigid bodies is needed."""

    def __init__(self, seed=0, **keywords):
        rng = np.random.default_rng(seed)
        self.masses = rng.uniform(0.1, 1, (J, 5))
        self.points = rng.uniform(-0.3, 0.3, (J, 5, 3))
        parameters = []
        for m, c in zip(self.masses, self.points, strict=True):
            II = sum(
                a * (p @ p * np.eye(3) - np.outer(p, p)) for a, p in zip(m, c, strict=True)
            )
            moments = [II[0, 0], II[0, 1], II[1, 1], II[0, 2], II[1, 2], II[2, 2]]
            parameters.append([m.sum(), *(m @ c), *moments])
        self.arm = SerialArm(ROWS, parameters=parameters, gravity=GRAVITY, **keywords)

    def places(self, q):
        """Where the points are, (J, 5, 3), with Craig's matrices one after the other."""
        R, p, found = np.eye(3), np.zeros(3), []
        for (a, alpha, d, theta), angle, points in zip(ROWS, q, self.points, strict=True):
            lean = of_rpy([alpha, 0, 0])
            p = p + R @ lean @ [a, 0, d]
            R = R @ lean @ of_rpy([0, 0, theta + angle])
            found.append(p + points @ R.T)
        return np.array(found)

    def forces(self, q, dq, ddq, h=1e-3):
        """Masses times accelerations less gravity, by differences of fourth order."""
        near = [self.places(q + s * h * dq + (s * h) ** 2 / 2 * ddq) for s in range(-2, 3)]
        weights = np.array([-1, 16, -30, 16, -1]) / (12 * h**2)
        accelerations = np.tensordot(weights, near, 1)
        return self.masses[..., None] * (accelerations - DOWN)

    def energy(self, q, dq, h=1e-4):
        moved = (self.places(q + h * dq) - self.places(q - h * dq)) / (2 * h)
        kinetic = 0.5 * (self.masses * (moved**2).sum(axis=-1)).sum()
        return kinetic - (self.masses * (self.places(q) @ DOWN)).sum()


def state(seed):
    return random_states(seed, J, 1)[:, 0]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_torques_do_the_work_of_the_forces_on_points(seed):
    made, (q, dq, ddq) = Points(seed), state(seed)
    forces, h = made.forces(q, dq, ddq), 1e-5
    expected = [
        ((made.places(q + step) - made.places(q - step)) / (2 * h) * forces).sum()
        for step in h * np.eye(J)
    ]
    scale = np.abs(expected).max()
    assert_allclose(made.arm.inverse_dynamics(q, dq, ddq), expected, rtol=0, atol=1e-6 * scale)


@pytest.mark.parametrize("sensor", [1, 2, 3, 4])
def test_the_wrench_is_that_of_the_forces_on_all_points_beyond_the_cut(sensor):
    made = Points(sensor, sensor=sensor)
    q, dq, ddq = state(sensor)
    forces = made.forces(q, dq, ddq)[sensor - 1 :].reshape(-1, 3)
    places, axes = made.arm.frames(q)
    arms = made.places(q)[sensor - 1 :].reshape(-1, 3) - places[sensor]
    parts = (forces.sum(axis=0), np.cross(arms, forces).sum(axis=0))
    expected = np.concatenate([axes[sensor].T @ part for part in parts])
    scale = np.abs(expected).max()
    assert_allclose(made.arm.inverse_dynamics(q, dq, ddq), expected, rtol=0, atol=1e-6 * scale)


def test_power_of_the_torques_is_the_change_of_energy():
    made, h = Points(), 1e-4
    for seed in range(5):
        q, dq, ddq = state(seed)
        after, before = (
            made.energy(q + s * dq + s**2 / 2 * ddq, dq + s * ddq) for s in (h, -h)
        )
        power = made.arm.inverse_dynamics(q, dq, ddq) @ dq
        assert_allclose(power, (after - before) / (2 * h), rtol=1e-4, atol=1e-4)


def test_at_rest_a_sensor_holds_the_weight_beyond_it():
    made = Points(sensor=2)
    q = state(1)[0]
    wrench = made.arm.inverse_dynamics(q)
    mass = made.masses[1:].sum()
    assert_allclose(made.arm.frames(q)[1][2] @ wrench[:3], -mass * DOWN, rtol=1e-12)
    centre = (made.masses[1:, :, None] * made.places(q)[1:]).sum(axis=(0, 1)) / mass
    turn = np.cross(centre - made.arm.position(q, "link_2"), -mass * DOWN)
    assert_allclose(made.arm.frames(q)[1][2] @ wrench[3:], turn, rtol=1e-9)


def test_two_arms_in_one_need_the_sum_of_their_torques():
    one, two = (Points(seed).arm for seed in (0, 1))
    both = SerialArm(
        ROWS, parameters=one.body_parameters + 2 * two.body_parameters, gravity=GRAVITY
    )
    states = random_states(0, J)
    expected = one.inverse_dynamics(*states) + 2 * two.inverse_dynamics(*states)
    assert_allclose(both.inverse_dynamics(*states), expected, rtol=1e-10)


def test_places_are_those_of_craigs_matrices_and_jacobians_their_derivatives():
    made, q = Points(tip=(0.1, -0.2, 0.3)), random_states(2, J)[0]
    made.points = np.tile(np.array(made.arm.tip), (J, 5, 1))
    tips = made.arm.position(q, "tip")
    assert_allclose(tips, [made.places(row)[-1, 0] for row in q], atol=1e-12)
    for frame in ("tip", "link_4", "joint_2", "link_0"):
        jacobian = made.arm.jacobian(q, frame)
        for k, step in enumerate(1e-6 * np.eye(J)):
            after, before = (made.arm.position(q + s * step, frame) for s in (1, -1))
            assert_allclose(jacobian[:, :, k], (after - before) / 2e-6, atol=1e-8)
        assert_allclose(made.arm.jacobian(q[0], frame), jacobian[0], atol=1e-12)
        assert_allclose(made.arm.position(q[0], frame), made.arm.position(q, frame)[0])


@pytest.mark.parametrize("sensor", [None, 3])
def test_one_state_is_a_row_of_many_whatever_their_number(sensor):
    arm, states = Points(sensor=sensor).arm, random_states(3, J, 600)
    opposite = Points(sensor=sensor, sign=-1).arm
    many = arm.regressor(*states)
    assert many.shape == (600, arm.n_outputs, len(arm.parameter_names))
    for i in (0, 255, 256, 599):
        assert_allclose(arm.regressor(*states[:, i]), many[i], rtol=0, atol=1e-12)
    assert_allclose(arm.regressor_of(np.hstack(states)), many, rtol=0, atol=1e-12)
    assert_array_equal(opposite.regressor(*states), -many)
    zero = np.zeros((600, J))
    assert_array_equal(arm.regressor(states[0]), arm.regressor(states[0], zero, zero))
    assert arm.regressor(np.empty((0, J))).shape == (0, *many.shape[1:])


@given(seed=st.integers(0, 10**6), n=st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_torques_are_those_of_pinocchio(seed, n):
    pytest.importorskip("pinocchio")
    rows = np.random.default_rng(seed).uniform(-1.5, 1.5, (n, 4))
    arm, robot = (cls.from_dh(rows, gravity=GRAVITY) for cls in (SerialArm, Robot))
    states = random_states(seed, n)
    expected = robot.regressor(*states)
    size = max(1.0, np.abs(expected).max())
    assert_allclose(arm.regressor(*states), expected, rtol=0, atol=1e-10 * size)
    assert_allclose(
        arm.position(states[0], f"link_{n}"), robot.position(states[0], f"link_{n}"), atol=1e-10
    )
    for name in ("joints", "output_names", "parameter_names", "n_inputs"):
        assert getattr(arm, name) == getattr(robot, name)
    assert_array_equal(arm.position_limits, robot.position_limits)
    assert_array_equal(arm.velocity_limits, robot.velocity_limits)


@pytest.mark.parametrize("sensor", [1, 3, 4])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_wrench_is_that_of_pinocchio_behind_a_fixed_joint(sensor, sign):
    pytest.importorskip("pinocchio")
    tree = ET.fromstring(urdf_of_dh(ROWS))
    for joint in tree.findall("joint"):
        if joint.find("parent").get("link") == f"link_{sensor}":
            joint.find("parent").set("link", "cut")
    ET.SubElement(tree, "link", {"name": "cut"})
    fixed = ET.SubElement(tree, "joint", {"name": "ft", "type": "fixed"})
    ET.SubElement(fixed, "parent", {"link": f"link_{sensor}"})
    ET.SubElement(fixed, "child", {"link": "cut"})
    text = ET.tostring(tree, encoding="unicode")
    robot = Robot(text, sensor="ft", sign=sign, gravity=GRAVITY)
    arm = SerialArm(ROWS, sensor=sensor, sign=sign, gravity=GRAVITY)
    states = random_states(4, J, 50)
    assert_allclose(arm.regressor(*states), robot.regressor(*states), rtol=0, atol=1e-10)
    ours, theirs = base_parameters(arm), base_parameters(robot)
    assert_array_equal(ours.columns, theirs.columns)
    assert_allclose(ours.combinations, theirs.combinations, atol=1e-9)


def test_physics_with_it_is_learned_and_names_what_can_be_seen():
    arm = Points(sensor=3).arm
    states = random_states(5, J, 200)
    model = ParametricDynamics(arm).learn(*states, arm.inverse_dynamics(*states) + 1.5)
    # Two bodies: all ten of the first, and seven of the second, whose joint has an axis.
    assert model.base_.rank == 17
    assert_allclose(model.parameters_[:17], model.base_.of(arm.parameters), atol=1e-4)
    assert_allclose(model.parameters_[17:], 1.5, atol=1e-4)
    # Friction is for joints: where torques are the outputs it can be had, as with a Robot.
    ParametricDynamics(SerialArm(ROWS), extras=("viscous",)).learn(*states, states[0])
    with pytest.raises(ValueError, match="does not feel it"):
        ParametricDynamics(arm, extras=("viscous",)).learn(*states, np.zeros((200, 6)))


def test_a_path_can_be_made_for_it():
    arm = SerialArm([(0, 0, 0, 0), (1, 0, 0, 0)], tip=(1, 0, 0))
    path = circle(arm, "tip", centre=(1, 0.5, 0), start=[-0.5, 1.5])
    radii = np.linalg.norm(arm.position(path.q, "tip") - [1, 0.5, 0], axis=1)
    assert_allclose(radii, 0.1, atol=1e-6)


def test_what_is_saved_copied_or_kept_is_the_same(tmp_path):
    arm = Points(sensor=3, tip=(0, 0, 1), velocity_limits=[1, 2, np.inf, 4]).arm
    states = random_states(6, J, 50)
    assert arm.parameters.shape == (20,)  # a cached property, which no file holds
    y = arm.inverse_dynamics(*states)
    model = ParametricDynamics(arm).learn(*states, y)
    imparo.save(model, tmp_path / "arm.imparo")
    again = imparo.load(tmp_path / "arm.imparo")
    assert_array_equal(again.predict(*states), model.predict(*states))
    kept = again.robot
    for other in (kept, copy.deepcopy(arm), pickle.loads(pickle.dumps(arm))):
        assert isinstance(other, SerialArm)
        assert_array_equal(other.inverse_dynamics(*states), y)
        assert_array_equal(other.position(states[0], "tip"), arm.position(states[0], "tip"))
        assert_array_equal(other.velocity_limits, arm.velocity_limits)
        assert repr(other) == repr(arm)
    with imparo.lifelong.open(tmp_path / "kept", ParametricDynamics(arm)) as learner:
        for i in range(10):
            learner.learn(*states[:, i], y[i])
    with imparo.lifelong.open(tmp_path / "kept") as learner:
        one = ParametricDynamics(arm).learn(*states[:, :10], y[:10])
        assert_allclose(learner.predict(*states), one.predict(*states), rtol=0, atol=1e-12)


BAD = {
    "no table": (([1, 2, 3, 4],), {}, "one row"),
    "words": (("arm",), {}, "one row"),
    "NaN in the table": (([(0, np.nan, 0, 0)],), {}, "NaN"),
    "sensor 0": ((ROWS,), {"sensor": 0}, "from 1 to 4"),
    "sensor 5": ((ROWS,), {"sensor": 5}, "from 1 to 4"),
    "sensor by name": ((ROWS,), {"sensor": "wrist"}, "from 1 to 4"),
    "sensor True": ((ROWS,), {"sensor": True}, "from 1 to 4"),
    "sign": ((ROWS,), {"sign": 2}, "must be 1"),
    "gravity": ((ROWS,), {"gravity": 9.81}, "gravity=9.81 must be 3 finite numbers"),
    "tip": ((ROWS,), {"tip": (0, np.inf, 0)}, "tip=.* must be 3 finite numbers"),
    "few parameters": ((ROWS,), {"parameters": np.zeros((2, 10))}, "must be 4 x 10 finite"),
    "parameters in words": ((ROWS,), {"parameters": "heavy"}, "must be 4 x 10 finite"),
    "limits": ((ROWS,), {"position_limits": [(1, 0)] * 4}, "low <= high"),
    "NaN as a limit": ((ROWS,), {"position_limits": [(np.nan, 0)] * 4}, "must be 4 x 2"),
    "speed 0": ((ROWS,), {"velocity_limits": [1, 1, 0, 1]}, "above 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_arm_is_said_so(case):
    given, keywords, words = BAD[case]
    with pytest.raises(ValueError, match=words):
        SerialArm(*given, **keywords)


def test_what_is_no_state_or_frame_is_said_so():
    arm = SerialArm(ROWS)
    with pytest.raises(ValueError, match="one column was expected for each of the 4 joints"):
        arm.regressor(np.zeros((5, 3)))
    with pytest.raises(ValueError, match="NaN or infinity"):
        arm.regressor([0, 0, 0, np.nan])
    with pytest.raises(ValueError, match="dq has the shape"):
        arm.regressor(np.zeros((5, 4)), np.zeros((4, 4)))
    for frame in ("hand", "link_5", 3):
        with pytest.raises(ValueError, match="it has link_0 to link_4"):
            arm.position(np.zeros(4), frame)
