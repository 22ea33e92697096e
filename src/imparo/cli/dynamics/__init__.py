"""``imparo dynamics``: learn what a robot weighs and how it moves, from logs of it."""

import click

from imparo.cli.helping import LazyGroup

_SECTIONS = {
    "Commands": {
        "simulate": "Simulate a robot that follows a path, and write its log.",
        "fit": "Fit a model to a log, and judge it by its last part.",
        "stream": "Predict every sample of a log, then learn it.",
        "identify": "Identify the base parameters of a robot from a log.",
    }
}


@click.group(cls=LazyGroup, package=__name__, sections=_SECTIONS)
def dynamics() -> None:
    """Learn the inverse dynamics of a robot: from states to torques or a wrench.

    A robot is a URDF file (or iCub's name) and a log of states and torques. Physics gives good
    behaviour from the first second; kernels learn what physics leaves out; both keep adapting.

    \b
    Examples:
      imparo dynamics simulate --plane xy --duration 100 -o xy.npz
      imparo dynamics simulate --plane xz --duration 100 -o xz.npz
      imparo dynamics fit xy.npz -o arm.imparo
      imparo dynamics stream xz.npz --train xy.npz --plot stream.png
      imparo dynamics identify xy.npz
    """  # noqa: D301  # the mark for click that keeps the lines of the examples
