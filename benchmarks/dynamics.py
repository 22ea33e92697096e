"""A robot that learns its own dynamics: latency, the thesis' protocol, real recordings."""

import os
import time
from typing import Any

import numpy as np
from scipy.linalg import blas
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDRegressor
from sklearn.multioutput import MultiOutputRegressor

from benchmarks.common import machine, show
from imparo.dynamics import (
    RECORDINGS,
    NonparametricDynamics,
    ParametricDynamics,
    SemiparametricDynamics,
    icub_arm,
    icub_circles,
    icub_plant,
    output_groups,
    plot_stream,
    prequential,
    recording,
    streamed,
    tune,
    windowed_rmse,
)
from imparo.engine import one_thread

GROUPS = output_groups(("Fx", "Fy", "Fz", "Tx", "Ty", "Tz"))
FEATURES = 500


def main() -> None:
    with one_thread():
        latency()
    protocol()
    if os.environ.get("IMPARO_DATA"):
        generalisation()
        payload()
    else:
        print("real robots: set IMPARO_DATA to the folder with the recordings to run this part")


# Latency.


def latency(n: int = 3000) -> None:
    """Learn and predict one sample, D = 1000 and T = 6, as a control loop does."""
    arm, rng = icub_arm(), np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, n, arm.n_joints))
    y = arm.inverse_dynamics(q, dq, ddq) + np.sin(q @ rng.normal(size=(4, 6)))
    wide = NonparametricDynamics(n_features=1000)
    models: dict[str, Any] = {
        "P": ParametricDynamics(arm),
        "NP": wide,
        "SP, residuals not revised": SemiparametricDynamics(arm, wide, revise=False),
        "SP, revised residuals": SemiparametricDynamics(arm, wide),
        "covariance RLS on RBFSampler (numpy)": _Covariance(3 * arm.n_joints, 6),
        "SGDRegressor on RBFSampler (scikit-learn)": _Gradient(3 * arm.n_joints),
    }
    rows = []
    for name, model in models.items():
        seconds = []
        for i in range(n):
            start = time.perf_counter()
            if i:
                model.predict(q[i], dq[i], ddq[i])
            model.learn(q[i], dq[i], ddq[i], y[i])
            seconds.append(time.perf_counter() - start)
        late = 1e3 * np.array(seconds[500:])
        cells = [np.median(late), np.quantile(late, 0.99), np.quantile(late, 0.999)]
        rows.append([name, *(f"{value:.3f}" for value in cells)])
    title = f"Predict and learn one sample, 1,000 features, 6 outputs, one core\n{machine()}"
    show(title, ["learner", "median (ms)", "99 %", "99.9 %"], rows)


class _Covariance:
    """Textbook recursive least squares: P ← P − gxᵀP, not in square-root form."""

    def __init__(self, d: int, T: int) -> None:
        self.map = RBFSampler(gamma=1 / (4 * d), n_components=1000, random_state=0)
        self.map.fit(np.zeros((1, d)))
        self.P = np.asfortranarray(10.0 * np.eye(1000))
        self.W = np.zeros((1000, T))

    def predict(self, *state: Any) -> Any:
        return self.map.transform(np.concatenate(state)[None]) @ self.W

    def learn(self, q: Any, dq: Any, ddq: Any, y: Any) -> None:
        x = self.map.transform(np.concatenate([q, dq, ddq])[None])[0]
        g = blas.dsymv(1.0, self.P, x)
        total = 1 + x @ g
        self.W += np.outer(g / total, y - x @ self.W)
        blas.dsyr(-1 / total, g, a=self.P, overwrite_a=1)


class _Gradient:
    def __init__(self, d: int) -> None:
        self.map = RBFSampler(gamma=1 / (4 * d), n_components=1000, random_state=0)
        self.map.fit(np.zeros((1, d)))
        self.model = MultiOutputRegressor(SGDRegressor())

    def predict(self, *state: Any) -> Any:
        return self.model.predict(self.map.transform(np.concatenate(state)[None]))

    def learn(self, q: Any, dq: Any, ddq: Any, y: Any) -> None:
        row = self.map.transform(np.concatenate([q, dq, ddq])[None])
        self.model.partial_fit(row, y[None])


# The thesis' protocol.


def protocol() -> None:
    """10,000 samples of XY, then ten pieces of 1,000 of XZ; and how it depends on the plant."""
    rows, ratios = [], []
    for label, seed, effects in (
        ("default", 0, {}),
        ("other seeds", 10, {}),
        ("no wander", 0, {"wander": 0.0}),
        ("no cable", 0, {"cables": ()}),
    ):
        errors, tunings = _thesis(seed, effects)
        for name, found in errors.items():
            cells = []
            for places in GROUPS.values():
                values = found[:, :, places].mean(axis=2)
                steady = values[:, 500:].mean(axis=1)
                cells += [f"{values[:, i].mean():.3g}" for i in (9, 99)]
                cells.append(f"{steady.mean():.3g} ± {steady.std():.1g}")
            rows.append([label, f"{name} {tunings.get(name, '')}", *cells])
        for group, places in GROUPS.items():
            P, NP, SP = (errors[k][:, :, places].mean(axis=(0, 2)) for k in ("P", "NP", "SP"))
            ratios.append([
                label, group, f"{SP[9] / NP[9]:.2f}", f"{(SP / NP)[10:].max():.3f}",
                f"{P[500:].mean() / SP[500:].mean():.1f}",
            ])  # fmt: skip
    columns = ["plant", "learner (σ, λ)"]
    columns += [
        f"{when} ({unit})" for unit in ("N", "Nm") for when in ("1 s", "10 s", "50 s on")
    ]
    title = f"XY learned, XZ streamed: RMSE of 30 samples; noise 0.6 N, 0.06 Nm\n{machine()}"
    show(title, columns, rows)
    columns = ["plant", "outputs", "SP / NP, first second", "largest later", "P / SP, 50 s on"]
    show("The same as ratios", columns, ratios)


def _thesis(seed: int, effects: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    arm = icub_arm()
    plant, circles = icub_plant(arm, **effects), icub_circles(arm)
    xy = plant.simulate(circles.xy, seed=seed)
    xz = plant.simulate(circles.xz, seed=seed + 1)
    models = _learners(ParametricDynamics(arm), FEATURES)
    tunings = {}
    for name in ("NP", "SP"):
        tuned = tune(models[name], xy.X, xy.y)
        models[name] = tuned.model
        tunings[name] = "({:.2g}, {:.0e})".format(*tuned.best)
    models["SP, not revised"] = clone(models["SP"]).set_params(revise=False)
    for model in models.values():
        model.fit(xy.X, xy.y)
    return streamed(models, xz.X, xz.y, pieces=10), tunings


def _learners(parametric: Any, n_features: int) -> dict[str, Any]:
    rest = NonparametricDynamics(n_features=n_features)
    return {
        "P": parametric,
        "NP": rest,
        "SP": SemiparametricDynamics(parametric, rest),
    }


def figure() -> None:
    """Draw the errors along XZ as in the thesis: docs/dynamics.png."""
    errors, _ = _thesis(0, {})
    errors.pop("SP, not revised")
    floor = {"force (N)": 0.6, "torque (Nm)": 0.06}
    title = "iCub's right arm in MuJoCo: XY learned, then XZ, ten pieces"
    plot_stream(errors, GROUPS, 0.1, title=title, floor=floor).savefig(
        "docs/dynamics.png", dpi=110
    )


# Real robots.


def generalisation() -> None:
    """Learn one part of a recording, predict another, frozen."""
    rows = []
    for name in RECORDINGS:
        found = recording(name)
        X, Y, test = found.log.X, found.log.y, found.test
        train = found.train[:: max(1, len(found.train) // 10_000)]
        size = Y[train].std(axis=0)
        models = _learners(ParametricDynamics(found.robot, **found.settings), FEATURES)
        errors, chosen = {}, {}
        for kind, model in models.items():
            if kind != "P":
                tuned = tune(model, X[train], Y[train])
                model, chosen[kind] = tuned.model, "({:.2g}, {:.0e})".format(*tuned.best)
            left = model.fit(X[train], Y[train]).predict(X[test]) - Y[test]
            errors[kind] = float(np.mean(np.sqrt(np.mean(left**2, axis=0)) / size))
        ratio = errors["SP"] / min(errors["P"], errors["NP"])
        rows.append([
            name, str(len(train)), str(len(test)), *(f"{e:.3f}" for e in errors.values()),
            f"{ratio:.3f}", f"{chosen['NP']}, {chosen['SP']}",
        ])  # fmt: skip
    title = f"Real robots, other recordings or later: mean RMSE / deviation\n{machine()}"
    columns = ["robot", "learned", "tested", "P", "NP", "SP", "SP / best", "(σ, λ) of NP, SP"]
    show(title, columns, rows)


def payload() -> None:
    """UR10e picks up a payload: unloaded recordings, then the same motion with a load."""
    found = recording("ur10e")
    X, Y, P = found.log.X, found.log.y, ParametricDynamics
    size, keywords = Y[found.train].std(axis=0), found.settings
    rest = NonparametricDynamics(n_features=300, sigma=12.0, penalty=1.0, forgetting=0.9998)
    rows = []
    for before, after in found.pairs:
        unloaded, loaded = found.rows(before), found.rows(after)
        earlier = np.setdiff1d(found.train, unloaded)[-8000:]
        rate = 1 / float(np.median(np.diff(found.log.t[unloaded])))
        window = round(5 * rate)
        for name, model in (
            ("P", P(found.robot, **keywords)),
            ("P, γ = 0.99853 (half in 5 s)", P(found.robot, forgetting=0.99853, **keywords)),
            (
                "SP, γ = 0.99853 and 0.9998",
                SemiparametricDynamics(
                    P(found.robot, forgetting=0.99853, **keywords), clone(rest)
                ),
            ),
        ):
            model.fit(X[earlier], Y[earlier])
            usual = (prequential(model, X[unloaded], Y[unloaded]) - Y[unloaded]) / size
            later = (prequential(model, X[loaded], Y[loaded]) - Y[loaded]) / size
            pre = float(np.sqrt(np.mean(usual**2)))
            moving = np.sqrt(np.mean(windowed_rmse(later, window) ** 2, axis=1))
            back = np.flatnonzero(moving[window - 1 :] <= pre)
            when = f"{(back[0] + window) / rate:.1f} s" if len(back) else "never"
            cells = [moving[window - 1], moving[min(6 * window, len(moving)) - 1], moving[-1]]
            rows.append([
                before.removeprefix("ur-"), name, f"{pre:.3f}",
                *(f"{value:.3f}" for value in cells), when,
            ])  # fmt: skip
    title = f"UR10e picks up a payload: RMSE / deviation in 5 s, before learning\n{machine()}"
    columns = ["recording", "learner", "unloaded", "0-5 s", "25-30 s", "last 5 s", "back after"]
    show(title, columns, rows)
