"""What is tried within a budget, what came of it, and the models that were found."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from imparo.engine import Array
from imparo.estimators.predicting import predict_in_blocks
from imparo.estimators.solve import Solved
from imparo.kernels import Kernel, Matern
from imparo.paths import Path
from imparo.persistence import persistent
from imparo.preparation import KernelInputs, TargetTransform
from imparo.width_learning import Learned


@dataclass(frozen=True, eq=False)
class Setting:
    """What a trial is made with, besides rows, centers and penalties.

    Attributes
    ----------
    kernel : Kernel
        With its width, if it has one.
    inputs : str
        How columns are scaled, as for :class:`~imparo.preparation.KernelInputs`.
    target : str
        How outputs are transformed: "none", "log" or "yeo-johnson".
    learned : Learned or None
        Where the widths were learned.
    """

    kernel: Kernel
    inputs: str
    target: str
    learned: Learned | None = None

    @property
    def name(self) -> str:
        """The kernel, without its width."""
        kernel = self.kernel
        name = type(kernel).__name__
        return f"{name} {int(2 * kernel.order)}/2" if isinstance(kernel, Matern) else name

    def wider(self, ratio: float) -> "Setting":
        """Return the setting with widths times a ratio."""
        kernel: Any = self.kernel
        widths = tuple(float(ratio * width) for width in np.atleast_1d(kernel.sigma))
        sigma = widths if isinstance(kernel.sigma, tuple) else widths[0]
        learned = self.learned
        kernel = replace(kernel, sigma=sigma)
        if learned is not None:
            learned = replace(learned, kernel=kernel)
        return replace(self, kernel=kernel, learned=learned)


@persistent
@dataclass(frozen=True)
class Trial:
    """One fit that was tried on the way.

    Attributes
    ----------
    method : str
        "nystrom", "nytro", "exact", or "average" of several.
    sigma : float, tuple of float or None
    penalty : float or None
        None for NYTRO, whose level is the number of iterations.
    n_centers, n_rows : int
    error : float
        Validation error; infinite where the trial did not come to an end.
    seconds : float
        Those of learning its widths included.
    note : str
        Why it was tried, and what came of it.
    kernel, inputs, target : str
        The kernel, how columns were scaled and how outputs were transformed.
    n_held : int
        Held-out rows that the error was counted on; errors on other rows do not compare.
    """

    method: str
    sigma: float | tuple[float, ...] | None
    penalty: float | None
    n_centers: int
    n_rows: int
    error: float
    seconds: float
    note: str
    kernel: str = ""
    inputs: str = ""
    target: str = "none"
    n_held: int = 0

    def __str__(self) -> str:
        sigma = "–" if self.sigma is None else _width(self.sigma)
        penalty = "–" if self.penalty is None else f"{self.penalty:.1e}"
        kernel = self.kernel + (f", {self.inputs}" if self.inputs else "")
        kernel += "" if self.target == "none" else f", {self.target}"
        return (
            f"{self.method:8} {kernel:<22} σ = {sigma:<11} λ = {penalty:<8} "
            f"m = {self.n_centers:<6,} n = {self.n_rows:<9,} error {self.error:<9.4g} "
            f"{self.seconds:7.2f} s  {self.note}"
        )


def _width(sigma: float | tuple[float, ...]) -> str:
    if isinstance(sigma, tuple):
        # Columns that are left out have widths beyond all others.
        used = [s for s in sigma if s < 1e5 * min(sigma)]
        return f"{min(used):.2g}…{max(used):.2g}"
    return f"{sigma:.4g}"


@dataclass(frozen=True, eq=False)
class Best:
    """A model that was found, complete: nothing that comes later can harm it.

    Attributes
    ----------
    error : float
    model : Solved
    path : Path or None
    method : str
    n_rows : int
    setting : Setting
    values : dict
        Fitted attributes.
    target : TargetTransform or None
        With its residuals.
    held : array of shape (n, T) or None
        Predictions of held-out rows, in the units of the scaled outputs; NaN elsewhere.
    """

    error: float
    model: Solved
    path: Path | None
    method: str
    n_rows: int
    setting: Setting
    values: dict[str, Any]
    target: TargetTransform | None
    held: Array | None


@persistent
@dataclass(frozen=True, eq=False)
class Member:
    """One of the models that predictions are an average of.

    Attributes
    ----------
    kernel : Kernel
    centers : array or sparse matrix of shape (p, d)
    coef : array of shape (p, T)
    intercept : array of shape (T,)
    inputs : KernelInputs or None
        What is done to the columns before.
    target : TargetTransform or None
        What is done to the outputs after.
    share : float
        Its weight in the average.
    """

    kernel: Kernel
    centers: Any
    coef: Array
    intercept: Array
    inputs: KernelInputs | None
    target: TargetTransform | None
    share: float

    def decision(self, X: Any, memory: int) -> Array:
        """Return the (n, T) matrix of predictions for rows that were prepared."""
        F = predict_in_blocks(
            X, lambda rows: self.kernel(rows, self.centers), self.coef, memory
        )
        F += np.asarray(self.intercept, F.dtype)
        return F if self.target is None else self.target.mean(F)
