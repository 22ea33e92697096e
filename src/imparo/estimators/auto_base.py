"""What the regressor and classifier within a budget share."""

import time
from contextlib import nullcontext
from typing import Any

import numpy as np

from imparo.data.sources import Source
from imparo.engine import Array
from imparo.estimators.auto_search import SPENT, Search, TimeUp
from imparo.estimators.solve import Solved
from imparo.estimators.subsampled import Subsampled
from imparo.paths import Path
from imparo.scores import Score


class AutoMachine(Subsampled):
    """Base of :class:`~imparo.AutoRegressor` and :class:`~imparo.AutoClassifier`."""

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        budget: float = 60.0,
        sigma: Any = "auto",
        centers: Any = "uniform",
        intercept: bool = True,
        memory: Any = None,
        dtype: Any = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        self.kernel = kernel
        self.budget = budget
        self.sigma = sigma
        self.centers = centers
        self.intercept = intercept
        self.memory = memory
        self.dtype = dtype
        self.random_state = random_state
        self.progress = progress

    def _rows(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Any, Any]:
        # The clock starts here: to check the rows is a part of the work.
        self._started = time.monotonic()
        number = isinstance(self.budget, int | float | np.number)
        if not number or isinstance(self.budget, bool) or not 0 < self.budget < np.inf:
            raise ValueError(f"budget={self.budget!r} must be a positive number of seconds")
        return super()._rows(X, y, sample_weight, **checks)

    def _fit(
        self,
        source: Source,
        Y: Array,
        weight: Array,
        y: Array,
        score: Score,
        *,
        stratify: bool = False,
    ) -> tuple[Solved, Path | None]:
        kernel = self._checked_kernel(source)
        fixed = isinstance(self.sigma, str) and self.sigma in ("auto", "median")
        if not kernel.needs_sigma and not fixed:
            raise ValueError(
                f"sigma={self.sigma!r} has no effect on {kernel!r}, which has no width to set; "
                "leave sigma out, or give the kernel without its width"
            )
        search = Search(self, source, Y, weight, y, score, stratify)
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
        for name, value in best.values.items():
            setattr(self, name, value)
        self.method_, self.record_, self.stopped_ = best.method, search.record, stopped
        del self._started
        return best.model, best.path

    def _keep(self, model: Solved, *, flat: bool) -> None:
        self.dual_coef_ = model.coef[:, 0] if flat else model.coef
        self.intercept_ = model.intercept[0] if flat else model.intercept
