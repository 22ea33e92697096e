"""What the regressor and classifier within a budget share."""

import time
from contextlib import nullcontext
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from imparo.engine import Array, default_engine, memory_for
from imparo.estimators.auto_inputs import KINDS, Table, read_table
from imparo.estimators.auto_runs import TimeUp
from imparo.estimators.auto_search import SPENT, Search
from imparo.estimators.auto_trials import Best, Member
from imparo.estimators.auto_widths import kernels_to_try
from imparo.estimators.candidates import forget_relevance
from imparo.estimators.devices import on_host
from imparo.estimators.inputs import check_rows
from imparo.estimators.solve import Solved
from imparo.estimators.subsampled import Subsampled
from imparo.kernels import Gaussian, Kernel, Laplacian, Matern, as_kernel
from imparo.paths import Path
from imparo.scores import Score
from imparo.width_learning import Learned, check_learnable

_SIGMAS = ("auto", "median", "scale", "learned", "per-feature")


class AutoMachine(Subsampled):
    """Base of :class:`~imparo.AutoRegressor` and :class:`~imparo.AutoClassifier`."""

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        budget: float = 60.0,
        sigma: Any = "auto",
        inputs: Any = "auto",
        validation: Any = "auto",
        centers: Any = "uniform",
        intercept: bool = True,
        memory: Any = None,
        device: Any = None,
        cluster: Any = None,
        dtype: Any = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        self.kernel = kernel
        self.budget = budget
        self.sigma = sigma
        self.inputs = inputs
        self.validation = validation
        self.centers = centers
        self.intercept = intercept
        self.memory = memory
        self.device = device
        self.cluster = cluster
        self.dtype = dtype
        self.random_state = random_state
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def _rows(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, Any]:
        X = on_host(X)
        # The clock starts here: to check the rows is a part of the work.
        self._started = time.monotonic()
        number = isinstance(self.budget, int | float | np.number)
        if not number or isinstance(self.budget, bool) or not 0 < self.budget < np.inf:
            raise ValueError(f"budget={self.budget!r} must be a positive number of seconds")
        return read_table(self, X, y, sample_weight, self._checked_inputs(), **checks)

    def _checked_inputs(self) -> str:
        """Return how columns are prepared: "" leaves them as they are."""
        known = ("auto", *KINDS)
        if self.inputs is None:
            return ""
        if not (isinstance(self.inputs, str) and self.inputs in known):
            words = ", ".join(repr(word) for word in known)
            raise ValueError(f"inputs={self.inputs!r} must be None or one of {words}")
        if self.inputs != "auto":
            return self.inputs
        # Widths and centers that are given are in the units of X.
        given = not isinstance(self.sigma, str) or not isinstance(self.centers, str)
        automatic = isinstance(self.kernel, str) and self.kernel == "auto"
        kernel = Gaussian() if automatic else as_kernel(self.kernel)
        round = isinstance(kernel, Gaussian | Laplacian | Matern) and kernel.needs_sigma
        return "auto" if round and not given else ""

    def _kernels(self, table: Table) -> list[Kernel]:
        """Return the kernels to try, the first of them first."""
        if isinstance(self.kernel, str) and self.kernel == "auto":
            return kernels_to_try(table.is_sparse)
        return [as_kernel(self.kernel)]

    def _check_parameters(self, table: Table, y: Array) -> None:
        kernel, sigma = self._kernels(table)[0], self.sigma
        self._check_kernel(kernel, table.source(table.kinds[0]))
        unset = isinstance(sigma, str) and sigma in ("auto", "median")
        if not kernel.needs_sigma and not unset:
            raise ValueError(
                f"sigma={sigma!r} has no effect on {kernel!r}, which has no width to set; "
                "leave sigma out, or give the kernel without its width"
            )
        if sigma is None or (isinstance(sigma, str) and sigma not in _SIGMAS):
            words = ", ".join(repr(word) for word in _SIGMAS)
            raise ValueError(f"sigma={sigma!r} is not known; give a number, a grid, or {words}")
        if isinstance(sigma, str) and sigma in ("learned", "per-feature"):
            check_learnable(kernel)
        if isinstance(self.validation, str) and self.validation not in ("auto", "last"):
            raise ValueError(
                f"validation={self.validation!r} is not known; give 'auto', 'last', a "
                "fraction, a number of folds, a splitter or pairs of index arrays"
            )

    def _fit(
        self,
        table: Table,
        Y: Array,
        weight: Array,
        y: Array,
        score: Score,
        *,
        stratify: bool = False,
    ) -> tuple[Solved, Path | None]:
        self._check_parameters(table, y)
        units = getattr(self, "_units", (1.0, 0.0))
        search = Search(self, table, Y, weight, y, score, stratify, units)
        try:
            with search.draw() if self.progress is True else nullcontext():
                stopped = search.run()
        except TimeUp:
            stopped = SPENT
        except KeyboardInterrupt:
            if search.best is None:
                raise
            stopped = "interrupted"
        best = search.best
        if best is None:
            raise ValueError(
                f"budget={self.budget!r} seconds were not enough for the smallest model; give "
                "more"
            )
        found = [(best, 1.0)] if search.average is None else search.average.members
        best = found[0][0]
        for name, value in best.values.items():
            setattr(self, name, value)
        self.method_, self.stopped_ = best.method, stopped
        self.validation_ = search.validation
        self.record_ = search.told_record()
        self.members_ = [_member(b, share, table, units) for b, share in found]
        self.inputs_, self.target_ = table.inputs(best.setting.inputs), best.setting.target
        self._tell_relevance(best.setting.learned)
        for name in ("_started", "_units"):
            self.__dict__.pop(name, None)
        path = best.path
        if best.target is not None and path is not None:
            path = path.scaled(1 / units[0])  # in units of its own
        return best.model, path

    def _tell_relevance(self, learned: Learned | None) -> None:
        """Set ``relevance_`` and ``unused_`` of the columns of X, if widths were learned."""
        forget_relevance(self)
        if learned is None:
            return
        d, inputs = self.n_features_in_, self.inputs_
        sources = np.arange(d) if inputs is None else inputs.sources_
        self.relevance_ = np.bincount(sources, weights=learned.relevance, minlength=d)
        used = np.zeros(d, bool)
        used[sources[~learned.unused]] = True
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(d)])
        self.unused_ = [str(names[i]) for i in np.flatnonzero(~used)]

    def _keep(self, model: Solved, *, flat: bool) -> None:
        first = self.members_[0]
        self.dual_coef_ = first.coef[:, 0] if flat else first.coef
        self.intercept_ = first.intercept[0] if flat else first.intercept

    def _decision(self, X: Any) -> Array:
        """Return the (n, T) matrix of predictions: the average of the members'."""
        check_is_fitted(self, "members_")
        prepared: dict[int, Any] = {}
        total: Array | None = None
        for member in self.members_:
            key = id(member.inputs)
            if key not in prepared:
                prepared[key] = self._prepared(X, member)
            F = member.share * member.decision(
                prepared[key], memory_for(self.memory, default_engine())
            )
            total = F if total is None else total + F
        assert total is not None
        return total

    def _prepared(self, X: Any, member: Member) -> Any:
        dtype = member.coef.dtype
        if member.inputs is not None:
            if hasattr(self, "feature_names_in_"):
                # What was fitted to blocks does not know the names that these had.
                validate_data(self, X, reset=False, skip_check_array=True)
                if not hasattr(member.inputs, "feature_names_in_"):
                    X = check_array(
                        check_rows(X), accept_sparse="csr", dtype="numeric",
                        ensure_all_finite=False,
                    )  # fmt: skip
            return member.inputs.transform(X).astype(dtype, copy=False)
        return validate_data(
            self, check_rows(X), accept_sparse="csr", dtype=dtype, order="C", reset=False
        )


def _member(best: Best, share: float, table: Table, units: tuple[float, Any]) -> Member:
    """Return a model in the units of the outputs."""
    model = best.model if best.target is not None else best.model.scaled(*units)
    inputs = table.inputs(best.setting.inputs)
    return Member(
        best.values["kernel_"], best.values["centers_"], model.coef,
        np.atleast_1d(model.intercept), inputs, best.target, share,
    )  # fmt: skip
