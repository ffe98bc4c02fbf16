"""The table of translations, and how they get at operands."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from ..errors import UnsupportedOperator, line_of_trace
from .builder import ONNX_TYPES, Builder

Translation = Callable[..., Any]
TABLE: dict[str, Translation] = {}


def op(*names: str) -> Callable[[Translation], Translation]:
    """Registers a translation for operators by name: `add` for all overloads of `aten.add`, or `add.Tensor` for one."""

    def register(function: Translation) -> Translation:
        for name in names:
            assert name not in TABLE, name
            TABLE[name] = function
        return function

    return register


class Translator:
    """The state of a translation. Translations are called with it, the node, and the node's arguments."""

    def __init__(self, builder: Builder, compact: bool) -> None:
        self.b, self.compact = builder, compact
        self.values: dict[Node, Any] = {}

    def run(self, node: Node) -> None:
        """Writes one node."""
        if node.target is operator.getitem:
            self.values[node] = self.values[node.args[0]][node.args[1]]
            self._declare(node)
            return
        name = getattr(node.target, "__name__", str(node.target))
        if isinstance(node.target, torch._ops.OpOverload):
            space, packet = node.target._schema.name.split("::")
            packet = packet if space == "aten" else f"{space}::{packet}"
            name = f"{packet}.{node.target._overloadname}"
            function = TABLE.get(name) or TABLE.get(packet)
        else:
            function = TABLE.get(name)
        if function is None:
            raise UnsupportedOperator(name, line_of_trace(node.meta.get("stack_trace")))
        self.b.at(node.name)
        self.values[node] = function(self, node, *node.args, **node.kwargs)
        self._declare(node)

    def _declare(self, node: Node) -> None:
        value, meta = self.values[node], node.meta.get("val")
        if isinstance(value, str) and isinstance(meta, torch.Tensor):
            self.b.declare(value, meta.dtype, meta.shape)

    def value(self, arg: Any, dtype: torch.dtype | None = None) -> str:
        """The value of an operand, with the type `dtype` if one is given. Numbers become constants."""
        if isinstance(arg, Node):
            name, have = self.values[arg], self.dtype(arg)
            if dtype is None or have == dtype:
                return name
            return self.b.node("Cast", name, to=ONNX_TYPES[dtype])
        assert dtype is not None, arg
        return self.b.scalar(arg, dtype)

    def cast(self, value: str, dtype: torch.dtype) -> str:
        """A value of another type."""
        return self.b.node("Cast", value, to=ONNX_TYPES[dtype])

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        """A view. Extents of 0 are meant."""
        return self.b.node("Reshape", value, self.b.ints(shape), allowzero=1 if 0 in shape else None)

    @staticmethod
    def meta(arg: Node) -> torch.Tensor:
        """The fake tensor of an operand: its shape and type."""
        return arg.meta["val"]

    @staticmethod
    def dtype(arg: Node) -> torch.dtype:
        return arg.meta["val"].dtype

    @staticmethod
    def shape(arg: Node) -> list[int]:
        return [int(s) for s in arg.meta["val"].shape]
