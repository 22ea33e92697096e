"""Ridge regression on a nested map: every (λ, size) from one factor for each λ.

With A = ΦᵀΦ, b = ΦᵀY and R = chol(A + nλI), the leading t × t block of R is the factor of
the first t features, so that R w = (z_1 … z_t, 0 … 0), z = R⁻ᵀb, has the solution for t
features, padded with zeros: S sizes are one triangular solve with S right-hand sides.
Their validation errors are one product with the moments of the held-out rows. This does
what the incremental Nyström algorithm (thesis, Alg. 1; :mod:`imparo.incremental_nystrom`)
does by two rank-one updates a size. Cost L(p³/3 + 3Sp²) for L penalties and S sizes. Where
sizes are few and penalties many, one tridiagonal form a size costs less.
"""

import contextlib
from typing import Any

import numpy as np

from imparo.engine import Array, Tridiagonal, engine_holding
from imparo.errors import NotPositiveDefiniteError
from imparo.moments import TRUST, Moments
from imparo.statistics import Statistics


class NestedRidge:
    """The ridge solutions of every penalty and size, from statistics of a nested map.

    Minimises (1/n) Σ w_i (y_i − wᵀφ_i)² + λ‖w‖², with or without an intercept that is
    not penalised: the ridge is nλ, n the total weight.

    Parameters
    ----------
    statistics : Statistics
    intercept : bool
    dtype : dtype
        That of the features, which sets the rounding error of the statistics.
    floor : float
        Rounding error of the statistics that is not relative to their entries.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.nested import NestedRidge
    >>> from imparo.statistics import Statistics
    >>> rng = np.random.default_rng(0)
    >>> Phi, Y = rng.normal(size=(50, 4)), rng.normal(size=(50, 1))
    >>> ridge = NestedRidge(Statistics(4, 1).add(Phi, Y), intercept=False)
    >>> W = ridge.solve(np.array([0.1, 0.1]), np.array([2, 4]))
    >>> small = Statistics(2, 1).add(Phi[:, :2], Y).solve(0.1)
    >>> bool(np.allclose(W[:2, 0], small)), bool((W[2:, 0] == 0).all())
    (True, True)
    """

    def __init__(
        self,
        statistics: Statistics,
        *,
        intercept: bool,
        dtype: np.typing.DTypeLike = np.float64,
        floor: float = 0.0,
    ) -> None:
        self.total, self._noise, self._floor = statistics.weight, _noise(dtype), floor
        self._eps = float(np.finfo(dtype).eps)
        self._A, self._b, self._yy = statistics.upper, statistics.b, statistics.yy.diagonal()
        self.engine = engine_holding(self._A)
        number = np.dtype(np.float64)
        self.feature_mean = self.engine.zeros((len(self._b),), number)
        self.output_mean = self.engine.zeros((self._b.shape[1],), number)
        self.has_intercept = intercept
        if intercept:
            self._A, self._b = statistics.centered()
            self.feature_mean = statistics.feature_sum / statistics.weight
            self.output_mean = statistics.output_sum / statistics.weight
            self._yy = self._yy - self.output_mean * statistics.output_sum
        self._last: tuple[tuple[float, int], tuple[Array, Array]] | None = None
        self._form: tuple[int, Tridiagonal] | None = None
        self._masks: dict[tuple[int, ...], Array] = {}

    def factor(self, penalty: float, size: int) -> tuple[Array, Array]:
        """Return R and z = R⁻ᵀb of the first ``size`` features. Cost size³/3.

        The ridge is raised where rounding errors of A make it necessary: to 16ε√size of the
        largest diagonal entry, or 16ε of float32 where features are, and by tens until the
        matrix can be factored, as far as rounding errors go.

        Parameters
        ----------
        penalty : float
        size : int

        Returns
        -------
        R, z : arrays of shape (size, size) and (size, T)
        """
        key = (float(penalty), int(size))
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        engine = self.engine
        A = self._A[:size, :size]
        ridge = max(self.total * penalty, self.smallest_ridge(size))
        most = 10 * self._floor + TRUST * self._noise * float(
            abs(A.diagonal()).sum() + (self.feature_mean**2).sum() * self.total
        )
        R = None
        for _ in range(16):
            work = engine.copy(A)
            engine.add_to_diagonal(work, ridge)
            try:
                R = engine.cholesky(work, jitter=False, overwrite=True)
                break
            except NotPositiveDefiniteError:
                if not ridge <= most:
                    break
                ridge *= 10
        if R is None:
            raise NotPositiveDefiniteError(
                "the statistics of these features are not positive semidefinite; check the "
                "kernel and the weights"
            )
        z = engine.solve_triangular(R, self._b[:size], transpose=True)
        self._last = key, (R, z)
        return R, z

    def smallest_ridge(self, size: int) -> float:
        """Return the ridge below which rounding errors decide."""
        # Before centering, which takes out most of the diagonal but not of its errors.
        diagonal = self._A.diagonal()[:size] + self.total * self.feature_mean[:size] ** 2
        top = max(0.0, float(diagonal.max())) if size else 0.0
        # Sums of many rounding errors of features that are float32 average out.
        share = max(16 * self._eps, 16 * np.finfo(np.float64).eps * np.sqrt(max(size, 1)))
        return float(share * (top if top > 0 else 1.0))

    def solve(self, penalties: Array, sizes: Array) -> Array:
        """Return the weights for pairs of penalty and size, padded with zeros.

        Parameters
        ----------
        penalties, sizes : arrays of shape (S,)
            Where all penalties are equal there is one factorisation, where all sizes are and
            penalties many one reduction, else one factorisation a pair.

        Returns
        -------
        array of shape (p, S, T)
        """
        engine, n_outputs = self.engine, self._b.shape[1]
        W = engine.zeros((len(self._b), len(sizes), n_outputs), np.dtype(np.float64))
        if self._is_reduced(sizes):
            size = int(sizes[0])
            ridges = self._ridges(penalties, size)
            # Where rounding errors win, factor() raises the ridge as far as it must.
            with contextlib.suppress(NotPositiveDefiniteError):
                W[:size] = self._reduced(size).solve(ridges, self._b[:size])
                return W
        if len(sizes) and (penalties == penalties[0]).all():
            top = int(np.max(sizes))
            R, z = self.factor(penalties[0], top)
            W[:top] = self._padded_solutions(R, z, sizes)
            return W
        for i, (penalty, size) in enumerate(zip(penalties, sizes, strict=True)):
            R, z = self.factor(penalty, size)
            W[:size, i] = engine.solve_triangular(R, z)
        return W

    def _padded_solutions(self, R: Array, z: Array, sizes: Array) -> Array:
        """Return R⁻¹(z_1 … z_t, 0 … 0) for every size t, shape (p, S, T)."""
        engine, (top, n_outputs) = self.engine, z.shape
        inside = self._inside(sizes)
        rhs = (inside[:, :, None] * z[:, None, :]).reshape(top, len(sizes) * n_outputs)
        return engine.solve_triangular(R, rhs).reshape(top, len(sizes), n_outputs)

    def _inside(self, sizes: Array) -> Array:
        """Return which features every size has, up to the largest, shape (top, S)."""
        key = tuple(sizes.tolist())
        if key not in self._masks:
            self._masks[key] = self.engine.asarray(np.arange(max(key))[:, None] < sizes)
        return self._masks[key]

    def _is_reduced(self, sizes: Array) -> bool:
        """Return whether a reduction serves these pairs better than factors."""
        many = len(sizes) > self.engine.reduction
        return bool(many and sizes[0] > 0 and (sizes == sizes[0]).all())

    def _reduced(self, size: int) -> Tridiagonal:
        """Return the tridiagonal form of A of the first features."""
        if self._form is None or self._form[0] != size:
            self._form = None  # not two of them
            # The lower triangle of a column-major matrix is the upper one of its transpose.
            A = np.array(self._A[:size, :size].T, order="F")
            self._form = size, Tridiagonal(A)
        return self._form[1]

    def _ridges(self, penalties: Array, size: int) -> Array:
        return np.maximum(self.total * penalties, self.smallest_ridge(size))

    def freedom(self, penalties: Array, sizes: Array) -> Array:
        """Return the degrees of freedom Tr(A(A + nλI)⁻¹) of every pair, plus the intercept.

        The leading block of R⁻¹ inverts that of R: t − nλ Σ_{i,j≤t} (R⁻¹)_ij² for all t
        is a cumulative sum. Cost p³/3 for equal penalties.

        Parameters
        ----------
        penalties, sizes : arrays of shape (S,)

        Returns
        -------
        array of shape (S,)
        """
        if self._is_reduced(sizes):
            size = int(sizes[0])
            values = self._reduced(size).eigenvalues()[:, None]
            inverse = np.sum(1 / (values + self._ridges(penalties, size)), axis=0)
            return size - self.total * penalties * inverse + self.has_intercept
        found = np.empty(len(sizes))
        same = (penalties == penalties[0]).all()
        for i, (penalty, size) in enumerate(zip(penalties, sizes, strict=True)):
            if i == 0 or not same:
                top = int(np.max(sizes)) if same else int(size)
                engine = self.engine
                V = engine.invert_triangular(self.factor(penalty, top)[0])
                traces = engine.to_host(engine.xp.square(V).sum(axis=0))
                traces = np.concatenate([[0.0], np.cumsum(traces)])
            found[i] = size - self.total * penalty * traces[size]
        return found + self.has_intercept

    def intercept(self, w: Array) -> Array:
        """Return the intercept that belongs to weights, shape (T,); 0 without one."""
        return self.engine.to_host(self.output_mean - self.feature_mean @ w)

    def moments(self, statistics: Statistics | None = None) -> Moments:
        """Return the moments of rows, own ones if left out, about the means of these.

        Parameters
        ----------
        statistics : Statistics, optional
            Of rows held out.

        Returns
        -------
        Moments
        """
        engine, noise = self.engine, self._noise
        if statistics is None:
            A = engine.copy(self._A)
            engine.symmetrize(A)
            return Moments(A, self._b, self._yy, self.total, noise, self._floor)
        A, b, yy = statistics.A, statistics.b, statistics.yy.diagonal()
        n, f, o = statistics.weight, self.feature_mean, self.output_mean
        if self.has_intercept:
            sums, outputs = statistics.feature_sum, statistics.output_sum
            outer = engine.xp.outer
            A = A - outer(sums, f) - outer(f, sums) + n * outer(f, f)
            b = b - outer(f, outputs) - outer(sums, o) + n * outer(f, o)
            yy = yy - 2 * o * outputs + n * o**2
        return Moments(A, b, yy, n, noise, self._floor)

    def squared_errors(
        self, penalties: Array, sizes: Array, held: list[Moments]
    ) -> list[tuple[Array, Array]]:
        """Return squared errors and their bounds on several sets of rows.

        Sizes are solved for, or all sizes taken at once where that costs less.

        Parameters
        ----------
        penalties, sizes : arrays of shape (S,)
        held : list of Moments

        Returns
        -------
        list of pairs of arrays of shape (S,)
        """
        if not self._takes_every_size(penalties, sizes):
            W = self.solve(penalties, sizes)
            return [self._on_host(moments.squared_errors(W)) for moments in held]
        top = int(np.max(sizes))
        R, z = self.factor(penalties[0], top)
        found = []
        for m in held:
            errors, bounds = self._on_host(m.leading(top).errors_of_every_size(R, z))
            found.append((errors[sizes - 1], bounds[sizes - 1]))
        return found

    def _takes_every_size(self, penalties: Array, sizes: Array) -> bool:
        p, n_outputs = self._b.shape
        many = 3 * len(sizes) * n_outputs > self.engine.congruence_cost * p
        same = (penalties == penalties[0]).all() and not self._is_reduced(sizes)
        return bool(same and many and np.min(sizes) >= 1)

    def _on_host(self, pair: tuple[Array, Array]) -> tuple[Array, Array]:
        return self.engine.to_host(pair[0]), self.engine.to_host(pair[1])

    def errors_side_by_side(
        self, groups: list[tuple[Array, Array]], held: list[Moments]
    ) -> list[list[tuple[Array, Array]]] | None:
        """Return what :meth:`squared_errors` does for many groups, three at a time on a GPU.

        Nothing is waited for until all are asked for: a factorisation leaves a good part of a
        GPU idle, which the solves of another penalty fill.

        Parameters
        ----------
        groups : list of (penalties, sizes)
        held : list of Moments

        Returns
        -------
        list of what squared_errors returns, or None
            None where they must be taken one by one: on a CPU, where sizes are taken all at
            once, or where a matrix could not be factored.
        """
        engine: Any = self.engine
        if not engine.resident or any(
            self._takes_every_size(*group) or not (group[0] == group[0][0]).all()
            for group in groups
        ):
            return None
        tops = {int(np.max(sizes)): 0.0 for _, sizes in groups}
        smallest = {top: self.smallest_ridge(top) for top in tops}
        found, failures = [], []
        for _, sizes in groups:
            self._inside(sizes)  # sent before lanes are open, and kept until they are closed
        engine.open_lanes()
        for number, (penalties, sizes) in enumerate(groups):
            top = int(np.max(sizes))
            with engine.lane(number):
                work = engine.copy(self._A[:top, :top])
                engine.add_to_diagonal(work, max(self.total * penalties[0], smallest[top]))
                R, info = engine.cholesky_unchecked(work)
                z = engine.solve_triangular(R, self._b[:top], transpose=True)
                W = self._padded_solutions(R, z, sizes)
                parts = [m.leading(top).squared_errors(W) for m in held]
                failures.append(info)
                found.append(parts)
        engine.close_lanes()
        if engine.to_host(engine.xp.stack(failures)).any():
            return None
        return [[self._on_host(pair) for pair in parts] for parts in found]


def _noise(dtype: np.typing.DTypeLike) -> float:
    # Entries are sums of products: their errors grow slower than the number of terms.
    return 16 * float(np.finfo(dtype).eps)
