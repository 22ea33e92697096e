"""A rank-one update of a triangular factor: compiled, through BLAS, and refactored."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.linalg import cholesky

from benchmarks.common import machine, show
from imparo.engine import rotations
from imparo.factors import Factor

SIZES = (100, 500, 1280)


def _milliseconds(work: Callable[[], object]) -> float:
    work()
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return 1e3 * min(seconds)


def _refactored(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return cholesky(A + np.outer(x, x))


def _rotated(rotate: rotations.Rotation, factor: Factor, x: np.ndarray, y: np.ndarray) -> None:
    rotate(factor.R, factor.z, x.copy(), y.copy())


def main() -> None:
    rng = np.random.default_rng(0)
    rows = []
    loops = rotations.compiled()
    for p in SIZES:
        Phi, Y = rng.normal(size=(2 * p, p)), rng.normal(size=(2 * p, 1))
        factor = Factor(p, 1, penalty=1.0).update(Phi, Y)
        A = Phi.T @ Phi + np.eye(p)
        row = rng.normal(size=p), rng.normal(size=1)
        refactor = _milliseconds(partial(_refactored, A, row[0]))
        ways = {
            "scipy cholesky, from scratch": refactor,
            "plane rotations through BLAS": _milliseconds(
                partial(_rotated, rotations.row_in_by_blas, factor, *row)
            ),
        }
        if loops is not None:
            ways["plane rotations, compiled by numba"] = _milliseconds(
                partial(_rotated, loops[0], factor, *row)
            )
        for way, milliseconds in ways.items():
            ratio = f"{milliseconds / refactor:.2f}"
            rows.append([f"p = {p}", way, f"{milliseconds:.3f}", ratio])
    show(
        f"One row into a p x p factor\n{machine()}",
        ["size", "way", "milliseconds", "ratio"],
        rows,
    )
