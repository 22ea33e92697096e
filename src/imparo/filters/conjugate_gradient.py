"""Conjugate gradient, stopped early: the best polynomial filter for the y at hand."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from imparo.engine import Array
from imparo.filters.base import Iterative, as_operator, collect
from imparo.persistence import persistent


@persistent
@dataclass(frozen=True)
class ConjugateGradient(Iterative):
    """The t-th iterate minimises the empirical error over the t-th Krylov space.

    Conjugate gradients on the normal equations of least squares in the feature space
    (kernel partial least squares). On a kernel matrix the residuals are orthogonal in
    the inner product of the kernel space, ⟨ρ, ρ'⟩ = ρᵀKρ', so that iterates converge
    to the least-squares fit even where Kα = y has no solution; on ΦᵀΦ and ΦᵀY
    (``primal``) it is the textbook method, with the same functions as iterates.

    g depends on y: it is linear in no useful sense, and leave-one-out and GCV have
    no closed form. Each output has its own coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.filters import ConjugateGradient
    >>> K, y = np.diag([3.0, 1.0]), np.array([[3.0], [1.0]])
    >>> iterates = ConjugateGradient().iterates(K, y)
    >>> _ = next(iterates)
    >>> next(iterates).ravel().round(12)  # two eigenvalues, two steps
    array([1., 1.])
    """

    linear: ClassVar[bool] = False

    def iterates(
        self, M: Any, y: Array, scale: float | None = None, *, primal: bool = False
    ) -> Iterator[Array]:
        """Yield α_1, α_2, …; constant once the residual is down to rounding."""
        product = as_operator(M)
        solution, rest, direction = np.zeros_like(y), y.copy(), y.copy()
        # In the kernel's inner product one more product is needed, M·rest, from which
        # that of the direction follows by the recurrence of the direction itself.
        image_rest = product(rest)
        image = image_rest.copy()
        energy = _dots(rest, rest if primal else image_rest)
        eps = np.finfo(y.dtype).eps
        tiny, size = energy * eps**2, np.zeros_like(energy)
        while True:
            floor = tiny
            if not primal:
                # ρᵀMρ is not known better than to ε‖M‖‖ρ‖². Off the range of M, ρ does
                # not go to 0, and steps from rounding errors would diverge.
                square = _dots(rest, rest)
                stretch = np.divide(
                    _dots(image_rest, image_rest), square,
                    out=np.zeros_like(square), where=square > 0,
                )  # fmt: skip
                size = np.maximum(size, np.sqrt(stretch))
                floor = np.maximum(tiny, 2 * eps * size * square)
            curvature = _dots(direction, image) if primal else _dots(image, image)
            live = (energy > floor) & (curvature > 0)
            length = np.divide(energy, curvature, out=np.zeros_like(energy), where=live)
            solution = solution + length * direction
            yield solution
            rest = rest - length * image
            image_rest = product(rest)
            renewed = _dots(rest, rest if primal else image_rest)
            turn = np.divide(renewed, energy, out=np.zeros_like(energy), where=live)
            direction = np.where(live, rest + turn * direction, 0.0)
            image = np.where(live, image_rest + turn * image, 0.0)
            energy = np.where(live, renewed, 0.0)

    def g(
        self,
        sigma: Array,
        levels: Any,
        scale: float | None = None,
        y: Array | None = None,
    ) -> Array:
        """Return g(σ) for one output with these components.

        Parameters
        ----------
        sigma : array of shape (r,)
        levels : int or array of shape (L,)
        scale : float, optional
            Not used: the method needs no step size.
        y : array of shape (r,)
            The components ⟨qᵢ, y⟩ on the eigenvectors; ones if left out.

        Returns
        -------
        array of shape (r, L)
        """
        sigma = np.asarray(sigma)
        y = np.ones(len(sigma)) if y is None else np.asarray(y)
        steps = self.iterates(lambda v: sigma[:, None] * v, y[:, None])
        solutions = collect(steps, levels)[:, :, 0].T
        return np.divide(
            solutions, y[:, None], out=np.zeros_like(solutions), where=y[:, None] != 0
        )


def _dots(U: Array, V: Array) -> Array:
    return np.einsum("ij,ij->j", U, V)
