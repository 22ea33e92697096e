"""Exact kernel methods: KOLS, KRLS and every spectral filter (thesis, chapters 2 and 3)."""

from typing import Any, Self

from imparo.estimators.base import ExactMachine
from imparo.estimators.faces import Classifier, Regressor
from imparo.estimators.inputs import all_or_nothing
from imparo.persistence import persistent


@persistent
class KernelRegressor(Regressor, ExactMachine):
    """Exact kernel regression, its regularization selected in the same ``fit``.

    Minimises (1/n) Σ wᵢ(f(xᵢ) − yᵢ)² + λ‖f‖² over the space of the kernel (KRLS,
    thesis, section 2.4), or replaces the penalty by another spectral filter
    (chapter 3). With one factorisation it scores 100 penalties by leave-one-out.

    *Batch convention*: λ multiplies the *mean* loss, so the ridge of the normal
    equations is nλ (with weights, λΣw). scikit-learn's ``KernelRidge(alpha)`` and
    ``Ridge(alpha)`` have alpha = nλ.

    Cost n²d + 9n³ for a whole path, with 3n² numbers of memory, and n²d + n³/3 for one
    penalty, with 1.5n²; nd² + 9d³ for a linear kernel with d < n.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        "gaussian", "laplacian", "matern12", "matern32", "matern52", "linear",
        "polynomial", "spline", "precomputed"; an object of :mod:`imparo.kernels`, such
        as ``Gaussian(2.0) + Linear()``; or a function of two blocks of rows.
    sigma : float, str or array-like, default "median"
        Width of the kernel: a number; the median distance between rows; scikit-learn's
        "scale"; or a grid to select from, "auto" being seven widths around the median.
        For kernels whose width is not set already.
        "learned" is one width and "per-feature" one for every column, for the Gaussian,
        Laplacian and Matérn kernels: learned from 4000 of the rows that are fitted, by the
        gradient of their generalized cross-validation error (see :doc:`/widths`).
    filter : str or Filter, default "tikhonov"
        "tikhonov", "cutoff" (by threshold nλ), "components" (by number), "landweber",
        "nu", "cg", or an object of :mod:`imparo.filters`. Each goes by one of the next
        three parameters, and the other two must be left out.
    penalty : float, array-like or "auto", default "auto"
        λ of Tikhonov and the cut-off: a number, a grid to select from, or a grid of 100
        from the mean of K(x, x) down to 2e-12 of it. 0 is least squares without penalty
        (KOLS), by the pseudo-inverse.
    components : int, array-like or "auto", default "auto"
        Numbers of components to keep, for ``filter="components"``.
    iterations : int, array-like or "auto", default "auto"
        Numbers of iterations, for "landweber", "nu" and "cg".
    intercept : bool, default False
        Whether to fit a constant without penalty. As in the thesis and in
        ``KernelRidge``, there is none by default; turn it on for outputs far from 0.
    validation : "auto", "loo", "gcv", float, int, splitter or iterable, default "auto"
        How to select: leave-one-out in closed form (ridge nλ kept), generalized
        cross-validation, a fraction held out, a number of folds, a splitter that needs
        no groups, or pairs of arrays of rows to fit and to hold out. "auto" is "loo" for
        Tikhonov and 0.2 for other filters.
    memory : int, str, dict or None, default None
        Bytes, or "2GB", of main memory that the fit may use; half of the machine's if None.
        Of a dict, as for :class:`NystromRegressor`, the entry "host".
    device : str, torch.device or None, default None
        Where to compute: "cpu", "cuda" (all GPUs there are), "cuda:1" (one of them), "auto"
        (GPUs if there are any, and the CPU if not or, with a warning, if they are out of
        memory or fail), "torch:cpu" (PyTorch without a GPU). None is where the rows are:
        NumPy for arrays, PyTorch for tensors, whose predictions are tensors (:doc:`/gpu`).
    dtype : "float32", "float64" or None, default None
        Type to compute in; that of X if None.
    random_state : int, RandomState or None, default None
        For hold-out and folds.
    progress : bool or callable, default False
        Draw a bar, or call ``progress(done, total, description)``.

    Attributes
    ----------
    path_ : Path or None
        Errors over the grids, ``.best`` and ``.plot()``; None if nothing was selected.
    penalty_, components_, iterations_ : float, int, int or None
        The level in use; None for those that the filter does not have.
    sigma_ : float, tuple of float or None
        The width in use.
    kernel_ : Kernel
        The kernel in use.
    dual_coef_ : array of shape (n,) or (n, n_outputs)
        Coefficients of the rows of weight above 0; not there for a linear kernel.
    coef_ : array of shape (d,) or (n_outputs, d)
        Weights of the columns, for a linear kernel only.
    intercept_ : float or array of shape (n_outputs,)
        0 without ``intercept``.
    form_ : "primal" or "dual"
        Which normal equations were solved.
    X_fit_ : array, sparse matrix or None
        The rows that ``dual_coef_`` belongs to; None where predictions do not need them.
    device_ : str
        Where it was computed, and how products were summed there.
    relevance_ : array of shape (d,)
        Where widths were learned: 1/σ_k² in units of the columns' spreads, with sum 1.
    unused_ : list of str
        Where widths were learned: columns whose removal changes nothing.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : array of shape (d,)
        Their names, if X had string names.

    See Also
    --------
    KernelClassifier : The same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo import KernelRegressor
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = KernelRegressor(sigma=1.0).fit(X, y)
    >>> model.predict([[1.57]]).round(3)
    array([1.])
    >>> model.path_.errors.shape
    (100,)
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Select the free parameters and fit to all rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            The kernel matrix, (n, n), for a precomputed kernel.
        y : array of shape (n,) or (n, n_outputs)
        sample_weight : array of shape (n,), optional
            Not negative; only ratios count. At given sigma and level, a weight of k fits
            as k copies of the row do; a selection leaves out the row, not one copy of it.

        Returns
        -------
        KernelRegressor
            Itself.
        """
        return self._learn(X, y, sample_weight)


@persistent
class KernelClassifier(Classifier, ExactMachine):
    """Exact kernel classification by least squares on class codes.

    Two classes are coded ±1; more get one column of ±1 each (one against all) and the
    largest prediction wins; an indicator matrix of labels gets one column each
    (thesis, sections 2.4 and 7.3.1). Selection is by the misclassification rate, ties
    by squared error; by squared error alone with ``validation="gcv"``.

    There is no ``predict_proba``: least-squares predictions are not probabilities.
    ``sklearn.calibration.CalibratedClassifierCV`` makes calibrated ones from
    ``decision_function``.

    Parameters
    ----------
    kernel, sigma, filter, penalty, components, iterations, intercept, validation, \
memory, device, dtype, random_state, progress
        As for :class:`KernelRegressor`. Hold-out and folds are stratified where every
        class has enough rows.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, multiplied into the sample weights; "balanced" gives all
        classes the same total.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted; column numbers for an indicator matrix.
    path_, penalty_, components_, iterations_, sigma_, kernel_, form_, X_fit_, device_, \
relevance_, unused_, n_features_in_, feature_names_in_
        As for :class:`KernelRegressor`.
    dual_coef_, coef_, intercept_ : arrays
        As for :class:`KernelRegressor`, with one output for two classes, else one for
        each class or label.

    See Also
    --------
    KernelRegressor : The same for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from imparo import KernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelClassifier(random_state=0).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.97
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        sigma: Any = "median",
        filter: Any = "tikhonov",
        penalty: Any = "auto",
        components: Any = "auto",
        iterations: Any = "auto",
        intercept: bool = False,
        class_weight: Any = None,
        validation: Any = "auto",
        memory: Any = None,
        device: Any = None,
        dtype: Any = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        super().__init__(
            kernel,
            sigma=sigma,
            filter=filter,
            penalty=penalty,
            components=components,
            iterations=iterations,
            intercept=intercept,
            validation=validation,
            memory=memory,
            device=device,
            dtype=dtype,
            random_state=random_state,
            progress=progress,
        )
        self.class_weight = class_weight

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Select the free parameters and fit to all rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            The kernel matrix, (n, n), for a precomputed kernel.
        y : array of shape (n,), or indicator matrix of shape (n, n_labels)
            Numbers or strings.
        sample_weight : array of shape (n,), optional
            Not negative.

        Returns
        -------
        KernelClassifier
            Itself.
        """
        return self._learn(X, y, sample_weight)
