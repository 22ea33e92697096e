"""Recordings of real robots: what is done to their numbers, and that physics explains them.

Tests of conversions use small archives made here, whose answers are formulas; the others read
the folder ``IMPARO_DATA``.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from imparo.dynamics import ParametricDynamics, Robot
from imparo.dynamics.logs.log import Log
from imparo.dynamics.recordings import RECORDINGS, recording

DH = [(0, 0, 0, 0), (0.4, np.pi / 2, 0.1, 0), (0.3, -np.pi / 2, 0.2, 0.5)]
COUPLING = np.array([[1.0, 0, 0], [0, 2.0, 0], [0, 1.0, -1.0]])
TIMED = ("panda", "tiago", "tx40", "ur10e")


@pytest.fixture(scope="module")
def read():
    """A function that reads a recording once, or skips saying why."""
    found = {}

    def reader(name):
        folder = os.environ.get("IMPARO_DATA")
        if not folder:
            pytest.skip("IMPARO_DATA does not name a folder with the benchmark data")
        try:
            if name not in found:
                found[name] = recording(name)
            return found[name]
        except FileNotFoundError as error:
            pytest.skip(str(error))

    return reader


# Archives made here.


def arrays_of_a_chain(names):
    """A model in the layout of the archives: links of 1 kg in a row, axes x and z in turn."""
    J = len(names)
    return {
        "link_names": [f"link_{i}" for i in range(J + 1)],
        "link_mass": np.ones(J + 1),
        "link_com": np.full((J + 1, 3), 0.1),
        "link_inertial_rpy": np.zeros((J + 1, 3)),
        "link_inertia": np.tile([0.1, 0, 0, 0.1, 0, 0.1], (J + 1, 1)),
        "joint_names": names,
        "joint_types": ["revolute"] * J,
        "joint_parent": np.arange(J),
        "joint_child": np.arange(1, J + 1),
        "joint_xyz": np.full((J, 3), 0.2),
        "joint_rpy": np.zeros((J, 3)),
        "joint_axis": np.array([[1.0, 0, 0], [0, 0, 1.0]])[np.arange(J) % 2],
        "joint_limits": np.tile([-3.0, 3.0], (J, 1)),
    }


UR_JOINTS = ["shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"]
UR_TRAIN = (
    "19_12_23_free", "20_01_31-unload", "20_02_05-20sec_12harm", "20_02_05-20sec_8harm",
    "20_02_06-20sec_10harm", "20_02_06-20sec_5harm", "20_02_10-20sec_7harm",
    "20_02_10-30sec_12harm", "20_02_12-40sec_12harm", "20_02_12-50sec_12harm",
)  # fmt: skip
UR_TEST = ("20_02_19_14harm50sec", "20_02_19_15harm50sec")
UR_LOAD = ("20_01_31-load", "20_02_19_14harm50secLoad", "20_02_19_15harm50secLoad")


@pytest.fixture
def ur10e_folder(tmp_path):
    """Recordings of 60 samples, dq = a + b t in each, with a gap in the last one."""
    names = [f"some_folder/ur-{name}.csv" for name in UR_TRAIN + UR_TEST + UR_LOAD]
    rng = np.random.default_rng(0)
    t, dq, traj = [], [], []
    for i in range(len(names)):
        stamps = 5.0 + np.cumsum(rng.uniform(0.008, 0.012, 60))
        if i == len(names) - 1:
            stamps[30:] += 0.4
            stamps[57:] += 0.4  # leaves a piece that is too short to be of use
        t.append(stamps)
        dq.append(rng.normal(size=6) + stamps[:, None] * (np.arange(6) + i))
        traj.append(np.full(60, i, np.uint8))
    n = 60 * len(names)
    arrays = {
        "t": np.concatenate(t), "q": rng.normal(size=(n, 6)), "dq": np.concatenate(dq),
        "current": rng.normal(size=(n, 6)), "traj": np.concatenate(traj), "traj_names": names,
    }  # fmt: skip
    np.savez(tmp_path / "ur10e_dynamics.npz", **arrays)
    model = arrays_of_a_chain([f"{name}_joint" for name in UR_JOINTS])
    np.savez(tmp_path / "model_ur10e.npz", **model)
    return tmp_path, arrays


def test_recordings_of_the_ur10e_are_cut_at_gaps_and_none_is_derived_across_another(
    ur10e_folder,
):
    folder, arrays = ur10e_folder
    arm = recording("ur10e", folder)
    assert list(arm.parts) == [Path(name).stem for name in arrays["traj_names"]]
    sizes = [part.stop - part.start for part in arm.parts.values()]
    # 5 samples at each end have no full window; 30 + 27 samples beside the gap have two more.
    assert sizes == [50] * 14 + [20 + 17]
    assert [part.start for part in arm.parts.values()] == [0, *np.cumsum(sizes)[:-1]]
    assert len(arm.log) == sum(sizes)
    for i, part in enumerate(arm.parts.values()):
        assert_allclose(arm.log.ddq[part], np.tile(np.arange(6) + i, (sizes[i], 1)), atol=1e-9)


def test_a_row_of_the_ur10e_is_what_was_measured_at_one_instant(ur10e_folder):
    folder, arrays = ur10e_folder
    arm = recording("ur10e", folder)
    first = slice(5, 55)  # of the first recording
    rows = arm.parts["ur-19_12_23_free"]
    assert_allclose(arm.log.q[rows], arrays["q"][first])
    assert_allclose(arm.log.dq[rows], arrays["dq"][first])
    constants = arm.log.y[rows] / arrays["current"][first]
    assert_allclose(constants, np.tile(constants[0], (50, 1)), rtol=1e-12)


def test_no_recording_of_the_ur10e_with_a_payload_is_learned_or_tested(ur10e_folder):
    arm = recording("ur10e", ur10e_folder[0])
    assert_array_equal(arm.train, arm.rows(*(f"ur-{name}" for name in UR_TRAIN)))
    assert_array_equal(arm.test, arm.rows(*(f"ur-{name}" for name in UR_TEST)))
    assert all("oad" not in free.replace("unload", "") for free, _ in arm.pairs)
    assert {loaded for _, loaded in arm.pairs} == {f"ur-{name}" for name in UR_LOAD}


def test_torques_of_the_tx40_do_the_work_that_its_motors_do(tmp_path):
    rng = np.random.default_rng(1)
    t = np.arange(38_000) / 5000
    phases, speeds = rng.uniform(0, 6, 6), rng.uniform(0.5, 2, 6)
    joints = np.sin(np.outer(t, speeds) + phases)
    velocities = speeds * np.cos(np.outer(t, speeds) + phases)
    gears = np.diag([32.0, 32, 45, -48, 45, 32])
    gears[5, 4] = 32
    # Slow, so that means over 4 ms are the values themselves.
    current = 1 + 0.1 * np.outer(t, rng.normal(size=6))
    arrays = {"motor_pos": joints @ gears.T, "motor_current": current}
    np.savez(tmp_path / "tx40_dynamics.npz", **arrays)
    model = arrays_of_a_chain([f"joint_{i}" for i in range(1, 7)])
    np.savez(tmp_path / "model_tx40.npz", **model)
    arm = recording("tx40", tmp_path)
    log = arm.log
    power_of_motors = np.sum(current * (velocities @ gears.T), axis=1)
    power = np.sum(log.y * log.dq, axis=1)
    late = log.t - 1.9e-3  # means of 20 samples are 9.5 samples late
    assert_allclose(power[1:], np.interp(late, t, power_of_motors)[1:], rtol=1e-3, atol=0.1)
    # The robot's coordinates are the motors': it finds its joints where they were.
    where = arm.robot.coupling @ np.array([np.interp(late[700], t, q) for q in joints.T])
    assert_allclose(log.q[700], where, atol=1e-3)
    assert log.t[-1] < 7.3 < t[-1]


def test_the_tiago_s_velocities_are_those_of_its_positions_and_not_the_logged_ones(tmp_path):
    t = np.arange(0, 80, 0.01)
    q = 0.3 * np.sin(np.outer(t, np.linspace(0.2, 0.9, 8)))
    effort = np.tile(np.arange(1.0, 9.0), (len(t), 1))
    np.savez(tmp_path / "tiago_dynamics.npz", t=t, q=q, dq=np.full_like(q, 99.0), effort=effort)
    names = ["torso_lift_joint", *(f"arm_{i}_joint" for i in range(1, 8))]
    np.savez(tmp_path / "model_tiago.npz", **arrays_of_a_chain(names))
    arm = recording("tiago", tmp_path)
    speeds = np.linspace(0.2, 0.9, 8)[1:5]
    late = arm.log.t - 0.02  # means of five samples, or of one more or less by rounding
    expected = 0.3 * speeds * np.cos(np.outer(late, speeds))
    assert_allclose(arm.log.dq[1:], expected[1:], atol=2e-3)
    assert arm.log.joints == tuple(f"arm_{i}_joint" for i in (1, 2, 3, 4))
    assert_allclose(arm.log.y / [2, 3, 4, 5], np.tile([13.6, 13.6, -8.7, -8.7], (len(late), 1)))


# What is not there.


def test_a_recording_that_is_not_known_is_refused_with_those_that_are(tmp_path):
    with pytest.raises(ValueError, match="icub, panda, tiago, tx40, ur10e"):
        recording("pr2", tmp_path)


@pytest.mark.parametrize("name", RECORDINGS)
def test_missing_folders_and_files_are_named(name, tmp_path, monkeypatch):
    monkeypatch.delenv("IMPARO_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="IMPARO_DATA"):
        recording(name)
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere"):
        recording(name, tmp_path / "nowhere")
    monkeypatch.setenv("IMPARO_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=rf"has no file {name}.*\.npz"):
        recording(name)


def test_an_archive_without_an_array_is_refused(tmp_path):
    np.savez(tmp_path / "panda_dynamics.npz", t=np.arange(3.0), q=np.zeros((3, 7)))
    with pytest.raises(ValueError, match="has no array 'dq'"):
        recording("panda", tmp_path)


def test_a_part_that_is_not_there_is_refused_with_those_that_are(ur10e_folder):
    arm = recording("ur10e", ur10e_folder[0])
    with pytest.raises(ValueError, match="no part 'unloaded'; its parts are ur-19_12_23_free"):
        arm.rows("unloaded")
    assert len(arm.rows()) == 0


# Real data.


@pytest.mark.parametrize("name", RECORDINGS)
def test_rows_to_learn_from_and_to_test_are_apart(name, read):
    arm = read(name)
    assert len(arm.train)
    assert len(arm.test)
    assert not set(arm.train) & set(arm.test)
    assert arm.log.outputs == arm.robot.output_names
    if name not in ("icub", "ur10e"):
        # More than the windows over which states are derived and averaged.
        window = {"panda": 0.041, "tx40": 0.024, "tiago": 0.36}[name]
        assert arm.log.t[arm.test[0]] - arm.log.t[arm.train[-1]] > 2 * window
        assert_array_equal(np.diff(arm.test), 1)


@pytest.mark.parametrize("name", TIMED)
def test_positions_are_the_integrals_of_velocities_and_these_of_accelerations(name, read):
    arm = read(name)
    log, rows = arm.log, arm.test[: len(arm.test) // 2]  # of the UR10e the first recording
    steps = np.diff(log.t[rows])[:, None]
    for low, high in ((log.q, log.dq), (log.dq, log.ddq)):
        moved = np.cumsum((high[rows[1:]] + high[rows[:-1]]) / 2 * steps, axis=0)
        actual = low[rows[1:]] - low[rows[0]]
        assert np.abs(moved - actual).max() < 0.05 * np.abs(actual).max()


def test_torque_constants_of_the_ur10e_are_the_ratios_at_rest(read, real_data):
    arm, raw = read("ur10e"), real_data("ur10e_dynamics")
    moving = np.array(["joint_" in str(name) for name in raw["traj_names"]])[raw["traj"]]
    used = arm.log.y[arm.parts["ur-20_02_12-50sec_12harm"]]
    number = list(arm.parts).index("ur-20_02_12-50sec_12harm")
    current = raw["current"][raw["traj"] == number][5:-5].astype(float)
    for j in range(5):
        still = (
            moving & (np.abs(raw["dq"][:, j]) == 0) & (np.abs(raw["current_des"][:, j]) > 0.05)
        )
        ratios = raw["tau_des"][still, j] / raw["current_des"][still, j]
        assert len(ratios) > 30
        assert_allclose(np.percentile(ratios, [25, 75]), np.median(ratios), rtol=1e-3)
        assert_allclose(used[:, j], current[:, j] * np.median(ratios), rtol=1e-3, atol=1e-9)


def test_accelerations_of_the_ur10e_are_the_published_ones(read, real_data):
    # Published: slopes of straight lines through the same eleven samples.
    arm, raw = read("ur10e"), real_data("ur10e_dynamics")
    number = list(arm.parts).index("ur-20_02_19_14harm50sec")
    published = raw["ddq_derived"][raw["traj"] == number][5:-5]
    ours = arm.log.ddq[arm.parts["ur-20_02_19_14harm50sec"]]
    assert np.abs(ours - published).max() < 0.05 * np.abs(published).max()


def explained(arm, rows, test, robot=None):
    """Errors of least squares on the regressor and extra columns, in units of deviations.

    The columns are written out here, and solved at once by numpy.
    """
    robot, log, J = robot or arm.robot, arm.log, arm.robot.n_joints

    def columns(which):
        q, dq, ddq = log.q[which], log.dq[which], log.ddq[which]
        T = robot.n_outputs
        parts = [robot.regressor(q, dq, ddq), np.broadcast_to(np.eye(T), (len(which), T, T))]
        if len(arm.extras) > 1:
            parts += [values[:, :, None] * np.eye(J) for values in (dq, np.tanh(50 * dq), ddq)]
        return np.concatenate(parts, axis=2)

    Phi, size = columns(rows), log.y[rows].std(axis=0)
    A = (Phi / size[:, None]).reshape(-1, Phi.shape[2])
    pi = np.linalg.lstsq(A, (log.y[rows] / size).ravel(), rcond=1e-10)[0]
    left = columns(test) @ pi - log.y[test]
    return np.sqrt(np.mean(left**2, axis=0)) / log.y[test].std(axis=0), pi


@pytest.mark.parametrize(
    ("name", "most"),
    [("ur10e", 0.2), ("panda", 0.2), ("tx40", 0.2), ("tiago", 0.3), ("icub", 0.2)],
)
def test_rigid_bodies_and_friction_explain_what_was_measured(name, most, read):
    pytest.importorskip("pinocchio")
    arm = read(name)
    errors, _ = explained(arm, arm.train[:: 1 + len(arm.train) // 2000], arm.test[::5])
    assert errors.mean() < most
    assert errors.max() < 0.4


def test_friction_of_joints_explains_the_tx40_s_wrist_worse_than_that_of_motors(read):
    pytest.importorskip("pinocchio")
    arm = read("tx40")
    motors, _ = explained(arm, arm.train, arm.test)
    C, log = arm.robot.coupling, arm.log
    states = (part @ np.linalg.inv(C).T for part in (log.q, log.dq, log.ddq))
    in_joints = replace(
        arm,
        log=Log(log.t, *states, log.y @ C, log.joints, log.outputs),
        robot=Robot(arm.robot.urdf, joints=arm.robot.joints),
    )
    joints, _ = explained(in_joints, arm.train, arm.test)
    # Motor 6 and joint 6 have the same torque; joint 5 feels motor 6, too.
    assert joints[5] > 2 * motors[5]


def test_learners_take_the_settings_of_a_recording(read):
    pytest.importorskip("pinocchio")
    arm = read("panda")
    model = ParametricDynamics(arm.robot, **arm.settings)
    model.fit(arm.log.X[arm.train], arm.log.y[arm.train])
    left = model.predict(arm.log.X[arm.test]) - arm.log.y[arm.test]
    errors = np.sqrt(np.mean(left**2, axis=0)) / arm.log.y[arm.test].std(axis=0)
    expected, _ = explained(arm, arm.train, arm.test)
    assert_allclose(errors, expected, rtol=0.02)


def test_the_mass_beyond_the_icub_s_sensor_is_that_of_the_drawings_to_5_percent(read):
    pytest.importorskip("pinocchio")
    arm = read("icub")
    cad = arm.robot.parameters[::10].sum()
    assert_allclose(cad, 1.541, atol=0.001)
    model = ParametricDynamics(arm.robot, **arm.settings)
    model.fit(arm.log.X[arm.train], arm.log.y[arm.train])
    # All bodies carry their mass to the force; the first base parameter is the sum of them.
    masses = [i for i, name in enumerate(model.parameter_names_) if name.startswith("mass of")]
    combination = model.base_.combinations[masses[0]]
    assert_allclose(combination[::10], 1.0, atol=1e-9)
    assert len(masses) == 1
    assert abs(model.parameters_[masses[0]] - cad) < 0.05 * cad
    _, pi = explained(arm, arm.train, arm.test)
    assert abs(pi[:20:10].sum() - cad) < 0.05 * cad


def test_a_payload_is_not_explained_by_what_was_learned_without(read):
    pytest.importorskip("pinocchio")
    arm = read("ur10e")
    rows = arm.train[::20]
    for free, loaded in arm.pairs:
        before, _ = explained(arm, rows, arm.rows(free)[::10])
        after, _ = explained(arm, rows, arm.rows(loaded)[::10])
        assert after.mean() > 2 * before.mean()
        # The same motion, up to when it starts.
        ends = [
            np.sort(arm.log.q[arm.rows(part)], axis=0)[[50, -50]] for part in (free, loaded)
        ]
        assert_allclose(*ends, atol=0.05)
