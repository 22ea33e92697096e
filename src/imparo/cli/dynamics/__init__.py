"""``imparo dynamics``: learn what a robot weighs and how it moves, from logs of it."""

import click

from imparo.cli.dynamics.fit import fit
from imparo.cli.dynamics.identify import identify_command
from imparo.cli.dynamics.simulate import simulate
from imparo.cli.dynamics.stream import stream


@click.group()
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


for _command in (simulate, fit, stream, identify_command):
    dynamics.add_command(_command)
