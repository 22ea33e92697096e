"""One file format for every model: safetensors with a JSON header, never pickle.

A file holds the arrays of the object as safetensors and one metadata entry,
``imparo``, with JSON: the format's version, the library's, the object as a tree in
which arrays are references, a SHA-256 of every array and of the header itself.
Reading it builds only classes marked :func:`persistent`, scikit-learn's splitters and those
of its transformers that are listed here, and runs no code of the file.
"""

import functools
import hashlib
import importlib
import inspect
import json
import os
import secrets
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import sklearn.model_selection
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.model_selection import BaseCrossValidator, BaseShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from imparo.errors import FileFormatError

FORMAT = 1
_KEY = "imparo"
_CLASSES: dict[str, type] = {}
# Bytes that arrays of texts may take, beside what the file itself has of them.
_ROOM = 2**28
# Parameters that came later: files without them were written when there was only the default.
_LATER = {"cluster", "device", "iterations", "loss", "precision", "solver"}
# Modules that, with what they import, hold every persistent class: imported when a file holds
# a class that is not known yet, until it is. The light ones come first.
_HOLDERS = (
    "imparo.kernels",
    "imparo.losses",
    "imparo.conditions",
    "imparo.factors",
    "imparo.filters",
    "imparo.features",
    "imparo.sgm",
    "imparo.preparation",
    "imparo.estimators",
    "imparo.lifelong",
    "imparo.dynamics",
    "imparo.tabular",
)
# Transformers that models hold; their state is arrays and plain values, and no functions.
_TRANSFORMERS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        ColumnTransformer,
        MaxAbsScaler,
        MinMaxScaler,
        MissingIndicator,
        OneHotEncoder,
        Pipeline,
        QuantileTransformer,
        RobustScaler,
        SimpleImputer,
        StandardScaler,
    )
}

Class = TypeVar("Class", bound=type)


def persistent(cls: Class) -> Class:
    """Mark a class as one that model files may hold, under its own name."""
    _CLASSES[cls.__name__] = cls
    return cls


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a model, fitted or not, to one file; its metadata requests are not kept.

    The file is written beside its place and moved there when complete, so that a
    power cut leaves the old file or the new one, never half of one.

    Parameters
    ----------
    model : estimator, kernel, filter or path of this library
    path : path-like
        Usually ends in ``.imparo``; any name will do.

    Raises
    ------
    TypeError
        If the model holds something that cannot be saved without pickle, such as a
        kernel given as a Python function.

    Examples
    --------
    >>> import tempfile, pathlib, imparo
    >>> model = imparo.KernelRegressor(penalty=0.1).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "model.imparo"
    ...     imparo.save(model, file)
    ...     same = imparo.load(file)
    >>> bool((same.predict([[0.5]]) == model.predict([[0.5]])).all())
    True
    """
    if type(model) is not _CLASSES.get(type(model).__name__):
        raise TypeError(f"{type(model).__name__} is not an object of imparo that can be saved")
    arrays: dict[str, np.ndarray] = {}
    header = {
        "format": FORMAT,
        "version": version("imparo"),
        "class": type(model).__name__,
        "object": _encode(model, arrays, type(model).__name__),
        "arrays": {name: _digest(array) for name, array in arrays.items()},
    }
    # Where it is used: to compute, nothing but NumPy, SciPy and scikit-learn is needed.
    from safetensors.numpy import save as save_tensors

    text = json.dumps(header, allow_nan=False)
    metadata = {_KEY: text, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file to save to")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to save to")
    write_atomically(path, save_tensors(arrays, metadata=metadata))


def load(path: str | os.PathLike[str]) -> Any:
    """Load what :func:`save` wrote, after checking that the file is whole.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    object
        Equal in every parameter and fitted attribute to what was saved.

    Raises
    ------
    FileFormatError
        If the file is truncated, altered, written by a newer imparo, or not ours.

    Examples
    --------
    See :func:`save`.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{path} is not a model file of imparo, or is incomplete ({error}); save it again"
        ) from error
    header = _checked_header(path, metadata)
    for name, digest in header["arrays"].items():
        if name not in arrays or _digest(arrays[name]) != digest:
            raise FileFormatError(
                f"{path} was altered or damaged: the array {name!r} does not match its "
                "checksum; restore the file from a copy"
            )
    parts = _Parts(arrays)
    parts.room = _ROOM + 64 * len(metadata[_KEY])
    try:
        return _decode(header["object"], parts, path)
    except FileFormatError:
        raise  # it says what is wrong already
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError,
            RecursionError) as error:  # fmt: skip
        raise FileFormatError(
            f"{path} does not hold a model as imparo writes them ({type(error).__name__}: "
            f"{error!s:.200}); fit and save it again"
        ) from error


class _Parts(dict[str, np.ndarray]):
    """The arrays of a file, each to be taken once, and the bytes that texts may still take.

    A file that was made to harm would name one array a million times, or ask for texts of a
    gigabyte each.
    """

    room = 0


def fingerprint(value: Any) -> str:
    """Return a SHA-256 of anything that can be saved: equal for equal content.

    Parameters
    ----------
    value : object
        A model, or anything that a model file may hold.

    Returns
    -------
    str
    """
    arrays: dict[str, np.ndarray] = {}
    tree = _encode(value, arrays, "value")
    content = [tree, {name: _digest(array) for name, array in arrays.items()}]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _checked_header(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    if _KEY not in metadata:
        raise FileFormatError(f"{path} is a safetensors file, but not a model of imparo")
    text = metadata[_KEY]
    if hashlib.sha256(text.encode()).hexdigest() != metadata.get("sha256"):
        raise FileFormatError(
            f"{path} was altered or damaged: its header does not match its checksum; "
            "restore the file from a copy"
        )
    try:
        header: dict[str, Any] = json.loads(text)
        newer, made = header["format"] > FORMAT, header["version"]
        header["object"], header["arrays"].items()
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FileFormatError(f"{path} has a header that imparo did not write") from error
    if newer:
        raise FileFormatError(
            f"{path} has format {header['format']}, written by imparo {made}; "
            f"this imparo reads formats up to {FORMAT}: upgrade it"
        )
    return header


def _digest(array: np.ndarray) -> str:
    text = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(text + np.ascontiguousarray(array).tobytes()).hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there, durably: the old one, or the new."""
    # Not tempfile: it hides the file from others, and to read the umask is to change it
    # for every thread.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Every tree node is JSON's own, or a dict with the one key that names its kind.


def _encode(value: Any, arrays: dict[str, np.ndarray], where: str) -> Any:
    if isinstance(value, np.generic):
        return {"$scalar": [value.dtype.str, _encode(value.item(), arrays, where)]}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, arrays, where)
    if type(value).__module__.partition(".")[0] == "torch":
        # Tensors are kept as arrays, and a device by the name that estimators take.
        if hasattr(value, "detach"):
            return _encode_array(value.detach().cpu().numpy(), arrays, where)
        return {"cpu": "torch:cpu"}.get(str(value), str(value))
    if type(value).__module__.partition(".")[0] == "distributed":
        return None  # a client of Dask is of this process, not of the model
    if isinstance(value, np.dtype):
        return {"$dtype": value.str}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"$scalartype": np.dtype(value).str}
    if isinstance(value, range):
        return {"$range": [value.start, value.stop, value.step]}
    if isinstance(value, slice):
        ends = [value.start, value.stop, value.step]
        return {"$slice": [_encode(end, arrays, where) for end in ends]}
    if isinstance(value, list | tuple):
        items = [_encode(v, arrays, f"{where}.{i}") for i, v in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, dict):
        keys = [_encode(key, arrays, where) for key in value]
        items = [_encode(v, arrays, f"{where}.{k}") for k, v in value.items()]
        return {"$dict": [keys, items]}
    if sparse.issparse(value):
        value = sparse.csr_array(value)
        parts = {k: getattr(value, k) for k in ("data", "indices", "indptr")}
        parts["shape"] = [int(size) for size in value.shape]
        return {"$csr": _encode(parts, arrays, where)}
    if isinstance(value, np.random.RandomState):
        return {"$randomstate": _encode(value.get_state(legacy=True), arrays, where)}
    if isinstance(value, BaseCrossValidator | BaseShuffleSplit) and (
        getattr(sklearn.model_selection, type(value).__name__, None) is type(value)
    ):
        state = _encode(vars(value), arrays, where)
        return {"$splitter": [type(value).__name__, state]}
    name = type(value).__name__
    if type(value) in (_CLASSES.get(name), _TRANSFORMERS.get(name)):
        # Requests for metadata routing are scikit-learn's own objects, not the model's.
        # What a cached property has computed is no content.
        state = {
            k: v
            for k, v in vars(value).items()
            if k != "_metadata_request"
            and not isinstance(getattr(type(value), k, None), functools.cached_property)
        }
        content = [name, _encode(state, arrays, where)]
        if name in _TRANSFORMERS:
            return {"$sklearn": [*content, sklearn.__version__]}
        return {"$object": content}
    raise TypeError(
        f"{where} is {value!r}, which cannot be saved without pickle; use a named kernel "
        "or an object of imparo in its place, or pickle the model"
    )


def _encode_array(value: np.ndarray, arrays: dict[str, np.ndarray], where: str) -> Any:
    if value.dtype.kind in "OUS":
        items = [_encode(item, arrays, where) for item in value.ravel().tolist()]
        return {"$objects": [value.dtype.str, list(value.shape), items]}
    name = where
    while name in arrays:
        name += "'"
    # safetensors stores row-major, little-endian arrays.
    native = value.dtype.newbyteorder("=")
    arrays[name] = np.ascontiguousarray(value, native).reshape(value.shape)
    return {"$array": [name, "F" if value.flags.f_contiguous else "C"]}


def _decode(tree: Any, arrays: _Parts, path: Path) -> Any:
    if isinstance(tree, list):
        return [_decode(item, arrays, path) for item in tree]
    if not isinstance(tree, dict):
        return tree
    ((kind, content),) = tree.items()
    if kind == "$array":
        return np.array(arrays.pop(content[0]), order=content[1])
    if kind == "$range":
        return range(*content)
    if kind == "$float":
        return float(content)
    if kind == "$dtype":
        return np.dtype(content)
    if kind == "$scalartype":
        return np.dtype(content).type
    if kind == "$objects":
        items = [_decode(item, arrays, path) for item in content[2]]
        dtype = np.dtype(content[0])
        arrays.room -= dtype.itemsize * len(items)
        if dtype.kind not in "OUS" or arrays.room < 0:
            raise FileFormatError(f"{path} holds texts that are too long to be texts")
        flat = np.empty(len(items), dtype)
        flat[:] = items
        return flat.reshape(content[1])
    if kind == "$scalar":
        dtype = np.dtype(content[0])
        if dtype.kind not in "biufcU":
            raise FileFormatError(f"{path} holds a number of type {dtype}, which is none")
        return dtype.type(_decode(content[1], arrays, path))
    if kind == "$dict":
        keys, values = (_decode(part, arrays, path) for part in content)
        return dict(zip(keys, values, strict=True))
    inner = _decode(content, arrays, path)
    if kind == "$tuple":
        return tuple(inner)
    if kind == "$slice":
        return slice(*inner)
    if kind == "$csr":
        data = (inner["data"], inner["indices"], inner["indptr"])
        matrix = sparse.csr_array(data, shape=tuple(inner["shape"]))
        matrix.check_format(full_check=True)  # products do not look where indices point
        return matrix
    if kind == "$randomstate":
        generator = np.random.RandomState()
        if not 0 <= inner[2] <= len(inner[1]):  # NumPy does not look
            raise ValueError("the state of a random generator")
        generator.set_state(inner)
        return generator
    if kind == "$splitter":
        cls = getattr(sklearn.model_selection, inner[0], None)
        if isinstance(cls, type) and issubclass(cls, BaseCrossValidator | BaseShuffleSplit):
            return _restore(cls, inner[1], path)
    if kind == "$sklearn":
        return _restore_transformer(inner[0], inner[1], inner[2], path)
    if kind == "$object" and (cls := _class_named(inner[0])) is not None:
        return _restore(cls, inner[1], path)
    raise FileFormatError(f"{path} holds {kind} {content!r:.60}, unknown to this imparo")


def _class_named(name: str) -> type | None:
    """Return a persistent class, importing the modules of imparo that may hold it."""
    for module in _HOLDERS:
        if name in _CLASSES:
            break
        importlib.import_module(module)
    return _CLASSES.get(name)


def _restore_transformer(name: str, state: dict[str, Any], made: str, path: Path) -> Any:
    if name not in _TRANSFORMERS:
        raise FileFormatError(
            f"{path} holds {name} of scikit-learn {made}, which model files may not hold; "
            "upgrade imparo, or fit and save the model again"
        )
    if state.get("memory") is not None:  # joblib would read pickles from there
        raise FileFormatError(f"{path} holds a {name} with a cache, which is not read")
    try:
        return _restore(_TRANSFORMERS[name], state, path)
    except FileFormatError as error:
        raise FileFormatError(
            f"{error} (with scikit-learn {made}, this is {sklearn.__version__})"
        ) from error


def _restore(cls: Any, state: dict[str, Any], path: Path) -> Any:
    if issubclass(cls, BaseEstimator):
        missing = set(cls._get_param_names()) - set(state)
        usual = inspect.signature(cls.__init__).parameters
        for name in missing & _LATER:
            state = state | {name: usual[name].default}
        missing -= _LATER
        if missing:
            raise FileFormatError(
                f"{path} has no parameter {', '.join(sorted(missing))} of {cls.__name__}; "
                "it was written by another version: fit and save the model again"
            )
    if not all(isinstance(name, str) and not name.startswith("__") for name in state):
        raise FileFormatError(f"{path} holds a {cls.__name__} with nameless attributes")
    restored = cls.__new__(cls)
    restored.__dict__.update(state)
    return restored
