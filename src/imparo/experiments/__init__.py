"""Every table and figure of the thesis at one command: a file for each."""

from imparo.experiments.catalogue import experiment, names
from imparo.experiments.shared.book import Told
from imparo.experiments.shared.experiment import Case, Experiment
from imparo.experiments.shared.reproducing import reproduce, write_book

__all__ = ["Case", "Experiment", "Told", "experiment", "names", "reproduce", "write_book"]
