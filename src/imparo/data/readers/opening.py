"""Open a file, a folder, a pattern or a pipe of rows, whatever its format."""

import difflib
import glob
import importlib
import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from imparo.data.readers.base import ReadOptions, Rows
from imparo.data.readers.compression import COMPRESSIONS, without_compression
from imparo.data.readers.several_files import (
    SeveralFiles,
    files_below,
    holds_rows,
    natural_order,
)
from imparo.data.readers.standard_input import StandardInput

_FOLDER = "imparo.data.readers"
# Suffix: format, module, function. Modules are imported when a file of theirs is opened, as
# some need optional packages.
_FORMATS = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".data"), ("csv", "text_table", "open_text")),
    **dict.fromkeys((".parquet", ".pq"), ("parquet", "parquet", "open_parquet")),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), ("arrow", "arrow_files", "open_arrow")),
    **dict.fromkeys((".libsvm", ".svm", ".svmlight"), ("libsvm", "sparse_text", "open_sparse")),
    ".npy": ("npy", "numpy_arrays", "open_npy"),
    ".npz": ("npz", "numpy_arrays", "open_npz"),
    **dict.fromkeys((".h5", ".hdf5"), ("hdf5", "hdf5", "open_hdf5")),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), ("json", "json_lines", "open_json")),
}
# Formats of lines: these may be compressed, and later files of several follow the first.
_OF_LINES = ("csv", "libsvm", "json")
_ELSEWHERE = {
    **dict.fromkeys(
        (".xlsx", ".xls", ".xlsm", ".ods"),
        "is a workbook, which is not read here; save the sheet as CSV",
    ),
    ".mat": "is a file of MATLAB; save its arrays with numpy.savez, or as HDF5",
    **dict.fromkeys(
        (".pkl", ".pickle", ".joblib"),
        "is a pickle, which can run any code when it is read; write the rows as Parquet or CSV",
    ),
    **dict.fromkeys(
        (".sqlite", ".sqlite3", ".db"),
        "is a database; write the table that you need as CSV or Parquet",
    ),
    ".zip": "is an archive; unpack it and give the file or folder with the rows",
    ".tar": "is an archive; unpack it and give the file or folder with the rows",
}

Source = str | os.PathLike[str]


def open_rows(
    source: Source | Iterable[Source], options: ReadOptions | None = None, **settings: Any
) -> Rows:
    r"""Open rows of named columns, to be read in blocks.

    Parameters
    ----------
    source : str, path or list of them
        A file; a folder, with all files below it; a pattern such as ``data/**/*.csv``; "-" for
        standard input, which holds JSON lines or CSV; or several files. The end of the name
        tells the format: ``.csv .tsv .txt .data``, ``.parquet .pq``, ``.arrow .feather .ipc``,
        ``.libsvm .svm .svmlight``, ``.npy``, ``.npz``, ``.h5 .hdf5`` or ``.jsonl .ndjson
        .json``; those of text may also be compressed: ``.gz .bz2 .xz .zst .lz4``.
    options : ReadOptions, optional
    **settings
        Fields of :class:`~imparo.data.readers.ReadOptions`, which win over ``options``.

    Returns
    -------
    Rows
        See :class:`~imparo.data.readers.Rows`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from imparo.data import open_rows
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age;city\n20;Rome\n30;Paris\n")
    >>> rows = open_rows(path)
    >>> rows.names, rows.kinds["city"]
    (['age', 'city'], 'text')
    >>> [block["age"].tolist() for block in rows.blocks(["age"])]
    [[20.0, 30.0]]
    """
    options = _with_settings(options, settings)
    if not isinstance(source, str | os.PathLike):
        paths = [path for one in source for path in _found(one)[0]]
        if not paths:
            raise ValueError("there are no files in the list; give at least one")
        return _several(paths, options, None, "the list")
    if str(source) == "-":
        return _open_pipe(StandardInput(), options)
    if Path(source).exists() and not (Path(source).is_file() or Path(source).is_dir()):
        # Such as /dev/stdin, or what a shell makes of <(command).
        with Path(source).open("rb") as stream:
            return _open_pipe(StandardInput(stream, str(source)), options)
    paths, root = _found(source)
    if root is None:
        return _opener(paths[0])(paths[0], options, None)
    return _several(paths, options, root, str(source))


def _with_settings(options: ReadOptions | None, settings: dict[str, Any]) -> ReadOptions:
    known = [field.name for field in fields(ReadOptions)]
    for name in settings:
        if name not in known:
            raise TypeError(f"there is no setting {name!r}; there are {', '.join(known)}")
    if "text" in settings:
        text = settings["text"]
        settings["text"] = (text,) if isinstance(text, str) else tuple(text)
    return ReadOptions(**settings) if options is None else replace(options, **settings)


def _found(source: Source) -> tuple[list[Path], Path | None]:
    """Return files, and the folder they are in unless one file was named."""
    path = Path(source)
    if path.is_dir():
        files = [file for file in files_below(path) if _format(file) is not None]
        if not files:
            raise ValueError(
                f"the folder {path} holds no file of rows; give one with files that end with "
                f"{_endings()}"
            )
        return files, path
    if path.exists():
        return [path], None
    if glob.has_magic(str(source)):
        names = glob.glob(str(path), recursive=True)
        files = natural_order(
            found
            for found in map(Path, names)
            if found.is_file() and holds_rows(Path(found.name))
        )
        if not files:
            raise FileNotFoundError(f"no file is like {path}")
        fixed = []
        for part in path.parent.parts:
            if glob.has_magic(part):
                break
            fixed.append(part)
        return files, Path(*fixed)
    raise FileNotFoundError(_no_file(path))


def _no_file(path: Path) -> str:
    parent = path.parent
    if not parent.is_dir():
        return f"there is no file {path}, nor a folder {parent}"
    near = difflib.get_close_matches(path.name, [found.name for found in parent.iterdir()], n=1)
    return f"there is no file {path}" + (f"; did you mean {parent / near[0]}?" if near else "")


def _format(path: Path) -> str | None:
    suffix = Path(without_compression(path)).suffix.lower()
    return _FORMATS[suffix][0] if suffix in _FORMATS else None


def _endings() -> str:
    *most, last = _FORMATS
    return f"{', '.join(most)} or {last}"


def _opener(path: Path) -> Callable[..., Rows]:
    """Return what opens a file: given its path, options and rows of another such file."""
    suffix = Path(without_compression(path)).suffix.lower()
    if suffix in _ELSEWHERE:
        raise ValueError(f"{path} {_ELSEWHERE[suffix]}")
    if suffix not in _FORMATS:
        raise ValueError(
            f"the end of the name of {path} tells no format that can be read; give a file that "
            f"ends with {_endings()}, those of text also compressed ({', '.join(COMPRESSIONS)})"
        )
    format, module, function = _FORMATS[suffix]
    if format not in _OF_LINES and path.suffix.lower() in COMPRESSIONS:
        raise ValueError(f"{path} is compressed and not text; unpack it first")
    opener = getattr(importlib.import_module(f"{_FOLDER}.{module}"), function)
    if format in _OF_LINES:
        return opener
    return lambda path, options, like: opener(path, options)


def _several(paths: list[Path], options: ReadOptions, root: Path | None, source: str) -> Rows:
    formats = Counter(_format(path) or path.suffix or "no format" for path in paths)
    if len(formats) > 1:
        listed = ", ".join(f"{count} of {format}" for format, count in formats.most_common())
        raise ValueError(
            f"{source} holds files of several formats ({listed}); give a pattern for one of "
            f"them, such as {Path(root or '.') / '*'}{paths[0].suffix}"
        )
    opener = _opener(paths[0])
    # Those who write in parallel leave files without a byte where they had no rows.
    filled = [path for path in paths if path.stat().st_size] or paths
    if len(filled) == 1 and not any("=" in part for part in filled[0].parts):
        return opener(filled[0], options, None)
    return SeveralFiles(filled, opener, options, root)


def _open_pipe(pipe: StandardInput, options: ReadOptions) -> Rows:
    from imparo.data.readers.json_lines import open_json
    from imparo.data.readers.text_table import open_text

    start = pipe.open().read(2**16).removeprefix(b"\xef\xbb\xbf").lstrip()
    return (open_json if start[:1] in (b"{", b"[") else open_text)(pipe, options)
