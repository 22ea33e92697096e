"""Nyström KRLS with the whole (λ, m) path: "less is more" (thesis, section 4.2)."""

from typing import Any, Self

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from imparo.engine import Array
from imparo.estimators.devices import decide_on_device, like, on_host
from imparo.estimators.faces import Classifier, Regressor, shares
from imparo.estimators.inputs import all_or_nothing
from imparo.estimators.lazy import lazy
from imparo.estimators.nystrom_base import NystromMachine
from imparo.losses import Logistic
from imparo.persistence import persistent


class _Growing(NystromMachine):
    """The method that both faces have: more centers for a fitted model."""

    def grow(self, n_centers: int, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add centers to a fitted model, without redoing the old ones.

        The first centers, their factor and their statistics are kept; only products with
        the new columns are computed, and the path is judged anew over the old sizes and
        the new one. The result is that of a ``fit`` with more centers.

        Parameters
        ----------
        n_centers : int
            How many there shall be in all.
        X, y, sample_weight
            The rows that the model was fitted to: a model keeps statistics, not rows.

        Returns
        -------
        estimator
            Itself.
        """
        return self._grow_to(n_centers, X, y, sample_weight)


@persistent
class NystromRegressor(Regressor, _Growing):
    """Kernel regression on m centers, λ and m selected in the same ``fit``.

    Minimises (1/n) Σ wᵢ(f(xᵢ) − yᵢ)² + λ‖f‖² over functions Σ αⱼK(x̃ⱼ, ·) of m centers
    x̃ⱼ (thesis, section 4.2): α = (K_nmᵀK_nm + nλK_mm)⁺K_nmᵀy. Rows are read once, in
    blocks; the n × m matrix is never stored. From m × m statistics every pair of L
    penalties and S numbers of centers is then judged, and the best one fitted to all rows.

    *Batch convention*: λ multiplies the *mean* loss, so the ridge is nλ (with weights,
    λΣw).

    Cost 2nmd + nm² for the pass (2nm² where λ is so small or the centers so close that
    rows must be whitened one by one), and Lm³/3 at most for all penalties and sizes. Memory
    about (10 + V)m² numbers for V folds, whatever n.

    With many centers that is too much, and ``solver="cg"`` solves the same equations by
    preconditioned conjugate gradients (FALKON; Rudi, Carratino and Rosasco, 2017), which need
    products with K_nm only. Cost 2nmd + 4nmT for every penalty and iteration (2nmd once where
    K_nm fits into memory), and m³ for every penalty; memory m² numbers of the type of X.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        As for :class:`KernelRegressor`; not "precomputed".
    sigma : float, str or array-like, default "median"
        Width of the kernel: a number; the median distance between 1000 rows; scikit-learn's
        "scale" on those; or a grid to select from, one pass for each width.
        "learned" is one width and "per-feature" one for every column, for the Gaussian,
        Laplacian and Matérn kernels: learned from 4000 of the rows that are fitted, by the
        gradient of their generalized cross-validation error (see :doc:`/widths`).
    penalty : float, array-like, "auto" or "n_centers", default "auto"
        λ: a number, a grid, or 41 values from the mean of K(x, x) down to 2e-12 of it; 13
        with ``solver="cg"``, which takes none that is 0.
        "n_centers" is λ = log(m)/m (times the mean of K(x, x)): the number of centers is
        then the only regularization parameter.
    n_centers : int, array-like or "auto", default "auto"
        m: a number, a grid, or √n·log n (at most 2000), or all centers that are given, and
        its halves. More than there are rows to choose from are cut to that.
    centers : str, CenterRule or array-like of shape (m, d), default "uniform"
        How centers are chosen: "uniform", "leverage" (approximate leverage scores),
        "recursive" (leverage scores by a sequence of penalties), "pivoted" (randomly
        pivoted Cholesky), an object of :mod:`imparo.centers`, or the centers themselves.
        All but "uniform" look at 20,000 rows at most. With a hold-out, centers come from
        the rows that are fitted.
    intercept : bool, default False
        Whether to fit a constant without penalty; turn it on for outputs far from 0.
    solver : "auto", "direct" or "cg", default "auto"
        "direct": m × m statistics, which give every penalty and size at once. "cg":
        preconditioned conjugate gradients, penalty after penalty from the largest on, each
        starting where the one before has ended. "auto" is "cg" where ``n_centers`` is given
        and statistics of so many do not fit into ``memory``, or where one number of 3,000 or
        more is given and statistics would take 1.5 times as long. "gcv" is there for
        "direct" only.
    iterations : int or "auto", default "auto"
        Iterations of "cg" for each penalty, at most. "auto" is 100. They end before where the
        residual is small, and with held-out rows where their error has ceased to fall.
    validation : float, int, "gcv", splitter or iterable, default 0.2
        How to select: a fraction held out, a number of folds, generalized
        cross-validation, a splitter that needs no groups, or pairs of arrays of rows to fit
        and to hold out. Folds cost no further pass: their statistics are subtracted.
    memory : int, str, dict or None, default None
        Bytes, or "2GB", that the fit may use where it is computed: on the GPU with
        ``device="cuda"``. None is half of the machine's, or 90 % of what is free on a GPU.
        ``{"host": "8GB", "device": "60GB"}`` is both.
    device : str, torch.device or None, default None
        Where to compute: "cpu", "cuda" (all GPUs there are), "cuda:1" (one of them), "auto"
        (GPUs if there are any, and the CPU if not or, with a warning, if they are out of
        memory or fail), "torch:cpu" (PyTorch without a GPU). None is where the rows are:
        NumPy for arrays, PyTorch for tensors, whose predictions are tensors (:doc:`/gpu`).
    cluster : Client, str or None, default None
        Whose workers make the passes over the rows: a client of ``dask.distributed``, or the
        address of a scheduler. None is the client that is current in Dask for collections of
        Dask, and nobody for other rows. ``device`` and ``memory`` are then those of each
        worker, and ``memory`` that of this machine, too (:doc:`/cluster`).
    precision : "float64", "float32", "split" or None, default None
        How products of features are summed on a device: in float64; in float32, some
        thousand rows at a time before they are added in float64; in exact slices of float32.
        None takes float64 where a measurement, once a process, finds the device good at it,
        else float32 for float32 rows and slices for others. With "cg" products are float64
        unless "float32" is given, which is up to twice as fast where that is enough. Of no
        effect with NumPy.
    dtype : "float32", "float64" or None, default None
        Type of the kernel matrix; that of X if None. Statistics are float64.
    random_state : int, RandomState or None, default None
        For centers, hold-out and folds. The same seed gives the same centers, and the
        first of them whatever the number.
    progress : bool or callable, default False
        Draw a bar, or call ``progress(done, total, description)``.

    Attributes
    ----------
    path_ : Path or None
        Errors over the grids, ``.best``, ``.sizes`` and ``.plot()``; None if nothing was
        selected. With "cg" its last axis is "iterations": the error after each of them.
    penalty_, n_centers_, sigma_ : float, int, float (or tuple of float) or None
        The point in use.
    solver_ : "direct" or "cg"
        What solved.
    iterations_ : int or None
        With "cg", the iterations of the final fit, which starts from the model that was
        judged the best; None with "direct".
    device_ : str
        Where it was computed, and how products were summed there.
    kernel_ : Kernel
        The kernel in use.
    centers_ : array or sparse matrix of shape (p, d)
        The centers in use, those dropped left out.
    center_rows_ : array of shape (m,) or None
        The rows that were chosen, in order; None for centers that were given.
    center_weights_ : array of shape (m,)
        1/(N·P(x)) of a center drawn with probability P(x) from N rows; 1 for uniform ones.
    dropped_centers_ : list of Dropped
        Centers that add nothing to those before them, with the reason; none with "cg".
    dual_coef_ : array of shape (p,) or (p, n_outputs)
        Coefficients of the centers in use.
    intercept_ : float or array of shape (n_outputs,)
        0 without ``intercept``.
    statistics_ : object
        What :meth:`grow` starts from: about (V + 1)·m² numbers, and the part that each row
        had; on the device until it is pickled or saved. Set it to None for a smaller file.
        None with "cg".
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
    KernelRegressor : All rows as centers, for up to some ten thousand of them.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo import NystromRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(2000, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1])
    >>> model = NystromRegressor(n_centers=[25, 50, 100], random_state=0).fit(X, y)
    >>> model.n_centers_, model.path_.errors.shape
    (100, (41, 3))
    >>> bool(np.abs(model.predict(X) - y).max() < 0.01)
    True

    By conjugate gradients, the error is known after every iteration at every penalty:

    >>> model = NystromRegressor(n_centers=100, solver="cg", random_state=0).fit(X, y)
    >>> list(model.path_.axes), model.path_.errors.shape
    (['penalty', 'n_centers', 'iterations'], (13, 1, 100))
    >>> bool(np.abs(model.predict(X) - y).max() < 0.01)
    True
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Select the free parameters and fit to all rows.

        Parameters
        ----------
        X : array, sparse matrix, data frame, memory map, collection of Dask or blocks
            Rows, shape (n, d). Blocks, where ``y`` is left out, are a function that returns
            an iterator over pairs (X, y) or triples (X, y, sample_weight), or a list of
            them, which may be delayed by Dask; outputs and weights are kept in memory, rows
            are not.
        y : array of shape (n,) or (n, n_outputs)
        sample_weight : array of shape (n,), optional
            Not negative; only ratios count.

        Returns
        -------
        NystromRegressor
            Itself.
        """
        return self._learn(X, y, sample_weight)


def _is_logistic(model: Any) -> bool:
    if model.loss != "logistic":
        raise AttributeError(
            f"loss={model.loss!r} tells no probabilities; use loss='logistic' for predict_proba"
        )
    return True


@persistent
class NystromClassifier(Classifier, _Growing):
    """Nyström classification by least squares or logistic loss, λ and m selected in ``fit``.

    Classes are coded as by :class:`KernelClassifier`. Selection is by the
    misclassification rate, ties by squared error, or by the logistic loss; by squared error
    alone with ``validation="gcv"``.

    The logistic loss, (1/n) Σ wᵢ log(1 + exp(−yᵢf(xᵢ))) + λ‖f‖² for every class against the
    others, is minimised by at most 12 Newton steps for each penalty, each by conjugate
    gradients as ``solver="cg"`` makes them: as many passes over the rows as there are
    iterations in all, and the same memory.

    Parameters
    ----------
    kernel, sigma, penalty, n_centers, centers, intercept, solver, iterations, validation, \
memory, device, cluster, precision, dtype, random_state, progress
        As for :class:`NystromRegressor`. Hold-out and folds are stratified where every
        class has enough rows. With ``loss="logistic"`` ``solver="direct"`` is not there,
        ``iterations`` is for each Newton step, 20 at most if "auto", and of the automatic
        penalties those below 1e-8 of the largest are left out.
    loss : "square" or "logistic", default "square"
        Least squares on class codes, or the logistic loss, which has :meth:`predict_proba`.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, multiplied into the sample weights; "balanced" gives all
        classes the same total.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted; column numbers for an indicator matrix.
    path_, penalty_, n_centers_, sigma_, solver_, iterations_, device_, kernel_, centers_, \
center_rows_, center_weights_, dropped_centers_, statistics_, relevance_, unused_, \
n_features_in_, feature_names_in_
        As for :class:`NystromRegressor`; ``path_.train_errors`` are not counted. With
        ``loss="logistic"`` the path is over penalties and sizes only, and ``iterations_`` are
        the passes over the rows that the final fit took.
    dual_coef_, intercept_ : arrays
        With one output for two classes, else one for each class or label.

    See Also
    --------
    NystromRegressor : The same for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from imparo import NystromClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NystromClassifier(n_centers=300, random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.97
    True

    Probabilities, by the logistic loss:

    >>> model = NystromClassifier(
    ...     n_centers=100, loss="logistic", penalty=[1e-3, 1e-4, 1e-5], random_state=0
    ... ).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9, model.predict_proba(X[:5]).shape
    (True, (5, 10))
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        sigma: Any = "median",
        penalty: Any = "auto",
        n_centers: Any = "auto",
        centers: Any = "uniform",
        loss: str = "square",
        intercept: bool = False,
        class_weight: Any = None,
        solver: Any = "auto",
        iterations: Any = "auto",
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
            n_centers=n_centers,
            centers=centers,
            intercept=intercept,
            solver=solver,
            iterations=iterations,
            validation=validation,
            memory=memory,
            device=device,
            cluster=cluster,
            precision=precision,
            dtype=dtype,
            random_state=random_state,
            progress=progress,
        )
        self.loss = loss
        self.class_weight = class_weight

    def _loss_name(self) -> str:
        if self.loss not in ("square", "logistic"):
            raise ValueError(f"loss={self.loss!r} is not known; give 'square' or 'logistic'")
        return self.loss

    @available_if(_is_logistic)
    @lazy
    def predict_proba(self, X: Any) -> Array:
        """Return probabilities of the classes, with ``loss="logistic"``.

        With more than two classes those of one against all are scaled to sum to 1.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (k, d)

        Returns
        -------
        array of shape (k, n_classes), or of (k, n_labels): that of each label
        """
        check_is_fitted(self, "intercept_")
        P = Logistic().probability(on_host(decide_on_device(self, X)))
        return like(shares(P, multilabel=self._multilabel), X)

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Select the free parameters and fit to all rows.

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
        NystromClassifier
            Itself.
        """
        return self._learn(X, y, sample_weight)
