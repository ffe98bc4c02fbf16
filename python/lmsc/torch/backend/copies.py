"""Operators of written graphs that no step has: a tensor is copied to the host and back where its plan says that it leaves, and a graph of kernels
says which results are stored.

On the processor both are copies within the same memory: nothing is saved there, but the graph, its order and the life of each tensor are
those of a device. On an accelerator a copy goes through pinned memory on the stream that computes, so it needs no further event.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

import torch


class Held(Protocol):
    """A tensor that lasts from step to step, and whose owner must know where it is."""

    def put(self, tensor: torch.Tensor) -> None:
        """The tensor is there from now on."""


class Updating(Protocol):
    """The optimizer, for some of its parameters."""

    def update(self, weights: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor], state: Sequence[torch.Tensor]) -> None:
        """Updates the weights and the state, which are on the device, in place."""


_KNOWN: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_numbers = itertools.count()


def known(thing: Any) -> int:
    """The number by which an operator of a graph finds the object, as long as somebody else holds that."""
    number = next(_numbers)
    _KNOWN[number] = thing
    return number


@torch.library.custom_op("lmsc::offload", mutates_args=())
def offload(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of the tensor in the memory of the host, with its strides."""
    pinned = tensor.device.type != "cpu"
    return torch.empty_like(tensor, device="cpu", pin_memory=pinned).copy_(tensor, non_blocking=pinned)


@torch.library.custom_op("lmsc::reload", mutates_args=())
def reload(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy of what `offload` returned, on the device."""
    return torch.empty_like(tensor, device=device).copy_(tensor, non_blocking=tensor.is_pinned())


@torch.library.custom_op("lmsc::store", mutates_args=())
def store(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor. A compiler that computes several operators in one kernel stores it there."""
    return tensor.clone()


@offload.register_fake
def _(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(tensor, device="cpu")


@reload.register_fake
def _(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return torch.empty_like(tensor, device=device)


@torch.library.custom_op("lmsc::leave", mutates_args=())
def leave(tensor: torch.Tensor, held: int) -> torch.Tensor:
    """A copy of a tensor that lasts from step to step in the memory of the host, where its owner has it from now on."""
    host = offload(tensor)
    _KNOWN[held].put(host)
    return host


@torch.library.custom_op("lmsc::keep", mutates_args=("host",))
def keep(tensor: torch.Tensor, host: torch.Tensor) -> None:
    """Writes the tensor into the memory of the host where it is from step to step."""
    host.copy_(tensor, non_blocking=host.is_pinned())


@torch.library.custom_op("lmsc::update", mutates_args=("weights", "gradients", "state"))
def update(weights: list[torch.Tensor], gradients: list[torch.Tensor], state: list[torch.Tensor], of: int) -> None:
    """Lets the caller's optimizer update these parameters."""
    _KNOWN[of].update(weights, gradients, state)


@leave.register_fake
def _(tensor: torch.Tensor, held: int) -> torch.Tensor:
    return torch.empty_like(tensor, device="cpu")


@keep.register_fake
def _(tensor: torch.Tensor, host: torch.Tensor) -> None:
    return None


@update.register_fake
def _(weights: list[torch.Tensor], gradients: list[torch.Tensor], state: list[torch.Tensor], of: int) -> None:
    return None


@store.register_fake
def _(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(tensor)
