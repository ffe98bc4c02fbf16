"""How long an operator takes on a target: a roofline over PyTorch's own counts of FLOP."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import optimization_hint
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import flop_registry

from ... import _lmsc

#: The extent that stands for a size that depends on data, which no hint tells.
_UNKNOWN_EXTENT = 4096

#: Seconds until a collective moves its first byte, and bytes a second between processors, between accelerators of a node and between nodes. Targets
#: do not tell them. Half or double changes which gathers run again rather than being kept or copied; the bytes of a plan do not depend on them.
_COLLECTIVE_START, _PROCESSES, _WITHIN_NODE, _BETWEEN_NODES = 20e-6, 5e9, 100e9, 25e9


def number(size: Any) -> int:
    """The size; of a symbol the one of the batch for which the graph was traced."""
    if isinstance(size, int):
        return size
    # The length of a ragged dimension is no number; the tensors that hold its rows have sizes of their own.
    return _UNKNOWN_EXTENT if size.node.is_nested_int() else int(optimization_hint(size, fallback=_UNKNOWN_EXTENT))


def tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def bytes_of(tensor: torch.Tensor) -> int:
    """The bytes of the tensor's storage."""
    try:
        return number(tensor.untyped_storage().nbytes())
    except (NotImplementedError, RuntimeError):  # A sparse tensor has none of its own.
        return number(tensor.numel()) * tensor.element_size()


#: Losses whose sum or mean keeps the memory of the elements that it was made of.
_KEEPS_ELEMENTS = {
    torch.ops.aten.mse_loss.default,
    torch.ops.aten.smooth_l1_loss.default,
    torch.ops.aten.binary_cross_entropy.default,
    torch.ops.aten.soft_margin_loss.default,
}


def bytes_of_result(node: fx.Node, tensor: torch.Tensor) -> int:
    """The bytes of a storage that the operator makes for its result."""
    bytes_ = bytes_of(tensor)
    if node.target not in _KEEPS_ELEMENTS:
        return bytes_
    extents = torch.broadcast_shapes(*(operand.meta["val"].shape for operand in node.args[:2]))
    return max(bytes_, math.prod(map(number, extents)) * tensor.element_size())


def flop(node: fx.Node) -> float:
    """The floating-point operations of the node by PyTorch's registry; 0 where it has no formula."""
    formula = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if formula is None:
        return 0.0

    def plain(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.empty([number(extent) for extent in value.shape], dtype=value.dtype, device="meta")
        return value

    args, kwargs = fx.map_arg((node.args, node.kwargs), lambda operand: operand.meta.get("val"))
    return float(formula(*tree_map(plain, args), **tree_map(plain, kwargs), out_val=tree_map(plain, node.meta.get("val"))))


def _crosses(node: fx.Node) -> tuple[int, bool]:
    """The bytes that the node copies between the host and the device, and whether it copies them to the host."""
    if getattr(node.target, "overloadpacket", None) is not torch.ops.aten._to_copy:
        return 0, False
    result, operand = node.meta["val"], node.args[0].meta["val"]
    outward = result.device.type == "cpu"
    crosses = outward != (operand.device.type == "cpu")
    return (bytes_of(operand if outward else result) if crosses else 0), outward


@dataclass(frozen=True)
class Target:
    """The machine that plans are made for: what `lmsc targets NAME --json` tells."""

    name: str
    facts: dict[str, Any]

    @classmethod
    @functools.cache
    def named(cls, name: str) -> Target:
        facts = json.loads(_lmsc.output_of(["targets", name, "--json"]))["targets"][0]
        return cls(name, facts)

    @property
    def link(self) -> dict[str, Any]:
        return self.facts["link"]

    def seconds(self, node: fx.Node, moved_bytes: int) -> float:
        """The time of the node, which reads and writes this number of bytes. A copy to or from the host takes the link."""
        moved, outward = _crosses(node)
        if moved:
            link = self.link
            return moved / link["out_bytes_per_second" if outward else "in_bytes_per_second"] + link["latency_nanos"] * 1e-9
        return self.seconds_of(flop(node), moved_bytes, node)

    def seconds_of(self, work: float, moved_bytes: int, node: fx.Node) -> float:
        """The time of this number of FLOP, of the node's type of numbers, and of this number of bytes."""
        compute = self.facts["compute"]
        results = tensors(node.meta.get("val"))
        dtype = str(results[0].dtype).removeprefix("torch.") if results else "float32"
        rates = compute["flops_per_second"]
        rate = rates.get(dtype, rates["float32"])
        roof = max(work / rate, moved_bytes / compute["memory_bytes_per_second"])
        return roof + compute["launch_nanos"] * 1e-9

    def collective_seconds(self, device: torch.device, whole_bytes: int, ranks: Sequence[int], twice: bool) -> float:
        """The time of a collective among these processes, whose whole operand or result has these bytes: a start, and each byte but those that are there
        already; twice where each process gets the whole sum."""
        a_node = int(os.environ.get("LOCAL_WORLD_SIZE") or 8)
        within = len({rank // max(a_node, 1) for rank in ranks}) == 1
        rate = _PROCESSES if device.type == "cpu" else _WITHIN_NODE if within else _BETWEEN_NODES
        return _COLLECTIVE_START + (1 + twice) * whole_bytes * (len(ranks) - 1) / max(len(ranks), 1) / rate
