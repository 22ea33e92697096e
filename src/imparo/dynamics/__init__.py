"""Robot dynamics that are learned while the robot moves (thesis, chapter 8)."""

from imparo.dynamics.learner import joined
from imparo.dynamics.nonparametric import NonparametricDynamics
from imparo.dynamics.parametric import ParametricDynamics
from imparo.dynamics.robot import Robot
from imparo.dynamics.semiparametric import SemiparametricDynamics
from imparo.dynamics.streaming import output_groups, prequential, windowed_rmse
from imparo.dynamics.tuning import Tuning, tune

__all__ = [
    "NonparametricDynamics",
    "ParametricDynamics",
    "Robot",
    "SemiparametricDynamics",
    "Tuning",
    "joined",
    "output_groups",
    "prequential",
    "tune",
    "windowed_rmse",
]
