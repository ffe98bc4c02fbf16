"""`shard`: parameters that are gathered within the graph, so that a plan decides for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from lmsc import InputError

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import Placement


def shard(
    model: nn.Module, mesh: DeviceMesh, placements: Sequence[Placement] | None = None, *, src_data_rank: int | None = 0
) -> nn.Module:
    """The same module, of whose parameters each process holds a part.

    A parameter is gathered wherever the forward pass reads it, by operators of the graph, and its gradient is the mean over all processes.
    Under `torch.compile(model, backend="lmsc")` the plan decides for each parameter whether it stays, is gathered again for the backward
    pass, or leaves the device. Names of parameters and buffers stay as they were, so state dicts and
    `torch.distributed.checkpoint` work. Make the optimizer afterwards: the parameters are new ones, of type `DTensor`.

    Args:
        model: The same module on all processes.
        mesh: With one axis, over which parameters are split by their first dimension; or with two, of which the first has copies of
            the shards (hybrid sharding).
        placements: Another way to place parameters: one for each axis of the mesh.
        src_data_rank: The process of each axis whose values all get. None sends nothing: each process takes its part of its own values,
            which must be the same everywhere.

    Raises:
        InputError: The mesh has another number of axes, or a module cannot be sharded this way: its parameters are split already, or it
            keeps them in a second place, as recurrent layers do. The model is then as it was.

    Example:
        >>> import torch.distributed as dist
        >>> from torch.distributed.device_mesh import init_device_mesh
        >>> from torch.testing._internal.distributed.fake_pg import FakeStore
        >>> dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
        >>> model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
        >>> [tuple(p.to_local().shape) for p in shard(model, init_device_mesh("cpu", (8,))).parameters()]
        [(32, 64), (32,), (1, 256), (1,)]
        >>> dist.destroy_process_group()
    """
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    if placements is None:
        if mesh.ndim not in (1, 2):
            raise InputError(f"`shard` takes a mesh of one or two axes, and this one has {mesh.ndim}: give `placements`, one for each axis")
        placements = [Replicate()] * (mesh.ndim - 1) + [Shard(0)]
    if len(placements) != mesh.ndim:
        raise InputError(f"`shard` takes a placement for each axis of the mesh: {len(placements)} for {mesh.ndim} axes")
    for name, part in model.named_modules():
        _check(name, part)
    # A parameter that several modules share stays one.
    placed: dict[nn.Parameter, nn.Parameter] = {}
    for part in list(model.modules()):
        names = [name for name, p in part._parameters.items() if p is not None]
        for name in names:
            whole = part._parameters[name]
            if whole not in placed:
                # A parameter without dimensions cannot be split.
                places = list(placements) if whole.dim() else [Replicate()] * mesh.ndim
                placed[whole] = nn.Parameter(distribute_tensor(whole.data, mesh, places, src_data_rank=src_data_rank), whole.requires_grad)
            part._parameters[name] = placed[whole]
        if names:
            read = {name: property(lambda module, name=name: _gathered(module._parameters[name])) for name in names}
            part.__class__ = type(f"Sharded{type(part).__name__}", (type(part),), read)
    return model


def _check(name: str, part: nn.Module) -> None:
    from torch.distributed.tensor import DTensor

    where = f"`{name}`" if name else "the model"
    if isinstance(part, nn.RNNBase):
        raise InputError(f"`shard` cannot split {where} ({type(part).__name__}): a recurrent layer keeps its weights in a second list")
    if any(isinstance(p, DTensor) for p in part._parameters.values()):
        raise InputError(f"`shard` cannot split {where}: its parameters are distributed already")


def _gathered(p: Any) -> Tensor:
    from torch.distributed.tensor import Partial, Replicate

    axes = p.device_mesh.ndim
    return p.redistribute(placements=[Replicate()] * axes).to_local(grad_placements=[Partial("avg")] * axes)
