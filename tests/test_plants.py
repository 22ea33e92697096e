"""Plants: rigid bodies to rounding, and every effect by its own formula."""

import numpy as np
import pytest

pytest.importorskip("pinocchio")
pytest.importorskip("mujoco")

import mujoco

from imparo.dynamics import Robot
from imparo.dynamics.logs.log import Log
from imparo.dynamics.plants.effects import Payload, Wander
from imparo.dynamics.plants.formula_plant import FormulaPlant
from imparo.dynamics.plants.mujoco_model import Cable
from imparo.dynamics.plants.mujoco_plant import MujocoPlant
from imparo.dynamics.plants.trajectories import Trajectory, multisine

# Two links; a sensor cuts the second one at "wrist". Inertias are possible ones.
URDF = """
<robot name="two links">
  <link name="base"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 0.1" rpy="0 0 0"/>
    <limit lower="-2" upper="2" velocity="8" effort="1"/>
  </joint>
  <link name="upper"><inertial>
    <origin xyz="0.05 0.02 0.2" rpy="0.1 0 0"/><mass value="2.0"/>
    <inertia ixx="0.03" ixy="0.001" ixz="0.002" iyy="0.028" iyz="0.001" izz="0.01"/>
  </inertial></link>
  <joint name="elbow" type="revolute">
    <parent link="upper"/><child link="lower"/><axis xyz="1 0 0"/>
    <origin xyz="0 0 0.4" rpy="0.3 0 0.2"/>
    <limit lower="-2" upper="2" velocity="8" effort="1"/>
  </joint>
  <link name="lower"><inertial>
    <origin xyz="0 0.03 0.05" rpy="0 0 0"/><mass value="0.5"/>
    <inertia ixx="0.004" ixy="0" ixz="0" iyy="0.004" iyz="0" izz="0.002"/>
  </inertial></link>
  <joint name="wrist" type="fixed">
    <parent link="lower"/><child link="hand"/><origin xyz="0 0 0.2" rpy="0 0.1 0"/>
  </joint>
  <link name="hand"><inertial>
    <origin xyz="0.01 0.02 0.06" rpy="0 0 0"/><mass value="0.7"/>
    <inertia ixx="0.003" ixy="0" ixz="0.0003" iyy="0.0025" iyz="0" izz="0.001"/>
  </inertial></link>
</robot>
"""
GRAVITY = np.array([0.3, -0.2, -9.7])
BASE_POINT = (0.3, 0.1, -0.1)


def robot_of(sensor, sign=1, joints=("shoulder", "elbow")):
    return Robot(URDF, joints=joints, sensor=sensor, sign=sign, gravity=GRAVITY)


@pytest.fixture(scope="module")
def sensed():
    return robot_of("wrist")


@pytest.fixture(scope="module")
def torques():
    return robot_of(None)


@pytest.fixture(scope="module")
def path(sensed):
    return multisine(sensed, duration=2.0, rate=25.0, period=2.5, harmonics=3, velocity=4.0)


def cable(slack=0.5, **options):
    return Cable("base", BASE_POINT, "hand", (0, 0, 0), slack, 80.0, **options)


def swept(robot, log, frame, h=1e-4):
    """Position, velocity and acceleration of a frame, by differences along the motion."""
    places = [
        robot.position(log.q + s * h * log.dq + (s * h) ** 2 / 2 * log.ddq, frame)
        for s in (-1, 0, 1)
    ]
    velocity = (places[2] - places[0]) / (2 * h)
    return places[1], velocity, (places[2] - 2 * places[1] + places[0]) / h**2


# Rigid bodies.


@pytest.mark.parametrize("sensor", ["wrist", None])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("joints", [("shoulder", "elbow"), ("elbow", "shoulder")])
def test_without_effects_the_sensor_is_inverse_dynamics(sensor, sign, joints):
    robot = robot_of(sensor, sign, joints)
    path = multisine(robot, duration=1.0, rate=20.0, period=2.0, velocity=4.0)
    log = MujocoPlant(robot).simulate(path)
    rigid = robot.inverse_dynamics(log.q, log.dq, log.ddq)
    assert np.abs(rigid).max() > 5
    assert np.abs(log.y - rigid).max() < 1e-9
    # A sensor that is one step late would be far off.
    late = robot.inverse_dynamics(log.q - 0.002 * log.dq, log.dq - 0.002 * log.ddq, log.ddq)
    assert np.abs(log.y - late).max() > 1e-3


def test_without_effects_the_icubs_sensor_is_inverse_dynamics():
    pytest.importorskip("icub_models")
    from imparo.dynamics.plants.icub import icub_arm, icub_circles

    arm = icub_arm(sign=-1)
    for path in icub_circles(arm, n_samples=20):
        log = MujocoPlant(arm).simulate(path)
        assert np.abs(log.y - arm.inverse_dynamics(log.q, log.dq, log.ddq)).max() < 1e-9


def test_the_robot_follows_its_path(sensed, path):
    log = MujocoPlant(sensed).simulate(path)
    assert np.abs(log.q - path.q).max() < 0.01
    assert np.abs(log.dq - path.dq).max() < 0.1
    assert np.array_equal(log.t, path.t)
    finer = MujocoPlant(sensed, timestep=0.0005).simulate(path)
    assert np.abs(finer.q - path.q).max() < 0.3 * np.abs(log.q - path.q).max()


def test_a_sign_is_a_sign(path):
    one, other = (MujocoPlant(robot_of("wrist", s)).simulate(path) for s in (1, -1))
    assert np.array_equal(one.y, -other.y)
    assert np.array_equal(one.q, other.q)


# Effects.


def test_an_offset_is_added_and_changes_nothing_else(sensed, path):
    offset = np.array([3.0, -2.0, 1.0, 0.3, -0.2, 0.1])
    plain = MujocoPlant(sensed).simulate(path)
    moved = MujocoPlant(sensed, offset=offset).simulate(path)
    assert np.allclose(moved.y - plain.y, offset, atol=1e-12)
    assert np.array_equal(moved.X, plain.X)


def test_a_payload_is_felt_from_its_time_on_as_a_point_mass(sensed, path):
    point = np.array([0.02, -0.05, 0.1])
    plain = MujocoPlant(sensed).simulate(path)
    at_origin = MujocoPlant(sensed, payloads=[Payload(0.8, "hand", start=1.0)]).simulate(path)
    apart = MujocoPlant(sensed, payloads=[Payload(0.8, "hand", point, start=1.0)])
    apart = apart.simulate(path)
    before = path.t < 1.0
    for log in (at_origin, apart):
        assert np.allclose(log.y[before], plain.y[before], atol=1e-9)
        assert np.allclose(log.q, plain.q, atol=1e-9)
    # At the sensor's origin: a force m (a − g) and no torque.
    *_, acceleration = swept(sensed, plain, "wrist")
    force = 0.8 * np.linalg.norm(acceleration - GRAVITY, axis=1)[~before]
    found = (at_origin.y - plain.y)[~before]
    assert np.allclose(np.linalg.norm(found[:, :3], axis=1), force, atol=1e-4)
    assert np.abs(found[:, 3:]).max() < 1e-9
    # Elsewhere: a torque r × f, with r the same in the sensor's frame always.
    found = (apart.y - plain.y)[~before]
    assert np.allclose(found[:, 3:], np.cross(point, found[:, :3]), atol=1e-9)


def test_a_payload_may_be_put_down(sensed, path):
    plain = MujocoPlant(sensed).simulate(path)
    payload = Payload(0.8, "hand", start=0.5, end=1.0)
    log = MujocoPlant(sensed, payloads=[payload]).simulate(path)
    there = np.abs(log.y - plain.y).max(axis=1) > 1e-3
    assert np.array_equal(there, (path.t >= 0.5) & (path.t < 1.0))


def tension(robot, log, slack, damping, hardening):
    place, velocity, _ = swept(robot, log, "wrist")
    line = place - np.array(BASE_POINT)
    length = np.linalg.norm(line, axis=1)
    rate = np.sum(line * velocity, axis=1) / length
    x = np.maximum(0, length - slack)
    return x * (80.0 + hardening * x**2) + damping * rate, length


def test_a_cable_pulls_at_the_sensor_with_its_tension(sensed, path):
    middle = np.median(tension(sensed, MujocoPlant(sensed).simulate(path), 0, 0, 0)[1])
    plain = MujocoPlant(sensed).simulate(path)
    options = {"slack": float(middle), "damping": 3.0, "hardening": 5000.0}
    pulled = MujocoPlant(sensed, cables=[cable(**options)]).simulate(path)
    wanted, length = tension(sensed, plain, *options.values())
    assert (length < middle).any()
    assert (length > middle + 0.01).any()
    found = pulled.y - plain.y
    assert np.allclose(np.linalg.norm(found[:, :3], axis=1), np.abs(wanted), atol=1e-5)
    assert np.abs(found[:, 3:]).max() < 1e-9  # it is tied to the sensor's origin
    assert np.allclose(pulled.q, plain.q, atol=1e-9)
    assert np.allclose(pulled.ddq, plain.ddq, atol=1e-7)


def test_actuators_work_against_a_cable(torques, path):
    # tension × d(length)/dq, by differences.
    plain = MujocoPlant(torques).simulate(path)
    pulled = MujocoPlant(torques, cables=[cable(slack=0.3)]).simulate(path)
    slopes = np.empty_like(plain.q)
    for j, step in enumerate(1e-6 * np.eye(2)):
        ends = [
            np.linalg.norm(torques.position(plain.q + s * step, "wrist") - BASE_POINT, axis=1)
            for s in (-1, 1)
        ]
        slopes[:, j] = (ends[1] - ends[0]) / 2e-6
    wanted = tension(torques, plain, 0.3, 0.0, 0.0)[0][:, None] * slopes
    assert np.abs(wanted).max() > 1
    assert np.allclose(pulled.y - plain.y, wanted, atol=1e-5)


def test_a_slack_cable_is_not_there(sensed, path):
    plain = MujocoPlant(sensed).simulate(path)
    slack = MujocoPlant(sensed, cables=[cable(slack=5.0)]).simulate(path)
    assert np.allclose(slack.y, plain.y, atol=1e-12)


@pytest.mark.parametrize("plant", [MujocoPlant, FormulaPlant], ids=["mujoco", "formula"])
def test_noise_and_drift_are_of_their_size(plant, sensed):
    path = multisine(sensed, duration=40.0, rate=50.0, period=2.5)
    path = Trajectory(path.joints, path.cosines, path.sines, path.period, 50.0, 2000)
    options = {} if plant is FormulaPlant else {"timestep": 0.01}
    sizes = np.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    measured, truth = plant(sensed, noise=sizes, **options).simulate_with_truth(path)
    assert np.allclose((measured.y - truth.y).std(axis=0) / sizes, 1, atol=0.06)
    measured, truth = plant(sensed, drift=sizes, **options).simulate_with_truth(path)
    walk = (measured.y - truth.y) / sizes
    assert np.allclose(walk[0], 0, atol=1e-9)
    # 1 after 1,000 s: steps of √(0.02 / 1000).
    assert np.allclose(np.diff(walk, axis=0).std(axis=0), np.sqrt(0.02 / 1000), rtol=0.06)


@pytest.mark.parametrize("plant", [MujocoPlant, FormulaPlant], ids=["mujoco", "formula"])
def test_the_same_seed_is_the_same_log(plant, sensed, path):
    effects = {"noise": 0.1, "drift": 0.5, "velocity_cutoff": 10.0}
    effects |= {"wander": 0.02} if plant is MujocoPlant else {"nonlinear": 1.0}
    made = [plant(sensed, **effects).simulate(path, seed=seed) for seed in (3, 3, 4)]
    assert made[0] == made[1]
    assert isinstance(made[0], Log)
    assert not np.allclose(made[0].y, made[2].y)


@pytest.mark.parametrize("plant", [MujocoPlant, FormulaPlant], ids=["mujoco", "formula"])
def test_logged_velocities_lag_as_a_first_order_filter_does(plant, sensed):
    # One sine of f = 1 Hz through a cutoff of 4 Hz: gain 1/√(1 + r²), phase arctan r, r = f/4.
    swing = np.array([[0.0, 0.0], [0.6, 0.4]])
    path = Trajectory(sensed.joints, np.zeros((2, 2)), swing, 1.0, 50.0, 100)
    made = plant(sensed, velocity_cutoff=4.0)
    log, truth = made.simulate_with_truth(path)
    ratio, wave = 1.0 / 4.0, np.exp(-2j * np.pi * path.t)
    response = 1 / (1 + 1j * ratio)
    step = 0.002
    for name, wanted in (("dq", response), ("ddq", response * np.exp(-1j * np.pi * step))):
        found = (wave @ getattr(log, name)) / (wave @ getattr(truth, name))
        assert np.allclose(found, wanted, atol=0.01), name
    assert np.array_equal(log.q, truth.q)
    assert np.array_equal(log.y, truth.y)
    late = float(log.notes["dq"].split("Hz, ")[1].split()[0])
    assert late == pytest.approx(1000 / (2 * np.pi * 4.0), abs=1.1)  # within half a step
    assert truth.notes["dq"] == "true"


def test_the_filter_has_settled_when_the_log_begins(sensed):
    swing = np.array([[0.0, 0.0], [0.6, 0.4]])
    path = Trajectory(sensed.joints, np.zeros((2, 2)), swing, 1.0, 50.0, 100)
    log = MujocoPlant(sensed, velocity_cutoff=4.0).simulate(path)
    assert np.allclose(log.dq[:50], log.dq[50:], atol=1e-3)
    assert np.allclose(log.ddq[:50], log.ddq[50:], atol=1e-2)


def test_wander_moves_joints_smoothly_and_changes_no_law(sensed, path):
    still, strays = MujocoPlant(sensed), MujocoPlant(sensed, wander=0.03)
    log = strays.simulate(path, seed=5)
    away = log.q - still.simulate(path).q
    assert 0.005 < away.std() < 0.06
    assert np.abs(log.y - sensed.inverse_dynamics(log.q, log.dq, log.ddq)).max() < 1e-9
    times = np.linspace(0, 3, 20)
    wander, h = Wander(0.03, 2, seed=1), 1e-5
    before, here, after = (wander.at(times + s * h) for s in (-1, 0, 1))
    assert np.allclose((after[0] - before[0]) / (2 * h), here[1], atol=1e-7)
    assert np.allclose((after[1] - before[1]) / (2 * h), here[2], atol=1e-6)
    assert Wander(0.03, 2, seed=1).at(np.arange(3000.0))[0].std() == pytest.approx(
        0.03, rel=0.1
    )


def test_wander_beyond_a_limit_is_refused(sensed):
    path = multisine(sensed, duration=5.0, fraction=1.0)
    with pytest.raises(ValueError, match=r"(shoulder|elbow) is .* beyond its limits"):
        MujocoPlant(sensed, wander=0.5).simulate(path)


def test_progress_is_reported_for_every_sample(sensed, path):
    seen = []
    MujocoPlant(sensed).simulate(path, progress=lambda done, total, what: seen.append(done))
    assert seen == list(range(1, len(path) + 1))


# The formula.


@pytest.mark.parametrize("sensor", ["wrist", None])
def test_both_plants_agree_on_rigid_bodies_and_payloads(sensor, path):
    robot = robot_of(sensor, -1)
    payloads = [Payload(0.5, "hand", (0.1, 0.0, 0.05), start=0.8), Payload(0.3, "lower")]
    log = MujocoPlant(robot, payloads=payloads).simulate(path)
    formula = FormulaPlant(robot, perturbation=0.0, payloads=payloads)
    assert np.abs(formula.outputs(log.t, log.q, log.dq, log.ddq) - log.y).max() < 1e-9


def test_perturbed_bodies_are_possible_and_not_the_robots(sensed):
    for seed in range(20):
        plant = FormulaPlant(sensed, perturbation=0.5, seed=seed)
        pairs = zip(
            sensed.parameters.reshape(-1, 10), plant.parameters.reshape(-1, 10), strict=True
        )
        for old, new in pairs:
            m, first = new[0], new[1:4]
            xx, xy, yy, xz, yz, zz = new[4:]
            inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            second = np.trace(inertia) / 2 * np.eye(3) - inertia
            pseudo = np.block([[second, first[:, None]], [first[None], m]])
            assert np.linalg.eigvalsh(pseudo).min() > 0
            assert not np.allclose(new, old, rtol=1e-3)
    assert np.allclose(FormulaPlant(sensed, perturbation=0).parameters, sensed.parameters)


def test_friction_and_the_nonlinear_part_add_up(torques, path):
    none = FormulaPlant(torques, seed=1).simulate(path)
    rubbed = FormulaPlant(torques, friction=(0.5, 0.2), seed=1).simulate(path)
    wanted = np.array([0.5, 0.2]) * (path.dq + np.tanh(path.dq / 0.01))
    assert np.allclose(rubbed.y - none.y, wanted)
    one, three = (
        FormulaPlant(torques, nonlinear=s, seed=1).simulate(path).y - none.y for s in (1.0, 3.0)
    )
    assert np.abs(one).max() > 0.05
    assert np.allclose(three, 3 * one)
    assert none.notes["plant"] == "formula, not simulated"


# What is refused.


def test_an_old_mujoco_is_refused(sensed, path, monkeypatch):
    monkeypatch.setattr(mujoco, "__version__", "3.14.9")
    with pytest.raises(ImportError, match=r"3\.14\.9 is too old.*imparo\[sim\]"):
        MujocoPlant(sensed).simulate(path)
    monkeypatch.setattr(mujoco, "__version__", "3.15.0")
    MujocoPlant(sensed).simulate(path)


def test_a_robot_without_masses_cannot_be_simulated():
    robot = Robot.from_dh([(0, 0, 0, 0), (1.0, 0, 0, 0)])
    with pytest.raises(ValueError, match="every moving link needs a mass"):
        MujocoPlant(robot).simulate(multisine(robot, duration=1))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"offset": [1.0, 2.0]}, "offset=.* or 6 of them"),
        ({"noise": -1.0}, "noise=-1.0 is a deviation"),
        ({"drift": np.nan}, "drift=nan must be one finite"),
        ({"velocity_cutoff": 0.0}, "velocity_cutoff=0.0 must be"),
        ({"timestep": 0.0}, "timestep=0.0 must be"),
        ({"settle": -1.0}, "settle=-1.0 must be"),
        ({"wander": np.inf}, "wander=inf must be"),
        ({"cables": [Cable("base", (0, 0, 0), "foot", (0, 0, 0), 1, 1)]}, "no link 'foot'"),
        ({"payloads": [Payload(1.0, "foot")]}, "no link 'foot'"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_bad_effects_are_refused(sensed, path, wrong, message):
    with pytest.raises(ValueError, match=message):
        MujocoPlant(sensed, **wrong).simulate(path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"perturbation": -0.1}, "perturbation=-0.1 must be"),
        ({"nonlinear": [1.0]}, "one number from 0 or 6"),
        ({"friction": 1.0}, "not felt by a force/torque sensor"),
        ({"payloads": [Payload(1.0, "foot")]}, "no link 'foot'"),
    ],
    ids=["perturbation", "nonlinear", "friction", "payloads"],
)
def test_bad_formulas_are_refused(sensed, path, wrong, message):
    with pytest.raises(ValueError, match=message):
        FormulaPlant(sensed, **wrong).simulate(path)


def test_bad_cables_and_payloads_are_refused():
    with pytest.raises(ValueError, match="mass=-1"):
        Payload(-1, "hand")
    with pytest.raises(ValueError, match="three finite numbers"):
        Payload(1, "hand", (0, 0))
    with pytest.raises(ValueError, match="before end"):
        Payload(1, "hand", start=2.0, end=1.0)
    with pytest.raises(ValueError, match="stiffness=-1"):
        Cable("base", (0, 0, 0), "hand", (0, 0, 0), 1.0, -1)
    with pytest.raises(ValueError, match="distal_point"):
        Cable("base", (0, 0, 0), "hand", (0, np.nan, 0), 1.0, 1.0)


@pytest.mark.parametrize("plant", [MujocoPlant, FormulaPlant], ids=["mujoco", "formula"])
def test_a_path_of_other_joints_is_refused(plant, sensed, path):
    other = robot_of("wrist", joints=("elbow", "shoulder"))
    with pytest.raises(ValueError, match="make it for this robot"):
        plant(other).simulate(path)
    with pytest.raises(TypeError, match="follows a Trajectory"):
        plant(sensed).simulate(path.q)


def test_a_time_step_that_loses_the_path_is_refused(sensed):
    swing = np.array([[0.0, 0.0], [0.4, 0.4]])
    fast = Trajectory(sensed.joints, np.zeros((2, 2)), swing, 0.25, 4.0, 8)
    with pytest.raises(ValueError, match=r"lost its path .* shorter timestep"):
        MujocoPlant(sensed, timestep=0.06).simulate(fast)
