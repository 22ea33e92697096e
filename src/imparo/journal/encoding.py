"""Records as bytes: safetensors for arrays, JSON for the rest, never pickle."""

import json
import struct
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from imparo.errors import FileFormatError

_FORMAT = 1
_TREE = "json"  # the tensor that holds the JSON text; arrays are called 0, 1, 2, ...
_DEPTH = 100
# What safetensors knows by itself; other types are stored as bytes, and their name in JSON.
_KNOWN = {
    np.dtype(name) for name in ("?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d")
}


def encode(record: dict[str, Any]) -> bytes:
    """Make bytes of a record; :func:`decode` gives it back bit by bit.

    Cost: one copy of every array and some 20 microseconds.

    Parameters
    ----------
    record : dict
        Keys are text. Values are None, bool, int, float, str, NumPy scalars and arrays
        (numbers, text, bytes, dates), and lists, tuples and dictionaries of these.

    Returns
    -------
    bytes
        A safetensors file in memory.

    Raises
    ------
    TypeError
        If the record holds anything else.

    Examples
    --------
    >>> import numpy as np
    >>> from imparo.journal import decode, encode
    >>> decode(encode({"label": ("cup", 1), "x": np.float32([0.5, 2.0])}))
    {'label': ('cup', 1), 'x': array([0.5, 2. ], dtype=float32)}
    """
    if type(record) is not dict:
        raise TypeError(f"a record is a dictionary, not {type(record).__name__}")
    arrays: dict[str, np.ndarray] = {}
    tree = {"format": _FORMAT, "record": _encode(record, arrays, "record", _DEPTH)}
    text = json.dumps(tree, allow_nan=False, separators=(",", ":")).encode()
    return save_tensors({**arrays, _TREE: np.frombuffer(text, np.uint8)})


def decode(payload: bytes) -> dict[str, Any]:
    """Give back the record of which :func:`encode` made these bytes.

    Cost: one copy of every array, which can then be written to.

    Parameters
    ----------
    payload : bytes

    Returns
    -------
    dict
        Equal in every type, value, bit and memory order (C or Fortran).

    Raises
    ------
    FileFormatError
        If the bytes are not those of a record, or of a newer imparo.

    Examples
    --------
    >>> from imparo.journal import decode, encode
    >>> decode(encode({"labels": ["1", 1, 1.0, True, None]}))
    {'labels': ['1', 1, 1.0, True, None]}
    """
    try:
        arrays = load_tensors(bytes(payload))
        tree = json.loads(arrays[_TREE].tobytes())
        if tree["format"] > _FORMAT:
            raise FileFormatError(
                f"the record has format {tree['format']}; this imparo reads formats up to "
                f"{_FORMAT}: upgrade it"
            )
        record: dict[str, Any] = _decode(tree["record"], arrays)
    except FileFormatError:
        raise
    except (SafetensorError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(f"these bytes are not a record of imparo ({error})") from error
    return record


# A JSON object always has one key that names its kind; all else stands for itself.


def _encode(value: Any, arrays: dict[str, np.ndarray], where: str, depth: int) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:  # Python refuses decimals of more than 4300 digits
        return value if value.bit_length() < 64 else {"$int": hex(value)}
    if kind is float:  # not every NaN has the same bits
        return value if np.isfinite(value) else {"$float": struct.pack(">d", value).hex()}
    if kind is np.ndarray:
        return {"$array": _encode_array(value, arrays, where)}
    if kind is np.str_:
        return {"$text": "".join(iter(value))}  # str() would drop zeros at its end
    if kind is np.bytes_:
        return {"$bytes": value.hex()}
    if isinstance(value, np.generic) and value.dtype.kind in "biufcmM":
        return {"$scalar": [value.dtype.str, value.tobytes().hex()]}
    if kind not in (list, tuple, dict):
        raise TypeError(
            f"{where} is of type {kind.__name__}, which a record cannot hold; "
            "use None, bool, int, float, str, NumPy arrays and scalars, or lists, tuples and "
            "dictionaries of these"
        )
    if depth == 0:
        raise ValueError(f"the record is nested more than {_DEPTH} deep, or contains itself")
    if kind is dict:
        for key in value:
            if type(key) is not str:
                raise TypeError(
                    f"{where} has a key of type {type(key).__name__}; keys of records are text"
                )
        return {
            "$dict": {
                k: _encode(v, arrays, f"{where}[{k!r}]", depth - 1) for k, v in value.items()
            }
        }
    items = [_encode(v, arrays, f"{where}[{i}]", depth - 1) for i, v in enumerate(value)]
    return items if kind is list else {"$tuple": items}


def _encode_array(value: np.ndarray, arrays: dict[str, np.ndarray], where: str) -> list[Any]:
    if value.dtype.kind not in "biufcmMSU":
        raise TypeError(
            f"{where} is an array of type {value.dtype}, which a record cannot hold; use a list"
        )
    # Products of the same numbers in another memory order may round differently.
    turned = value.flags.f_contiguous and not value.flags.c_contiguous
    rows = value.T if turned else value
    name = str(len(arrays))
    if value.dtype in _KNOWN:
        arrays[name] = np.ascontiguousarray(rows).reshape(rows.shape)
    else:
        arrays[name] = np.frombuffer(rows.tobytes(), np.uint8)
    return [name, value.dtype.str, list(rows.shape), turned]


def _decode(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(tree, list):
        return [_decode(item, arrays) for item in tree]
    if not isinstance(tree, dict):
        return tree
    ((kind, content),) = tree.items()
    if kind == "$dict":
        return {key: _decode(value, arrays) for key, value in content.items()}
    if kind == "$tuple":
        return tuple(_decode(item, arrays) for item in content)
    if kind == "$array":
        name, dtype, shape, turned = content
        rows = _from_bytes(arrays[name], np.dtype(dtype), shape)
        return rows.T if turned else rows
    if kind == "$scalar":
        raw = np.frombuffer(bytes.fromhex(content[1]), np.uint8)
        return _from_bytes(raw, np.dtype(content[0]), [])[()]
    if kind == "$float":
        return struct.unpack(">d", bytes.fromhex(content))[0]
    if kind == "$int":
        return int(content, 16)
    if kind == "$text":
        return np.str_(content)
    if kind == "$bytes":
        return np.bytes_(bytes.fromhex(content))
    raise FileFormatError(f"the record holds {kind}, unknown to this imparo")


def _from_bytes(raw: np.ndarray, dtype: np.dtype, shape: list[int]) -> np.ndarray:
    if dtype.kind not in "biufcmMSU":
        raise FileFormatError(f"the record holds an array of type {dtype}, which is not read")
    if dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    return np.frombuffer(raw.tobytes(), dtype).reshape(shape).copy()
