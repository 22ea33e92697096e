"""Seconds and bytes of a fit, before it is made: operations over measured speeds."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from imparo.engine import Array, default_engine, host_engine
from imparo.engine.blocks import PREFERRED_BLOCK_BYTES
from imparo.features import FeatureRule, as_feature_rule
from imparo.kernels import Kernel

# What even the smallest fit takes: calls, checks, and memory that is not given back.
_LEAST_SECONDS, _LEAST_BYTES, _LEAST_STEP = 0.03, 8e6, 5e-5
# Sizes that speeds are measured at; between them they are interpolated.
_SIZES = (64, 256, 1024)
_ROWS = 1024


@dataclass(frozen=True)
class Cost:
    """What a fit is expected to take.

    Attributes
    ----------
    seconds : float
    bytes : float
        Beyond what the process has before: data and libraries are not counted.
    """

    seconds: float
    bytes: float

    def __str__(self) -> str:
        return f"{as_time(self.seconds)}, {as_bytes(self.bytes)}"


@dataclass(frozen=True)
class Machine:
    """Speeds of this machine, in operations a second at three sizes.

    Attributes
    ----------
    gram : tuple of float
        ΦᵀΦ of 1024 rows: m² operations a row.
    whiten : tuple of float
        ΦT⁻¹: m² a row.
    product : tuple of float
        Matrix products: 2m² a row.
    thin : tuple of float
        Products with one vector: 2m a row.
    cholesky : tuple of float
        m³/3.
    eigen : tuple of float
        Eigendecompositions: 9m³.
    """

    gram: tuple[float, ...]
    whiten: tuple[float, ...]
    product: tuple[float, ...]
    thin: tuple[float, ...]
    cholesky: tuple[float, ...]
    eigen: tuple[float, ...]

    def rate(self, what: str, size: float) -> float:
        """Return the speed of an operation at a size.

        Parameters
        ----------
        what : str
            The name of an attribute.
        size : float

        Returns
        -------
        float
            Operations a second.
        """
        speeds = np.log(getattr(self, what))
        return float(np.exp(np.interp(np.log(max(size, 1.0)), np.log(_SIZES), speeds)))


@cache
def this_machine() -> Machine:
    """Return the speeds of this machine, measured once in a process, in a second or so.

    Returns
    -------
    Machine
    """
    found: dict[str, list[float]] = {name: [] for name in Machine.__annotations__}
    for m in _SIZES:
        for name, (operations, work) in _works(m).items():
            found[name].append(operations / seconds_of(work))
    return Machine(**{name: tuple(speeds) for name, speeds in found.items()})


def _works(m: int) -> dict[str, tuple[float, Callable[[], Any]]]:
    """Return the operations of a machine at one size: how many, and a function to time."""
    rng, engine = np.random.default_rng(0), default_engine()
    F, v, square = (rng.normal(size=shape) for shape in ((_ROWS, m), (m, 1), (m, m)))
    A = host_engine().zeros((m, m), np.dtype(np.float64))
    S = engine.product(F.T, F) + _ROWS * np.eye(m)
    R = engine.cholesky(S)
    return {
        "gram": (_ROWS * m**2, lambda: engine.accumulate_gram(A, F)),
        "whiten": (_ROWS * m**2, lambda: engine.whiten(R, F.copy())),
        "product": (2 * _ROWS * m**2, lambda: engine.product(F, square)),
        "thin": (2 * _ROWS * m, lambda: engine.product(F, v)),
        "cholesky": (m**3 / 3, lambda: engine.cholesky(S)),
        "eigen": (9.0 * m**3, lambda: engine.eigh(S)),
    }


def seconds_of(work: Callable[[], Any], enough: float = 0.03) -> float:
    """Return the median time of a function that is called until ``enough`` seconds passed."""
    work()
    times: list[float] = []
    while sum(times) < enough or len(times) < 3:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


@dataclass(frozen=True)
class Problem:
    """What costs depend on, besides the numbers of centers, penalties and iterations.

    Attributes
    ----------
    n, d : int
        Rows and columns.
    outputs : int
        Columns of the outputs.
    classes : bool
        Whether models are judged by misclassification rates.
    itemsize : int
        Bytes of a number.
    entry : float
        Seconds of a kernel value.
    feature : float
        Seconds of a random feature of a row; infinite where the kernel has none.
    rank : float
        Rank of the kernel matrix over its size, on a sample.
    primal : bool
        Whether an exact fit is one of d columns: a linear kernel with d < n.
    """

    n: int
    d: int
    outputs: int
    classes: bool
    itemsize: int
    entry: float
    feature: float
    rank: float
    primal: bool = False


def entry_seconds(kernel: Kernel, X: Any) -> float:
    """Return the seconds that a kernel value takes, measured on some rows.

    Parameters
    ----------
    kernel : Kernel
    X : array or sparse matrix of shape (s, d)

    Returns
    -------
    float
    """
    rows, centers = X[:1024], X[:512]
    return seconds_of(lambda: kernel(rows, centers)) / (rows.shape[0] * centers.shape[0])


def feature_seconds(kernel: Kernel, X: Any, rule: FeatureRule | str = "fourier") -> float:
    """Return the seconds that a random feature of a row takes, measured on some rows.

    Parameters
    ----------
    kernel : Kernel
    X : array or sparse matrix of shape (s, d)
    rule : FeatureRule or str

    Returns
    -------
    float
        Infinite where the kernel has no such features.
    """
    rule = as_feature_rule(rule)
    try:
        map = rule.draw(kernel, X.shape[1], 512, 0, X[:1024] if rule.needs_rows else None)
    except (TypeError, ValueError):
        return np.inf
    rows = X[:1024]
    return seconds_of(lambda: map.evaluate(rows)) / (rows.shape[0] * 512)


def exact_cost(problem: Problem, penalties: int, machine: Machine) -> Cost:
    """Return the cost of an exact fit with leave-one-out over all penalties.

    Parameters
    ----------
    problem : Problem
    penalties : int
    machine : Machine

    Returns
    -------
    Cost
    """
    n = float(problem.n)
    if problem.primal:
        d, errors = problem.d, n * penalties * problem.outputs
        seconds = n * d**2 / machine.rate("gram", d) + 9 * d**3 / machine.rate("eigen", d)
        seconds += 2 * d * errors / machine.rate("product", d) + 6e-8 * errors
        room = problem.itemsize * (7.5 * errors + 5 * d**2)
        return Cost(_LEAST_SECONDS + seconds, _LEAST_BYTES + room)
    seconds = n**2 * problem.entry + 2 * n**2 * penalties * 1e-9
    if problem.rank < 0.6:
        r = max(1.0, problem.rank * n)
        seconds += (n * r**2 + 4 * n * r**2) / machine.rate("cholesky", r)
        seconds += 9 * r**3 / machine.rate("eigen", r)
    else:
        seconds += 9 * n**3 / machine.rate("eigen", n)
    seconds += 2 * n**2 * problem.outputs / machine.rate("thin", n)
    return Cost(_LEAST_SECONDS + seconds, _LEAST_BYTES + 3.4 * n**2 * problem.itemsize)


def nystrom_cost(
    problem: Problem, m: int, penalties: int, sizes: Array, machine: Machine
) -> Cost:
    """Return the cost of a Nyström fit with a hold-out over all penalties and sizes.

    Parameters
    ----------
    problem : Problem
    m : int
        Number of centers.
    penalties : int
    sizes : array of shape (S,)
    machine : Machine

    Returns
    -------
    Cost
    """
    n = problem.n
    seconds = (n * m + m**2) * problem.entry
    seconds += n * m**2 / machine.rate("whiten", m) + 2 * m**3 / 3 / machine.rate("cholesky", m)
    seconds += _statistics(problem, m, machine)
    seconds += _judging(problem, m, penalties, penalties, sizes, problem.entry, machine)
    return Cost(_LEAST_SECONDS + seconds, _map_bytes(problem, m, penalties, sizes, matrices=7))


def random_feature_cost(
    problem: Problem, m: int, penalties: int, sizes: Array, machine: Machine
) -> Cost:
    """Return the cost of a fit on random features with a hold-out.

    Parameters
    ----------
    problem : Problem
    m : int
        Number of features.
    penalties : int
    sizes : array of shape (S,)
    machine : Machine

    Returns
    -------
    Cost
    """
    factorisations = penalties + len(sizes) - 1
    seconds = problem.n * m * problem.feature + _statistics(problem, m, machine)
    seconds += _judging(problem, m, penalties, factorisations, sizes, problem.feature, machine)
    return Cost(_LEAST_SECONDS + seconds, _map_bytes(problem, m, penalties, sizes, matrices=6))


def nytro_cost(problem: Problem, m: int, iterations: int, machine: Machine) -> Cost:
    """Return the cost of NYTRO with a hold-out: the cheaper of statistics and stored rows.

    Parameters
    ----------
    problem : Problem
    m : int
        Number of centers.
    iterations : int
        Of both walks, the one on held-out rows and the final one, each.
    machine : Machine

    Returns
    -------
    Cost
    """
    n, T = problem.n, problem.outputs
    common = (n * m + m**2) * problem.entry + 2 * m**3 / 3 / machine.rate("cholesky", m)
    common += _LEAST_SECONDS + 2 * iterations * _LEAST_STEP
    slow = machine.rate("thin", m)
    gram = n * m**2 / machine.rate("whiten", m) + _statistics(problem, m, machine)
    gram += 2 * iterations * 2 * m**2 * T / slow
    stored = 2 * iterations * 4 * n * m * T / slow
    if gram <= stored:
        return Cost(common + gram, _map_bytes(problem, m, 1, np.array([m]), matrices=7))
    room = problem.itemsize * n * m + 8 * 4 * m**2 + PREFERRED_BLOCK_BYTES
    return Cost(common + stored, room)


def _statistics(problem: Problem, m: int, machine: Machine) -> float:
    n, T = problem.n, problem.outputs
    return n * m**2 / machine.rate("gram", m) + 2 * n * m * (T + 1) / machine.rate("thin", m)


def _judging(
    problem: Problem, m: int, penalties: int, factorisations: int, sizes: Array, entry: float,
    machine: Machine,
) -> float:  # fmt: skip
    """Return the seconds of all factorisations, solves and errors."""
    S, T = len(sizes), problem.outputs
    # Penalties many, sizes few: a tridiagonal form of each.
    reductions = host_engine().reduction * float(np.sum((np.asarray(sizes) / m) ** 3))
    copies = 3 * 8 * m**2 / 4e9
    each = m**3 / 3 / machine.rate("cholesky", m) + copies
    seconds = (min(factorisations, reductions) + 2) * each + 10 * 8 * m**2 / 4e9
    seconds += penalties * 5 * m**2 * S * T / machine.rate("product", m)
    if problem.classes:
        held = 0.2 * problem.n
        seconds += held * m * entry
        models = penalties * T
        seconds += 2 * held * float(np.sum(sizes)) * models / machine.rate("product", m)
        seconds += held * S * models * 6e-9
    return seconds


def _map_bytes(problem: Problem, m: int, penalties: int, sizes: Array, matrices: int) -> float:
    outputs = 8.0 * problem.n * (problem.outputs + 4)
    # Blocks are sized for four rows of features and three of X; about two are alive.
    per_row = (4 * m + 3 * problem.d) * problem.itemsize
    rows = min(max(PREFERRED_BLOCK_BYTES // per_row, 1024), problem.n)
    models = 8.0 * m * penalties * len(sizes) * problem.outputs * (3 if problem.classes else 1)
    return _LEAST_BYTES + matrices * 8.0 * m**2 + 0.5 * rows * per_row + outputs + models


def as_time(seconds: float) -> str:
    """Return a time as people write it."""
    if seconds < 60:
        return f"{seconds:.2g} s"
    if seconds < 5400:
        return f"{seconds / 60:.3g} min"
    hours = seconds / 3600
    return f"{hours:.3g} h" if hours < 999.5 else f"{hours:,.0f} h"


def as_bytes(size: float) -> str:
    """Return an amount of memory as people write it."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
