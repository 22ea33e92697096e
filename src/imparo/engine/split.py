"""Products of float64 matrices on devices that are slow in float64: exact slices in float32.

A matrix is cut into slices of 8 bits each, integers times a power of two that all columns
share. Products of two slices over up to 256 rows are integers below 2²⁴, which float32 sums
without any rounding; they are added in float64. With s slices the result is that of float64
down to 2^{−8s} of the largest entry (Ozaki et al., 2012), from s(s + 1)/2 products.
"""

from typing import Any

#: Bits of a slice, rows of a product, and slices: 2·8 + 8 bits fit into the 24 of float32.
BITS, ROWS, SLICES = 8, 256, 6


def slices_of(F: Any, torch: Any) -> tuple[list[Any], float]:
    """Return slices of F in float32 and their unit: F = unit·Σ_k 2^{−8(k+1)} slice_k, nearly.

    Parameters
    ----------
    F : tensor of shape (b, p), float64
    torch : module

    Returns
    -------
    slices : list of tensors of shape (b, p)
        Of whole numbers up to 2⁷ in size, signed.
    unit : float
    """
    largest = float(F.abs().max()) if F.numel() else 0.0
    exponent = torch.frexp(torch.tensor(max(largest, 1e-300), dtype=torch.float64))[1]
    unit = 2.0 ** (int(exponent) + 1)
    rest, found = F / unit, []
    for _ in range(SLICES):
        rest = rest * 2.0**BITS
        part = torch.round(rest)  # to the nearest: slices are signed, at most 2⁷
        found.append(part.to(torch.float32))
        rest = rest - part
    return found, unit


def add_split_gram(A: Any, F: Any, torch: Any, panel: int) -> None:
    """Add FᵀF to the upper triangle of A in float64, by products of float32.

    Parameters
    ----------
    A : tensor of shape (p, p), float64
    F : tensor of shape (b, p), float64
    torch : module
    panel : int
        Columns of a panel of the upper triangle.
    """
    p = A.shape[0]
    for start in range(0, F.shape[0], ROWS):
        slices, unit = slices_of(F[start : start + ROWS], torch)
        for first in range(0, p, panel):
            rows = slice(first, min(first + panel, p))
            total = torch.zeros_like(A[rows, first:])
            for order in range(SLICES):
                # Products of one order are whole numbers of one size; few of them are added.
                for i in range(order + 1):
                    part = slices[i][:, rows].T @ slices[order - i][:, first:]
                    total.add_(part, alpha=2.0 ** (-BITS * (order + 2)))
            A[rows, first:].add_(total, alpha=unit * unit)
