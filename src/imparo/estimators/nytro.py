"""NYTRO: Nyström features and early-stopped gradient descent (thesis, section 4.3)."""

from typing import Any, Self

from imparo.estimators.faces import Classifier, Regressor
from imparo.estimators.inputs import all_or_nothing
from imparo.estimators.nytro_base import NytroMachine
from imparo.persistence import persistent


@persistent
class NytroRegressor(Regressor, NytroMachine):
    """Kernel regression on m centers, regularized by the number of iterations.

    Gradient descent on the empirical error over functions Σ αⱼK(x̃ⱼ, ·) of m centers,
    β_t = β_{t−1} − (γ/n) Φᵀ(Φβ_{t−1} − y) with Φ = K_nmT⁻¹, α = T⁻¹β (thesis, section
    4.3), stopped where the validation error is best: t iterations regularize as a penalty
    of 1/(γt) does. The error is known after every iteration, and any earlier iterate can
    be had afterwards (:meth:`at`).

    The cheapest of three forms is chosen by counting operations and bytes: K_nm stored
    (cost 2nmd + 4nmt), K_nm recomputed in blocks (cost t(2nmd + 4nm), no memory), or
    ΦᵀΦ (cost 2nmd + 2nm² + 2m²t).

    Parameters
    ----------
    kernel, sigma : str, Kernel or callable; float, str or array-like
        As for :class:`NystromRegressor`; one walk for each width of a grid.
    filter : "nu", "landweber", "cg" or Iterative, default "nu"
        The ν-method, which is gradient descent with momentum and needs about √t of its
        iterations; gradient descent as in the thesis; or conjugate gradients, which need
        fewer still.
    iterations : int, array-like or "auto", default "auto"
        Numbers of iterations to choose from: all up to 500 for gradient descent, 200 for
        the ν-method and 100 for conjugate gradients, less where the error has ceased to
        fall. A single number is done without validation.
    step : "spectral", "bound" or float, default "spectral"
        γ: 1 over the largest eigenvalue of ΦᵀΦ/n, the thesis' 1/max K(x, x), which is
        safe and slower, or a number.
    tolerance : float or None, default None
        None takes the iterate with the least validation error. A number takes the first
        whose error is not below (1 − tolerance) times that of ``window`` iterations
        before: the thesis' rule, with 0.05 there. ``iterations_`` is then where it stopped,
        and ``path_.best`` still the least error.
    window : int, default 10
        See ``tolerance``.
    n_centers, centers, intercept, memory, device, cluster, dtype, random_state, progress
        As for :class:`NystromRegressor`; of a grid of numbers of centers, the largest is
        taken.
    validation : float, int, splitter or iterable, default 0.2
        A fraction held out, a number of folds, a splitter that needs no groups, or pairs
        of arrays of rows to fit and to hold out.

    Attributes
    ----------
    path_ : Path or None
        Errors after every iteration.
    iterations_ : int
        The number in use.
    form_ : "gram", "stored" or "recomputed"
        What was iterated with.
    n_centers_, sigma_, device_, kernel_, centers_, center_rows_, center_weights_, \
dropped_centers_, dual_coef_, intercept_, relevance_, unused_, n_features_in_, \
feature_names_in_
        As for :class:`NystromRegressor`.

    See Also
    --------
    NystromRegressor : A penalty in the place of early stopping, with its whole path; with
        ``solver="cg"`` and several penalties, both.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo import NytroRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(2000, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=2000)
    >>> model = NytroRegressor(sigma=1.0, n_centers=100, filter="nu", random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    >>> model.at(1).iterations_, len(model.path_.iterations) >= model.iterations_
    (1, True)
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the number of iterations and fit to all rows.

        Parameters
        ----------
        X : array, sparse matrix, data frame, memory map or blocks
            As for :class:`NystromRegressor`.
        y : array of shape (n,) or (n, n_outputs)
        sample_weight : array of shape (n,), optional
            Not negative; only ratios count.

        Returns
        -------
        NytroRegressor
            Itself.
        """
        return self._learn(X, y, sample_weight)


@persistent
class NytroClassifier(Classifier, NytroMachine):
    """Classification on m centers, regularized by the number of iterations.

    Classes are coded as by :class:`KernelClassifier`, and the iteration is that of
    :class:`NytroRegressor`. Selection is by the misclassification rate, ties by squared
    error.

    Parameters
    ----------
    kernel, sigma, filter, iterations, step, tolerance, window, n_centers, centers, \
intercept, validation, memory, device, cluster, dtype, random_state, progress
        As for :class:`NytroRegressor`. Hold-out and folds are stratified where every
        class has enough rows.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, multiplied into the sample weights.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted; column numbers for an indicator matrix.
    path_, iterations_, form_, n_centers_, sigma_, device_, kernel_, centers_, center_rows_, \
center_weights_, dropped_centers_, dual_coef_, intercept_, relevance_, unused_, \
n_features_in_, \
feature_names_in_
        As for :class:`NytroRegressor`.

    See Also
    --------
    NytroRegressor : The same for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from imparo import NytroClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NytroClassifier(filter="cg", n_centers=300, random_state=0)
    >>> model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.96
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        sigma: Any = "median",
        filter: Any = "nu",
        iterations: Any = "auto",
        step: Any = "spectral",
        tolerance: float | None = None,
        window: int = 10,
        n_centers: Any = "auto",
        centers: Any = "uniform",
        intercept: bool = False,
        class_weight: Any = None,
        validation: Any = 0.2,
        memory: Any = None,
        device: Any = None,
        cluster: Any = None,
        dtype: Any = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        super().__init__(
            kernel,
            sigma=sigma,
            filter=filter,
            iterations=iterations,
            step=step,
            tolerance=tolerance,
            window=window,
            n_centers=n_centers,
            centers=centers,
            intercept=intercept,
            validation=validation,
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
        """Choose the number of iterations and fit to all rows.

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
        NytroClassifier
            Itself.
        """
        return self._learn(X, y, sample_weight)
