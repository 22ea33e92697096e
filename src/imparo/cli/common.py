"""What all commands share: where they print, how they fail, and with which code.

==== =======================================================================
code meaning
==== =======================================================================
0    done
1    a bug of imparo; ``IMPARO_DEBUG=1`` shows where
2    wrong usage: an option or argument is not as the help says
3    the data cannot be used
4    a file is missing or cannot be read or written, or the disk is full
5    the budget of time or memory does not allow it
6    an optional package is missing
7    a model file is damaged or not one of imparo's
8    a device is not there, or failed
9    a cluster does not answer, or lost its workers
130  interrupted
141  whoever reads the output has stopped reading, as ``head`` does
==== =======================================================================
"""

import errno
import functools
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

import click
from rich.console import Console

from imparo.errors import ClusterError, DeviceError, FileFormatError, ImparoWarning

BUG, DATA, FILE, BUDGET, PACKAGE, MODEL, DEVICE, CLUSTER = 1, 3, 4, 5, 6, 7, 8, 9
INTERRUPTED, PIPE = 130, 141
# The first that fits counts: some errors are of two kinds.
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (KeyboardInterrupt, INTERRUPTED),
    (FileFormatError, MODEL),
    (DeviceError, DEVICE),
    (ClusterError, CLUSTER),
    (MemoryError, BUDGET),
    (ImportError, PACKAGE),
    (OSError, FILE),
    (ValueError, DATA),
    (TypeError, DATA),
)


class CommandConsole(Console):
    """A console that knows whether a command answers in JSON."""

    as_json = False

    def on_broken_pipe(self) -> None:
        """Leave it to :func:`answered`, which ends the command."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def console(as_json: bool = False, markup: bool = True) -> CommandConsole:
    """Return where a command prints: standard output, or standard error beside JSON.

    Colours are for terminals, and not with ``NO_COLOR``.

    Parameters
    ----------
    as_json : bool
        Whether standard output is for JSON alone.
    markup : bool
        Whether brackets are layout; False for text that may hold names of users.

    Examples
    --------
    >>> from imparo.cli.common import console
    >>> console(as_json=True).stderr
    True
    """
    made = CommandConsole(stderr=as_json, markup=markup)
    made.as_json = as_json
    return made


class CommandError(click.ClickException):
    """One sentence for the user, and the exit code that goes with it."""

    def __init__(self, sentence: str, code: int, as_json: bool = False) -> None:
        super().__init__(sentence)
        self.exit_code = code  # type: ignore[misc]  # click's is that of the class
        self.as_json = as_json

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the sentence to standard error, and as JSON to standard output if asked."""
        with suppress(BrokenPipeError):
            _say("Error", self.message, "bold red")
            if self.as_json:
                click.echo(json.dumps({"error": self.message, "code": self.exit_code}))


def guarded(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make the function of a command fail in one sentence, with the exit code for it.

    It stands below the options, next to the function; the parameter ``as_json`` of the
    function, where it has one, says whether errors are JSON, too.

    Examples
    --------
    >>> import click
    >>> from click.testing import CliRunner
    >>> from imparo.cli.common import guarded
    >>> @click.command()
    ... @guarded
    ... def fail():
    ...     raise ValueError("the file has no rows; give another")
    >>> result = CliRunner().invoke(fail)
    >>> result.exit_code, result.stderr.strip()
    (3, 'Error: the file has no rows; give another')
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        with answered(as_json=bool(kwargs.get("as_json"))):
            return command(*args, **kwargs)

    return run


@contextmanager
def answered(as_json: bool = False) -> Iterator[None]:
    """Turn errors into one sentence and an exit code, and warnings of imparo into notes."""
    with _notes():
        try:
            yield
            sys.stdout.flush()
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            _stop_printing()
            raise click.exceptions.Exit(PIPE) from None
        except (Exception, KeyboardInterrupt) as error:
            if os.environ.get("IMPARO_DEBUG"):
                traceback.print_exc()
            raise CommandError(*explained(error), as_json) from error


def explained(error: BaseException) -> tuple[str, int]:
    """Return an error as one sentence, and the exit code for it.

    Examples
    --------
    >>> from imparo.cli.common import explained
    >>> explained(FileNotFoundError(2, "No such file or directory", "a.csv"))
    ('a.csv cannot be read or written: no such file or directory', 4)
    """
    text = " ".join(str(error).split())
    code = next((code for kind, code in _CODES if isinstance(error, kind)), BUG)
    if code == INTERRUPTED:
        return "interrupted", code
    if code == BUG:
        what = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return f"this is a bug of imparo ({what}); report it with what IMPARO_DEBUG=1 shows", 1
    if isinstance(error, MemoryError) and not text:
        text = "there is not enough memory for this; give fewer rows or a smaller --memory"
    if isinstance(error, OSError) and error.errno is not None:
        named = f"{os.fsdecode(error.filename)} " if _is_path(error.filename) else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            text = (
                f"the disk is full: {named or 'the output '}cannot be written; free some "
                "space or write elsewhere"
            )
        elif named and error.strerror:
            reason = error.strerror[:1].lower() + error.strerror[1:]
            text = f"{named}cannot be read or written: {reason}"
    return text or type(error).__name__, code


def _is_path(name: Any) -> bool:
    return isinstance(name, str | bytes | os.PathLike)


@contextmanager
def _notes() -> Iterator[None]:
    """Show each warning of imparo once, as one line on standard error."""
    with warnings.catch_warnings():
        usual, told = warnings.showwarning, set()

        def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            text = " ".join(str(message).split())
            if not issubclass(category, ImparoWarning):
                usual(message, category, *place, **more)
            elif text not in told:
                told.add(text)
                _say("Note", text, "yellow")

        warnings.simplefilter("always", ImparoWarning)
        warnings.showwarning = show
        yield


def _say(kind: str, text: str, style: str) -> None:
    out = console(as_json=True)
    out.print(f"[{style}]{kind}:[/]", end=" ", soft_wrap=True)
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def _stop_printing() -> None:
    """Send what is still to be printed nowhere, so that the end of Python is quiet, too."""
    with suppress(OSError, ValueError):  # output that is no file, as in tests
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
