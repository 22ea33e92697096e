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
from dataclasses import dataclass

import numpy as np

from imparo.engine import Array, Tridiagonal, default_engine
from imparo.errors import NotPositiveDefiniteError
from imparo.statistics import Statistics

#: A reduction to tridiagonal form takes about as long as so many Cholesky factorisations.
REDUCTION = 8
# An error that comes from moments is trusted down to so many times its rounding error.
_TRUST = 1e3


@dataclass(frozen=True)
class Moments:
    """What squared errors on some rows are made of: Σ(y − wᵀφ)² for any w.

    Attributes
    ----------
    A : array of shape (p, p)
        Both triangles.
    b : array of shape (p, T)
    squares : array of shape (T,)
        Σy² of every output.
    weight : float
    noise : float
        Relative rounding error of the entries.
    floor : float
        Rounding error of wᵀAw per unit of ‖w‖², where it is not relative.
    """

    A: Array
    b: Array
    squares: Array
    weight: float
    noise: float
    floor: float = 0.0

    def squared_errors(self, W: Array) -> tuple[Array, Array]:
        """Return Σ(y − wᵀφ)², averaged over outputs, and a bound of its rounding error.

        Parameters
        ----------
        W : array of shape (p, S, T)

        Returns
        -------
        errors, bounds : arrays of shape (S,)
        """
        flat = W.reshape(len(W), W.shape[1] * W.shape[2])
        linear = np.einsum("pst,pt->st", W, self.b)
        AW = default_engine().product(self.A, flat).reshape(W.shape)
        return self._combined(linear, np.einsum("pst,pst->st", W, AW), np.square(W).sum(axis=0))

    def errors_of_every_size(self, R: Array, z: Array) -> tuple[Array, Array]:
        """Return the squared errors of every size 1 … p at once. Cost p³ + 2p²T.

        With C = R⁻ᵀAR⁻¹ and h = R⁻ᵀb, the error of size t is
        Σy² − 2 Σ_{i≤t} h_i z_i + Σ_{i,j≤t} z_i C_ij z_j: three cumulative sums.

        Parameters
        ----------
        R : array of shape (p, p)
        z : array of shape (p, T)

        Returns
        -------
        errors, bounds : arrays of shape (p,)
        """
        engine = default_engine()
        C = engine.congruence(self.A, R)
        linear = np.cumsum(engine.solve_triangular(R, self.b, transpose=True) * z, axis=0)
        own = np.diagonal(C)[:, None] * np.square(z)
        above = engine.product(np.triu(C, 1).T, z)
        quadratic = np.cumsum(own + 2 * z * above, axis=0)
        if not self.floor:
            return self._combined(linear, quadratic, np.zeros_like(quadratic))
        # ‖w_t‖² is the same sum with the identity in the place of A.
        N = engine.congruence(np.eye(len(R)), R)
        above = engine.product(np.triu(N, 1).T, z)
        norms = np.cumsum(np.diagonal(N)[:, None] * np.square(z) + 2 * z * above, axis=0)
        return self._combined(linear, quadratic, norms)

    def _combined(self, linear: Array, quadratic: Array, norms: Array) -> tuple[Array, Array]:
        errors = self.squares - 2 * linear + quadratic
        sizes = self.squares + 2 * np.abs(linear) + np.abs(quadratic)
        bounds = self.noise * sizes + self.floor * norms
        return np.maximum(errors, 0.0).mean(axis=1), bounds.mean(axis=1)


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
        self._A, self._b, self._yy = statistics.upper, statistics.b, np.diagonal(statistics.yy)
        self.feature_mean = np.zeros(len(self._b))
        self.output_mean = np.zeros(self._b.shape[1])
        self.has_intercept = intercept
        if intercept:
            self._A, self._b = statistics.centered()
            self.feature_mean = statistics.feature_sum / statistics.weight
            self.output_mean = statistics.output_sum / statistics.weight
            self._yy = self._yy - self.output_mean * statistics.output_sum
        self._last: tuple[tuple[float, int], tuple[Array, Array]] | None = None
        self._form: tuple[int, Tridiagonal] | None = None

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
        engine = default_engine()
        A = self._A[:size, :size]
        ridge = max(self.total * penalty, self.smallest_ridge(size))
        diagonal = np.diag_indices(size)
        most = 10 * self._floor + _TRUST * self._noise * float(
            np.sum(np.abs(np.diagonal(A))) + np.sum(np.square(self.feature_mean)) * self.total
        )
        R = None
        for _ in range(16):
            work = np.array(A, order="F")
            work[diagonal] += ridge
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
        diagonal = np.diagonal(self._A) + self.total * np.square(self.feature_mean)
        top = float(np.max(diagonal[:size], initial=0.0))
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
        engine, n_outputs = default_engine(), self._b.shape[1]
        W = np.zeros((len(self._b), len(sizes), n_outputs))
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
            inside = np.arange(top)[:, None] < sizes
            rhs = (inside[:, :, None] * z[:, None, :]).reshape(top, len(sizes) * n_outputs)
            W[:top] = engine.solve_triangular(R, rhs).reshape(top, len(sizes), n_outputs)
            return W
        for i, (penalty, size) in enumerate(zip(penalties, sizes, strict=True)):
            R, z = self.factor(penalty, size)
            W[:size, i] = engine.solve_triangular(R, z)
        return W

    def _is_reduced(self, sizes: Array) -> bool:
        """Return whether a reduction serves these pairs better than factors."""
        return bool(len(sizes) > REDUCTION and sizes[0] > 0 and (sizes == sizes[0]).all())

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
                V = default_engine().invert_triangular(self.factor(penalty, top)[0])
                traces = np.concatenate([[0.0], np.cumsum(np.square(V).sum(axis=0))])
            found[i] = size - self.total * penalty * traces[size]
        return found + self.has_intercept

    def intercept(self, w: Array) -> Array:
        """Return the intercept that belongs to weights, shape (T,); 0 without one."""
        return self.output_mean - self.feature_mean @ w

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
        engine, noise = default_engine(), self._noise
        if statistics is None:
            A = np.array(self._A, order="F")
            engine.symmetrize(A)
            return Moments(A, self._b, self._yy, self.total, noise, self._floor)
        A, b, yy = statistics.A, statistics.b, np.diagonal(statistics.yy)
        n, f, o = statistics.weight, self.feature_mean, self.output_mean
        if self.has_intercept:
            sums, outputs = statistics.feature_sum, statistics.output_sum
            A = A - np.outer(sums, f) - np.outer(f, sums) + n * np.outer(f, f)
            b = b - np.outer(f, outputs) - np.outer(sums, o) + n * np.outer(f, o)
            yy = yy - 2 * o * outputs + n * np.square(o)
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
        p, n_outputs = self._b.shape
        every = (penalties == penalties[0]).all() and 3 * len(sizes) * n_outputs > p
        every = every and not self._is_reduced(sizes)
        if not every or np.min(sizes) < 1:
            W = self.solve(penalties, sizes)
            return [moments.squared_errors(W) for moments in held]
        top = int(np.max(sizes))
        R, z = self.factor(penalties[0], top)
        found = []
        for m in held:
            part = Moments(m.A[:top, :top], m.b[:top], m.squares, m.weight, m.noise, m.floor)
            errors, bounds = part.errors_of_every_size(R, z)
            found.append((errors[sizes - 1], bounds[sizes - 1]))
        return found


def trusted(errors: Array, bounds: Array) -> bool:
    """Return whether errors from moments are all well above their rounding errors.

    Where they are not, the differences that they come from have cancelled, and only the
    residuals of the rows themselves tell the errors.

    Parameters
    ----------
    errors, bounds : arrays

    Returns
    -------
    bool
    """
    return bool((errors > _TRUST * bounds).all())


def _noise(dtype: np.typing.DTypeLike) -> float:
    # Entries are sums of products: their errors grow slower than the number of terms.
    return 16 * float(np.finfo(dtype).eps)
