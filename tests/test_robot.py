"""The robot model against Newton's and Euler's laws, written down link by link."""

import copy
import pickle
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import imparo
from imparo.dynamics import Robot, base_parameters
from robot_tools import (
    ALL,
    ARM,
    GRAVITY,
    TEXT,
    inertial,
    joint,
    of_rpy,
    random_states,
    reference,
    states_of,
    torque_of,
    turned,
    wrench_of,
)

pin = pytest.importorskip("pinocchio")


@given(
    order=st.permutations(ALL),
    n=st.integers(1, 5),
    seed=st.integers(0, 10**6),
    sign=st.sampled_from([1, -1]),
)
@settings(max_examples=30, deadline=None)
def test_torques_are_those_of_newton_and_euler_for_any_joints_order_and_locks(
    order, n, seed, sign
):
    names, others = order[:n], order[n:]
    rng = np.random.default_rng(seed)
    locked = {name: rng.uniform(-1, 1) for name in others}
    robot = Robot(TEXT, joints=names, locked=locked, sign=sign, gravity=GRAVITY)
    q, dq, ddq = random_states(seed, n)
    expected = np.empty((5, n))
    for i in range(5):
        _, axes = reference(TEXT, states_of(names, q[i], dq[i], ddq[i], locked), GRAVITY)
        expected[i] = [sign * torque_of(axes, name) for name in names]
    scale = np.abs(expected).max()
    Phi = robot.regressor(q, dq, ddq)
    assert Phi.shape == (5, n, 10 * len(robot.bodies))
    np.testing.assert_allclose(Phi @ robot.parameters, expected, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(
        robot.inverse_dynamics(q, dq, ddq), expected, rtol=0, atol=1e-9 * scale
    )
    assert robot.output_names == robot.joints == tuple(names)


@given(order=st.permutations(ALL), n=st.integers(1, 5), seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_the_wrench_at_the_sensor_is_that_of_newton_and_euler(order, n, seed):
    names, others = order[:n], order[n:]
    locked = dict(zip(others, np.random.default_rng(seed).uniform(-1, 1, 5), strict=False))
    keywords = {"joints": names, "locked": locked, "sensor": "ft", "gravity": GRAVITY}
    robot, opposite = Robot(TEXT, **keywords), Robot(TEXT, sign=-1, **keywords)
    q, dq, ddq = random_states(seed, n)
    expected = np.empty((5, 6))
    for i in range(5):
        _, axes = reference(TEXT, states_of(names, q[i], dq[i], ddq[i], locked), GRAVITY)
        expected[i] = wrench_of(axes, "ft")
    close = {"rtol": 0, "atol": 1e-9 * np.abs(expected).max()}
    np.testing.assert_allclose(
        robot.regressor(q, dq, ddq) @ robot.parameters, expected, **close
    )
    np.testing.assert_allclose(robot.inverse_dynamics(q, dq, ddq), expected, **close)
    np.testing.assert_allclose(opposite.inverse_dynamics(q, dq, ddq), -expected, **close)
    Phi = opposite.regressor(q, dq, ddq)
    np.testing.assert_allclose(Phi @ robot.parameters, -expected, **close)
    assert robot.output_names == ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")
    assert robot.bodies == (("hand", "finger") if "grip" in names else ("hand",))


def test_sign_and_frame_at_rest_are_those_of_the_docstring():
    """A ball of 2 kg 0.3 m below the sensor, whose y axis points down: held upwards."""
    text = (
        '<robot name="ball"><link name="base"/><link name="arm"/><link name="ball">'
        + inertial(2.0, "0 0.3 0.1", (0, 0, 0, 0, 0, 0))
        + "</link>"
        + joint("swing", "revolute", "base", "arm", "0 0 0", "0 0 0", "0 1 0")
        + joint("cut", "fixed", "arm", "ball", "0 0 -1", f"{-np.pi / 2} 0 0")
        + "</robot>"
    )
    weight = 2 * 9.81
    # In the sensor's frame the force is along −y, at (0, 0.3, 0.1): torque r × f = +0.1 x.
    expected = [0, -weight, 0, 0.1 * weight, 0, 0]
    robot = Robot(text, sensor="cut")
    np.testing.assert_allclose(robot.inverse_dynamics([0.0]), expected, rtol=0, atol=1e-12)
    real = Robot(text, sensor="cut", sign=-1)
    np.testing.assert_allclose(
        real.inverse_dynamics([0.0]), np.negative(expected), rtol=0, atol=1e-12
    )


def test_a_mass_on_a_turntable_needs_centripetal_and_tangential_force():
    text = (
        '<robot name="table"><link name="base"/><link name="disc"/><link name="mass">'
        + inertial(3.0, "0 0 0", (0, 0, 0, 0, 0, 0))
        + "</link>"
        + joint("turn", "continuous", "base", "disc", "0 0 0", "0 0 0", "0 0 1")
        + joint("cut", "fixed", "disc", "mass", "0.5 0 0", "0 0 0")
        + "</robot>"
    )
    robot = Robot(text, sensor="cut", gravity=(0, 0, 0))
    w, a = 4.0, 7.0
    force = [-3 * 0.5 * w * w, 3 * 0.5 * a, 0]
    found = robot.inverse_dynamics([1.0], [w], [a])
    np.testing.assert_allclose(found, [*force, 0, 0, 0], rtol=0, atol=1e-12)
    table = Robot(text, gravity=(0, 0, 0))
    np.testing.assert_allclose(table.inverse_dynamics([1.0], [w], [a]), [3 * 0.25 * a])


# The iCub, against Pinocchio called directly.


def icub(**keywords):
    models = pytest.importorskip("icub_models")
    path = models.get_model_file("iCubGazeboV2_5")
    return Robot("iCubGazeboV2_5", **keywords), path


def reduced(path, joints, locked):
    """Pinocchio's own reduced model, and the places of the joints in it."""
    full = pin.buildModelFromUrdf(path)
    q = pin.neutral(full)
    for name, position in locked.items():
        q[full.idx_qs[full.getJointId(name)]] = position
    others = [j for j in range(1, full.njoints) if full.names[j] not in joints]
    model = pin.buildReducedModel(full, others, q)
    return model, [model.idx_vs[model.getJointId(name)] for name in joints]


LOCKED = {"torso_pitch": 0.4, "torso_yaw": -0.3, "r_wrist_prosup": 0.6, "l_elbow": 0.2}


def test_torques_of_the_icub_arm_are_pinocchios_on_its_reduced_model():
    robot, path = icub(joints=ARM, locked=LOCKED)
    model, places = reduced(path, ARM, LOCKED)
    data = model.createData()
    q, dq, ddq = random_states(0, 4, 20)
    found, Phi = robot.inverse_dynamics(q, dq, ddq), robot.regressor(q, dq, ddq)
    for i in range(20):
        full = np.zeros((3, model.nv))
        full[:, places] = q[i], dq[i], ddq[i]
        expected = pin.rnea(model, data, *full)[places]
        np.testing.assert_allclose(found[i], expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(Phi[i] @ robot.parameters, expected, rtol=0, atol=1e-9)


def beyond(path, joint_name):
    """URDF text of what hangs on a joint, its child link being the root."""
    root = ET.parse(path).getroot()
    joints = root.findall("joint")
    (cut,) = (j for j in joints if j.get("name") == joint_name)
    kept, new = {cut.find("child").get("link")}, ET.Element("robot", {"name": "cut"})
    grown = True
    while grown:
        more = {
            j.find("child").get("link") for j in joints if j.find("parent").get("link") in kept
        }
        grown = not more <= kept
        kept |= more
    for part in root:
        if part.tag == "link" and part.get("name") in kept:
            for picture in part.findall("visual") + part.findall("collision"):
                part.remove(picture)
            new.append(part)
        elif part.tag == "joint" and part.find("parent").get("link") in kept:
            new.append(part)
    return ET.tostring(new, encoding="unicode")


@pytest.mark.parametrize("more", [(), ("r_wrist_yaw", "r_wrist_pitch")], ids=["arm", "wrist"])
def test_the_wrench_of_the_icub_arm_is_that_of_a_floating_base_cut_at_the_sensor(more):
    joints = (*ARM, *more)
    robot, path = icub(joints=joints, locked=LOCKED, sensor="r_arm_ft_sensor")
    model, places = reduced(path, joints, LOCKED)
    data = model.createData()
    floating = pin.buildModelFromXML(beyond(path, "r_arm_ft_sensor"), pin.JointModelFreeFlyer())
    there = floating.createData()
    frame = model.getFrameId("r_arm_ft_sensor")
    local = pin.ReferenceFrame.LOCAL
    names = {name: i for i, name in enumerate(joints)}
    q, dq, ddq = random_states(1, len(joints), 20)
    found, Phi = robot.inverse_dynamics(q, dq, ddq), robot.regressor(q, dq, ddq)
    for i in range(20):
        full = np.zeros((3, model.nv))
        full[:, places] = q[i], dq[i], ddq[i]
        pin.forwardKinematics(model, data, *full)
        pose = pin.updateFramePlacement(model, data, frame)
        Q, V, A = pin.neutral(floating), np.zeros(floating.nv), np.zeros(floating.nv)
        Q[:7] = pin.SE3ToXYZQUAT(pose)
        V[:6] = pin.getFrameVelocity(model, data, frame, local).vector
        A[:6] = pin.getFrameAcceleration(model, data, frame, local).vector
        for j in range(2, floating.njoints):
            name, k = floating.names[j], floating.idx_vs[j]
            Q[floating.idx_qs[j]] = (
                q[i, names[name]] if name in names else LOCKED.get(name, 0.0)
            )
            V[k], A[k] = (x[i, names[name]] if name in names else 0.0 for x in (dq, ddq))
        expected = pin.rnea(floating, there, Q, V, A)[:6]
        np.testing.assert_allclose(found[i], expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(Phi[i] @ robot.parameters, expected, rtol=0, atol=1e-9)


def test_the_mass_beyond_the_icubs_sensor_is_that_of_the_links_there(real_data):
    arrays = real_data("model_icub")
    robot = Robot.from_arrays(arrays, joints=ARM, sensor="r_arm_ft_sensor")
    names = [str(name) for name in arrays["joint_names"]]
    below = [int(arrays["joint_child"][names.index("r_arm_ft_sensor")])]
    for link in below:
        below += arrays["joint_child"][arrays["joint_parent"] == link].tolist()
    mass = arrays["link_mass"][below].sum()
    assert robot.parameters[::10].sum() == pytest.approx(mass, rel=1e-12)
    assert mass == pytest.approx(1.54, abs=0.005)
    force = robot.inverse_dynamics([0.1, 0.2, 0.3, 0.4])[:3]
    assert np.linalg.norm(force) == pytest.approx(9.81 * mass)


# Where joints and the sensor are.


@pytest.mark.parametrize(
    ("joints", "sensor", "rank"),
    [
        (("turn", "slide", "spin"), "ft", 10),  # all before the sensor
        (("grip",), "ft", 8),  # all beyond it, so that it stands still
        (("wag",), "ft", 3),  # on another branch: only a weight that never changes
        (("wag",), "screwed", 3),
        (("turn", "spin", "grip"), "ft", 17),
    ],
    ids=["before", "beyond", "elsewhere", "fixed", "both"],
)
def test_base_parameters_can_be_had_wherever_the_joints_are(joints, sensor, rank):
    """Of a body held still: force, and torques but the one about the line of the weight.

    Beyond, the finger on a single axis shows its moment of inertia and first moments, and two
    products of inertia.
    """
    robot = Robot(TEXT, joints=joints, sensor=sensor, gravity=GRAVITY)
    base = base_parameters(robot)
    assert base.rank == rank
    states = random_states(9, len(joints))
    Phi = robot.regressor(*states)
    pi = np.random.default_rng(9).normal(size=Phi.shape[-1])
    full = Phi @ pi
    np.testing.assert_allclose(
        base.reduce(Phi) @ base.of(pi), full, rtol=0, atol=1e-9 * np.abs(full).max()
    )


def test_a_link_comes_before_a_joint_of_the_same_name():
    text = (
        '<robot name="r"><link name="a"/><link name="b"/><link name="tip"/>'
        + joint("tip", "revolute", "a", "b", "1 0 0", "0 0 0", "0 0 1")
        + joint("end", "fixed", "b", "tip", "5 0 0", "0 0 0")
        + "</robot>"
    )
    robot = Robot(text)
    np.testing.assert_allclose(robot.position([0.0], "tip"), [6, 0, 0])
    np.testing.assert_allclose(robot.jacobian([0.0], "tip")[:, 0], [0, 5, 0], atol=1e-12)


# Inputs and outputs.


def test_one_sample_is_a_row_of_many_and_velocities_are_0_where_not_given():
    for sensor in (None, "ft"):
        robot = Robot(TEXT, sensor=sensor)
        states = random_states(2, 5)
        zero = np.zeros((5, 5))
        for method in (robot.regressor, robot.inverse_dynamics):
            many = method(*states)
            for i in range(5):
                np.testing.assert_array_equal(method(*states[:, i]), many[i])
            np.testing.assert_array_equal(method(states[0]), method(states[0], zero, zero))
            assert method(np.empty((0, 5))).shape == (0, *many.shape[1:])
    assert (robot.n_joints, robot.n_outputs) == (5, 6)


def test_parameters_are_named_and_those_of_the_links_about_their_joints():
    """The hand's link and its finger, which is locked, make one body about the hand's frame."""
    robot = Robot(TEXT, joints=("turn", "slide"), sensor="ft", locked={"grip": 0.7})
    assert robot.parameter_names[:5] == (
        "mass of hand",
        "mcx of hand",
        "mcy of hand",
        "mcz of hand",
        "Ixx of hand",
    )
    names = [name.split()[0] for name in robot.parameter_names]
    assert names[4:] == ["Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"]
    turn = turned(np.array([0, 1, 1]) / np.sqrt(2), 0.7)
    seat = np.array([0, 0, 0.1]) + of_rpy([0, 0, 0.3]) @ turn @ [0, 0.03, 0]
    first = 0.5 * np.array([0.02, -0.01, 0.06]) + 0.1 * seat
    np.testing.assert_allclose(robot.parameters[:4], [0.6, *first], rtol=0, atol=1e-12)


def test_limits_are_those_of_the_description():
    robot = Robot(TEXT, joints=("spin", "slide", "turn"))
    expected = [[-np.inf, np.inf], [-0.3, 0.3], [-2, 1.5]]
    np.testing.assert_array_equal(robot.position_limits, expected)
    np.testing.assert_array_equal(robot.velocity_limits[1:], [3, 3])


@pytest.mark.parametrize("sensor", [None, "ft"])
@pytest.mark.parametrize("frame", ["finger", "grip", "ft", "bracket", "tail"])
def test_positions_are_geometry_and_jacobians_their_derivatives(frame, sensor):
    names = ("grip", "spin", "wag", "turn")
    robot = Robot(TEXT, joints=names, locked={"slide": 0.2}, sensor=sensor)
    q = random_states(3, 4)[0]
    J = robot.jacobian(q, frame)
    assert J.shape == (5, 3, 4)
    for i in range(5):
        states = states_of(names, q[i], q[i], q[i], {"slide": 0.2})
        links, axes = reference(TEXT, states, (0, 0, 0))
        link = links[frame] if frame in links else axes[frame][2]
        np.testing.assert_allclose(robot.position(q, frame)[i], link.p, rtol=0, atol=1e-12)
        # The reference's velocity at dq = q.
        np.testing.assert_allclose(J[i] @ q[i], link.v, rtol=0, atol=1e-12)
        for k in range(4):
            step = 1e-6 * np.eye(4)[k]
            ahead, behind = (
                robot.position(q[i] + step, frame),
                robot.position(q[i] - step, frame),
            )
            np.testing.assert_allclose(J[i, :, k], (ahead - behind) / 2e-6, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(robot.jacobian(q[0], frame), J[0])


def test_a_robot_with_one_joint_has_matrices_of_one_row_or_column():
    robot = Robot(TEXT, joints=("turn",))
    assert robot.regressor([0.1]).shape == (1, 10)
    assert robot.jacobian([0.1], "hand").shape == (3, 1)
    slope = (robot.position([0.1 + 1e-6], "hand") - robot.position([0.1 - 1e-6], "hand")) / 2e-6
    np.testing.assert_allclose(robot.jacobian([0.1], "hand")[:, 0], slope, rtol=0, atol=1e-8)


@pytest.mark.parametrize("tilt", [None, 0.0, 1e-12, 2.7e-8, 1e-7, 1e-5])
def test_joints_are_locked_where_asked_even_where_roll_and_yaw_are_one(tilt):
    """A locked joint is written as angles, whose pitch may be a right angle or almost so."""
    rng = np.random.default_rng(7)
    for roll, pitch, yaw, position in rng.uniform(-4, 4, (15, 4)):
        if tilt is not None:
            pitch = np.sign(pitch) * (np.pi / 2 - tilt)
        text = (
            '<robot name="r"><link name="a"/><link name="b"/><link name="c"/><link name="d"/>'
            + joint("move", "revolute", "a", "b", "0 0 0", "0 0 0", "0 0 1")
            + joint("lock", "revolute", "b", "c", "1 2 3", f"{roll} {pitch} {yaw}", "0 1 0")
            + joint("tip", "fixed", "c", "d", "1 1 1", "0 0 0")
            + "</robot>"
        )
        for at in (0.0, position):
            robot = Robot(text, joints=("move",), locked={"lock": at})
            links, _ = reference(text, {"lock": (at, 0, 0)}, (0, 0, 0))
            np.testing.assert_allclose(
                robot.position([0.0], "d"), links["d"].p, rtol=0, atol=1e-12
            )


@pytest.mark.parametrize("how", ["save", "pickle", "deepcopy"])
@pytest.mark.parametrize("used", [False, True])
def test_robots_survive_files_and_copies(tmp_path, how, used):
    keywords = {
        "joints": ("spin", "turn"),
        "locked": {"slide": 0.1},
        "sensor": "ft",
        "sign": -1,
    }
    robot = Robot(TEXT, gravity=GRAVITY, **keywords)
    states = random_states(6, 2)
    expected = Robot(TEXT, gravity=GRAVITY, **keywords).regressor(*states)
    if used:
        robot.regressor(*states)
        _ = robot.parameters, robot.bodies
    if how == "save":
        imparo.save(robot, tmp_path / "robot.imparo")
        same = imparo.load(tmp_path / "robot.imparo")
    else:
        same = pickle.loads(pickle.dumps(robot)) if how == "pickle" else copy.deepcopy(robot)
    np.testing.assert_array_equal(same.regressor(*states), expected)
    np.testing.assert_array_equal(same.parameters, robot.parameters)
    np.testing.assert_array_equal(same.position_limits, robot.position_limits)
    assert (same.joints, same.sensor, same.sign, same.gravity) == (
        robot.joints,
        robot.sensor,
        robot.sign,
        robot.gravity,
    )
