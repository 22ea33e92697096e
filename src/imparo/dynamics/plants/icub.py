"""The right arm of the iCub as chapter 8 of the thesis uses it: robot, circles, plant."""

from typing import Any, NamedTuple

from imparo.dynamics.plants.mujoco_model import Cable
from imparo.dynamics.plants.mujoco_plant import MujocoPlant
from imparo.dynamics.plants.trajectories import Trajectory, circle
from imparo.dynamics.robot import Robot

JOINTS = ("r_shoulder_pitch", "r_shoulder_roll", "r_shoulder_yaw", "r_elbow")
SENSOR = "r_arm_ft_sensor"
HAND = "r_hand_dh_frame"
# With the torso at 0 no circle of 10 cm in XZ is within the limits of the four joints.
TORSO = {"torso_pitch": 0.6, "torso_roll": 0.3, "torso_yaw": -0.8}
# Centre (m) and joint positions near it (rad), found with feasible_centre.
XY = (-0.18, 0.01, -0.23), (-0.22, 0.75, 0.85, 0.89)
XZ = (-0.27, -0.24, 0.03), (-1.18, 0.47, 0.80, 1.46)


class Circles(NamedTuple):
    """The two paths of the thesis.

    Attributes
    ----------
    xy : Trajectory
        In the transverse plane, to train on.
    xz : Trajectory
        In the sagittal plane, to test on.
    """

    xy: Trajectory
    xz: Trajectory


def icub_arm(*, sign: int = 1) -> Robot:
    """Return the iCub's right arm: three shoulder joints, the elbow, and the sensor in between.

    The model is iCubGazeboV2_5 of the package icub-models (``pip install imparo[robot]``). The
    torso leans forwards by 0.6 rad, to the side by 0.3, and turns by −0.8: circles of 10 cm in
    XY and in XZ then fit into the limits of the four joints, which they do not at 0.

    Parameters
    ----------
    sign : {1, -1}, default 1
        See :class:`Robot`; −1 is that of the real sensor.

    Examples
    --------
    >>> from imparo.dynamics.plants.icub import icub_arm
    >>> icub_arm().output_names  # doctest: +SKIP
    ('Fx', 'Fy', 'Fz', 'Tx', 'Ty', 'Tz')
    """
    return Robot("iCubGazeboV2_5", joints=JOINTS, locked=TORSO, sensor=SENSOR, sign=sign)


def icub_circles(
    robot: Robot | None = None,
    *,
    radius: float = 0.1,
    speed: float = 0.6,
    rate: float = 10.0,
    n_samples: int = 10_000,
) -> Circles:
    """Return the circles of the thesis: 10 cm at 0.6 m/s, 10,000 samples at 10 Hz each.

    In the root link's frame (x backwards, y to the robot's right, z up) they are about
    (−0.18, 0.01, −0.23) in XY and (−0.27, −0.24, 0.03) in XZ, because no centre does for both.
    Joints keep about a fifth of half their ranges from the limits and stay below 2.7 rad/s.

    Parameters
    ----------
    robot : Robot, optional
        :func:`icub_arm` if None.
    radius : float, default 0.1
        Metres.
    speed : float, default 0.6
        Metres a second.
    rate : float, default 10
        Samples a second.
    n_samples : int, default 10 000
        Of each circle.

    Examples
    --------
    >>> from imparo.dynamics.plants.icub import icub_circles
    >>> train, test = icub_circles(n_samples=1000)  # doctest: +SKIP
    """
    arm = icub_arm() if robot is None else robot
    options: dict[str, Any] = {"radius": radius, "speed": speed, "rate": rate}
    options["duration"] = n_samples / rate
    paths = (
        circle(arm, HAND, centre=centre, start=start, plane=plane, **options)
        for plane, (centre, start) in (("xy", XY), ("xz", XZ))
    )
    return Circles(*paths)


def icub_cables() -> tuple[Cable, ...]:
    """Return a cable from the chest to the hand, across the sensor.

    It is slack up to 26 cm and pulls with up to some 15 N beyond, in part of each circle.

    Examples
    --------
    >>> from imparo.dynamics.plants.icub import icub_cables
    >>> [cable.distal for cable in icub_cables()]
    ['r_hand']
    """
    return (
        Cable(
            proximal="chest",
            proximal_point=(-0.05, 0.0, 0.0),
            distal="r_hand",
            distal_point=(0.0, 0.0, 0.0),
            slack=0.26,
            stiffness=200.0,
            damping=1.0,
            hardening=2000.0,
        ),
    )


def icub_plant(robot: Robot | None = None, **effects: Any) -> MujocoPlant:
    """Return the arm in MuJoCo, with effects of about the size that the thesis met.

    Rigid bodies and an offset leave about 3 N and 0.4 Nm on the circle in XZ after learning
    both, the sensor's noise is 0.6 N and 0.06 Nm. The thesis reports 2 to 3 N, 0.5 to 0.7 Nm
    and a floor of about 1 N, 0.1 Nm.

    Parameters
    ----------
    robot : Robot, optional
        :func:`icub_arm` if None.
    **effects
        Of :class:`MujocoPlant`, in place of: :func:`icub_cables`; an offset of
        (3, −2, 4) N, (0.2, −0.1, 0.1) Nm; drift of 0.2 N, 0.02 Nm; noise of 0.6 N, 0.06 Nm;
        velocities filtered at 10 Hz; joints that stray by 0.04 rad.

    Notes
    -----
    The size of the cable was chosen for what rigid bodies leave. How far a semiparametric
    learner is ahead depends on it, and above all on ``wander``: on a path that repeats exactly
    (0) one circle in XY says little of the inertial parameters, errors of the parametric part
    are large where XZ begins, and a nonparametric learner has seen all there is after one
    revolution.

    Examples
    --------
    >>> from imparo.dynamics.plants.icub import icub_circles, icub_plant
    >>> log = icub_plant().simulate(icub_circles().xz)  # doctest: +SKIP
    """
    arm = icub_arm() if robot is None else robot
    usual: dict[str, Any] = {
        "cables": icub_cables(),
        "offset": (3.0, -2.0, 4.0, 0.2, -0.1, 0.1),
        "drift": (0.2, 0.2, 0.2, 0.02, 0.02, 0.02),
        "noise": (0.6, 0.6, 0.6, 0.06, 0.06, 0.06),
        "velocity_cutoff": 10.0,
        "wander": 0.04,
    }
    return MujocoPlant(arm, **(usual | effects))
