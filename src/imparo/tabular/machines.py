"""From the name of a method and its parameters to a machine."""

from dataclasses import dataclass
from typing import Any

from imparo import estimators
from imparo.tabular.targets import CLASSIFICATION

#: Methods by name: the beginning of the class, and the parameters that they take.
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "auto": ("Auto", ("kernel", "sigma", "budget")),
    "exact": ("Kernel", ("kernel", "sigma", "penalty")),
    "nystrom": ("Nystrom", ("kernel", "sigma", "penalty", "n_centers")),
    "nytro": ("Nytro", ("kernel", "sigma", "n_centers")),
    "features": ("RandomFeature", ("kernel", "sigma", "penalty", "n_features")),
    "sgm": ("SGM", ("kernel", "sigma", "n_features", "epochs")),
}
#: Those that workers of a cluster make.
DISTRIBUTED = ("auto", "nystrom", "nytro", "features")
#: Those that read rows in blocks, and so from disk.
STREAMING = ("auto", "nystrom", "nytro", "features", "sgm")


@dataclass(frozen=True)
class Method:
    """A method and what the user says about it.

    Attributes
    ----------
    name : str
        A key of ``METHODS``.
    given : dict
        Parameters that were given; others have their defaults.
    """

    name: str
    given: dict[str, Any]

    def __post_init__(self) -> None:
        if self.name not in METHODS:
            words = ", ".join(repr(name) for name in METHODS)
            raise ValueError(f"method={self.name!r} must be one of {words}")
        known = METHODS[self.name][1]
        for name in self.given:
            if name not in known:
                raise ValueError(
                    f"{name} has no effect on the method {self.name!r}, which takes "
                    f"{', '.join(known)}; leave it out, or give another method"
                )

    def machine(self, task: str, *, prepared: bool, **settings: Any) -> Any:
        """Return the machine, not fitted.

        Parameters
        ----------
        task : "regression" or "classification"
        prepared : bool
            Whether rows are prepared already, which only "auto" can do itself.
        **settings
            ``memory``, ``device``, ``validation``, ``random_state``, ``progress``.
        """
        kind = "Classifier" if task == CLASSIFICATION else "Regressor"
        cls = getattr(estimators, METHODS[self.name][0] + kind)
        if settings.get("validation") is None:
            settings.pop("validation", None)
        made = cls(**{**self.given, **settings, "intercept": True})
        if self.name == "auto" and prepared:
            made.set_params(inputs=None)
        return made


def chosen_parameters(machine: Any) -> dict[str, Any]:
    """Return the parameters that a fitted machine uses, as plain values.

    Parameters
    ----------
    machine : fitted estimator

    Returns
    -------
    dict
        Without those that do not apply.
    """
    found: dict[str, Any] = {}
    kernel = getattr(machine, "kernel_", None)
    if kernel is not None:
        name = type(kernel).__name__
        order = getattr(kernel, "order", None)
        found["kernel"] = name if order is None else f"{name} {order:g}"
    for name in ("sigma", "penalty", "components", "iterations", "step", "epochs", "n_centers",
                 "n_features"):  # fmt: skip
        value = getattr(machine, f"{name}_", None)
        if value is not None:
            found[name] = value
    for name in ("target", "filter", "loss", "features"):
        value = getattr(machine, f"{name}_", getattr(machine, name, None))
        if isinstance(value, str) and value not in ("none", "auto", "tikhonov"):
            found[name] = value
    device = getattr(machine, "device_", "cpu")
    if device != "cpu":
        found["device"] = device
    if len(getattr(machine, "members_", ())) > 1:
        found["averaged_models"] = len(machine.members_)
    return found
