"""The parameters of the stochastic gradient estimators, checked; the features they ask for."""

from typing import Any

import numpy as np
from sklearn.base import is_regressor

from imparo.data.sources import Source
from imparo.engine import Array, parse_memory
from imparo.errors import MemoryBudgetError
from imparo.estimators import grids
from imparo.estimators.candidates import Candidate, is_learned
from imparo.estimators.inputs import check_type
from imparo.estimators.sgm_rows import REPLACEMENT, SHUFFLED
from imparo.estimators.sgm_steps import Steps
from imparo.estimators.subsampled import Subsampled, are_given, n_given
from imparo.estimators.transformers import (
    check_features,
    check_sparse,
    rows_to_choose_by,
    takes_sparse,
)
from imparo.features import FEATURE_NAMES, FeatureMap, NystromMap, as_feature_rule
from imparo.features.nystrom import check_values
from imparo.kernels import Kernel, Linear
from imparo.losses import Exponential, Hinge, Logistic, Loss, as_loss
from imparo.sgm import State

LINEAR, EXACT, NYSTROM, RANDOM = "linear", "exact", "nystrom", "random"
# Up to so many rows an expansion over all of them is as quick as features are.
_FEW = 5000
# Passes that "auto" makes at most.
_MOST_PASSES = 100
# Features by default: so many times √n, within limits; twice as many if they are random.
_FEATURES, _FEWEST, _MOST = 6, 200, 4000
# Matrices of m x m numbers that are in memory while a map to m centers is made.
_MATRICES = 6
# Rows by which an unbounded K(x, x) is bounded.
_SAMPLE = 1000


class SGMParameters(Subsampled):
    """Parameters of the stochastic gradient estimators."""

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        sigma: Any = "median",
        loss: Any = "square",
        step: Any = "auto",
        decay: Any = 0.0,
        beta: float = 1.0,
        epochs: Any = 1,
        patience: int | None = 5,
        checks_per_epoch: int = 1,
        average: bool = True,
        sampling: str = "shuffled",
        batch_size: int = 1,
        features: Any = "auto",
        n_features: Any = "auto",
        centers: Any = "uniform",
        intercept: bool = False,
        warm_start: bool = False,
        validation: Any = 0.2,
        memory: Any = None,
        device: Any = None,
        dtype: Any = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        self.kernel = kernel
        self.sigma = sigma
        self.loss = loss
        self.step = step
        self.decay = decay
        self.beta = beta
        self.epochs = epochs
        self.patience = patience
        self.checks_per_epoch = checks_per_epoch
        self.average = average
        self.sampling = sampling
        self.batch_size = batch_size
        self.features = features
        self.n_features = n_features
        self.centers = centers
        self.intercept = intercept
        self.warm_start = warm_start
        self.validation = validation
        self.memory = memory
        self.device = device
        self.dtype = dtype
        self.random_state = random_state
        self.progress = progress

    def _takes_sparse(self, kernel: Kernel) -> bool:
        if isinstance(self.features, str) and self.features in ("auto", EXACT, NYSTROM):
            return kernel.sparse
        return takes_sparse(self.features)

    def _checked_loss(self) -> Loss:
        loss = as_loss(self.loss)
        if is_regressor(self) and isinstance(loss, Hinge | Logistic | Exponential):
            raise ValueError(
                f"loss={self.loss!r} is for classes, coded as -1 and 1; use SGMClassifier, or "
                "'square', 'absolute' or 'epsilon_insensitive'"
            )
        try:
            loss.derivative(np.ones(1), np.zeros(1))
        except TypeError as error:
            raise ValueError(f"loss={self.loss!r} has no gradient: {error}") from error
        return loss

    def _checked_kind(self, kernel: Kernel, source: Source, *, stream: bool = False) -> str:
        """Return where the weights live, or raise where parameters do not fit together."""
        self._check_kernel(kernel, source)
        m, named = self.n_features, self.features if isinstance(self.features, str) else ""
        free = isinstance(m, str) and m == "auto"
        whole = isinstance(m, int | np.integer) and not isinstance(m, bool)
        check_type(
            "n_features", m, "a whole number from 1 on, or 'auto'", free or (whole and m >= 1)
        )
        if isinstance(kernel, Linear) and named in ("auto", EXACT):
            kind = LINEAR
        elif named == "auto" and stream and self._has_waves(kernel, source.shape[1]):
            kind = RANDOM
        elif named == "auto":
            kind = EXACT if free and not stream and source.shape[0] <= _FEW else NYSTROM
        elif named in (EXACT, NYSTROM):
            kind = named
        else:
            _check_name(named)
            check_features(self, kernel, source.shape[1])
            check_sparse(next(source.blocks(1))[1], self.features)
            kind = RANDOM
        if kind in (LINEAR, EXACT) and not free:
            raise ValueError(
                f"n_features={m!r} has no effect on weights of "
                f"{'columns' if kind == LINEAR else 'rows'}; leave it out, or give "
                "features='nystrom' or 'fourier'"
            )
        plain = isinstance(self.centers, str) and self.centers == "uniform"
        if kind != NYSTROM and not plain:
            shown = " ".join(repr(self.centers).split())
            raise ValueError(
                f"centers={shown:.60} has no effect with features={self.features!r}; "
                "leave it out, or give features='nystrom'"
            )
        return kind

    def _has_waves(self, kernel: Kernel, d: int) -> bool:
        try:
            known = kernel.with_sigma(1.0) if kernel.needs_sigma else kernel
            as_feature_rule("fourier").check(known, d)
        except (TypeError, ValueError):
            return False
        return True

    def _check_rest(self) -> None:
        for name in ("average", "warm_start"):
            value = getattr(self, name)
            check_type(name, value, "True or False", isinstance(value, bool | np.bool_))
        for name in ("batch_size", "checks_per_epoch", "patience"):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            fits = (whole and value >= 1) or (name == "patience" and value is None)
            none = "None or " if name == "patience" else ""
            check_type(name, value, f"{none}a whole number from 1 on", fits)
        check_type(
            "sampling", self.sampling, f"{SHUFFLED!r} or {REPLACEMENT!r}",
            isinstance(self.sampling, str) and self.sampling in (SHUFFLED, REPLACEMENT),
        )  # fmt: skip

    def _checked_validation(self) -> Any:
        if isinstance(self.validation, str) and self.validation in ("gcv", "loo"):
            raise ValueError(
                f"validation={self.validation!r} needs a closed form, which stochastic "
                "gradients have not; give a fraction, a number of folds, a splitter or pairs "
                "of index arrays"
            )
        return super()._checked_validation()

    def _judgements(self, steps: Steps, n: int) -> Array:
        """Return after how many parts of passes candidates are judged, and may be chosen."""
        parts = int(self.checks_per_epoch)
        if isinstance(self.epochs, str) and self.epochs == "rule":
            if steps.rule is None:
                raise ValueError(
                    f"epochs='rule' needs a rule of step sizes and step={self.step!r} is none; "
                    "give step='nonsmooth-constant' or another rule, or a number of epochs"
                )
            return np.array([parts * steps.rule.epochs(n, steps.beta)])
        if isinstance(self.epochs, str) and self.epochs == "auto":
            grid = np.arange(1, _MOST_PASSES + 1)
        elif isinstance(self.epochs, str):
            raise ValueError(
                f"epochs={self.epochs!r} is not known; give a number, a grid, 'auto' or 'rule'"
            )
        else:
            given = grids.numbers(
                "epochs", self.epochs, "whole numbers from 1 on",
                lambda g: (g >= 1) & (g == np.floor(g)),
            )  # fmt: skip
            grid = np.unique(given.astype(int))
        return grid if parts == 1 else np.arange(1, parts * int(grid[-1]) + 1)

    def _kernels(
        self, kernel: Kernel, source: Source, kept: Array, before: State | None
    ) -> list[Candidate]:
        """Return the kernels to select from: that of the model before, if it goes on."""
        if before is not None:
            return [Candidate(self.sigma_, self.kernel_)]
        return self._candidates(kernel, source, kept)

    def _bound(self, kernel: Kernel, source: Source, kept: Array) -> float:
        """Return κ², which no ‖Φ(x)‖² of rows is far above."""
        bound = np.inf
        if not kernel.needs_sigma:
            bound = kernel.bound
        elif is_learned(self.sigma):
            bound = kernel.with_sigma(1.0).bound
        if not np.isfinite(bound):
            some = kept[np.random.RandomState(0).permutation(len(kept))[:_SAMPLE]]
            diagonal = kernel.diagonal(source.take(some))
            check_values(diagonal, kernel)
            bound = float(np.max(diagonal, initial=0.0))
        bound += float(bool(self.intercept))
        return bound if bound > 0 else 1.0

    def _drawn_map(
        self, source: Source, kernel: Kernel, kind: str, allowed: Array, seed: int
    ) -> FeatureMap | None:
        """Return the map to features, or None where there is none."""
        if kind in (LINEAR, EXACT):
            return None
        n, d = source.shape
        free = isinstance(self.n_features, str)
        m = int(np.clip(_FEATURES * np.sqrt(n), _FEWEST, _MOST)) if free else self.n_features
        if kind == NYSTROM:
            if are_given(self.centers):
                m = n_given(self.centers) if free else m
            else:
                m = min(m, int(np.count_nonzero(allowed)))
            m = self._affordable(m, parse_memory(self.memory))
            chosen = self._choose(source, kernel, allowed, m, seed)
            return NystromMap(kernel, chosen.X).on_host()  # steps are taken on the host
        auto = isinstance(self.features, str) and self.features == "auto"
        rule = as_feature_rule("fourier" if auto else self.features)
        count = 2 * m // rule.step * rule.step if free else m
        count = int(grids.feature_counts(max(count, rule.step), n, 2**31, rule.step)[-1])
        rows = None
        if rule.needs_rows:
            rows = source.take(rows_to_choose_by(n, seed, allowed))
        return rule.draw(kernel, d, count, seed, rows)

    def _affordable(self, m: int, memory: int) -> int:
        """Return m, or fewer centers where memory allows no more and none were asked for."""
        room = int(np.sqrt(memory / (8 * _MATRICES)))
        if m <= room or (isinstance(self.n_features, str) and not are_given(self.centers)):
            return max(1, min(m, room))
        raise MemoryBudgetError(
            f"{m:,} centers need {8 * _MATRICES * m**2:,} bytes and memory is {memory:,}; use "
            f"at most {room:,} centers, or raise memory"
        )


def _check_name(features: str) -> None:
    """Raise where a name is neither that of a rule nor one of ours."""
    if features and features not in FEATURE_NAMES:
        raise ValueError(
            f"features={features!r} is not known; give 'auto', {EXACT!r}, {NYSTROM!r}, one of "
            f"{', '.join(FEATURE_NAMES)} or a rule object of imparo.features"
        )
