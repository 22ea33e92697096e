"""A rank-one update of a triangular factor: compiled, through BLAS, and refactored."""

import time
from collections.abc import Callable

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


def main() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for p in SIZES:
        Phi, Y = rng.normal(size=(2 * p, p)), rng.normal(size=(2 * p, 1))
        factor = Factor(p, 1, penalty=1.0).update(Phi, Y)
        A = Phi.T @ Phi + np.eye(p)
        x, y = rng.normal(size=p), rng.normal(size=1)
        refactor = _milliseconds(lambda A=A, x=x: cholesky(A + np.outer(x, x)))
        ways = {
            "scipy cholesky, from scratch": refactor,
            "plane rotations through BLAS": _milliseconds(
                lambda f=factor, x=x, y=y: rotations._rotate_in_by_blas(
                    f.R, f.z, x.copy(), y.copy()
                )
            ),
        }
        compiled = rotations.compiled_rotate_in()
        if compiled is not None:
            ways["plane rotations, compiled by numba"] = _milliseconds(
                lambda f=factor, x=x, y=y, rotate=compiled: rotate(f.R, f.z, x.copy(), y.copy())
            )
        for way, milliseconds in ways.items():
            ratio = f"{milliseconds / refactor:.2f}"
            rows.append([f"p = {p}", way, f"{milliseconds:.3f}", ratio])
    show(
        f"One row into a p x p factor\n{machine()}",
        ["size", "way", "milliseconds", "ratio"],
        rows,
    )
