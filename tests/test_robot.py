"""The robot model against Newton's and Euler's laws, written down here link by link."""

import copy
import pickle
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import imparo
from imparo.dynamics import Robot

pin = pytest.importorskip("pinocchio")

ARM = ("r_shoulder_pitch", "r_shoulder_roll", "r_shoulder_yaw", "r_elbow")
ALL = ("turn", "slide", "spin", "grip", "wag")


def inertial(mass, com, moments, rpy="0 0 0"):
    keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    parts = " ".join(f'{key}="{value}"' for key, value in zip(keys, moments, strict=True))
    return (
        f'<inertial><origin xyz="{com}" rpy="{rpy}"/><mass value="{mass}"/>'
        f"<inertia {parts}/></inertial>"
    )


def joint(name, kind, parent, child, xyz, rpy, axis="1 0 0", limit="-2 1.5"):
    low, high = limit.split()
    limits = f'<limit lower="{low}" upper="{high}" velocity="3" effort="10"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
        f"{'' if kind in ('fixed', 'continuous') else limits}</joint>"
    )


# Two branches, a bracket and a hand on fixed joints, and axes of any length.
TEXT = (
    '<robot name="made by hand">'
    '<link name="base"/><link name="one">'
    + inertial(2.0, "0.1 0.02 -0.03", (0.02, 0.001, -0.002, 0.03, 0.0005, 0.025), "0.3 -0.2 1")
    + '</link><link name="bracket">'
    + inertial(0.4, "0 0.05 0.01", (0.001, 0, 0, 0.002, 0, 0.0015))
    + '</link><link name="two">'
    + inertial(1.2, "-0.05 0.1 0.2", (0.01, 0, 0.001, 0.02, 0, 0.015), "0 0.5 0")
    + '</link><link name="three">'
    + inertial(0.9, "0.01 0 0.15", (0.006, 0, 0, 0.006, 0, 0.001))
    + '</link><link name="hand">'
    + inertial(0.5, "0.02 -0.01 0.06", (0.002, 0.0001, 0, 0.0015, 0, 0.001), "1 2 3")
    + '</link><link name="finger">'
    + inertial(0.1, "0 0.03 0", (1e-4, 0, 0, 2e-5, 0, 1e-4))
    + '</link><link name="tail">'
    + inertial(0.3, "0.1 0 0", (1e-4, 0, 0, 1e-3, 0, 1e-3))
    + "</link>"
    + joint("wag", "revolute", "one", "tail", "0 -0.1 0.2", "0 1.2 0", "1 0 0")
    + joint("turn", "revolute", "base", "one", "0 0 0.3", "0.4 -0.3 0.2", "0 0 2")
    + joint("screwed", "fixed", "one", "bracket", "0.1 0 0.1", "0 0.7 0.1")
    + joint("slide", "prismatic", "one", "two", "0.2 0 0.1", "0 0 1", "1 1 0", "-0.3 0.3")
    + joint("spin", "continuous", "two", "three", "0 0.1 0.3", "1.1 0 0", "0 -3 0.5")
    + joint("ft", "fixed", "three", "hand", "0.01 0.02 0.2", "0.5 1.5707963 -0.4")
    + joint("grip", "revolute", "hand", "finger", "0 0 0.1", "0 0 0.3", "0 1 1")
    + "</robot>"
)
GRAVITY = (0.7, -1.1, -9.4)


# A reference: all links in the root frame, by Newton and Euler, without any library.


def turned(axis, angle):
    K = np.cross(np.eye(3), axis)  # K v = axis × v; Rodrigues' formula
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)


def of_rpy(rpy):
    x, y, z = np.eye(3)
    return turned(z, rpy[2]) @ turned(y, rpy[1]) @ turned(x, rpy[0])


def numbers(element, key, default="0 0 0"):
    text = default if element is None else element.get(key, default)
    return np.array([float(part) for part in text.split()])


class Link:
    """Place, velocities and accelerations of a link, gravity being an acceleration upwards."""

    def __init__(self, R, p, w, v, alpha, a, element):
        self.R, self.p, self.w, self.v, self.alpha, self.a = R, p, w, v, alpha, a
        self.below, self.part = [], element.find("inertial")

    def wrench(self, about):
        """Force and torque about a point that move this link and all below it."""
        force, torque = np.zeros(3), np.zeros(3)
        if self.part is not None:
            origin = self.part.find("origin")
            m, c = float(self.part.find("mass").get("value")), self.R @ numbers(origin, "xyz")
            xx, xy, xz, yy, yz, zz = (
                float(self.part.find("inertia").get(key))
                for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
            )
            turn = self.R @ of_rpy(numbers(origin, "rpy"))
            inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
            a = self.a + np.cross(self.alpha, c) + np.cross(self.w, np.cross(self.w, c))
            force = m * a
            torque = inertia @ self.alpha + np.cross(self.w, inertia @ self.w)
            torque = torque + np.cross(self.p + c - about, force)
        for link in self.below:
            f, t = link.wrench(about)
            force, torque = force + f, torque + t
        return force, torque


def reference(text, states, gravity):
    """Return links and joints' (axis, kind) for states {joint: (q, dq, ddq)}; others are 0."""
    root = ET.fromstring(text)
    elements = {link.get("name"): link for link in root.findall("link")}
    joints = root.findall("joint")
    (base,) = set(elements) - {j.find("child").get("link") for j in joints}
    zero = np.zeros(3)
    up = -np.array(gravity, float)
    links, axes = {base: Link(np.eye(3), zero, zero, zero, zero, up, elements[base])}, {}
    while len(links) < len(elements):
        for j in joints:
            parent, child = j.find("parent").get("link"), j.find("child").get("link")
            if parent not in links or child in links:
                continue
            on, name, kind = links[parent], j.get("name"), j.get("type")
            q, dq, ddq = states.get(name, (0.0, 0.0, 0.0))
            R = on.R @ of_rpy(numbers(j.find("origin"), "rpy"))
            axis = numbers(j.find("axis"), "xyz", "1 0 0")
            axis = R @ (axis / np.linalg.norm(axis))
            arm, w, alpha = on.R @ numbers(j.find("origin"), "xyz"), on.w, on.alpha
            slides = kind == "prismatic"
            arm = arm + slides * q * axis
            v = on.v + np.cross(w, arm) + slides * dq * axis
            a = on.a + np.cross(alpha, arm) + np.cross(w, np.cross(w, arm))
            a = a + slides * (ddq * axis + 2 * np.cross(w, dq * axis))
            if kind in ("revolute", "continuous"):
                alpha = alpha + ddq * axis + np.cross(w, dq * axis)
                w, R = w + dq * axis, turned(axis, q) @ R
            links[child] = Link(R, on.p + arm, w, v, alpha, a, elements[child])
            on.below.append(links[child])
            axes[name] = (axis, kind, links[child])
    return links, axes


def torque_of(axes, name):
    axis, kind, link = axes[name]
    force, torque = link.wrench(link.p)
    return axis @ (force if kind == "prismatic" else torque)


def wrench_of(axes, name):
    _, _, link = axes[name]
    return np.concatenate([link.R.T @ part for part in link.wrench(link.p)])


def states_of(names, q, dq, ddq, locked=None):
    fixed = {name: (position, 0.0, 0.0) for name, position in (locked or {}).items()}
    return fixed | {name: (q[i], dq[i], ddq[i]) for i, name in enumerate(names)}


def random_states(seed, n_joints, n=5):
    return np.random.default_rng(seed).uniform(-1.5, 1.5, (3, n, n_joints)) * [
        [[1.0]],
        [[2.0]],
        [[5.0]],
    ]


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


# Other sources.


def test_a_robot_of_arrays_is_that_of_its_urdf(tmp_path):
    root = ET.fromstring(TEXT)
    links, joints = root.findall("link"), root.findall("joint")
    names = [link.get("name") for link in links]
    parts = [link.find("inertial") for link in links]
    keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")

    def each(read, size):
        return np.array([np.zeros(size) if part is None else read(part) for part in parts])

    arrays = {
        "link_names": np.array(names),
        "link_mass": each(lambda p: float(p.find("mass").get("value")), ()),
        "link_com": each(lambda p: numbers(p.find("origin"), "xyz"), 3),
        "link_inertial_rpy": each(lambda p: numbers(p.find("origin"), "rpy"), 3),
        "link_inertia": each(lambda p: [float(p.find("inertia").get(k)) for k in keys], 6),
        "joint_names": np.array([j.get("name") for j in joints]),
        "joint_types": np.array([j.get("type") for j in joints]),
        "joint_parent": np.array([names.index(j.find("parent").get("link")) for j in joints]),
        "joint_child": np.array([names.index(j.find("child").get("link")) for j in joints]),
        "joint_xyz": np.array([numbers(j.find("origin"), "xyz") for j in joints]),
        "joint_rpy": np.array([numbers(j.find("origin"), "rpy") for j in joints]),
        "joint_axis": np.array([numbers(j.find("axis"), "xyz") for j in joints]),
        "joint_limits": np.array([[-2.0, 1.5] for j in joints]),
    }
    np.savez(tmp_path / "robot.npz", **arrays)
    keywords = {"joints": ALL, "sensor": "ft", "sign": -1, "gravity": GRAVITY}
    expected = Robot(TEXT, **keywords)
    states = random_states(4, 5)
    for source in (arrays, tmp_path / "robot.npz", str(tmp_path / "robot.npz")):
        robot = Robot.from_arrays(source, **keywords)
        np.testing.assert_allclose(robot.parameters, expected.parameters, rtol=0, atol=1e-14)
        np.testing.assert_allclose(
            robot.regressor(*states), expected.regressor(*states), rtol=0, atol=1e-11
        )


def test_modified_denavit_hartenberg_rows_place_joints_as_craig_does():
    rows = np.array([(0, 0, 0.3, 0.1), (0.4, -np.pi / 2, 0.1, 0.2), (0.2, np.pi / 2, -0.1, -1)])
    robot = Robot.from_dh(rows)
    q = np.array([0.3, -0.7, 1.1])
    T = np.eye(4)
    for i, ((a, alpha, d, theta), turn) in enumerate(zip(rows, q, strict=True), start=1):
        c, s, ca, sa = np.cos(theta + turn), np.sin(theta + turn), np.cos(alpha), np.sin(alpha)
        # Craig, Introduction to Robotics, eq. 3.6.
        T = T @ [
            [c, -s, 0, a],
            [s * ca, c * ca, -sa, -sa * d],
            [s * sa, c * sa, ca, ca * d],
            [0, 0, 0, 1],
        ]
        np.testing.assert_allclose(robot.position(q, f"link_{i}"), T[:3, 3], rtol=0, atol=1e-12)
    assert robot.joints == ("joint_1", "joint_2", "joint_3")
    np.testing.assert_array_equal(robot.parameters, 0)


def test_files_text_and_names_are_read(tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text('<?xml version="1.0"?>\n' + TEXT)
    states = random_states(5, 5)
    expected = Robot(TEXT).inverse_dynamics(*states)
    for source in (file, str(file), "\n " + TEXT):
        np.testing.assert_array_equal(Robot(source).inverse_dynamics(*states), expected)
    again = Robot(Robot(TEXT).urdf)  # the reduced text is a description of the same robot
    np.testing.assert_allclose(again.inverse_dynamics(*states), expected, rtol=0, atol=1e-12)


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


# Bad input.


LOOP = TEXT.replace(
    "</robot>", joint("loop", "fixed", "tail", "hand", "0 0 0", "0 0 0") + "</robot>"
)
APART = TEXT.replace("</robot>", '<link name="alone"/></robot>')
RING = TEXT.replace(
    "</robot>", joint("ring", "fixed", "tail", "base", "0 0 0", "0 0 0") + "</robot>"
)


@pytest.mark.parametrize(
    ("source", "keywords", "sentence"),
    [
        (TEXT, {"joints": ("elbow",)}, "no joint 'elbow' that moves; .* wag, turn"),
        (TEXT, {"joints": ("ft",)}, "no joint 'ft' that moves"),
        (TEXT, {"joints": ()}, "at least one joint"),
        (TEXT, {"joints": ("turn", "turn")}, "each once"),
        (TEXT, {"locked": {"elbow": 0}}, "no joint 'elbow' that moves"),
        (TEXT, {"joints": ("turn",), "locked": {"turn": 0}}, "to move and to be locked"),
        (TEXT, {"sensor": "f/t"}, "no joint 'f/t' for a sensor; fixed joints are ft"),
        (TEXT, {"sensor": "turn"}, "'turn' moves; a force/torque sensor"),
        (TEXT, {"sign": 2}, "sign=2 must be 1"),
        (TEXT, {"gravity": (0, 9.81)}, "gravity=.* must be three finite numbers"),
        (TEXT, {"gravity": (0, 0, np.nan)}, "gravity=.* must be three finite numbers"),
        (TEXT[:-5], {}, "not well-formed XML"),
        ("<sdf/>", {}, "begins with <sdf>, not <robot>"),
        (LOOP, {}, "'hand' hangs on two joints; loops are not supported"),
        (APART, {}, "base, alone hang on nothing"),
        (RING, {}, "of a loop hang on nothing"),
        (TEXT.replace('link="base"', 'link="ground"'), {}, "'ground', which"),
        (TEXT.replace('xyz="0 0 2"', 'xyz="0 0 0"'), {}, "axis of the joint 'turn' is 0"),
        (TEXT.replace('xyz="0 0 2"', 'xyz="0 2"'), {}, "'turn' has xyz='0 2'; three numbers"),
    ],
    ids=[
        "unknown", "fixed", "none", "twice", "unknown-lock", "both", "no-sensor", "moving",
        "sign", "two", "nan", "cut-off", "not-urdf", "loop", "apart", "ring", "parent", "axis",
        "short",
    ],
)  # fmt: skip
def test_bad_descriptions_and_arguments_are_named(source, keywords, sentence):
    with pytest.raises(ValueError, match=sentence):
        Robot(source, **keywords)


def test_missing_files_and_unknown_names_are_told():
    with pytest.raises(FileNotFoundError, match=r"no file nowhere/robot.urdf"):
        Robot("nowhere/robot.urdf")
    pytest.importorskip("icub_models")
    with pytest.raises(FileNotFoundError, match="nor a robot known by name; names are iCub"):
        Robot("R2D2")
    with pytest.raises(FileNotFoundError):
        Robot.from_arrays("nowhere/robot.npz")
    with pytest.raises(ValueError, match=r"not the shape \(2, 3\)"):
        Robot.from_dh(np.zeros((2, 3)))


@pytest.mark.parametrize("method", ["regressor", "inverse_dynamics"])
@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        ((np.full((2, 5), np.nan),), "q holds NaN"),
        ((np.zeros(5), np.full(5, np.inf)), "dq holds NaN"),
        ((np.zeros((2, 4)),), r"q has the shape \(2, 4\); one column .* 5 joints wag, turn"),
        ((np.zeros((1, 2, 5)),), r"q has the shape \(1, 2, 5\)"),
        ((0.0,), r"q has the shape \(\)"),
        ((np.zeros((2, 5)), np.zeros((3, 5))), r"dq has the shape \(3, 5\) and q has \(2, 5\)"),
        ((np.zeros(5), None, np.zeros((1, 5))), r"ddq has the shape \(1, 5\)"),
    ],
    ids=["nan", "infinite", "columns", "axes", "scalar", "rows", "mixed"],
)
def test_bad_states_are_named(method, states, sentence):
    with pytest.raises(ValueError, match=sentence):
        getattr(Robot(TEXT), method)(*states)


def test_unknown_frames_are_named():
    for method in (Robot(TEXT).position, Robot(TEXT).jacobian):
        with pytest.raises(ValueError, match=r"no link or joint 'toe'; it has .*finger"):
            method(np.zeros(5), "toe")
