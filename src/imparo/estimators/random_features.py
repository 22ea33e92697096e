"""Learning with random features, the whole (λ, m) path (thesis, chapter 5)."""

from typing import Any, Self

from imparo.estimators.faces import Classifier, Regressor
from imparo.estimators.inputs import all_or_nothing
from imparo.estimators.random_base import RandomFeatureMachine
from imparo.persistence import persistent


class _Growing(RandomFeatureMachine):
    """The method that both faces have: more features for a fitted model."""

    def grow(self, n_features: int, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add features to a fitted model, without redoing the old ones.

        The statistics of the first features are kept; only products with the new ones are
        computed, and the path is judged anew over the old sizes and the new one. The result
        is that of a ``fit`` with more features.

        Parameters
        ----------
        n_features : int
            How many there shall be in all.
        X, y, sample_weight
            The rows that the model was fitted to: a model keeps statistics, not rows.

        Returns
        -------
        estimator
            Itself.
        """
        return self._grow_to(n_features, X, y, sample_weight)


@persistent
class RandomFeatureRegressor(Regressor, _Growing):
    """Kernel regression on m random features, λ and m selected in the same ``fit``.

    Minimises (1/n) Σ wᵢ(φ(xᵢ)ᵀα − yᵢ)² + λ‖α‖² for features φ = ψ(ω_j, ·)/√m drawn at
    random so that φ(x)ᵀφ(x') tends to the kernel (thesis, chapter 5): RF-KRLS. Unlike
    centers, features do not depend on the rows. Rows are read once, in blocks; the n × m
    matrix is never stored. From m × m statistics every pair of L penalties and S numbers of
    features is then judged, and the best one fitted to all rows.

    *Batch convention*: λ multiplies the *mean* loss, so the ridge is nλ (with weights,
    λΣw).

    Cost 2nmd + nm² for the pass, and m³/3 for every value of mλ (L + S − 1 of them by
    default, where penalties and sizes go by doublings; L·S at most). Memory about (10 + V)m²
    numbers for V folds, whatever n.

    Parameters
    ----------
    kernel : str or Kernel, default "gaussian"
        "gaussian", "laplacian", "matern12", "matern32", "matern52", or an object of
        :mod:`imparo.kernels` that has random features: these, ``Spline(q)`` with q > 2 and
        ``features="spline"``, and positive multiples.
    sigma : float, str or array-like, default "median"
        Width of the kernel: a number; the median distance between 1000 rows; scikit-learn's
        "scale" on those; or a grid to select from, one pass for each width.
        "learned" is one width and "per-feature" one for every column, for the Gaussian,
        Laplacian and Matérn kernels: learned from 4000 of the rows that are fitted, by the
        gradient of their generalized cross-validation error (see :doc:`/widths`).
        "fastfood" and "sorf" have one width only.
    penalty : float, array-like, "auto" or "n_features", default "auto"
        λ: a number, a grid, or K(x, x) and its halves down to 2e-12 of it (8e-6 in float32).
        "n_features" is λ = 1/m (times K(x, x)): the number of features is then the only
        regularization parameter, and all sizes cost one factorisation.
    n_features : int, array-like, "sqrt" or "auto", default "auto"
        m: a number, a grid, √n, or doublings up to √n·log n (at most 2048); the last two
        within what ``memory`` allows.
        ``n_features="sqrt", penalty="n_features"`` is the choice that suffices for the
        optimal rate when nothing is known about the regression function.
    features : str or FeatureRule, default "fourier"
        How features are drawn: "fourier", "orthogonal", "fastfood", "sorf", "qmc" (quasi
        Monte Carlo), "leverage" (draw many, keep by leverage score), "spline", or an object
        of :mod:`imparo.features`.
    intercept : bool, default False
        Whether to fit a constant without penalty; turn it on for outputs far from 0.
    validation : float, int, "gcv", splitter or iterable, default 0.2
        How to select: a fraction held out, a number of folds, generalized
        cross-validation, a splitter that needs no groups, or pairs of arrays of rows to fit
        and to hold out. Folds cost no further pass: their statistics are subtracted.
    memory, device, cluster, precision
        As for :class:`NystromRegressor`.
    dtype : "float32", "float64" or None, default None
        Type of the features; that of X if None. Statistics are float64.
    random_state : int, RandomState or None, default None
        For features, hold-out and folds. The same seed gives the same features, and the
        first of them whatever the number.
    progress : bool or callable, default False
        Draw a bar, or call ``progress(done, total, description)``.

    Attributes
    ----------
    path_ : Path or None
        Errors over the grids, ``.best``, ``.sizes`` and ``.plot()``; None if nothing was
        selected.
    penalty_, n_features_, sigma_ : float, int, float (or tuple of float) or None
        The point in use.
    device_ : str
        Where it was computed, and how products were summed there.
    kernel_ : Kernel
        The kernel that the features stand for.
    map_ : RandomMap
        The features in use: predictions are ``map_.transform(X) @ feature_coef_ + intercept_``.
    feature_coef_ : array of shape (m,) or (m, n_outputs)
        Coefficients of the features.
    intercept_ : float or array of shape (n_outputs,)
        0 without ``intercept``.
    statistics_ : object
        What :meth:`grow` starts from: about (V + 1)·m² numbers, and the part that each row
        had; on the device until it is pickled or saved. Set it to None for a smaller file.
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
    NystromRegressor : Centers instead, which adapt to the rows and need fewer of them.
    RandomFeatures : The features alone, as a transformer.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo import RandomFeatureRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(2000, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1])
    >>> model = RandomFeatureRegressor(n_features=[50, 100, 200], random_state=0).fit(X, y)
    >>> model.n_features_, model.path_.errors.shape
    (200, (40, 3))
    >>> bool(np.abs(model.predict(X) - y).max() < 0.05)
    True
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Select the free parameters and fit to all rows.

        Parameters
        ----------
        X : array, sparse matrix, data frame, memory map or blocks
            Rows, shape (n, d). Blocks, where ``y`` is left out, are a function that returns
            an iterator over pairs (X, y) or triples (X, y, sample_weight), or a list of
            them; outputs and weights are kept in memory, rows are not.
        y : array of shape (n,) or (n, n_outputs)
        sample_weight : array of shape (n,), optional
            Not negative; only ratios count.

        Returns
        -------
        RandomFeatureRegressor
            Itself.
        """
        return self._learn(X, y, sample_weight)


@persistent
class RandomFeatureClassifier(Classifier, _Growing):
    """Classification on random features, by least squares on class codes; λ and m selected.

    Classes are coded as by :class:`KernelClassifier`. Selection is by the
    misclassification rate, ties by squared error; by squared error alone with
    ``validation="gcv"``.

    Parameters
    ----------
    kernel, sigma, penalty, n_features, features, intercept, validation, memory, device, \
cluster, precision, dtype, random_state, progress
        As for :class:`RandomFeatureRegressor`. Hold-out and folds are stratified where every
        class has enough rows.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, multiplied into the sample weights; "balanced" gives all
        classes the same total.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted; column numbers for an indicator matrix.
    path_, penalty_, n_features_, sigma_, device_, kernel_, map_, statistics_, \
n_features_in_, relevance_, unused_, feature_names_in_
        As for :class:`RandomFeatureRegressor`; ``path_.train_errors`` are not counted.
    feature_coef_, intercept_ : arrays
        With one output for two classes, else one for each class or label.

    See Also
    --------
    RandomFeatureRegressor : The same for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from imparo import RandomFeatureClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = RandomFeatureClassifier(n_features=512, random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.97
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        sigma: Any = "median",
        penalty: Any = "auto",
        n_features: Any = "auto",
        features: Any = "fourier",
        intercept: bool = False,
        class_weight: Any = None,
        validation: Any = 0.2,
        memory: Any = None,
        device: Any = None,
        cluster: Any = None,
        precision: Any = None,
        dtype: Any = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        super().__init__(
            kernel,
            sigma=sigma,
            penalty=penalty,
            n_features=n_features,
            features=features,
            intercept=intercept,
            validation=validation,
            memory=memory,
            device=device,
            cluster=cluster,
            precision=precision,
            dtype=dtype,
            random_state=random_state,
            progress=progress,
        )
        self.class_weight = class_weight

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Select the free parameters and fit to all rows.

        Parameters
        ----------
        X : array, sparse matrix, data frame, memory map or blocks
            As for :class:`RandomFeatureRegressor`.
        y : array of shape (n,), or indicator matrix of shape (n, n_labels)
            Numbers or strings.
        sample_weight : array of shape (n,), optional
            Not negative.

        Returns
        -------
        RandomFeatureClassifier
            Itself.
        """
        return self._learn(X, y, sample_weight)
