"""Paths of joints: true to their circles, periodic, with exact derivatives, within limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pinocchio")

from imparo.dynamics import Robot
from imparo.dynamics.plants.inverse_kinematics import feasible_centre
from imparo.dynamics.plants.trajectories import Trajectory, circle, multisine

PLANAR = [(0, 0, 0, 0), (1.0, 0, 0, 0), (0.8, 0, 0, 0), (0.5, 0, 0, 0)]
HAND = "link_4"
CENTRE, START = (0.9, 0.6, 0.0), (-0.3, 1.2, 0.4, 0.0)


def planar_hand(q):
    """Where a planar arm's last joint is, by hand."""
    a, b, c = q[:, 0], q[:, 0] + q[:, 1], q[:, :3].sum(axis=1)
    x = np.cos(a) + 0.8 * np.cos(b) + 0.5 * np.cos(c)
    y = np.sin(a) + 0.8 * np.sin(b) + 0.5 * np.sin(c)
    return np.column_stack([x, y, np.zeros(len(q))])


def limited(low=-3.0, high=3.0, velocity=50.0, middle=None):
    """Four hinges about z; the second one has other limits."""
    parts = ['<robot name="planar"><link name="link_0"/>']
    for i, length in enumerate((0.0, 1.0, 0.8, 0.5), start=1):
        least, most = (low, high) if i == 2 else (-3.0, 3.0)
        parts.append(
            f'<link name="link_{i}"/><joint name="joint_{i}" type="revolute">'
            f'<parent link="link_{i - 1}"/><child link="link_{i}"/><axis xyz="0 0 1"/>'
            f'<origin xyz="{length} 0 0"/>'
            f'<limit lower="{least}" upper="{most}" velocity="{velocity}" effort="1"/></joint>'
        )
    return Robot("".join(parts) + "</robot>")


@pytest.fixture(scope="module")
def robot():
    return Robot.from_dh(PLANAR)


@pytest.fixture(scope="module")
def path(robot):
    options = {"radius": 0.2, "speed": 0.5, "rate": 40.0, "duration": 6.0}
    return circle(robot, HAND, centre=CENTRE, start=START, **options)


# Circles.


def test_the_hand_is_on_its_circle_at_its_speed_also_between_samples(path):
    times = np.linspace(0, 6, 777)
    angles = 0.5 / 0.2 * times
    wanted = np.array(CENTRE) + 0.2 * np.column_stack(
        [np.cos(angles), np.sin(angles), np.zeros(777)]
    )
    assert np.abs(planar_hand(path.at(times)[0]) - wanted).max() < 2e-6


def test_samples_are_the_path_at_their_times(path):
    assert path.t.shape == (240,)
    assert np.allclose(path.t, np.arange(240) / 40)
    for found, wanted in zip((path.q, path.dq, path.ddq), path.at(path.t), strict=True):
        assert np.array_equal(found, wanted)


def test_one_revolution_of_a_redundant_arm_closes_and_repeats(path):
    assert path.period == pytest.approx(2 * np.pi * 0.2 / 0.5)
    times = np.linspace(0, path.period, 50)
    for k in (1, 7):
        for now, later in zip(path.at(times), path.at(times + k * path.period), strict=True):
            assert np.allclose(now, later, atol=1e-10)


@pytest.mark.parametrize("kind", ["circle", "multisine"])
def test_velocities_and_accelerations_are_derivatives(kind, path, robot):
    if kind == "multisine":
        path = multisine(robot, period=3.0, velocity=2.0)
    times, h = np.linspace(0.1, 2.9, 60), 1e-5
    _, dq, ddq = path.at(times)
    before, after = path.at(times - h), path.at(times + h)
    assert np.allclose((after[0] - before[0]) / (2 * h), dq, atol=1e-6)
    assert np.allclose((after[1] - before[1]) / (2 * h), ddq, atol=1e-5)


def test_joints_to_spare_stay_near_the_middle_of_their_ranges(robot, path):
    # No small motion of the joints that leaves the hand where it is lowers Σ u²/2 + 2 u⁶.
    def cost(q):
        u = q / np.pi
        return np.sum(u**2 / 2 + 2 * u**6)

    for q in path.q[::40]:
        near = np.eye(4) * 1e-6
        J = (planar_hand(q + near) - planar_hand(q - near)).T / 2e-6
        slopes = np.array([cost(q + e) - cost(q - e) for e in near]) / 2e-6
        free = np.linalg.svd(J[:2])[2][2:]
        assert np.abs(free @ slopes).max() < 1e-5


@pytest.mark.parametrize(("plane", "axes"), [("xy", (0, 1)), ("xz", (0, 2)), ("yz", (1, 2))])
def test_a_circle_begins_on_the_first_axis_and_turns_towards_the_second(plane, axes):
    robot = Robot.from_dh(
        [(0, 0, 0, 0), (0, np.pi / 2, 0, 0.3), (1.0, 0, 0, 1.0), (1.0, 0, 0, 0)]
    )
    q = np.array([0.3, 0.2, 1.0, 0.0])
    centre = robot.position(q, "link_4")
    path = circle(robot, "link_4", centre=centre, plane=plane, start=q, radius=0.05, speed=0.1)
    wanted = np.zeros((2, 3))
    wanted[0, axes[0]] = wanted[1, axes[1]] = 0.05
    found = robot.position(path.at([0, path.period / 4])[0], "link_4") - centre
    assert np.allclose(found, wanted, atol=2e-6)


@pytest.mark.parametrize("excess", [-0.01, 0.1, 0.3])
def test_positions_beyond_a_limit_are_refused_by_joint_limit_and_excess(excess):
    # Two links of 1 m and 0.8 m; by the law of cosines the elbow needs up to arccos(−0.4).
    limit = np.arccos((1.0**2 - 1 - 0.8**2) / (2 * 0.8)) - excess
    robot = limited(low=0.0, high=limit)
    two = Robot(robot.urdf, joints=("joint_1", "joint_2"))
    options = {"centre": (0, 1.2, 0), "radius": 0.2, "start": (0.9, 1.6)}
    if excess < 0:
        assert circle(two, "link_3", **options).q[:, 1].max() <= limit
        return
    with pytest.raises(ValueError, match=f"limit {limit:.3f}; move the centre") as refusal:
        circle(two, "link_3", **options)
    assert f"needs joint_2 at {limit + excess:.3f} rad, {excess:.3f} " in str(refusal.value)


def test_velocities_beyond_a_limit_are_refused_with_the_speed_that_fits():
    slow = limited(velocity=0.5)
    options = {"centre": CENTRE, "start": START, "radius": 0.2}
    with pytest.raises(ValueError, match=r"rad/s, .* beyond its limit 0.5; a speed of") as no:
        circle(slow, HAND, speed=2.0, **options)
    fits = float(str(no.value).split("a speed of ")[1].split()[0])
    path = circle(slow, HAND, speed=0.99 * fits, **options)
    assert 0.45 < np.abs(path.at(np.linspace(0, path.period, 500))[1]).max() <= 0.5
    with pytest.raises(ValueError, match=r"beyond its limit 0\.5"):
        circle(slow, HAND, speed=1.05 * fits, **options)


def test_a_circle_out_of_reach_is_refused(robot):
    # The arm is 2.3 m long; 0.2 m of the circle are beyond.
    with pytest.raises(ValueError, match=r"out of reach: link_4 stays about 0\.[12]"):
        circle(robot, HAND, centre=(2.2, 0, 0), start=START, radius=0.3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"radius": 0}, "radius=0 must be"),
        ({"radius": np.nan}, "radius=nan must be"),
        ({"speed": -1}, "speed=-1 must be"),
        ({"rate": np.inf}, "rate=inf must be"),
        ({"duration": 0.001}, "has no sample"),
        ({"centre": (1, 2)}, "three finite numbers"),
        ({"centre": (1, 2, np.nan)}, "three finite numbers"),
        ({"plane": "zx"}, "must be one of xy, xz, yz"),
        ({"start": [0, 0]}, "4 finite numbers were expected"),
        ({"frame": "foot"}, "no link or joint 'foot'"),
    ],
)
def test_bad_circles_are_refused(robot, wrong, message):
    options = {"frame": HAND, "centre": CENTRE, "start": START} | wrong
    with pytest.raises(ValueError, match=message):
        circle(robot, options.pop("frame"), **options)


# Places for circles.


def test_a_circle_about_a_feasible_centre_keeps_the_margin_it_states():
    robot = limited(low=0.2, high=2.5)
    place = feasible_centre(robot, HAND, planes=["xy"], radius=0.3, n_tries=20)
    assert place.margin > 0
    path = circle(robot, HAND, centre=place.position, start=place.start, radius=0.3)
    q = path.at(np.linspace(0, path.period, 400))[0]
    low, high = robot.position_limits.T
    room = (np.minimum(q - low, high - q) / ((high - low) / 2)).min()
    assert room == pytest.approx(place.margin, abs=0.02)


def test_planes_that_an_arm_cannot_leave_have_no_centre(robot):
    with pytest.raises(ValueError, match=r"no centre was found .* xy and xz"):
        feasible_centre(robot, HAND, planes=["xy", "xz"], n_tries=3)
    with pytest.raises(ValueError, match="must be one of"):
        feasible_centre(robot, HAND, planes=["up"])


# Multisines.


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 1000),
    harmonics=st.integers(1, 9),
    fraction=st.floats(0.1, 1.0),
    velocity=st.floats(0.05, 5.0),
)
def test_a_multisine_is_within_its_part_of_the_limits_and_reaches_it(
    seed, harmonics, fraction, velocity
):
    robot = limited(low=-1.0, high=2.0)
    path = multisine(
        robot, harmonics=harmonics, fraction=fraction, velocity=velocity, seed=seed
    )
    q, dq, _ = path.at(np.linspace(0, path.period, 5000))
    middle, half = np.array([0, 0.5, 0, 0]), np.array([3, 1.5, 3, 3])
    used = (
        np.maximum(np.abs(q - middle).max(axis=0) / half, np.abs(dq).max(axis=0) / velocity)
        / fraction
    )
    assert (used <= 1 + 1e-9).all()
    assert (used > 0.98).all()


def test_a_multisine_repeats_by_its_seed(robot):
    one, same, other = (multisine(robot, duration=2, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.q, same.q)
    assert not np.allclose(one.q, other.q)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fraction": 0}, "fraction=0 must be"),
        ({"fraction": 1.1}, "fraction=1.1 must be"),
        ({"harmonics": 0}, "harmonics=0 must be"),
        ({"velocity": [1, 2]}, "one number above 0 or 4"),
        ({"velocity": -1}, "one number above 0 or 4"),
        ({"period": 0}, "period=0 must be"),
    ],
)
def test_bad_multisines_are_refused(robot, wrong, message):
    with pytest.raises(ValueError, match=message):
        multisine(robot, **wrong)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(1, 6))
def test_a_trajectory_is_the_sum_of_its_harmonics(seed, n):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n + 1, 2))
    path = Trajectory(("one", "two"), a, b, 1.7, 10.0, 5)
    time = rng.uniform(-3, 3)
    wanted = sum(
        a[h] * np.cos(2 * np.pi * h * time / 1.7) + b[h] * np.sin(2 * np.pi * h * time / 1.7)
        for h in range(n + 1)
    )
    assert np.allclose(path.at([time])[0][0], wanted)


# The iCub.


@pytest.fixture(scope="module")
def icub():
    pytest.importorskip("icub_models")
    from imparo.dynamics.plants.icub import icub_arm

    return icub_arm()


def test_the_circles_of_the_thesis_are_within_the_limits_of_the_icub(icub):
    from imparo.dynamics.plants.icub import icub_circles

    circles = icub_circles(icub)
    low, high = icub.position_limits.T
    for path, flat in zip(circles, (2, 1), strict=True):
        assert len(path) == 10_000
        assert path.rate == 10
        assert path.period == pytest.approx(2 * np.pi * 0.1 / 0.6)
        q, dq, _ = path.at(np.linspace(0, path.period, 300))
        places = icub.position(q, "r_hand_dh_frame")
        middle = places[:-1].mean(axis=0)
        assert np.allclose(np.linalg.norm(places - middle, axis=1), 0.1, atol=1e-5)
        assert np.ptp(places[:, flat]) < 1e-5
        assert (np.minimum(q - low, high - q) / (high - low) > 0.09).all()
        assert np.abs(dq).max() < 2.7


def test_with_its_torso_upright_the_same_circle_is_refused():
    pytest.importorskip("icub_models")
    from imparo.dynamics.plants.icub import HAND, JOINTS, XZ

    upright = Robot("iCubGazeboV2_5", joints=JOINTS, sensor="r_arm_ft_sensor")
    with pytest.raises(ValueError, match=r"circle of 0\.1 m in xz"):
        circle(upright, HAND, centre=XZ[0], start=XZ[1], plane="xz")
