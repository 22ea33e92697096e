"""Squared distances on a device, free of the cancellation of their expansion.

As :mod:`imparo.engine.distances`: one product gives all of them, and those that are small
against its rounding error are computed again from differences. To look for them is a pass of
its own over the block, so it is left out where nobody would see them: in exp(−‖x − z‖²) an
error counts as it is, not relative to the distance.
"""

from typing import Any

# As for NumPy: entries below this share of ‖x‖² + ‖z‖² are computed again, and where they are
# more than MANY of all, the block is computed otherwise.
_RECOMPUTE_BELOW = {"torch.float32": 1e-2, "torch.float64": 1e-6}
_MANY = 0.02
_NUMBERS_AT_ONCE = 2**24
# In units of the width: up to here an error of ε(‖x‖² + ‖z‖²) is as good as none in exp(−s).
_SMALL = 8.0


def squared_distances(
    X: Any, Z: Any, width: float, torch: Any, *, negative: bool = False
) -> Any:
    """Return ‖x − z‖²/width², or its negative, for every pair of rows, shape (n, m).

    Parameters
    ----------
    X, Z : tensors of shape (n, d) and (m, d)
    width : float
    torch : module
    negative : bool
        That of exp(−‖x − z‖²), which forgives absolute errors.

    Returns
    -------
    tensor of shape (n, m)
    """
    sign = -1.0 if negative else 1.0
    dtype = torch.promote_types(X.dtype, Z.dtype)
    if X.shape[0] == 0 or Z.shape[0] == 0:
        return torch.zeros((X.shape[0], Z.shape[0]), dtype=dtype, device=X.device)
    S = _expanded(X, Z, width, dtype, torch, sign)
    if S is None and dtype == torch.float32:
        S = _expanded(X, Z, width, torch.float64, torch, sign)
    if S is None:
        S = torch.cdist(
            X.double() / width, Z.double() / width,
            compute_mode="donot_use_mm_for_euclid_dist",
        ).square_().mul_(sign)  # fmt: skip
    return S.to(dtype)


def _expanded(X: Any, Z: Any, width: float, dtype: Any, torch: Any, sign: float) -> Any:
    """Return ± the distances by one product in ``dtype``, or None where too many cancel."""
    center = Z.mean(dim=0, dtype=torch.float64)
    right = ((Z - center) / width).to(dtype)
    left = right if X is Z else ((X - center) / width).to(dtype)
    xx, zz = left.square().sum(dim=1), right.square().sum(dim=1)
    ones = torch.ones_like(xx)
    # [−2X, ‖x‖², 1] [Z, 1, ‖z‖²]ᵀ: one product instead of three passes over n × m numbers.
    left = torch.column_stack([-2 * sign * left, sign * xx, sign * ones])
    right = torch.column_stack([right, torch.ones_like(zz), zz])
    S = left @ right.T
    largest = xx + zz.max()
    if sign < 0 and float(largest.max()) <= _SMALL:
        return S.clamp_(max=0.0)
    limits = _RECOMPUTE_BELOW[str(dtype)] * largest
    least = S.amin(dim=1) if sign > 0 else -S.amax(dim=1)
    rows = torch.nonzero(limits > least)[:, 0]
    if not len(rows):
        return S
    close = limits[rows, None] > sign * S[rows]
    i, j = torch.nonzero(close, as_tuple=True)
    if len(i) > max(_MANY * S.numel(), 4 * len(X)):
        return None
    i = rows[i]
    pairs = max(1, _NUMBERS_AT_ONCE // max(1, X.shape[1]))
    for start in range(0, len(i), pairs):
        some = slice(start, start + pairs)
        D = (X[i[some]].double() - Z[j[some]].double()) / width
        S[i[some], j[some]] = (sign * D.square().sum(dim=1)).to(dtype)
    return S
