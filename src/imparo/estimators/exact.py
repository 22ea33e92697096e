"""Exact kernel methods: KOLS, KRLS and every spectral filter (thesis, chapters 2 and 3)."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_sample_weight

from imparo.engine import Array
from imparo.estimators.base import ExactMachine
from imparo.estimators.inputs import (
    all_or_nothing,
    check_numbers,
    scaled_outputs,
    scaled_weight,
)
from imparo.estimators.targets import encode_classes
from imparo.persistence import persistent
from imparo.scores import Misclassification, RootMeanSquare


@persistent
class KernelRegressor(RegressorMixin, ExactMachine):
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
    sigma : float, "median", "scale", "auto" or array-like, default "median"
        Width of the kernel: a number; the median distance between rows; scikit-learn's
        "scale"; or a grid to select from, "auto" being seven widths around the median.
        For kernels whose width is not set already.
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
    memory : int, str or None, default None
        Bytes, or "2GB", that the fit may use; half of the machine's if None.
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
    sigma_ : float or None
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

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
        X, y = self._validated(X, check_numbers(y), multi_output=True, y_numeric=True)
        weight = scaled_weight(sample_weight, X)
        Y, scale, shift = scaled_outputs(y, weight, bool(self.intercept), X.dtype)
        model, path = self._fit(X, Y, weight, y, RootMeanSquare())
        if path is not None:
            errors, train_errors = scale * path.errors, scale * path.train_errors
            path = replace(path, errors=errors, train_errors=train_errors)
        self.path_ = path
        intercept = (scale * model.intercept + shift).astype(X.dtype)
        self._keep(X.dtype.type(scale) * model.coef, intercept, flat=y.ndim == 1)
        return self

    def predict(self, X: Any) -> Array:
        """Return the predicted outputs. Cost knd for k rows, in blocks.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (k, d)

        Returns
        -------
        array of shape (k,) or (k, n_outputs)
        """
        F = self._decision(X)
        return F[:, 0] if np.ndim(self.intercept_) == 0 else F


@persistent
class KernelClassifier(ClassifierMixin, ExactMachine):
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
memory, dtype, random_state, progress
        As for :class:`KernelRegressor`. Hold-out and folds are stratified where every
        class has enough rows.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, multiplied into the sample weights; "balanced" gives all
        classes the same total.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted; column numbers for an indicator matrix.
    path_, penalty_, components_, iterations_, sigma_, kernel_, form_, X_fit_, \
n_features_in_, feature_names_in_
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
            dtype=dtype,
            random_state=random_state,
            progress=progress,
        )
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

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
        X, y = self._validated(X, y, multi_output=True)
        y = y.toarray() if sparse.issparse(y) else y
        Y, classes, multilabel = encode_classes(y, X.dtype)
        weight = scaled_weight(sample_weight, X)
        if self.class_weight is not None:
            weight = weight * compute_sample_weight(self.class_weight, y)
        score = Misclassification(multilabel)
        model, self.path_ = self._fit(X, Y, weight, y, score, stratify=not multilabel)
        self._keep(model.coef, model.intercept, flat=False)
        self.classes_, self._multilabel = classes, multilabel
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the least-squares predictions of the codes.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (k, d)

        Returns
        -------
        array of shape (k,) for two classes, else (k, n_classes) or (k, n_labels)
        """
        F = self._decision(X)
        return F[:, 0] if F.shape[1] == 1 and not self._multilabel else F

    def predict(self, X: Any) -> Array:
        """Return the predicted classes. Cost knd for k rows, in blocks.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (k, d)

        Returns
        -------
        array of shape (k,), or indicator matrix of shape (k, n_labels)
        """
        F = self._decision(X)
        if self._multilabel:
            return (F > 0).astype(int)
        if F.shape[1] == 1:
            return self.classes_[(F[:, 0] > 0).astype(int)]
        return self.classes_[np.argmax(F, axis=1)]
