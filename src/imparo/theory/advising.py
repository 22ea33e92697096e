"""Which method, how many centers, which penalty, how long: a look at a sample of the data."""

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import type_of_target

from imparo.conditions import Prescription
from imparo.engine import Array, parse_memory
from imparo.estimators import NystromRegressor
from imparo.estimators.grids import halves
from imparo.estimators.inputs import check_rows
from imparo.estimators.targets import encode_classes
from imparo.kernels import Kernel, Linear, Precomputed, as_kernel, median_width, widths
from imparo.theory.advice import CLASSIFICATION, REGRESSION, Advice
from imparo.theory.costs import Problem, entry_seconds, feature_seconds, this_machine
from imparo.theory.dimensions import Dimensions, KernelSpectrum
from imparo.theory.early_stopping import early_stopping_rule, krls_rule, nytro_rule
from imparo.theory.nystrom import fixed_design_rule, nystrom_rule
from imparo.theory.options import Option, choose, options
from imparo.theory.random_features import random_features_rule
from imparo.theory.regimes import fastest
from imparo.theory.signal import Signal, signal_of

# Rows that the data are judged by, and fewer to compare widths.
_SAMPLE, _FOR_WIDTHS = 2000, 800
# Widths to compare, as multiples of the median distance.
_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
# Errors on those rows that are no different.
_SAME_ERROR = 0.02
# A number of centers is enough if its error is within this share of the best.
_ENOUGH = 0.01
# Columns whose spreads differ by more than this ask for scaling.
_UNEVEN = 30.0


def advise(
    X: Any,
    y: Any,
    budget: float = 60.0,
    memory: Any = None,
    *,
    kernel: Any = "gaussian",
    sigma: Any = "auto",
    task: str = "auto",
    random_state: Any = 0,
) -> Advice:
    """Tell which method to fit to some data, with which m, λ and t, and what it will take.

    From 2000 rows at most: the spectrum of the kernel matrix, the effective dimension and
    the noise; where the data stand on the plane of SNR and d̃ (thesis, section 4.3); how many
    centers were enough there. Costs are operations over speeds measured on this machine in
    the first call. Takes a few seconds, whatever n.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, d)
    y : array of shape (n,) or (n, T)
    budget : float
        Seconds that the fit may take.
    memory : int, str or None
        Bytes that it may use, or "2GB"; half of the machine's if None.
    kernel : str or Kernel
    sigma : float, "median", "scale" or "auto"
        "auto" compares five widths by their error on 800 rows.
    task : {"auto", "regression", "classification"}
        "auto" goes by y: whole numbers of few values, and text, are classes.
    random_state : int, RandomState or None
        For the sample.

    Returns
    -------
    Advice

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.theory import advise
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(3000, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.3 * rng.normal(size=3000)
    >>> advice = advise(X, y, budget=10)
    >>> advice.method, advice.size < 1000
    ('nystrom', True)
    >>> model = advice.estimator(random_state=0).fit(X, y)
    """
    number = isinstance(budget, int | float | np.number) and not isinstance(budget, bool)
    if not (number and budget > 0):
        raise ValueError(f"budget={budget!r} must be a number of seconds above 0")
    allowed = parse_memory(memory)
    X = check_array(
        check_rows(X), accept_sparse="csr", dtype=[np.float64, np.float32], order="C"
    )
    n, d = X.shape
    task, Y = _outputs(y, n, task, X.dtype)
    rng = check_random_state(random_state)
    seed = int(rng.randint(2**31 - 1))
    base = as_kernel(kernel)
    if isinstance(base, Precomputed):
        raise ValueError(
            "advice needs a kernel that is a function of two rows, not a precomputed matrix; "
            "give another kernel"
        )
    base.check_rows(X)
    chosen = _with_width(base, sigma, X, Y, seed)
    spectrum = KernelSpectrum(X, chosen, exact_rows=_SAMPLE, random_state=seed)
    found = signal_of(spectrum, Y)
    # A kernel that is 0 on all rows has no scale of its own.
    best_penalty, kappa = found.penalty.value, spectrum.bound or 1.0
    here = spectrum.dimensions(best_penalty)
    sample_size = _enough_on_sample(X, Y, chosen, spectrum, seed)
    falling = not spectrum.exact and sample_size == len(spectrum.rows) // 2
    growth = _growth(spectrum, best_penalty)
    needed = int(np.clip(np.ceil(sample_size * growth), 1, n))
    problem = Problem(
        n=n, d=d, outputs=Y.shape[1], classes=task == CLASSIFICATION,
        itemsize=X.dtype.itemsize, entry=entry_seconds(chosen, X[spectrum.rows]),
        feature=feature_seconds(chosen, X[spectrum.rows]),
        rank=spectrum.full.value / len(spectrum.rows),
        primal=isinstance(chosen, Linear) and d < n,
    )  # fmt: skip
    steps = int(min(np.ceil(np.sqrt(kappa / best_penalty)), 2**53))
    every = options(problem, needed, steps, float(budget), allowed, this_machine())
    best, reason = choose(every)
    return Advice(
        task=task, n=n, d=d, kernel=chosen, dimensions=here, signal=found,
        curve=spectrum.curve(np.geomspace(kappa, min(1e-9 * kappa, best_penalty / 3), 28)),
        decay=spectrum.decay(),
        regime=fastest(kappa / best_penalty, max(here.maximal.value, 1e-12), n),
        needed=needed, method=best.method, size=best.size, penalty=best_penalty,
        iterations=int(min(np.ceil(kappa / best_penalty), 2**53)),
        cost=best.cost, reason=reason, options=tuple(every),
        prescriptions=_prescriptions(spectrum, found, here, n),
        notes=tuple(_notes(X, found, needed, best, falling)),
        budget=float(budget), memory=allowed,
    )  # fmt: skip


def _outputs(y: Any, n: int, task: str, dtype: np.dtype[Any]) -> tuple[str, Array]:
    if task not in ("auto", REGRESSION, CLASSIFICATION):
        raise ValueError(
            f"task={task!r} is not known; give 'auto', 'regression' or 'classification'"
        )
    y = np.asarray(y)
    if y.shape[:1] != (n,) or y.ndim > 2:
        raise ValueError(
            f"y has shape {y.shape} and X has {n:,} rows; give one y for every row"
        )
    if y.dtype.kind in "Mm":
        raise ValueError("y holds dates or times; give numbers or classes")
    if y.dtype.kind == "O" and any(value is None for value in y.ravel()):
        raise ValueError("y holds None; drop such rows, or fill them in")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y holds NaN or infinity; give finite numbers")
    if task == "auto":
        kind = type_of_target(y)
        # Text is always classes; whole numbers are where they come again and again.
        text = y.dtype.kind in "USO"
        most = min(max(20, int(np.sqrt(n)) // 4), n // 2)
        few = y.ndim == 2 or text or len(np.unique(y)) <= most
        if kind == "multiclass" and text and len(np.unique(y)) > max(20, n // 2):
            raise ValueError(
                f"y holds text of {len(np.unique(y)):,} kinds in {n:,} rows, too many for "
                "classes; give numbers, or task='classification' if classes they are"
            )
        classes = kind in ("binary", "multilabel-indicator") or (kind == "multiclass" and few)
        task = CLASSIFICATION if classes else REGRESSION
    if task == CLASSIFICATION:
        return task, encode_classes(y, dtype)[0].reshape(n, -1)
    try:
        Y = y.astype(np.float64).reshape(n, -1)
    except ValueError:
        raise ValueError(
            "y holds text, which regression cannot learn; give task='classification'"
        ) from None
    return task, Y


def _with_width(kernel: Kernel, sigma: Any, X: Any, Y: Array, seed: int) -> Kernel:
    """Return the kernel with its width, the best of a few on some rows for "auto"."""
    if not kernel.needs_sigma:
        return kernel
    if not (isinstance(sigma, str) and sigma == "auto"):
        found = widths(sigma, kernel, X)
        if len(found) > 1:
            raise ValueError(f"sigma={sigma!r} is a grid; give one width, or 'auto'")
        return kernel.with_sigma(float(found[0]))
    rows = _some(X.shape[0], _FOR_WIDTHS, seed)
    few, outputs = X[rows], Y[rows]
    median = median_width(few, kernel.width_distance or "euclidean")
    candidates = [kernel.with_sigma(median * factor) for factor in _MULTIPLES]
    errors = np.array([signal_of(KernelSpectrum(few, k), outputs).error for k in candidates])
    # Of those that the rows cannot tell apart, the one nearest to the median.
    close = np.flatnonzero(errors <= (1 + _SAME_ERROR) * errors.min())
    return candidates[min(close, key=lambda i: abs(np.log(_MULTIPLES[i])))]


def _some(n: int, size: int, seed: int) -> Array:
    if n <= size:
        return np.arange(n)
    return np.sort(np.random.RandomState(seed).choice(n, size, replace=False))


def _enough_on_sample(
    X: Any, Y: Array, kernel: Kernel, spectrum: KernelSpectrum, seed: int
) -> int:
    """Return the fewest centers within 1 % of the best error on the sample."""
    rows = spectrum.rows
    if len(rows) < 10:
        return len(rows)
    model = NystromRegressor(
        kernel, n_centers=halves(len(rows) // 2), intercept=True, random_state=seed
    ).fit(X[rows], Y[rows])
    errors = model.path_.errors.min(axis=0)
    enough = np.flatnonzero(errors <= (1 + _ENOUGH) * errors.min())[0]
    return int(model.path_.sizes[enough])


def _growth(spectrum: KernelSpectrum, penalty: float) -> float:
    """Return by how much the effective dimension grows from the sample to all rows."""
    if spectrum.exact:
        return 1.0
    shrink = (len(spectrum.rows) / spectrum.n) ** (1 / (1 + spectrum.decay()))
    small = spectrum.effective(penalty / shrink).value
    large = spectrum.effective(penalty).value
    return max(1.0, large / small) if small > 0 else 1.0


def _prescriptions(
    spectrum: KernelSpectrum, found: Signal, here: Dimensions, n: int
) -> tuple[Prescription, ...]:
    """Return what the theorems ask for at the dimensions that were found."""
    if found.snr.value <= 0 or n < 3 or spectrum.norm <= 0:
        return ()
    kappa, gamma = spectrum.bound, float(np.clip(spectrum.decay(), 0.01, 1.0))
    # For a kernel of bound 1, as the constants ask for.
    common: dict[str, Any] = {
        "norm": spectrum.norm / kappa,
        "kernel_bound": 1.0,
        "gamma": gamma,
        "effective_dimension": lambda t: spectrum.effective(kappa * t).value,
        "max_dimension": lambda t: spectrum.maximal(kappa * t).value,
    }
    largest = float(here.maximal.value)
    return (
        krls_rule(
            n,
            found.snr.value,
            effective_dimension=spectrum.effective(found.safe_penalty).value,
            noise_variance=found.noise.value,
        ),
        fixed_design_rule(n, here.penalty, largest, kernel_bound=kappa),
        early_stopping_rule(n, penalty=here.penalty, kernel_bound=kappa),
        nytro_rule(n, largest, penalty=here.penalty, kernel_bound=kappa),
        nystrom_rule(n, **common),
        nystrom_rule(n, sampling="leverage", accuracy=2.0, **common),
        random_features_rule(n),
        random_features_rule(n, gamma=gamma),
    )  # fmt: skip


def _notes(X: Any, found: Signal, needed: int, best: Option, falling: bool) -> list[str]:
    notes = []
    if hasattr(X, "toarray"):
        spreads = np.ones(1)
    else:
        some = X[_some(X.shape[0], _SAMPLE, 0)]
        spreads = some.std(axis=0)
        spreads = spreads[spreads > 0]
    if len(spreads) and spreads.max() > _UNEVEN * spreads.min():
        times = spreads.max() / spreads.min()
        notes.append(
            f"the spreads of the columns differ by a factor of {times:,.0f}; scale them first, "
            "for instance with StandardScaler"
        )
    if found.explained < 0.02:
        notes.append("hardly any of the variance of y is explained: check the columns")
    if falling and best.method != "exact":
        notes.append(
            "on the sample the error was still falling where half of its rows were centers: "
            "more than these may pay"
        )
    if best.size < needed and best.method != "exact":
        notes.append(
            f"the data call for about {needed:,} centers: more seconds or bytes would lower "
            "the error"
        )
    return notes
