"""Figure 4.4: training time of NKRLS and NYTRO as the number of centers grows."""

from functools import partial
from typing import Any

import numpy as np

from imparo import NystromRegressor, NytroRegressor
from imparo.engine import Array
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.drawing import curves
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.plain_nystrom import (
    iterate,
    kernel_values,
    solve_one_by_one,
)
from imparo.experiments.shared.results import Results
from imparo.experiments.shared.trials import exponent, timed

_STEPS, _FAST_STEPS = 500, 40
_PENALTIES = np.logspace(-15, 0, 100)
_EVERY = 5  # of the penalties is solved for, where each costs the same
_WAYS = {
    "one by one": "NKRLS, a solve for each λ",
    "descent": "NYTRO, with K_nm",
    "nkrls": "imparo's NKRLS",
    "nytro": "imparo's NYTRO",
    "nu": "imparo's NYTRO, ν-method",
}
# What NYTRO iterates with, in words.
_MATRICES = {"gram": "ΦᵀΦ, m × m", "stored": "K_nm", "recomputed": "K_nm, anew"}


def cases(quick: bool) -> list[Case]:
    """Return one case: cpuSmall."""
    sizes = [100, 300, 600, 900, 1200] if quick else list(range(200, 4001, 200))
    return [Case("cpuSmall", 1 if quick else 3, {"sigma": 0.1, "sizes": sizes})]


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Measure every way at every m; each judges all of its levels on a fifth of the rows."""
    split, sigma = data.split("cpu-small"), case.settings["sigma"]
    few = split.X[:500], split.y[:500]
    for name in ("nkrls", "nytro", "nu"):
        _model(name, sigma, 50, seed).fit(*few)  # what is done once in a process
    iterate(kernel_values(split, sigma, 50, seed), 5)
    found: dict[str, Any] = {name: [] for name in (*_WAYS, "forms")}
    for m in case.settings["sizes"]:
        seconds, values = timed(partial(kernel_values, split, sigma, m, seed))
        product, solve = solve_one_by_one(values, _PENALTIES[::_EVERY])
        found["one by one"].append(seconds + product + len(_PENALTIES) * solve)
        found["descent"].append(seconds + iterate(values, _STEPS))
        del values
        for name in ("nkrls", "nu", "nytro"):
            model = _model(name, sigma, m, seed)
            found[name].append(timed(partial(model.fit, split.X, split.y))[0])
        found["forms"].append(model.form_)
    return found


def _model(name: str, sigma: float, m: int, seed: int) -> Any:
    shared: dict[str, Any] = {"sigma": sigma, "n_centers": m, "random_state": seed}
    if name == "nkrls":
        return NystromRegressor(penalty=_PENALTIES, **shared)
    filter, most = ("landweber", _STEPS) if name == "nytro" else ("nu", _FAST_STEPS)
    return NytroRegressor(filter=filter, iterations=np.arange(1, most + 1), **shared)


def tell(results: Results) -> Account:
    """Draw times against m, and find how they grow and where they cross."""
    account = Account()
    if "cpuSmall" not in results:
        return account
    sizes = np.array(results.cases["cpuSmall"].settings["sizes"])
    times = {name: results.mean("cpuSmall", name) for name in _WAYS}
    lines = [
        (label, sizes, times[name], results.deviation("cpuSmall", name))
        for name, label in _WAYS.items()
    ]
    account.picture(
        "Training time",
        f"Seconds of model selection and training: {len(_PENALTIES)} penalties, at most "
        f"{_STEPS} steps of gradient descent, or {_FAST_STEPS} of the ν-method.",
        curves(lines, "m", "seconds", colours=("red", "blue", "orange", "green", "soft")),
        f"Time against m of five ways, up to m = {sizes[-1]}.",
    )
    _tell_growth(account, sizes, times)
    forms = results.trials["cpuSmall"][0]["forms"]
    account.table(
        "Seconds at m",
        "Means over the trials. The last column: what imparo's NYTRO iterates with.",
        ["m", *_WAYS.values(), "matrix"],
        [[f"{m}", *(f"{times[name][i]:.3g}" for name in _WAYS), _MATRICES[forms[i]]]
         for i, m in enumerate(sizes)],
    )  # fmt: skip
    reduced = "20 values of m instead of 40, 3 repetitions instead of 5, to save time."
    account.notes += [
        "The thesis does not print σ and the range of λ for this figure: 0.1, as in figure "
        "4.1, and [1e-15, 1], as in table 4.3, are used. "
        + ("Quick: five values of m up to 1,200, once." if results.quick else reduced),
        "The first two are the methods with the operations that the thesis counts, by plain "
        "BLAS and without a final fit: m³ for every λ, and nm for every iteration. imparo pays "
        "m³ once for all λ, and iterates with ΦᵀΦ where that is less.",
    ]
    return account


def _tell_growth(account: Account, sizes: Array, times: dict[str, Array]) -> None:
    """Check exponents, and who is faster where m is large."""
    # Below, what does not depend on m takes much of the time.
    upper = sizes >= sizes[-1] / 2
    powers = {name: exponent(sizes[upper], t[upper]) for name, t in times.items()}
    told = ", ".join(f"{label} as m^{powers[name]:.2f}" for name, label in _WAYS.items())
    evidence = f"from m = {sizes[upper][0]} to {sizes[-1]}: {told}"
    account.check(
        "the time of NKRLS grows quadratically with m, or faster",
        powers["one by one"] > 1.6,
        evidence,
        "m is so small that kernel values take much of the time",
    )
    account.check(
        "the time of NYTRO grows linearly with m",
        powers["descent"] < 1.4,
        evidence,
        "smaller matrices fit into the cache of the processor, and products with triangles of "
        "m × m numbers take a share that grows",
    )
    ratios = times["one by one"] / times["descent"]
    slower = np.flatnonzero(ratios <= 1)
    first = 0 if len(slower) == 0 else slower[-1] + 1
    start = f"; it is faster from m = {sizes[first]} on" if 0 < first < len(sizes) else ""
    account.check(
        "NYTRO is faster than NKRLS, if m is large enough",
        ratios[-1] > 1,
        f"at m = {sizes[-1]} NKRLS takes {ratios[-1]:.2g} times as long{start}; imparo's "
        f"NKRLS takes {times['nkrls'][-1] / times['nytro'][-1]:.2g} times as long as its "
        f"NYTRO, and {times['nkrls'][-1] / times['nu'][-1]:.2g} times with the ν-method",
        f"m = {sizes[-1]} is not large enough on this machine",
    )


EXPERIMENT = Experiment(
    name="nytro-time",
    chapter=4,
    place="Figure 4.4",
    title="Training time of NKRLS and NYTRO",
    finding="The time of NYTRO grows linearly with the number of centers, that of NKRLS "
    "quadratically: NYTRO is faster if m is large enough.",
    setting="cpuSmall, m from 100 to 4000; 100 values of λ, at most 500 iterations; 5 "
    "repetitions.",
    cases=cases,
    trial=trial,
    tell=tell,
    data=("cpu-small",),
    minutes=25,
)
