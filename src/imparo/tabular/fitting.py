"""One call from a file to a model and an honest account of it."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from imparo.cluster import find_client
from imparo.data import Frame
from imparo.data.readers import Rows
from imparo.engine import Array, parse_memory, row_blocks
from imparo.errors import MemoryBudgetError
from imparo.preparation import KernelInputs
from imparo.tabular import accounting
from imparo.tabular.curves import learning_curve
from imparo.tabular.gathering import Gathered, Show, gather
from imparo.tabular.judging import Judge
from imparo.tabular.machines import DISTRIBUTED, STREAMING, Method
from imparo.tabular.model import TableModel
from imparo.tabular.opening import as_rows, known_task
from imparo.tabular.outcome import Account, Evaluation
from imparo.tabular.roles import Roles, assign_roles
from imparo.tabular.scratch import Scratch, SparseDisk
from imparo.tabular.splitting import Split, make_split
from imparo.tabular.targets import CLASSIFICATION, label, settle_task

# Rows that the preparation of columns is learned from, where rows are on disk.
_SAMPLE = 100_000
# A fit is not begun with less than this beside what the process has.
_LEAST = 64 * 10**6
_CELLS = 2**21


@dataclass(frozen=True)
class TableFit:
    """A model of a table, and how it came about.

    Attributes
    ----------
    model : TableModel
    account : Account
    cut_short : bool
        Whether Ctrl-C came after the fit, so that the test is not complete.
    """

    model: TableModel
    account: Account
    cut_short: bool = False

    @property
    def evaluation(self) -> Evaluation | None:
        """How good it is on rows that it has not seen."""
        return self.account.evaluation

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search, or the test after it; the best model is here."""
        return self.cut_short or self.account.stopped == "interrupted"


def fit_table(
    source: Any,
    target: str | Sequence[str] | None = None,
    *,
    task: str = "auto",
    method: str = "auto",
    budget: float | None = None,
    memory: int | str | None = None,
    device: str | None = None,
    cluster: Any = None,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    weight: str | None = None,
    group: str | None = None,
    time: str | None = None,
    split: str | None = None,
    test: float = 0.2,
    missing: str = "fill",
    seed: int = 0,
    scratch: str | os.PathLike[str] | None = None,
    curve: bool = False,
    command: str = "",
    progress: Show | None = None,
    read: dict[str, Any] | None = None,
    **parameters: Any,
) -> TableFit:
    """Fit a model to a table: a file of any size, a folder, a named data set, or a frame.

    Finds the task from the target, prepares columns of numbers, categories and dates, keeps
    rows apart for a test, chooses a model within a budget, and judges it. Rows that do not fit
    in memory go to disk as they are read; none but a block of them is in memory then.

    Parameters
    ----------
    source : str, path-like, Rows, Frame or data frame
        What :func:`imparo.data.open_rows` opens, a name that :mod:`imparo.data.named` knows, or
        rows themselves.
    target : str or sequence of str, optional
        Columns to learn; what the file calls its target, or its last column, if left out.
    task : "auto", "regression" or "classification"
        "auto" takes text, two values, and up to 20 whole numbers for classes.
    method : "auto", "exact", "nystrom", "nytro", "features" or "sgm"
        "auto" finds kernel, widths, penalty and size within the budget.
    budget : float, optional
        Seconds for "auto", 60 by default; reading and the test are not counted.
    memory : int, str or None
        Bytes, or "2GB", for the whole process; half of the machine's if None.
    device : str, optional
        "cuda", "cuda:1", "auto" or "cpu": where the fit and its test are computed.
    cluster : Client or str, optional
        A client of Dask, or the address of a scheduler, whose workers make the fit. Rows are
        read and prepared here; those that do not fit in memory go to ``scratch``, which must
        be a folder that all workers see.
    columns, drop : sequences of str
        Columns to learn from, all but the others if empty; columns to leave out.
    weight, group, time : str, optional
        Columns with weights of rows; with what must not be split; with their time.
    split : "random", "time" or "group", optional
        How the rows of the test, and those that judge during the fit, are taken; "group" if a
        group is named, "time" if a time is, else "random".
    test : float
        Share of rows that are kept for the test, at most 50,000 of them; 0 fits all.
    missing : "fill", "skip" or "refuse"
        What to do where an input is missing.
    seed : int
        For all that is drawn at random.
    scratch : path-like, optional
        Folder for rows that do not fit in memory.
    curve : bool
        Whether to draw a learning curve, at up to a quarter of the time of the fit.
    command : str
        What to tell in the account as the way to do it again.
    progress : callable, optional
        Called as ``progress(done, total, description)``.
    read : dict, optional
        How to read files: fields of :class:`imparo.data.readers.ReadOptions`, and "download".
    **parameters
        Of the method: ``kernel``, ``sigma``, ``penalty``, ``n_centers``, ``n_features``.

    Returns
    -------
    TableFit

    Examples
    --------
    >>> from imparo.tabular import fit_table
    >>> fitted = fit_table("concrete", method="nystrom", n_centers=200)
    >>> fitted.account.task, fitted.evaluation.rows
    ('regression', 206)
    >>> fitted.evaluation.metrics["rmse"] < 0.6 * fitted.evaluation.baseline["rmse"]
    True
    """
    given = parameters if budget is None else {**parameters, "budget": budget}
    chosen = Method(method, given)
    if cluster is not None:
        if method not in DISTRIBUTED:
            raise ValueError(
                f"the method {method!r} is not made by a cluster; give one of "
                f"{', '.join(DISTRIBUTED)}, or leave the cluster out"
            )
        find_client(cluster)  # before rows are read for nobody
    show = progress or (lambda done, total, what: None)
    split = split or ("group" if group else "time" if time else "random")
    if (group is not None and split != "group") or (time is not None and split != "time"):
        raise ValueError(f"split={split!r} has no use for the group or time that was named")
    allowed, clock = parse_memory(memory), Clock()
    with ExitStack() as stack, accounting.warnings_kept() as warned:
        rows = as_rows(source, **(read or {}))
        roles = assign_roles(
            rows, target, columns=columns, drop=drop, weight=weight, group=group, time=time
        )
        made: list[Scratch] = []

        def place() -> Scratch:
            if not made:
                made.append(stack.enter_context(Scratch(scratch)))
            return made[0]

        with clock("reading"):
            table = gather(rows, roles, _room(allowed), place, missing, show)
            task = known_task(source) if task == "auto" and not target else task
            task, y, notes = settle_task(table.y, roles.target, task)
            parts = make_split(table, y, task, split, test, seed)
        with clock("preparing"):
            weights = None if table.weight is None else table.weight[parts.fit]
            inputs, X = _prepared(
                table, parts, weights, chosen, place, allowed, show, away=cluster is not None
            )
        y_fit = y[parts.fit]
        room: Any = _room(allowed)
        machine = chosen.machine(
            task, prepared=inputs is not None,
            memory=room if device is None else {"host": room}, device=device,
            random_state=seed, validation=parts.validation, progress=show,
            **({} if cluster is None else {"cluster": cluster}),
        )  # fmt: skip
        with clock("fitting"):
            _learn(machine, X, y_fit, weights)
        model = _model(machine, inputs, table, roles, rows, task, y_fit)
        evaluation: Evaluation | None = None
        points: list[dict[str, float]] = []
        cut = False
        try:
            with clock("testing"):
                evaluation = _judged(model, table, y, parts, allowed, show)
            if curve and len(parts.test):
                with clock("learning curve"):
                    shown = _few(parts.test, model.n_columns, _room(allowed))
                    points = learning_curve(
                        model, X, y_fit, weights, table.rows(shown), y[shown],
                        max(2.0, clock.seconds["fitting"] / 4), _room(allowed), seed,
                    )  # fmt: skip
        except KeyboardInterrupt:  # the model is there, and stays
            cut = True
            warned.append("interrupted after the fit: the test is not complete")
        account = accounting.account(
            rows, roles, table, parts, chosen, model, evaluation, points, clock.seconds,
            allowed, sum(s.written for s in made), [*roles.notes, *notes], warned,
            command or accounting.as_code(source, target, method, given), source,
        )  # fmt: skip
    machine.set_params(device=None)  # a model is used on any machine
    model.made = accounting.summary(account)
    return TableFit(model, account, cut)


class Clock:
    """Seconds by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        """Count what is done inside as a step."""
        start = time.perf_counter()
        yield
        self.seconds[step] = time.perf_counter() - start


def _room(allowed: int) -> int:
    """Return the bytes that are left of those allowed, beside what the process has."""
    left = allowed - accounting.resident_bytes()
    if left < _LEAST:
        raise MemoryBudgetError(
            f"memory is {allowed:,} bytes, of which the program and the rows take all but "
            f"{max(left, 0):,}; give more"
        )
    return left


def _prepared(
    table: Gathered,
    parts: Split,
    weight: Array | None,
    method: Method,
    place: Callable[[], Scratch],
    allowed: int,
    show: Show,
    *,
    away: bool,
) -> tuple[KernelInputs | None, Any]:
    """Return how columns were prepared, None if the machine does it, and the rows to fit."""
    if not table.on_disk:
        X = table.rows(parts.fit) if len(parts.test) else table.X
        if method.name == "auto" and not away:
            return None, X
        inputs = KernelInputs().fit(X, sample_weight=weight)
        return inputs, inputs.transform(X)
    if method.name not in STREAMING:
        raise MemoryBudgetError(
            f"the method {method.name!r} needs all rows in memory, and {table.n:,} are too "
            f"many for {allowed:,} bytes; give another method, or more memory"
        )
    rng = np.random.RandomState(0)
    fit = parts.fit
    sample = fit if weight is None else fit[weight > 0]
    if len(sample) > _SAMPLE:
        sample = np.sort(rng.choice(sample, _SAMPLE, replace=False))
    width = table.X.width if isinstance(table.X, SparseDisk) else len(table.X.columns)
    sample = sample[:: max(1, len(sample) * width * 8 * 4 // _room(allowed))]
    inputs = KernelInputs().fit(table.rows(sample))
    if isinstance(table.X, SparseDisk):
        return inputs, _sparse_blocks(table, inputs, fit)
    kept = np.zeros(table.n, bool)
    kept[fit] = True
    size = max(1, _CELLS // max(width, len(inputs.sources_)))
    matrix = None
    for some in row_blocks(table.n, size):
        block = table.rows(some)
        if not kept[some].all():
            block = block[np.flatnonzero(kept[some])]
        if len(block):
            Z = inputs.transform(block)
            if matrix is None:
                matrix = place().matrix("prepared", Z.shape[1], Z.dtype)
            matrix.append(Z)
        show(some.stop, table.n, "preparing columns")
    assert matrix is not None
    return inputs, matrix.mapped()


def _sparse_blocks(table: Gathered, inputs: KernelInputs, fit: Array) -> Callable[[], Any]:
    kept = np.zeros(table.n, bool)
    kept[fit] = True

    def blocks() -> Iterator[Any]:
        for some in row_blocks(table.n, 2**14):
            places = np.flatnonzero(kept[some])
            if len(places):
                yield inputs.transform(table.rows(some)[places])

    return blocks


def _learn(machine: Any, X: Any, y: Array, weight: Array | None) -> None:
    if not callable(X):
        machine.fit(X, y, sample_weight=weight)
        return
    weights = np.ones(len(y)) if weight is None else weight

    def triples() -> Iterator[Any]:
        start = 0
        for block in X():
            some = slice(start, start + block.shape[0])
            yield block, y[some], weights[some]
            start = some.stop

    machine.fit(triples)


def _model(
    machine: Any, inputs: KernelInputs | None, table: Gathered, roles: Roles, rows: Rows,
    task: str, y: Array,
) -> TableModel:  # fmt: skip
    """Return the model of a table from its parts."""
    if hasattr(machine, "statistics_"):
        machine.statistics_ = None  # m² numbers that only grow() needs
    # What belongs to this fit and this machine does not go with the model.
    usual = type(machine)()
    machine.set_params(progress=False, memory=None, validation=usual.validation)
    if getattr(machine, "cluster", None) is not None:
        machine.set_params(cluster=None)
    classes: list[Any] = []
    baseline: Any = np.atleast_1d(np.mean(y, axis=0)).tolist() if y.dtype.kind == "f" else None
    if task == CLASSIFICATION:
        names, counts = np.unique(y, return_counts=True)
        classes = [label(name) for name in machine.classes_]
        baseline = label(names[np.argmax(counts)])
    width = rows.n_columns if rows.is_sparse else len(roles.inputs)
    return TableModel(
        task, list(roles.inputs), dict(table.kinds), list(roles.target), classes, inputs,
        machine, width, rows.is_sparse, baseline,
        first_index=getattr(rows.lines, "first", 1),
    )  # fmt: skip


def _judged(
    model: TableModel, table: Gathered, y: Array, parts: Split, allowed: int, show: Show
) -> Evaluation | None:
    """Return how good a model is on the rows of the test."""
    if not len(parts.test):
        return None
    words = f"{len(parts.test):,} rows that were not fitted"
    judge = Judge(model.task, model.outputs, model.classes, model.baseline, words)
    size = max(1, _CELLS // max(1, model.n_columns))
    for some in row_blocks(len(parts.test), size):
        places = parts.test[some]
        judge_block(judge, model, _as_given(model, table.rows(places)), y[places])
        show(some.stop, len(parts.test), "testing")
    return judge.finished()


def _few(rows: Array, width: int, room: int) -> Array:
    """Return as many of some rows as are in memory with ease."""
    most = max(100, room // (32 * max(1, width)))
    return rows[:: -(-len(rows) // most)]


def _as_given(model: TableModel, X: Any) -> Any:
    return X if not isinstance(X, Frame) else X.select(model.columns)


def judge_block(judge: Judge, model: Any, rows: Any, y: Array) -> None:
    """Let a judge see what a model says of some rows."""
    if model.task != CLASSIFICATION:
        judge.add(y, model.predict(rows))
        return
    scores = model.scores(rows)
    judge.add(y, model.labels_of(scores), model.probabilities_of(scores))
