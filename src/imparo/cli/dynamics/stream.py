"""``imparo dynamics stream``: test, then learn, along a log."""

import json
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from imparo.cli.steps import steps

if TYPE_CHECKING:
    from imparo.engine import Array

# Lines that a terminal shows at once.
_LINES = 20


@click.command()
@click.argument("log")
@robot_options
@learner_options
@click.option("--train", metavar="LOG", help="A log that is learned as a whole beforehand.")
@click.option(
    "--window", type=click.IntRange(min=1), default=30, show_default=True,
    help="Samples that an error is taken over.",
)  # fmt: skip
@click.option(
    "--pieces", type=click.IntRange(min=1), default=1, show_default=True,
    help="Cut LOG into so many, and begin each with what --train has taught.",
)  # fmt: skip
@click.option(
    "--keep", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path),
    help="Keep the semiparametric learner there, and go on with the one that is there.",
)  # fmt: skip
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the errors over time to a file (.png, .svg, .pdf).",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print all errors as JSON.")
@guarded
def stream(
    log: str, robot: str | None, joints: str | None, locked: tuple[str, ...],
    sensor: str | None, sign: str, extras: str | None, features: int, sigma: float | None,
    penalty: float | None, forgetting: float, parametric_forgetting: float, seed: int,
    train: str | None, window: int, pieces: int, keep: Path | None, plot: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Predict every sample of LOG, then learn it; print the errors as they go.

    P is physics alone, NP kernels alone, SP both. Width and penalty are chosen by the samples
    of --train where there is one. With --pieces the errors have deviations over the pieces.

    \b
    Examples:
      imparo dynamics stream xz.npz --train xy.npz --pieces 10 --plot stream.png
      imparo dynamics stream run.mcap --robot arm.urdf --forgetting 0.999
      imparo dynamics stream today.bag --robot arm.urdf --keep arm/
    """  # noqa: D301  # click's mark
    from imparo.dynamics import output_groups
    from imparo.dynamics.plots import plot_stream
    from imparo.dynamics.protocol import streamed
    from imparo.lifelong import open as open_learner

    out = console(as_json, markup=False)
    _check(plot, keep, pieces, train)
    about = given(log, robot, joints, locked, sensor, sign, extras)
    before = None
    if train is not None:
        before = given(train, robot, joints, locked, sensor, sign, extras)
    models = learners(about, features, sigma, penalty, forgetting, parametric_forgetting, seed)
    if len(about.X) // pieces < 2:
        raise ValueError(f"{log} has too few samples ({len(about.X)}) for --pieces {pieces}")
    if before is not None:
        models = _prepared(models, before, sigma, penalty, out)
    with ExitStack() as stack:
        if keep is not None:
            models[SP] = stack.enter_context(open_learner(keep, models[SP], sync=1.0))
        show, done = stack.enter_context(steps(out)), count(1)
        total = len(models) * len(about.X)
        errors = streamed(
            models,
            about.X,
            about.Y,
            pieces=pieces,
            window=window,
            progress=lambda: show("streaming", next(done), total),
        )
    groups = output_groups(about.robot.output_names)
    report = _report(about, errors, groups, window, pieces)
    if as_json:
        click.echo(json.dumps(report))
    else:
        _print(out, report)
    if plot is not None:
        step = float(np.median(np.diff(about.t)))
        plot_stream(errors, groups, step).savefig(plot, dpi=130)
        out.print(f"Plot: {plot}", markup=False, soft_wrap=True)


def _check(plot: Path | None, keep: Path | None, pieces: int, train: str | None) -> None:
    if plot is not None:
        from imparo.paths import pyplot

        pyplot()
        if not plot.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {plot.parent} to draw to")
        if plot.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise click.UsageError(f"{plot} must end in .png, .svg or .pdf")
    if keep is not None and (pieces > 1 or train is not None):
        raise click.UsageError(
            "--keep goes on with one learner; leave --pieces and --train out"
        )
    if pieces > 1 and train is None:
        raise click.UsageError("--pieces begins with what --train has taught; name that log")


def _prepared(
    models: dict[str, Any], before: Given, sigma: float | None, penalty: float | None,
    out: Console,
) -> dict[str, Any]:  # fmt: skip
    """Return learners with width and penalty chosen, that have learned a log."""
    from imparo.dynamics import tune

    ready = {}
    for name, model in models.items():
        with out.status(f"learning {before.name}: {TITLES[name]} …"):
            if name in (NP, SP) and (sigma is None or penalty is None):
                model = tune(
                    model, before.X, before.Y,
                    sigmas=None if sigma is None else [sigma],
                    penalties=None if penalty is None else [penalty],
                ).model  # fmt: skip
            ready[name] = model.fit(before.X, before.Y)
    return ready


def _report(
    about: Given, errors: dict[str, "Array"], groups: Any, window: int, pieces: int
) -> dict[str, Any]:
    n = next(iter(errors.values())).shape[1]
    ends = list(range(min(window, n) - 1, n, window))
    rows: dict[str, Any] = {}
    for name, found in errors.items():
        rows[name] = {
            group: {
                "mean": found[:, ends][:, :, places].mean(axis=(0, 2)).tolist(),
                "std": found[:, ends][:, :, places].mean(axis=2).std(axis=0).tolist(),
            }
            for group, places in groups.items()
        }
    seconds = about.t[ends] - about.t[0]
    return {
        "log": about.name, "samples": len(about.X), "pieces": pieces, "window": window,
        "seconds": seconds.tolist(), "rmse": rows,
    }  # fmt: skip


def _print(console: Console, report: dict[str, Any]) -> None:
    console.print(
        f"{report['log']}: RMSE of the last {report['window']} samples, before learning them",
        markup=False,
    )
    times = report["seconds"]
    picked = np.unique(np.linspace(0, len(times) - 1, min(_LINES, len(times))).round())
    for group in next(iter(report["rmse"].values())):
        grid = Grid("until (s)", title=group, title_justify="left")
        for name in report["rmse"]:
            grid.add_column(f"{name}\n{TITLES[name]}", justify="right")
        for i in picked.astype(int).tolist():
            cells = []
            for name in report["rmse"]:
                found = report["rmse"][name][group]
                spread = f" ± {found['std'][i]:.1g}" if report["pieces"] > 1 else ""
                cells.append(f"{found['mean'][i]:.3g}{spread}")
            grid.add_row(f"{times[i]:.1f}", *cells)
        console.print(grid)
