"""Rows of laws whose best predictions are known: the thesis' synthetic data."""

from imparo.data.synthetic.base import Law, Sample
from imparo.data.synthetic.rkhs_functions import RKHSLaw, rkhs_function
from imparo.data.synthetic.splines import SplineLaw, spline
from imparo.data.synthetic.two_gaussians import TwoGaussians, gaussians

__all__ = [
    "Law",
    "RKHSLaw",
    "Sample",
    "SplineLaw",
    "TwoGaussians",
    "gaussians",
    "rkhs_function",
    "spline",
]
