"""All data sets, in the order in which they are shown."""

from imparo.data.named.benchmarks import BENCHMARKS
from imparo.data.named.registry import Registry
from imparo.data.named.robots import ROBOTS

#: What is known of every data set, by name.
DATASETS = Registry((*BENCHMARKS, *ROBOTS))
