"""Figure 5.3: test error against m, of random Fourier features and of Nyström centers."""

from typing import Any

import numpy as np

from imparo import (
    NystromClassifier,
    NystromRegressor,
    RandomFeatureClassifier,
    RandomFeatureRegressor,
)
from imparo.engine import Array
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.drawing import curves
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.results import Results
from imparo.features import Fourier

_PUMADYN, _CANCER = "pumadyn32nh", "breast cancer"
_LABELS = {"features": "random features", "centers": "Nyström"}
_UNITS = {_PUMADYN: "test RMSE", _CANCER: "test error rate"}


def cases(quick: bool) -> list[Case]:
    """Return a case for each data set."""
    puma = {"data": "pumadyn32nh", "sigma": 2.66, "penalty": 1e-9}
    cancer = {"data": "breast-cancer-thesis", "sigma": 0.9, "penalty": 1e-2}
    return [
        Case(_PUMADYN, 2 if quick else 10, puma | {"sizes": [5, 500 if quick else 1000]}),
        Case(_CANCER, 5 if quick else 20, cancer | {"sizes": [5, 400]}),
    ]


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Compute the test error at every m from one path over m for either method."""
    settings = case.settings
    split = data.split(settings["data"])
    X, y = np.vstack([split.X, split.X_test]), np.append(split.y, split.y_test)
    n = len(split.y)
    least, most = settings["sizes"]
    sizes = np.unique(np.geomspace(least, most, 25).round().astype(int))
    # What a path is judged on are the test rows: nothing is selected by it.
    shared: dict[str, Any] = {
        "sigma": settings["sigma"],
        "penalty": settings["penalty"],
        "validation": [(np.arange(n), np.arange(n, len(y)))],
        "random_state": seed,
    }
    classes = case.name == _CANCER
    features = RandomFeatureClassifier if classes else RandomFeatureRegressor
    centers = NystromClassifier if classes else NystromRegressor
    # The form of the example in section 5.3: cos(ωᵀx + b).
    first = features(n_features=sizes, features=Fourier(form="cosine"), **shared).fit(X, y)
    second = centers(n_centers=sizes, **shared).fit(X, y)
    return {
        "sizes": sizes,
        "features": first.path_.errors.ravel(),
        "centers": second.path_.errors.ravel(),
    }


def tell(results: Results) -> Account:
    """Look for the shape of the curves, and for how many of each are needed."""
    account = Account()
    rows = []
    for name in results:
        sizes = np.array(results.trials[name][0]["sizes"])
        means = {key: results.mean(name, key) for key in _LABELS}
        penalty = results.cases[name].settings["penalty"]
        for key, label in _LABELS.items():
            _check_shape(account, name, label, sizes, results.values(name, key))
        # Nine tenths of what m can do for random features.
        falls = means["features"]
        level = falls.min() + 0.1 * (falls[0] - falls.min())
        needed = {key: _first(sizes, errors, level) for key, errors in means.items()}
        account.check(
            f"{name}: Nyström needs considerably fewer centers for the same error",
            needed["centers"] is not None
            and needed["features"] is not None
            and 1.5 * needed["centers"] <= needed["features"],
            f"an error of {level:.3g} takes {needed['centers']} centers and "
            f"{needed['features']} random features",
        )
        for key, label in _LABELS.items():
            i = int(np.argmin(means[key]))
            rows.append([
                name, label, f"{means[key][i]:.4g}", f"{sizes[i]}", f"{means[key][-1]:.4g}",
                f"{needed[key]}",
            ])  # fmt: skip
        lines = [
            (label, sizes, means[key], results.deviation(name, key))
            for key, label in _LABELS.items()
        ]
        account.picture(
            f"{name}, λ = {penalty:g}",
            f"Mean of {len(results.trials[name])} trials, with bands of one deviation.",
            curves(lines, "m", _UNITS[name], x_scale="log"),
            f"Test error against m on {name}: Nyström is below random features for small m.",
        )
    account.table(
        "What m does",
        "The last column is the least m with an error within a tenth of the whole fall of "
        "random features' error from their best.",
        ["data", "method", "least error", "at m", "error at the largest m", "m needed"],
        rows,
    )
    account.notes.append(
        "The thesis does not print the widths of this figure; those of section 4.2.4 on the "
        "same data are used. Errors on breast cancer are shares of rows put into the wrong "
        "class, of 169 test rows."
    )
    return account


def _check_shape(account: Account, name: str, label: str, sizes: Array, errors: Array) -> None:
    """Check that the error falls and then rises again with m."""
    mean = errors.mean(axis=0)
    i = int(np.argmin(mean))
    rises = errors[:, -1] > errors[:, i]
    account.check(
        f"{name}, {label}: the curve over m is that of a regularization parameter",
        mean[0] > 1.02 * mean[i] and mean[-1] > 1.01 * mean[i] and rises.mean() > 0.5,
        f"the error is {mean[0]:.4g} at m = {sizes[0]}, {mean[i]:.4g} at m = {sizes[i]} and "
        f"{mean[-1]:.4g} at m = {sizes[-1]}; it is higher there than at the best m in "
        f"{int(rises.sum())} of {len(rises)} trials",
        "at λ = 0.01 the ridge alone regularizes enough: the error falls to that of exact "
        "KRLS and stays, so that only the falling branch of the curve is seen"
        if name == _CANCER
        else "",
    )


def _first(sizes: Array, errors: Array, level: float) -> int | None:
    """Return the least m whose error is not above a level, if there is one."""
    below = np.flatnonzero(errors <= level)
    return int(sizes[below[0]]) if len(below) else None


EXPERIMENT = Experiment(
    name="features-or-centers",
    chapter=5,
    place="Figure 5.3",
    title="Test error against m: random features and Nyström",
    finding="The test error over the number m of random features has the typical curve of a "
    "regularization parameter; Nyström seems to need considerably fewer centers for the same "
    "error.",
    setting="Gaussian kernel; pumadyn32nh with λ = 1e-9, breast cancer with λ = 1e-2.",
    cases=cases,
    trial=trial,
    tell=tell,
    data=("pumadyn32nh", "breast-cancer-thesis"),
    minutes=0.5,
)
