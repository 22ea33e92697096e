"""Bias and variance along a path, measured by learning from many parts of the rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from imparo.engine import Array, default_engine, parse_memory
from imparo.estimators.exact import KernelRegressor
from imparo.estimators.problems import Rows, make_problem
from imparo.filters import as_filter
from imparo.paths import pyplot
from imparo.selection import shrinkage


@dataclass(frozen=True, eq=False)
class BiasVariance:
    """The two parts of the expected error at every penalty (thesis, section 1.8).

    Attributes
    ----------
    penalties : array of shape (L,)
    bias : array of shape (L,)
        Mean squared distance of the average model to the outputs: squared bias plus
        noise, which cannot be told apart without knowing the truth.
    variance : array of shape (L,)
        Mean squared distance of the models to their average.
    """

    penalties: Array
    bias: Array
    variance: Array

    @property
    def total(self) -> Array:
        """The expected squared error, bias plus variance."""
        return self.bias + self.variance

    def plot(self, ax: Any = None, chosen: float | None = None) -> Any:
        """Draw both parts against the penalty, complexity growing to the right.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        chosen : float, optional
            A penalty to mark.

        Returns
        -------
        matplotlib Axes
        """
        if ax is None:
            ax = pyplot().subplots(figsize=(5.6, 3.9), layout="constrained")[1]
        top = 6 * float(self.total.min())
        ax.fill_between(self.penalties, 0, self.bias, color="#3b6fb6", alpha=0.35, lw=0)
        ax.fill_between(
            self.penalties, self.bias, self.total, color="#d9792b", alpha=0.35, lw=0
        )
        ax.plot(self.penalties, self.total, color="0.2", lw=1.6, label="expected squared error")
        ax.plot(self.penalties, self.bias, color="#3b6fb6", lw=1.6, label="bias² + noise")
        ax.plot(self.penalties, self.variance, color="#d9792b", lw=1.6, label="variance")
        if chosen is not None:
            ax.axvline(chosen, color="crimson", ls=":", lw=1.5, label="chosen penalty")
        ax.set(xscale="log", xlabel="penalty λ", ylabel="squared error", ylim=(0, top))
        ax.invert_xaxis()
        ax.legend(frameon=False, fontsize="small")
        return ax


def bias_variance(
    model: KernelRegressor,
    X: Any,
    y: Array,
    X_test: Any,
    y_test: Array,
    *,
    repeats: int = 20,
    share: float = 0.5,
    random_state: Any = 0,
) -> BiasVariance:
    """Return bias and variance of a fitted model's kernel at every penalty of its path.

    Fits the whole path to ``repeats`` random parts of the rows and compares the
    predictions on the test rows. Cost that of ``repeats`` fits of share·n rows.

    Parameters
    ----------
    model : KernelRegressor
        Fitted, with a path over penalties and one output.
    X, y : arrays of shape (n, d) and (n,)
        Rows to learn from.
    X_test, y_test : arrays of shape (k, d) and (k,)
        Rows to judge on.
    repeats : int
    share : float
        Part of the rows in each fit.
    random_state : int, RandomState or None

    Returns
    -------
    BiasVariance

    Examples
    --------
    >>> import numpy as np
    >>> from imparo import KernelRegressor
    >>> from imparo.estimators.decomposition import bias_variance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (200, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=200)
    >>> model = KernelRegressor(sigma=1.0).fit(X[:150], y[:150])
    >>> parts = bias_variance(model, X[:150], y[:150], X[150:], y[150:])
    >>> bool(parts.variance[0] < parts.variance[-1]), bool(parts.bias[0] > parts.bias[-1])
    (True, True)
    """
    if model.path_ is None or model.path_.penalties is None:
        raise ValueError(
            "bias and variance are measured along a path of penalties, and this model has "
            "none; fit it with penalty='auto' or a grid"
        )
    rng, filter = check_random_state(random_state), as_filter(model.filter)
    X, X_test = (A if sparse.issparse(A) else np.asarray(A, np.float64) for A in (X, X_test))
    y, y_test = np.asarray(y, np.float64), np.asarray(y_test, np.float64)
    penalties, size = model.path_.penalties, max(2, round(share * len(y)))
    predictions = []
    for _ in range(repeats):
        part = rng.choice(len(y), size, replace=False)
        rows = Rows(X[part], y[part, None], np.ones(size))
        problem = make_problem(rows, model.kernel_, model.intercept, parse_memory(model.memory))
        levels = penalties * problem.total
        G, G_null, _, _ = shrinkage(filter, problem.values, levels, problem.floor)
        B, B_null = problem.evaluation(X_test)
        F = default_engine().product(B, G * problem.components)
        predictions.append(F + B_null * G_null + problem.offset)
    mean = np.mean(predictions, axis=0)
    return BiasVariance(
        penalties,
        bias=np.mean((mean - y_test[:, None]) ** 2, axis=0),
        variance=np.mean((np.array(predictions) - mean) ** 2, axis=(0, 1)),
    )
