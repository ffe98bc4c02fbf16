"""Writing an ONNX graph: nodes without twins, constants once, nothing that is not used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import onnx
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
PREVIEW = "ai.onnx.preview.training"
LMSC = "ai.lmsc"
OPSET = 20
#: The first version whose convolutions and pools take bfloat16, of which only steps with such tensors have need.
OPSET_OF_BFLOAT16 = 22

ONNX_TYPES = {
    torch.float32: TensorProto.FLOAT,
    torch.float64: TensorProto.DOUBLE,
    torch.float16: TensorProto.FLOAT16,
    torch.bfloat16: TensorProto.BFLOAT16,
    torch.int8: TensorProto.INT8,
    torch.int16: TensorProto.INT16,
    torch.int32: TensorProto.INT32,
    torch.int64: TensorProto.INT64,
    torch.uint8: TensorProto.UINT8,
    torch.bool: TensorProto.BOOL,
}
RANDOM = {"Dropout", "Bernoulli", "RandomUniform", "RandomNormal", "RandomUniformLike", "RandomNormalLike", "Multinomial"}


@dataclass
class _Node:
    op: str
    domain: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]


class Builder:
    """A graph that is being written. Values are their names."""

    def __init__(self) -> None:
        self._nodes: list[_Node] = []
        self._twins: dict[Any, list[str]] = {}
        self._constants: dict[Any, str] = {}
        self._initializers: dict[str, TensorProto] = {}
        self._inputs: dict[str, onnx.ValueInfoProto] = {}
        self._types: dict[str, tuple[int, tuple[int, ...]]] = {}
        self._taken: set[str] = set()
        self._hint = "value"

    def at(self, hint: str) -> str:
        """Names of the nodes that are written next begin with `hint`. Gives the one before."""
        before, self._hint = self._hint, hint
        return before

    def fresh(self, name: str) -> str:
        """`name`, or a name that begins with it, which nothing has yet."""
        candidate, k = name, 1
        while candidate in self._taken:
            candidate, k = f"{name}.{k}", k + 1
        self._taken.add(candidate)
        return candidate

    def reserve(self, names: Sequence[str]) -> None:
        """Keeps names for inputs and outputs."""
        self._taken.update(names)

    def input(self, name: str, dtype: torch.dtype, shape: Sequence[int]) -> str:
        """An input of the graph, whose name was reserved."""
        self._inputs[name] = helper.make_tensor_value_info(name, ONNX_TYPES[dtype], list(shape))
        return name

    def declare(self, value: str, dtype: torch.dtype, shape: Sequence[int]) -> None:
        """Says the type of a value."""
        self._types[value] = ONNX_TYPES[dtype], tuple(shape)

    def initializer(self, name: str, tensor: torch.Tensor) -> str:
        """A constant with a name of its own."""
        self._initializers[name] = to_proto(tensor, name)
        return name

    def tensor(self, tensor: torch.Tensor) -> str:
        """A constant, the same one for equal tensors."""
        proto = to_proto(tensor, "")
        key = proto.data_type, tuple(proto.dims), proto.raw_data
        if key not in self._constants:
            kind = str(tensor.dtype).removeprefix("torch.")
            label = str(tensor.item()) if tensor.dim() == 0 else "x".join(map(str, tensor.shape))
            self._constants[key] = self.initializer(self.fresh(f"const.{kind}.{label}"), tensor)
        return self._constants[key]

    def scalar(self, value: float | bool, dtype: torch.dtype) -> str:
        """A constant without dimensions."""
        return self.tensor(torch.tensor(value, dtype=dtype))

    def is_constant(self, value: str) -> bool:
        """Whether the value is a constant of the model."""
        return value in self._initializers

    def ints(self, values: Sequence[int]) -> str:
        """A vector of int64, such as a shape or axes."""
        return self.tensor(torch.tensor(list(values), dtype=torch.int64))

    def node(self, op: str, *inputs: str | None, domain: str = "", outputs: int | Sequence[bool] = 1, **attributes: Any) -> Any:
        """Adds a node, or finds its twin. Gives the name of its result, or a list of names with "" for those not wanted."""
        operands = [i or "" for i in inputs]
        while operands and not operands[-1]:
            operands.pop()
        wanted = [True] * outputs if isinstance(outputs, int) else list(outputs)
        attributes = {k: v for k, v in sorted(attributes.items()) if v is not None}
        key = (op, domain, tuple(operands), tuple(wanted), repr(attributes))
        if op in RANDOM or key not in self._twins:
            names = [self.fresh(self._hint if k == 0 else f"{self._hint}.{k}") if w else "" for k, w in enumerate(wanted)]
            self._nodes.append(_Node(op, domain, operands, names, attributes))
            self._twins[key] = names
        names = self._twins[key]
        return names[0] if len(names) == 1 else list(names)

    def model(self, outputs: Sequence[tuple[str, str, torch.dtype, Sequence[int]]]) -> onnx.ModelProto:
        """The model whose results are `(name, value, type, shape)`."""
        renamed: dict[str, str] = {}
        produced = {o for n in self._nodes for o in n.outputs if o}
        for name, value, dtype, shape in outputs:
            if value in produced and value not in renamed:
                renamed[value] = name
            elif value in produced:
                self._nodes.append(_Node("Identity", "", [value], [name], {}))
            else:
                # Before anything overwrites the input.
                self._nodes.insert(0, _Node("Identity", "", [value], [name], {}))
        nodes = self._live([renamed.get(v, v) for _, v, _, _ in outputs] + [n for n, *_ in outputs], renamed)
        used = {i for n in nodes for i in n.inputs}
        protos, domains = [], {""}
        for n in nodes:
            label = next(o for o in n.outputs if o)
            protos.append(helper.make_node(n.op, n.inputs, n.outputs, name=label, domain=n.domain or None, **n.attributes))
            domains.add(n.domain)
        results = {n for n, *_ in outputs}
        made = {o for n in nodes for o in n.outputs if o}
        infos = [helper.make_tensor_value_info(v, *t) for k, t in self._types.items() if (v := renamed.get(k, k)) in made - results]
        graph = helper.make_graph(
            protos,
            "step",
            list(self._inputs.values()),
            [helper.make_tensor_value_info(n, ONNX_TYPES[d], list(s)) for n, _, d, s in outputs],
            [t for n, t in self._initializers.items() if n in used],
            value_info=infos,
        )
        typed = (*graph.input, *graph.output, *graph.value_info)
        types = {info.type.tensor_type.elem_type for info in typed} | {t.data_type for t in graph.initializer}
        opset = OPSET_OF_BFLOAT16 if TensorProto.BFLOAT16 in types else OPSET
        opsets = [helper.make_opsetid(d, 1 if d else opset) for d in sorted(domains)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="lmsc")

    def _live(self, wanted: Sequence[str], renamed: dict[str, str]) -> list[_Node]:
        """Nodes on which a result depends, in order, with their values renamed."""
        for n in self._nodes:
            n.inputs = [renamed.get(i, i) for i in n.inputs]
            n.outputs = [renamed.get(o, o) for o in n.outputs]
        live, kept = set(wanted), []
        for n in reversed(self._nodes):
            if live.intersection(o for o in n.outputs if o):
                live.update(n.inputs)
                kept.append(n)
        return kept[::-1]


def to_proto(tensor: torch.Tensor, name: str) -> TensorProto:
    """`tensor` with its elements as raw bytes."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        raw = tensor.view(torch.int16).numpy().astype("<i2").tobytes()
        return TensorProto(name=name, data_type=TensorProto.BFLOAT16, dims=list(tensor.shape), raw_data=raw)
    return numpy_helper.from_array(np.asarray(tensor.numpy()), name)
