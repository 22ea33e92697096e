"""Dates as a trend and as positions in the cycles of the clock and the calendar."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from imparo.engine import Array
from imparo.persistence import persistent
from imparo.preparation.columns import date_matrix, floats, read

# The length of each cycle in days.
_CYCLES = {"time of day": 1.0, "day of week": 7.0, "day of year": 365.25}
# Days before each month in a leap year: every date has its place, the same in all years.
_MONTHS = np.cumsum([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30])


@persistent
class DateParts(TransformerMixin, BaseEstimator):
    """Dates as numbers in which near means alike: a trend, and cycles as points on a circle.

    Each column of dates becomes the days since 1970, and sine and cosine of the time of
    day, the day of the week and the day of the year. A cycle is left out where it does not
    vary in ``fit``, as the time of day of pure dates, and where the dates span less than a
    quarter of it: sine and cosine are then nearly straight lines in time, the trend again.

    Any two points on a circle have a squared distance of 2 on average, as two rows of a
    standardised column. Missing dates (NaT) become NaN. A date with a time zone is read as
    the clock there shows it.

    Parameters
    ----------
    trend : bool, default True
        Whether to give the days since 1970, too.

    Attributes
    ----------
    cycles_ : list of tuples of str
        For each column its cycles, of "time of day", "day of week" and "day of year".
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : array of shape (d,)
        Their names, if X had string names.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.preparation import DateParts
    >>> days = np.arange("2024-01-01", "2024-02-01", dtype="datetime64[D]").reshape(-1, 1)
    >>> parts = DateParts().fit(days)
    >>> list(parts.get_feature_names_out(["when"]))
    ['when: trend', 'when: day of week, sine', 'when: day of week, cosine']
    >>> parts.transform(days)[0].tolist()  # a Monday
    [19723.0, 0.0, 1.0]
    """

    def __init__(self, *, trend: Any = True) -> None:
        self.trend = trend

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the cycles that vary.

        Parameters
        ----------
        X : array or data frame of dates of shape (n, d)
        y : None
            Not used.

        Returns
        -------
        DateParts
            Itself.
        """
        if not isinstance(self.trend, bool | np.bool_):
            raise ValueError(f"trend={self.trend!r} must be True or False")
        table = read(X, self)
        dates = date_matrix(table)
        validate_data(self, table, skip_check_array=True)
        self.cycles_ = [_varying(column) for column in dates.T]
        return self

    def transform(self, X: Any) -> Array:
        """Return the trend and the cycles of each column, one column after the other.

        Parameters
        ----------
        X : array or data frame of dates of shape (k, d)

        Returns
        -------
        array of shape (k, number of parts)
        """
        check_is_fitted(self, "cycles_")
        table = read(X, self)
        dates = date_matrix(validate_data(self, table, skip_check_array=True, reset=False))
        parts = []
        for column, cycles in zip(dates.T, self.cycles_, strict=True):
            if self.trend:
                parts.append(floats("date", column))
            for cycle in cycles:
                angle = 2 * np.pi * _phase(column, cycle)
                parts += [np.sin(angle), np.cos(angle)]
        return np.column_stack(parts) if parts else np.empty((len(dates), 0))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return names such as "when: trend" and "when: day of week, sine".

        Parameters
        ----------
        input_features : array of str, optional
            Names of the columns, where X had none in ``fit``.

        Returns
        -------
        array of str
        """
        check_is_fitted(self, "cycles_")
        names = _check_feature_names_in(self, input_features)
        parts = [f"{names[j]}: {part}" for j, part in self.parts()]
        return np.array(parts, dtype=object)

    def parts(self) -> list[tuple[int, str]]:
        """Return for each output column the position of its date, and which part it is."""
        found = []
        for j, cycles in enumerate(self.cycles_):
            waves = [f"{cycle}, {wave}" for cycle in cycles for wave in ("sine", "cosine")]
            found += [(j, part) for part in [*["trend"] * bool(self.trend), *waves]]
        return found


def _varying(dates: Array) -> tuple[str, ...]:
    days = floats("date", dates[~np.isnat(dates)])
    if not len(days):
        return ()
    span = days.max() - days.min()
    return tuple(
        cycle
        for cycle, length in _CYCLES.items()
        if span >= length / 4 and np.nanmin(p := _phase(dates, cycle)) < np.nanmax(p)
    )


def _phase(dates: Array, cycle: str) -> Array:
    """Return where dates lie in a cycle, from 0 to 1; NaN for NaT."""
    day = dates.astype("M8[D]")
    if cycle == "time of day":
        return (dates - day) / np.timedelta64(1, "D")
    if cycle == "day of week":
        monday = np.datetime64("1970-01-05")
        return (day - monday) / np.timedelta64(7, "D") % 1
    month = dates.astype("M8[M]")
    in_month = (day - month.astype("M8[D]")) / np.timedelta64(1, "D")
    return (_MONTHS[month.astype(int) % 12] + in_month) / 366
