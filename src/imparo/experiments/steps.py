"""Figure 6.2: the hinge loss on test rows after one pass, for many steps and decays."""

from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.experiments.passes import losses_on_test_rows
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.drawing import curves
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.results import Results

FIXED, DECAYING = "fixed step", "decaying step"


def cases(quick: bool) -> list[Case]:
    """Return a case for the steps and one for the decays."""
    sizes = {"rows": 1000, "test rows": 2000 if quick else 8000, "guesses": 30}
    return [
        Case(FIXED, 10, {"steps": [1e-3, 1.0]} | sizes),
        Case(DECAYING, 10, {"step": 0.25, "decays": [0.0, 1.0]} | sizes),
    ]


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Make one pass with every guess, and look at the test rows."""
    settings = case.settings
    sizes = settings["rows"], settings["test rows"]
    if case.name == FIXED:
        least, largest = settings["steps"]
        grid = np.geomspace(least, largest, settings["guesses"])
        return {"grid": grid, "losses": losses_on_test_rows(data, sizes, seed, step=grid)}
    least, largest = settings["decays"]
    grid = np.linspace(least, largest, settings["guesses"])
    losses = losses_on_test_rows(data, sizes, seed, step=settings["step"], decay=grid)
    return {"grid": grid, "losses": losses}


def tell(results: Results) -> Account:
    """Draw both curves, and look at their ends."""
    account = Account()
    if FIXED in results:
        _tell_steps(account, results)
    if DECAYING in results:
        _tell_decays(account, results)
    rows = next(iter(results.cases.values())).settings["test rows"]
    account.notes.append(
        f"Test rows are {rows:,} of adult's 16,281, drawn anew for every repetition. The "
        "thesis does not print the least step of its grid; ours is the 1e-3 of its text."
    )
    return account


def _tell_steps(account: Account, results: Results) -> None:
    """Tell of η: too long and too short steps."""
    grid, mean, worse, error = _curve(results, FIXED)
    best = grid[mean.argmin()]
    account.check(
        "a large step (η = 1) over-fits",
        worse[-1] > max(0.01 * mean.min(), 2 * error[-1]),
        f"the mean hinge loss is {mean[-1]:.3f} at η = 1 and {mean.min():.3f} at the best "
        f"step, η = {best:.2g}: {worse[-1]:.3f} ± {error[-1]:.3f} more",
    )
    account.check(
        "a small step (η = 1e-3) over-smooths",
        mean[0] > 1.5 * mean.min(),
        f"at η = 1e-3 it is {mean[0]:.3f}, {mean[0] / mean.min():.1f} times the least",
    )
    account.picture(
        "(a) θ = 0", _text(results, FIXED),
        curves([("", grid, mean, results.deviation(FIXED, "losses"))], "η",
               "hinge loss on test rows", x_scale="log"),
        f"Hinge loss against the step: {mean[0]:.3f} at 1e-3, least ({mean.min():.3f}) at "
        f"{best:.2g}, {mean[-1]:.3f} at 1.",
    )  # fmt: skip


def _tell_decays(account: Account, results: Results) -> None:
    """Tell of θ: no decay and a fast one."""
    grid, mean, worse, error = _curve(results, DECAYING)
    best = grid[mean.argmin()]
    found = f"at θ = 0 the mean hinge loss is {mean[0]:.3f}, "
    if best > 0:
        found += f"{worse[0]:.4f} ± {error[0]:.4f} more than at the best, θ = {best:.2f}"
    else:
        found += "the least of all"
    account.check(
        "with η = 1/4, no decay (θ = 0) over-fits",
        worse[0] > max(0.01 * mean.min(), 2 * error[0]),
        found,
        _why_not(results),
    )
    account.check(
        "a large decay (θ = 1) over-smooths",
        mean[-1] > 1.5 * mean.min(),
        f"at θ = 1 it is {mean[-1]:.3f}, {mean[-1] / mean.min():.1f} times the least",
    )
    account.picture(
        "(b) η = ¼", _text(results, DECAYING),
        curves([("", grid, mean, results.deviation(DECAYING, "losses"))], "θ",
               "hinge loss on test rows", colours=("orange",)),
        f"Hinge loss against the decay: {mean[0]:.3f} at 0, least ({mean.min():.3f}) at "
        f"{best:.2f}, {mean[-1]:.3f} at 1.",
    )  # fmt: skip


def _why_not(results: Results) -> str:
    """Say why no decay need not over-fit here, by the curve of fixed steps if it is there."""
    why = "a fixed step of 1/4 is not too long for one pass over 1000 of these rows"
    if FIXED in results:
        grid, mean, _, _ = _curve(results, FIXED)
        near = int(np.argmin(abs(np.log(grid / 0.25))))
        why += (
            f": in (a) the best is η = {grid[mean.argmin()]:.2g}, and {grid[near]:.2g} has "
            f"{mean[near]:.3f} against {mean.min():.3f}, so that nothing is there for a decay "
            "to mend; why the thesis saw it is not known"
        )
    return why


def _curve(results: Results, case: str) -> tuple[Array, Array, Array, Array]:
    """Return the grid, mean losses, what they are above the best, and its standard error."""
    losses = results.values(case, "losses")
    mean = losses.mean(axis=0)
    above = losses - losses[:, [mean.argmin()]]  # paired: repetitions differ in their rows
    spread = above.std(axis=0, ddof=1) if len(above) > 1 else np.zeros(len(mean))
    grid = np.array(results.trials[case][0]["grid"])
    return grid, mean, above.mean(axis=0), spread / np.sqrt(len(above))


def _text(results: Results, case: str) -> str:
    count = len(results.trials[case])
    return (
        f"Hinge loss on test rows after one pass, mean and deviation of {count} repetitions; "
        "adult, n = 1000, σ = 4."
    )


EXPERIMENT = Experiment(
    name="steps",
    chapter=6,
    place="Figure 6.2",
    title="The step size regularizes",
    finding="In one pass, long steps (η = 1, or θ = 0) over-fit and short ones (η = 1e-3, or "
    "θ = 1) over-smooth.",
    setting="adult, n = 1000, Gaussian kernel with σ = 4, hinge loss, one pass; η in (0, 1] "
    "with θ = 0, or θ in [0, 1] with η = 1/4; 10 repetitions.",
    cases=cases,
    trial=trial,
    tell=tell,
    data=("adult",),
    minutes=0.5,
)
