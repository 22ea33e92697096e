"""What to fit to some data, and what it will take: the advice itself."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.conditions import Prescription
from imparo.engine import Array
from imparo.estimators import (
    KernelClassifier,
    KernelRegressor,
    NystromClassifier,
    NystromRegressor,
    NytroClassifier,
    NytroRegressor,
    RandomFeatureClassifier,
    RandomFeatureRegressor,
)
from imparo.estimators.grids import halves
from imparo.kernels import Kernel
from imparo.theory.comparison import Comparison, compare
from imparo.theory.costs import Cost, as_bytes, as_time
from imparo.theory.dimensions import Curve, Dimensions
from imparo.theory.options import Option
from imparo.theory.regimes import plot_regimes
from imparo.theory.signal import Signal

REGRESSION, CLASSIFICATION = "regression", "classification"
_CLASSES = {
    ("exact", REGRESSION): KernelRegressor,
    ("exact", CLASSIFICATION): KernelClassifier,
    ("nystrom", REGRESSION): NystromRegressor,
    ("nystrom", CLASSIFICATION): NystromClassifier,
    ("nytro", REGRESSION): NytroRegressor,
    ("nytro", CLASSIFICATION): NytroClassifier,
    ("random features", REGRESSION): RandomFeatureRegressor,
    ("random features", CLASSIFICATION): RandomFeatureClassifier,
}


@dataclass(frozen=True)
class Advice:
    """What a sample of the data tells about the fit to make, and what it will take.

    Attributes
    ----------
    task : {"regression", "classification"}
    n, d : int
        Rows and columns.
    kernel : Kernel
        With its width.
    dimensions : Dimensions
        d*, d_eff and d̃ at λ*.
    signal : Signal
        Noise, norm, SNR and λ*.
    curve : Curve
        d_eff over penalties.
    decay : float
        γ: 𝒩(λ) ≈ Qλ^{−γ}.
    regime : str
        The method that theory holds to be the fastest, of "nytro", "nkrls", "krls" and
        "early stopping".
    needed : int
        Centers that the data call for: those that were enough on the sample, times the
        growth of the effective dimension.
    method : str
        The method to take: "exact", "nystrom", "nytro" or "random features".
    size : int
        m: centers or features; n for the exact method.
    penalty : float
        λ to expect; the fit selects it.
    iterations : int
        t to expect of gradient descent with step 1/κ²: κ²/λ*. The ν-method and conjugate
        gradients take about its root.
    cost : Cost
        Seconds and bytes of the fit, whole path and selection included.
    reason : str
        Why this method.
    options : tuple of Option
        All methods, with their costs.
    prescriptions : tuple of Prescription
        What the theorems ask for, with their conditions checked.
    notes : tuple of str
        What to know about the data.
    """

    task: str
    n: int
    d: int
    kernel: Kernel
    dimensions: Dimensions
    signal: Signal
    curve: Curve
    decay: float
    regime: str
    needed: int
    method: str
    size: int
    penalty: float
    iterations: int
    cost: Cost
    reason: str
    options: tuple[Option, ...]
    prescriptions: tuple[Prescription, ...]
    notes: tuple[str, ...]
    budget: float
    memory: int

    def estimator(self, **settings: Any) -> Any:
        """Return the estimator that is recommended, not fitted.

        Parameters
        ----------
        **settings
            Other values of its parameters, such as ``random_state``.

        Returns
        -------
        estimator
        """
        given: dict[str, Any] = {"kernel": self.kernel, "intercept": True}
        given["memory"] = self.memory
        if self.method == "random features":
            given["n_features"] = halves_of_even(self.size)
        elif self.method == "nystrom":
            given["n_centers"] = halves(self.size)
        elif self.method == "nytro":
            given["n_centers"] = self.size
        return _CLASSES[self.method, self.task](**(given | settings))

    def compare(self, X: Any, y: Any, **settings: Any) -> Comparison:
        """Make the fit, and compare what it took with what was predicted.

        Parameters
        ----------
        X, y
            The rows that the advice is for.
        **settings
            As for :meth:`estimator`.

        Returns
        -------
        Comparison
        """
        model = self.estimator(**settings)
        return compare(self.cost, lambda: model.fit(X, y))

    def plot(self, ax: Any = None) -> Any:
        """Draw the plane of SNR and d̃ with its four regions, and where the data are.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        found, n = self.dimensions.maximal, self.n
        penalty, kappa = self.signal.penalty, self.dimensions.bound * self.dimensions.penalty
        snr = tuple(kappa / v for v in (penalty.value, penalty.high, penalty.low))
        dimension = (found.value, found.low, found.high)
        return plot_regimes(max(n, 100), here=(snr, dimension, "you are here"), ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists and numbers, for JSON.

        Returns
        -------
        dict
        """
        estimates = {
            "full_dimension": self.dimensions.full,
            "effective_dimension": self.dimensions.effective,
            "maximal_dimension": self.dimensions.maximal,
            "noise_variance": self.signal.noise,
            "squared_norm": self.signal.norm,
            "snr": self.signal.snr,
        }
        return {
            "task": self.task,
            "n": self.n,
            "d": self.d,
            "kernel": repr(self.kernel),
            "method": self.method,
            "size": self.size,
            "needed": self.needed,
            "penalty": self.penalty,
            "iterations": self.iterations,
            "seconds": self.cost.seconds,
            "bytes": self.cost.bytes,
            "reason": self.reason,
            "regime": self.regime,
            "decay": self.decay,
            "explained": self.signal.explained,
            "estimates": {
                name: {"value": e.value, "low": e.low, "high": e.high, "source": e.source}
                for name, e in estimates.items()
            },
            "options": [
                {"method": o.method, "size": o.size, "seconds": o.cost.seconds,
                 "bytes": o.cost.bytes, "fits": o.fits, "enough": o.enough}
                for o in self.options
            ],
            "prescriptions": [p.to_dict() for p in self.prescriptions],
            "notes": list(self.notes),
        }  # fmt: skip

    def __str__(self) -> str:
        what = "rows" if self.method == "exact" else _UNITS[self.method]
        lines = [
            f"{self.task}, {self.n:,} rows, {self.d:,} columns, {self.kernel!r}",
            f"take {self.method} with {self.size:,} {what}: about {as_time(self.cost.seconds)} "
            f"and {as_bytes(self.cost.bytes)}; {self.reason}",
            f"expect λ near {self.penalty:.2g} (or {self.iterations:,} steps of gradient "
            "descent)",
            f"theory's fastest method here: {self.regime}",
            f"SNR {self.signal.snr}",
            f"noise variance {self.signal.noise}",
            str(self.dimensions),
        ]
        return "\n".join([*lines, *self.notes])


_UNITS = {"nystrom": "centers", "nytro": "centers", "random features": "features"}


def halves_of_even(size: int) -> Array:
    """Return an even number and its halves as far as they are even."""
    found = [size]
    while found[-1] % 4 == 0 and found[-1] >= 32:
        found.append(found[-1] // 2)
    return np.array(found[::-1])
