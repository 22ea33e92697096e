"""A model of a table: which columns it needs, how they are prepared, and the machine."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from imparo.data import Frame
from imparo.data.readers import Rows
from imparo.engine import Array
from imparo.losses import Square
from imparo.persistence import persistent
from imparo.preparation import KernelInputs
from imparo.preparation.columns import listed
from imparo.tabular.conversion import as_frame
from imparo.tabular.roles import no_column
from imparo.tabular.targets import CLASSIFICATION

# Names that readers give to columns without one.
_NO_NAME = re.compile(r"(column |\w+\[)\d+(,\d+)*\]?")


@persistent
@dataclass(eq=False)
class TableModel:
    """What :func:`~imparo.tabular.fit_table` makes: a machine that knows its columns by name.

    ``imparo.save`` and ``imparo.load`` keep it; ``imparo predict`` and ``imparo evaluate`` use
    it.

    Attributes
    ----------
    task : "regression" or "classification"
    columns : list of str
        The input columns, in the order of the machine; empty for sparse rows.
    kinds : dict of str to str
        What they hold.
    outputs : list of str
        The target's columns.
    classes : list
        Labels, for classification.
    inputs : KernelInputs or None
        How columns are prepared; None where the machine does so.
    machine : estimator
    n_columns : int
        Number of input columns.
    is_sparse : bool
    baseline : list of float, or one label
        Means of the outputs that were fitted, or their most frequent class.
    made : dict
        How the model came about, in plain values.
    first_index : 0 or 1
        The index of the first column in sparse files.

    Examples
    --------
    >>> from imparo.data import load_concrete
    >>> from imparo.tabular import fit_table
    >>> concrete = load_concrete()
    >>> fitted = fit_table(concrete.frame, "compressive_strength", budget=1)
    >>> fitted.model.predict(concrete.frame[:2]).shape
    (2,)
    """

    task: str
    columns: list[str]
    kinds: dict[str, str]
    outputs: list[str]
    classes: list[Any]
    inputs: KernelInputs | None
    machine: Any
    n_columns: int
    is_sparse: bool
    baseline: Any
    made: dict[str, Any] = field(default_factory=dict)
    first_index: int = 1

    def predict(self, rows: Any) -> Array:
        """Return predictions.

        Parameters
        ----------
        rows : Frame, data frame, array or sparse matrix
            With the columns of the model; further ones are ignored. Arrays have them in order.

        Returns
        -------
        array of shape (n,) or (n, T)
            Numbers, or labels.
        """
        return self.machine.predict(self.prepared(rows))

    def predict_proba(self, rows: Any) -> Array:
        """Return probabilities of the classes, in the order of ``classes``.

        Least squares on codes ±1 aims at 2P(y | x) − 1 (thesis, section 2.2.1): that is
        solved for P, cut to [0, 1], and scaled to sum to 1 over more than two classes.

        Parameters
        ----------
        rows : as for :meth:`predict`

        Returns
        -------
        array of shape (n, C)
        """
        if self.task != CLASSIFICATION:
            raise ValueError("probabilities are of classes, and this model predicts numbers")
        return self.probabilities_of(self.scores(rows))

    def scores(self, rows: Any) -> Array:
        """Return what the machine says of each class, before a decision: shape (n, C or 1)."""
        X = self.prepared(rows)
        if hasattr(self.machine, "predict_proba"):
            return self.machine.predict_proba(X)
        F = self.machine.decision_function(X)
        return F.reshape(len(F), -1)

    def probabilities_of(self, scores: Array) -> Array:
        """Return probabilities from :meth:`scores`."""
        if hasattr(self.machine, "predict_proba"):
            return scores
        P = Square().probability(scores)
        if P.shape[1] == 1:
            return np.hstack([1 - P, P])
        total = P.sum(axis=1, keepdims=True)
        # Where every class is found impossible, all are as likely.
        return np.divide(P, total, out=np.full_like(P, 1 / P.shape[1]), where=total > 0)

    def labels_of(self, scores: Array) -> Array:
        """Return the label that :meth:`predict` gives to rows with these scores."""
        if scores.shape[1] == 1 and len(self.classes) == 2:
            return np.asarray(self.classes)[(scores[:, 0] > 0).astype(int)]
        return np.asarray(self.classes)[np.argmax(scores, axis=1)]

    def prepared(self, rows: Any) -> Any:
        """Return rows as the machine takes them.

        Parameters
        ----------
        rows : as for :meth:`predict`

        Returns
        -------
        Frame, array or sparse matrix
        """
        table = self._table(rows)
        return table if self.inputs is None else self.inputs.transform(table)

    def _table(self, rows: Any) -> Any:
        if self.is_sparse or sparse.issparse(rows):
            if not (self.is_sparse and sparse.issparse(rows)):
                kind = "sparse" if self.is_sparse else "named columns"
                raise TypeError(f"the model was fitted to {kind}, and the rows are not")
            return _widened(sparse.csr_array(rows), self.n_columns)
        if not hasattr(rows, "columns"):
            rows = np.asarray(rows)
            if rows.ndim != 2 or rows.shape[1] != self.n_columns:
                raise ValueError(
                    f"rows have shape {rows.shape}, and the model needs {self.n_columns} "
                    f"columns: {listed(self.columns)}"
                )
            if self._plain:
                return rows
            return Frame({name: rows[:, j] for j, name in enumerate(self.columns)})
        names = [str(name) for name in rows.columns]
        for name in self.columns:
            if name not in names:
                raise ValueError(f"the model needs '{name}': {no_column(name, names)}")
        frame = as_frame(rows).select(self.columns)
        return frame.matrix(self.columns) if self._plain else frame

    @property
    def _plain(self) -> bool:
        return set(self.kinds.values()) == {"number"}

    def match(self, rows: Rows) -> list[str]:
        """Return the names that a table has for the columns of the model, in their order.

        Columns are found by name; where the model, or the table, has only numbers for names,
        and as many columns, by place.

        Parameters
        ----------
        rows : Rows

        Returns
        -------
        list of str
        """
        if self.is_sparse != rows.is_sparse:
            kind = "a sparse file" if self.is_sparse else "a table of columns"
            raise ValueError(f"the model was fitted to {kind}, and {rows.format} is not one")
        if self.is_sparse:
            return []
        names, columns = rows.names, self.columns
        gone = [name for name in columns if name not in set(names)]
        if gone:
            offered = rows.groups.get("X", names) if rows.targets else names
            others = [name for name in offered if name not in {*self.outputs, *rows.targets}]
            nameless = _nameless(columns) or _nameless(others)
            if not (nameless and len(others) == len(columns)):
                raise ValueError(f"the model needs '{gone[0]}': {no_column(gone[0], names)}")
            columns = others
        for found, name in zip(columns, self.columns, strict=True):
            wanted, is_now = self.kinds[name], rows.kinds[found]
            if wanted != is_now and "empty" not in (wanted, is_now):
                raise ValueError(
                    f"column '{found}' holds {_PLURAL[is_now]}, and held {_PLURAL[wanted]} in "
                    "the fit; correct it, or read it as text"
                )
        return list(columns)

    def renamed(self, frame: Frame, columns: Sequence[str]) -> Frame:
        """Return the columns that :meth:`match` has found, under the model's names."""
        pairs = zip(self.columns, columns, strict=True)
        return Frame({name: frame[found] for name, found in pairs}, len(frame))


_PLURAL = {"number": "numbers", "text": "text", "date": "dates", "duration": "durations",
           "empty": "nothing"}  # fmt: skip


def _nameless(names: Sequence[str]) -> bool:
    return all(_NO_NAME.fullmatch(name) for name in names)


def _widened(X: Any, width: int) -> Any:
    if X.shape[1] > width:
        if X[:, width:].nnz:
            raise ValueError(f"rows have {X.shape[1]} columns, and the model has {width}")
        return X[:, :width]
    if X.shape[1] < width:
        return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    return X
