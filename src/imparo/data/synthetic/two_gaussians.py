"""Two classes, each a Gaussian: the thesis' example of classification."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import ncx2, norm

from imparo.data.synthetic.base import Law, Sample, check_between, sample_of, seed_from
from imparo.engine import Array


@dataclass(frozen=True)
class TwoGaussians(Law):
    """Rows of class y = ±1 are normal with mean μ_y and covariance σ_y²I.

    Parameters
    ----------
    means : pair of tuples of float
        μ₋₁ and μ₁.
    deviations : pair of float
        σ₋₁ and σ₁.
    share : float
        ρ(y = 1), between 0 and 1.
    """

    means: tuple[tuple[float, ...], tuple[float, ...]]
    deviations: tuple[float, float]
    share: float

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of columns."""
        return len(self.means[0])

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return n rows and their classes, -1 or 1."""
        of_second = (rng.random(n) < self.share).astype(np.intp)
        spread = np.array(self.deviations)[of_second, None]
        X = np.array(self.means)[of_second] + spread * rng.standard_normal((n, self.d))
        return X, 2 * of_second - 1

    def log_ratio(self, X: Any) -> Array:
        """Return log ρ(x|1)/ρ(x|−1), of which the Bayes rules are signs."""
        squares = [
            np.square(np.asarray(X) - np.array(mean)).sum(axis=1) / deviation**2
            for mean, deviation in zip(self.means, self.deviations, strict=True)
        ]
        ratio = self.deviations[0] / self.deviations[1]
        return (squares[0] - squares[1]) / 2 + self.d * np.log(ratio)

    def probability(self, X: Any) -> Array:
        """Return ρ(1|x)."""
        return np.asarray(expit(self.log_ratio(X) + self._log_odds))

    def function(self, X: Any) -> Array:
        """Return the mean of the label, 2ρ(1|x) − 1: the target function of least squares."""
        return 2 * self.probability(X) - 1

    def rule(self, X: Any, rebalanced: bool = False) -> Array:
        """Return the best label, -1 or 1.

        Parameters
        ----------
        X : array of shape (n, d)
        rebalanced : bool
            As if both classes had the same share (section 7.3.3).
        """
        odds = 0.0 if rebalanced else self._log_odds
        return np.where(self.log_ratio(X) + odds > 0, 1, -1)

    @property
    def bayes_error(self) -> float:
        """How often the Bayes rule is wrong; exact."""
        wrong = [self._missed(0), self._missed(1)]
        return float((1 - self.share) * wrong[0] + self.share * wrong[1])

    @property
    def _log_odds(self) -> float:
        return float(np.log(self.share / (1 - self.share)))

    def _missed(self, k: int) -> float:
        """Return how often a row of class k is taken for the other."""
        if self.deviations[0] == self.deviations[1]:
            return self._missed_half(k)
        # The rule is a ball about the class that spreads less: its log-ratio is
        # −a‖x − c‖² + b in favour of that class, a > 0.
        (m0, m1), (s0, s1) = np.array(self.means), self.deviations
        narrow = 0 if s0 < s1 else 1
        curvature = (1 / s1**2 - 1 / s0**2) / 2 * (1 if narrow == 1 else -1)
        centre = (m1 / s1**2 - m0 / s0**2) / (1 / s1**2 - 1 / s0**2)
        at_centre = (self.log_ratio(centre[None])[0] + self._log_odds) * (2 * narrow - 1)
        radius_squared = at_centre / curvature
        if radius_squared <= 0:
            return float(k == narrow)
        mean, deviation = (m0, m1)[k], (s0, s1)[k]
        away = np.square(mean - centre).sum() / deviation**2
        inside = float(ncx2.cdf(radius_squared / deviation**2, self.d, away))
        return 1 - inside if k == narrow else inside

    def _missed_half(self, k: int) -> float:
        """Return the same for equal deviations, where the rule is a half-space."""
        gap = np.linalg.norm(np.subtract(*self.means)) / self.deviations[0]
        if gap == 0:
            return float((self._log_odds > 0) == (k == 0))
        return float(norm.cdf(-gap / 2 + (1 if k == 0 else -1) * self._log_odds / gap))


def gaussians(
    n: int,
    *,
    means: Sequence[Sequence[float]] = ((-1.0, 0.0), (1.0, 0.0)),
    deviations: float | Sequence[float] = 0.6,
    share: float = 0.5,
    rng: Any = None,
) -> Sample:
    """Return rows of two classes, each of them a Gaussian.

    y = 1 with probability ``share``, and x given y is N(μ_y, σ_y²I). The defaults are the
    example of section 1.3 of the thesis: means (∓1, 0), both deviations 0.6. The figure of
    section 7.3.3, on rebalancing, has the classes the other way round:
    ``gaussians(n, means=[(1, 0), (-1, 0)], deviations=(0.3, 1), share=0.9)``.

    Parameters
    ----------
    n : int
        Number of rows.
    means : pair of sequences of float
        μ₋₁ and μ₁; their length is the number of columns.
    deviations : float or pair of float
        Of both classes, or σ₋₁ and σ₁.
    share : float
        γ = ρ(y = 1).
    rng : int, Generator or None
        Where random numbers come from.

    Returns
    -------
    Sample
        ``X, y = gaussians(1000)``; ``sample.law`` is a :class:`TwoGaussians` with the
        probabilities, the Bayes rule and its error.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.data.synthetic import gaussians
    >>> sample = gaussians(20_000, share=0.8, rng=0)
    >>> wrong = np.mean(sample.law.rule(sample.X) != sample.y)
    >>> round(sample.bayes_error, 3), bool(abs(wrong - sample.bayes_error) < 0.005)
    (0.036, True)
    """
    pair = tuple(tuple(float(value) for value in np.atleast_1d(mean)) for mean in means)
    if len(pair) != 2 or len(pair[0]) != len(pair[1]) or not pair[0]:
        raise ValueError("means must be two points of the same number of columns")
    if not np.isfinite(pair).all():
        raise ValueError("means must be finite numbers")
    given = np.resize(np.asarray(deviations, float), 2)
    if np.size(deviations) > 2 or not (np.isfinite(given) & (given > 0)).all():
        raise ValueError(f"deviations={deviations!r} must be one or two numbers above 0")
    check_between("share", share, 0, 1)
    law = TwoGaussians((pair[0], pair[1]), (float(given[0]), float(given[1])), float(share))
    return sample_of(law, n, seed_from(rng))
