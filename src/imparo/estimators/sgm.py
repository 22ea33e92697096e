"""Stochastic gradient methods that regularize by their steps (thesis, chapter 6)."""

from typing import Any, Self

import numpy as np
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from imparo.engine import Array
from imparo.estimators.devices import decide_on_device, like, on_host
from imparo.estimators.faces import Classifier, Regressor, shares
from imparo.estimators.inputs import all_or_nothing, check_numbers
from imparo.estimators.sgm_stream import SGMLearner
from imparo.estimators.targets import codes_of
from imparo.losses import as_loss
from imparo.persistence import persistent


@persistent
class SGMRegressor(Regressor, SGMLearner):
    """Regression with any convex loss, by stochastic gradient steps, regularized by the steps.

    w_{t+1} = w_t − η_t ℓ'₋(y_j, ⟨w_t, Φ(x_j)⟩) Φ(x_j) from w₁ = 0 with η_t = ηt^{−θ} (thesis,
    section 6.2), one row j a step. There is no penalty: small steps and few passes do its work
    (section 6.3). Two modes:

    - *SGM*: one pass, the step size chosen by hold-out among 30 that are tried side by side in
      one sweep (the default);
    - *SIGM*: many passes, their number chosen by early stopping, for instance
      ``step="nonsmooth-constant", epochs="auto"``.

    Steps are exact and still run as products of matrices (:mod:`imparo.sgm.recursion`). Cost
    of a pass on p features, C step sizes and T outputs: n(4pCT + 128p), 2npCT more for the
    average, and the features; on an expansion over all rows half of the kernel matrix for one
    pass, n²d + n²CT, all of it for every later one unless it fits into half of ``memory``.
    Nothing of size n² is stored otherwise.

    Parameters
    ----------
    kernel, sigma : str, Kernel or callable; float, str or array-like
        As for :class:`NystromRegressor`; one sweep for each width of a grid. With
        ``kernel="linear"`` the weights are those of the columns.
    loss : str or Loss, default "square"
        "square", "absolute", "epsilon_insensitive" or an object of :mod:`imparo.losses`.
    step : float, array-like, "auto" or name of a rule, default "auto"
        η. "auto" is 30 values, down five decades from 2/(κ²L) for a smooth loss, with κ² ≥
        K(x, x) and L the Lipschitz constant of ℓ', and for others from 8/κ², or 1/κ² without
        averaging, in the units of y over slopes. Or one of the eight rules of the corollaries,
        such as "smooth-constant", "nonsmooth-constant", "smooth-one-pass-decaying"
        (:func:`~imparo.theory.step_rule` lists them), with η₁ = 2/(κ²L), or 1.
    decay : float, array-like or "auto", default 0
        θ. "auto" is 30 values from 0 to 1; ``step="auto"`` is then ¼, in the units of above.
    beta : float, default 1
        Exponent of the approximation error, for rules.
    epochs : int, array-like, "auto" or "rule", default 1
        Passes over the rows. A single number is made as it is, unless ``checks_per_epoch`` is
        above 1; of a grid, or of up to 100 for "auto", the best is chosen; "rule" is what the
        rule of ``step`` prescribes.
    patience : int or None, default 5
        Judgements without improvement by a thousandth, of the error or of the loss where
        errors are counted, after which a step size is given up; so is one that cannot reach
        the best error at its pace.
    checks_per_epoch : int, default 1
        Judgements in a pass. With more than one, parts of passes are chosen from as well.
    average : bool, default True
        Whether to take the weighted average of the iterates, Ση_kw_k/Ση_k, or the last one.
        The average bears larger steps and is less noisy.
    sampling : "shuffled" or "replacement", default "shuffled"
        Every row once a pass, in a random order, or n rows drawn with replacement as in the
        thesis. Rows of a stream are shuffled among those that are read together.
    batch_size : int, default 1
        Rows of a step, whose gradients are averaged.
    features : str or FeatureRule, default "auto"
        Where w lives. "exact": in the space of the kernel, as an expansion over the rows;
        "nystrom": on ``n_features`` centers; "fourier" or another rule of
        :mod:`imparo.features`: on random features. "auto" is "exact" up to 5,000 rows, then
        "nystrom"; in a stream begun by :meth:`partial_fit`, "fourier".
    n_features : int or "auto", default "auto"
        How many centers or random features. "auto" is 6√n centers between 200 and 4,000;
        twice that of random features.
    centers : str, CenterRule or array, default "uniform"
        Which rows are centers, as for :class:`NystromRegressor`.
    intercept : bool, default False
        Whether to start from the mean of y (from 0 in a stream) and to have a feature that is
        1 everywhere.
    warm_start : bool, default False
        Whether ``fit`` goes on from the fitted model, with its features, instead of w = 0.
    validation : float, int, splitter or iterable, default 0.2
        As for :class:`NytroRegressor`. After one pass that held out rows once, the pass goes
        on over them with the step that was chosen, which makes it a pass over all rows; in all
        other cases the model is trained anew on all rows.
    memory : int, str, dict or None, default None
        Bytes of main memory, as for :class:`KernelRegressor`.
    device : str, torch.device or None, default None
        As for :class:`NystromRegressor`. Steps are taken by the CPU, one after another; a GPU
        computes features and products where that is sooner, by a measurement, and predictions.
        :meth:`partial_fit` computes on the CPU.
    dtype, random_state, progress
        As for :class:`NystromRegressor`.

    Attributes
    ----------
    path_ : Path or None
        Errors and ``losses`` on the rows held out at every step size and number of passes;
        NaN where a step size had been given up.
    step_, decay_ : float
        η and θ in use.
    epochs_ : int, float or None
        Passes made; None for a model of :meth:`partial_fit` alone.
    n_steps_ : int
        t.
    stopped_ : str or None
        Why the search ended: "passes", "patience" or "interrupted". A fit that is interrupted
        (Ctrl-C) after a first judgement keeps the best model so far, which has not seen the
        rows held out.
    features_ : "linear", "exact", "nystrom" or "random"
        Where w lives.
    coef_, dual_coef_, feature_coef_ : array
        Weights of columns, of the points ``X_fit_`` or of features: what there is by
        ``features_``.
    intercept_ : float or array
    map_ : FeatureMap or None
    device_, kernel_, sigma_, relevance_, unused_, n_features_in_, feature_names_in_
        As for :class:`NystromRegressor`.

    See Also
    --------
    SGMClassifier : The same for classes.
    NytroRegressor : Gradients of all rows at once, for the square loss.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo import SGMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(2000, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1]) + rng.standard_t(1.5, size=2000) / 10
    >>> model = SGMRegressor(loss="absolute", sigma=1.0, epochs="auto", random_state=0)
    >>> model = model.fit(X, y)  # 30 step sizes, up to 100 passes
    >>> truth = np.sin(X[:, 0]) * np.cos(X[:, 1])
    >>> bool(np.abs(model.predict(X) - truth).mean() < 0.05), model.stopped_
    (True, 'patience')
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose steps and passes, and fit to all rows.

        Parameters
        ----------
        X : array, sparse matrix, data frame, memory map or blocks
            As for :class:`NystromRegressor`.
        y : array of shape (n,) or (n, n_outputs)
        sample_weight : array of shape (n,), optional
            Not negative; only ratios count. A row of weight 2 takes a step of twice the
            length, which is not quite the same as two steps.

        Returns
        -------
        SGMRegressor
            Itself.
        """
        return self._learn(X, y, sample_weight)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go on learning: one step for every ``batch_size`` rows, in their order.

        The first call of a new model sets width, features and centers by its rows. Where
        ``step`` has several values all of them learn side by side, and predictions are those
        of the one whose losses before its steps are the least, later ones counting more. After
        ``fit``, the step that it chose goes on.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (k, d)
        y : array of shape (k,) or (k, n_outputs)
        sample_weight : array of shape (k,), optional
            Multiplies the steps.

        Returns
        -------
        SGMRegressor
            Itself.
        """
        source, y, weight = self._stream_rows(X, check_numbers(y), sample_weight, True)
        Y = np.ascontiguousarray(y.reshape(len(y), -1), source.dtype)
        self._check_outputs(Y)
        flat = np.ndim(self.intercept_) == 0 if hasattr(self, "intercept_") else y.ndim == 1
        self._keep(self._go_on(source, Y, weight), flat=flat)
        return self

    def _take_units(self, scale: float, shift: Array) -> None:
        self._units = scale, shift


def _tells_probability(self: Any) -> bool:
    return as_loss(self.loss).tells_probability


@persistent
class SGMClassifier(Classifier, SGMLearner):
    """Classification with any convex loss, by stochastic gradient steps.

    With the hinge loss, a support vector machine without a penalty: steps and passes
    regularize. Two classes are coded as ±1, more as one against all. The iteration is that of
    :class:`SGMRegressor`. Selection is by the misclassification rate, ties by the loss.

    Parameters
    ----------
    loss : str or Loss, default "hinge"
        "hinge", "logistic", "square", "exponential", "absolute", "epsilon_insensitive" or an
        object of :mod:`imparo.losses`.
    kernel, sigma, step, decay, beta, epochs, patience, checks_per_epoch, average, sampling, \
batch_size, features, n_features, centers, intercept, warm_start, validation, memory, \
device, dtype, random_state, progress
        As for :class:`SGMRegressor`. Hold-out and folds are stratified where every class has
        enough rows.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, multiplied into the sample weights.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted; column numbers for an indicator matrix.
    path_, step_, decay_, epochs_, n_steps_, stopped_, features_, coef_, dual_coef_, \
feature_coef_, intercept_, X_fit_, map_, device_, kernel_, sigma_, relevance_, unused_, \
n_features_in_, feature_names_in_
        As for :class:`SGMRegressor`.

    See Also
    --------
    SGMRegressor : The same for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from imparo import SGMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SGMClassifier(epochs="auto", random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.96
    True
    >>> model.features_, model.path_.axes["step"].shape
    ('exact', (30,))
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        sigma: Any = "median",
        loss: Any = "hinge",
        step: Any = "auto",
        decay: Any = 0.0,
        beta: float = 1.0,
        epochs: Any = 1,
        patience: int | None = 5,
        checks_per_epoch: int = 1,
        average: bool = True,
        sampling: str = "shuffled",
        batch_size: int = 1,
        features: Any = "auto",
        n_features: Any = "auto",
        centers: Any = "uniform",
        intercept: bool = False,
        class_weight: Any = None,
        warm_start: bool = False,
        validation: Any = 0.2,
        memory: Any = None,
        device: Any = None,
        dtype: Any = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        super().__init__(
            kernel,
            sigma=sigma,
            loss=loss,
            step=step,
            decay=decay,
            beta=beta,
            epochs=epochs,
            patience=patience,
            checks_per_epoch=checks_per_epoch,
            average=average,
            sampling=sampling,
            batch_size=batch_size,
            features=features,
            n_features=n_features,
            centers=centers,
            intercept=intercept,
            warm_start=warm_start,
            validation=validation,
            memory=memory,
            device=device,
            dtype=dtype,
            random_state=random_state,
            progress=progress,
        )
        self.class_weight = class_weight

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose steps and passes, and fit to all rows.

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
        SGMClassifier
            Itself.
        """
        before = getattr(self, "classes_", None) if self.warm_start else None
        self._learn(X, y, sample_weight)
        if before is not None and not np.array_equal(before, self.classes_):
            raise ValueError(
                f"the model was fitted to the classes {before.tolist()} and these are "
                f"{self.classes_.tolist()}; give rows of all of them, or warm_start=False"
            )
        return self

    @all_or_nothing
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Go on learning: one step for every ``batch_size`` rows, in their order.

        As :meth:`SGMRegressor.partial_fit`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (k, d)
        y : array of shape (k,), or indicator matrix of shape (k, n_labels)
        classes : array of shape (n_classes,), optional
            All classes that there will be; needed in the first call of a new model.
        sample_weight : array of shape (k,), optional
            Multiplies the steps.

        Returns
        -------
        SGMClassifier
            Itself.
        """
        source, y, weight = self._stream_rows(X, y, sample_weight, False)
        known = getattr(self, "classes_", None)
        labels = getattr(self, "_multilabel", None)
        Y, found, multilabel = codes_of(y, classes, known, labels, source.dtype)
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all rows and partial_fit sees some; "
                "give a dict of weights"
            )
        if self.class_weight is not None:
            weight = weight * self._weight_of_classes(y, found, multilabel)
        self._check_outputs(Y)
        self._keep(self._go_on(source, Y, weight), flat=False)
        self.classes_, self._multilabel = found, multilabel
        return self

    def _weight_of_classes(self, y: Array, classes: Array, multilabel: bool) -> Array:
        """Return the weights of rows, which need not be of all classes."""
        if multilabel:
            weight = compute_sample_weight(self.class_weight, y)
        else:
            each = compute_class_weight(self.class_weight, classes=classes, y=classes)
            weight = each[np.searchsorted(classes, np.ravel(y))]
        if not (weight >= 0).all():
            raise ValueError(f"class_weight={self.class_weight!r} must hold numbers from 0 on")
        return weight

    @available_if(_tells_probability)
    def predict_proba(self, X: Any) -> Array:
        """Return probabilities of the classes, for losses whose target function tells them.

        The logistic, exponential and square losses do (see
        :meth:`imparo.losses.Loss.probability`); with more than two classes those of one
        against all are scaled to sum to 1.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (k, d)

        Returns
        -------
        array of shape (k, n_classes), or of (k, n_labels): that of each label
        """
        check_is_fitted(self, "intercept_")
        P = as_loss(self.loss).probability(on_host(decide_on_device(self, X)))
        return like(shares(P, multilabel=self._multilabel), X)
