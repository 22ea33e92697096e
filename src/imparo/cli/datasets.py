"""``imparo datasets``: data that are known by name, and data made up."""

import json
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from imparo.cli.common import console, explained, guarded
from imparo.cli.completion import known_names
from imparo.cli.datasets_make import HelpGroup, make
from imparo.cli.steps import steps

if TYPE_CHECKING:
    from imparo.data.named import NamedDataset

_PLACES = {
    "shipped": "[green]shipped[/]",
    "data": "[green]in IMPARO_DATA[/]",
    "cache": "[green]downloaded[/]",
    "download": "can be downloaded",
    "none": "[dim]not available[/]",
}
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _known(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in known_names() if name.startswith(incomplete)]


@click.group(cls=HelpGroup)
def datasets() -> None:
    """Show, get and make data: the sets of the thesis by name, and synthetic ones.

    They are read from the folder that IMPARO_DATA names, then from the cache of downloads.
    Nothing is downloaded unless `get` is called. Other commands take their names in place of
    a file.

    \b
    Examples:
      imparo datasets list
      imparo datasets show covtype
      imparo datasets get adult ijcnn1
      imparo datasets make gaussians --rows 1000000 -o rows.parquet
      imparo fit adult -o model.imparo
    """  # noqa: D301  # the mark for click that keeps the lines of the examples


@datasets.command("list")
@_json
@guarded
def list_command(as_json: bool) -> None:
    """Show all data sets, and where they are.

    \b
    Examples:
      imparo datasets list
      imparo datasets list --json | jq '.[] | select(.where == "download") | .name'
    """  # noqa: D301  # click's mark
    from imparo.data import named

    if as_json:
        click.echo(json.dumps([_told(dataset) for dataset in named.DATASETS.values()]))
        return
    table = Table("name", "rows", "columns", "task", "where", box=None, header_style="bold")
    for column in table.columns[1:3]:
        column.justify = "right"
    for dataset in named.DATASETS.values():
        table.add_row(
            dataset.name, f"{dataset.rows:,}", f"{dataset.columns:,}", dataset.task,
            _place(dataset),
        )  # fmt: skip
    out = console()
    out.print(table)
    folder = named.data_folder()
    out.print(
        f"\nIMPARO_DATA: {folder or 'not set'}   cache: {named.cache_folder()}",
        style="dim", soft_wrap=True, markup=False, highlight=False,
    )  # fmt: skip


@datasets.command()
@click.argument("name", shell_complete=_known)
@click.option("--check", is_flag=True, help="Compare the file with the checksums known.")
@_json
@guarded
def show(name: str, check: bool, as_json: bool) -> None:
    """Tell what NAME is, where it is from, and what to beware of.

    \b
    Examples:
      imparo datasets show adult
      imparo datasets show mnist --check
    """  # noqa: D301  # click's mark
    from imparo.data import named

    dataset = named.DATASETS[name]
    compared = named.verify(name) if check else None
    if as_json:
        more = {} if compared is None else {"checked": compared}
        click.echo(json.dumps(_told(dataset) | more))
        return
    _describe(console(markup=False), dataset)
    if compared is not None:
        what = f"the same as those known: {', '.join(compared)}" if compared else "not known"
        console(markup=False).print(f"Checksums: {what}", soft_wrap=True, highlight=False)


@datasets.command()
@click.argument("names", nargs=-1, shell_complete=_known)
@click.option("--all", "everything", is_flag=True, help="All that can be downloaded.")
@click.option("--again", is_flag=True, help="Even what is on this machine already.")
@_json
@guarded
def get(names: tuple[str, ...], everything: bool, again: bool, as_json: bool) -> None:
    """Download data sets to the cache, from where they were published.

    What arrives is converted to one archive of NumPy and compared with checksums, or with
    the shapes where no checksum is known; nothing is kept if it differs. Licences are those
    of the publishers: see `imparo datasets show NAME`.

    \b
    Examples:
      imparo datasets get adult
      imparo datasets get --all
    """  # noqa: D301  # click's mark
    if everything == bool(names):
        raise click.UsageError("give names of data sets, or --all")
    from imparo.data import named

    chosen = [named.DATASETS[name] for name in names]
    if everything:
        chosen = [dataset for dataset in named.DATASETS.values() if dataset.recipe is not None]
    out, told, failures = console(as_json), [], []
    with steps(out) as bars:
        for dataset in chosen:
            try:
                path, fetched = _get(dataset, again, bars)
            except (OSError, ValueError) as error:
                # One server that does not answer should not keep the others from it.
                if len(chosen) == 1:
                    raise
                failures.append(f"{dataset.name}: {explained(error)[0]}")
                continue
            told.append({"name": dataset.name, "file": path, "downloaded": fetched})
            if not as_json:
                how = "downloaded to" if fetched else "already here:"
                place = path or "it ships with imparo or scikit-learn"
                out.print(f"{dataset.name} {how} {place}", soft_wrap=True, markup=False)
    if failures:
        raise OSError(
            f"{len(failures)} of {len(chosen)} could not be had; {'; '.join(failures)}"
        )
    if as_json:
        click.echo(json.dumps(told))


@datasets.command("path")
@_json
@guarded
def path_command(as_json: bool) -> None:
    """Tell where downloads are kept: IMPARO_CACHE, or the cache folder of the user.

    \b
    Examples:
      imparo datasets path
      rm -r "$(imparo datasets path)"
    """  # noqa: D301  # click's mark
    from imparo.data import named

    folder, data = named.cache_folder(), named.data_folder()
    if as_json:
        click.echo(json.dumps({"cache": str(folder), "data": data and str(data)}))
    else:
        click.echo(folder)


datasets.add_command(make)


def _get(dataset: "NamedDataset", again: bool, show_done: Any) -> tuple[str | None, bool]:
    """Return where a data set is, and whether it was downloaded now."""
    from imparo.data import named

    if dataset.make is not None:
        return None, False
    complete = all(named.located(dataset, part) for part in dataset.parts)
    if complete and not again:
        place = named.located(dataset)
        assert place is not None
        return str(place.path), False

    def progress(done: int, total: int | None) -> None:
        show_done.show(f"downloading {dataset.name}", done, total)

    return str(named.download(dataset, progress)), True


def _place(dataset: "NamedDataset") -> str:
    from imparo.data import named

    place = named.where(dataset)
    text = _PLACES[place]
    if place in ("data", "cache"):
        missing = [part for part in dataset.parts if named.located(dataset, part) is None]
        text += f", without {' and '.join(missing)}" if missing else ""
    return text


def _told(dataset: "NamedDataset") -> dict[str, Any]:
    from imparo.data import named

    place = named.located(dataset) if dataset.make is None else None
    file = str(place.path) if place else None
    return dataset.to_dict() | {"where": named.where(dataset), "file": file}


def _describe(out: Console, dataset: "NamedDataset") -> None:
    told = _told(dataset)
    parts = ", ".join(f"{name} {rows:,}" for name, rows in told["parts"].items())
    lines = {
        "Rows": f"{dataset.rows:,} ({parts})",
        "Columns": f"{dataset.columns:,}",
        "Task": f"{dataset.task}: {dataset.target}",
        "Also": ", ".join(dataset.aliases),
        "Where": told["file"] or Text.from_markup(_PLACES[told["where"]]).plain,
        "From": dataset.source,
        "Licence": dataset.licence,
        "Thesis": dataset.thesis,
        "Note": "\n".join(dataset.notes),
    }
    out.print(f"{dataset.name}: {dataset.title}", style="bold", highlight=False)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in lines.items():
        if text:
            grid.add_row(label, text)
    out.print(grid, highlight=False)
    for address in told["downloads"]:
        out.print(f"Original  {address}", highlight=False, soft_wrap=True)
