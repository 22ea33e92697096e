"""A robot in MuJoCo: it follows a path, and its sensor feels more than rigid bodies."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from imparo.dynamics.logs.log import Log
from imparo.dynamics.plants.effects import (
    Payload,
    SensorEffects,
    Wander,
    check_cutoff,
    check_path,
    lag_notes,
    lagged,
)
from imparo.dynamics.plants.mujoco_model import Built, Cable, build
from imparo.dynamics.plants.trajectories import Trajectory
from imparo.dynamics.robot import Robot
from imparo.engine import Array
from imparo.progress import track

# Of the errors of position (1/s²) and velocity (1/s); critically damped, 20 rad/s.
_STIFF, _DAMPED = 400.0, 40.0
# A robot farther (rad or m) from its path than this was not simulated well.
_LOST = 0.05


class _Run(NamedTuple):
    """What happened: at the samples, and the velocities at all steps that end with them."""

    q: Array
    dq: Array
    ddq: Array
    y: Array
    velocities: Array
    skipped: int  # steps before the first sample


class MujocoPlant:
    """A simulated robot that follows paths, with sensor, cables, payloads and imperfect logs.

    Forward dynamics in MuJoCo (3.15 or newer, ``pip install imparo[sim]``), under computed
    torques M(q) a + h(q, dq) − cables, a = ddq* + 400 (q* − q) + 40 (dq* − dq): cables and
    payloads change what is measured, not where the robot goes. With all effects off ("rigid
    limit") y equals ``robot.inverse_dynamics`` at the log's q, dq, ddq to rounding.

    Cost: 20 to 50 µs a time step, 10 to 26 s for 1,000 s of motion at 2 ms.

    Parameters
    ----------
    robot : Robot
        With a sensor y is the wrench there, otherwise y are the actuators' torques; in the
        robot's own sign.
    cables : sequence of Cable, default none
    payloads : sequence of Payload, default none
        Masses that links carry, each for a while.
    offset : float or array of shape (T,), default 0
        Added to y.
    drift : float or array of shape (T,), default 0
        Deviation that a random walk added to y reaches after 1,000 s.
    noise : float or array of shape (T,), default 0
        Deviation of white noise on y.
    wander : float, default 0
        Deviation (rad) by which each joint strays from its path, slowly and at random: paths
        of real controllers never repeat. See :class:`~imparo.dynamics.plants.effects.Wander`.
    velocity_cutoff : float, optional
        Logged velocities pass a first-order low-pass of this frequency (Hz) at every time
        step, and logged accelerations are their backward differences: both are late. None
        logs true ones.
    timestep : float, default 0.002
        Seconds; lowered to fit a whole number of times into the time between samples.
    settle : float, default 1
        Seconds of motion before the log begins, for filters to settle.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics import Robot
    >>> from imparo.dynamics.plants.mujoco_plant import MujocoPlant
    >>> from imparo.dynamics.plants.trajectories import multisine
    >>> urdf = '''<robot name="pendulum"><link name="base"/><link name="bob"><inertial>
    ...     <origin xyz="0 0 -0.5"/><mass value="2"/>
    ...     <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    ...   <joint name="hinge" type="continuous"><parent link="base"/><child link="bob"/>
    ...     <axis xyz="0 1 0"/></joint></robot>'''
    >>> pendulum = Robot(urdf)
    >>> log = MujocoPlant(pendulum).simulate(multisine(pendulum, duration=1, rate=50))
    >>> rigid = pendulum.inverse_dynamics(log.q, log.dq, log.ddq)
    >>> bool(abs(log.y - rigid).max() < 1e-9)
    True
    """

    def __init__(
        self,
        robot: Robot,
        *,
        cables: Sequence[Cable] = (),
        payloads: Sequence[Payload] = (),
        offset: Any = None,
        drift: Any = None,
        noise: Any = None,
        wander: float = 0.0,
        velocity_cutoff: float | None = None,
        timestep: float = 0.002,
        settle: float = 1.0,
    ) -> None:
        check_cutoff(velocity_cutoff)
        numbers = (
            ("timestep", timestep, 1e-6),
            ("settle", settle, 0.0),
            ("wander", wander, 0.0),
        )
        for name, value, least in numbers:
            if not (math.isfinite(value) and value >= least):
                raise ValueError(
                    f"{name}={value!r} must be a finite number, at least {least:g}"
                )
        self.robot = robot
        self.cables, self.payloads = tuple(cables), tuple(payloads)
        self.sensor_effects = SensorEffects.of(robot.n_outputs, offset, drift, noise)
        self.wander, self.velocity_cutoff = float(wander), velocity_cutoff
        self.timestep, self.settle = float(timestep), float(settle)

    def simulate(
        self,
        path: Trajectory,
        *,
        seed: int = 0,
        progress: bool | Callable[[int, int, str], Any] = False,
    ) -> Log:
        """Return the log of the robot as it follows a path.

        Parameters
        ----------
        path : Trajectory
            Of the robot's joints.
        seed : int, default 0
            Of wander, drift and noise.
        progress : bool or callable, default False
            True draws a bar; see :func:`imparo.progress.track`.
        """
        return self.simulate_with_truth(path, seed=seed, progress=progress)[0]

    def simulate_with_truth(
        self,
        path: Trajectory,
        *,
        seed: int = 0,
        progress: bool | Callable[[int, int, str], Any] = False,
    ) -> tuple[Log, Log]:
        """Return the log, and one of the true velocities, accelerations and forces.

        The true y has no offset, drift and noise; cables and payloads are in it.

        Parameters
        ----------
        path : Trajectory
        seed : int, default 0
        progress : bool or callable, default False

        Returns
        -------
        measured, truth : Log
        """
        check_path(self.robot.joints, path)
        every = max(1, math.ceil(1 / (path.rate * self.timestep) - 1e-9))
        step = 1 / (path.rate * every)
        built = build(self.robot, cables=self.cables, payloads=self.payloads, timestep=step)
        run = self._run(built, path, every, step, seed, progress)
        dq, ddq = run.dq, run.ddq
        if self.velocity_cutoff is not None:
            smooth, rates = lagged(run.velocities, step, self.velocity_cutoff)
            dq, ddq = smooth[run.skipped :: every], rates[run.skipped :: every]
        rng = np.random.default_rng(seed)
        y = self.sensor_effects.applied(run.y, path.rate, rng)
        names = {"joints": self.robot.joints, "outputs": self.robot.output_names}
        notes = {**path.notes, **self._notes(step), "seed": str(seed)}
        measured = {**notes, **lag_notes(step, self.velocity_cutoff)}
        true = {**notes, **lag_notes(step, None), "y": "without offset, drift and noise"}
        return (
            Log(path.t, run.q, dq, ddq, y, notes=measured, **names),
            Log(path.t, run.q, run.dq, run.ddq, run.y, notes=true, **names),
        )

    def _run(
        self,
        built: Built,
        path: Trajectory,
        every: int,
        step: float,
        seed: int,
        progress: Any,
    ) -> _Run:
        mujoco, model, order, _ = built
        data = mujoco.MjData(model)
        back = np.argsort(order)  # places of MuJoCo's joints among the robot's
        skipped = math.ceil(self.settle / step)
        n, J = len(path), self.robot.n_joints
        q_log, dq_log, ddq_log = np.empty((3, n, J))
        y = np.empty((n, self.robot.n_outputs))
        velocities = np.empty((skipped + (n - 1) * every + 1, J))
        torque, wanted = np.zeros(J), np.zeros(J)
        masses = self._carry(built, -math.inf, ())
        strays = Wander(self.wander, J, seed)
        done = 0
        for sample in track(range(n), n, "simulated samples", progress):
            steps = np.arange(done, skipped + sample * every + 1) - skipped
            parts = path.at(steps * step)
            if self.wander:
                more = strays.at(steps * step)
                parts = parts[0] + more[0], parts[1] + more[1], parts[2] + more[2]
            q, dq, ddq = (part[:, back] for part in parts)
            if done == 0:
                data.qpos[:], data.qvel[:] = q[0], dq[0]
            for k in range(len(steps)):
                if self.payloads:
                    masses = self._carry(built, steps[k] * step, masses)
                # Not mj_step: torques depend on the positions that its first half computes.
                mujoco.mj_step1(model, data)
                wanted[:] = ddq[k] + _STIFF * (q[k] - data.qpos) + _DAMPED * (dq[k] - data.qvel)
                mujoco.mj_mulM(model, data, torque, wanted)
                data.qfrc_applied[:] = torque + data.qfrc_bias - data.qfrc_passive
                velocities[done + k] = data.qvel
                if k == len(steps) - 1:
                    break
                mujoco.mj_step2(model, data)
            # Sensors lag a step behind until accelerations are those of this very state.
            mujoco.mj_forward(model, data)
            q_log[sample], dq_log[sample] = data.qpos[order], data.qvel[order]
            ddq_log[sample] = data.qacc[order]
            y[sample] = data.sensordata if self.robot.sensor else data.qfrc_applied[order]
            self._check(q_log[sample], q[-1][order], path.t[sample])
            mujoco.mj_step2(model, data)
            done += len(steps)
        y *= self.robot.sign
        return _Run(q_log, dq_log, ddq_log, y, velocities[:, order], skipped)

    def _carry(self, built: Built, t: float, before: tuple[bool, ...]) -> tuple[bool, ...]:
        """Give each payload its mass while it is carried; return which are."""
        now = tuple(payload.carried(t) for payload in self.payloads)
        if now != before:
            for body, payload, carried in zip(built.payloads, self.payloads, now, strict=True):
                built.model.body_mass[body] = payload.mass if carried else 0.0
            built.mujoco.mj_setConst(built.model, built.mujoco.MjData(built.model))
        return now

    def _check(self, q: Array, wanted: Array, t: float) -> None:
        away = np.abs(q - wanted)
        if not away.max() <= _LOST:
            j = int(away.argmax())
            raise ValueError(
                f"the simulation lost its path at {t:.3g} s: {self.robot.joints[j]} is "
                f"{away[j]:.3g} rad from it; give a shorter timestep or a slower path"
            )
        low, high = self.robot.position_limits.T
        beyond = np.maximum(low - q, q - high)
        if beyond.max() > 0:
            j = int(beyond.argmax())
            raise ValueError(
                f"at {t:.3g} s {self.robot.joints[j]} is {beyond[j]:.3g} rad beyond its "
                "limits; lower wander, or move the path away from them"
            )

    def _notes(self, step: float) -> dict[str, str]:
        effects = self.sensor_effects
        return {
            "plant": f"MuJoCo, time step {1000 * step:g} ms",
            "cables": str(len(self.cables)),
            "wander": f"{self.wander:g}",
            "payloads": "; ".join(
                f"{one.mass:g} kg at {one.link} from {one.start:g} to {one.end:g} s"
                for one in self.payloads
            ),
            "offset": str(effects.offset.tolist()),
            "drift": str(effects.drift.tolist()),
            "noise": str(effects.noise.tolist()),
        }
