"""Small robots, physics of any number of columns, and plain sums, for tests of dynamics."""

import functools

import numpy as np
import pytest

from imparo import RandomFeatures
from imparo.dynamics import Robot
from imparo.persistence import persistent

# Two links; a sensor cuts the second one at "wrist".
URDF = """
<robot name="two links">
  <link name="base"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 0.1" rpy="0 0 0"/>
    <limit lower="-3" upper="3" velocity="5" effort="100"/>
  </joint>
  <link name="upper"><inertial>
    <origin xyz="0.05 0.02 0.2" rpy="0 0 0"/><mass value="2.0"/>
    <inertia ixx="0.03" ixy="0.001" ixz="0.002" iyy="0.028" iyz="0.001" izz="0.01"/>
  </inertial></link>
  <joint name="elbow" type="revolute">
    <parent link="upper"/><child link="lower"/><axis xyz="1 0 0"/>
    <origin xyz="0 0 0.4" rpy="0.3 0 0.2"/>
    <limit lower="-3" upper="3" velocity="5" effort="100"/>
  </joint>
  <link name="lower"><inertial>
    <origin xyz="0 0.03 0.05" rpy="0 0 0"/><mass value="0.5"/>
    <inertia ixx="0.004" ixy="0" ixz="0" iyy="0.004" iyz="0" izz="0.002"/>
  </inertial></link>
  <joint name="wrist" type="fixed">
    <parent link="lower"/><child link="hand"/><origin xyz="0 0 0.2" rpy="0 0.1 0"/>
  </joint>
  <link name="hand"><inertial>
    <origin xyz="0.01 0.02 0.06" rpy="0 0 0"/><mass value="0.7"/>
    <inertia ixx="0.003" ixy="0" ixz="0.0003" iyy="0.0025" iyz="0" izz="0.001"/>
  </inertial></link>
</robot>
"""


@functools.cache
def arm():
    """Two joints that feel gravity; outputs are their torques."""
    pytest.importorskip("pinocchio")
    return Robot(URDF)


@functools.cache
def sensed():
    """The same with the wrench at its wrist as outputs."""
    pytest.importorskip("pinocchio")
    return Robot(URDF, sensor="wrist")


@persistent
class Folded:
    """Stands for a robot: Φ of rows of any width, folded to a given number of columns.

    Output t has Σ_k x[j + kp] in its column j, moved on by t places.
    """

    n_inputs = None

    def __init__(self, n_outputs=1, n_parameters=12):
        self.n_outputs = n_outputs
        self.parameters = np.linspace(-1, 1, n_parameters)

    def __repr__(self):
        return f"Folded({self.n_outputs}, {len(self.parameters)})"

    @property
    def output_names(self):
        return tuple(f"y{t}" for t in range(self.n_outputs))

    @property
    def parameter_names(self):
        return tuple(f"p{j}" for j in range(len(self.parameters)))

    def regressor_of(self, X):
        p = len(self.parameters)
        folded = np.zeros((len(X), p))
        for j in range(X.shape[1]):
            folded[:, j % p] += X[:, j]
        return np.stack([np.roll(folded, t, axis=1) for t in range(self.n_outputs)], axis=1)


def motion(n, joints=2, seed=0):
    """Positions, velocities and accelerations, in no order of time."""
    rng = np.random.default_rng(seed)
    return tuple(rng.uniform(-2, 2, size=(3, n, joints)))


def rows_and_outputs(robot, n, seed=0, noise=0.1, bent=0.0):
    """X and Y of a robot whose parameters are not those of its description."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, robot.n_inputs or 6))
    parameters = robot.parameters * rng.uniform(0.5, 1.5, len(robot.parameters))
    Y = robot.regressor_of(X) @ parameters + bent * np.tanh(3 * X[:, : robot.n_outputs])
    return X, Y + noise * rng.normal(size=Y.shape)


def weighted_ridge(rows, targets, penalty, fade=1.0):
    """Return the weights and the matrix A of rows of which each fades those before it."""
    left = fade ** np.arange(len(rows) - 1, -1, -1.0)
    A = (rows * left[:, None]).T @ rows + penalty * fade ** len(rows) * np.eye(rows.shape[1])
    return np.linalg.solve(A, (rows * left[:, None]).T @ targets), A


def waves(Z, sigma, n_features, seed=0):
    """Return a column of ones and the random features of normalised rows."""
    rule = RandomFeatures("gaussian", sigma=sigma, n_features=n_features, random_state=seed)
    return np.column_stack([np.ones(len(Z)), rule.fit(np.zeros((2, Z.shape[1]))).transform(Z)])


def scale_after(rows):
    """Return mean and scale after rows of a stream whose motion stays of one size."""
    seen = min(len(rows), 256)
    used = rows[: 2 ** int(np.log2(seen))]
    spread = used.std(axis=0)
    constant = spread <= 1e-12 * np.abs(used.mean(axis=0))
    return used.mean(axis=0), np.where(constant, 1.0, spread)
