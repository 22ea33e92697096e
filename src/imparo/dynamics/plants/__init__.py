"""Simulated robots: paths that they can follow, and what their sensors then say."""

from imparo.dynamics.plants.effects import Payload
from imparo.dynamics.plants.formula_plant import FormulaPlant
from imparo.dynamics.plants.icub import (
    Circles,
    icub_arm,
    icub_cables,
    icub_circles,
    icub_plant,
)
from imparo.dynamics.plants.inverse_kinematics import Centre, feasible_centre
from imparo.dynamics.plants.mujoco_model import Cable
from imparo.dynamics.plants.mujoco_plant import MujocoPlant
from imparo.dynamics.plants.trajectories import Trajectory, circle, multisine

__all__ = [
    "Cable",
    "Centre",
    "Circles",
    "FormulaPlant",
    "MujocoPlant",
    "Payload",
    "Trajectory",
    "circle",
    "feasible_centre",
    "icub_arm",
    "icub_cables",
    "icub_circles",
    "icub_plant",
    "multisine",
]
