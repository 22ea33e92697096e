"""What comes before a fit: columns and outputs as a kernel machine wants them."""

from imparo.preparation.dates import DateParts
from imparo.preparation.distinct import DistinctColumns
from imparo.preparation.inputs import KernelInputs
from imparo.preparation.mean_target import MeanTargetRegressor
from imparo.preparation.target import TargetTransform
from imparo.preparation.target import candidates as target_candidates

__all__ = [
    "DateParts",
    "DistinctColumns",
    "KernelInputs",
    "MeanTargetRegressor",
    "TargetTransform",
    "target_candidates",
]
