"""Small tables in every format that imparo reads, and a way to run its command."""

import bz2
import gzip
import json
import lzma
import subprocess
import sys
from pathlib import Path

import numpy as np

NAMES = ["length", "width", "height", "price"]
#: Formats of whole tables, as suffixes of files.
FORMATS = [
    ".csv", ".tsv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zst", ".jsonl", ".jsonl.gz",
    ".parquet", ".arrow", ".feather", ".npy", ".npz", ".h5", ".libsvm", ".libsvm.gz",
]  # fmt: skip


def rows(n=200, seed=0, classes=False):
    """Return inputs and outputs of a small problem that is easy to learn."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.1, 2, size=(n, 3)).round(6)
    y = (X[:, 0] * X[:, 1] + X[:, 2]).round(6)
    return X, (np.where(y > 2, "dear", "cheap") if classes else y)


def text(X, y, mark=","):
    lines = [mark.join(NAMES)]
    lines += [
        mark.join([*(repr(float(v)) for v in x), str(t)]) for x, t in zip(X, y, strict=True)
    ]
    return "\n".join(lines) + "\n"


def write(path, X, y):
    """Write a table in the format that the name of the file tells."""
    path, kind = Path(path), "".join(Path(path).suffixes)
    plain = kind.split(".")[1]
    if plain in ("csv", "tsv"):
        content = text(X, y, "\t" if plain == "tsv" else ",").encode()
    elif plain == "jsonl":
        pairs = zip(X.tolist(), y.tolist(), strict=True)
        table = [dict(zip(NAMES, [*x, t], strict=True)) for x, t in pairs]
        content = "".join(json.dumps(row) + "\n" for row in table).encode()
    elif plain == "libsvm":
        lines = [f"{t} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x.tolist()))
                 for x, t in zip(X, y.tolist(), strict=True)]  # fmt: skip
        content = ("\n".join(lines) + "\n").encode()
    else:
        return _write_binary(path, X, y, plain)
    packed = {"": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    last = kind.split(".")[2] if kind.count(".") == 2 else ""
    if last == "zst":
        import pyarrow as pa

        with pa.output_stream(str(path), compression="zstd") as stream:
            stream.write(content)
    else:
        path.write_bytes(packed[last](content))
    return path


def _write_binary(path, X, y, kind):
    if kind == "npy":
        np.save(path, np.column_stack([X, y]))
    elif kind == "npz":
        np.savez_compressed(path, X=X, y=y)
    elif kind == "h5":
        import h5py

        with h5py.File(path, "w") as file:
            file["X"] = X
            file["y"] = y if y.dtype.kind == "f" else y.astype("S")
    else:
        import pyarrow as pa
        from pyarrow import feather, parquet

        cells = {name: X[:, j] for j, name in enumerate(NAMES[:3])} | {"price": y}
        table = pa.table(cells)
        if kind == "parquet":
            parquet.write_table(table, path)
        elif kind == "feather":
            feather.write_feather(table, str(path))
        else:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
                out.write_table(table)
    return path


def imparo(*arguments, **settings):
    """Run the command in a process of its own; return what came of it."""
    command = [sys.executable, "-m", "imparo", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **settings)
