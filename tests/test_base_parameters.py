"""Base parameters: identities for every π and state, and minimal sets known in closed form."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import imparo
from imparo.dynamics import Robot
from imparo.dynamics.base import BaseParameters, base_parameters
from imparo.errors import PrecisionWarning

pytest.importorskip("pinocchio")

ARM = ("r_shoulder_pitch", "r_shoulder_roll", "r_shoulder_yaw", "r_elbow")
DOWN, SIDE = (0, 0, -9.81), (3.1, -7.2, -5.9)


def chain(kinds, seed=0, *, axes=None, rounded=None):
    """A serial robot with axes and offsets in general position; kinds as "RRP"."""
    rng = np.random.default_rng(seed)
    parts = ['<robot name="chain"><link name="base"/>']
    for i, kind in enumerate(kinds, start=1):
        axis = rng.normal(size=3) if axes is None else axes[i - 1]
        place, turn = rng.uniform(-0.5, 0.5, 3), rng.uniform(-1.5, 1.5, 3)
        if rounded is not None:
            turn = np.array([rounded, 0.0, 0.0]) if i > 1 else np.zeros(3)
        kind = {"R": "revolute", "P": "prismatic"}[kind]
        parent = "base" if i == 1 else f"body_{i - 1}"
        xyz, rpy, direction = (
            " ".join(map(repr, v.tolist())) for v in (place, turn, np.array(axis))
        )
        parts.append(
            f'<link name="body_{i}"/><joint name="joint_{i}" type="{kind}">'
            f'<parent link="{parent}"/><child link="body_{i}"/>'
            f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{direction}"/>'
            '<limit lower="-2" upper="2" velocity="3" effort="9"/></joint>'
        )
    return "".join(parts) + "</robot>"


def icub_arm(**keywords):
    pytest.importorskip("icub_models")
    return Robot("iCubGazeboV2_5", joints=ARM, **keywords)


def assert_same_outputs(robot, base, seed):
    """Φ π = Φ_b C π for a random π at random states that the algorithm did not see."""
    rng = np.random.default_rng([7, seed])
    q, dq, ddq = rng.uniform(-3, 3, (3, 30, robot.n_joints))
    Phi = robot.regressor(q, dq, ddq)
    pi = rng.normal(size=Phi.shape[-1])
    full = Phi @ pi
    np.testing.assert_allclose(
        base.reduce(Phi) @ base.of(pi), full, rtol=0, atol=1e-9 * np.abs(full).max()
    )


@pytest.mark.parametrize("sensor", [None, "r_arm_ft_sensor"])
def test_the_icub_arm_has_24_base_parameters_by_torques_and_17_at_the_sensor(sensor):
    base = base_parameters(icub_arm(sensor=sensor))
    assert base.rank == (24 if sensor is None else 17)
    assert base.smallest_kept > 1e-3
    assert base.largest_dropped < 1e-12
    assert base.gap > 1e10


@pytest.mark.parametrize("sensor", [None, "r_arm_ft_sensor"])
def test_outputs_are_those_of_the_base_parameters_for_any_parameters_and_state(sensor):
    robot = icub_arm(sensor=sensor)
    base = base_parameters(robot)
    for seed in range(5):
        assert_same_outputs(robot, base, seed)


def test_no_smaller_set_would_do():
    """The columns kept are independent at states that the algorithm did not see."""
    robot = icub_arm(sensor="r_arm_ft_sensor")
    base = base_parameters(robot)
    rng = np.random.default_rng(3)
    A = robot.regressor(*rng.uniform(-2, 2, (3, 40, 4))).reshape(-1, 20)
    assert np.linalg.matrix_rank(A, tol=1e-9 * np.linalg.norm(A)) == base.rank
    assert np.linalg.matrix_rank(A[:, base.columns]) == base.rank


def expected_rank(kinds):
    """Count by hand: what body j shows that those before it do not, axes being skew.

    A revolute joint shows its moment of inertia and two first moments, and, on a body that
    turns already, all ten parameters but three that act like those of that body. A slide shows
    the mass; the first moments, too, on a body that turns, save along a single axis of turning.
    With revolute joints alone this is 7 J − 4 (Gautier and Khalil).
    """
    rank = turning = 0
    for kind in kinds:
        rank += (3, 7, 7)[min(turning, 2)] if kind == "R" else (1, 3, 4)[min(turning, 2)]
        turning += kind == "R"
    return rank


@given(kinds=st.text("RP", min_size=2, max_size=5), seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_chains_in_general_position_have_as_many_as_counted_by_hand(kinds, seed):
    robot = Robot(chain(kinds, seed), gravity=SIDE)
    base = base_parameters(robot, tolerance=1e-9)  # axes may be almost parallel
    assert base.rank == expected_rank(kinds)
    assert_same_outputs(robot, base, seed)


@pytest.mark.parametrize("n", [2, 4, 6])
def test_a_first_axis_along_gravity_hides_two_more(n):
    """7 J − 6: weight makes no torque about a vertical axis."""
    axes = [(0, 0, 1), *np.random.default_rng(1).normal(size=(n - 1, 3))]
    text = chain("R" * n, axes=axes).replace('rpy="', 'rpy="0 0 0" was="', 1)
    assert base_parameters(Robot(text, gravity=DOWN)).rank == 7 * n - 6
    assert base_parameters(Robot(text, gravity=SIDE)).rank == 7 * n - 4


@pytest.mark.parametrize(
    ("kinds", "cut", "rank"), [("RRR", 2, 17), ("RRRP", 2, 21), ("RR", 2, 10)]
)
def test_a_sensor_sees_all_ten_parameters_of_the_body_behind_it(kinds, cut, rank):
    """10, and 7 for each revolute joint beyond the sensor, and 4 for each slide."""
    text = chain(kinds).replace(f'<parent link="body_{cut}"/>', '<parent link="hand"/>')
    text = text.replace(
        "</robot>",
        '<link name="hand"/><joint name="ft" type="fixed"><origin xyz=".1 .2 .3" rpy="1 2 3"/>'
        f'<parent link="body_{cut}"/><child link="hand"/></joint></robot>',
    )
    robot = Robot(text, sensor="ft")
    base = base_parameters(robot)
    assert base.rank == rank
    assert_same_outputs(robot, base, 0)


# Closed forms.


def test_a_pendulum_about_a_horizontal_axis_shows_three():
    base = base_parameters(Robot.from_dh([(0, 0, 0, 0)], gravity=(0, -9.81, 0)))
    assert base.names == ("mcx of link_1", "mcy of link_1", "Izz of link_1")
    np.testing.assert_array_equal(base.combinations, np.eye(10)[[1, 2, 9]])
    assert base.largest_dropped == 0


def test_about_a_vertical_axis_only_the_moment_of_inertia_shows():
    base = base_parameters(Robot.from_dh([(0, 0, 0, 0)], gravity=DOWN))
    assert base.names == ("Izz of link_1",)
    assert base.columns.tolist() == [9]
    assert len(base.without_effect) == 9
    assert "Izz of link_1" not in base.without_effect


def test_a_slide_shows_its_mass_alone():
    robot = Robot(chain("P", axes=[(0, 0, 2)]), gravity=SIDE)
    base = base_parameters(robot)
    assert base.names == ("mass of body_1",)
    # Of two slides, the force at the second tells both masses apart.
    robot = Robot(chain("PP"), gravity=SIDE)
    base = base_parameters(robot)
    assert base.names == ("mass of body_1", "mass of body_2")
    assert_same_outputs(robot, base, 0)


def planar(length, q, dq, ddq, g):
    """The textbook's regressor of an arm in a vertical plane, from its Lagrangian.

    Columns: mcx₁ + l m₂, mcy₁, Izz₁ + l² m₂, mcx₂, mcy₂, Izz₂.
    """
    (q1, q2), (w1, w2), (a1, a2) = q, dq, ddq
    c1, s1, c2, s2, c, s = (f(x) for x in (q1, q2, q1 + q2) for f in (np.cos, np.sin))
    bent = -(2 * w1 * w2 + w2**2)
    first = [
        g * c1,
        -g * s1,
        a1,
        length * ((2 * a1 + a2) * c2 + bent * s2) + g * c,
        length * (-(2 * a1 + a2) * s2 + bent * c2) - g * s,
        a1 + a2,
    ]
    second = [
        0,
        0,
        0,
        length * (a1 * c2 + w1**2 * s2) + g * c,
        length * (-a1 * s2 + w1**2 * c2) - g * s,
        a1 + a2,
    ]
    return np.array([first, second])


@given(length=st.floats(0.05, 3), seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_a_planar_arm_has_the_textbook_base_parameters(length, seed):
    robot = Robot.from_dh([(0, 0, 0, 0), (length, 0, 0, 0)], gravity=(0, -9.81, 0))
    base = base_parameters(robot)
    expected = np.eye(20)[[1, 2, 9, 11, 12, 19]]
    expected[0, 10], expected[2, 10] = length, length**2
    np.testing.assert_allclose(base.combinations, expected, rtol=1e-9, atol=0)
    q, dq, ddq = np.random.default_rng(seed).uniform(-3, 3, (3, 2))
    np.testing.assert_allclose(
        base.reduce(robot.regressor(q, dq, ddq)),
        planar(length, q, dq, ddq, 9.81),
        rtol=0,
        atol=1e-11 * (1 + length) * 50,
    )


def test_a_planar_arm_in_a_horizontal_plane_has_four():
    base = base_parameters(Robot.from_dh([(0, 0, 0, 0), (0.4, 0, 0, 0)]))
    assert base.names == (
        "Izz of link_1 + 0.16 mass of link_2",
        "mcx of link_2",
        "mcy of link_2",
        "Izz of link_2",
    )


def test_names_say_sign_size_and_nothing_of_rounding_errors():
    """Two axes in one line: the second body turns with the first, 0.25 m below it."""
    text = chain("RR", axes=[(0, 0, 1), (0, 0, 1)], rounded=0.0)
    robot = Robot(text, gravity=(0, -9.81, 0))
    base = base_parameters(robot)
    x, y = (
        robot.position([[0.0, 0.0]], "body_2")[0, :2]
        - robot.position([[0.0, 0.0]], "body_1")[0, :2]
    )
    signs = ["-" if part < 0 else "+" for part in (x, y)]
    assert base.names[:3] == (
        f"mcx of body_1 {signs[0]} {abs(x):.4g} mass of body_2",
        f"mcy of body_1 {signs[1]} {abs(y):.4g} mass of body_2",
        f"Izz of body_1 + {x * x + y * y:.4g} mass of body_2",
    )
    coaxial = base_parameters(
        Robot.from_dh([(0, 0, 0, 0), (0, 0, 0.3, 0)], gravity=(0, -9.81, 0))
    )
    assert coaxial.names[0] == "mcx of link_1"
    assert coaxial.names[2] == "Izz of link_1"
    folded = base_parameters(Robot.from_dh([(0, 0, 0, 0), (0, np.pi / 2, 0, 0)]))
    assert folded.names[0] == "Izz of link_1 + Iyy of link_2"
    assert "Ixx of link_2 - Iyy of link_2" in folded.names


# Unclear cases and other arguments.


def test_rounded_angles_are_told_and_a_tolerance_regroups_them():
    exact = Robot(chain("RRR", axes=[(0, 0, 1)] * 3, rounded=np.pi), gravity=SIDE)
    nearly = Robot(chain("RRR", axes=[(0, 0, 1)] * 3, rounded=3.14159), gravity=SIDE)
    with pytest.warns(PrecisionWarning, match="tolerance=1e-4"):
        base_parameters(nearly)
    base, same = base_parameters(nearly, tolerance=1e-4), base_parameters(exact)
    assert base.rank == same.rank
    assert base.names == same.names
    np.testing.assert_allclose(base.combinations, same.combinations, rtol=0, atol=1e-4)


def test_seeds_and_numbers_of_samples_change_nothing_but_rounding_errors():
    robot = icub_arm(sensor="r_arm_ft_sensor")
    one = base_parameters(robot)
    for other in (
        base_parameters(robot, rng=np.random.default_rng(5)),
        base_parameters(robot, n_samples=30, rng=1),
        base_parameters(robot, n_samples=1000),
    ):
        np.testing.assert_array_equal(other.columns, one.columns)
        np.testing.assert_allclose(other.combinations, one.combinations, rtol=0, atol=1e-11)
        assert other.names == one.names
    np.testing.assert_array_equal(base_parameters(robot).combinations, one.combinations)


def test_parameters_without_effect_have_columns_of_zeros():
    robot = icub_arm()
    base = base_parameters(robot)
    Phi = robot.regressor(*np.random.default_rng(2).normal(size=(3, 20, 4)))
    zero = [robot.parameter_names.index(name) for name in base.without_effect]
    assert zero
    np.testing.assert_allclose(Phi[..., zero], 0, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(base.combinations[:, zero], 0)


def test_a_table_has_a_row_for_each_base_parameter():
    base = base_parameters(Robot.from_dh([(0, 0, 0, 0), (0.4, 0, 0, 0)]))
    values = base.of(np.arange(20.0))
    np.testing.assert_allclose(values, [9 + 0.16 * 10, 11, 12, 19])
    assert base.table(values) == list(zip(base.names, values, strict=True))
    assert base.table(values, np.ones(4))[3] == ("Izz of link_2", 19.0, 1.0)
    assert repr(base).startswith("BaseParameters(4 of 20 parameters, gap ")


@pytest.mark.parametrize("how", ["save", "pickle", "deepcopy"])
def test_base_parameters_survive_files_and_copies(tmp_path, how):
    base = base_parameters(Robot.from_dh([(0, 0, 0, 0), (0.4, 0, 0, 0)]))
    if how == "save":
        imparo.save(base, tmp_path / "base.imparo")
        same = imparo.load(tmp_path / "base.imparo")
    else:
        same = pickle.loads(pickle.dumps(base)) if how == "pickle" else copy.deepcopy(base)
    assert isinstance(same, BaseParameters)
    np.testing.assert_array_equal(same.columns, base.columns)
    np.testing.assert_array_equal(same.combinations, base.combinations)
    assert (same.names, same.without_effect, same.gap) == (
        base.names,
        base.without_effect,
        base.gap,
    )


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda r, b: base_parameters(r, n_samples=3), "n_samples=3 gives 6 rows for 20"),
        (lambda r, b: base_parameters(r, n_samples=-1), "n_samples=-1 gives 0 rows"),
        (lambda r, b: base_parameters(r, tolerance=0), "tolerance=0 must be"),
        (lambda r, b: base_parameters(r, tolerance=np.nan), "tolerance=nan must be"),
        (lambda r, b: b.reduce(np.zeros((3, 2, 19))), "20 columns were expected"),
        (lambda r, b: b.reduce(1.0), "20 columns were expected"),
        (lambda r, b: b.of(np.zeros(4)), "20 numbers were expected"),
        (lambda r, b: b.of(np.full(20, np.nan)), "parameters holds NaN"),
        (lambda r, b: b.table(np.zeros(20)), "4 numbers were expected"),
        (lambda r, b: b.table(np.zeros(4), np.zeros(3)), "deviations has the shape"),
    ],
    ids=[
        "few",
        "negative",
        "zero",
        "nan",
        "columns",
        "scalar",
        "size",
        "gaps",
        "table",
        "stds",
    ],
)
def test_bad_input_is_named(call, sentence):
    robot = Robot.from_dh([(0, 0, 0, 0), (0.4, 0, 0, 0)])
    with pytest.raises(ValueError, match=sentence):
        call(robot, base_parameters(robot))
