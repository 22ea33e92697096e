"""Velocities and accelerations from the past alone, with a delay that is a number.

A polynomial of order p is fitted by least squares to the last W samples, on their true time
stamps, and its value and derivatives are read at the stamp of the sample ``lag`` before the
newest. No later sample is looked at, ever: what comes out at a sample would have come out
the same while the robot was moving.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from imparo.dynamics.logs.checks import check_stamps, check_values
from imparo.engine import Array

_BLOCK = 1 << 20


class PerSignal(NamedTuple):
    """One number for each of position, velocity and acceleration."""

    q: float
    dq: float
    ddq: float


class CausalDerivative:
    """Position, velocity and acceleration of a stream, one sample at a time.

    The least-squares polynomial of order p through the last W samples, at t₀ = t[n − lag]::

        min over c of Σₖ (c₀ + c₁ sₖ + … + c_p sₖᵖ − qₖ)²,   sₖ = tₖ − t₀
        q = c₀,  dq = c₁,  ddq = 2 c₂

    Cost: about 0.1 ms a sample for p = 2, whatever the number of joints; W samples of memory.

    Parameters
    ----------
    window : int, default 11
        Samples W that a polynomial is fitted to, more than ``order``.
    order : int, default 2
        Order p of the polynomial, 2 or more.
    lag : int, default 0
        Samples between the instant that is estimated and the newest sample, less than
        ``window``. With half a window, (W − 1) / 2, the noise is least and q, dq and ddq
        are all of one instant; with 0 the answer is about now.
    max_gap : float, default infinity
        Seconds; after a longer step the window starts anew.

    Attributes
    ----------
    delay : PerSignal
        Delays in samples for even stamps, see Notes.
    delay_seconds : PerSignal
        The same in seconds, for the stamps in the window; NaN until it is full.
    noise_gain : PerSignal
        Deviation that white noise of deviation 1 on q makes at even stamps with a step of
        1 s; with a step h that of dq is divided by h, that of ddq by h².
    ready : bool
        Whether the window is full. Before, :meth:`update` answers NaN.

    Notes
    -----
    Polynomials up to order p are differentiated exactly, also with uneven stamps, lag
    samples late. With the weights w of the d-th derivative, Σₖ wₖ qₖ, the delay is that
    of slow motions (group delay at frequency 0)::

        delay_d = −Σₖ wₖ (tₖ − tₙ)^(d+1) / (d + 1)!

    It equals ``lag`` where p > d. For p = 2 the acceleration is that of the middle of the
    window: (W − 1) / 2 samples late, whatever the lag. The noise gain is √(Σₖ wₖ²).

    Examples
    --------
    >>> from imparo.dynamics.logs.differentiation import CausalDerivative
    >>> derivative = CausalDerivative(window=5)
    >>> for t in [0.0, 0.1, 0.25, 0.3, 0.4]:
    ...     q, dq, ddq = derivative.update(t, [1.0 + t + 3 * t**2])
    >>> print(q.round(9), dq.round(9), ddq.round(9))
    [1.88] [3.4] [6.]
    >>> derivative.delay
    PerSignal(q=0.0, dq=0.0, ddq=2.0)
    """

    def __init__(
        self, window: int = 11, order: int = 2, lag: int = 0, max_gap: float = math.inf
    ):
        _check_window(window, order, lag, max_gap)
        self.window, self.order, self.lag, self.max_gap = window, order, lag, float(max_gap)
        self.reset()

    def reset(self) -> None:
        """Forget all samples."""
        self._t = np.empty(0)
        self._q = np.empty((0, 0))
        self._shape: tuple[int, ...] | None = None

    @property
    def ready(self) -> bool:
        """Whether the window is full."""
        return len(self._t) == self.window

    @property
    def delay(self) -> PerSignal:
        """Delays in samples, at even stamps."""
        stamps = np.arange(float(self.window))
        return _delays(stamps, _weights(stamps, self.order, self.lag))

    @property
    def delay_seconds(self) -> PerSignal:
        """Delays in seconds, at the stamps in the window."""
        if not self.ready:
            return PerSignal(math.nan, math.nan, math.nan)
        return _delays(self._t, _weights(self._t, self.order, self.lag))

    @property
    def noise_gain(self) -> PerSignal:
        """Deviation of the answers for white noise of deviation 1, at a step of 1 s."""
        weights = _weights(np.arange(float(self.window)), self.order, self.lag)
        return PerSignal(*(float(np.linalg.norm(w)) for w in weights))

    def update(self, t: float, q: Any) -> tuple[Array, Array, Array]:
        """Take one sample; return q, dq and ddq at the sample ``lag`` before it.

        Parameters
        ----------
        t : float
            Stamp in seconds, later than the last.
        q : float or array of shape (J,)
            Positions.

        Returns
        -------
        q, dq, ddq : arrays of the shape of q
            NaN until the window is full. After an error the samples are as before.
        """
        row = np.asarray(q, dtype=np.float64)
        if row.ndim > 1 or (self._shape is not None and row.shape != self._shape):
            expected = "one number or one row" if self._shape is None else str(self._shape)
            raise ValueError(f"q has shape {row.shape}; {expected} was expected")
        if not math.isfinite(t) or not np.isfinite(row).all():
            raise ValueError(f"the sample at t = {t} is not finite; leave such samples out")
        keep = slice(max(len(self._t) + 1 - self.window, 0), None)
        if len(self._t):
            if t <= self._t[-1]:
                raise ValueError(
                    f"the stamp {t} does not exceed the last, {self._t[-1]}; "
                    "give samples in order of time, each once"
                )
            if t - self._t[-1] > self.max_gap:
                keep = slice(0, 0)
        values = row.reshape(1, -1)
        old = self._q if self._shape is not None else values[:0]
        self._shape = row.shape
        self._t = np.append(self._t[keep], t)
        self._q = np.concatenate([old[keep], values])
        if not self.ready:
            nothing = np.full(self._shape, np.nan)
            return nothing, nothing.copy(), nothing.copy()
        found = _fit(self._t[:, None], self._q[:, None], self.order, self.lag)
        first, second, third = (part[0].reshape(self._shape) for part in found)
        return first, second, third


def differentiate(
    t: Any, q: Any, *, window: int = 11, order: int = 2, lag: int = 0, max_gap: float = math.inf
) -> tuple[Array, Array]:
    """Velocities and accelerations of a whole recording, as the stream would give them.

    Row i is, to the bit, what :meth:`CausalDerivative.update` returns at sample i: it uses
    samples up to i only and is about t[i − lag]. Formula, delay and noise are stated there.
    Cost: O(n W J p), some 0.3 s for 100 000 samples of 6 joints.

    Parameters
    ----------
    t : array of shape (n,)
        Stamps in seconds, increasing, even or not.
    q : array of shape (n,) or (n, J)
    window, order, lag, max_gap
        As for :class:`CausalDerivative`.

    Returns
    -------
    dq, ddq : arrays of the shape of q
        NaN in the first ``window − 1`` rows, and in as many after a gap.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.dynamics.logs.differentiation import differentiate
    >>> t = np.arange(20) / 100
    >>> dq, ddq = differentiate(t, t**2, window=7)
    >>> print(round(dq[-1], 9), round(ddq[-1], 9), int(np.isnan(dq).sum()))
    0.38 2.0 6
    """
    _check_window(window, order, lag, max_gap)
    t = check_stamps(t)
    values = check_values(q, t, "q")
    columns = values.reshape(len(t), -1)
    n, width = columns.shape
    out = np.full((2, n, width), np.nan)
    if n >= window:
        stamps = sliding_window_view(t, window).T
        rows = sliding_window_view(columns, window, axis=0).transpose(2, 0, 1)
        block = max(_BLOCK // (window * max(width, 1)), 1)
        for start in range(0, n - window + 1, block):
            part = slice(start, start + block)
            _, dq, ddq = _fit(stamps[:, part], rows[:, part], order, lag)
            out[0, start + window - 1 :][: len(dq)] = dq
            out[1, start + window - 1 :][: len(ddq)] = ddq
        gaps = np.concatenate([[0], np.cumsum(np.diff(t) > max_gap)])
        out[:, window - 1 :][:, gaps[window - 1 :] > gaps[: n - window + 1]] = np.nan
    return out[0].reshape(values.shape), out[1].reshape(values.shape)


def _check_window(window: int, order: int, lag: int, max_gap: float) -> None:
    for name, value in (("window", window), ("order", order), ("lag", lag)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"{name} is {value!r}; give a whole number")
    if order < 2:
        raise ValueError(f"order is {order}; accelerations need 2 or more")
    if window <= order:
        raise ValueError(
            f"window is {window}; a polynomial of order {order} needs more samples"
        )
    if not 0 <= lag < window:
        raise ValueError(f"lag is {lag}; give 0 to {window - 1} samples, within the window")
    if not max_gap > 0:
        raise ValueError(f"max_gap is {max_gap}; give seconds above 0")


def _sum(terms: Array) -> Array:
    # In order along the first axis, whatever the shape: a stream and a batch agree to the bit.
    total: Array = np.add.accumulate(terms, axis=0)[-1]
    return total


def _fit(t: Array, x: Array, order: int, lag: int) -> tuple[Array, Array, Array]:
    """Return value and two derivatives of m polynomials at t[-1 - lag].

    ``t`` has shape (W, m), ``x`` (W, m, J); each result (m, J). Polynomials that are
    orthogonal on the stamps, from their three-term recurrence, keep it well conditioned.
    """
    u = t - t[-1 - lag]
    scale = t[-1] - t[0]
    u = u / scale
    # Less rounding where positions are far from zero; the derivatives do not change.
    base = x[-1 - lag]
    x = x - base
    one, zero = np.ones_like(scale), np.zeros_like(scale)
    on_stamps, before = np.ones_like(u), np.zeros_like(u)
    here, last = (one, zero, zero), (zero, zero, zero)
    norm_before = one
    out = [np.zeros_like(base) for _ in range(3)]
    for degree in range(order + 1):
        squares = on_stamps * on_stamps
        norm = _sum(squares)
        part = _sum(on_stamps[..., None] * x) / norm[:, None]
        for total, value in zip(out, here, strict=True):
            total += value[:, None] * part
        if degree == order:
            break
        a = _sum(u * squares) / norm
        b = norm / norm_before if degree else zero
        p, dp, ddp = here
        before, on_stamps = on_stamps, (u - a) * on_stamps - b * before
        here, last = (
            (
                -a * p - b * last[0],
                p - a * dp - b * last[1],
                2 * dp - a * ddp - b * last[2],
            ),
            here,
        )
        norm_before = norm
    scale = scale[:, None]
    return base + out[0], out[1] / scale, out[2] / (scale * scale)


def _weights(stamps: Array, order: int, lag: int) -> tuple[Array, Array, Array]:
    unit = np.eye(len(stamps))[:, None, :]
    first, second, third = (w[0] for w in _fit(stamps[:, None], unit, order, lag))
    return first, second, third


def _delays(stamps: Array, weights: tuple[Array, Array, Array]) -> PerSignal:
    ages = stamps - stamps[-1]
    found = (-float(w @ ages ** (d + 1)) / math.factorial(d + 1) for d, w in enumerate(weights))
    # Rounding is left out: nine digits say more than anybody knows of a delay.
    return PerSignal(*(round(value, 9) + 0.0 for value in found))
