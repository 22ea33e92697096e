"""``imparo dynamics simulate``: a log of a simulated robot."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imparo.cli.common import console, guarded
from imparo.cli.dynamics.options import robot_of, robot_options
from imparo.cli.steps import steps

if TYPE_CHECKING:
    from imparo.dynamics import FormulaPlant, MujocoPlant, Payload, Robot, Trajectory

_HAND = "r_hand"
_POSITIVE = click.FloatRange(min=0, min_open=True)


@click.command()
@robot_options
@click.option(
    "--motion", type=click.Choice(["circle", "multisine"]), default="circle", show_default=True,
    help="A link runs round a circle, or all joints swing.",
)  # fmt: skip
@click.option("--plane", type=click.Choice(["xy", "xz", "yz"]), default="xy", show_default=True)
@click.option("--radius", type=_POSITIVE, default=0.1, show_default=True, help="Metres.")
@click.option(
    "--speed", type=_POSITIVE, default=0.6, show_default=True, help="Metres a second."
)
@click.option(
    "--rate", type=_POSITIVE, default=10.0, show_default=True, help="Samples a second."
)
@click.option("--duration", type=_POSITIVE, default=100.0, show_default=True, help="Seconds.")
@click.option("--frame", help="Link that runs round; needed for robots other than iCub.")
@click.option("--centre", help="Of the circle, as X,Y,Z in metres; sought if left out.")
@click.option(
    "--plant", type=click.Choice(["mujoco", "formula"]), default="mujoco", show_default=True,
    help="A simulation, or a formula for quick trials.",
)  # fmt: skip
@click.option(
    "--payload", metavar="KG[@SECONDS]", help="Mass that --frame carries from then on.",
)  # fmt: skip
@click.option("--rigid", is_flag=True, help="No cables, offset, drift, noise or lag.")
@click.option("--noise", type=click.FloatRange(min=0), help="Deviation of the outputs' noise.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--output", "-o", required=True, type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the log: .npz, .csv or .parquet.",
)  # fmt: skip
@guarded
def simulate(
    robot: str | None, joints: str | None, locked: tuple[str, ...], sensor: str | None,
    sign: str, motion: str, plane: str, radius: float, speed: float, rate: float,
    duration: float, frame: str | None, centre: str | None, plant: str, payload: str | None,
    rigid: bool, noise: float | None, seed: int, output: Path,
) -> None:  # fmt: skip
    """Simulate a robot that follows a path, and write its log.

    Without --robot it is iCub's right arm of the thesis, with a cable across the force/torque
    sensor, an offset, drift, noise and filtered velocities. Paths that the limits of joints
    forbid are refused.

    \b
    Examples:
      imparo dynamics simulate --plane xy --duration 1000 -o xy.npz
      imparo dynamics simulate --plane xz --payload 0.5@50 -o grasp.npz
      imparo dynamics simulate --robot arm.urdf --motion multisine --rate 100 -o run.csv
    """  # noqa: D301  # click's mark
    from imparo.dynamics import MujocoPlant

    out = console(markup=False)
    if not output.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {output.parent} to write the log to")
    if output.suffix.lower() not in (".npz", ".csv", ".parquet"):
        raise click.UsageError(f"{output} must end in .npz, .csv or .parquet")
    model = robot_of(robot, joints, locked, sensor, sign)
    carried = _payload(payload, frame or (_HAND if robot is None else None))
    path = _path(
        model, robot is None, motion, plane, radius, speed, rate, duration, frame, centre, seed
    )
    place = _plant(model, robot is None, plant, carried, rigid, noise)
    if isinstance(place, MujocoPlant):
        with steps(out) as show:
            log = place.simulate(path, seed=seed, progress=show)
    else:
        log = place.simulate(path, seed=seed)
    log.save(output)
    out.print(repr(log), soft_wrap=True)
    for key, note in log.notes.items():
        if note:
            out.print(f"  {key}: {note}", highlight=False, soft_wrap=True)
    out.print(f"Log: {output}", soft_wrap=True)


def _path(
    robot: "Robot", is_icub: bool, motion: str, plane: str, radius: float, speed: float,
    rate: float, duration: float, frame: str | None, centre: str | None, seed: int,
) -> "Trajectory":  # fmt: skip
    from imparo.dynamics import circle, feasible_centre, icub_circles, multisine

    if motion == "multisine":
        return multisine(robot, duration=duration, rate=rate, seed=seed)
    if is_icub and frame is None and centre is None and plane != "yz":
        circles = icub_circles(
            robot, radius=radius, speed=speed, rate=rate, n_samples=round(duration * rate)
        )
        return circles.xy if plane == "xy" else circles.xz
    if frame is None:
        raise click.UsageError("--frame must name the link that runs round the circle")
    start = None
    if centre is None:
        found = feasible_centre(robot, frame, planes=[plane], radius=radius, seed=seed)
        middle, start = found.position.tolist(), found.start
    else:
        middle = _numbers(centre)
    return circle(
        robot, frame, centre=middle, radius=radius, plane=plane, speed=speed, rate=rate,
        duration=duration, start=start,
    )  # fmt: skip


def _numbers(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 3:
        raise click.UsageError(f"--centre {text}: three numbers were expected, as -0.2,0.1,0.3")
    return values


def _payload(text: str | None, link: str | None) -> "tuple[Payload, ...]":
    from imparo.dynamics import Payload

    if text is None:
        return ()
    if link is None:
        raise click.UsageError("--payload needs --frame, the link that carries it")
    mass, _, start = text.partition("@")
    try:
        return (Payload(float(mass), link, start=float(start or 0)),)
    except ValueError as error:
        raise click.UsageError(
            f"--payload {text}: KG or KG@SECONDS was expected, as 0.5@60 ({error})"
        ) from None


def _plant(
    robot: "Robot", is_icub: bool, plant: str, payloads: "tuple[Payload, ...]", rigid: bool,
    noise: float | None,
) -> "MujocoPlant | FormulaPlant":  # fmt: skip
    from imparo.dynamics import FormulaPlant, MujocoPlant, icub_plant

    effects: dict[str, Any] = {"payloads": payloads}
    if noise is not None:
        effects["noise"] = noise
    if plant == "formula":
        usual = {} if rigid else {"nonlinear": 1.0, "offset": 1.0, "velocity_cutoff": 10.0}
        return FormulaPlant(robot, perturbation=0.0 if rigid else 0.2, **(usual | effects))
    if is_icub and not rigid:
        return icub_plant(robot, **effects)
    return MujocoPlant(robot, **effects)
