"""Checks that an estimator learns from a stream as its users expect."""

import re
from collections.abc import Callable, Collection, Iterator
from functools import partial, update_wrapper
from typing import Any

from imparo.lifelong import check_costs as costs
from imparo.lifelong import check_properties as properties
from imparo.lifelong.check_streams import Deviation, Trial, kind_of

Check = Callable[[Any], None]

# Labels first: other checks of a classifier that wants classes= would say less clearly why.
# Then what all the others presuppose.
CHECKS: dict[str, Callable[[Trial], None]] = {
    check.__name__: check
    for check in (
        properties.check_unseen_labels,
        properties.check_deterministic,
        properties.check_predict_before_learning,
        properties.check_inputs_left_alone,
        properties.check_block_sizes,
        properties.check_row_order,
        properties.check_predicting_changes_nothing,
        properties.check_copies,
        properties.check_pickle,
        properties.check_bad_input,
        properties.check_learning,
        properties.check_degenerate_rows,
        costs.check_memory,
        costs.check_time,
    )
}


def check_incremental_estimator(
    estimator: Any,
    *,
    columns: int = 8,
    rows: int = 200,
    order_free: bool | None = None,
    tol: float = 1e-8,
    skip: Collection[str] = (),
) -> None:
    """Check that an estimator learns from a stream as its users expect.

    It needs ``partial_fit(X, y)`` and ``predict(X)``; a classifier may have
    ``decision_function`` and ``predict_proba``, too. Copies of it learn easy problems of four
    classes, or of one number. Cost: a second or less, most of it updates.

    Parameters
    ----------
    estimator : object
        Not fitted. Copies are made by scikit-learn's ``clone``, with 0 for a
        ``random_state=None``; without ``get_params``, by ``deepcopy``.
    columns : int, default 8
        Columns of X, at least 2.
    rows : int, default 200
        Rows after which the estimator is as large and slow as it may become; the checks of
        memory and time go on to ten times as many. More for one that fills a budget of rows.
    order_free : bool, optional
        Whether the order of rows must not matter. By default the attribute ``order_free`` of
        the estimator, and False if it has none.
    tol : float, default 1e-8
        Difference allowed where equal models are computed by different routes, relative to
        the largest output. Other comparisons are to the bit.
    skip : collection of str
        Names of checks to leave out, as "check_pickle". If "check_unseen_labels" is one, all
        others name the classes at every call, as scikit-learn's own classifiers need it.

    Raises
    ------
    AssertionError
        At the first check that fails: which, what was expected, and what happened.

    See Also
    --------
    incremental_checks : the same checks, one test each.

    Notes
    -----
    ==================================  ====================================================
    check_unseen_labels                 a new label may come at any call, on one row, without
                                        ``classes=``; numbers and strings
    check_deterministic                 one stream twice gives one model, to the bit
    check_predict_before_learning       raises ``NotFittedError``, and does no harm
    check_inputs_left_alone             X and y are neither changed nor kept
    check_block_sizes                   one by one, in blocks or at once: one model
    check_row_order                     any order gives one model, if promised
    check_predicting_changes_nothing    predictions between rows leave no trace
    check_copies                        deep copies are independent, clones empty
    check_pickle                        an unpickled model predicts and learns on as before
    check_bad_input                     raises, and the model is as before, to the bit
    check_learning                      errors less than half of the best constant's
    check_degenerate_rows               one row, equal rows, constant columns: finite outputs
    check_memory                        ten times as many rows: a state of the same size
    check_time                          ten times as many rows: updates as fast
    ==================================  ====================================================

    Examples
    --------
    A regressor that takes one step a row in their order passes:

    >>> from sklearn.linear_model import SGDClassifier, SGDRegressor
    >>> from imparo.lifelong.checks import check_incremental_estimator
    >>> check_incremental_estimator(SGDRegressor(shuffle=False))

    A classifier that must know all classes before it starts does not:

    >>> check_incremental_estimator(SGDClassifier())
    Traceback (most recent call last):
    ...
    AssertionError: check_unseen_labels: a new label may come at any call, on one row, without
    ``classes=``, but SGDClassifier raised ValueError: classes must be passed on the first call
    to partial_fit.

    Nor does one that shuffles the rows of a block:

    >>> check_incremental_estimator(SGDRegressor())
    Traceback (most recent call last):
    ...
    AssertionError: check_block_sizes: rows one by one, in blocks cut anywhere, or in one block
    give one model, but with SGDRegressor one by one instead of in one block, predict differs...
    """
    for model, check in incremental_checks(
        estimator, columns=columns, rows=rows, order_free=order_free, tol=tol, skip=skip
    ):
        check(model)


def incremental_checks(
    estimator: Any,
    *,
    columns: int = 8,
    rows: int = 200,
    order_free: bool | None = None,
    tol: float = 1e-8,
    skip: Collection[str] = (),
) -> Iterator[tuple[Any, Check]]:
    """Yield an estimator with each of the checks that apply to it, for pytest.

    Parameters
    ----------
    estimator, columns, rows, order_free, tol, skip
        As for :func:`check_incremental_estimator`.

    Yields
    ------
    estimator : object
        The one given.
    check : callable
        ``check(estimator)`` raises an AssertionError or returns None. Its name is
        ``check.__name__``.

    Examples
    --------
    In a file of tests::

        @pytest.mark.parametrize(
            ("estimator", "check"), incremental_checks(MyRegressor()), ids=check_id
        )
        def test_my_regressor_learns_from_streams(estimator, check):
            check(estimator)

    >>> from sklearn.linear_model import SGDRegressor
    >>> from imparo.lifelong.checks import check_id, incremental_checks
    >>> estimator, check = next(incremental_checks(SGDRegressor()))
    >>> check_id(estimator), check_id(check)
    ('SGDRegressor()', 'check_deterministic')
    """
    left_out = {skip} if isinstance(skip, str) else set(skip)
    unknown = sorted(left_out - CHECKS.keys())
    if unknown:
        raise ValueError(f"skip names {unknown}; the checks are {', '.join(CHECKS)}")
    if columns < 2 or rows < 40:
        raise ValueError(f"columns={columns} must be 2 or more, and rows={rows} 40 or more")
    if isinstance(estimator, type):
        raise TypeError(f"give an instance: {estimator.__name__}(), not the class")
    missing = [name for name in ("partial_fit", "predict") if not hasattr(estimator, name)]
    if missing:
        raise TypeError(f"{type(estimator).__name__} has no {' and no '.join(missing)}")
    if order_free is None:
        order_free = bool(getattr(estimator, "order_free", False))
    named = "check_unseen_labels" in left_out
    if kind_of(estimator) == "regressor":
        left_out.add("check_unseen_labels")
    if not order_free:
        left_out.add("check_row_order")
    for name, function in CHECKS.items():
        if name not in left_out:
            check = partial(_run, function, columns, rows, tol, named)
            yield estimator, update_wrapper(check, function)


def check_id(value: Any) -> str:
    """Return a name for an estimator or a check, for the ids of pytest."""
    name = getattr(value, "__name__", None)
    if isinstance(name, str):
        return name
    if hasattr(value, "get_params"):
        return re.sub(r"\s", "", repr(value))
    return type(value).__name__  # other representations may hold an address


def _run(
    function: Callable[[Trial], None],
    columns: int,
    rows: int,
    tol: float,
    named: bool,
    estimator: Any,
) -> None:
    """Run one check; whatever goes wrong becomes one sentence."""
    trial = Trial(estimator, columns, rows, tol, named)
    line = (function.__doc__ or "").partition("\n")[0]
    expected = f"{function.__name__}: {line.removeprefix('Check that ').rstrip('.')}"
    name = type(estimator).__name__
    try:
        function(trial)
    except Deviation as happened:
        raise AssertionError(f"{expected}, but with {name} {happened}") from None
    except Exception as error:
        message = str(error).partition("\n")[0]
        raise AssertionError(
            f"{expected}, but {name} raised {type(error).__name__}: {message}"
        ) from error
