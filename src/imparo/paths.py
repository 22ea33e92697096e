"""The whole regularization path and the point chosen on it."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.persistence import persistent

_LABELS = {
    "penalty": "penalty λ",
    "components": "components",
    "iterations": "iterations t",
    "n_centers": "centers m",
    "n_features": "features m",
    "sigma": "width σ",
    "step": "step η",
    "decay": "decay θ",
    "epochs": "passes",
}

# Lines with a label each; of more, only the best one has it.
_MOST_LABELS = 8


@persistent
@dataclass(frozen=True, eq=False, repr=False)
class Path:
    """Validation error over a grid of parameters, and its best point.

    Attributes
    ----------
    errors : array
        Validation errors, one axis for each entry of ``axes``, in its order.
    axes : dict of arrays
        The grids: ``"sigma"`` where the width was selected, then ``"penalty"``,
        ``"components"`` or ``"iterations"``, then ``"n_centers"``; ``"step"``, ``"decay"``
        and ``"epochs"`` of stochastic gradients.
    metric : str
        What ``errors`` counts, such as "root mean squared error".
    method : str
        How: "leave-one-out", "hold-out", "5-fold", "generalized cross-validation".
    train_errors : array
        Errors on the rows that were fitted, same shape; NaN where they were not counted.
    tie_breaker : array
        Smaller is better among equal errors, same shape.
    losses : array or None
        Means of the loss that was minimized, on the rows held out, same shape.
    device : str
        Where it was computed, and on a device how products were summed.
    """

    errors: Array
    axes: dict[str, Array]
    metric: str
    method: str
    train_errors: Array
    tie_breaker: Array
    losses: Array | None = None
    device: str = "cpu"

    @property
    def best_index(self) -> tuple[int, ...]:
        """Position of the best point; of equal ones the simpler, by ``tie_breaker``."""
        errors = np.where(np.isnan(self.errors), np.inf, self.errors)
        smallest = errors.min()
        candidates = np.flatnonzero(errors.ravel() == smallest)
        ties = self.tie_breaker.ravel()[candidates]
        first = candidates[np.argmin(np.where(np.isnan(ties), np.inf, ties))]
        return tuple(int(i) for i in np.unravel_index(first, errors.shape))

    @property
    def best(self) -> dict[str, float]:
        """The chosen value of every parameter, and ``"error"`` there."""
        index = self.best_index
        chosen = {
            name: grid[i].item()
            for (name, grid), i in zip(self.axes.items(), index, strict=True)
        }
        return chosen | {"error": float(self.errors[index])}

    @property
    def at_edge(self) -> list[str]:
        """Names of the grids of which the best point is the first or last value."""
        pairs = zip(self.axes.items(), self.best_index, strict=True)
        return [n for (n, grid), i in pairs if len(grid) > 1 and i in (0, len(grid) - 1)]

    @property
    def penalties(self) -> Array | None:
        """The grid of penalties, or None."""
        return self.axes.get("penalty")

    @property
    def sigmas(self) -> Array | None:
        """The grid of widths, or None."""
        return self.axes.get("sigma")

    @property
    def sizes(self) -> Array | None:
        """The grid of numbers of centers or features, or None."""
        return self.axes.get("n_centers", self.axes.get("n_features"))

    @property
    def iterations(self) -> Array | None:
        """The grid of iterations, or None."""
        return self.axes.get("iterations")

    @property
    def components(self) -> Array | None:
        """The grid of numbers of components, or None."""
        return self.axes.get("components")

    def scaled(self, factor: float) -> "Path":
        """Return the path with errors times a factor.

        Parameters
        ----------
        factor : float

        Returns
        -------
        Path
        """
        errors, train_errors = factor * self.errors, factor * self.train_errors
        return replace(self, errors=errors, train_errors=train_errors)

    def __repr__(self) -> str:
        sizes = " × ".join(f"{len(grid)} {name}" for name, grid in self.axes.items())
        return f"Path({self.method}, {sizes}, best={self.best})"

    def to_dict(self) -> dict[str, Any]:
        """Return the path as plain lists and numbers, for JSON; None stands for infinity.

        Returns
        -------
        dict
        """
        found = {
            "metric": self.metric,
            "method": self.method,
            "device": self.device,
            "axes": {name: grid.tolist() for name, grid in self.axes.items()},
            "errors": _finite(self.errors.tolist()),
            "train_errors": _finite(self.train_errors.tolist()),
            "best": self.best,
        }
        return (
            found if self.losses is None else found | {"losses": _finite(self.losses.tolist())}
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw error against the level of regularization, one line for each width or step.

        A path over penalties and numbers of centers is drawn as a map of both, at the best
        width and after the best iteration of each.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Drawn on if given.

        Returns
        -------
        matplotlib Axes
        """
        plt = pyplot()
        if ax is None:
            ax = plt.subplots(figsize=(5.6, 3.9), layout="constrained")[1]
        if self.sizes is not None and self.penalties is not None:
            if len(self.sizes) > 1 and len(self.penalties) > 1:
                return self._plot_map(ax)
            if len(self.sizes) == 1 and self.iterations is None:
                return self._plot_lines(plt, ax, "penalty")
        return self._plot_lines(plt, ax, list(self.axes)[-1])

    def _plot_map(self, ax: Any) -> Any:
        """Draw the errors over penalties and sizes as colors (thesis, figure 4.4)."""
        assert self.penalties is not None
        assert self.sizes is not None
        names, index = list(self.axes), self.best_index
        errors = self.errors
        if "iterations" in names:
            errors = np.nanmin(errors, axis=names.index("iterations"))
        if "sigma" in names:
            errors = errors[index[names.index("sigma")]]
        size = "n_centers" if "n_centers" in names else "n_features"
        best = float(np.nanmin(errors))
        penalties = self.penalties
        if penalties[-1] == 0:
            penalties = np.append(penalties[:-1], penalties[-2] / 10)
        shown = np.clip(errors, best, 4 * best if best > 0 else None)
        mesh = ax.pcolormesh(self.sizes, penalties, shown, cmap="viridis_r", shading="nearest")
        ax.figure.colorbar(mesh, ax=ax, label=self.metric, extend="max")
        i, s = index[names.index("penalty")], index[names.index(size)]
        ax.plot(
            self.sizes[s], penalties[i], "*", color="crimson", ms=14, mec="white",
            label=f"chosen: {best:.4g}", clip_on=False,
        )  # fmt: skip
        ax.set(xlabel=_LABELS[size], ylabel=_LABELS["penalty"], yscale="log")
        if self.sizes[-1] > 8 * self.sizes[0]:
            ax.set_xscale("log")
        ax.legend(frameon=True, fontsize="small", loc="upper right")
        return ax

    def _line(self, place: int) -> int:
        """Return which line is the best one, where the axis at ``place`` is drawn along."""
        others = [n for i, n in enumerate(self.errors.shape) if i != place]
        index = [k for i, k in enumerate(self.best_index) if i != place]
        return int(np.ravel_multi_index(index, others)) if others else 0

    def _labels(self, place: int) -> list[str]:
        others = [axis for i, axis in enumerate(self.axes.items()) if i != place]
        if not others:
            return [self.method]
        return [
            ", ".join(_text(name, v) for (name, _), v in zip(others, values, strict=True))
            for values in product(*(grid for _, grid in others))
        ]

    def _plot_lines(self, plt: Any, ax: Any, name: str) -> Any:
        grid = self.axes[name]
        zero_at = None
        if name == "penalty" and grid[-1] == 0:
            # A logarithmic axis has no 0: it is drawn a decade below the rest.
            zero_at = grid[-2] / 10 if len(grid) > 1 else 1.0
            grid = np.append(grid[:-1], zero_at)
        place = list(self.axes).index(name)
        errors, train = (
            np.moveaxis(table, place, -1).reshape(-1, len(grid))
            for table in (self.errors, self.train_errors)
        )
        column, row = self.best_index[place], self._line(place)
        labels = self._labels(place)
        for i, color in enumerate(plt.cm.viridis(np.linspace(0.05, 0.85, len(errors)))):
            shown = len(labels) <= _MOST_LABELS or i == row
            ax.plot(
                grid, errors[i], color=color, lw=2.2 if i == row else 1.1,
                label=labels[i] if shown else None, marker="." if len(grid) < 6 else None,
            )  # fmt: skip
        if np.isfinite(train[row]).any():
            ax.plot(grid, train[row], color="0.55", ls="--", lw=1.2, label="training error")
        best = errors[row, column]
        ax.plot(grid[column], best, "o", color="crimson", ms=8, label="chosen", zorder=5)
        ax.set(xlabel=_LABELS.get(name, name), ylabel=self.metric)
        if name == "step":
            ax.set_xscale("log")
        elif name == "decay":
            ax.invert_xaxis()  # larger steps to the right
        elif name == "penalty":
            ax.set_xscale("log")
            ax.invert_xaxis()  # complexity grows to the right on every path
            if zero_at is not None:
                ax.axvline(zero_at, color="0.8", lw=1, zorder=0)
                ax.annotate("λ = 0", (zero_at, 0.02), xycoords=("data", "axes fraction"))
        elif len(grid) > 20:
            ax.set_xscale("log")
        values = np.concatenate([errors.ravel(), train[row]])
        values = values[np.isfinite(values) & (values > 0)]
        if self.metric.startswith(("root", "mean of")) and len(values):
            ax.set_yscale("log")
            ax.set_ylim(
                max(values.min(), best * 0.4) * 0.95, min(values.max(), best * 8) * 1.05
            )
            for axis_formatter in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
                axis_formatter(lambda value, _: f"{value:g}")
        ax.legend(frameon=False, fontsize="small")
        return ax


def _text(name: str, value: float) -> str:
    symbol = _LABELS.get(name, name).split()[-1]
    return f"{symbol} = {value:.3g}"


def _finite(values: Any) -> Any:
    """Return nested lists with None, which JSON has, for infinity and NaN."""
    if isinstance(values, list):
        return [_finite(value) for value in values]
    return values if np.isfinite(values) else None


def pyplot() -> Any:
    """Return matplotlib.pyplot, or raise an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib, which is not installed; pip install 'imparo[plot]'"
        ) from error
    return plt
