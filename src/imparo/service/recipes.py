"""From a request to a learner: what may be asked for, and what becomes of it."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from imparo.estimators.transformers import RandomFeatures
from imparo.lifelong import IncrementalClassifier, RecursiveRegressor
from imparo.service.errors import Refused, TooMuch
from imparo.service.images import N_PIXELS
from imparo.service.schemas import (
    Arm,
    DynamicsParameters,
    NewClassifier,
    NewDynamics,
    NewRegressor,
    Waves,
)
from imparo.service.settings import Limits

# Random features of drawings, whose ink goes from 0 to 1: few examples of MNIST's digits.
_PIXEL_WAVES = Waves(n_features=1000, sigma=7.0)
_WIDTHS = {"pixels": N_PIXELS, "network": 1280}
# D of a nonparametric part that was not given.
_DEFAULT_WAVES = 501
# Links and joints of a robot. Pinocchio goes down a chain of them by recursion.
_LINKS, _JOINTS = 200, 64

New = NewClassifier | NewRegressor | NewDynamics


class Wanted(NamedTuple):
    """What was said of a learner when it was made.

    Attributes
    ----------
    n_inputs, n_outputs : int or None
        Of its rows, if it was said.
    room : function
        Raises where there is no memory for so many bytes.
    """

    n_inputs: int | None = None
    n_outputs: int | None = None
    room: Callable[[int], None] = lambda size: None


def n_inputs_of(new: New, learner: Any) -> int | None:
    """Return the width of rows if it is known before the first one."""
    if isinstance(new, NewDynamics):
        robot = _robot_in(learner)
        joints = new.parameters.n_joints if robot is None else robot.n_joints
        return None if joints is None else 3 * joints
    return _WIDTHS.get(new.features, new.parameters.n_inputs)


def n_outputs_of(new: New, learner: Any) -> int | None:
    """Return the number of outputs if it is known before the first one."""
    robot = _robot_in(learner)
    if robot is not None:
        return int(robot.n_outputs)
    return None if isinstance(new, NewClassifier) else new.parameters.n_outputs


def _robot_in(learner: Any) -> Any:
    return getattr(getattr(learner, "parametric", learner), "robot", None)


def learner_of(new: New, limits: Limits) -> Any:
    """Return the learner that is asked for.

    Parameters
    ----------
    new : NewClassifier, NewRegressor or NewDynamics
    limits : Limits

    Raises
    ------
    Refused
        If the parameters do not go together, or ask for more than the limits.

    Examples
    --------
    >>> from imparo.service.recipes import learner_of
    >>> from imparo.service.schemas import NewRegressor
    >>> from imparo.service.settings import Limits
    >>> learner_of(NewRegressor(kind="regressor", name="arm"), Limits())
    RecursiveRegressor()
    """
    if not isinstance(new, NewClassifier) and (new.parameters.n_outputs or 0) > limits.outputs:
        raise TooMuch(
            f"n_outputs={new.parameters.n_outputs}, and the service takes at most "
            f"{limits.outputs} outputs"
        )
    try:
        if isinstance(new, NewDynamics):
            return _dynamics(new.parameters, limits)
        given = new.parameters.model_dump(exclude={"fourier", "n_inputs", "n_outputs"})
        if given["penalty"] is None:
            del given["penalty"]
        waves = new.parameters.fourier
        if new.features == "pixels" and waves is None:
            waves = _PIXEL_WAVES
        features = None if waves is None else _waves(waves, limits)
        if isinstance(new, NewRegressor):
            return RecursiveRegressor(features, **given)
        return IncrementalClassifier(features, **given)
    except (ValueError, TypeError, ImportError) as error:
        raise Refused(str(error)) from error


def features_of(learner: Any, n_inputs: int | None) -> int:
    """Return D of a learner, 0 where only its first row will say.

    Parameters
    ----------
    learner : estimator
    n_inputs : int or None
        Of its rows, if it is known.
    """
    kernels = getattr(learner, "nonparametric", learner)
    if kernels is None:  # what it stands for has its own default
        return _DEFAULT_WAVES
    robot = getattr(kernels, "robot", None)
    if robot is not None:
        return 10 * int(robot.n_joints)
    if not hasattr(kernels, "features") or hasattr(kernels, "n_features"):
        return int(kernels.n_features) + 1
    if kernels.features is None:
        return n_inputs or 0
    size = getattr(kernels.features, "n_features", 0)
    return size if isinstance(size, int) else 0


def size_of(learner: Any, n_inputs: int | None, n_classes: int = 0) -> int:
    """Return the bytes that a learner will take, as far as is known: factors and coefficients.

    Parameters
    ----------
    learner : estimator
    n_inputs : int or None
    n_classes : int, default 0

    Examples
    --------
    >>> from imparo import IncrementalClassifier
    >>> from imparo.service.recipes import size_of
    >>> size_of(IncrementalClassifier(penalty=[0.1, 1.0]), n_inputs=1000)
    16000000
    """
    penalty = getattr(learner, "penalty", 1.0)
    copies = 3 if isinstance(penalty, str) else int(np.size(penalty))
    size = features_of(learner, n_inputs)
    return 8 * copies * size * (size + n_classes)


def check_features(size: int, limits: Limits) -> None:
    """Raise where a learner would have too many features."""
    if size > limits.features:
        raise TooMuch(
            f"a learner with {size} features is asked for, and this service takes at most "
            f"{limits.features}; use fewer, such as random Fourier features of the rows"
        )


def _waves(waves: Waves, limits: Limits) -> RandomFeatures:
    check_features(waves.n_features, limits)
    return RandomFeatures(
        sigma=waves.sigma, n_features=waves.n_features, random_state=waves.random_state
    )


def _dynamics(given: DynamicsParameters, limits: Limits) -> Any:
    from imparo.dynamics import (
        NonparametricDynamics,
        ParametricDynamics,
        SemiparametricDynamics,
    )

    check_features(given.n_features, limits)
    kernels = NonparametricDynamics(
        n_features=given.n_features, sigma=given.sigma, penalty=given.penalty,
        forgetting=given.forgetting,
    )  # fmt: skip
    if given.model == "NP":
        if given.robot is not None:
            raise ValueError("model='NP' learns without a robot; leave it out, or ask for SP")
        return kernels
    if given.robot is None:
        raise ValueError(f"model={given.model!r} needs a robot: give its dh rows or its urdf")
    robot = _robot(given.robot)
    if robot.n_joints > _JOINTS:
        raise TooMuch(
            f"the robot has {robot.n_joints} joints that move, and this service takes "
            f"{_JOINTS}; name those that count in joints"
        )
    check_features(10 * robot.n_joints, limits)
    for name in ("n_joints", "n_outputs"):
        said, own = getattr(given, name), getattr(robot, name)
        if said not in (None, own):
            raise ValueError(f"{name}={said}, and for this robot it is {own}; leave it out")
    physics = ParametricDynamics(
        robot, penalty=given.parametric_penalty,
        forgetting=given.parametric_forgetting,
    )  # fmt: skip
    return physics if given.model == "P" else SemiparametricDynamics(physics, kernels)


def _robot(arm: Arm) -> Any:
    from imparo.dynamics import Robot, SerialArm

    if (arm.dh is None) == (arm.urdf is None):
        raise ValueError("a robot is given by dh or by urdf, and by one of the two")
    if arm.dh is not None:
        if isinstance(arm.sensor, str) or arm.joints is not None:
            raise ValueError("with dh, sensor is the number of a link, and joints are all")
        return SerialArm(arm.dh, sensor=arm.sensor, sign=arm.sign, gravity=arm.gravity)
    text = str(arm.urdf)
    check_urdf(text)
    if isinstance(arm.sensor, int):
        raise ValueError("with urdf, sensor is the name of a fixed joint")
    return Robot(text, joints=arm.joints, sensor=arm.sensor, sign=arm.sign, gravity=arm.gravity)


def check_urdf(text: str) -> None:
    """Raise ValueError unless a text may be a robot, and not one that is made to harm."""
    # Only text: a name or a path would be looked up on this machine.
    if not text.lstrip().startswith("<"):
        raise ValueError("urdf must be the text of a URDF, which begins with <robot>")
    if "<!" in text.replace("<!--", ""):
        raise ValueError("urdf holds declarations (<!DOCTYPE, <!ENTITY); leave them out")
    # A prefix would be one more way to write a name.
    parts = max(
        len(re.findall(rf"<(?:[^\s<>/]+:)?{name}\b", text)) for name in ("link", "joint")
    )
    if parts > _LINKS:
        raise ValueError(f"urdf has {parts} links or joints, and the service takes {_LINKS}")
