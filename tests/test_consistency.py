"""Physical consistency: bodies made of points exist, others do not, and the nearest that do."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import imparo
from imparo.dynamics import Robot
from imparo.dynamics.base import base_parameters
from imparo.dynamics.consistency import (
    check_consistency,
    nearest_consistent,
    pseudo_inertia,
)

pytest.importorskip("pinocchio")

PLANAR = [(0, 0, 0, 0), (0.5, 0, 0, 0)]
GENERAL = [(0, 0, 0, 0), (0.3, np.pi / 2, 0.1, 0)]


def robot(rows=GENERAL, gravity=(0, -9.81, 0)):
    return Robot.from_dh(rows, gravity=gravity)


def of_points(masses, places):
    """The ten parameters of point masses, by their definitions."""
    ten = np.zeros(10)
    for m, r in zip(masses, places, strict=True):
        inertia = m * (r @ r * np.eye(3) - np.outer(r, r))
        upper = inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
        ten += np.array([m, *(m * r), *upper])
    return ten


def cloud(rng, n=8, size=0.2):
    return of_points(
        rng.uniform(0.1, 1, n), rng.normal(size=(n, 3)) * size + rng.normal(size=3)
    )


def bodies(rng, n=2):
    return np.concatenate([cloud(rng) for _ in range(n)])


# The report.


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_bodies_of_many_points_are_possible_and_their_numbers_right(seed):
    rng = np.random.default_rng(seed)
    masses, places = rng.uniform(0.1, 1, 6), rng.normal(size=(6, 3))
    report = check_consistency(robot(), np.concatenate([of_points(masses, places), cloud(rng)]))
    body = report.bodies[0]
    assert report.ok
    assert body.verdict == "possible"
    assert body.mass == pytest.approx(masses.sum())
    centre = masses @ places / masses.sum()
    np.testing.assert_allclose(body.centre, centre, rtol=0, atol=1e-12)
    about_centre = of_points(masses, places - centre)
    moments = np.linalg.eigvalsh(about_centre[[[4, 5, 7], [5, 6, 8], [7, 8, 9]]])
    np.testing.assert_allclose(body.moments, moments, rtol=0, atol=1e-11)


@given(seed=st.integers(0, 10**6), push=st.floats(-3, 3))
@settings(max_examples=80, deadline=None)
def test_the_verdict_is_that_of_the_pseudo_inertia_matrix(seed, push):
    """And that matrix is the integral of (r, 1)(r, 1)ᵀ."""
    rng = np.random.default_rng(seed)
    masses, places = rng.uniform(0.1, 1, 6), rng.normal(size=(6, 3))
    P = sum(
        m * np.outer(r, r)
        for m, r in zip(masses, np.column_stack([places, np.ones(6)]), strict=True)
    )
    ten = of_points(masses, places)
    np.testing.assert_allclose(pseudo_inertia(ten), P, rtol=0, atol=1e-12)
    # A push by one point of any sign and place, which may make the body impossible.
    point = rng.normal(size=3)
    ten = ten + push * of_points([1.0], point[None])
    least = np.linalg.eigvalsh(P + push * np.outer(np.append(point, 1), np.append(point, 1)))[0]
    if abs(least) > 1e-6:
        report = check_consistency(robot(), np.concatenate([ten, cloud(rng)]))
        assert report.ok == (least > 0)
        assert report.bodies[1].ok


@pytest.mark.parametrize(
    ("ten", "verdict"),
    [
        ([-1, 0, 0, 0, 1, 0, 1, 0, 0, 1], "impossible: its mass is negative, -1 kg"),
        ([0, 0, 0, 0, 1, 0, 1, 0, 0, 1], "impossible: it has moments, but no mass"),
        ([1, 0, 0, 0, 1, 0, 1, 0, 0, -1], "impossible: a principal moment is negative, -1"),
        # Possible about the frame, but not about the centre of mass, 1 m away.
        ([1, 1, 0, 0, 1, 0, 1, 0, 0, 1.9], "impossible: a principal moment exceeds the sum"),
        (
            [1, 1, 0, 0, 1, 0, 0.9, 0, 0, 1.9],
            "impossible: a principal moment is negative, -0.1",
        ),
        ([1, 0, 0, 0, 1, 0, 1, 0, 0, 2.1], "exceeds the sum of the others, 2.1 > 1 + 1"),
        ([1, 0, 0, 0, 1, 0, 1, 0, 0, 2], "possible, as a limit: flat, thin or a point"),
        ([1, 0.3, 0, 0, 0, 0, 0.09, 0, 0, 0.09], "possible, as a limit"),
        ([1, 0, 0, 0, 1, 0, 1, 0, 0, 1.9], "possible"),
        ([0] * 10, "possible: it has no mass at all"),
    ],
)
def test_verdicts_say_in_words_what_is_wrong(ten, verdict):
    report = check_consistency(robot(), [*ten, *ten])
    assert verdict in report.bodies[0].verdict
    assert report.ok == verdict.startswith("possible")


def test_the_report_prints_a_row_for_each_body():
    ten = [2, 0.5, 0, 0, 0.01, 0, 0.2, 0, 0, 0.2]
    lines = str(check_consistency(robot(), [*ten, -1, *ten[1:]])).splitlines()
    assert len(lines) == 3
    assert lines[0].split()[:3] == ["body", "mass", "(kg)"]
    assert lines[1].startswith("link_1     2.0000   0.2500  0.0000  0.0000 ")
    assert lines[1].endswith("possible")
    assert lines[2].endswith("impossible: its mass is negative, -1 kg")


def test_the_icub_of_the_description_exists():
    pytest.importorskip("icub_models")
    arm = Robot("iCubGazeboV2_5", joints=("r_elbow", "r_wrist_prosup"))
    report = check_consistency(arm, arm.parameters)
    assert report.ok
    assert tuple(body.name for body in report.bodies) == arm.bodies


@pytest.mark.parametrize("how", ["save", "pickle", "deepcopy"])
def test_reports_survive_files_and_copies(tmp_path, how):
    report = check_consistency(robot(), np.zeros(20))
    if how == "save":
        imparo.save(report, tmp_path / "report.imparo")
        same = imparo.load(tmp_path / "report.imparo")
    else:
        same = pickle.loads(pickle.dumps(report)) if how == "pickle" else copy.deepcopy(report)
    assert str(same) == str(report)
    assert same.ok


# The nearest bodies that exist.


@given(seed=st.integers(0, 10**6), planar=st.booleans())
@settings(max_examples=20, deadline=None)
def test_base_parameters_of_bodies_that_exist_are_met_exactly(seed, planar):
    arm = robot(PLANAR if planar else GENERAL)
    base, truth = base_parameters(arm), bodies(np.random.default_rng(seed))
    values = base.of(truth)
    found, distance = nearest_consistent(arm, base, values)
    assert distance == 0
    np.testing.assert_allclose(base.of(found), values, rtol=0, atol=1e-10 * abs(values).max())
    assert check_consistency(arm, found).ok
    # Bodies that fit already are left as they are.
    same, distance = nearest_consistent(arm, base, values, start=truth)
    assert distance == 0
    np.testing.assert_allclose(same, truth, rtol=0, atol=1e-5 * abs(truth).max())


def test_what_base_parameters_leave_open_stays_close_to_the_start():
    """The divergence from the start is least among all bodies with these base parameters."""
    arm, rng = robot(), np.random.default_rng(5)
    base, start, truth = base_parameters(arm), bodies(rng), bodies(rng)
    found, distance = nearest_consistent(arm, base, base.of(truth), start=start)
    assert distance == 0
    P0 = pseudo_inertia(start.reshape(-1, 10))

    def divergence(pi):
        ratio = np.linalg.solve(P0, pseudo_inertia(pi.reshape(-1, 10)))
        return float(
            np.trace(ratio, axis1=1, axis2=2).sum() - np.log(np.linalg.det(ratio)).sum()
        )

    least = divergence(found)
    assert least < divergence(truth)
    free = np.linalg.svd(base.combinations)[2][base.rank :]
    for size in (1e-2, 1e-3):
        for _ in range(50):
            step = size * rng.normal(size=len(free)) @ free
            assert divergence(found + step) > least - 1e-7
            assert divergence(found - step) > least - 1e-7


def infeasible(kind):
    """Base parameters that no bodies have, with a covariance or without."""
    arm, rng = robot(), np.random.default_rng(2)
    base = base_parameters(arm)
    values = base.of(bodies(rng))
    if kind == "identity":
        values[-1] = -1.0
        return arm, base, values, None
    deviations = abs(values).mean() * 10 ** rng.uniform(-2, 0, base.rank)
    turn = np.linalg.qr(rng.normal(size=(base.rank, base.rank)))[0]
    covariance = deviations[:, None] * (turn @ np.diag(rng.uniform(0.5, 2, base.rank)) @ turn.T)
    covariance = covariance * deviations
    values -= 5 * np.sqrt(np.diag(covariance)) + 1.5 * abs(values)
    return arm, base, values, covariance


def distance_of(base, values, covariance, pi):
    gap = base.of(pi) - values
    return float(
        np.sqrt(gap @ (gap if covariance is None else np.linalg.solve(covariance, gap)))
    )


@pytest.mark.parametrize("kind", ["identity", "covariance"])
def test_no_bodies_that_exist_are_nearer_than_the_nearest(kind):
    """Optimality of a convex problem: the slope is not negative towards any feasible π.

    It is enough to look at points of mass, of which all feasible π are sums, and at π itself.
    """
    arm, base, values, covariance = infeasible(kind)
    found, distance = nearest_consistent(arm, base, values, covariance=covariance)
    assert distance > 0.1
    assert distance == pytest.approx(distance_of(base, values, covariance, found), rel=1e-9)
    assert check_consistency(arm, found).ok
    gap = base.of(found) - values
    weighted = gap if covariance is None else np.linalg.solve(covariance, gap)
    slope = base.combinations.T @ weighted
    small = 2e-4 * distance**2
    assert abs(slope @ found) < small  # neither more nor less of the same
    rng = np.random.default_rng(0)
    for body in range(2):
        # The slope towards a unit point (r, w), w a share of mass: a quadratic form in it.
        part = slope[10 * body : 10 * body + 10]

        def towards(point, part=part):
            point = point / np.linalg.norm(point)
            return float(part @ ten_of_homogeneous(point))

        least = min(minimize(towards, rng.normal(size=4), tol=1e-12).fun for _ in range(8))
        assert least > -small


def ten_of_homogeneous(point):
    """The ten parameters of P = p pᵀ, where p = (r, w)."""
    r, w = point[:3], point[3]
    inertia = r @ r * np.eye(3) - np.outer(r, r)
    return np.array([w * w, *(w * r), *inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])


@pytest.mark.parametrize("kind", ["identity", "covariance"])
def test_random_bodies_that_exist_are_not_nearer(kind):
    arm, base, values, covariance = infeasible(kind)
    found, distance = nearest_consistent(arm, base, values, covariance=covariance)
    rng = np.random.default_rng(1)
    for share in (1e-4, 1e-2, 0.3):
        for _ in range(100):
            other = (1 - share) * found + share * bodies(rng) * rng.uniform(0, 3)
            assert distance_of(base, values, covariance, other) > distance * (1 - 1e-6)


def test_of_a_single_slide_the_nearest_mass_is_0():
    text = (
        '<robot name="slide"><link name="base"/><link name="body"/>'
        '<joint name="rail" type="prismatic"><parent link="base"/><child link="body"/>'
        '<axis xyz="1 0 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/>'
        "</joint></robot>"
    )
    slide = Robot(text)
    base = base_parameters(slide)
    found, distance = nearest_consistent(slide, base, [-2.0], covariance=[[0.25]])
    assert distance == pytest.approx(4.0, rel=1e-6)  # 2 kg at half a kilogram a deviation
    assert 0 < found[0] < 1e-6


def test_of_a_planar_arm_the_nearest_is_that_of_the_formula():
    """The second link's mcx, mcy = 0 and Izz < 0: the nearest Izz is 0, the rest can be met."""
    arm = robot(PLANAR)
    base = base_parameters(arm)
    values = np.array([1.0, 0.0, 0.8, 0.0, 0.0, -0.3])
    found, distance = nearest_consistent(arm, base, values)
    assert distance == pytest.approx(0.3, rel=1e-5)
    np.testing.assert_allclose(base.of(found), [1, 0, 0.8, 0, 0, 0], rtol=0, atol=1e-4)


def test_a_description_with_impossible_bodies_is_repaired_first():
    arm, rng = robot(), np.random.default_rng(3)
    base, truth = base_parameters(arm), bodies(rng)
    for start in (np.zeros(20), -truth, np.concatenate([truth[:10], [1, *np.zeros(9)]])):
        found, distance = nearest_consistent(arm, base, base.of(truth), start=start)
        assert distance == 0
        assert check_consistency(arm, found).ok


def test_where_no_output_depends_on_the_bodies_they_stay_as_they_are():
    """Without gravity, at a sensor that stands still."""
    text = (
        '<robot name="post"><link name="base"/><link name="plate"><inertial>'
        '<mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
        '</inertial></link><link name="wheel"/><joint name="cut" type="fixed">'
        '<parent link="base"/><child link="plate"/></joint><joint name="turn" '
        'type="continuous"><parent link="base"/><child link="wheel"/></joint></robot>'
    )
    post = Robot(text, sensor="cut", gravity=(0, 0, 0))
    base = base_parameters(post)
    assert base.rank == 0
    found, distance = nearest_consistent(post, base, [])
    assert distance == 0
    np.testing.assert_allclose(found, [2, 0, 0, 0, 1, 0, 1, 0, 0, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"base_values": np.zeros(3)}, "base_values has the shape"),
        ({"base_values": np.full(6, np.inf)}, "base_values holds NaN or infinite"),
        ({"covariance": np.eye(5)}, "covariance has the shape"),
        ({"covariance": np.full((6, 6), np.nan)}, "finite numbers of the shape"),
        ({"covariance": np.zeros((6, 6))}, "not positive definite"),
        ({"covariance": "large"}, "finite numbers of the shape"),
        ({"start": np.zeros(10)}, "start has the shape"),
    ],
    ids=["size", "infinite", "shape", "nan", "singular", "text", "start"],
)
def test_bad_input_is_named(keywords, sentence):
    arm = robot(PLANAR)
    base = base_parameters(arm)
    values = keywords.pop("base_values", np.ones(6))
    with pytest.raises(ValueError, match=sentence):
        nearest_consistent(arm, base, values, **keywords)


def test_parameters_and_base_of_another_robot_are_refused():
    arm = robot(PLANAR)
    with pytest.raises(ValueError, match="20 numbers were expected"):
        check_consistency(arm, np.zeros(10))
    with pytest.raises(ValueError, match="give those of this robot"):
        nearest_consistent(robot([*PLANAR, (1, 0, 0, 0)]), base_parameters(arm), np.ones(6))
