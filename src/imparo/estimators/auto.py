"""The model that a budget of seconds and bytes allows: computations tailored to the data."""

from dataclasses import replace
from typing import Any, Self

from imparo.estimators.auto_base import AutoMachine
from imparo.estimators.faces import Classifier, Regressor
from imparo.estimators.inputs import all_or_nothing
from imparo.persistence import persistent


@persistent
class AutoRegressor(Regressor, AutoMachine):
    """Kernel regression within a budget: method, σ, λ and m chosen for you.

    Starts with a few centers on a few rows and doubles the number of centers, sharpening
    the width and the penalty on the way, while the validation error falls and the budget
    lasts ("anytime learning", thesis, section 4.2). Small data end with an exact fit, data
    too large for the budget with as many rows as it allows. The best model so far is always
    at hand: running out of time, or Ctrl-C, returns it.

    Scale the columns of X before, for instance with ``StandardScaler``.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        As for :class:`NystromRegressor`.
    budget : float, default 60
        Seconds that ``fit`` may take. The trial in hand is given up when they are over.
    sigma : "auto", "median", float or array-like, default "auto"
        "auto" searches for the width around the median distance; a grid is searched as it is.
    centers : str, CenterRule or array-like, default "uniform"
        As for :class:`NystromRegressor`.
    intercept : bool, default True
        Whether to fit a constant without penalty.
    memory : int, str or None, default None
        Bytes, or "2GB", that the fit may use; half of the machine's if None.
    dtype : "float32", "float64" or None, default None
        Type to compute in; that of X if None.
    random_state : int, RandomState or None, default None
        For hold-out and centers. How far a fit comes depends on the machine all the same.
    progress : bool or callable, default False
        Draw a bar of the budget, or call ``progress(done, total, description)``.

    Attributes
    ----------
    record_ : list of Trial
        What was tried: method, width, penalty, centers, rows, error, seconds.
    stopped_ : str
        Why it ended.
    method_ : "nystrom", "nytro" or "exact"
        The method in use.
    path_ : Path
        Errors over the grids of the trial in use.
    penalty_, n_centers_, sigma_, kernel_, centers_, dual_coef_, intercept_, \
n_features_in_, feature_names_in_
        As for :class:`NystromRegressor`; ``penalty_`` is None with "nytro".
    iterations_ : int or None
        The number of iterations, with "nytro".

    See Also
    --------
    NystromRegressor : One method, with all its parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo import AutoRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(1000, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1])
    >>> model = AutoRegressor(budget=2, random_state=0).fit(X, y)
    >>> bool(np.abs(model.predict(X) - y).max() < 0.05), len(model.record_) > 0
    (True, True)
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the best model within the budget.

        Parameters
        ----------
        X : array, sparse matrix, data frame, memory map or blocks
            As for :class:`NystromRegressor`.
        y : array of shape (n,) or (n, n_outputs)
        sample_weight : array of shape (n,), optional
            Not negative; only ratios count.

        Returns
        -------
        AutoRegressor
            Itself.
        """
        return self._learn(X, y, sample_weight)

    def _in_units(self, scale: float) -> None:
        self.record_ = [replace(trial, error=scale * trial.error) for trial in self.record_]


@persistent
class AutoClassifier(Classifier, AutoMachine):
    """Kernel classification within a budget: method, σ, λ and m chosen for you.

    The search is that of :class:`AutoRegressor`, judged by the misclassification rate.

    Parameters
    ----------
    kernel, budget, sigma, centers, intercept, memory, dtype, random_state, progress
        As for :class:`AutoRegressor`.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, multiplied into the sample weights.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted; column numbers for an indicator matrix.
    record_, stopped_, method_, path_, penalty_, n_centers_, sigma_, kernel_, centers_, \
dual_coef_, intercept_, n_features_in_, feature_names_in_
        As for :class:`AutoRegressor`.

    See Also
    --------
    AutoRegressor : The same for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from imparo import AutoClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = AutoClassifier(budget=3, random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.96
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        budget: float = 60.0,
        sigma: Any = "auto",
        centers: Any = "uniform",
        intercept: bool = True,
        class_weight: Any = None,
        memory: Any = None,
        dtype: Any = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        super().__init__(
            kernel,
            budget=budget,
            sigma=sigma,
            centers=centers,
            intercept=intercept,
            memory=memory,
            dtype=dtype,
            random_state=random_state,
            progress=progress,
        )
        self.class_weight = class_weight

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the best model within the budget.

        Parameters
        ----------
        X : array, sparse matrix, data frame, memory map or blocks
            As for :class:`NystromRegressor`.
        y : array of shape (n,), or indicator matrix of shape (n, n_labels)
            Numbers or strings.
        sample_weight : array of shape (n,), optional
            Not negative.

        Returns
        -------
        AutoClassifier
            Itself.
        """
        return self._learn(X, y, sample_weight)
