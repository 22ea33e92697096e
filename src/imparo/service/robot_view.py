"""A simulated arm whose inverse dynamics three learners learn side by side, for the page."""

import copy
import time
from collections import deque
from threading import Lock
from typing import Any

import numpy as np

from imparo.dynamics import (
    NonparametricDynamics,
    ParametricDynamics,
    SemiparametricDynamics,
    SerialArm,
)
from imparo.engine import Array
from imparo.service.robot_plant import (
    CIRCLES,
    PAYLOAD,
    RADIUS,
    RATE,
    SPEED,
    TRANSIT,
    ArmPlant,
)

WINDOW = 30  # samples that an error is taken over
LEARNERS = ("P", "NP", "SP")
FASTEST = 10
TRAINED = 1500  # samples of the circle in XY
NOISE = np.array([0.6, 0.6, 0.6, 0.06, 0.06, 0.06])
# Half-lives (s) of what the two parts have learned. A payload is a change of rigid bodies,
# which P may forget fast: it has 23 numbers to find. NP needs a longer memory for its 300.
RIGID_HALF_LIFE, REST_HALF_LIFE = 7.0, 40.0
N_FEATURES = 300
_STORY = (
    "A simulated arm of about the size of the iCub's, with a force/torque sensor behind its "
    f"shoulder. All three have learned {TRAINED:,} samples of a circle in XY "
    f"({RADIUS * 100:g} cm, {SPEED:g} m/s, {RATE} samples a second). Now the hand runs round "
    "another circle, and each sample is predicted before it is learned. P knows the arm's "
    "geometry and learns masses, inertias and the sensor's offset; NP knows nothing and "
    f"learns with {N_FEATURES} random features; SP lets P go first and learns what is left. "
    "What physics leaves out is a cable from chest to hand, whose strength we chose. Noise is "
    f"{NOISE[0]:g} N and {NOISE[-1]:g} Nm: no error can stay below. The payload is "
    f"{PAYLOAD:g} kg in the hand. To follow it all forget: P, and P within SP, half of what "
    f"they know in {RIGID_HALF_LIFE:g} s, NP and the rest of SP in {REST_HALF_LIFE:g} s. We "
    "chose both by hand, so that SP recovers in 10 to 20 s; without forgetting SP's error at "
    "steady state would be about a seventh lower. To NP, which cannot know that a payload is "
    "only a mass, all of it is new: it needs a minute or two."
)
_COMMANDS = ("payload", "path", "speed", "pause", "restart")


class ArmShow:
    """The arm on its circle, sample by sample, with P, NP and SP predicting and learning.

    All three have learned 1,500 samples of a circle in XY, and then are tested on each sample
    before they learn it. The result is the same for the same seed and commands, times of
    computing apart. A step takes some 3 ms, and no memory is added by any number of them.

    Parameters
    ----------
    seed : int, default 0

    Attributes
    ----------
    speed : float
        How many times faster than the arm's own time it is to be shown, 1 to 10.
    paused : bool

    Examples
    --------
    >>> from imparo.service.robot_view import ArmShow
    >>> show = ArmShow()
    >>> show.do({"do": "payload", "on": True})
    >>> frame = show.step()
    >>> frame["n"], frame["payload"], frame["path"], sorted(frame["force"])
    (1, True, 'xz', ['NP', 'P', 'SP'])
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.speed, self.paused = 1.0, False
        self._lock = Lock()
        self._plant = ArmPlant(seed)
        self._trained = _learners(self._plant.arm)
        times = np.arange(TRAINED) / RATE
        X = self._plant.motion(times, "xy", "xy", times)
        noise = np.random.default_rng([seed, 2]).normal(size=(TRAINED, len(NOISE)))
        Y = self._plant.wrench(X, loaded=False) + NOISE * noise
        for model in self._trained.values():
            model.fit(X, Y)
        self._restart()

    def _restart(self) -> None:
        self._models = copy.deepcopy(self._trained)
        self._rng = np.random.default_rng([self.seed, 3])
        self._n, self._payload = 0, False
        self._path = self._old = self._new = "xz"
        self._begun = -TRANSIT  # when the way to the circle was begun
        self._squares: dict[str, deque[Array]] = {
            name: deque(maxlen=WINDOW) for name in LEARNERS
        }

    def about(self) -> dict[str, Any]:
        """Return what is shown, and how it was made."""
        return {
            "joints": self._plant.arm.n_joints,
            "window": WINDOW,
            "rate": RATE,
            "learners": list(LEARNERS),
            "units": ["N", "Nm"],
            "payload": PAYLOAD,
            "circles": {
                plane: {"centre": list(centre), "radius": RADIUS}
                for plane, (centre, _) in CIRCLES.items()
            },
            "trained": _STORY,
        }

    def do(self, command: dict[str, Any]) -> None:
        """Obey a command.

        Parameters
        ----------
        command : dict
            {"do": "payload", "on": bool}, {"do": "path", "path": "xy" or "xz"},
            {"do": "speed", "factor": 1 to 10}, {"do": "pause", "on": bool} or
            {"do": "restart"}: from the trained state, the same samples as before.

        Raises
        ------
        ValueError
            If it is none of these, with the reason in words.
        """
        what = command.get("do") if isinstance(command, dict) else None
        if what not in _COMMANDS:
            raise ValueError(
                f'a command {{"do": ...}} must be one of {", ".join(_COMMANDS)}, not '
                f"{command!r:.60}"
            )
        with self._lock:
            if what == "restart":
                self._restart()
            elif what == "payload":
                self._payload = _switch(command)
            elif what == "pause":
                self.paused = _switch(command)
            elif what == "path":
                self._path = _plane(command)
            elif what == "speed":
                self.speed = _factor(command)

    def step(self) -> dict[str, Any]:
        """Move on by one sample; return what is to be shown of it."""
        with self._lock:
            return self._step()

    def _step(self) -> dict[str, Any]:
        t = self._n / RATE
        X = self._plant.motion(*self._way(t))
        noise = NOISE * self._rng.normal(size=len(NOISE))
        y = self._plant.wrench(X, self._payload) + noise
        milliseconds = {}
        for name, model in self._models.items():
            start = time.perf_counter()
            guess = model.predict(X)
            model.partial_fit(X, y)
            milliseconds[name] = round(1000 * (time.perf_counter() - start), 3)
            self._squares[name].append(np.square(guess - y)[0])
        self._n += 1
        errors = {
            name: np.sqrt(np.mean(squares, axis=0)) for name, squares in self._squares.items()
        }
        return {
            "t": round(t, 3),
            "n": self._n,
            "payload": self._payload,
            "path": self._path,
            "links": self._links(X[0]),
            "measured": y[0].round(4).tolist(),
            "milliseconds": milliseconds,
            "force": {name: round(float(e[:3].mean()), 4) for name, e in errors.items()},
            "torque": {name: round(float(e[3:].mean()), 5) for name, e in errors.items()},
        }

    def _way(self, t: float) -> tuple[Array, str, str, Array]:
        """Return arguments of the plant's motion; a new way begins when the last is done."""
        if t >= self._begun + TRANSIT:
            self._old = self._new
            if self._path != self._old:
                self._new, self._begun = self._path, t
        # What was trained on came before.
        times = np.array([TRAINED / RATE + t])
        return times, self._old, self._new, np.array([t - self._begun])

    def _links(self, x: Array) -> list[list[float]]:
        """Return chest, shoulder, elbow and hand."""
        arm = self._plant.arm
        q = x[: arm.n_joints]
        points = np.vstack([arm.frames(q)[0][[0, 2, 4]], arm.position(q, "tip")])
        rounded: list[list[float]] = points.round(5).tolist()
        return rounded


def _learners(arm: SerialArm) -> dict[str, Any]:
    """Return P, NP and SP, which is made of the same two."""
    rigid, rest = (2 ** (-1 / (RATE * half)) for half in (RIGID_HALF_LIFE, REST_HALF_LIFE))
    physics = ParametricDynamics(arm, forgetting=rigid)
    kernels = NonparametricDynamics(n_features=N_FEATURES, forgetting=rest)
    both = SemiparametricDynamics(copy.deepcopy(physics), copy.deepcopy(kernels))
    return {"P": physics, "NP": kernels, "SP": both}


def _switch(command: dict[str, Any]) -> bool:
    on = command.get("on")
    if not isinstance(on, bool):
        raise ValueError(f'"on" must be true or false, not {on!r:.60}')
    return on


def _plane(command: dict[str, Any]) -> str:
    plane = command.get("path")
    if not isinstance(plane, str) or plane not in CIRCLES:
        raise ValueError(f'"path" must be "xy" or "xz", not {plane!r:.60}')
    return plane


def _factor(command: dict[str, Any]) -> float:
    factor = command.get("factor")
    number = isinstance(factor, int | float) and not isinstance(factor, bool)
    if not number or not 1 <= factor <= FASTEST:  # type: ignore[operator]
        raise ValueError(f'"factor" must be a number from 1 to {FASTEST}, not {factor!r:.60}')
    return float(factor)  # type: ignore[arg-type]
