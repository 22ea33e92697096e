"""Recordings of real robots, read from a folder, each ready to learn from.

Nothing is downloaded: the folder with the archives is named by the caller or by the environment
variable ``IMPARO_DATA``.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from imparo.dynamics.geared_robot import GearedRobot
from imparo.dynamics.logs.checks import listed
from imparo.dynamics.logs.log import Log, concatenate
from imparo.dynamics.robot import Robot
from imparo.engine import Array

_FRICTION = ("offset", "viscous", "coulomb")


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """A recording of a real robot, its model, and how to split it.

    Attributes
    ----------
    name : str
    robot : Robot
        Its outputs are the columns of ``log.y``.
    log : Log
        SI units; where the unit of y is another, ``log.notes["y"]`` says so.
    parts : dict of str to slice
        Rows of single recordings, or of stretches of time, by name.
    train, test : arrays of int
        Rows to learn from, and rows to judge by: other recordings, or a stretch of time that
        comes after a gap.
    extras : tuple of str
        Columns beside those of rigid bodies that this robot needs.
    pairs : tuple of pairs of str
        Parts with the same motion before and after a change: without and with a payload.
    text : str
        What was done to the published numbers.
    """

    name: str
    robot: Robot
    log: Log
    parts: dict[str, slice]
    train: Array
    test: Array
    extras: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    text: str

    def __repr__(self) -> str:
        return (
            f"Recording {self.name}: {len(self.log)} samples, {len(self.train)} to learn from, "
            f"{len(self.test)} to test; outputs {', '.join(self.log.outputs)}"
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Keywords for :class:`~imparo.dynamics.ParametricDynamics`, beside the robot.

        ``extras``, and as ``output_scale`` the standard deviations of the outputs in the rows
        of ``train``: without it, large torques at the base drown those at the wrist.
        """
        return {"extras": self.extras, "output_scale": self.log.y[self.train].std(axis=0)}

    def rows(self, *names: str) -> Array:
        """Return the rows of parts, in the order of their names.

        Parameters
        ----------
        *names : str
            Keys of ``parts``.
        """
        for name in names:
            if name not in self.parts:
                raise ValueError(
                    f"the recording {self.name} has no part {name!r}; its parts are "
                    f"{', '.join(self.parts)}"
                )
        numbers = np.arange(len(self.log))
        return np.concatenate([numbers[:0], *(numbers[self.parts[name]] for name in names)])


def recording(name: str, folder: str | os.PathLike[str] | None = None) -> Recording:
    """Return a recording of a real robot.

    =====  ====================================================  =======  =========
    name   robot and motion                                      samples  outputs
    =====  ====================================================  =======  =========
    ur10e  UR10e, 39 recordings with and without payload, 94 Hz  120,000  6 torques
    panda  Franka Panda, one motion of 12.9 s, repeated, 100 Hz  2,100    7 torques
    tx40   Stäubli TX40, 7 s of fast motion, 250 Hz              1,800    6 torques
    tiago  TIAGo, four joints of the arm, 62 s, 20 Hz            1,200    4 torques
    icub   iCub, right arm, single states in no order            1,405    1 wrench
    =====  ====================================================  =======  =========

    Velocities and accelerations are derived over a window about their sample and so are known
    half a window after it; ``log.notes`` says how late. Takes up to 2 s.

    Parameters
    ----------
    name : str
        One of :data:`RECORDINGS`.
    folder : path-like, optional
        Where the archives are; what the environment variable ``IMPARO_DATA`` says if None.

    Returns
    -------
    Recording

    Examples
    --------
    >>> from imparo.dynamics import ParametricDynamics
    >>> from imparo.dynamics.recordings import RECORDINGS, recording
    >>> RECORDINGS
    ('icub', 'panda', 'tiago', 'tx40', 'ur10e')
    >>> arm = recording("panda", "/data")  # doctest: +SKIP
    >>> model = ParametricDynamics(arm.robot, **arm.settings)  # doctest: +SKIP
    >>> model.fit(arm.log.X[arm.train], arm.log.y[arm.train])  # doctest: +SKIP
    """
    if name not in _READERS:
        raise ValueError(f"there is no recording {name!r}; those known are {listed(_READERS)}")
    if folder is None:
        folder = os.environ.get("IMPARO_DATA")
        if not folder:
            raise FileNotFoundError(
                f"the recording {name} is read from a folder; name it as the second argument "
                "or in the environment variable IMPARO_DATA"
            )
    return _READERS[name](Path(folder))


# One reader for each robot.


def _ur10e(folder: Path) -> Recording:
    keys = ("t", "q", "dq", "current", "traj", "traj_names")
    raw = _archive(folder, "ur10e_dynamics.npz", keys)
    joints = [f"{name}_joint" for name in ("shoulder_pan", "shoulder_lift", "elbow")]
    joints += [f"wrist_{i}_joint" for i in (1, 2, 3)]
    robot = _model(folder, "model_ur10e.npz", joints=joints)
    y = raw["current"] * _UR10E_CONSTANTS
    logs, parts, end = [], {}, 0
    for i, path in enumerate(raw["traj_names"]):
        rows, start = np.flatnonzero(raw["traj"] == i), end
        for piece in np.split(rows, 1 + np.flatnonzero(np.diff(raw["t"][rows]) > 0.1)):
            if len(piece) < 11:
                continue
            t, q, dq = (raw[key][piece] for key in ("t", "q", "dq"))
            log = Log.from_signals(t, q, dq, y=y[piece], joints=joints, window=11, lag=5)
            logs.append(log)
            end += len(log)
        parts[Path(str(path)).stem] = slice(start, end)
    notes = {
        "t": "s; recordings follow one another as if there were no time between them",
        "ddq": logs[0].notes["ddq"] + " (53 ms)",
        "y": "Nm: measured motor currents times torque constants",
    }
    whole = replace(concatenate(logs), notes=notes)
    return _recording(
        "ur10e", robot, whole, parts, _UR10E_TRAIN, _UR10E_TEST, (*_FRICTION, "rotor"),
        "Torque constants are the ratios of desired torque to desired current of joints that "
        "stand still. Accelerations are slopes of measured velocities over 11 samples. The "
        "recordings to learn from and to test have no payload and are of different days.",
        pairs=_UR10E_PAIRS,
    )  # fmt: skip


# Nm/A. Desired torque over desired current, in recordings where a joint stands still: constant
# to 0.1 % (joints 1 to 5). When it moves the controller adds friction to the current. The last
# joint carries no weight at rest; its motor is of the same size as those of the other wrists.
_UR10E_CONSTANTS = np.array([11.976, 11.976, 9.8386, 10.763, 10.763, 10.763])
_UR10E_TRAIN = (
    "ur-19_12_23_free", "ur-20_01_31-unload", "ur-20_02_05-20sec_12harm",
    "ur-20_02_05-20sec_8harm", "ur-20_02_06-20sec_10harm", "ur-20_02_06-20sec_5harm",
    "ur-20_02_10-20sec_7harm", "ur-20_02_10-30sec_12harm", "ur-20_02_12-40sec_12harm",
    "ur-20_02_12-50sec_12harm",
)  # fmt: skip
_UR10E_TEST = ("ur-20_02_19_14harm50sec", "ur-20_02_19_15harm50sec")
_UR10E_PAIRS = (
    ("ur-20_02_19_14harm50sec", "ur-20_02_19_14harm50secLoad"),
    ("ur-20_02_19_15harm50sec", "ur-20_02_19_15harm50secLoad"),
    ("ur-20_01_31-unload", "ur-20_01_31-load"),
)


def _panda(folder: Path) -> Recording:
    raw = _archive(folder, "panda_dynamics.npz", ("t", "q", "dq", "tau"))
    robot = Robot.from_dh(_PANDA_DH)
    log = Log.from_signals(
        raw["t"], raw["q"], raw["dq"], y=raw["tau"], joints=robot.joints, window=31, lag=15,
        rate=100, notes={"y": "Nm: the robot's own torque sensors"},
    )  # fmt: skip
    parts = _stretches(log, {"train": (0, 9.0), "test": (9.3, 12.9), "repeat": (12.9, 99)})
    return _recording(
        "panda", robot, log, parts, ("train",), ("test",), (*_FRICTION, "rotor"),
        "Accelerations are slopes of measured velocities over 31 samples at 1 kHz; then ten "
        "samples at a time were averaged. The motion repeats itself after 12.9 s: the rows to "
        "test are of the first round, the second one is the part 'repeat'. The robot's "
        "published geometry is used; there are no inertias to begin with.",
    )  # fmt: skip


_PANDA_DH = (  # a, alpha, d, theta after Craig, as published by the manufacturer
    (0.0, 0.0, 0.333, 0.0),
    (0.0, -np.pi / 2, 0.0, 0.0),
    (0.0, np.pi / 2, 0.316, 0.0),
    (0.0825, np.pi / 2, 0.0, 0.0),
    (-0.0825, -np.pi / 2, 0.384, 0.0),
    (0.0, np.pi / 2, 0.0, 0.0),
    (0.088, np.pi / 2, 0.0, 0.0),
)


def _tx40(folder: Path) -> Recording:
    raw = _archive(folder, "tx40_dynamics.npz", ("motor_pos", "motor_current"))
    coupling = np.eye(6)
    coupling[5, 4] = 1.0  # the motor of joint 6 turns with joint 5, too
    path = _existing(folder, "model_tx40.npz")
    robot = GearedRobot.from_arrays(path, coupling=coupling)
    moving = slice(0, int(7.3 * _TX40_RATE))  # after that the robot stands still
    motor, current = raw["motor_pos"][moving], raw["motor_current"][moving]
    log = Log.from_signals(
        np.arange(len(motor)) / _TX40_RATE, motor / _TX40_GEARS, y=current * _TX40_GEARS,
        joints=robot.joints, window=101, order=3, lag=50, rate=250,
        notes={
            "q": "motor positions over gear ratios: in column 6 the sum of joints 5 and 6",
            "y": "motor currents in A times gear ratios: Nm up to one constant",
        },
    )  # fmt: skip
    parts = _stretches(log, {"train": (0, 5.1), "test": (5.3, 99)})
    return _recording(
        "tx40", robot, log, parts, ("train",), ("test",), (*_FRICTION, "rotor"),
        "Coordinates are those of the motors behind their gears, since friction of motor 6 "
        "depends on the sum of the velocities of joints 5 and 6. Velocities and accelerations "
        "are those of cubics over 101 samples at 5 kHz; then 20 samples at a time were "
        "averaged. The time at rest after 7.3 s was cut.",
    )  # fmt: skip


_TX40_GEARS = np.array([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
_TX40_RATE = 5000.0


def _tiago(folder: Path) -> Recording:
    raw = _archive(folder, "tiago_dynamics.npz", ("t", "q", "effort"))
    moving = (raw["t"] > 7.0) & (raw["t"] < 69.5)
    t, q, effort = (raw[key][moving] for key in ("t", "q", "effort"))
    joints = [f"arm_{i}_joint" for i in (1, 2, 3, 4)]
    robot = _model(folder, "model_tiago.npz", joints=joints, locked=_TIAGO_LOCKED)
    log = Log.from_signals(
        t, q[:, 1:5], y=effort[:, 1:5] * _TIAGO_CONSTANTS, joints=joints,
        window=31, order=3, lag=15, rate=20,
        notes={"y": "Nm: motor currents times gear ratios and torque constants"},
    )  # fmt: skip
    parts = _stretches(log, {"train": (0, 43.0), "test": (44.0, 99)})
    return _recording(
        "tiago", robot, log, parts, ("train",), ("test",), (*_FRICTION, "rotor"),
        "The logged velocities lag by 0.2 s and were not used: velocities and accelerations "
        "are those of cubics over 31 positions at 100 Hz; then five samples at a time were "
        "averaged. The time at rest before 7 s and after 69.5 s was cut. Currents of the wrist "
        "hardly differ from 0 and the unit of the torso's is not known: both move, but are "
        "taken to be where they are on average.",
    )  # fmt: skip


# Nm/A: gear ratio 100 times the torque constants of the robot's own controller, 0.136 for arm_2
# and -0.087 for arm_3 and arm_4; arm_1 has the motor of arm_2.
_TIAGO_CONSTANTS = np.array([13.6, 13.6, -8.7, -8.7])
_TIAGO_LOCKED = {
    "torso_lift_joint": 0.23, "arm_5_joint": -0.59, "arm_6_joint": 0.13, "arm_7_joint": 0.05,
}  # fmt: skip


def _icub(folder: Path) -> Recording:
    raw = _archive(folder, "icub_arm_ft_small.npz", ("X", "Y"))
    joints = ("r_shoulder_pitch", "r_shoulder_roll", "r_shoulder_yaw", "r_elbow")
    robot = _model(folder, "model_icub.npz", joints=joints, sensor="r_arm_ft_sensor", sign=-1)
    q, dq, ddq = np.split(np.deg2rad(raw["X"]), 3, axis=1)
    notes = {"t": "number of the row: nothing is known of time", "y": "N and Nm, with offsets"}
    t = np.arange(float(len(q)))
    log = Log(t, q, dq, ddq, raw["Y"], joints, robot.output_names, notes)
    parts = {"train": slice(0, 1000), "test": slice(1000, len(t))}
    return _recording(
        "icub", robot, log, parts, ("train",), ("test",), ("offset",),
        "Degrees were turned into radians. Rows are in no order of time, so that neighbours in "
        "time may be on both sides of the split. Torso and wrist are taken to be at 0.",
    )  # fmt: skip


_READERS: dict[str, Callable[[Path], Recording]] = {
    "icub": _icub, "panda": _panda, "tiago": _tiago, "tx40": _tx40, "ur10e": _ur10e,
}  # fmt: skip
RECORDINGS = tuple(_READERS)


# Tools.


def _recording(
    name: str, robot: Robot, log: Log, parts: dict[str, slice], train: tuple[str, ...],
    test: tuple[str, ...], extras: tuple[str, ...], text: str,
    pairs: tuple[tuple[str, str], ...] = (),
) -> Recording:  # fmt: skip
    none = np.zeros(0, dtype=np.int64)
    found = Recording(name, robot, log, parts, none, none, extras, pairs, text)
    return replace(found, train=found.rows(*train), test=found.rows(*test))


def _archive(folder: Path, file: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return arrays of an archive, numbers in double precision."""
    path = _existing(folder, file)
    with np.load(path, allow_pickle=False) as archive:
        missing = [key for key in keys if key not in archive.files]
        if missing:
            raise ValueError(f"{path} has no array {missing[0]!r}; is it another file?")
        arrays = {key: archive[key] for key in keys}
    return {key: a.astype(float) if a.dtype.kind == "f" else a for key, a in arrays.items()}


def _model(folder: Path, file: str, **keywords: Any) -> Robot:
    return Robot.from_arrays(_existing(folder, file), **keywords)


def _existing(folder: Path, file: str) -> Path:
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder} with recordings of robots")
    if not (folder / file).is_file():
        raise FileNotFoundError(f"the folder {folder} has no file {file}, which is needed here")
    return folder / file


def _stretches(log: Log, seconds: Mapping[str, tuple[float, float]]) -> dict[str, slice]:
    """Return the rows of stretches of time, given from the start of the log."""
    past = log.t - log.t[0]
    ends = {name: np.searchsorted(past, pair) for name, pair in seconds.items()}
    return {name: slice(int(start), int(end)) for name, (start, end) in ends.items()}
