"""What is known of a data set: its rows, where it comes from, how the thesis uses it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from imparo.data.readers.base import Rows
from imparo.engine import Array

#: Names of downloaded originals and where they are; arrays by name.
Converter = Callable[[Mapping[str, Path]], dict[str, Array]]


@dataclass(frozen=True)
class Part:
    """Some rows of an archive.

    Attributes
    ----------
    rows : int
        How many, once corrections are made.
    suffix : str
        Of the names of its arrays: ``X_train`` is X of the suffix "train"; none if empty.
    first : int
        The first of them. Rows beyond ``first + rows`` are left out.
    column, low, high : str, float, float
        Where ``column`` is given, rows in which it is from ``low`` on and below ``high``.
    """

    rows: int
    suffix: str = ""
    first: int = 0
    column: str = ""
    low: float = 0
    high: float = 0


@dataclass(frozen=True)
class Original:
    """A published file.

    Attributes
    ----------
    name : str
        What the conversion calls it.
    addresses : tuple of str
        Where it is; tried in this order.
    most_bytes : int
        A larger file is not the one.
    """

    name: str
    addresses: tuple[str, ...]
    most_bytes: int


@dataclass(frozen=True)
class Recipe:
    """How to get a data set where there is a network.

    Attributes
    ----------
    originals : tuple of Original
    convert : callable
        Makes the arrays of our archive of the downloaded files.
    shapes : dict of str to tuple
        The arrays that come of it.
    megabytes : float
        Of all downloads, about.
    """

    originals: tuple[Original, ...]
    convert: Converter
    shapes: dict[str, tuple[int, ...]]
    megabytes: float


@dataclass(frozen=True)
class NamedDataset:
    """A data set of the thesis, or one to try things with.

    Attributes
    ----------
    name, title : str
    aliases : tuple of str
        Other names; case, spaces, hyphens and underscores do not count anyway.
    task : "regression" or "classification"
    columns : int
        Number of columns to learn from.
    target : str
        What is to be learned, in words.
    parts : dict of str to Part
        "train", "test" and "val", or "all" where the rows are in one piece.
    archives : tuple of str
        Files of the folder ``IMPARO_DATA`` that hold it, or some parts of it.
    source, licence : str
        Where the data come from and what may be done with them, in words.
    thesis : str
        Where the thesis uses them, with which split and scaling; empty where it does not.
    notes : tuple of str
        Traps, and what is corrected when the rows are read.
    column_names, target_names : tuple of str
        Names of the columns; those of the arrays, such as ``X[0]``, where there are none.
    arrays : tuple of str
        Names of the arrays to learn from, and last of the one to learn.
    positive : int or None
        The class that becomes 1 where all others become -1.
    make : callable or None
        Makes the rows where no file is needed.
    recipe : Recipe or None
        How to download it.
    checksums : dict of str to str
        Of the content of arrays; see :func:`imparo.data.named.content_checksum`.
    """

    name: str
    title: str
    task: str
    columns: int
    target: str
    parts: dict[str, Part]
    source: str
    licence: str
    archives: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    thesis: str = ""
    notes: tuple[str, ...] = ()
    column_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ("X", "y")
    positive: int | None = None
    make: Callable[[], Rows] | None = None
    recipe: Recipe | None = None
    checksums: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of rows of all parts; those of the whole where parts are cut out of it."""
        if "all" in self.parts:
            return self.parts["all"].rows
        return sum(part.rows for part in self.parts.values())

    def part(self, name: str | None) -> Part:
        """Return a part by its name: all rows, or those to learn from, if it is None.

        Parameters
        ----------
        name : str or None
        """
        if name is None:
            name = next(known for known in ("all", "train", "test") if known in self.parts)
        if name not in self.parts:
            raise ValueError(
                f"{self.name} has no part {name!r}; its parts are {', '.join(self.parts)}"
            )
        return self.parts[name]

    def to_dict(self) -> dict[str, Any]:
        """Return what is known as plain values, for JSON.

        Returns
        -------
        dict
        """
        downloads = self.recipe.originals if self.recipe else ()
        return {
            "name": self.name,
            "aliases": list(self.aliases),
            "title": self.title,
            "task": self.task,
            "rows": self.rows,
            "columns": self.columns,
            "target": self.target,
            "parts": {name: part.rows for name, part in self.parts.items()},
            "archives": list(self.archives),
            "source": self.source,
            "licence": self.licence,
            "thesis": self.thesis,
            "notes": list(self.notes),
            "downloads": [original.addresses[0] for original in downloads],
        }


class Registry(Mapping[str, NamedDataset]):
    """Data sets by name, found by their other names and any spelling, too.

    Parameters
    ----------
    datasets : sequence of NamedDataset

    Examples
    --------
    >>> from imparo.data.named import DATASETS
    >>> DATASETS["CPU small"].name, len(DATASETS) > 20
    ('cpu-small', True)
    """

    def __init__(self, datasets: tuple[NamedDataset, ...]) -> None:
        self._datasets = {dataset.name: dataset for dataset in datasets}
        self._names: dict[str, str] = {}
        for dataset in datasets:
            for name in (dataset.name, *dataset.aliases):
                if self._names.setdefault(_plain(name), dataset.name) != dataset.name:
                    raise ValueError(f"two data sets are called {name!r}")

    def __getitem__(self, name: str) -> NamedDataset:
        """Return a data set; the error of a wrong name tells those that are near it."""
        plain = _plain(name) if isinstance(name, str) else ""
        if plain in self._names:
            return self._datasets[self._names[plain]]
        close = get_close_matches(plain, self._names, n=3, cutoff=0.6)
        near = list(dict.fromkeys(self._names[other] for other in close))
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise UnknownDataset(
            f"there is no data set {name!r}; {hint}`imparo datasets list` shows all of them"
        )

    def __iter__(self) -> Any:
        return iter(self._datasets)

    def __len__(self) -> int:
        return len(self._datasets)


class UnknownDataset(KeyError, ValueError):
    """A name that no data set has."""

    def __str__(self) -> str:
        # KeyError would show the sentence in quotes.
        return str(self.args[0])


def _plain(name: str) -> str:
    return "".join(mark for mark in name.lower() if mark.isalnum())
