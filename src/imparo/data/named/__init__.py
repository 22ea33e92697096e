"""Data sets that are known by name: every one of the thesis, and some to try things with."""

from imparo.data.named.cache import cache_folder, data_folder, located
from imparo.data.named.catalogue import DATASETS
from imparo.data.named.checksums import content_checksum
from imparo.data.named.downloading import download
from imparo.data.named.finding import find, locate, names, verify, where
from imparo.data.named.registry import NamedDataset, UnknownDataset

__all__ = [
    "DATASETS",
    "NamedDataset",
    "UnknownDataset",
    "cache_folder",
    "content_checksum",
    "data_folder",
    "download",
    "find",
    "locate",
    "located",
    "names",
    "verify",
    "where",
]
