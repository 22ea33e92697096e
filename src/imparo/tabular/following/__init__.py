"""Learners that are fed by what grows: a file, a pipe, a folder."""

from imparo.tabular.following.feeding import Feeding, Pace
from imparo.tabular.following.files import ChangedFileWarning, Files, Source
from imparo.tabular.following.formats import Formats
from imparo.tabular.following.keeper import Keeper
from imparo.tabular.following.kept_model import KeptModel, open_kept
from imparo.tabular.following.pipe import Pipe
from imparo.tabular.following.positions import Positions
from imparo.tabular.following.table import Choices

__all__ = [
    "ChangedFileWarning",
    "Choices",
    "Feeding",
    "Files",
    "Formats",
    "Keeper",
    "KeptModel",
    "Pace",
    "Pipe",
    "Positions",
    "Source",
    "open_kept",
]
