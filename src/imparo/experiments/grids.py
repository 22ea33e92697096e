"""Figure 4.1: validation errors over 20 × 20 grids of m and λ, and what section 4.2.4 says."""

from typing import Any

import numpy as np

from imparo import NystromRegressor
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data, Split
from imparo.experiments.shared.drawing import heat_map
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.results import Results
from imparo.experiments.shared.trials import some_rows
from imparo.experiments.shared.verdicts import Printed

# Width, least and largest λ, least and largest m, trials, and two points (m, λ) of the text
# with the thesis' test error.
_GRIDS: dict[str, dict[str, Any]] = {
    "pumadyn32nh": {
        "data": "pumadyn32nh", "sigma": 2.66, "penalties": [1e-7, 1.0], "sizes": [10, 1000],
        "trials": 10, "points": [[62, 1e-7], [1000, 1e-3]],
    },
    "breast cancer": {
        "data": "breast-cancer-thesis", "sigma": 0.9, "penalties": [1e-12, 1e-3],
        "sizes": [5, 300], "trials": 20, "points": [[67, 1e-12], [300, 4.28e-6]],
    },
    "cpuSmall": {
        "data": "cpu-small", "sigma": 0.1, "penalties": [1e-15, 1e-12], "sizes": [100, 5000],
        "trials": 5, "points": [[2679, 1e-15], [5000, 1e-12]],
    },
}  # fmt: skip
_PRINTED = {
    # In print 0.33, ten times the deviation of the target; see the note.
    "pumadyn32nh": (Printed("0.033"), Printed("0.033")),
    "breast cancer": (Printed("1.86"), Printed("1.24")),
    "cpuSmall": (Printed("13.3"), Printed("12.2")),
}
_UNITS = {"breast cancer": " (% wrong)"}
_BECAUSE = {
    "breast cancer": "the thesis' λ seems to be scaled otherwise: at three to nine times this "
    "λ our error is that of the thesis",
    "cpuSmall": "at σ = 0.1 and so small a λ many centers over-fit (exact KRLS has an error of "
    "38 at λ = 1e-12), and narrow Gaussians must represent the mean of the output, 84: with an "
    "intercept ours is 13.3; the thesis does not say what was done with the mean",
}


def cases(quick: bool) -> list[Case]:
    """Return a case for each data set."""
    found = []
    for name, grid in _GRIDS.items():
        settings = {key: value for key, value in grid.items() if key != "trials"}
        if quick and name == "cpuSmall":
            settings |= {"sizes": [100, 1000], "points": [[536, 1e-15], [1000, 1e-12]]}
        trials = min(2, grid["trials"]) if quick else grid["trials"]
        found.append(Case(name, trials, settings | {"rows": 3000 if quick else None}))
    return found


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Compute the grid of validation errors, and test errors at two points."""
    settings = case.settings
    split = some_rows(data.split(settings["data"]), settings["rows"], seed)
    (low, high), (least, most) = settings["penalties"], settings["sizes"]
    penalties = np.geomspace(low, high, 20)
    sizes = np.linspace(least, most, 20).round().astype(int)
    sizes = sizes[sizes <= 0.8 * len(split.y)]
    model = NystromRegressor(
        sigma=settings["sigma"], penalty=penalties, n_centers=sizes, solver="direct",
        random_state=seed,
    ).fit(split.X, split.y)  # fmt: skip
    path = model.path_
    errors = np.empty((len(penalties), len(sizes)))
    errors[np.argsort(-penalties)] = path.errors[np.argsort(-path.penalties)]
    return {
        "penalties": penalties,
        "sizes": sizes,
        "errors": errors,
        "tests": [
            _test(_point(split, case, m, penalty, seed), split, case)
            for m, penalty in settings["points"]
        ],
        "chosen": [model.n_centers_, model.penalty_, _test(model, split, case)],
    }


def _point(split: Split, case: Case, m: int, penalty: float, seed: int) -> NystromRegressor:
    """Return the model of one point of the grid, fitted to all rows."""
    return NystromRegressor(
        sigma=case.settings["sigma"], penalty=penalty, n_centers=min(m, len(split.y)),
        solver="direct", random_state=seed,
    ).fit(split.X, split.y)  # fmt: skip


def _test(model: NystromRegressor, split: Split, case: Case) -> float:
    """Return the test error of a model: per cent wrong of classes, else RMSE."""
    F = model.predict(split.X_test)
    if case.name == "breast cancer":
        return 100 * float(np.mean(np.sign(F) != split.y_test))
    return float(np.sqrt(np.mean((F - split.y_test) ** 2)))


def tell(results: Results) -> Account:
    """Draw the grids, and look for the valley along small m."""
    account, rows = Account(), []
    for name in results:
        first = results.trials[name][0]
        sizes, penalties = np.array(first["sizes"]), np.array(first["penalties"])
        errors = results.mean(name, "errors")
        tests, deviations = results.mean(name, "tests"), results.deviation(name, "tests")
        points = results.cases[name].settings["points"]
        for i, (m, penalty) in enumerate(points):
            if not results.quick or name != "cpuSmall":
                account.compare(
                    f"{name}, m = {m}, λ = {penalty:g}{_UNITS.get(name, '')}",
                    _PRINTED[name][i], float(tests[i]), float(deviations[i]),
                    len(results.trials[name]), _BECAUSE.get(name, ""),
                )  # fmt: skip
        least = np.sqrt(np.min(errors**2, axis=0))  # the best λ of every m
        enough = sizes[np.argmax(least <= 1.05 * least.min())]
        account.check(
            f"{name}: a small m is enough",
            enough <= 0.6 * sizes[-1],
            f"m = {enough} comes within 5 % of the least validation error of all m up to "
            f"{sizes[-1]}",
            "the least error is at the largest m, as the thesis' own test errors also say",
        )
        worse = [errors[i, -1] / errors[i].min() for i in range(len(penalties))]
        account.check(
            f"{name}: at some λ, more centers are worse",
            max(worse) > 1.0 + 1e-6,
            f"at λ = {penalties[int(np.argmax(worse))]:.0e} the error at m = {sizes[-1]} is "
            f"{max(worse):.3g} times that of the best m",
        )
        m, penalty, error = np.median(results.values(name, "chosen"), axis=0)
        unit = _UNITS.get(name, " (RMSE)")
        rows.append([name, f"{m:.0f}", f"{penalty:.0e}", f"{error:.3g}{unit}"])
        account.picture(
            name,
            f"Validation error, mean of {len(results.trials[name])} trials. The line is the "
            "best λ of every m.",
            heat_map(sizes, penalties, errors, "m", "λ", "validation error"),
            f"Heat map of the validation error over m and λ, {name}; least {least.min():.3g}.",
        )
    account.table(
        "What the grid chooses", "Medians over the trials of the model with the least "
        "validation error, fitted to all rows.", ["data", "m", "λ", "test error"], rows,
    )  # fmt: skip
    account.notes.append(
        "For pumadyn32nh the thesis prints 0.33. The target of the file has a deviation of "
        "0.036, so that a model that knows nothing has an error of 0.036: 0.033 must be meant."
    )
    return account


EXPERIMENT = Experiment(
    name="grids",
    chapter=4,
    place="Figure 4.1",
    title="The interplay of λ and m",
    finding="A small m has the error of the largest; for a given λ a large m can be worse: m "
    "is a regularization parameter.",
    setting="20 × 20 grids; pumadyn32nh σ = 2.66, λ in [1e-7, 1], m in [10, 1000]; breast "
    "cancer σ = 0.9, λ in [1e-12, 1e-3], m in [5, 300]; cpuSmall σ = 0.1, λ in [1e-15, 1e-12], "
    "m in [100, 5000]; 10, 20 and 5 trials.",
    cases=cases,
    trial=trial,
    tell=tell,
    data=("pumadyn32nh", "breast-cancer-thesis", "cpu-small"),
    minutes=6,
)
