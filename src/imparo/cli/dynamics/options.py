"""Options that the commands of ``imparo dynamics`` share: which robot, which log."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from imparo.dynamics import Robot
    from imparo.engine import Array

P, NP, SP = "P", "NP", "SP"
TITLES = {P: "parametric", NP: "nonparametric", SP: "semiparametric"}


@dataclass(frozen=True)
class Given:
    """What a command is about: a robot and samples of it."""

    robot: "Robot"
    X: "Array"
    Y: "Array"
    t: "Array"
    settings: dict[str, Any]
    name: str


def robot_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a robot."""
    options = [
        click.option(
            "--robot", help="URDF file, or a name of iCub such as iCubGazeboV2_5; iCub's right "
            "arm with its force/torque sensor if left out.",
        ),
        click.option("--joints", help="Joints that move, separated by commas, as in the log."),
        click.option(
            "--locked", multiple=True, metavar="JOINT=POSITION",
            help="Position of another joint, in rad or m; 0 if left out.",
        ),
        click.option("--sensor", help="Fixed joint with a force/torque sensor."),
        click.option(
            "--sign", type=click.Choice(["1", "-1"]), default="1", show_default=True,
            help="1: proximal on distal side; -1: the opposite.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def learner_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of learners."""
    positive = click.FloatRange(min=0, min_open=True)
    factor = click.FloatRange(min=0, max=1, min_open=True)
    options = [
        click.option("--extras", help="offset,viscous,coulomb,rotor: columns beside bodies."),
        click.option(
            "--features", type=click.IntRange(min=1), default=500, show_default=True,
            help="Number of random features.",
        ),
        click.option("--sigma", type=positive, help="Width of the kernel; chosen if left out."),
        click.option("--penalty", type=positive, help="λ; chosen if left out."),
        click.option(
            "--forgetting", type=factor, default=1.0, show_default=True,
            help="Forgetting factor of the nonparametric part.",
        ),
        click.option(
            "--parametric-forgetting", type=factor, default=1.0, show_default=True,
            help="That of the parametric part.",
        ),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def robot_of(
    robot: str | None,
    joints: str | None,
    locked: tuple[str, ...],
    sensor: str | None,
    sign: str,
) -> "Robot":
    """Return the robot that options name."""
    from imparo.dynamics import Robot, icub_arm

    if robot is None:
        if joints or locked or sensor:
            raise click.UsageError(
                "--joints, --locked and --sensor belong to --robot; name one"
            )
        return icub_arm(sign=int(sign))
    places = {}
    for item in locked:
        name, _, value = item.partition("=")
        try:
            places[name] = float(value)
        except ValueError:
            raise click.UsageError(
                f"--locked {item}: JOINT=POSITION was expected, as elbow=1.57"
            ) from None
    names = None if joints is None else [name.strip() for name in joints.split(",")]
    return Robot(robot, joints=names, locked=places, sensor=sensor, sign=int(sign))


def given(
    log: str, robot: str | None, joints: str | None, locked: tuple[str, ...],
    sensor: str | None, sign: str, extras: str | None,
) -> Given:  # fmt: skip
    """Return the samples of a log file, or of a recording that is known by name."""
    from imparo.dynamics import RECORDINGS, read_log, recording

    settings: dict[str, Any] = {}
    if log in RECORDINGS and not Path(log).exists():
        found = recording(log)
        if robot is not None or joints or locked or sensor or sign != "1":
            raise click.UsageError(
                f"the recording {log} has its robot; leave out --robot, --joints, --locked, "
                "--sensor and --sign"
            )
        model, data, settings = found.robot, found.log, dict(found.settings)
    else:
        model = robot_of(robot, joints, locked, sensor, sign)
        data = read_log(log, joints=model.joints, outputs=model.output_names)
    if extras is not None:
        settings["extras"] = tuple(name.strip() for name in extras.split(",") if name.strip())
    return Given(model, data.X, data.y, data.t, settings, Path(log).name)


def learners(
    about: Given, features: int, sigma: float | None, penalty: float | None,
    forgetting: float, parametric_forgetting: float, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Return the three learners, not fitted."""
    from imparo.dynamics import (
        NonparametricDynamics,
        ParametricDynamics,
        SemiparametricDynamics,
    )

    parametric = ParametricDynamics(
        about.robot, forgetting=parametric_forgetting, **about.settings
    )
    nonparametric = NonparametricDynamics(
        n_features=features, forgetting=forgetting, random_state=seed
    )
    for name, value in (("sigma", sigma), ("penalty", penalty)):
        if value is not None:
            nonparametric.set_params(**{name: value})
    return {
        P: parametric,
        NP: nonparametric,
        SP: SemiparametricDynamics(parametric, nonparametric),
    }
