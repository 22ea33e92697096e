"""What a simulation of learning rates found: a table and a figure beside the theory."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.paths import pyplot
from imparo.theory.random_features import features_exponent, penalty_exponent, rate_exponent

_NAMES = {"risk": "excess risk", "penalty": "penalty λ", "n_features": "features m"}
_COLORS = {"simulated": "tab:blue", "theory": "tab:orange"}


def theoretical_exponents(r: float, gamma: float) -> dict[str, float]:
    """Return the exponents of the best excess risk, of λ and of m in n, where α = γ.

    −2r/(2r + γ), −1/(2r + γ) and c/(2r + γ), c = γ + (2r − 1) (theorem 11 of section 5.3.1
    of the thesis, for r ≤ 1).

    Examples
    --------
    >>> from imparo.theory.simulation_plot import theoretical_exponents
    >>> theoretical_exponents(7 / 8, 1 / 4)
    {'risk': -0.875, 'penalty': -0.5, 'n_features': 0.5}
    """
    return {
        "risk": -rate_exponent(r, gamma),
        "penalty": -penalty_exponent(r, gamma),
        "n_features": features_exponent(r, gamma, alpha=gamma),
    }


@dataclass(frozen=True, eq=False, repr=False)
class RateSimulation:
    """What :func:`simulate_rates` found, beside the theory.

    Attributes
    ----------
    r, gamma, noise, epsilon, x0 : float
        The model.
    n : array of shape (N,)
        Numbers of rows.
    risk, penalty, n_features : arrays of shape (repetitions, N)
        The least excess risk of KRLS, its λ, and the number of random features that come
        within 5 % of it.

    Examples
    --------
    >>> from imparo.theory import simulate_rates
    >>> simulation = simulate_rates(7 / 8, 1 / 4, n=(100, 1000), repetitions=3)
    >>> simulation.risk.shape
    (3, 2)
    >>> mean, sd, theory = simulation.exponents["penalty"]
    >>> theory
    -0.5
    """

    r: float
    gamma: float
    noise: float
    epsilon: float
    x0: float
    n: Array
    risk: Array
    penalty: Array
    n_features: Array

    @property
    def slopes(self) -> dict[str, Array]:
        """The exponent of n in every repetition, by least squares of the logarithms."""
        x = np.log(self.n) - np.log(self.n).mean()
        return {name: np.log(getattr(self, name)) @ x / (x @ x) for name in _NAMES}

    @property
    def exponents(self) -> dict[str, tuple[float, float, float]]:
        """Mean and standard deviation over repetitions, and theory, of each exponent."""
        theory = theoretical_exponents(self.r, self.gamma)
        return {
            name: (float(slopes.mean()), float(slopes.std(ddof=1)), theory[name])
            for name, slopes in self.slopes.items()
        }

    @property
    def agrees(self) -> dict[str, bool]:
        """Whether each mean is within one standard deviation of the theory."""
        return {
            name: abs(mean - theory) <= sd
            for name, (mean, sd, theory) in self.exponents.items()
        }

    def __str__(self) -> str:
        lines = [
            f"r = {_fraction(self.r)}, γ = {_fraction(self.gamma)}, noise {self.noise:g}, "
            f"n = {self.n.min():,} to {self.n.max():,}, {len(self.risk)} repetitions",
            f"{'exponent of n':<14}{'theory':>8}{'mean':>8}{'sd':>8}",
        ]
        for name, (mean, sd, theory) in self.exponents.items():
            verdict = "within one sd" if self.agrees[name] else "not within one sd"
            lines.append(f"{_NAMES[name]:<14}{theory:8.3f}{mean:8.3f}{sd:8.3f}  {verdict}")
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, fig: Any = None) -> Any:
        """Draw excess risk, λ and m against n beside the theory (thesis, figure 5.2).

        Dots are means of logarithms over the repetitions, the band one standard deviation
        to both sides. The line has the exponent of the theory and goes through their mean.

        Parameters
        ----------
        fig : matplotlib Figure, optional
            Drawn on if given.

        Returns
        -------
        matplotlib Figure
        """
        return plot_simulations([self], fig)


def plot_simulations(simulations: Sequence[RateSimulation], fig: Any = None) -> Any:
    """Draw a row of three panels for each simulation, as in figure 5.2 of the thesis.

    Parameters
    ----------
    simulations : sequence of RateSimulation
    fig : matplotlib Figure, optional
        Drawn on if given.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from imparo.theory import plot_simulations, simulate_rates
    >>> simulation = simulate_rates(7 / 8, 1 / 4, n=(100, 300), repetitions=2)
    >>> len(plot_simulations([simulation, simulation], Figure()).axes)
    6
    """
    if not simulations:
        raise ValueError("there is no simulation to plot; give the results of simulate_rates")
    if fig is None:
        size = (10.5, 0.3 + 3.1 * len(simulations))
        fig = pyplot().figure(figsize=size, layout="constrained")
    axes = fig.subplots(len(simulations), len(_NAMES), squeeze=False)
    for row, simulation in zip(axes, simulations, strict=True):
        for ax, name in zip(row, _NAMES, strict=True):
            _draw(ax, simulation, name)
    return fig


def _draw(ax: Any, simulation: RateSimulation, name: str) -> None:
    mean, sd, theory = simulation.exponents[name]
    order = np.argsort(simulation.n)
    n = simulation.n[order]
    logs = np.log(getattr(simulation, name)[:, order])
    center, spread = logs.mean(axis=0), logs.std(axis=0, ddof=1)
    band = np.exp(center - spread), np.exp(center + spread)
    blue, orange = _COLORS["simulated"], _COLORS["theory"]
    label = f"simulated: $n^p$, p = {_signed(mean)} ± {sd:.2f}"
    ax.plot(n, np.exp(center), "o", color=blue, ms=5, label=label)
    ax.fill_between(n, *band, color=blue, alpha=0.2, lw=0, label="one standard deviation")
    line = np.exp(center.mean() + theory * (np.log(n) - np.log(n).mean()))
    label = f"theory: $n^{{{_fraction(theory)}}}$, p = {_signed(theory)}"
    ax.plot(n, line, color=orange, lw=2, label=label)
    ax.set(xscale="log", yscale="log", xlabel="rows n", ylabel=_NAMES[name])
    ax.tick_params(which="minor", labelleft=False)
    # Room for the legend above the curves.
    low, high = np.log(band[0].min()), np.log(band[1].max())
    ax.set_ylim(np.exp(low - 0.05 * (high - low)), np.exp(high + 0.5 * (high - low)))
    corner = "upper right" if theory < 0 else "upper left"
    ax.legend(frameon=False, fontsize="small", loc=corner)
    r, gamma = _fraction(simulation.r), _fraction(simulation.gamma)
    ax.set_title(f"r = {r}, γ = {gamma}", fontsize="medium")


def _fraction(value: float) -> str:
    """Return a number as the fraction that it is, or else with three digits."""
    fraction = Fraction(value).limit_denominator(100)
    return str(fraction) if abs(float(fraction) - value) < 1e-12 else f"{value:.3g}"


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
