"""The model that a budget of seconds and bytes allows: computations tailored to the data."""

from typing import Any, Self

from imparo.estimators.auto_base import AutoMachine
from imparo.estimators.faces import Classifier, Regressor
from imparo.estimators.inputs import all_or_nothing
from imparo.persistence import persistent
from imparo.preparation import target_candidates


@persistent
class AutoRegressor(Regressor, AutoMachine):
    """Kernel regression within a budget: columns, kernel, widths, λ and m chosen for you.

    Takes any table: columns of numbers, categories and dates, with gaps, are made fit for
    kernels (:class:`~imparo.preparation.KernelInputs`). Kernels, a width for every column,
    ways to scale the columns and to transform the outputs are compared on a part of the
    rows. Then, for as long as the budget lasts, whatever promises the most a second is done
    next: more centers, widths from more rows, another kernel, other widths ("anytime
    learning", thesis, section 4.2). Small data end with an exact fit, data too large for the
    budget with as many rows as it allows. Where their average is better on held-out rows,
    several models are averaged. The best model so far is always at hand: running out of
    time, or Ctrl-C, returns it.

    With folds, widths are learned in every fold before one for each column is preferred to
    one for all.

    Parameters
    ----------
    kernel : "auto", str, Kernel or callable, default "auto"
        "auto" compares the Gaussian, Matérn 1/2, Matérn 3/2 and Laplacian kernels where widths
        are learned, and is the Gaussian with a width that is given; others as for
        :class:`NystromRegressor`.
    budget : float, default 60
        Seconds that ``fit`` may take. The trial in hand is given up when they are over.
    sigma : float, str or array-like, default "auto"
        "auto" compares one width with one for every column; "learned" is one that is
        learned, "per-feature" one for every column; "median", "scale", a number and a grid
        as for :class:`NystromRegressor`. Numbers are in the units of X, and columns are then
        left as they are.
    inputs : "auto", "standard", "robust", "range", "quantile", "none" or None, default "auto"
        How columns of numbers are scaled. "auto" compares all but "robust"; None takes rows of
        numbers as they are, such as those that were prepared before. Centers that are given
        are centers of prepared columns, unless this is "auto".
    target : "auto", "none", "log" or "yeo-johnson", default "auto"
        How outputs are transformed for the fit. Predictions are means of the outputs as they
        were. "auto" compares those that suit skewed outputs.
    validation : "auto", "last", float, int, splitter or iterable, default "auto"
        What judges: "last" is the last fifth of the rows, others as for
        :class:`NystromRegressor`. "auto" is five folds up to 10,000 rows (50,000 for classes)
        and a fifth of the rows above, drawn at random, or "last" if neighbouring rows are
        alike: then rows drawn at random would be easier than those to come.
    centers : str, CenterRule or array-like, default "uniform"
        As for :class:`NystromRegressor`.
    intercept : bool, default True
        Whether to fit a constant without penalty.
    memory : int, str, dict or None, default None
        Bytes, or "2GB", that the fit may use; half of the machine's if None. Of a dict, as
        for :class:`NystromRegressor`, the entry "host".
    device : str, torch.device or None, default None
        As for :class:`NystromRegressor`: where every trial is computed.
    cluster : Client, str or None, default None
        As for :class:`NystromRegressor`: fits to all rows are made by the workers of a cluster
        of Dask, those to samples here. Columns hold numbers, and are prepared in one way.
    dtype : "float32", "float64" or None, default None
        Type to compute in; that of X if None.
    random_state : int, RandomState or None, default None
        For hold-out and centers. How far a fit comes depends on the machine all the same.
    progress : bool or callable, default False
        Draw a bar of the budget, or call ``progress(done, total, description)``.

    Attributes
    ----------
    record_ : list of Trial
        What was tried: method, kernel, widths, penalty, centers, rows, error, seconds.
    stopped_ : str
        Why it ended.
    validation_ : str
        What has judged.
    members_ : list of Member
        The models that predictions are an average of; mostly one. The attributes below are
        those of the best.
    inputs_ : KernelInputs or None
        How columns are prepared; ``inputs_.pipeline_`` is an ordinary scikit-learn pipeline,
        and ``inputs_.notes_`` tells what was done in sentences.
    target_ : "none", "log" or "yeo-johnson"
        How outputs are transformed.
    relevance_ : array of shape (d,)
        Where widths were learned: 1/σ² of the columns of X in units of their spreads, with
        sum 1.
    unused_ : list of str
        Where widths were learned: columns whose removal changes nothing.
    method_ : "nystrom", "nytro" or "exact"
        The method in use.
    device_ : str
        Where it was computed.
    path_ : Path
        Errors over the grids of the trial in use, of transformed outputs if they are.
    penalty_, n_centers_, sigma_, kernel_, centers_, dual_coef_, intercept_, \
n_features_in_, feature_names_in_
        As for :class:`NystromRegressor`, of prepared columns; ``penalty_`` is None with
        "nytro".
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

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        budget: float = 60.0,
        sigma: Any = "auto",
        inputs: Any = "auto",
        target: Any = "auto",
        validation: Any = "auto",
        centers: Any = "uniform",
        intercept: bool = True,
        memory: Any = None,
        device: Any = None,
        cluster: Any = None,
        dtype: Any = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        super().__init__(
            kernel,
            budget=budget,
            sigma=sigma,
            inputs=inputs,
            validation=validation,
            centers=centers,
            intercept=intercept,
            memory=memory,
            device=device,
            cluster=cluster,
            dtype=dtype,
            random_state=random_state,
            progress=progress,
        )
        self.target = target

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the best model within the budget.

        Parameters
        ----------
        X : table, sparse matrix, memory map or blocks
            A data frame or array of numbers, text and dates, with gaps or without; or as
            for :class:`NystromRegressor`.
        y : array of shape (n,) or (n, n_outputs)
        sample_weight : array of shape (n,), optional
            Not negative; only ratios count.

        Returns
        -------
        AutoRegressor
            Itself.
        """
        return self._learn(X, y, sample_weight)

    def _take_units(self, scale: float, shift: Any) -> None:
        self._units = scale, shift

    def _targets(self, y: Any) -> list[str]:
        """Return the transforms of the outputs that are tried."""
        return target_candidates(y) if self.target == "auto" else [self.target]

    def _check_parameters(self, table: Any, y: Any) -> None:
        super()._check_parameters(table, y)
        known = ("auto", "none", "log", "yeo-johnson")
        if not (isinstance(self.target, str) and self.target in known):
            words = ", ".join(repr(word) for word in known)
            raise ValueError(f"target={self.target!r} must be one of {words}")
        if self.target == "log" and not (y > 0).all():
            raise ValueError(
                f"target='log' needs outputs above 0 and y goes down to {y.min():.3g}; give "
                "target='yeo-johnson'"
            )


@persistent
class AutoClassifier(Classifier, AutoMachine):
    """Kernel classification within a budget: method, σ, λ and m chosen for you.

    The search is that of :class:`AutoRegressor`, judged by the misclassification rate.

    Parameters
    ----------
    kernel, budget, sigma, inputs, validation, centers, intercept, memory, device, \
cluster, dtype, \
random_state, progress
        As for :class:`AutoRegressor`.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, multiplied into the sample weights.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted; column numbers for an indicator matrix.
    record_, stopped_, validation_, members_, inputs_, relevance_, unused_, method_, \
device_, path_, penalty_, n_centers_, sigma_, kernel_, centers_, dual_coef_, intercept_, \
n_features_in_, feature_names_in_
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
        kernel: Any = "auto",
        *,
        budget: float = 60.0,
        sigma: Any = "auto",
        inputs: Any = "auto",
        validation: Any = "auto",
        centers: Any = "uniform",
        intercept: bool = True,
        class_weight: Any = None,
        memory: Any = None,
        device: Any = None,
        cluster: Any = None,
        dtype: Any = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        super().__init__(
            kernel,
            budget=budget,
            sigma=sigma,
            inputs=inputs,
            validation=validation,
            centers=centers,
            intercept=intercept,
            memory=memory,
            device=device,
            cluster=cluster,
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
        X : table, sparse matrix, memory map or blocks
            A data frame or array of numbers, text and dates, with gaps or without; or as
            for :class:`NystromRegressor`.
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
