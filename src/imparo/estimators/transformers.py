"""Feature maps as scikit-learn transformers."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from imparo.centers import uniform_positions
from imparo.engine import (
    Array,
    choose_engine,
    computing_on,
    parse_memory,
    told_of_failures,
)
from imparo.estimators import grids
from imparo.estimators.candidates import (
    PER_FEATURE,
    Candidate,
    candidates_of,
    forget_relevance,
    is_learned,
    learned_candidates,
)
from imparo.estimators.devices import like, on_host
from imparo.estimators.inputs import all_or_nothing, check_dtype, check_rows
from imparo.features import SplineFeatures, as_feature_rule
from imparo.kernels import Kernel, as_kernel
from imparo.persistence import persistent
from imparo.width_learning import check_learnable

# Rows that features are chosen by, where they are.
_CHOSEN_BY = 2000


def rows_to_choose_by(n: int, seed: int, allowed: Array | None = None) -> Array:
    """Return positions of up to 2000 of n rows, for features that are chosen by rows."""
    return np.sort(uniform_positions(n, _CHOSEN_BY, np.random.RandomState(seed), allowed))


def takes_sparse(features: Any) -> bool:
    """Return whether features of this kind can be had of sparse rows: all but splines."""
    return not (features == "spline" or isinstance(features, SplineFeatures))


def check_features(estimator: Any, kernel: Kernel, n_columns: int) -> None:
    """Raise where there are no features of a kernel, or none with a width for each column."""
    if isinstance(estimator.sigma, str) and estimator.sigma == PER_FEATURE:
        check_learnable(kernel)
        kernel = kernel.with_sigma((1.0,) * n_columns)
    as_feature_rule(estimator.features).check(kernel, n_columns)


def check_sparse(X: Any, features: Any) -> None:
    """Raise where rows are sparse and features need dense ones."""
    if sparse.issparse(X) and not takes_sparse(features):
        raise TypeError(
            "spline features take dense rows and got a sparse matrix; use X.toarray()"
        )


@persistent
class RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Random features of a kernel, for pipelines: rows → ψ(ω_j, x)/√m (thesis, chapter 5).

    φ(x)ᵀφ(x') tends to K(x, x') as 1/√m for "fourier" features, faster for "orthogonal" and
    "qmc" ones. With the same ``random_state``, m features without their factor 1/√m are the
    first m of any larger number.

    Cost 2nmd; "fastfood" and "sorf" nm·log d. ``fit`` reads X for its columns, for widths
    that depend on the rows (1000 of them), and for features that are chosen by rows (2000).

    Parameters
    ----------
    kernel : str or Kernel, default "gaussian"
        "gaussian", "laplacian", "matern12", "matern32", "matern52", or an object of
        :mod:`imparo.kernels` that has random features: these, ``Spline(q)`` with q > 2 and
        ``features="spline"``, and positive multiples.
    sigma : float, "median", "scale", "learned" or "per-feature", default "median"
        Width of the kernel. "learned" is one width and "per-feature" one for every column,
        both learned from 4000 rows and their outputs, see :class:`RandomFeatureRegressor`.
    n_features : int, "sqrt" or "auto", default "auto"
        m: a number, √n, or √n·log n (at most 2048).
    features : str or FeatureRule, default "fourier"
        As for :class:`RandomFeatureRegressor`.
    device : str, torch.device or None, default None
        Where features are computed if that is sooner, transfers included: "cuda", "auto" or
        "cpu"; where the rows are if None. Features of a tensor are a tensor.
    dtype : "float32", "float64" or None, default None
        Type of the features; that of X if None.
    random_state : int, RandomState or None, default None

    Attributes
    ----------
    map_ : RandomMap
        The features.
    kernel_ : Kernel
        The kernel that they stand for, with its width.
    sigma_ : float, tuple of float or None
        The width, or widths.
    relevance_, unused_
        Where widths were learned, as for :class:`RandomFeatureRegressor`.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : array of shape (d,)
        Their names, if X had string names.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from imparo import RandomFeatures
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 1))
    >>> model = make_pipeline(RandomFeatures(n_features=100, random_state=0), Ridge(1e-3))
    >>> model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.999
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        sigma: Any = "median",
        n_features: Any = "auto",
        features: Any = "fourier",
        device: Any = None,
        dtype: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.sigma = sigma
        self.n_features = n_features
        self.features = features
        self.device = device
        self.dtype = dtype
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self.features)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the features.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array of shape (n,) or (n, T), optional
            Outputs or classes, for widths that are learned; not used otherwise.

        Returns
        -------
        RandomFeatures
            Itself.
        """
        choose_engine(self.device, X)  # one that is not there is told now
        X = self._checked(X, reset=True)
        kernel, rule = as_kernel(self.kernel), as_feature_rule(self.features)
        check_features(self, kernel, X.shape[1])
        check_sparse(X, self.features)
        forget_relevance(self)
        found = candidates_of(self.sigma, kernel, lambda: X)
        if len(found) > 1:
            raise ValueError(
                f"sigma={self.sigma!r} is a grid and a transformer cannot select; give one "
                "width, or search with RandomFeatureRegressor or GridSearchCV"
            )
        sizes = grids.feature_counts(self.n_features, X.shape[0], 2**31, rule.step)
        automatic = isinstance(self.n_features, str)
        if len(sizes) > 1 and not automatic:
            raise ValueError(
                f"n_features={self.n_features!r} is a grid and a transformer cannot select; "
                "give one number"
            )
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        if kernel.needs_sigma and is_learned(self.sigma):
            found = self._learned(kernel, X, y, seed)
        self.sigma_, self.kernel_ = found[0].sigma, found[0].kernel
        rows = None
        if rule.needs_rows:
            rows = X[rows_to_choose_by(X.shape[0], seed)]
        self.map_ = rule.draw(self.kernel_, X.shape[1], int(sizes[-1]), seed, rows)
        self._n_features_out = len(self.map_)
        return self

    def _learned(self, kernel: Kernel, X: Any, y: Any, seed: int) -> list[Candidate]:
        if y is None:
            raise ValueError(
                f"sigma={self.sigma!r} learns from outputs and y is None; give y, or "
                "sigma='median'"
            )
        y = np.asarray(y)
        if y.dtype.kind not in "fiub":
            y = LabelBinarizer(neg_label=-1, pos_label=1).fit_transform(y)
        Y = check_array(y.reshape(len(y), -1), dtype=np.float64, input_name="y")
        check_consistent_length(X, Y)
        n, memory = len(Y), parse_memory(None)
        return learned_candidates(
            self, kernel, lambda part: X[part], np.arange(n), Y, np.ones(n), seed, memory
        )

    def transform(self, X: Any) -> Array:
        """Return the features ψ(ω_j, x)/√m.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (k, d)

        Returns
        -------
        array of shape (k, m)
        """
        check_is_fitted(self, "map_")
        rows = self._checked(X, reset=False)
        engine = choose_engine(self.device, X)
        with computing_on(engine), told_of_failures(engine):
            return like(self.map_.transform(rows), X)

    def _checked(self, X: Any, reset: bool) -> Any:
        X = validate_data(
            self, check_rows(on_host(X)), accept_sparse="csr", dtype=check_dtype(self.dtype),
            order="C", reset=reset,
        )  # fmt: skip
        return sparse.csr_array(X) if sparse.issparse(X) else X
