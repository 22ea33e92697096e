"""What a fit on a cluster costs in bytes, on paper: of every worker, and over the network."""

import numpy as np

from imparo.engine.blocks import PREFERRED_BLOCK_BYTES

#: Bytes of a worker before it has any work: Python, Dask and this library.
BASE = 240 * 10**6
#: Groups of partitions for every task that workers do at once: a worker that is lost costs a
#: part of its share, and those that are done early take over.
GROUPS = 4
#: Fewer rows than this are not worth a sum of their own.
LEAST_ROWS = 10_000
#: Of a worker's memory limit, for each thread: partitions of a group that Dask makes.
INPUTS = 0.15
#: What a task has of its partition at once: as it came, as a matrix, and blocks of it.
COPIES = 3
# Rows of a block of features, and arrays of so many that are alive at once.
_BLOCK_ROWS, _ARRAYS = 1024, 4
# Of a worker's memory limit: Dask pauses workers from 0.8 on.
_SHARE = 0.8


def statistics_bytes(m: int, n_cells: int) -> int:
    """Return the bytes of the statistics of m features, for every part of the rows."""
    return 8 * m * m * n_cells


def worker_bytes(
    m: int, n_cells: int, partition: int, threads: int = 1, *, statistics: bool = True
) -> int:
    """Return the most memory that a worker takes.

    Parameters
    ----------
    m : int
        Number of centers or features.
    n_cells : int
        Parts of the rows with statistics of their own: 2 for a hold-out, V for V folds.
    partition : int
        Bytes of the largest partition.
    threads : int
        Tasks that a worker does at once.
    statistics : bool
        Whether statistics are summed; iterations need no m × m matrix on workers.

    Returns
    -------
    int

    Examples
    --------
    >>> from imparo.cluster import worker_bytes
    >>> worker_bytes(2000, 2, 2 * 10**6) // 10**6
    599
    """
    block = max(PREFERRED_BLOCK_BYTES, _ARRAYS * 8 * m * _BLOCK_ROWS)
    own = COPIES * partition + block
    # For each thread a sum that grows and one that waits, two while they are added, and the
    # factor that features are whitened with.
    sets = (2 * threads + 2) * statistics_bytes(m, n_cells) + 8 * m * m if statistics else 0
    return BASE + sets + threads * own


def most_columns(limit: int, threads: int, n_cells: int, partition: int) -> int:
    """Return the most centers or features whose statistics a worker can hold.

    Parameters
    ----------
    limit : int
        Bytes that a worker may take.
    threads, n_cells, partition : int
        As for :func:`worker_bytes`.

    Returns
    -------
    int
        Not below 1.
    """
    room = _SHARE * limit - worker_bytes(0, n_cells, partition, threads)
    # sets·m² + line·m = room
    sets = 8.0 * (n_cells * (2 * threads + 2) + 1)
    line = threads * _ARRAYS * 8.0 * _BLOCK_ROWS
    return max(1, int((np.sqrt(line**2 + 4 * sets * max(0.0, room)) - line) / (2 * sets)))


def n_groups(n: int, slots: int, n_partitions: int) -> int:
    """Return about how many groups of partitions are summed, each in one task.

    Parameters
    ----------
    n : int
        Number of rows.
    slots : int
        Tasks that all workers do at once.
    n_partitions : int

    Returns
    -------
    int
    """
    wanted = min(GROUPS * slots, max(slots, n // LEAST_ROWS))
    return max(1, min(n_partitions, wanted))


def sent_bytes(n: int, d: int, m: int, n_cells: int, n_outputs: int, workers: int) -> int:
    """Return the bytes that a fit by statistics sends over the network.

    Groups of a worker are added there, and every worker but one sends its sum; the last comes
    here, by way of the scheduler. Centers go to every worker, outputs come here and a copy goes
    back, and a byte for every row tells its part.

    Parameters
    ----------
    n, d, m, n_cells, n_outputs, workers : int

    Returns
    -------
    int
    """
    rows = n * (2 * 8 * n_outputs + 1)
    return (workers + 1) * (statistics_bytes(m, n_cells) + 8 * m * d) + rows
