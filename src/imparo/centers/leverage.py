"""Centers drawn by approximate leverage scores from one uniform pilot sample."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.centers.base import CenterRule, Chosen, check_positive, check_whole, draw
from imparo.centers.scores import Dictionary, Scorer
from imparo.centers.uniform import uniform_positions
from imparo.engine import Array
from imparo.persistence import persistent

# Rows in the pilot for each √n. A pilot must have a few times max n·l_i(t) rows, at most
# max K(x, x)/t: √n at the default penalty, where K(x, x) is the same for all rows.
_PILOT = 3.0


def default_penalty(scorer: Scorer) -> float:
    """Return the mean of K(x, x) over √n: λ of the order that the theory takes."""
    n = scorer.X.shape[0]
    return scorer.trace / n / float(np.sqrt(n))


def draw_by_scores(scores: Array, n_centers: int, rng: np.random.RandomState) -> Chosen:
    """Draw centers with P(i) in proportion to their scores, uniformly where all are 0."""
    scores = scores if scores.any() else np.ones(len(scores))
    rows = draw(scores, n_centers, rng)
    return Chosen(rows, scores.sum() / (len(scores) * scores[rows]))


@persistent
@dataclass(frozen=True)
class LeverageScores(CenterRule):
    """With replacement, P(i) ∝ l̂_i(t): approximate leverage scores (thesis, section 4.2).

    The scores l̂ come from a uniform pilot sample by
    :func:`~imparo.centers.approximate_leverage_scores`. Rows that few others resemble are
    drawn more often, so that m may be of the order of Σ l_i = d_eff(t), where uniform
    centers need n·max l_i.

    Parameters
    ----------
    penalty : float, optional
        t, on the scale of the mean loss. The mean of K(x, x) over √n if left out.
    pilot : int, optional
        Rows in the pilot sample, at most n. 3√n if left out, which gave scores within a
        factor of 2 of the exact ones at the default penalty. A smaller penalty wants
        more, in proportion to 1/t; :class:`RecursiveScores` then costs less.

    Notes
    -----
    Cost np² and np values of the kernel for a pilot of p rows, 9n² and 3n^{3/2} with the
    default.
    Memory 2p² numbers, n scores and a block.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.centers import LeverageScores
    >>> from imparo.kernels import Gaussian
    >>> X = np.append(np.zeros(99), 5.0).reshape(100, 1)  # one row unlike the others
    >>> rng = np.random.RandomState(0)
    >>> chosen = LeverageScores(penalty=1e-3).choose(X, Gaussian(1.0), 1000, rng)
    >>> bool((chosen.rows == 99).sum() > 100)  # uniform draws would have about 10
    True
    """

    penalty: float | None = None
    pilot: int | None = None

    def __post_init__(self) -> None:
        if self.penalty is not None:
            check_positive("penalty", self.penalty)
        if self.pilot is not None:
            check_whole("pilot", self.pilot)

    def _choose(
        self, X: Any, kernel: Any, n_centers: int, rng: np.random.RandomState, memory: int
    ) -> Chosen:
        n = X.shape[0]
        size = int(np.ceil(_PILOT * np.sqrt(n))) if self.pilot is None else self.pilot
        pilot = uniform_positions(n, size, rng)
        scorer = Scorer(kernel, X, memory)
        if not scorer.trace:
            return draw_by_scores(scorer.diagonal, n_centers, rng)
        penalty = self.penalty or default_penalty(scorer)
        dictionary = Dictionary(pilot, np.full(len(pilot), n / len(pilot)))
        return draw_by_scores(scorer.scores(dictionary, penalty), n_centers, rng)
