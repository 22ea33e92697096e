"""How fast is this machine, and imparo on it: what ``imparo bench`` measures.

Every rival is measured in the same run, on the same rows and by turns with imparo, because a
machine that others use has no speed of its own.
"""

from imparo.measuring.parts import PARTS, measure, surroundings
from imparo.measuring.timing import Measurement, Timing, by_turns, repeated

__all__ = [
    "PARTS",
    "Measurement",
    "Timing",
    "by_turns",
    "measure",
    "repeated",
    "surroundings",
]
