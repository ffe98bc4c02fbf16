"""Sums, largest elements and the like."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from ..errors import UnsupportedOperator
from .builder import MICROSOFT
from .registry import Translator, op


def reduce(t: Translator, onnx: str, value: str, rank: int, dims: Any, keep: bool) -> str:
    """A reduction along `dims`, or along all where there are none."""
    if rank == 0:
        return value
    axes = list(range(rank)) if dims is None or dims == [] else [dims] if isinstance(dims, int) else list(dims)
    axes = sorted(a % rank for a in axes)
    return t.b.node(onnx, value, t.b.ints(axes), keepdims=int(keep))


@op("sum")
def sum_(t: Translator, n: Node, x: Node, dim: Any = None, keepdim: bool = False, **_: Any) -> str:
    return reduce(t, "ReduceSum", t.value(x, t.dtype(n)), len(t.shape(x)), dim, keepdim)


@op("mean")
def mean(t: Translator, n: Node, x: Node, dim: Any = None, keepdim: bool = False, **_: Any) -> str:
    return reduce(t, "ReduceMean", t.value(x, t.dtype(n)), len(t.shape(x)), dim, keepdim)


@op("prod")
def prod(t: Translator, n: Node, x: Node, dim: Any = None, keepdim: bool = False, **_: Any) -> str:
    return reduce(t, "ReduceProd", t.value(x, t.dtype(n)), len(t.shape(x)), dim, keepdim)


@op("amax", "amin")
def amax(t: Translator, n: Node, x: Node, dim: Any = None, keepdim: bool = False) -> str:
    return reduce(t, "ReduceMax" if "amax" in str(n.target) else "ReduceMin", t.value(x), len(t.shape(x)), dim, keepdim)


@op("max.default", "min.default")
def extreme(t: Translator, n: Node, x: Node) -> str:
    return reduce(t, "ReduceMax" if ".max." in str(n.target) else "ReduceMin", t.value(x), len(t.shape(x)), None, False)


@op("max.dim", "min.dim")
def extreme_of_dim(t: Translator, n: Node, x: Node, dim: int, keepdim: bool = False) -> list[str]:
    largest, rank = ".max." in str(n.target), len(t.shape(x))
    value = reduce(t, "ReduceMax" if largest else "ReduceMin", t.value(x), rank, dim, keepdim)
    return [value, t.b.node("ArgMax" if largest else "ArgMin", t.value(x), axis=dim % rank, keepdims=int(keepdim))]


@op("argmax", "argmin")
def arg(t: Translator, n: Node, x: Node, dim: int | None = None, keepdim: bool = False) -> str:
    v, onnx = t.value(x), "ArgMax" if "argmax" in str(n.target) else "ArgMin"
    if dim is None:
        return t.b.node(onnx, t.reshape(v, [-1]), axis=0, keepdims=0)
    return t.b.node(onnx, v, axis=dim % len(t.shape(x)), keepdims=int(keepdim))


@op("any", "all")
def any_(t: Translator, n: Node, x: Node, dim: Any = None, keepdim: bool = False) -> str:
    v = t.cast(t.value(x, torch.bool), torch.int32)
    onnx = "ReduceMax" if ".any." in str(n.target) else "ReduceMin"
    return t.cast(reduce(t, onnx, v, len(t.shape(x)), dim, keepdim), torch.bool)


@op("cumsum")
def cumsum(t: Translator, n: Node, x: Node, dim: int, **_: Any) -> str:
    return t.b.node("CumSum", t.value(x, t.dtype(n)), t.b.scalar(dim % max(len(t.shape(x)), 1), torch.int64))


@op("linalg_vector_norm")
def vector_norm(t: Translator, n: Node, x: Node, ord: float = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> str:
    rank, v = len(t.shape(x)), t.value(x, t.dtype(n))
    if ord in (1, 2):
        return reduce(t, f"ReduceL{ord:.0f}", v, rank, dim, keepdim) if rank else t.b.node("Abs", v)
    if abs(ord) == float("inf"):
        return reduce(t, "ReduceMax" if ord > 0 else "ReduceMin", t.b.node("Abs", v), rank, dim, keepdim)
    d = t.dtype(n)
    total = reduce(t, "ReduceSum", t.b.node("Pow", t.b.node("Abs", v), t.value(ord, d)), rank, dim, keepdim)
    return t.b.node("Pow", total, t.value(1 / ord, d))


@op("topk")
def topk(t: Translator, n: Node, x: Node, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> list[str]:
    return t.b.node(
        "TopK", t.value(x), t.b.ints([k]), axis=dim % len(t.shape(x)), largest=int(largest), sorted=int(sorted), outputs=2
    )


@op("sort")
def sort(t: Translator, n: Node, x: Node, dim: int = -1, descending: bool = False, **_: Any) -> list[str]:
    dim %= len(t.shape(x))
    return t.b.node("TopK", t.value(x), t.b.ints([t.shape(x)[dim]]), axis=dim, largest=int(descending), sorted=1, outputs=2)


@op("_softmax", "_log_softmax", "_safe_softmax")
def softmax(t: Translator, n: Node, x: Node, dim: int, *_: Any) -> str:
    if not t.shape(x):
        return t.value(x)
    return t.b.node("LogSoftmax" if "_log_" in str(n.target) else "Softmax", t.value(x, t.dtype(n)), axis=dim % len(t.shape(x)))


@op("_softmax_backward_data")
def softmax_backward(t: Translator, n: Node, dy: Node, y: Node, dim: int, *_: Any) -> str:
    onnx = "LogSoftmaxGrad_13" if "_log_" in str(n.target) else "SoftmaxGrad_13"
    v = t.b.node(onnx, t.value(dy), t.value(y), domain=MICROSOFT, axis=dim % len(t.shape(y)))
    return v if t.dtype(n) == t.dtype(y) else t.cast(v, t.dtype(n))


@op("histc")
def histc(t: Translator, n: Node, x: Node, bins: int = 100, low: float = 0, high: float = 0) -> str:
    """How many elements are in each of equally wide bins, the last one with its end."""
    if low == high:
        raise UnsupportedOperator("aten.histc without bounds", None)
    d = t.dtype(x) if t.dtype(x).is_floating_point else torch.float32
    v = t.reshape(t.value(x, d), [-1])
    place = t.b.node("Floor", t.b.node("Mul", t.b.node("Sub", v, t.value(float(low), d)), t.value(bins / (high - low), d)))
    last = t.b.node("Equal", v, t.value(float(high), d))
    place = t.b.node("Where", last, t.value(float(bins - 1), d), place)
    same = t.b.node("Equal", t.reshape(place, [-1, 1]), t.b.tensor(torch.arange(bins, dtype=d).reshape(1, -1)))
    return t.cast(t.b.node("ReduceSum", t.cast(same, torch.float32), t.b.ints([0]), keepdims=0), t.dtype(n))
