"""Progress with time left, for whoever waits at a terminal."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import overload

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

#: What is done within so many seconds is not shown.
PATIENCE = 1.0


class Steps:
    """Bars of the steps of a command, one line each; see :func:`steps`."""

    def __init__(self, bars: Progress | None) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    @overload
    def __call__(self, first: str, second: int, third: int | None) -> None: ...
    @overload
    def __call__(self, first: int, second: int | None, third: str) -> None: ...

    def __call__(self, first: str | int, second: int | None, third: int | str | None) -> None:
        """Show a step: called with what, done and total, or as an estimator calls it."""
        if isinstance(first, str):
            assert second is not None
            assert not isinstance(third, str)
            self.show(first, second, third)
        else:
            self.show(str(third), first, second)

    def show(self, description: str, done: int, total: int | None) -> None:
        """Show how much of a step is done; ``total`` is None where nobody knows."""
        if self._bars is None:
            return
        if description not in self._tasks:
            self._tasks[description] = self._bars.add_task(description, total=total)
        self._bars.update(self._tasks[description], completed=done, total=total)


@contextmanager
def steps(console: Console) -> Iterator[Steps]:
    """Draw bars with time left on a terminal; be silent elsewhere, and beside JSON.

    A step is drawn once it has lasted a second. The bars vanish at the end: what was done is
    told by the command.

    Parameters
    ----------
    console : Console
        From :func:`imparo.cli.common.console`.

    Yields
    ------
    Steps
        Called as ``show("reading rows", done, total)``; the same object is a ``progress=`` of
        estimators, which call it as ``show(done, total, "fitting")``.

    Examples
    --------
    >>> from imparo.cli.common import console
    >>> from imparo.cli.steps import steps
    >>> with steps(console()) as show:
    ...     for done in range(3):
    ...         show("reading rows", done, 3)
    """
    silent = getattr(console, "as_json", False) or console.is_dumb_terminal
    if silent or not console.is_terminal:
        yield Steps(None)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left", style="dim"),
        TimeRemainingColumn(),
    )
    with _LongSteps(*columns, console=console, transient=True) as bars:
        yield Steps(bars)


class _LongSteps(Progress):
    """Bars of the steps that have lasted long enough."""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the table of bars, without those of quick steps."""
        long = [task for task in self.tasks if _seconds(task) >= PATIENCE]
        if long:
            yield self.make_tasks_table(long)


def _seconds(task: Task) -> float:
    return task.finished_time or task.elapsed or 0.0
