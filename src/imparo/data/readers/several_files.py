"""Rows of several files of one format, as if they were one."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from imparo.data.frames import Frame
from imparo.data.readers.bad_rows import NoRowsError, PassedBadRows
from imparo.data.readers.base import ReadOptions, Rows
from imparo.data.readers.column_choice import chosen_columns
from imparo.data.readers.json_lines import JsonArray
from imparo.data.readers.line_rows import LineRows
from imparo.data.readers.text_cells import as_kind, kind_of
from imparo.engine import Array

#: Opens a file: its path, options, and rows of another file of the same table.
Opener = Callable[..., Rows]
_NOT_ROWS = (".tmp", ".part", ".crc")
_PARTITION = re.compile("([^=]+)=(.*)")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class SeveralFiles(Rows):
    r"""Rows of several files of one format and the same columns.

    Parameters
    ----------
    paths : list of Path
        In the order in which they are read.
    opener : callable
        Opens one, given options and rows of the first file.
    options : ReadOptions
    root : Path, optional
        Names of folders below it that are like ``year=2020`` make columns.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from imparo.data import open_rows
    >>> folder = Path(tempfile.mkdtemp())
    >>> for year in (2020, 2021):
    ...     (folder / f"year={year}").mkdir()
    ...     _ = (folder / f"year={year}" / "a.csv").write_text("x,y\n1,2\n")
    >>> rows = open_rows(folder)
    >>> [block["year"].tolist() for block in rows.blocks()]
    [[2020.0], [2021.0]]
    """

    def __init__(
        self, paths: list[Path], opener: Opener, options: ReadOptions, root: Path | None = None
    ) -> None:
        self.bad = options.bad
        partitions = [_partitions(path, root) for path in paths]
        inner = replace(
            options,
            bad=PassedBadRows(options.bad.policy, to=options.bad),
            text=tuple(name for name in options.text if name not in partitions[0]),
        )
        self.parts: list[Rows] = []
        kept: list[int] = []
        for k, path in enumerate(paths):
            # Those who write in parallel leave files without rows where they had none.
            with suppress(NoRowsError):
                self.parts.append(opener(path, inner, self.parts[0] if kept else None))
                kept.append(k)
        if not kept:
            raise NoRowsError(f"no row is in any of {len(paths)} files, such as {paths[0]}")
        paths, partitions = [paths[k] for k in kept], [partitions[k] for k in kept]
        self.files, first = paths, self.parts[0]
        for path, part in zip(paths[1:], self.parts[1:], strict=True):
            self._check(path, part)
        for part in self.parts:
            if isinstance(part, LineRows | JsonArray):
                part.may_be_empty = True
        self.format, self.is_sparse, self.lines = first.format, first.is_sparse, first.lines
        self._inner, self.groups, self.targets = first.names, first.groups, first.targets
        self._constants = self._agreed(partitions, options)
        self.names = [*first.names, *self._constants]
        self.kinds = first.kinds | {
            name: "number" if cells.dtype.kind == "f" else "text"
            for name, cells in self._constants.items()
        }
        self.partitions = list(self._constants)
        self.n_columns = len(self.names)
        if self.is_sparse:
            self.n_columns = _agree_on_indices(self.parts, options)
        counts = [part.n_rows for part in self.parts]
        self.n_rows = sum(count for count in counts if count is not None)
        if None in counts:
            self.n_rows = None

    def blocks(
        self, columns: Sequence[str] | None = None, size: int | None = None
    ) -> Iterator[Any]:
        """Yield the rows in order, at most ``size`` at a time; none holds rows of two files."""
        if self.is_sparse:
            wanted = list(columns or [])
        else:
            wanted = chosen_columns(columns, self.names, "the table")
        self.bad.restart()
        return self._blocks(wanted, size)

    def _blocks(self, wanted: list[str], size: int | None) -> Iterator[Any]:
        inner: list[str] | None = [name for name in wanted if name not in self._constants]
        if self.is_sparse:
            inner = wanted or None
        elif not inner:
            # Some column tells the number of rows.
            inner = self._inner[:1]
        count = 0
        for k, part in enumerate(self.parts):
            for block in part.blocks(inner, size):
                count += len(block)
                yield block if self.is_sparse else self._whole(block, k, wanted)
        if not count:
            raise ValueError(
                f"none of the {len(self.files)} files has a row that can be used; the first is "
                f"{self.files[0]}"
            )

    def _whole(self, block: Frame, file: int, wanted: list[str]) -> Frame:
        for name, cells in self._constants.items():
            if name in wanted:
                block = block.with_column(name, np.repeat(cells[file : file + 1], len(block)))
        return block if block.columns == wanted else block.select(wanted)

    def _check(self, path: Path, part: Rows) -> None:
        """Raise if a file has other columns than the first."""
        first, name = self.parts[0], self.files[0]
        more = [repr(column) for column in part.names if column not in first.kinds]
        less = [repr(column) for column in first.names if column not in part.kinds]
        if more or less:
            told = [f"has also {', '.join(more[:10])}"] if more else []
            told += [f"lacks {', '.join(less[:10])}"] if less else []
            raise ValueError(
                f"{path} {' and '.join(told)}, unlike {name}; give files of the same columns"
            )
        for column in first.names:
            if part.kinds[column] != first.kinds[column]:
                raise ValueError(
                    f"{path} holds {part.kinds[column]} in column {column!r} and {name} holds "
                    f"{first.kinds[column]}; give files of the same kinds of columns"
                )

    def _agreed(
        self, partitions: list[dict[str, str]], options: ReadOptions
    ) -> dict[str, Array]:
        """Return the columns that folders make, a value a file."""
        if self.is_sparse:
            return {}
        for path, found in zip(self.files, partitions, strict=True):
            if set(found) != set(partitions[0]):
                raise ValueError(
                    f"{path} is not in folders of the same names as {self.files[0]}; give "
                    "folders such as year=2020 for all files"
                )
        columns = {}
        for name in partitions[0]:
            # What is in the files themselves counts.
            if name in self.parts[0].kinds:
                continue
            cells = [found[name] for found in partitions]
            numbers = kind_of(cells) == "number" and not as_kind(cells, "number").wrong
            kind = "number" if numbers and name not in options.text else "text"
            columns[name] = as_kind(cells, kind).cells
        return columns


def files_below(folder: Path) -> list[Path]:
    """Return the files of a folder and of those in it that can hold rows, in natural order.

    Hidden files, markers such as ``_SUCCESS`` and ``_metadata``, and files that are still
    written (``.tmp``, ``.part``) are left out.
    """
    return natural_order(
        path
        for path in folder.rglob("*")
        if path.is_file() and holds_rows(path.relative_to(folder))
    )


def holds_rows(path: Path) -> bool:
    """Return whether a file is one that a person would call data, by its name."""
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    return not hidden and not path.name.lower().endswith(_NOT_ROWS)


def natural_order(paths: Any) -> list[Path]:
    """Return paths in the order in which a person counts: ``part-2`` before ``part-10``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from imparo.data.readers.several_files import natural_order
    >>> [path.name for path in natural_order([Path("b10.csv"), Path("b9.csv")])]
    ['b9.csv', 'b10.csv']
    """
    return sorted(paths, key=_counted)


def _counted(path: Path) -> list[tuple[int, int, str]]:
    parts = re.split("([0-9]+)", str(path))
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def _partitions(path: Path, root: Path | None) -> dict[str, str]:
    """Return the columns that folders between a root and a file make."""
    if root is None:
        return {}
    found = {}
    for part in path.relative_to(root).parent.parts:
        if match := _PARTITION.fullmatch(part):
            value = unquote(match[2])
            found[unquote(match[1])] = "" if value == _NO_VALUE else value
    return found


def _agree_on_indices(parts: list[Any], options: ReadOptions) -> int:
    """Let all files begin with the same index and have the same number of columns."""
    first = min(part.lines.first for part in parts)
    stop = max(part.lines.first + part.lines.n_columns for part in parts)
    n_columns: int = stop - first if options.n_columns is None else options.n_columns
    for part in parts:
        part.lines.first, part.lines.n_columns, part.n_columns = first, n_columns, n_columns
    return n_columns
