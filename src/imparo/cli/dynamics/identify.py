"""``imparo dynamics identify``: parameters of a robot, with uncertainties."""

import json
from math import isnan
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table as Grid

from imparo.cli.common import console, guarded
from imparo.cli.dynamics.options import Given, given, robot_options

if TYPE_CHECKING:
    from imparo.dynamics import Identification


@click.command("identify")
@click.argument("log")
@robot_options
@click.option("--extras", help="offset,viscous,coulomb,rotor: columns beside bodies.")
@click.option(
    "--penalty", type=click.FloatRange(min=0, min_open=True), default=1e-6, show_default=True,
    help="λ, around the parameters of the description.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@guarded
def identify_command(
    log: str, robot: str | None, joints: str | None, locked: tuple[str, ...],
    sensor: str | None, sign: str, extras: str | None, penalty: float, as_json: bool,
) -> None:  # fmt: skip
    """Identify the base parameters of a robot from LOG.

    Each is a combination of masses, first moments and moments of inertia that motion can
    reveal, with a standard deviation that allows for errors that last, and beside it what the
    description says. The bodies that can exist and come closest to them are shown, too.

    \b
    Examples:
      imparo dynamics identify xy.npz
      imparo dynamics identify run.bag --robot arm.urdf --extras offset,viscous,coulomb
      imparo dynamics identify icub --json
    """  # noqa: D301  # click's mark
    from imparo.dynamics import identify

    out = console(as_json, markup=False)
    about = given(log, robot, joints, locked, sensor, sign, extras)
    wanted = about.settings.get("extras", ("offset",))
    with out.status("identifying …"):
        found = identify(about.robot, about.X, about.Y, extras=wanted, penalty=penalty)
    if as_json:
        click.echo(json.dumps(_report(about, found)))
    else:
        _print(out, about, found)


def _report(about: Given, found: "Identification") -> dict[str, Any]:
    rows = zip(found.names, found.values, found.std, found.description, strict=True)
    return {
        "log": about.name,
        "samples": len(about.X),
        "parameters": [
            {
                "name": name,
                "value": float(value),
                "std": float(std),
                "description": None if isnan(said) else float(said),
            }
            for name, value, std, said in rows
        ],
        "rmse": dict(zip(about.robot.output_names, found.rmse.tolist(), strict=True)),
        "possible": found.distance == 0,
        "distance": found.distance,
        "bodies": [
            {"name": body.name, "mass": body.mass, "centre": body.centre.tolist()}
            for body in found.consistency.bodies
        ],
    }


def _print(console: Console, about: Given, found: "Identification") -> None:
    grid = Grid("parameter", title=f"{about.name}: base parameters", title_justify="left")
    for column in ("identified", "deviation", "description"):
        grid.add_column(column, justify="right")
    for name, value, std, said in zip(
        found.names, found.values, found.std, found.description, strict=True
    ):
        shown = "" if isnan(said) else f"{said:.5g}"
        grid.add_row(name, f"{value:.5g}", f"{std:.2g}", shown)
    console.print(grid)
    left = zip(about.robot.output_names, found.rmse, strict=True)
    console.print("Left: " + ", ".join(f"{name} {value:.3g}" for name, value in left))
    if found.distance == 0:
        console.print("Bodies with these base parameters can exist; for instance:")
    else:
        console.print(
            "No bodies have exactly these base parameters; the nearest that can exist are "
            f"{found.distance:.2g} standard deviations away:"
        )
    console.print(str(found.consistency), markup=False, highlight=False, soft_wrap=True)
