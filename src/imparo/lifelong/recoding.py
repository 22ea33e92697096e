"""Which penalty and which recoding, and how sure: judged on examples that were held out.

The thesis takes the largest α at which accuracy on the well-represented classes is not below
that at α = 0 (section 7.6.3). One held-out example answered otherwise is then enough to stop,
and rare classes stay ignored. Here every class that is missing, wholly or in part, may cost the
others a fifth of one class's accuracy, or what is within one standard error; and α stops at
0.7, the value of the authors' code, since examples held out resemble those learned and
understate the harm. ``python -m benchmarks lifelong`` compares the two.
"""

import numpy as np
from scipy.optimize import minimize_scalar

from imparo.engine import Array

#: The largest α that is selected, and the one in use before anything can be judged.
MOST = 0.7
ALPHAS = np.linspace(0, MOST, 15)
# What one missing class may cost the others, in units of one class's accuracy.
_PRICE = 0.2
# A class of which forgetting has left less than this share is as if never shown: what is left
# is rounding, and powers of the inverse would overflow.
_FADED = 1e-30
# Examples held out of a class from which on it is asked.
_ENOUGH = 3
# ln β before any example: scores are near 0 and 1, and a difference of 1 is to mean sure.
_USUAL, _SPREAD = np.log(10.0), 0.5


def scale(counts: Array, alpha: float) -> Array:
    """Return (k/k_t)^α, and 0 for classes without examples (thesis, section 7.5.2).

    Parameters
    ----------
    counts : array of shape (T,)
        k_t.
    alpha : float

    Returns
    -------
    array of shape (T,)

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.lifelong.recoding import scale
    >>> scale(np.array([3.0, 1.0, 0.0]), 0.5)
    array([1.15470054, 2.        , 0.        ])
    """
    total = counts.sum()
    known = counts > total * _FADED
    factors = np.zeros(len(counts))
    factors[known] = (total / counts[known]) ** alpha
    return factors


def choose_penalty(scores: list[Array], codes: Array) -> int:
    """Return which candidate has the least squared error; accuracies tie too often.

    Parameters
    ----------
    scores : list of arrays of shape (n, T)
        Those of the examples held out, for each penalty, without recoding.
    codes : array of shape (n,)
        Numbers of their classes.

    Returns
    -------
    int
    """
    places = np.arange(len(codes))
    losses = [
        np.square(F, dtype=np.float64).sum() - 2 * F[places, codes].sum(dtype=np.float64)
        for F in scores
    ]
    return int(np.argmin(losses))


def choose_alpha(F: Array, codes: Array, counts: Array) -> float:
    """Return the recoding whose price the rare classes are worth.

    The largest α ≤ 0.7 with L(α) ≤ max(R/5, s(α)). L(α) is the accuracy that classes with
    examples held out lose against α = 0, summed over them, s(α) its paired standard error, and
    R = Σ_t max(0, 1 − k_t/median k) counts the classes that are missing. Cost nT for each α.

    Parameters
    ----------
    F : array of shape (n, T)
        Scores of the examples held out, without recoding.
    codes : array of shape (n,)
        Numbers of their classes.
    counts : array of shape (T,)
        k_t.

    Returns
    -------
    float
    """
    held = np.bincount(codes, minlength=len(counts))
    asked = held[codes] >= _ENOUGH
    if not asked.any():
        return MOST
    F, codes = F[asked], codes[asked]
    share = 1 / held[codes]
    present = counts[counts > 0]
    missing = np.maximum(0, 1 - present / np.median(present)).sum()
    before = _right(F, codes, counts, 0.0)
    for alpha in ALPHAS[:0:-1]:
        after = _right(F, codes, counts, alpha)
        loss = float(share @ (before.astype(float) - after))
        error = float(np.sqrt(np.square(share) @ (before != after)))
        # With one example that changes its answer the two are equal, up to rounding.
        if loss <= max(_PRICE * missing, error) + 1e-12:
            return float(alpha)
    return 0.0


def _right(F: Array, codes: Array, counts: Array, alpha: float) -> Array:
    factors = scale(counts, alpha)
    S = np.where(factors > 0, F * factors, -np.inf)
    return np.argmax(S, axis=1) == codes


def probabilities(S: Array, beta: float, n_known: int, alpha: float) -> Array:
    """Return softmax(β·S/T^α): recoding then leaves classes that are even as they are.

    Parameters
    ----------
    S : array of shape (n, T)
        Recoded scores; −∞ for classes without examples.
    beta : float
    n_known : int
        Number of classes with examples.
    alpha : float

    Returns
    -------
    array of shape (n, T)
    """
    Z = S.astype(np.float64) * (beta / max(n_known, 1) ** alpha)
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return P


def usual_temperature() -> float:
    """Return β before any example is held out."""
    return float(np.exp(_USUAL))


def temperature(S: Array, codes: Array, counts: Array, n_known: int, alpha: float) -> float:
    """Return β of :func:`probabilities` by the examples held out.

    The most likely β, classes counting as in the stream, under a normal law of ln β about
    ln 10 with deviation 1/2, so that a few examples do not make it sure of itself.

    Parameters
    ----------
    S : array of shape (n, T)
        Recoded scores of the examples held out.
    codes : array of shape (n,)
    counts : array of shape (T,)
        k_t.
    n_known : int
    alpha : float

    Returns
    -------
    float
    """
    held = np.bincount(codes, minlength=len(counts))
    weight = counts[codes] / held[codes]
    weight *= len(codes) / weight.sum()
    places = np.arange(len(codes))

    def badness(log_beta: float) -> float:
        P = probabilities(S, float(np.exp(log_beta)), n_known, alpha)
        likely = np.log(np.maximum(P[places, codes], 1e-300))
        return float((log_beta - _USUAL) ** 2 / (2 * _SPREAD**2) - weight @ likely)

    found = minimize_scalar(badness, bounds=(_USUAL - 7, _USUAL + 7), method="bounded")
    return float(np.exp(found.x))
