"""Arrays of a map that were sent to a device, kept there as long as the map lives."""

from typing import Any
from weakref import WeakKeyDictionary

from imparo.engine import Array, Engine, is_tensor

_SENT: WeakKeyDictionary[Any, dict[tuple[str, str, str], Array]] = WeakKeyDictionary()


def sent(owner: Any, name: str, array: Any, engine: Engine, dtype: Any) -> Array:
    """Return an array of a map where an engine computes, sent there once.

    Parameters
    ----------
    owner : FeatureMap
        Never changed after it was made.
    name : str
        Of the array among those of the map.
    array : array
    engine : Engine
    dtype : dtype

    Returns
    -------
    array
    """
    if not engine.resident:
        return engine.asarray(array, dtype)
    device: Any = getattr(engine, "device", None)
    if is_tensor(array) and array.device == device and engine.type_of(array) == dtype:
        return array
    kept = _SENT.setdefault(owner, {})
    key = name, str(device), str(dtype)
    if key not in kept:
        kept[key] = engine.asarray(array, dtype)
    return kept[key]
