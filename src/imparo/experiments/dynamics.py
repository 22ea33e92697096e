"""Figure 8.4: the dynamics of an arm, by physics (P), kernels (NP) and both (SP)."""

from typing import Any

import numpy as np

from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.drawing import curves
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.results import Results
from imparo.experiments.shared.verdicts import Printed

_ARM = "iCub on two circles"
_ROBOTS = {"Panda": "panda", "TIAGo": "tiago", "iCub, single states": "icub", "UR10e": "ur10e"}
_LEARNERS = ("SP", "NP", "P")
_RATE, _WINDOW = 10, 30  # samples a second, samples of the sliding mean
_BECAUSE = "the arm is simulated, and the size of what physics does not know is its plant's"


def cases(quick: bool) -> list[Case]:
    """Return the thesis' protocol on a simulated arm, and recordings of real robots."""
    settings = {"features": 200 if quick else 500}
    sizes = {"train": 2000, "piece": 200, "pieces": 3} if quick else {
        "train": 10_000, "piece": 1000, "pieces": 10}  # fmt: skip
    robots = {"Panda": "panda"} if quick else _ROBOTS
    return [
        Case(_ARM, 1, settings | sizes),
        *(Case(name, 1, settings | {"recording": data}) for name, data in robots.items()),
    ]


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Learn XY and stream XZ; or learn a part of a recording and predict another."""
    if case.name == _ARM:
        return _circles(case.settings, data)
    return _recorded(case.settings, data)


def _circles(settings: dict[str, Any], data: Data) -> dict[str, Any]:
    from imparo.dynamics import (
        ParametricDynamics,
        icub_arm,
        icub_circles,
        icub_plant,
        output_groups,
        streamed,
    )

    data.instead(
        "10,000 + 10,000 samples of iCub's right arm, which were not published",
        "the same arm on the same circles in MuJoCo, with cables, noise and lagged velocities",
        "Recordings of real robots are learned from below.",
    )
    arm = icub_arm()
    plant, n = icub_plant(arm), settings["piece"] * settings["pieces"]
    xy = plant.simulate(icub_circles(arm, n_samples=settings["train"]).xy, seed=0)
    xz = plant.simulate(icub_circles(arm, n_samples=n).xz, seed=1)
    models = _tuned(ParametricDynamics(arm), settings["features"], xy.X, xy.y)
    for model in models.values():
        model.fit(xy.X, xy.y)
    found = streamed(models, xz.X, xz.y, pieces=settings["pieces"], window=_WINDOW)
    groups = output_groups(("Fx", "Fy", "Fz", "Tx", "Ty", "Tz"))
    return {
        f"{name} {group}": errors[:, :, places].mean(axis=2)
        for name, errors in found.items()
        for group, places in groups.items()
    }


def _recorded(settings: dict[str, Any], data: Data) -> dict[str, Any]:
    from imparo.dynamics import ParametricDynamics, recording

    found = recording(settings["recording"], data.folder)
    X, Y, test = found.log.X, found.log.y, found.test
    train = found.train[:: max(1, len(found.train) // 10_000)]
    physics = ParametricDynamics(found.robot, **found.settings)
    errors: dict[str, Any] = {"rows": len(train)}
    for name, model in _tuned(physics, settings["features"], X[train], Y[train]).items():
        left = model.fit(X[train], Y[train]).predict(X[test]) - Y[test]
        scale = Y[train].std(axis=0)
        errors[name] = float(np.mean(np.sqrt(np.mean(left**2, axis=0)) / scale))
    return errors


def _tuned(physics: Any, features: int, X: Any, Y: Any) -> dict[str, Any]:
    """Return the three learners, with widths and penalties chosen alike."""
    from imparo.dynamics import NonparametricDynamics, SemiparametricDynamics, tune

    kernels = NonparametricDynamics(n_features=features)
    both = SemiparametricDynamics(physics, kernels)
    return {"P": physics, "NP": tune(kernels, X, Y).model, "SP": tune(both, X, Y).model}


def tell(results: Results) -> Account:
    """Draw errors along XZ, and compare first seconds and steady states."""
    account = Account()
    if _ARM in results:
        for group, unit in (("force (N)", "N"), ("torque (Nm)", "Nm")):
            _along(account, results, group, unit)
    robots = [name for name in results if name != _ARM]
    if robots:
        _robots(account, results, robots)
    return account


def _along(account: Account, results: Results, group: str, unit: str) -> None:
    found = {name: results.values(_ARM, f"{name} {group}")[0] for name in _LEARNERS}
    mean = {name: errors.mean(axis=0) for name, errors in found.items()}
    pieces, n = found["SP"].shape
    steady = {name: errors[:, n // 2 :].mean(axis=1) for name, errors in found.items()}
    what = group.split()[0]
    printed = {"N": ("1", "1"), "Nm": ("0.1", "0.1")}[unit]
    for name, text in zip(("SP", "NP"), printed, strict=True):
        account.compare(
            f"{name}, {what} at steady state ({unit})", Printed(text),
            float(steady[name].mean()), float(steady[name].std()), pieces, substituted=True,
            digits=".3g",
        )  # fmt: skip
    first = {name: float(errors[_RATE - 1]) for name, errors in mean.items()}
    account.check(
        f"In the first second the {what} error of SP is considerably below that of NP",
        first["SP"] < 0.9 * first["NP"],
        f"{first['SP']:.2g} {unit} and {first['NP']:.2g} {unit} after one second",
        _BECAUSE,
    )
    level = {name: float(values.mean()) for name, values in steady.items()}
    account.check(
        f"At steady state SP and NP have about the same {what} error",
        abs(level["SP"] / level["NP"] - 1) < 0.15,
        f"{level['SP']:.3g} and {level['NP']:.3g} {unit}",
        _BECAUSE,
    )
    times = "2 to 3" if unit == "N" else "5 to 7"
    ratio = level["P"] / level["SP"]
    account.check(
        f"P has a larger {what} error at steady state ({times} times in the thesis)",
        ratio > 1.5,
        f"{ratio:.1f} times that of SP ({level['P']:.2g} {unit})",
        _BECAUSE,
    )
    seconds = (np.arange(n) + 1) / _RATE
    account.picture(
        f"RMSE of the predicted {what}",
        f"Mean and deviation over {pieces} pieces of the XZ circle, in a window of "
        f"{_WINDOW} samples, after learning the XY circle.",
        curves(
            [(name, seconds, mean[name], found[name].std(axis=0)) for name in _LEARNERS],
            "seconds", f"RMSE ({unit})", y_scale="log", colours=("blue", "red", "green"),
        ),
        f"{what.capitalize()} errors of SP, NP and P in time: SP starts lowest, NP joins it, P "
        "stays above.",
    )  # fmt: skip


def _robots(account: Account, results: Results, robots: list[str]) -> None:
    rows = []
    for name in robots:
        errors = {learner: float(results.mean(name, learner)) for learner in ("P", "NP", "SP")}
        rows.append([
            name, f"{results.mean(name, 'rows'):,.0f}",
            *(f"{value:.3f}" for value in errors.values()),
        ])  # fmt: skip
        best = min(errors["P"], errors["NP"])
        account.check(
            f"{name} (real): SP is as good as the better of P and NP",
            errors["SP"] <= 1.05 * best,
            f"SP {errors['SP']:.3f}, P {errors['P']:.3f}, NP {errors['NP']:.3f} of the "
            "deviation of the outputs",
        )
    account.table(
        "Real robots",
        "A part of a recording is learned, another predicted: mean RMSE in deviations.",
        ["robot", "rows learned", "P", "NP", "SP"],
        rows,
    )


EXPERIMENT = Experiment(
    name="dynamics",
    chapter=8,
    place="Figure 8.4",
    title="Incremental semiparametric inverse dynamics",
    finding="Where motion is new, physics makes the semiparametric learner (SP) good from the "
    "first seconds; later it is as good as kernels alone (NP), and both are far better than "
    "physics alone (P).",
    setting="Train on 10,000 samples of an XY circle (10 cm, 0.6 m/s, 10 Hz), then test and "
    "update on ten pieces of 1,000 samples of an XZ circle; RMSE in a window of 30 samples.",
    cases=cases,
    trial=trial,
    tell=tell,
    data=("icub-circles", "ur10e", "panda", "tiago", "icub-arm"),
    minutes=4,
)
