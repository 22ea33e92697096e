"""Squared errors of any linear model on some rows, from the moments of these rows."""

from dataclasses import dataclass, replace

from imparo.engine import Array, engine_holding

#: An error that comes from moments is trusted down to so many times its rounding error.
TRUST = 1e3


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

    def leading(self, size: int) -> "Moments":
        """Return those of the first features."""
        return replace(self, A=self.A[:size, :size], b=self.b[:size])

    def squared_errors(self, W: Array) -> tuple[Array, Array]:
        """Return Σ(y − wᵀφ)², averaged over outputs, and a bound of its rounding error.

        Parameters
        ----------
        W : array of shape (p, S, T)

        Returns
        -------
        errors, bounds : arrays of shape (S,)
        """
        engine = engine_holding(W)
        flat = W.reshape(len(W), W.shape[1] * W.shape[2])
        linear = engine.xp.einsum("pst,pt->st", W, self.b)
        AW = engine.product(self.A, flat).reshape(W.shape)
        quadratic = engine.xp.einsum("pst,pst->st", W, AW)
        return self._combined(linear, quadratic, engine.xp.square(W).sum(axis=0))

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
        engine = engine_holding(R)
        xp = engine.xp
        C = engine.congruence(self.A, R)
        linear = xp.cumsum(engine.solve_triangular(R, self.b, transpose=True) * z, axis=0)
        own = C.diagonal()[:, None] * xp.square(z)
        above = engine.product(xp.triu(C, 1).T, z)
        quadratic = xp.cumsum(own + 2 * z * above, axis=0)
        if not self.floor:
            return self._combined(linear, quadratic, xp.zeros_like(quadratic))
        # ‖w_t‖² is the same sum with the identity in the place of A.
        unit = engine.zeros((len(R), len(R)), engine.type_of(R))
        engine.add_to_diagonal(unit, 1.0)
        N = engine.congruence(unit, R)
        above = engine.product(xp.triu(N, 1).T, z)
        norms = xp.cumsum(N.diagonal()[:, None] * xp.square(z) + 2 * z * above, axis=0)
        return self._combined(linear, quadratic, norms)

    def _combined(self, linear: Array, quadratic: Array, norms: Array) -> tuple[Array, Array]:
        errors = self.squares - 2 * linear + quadratic
        sizes = self.squares + 2 * abs(linear) + abs(quadratic)
        bounds = self.noise * sizes + self.floor * norms
        return errors.clip(0.0, None).mean(axis=1), bounds.mean(axis=1)


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
    return bool((errors > TRUST * bounds).all())
