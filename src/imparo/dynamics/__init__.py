"""Robot dynamics that are learned while the robot moves (thesis, chapter 8)."""

from imparo.dynamics.base import BaseParameters, base_parameters
from imparo.dynamics.consistency import (
    BodyConsistency,
    Consistency,
    check_consistency,
    nearest_consistent,
)
from imparo.dynamics.geared_robot import GearedRobot
from imparo.dynamics.identification import Identification, identify
from imparo.dynamics.learner import joined
from imparo.dynamics.logs import (
    CausalDerivative,
    Log,
    concatenate,
    differentiate,
    low_pass,
    read_log,
    resample,
)
from imparo.dynamics.nonparametric import NonparametricDynamics
from imparo.dynamics.parametric import ParametricDynamics
from imparo.dynamics.plants import (
    Cable,
    Centre,
    Circles,
    FormulaPlant,
    MujocoPlant,
    Payload,
    Trajectory,
    circle,
    feasible_centre,
    icub_arm,
    icub_cables,
    icub_circles,
    icub_plant,
    multisine,
)
from imparo.dynamics.plots import plot_stream
from imparo.dynamics.protocol import streamed
from imparo.dynamics.recordings import RECORDINGS, Recording, recording
from imparo.dynamics.robot import Robot
from imparo.dynamics.semiparametric import SemiparametricDynamics
from imparo.dynamics.serial_arm import SerialArm
from imparo.dynamics.streaming import output_groups, prequential, windowed_rmse
from imparo.dynamics.tuning import Tuning, tune

__all__ = [
    "RECORDINGS",
    "BaseParameters",
    "BodyConsistency",
    "Cable",
    "CausalDerivative",
    "Centre",
    "Circles",
    "Consistency",
    "FormulaPlant",
    "GearedRobot",
    "Identification",
    "Log",
    "MujocoPlant",
    "NonparametricDynamics",
    "ParametricDynamics",
    "Payload",
    "Recording",
    "Robot",
    "SemiparametricDynamics",
    "SerialArm",
    "Trajectory",
    "Tuning",
    "base_parameters",
    "check_consistency",
    "circle",
    "concatenate",
    "differentiate",
    "feasible_centre",
    "icub_arm",
    "icub_cables",
    "icub_circles",
    "icub_plant",
    "identify",
    "joined",
    "low_pass",
    "multisine",
    "nearest_consistent",
    "output_groups",
    "plot_stream",
    "prequential",
    "read_log",
    "recording",
    "resample",
    "streamed",
    "tune",
    "windowed_rmse",
]
