"""Learning on from where a model is: rows of a stream, in their order, in constant time."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from imparo.data.sources import ArraySource, Source
from imparo.engine import Array, parse_memory
from imparo.estimators.inputs import check_dtype, check_rows, stream_weight
from imparo.estimators.sgm_base import SGMMachine, Trained
from imparo.estimators.sgm_parameters import EXACT, LINEAR
from imparo.estimators.sgm_rows import PointRows
from imparo.estimators.sgm_steps import steps_of
from imparo.estimators.sgm_training import check_memory
from imparo.kernels import as_kernel
from imparo.sgm import State, Sweep


class SGMLearner(SGMMachine):
    """What ``partial_fit`` of the regressor and the classifier share."""

    def _stream_rows(
        self, X: Any, y: Any, sample_weight: Any, numeric: bool
    ) -> tuple[Source, Array, Array]:
        """Return rows of a stream, checked, their outputs and their weights."""
        fresh = not hasattr(self, "intercept_")
        dtype = check_dtype(self.dtype) if fresh else self._state.W.dtype
        X, y = validate_data(
            self, check_rows(X), y, accept_sparse="csr", dtype=dtype, order="C",
            reset=fresh, multi_output=True, y_numeric=numeric,
        )  # fmt: skip
        return ArraySource(X, X.dtype), y, stream_weight(sample_weight, X.shape[0])

    def _check_outputs(self, Y: Array) -> None:
        """Raise unless outputs of a stream are finite and as many as before."""
        if not np.isfinite(Y).all():
            raise ValueError("y contains NaN or infinity and must hold finite numbers")
        known = self._state.n_outputs if hasattr(self, "intercept_") else Y.shape[1]
        if Y.shape[1] != known:
            raise ValueError(f"y has {Y.shape[1]} outputs and the model has {known}")

    def _go_on(self, source: Source, Y: Array, weight: Array) -> Trained:
        """Take the steps of some rows, in their order, from where the model is."""
        loss, n = self._checked_loss(), source.shape[0]
        self._check_rest()
        if not hasattr(self, "intercept_"):
            self._start(source, Y)
        kind, state = self.features_, self._state
        rows = self._as_sweep_rows(source, self.kernel_, self.map_, kind, 1)
        check_memory(
            len(state.schedule), state.n_outputs, rows.n_features, Y.itemsize,
            4 if self.average else 2, parse_memory(self.memory),
        )  # fmt: skip
        if kind == EXACT:
            state = state.padded(n)
        sweep = Sweep(rows.space(state), state, loss, Y, weight, batch=int(self.batch_size))
        sweep.counts_progress = len(state.schedule) > 1
        sweep.begin(n)
        for part, positions in rows.reading(np.arange(n)):
            sweep.advance(part, positions)
        if sweep.dead.all():
            raise ValueError(
                f"step={state.schedule.eta.min():.3g} is too large for these rows: numbers "
                "overflow; give a smaller one, or scale the columns of X"
            )
        if sweep.dead.any():
            sweep.keep(~sweep.dead)
        state = sweep.state()
        if kind == EXACT:
            assert isinstance(rows, PointRows)
            self._points, state = rows.used(state)
        return self._model(kind, state, int(np.argmin(state.progressive)))

    def _start(self, source: Source, Y: Array) -> None:
        """Set the kernel, the map and w₁ = 0 by the first rows of a stream."""
        kernel, rng = as_kernel(self.kernel), check_random_state(self.random_state)
        kind = self._checked_kind(kernel, source, stream=True)
        seed, n = int(rng.randint(2**31 - 1)), source.shape[0]
        self._forget()
        kept = np.arange(n)
        candidates = self._candidates(kernel, source, kept)
        if len(candidates) > 1:
            raise ValueError(
                f"sigma={self.sigma!r} holds several widths, and partial_fit cannot choose; "
                "give one, or call fit first"
            )
        allowed = np.ones(n, bool)
        candidate = self._learned(candidates, source, Y, np.ones(n), allowed, seed)[0]
        bound = self._bound(candidate.kernel, source, kept)
        steps = steps_of(
            self.step, self.decay, self.beta, self._checked_loss(), bound, Y, 1.0,
            averaged=bool(self.average),
        )  # fmt: skip
        if steps.rule is not None and not steps.rule.decaying:
            raise ValueError(
                f"step={steps.rule.name!r} depends on the number of rows, which a stream does "
                "not tell; give a number, 'auto', or a rule that decays"
            )
        map = self._drawn_map(source, candidate.kernel, kind, allowed, seed)
        p = {LINEAR: source.shape[1], EXACT: 0}.get(kind, 0 if map is None else len(map))
        self._state = State.zero(
            p, Y.shape[1], steps.schedule(1), Y.dtype, averaged=bool(self.average),
            intercept=bool(self.intercept),
        )  # fmt: skip
        self._set_features(kind, map, candidate)
        self.path_, self.epochs_, self.stopped_ = None, None, None
