"""Arrays of any kind to bytes, and bytes to NumPy arrays."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from . import _dlpack
from ._lmsc import InputError

_NUMPY = {
    "float": "float32", "double": "float64", "float16": "float16", "int8": "int8", "int16": "int16", "int32": "int32",
    "int64": "int64", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "bool": "bool",
    "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip
"""NumPy's names of element types."""

_ML_DTYPES = {
    "bfloat16": "bfloat16", "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz", "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz", "float8e8m0": "float8_e8m0fnu",
}  # fmt: skip
"""Names of those that the package ml_dtypes adds to NumPy."""

_ELEMENTS = {name: element for element, name in {**_NUMPY, **_ML_DTYPES}.items()}

_BITS = {1: "uint8", 2: "int16"}
"""Types of PyTorch with the bits of those that NumPy has not, by bytes."""


def dtype_of(element: str) -> np.dtype[Any]:
    """NumPy's type for an element type of lmsc."""
    if element in _NUMPY:
        return np.dtype(_NUMPY[element])
    if element not in _ML_DTYPES:
        raise InputError(f"NumPy has no type for elements of {element}")
    try:
        import ml_dtypes
    except ImportError as missing:
        raise InputError(f"elements of {element} need the package ml_dtypes") from missing
    return np.dtype(getattr(ml_dtypes, _ML_DTYPES[element]))


def _of_torch(tensor: Any) -> tuple[str, list[int], np.ndarray[Any, Any]]:
    torch = sys.modules["torch"]
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _ELEMENTS:
        raise InputError(f"elements of {tensor.dtype} have no counterpart in ONNX")
    tensor = tensor.detach().cpu().contiguous()
    if _ELEMENTS[name] not in _NUMPY:
        tensor = tensor.view(getattr(torch, _BITS[tensor.element_size()]))
    return _ELEMENTS[name], list(tensor.shape), tensor.numpy()


Bytes: TypeAlias = memoryview | _dlpack.OnGpu
"""Bytes on the host, or on a GPU."""


def given(values: Mapping[str, Any], elements: Mapping[str, str], gpu: int | None = None) -> list[tuple[str, str, list[int], Bytes]]:
    """The values as names, element types, extents and bytes.

    Arrays of NumPy and of all that has DLPack keep their type. Numbers and lists get the type that is expected by `elements`.
    An array with DLPack on the GPU of this number stays there; from other GPUs its owner copies it to the host.
    """
    return [(name, *_one(name, value, elements.get(name), gpu)) for name, value in values.items()]


def _of_gpu(value: Any) -> tuple[str, list[int], _dlpack.OnGpu]:
    """An array on a GPU, where it is."""
    if type(value).__module__.partition(".")[0] == "torch":
        value = value.detach().contiguous()
    view = _dlpack.OnGpu(value)
    return view.element, view.shape, view


def _one(name: str, value: Any, expected: str | None, gpu: int | None) -> tuple[str, list[int], Bytes]:
    try:
        if gpu is not None and _dlpack.place_of(value) == (_dlpack.CUDA, gpu):
            return _of_gpu(value)
        if type(value).__module__.partition(".")[0] == "torch" or "torch" in sys.modules and _is_tensor(value):
            element, shape, array = _of_torch(value)
        else:
            if isinstance(value, (np.ndarray, np.generic)):
                array = np.asarray(value)
            elif hasattr(value, "__dlpack__"):
                on_host = _dlpack.place_of(value)[0] == _dlpack.HOST
                # The owner copies an array on a GPU to the host; NumPy requests that from 2.1 on.
                array = np.from_dlpack(value) if on_host else np.from_dlpack(value, device="cpu")
            else:
                array = _of_numbers(value, None if expected is None else dtype_of(expected))
            if array.dtype.name not in _ELEMENTS:
                raise InputError(f"elements of {array.dtype} have no counterpart in ONNX")
            element, shape = _ELEMENTS[array.dtype.name], list(array.shape)
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return element, shape, np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    except InputError as error:
        raise InputError(f"`{name}`: {error}") from error
    except (TypeError, ValueError, OverflowError, BufferError, RuntimeError) as error:
        raise InputError(f"`{name}` is no array: {error}") from error


def _of_numbers(value: Any, dtype: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
    """Numbers and lists of them, with the type that is expected, if they are numbers of its kind."""
    array = np.asarray(value)
    if dtype is None or array.dtype == dtype:
        return array
    if dtype.kind in "biu" and array.dtype.kind in "fc" and not np.array_equal(array, np.trunc(array.real)):
        raise InputError(f"{value!r:.60} are not numbers of {dtype}; round them")
    if dtype.kind == "b" and array.dtype.kind in "iu" and not np.isin(array, (0, 1)).all():
        raise InputError(f"{value!r:.60} are not truth values")
    return np.asarray(value, dtype)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, sys.modules["torch"].Tensor)


def arrays(results: Iterable[tuple[str, str, list[int], bytearray]]) -> dict[str, np.ndarray[Any, Any]]:
    """NumPy arrays of results, by name. They share the memory of the results."""
    return {name: np.frombuffer(data, dtype_of(element)).reshape(shape) for name, element, shape, data in results}
