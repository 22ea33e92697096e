"""Recursive regularized least squares: the model of all rows so far, in constant time.

A = Σγ^(k−i) x_i x_iᵀ + λγ^k I is kept as L with A⁻¹ = LᵀL, and W = A⁻¹b by the gain (thesis,
section 7.4.2 and chapter 8). *Recursive convention*: the sum of the losses plus λ‖w‖², λ
entering once; the printed "+ λI" at every step is a slip.
"""

import math
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import blas, solve_triangular

from imparo.engine import Array, default_engine
from imparo.engine.inverse_roots import absorb_rows
from imparo.persistence import persistent

# Rows whose errors wait to enter the weights together: 3DT numbers are then moved for all of
# them, not for each, and a thousand outputs cost little more than ten.
DELAY = 32


class Judged(NamedTuple):
    """Rows with their outputs as they were predicted before the rows were learned.

    ``shares`` is which part of a squared error is left once its row is learned.
    """

    targets: Array
    predictions: Array
    weights: Array
    shares: Array


@persistent
class Recursion:
    """The least-squares model of a stream of rows, for one penalty.

    A row costs 7D²/2 + 4DT flops and no memory. Rows enter L at once, and the weights after
    ``DELAY`` rows, in one product; until then predictions count them in. The result does not
    depend on how rows are grouped into calls, to the last bit.

    Parameters
    ----------
    n_features, n_outputs : int
        D and T.
    penalty : float
        λ > 0 of the *sum* of losses plus λ‖w‖².
    forgetting : float
        γ in (0, 1]: what is left of the weight of all rows when a new one comes.
    directional : bool
        Forget in the direction of the new row only (Kulhavý's restricted forgetting): what is
        not seen is not forgotten, and never more than down to the penalty.
    dtype : dtype

    Attributes
    ----------
    root : array of shape (D, D)
        L = R⁻ᵀ, lower triangular, A = RᵀR.
    residual : array of shape (T,)
        min_w Σγ^(k−i)(y − xᵀw)² + λγ^k‖w‖², without the rows that wait.
    weight : float
        Number of rows, faded with them.
    prior : float
        What is left of λ.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.lifelong.recursion import Recursion
    >>> model = Recursion(1, 1, penalty=1.0)
    >>> _ = model.learn(np.array([[1.0], [2.0]]), np.array([[1.0], [2.0]]))
    >>> model.coefficients()
    array([[0.83333333]])
    """

    def __init__(
        self,
        n_features: int,
        n_outputs: int,
        penalty: float,
        *,
        forgetting: float = 1.0,
        directional: bool = False,
        dtype: np.typing.DTypeLike = np.float64,
    ) -> None:
        self.penalty = self.prior = float(penalty)
        self.forgetting, self.directional = float(forgetting), bool(directional)
        self.root = np.diag(np.full(n_features, 1 / math.sqrt(penalty), dtype))
        self.weight = 0.0
        self.n_outputs = n_outputs
        self.residual = np.zeros(n_outputs)
        self._coef = np.zeros((n_outputs, n_features), dtype)
        self._rows = np.zeros((DELAY, n_features), dtype)
        self._gains = np.zeros((DELAY, n_features), dtype)
        self._targets = np.zeros((DELAY, n_outputs), dtype)
        self._errors = np.zeros((0, n_outputs), dtype)
        self._shares = np.zeros(DELAY)
        self._weights = np.zeros(DELAY)
        self._n_waiting = 0

    @property
    def n_features(self) -> int:
        """Number D of columns."""
        return len(self.root)

    @property
    def penalty_left(self) -> float:
        """What is left of λ, as far as it is told from noise: never 0."""
        return max(self.prior, self._floor)

    @property
    def n_free(self) -> int:
        """How many rows may still come before all enter the weights."""
        return DELAY - self._n_waiting

    # Learning.

    def learn(self, X: Array, Y: Array, weights: Array | None = None) -> list[Judged]:
        """Learn rows in their order, in place.

        Parameters
        ----------
        X : array of shape (k, D)
            Row-major, finite and of the type of ``root``.
        Y : array of shape (k, T)
        weights : array of shape (k,), optional
            How many rows each counts for; X and Y hold them times the root of that.

        Returns
        -------
        list of Judged
            Rows, ``DELAY`` at a time, that have entered the weights, with their predictions
            before they were learned: the prequential test, at no cost.
        """
        weights = np.ones(len(X)) if weights is None else weights
        judged, done = [], 0
        while done < len(X):
            start = self._n_waiting
            part = slice(done, done + DELAY - start)
            rows = X[part]
            stop = start + len(rows)
            self._gains[start:stop], self._shares[start:stop] = self._absorb(rows)
            for weight in weights[part].tolist():
                self.weight = self.forgetting * self.weight + weight
            self._weights[start:stop] = weights[part]
            self._rows[start:stop] = rows
            self._targets[start:stop, : self.n_outputs] = Y[part]
            self._n_waiting, done = stop, done + len(rows)
            if stop == DELAY:
                judged.append(self.settle())
        return judged

    def _absorb(self, rows: Array) -> tuple[Array, Array]:
        """Change L; return gains, and which part of a squared error is left by its row."""
        if self.forgetting == 1:
            directions, totals = absorb_rows(self.root, rows)
            return directions / totals[:, None], 1 / totals
        absorb = self._absorb_in_direction if self.directional else self._absorb_fading
        found = [absorb(rows[i : i + 1]) for i in range(len(rows))]
        return np.concatenate([gain for gain, _ in found]), np.array([s for _, s in found])

    def _absorb_fading(self, row: Array) -> tuple[Array, float]:
        fade = self.forgetting
        direction, (total,) = absorb_rows(self.root, row, fade=fade)
        self.prior *= fade
        self._renew(most=1)
        return direction / total, fade / float(total)

    @property
    def _floor(self) -> float:
        """The least penalty that is still told from noise."""
        return float(np.finfo(self.root.dtype).eps) ** 0.75 * self.penalty

    def _renew(self, most: int | None = None) -> None:
        """Give columns that rows no longer show their penalty anew, around their weights."""
        diagonal = np.diagonal(self.root).astype(np.float64)
        idle = np.flatnonzero(diagonal**2 * self._floor >= 1)
        if len(idle):
            worst = idle[np.argsort(-diagonal[idle])][:most]
            units = np.zeros((len(worst), self.n_features), self.root.dtype)
            units[np.arange(len(worst)), worst] = 1
            absorb_rows(self.root, units, weight=self.penalty)

    def _absorb_in_direction(self, row: Array) -> tuple[Array, float]:
        leverage = float(self.leverage(row)[0])
        # A + share·xxᵀ is what keeps a leverage of 1/γ − 1.
        share = self.forgetting - (1 - self.forgetting) / leverage if leverage > 0 else 0.0
        direction, _ = absorb_rows(self.root, row, weight=max(share, 0.0))
        if share < 0:
            self._loosen(row[0], leverage)
        return direction / (1 + leverage), 1 / (1 + leverage)

    def _loosen(self, x: Array, leverage: float) -> None:
        """Forget in the direction of x, and never more than down to the penalty.

        M = A − λI is what rows have told. M − c·Mx xᵀM is positive semidefinite for any
        c up to 1/xᵀMx; A − share·xxᵀ may fall below λI in other directions.
        """
        largest = np.abs(x).max()
        x = x / largest
        x /= np.sqrt(x @ x)
        solve = partial(solve_triangular, self.root, lower=True, check_finite=False)
        Ax, penalty = solve(solve(x, trans=1)), self.penalty
        told = Ax - self.root.dtype.type(penalty) * x
        q = float(told @ x)
        if q <= np.finfo(self.root.dtype).eps ** 0.5 * float(Ax @ x):
            return
        own = float(self.leverage(x[None])[0])
        more, along = own * (1 / (self.forgetting * (1 + leverage)) - 1), 1 - penalty * own
        part = more * q / (along**2 + more * (q - penalty * along))
        told /= self.root.dtype.type(math.sqrt(q))
        absorb_rows(self.root, told[None], weight=-min(part, 1 - self.forgetting))

    def settle(self) -> Judged:
        """Let the rows that wait enter the weights; return how they were predicted."""
        n, T, product = self._n_waiting, self.n_outputs, default_engine().product
        X, G, targets = self._rows[:n], self._gains[:n], self._targets[:n, :T].copy()
        if n == 0:
            return Judged(targets, targets, self._weights[:0].copy(), self._shares[:0].copy())
        # Row r is predicted with the gains of those before it: a triangular system.
        earlier = np.tril(product(X, G.T), -1)
        errors = targets - product(X, self._coef[:T].T)
        errors = solve_triangular(
            earlier, errors, lower=True, unit_diagonal=True, check_finite=False
        )
        # Wᵀ + GᵀE in place: W is read and written once.
        gemm = blas.get_blas_funcs("gemm", (G,))
        gemm(1.0, G.T, errors, beta=1.0, c=self._coef[:T].T, overwrite_c=1)
        self.residual = self._residual_with(errors)
        self._n_waiting, self._errors = 0, self._errors[:0]
        weights, shares = self._weights[:n].copy(), self._shares[:n].copy()
        return Judged(targets, targets - errors, weights, shares)

    def fade(self, factor: float) -> None:
        """Multiply the weight of all rows, and the penalty, by ``factor``. Cost D²."""
        self.settle()
        self.root /= self.root.dtype.type(math.sqrt(factor))
        self.residual *= factor
        self.weight *= factor
        self.prior *= factor
        self._renew()

    # What is known.

    def predict(self, X: Array) -> Array:
        """Return predictions, shape (k, T), of all that was learned. Cost 2kDT."""
        T, product = self.n_outputs, default_engine().product
        if len(X) == 1:  # without the detours of a product of matrices
            one = self._coef[:T] @ X[0]
            if self._n_waiting:
                one += (self._gains[: self._n_waiting] @ X[0]) @ self._waiting_errors()
            return one[None]
        F = product(X, self._coef[:T].T)
        if self._n_waiting:
            gains = product(X, self._gains[: self._n_waiting].T)
            F += product(gains, self._waiting_errors())
        return F

    def coefficients(self) -> Array:
        """Return the weights W of all that was learned, shape (T, D)."""
        W = self._coef[: self.n_outputs].copy()
        if self._n_waiting:
            errors = np.ascontiguousarray(self._waiting_errors().T)
            W += default_engine().product(errors, self._gains[: self._n_waiting])
        return W

    def _waiting_errors(self) -> Array:
        """Return the errors of the rows that wait, each before it was learned.

        Row by row, so that bits do not depend on when somebody asked.
        """
        n, T, known = self._n_waiting, self.n_outputs, len(self._errors)
        if known < n:
            errors = np.empty((n, T), self._coef.dtype)
            errors[:known] = self._errors
            for r in range(known, n):
                x = self._rows[r]
                predicted = self._coef[:T] @ x
                predicted += (self._gains[:r] @ x) @ errors[:r]
                errors[r] = self._targets[r, :T] - predicted
            self._errors = errors
        return self._errors

    def leverage(self, X: Array) -> Array:
        """Return xᵀA⁻¹x, from 0 to ‖x‖²/λ: how little is known in the direction of x."""
        if len(X) == 1:  # half the numbers of a product
            trmv = blas.get_blas_funcs("trmv", (self.root,))
            roots = trmv(self.root.T, X[0], trans=1)[None]
        else:
            roots = default_engine().product(X, self.root.T)
        return np.einsum("ij,ij->i", roots, roots)

    def noise(self) -> Array:
        """Return the estimated variance of the noise of each output; NaN before any row."""
        left = self._residual_with(self._waiting_errors())
        return left / self.weight if self.weight > 0 else np.full(self.n_outputs, np.nan)

    def _residual_with(self, errors: Array) -> Array:
        """Return the residual with rows that wait, given their errors before learning."""
        n = len(errors)
        fades = self.forgetting ** np.arange(n, -1, -1.0)
        return fades[0] * self.residual + (fades[1:] * self._shares[:n]) @ np.square(
            _bounded(errors)
        )

    # Outputs and columns that come and go.

    def add_outputs(self, count: int) -> None:
        """Add outputs that were 0 so far. Cost D for each, and now and then a copy."""
        wanted = self.n_outputs + count
        if wanted > len(self._coef):
            room = max(wanted, 2 * len(self._coef))
            self._coef = _padded(self._coef, 0, room)
            self._targets = _padded(self._targets, 1, room)
        self._targets[:, self.n_outputs : wanted] = 0
        self._coef[self.n_outputs : wanted] = 0
        # Anew: products of more outputs may round differently.
        self._errors = np.zeros((0, wanted), self._errors.dtype)
        self.residual = _padded(self.residual, 0, wanted)
        self.n_outputs = wanted

    def remove_output(self, output: int) -> None:
        """Forget an output; the others are as if it had never been asked for."""
        self.settle()
        self._coef = np.delete(self._coef, output, axis=0)
        self._targets = np.delete(self._targets, output, axis=1)
        self._errors = np.delete(self._errors, output, axis=1)
        self.residual = np.delete(self.residual, output)
        self.n_outputs -= 1

    def join_outputs(self, kept: int, gone: int) -> None:
        """Make one output of the sum of two, and remove the other."""
        self.settle()
        self._coef[kept] += self._coef[gone]
        self.residual[kept] += self.residual[gone]
        self.remove_output(gone)

    def add_features(self, count: int) -> None:
        """Add columns that were 0 so far. Cost D²."""
        self.settle()
        old, new = self.n_features, self.n_features + count
        root = np.zeros((new, new), self.root.dtype)
        root[:old, :old] = self.root
        places = np.arange(old, new)
        root[places, places] = 1 / math.sqrt(self.penalty_left)
        self.root = root
        self._coef = _padded(self._coef, 1, new)
        self._rows = _padded(self._rows, 1, new)
        self._gains = _padded(self._gains, 1, new)

    def merge(self, other: "Recursion", outputs: Any) -> Self:
        """Add the rows of another recursion, in place; the penalty counts once. Cost D³.

        Parameters
        ----------
        other : Recursion
            With the same columns; not changed.
        outputs : array of shape (T_other,)
            Which of the outputs here each of the other's is.
        """
        self.settle()
        # The other's rows without their penalty, as D rows with the same sums: A is not
        # squared, so that a penalty far below rounding of A does no harm.
        # NumPy's decompositions let other threads work, SciPy's do not: a merge takes seconds.
        _, s, V = np.linalg.svd(_inverse(other.root.T), full_matrices=False)
        known = s**2 - other.prior > len(s) * np.finfo(s.dtype).eps * s[0] * s
        s, V = s[known], V[known]
        own = s**2 - other.prior
        F = V @ other.coefficients().T
        Z, Y = np.sqrt(own)[:, None] * V, (s**2 / np.sqrt(own))[:, None] * F
        outside = (s**2 / own)[:, None] * np.square(F, dtype=np.float64) * other.prior
        left = other.noise() * other.weight - outside.sum(axis=0) if other.weight else 0.0
        errors = np.zeros((len(Z), self.n_outputs), Y.dtype)
        errors[:, outputs] = Y
        errors -= Z @ self._coef[: self.n_outputs].T
        old = _inverse(self.root.T)
        Q, R = np.linalg.qr(np.vstack([old, Z]))
        Q, R = Q * np.sign(np.diagonal(R)), R * np.sign(np.diagonal(R))[:, None]
        wanted = np.vstack([np.zeros((len(old), self.n_outputs), Y.dtype), errors])
        parts = Q.T @ wanted
        self.root = np.ascontiguousarray(_inverse(R).T)
        self._coef[: self.n_outputs] += parts.T @ self.root
        self.residual += np.square(wanted - Q @ parts, dtype=np.float64).sum(axis=0)
        self.residual[outputs] += left
        self.weight += other.weight
        return self


def _inverse(R: Array) -> Array:
    """Return the inverse of an upper triangular matrix, as exact as substitution.

    LU finds L = I and U = R; NumPy's lets other threads work meanwhile, ``trtri`` does not.
    """
    return np.triu(np.linalg.inv(R))


def _padded(array: Array, axis: int, size: int) -> Array:
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, size - array.shape[axis])
    return np.pad(array, widths)


def _bounded(errors: Array) -> Array:
    """Return errors in float64, so that their squares are finite."""
    return np.clip(errors.astype(np.float64), -1e150, 1e150)
