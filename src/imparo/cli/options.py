"""Options that the commands on files share: how to read, what to tell."""

import os
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Any) -> Decorator:
    """Return one decorator for several options, in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


class Names(click.ParamType):
    r"""Names of columns, separated by commas; a comma in a name is written \,."""

    name = "names"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        """Return the names."""
        if isinstance(value, list):
            return value
        marked = value.replace("\\,", "\0")
        names = [name.strip().replace("\0", ",") for name in marked.split(",")]
        return [name for name in names if name]


class Numbers(click.ParamType):
    """One number, several with commas between, or a word."""

    name = "number"

    def __init__(self, words: tuple[str, ...] = (), whole: bool = False) -> None:
        self._words, self._whole = words, whole

    def get_metavar(self, param: Any, ctx: Any = None) -> str:
        """Return what the help shows."""
        return "|".join(("NUMBERS", *self._words)).upper()

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return a number, a list of numbers, or the word."""
        if not isinstance(value, str) or value in self._words:
            return value
        kind = int if self._whole else float
        try:
            found = [kind(part) for part in value.split(",")]
        except ValueError:
            words = "".join(f", or {word}" for word in self._words)
            self.fail(f"{value!r} is no number, nor numbers with commas between{words}")
        return found[0] if len(found) == 1 else found


class Memory(click.ParamType):
    """An amount of memory, such as 2GB."""

    name = "bytes"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the text, if it is one."""
        from imparo.engine import parse_memory

        try:
            parse_memory(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return value


reading_options = together(
    click.option("--delimiter", metavar="MARK", help="Between the cells of a text file."),
    click.option(
        "--header/--no-header", default=None,
        help="Whether the first line of a text file holds names; found out if left out.",
    ),
    click.option("--encoding", default="utf-8", show_default=True, help="Of text files."),
    click.option(
        "--text", type=Names(), default="", metavar="COLUMNS",
        help="Columns to read as text though they hold numbers, such as codes.",
    ),
    click.option(
        "--bad-rows", type=click.Choice(["stop", "skip"]), default="stop", show_default=True,
        help="What to do with rows that cannot be used.",
    ),
    click.option("--part", help="train, test or val: which rows of a data set that has parts."),
    click.option(
        "--download", is_flag=True, help="Fetch a named data set that is not on this machine."
    ),
)  # fmt: skip

device_option = click.option(
    "--device", metavar="NAME",
    help="cpu, cuda, cuda:1, torch:cpu, or auto: a GPU if there is one. Needs PyTorch: "
    "imparo[torch].",
)  # fmt: skip

cluster_option = click.option(
    "--cluster", metavar="ADDRESS",
    help="Scheduler of Dask, such as tcp://10.0.0.1:8786, whose workers make the fit. Needs "
    "imparo[dask].",
)  # fmt: skip

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

report_option = click.option(
    "--report", "-r", "reports", multiple=True, metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a report: .html, .json, .png or .svg; may be given several times.",
)  # fmt: skip


def reading(**given: Any) -> dict[str, Any]:
    """Return how to read, as :func:`imparo.tabular.as_rows` takes it, from the options."""
    from imparo.data.readers import BadRows

    return {
        "delimiter": given["delimiter"],
        "header": given["header"],
        "encoding": given["encoding"],
        "text": tuple(given["text"]),
        "bad": BadRows(given["bad_rows"]),
        "part": given["part"],
        "download": given["download"],
    }


#: The names of the parameters that ``reading_options`` adds.
READING = ("delimiter", "header", "encoding", "text", "bad_rows", "part", "download")


def check_place(path: Path | None, what: str, others: Iterable[Any] = ()) -> None:
    """Raise before any work if a file cannot be written, or is another one of the command."""
    if path is None:
        return
    for other in others:
        place = Path(other)
        same = place == path or (path.exists() and place.exists() and path.samefile(place))
        if same:
            raise click.UsageError(
                f"the {what} would overwrite {path}, which the command reads or writes "
                "otherwise; give another name"
            )
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file for the {what}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write the {what} to")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"the {what} may not be written to {path}; choose another place")


def command_line() -> str:
    """Return the command as it was typed, for whoever wants to do it again."""
    return shlex.join(["imparo", *sys.argv[1:]])
