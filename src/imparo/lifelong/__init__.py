"""Learners that never stop: one example at a time, in constant time and memory."""

from imparo.lifelong.base import Drift
from imparo.lifelong.baselines import RebalancedClassifier
from imparo.lifelong.checks import check_incremental_estimator, incremental_checks
from imparo.lifelong.classifier import IncrementalClassifier
from imparo.lifelong.drift import Change, DriftDetector
from imparo.lifelong.durable import DurableLearner, open
from imparo.lifelong.regressor import RecursiveRegressor
from imparo.lifelong.river import as_river

__all__ = [
    "Change",
    "Drift",
    "DriftDetector",
    "DurableLearner",
    "IncrementalClassifier",
    "RebalancedClassifier",
    "RecursiveRegressor",
    "as_river",
    "check_incremental_estimator",
    "incremental_checks",
    "open",
]
