"""Figure 4.2: time of model selection over 50 levels of m, naive and incremental."""

import time
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from imparo import NystromRegressor
from imparo.engine import Array
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data, Split
from imparo.experiments.shared.drawing import curves
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.results import Results
from imparo.experiments.shared.trials import exponent, root_mean_square, timed
from imparo.incremental_nystrom import incremental_nystrom
from imparo.kernels import Gaussian

# Errors that agree to so much are the same: more centers multiply rounding errors.
_SAME = 1e-5


def cases(quick: bool) -> list[Case]:
    """Return the naive way beside the path, and the algorithm as it is printed."""
    settings = {"sigma": 0.1, "penalty": 1e-12, "levels": 50, "most": 500 if quick else 1000}
    return [
        Case("cpuSmall", 2 if quick else 10, settings),
        Case("Alg. 1", 1, settings),
    ]


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Measure one way to every level, or two, with the same rows and the same centers."""
    work = _Work(data.split("cpu-small"), case.settings, seed)
    work.warm_up()
    found = work.printed() if case.name == "Alg. 1" else work.naive() | work.path()
    return found | {"levels": work.levels}


class _Work:
    """The rows, centers and levels of a trial, and three ways to the validation errors."""

    def __init__(self, split: Split, settings: dict[str, Any], seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(split.y))
        self.held, self.fitted = np.split(order, [len(order) // 5])
        self.split, self.kernel = split, Gaussian(settings["sigma"])
        self.penalty, most, count = (settings[key] for key in ("penalty", "most", "levels"))
        self.levels = np.linspace(most / count, most, count).astype(int)
        self.Z = split.X[self.fitted[:most]]
        self.X, self.y = split.X[self.fitted], split.y[self.fitted]
        self.X_held, self.y_held = split.X[self.held], split.y[self.held]

    def warm_up(self) -> None:
        """Do what is done once in a process: measure speeds, compile."""
        self._fit(self.levels[:2])
        K = self.kernel(self.Z[:9], self.Z[:3])
        list(incremental_nystrom(K, self.kernel(self.Z[:3]), self.y[:9, None], 0.1))

    def naive(self) -> dict[str, Any]:
        """Solve anew at every level, by the BLAS."""
        start, seconds, errors = time.perf_counter(), [], []
        for m in self.levels:
            Z = self.Z[:m]
            K = self.kernel(self.X, Z)
            G = blas.dsyrk(1.0, K.T) + len(self.y) * self.penalty * self.kernel(Z)
            alpha = lapack.dposv(G, blas.dgemv(1.0, K.T, self.y))[1]
            errors.append(self._error(self.kernel(self.X_held, Z), alpha))
            seconds.append(time.perf_counter() - start)
        return {"naive": seconds, "naive errors": errors}

    def path(self) -> dict[str, Any]:
        """Fit all levels up to several largest ones, each time from the start."""
        every = len(self.levels) // 10
        counts = range(every, len(self.levels) + 1, every)
        fits = [timed(partial(self._fit, self.levels[:count])) for count in counts]
        return {
            "path": [seconds for seconds, _ in fits],
            "most": [self.levels[count - 1] for count in counts],
            "path errors": fits[-1][1].path_.errors[0],
        }

    def printed(self) -> dict[str, Any]:
        """Go through every m by rank-one changes of the factor, as Alg. 1 does."""
        start, seconds, errors = time.perf_counter(), [], []
        wanted = set(self.levels.tolist())
        K, K_held = self.kernel(self.X, self.Z), self.kernel(self.X_held, self.Z)
        alphas = incremental_nystrom(K, self.kernel(self.Z), self.y[:, None], self.penalty)
        for m, alpha in enumerate(alphas, start=1):
            if m in wanted:
                errors.append(self._error(K_held[:, :m], alpha[:, 0]))
                seconds.append(time.perf_counter() - start)
        found = self._fit(self.levels).path_.errors[0]
        return {"printed": seconds, "printed errors": errors, "path errors": found}

    def _fit(self, levels: Array) -> Any:
        return NystromRegressor(
            sigma=self.kernel.sigma, penalty=[self.penalty], n_centers=levels,
            centers=self.Z[: levels[-1]], validation=[(self.fitted, self.held)],
        ).fit(self.split.X, self.split.y)  # fmt: skip

    def _error(self, K_held: Array, alpha: Array) -> float:
        return root_mean_square(blas.dgemv(1.0, K_held.T, alpha, trans=1) - self.y_held)


def tell(results: Results) -> Account:
    """Compare times as they grow with m, and errors level by level."""
    account, lines = Account(), []
    if "cpuSmall" in results:
        first = results.trials["cpuSmall"][0]
        levels, most = np.array(first["levels"]), np.array(first["most"])
        naive, path = results.mean("cpuSmall", "naive"), results.mean("cpuSmall", "path")
        lines += [
            ("naive: a solve at every level", levels, naive,
             results.deviation("cpuSmall", "naive")),
            ("incremental: imparo's path", most, path, results.deviation("cpuSmall", "path")),
        ]  # fmt: skip
        _tell_times(account, levels, naive, most, path)
        _tell_same(account, results, "cpuSmall", "naive errors", "a new solve at every level")
    if "Alg. 1" in results:
        levels = np.array(results.trials["Alg. 1"][0]["levels"])
        printed = results.mean("Alg. 1", "printed")
        lines.append(("incremental: Alg. 1 as printed", levels, printed, None))
        _tell_same(account, results, "Alg. 1", "printed errors", "Alg. 1 by rank-one updates")
        account.notes.append(
            f"Alg. 1 by rank-one updates passes through every m and took {printed[-1]:.3g} s "
            f"for all up to {levels[-1]}. It is measured once: a step of it is a loop over "
            "rows of the factor, where one Cholesky factorisation for all levels uses the "
            "whole speed of the machine. imparo's path is the same mathematics in that form."
        )
    if lines:
        account.picture(
            "Time of model selection",
            "Seconds from the start until all levels up to m have their validation error.",
            curves(lines, "m", "seconds", y_scale="log", colours=("orange", "blue", "soft")),
            "Time against the largest m: the naive way is far above imparo's path.",
        )
    account.notes.append(
        "The caption of the figure says m up to 1000, the text 5000; the caption is followed. "
        "The time of imparo's path includes the fit of the best level to all rows."
    )
    return account


def _tell_times(
    account: Account, levels: Array, naive: Array, most: Array, path: Array
) -> None:
    """Tell who is faster, by how much, and how that changes with m."""
    beside = np.interp(most, levels, naive)
    ratios = beside / path
    account.check(
        "the incremental way is faster",
        ratios[-1] > 1,
        f"all {len(levels)} levels up to m = {most[-1]} take {beside[-1]:.3g} s one by one and "
        f"{path[-1]:.3g} s as one path: {ratios[-1]:.3g} times less",
    )
    # Below, what does not depend on m takes most of the time.
    upper = most >= most[-1] / 3
    slow, fast = exponent(most[upper], beside[upper]), exponent(most[upper], path[upper])
    account.check(
        "its advantage grows with the number of levels",
        slow > fast,
        f"from m = {most[upper][0]} on the time of the naive way grows as m^{slow:.2f} and "
        f"that of the path as m^{fast:.2f} (levels being equally far apart, m³ and m² are "
        "expected where products take all the time)",
        "times are uneven where other work shares the machine; this run cannot tell whether "
        "that is why",
    )
    account.table(
        "Seconds up to m", "Means over the trials.", ["m", "naive", "path", "ratio"],
        [[f"{m}", f"{a:.3g}", f"{b:.3g}", f"{a / b:.3g}"]
         for m, a, b in zip(most, beside, path, strict=True)],
    )  # fmt: skip


def _tell_same(account: Account, results: Results, case: str, key: str, what: str) -> None:
    """Tell whether two ways have the same validation error at every level."""
    ours, theirs = results.values(case, "path errors"), results.values(case, key)
    apart = float(np.max(np.abs(ours / theirs - 1)))
    account.check(
        f"the path has the errors of {what}",
        apart < _SAME,
        f"the validation errors of {ours.shape[1]} levels differ by {apart:.1g} of their value "
        "at most",
    )


EXPERIMENT = Experiment(
    name="selection-time",
    chapter=4,
    place="Figure 4.2",
    title="Time of model selection over m",
    finding="Solutions for all levels of m come at the price of the largest by incremental "
    "updates; a naive search pays for each of them.",
    setting="cpuSmall, σ = 0.1, λ = 1e-12, 50 levels of m up to 1000, hold-out (20 %); 10 "
    "repetitions.",
    cases=cases,
    trial=trial,
    tell=tell,
    data=("cpu-small",),
    minutes=3,
)
