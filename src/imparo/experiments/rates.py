"""Figure 5.2: simulated rates of excess risk, λ and m beside those that theorem 11 predicts."""

from fractions import Fraction
from typing import Any

import numpy as np

from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.results import Results
from imparo.reports.drawing import Drawing, Theme
from imparo.theory import RateSimulation, simulate_rates

_NAMES = {"risk": "excess risk", "penalty": "penalty λ", "n_features": "features m"}
# The largest noise at which exponents in the limit are near the theory's: simulate_rates.
_MODELS = {
    "r = 11/16, γ = 1/8": {"r": 11 / 16, "gamma": 1 / 8, "noise": 0.03},
    "r = 7/8, γ = 1/4": {"r": 7 / 8, "gamma": 1 / 4, "noise": 1.0},
}
_ROWS = [1000, 1389, 1931, 2683, 3728, 5179, 7197, 10000]
# Enough for a trial to be worth a line, few enough to lose little by a stop.
_REPETITIONS = 5


def cases(quick: bool) -> list[Case]:
    """Return a case for either model; a trial is five of the 100 repetitions."""
    more: dict[str, Any] = {
        "rows": _ROWS[:5] if quick else _ROWS,
        "repetitions": _REPETITIONS,
    }
    return [Case(name, 3 if quick else 20, model | more) for name, model in _MODELS.items()]


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Make some repetitions of the simulation."""
    settings = case.settings
    found = simulate_rates(
        settings["r"], settings["gamma"], n=settings["rows"], noise=settings["noise"],
        repetitions=settings["repetitions"], random_state=seed,
    )  # fmt: skip
    return {name: getattr(found, name) for name in _NAMES}


def _joined(results: Results, name: str) -> RateSimulation:
    """Return all repetitions of a model as one simulation."""
    settings = results.cases[name].settings
    sizes = len(settings["rows"])
    risk, penalty, features = (results.values(name, key).reshape(-1, sizes) for key in _NAMES)
    return RateSimulation(
        settings["r"], settings["gamma"], settings["noise"], 0.01, 0.5,
        np.array(settings["rows"]), risk, penalty, features.astype(int),
    )  # fmt: skip


def tell(results: Results) -> Account:
    """Put measured exponents beside predicted ones."""
    account = Account()
    simulations = {name: _joined(results, name) for name in _MODELS if name in results}
    rows = []
    for name, simulation in simulations.items():
        for key, (mean, deviation, theory) in simulation.exponents.items():
            count = len(simulation.risk)
            error = deviation / np.sqrt(count)
            account.check(
                f"{name}: {_NAMES[key]} follows n to the power {_fraction(theory)}",
                simulation.agrees[key],
                f"the exponent over {count} repetitions is {mean:.3f} with a deviation of "
                f"{deviation:.2f}; the theory has {theory:.3f}",
                "the exponent of a few repetitions is uncertain by "
                f"{error:.2f}, and the rate holds up to constants and logarithms",
            )
            rows.append([
                name, _NAMES[key], f"{theory:.3f}", f"{mean:.3f} ± {error:.3f}",
                f"{deviation:.2f}", f"{abs(mean - theory) / error:.1f}",
            ])  # fmt: skip
    for key, title in _NAMES.items():
        for name, simulation in simulations.items():
            mean, deviation, theory = simulation.exponents[key]
            account.picture(
                f"{title}, {name}",
                f"Mean of the logarithms over {len(simulation.risk)} repetitions, with a band "
                "of one deviation, beside a line of the exponent of the theory.",
                _drawing(simulation, key),
                f"{title} against n: measured exponent {mean:.2f} ± {deviation:.2f}, theory "
                f"{theory:.2f}.",
            )
    account.table(
        "Exponents of n",
        "The mean exponent of a repetition with its standard error, the deviation of one "
        "repetition, and how many standard errors mean and theory are apart.",
        ["model", "what", "theory", "mean", "deviation", "errors apart"],
        rows,
    )
    account.notes.append(
        "The thesis prints neither the noise nor ε and x₀ of its model. Noise matters: it is "
        "0.03 in the first and 1 in the second, where exponents in the limit are within 0.05 "
        "of the theory's between 10³ and 10⁴ rows; ε = 0.01, x₀ = 1/2. As in the thesis, one "
        "deviation of a repetition is a wide margin: the last column of the table is sharper."
    )
    return account


def _drawing(simulation: RateSimulation, key: str) -> Drawing:
    """Return a panel of the figure."""
    mean, deviation, theory = simulation.exponents[key]
    n, logs = simulation.n, np.log(getattr(simulation, key))
    center, spread = logs.mean(axis=0), logs.std(axis=0, ddof=1)

    def draw(figure: Any, theme: Theme) -> None:
        ax = figure.subplots()
        ax.plot(n, np.exp(center), "o", color=theme.blue, ms=5,
                label=f"simulated, exponent {_signed(mean)} ± {deviation:.2f}")  # fmt: skip
        low, high = np.exp(center - spread), np.exp(center + spread)
        ax.fill_between(n, low, high, color=theme.blue, alpha=0.18, lw=0,
                        label="one deviation")  # fmt: skip
        line = np.exp(center.mean() + theory * (np.log(n) - np.log(n).mean()))
        ax.plot(n, line, color=theme.orange, lw=2,
                label=f"theory, exponent {_fraction(theory)} = {_signed(theory)}")  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel="rows n", ylabel=_NAMES[key])
        ticks = [tick for tick in (1000, 2000, 4000, 10000) if tick <= n.max()]
        ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        ax.tick_params(axis="x", which="minor", labelbottom=False)
        ax.tick_params(axis="y", which="minor", labelleft=False)
        # Room for the legend over the band.
        ax.set_ylim(low.min() * 0.9, high.max() * (high.max() / low.min()) ** 0.35)
        ax.legend(loc="upper right" if theory < 0 else "upper left")

    return draw


def _fraction(value: float) -> str:
    """Return a number as the fraction that it is."""
    return str(Fraction(value).limit_denominator(100)).replace("-", "−")


def _signed(value: float) -> str:
    """Return a number with two digits and a minus of the width of a plus."""
    return f"{value:.2f}".replace("-", "−")


EXPERIMENT = Experiment(
    name="rates",
    chapter=5,
    place="Figure 5.2",
    title="Simulated against predicted rates",
    finding="Excess risk, λ and the number of random features go with n as theorem 11 "
    "predicts: predictions are within one standard deviation of what is measured.",
    setting="Spline kernels on [0, 1], (r, γ) = (11/16, 1/8) and (7/8, 1/4), n from 10³ to "
    "10⁴, λ of the least excess risk, m within 5 % of it; 100 repetitions.",
    cases=cases,
    trial=trial,
    tell=tell,
    minutes=1,
)
