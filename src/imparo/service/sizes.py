"""How much memory a model takes."""

from typing import Any

import numpy as np


def bytes_of(model: Any) -> int:
    """Return the bytes of all arrays that a model holds.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.service.sizes import bytes_of
    >>> bytes_of({"a": np.zeros(10), "b": [np.zeros((2, 2))]})
    112
    """
    seen: set[int] = set()
    total, rest = 0, [model]
    while rest:
        value = rest.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            total += value.nbytes
        elif isinstance(value, dict):
            rest += value.values()
        elif isinstance(value, list | tuple):
            rest += value[:1000]
        elif type(value).__module__.startswith("imparo"):
            rest += list(getattr(value, "__dict__", {}).values())
    return total
