"""From a graph of PyTorch's operators to ONNX.

Each operator has a function in one of the modules beside this one, found by its name. Shapes are known, so that everything that
depends on them is a constant.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

import onnx

from ..capture import Captured
from ..errors import UnsupportedOperator
from . import arithmetic, layers, losses, movement, reductions, updates  # noqa: F401 they register their operators
from .builder import Builder
from .registry import Translator


def translate(found: Captured, *, compact: bool) -> onnx.ModelProto:
    """The captured step as an ONNX model.

    Raises:
        UnsupportedOperator: No function for an operator.
    """
    builder = Builder()
    builder.reserve([*found.inputs, *found.outputs])
    translator = Translator(builder, compact)
    names = iter(found.inputs)
    for node in found.graph.graph.nodes:
        if node.op == "placeholder":
            name, value = next(names), node.meta["val"]
            if name in found.constants:
                translator.values[node] = builder.initializer(name, found.constants[name])
            else:
                translator.values[node] = builder.input(name, value.dtype, value.shape)
        elif node.op == "get_attr":
            tensor = getattr(found.graph, node.target)
            node.meta.setdefault("val", tensor)
            translator.values[node] = builder.tensor(tensor)
        elif node.op == "call_function":
            translator.run(node)
        elif node.op == "output":
            results = []
            for name, n in zip(found.outputs, node.args[0]):
                v = n.meta["val"]
                results.append((name, translator.value(n), v.dtype, tuple(v.shape)))
            return builder.model(results)
    raise AssertionError("a graph ends with its output")


def captured(capture: Callable[..., Captured], *, compact: bool, at: Callable[[str], None]) -> tuple[Captured, onnx.ModelProto]:
    """The capture of `capture(places=…)`, and its translation. `at` is called with the phases.

    Raises:
        UnsupportedOperator: As `translate`, with the line of the caller's code, for which the step is captured again.
    """
    at("capture")
    found = capture(places=False)
    at("translate")
    try:
        return found, translate(found, compact=compact)
    except UnsupportedOperator:
        translate(capture(places=True), compact=compact)
        raise


__all__ = ["UnsupportedOperator", "captured", "torch", "translate"]
