"""From ``device`` and the rows that come in to an engine, and what may go wrong with it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from imparo.engine.base import Engine
from imparo.engine.blocks import available_memory, check_places, parse_memory
from imparo.engine.current import host_engine, is_tensor
from imparo.errors import DeviceError, MemoryBudgetError
from imparo.extras import require

Result = TypeVar("Result")

_PRECISIONS = ("float64", "float32", "split")
_KNOWN = (
    "give 'cpu', 'cuda', 'cuda:0', 'auto' (a GPU if there is one, else the CPU), 'torch:cpu', "
    "or None to compute where the rows are"
)
# Of the memory that is free on a GPU, the share that a fit may take.
_SHARE = 0.9
# Blocks are not made smaller than this.
_LEAST_ROWS = 64


def choose_engine(device: Any, X: Any = None, precision: str | None = None) -> Engine:
    """Return the engine that ``device`` stands for.

    Parameters
    ----------
    device : str, torch.device or None
        "cpu": NumPy. "cuda": all GPUs there are; "cuda:1": one of them. "auto": GPUs if there
        are any, else NumPy. "torch:cpu", or ``torch.device("cpu")``: PyTorch without a GPU.
        None: where the rows are.
    X : array or tensor, optional
        The rows.
    precision : str, optional
        See :class:`~imparo.engine.torch.TorchEngine`.

    Returns
    -------
    Engine

    Raises
    ------
    DeviceError
        If the device is not there.

    Examples
    --------
    >>> from imparo.engine import choose_engine
    >>> choose_engine("cpu").name
    'cpu'
    """
    if precision is not None and precision not in _PRECISIONS:
        raise ValueError(
            f"precision={precision!r} is not known; give 'float64', 'float32', 'split', or "
            "None to choose by a measurement"
        )
    if device is None:
        if not is_tensor(X):
            return host_engine()
        if X.device.type not in ("cpu", "cuda"):
            raise DeviceError(
                f"tensors on {X.device} cannot be computed with; use X.cpu(), or a GPU "
                "that PyTorch calls cuda"
            )
        return _torch_engine([X.device], precision)
    if is_tensor(device):  # torch.device, whose module is torch too
        return _named(str(device), precision, torch_cpu=True)
    if not isinstance(device, str):
        raise ValueError(f"device={device!r} is not known; {_KNOWN}")
    return _named(device, precision)


def _named(name: str, precision: str | None, torch_cpu: bool = False) -> Engine:
    if name == "cpu" and not torch_cpu:
        return host_engine()
    if name == "auto":
        return _torch_engine(_cards(), precision) if _cards() else host_engine()
    if name in ("torch:cpu", "cpu"):
        return _torch_engine(["cpu"], precision)
    kind, _, number = name.partition(":")
    if kind != "cuda" or (number and not number.isdigit()):
        raise ValueError(f"device={name!r} is not known; {_KNOWN}")
    _require_torch()
    cards = _cards()
    if not cards or (number and int(number) >= len(cards)):
        there = "none" if not cards else ", ".join(cards)
        raise DeviceError(
            f"device={name!r} is not there: PyTorch sees {there}; use device='cpu', 'auto', or "
            "a build of PyTorch with CUDA on a machine with a GPU"
        )
    return _torch_engine([cards[int(number)]] if number else cards, precision)


def _require_torch() -> None:
    try:
        require("torch", "torch")
    except ImportError as error:
        raise ImportError(f"{error}; or compute without it, with device='cpu'") from error


def _cards() -> list[str]:
    try:
        import torch
    except ImportError:
        return []
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [f"cuda:{i}" for i in range(count)]


def _torch_engine(devices: list[Any], precision: str | None) -> Engine:
    _require_torch()
    return _engine_on(tuple(str(device) for device in devices), precision)


@cache
def _engine_on(devices: tuple[str, ...], precision: str | None) -> Engine:
    """Return the engine of some devices, always the same one."""
    from imparo.engine.torch import TorchEngine

    return TorchEngine(devices, precision)


def memory_for(memory: Any, engine: Engine) -> int:
    """Return the bytes that may be used where an engine computes.

    Parameters
    ----------
    memory : int, str, dict or None
        Bytes for wherever the work is done, or a dict with "host" and "device". None stands
        for 90 % of what is free on a GPU, and half of what the machine has.
    engine : Engine

    Returns
    -------
    int
    """
    card = getattr(getattr(engine, "device", None), "type", "cpu") == "cuda"
    if isinstance(memory, dict):
        check_places(memory)
        memory = memory.get("device" if card else "host")
    if memory is not None:
        return parse_memory(memory)
    if not card:
        return available_memory()
    engine_device: Any = engine
    torch = engine_device.xp
    free = torch.cuda.mem_get_info(engine_device.device)[0]
    # What PyTorch holds and does not use is free too.
    held = torch.cuda.memory_reserved(engine_device.device)
    used = torch.cuda.memory_allocated(engine_device.device)
    return int(_SHARE * (free + held - used))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that a device has no memory left."""
    name = type(error).__name__
    signs = ("out of memory", "alloc_failed", "can't allocate memory", "not enough memory")
    return name == "OutOfMemoryError" or (
        isinstance(error, RuntimeError) and any(s in str(error).lower() for s in signs)
    )


def is_device_failure(error: BaseException) -> bool:
    """Return whether an error says that a device no longer answers."""
    if isinstance(error, DeviceError) or not isinstance(error, RuntimeError):
        return False
    text = str(error)
    return type(error).__name__ == "AcceleratorError" or any(
        sign in text for sign in ("CUDA error", "CUBLAS_STATUS", "CUSOLVER_STATUS", "cuDNN")
    )


def with_smaller_blocks(work: Callable[[int], Result], size: int, engine: Engine) -> Result:
    """Do a pass over rows, in blocks of half the size where a device runs out of memory.

    Parameters
    ----------
    work : callable
        Does the whole pass in blocks of a given number of rows, from the start.
    size : int
    engine : Engine

    Returns
    -------
    object
        What ``work`` returns.
    """
    while True:
        try:
            return work(size)
        except (RuntimeError, MemoryError) as error:
            if not engine.resident or not is_out_of_memory(error):
                raise
            if size // 2 < _LEAST_ROWS:
                raise MemoryBudgetError(
                    f"{engine.name} has no memory left, even for blocks of {size} rows; use "
                    "fewer centers or features, dtype='float32', or device='cpu'"
                ) from error
        # Outside of the handler, whose traceback holds the tensors of the failed pass.
        size //= 2
        _give_back(engine)


def _give_back(engine: Engine) -> None:
    if any(getattr(getattr(e, "device", None), "type", "") == "cuda" for e in engine.replicas):
        require("torch", "torch").cuda.empty_cache()


@contextmanager
def told_of_failures(engine: Engine) -> Iterator[None]:
    """Turn errors of a device into one sentence each, within a block.

    Parameters
    ----------
    engine : Engine
    """
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise MemoryBudgetError(
                f"{engine.name} has no memory left for this; use fewer centers or features, "
                "dtype='float32', or device='cpu'"
            ) from error
        if is_device_failure(error):
            raise DeviceError(
                f"{engine.name} failed in the middle ({str(error).splitlines()[0]}); the model "
                "is as it was before: try again in a new process, or with device='cpu'"
            ) from error
        raise
