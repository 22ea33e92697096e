"""Which of four methods is fastest on a problem (thesis, section 4.3.3, discussion).

All four reach the accuracy of KRLS at its best penalty λ*. What they cost depends on two
numbers: 1/λ*, which is how many gradient steps are needed, and the dimension d̃(λ*), which is
how many centers, up to a logarithm.
"""

import math
from typing import Any

import numpy as np

from imparo.conditions import check_number, check_rows, shown
from imparo.engine import Array
from imparo.paths import pyplot

#: The methods that are compared.
METHODS = ("nytro", "early stopping", "krls", "nkrls")
_COLORS = {
    "nytro": "#b79ad1",
    "early stopping": "#8db8de",
    "krls": "#f2ae72",
    "nkrls": "#f7dd7e",
}


def subsampling_limit(snr: float, n: int) -> float:
    """Return c₁ = n/abs(log(n·SNR)): below this dimension it pays to take a subset of centers.

    Parameters
    ----------
    snr : float
        1/λ*; see :func:`fastest`.
    n : int

    Returns
    -------
    float
        Infinite at n·SNR = 1.

    Examples
    --------
    >>> from imparo.theory import subsampling_limit
    >>> round(subsampling_limit(1000.0, 1000), 1)
    72.4
    """
    _check(snr, n)
    return float(_c1(snr, n))


def iteration_limit(snr: float) -> float:
    """Return c₂ = SNR/abs(log SNR): above this dimension it pays to iterate and stop early.

    Parameters
    ----------
    snr : float
        1/λ*; see :func:`fastest`.

    Returns
    -------
    float
        Infinite at SNR = 1.

    Examples
    --------
    >>> from imparo.theory import iteration_limit
    >>> round(iteration_limit(1000.0), 1)
    144.8
    """
    _check(snr, 1)
    return float(_c2(snr))


def _c1(snr: Any, n: int) -> Any:
    with np.errstate(divide="ignore"):
        return n / np.abs(np.log(n * np.asarray(snr, np.float64)))


def _c2(snr: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.asarray(snr, np.float64) / np.abs(np.log(snr))


def _check(snr: Any, n: Any, dimension: Any = 1.0) -> None:
    check_rows(n)
    check_number("snr", snr, above=0)
    check_number("dimension", dimension, above=0)


def possible(snr: float, dimension: float, n: int) -> bool:
    """Return whether there is a problem with this 1/λ* and this d̃: d̃ ≤ min(1/λ*, n).

    Parameters
    ----------
    snr, dimension, n
        As for :func:`fastest`.

    Examples
    --------
    >>> from imparo.theory import possible
    >>> possible(100.0, 50.0, 1000), possible(100.0, 200.0, 1000)
    (True, False)
    """
    _check(snr, n, dimension)
    return bool(dimension <= min(snr, n))


def regime_costs(snr: float, dimension: float, n: int) -> dict[str, float]:
    """Return the operations of each method, to a constant (sections 4.3.2 and 4.3.3).

    With t = 1/λ* steps and m = d̃·log(n/λ*) centers: n³ for KRLS, n²t for early stopping,
    nm² for Nyström KRLS, nmt for NYTRO. Memory is n² for the first two and nm for the others.

    Parameters
    ----------
    snr, dimension, n
        As for :func:`fastest`.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> from imparo.theory import regime_costs
    >>> costs = regime_costs(1e4, 20.0, 10**6)
    >>> min(costs, key=costs.get)
    'nkrls'
    """
    _check(snr, n, dimension)
    m = dimension * abs(math.log(n * snr))
    return {
        "nytro": n * m * snr,
        "early stopping": float(n) ** 2 * snr,
        "krls": float(n) ** 3,
        "nkrls": n * m**2,
    }


def fastest(snr: float, dimension: float, n: int) -> str:
    """Return which method is fastest at the accuracy of KRLS with its best penalty.

    Below c₁ it pays to subsample, above c₂ to iterate (section 4.3.3, figure and
    discussion): both is NYTRO, neither KRLS, iterations alone early stopping, subsampling
    alone Nyström KRLS.

    Parameters
    ----------
    snr : float
        1/λ*, for a kernel with K(x, x) ≤ 1; κ²/λ* for one with K(x, x) ≤ κ². It is the
        number of gradient steps with step 1/κ². The thesis, with λ* = 1/SNR, calls it SNR;
        as λ* is 1/(n·SNR) (:func:`krls_rule`), it is n‖f‖²/σ².
    dimension : float
        d̃(λ*) = n·maxᵢ(K_n(K_n + nλ*I)⁻¹)ᵢᵢ.
    n : int
        Rows.

    Returns
    -------
    {"nytro", "early stopping", "krls", "nkrls"}

    Notes
    -----
    d̃ is at most min(1/λ*, n) (:func:`possible`). The peak of c₂ at SNR = 1, and with it the
    piece of KRLS between c₁ and n that the thesis notes there, lies beyond that: up to
    SNR = e all that is possible is below c₂. The curves are right up to logarithms:
    NYTRO and Nyström KRLS cost the same at SNR/log(n·SNR), for which c₂ has SNR/log SNR.

    Examples
    --------
    >>> from imparo.theory import fastest
    >>> fastest(1e4, 20.0, 10**6), fastest(1e4, 5e3, 10**6)
    ('nkrls', 'nytro')
    """
    _check(snr, n, dimension)
    subsampled, iterative = dimension < _c1(snr, n), dimension > _c2(snr)
    if subsampled:
        return "nytro" if iterative else "nkrls"
    return "early stopping" if iterative else "krls"


def plot_regimes(n: int, here: tuple[Any, Any, str] | None = None, ax: Any = None) -> Any:
    """Draw the regions in which each method is fastest (thesis, figure of section 4.3.3).

    Problems that cannot be, with d̃ > 1/λ*, are hatched.

    Parameters
    ----------
    n : int
        Rows, at least 100.
    here : tuple (snr, dimension, label), optional
        A problem to mark, such as yours. Each of the two numbers may be a tuple
        (value, low, high), drawn with error bars.
    ax : matplotlib Axes, optional
        Drawn on if given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from imparo.theory import plot_regimes
    >>> ax = plot_regimes(10_000, here=((3e3, 1e3, 9e3), 120.0, "your data"))
    >>> ax.get_xscale(), ax.get_yscale()
    ('log', 'log')
    """
    check_rows(n, 100)
    plt = pyplot()
    if ax is None:
        ax = plt.subplots(figsize=(6.8, 4.8), layout="constrained")[1]
    spot = None if here is None else _place(here)
    left, right, bottom = 1.0, 300.0 * n, 1.0
    if spot is not None:
        left, right = min(left, spot[0].min() / 3), max(right, 3 * spot[0].max())
        bottom = min(bottom, spot[1].min() / 3)
    x = np.geomspace(left, right, 2000)
    top = np.full_like(x, float(n))
    # The curves are infinite at one point each, beyond all that is drawn.
    c1, c2 = np.minimum(_c1(x, n), 1e3 * n), np.minimum(_c2(x), 1e3 * n)
    bands = {
        "nkrls": (np.full_like(x, bottom), np.minimum(c1, c2)),
        "nytro": (c2, c1),
        "krls": (c1, np.minimum(c2, top)),
        "early stopping": (np.maximum(c1, c2), top),
    }
    for method, (low, high) in bands.items():
        ax.fill_between(
            x, low, high, where=high > low, color=_COLORS[method], lw=0, interpolate=True
        )
    ax.fill_between(x, np.minimum(x, n), top, color="white", alpha=0.72, lw=0)
    ax.fill_between(x, np.minimum(x, n), top, facecolor="none", hatch="///", ec="0.82", lw=0)
    for curve in (c1, c2):
        ax.plot(x, curve, color="0.25", lw=1.3)
    ax.plot(x, x, color="0.25", lw=0.9, ls=(0, (4, 3)))
    ax.set(
        xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, n),
        xlabel="signal-to-noise ratio 1/λ*, the number of gradient steps",
        ylabel="dimension d̃(λ*)", title=f"The fastest of four methods at n = {shown(n)}",
    )  # fmt: skip
    _label(ax, n)
    if spot is not None:
        _mark(ax, spot)
    return ax


def _label(ax: Any, n: int) -> None:
    """Write names on the areas and curves, in the middle of what is possible of each."""
    # The angle of a line on the page is known once the axes have their place. The canvas
    # knows the whole figure, of which theirs may be a part.
    ax.figure.canvas.figure.draw_without_rendering()
    middle = {"ha": "center", "va": "center"}
    bold = middle | {"weight": "bold", "color": "0.12", "fontsize": 10.5}
    small = {"color": "0.2", "fontsize": 9, "rotation_mode": "anchor"}

    def angle(x: float, y: float, x2: float, y2: float) -> float:
        (a, b), (c, d) = ax.transData.transform([(x, y), (x2, y2)])
        return math.degrees(math.atan2(d - b, c - a))

    right, log_n = ax.get_xlim()[1], math.log(n)
    ax.text(n**0.92, n**0.2, "Nyström KRLS", **bold)
    x = 1.3 * (n / (2 * log_n)) ** 0.8
    band = x / math.sqrt(math.log(x))
    ax.text(x, band, "NYTRO", rotation=angle(1, 1, n, n), rotation_mode="anchor", **bold)
    height = n / math.sqrt(2 * log_n)
    ax.text(n * 0.1**0.25, height, "early\nstopping", **bold | {"fontsize": 9.5})
    ax.text(math.sqrt(n * math.sqrt(log_n) * right), height, "KRLS", **bold)
    box = {"fc": "white", "ec": "none", "alpha": 0.85, "pad": 2.5}
    ax.text(
        n**0.27, n**0.56, "not possible:\nd̃ > 1/λ*", color="0.35", fontsize=9.5, bbox=box,
        **middle,
    )  # fmt: skip
    for text, x, x2, offset in (
        ("c₁ = n/log(n·SNR)", n**0.06, 3 * n**0.06, (0, 4)),
        ("c₂ = SNR/log SNR", n**0.42, 3 * n**0.42, (6, -12)),
    ):
        y, y2 = (_c1(x, n), _c1(x2, n)) if text.startswith("c₁") else (_c2(x), _c2(x2))
        ax.annotate(
            text, (x, y), offset, textcoords="offset points", rotation=angle(x, y, x2, y2),
            **small,
        )  # fmt: skip


def _mark(ax: Any, here: tuple[Array, Array, str]) -> None:
    from matplotlib.patheffects import withStroke

    (x, *x_range), (y, *y_range), label = here
    bars = {
        name: [[value - limits[0]], [limits[1] - value]]
        for name, value, limits in (("xerr", x, x_range), ("yerr", y, y_range))
        if limits
    }
    ax.errorbar(
        x, y, fmt="*", ms=15, color="crimson", mec="white", mew=0.9, ecolor="crimson",
        elinewidth=1.6, capsize=3, zorder=6, **bars,
    )  # fmt: skip
    ax.annotate(
        label, (x, y), (9, 8), textcoords="offset points", color="crimson", weight="bold",
        fontsize=10, zorder=7, path_effects=[withStroke(linewidth=2.5, foreground="white")],
    )  # fmt: skip


def _place(here: tuple[Any, Any, str]) -> tuple[Array, Array, str]:
    """Return the point to mark as arrays of one number, or of value, low and high."""
    snr, dimension, label = here
    arrays = []
    for name, given in (("snr", snr), ("dimension", dimension)):
        array = np.atleast_1d(np.asarray(given, np.float64))
        if array.shape not in ((1,), (3,)) or not (array > 0).all() or np.isinf(array).any():
            raise ValueError(
                f"{name}={given!r} of here must be a positive number, or (value, low, high)"
            )
        arrays.append(array)
    return arrays[0], arrays[1], str(label)
