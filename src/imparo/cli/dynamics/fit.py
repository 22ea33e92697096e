"""``imparo dynamics fit``: a model of a robot from a log of it."""

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table as Grid

from imparo.cli.common import console, guarded
from imparo.cli.dynamics.options import (
    NP,
    SP,
    TITLES,
    Given,
    given,
    learner_options,
    learners,
    robot_options,
)

# Two for each of the stretches of time that width and penalty are chosen by.
_LEAST = 8


@click.command()
@click.argument("log")
@robot_options
@learner_options
@click.option(
    "--kind", type=click.Choice(["SP", "P", "NP"], case_sensitive=False), default="SP",
    show_default=True, help="Which model to keep: both parts, physics alone, kernels alone.",
)  # fmt: skip
@click.option(
    "--validation", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.25,
    show_default=True, help="The last part of the log, held out to judge by.",
)  # fmt: skip
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path),
    help="Where to save the model, fitted on the whole log.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@guarded
def fit(
    log: str, robot: str | None, joints: str | None, locked: tuple[str, ...],
    sensor: str | None, sign: str, extras: str | None, features: int, sigma: float | None,
    penalty: float | None, forgetting: float, parametric_forgetting: float, seed: int,
    kind: str, validation: float, output: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Fit a model to LOG, and judge it by its last part.

    LOG is a file (.csv, .npz, .parquet, .bag, .mcap, a ROS 2 folder) or the name of a recording
    in IMPARO_DATA: icub, panda, tiago, tx40, ur10e. The width and penalty are chosen by the
    last quarter of the earlier samples.

    \b
    Examples:
      imparo dynamics fit xy.npz -o arm.imparo
      imparo dynamics fit run.mcap --robot arm.urdf --joints shoulder,elbow
      imparo dynamics fit panda --kind P
    """  # noqa: D301  # click's mark
    from sklearn.base import clone

    from imparo.persistence import save

    out = console(as_json, markup=False)
    if output is not None and not output.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {output.parent} to save the model to")
    about = given(log, robot, joints, locked, sensor, sign, extras)
    models = learners(about, features, sigma, penalty, forgetting, parametric_forgetting, seed)
    later = np.arange(len(about.X)) >= len(about.X) - round(validation * len(about.X))
    if (~later).sum() < _LEAST or not later.any():
        raise ValueError(
            f"{log} has too few samples ({len(about.X)}) to learn from at least {_LEAST} "
            "and hold some out"
        )
    with out.status("learning …"):
        errors = {}
        for name, model in models.items():
            if name in (NP, SP) and (sigma is None or penalty is None):
                models[name] = model = _tuned(model, about, later, sigma, penalty)
            earlier = clone(model).fit(about.X[~later], about.Y[~later])
            left = earlier.predict(about.X[later]) - about.Y[later]
            errors[name] = np.sqrt(np.mean(np.square(left), axis=0))
        chosen = clone(models[kind.upper()]).fit(about.X, about.Y)
        if output is not None:
            save(chosen, output)
    report = _report(about, models, errors, int(later.sum()), kind.upper(), output)
    if as_json:
        click.echo(json.dumps(report))
    else:
        _print(out, about, report)


def _tuned(
    model: Any, about: Given, later: Any, sigma: float | None, penalty: float | None
) -> Any:
    from imparo.dynamics import tune

    sigmas = None if sigma is None else [sigma]
    penalties = None if penalty is None else [penalty]
    X, Y = about.X[~later], about.Y[~later]
    return tune(model, X, Y, sigmas=sigmas, penalties=penalties).model


def _report(
    about: Given, models: dict[str, Any], errors: dict[str, Any], held: int, kind: str,
    output: Path | None,
) -> dict[str, Any]:  # fmt: skip
    parts = {NP: models[NP], SP: models[SP].nonparametric}
    return {
        "log": about.name,
        "samples": len(about.X),
        "held_out": held,
        "joints": list(about.robot.joints),
        "outputs": list(about.robot.output_names),
        "rmse": {name: found.tolist() for name, found in errors.items()},
        "chosen": {
            name: {"sigma": part.sigma, "penalty": part.penalty} for name, part in parts.items()
        },
        "kept": kind,
        "file": None if output is None else str(output),
    }


def _print(console: Console, about: Given, report: dict[str, Any]) -> None:
    from imparo.dynamics import output_groups

    n, held = report["samples"], report["held_out"]
    console.print(f"{about.name}: {n} samples, the last {held} held out", markup=False)
    grid = Grid("RMSE, held out", title_justify="left")
    for name in report["rmse"]:
        grid.add_column(f"{name}\n{TITLES[name]}", justify="right")
    found = {name: np.array(values) for name, values in report["rmse"].items()}
    for group, places in output_groups(about.robot.output_names).items():
        for place in places:
            cells = [f"{values[place]:.4g}" for values in found.values()]
            grid.add_row(about.robot.output_names[place], *cells)
        cells = [f"{np.mean(values[places]):.4g}" for values in found.values()]
        grid.add_row(f"mean {group}", *cells, end_section=True, style="bold")
    console.print(grid)
    for name, pair in report["chosen"].items():
        text = f"{name}: sigma {pair['sigma']:.4g}, penalty {pair['penalty']:.4g}"
        console.print(text, markup=False)
    if report["file"]:
        text = f"Saved the {TITLES[report['kept']]} model, fitted on all samples: "
        console.print(text + report["file"], markup=False, soft_wrap=True)
