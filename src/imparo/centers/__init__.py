"""Which m rows become centers: uniform, leverage scores, pivoted Cholesky.

A new rule is a frozen dataclass with ``_choose``, decorated with
:func:`imparo.persistence.persistent`, and a line in ``_NAMES``. Its first centers must
not depend on how many are asked for: every path over m rests on that.
"""

from collections.abc import Callable
from typing import Any

from imparo.centers.base import CenterRule, Chosen
from imparo.centers.leverage import LeverageScores
from imparo.centers.pivoted import PivotedCholesky
from imparo.centers.recursive import RecursiveScores
from imparo.centers.scores import approximate_leverage_scores, leverage_scores
from imparo.centers.uniform import Uniform, uniform_positions

__all__ = [
    "CenterRule",
    "Chosen",
    "LeverageScores",
    "PivotedCholesky",
    "RecursiveScores",
    "Uniform",
    "approximate_leverage_scores",
    "as_rule",
    "leverage_scores",
    "uniform_positions",
]

_NAMES: dict[str, Callable[[], CenterRule]] = {
    "leverage": LeverageScores,
    "pivoted": PivotedCholesky,
    "recursive": RecursiveScores,
    "uniform": Uniform,
}


def as_rule(centers: Any) -> CenterRule:
    """Return a :class:`CenterRule` from its name or from itself.

    Parameters
    ----------
    centers : str or CenterRule
        ``"uniform"``, ``"leverage"``, ``"recursive"``, ``"pivoted"``, or an object of this
        module.

    Returns
    -------
    CenterRule

    Examples
    --------
    >>> from imparo.centers import as_rule
    >>> as_rule("pivoted")
    PivotedCholesky(block=512)
    """
    if isinstance(centers, CenterRule):
        return centers
    if isinstance(centers, str) and centers in _NAMES:
        return _NAMES[centers]()
    raise ValueError(
        f"centers={centers!r} is not known; give one of {', '.join(sorted(_NAMES))} or a rule "
        "object of imparo.centers"
    )
