"""Figure 7.1: Bayes decision boundaries, standard and rebalanced, of two Gaussians."""

from typing import Any

import numpy as np

from imparo import NystromRegressor
from imparo.engine import Array
from imparo.experiments.shared.account import Account
from imparo.experiments.shared.data import Data
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.results import Results
from imparo.reports.drawing import Theme

_GAMMAS = (0.5, 0.6, 0.75, 0.9)
_MEANS = np.array([[-1.0, 0.0], [1.0, 0.0]])  # of the classes 1 and −1
_DEVIATIONS = np.array([1.0, 0.3])
_LEFT, _RIGHT, _TOP = -3.2, 2.6, 2.3


def cases(quick: bool) -> list[Case]:
    """Return a case for each share of the first class."""
    rows = 4000 if quick else 40_000
    return [
        Case(f"γ = {gamma}", 1 if quick else 5, {"gamma": gamma, "rows": rows})
        for gamma in _GAMMAS
    ]


def trial(case: Case, seed: int, data: Data) -> dict[str, Any]:
    """Compare least squares, exact and learned, with the two rules of Bayes."""
    gamma, rng = case.settings["gamma"], np.random.default_rng(seed)
    asked = _draw(0.5, 5000, rng)[0]
    rules = {"standard": circle(gamma), "rebalanced": circle(0.5)}
    inside = {name: _answers(asked, *rule) for name, rule in rules.items()}
    weights = {1: 1 / gamma, -1: 1 / (1 - gamma)}
    found: dict[str, Any] = {name: list(rule) for name, rule in rules.items()}
    values = _exact(asked, gamma, weights) | _learned(case, rng, asked, weights)
    for name, f in values.items():
        rule = "standard" if "plain" in name else "rebalanced"
        found[name] = float(np.mean(np.sign(f) == inside[rule]))
    return found


def circle(gamma: float) -> tuple[float, float]:
    """Return where the boundary, a circle about a point of the first axis, is: centre, radius.

    Class −1 is answered inside: |x−μ₋₁|²/2σ₋₁² − |x−μ₁|²/2σ₁² < ln((1−γ)/γ) + 2 ln(σ₁/σ₋₁).
    """
    p, q = 1 / _DEVIATIONS**2
    a, b = _MEANS[:, 0]
    centre = (q * b - p * a) / (q - p)
    level = 2 * np.log((1 - gamma) / gamma * q / p)
    return float(centre), float(np.sqrt((level + p * a**2 - q * b**2) / (q - p) + centre**2))


def _answers(X: Array, centre: float, radius: float) -> Array:
    return np.where(np.hypot(X[:, 0] - centre, X[:, 1]) < radius, -1.0, 1.0)


def _densities(X: Array) -> Array:
    """Return ρ(x|1) and ρ(x|−1), side by side."""
    squares = ((X[:, None, :] - _MEANS) ** 2).sum(axis=2)
    found: Array = np.exp(-squares / (2 * _DEVIATIONS**2)) / (2 * np.pi * _DEVIATIONS**2)
    return found


def _exact(X: Array, gamma: float, weights: dict[int, float]) -> dict[str, Array]:
    """Return what least squares tends to: plain, weighted and recoded."""
    joint = _densities(X) * (gamma, 1 - gamma)
    first, second = (joint / joint.sum(axis=1, keepdims=True)).T
    up, down = weights[1] * first, weights[-1] * second
    return {
        "exact plain": first - second,
        "exact weighted": (up - down) / (up + down),
        "exact recoded": up - down,
    }


def _learned(
    case: Case, rng: np.random.Generator, asked: Array, weights: dict[int, float]
) -> dict[str, Array]:
    """Return what is learned from a sample: plain, weighted and recoded."""
    X, y = _draw(case.settings["gamma"], case.settings["rows"], rng)
    weight = np.where(y > 0, weights[1], weights[-1])
    model = NystromRegressor(sigma=0.5, penalty=1e-6, n_centers=100, random_state=0)
    return {
        "learned plain": model.fit(X, y).predict(asked),
        "learned weighted": model.fit(X, y, sample_weight=weight).predict(asked),
        "learned recoded": model.fit(X, y * weight).predict(asked),
    }


def _draw(gamma: float, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return n points and their classes."""
    k = (rng.random(n) >= gamma).astype(int)
    return _MEANS[k] + _DEVIATIONS[k, None] * rng.normal(size=(n, 2)), 1.0 - 2 * k


def tell(results: Results) -> Account:
    """Draw the boundaries, and check what the text says of them."""
    account = Account()
    gammas = {case: results.cases[case].settings["gamma"] for case in results}
    standard = {gammas[case]: results.mean(case, "standard") for case in results}
    rebalanced = np.array([results.mean(case, "rebalanced") for case in results])
    if 0.5 in standard:
        apart = float(np.abs(standard[0.5] - rebalanced[0]).max())
        account.check(
            "the boundaries coincide at γ = 0.5", apart < 1e-12,
            f"both are circles of radius {rebalanced[0, 1]:.3f} about "
            f"({rebalanced[0, 0]:.3f}, 0)",
        )  # fmt: skip
    account.check(
        "the rebalanced boundary does not depend on γ",
        float(np.ptp(rebalanced, axis=0).max()) < 1e-12,
        f"its radius is {rebalanced[0, 1]:.3f} for γ = {', '.join(map(str, standard))}",
    )
    radii = [radius for _, (_, radius) in sorted(standard.items())]
    account.check(
        "the standard boundary separates from it as γ grows",
        bool(np.all(np.diff(radii) < 0)),
        "its radius is " + ", ".join(f"{radius:.3f}" for radius in radii),
    )
    for how, least in (("exact", 1.0), ("learned", 0.97)):
        shares = {
            name: min(results.mean(case, f"{how} {name}") for case in results)
            for name in ("plain", "weighted", "recoded")
        }
        account.check(
            f"weighted and recoded least squares ({how}) recover the rebalanced rule",
            min(shares.values()) >= least,
            f"answers agree with it at {100 * shares['weighted']:.1f} % of points (weighted) "
            f"and {100 * shares['recoded']:.1f} % (recoded), or more, and without either "
            f"with the standard rule at {100 * shares['plain']:.1f} %",
        )
    account.picture(
        "Boundaries", "Standard (white) and rebalanced (black) boundaries over the density of "
        "the points; class −1 is answered inside.", lambda figure, theme: _draw_panels(
            figure, theme, list(gammas.values())),
        "Four panels: the white circle shrinks from the black one as γ grows from 0.5 to 0.9.",
        size=(6.4, 5.4),
    )  # fmt: skip
    account.notes.append(
        "The weights are w(1) = 1/γ and w(−1) = 1/(1−γ), and the codes w(1) and −w(−1): the "
        "printed w(−1) = γ − w(1) is a slip, being negative. The thesis names the least and "
        "the largest γ; those between are ours. σ is taken for a standard deviation."
    )
    return account


def _draw_panels(figure: Any, theme: Theme, gammas: list[float]) -> None:
    """Draw a panel for each γ."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Circle

    # Both white and black must be seen on it, in either theme.
    shades = LinearSegmentedColormap.from_list("density", ["#5b7fa6", "#c98f4e", "#f2c063"])
    axis = np.linspace(_LEFT, _RIGHT, 200), np.linspace(-_TOP, _TOP, 160)
    x, y = np.meshgrid(*axis)
    densities = _densities(np.column_stack([x.ravel(), y.ravel()]))
    panels = figure.subplots(2, -(-len(gammas) // 2), squeeze=False, sharex=True, sharey=True)
    for ax, gamma in zip(panels.ravel(), gammas, strict=False):
        shown = (densities @ (gamma, 1 - gamma)).reshape(x.shape)
        ax.pcolormesh(x, y, np.sqrt(shown), cmap=shades, rasterized=True)
        for colour, width, (centre, radius) in (
            ("black", 2.0, circle(0.5)), ("white", 1.6, circle(gamma)),
        ):  # fmt: skip
            ax.add_patch(Circle((centre, 0), radius, fill=False, ls=(0, (5, 3)), ec=colour,
                                lw=width))  # fmt: skip
        ax.set(title=f"γ = {gamma}", aspect="equal")
        ax.grid(False)
    for ax in panels.ravel()[len(gammas) :]:
        ax.set_visible(False)


EXPERIMENT = Experiment(
    name="boundaries",
    chapter=7,
    place="Figure 7.1",
    title="What imbalance does to the boundary, and rebalancing undoes",
    finding="The Bayes boundary moves towards the rarer class as γ = ρ(y = 1) grows from 0.5; "
    "the rebalanced one stays where it is.",
    setting="Gaussians about (−1, 0) with σ = 1 and about (1, 0) with σ = 0.3; γ from 0.5 to "
    "0.9.",
    cases=cases,
    trial=trial,
    tell=tell,
    minutes=0.5,
)
