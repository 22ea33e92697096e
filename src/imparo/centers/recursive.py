"""Centers drawn by leverage scores that a sequence of growing dictionaries gives."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.centers.base import CenterRule, Chosen, check_positive, draw
from imparo.centers.leverage import default_penalty, draw_by_scores
from imparo.centers.scores import Dictionary, Scorer
from imparo.engine import Array
from imparo.persistence import persistent

# The penalty falls by this factor from one level to the next.
_STEP = 2.0


@persistent
@dataclass(frozen=True)
class RecursiveScores(CenterRule):
    """With replacement, P(i) ∝ l̂_i(t), the scores found from the coarse to the fine.

    BLESS (Rudi, Calandriello, Carratino and Rosasco, "On fast leverage score sampling and
    optimal learning", 2018). For penalties λ_h that halve from K's bound κ² = max K(x, x)
    down to t, with a dictionary J of weights 1/a that is empty at first:

    1. draw R = q·κ²/λ_h rows U uniformly (all n, once that is more);
    2. score them by l̂_u = (K_uu − K_uJ(K_JJ + λ_h·n·diag(a))⁻¹K_Ju)/(λ_h·n);
    3. estimate the effective dimension, d̂ = (n/R)·Σ_U l̂_u, and draw M = q·d̂ rows of
       U with p_u ∝ l̂_u: the next dictionary, with a_u = R·M·p_u/n.

    Then Σ_J φφᵀ/a estimates Σφφᵀ over all rows without bias at every level, and the last
    dictionary, of about q·d_eff(t) rows, scores all of them.

    Parameters
    ----------
    penalty : float, optional
        t, on the scale of the mean loss. The mean of K(x, x) over √n if left out.
    oversampling : float
        q ≥ 1. Scores come closer to the exact ones by 1/√q, at a cost in q² for each row.

    Notes
    -----
    Cost nM² for the last scores, with M ≈ q·d_eff(t), and about 2q·(κ²/t)·M² before that,
    which does not grow with n, beside n evaluations of K(x, x). A pilot sample for scores
    as good has of the order of κ²/t rows in the place of d_eff(t). Memory 2M² numbers, n
    scores and a block.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.centers import RecursiveScores
    >>> from imparo.kernels import Gaussian
    >>> X = np.append(np.zeros(99), 5.0).reshape(100, 1)  # one row unlike the others
    >>> rng = np.random.RandomState(0)
    >>> chosen = RecursiveScores(penalty=1e-3).choose(X, Gaussian(1.0), 1000, rng)
    >>> bool((chosen.rows == 99).sum() > 100)  # uniform draws would have about 10
    True
    """

    penalty: float | None = None
    oversampling: float = 8.0

    def __post_init__(self) -> None:
        if self.penalty is not None:
            check_positive("penalty", self.penalty)
        check_positive("oversampling", self.oversampling)
        if self.oversampling < 1:
            raise ValueError(
                f"oversampling={self.oversampling!r} must be at least 1: a dictionary "
                "needs as many rows as the effective dimension"
            )

    def _choose(
        self, X: Any, kernel: Any, n_centers: int, rng: np.random.RandomState, memory: int
    ) -> Chosen:
        scorer = Scorer(kernel, X, memory)
        if not scorer.trace:
            return draw_by_scores(scorer.diagonal, n_centers, rng)
        penalty = self.penalty or default_penalty(scorer)
        dictionary = self._dictionary(scorer, penalty, rng)
        return draw_by_scores(scorer.scores(dictionary, penalty), n_centers, rng)

    def _dictionary(
        self, scorer: Scorer, penalty: float, rng: np.random.RandomState
    ) -> Dictionary:
        """Return rows and weights that give the scores at ``penalty``."""
        dictionary = Dictionary(np.empty(0, np.intp), np.empty(0))
        for level in _levels(float(scorer.diagonal.max()), penalty):
            dictionary = self._refined(scorer, dictionary, level, rng)
        return dictionary

    def _refined(
        self, scorer: Scorer, dictionary: Dictionary, level: float, rng: np.random.RandomState
    ) -> Dictionary:
        """Return the dictionary of the penalty ``level`` from that of the level before."""
        n = scorer.X.shape[0]
        wanted = np.ceil(self.oversampling * scorer.diagonal.max() / level)
        rows = np.arange(n) if wanted >= n else rng.randint(n, size=int(wanted))
        scores = scorer.scores(dictionary, level, rows)
        dimension = n / len(rows) * scores.sum()
        if dimension == 0:  # kernel values of 0 in every row that was drawn
            return dictionary
        size = int(np.ceil(self.oversampling * dimension))
        if size >= n == len(rows):  # nothing is saved by a sample
            return Dictionary(rows, np.ones(n))
        drawn = draw(scores, size, rng)
        p = scores[drawn] / scores.sum()
        return Dictionary(rows[drawn], n / (len(rows) * len(drawn) * p)).merged()


def _levels(largest: float, penalty: float) -> Array:
    """Return penalties that fall by a constant factor, the last the one asked for."""
    number = max(1, int(np.ceil(np.log(largest / penalty) / np.log(_STEP))))
    return penalty * _STEP ** np.arange(number - 1, -1, -1.0)
