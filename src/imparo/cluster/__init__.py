"""Rows on a cluster of Dask: partitions, recipes for them, sums over workers, and costs."""

from imparo.cluster.costs import sent_bytes, worker_bytes
from imparo.cluster.partitions import (
    Partition,
    Partitions,
    has_futures,
    is_dask,
    is_dask_array,
    is_delayed,
    partitions_in_memory,
    partitions_of,
)
from imparo.cluster.recipes import is_recipe, recipes_of
from imparo.cluster.sums import added, tree_sum
from imparo.cluster.team import Team, WorkersReplacedError, find_client, task

__all__ = [
    "Partition",
    "Partitions",
    "Team",
    "WorkersReplacedError",
    "added",
    "find_client",
    "has_futures",
    "is_dask",
    "is_dask_array",
    "is_delayed",
    "is_recipe",
    "partitions_in_memory",
    "partitions_of",
    "recipes_of",
    "sent_bytes",
    "task",
    "tree_sum",
    "worker_bytes",
]
