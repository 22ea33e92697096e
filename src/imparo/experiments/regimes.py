"""Figure 4.3: which of four methods is fastest, over signal-to-noise ratio and dimension."""

from typing import Any

import numpy as np

from imparo import theory
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.results import Results
from imparo.kernels import Gaussian
from imparo.reports.drawing import Drawing, Theme
from imparo.theory import fastest, iteration_limit, regime_costs, subsampling_limit

_METHODS = ("nytro", "early stopping", "krls", "nkrls")
_NAMES = ("NYTRO", "early stopping", "KRLS", "Nyström KRLS")
# As the thesis colours them: purple, blue, orange, yellow.
_COLOURS = ("#b79ad1", "#8db8de", "#f2ae72", "#f7dd7e")
# Name, data set and width: the data of tables 4.2 and 4.3, and that of figure 4.4.
_DATA = (
    ("Insurance", "insurance", 3.0),
    ("Adult", "adult", 6.6),
    ("Ijcnn", "ijcnn1", 1.0),
    ("YearPrediction", "year-prediction", 1.0),
    ("Covertype", "covtype-binary", 1.0),
    ("cpuSmall", "cpu-small", 0.1),
)
_ROWS = (1_000, 10_000, 100_000, 1_000_000)
_DRAWN = 100_000


def cases(quick: bool) -> list[Case]:
    """Return the areas, and a case for each data set."""
    sample = {"sample": 500 if quick else 2000}
    return [
        Case("areas", 1, {"rows": list(_ROWS), "points": 60 if quick else 160}),
        *(Case(name, 1, {"data": data, "sigma": s} | sample) for name, data, s in _DATA),
    ]


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Find the fastest on a grid for several n, or the place of a data set."""
    if case.name == "areas":
        points = case.settings["points"]
        return {f"{n}": _areas(n, points) for n in case.settings["rows"]}
    split = data.split(case.settings["data"])
    spectrum = theory.KernelSpectrum(
        split.X, Gaussian(case.settings["sigma"]), exact_rows=case.settings["sample"],
        random_state=seed,
    )  # fmt: skip
    penalty = theory.signal_of(spectrum, split.y).penalty
    dimension = spectrum.maximal(penalty.value)
    return {
        "n": len(split.y),
        "snr": [1 / penalty.value, 1 / penalty.high, 1 / penalty.low],
        "dimension": [dimension.value, dimension.low, dimension.high],
    }


def _areas(n: int, points: int) -> dict[str, Any]:
    """Return the fastest by the curves and by counted costs on a grid of the plane."""
    snr, dimension = np.geomspace(2e-3, 100.0 * n, points), np.geomspace(1, 0.999 * n, points)
    plane = [[(fastest(s, d, n), regime_costs(s, d, n)) for s in snr] for d in dimension]
    return {
        "snr": snr,
        "dimension": dimension,
        "fastest": [[_METHODS.index(method) for method, _ in row] for row in plane],
        "excess": [[costs[method] / min(costs.values()) for method, costs in row]
                   for row in plane],
        "c1": [subsampling_limit(s, n) for s in (1.0, 1e4)],
        "nytro area": _nytro_area(n),
    }  # fmt: skip


def _nytro_area(n: int) -> float:
    """Return the area between c₂ and c₁, SNR > 1 and d̃ ≥ 1, in decades times decades."""
    snr = np.geomspace(1.001, 1e9, 4000)
    heights = [
        max(0.0, np.log10(subsampling_limit(s, n)) - np.log10(max(iteration_limit(s), 1.0)))
        for s in snr
    ]
    return float(np.mean(heights) * np.log10(snr[-1] / snr[0]))


def tell(results: Results) -> Account:
    """Draw the plane, look for what section 4.3.3 says of it, and put the data on it."""
    account = Account()
    if "areas" in results:
        found = results.trials["areas"][0]
        _tell_areas(account, found)
        account.picture(
            f"The fastest of four methods, n = {_DRAWN:,}",
            "White lines: c₁ and c₂. Problems above the dashed line, d̃ = SNR, cannot be.",
            _plane(found[f"{_DRAWN}"]),
        )
    marks = {name: results.trials[name][0] for name in results if name != "areas"}
    if marks:
        account.picture(
            "Where the data are",
            f"What is possible of the plane at n = {_DRAWN:,}. Each data set has its own n: "
            "the table says in which of the areas it is with that. An arrow: further right.",
            _marked(marks),
        )
        account.table(
            "Where the data are",
            "1/λ* and d̃(λ*) with their range, by generalized cross-validation on a sample.",
            ["data", "n", "1/λ*", "d̃", "fastest by the areas", "cost of Nyström KRLS / NYTRO"],
            [_row(name, mark) for name, mark in marks.items()],
        )
        account.notes.append(
            "SNR is taken as 1/λ*, the number of gradient steps: λ* = 1/SNR as printed does "
            "not hold with the ridge nλ. The costs are of one penalty; those of KRLS and "
            "Nyström KRLS rise with more, as the remark after the figure says."
        )
    return account


def _row(name: str, mark: dict[str, Any]) -> list[str]:
    snr, dimension, n = mark["snr"][0], mark["dimension"][0], int(mark["n"])
    costs, (_, low, high) = regime_costs(snr, dimension, n), mark["snr"]
    return [
        name, f"{n:,}", f"{snr:.2g} ({low:.2g} to {high:.2g})", f"{dimension:.3g}",
        _named([_METHODS.index(fastest(snr, dimension, n))]),
        f"{costs['nkrls'] / costs['nytro']:.2g}",
    ]  # fmt: skip


def _tell_areas(account: Account, found: dict[str, Any]) -> None:
    """Check the sentences of section 4.3.3 on the grids."""
    grid = {key: np.array(value) for key, value in found[f"{_DRAWN}"].items()}
    snr, dimension, best = grid["snr"], grid["dimension"], grid["fastest"]
    c1 = np.array([subsampling_limit(s, _DRAWN) for s in snr])
    below = dimension[:, None] < c1
    noisy = below & (snr < np.exp(-1.0))
    account.check(
        "NYTRO is preferable when SNR ≤ 1",
        np.mean(best[noisy] == 0) > 0.99,
        f"below c₁, {np.mean(best[noisy] == 0):.0%} of the plane with SNR < 1/e is NYTRO's; "
        "between 1/e and 1 is the peak of c₂, of which the thesis speaks, too. No problem with "
        "SNR < 1 has d̃ ≥ 1, however: d̃ is at most SNR",
    )
    large = [j for j, s in enumerate(snr) if s > 3 and iteration_limit(s) < 0.5 * c1[j]]
    tops = [best[np.flatnonzero(below[:, j])[-1], j] for j in large]
    account.check(
        "for SNR > 1 NYTRO is fastest where the dimension is large, Nyström KRLS where small",
        set(tops) == {0} and set(best[0, large]) == {3},
        f"at {len(large)} values of SNR from {snr[large[0]]:.2g} to {snr[large[-1]]:.2g}, just "
        f"below c₁: {_named(tops)}; at d̃ = 1: {_named(best[0, large])}",
    )
    peak = [_METHODS.index(fastest(1.0, d, _DRAWN)) for d in dimension]
    limit = subsampling_limit(1.0, _DRAWN)
    below_peak = [found for found, d in zip(peak, dimension, strict=True) if d < limit]
    account.check(
        "at SNR ≈ 1 Nyström KRLS is the fastest, KRLS where the dimension is close to n",
        peak[-1] == 2 and set(below_peak) == {3},
        f"at SNR = 1, below c₁: {_named(below_peak)}; near n: {_named(peak[-1:])}. The peak is "
        f"a needle: c₂ is above c₁ only for SNR within {1 / limit:.0e} of 1, and as d̃ ≤ SNR "
        "no problem is there",
    )
    rows = sorted(int(n) for n in found)
    areas = [found[f"{n}"]["nytro area"] for n in rows]
    account.check(
        "the area of NYTRO at SNR > 1 grows with n",
        all(np.diff(areas) > 0),
        "on logarithmic axes, in decades times decades: "
        + ", ".join(f"{area:.3g} at n = {n:,}" for n, area in zip(rows, areas, strict=True)),
    )
    falls = [found[f"{n}"]["c1"][0] / found[f"{n}"]["c1"][1] for n in rows]
    account.check(
        "c₁ is quite flat when n is very large",
        all(np.diff(falls) < 0) and falls[-1] < 2,
        "from SNR = 1 to 10,000 it falls by a factor of "
        + ", ".join(f"{fall:.2f} at n = {n:,}" for n, fall in zip(rows, falls, strict=True)),
    )
    excess = grid["excess"][dimension[:, None] <= snr]
    account.check(
        "the areas agree with the counted costs, up to logarithms",
        bool(np.mean(excess < 1.0001) > 0.75 and excess.max() < np.log(_DRAWN * snr[-1])),
        f"on {np.mean(excess < 1.0001):.0%} of what is possible the method of the area has "
        f"the least cost, and nowhere more than {excess.max():.2g} times that: c₂ has log SNR "
        "where the costs of NYTRO and Nyström KRLS have log(n·SNR)",
    )


def _named(found: Any) -> str:
    return " and ".join(_NAMES[i] for i in sorted(set(found)))


def _plane(found: dict[str, Any]) -> Drawing:
    """Return a drawing of the whole plane, as in the thesis."""

    def draw(figure: Any, theme: Theme) -> None:
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        ax = figure.subplots()
        snr, dimension = np.array(found["snr"]), np.array(found["dimension"])
        ax.pcolormesh(
            snr, dimension, np.array(found["fastest"]), vmin=-0.5, vmax=3.5,
            cmap=ListedColormap(_COLOURS), shading="nearest", rasterized=True,
        )  # fmt: skip
        x = np.geomspace(snr[0], snr[-1], 1500)
        for limit in (lambda s: subsampling_limit(s, _DRAWN), iteration_limit):
            ax.plot(x, [limit(s) for s in x], color="white", lw=1.6)
        ax.plot(x, x, color="0.25", lw=0.9, ls=(0, (4, 3)))
        ax.set(xscale="log", yscale="log", xlabel="SNR", ylabel="d̃",
               xlim=(snr[0], snr[-1]), ylim=(1, dimension[-1]))  # fmt: skip
        ax.grid(False)
        handles = [Patch(color=c, label=n) for c, n in zip(_COLOURS, _NAMES, strict=True)]
        figure.legend(handles=handles, loc="outside lower center", ncols=4)

    return draw


def _marked(marks: dict[str, dict[str, Any]]) -> Drawing:
    """Return a drawing of what is possible, with the data sets."""

    def draw(figure: Any, theme: Theme) -> None:
        from matplotlib.patheffects import withStroke

        ax = figure.subplots()
        theory.plot_regimes(_DRAWN, ax=ax).grid(False)
        ax.set_title("")
        for name, mark in marks.items():
            x, y = min(mark["snr"][0], 150.0 * _DRAWN), min(mark["dimension"][0], 0.8 * _DRAWN)
            ax.plot(x, y, "o>"[x < mark["snr"][0]], color="crimson", mec="white", ms=7)
            ax.annotate(
                name, (x, y), (-7, -3), ha="right", textcoords="offset points",
                fontsize=8.5, color="crimson", weight="bold",
                path_effects=[withStroke(linewidth=2.5, foreground="white")],
            )  # fmt: skip

    return draw


EXPERIMENT = Experiment(
    name="regimes",
    chapter=4,
    place="Figure 4.3",
    title="Where each of four methods is fastest",
    finding="NYTRO is fastest where problems are noisy or of large dimension, Nyström KRLS "
    "where the dimension is small, early stopping where it is very large; KRLS hardly ever.",
    setting="The plane of SNR and d̃, divided by c₁ = n/log(n·SNR) and c₂ = SNR/log SNR.",
    cases=cases,
    trial=trial,
    tell=tell,
    data=tuple(data for _, data, _ in _DATA),
    minutes=2,
)
