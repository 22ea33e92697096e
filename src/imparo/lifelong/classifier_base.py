"""How classes are learned: columns that appear, examples held out, what is selected by them."""

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from imparo.engine import Array
from imparo.estimators.inputs import check_type
from imparo.lifelong import recoding
from imparo.lifelong.base import Learner
from imparo.lifelong.inputs import DIRECTIONAL, checked_weight
from imparo.lifelong.labels import labels_of, sorted_classes
from imparo.lifelong.recursion import DELAY, Judged
from imparo.lifelong.reservoir import Example, Reservoir

# Examples held out of a class below which others may judge it, too.
_FEW = 3


class Assessment(NamedTuple):
    """Answers of a classifier, and what they rest on.

    Attributes
    ----------
    answers : array of shape (n,)
        Labels, as ``predict`` gives them.
    confidence : array of shape (n,)
        The probability of each answer.
    probabilities : array of shape (n, T)
        Of every class, in the order of ``classes``.
    classes : array of shape (T,)
    """

    answers: Array
    confidence: Array
    probabilities: Array
    classes: Array


class ClassLearner(Learner):
    """Base of :class:`~imparo.IncrementalClassifier`."""

    _STATE = (
        *Learner._STATE, "_labels", "_codes", "_order", "_shown", "_counts", "_alpha",
        "_until_selection", "_reservoir",
    )  # fmt: skip

    # Parameters.

    def _check_parameters(self: Any) -> None:
        super()._check_parameters()
        alpha = self.recoding
        self._check_recoding(alpha)
        for name, least in (("holdout", 2), ("holdout_size", 1)):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            allowed = (whole and value >= least) or (name == "holdout" and value is None)
            check_type(name, value, f"a whole number from {least} on", allowed)
        seed = self.random_state
        whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
        check_type("random_state", seed, "a whole number: a replay draws the same", whole)
        below = self.unknown_below
        number = isinstance(below, int | float | np.number) and bool(0 <= below <= 1)
        check_type("unknown_below", below, "a number from 0 to 1", number)
        if below > 0 and self.holdout is None:
            raise ValueError(
                f"unknown_below={below!r} needs a confidence, which holdout=None does not "
                "give; give holdout=6"
            )
        several = not isinstance(self.penalty, int | float | np.number) and not (
            np.ndim(self.penalty) == 1 and np.size(self.penalty) == 1
        )
        if self.holdout is None and several:
            raise ValueError(
                f"penalty={self.penalty!r} leaves a choice, which nothing is held out for; "
                "give one number, or holdout=6"
            )

    def _check_recoding(self: Any, alpha: Any) -> None:
        if isinstance(alpha, str):
            check_type("recoding", alpha, "a number from 0 to 1, or 'auto'", alpha == "auto")
        else:
            number = isinstance(alpha, int | float | np.number) and bool(0 <= alpha <= 1)
            check_type("recoding", alpha, "a number from 0 to 1, or 'auto'", number)
        if self.holdout is None and isinstance(alpha, str):
            raise ValueError(
                "recoding='auto' leaves a choice, which nothing is held out for; give a "
                "number, or holdout=6"
            )

    # Learning.

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        fresh = self._is_fresh()
        if y is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: give a label for each row"
            )
        X = self._checked(X, reset=fresh)
        labels, named = labels_of(y), [] if classes is None else labels_of(classes)
        if len(labels) != len(X):
            raise ValueError(
                f"X has {len(X)} rows and y has {len(labels)} labels: inconsistent numbers of "
                "samples"
            )
        weight = checked_weight(sample_weight, len(X), fresh=fresh)
        if fresh:
            self._begin(X, 0)
        Phi = self._learned_features(X, weight)
        self._meet(named)
        self._show(Phi, labels, [1.0] * len(labels) if weight is None else weight.tolist())
        self.n_seen_ += len(X)
        return self

    def _begin(self, X: Array, n_outputs: int) -> None:
        super()._begin(X, n_outputs)
        self._labels: list[Any] = []
        self._codes: dict[Any, int] = {}
        self._shown: list[int] = []
        self._counts = np.zeros(0)
        self._alpha = recoding.MOST
        self.temperature_ = recoding.usual_temperature()
        self._until_selection = DELAY
        recursion = self._recursions[0]
        self._reservoir = Reservoir(
            int(self.holdout_size), recursion.n_features, recursion.root.dtype,
            int(self.random_state),
        )  # fmt: skip

    def _meet(self, labels: list[Any]) -> None:
        """Add a column of zeros for each label that is new. Cost D."""
        new = [label for label in dict.fromkeys(labels) if label not in self._codes]
        if not new:
            return
        for recursion in self._recursions:
            recursion.add_outputs(len(new))
        self._shown = self._shown + [0] * len(new)
        self._counts = np.concatenate([self._counts, np.zeros(len(new))])
        self._relabel(self._labels + new)

    def _relabel(self, labels: list[Any]) -> None:
        self._labels = labels
        self._codes = {label: code for code, label in enumerate(labels)}
        self.classes_, self._order = sorted_classes(labels)

    def _show(self, Phi: Array, labels: list[Any], weights: list[float]) -> None:
        """Hold out or learn examples in their order, and select when it is time.

        A label is met, errors are judged and drift is answered where the example is in the
        stream, not where a call begins or ends: cuts must not change a bit.
        """
        waiting: list[Example] = []
        for row, label, weight in zip(Phi, labels, weights, strict=True):
            if label not in self._codes:
                self._take_in(waiting)
                waiting = []
                self._meet([label])
            if weight == 0:
                continue
            code = self._codes[label]
            example: Example | None = Example(row, code, weight)
            self._shown[code] += 1
            if self.holdout is not None and self._shown[code] % int(self.holdout) == 0:
                example = self._reservoir.offer(Example(row, code, weight))
            if example is None:
                continue
            waiting.append(example)
            self._until_selection -= 1
            due = self._until_selection <= 0
            if due or len(waiting) == self._recursions[0].n_free:
                self._take_in(waiting)
                waiting = []
            if due:
                self._select()
        self._take_in(waiting)

    def _take_in(self, examples: list[Example]) -> None:
        """Learn examples, at most until the recursions settle."""
        if not examples:
            return
        n, T = len(examples), len(self._labels)
        rows = np.stack([example.row for example in examples])
        codes = np.array([example.code for example in examples])
        weights = np.array([example.weight for example in examples])
        Y = np.zeros((n, T), rows.dtype)
        roots = np.sqrt(weights).astype(rows.dtype)
        Y[np.arange(n), codes] = roots
        if (weights != 1).any():
            rows = rows * roots[:, None]
        self._counts = self._counts.copy()
        # What is forgotten in some directions only is not forgotten of a class. One by one:
        # sums of fractions must not depend on cuts.
        fade = 1.0 if self.forgetting_kind == DIRECTIONAL else float(self.forgetting)
        for code, weight in zip(codes, weights, strict=True):
            if fade != 1:
                self._counts *= fade
            self._counts[code] += weight
        results = [recursion.learn(rows, Y, weights) for recursion in self._recursions]
        for judged in results[self._best]:
            self._compare(judged)

    def _compare(self, judged: Judged) -> None:
        """Watch for drift by answers before learning."""
        answers = np.argmax(self._recoded(judged.predictions), axis=1)
        self._judge((answers != np.argmax(judged.targets, axis=1)).astype(float))

    def _select(self) -> None:
        """Choose λ and α, and calibrate, by the examples that are held out."""
        held = self._reservoir
        self._until_selection = max(DELAY, len(held))
        if len(held) == 0:
            return
        scores = [recursion.predict(held.rows) for recursion in self._recursions]
        self._best = recoding.choose_penalty(scores, held.codes)
        F = scores[self._best]
        if isinstance(self.recoding, str):
            self._alpha = recoding.choose_alpha(F, held.codes, self._counts)
        self.temperature_ = recoding.temperature(
            self._recoded(F), held.codes, self._counts, self._n_known, self._power
        )

    # Answers.

    def _recoded(self, F: Array, alpha: float | None = None) -> Array:
        """Return (k/k_t)^α F; −∞ for classes of which nothing was learned."""
        factors = recoding.scale(self._counts, self._power if alpha is None else alpha)
        S = F * factors.astype(F.dtype)
        S[:, factors == 0] = -np.inf
        return S

    @property
    def _power(self) -> float:
        """α: selected, or as the parameter says now."""
        return self._alpha if isinstance(self.recoding, str) else float(self.recoding)

    @property
    def _n_known(self) -> int:
        return int(np.count_nonzero(recoding.scale(self._counts, 0.0)))

    def _scores(self, X: Any) -> Array:
        """Return recoded scores in the order of ``classes_``; −∞ for classes not learned."""
        recursion = self._chosen()
        X = self._checked(X, reset=False)
        if not self._counts.any():
            raise NotFittedError("no class is known; learn some examples first")
        return self._recoded(recursion.predict(self._features_of(X)))[:, self._order]

    def _assessed(self: Any, X: Any, alphas: Any) -> Assessment:
        """Return answers under one α for all rows, or one for each."""
        recursion = self._chosen()
        X = self._checked(X, reset=False)
        if not self._counts.any():
            raise NotFittedError("no class is known; learn some examples first")
        wanted = np.asarray(self._power if alphas is None else alphas, float)
        if wanted.ndim > 1 or (wanted.ndim == 1 and len(wanted) != len(X)):
            raise ValueError(
                f"recoding has the shape {wanted.shape}; one number, or one for each of the "
                f"{len(X)} rows, was expected"
            )
        if not bool(((wanted >= 0) & (wanted <= 1)).all()):
            raise ValueError(f"recoding={alphas!r:.60} must be from 0 to 1")
        wanted = np.broadcast_to(wanted, len(X))
        F = recursion.predict(self._features_of(X))
        P = np.empty(F.shape)
        for alpha in np.unique(wanted):
            rows = wanted == alpha
            S = self._recoded(F[rows], float(alpha))
            P[rows] = recoding.probabilities(S, self.temperature_, self._n_known, float(alpha))
        P = P[:, self._order]
        best, confidence = np.argmax(P, axis=1), P.max(axis=1)
        answers = self._with_unknown(self.classes_[best], confidence < self.unknown_below)
        return Assessment(answers, confidence, P, self.classes_)

    def _with_unknown(self: Any, answers: Array, unsure: Array) -> Array:
        """Return answers with ``unknown_label`` where the confidence is too low."""
        if not self.unknown_below > 0:
            return answers
        if not isinstance(self.unknown_label, type(self._labels[0])):
            answers = answers.astype(object)
        elif isinstance(self.unknown_label, str):
            answers = answers.astype(np.result_type(answers, np.array(self.unknown_label)))
        for i in np.flatnonzero(unsure):  # one by one: a tuple is one label
            answers[i] = self.unknown_label
        return answers

    def _curve(self, alphas: Array, learned: Any) -> tuple[Array, Array, Array]:
        """Return α, shares found of each class, and by how many examples it is judged."""
        held, T = self._reservoir, len(self._labels)
        judged = np.bincount(held.codes, minlength=T)
        right = np.zeros((T, len(alphas)))
        if len(held):
            F = self._chosen().predict(held.rows)
            for j, alpha in enumerate(alphas):
                hits = np.argmax(self._recoded(F, float(alpha)), axis=1) == held.codes
                right[:, j] = np.bincount(held.codes, weights=hits, minlength=T)
        if learned is not None:
            self._add_left_out(learned, alphas, judged, right)
        found = np.full((T, len(alphas)), np.nan)
        found[judged > 0] = right[judged > 0] / judged[judged > 0, None]
        return alphas, found[self._order], judged[self._order]

    def _add_left_out(
        self: Any, learned: Any, alphas: Array, judged: Array, right: Array
    ) -> None:
        """Judge classes of which few are held out by examples that were learned, in place."""
        X, y = self._checked(learned[0], reset=False), labels_of(learned[1])
        codes = np.array([self._code(label) for label in y], np.intp)
        # Without the example there must be another one of its class.
        asked = (judged[codes] < _FEW) & (self._counts[codes] >= 2)
        if not asked.any():
            return
        recursion, codes = self._chosen(), codes[asked]
        Phi = self._features_of(X[asked])
        h = recursion.leverage(Phi)
        F = np.array(recursion.predict(Phi))
        F[np.arange(len(F)), codes] -= h
        F /= (1 - h)[:, None]
        for code in np.unique(codes):
            counts = self._counts.copy()
            counts[code] -= 1
            own = F[codes == code]
            judged[code] += len(own)
            for j, alpha in enumerate(alphas):
                factors = recoding.scale(counts, float(alpha))
                S = np.where(factors > 0, own * factors, -np.inf)
                right[code, j] += np.count_nonzero(np.argmax(S, axis=1) == code)

    def _probabilities(self, S: Array) -> Array:
        return recoding.probabilities(S, self.temperature_, self._n_known, self._power)

    # Classes and columns that come and go.

    def _code(self, label: Any) -> int:
        self._chosen()
        (plain,) = labels_of([label])
        if plain not in self._codes:
            known = ", ".join(repr(known) for known in self.classes_.tolist()[:8])
            raise ValueError(f"{label!r} is not among the classes that are known: {known}")
        return self._codes[plain]

    def _close_gap(self, code: int) -> None:
        self._counts = np.delete(self._counts, code)
        self._shown = self._shown[:code] + self._shown[code + 1 :]
        self._relabel(self._labels[:code] + self._labels[code + 1 :])

    def _add_columns(self, count: int) -> None:
        super()._add_columns(count)
        self._reservoir.add_features(count)

    def _after_fading(self, kept: float) -> None:
        self._counts = self._counts * kept
        self._reservoir.take()  # they tell of what was, not of what is

    # Attributes.

    @property
    def counts_(self) -> Array:
        """Examples that were learned of each class, faded with them."""
        self._chosen()
        return self._counts[self._order]

    @property
    def shown_(self) -> Array:
        """Examples so far of each class, those that are held out among them."""
        self._chosen()
        return np.array(self._shown, np.intp)[self._order]

    @property
    def recoding_(self) -> float:
        """α in use."""
        self._chosen()
        return self._power

    @property
    def n_held_out_(self) -> int:
        """Examples that are held out now."""
        self._chosen()
        return len(self._reservoir)

    @property
    def prequential_error_(self) -> float:
        """Share of wrong answers before learning, since the error last changed."""
        self._chosen()
        return self._detector.mean if self._detector is not None else float("nan")

    @property
    def coef_(self) -> Array:
        """Weights W̃ of the features, without recoding, shape (T, D)."""
        return self._chosen().coefficients()[self._order, int(self.intercept) :]

    @property
    def intercept_(self) -> Array:
        """Weights of the constant feature, without recoding, or zeros; shape (T,)."""
        W = self._chosen().coefficients()[self._order]
        return W[:, 0] if self.intercept else np.zeros(len(W), W.dtype)
