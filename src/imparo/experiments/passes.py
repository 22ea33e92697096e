"""Figure 6.1: the hinge loss on test rows along the passes, step fixed and decaying."""

from typing import Any

import numpy as np

from imparo import SGMClassifier
from imparo.engine import Array
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.drawing import curves
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.results import Results

_N, _SIGMA, _PASSES = 1000, 4.0, 100
FIXED, DECAYING = "fixed step", "decaying step"
_STEPS: dict[str, dict[str, float]] = {
    FIXED: {"step": 1 / np.sqrt(_N), "decay": 0.0},
    DECAYING: {"step": 0.25, "decay": 0.5},
}
_FORMULAS = {FIXED: "(a) η = 1/√n", DECAYING: "(b) η = ¼, θ = ½"}


def cases(quick: bool) -> list[Case]:
    """Return a case for each kind of step."""
    sizes = {"rows": _N, "test rows": 2000 if quick else 4000, "passes": _PASSES}
    return [Case(name, 2 if quick else 10, steps | sizes) for name, steps in _STEPS.items()]


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Walk over the rows many times, and look at the test rows after each pass."""
    settings = case.settings
    passes = np.arange(1, settings["passes"] + 1)
    sizes = settings["rows"], settings["test rows"]
    losses = losses_on_test_rows(
        data, sizes, seed, step=settings["step"], decay=settings["decay"], epochs=passes
    )
    return {"passes": passes, "losses": losses}


def losses_on_test_rows(
    data: Data, sizes: tuple[int, int], seed: int, **settings: Any
) -> Array:
    """Return the hinge loss on test rows of adult for every candidate that is met.

    The test rows are those that the learner judges its candidates by, so that one fit tells
    all losses; nothing else is used of it.

    Parameters
    ----------
    data : Data
    sizes : pair of int
        Rows to learn from and test rows, drawn at random.
    seed : int
    **settings
        Of :class:`imparo.SGMClassifier`.

    Returns
    -------
    array
    """
    split, rng, (n, k) = data.split("adult"), np.random.default_rng(seed), sizes
    rows, test = rng.permutation(len(split.y))[:n], rng.permutation(len(split.y_test))[:k]
    X = np.vstack([split.X[rows], split.X_test[test]]).astype(np.float32)
    y = np.append(split.y[rows], split.y_test[test])
    model = SGMClassifier(
        sigma=_SIGMA, features="exact", average=False, patience=None, random_state=seed,
        validation=[(np.arange(n), np.arange(n, n + k))], **settings,
    ).fit(X, y)  # fmt: skip
    losses = model.path_.losses
    assert losses is not None
    return np.asarray(losses)


def tell(results: Results) -> Account:
    """Draw both curves, and look for over-fitting."""
    account = Account()
    means = {name: results.mean(name, "losses") for name in _STEPS if name in results}
    limits = _limits(list(means.values()))
    for name, mean in means.items():
        passes = np.array(results.trials[name][0]["passes"])
        best = int(passes[mean.argmin()])
        if name == FIXED:
            account.check(
                "fixed step: the least test error is reached before 20 epochs",
                best < 20,
                f"the mean hinge loss is least, {mean.min():.3f}, after {best} epochs",
            )
            account.check(
                "fixed step: from then on the test error grows significantly",
                mean[-1] > 1.04 * mean.min(),
                f"after {passes[-1]} epochs it is {mean[-1]:.3f}, "
                f"{100 * (mean[-1] / mean.min() - 1):.1f} % above the least",
            )
        else:
            account.check(
                "decaying step: no over-fitting in the first 100 epochs",
                mean[-1] <= 1.005 * mean.min(),
                f"the mean hinge loss is least, {mean.min():.3f}, after {best} epochs, and "
                f"{mean[-1]:.3f} after {passes[-1]}",
            )
        account.picture(
            f"{_FORMULAS[name]}",
            f"Hinge loss on test rows, mean and deviation of {len(results.trials[name])} "
            f"repetitions; adult, n = {_N}, σ = {_SIGMA:g}.",
            curves(
                [(name, passes, mean, results.deviation(name, "losses"))], "epochs",
                "hinge loss on test rows", y_limits=limits,
                colours=("blue" if name == FIXED else "orange",),
            ),
            f"Hinge loss against epochs with a {name}: from {mean[0]:.3f} to {mean.min():.3f} "
            f"after {best} epochs, and {mean[-1]:.3f} at the end.",
        )  # fmt: skip
    if len(means) == len(_STEPS):
        account.check(*_slower(means[FIXED], means[DECAYING]))
    account.notes.append(
        f"Test rows are {_rows(results):,} of adult's 16,281, drawn anew for every repetition."
    )
    return account


def _slower(fixed: Array, decaying: Array) -> tuple[str, bool, str]:
    """Return whether a decaying step takes longer: claim, answer and numbers."""
    level = 1.05 * fixed.min()
    first = int(np.argmax(fixed <= level)) + 1
    reached = np.flatnonzero(decaying <= level)
    later = int(reached[0]) + 1 if len(reached) else None
    told = f"after {later}" if later else f"not within {len(decaying)} epochs"
    return (
        "convergence is slower with the decaying step",
        later is None or later > first,
        f"5 % above the least loss of the fixed step is reached after {first} epochs with it, "
        f"and {told} with the decaying one",
    )


def _limits(means: list[Array]) -> tuple[float, float]:
    low, high = min(m.min() for m in means), max(m.max() for m in means)
    return float(low - 0.15 * (high - low)), float(high + 0.15 * (high - low))


def _rows(results: Results) -> int:
    found: int = next(iter(results.cases.values())).settings["test rows"]
    return found


EXPERIMENT = Experiment(
    name="passes",
    chapter=6,
    place="Figure 6.1",
    title="The number of passes regularizes",
    finding="With a fixed step the test error is least before 20 epochs and grows from then "
    "on; with a decaying one it falls more slowly, and does not grow within 100.",
    setting="adult, n = 1000, Gaussian kernel with σ = 4, hinge loss; η = 1/√n, or η = 1/4 and "
    "θ = 1/2; 100 epochs, 10 repetitions.",
    cases=cases,
    trial=trial,
    tell=tell,
    data=("adult",),
    minutes=1.5,
)
