"""Optional packages, named where they are missing."""

import importlib
from typing import Any


def require(module: str, extra: str) -> Any:
    """Return an optional package, or say which extra of imparo brings it.

    Parameters
    ----------
    module : str
        Name that is imported, such as "pinocchio".
    extra : str
        Extra of imparo that installs it, such as "robot".
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        why = "is not installed"
        if not isinstance(error, ModuleNotFoundError):
            why = f"cannot be imported ({' '.join(str(error).split())})"
        raise ImportError(
            f"this needs the package {module}, which {why}; "
            f"install it with: pip install 'imparo[{extra}]'"
        ) from error
