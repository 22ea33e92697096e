"""Blocks that size themselves from the memory that the user gave."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from imparo.errors import MemoryBudgetError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

# Blocks larger than this gain nothing in speed and leave the last-level cache.
PREFERRED_BLOCK_BYTES = 32 * 2**20
#: Columns of a kernel matrix to compute and multiply together, so that they stay in the cache.
CACHED_COLUMNS = 4096


def available_memory() -> int:
    """Return the bytes that this process may use: half of the machine's or container's."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists():
        text = limit.read_text().strip()
        if text.isdigit():
            total = min(total, int(text))
    return total // 2


def parse_memory(memory: Any) -> int:
    """Return a number of bytes from ``"2GB"``, ``"512MiB"``, a number, or None.

    Parameters
    ----------
    memory : int, float, str, dict or None
        Bytes, or text with a unit (kB, MB, GB, TB; KiB, MiB, GiB, TiB). None stands
        for :func:`available_memory`. Of a dict, the entry "host".

    Returns
    -------
    int
        Bytes, at least one.

    Examples
    --------
    >>> from imparo.engine import parse_memory
    >>> parse_memory("2GB"), parse_memory("1 MiB"), parse_memory(4096)
    (2000000000, 1048576, 4096)
    """
    if isinstance(memory, dict):
        check_places(memory)
        memory = memory.get("host")
    if memory is None:
        return available_memory()
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([kKmMgGtT]?)(i?)[bB]?\s*", memory)
        try:
            amount = float(match[1]) if match else None
        except ValueError:
            amount = None
        if match is None or amount is None:
            raise ValueError(
                f"memory={memory!r} is not an amount of memory; give bytes or text such "
                "as '2GB' or '512MiB'"
            )
        size = amount * (_BINARY if match[3] else _UNITS)[match[2].upper()]
    elif isinstance(memory, bool) or not isinstance(memory, int | float | np.number):
        raise ValueError(
            f"memory={memory!r} is not an amount of memory; give bytes or text such as '2GB'"
        )
    else:
        size = float(memory)
    if not 1 <= size < 2**63:
        raise ValueError(f"memory={memory!r} must be at least one byte and finite")
    return int(size)


def check_places(memory: dict[Any, Any]) -> None:
    """Raise unless amounts of memory are given for "host" and "device", or one of them."""
    if not memory or set(memory) - {"host", "device"}:
        raise ValueError(
            f"memory={memory!r} must have the keys 'host' and 'device', or be one amount"
        )


def rows_within(bytes_per_row: int, memory: int, what: str = "one row") -> int:
    """Return how many rows of ``bytes_per_row`` fit, capped at the preferred block size.

    Raises
    ------
    MemoryBudgetError
        If not even one row fits.
    """
    if bytes_per_row > memory:
        raise MemoryBudgetError(
            f"{what} needs {bytes_per_row:,} bytes and memory is {memory:,}; raise memory "
            "or use fewer training rows"
        )
    return max(1, min(memory, PREFERRED_BLOCK_BYTES) // max(1, bytes_per_row))


def row_blocks(n_rows: int, block_rows: int) -> Iterator[slice]:
    """Yield slices that cover ``range(n_rows)`` in order, ``block_rows`` at a time.

    Examples
    --------
    >>> from imparo.engine import row_blocks
    >>> list(row_blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n_rows, block_rows):
        yield slice(start, min(start + block_rows, n_rows))
