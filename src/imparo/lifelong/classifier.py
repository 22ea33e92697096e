"""Incremental classification: new classes in constant time, rare ones not ignored."""

import copy
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from imparo.engine import Array
from imparo.estimators.devices import like
from imparo.estimators.inputs import all_or_nothing
from imparo.lifelong.classifier_base import Assessment, ClassLearner
from imparo.lifelong.labels import labels_of
from imparo.persistence import persistent

# Examples that can be counted: up to here every whole number is one of float64, too.
_MOST = 2**53


def _holds_out(model: "IncrementalClassifier") -> bool:
    if model.holdout is None:
        raise AttributeError(
            "confidence is calibrated on examples that are held out, and holdout is None; "
            "give holdout=6, or use decision_function"
        )
    return True


@persistent
class IncrementalClassifier(ClassifierMixin, ClassLearner):
    """Classes that may appear at any time, learned in constant time (thesis, chapter 7).

    Regularized least squares on 0/1 codes, one column for each class: W̃ = A⁻¹b with
    A = ΦᵀΦ + λI, kept current by :class:`~imparo.lifelong.recursion.Recursion`. The answer is
    argmax_t (k/k_t)^α (W̃ᵀφ)_t, where k_t of k examples were of class t: *recoding* gives rare
    classes a say, and costs nothing, since it is applied when predicting. A class never seen
    adds a column of zeros. An example costs 7D²/2 + 4DT flops for each λ, and the memory
    depends on D, T and ``holdout_size`` alone.

    λ and α are selected while learning: every sixth example of a class is held out, as long
    as there is room, and the candidates are judged on them now and then. What is held out and
    has to make room is learned after all.

    Parameters
    ----------
    features : None, FeatureMap or transformer, default None
        φ, as for :class:`~imparo.RecursiveRegressor`.
    penalty : float, array of float or "auto", default "auto"
        λ of the *sum* of losses; several are learned with side by side, each at the cost of
        one. "auto": three, relative to the power of ten next to the squared norm of the first
        row's features.
    recoding : float or "auto", default "auto"
        α from 0, none (the naive classifier), to 1, classes count as if they were equally
        frequent. "auto": up to 0.7, as far as the frequent classes do not lose more than the
        rare ones are worth (:func:`imparo.lifelong.recoding.choose_alpha`). A number may be
        changed at any time, and the next answer goes by it.
    holdout : int or None, default 6
        Every so many-th example of a class is held out; None: all are learned, nothing is
        selected and confidence is not known.
    holdout_size : int, default 1000
        Examples held out at most, over all classes.
    unknown_below : float, default 0
        ``predict`` answers ``unknown_label`` where the confidence is below.
    unknown_label : default "unknown"
    forgetting, forgetting_kind, intercept, drift, device, dtype
        As for :class:`~imparo.RecursiveRegressor`.
    random_state : int, default 0
        Seed of what is kept of the examples held out.

    Attributes
    ----------
    classes_ : array of shape (T,)
        All labels so far, sorted where they can be.
    n_seen_ : int
        Examples so far.
    counts_ : array of shape (T,)
        k_t, those that were learned of each class, faded with them.
    shown_ : array of shape (T,)
        Examples so far of each class, those that are held out among them; nothing fades.
    n_held_out_ : int
        Examples that are held out now.
    penalty_, recoding_ : float
        λ and α in use.
    penalties_ : array
        All λ that are learned with.
    temperature_ : float
        β of the confidence, softmax(β·scores/T^α); 10 before there are examples to judge by.
    prequential_error_ : float
        Share of examples that were answered wrongly before they were learned, in the time
        since the error last changed; of examples up to the last multiple of 32 that were
        learned.
    drifts_ : list of Drift
        When the error rose, and what was done.
    features_, n_features_in_, feature_names_in_
        As for :class:`~imparo.RecursiveRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo import IncrementalClassifier
    >>> rng = np.random.default_rng(0)
    >>> place = {"mug": [0, 0], "ball": [4, 0], "sponge": [0, 4]}
    >>> def show(label):
    ...     return place[label] + rng.normal(size=2)
    >>> robot = IncrementalClassifier()
    >>> for _ in range(200):
    ...     for label in ("mug", "ball"):
    ...         robot = robot.learn_one(show(label), label)
    >>> for _ in range(3):  # a new object, shown three times
    ...     robot = robot.learn_one(show("sponge"), "sponge")
    >>> robot.predict_one([0, 4]), robot.predict_one([4, 0]), robot.classes_.tolist()
    ('sponge', 'ball', ['ball', 'mug', 'sponge'])
    """

    _AUTO = (1e-2, 1e-1, 1.0)

    def __init__(
        self,
        features: Any = None,
        *,
        penalty: Any = "auto",
        recoding: Any = "auto",
        holdout: int | None = 6,
        holdout_size: int = 1000,
        unknown_below: float = 0.0,
        unknown_label: Any = "unknown",
        forgetting: float = 1.0,
        forgetting_kind: str = "exponential",
        intercept: bool = True,
        drift: str | None = "record",
        device: Any = None,
        dtype: Any = None,
        random_state: int = 0,
    ) -> None:
        self.features = features
        self.penalty = penalty
        self.recoding = recoding
        self.holdout = holdout
        self.holdout_size = holdout_size
        self.unknown_below = unknown_below
        self.unknown_label = unknown_label
        self.forgetting = forgetting
        self.forgetting_kind = forgetting_kind
        self.intercept = intercept
        self.drift = drift
        self.device = device
        self.dtype = dtype
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # Learning.

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything and learn these examples, in their order.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional

        Returns
        -------
        IncrementalClassifier
            Itself.
        """
        self._reset()
        return self._learn(X, y, None, sample_weight)

    @all_or_nothing
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn examples, in their order; labels may be new.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array of shape (n,)
            Labels: strings, numbers, booleans, or anything that can be a dictionary's key.
        classes : array, optional
            Labels to know beforehand; not needed.
        sample_weight : array of shape (n,), optional

        Returns
        -------
        IncrementalClassifier
            Itself.
        """
        return self._learn(X, y, classes, sample_weight)

    def learn_one(self, x: Any, y: Any) -> Self:
        """Learn one example, as quickly as can be.

        Parameters
        ----------
        x : array of shape (d,) or dictionary
            A dictionary's names are columns, in the order of the first one; a name that is
            missing later counts as 0.
        y : label

        Returns
        -------
        IncrementalClassifier
            Itself.
        """
        self._learn_row(x, [y])
        return self

    # Answers.

    def decision_function(self, X: Any) -> Array:
        """Return the recoded scores (k/k_t)^α (W̃ᵀφ)_t.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)

        Returns
        -------
        array of shape (n, T), or of shape (n,) for two classes
            For two, that of the second minus that of the first. −∞ for a class that was named
            and not shown.
        """
        S = self._scores(X)
        if S.shape[1] != 2:
            return like(S, X)
        with np.errstate(invalid="ignore"):
            return like(S[:, 1] - S[:, 0], X)

    def predict(self, X: Any) -> Array:
        """Return the labels with the largest recoded scores. Cost 2nDT.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)

        Returns
        -------
        array of shape (n,)
            ``unknown_label`` where the confidence is below ``unknown_below``.
        """
        S = self._scores(X)
        answers = self.classes_[np.argmax(S, axis=1)]
        if not self.unknown_below > 0:
            return like(answers, X)
        unsure = self._probabilities(S).max(axis=1) < self.unknown_below
        return like(self._with_unknown(answers, unsure), X)

    @available_if(_holds_out)
    def predict_proba(self, X: Any) -> Array:
        """Return calibrated probabilities: softmax(β·scores/T^α), β by the examples held out.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)

        Returns
        -------
        array of shape (n, T)
            0 for a class that was named and not shown.
        """
        return like(self._probabilities(self._scores(X)), X)

    @available_if(_holds_out)
    def confidence(self, X: Any) -> Array:
        """Return how probable it is that the answer of :meth:`predict` is right.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)

        Returns
        -------
        array of shape (n,)
        """
        return self._probabilities(self._scores(X)).max(axis=1)

    def predict_one(self, x: Any) -> Any:
        """Return the label for one row.

        Parameters
        ----------
        x : array of shape (d,) or dictionary
        """
        self._chosen()
        answer = self.predict(self._row(x))[0]
        return answer.item() if isinstance(answer, np.generic) else answer

    @available_if(_holds_out)
    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Return the probability of each label for one row.

        Parameters
        ----------
        x : array of shape (d,) or dictionary
        """
        self._chosen()
        p = self.predict_proba(self._row(x))[0]
        return dict(zip(self.classes_.tolist(), p.tolist(), strict=True))

    @available_if(_holds_out)
    def assess(self, X: Any, recoding: Any = None) -> Assessment:
        """Return answers with the probabilities behind them, under any recoding. Cost 2nDT.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        recoding : float or array of shape (n,), optional
            α to answer with, one for all rows or one for each; ``recoding_`` if None.

        Returns
        -------
        Assessment

        Examples
        --------
        >>> import numpy as np
        >>> from imparo import IncrementalClassifier
        >>> X, y = np.eye(3)[[0] * 20 + [1]], ["mug"] * 20 + ["ball"]
        >>> robot = IncrementalClassifier(penalty=1.0).fit(X, y)
        >>> found = robot.assess([[0.6, 0.4, 0.0]], recoding=[0.0])
        >>> found.answers.tolist(), found.probabilities.round(2).tolist()
        (['mug'], [[0.02, 0.98]])
        """
        return self._assessed(X, recoding)

    @available_if(_holds_out)
    def recoding_curve(
        self, alphas: Any = None, learned: tuple[Any, Any] | None = None
    ) -> tuple[Array, Array, Array]:
        """Return how often each class is found at each α, on examples it is judged by.

        Those are the examples that are held out. Of a class with fewer than three of these,
        others can be given that were learned: each is answered as if it had not been, by
        leave-one-out in closed form, f₋ᵢ = (f − hᵢyᵢ)/(1 − hᵢ) with its leverage hᵢ, at a cost
        of D² each.

        Parameters
        ----------
        alphas : array of shape (k,), optional
            From 0 to 1; 21 of them if None.
        learned : X of shape (n, d) and y of shape (n,), optional
            Examples that were learned, not held out, once each and with weight 1; for
            learners that do not forget.

        Returns
        -------
        alphas : array of shape (k,)
        found : array of shape (T, k)
            Shares, in the order of ``classes_``; NaN for classes without examples to judge by.
        judged : array of shape (T,)
            Examples each class is judged by.
        """
        self._chosen()
        if learned is not None and self.forgetting != 1:
            raise ValueError(
                f"forgetting={self.forgetting!r} has left an unknown part of what was learned; "
                "leave learned out"
            )
        grid = np.linspace(0, 1, 21) if alphas is None else np.asarray(alphas, float)
        return self._curve(grid, learned)

    def recode(self, recoding: Any) -> Self:
        """Set α: the parameter ``recoding``, and the confidence that goes with it.

        Parameters
        ----------
        recoding : float or "auto"

        Returns
        -------
        IncrementalClassifier
            Itself.
        """
        self._check_recoding(recoding)
        self.recoding = recoding if isinstance(recoding, str) else float(recoding)
        if not self._is_fresh() and self.holdout is not None:
            self._select()
        return self

    # Classes that go, change and come from elsewhere.

    def forget(self, label: Any) -> Self:
        """Remove a class: it is never answered again, unless it is shown again. Cost D.

        Its examples stay in A as examples of no class, since no second moments are kept for
        each class; the weights of the others do not change.

        Parameters
        ----------
        label : label

        Returns
        -------
        IncrementalClassifier
            Itself.
        """
        code = self._code(label)
        for recursion in self._recursions:
            recursion.remove_output(code)
        self._reservoir.drop(code)
        self._close_gap(code)
        return self

    def rename(self, old: Any, new: Any) -> Self:
        """Give a class another label; if that is one of another class, the two become one.

        Both are exact: weights are linear in the codes, so that those of the joint class are
        the sum.

        Parameters
        ----------
        old, new : label

        Returns
        -------
        IncrementalClassifier
            Itself.
        """
        code = self._code(old)
        (new,) = labels_of([new])
        if new not in self._codes or new == old:
            labels = list(self._labels)
            labels[code] = new
            self._relabel(labels)
            return self
        kept = self._codes[new]
        for recursion in self._recursions:
            recursion.join_outputs(kept, code)
        self._reservoir.join(kept, code)
        self._counts[kept] += self._counts[code]
        self._shown[kept] += self._shown[code]
        self._close_gap(code)
        return self

    @all_or_nothing
    def merge(self, other: "IncrementalClassifier") -> Self:
        """Learn all that another learner has learned, exactly, at the cost of D³.

        Parameters
        ----------
        other : IncrementalClassifier
            With the same features and penalties; its classes may be others. It is not
            changed.

        Returns
        -------
        IncrementalClassifier
            Itself: the model of the examples of both. Those that the other holds out are held
            out here, or learned where there is no room.
        """
        self._check_alike(other)
        if self.n_seen_ + other.n_seen_ > _MOST:
            raise ValueError(
                f"the two have seen {self.n_seen_ + other.n_seen_} examples, more than can be "
                "counted exactly; merge with learners that have seen other examples"
            )
        self._recursions = copy.deepcopy(self._recursions)
        self._reservoir = copy.deepcopy(self._reservoir)
        self._meet(other._labels)
        places = np.array([self._codes[label] for label in other._labels], np.intp)
        for own, its in zip(self._recursions, other._recursions, strict=True):
            own.merge(its, places)
        self._counts = self._counts.copy()
        self._shown = list(self._shown)
        self._counts[places] += other._counts
        for place, shown in zip(places, other._shown, strict=True):
            self._shown[place] += shown
        for example in copy.deepcopy(other._reservoir).take():
            its_code = example._replace(code=int(places[example.code]))
            left = its_code if self.holdout is None else self._reservoir.offer(its_code)
            self._take_in([] if left is None else [left])
        self.n_seen_ += other.n_seen_
        self._select()
        return self
