"""Operators of written graphs that no step has: a tensor is copied to the host and back where its plan says that it leaves, and a graph of kernels
says which results are stored.

On the processor both are copies within the same memory: nothing is saved there, but the graph, its order and the life of each tensor are
those of a device. On an accelerator a copy goes through pinned memory on the stream that computes, so it needs no further event.
"""

from __future__ import annotations

import torch


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


@store.register_fake
def _(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(tensor)
