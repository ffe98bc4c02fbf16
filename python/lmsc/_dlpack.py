"""Arrays on a GPU, through DLPack: where their elements are, without a copy to the host."""

from __future__ import annotations

import ctypes
from typing import Any

HOST, CUDA = 1, 2
"""DLPack's numbers of the processor and of GPUs by CUDA, among kinds of devices."""

_LEGACY_STREAM = 1
"""CUDA's default stream. lmsc waits for it before it reads data that others have written."""

_ELEMENTS = {
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
    (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64",
    (2, 16): "float16", (2, 32): "float", (2, 64): "double", (4, 16): "bfloat16", (5, 64): "complex64", (5, 128): "complex128",
    (6, 8): "bool",
}  # fmt: skip
"""Element types by DLPack's code and number of bits."""


class _Tensor(ctypes.Structure):
    """DLPack's `DLTensor`, which is also the begin of a `DLManagedTensor`."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def place_of(value: Any) -> tuple[int, int] | None:
    """DLPack's kind and number of the device that holds the value; None if the value has no DLPack."""
    device = getattr(value, "__dlpack_device__", None)
    if device is None:
        return None
    kind, number = device()
    return int(kind), int(number)


class OnGpu:
    """Elements on a GPU in row-major order. They are there while this object lives.

    Attributes:
        element: lmsc's name of the element type.
        shape: The extents.
        address, bytes: Where the elements are, and how many bytes they have.

    Raises:
        BufferError: They are not in row-major order, or of a type that ONNX has not.
    """

    def __init__(self, value: Any) -> None:
        # It has not been taken over, so the capsule itself gives it back at its end.
        self._capsule = value.__dlpack__(stream=_LEGACY_STREAM)
        tensor = _Tensor.from_address(_pointer_of(self._capsule, b"dltensor"))
        self.shape: list[int] = tensor.shape[: tensor.ndim]
        element = _ELEMENTS.get((tensor.code, tensor.bits))
        if element is None or tensor.lanes != 1:
            raise BufferError(f"elements of DLPack's type {tensor.code} with {tensor.bits} bits have no counterpart in ONNX")
        self.element: str = element
        elements = 1
        for axis in reversed(range(tensor.ndim)):
            # An array without elements has any strides.
            if tensor.strides and 0 not in self.shape and self.shape[axis] > 1 and tensor.strides[axis] != elements:
                raise BufferError("it is not in row-major order")
            elements *= self.shape[axis]
        self.address: int = (tensor.data or 0) + tensor.byte_offset
        self.bytes: int = elements * tensor.bits // 8
