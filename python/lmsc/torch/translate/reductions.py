"""Sums, largest elements and the like."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from .builder import MICROSOFT
from .registry import Translator, op


def reduce(t: Translator, onnx: str, value: str, rank: int, dims: Any, keep: bool) -> str:
    """A reduction along `dims`, or along all where there are none."""
    if rank == 0:
        return value
    axes = [dims] if isinstance(dims, int) else list(dims or range(rank))
    axes = sorted(a % rank for a in axes)
    return t.b.node(onnx, value, t.b.ints(axes), keepdims=int(keep))


@op("sum", seen="dtype")
def sum_(t: Translator, n: Node, x: Node, dim: Any = None, keepdim: bool = False) -> str:
    return reduce(t, "ReduceSum", t.value(x, t.dtype(n)), len(t.shape(x)), dim, keepdim)


@op("mean", seen="dtype")
def mean(t: Translator, n: Node, x: Node, dim: Any = None, keepdim: bool = False) -> str:
    return reduce(t, "ReduceMean", t.value(x, t.dtype(n)), len(t.shape(x)), dim, keepdim)


@op("prod", seen="dtype")
def prod(t: Translator, n: Node, x: Node, dim: Any = None, keepdim: bool = False) -> str:
    return reduce(t, "ReduceProd", t.value(x, t.dtype(n)), len(t.shape(x)), dim, keepdim)


@op("amax", "amin")
def amax(t: Translator, n: Node, x: Node, dim: Any = (), keepdim: bool = False) -> str:
    return _extreme(t, x, "amax" in str(n.target), list(dim), keepdim)


@op("max.default", "min.default")
def extreme(t: Translator, n: Node, x: Node) -> str:
    return _extreme(t, x, ".max." in str(n.target), None, False)


def _extreme(t: Translator, x: Node, largest: bool, dim: Any, keepdim: bool) -> str:
    v, rank, d = t.value(x), len(t.shape(x)), t.dtype(x)
    if d == torch.bool:
        return t.cast(reduce(t, "ReduceMax" if largest else "ReduceMin", t.cast(v, torch.int32), rank, dim, keepdim), d)
    return reduce(t, "ReduceMax" if largest else "ReduceMin", v, rank, dim, keepdim)


@op("max.dim", "min.dim")
def extreme_of_dim(t: Translator, n: Node, x: Node, dim: int, keepdim: bool = False) -> list[str]:
    largest, rank = ".max." in str(n.target), len(t.shape(x))
    if not rank:
        return [t.value(x), t.b.scalar(0, torch.int64)]
    value = _extreme(t, x, largest, dim, keepdim)
    return [value, t.b.node("ArgMax" if largest else "ArgMin", t.value(x), axis=dim % rank, keepdims=int(keepdim))]


@op("argmax", "argmin")
def arg(t: Translator, n: Node, x: Node, dim: int | None = None, keepdim: bool = False) -> str:
    v, onnx, rank = t.value(x), "ArgMax" if "argmax" in str(n.target) else "ArgMin", len(t.shape(x))
    if dim is None or not rank:
        place = t.b.node(onnx, t.reshape(v, [-1]), axis=0, keepdims=0)
        return t.reshape(place, t.shape(n)) if t.shape(n) else place
    return t.b.node(onnx, v, axis=dim % rank, keepdims=int(keepdim))


@op("any", "all")
def any_(t: Translator, n: Node, x: Node, dim: Any = None, keepdim: bool = False) -> str:
    if not t.meta(x).numel():
        return t.b.node("Expand", t.value(".all." in str(n.target), t.dtype(n)), t.b.ints(t.shape(n)))
    v = t.cast(t.value(x, torch.bool), torch.int32)
    if dim == [] and t.shape(n) == t.shape(x):
        return t.cast(v, t.dtype(n))
    onnx = "ReduceMax" if ".any." in str(n.target) else "ReduceMin"
    return t.cast(reduce(t, onnx, v, len(t.shape(x)), dim, keepdim), t.dtype(n))


@op("cumsum", seen="dtype")
def cumsum(t: Translator, n: Node, x: Node, dim: int) -> str:
    v, rank = t.value(x, t.dtype(n)), len(t.shape(x))
    return t.b.node("CumSum", v, t.b.scalar(dim % rank, torch.int64)) if rank else v


@op("linalg_vector_norm", seen="dtype")
def vector_norm(t: Translator, n: Node, x: Node, ord: float = 2, dim: Any = None, keepdim: bool = False) -> str:
    rank, v, d = len(t.shape(x)), t.value(x, t.dtype(n)), t.dtype(n)
    if ord == 0:
        other = t.b.node("Not", t.b.node("Equal", v, t.value(0.0, d)))
        return reduce(t, "ReduceSum", t.cast(other, d), rank, dim, keepdim)
    if ord in (1, 2):
        return reduce(t, f"ReduceL{ord:.0f}", v, rank, dim, keepdim) if rank else t.b.node("Abs", v)
    if abs(ord) == float("inf"):
        return reduce(t, "ReduceMax" if ord > 0 else "ReduceMin", t.b.node("Abs", v), rank, dim, keepdim)
    total = reduce(t, "ReduceSum", t.b.node("Pow", t.b.node("Abs", v), t.value(ord, d)), rank, dim, keepdim)
    return t.b.node("Pow", total, t.value(1 / ord, d))


@op("topk")
def topk(t: Translator, n: Node, x: Node, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> list[str]:
    return _first(t, x, k, dim, largest, sorted_)


@op("sort", seen="stable")
def sort(t: Translator, n: Node, x: Node, dim: int = -1, descending: bool = False) -> list[str]:
    """A choice of all elements, which keeps equal ones in their order."""
    return _first(t, x, (t.shape(x) or [1])[dim if t.shape(x) else 0], dim, descending, True)


def _first(t: Translator, x: Node, k: int, dim: int, largest: bool, ordered: bool) -> list[str]:
    rank = len(t.shape(x))
    if not rank:
        return [t.value(x), t.b.scalar(0, torch.int64)] if k else [t.reshape(t.value(x), [0]), t.b.ints([])]
    return t.b.node(
        "TopK", t.value(x), t.b.ints([k]), axis=dim % rank, largest=int(largest), sorted=int(ordered), outputs=2
    )


@op("_softmax", "_log_softmax", seen="half_to_float")
def softmax(t: Translator, n: Node, x: Node, dim: int) -> str:
    onnx, rank, v = "LogSoftmax" if "_log_" in str(n.target) else "Softmax", len(t.shape(x)), t.value(x, t.dtype(n))
    return t.b.node(onnx, v if rank else t.reshape(v, [1]), axis=dim % rank) if rank else t.value(float(onnx == "Softmax"), t.dtype(n))


@op("_safe_softmax", seen="dtype")
def safe_softmax(t: Translator, n: Node, x: Node, dim: int) -> str:
    """Zeros where all scores of a row are -inf."""
    d, rank, v = t.dtype(n), len(t.shape(x)), t.value(x, t.dtype(n))
    if not rank:
        return t.value(1.0, d)
    none = t.b.node("Equal", t.b.node("ReduceMax", v, t.b.ints([dim % rank]), keepdims=1), t.value(float("-inf"), d))
    return t.b.node("Where", none, t.value(0.0, d), t.b.node("Softmax", v, axis=dim % rank))


@op("_softmax_backward_data", seen="input_dtype")
def softmax_backward(t: Translator, n: Node, dy: Node, y: Node, dim: int) -> str:
    onnx, rank = "LogSoftmaxGrad_13" if "_log_" in str(n.target) else "SoftmaxGrad_13", len(t.shape(y))
    if not rank:
        return t.value(0.0, t.dtype(n))
    v = t.b.node(onnx, t.value(dy), t.value(y), domain=MICROSOFT, axis=dim % rank)
    return v if t.dtype(n) == t.dtype(y) else t.cast(v, t.dtype(n))


@op("histc")
def histc(t: Translator, n: Node, x: Node, bins: int = 100, low: float = 0, high: float = 0) -> str:
    """How many elements are in each of equally wide bins, the last one with its end."""
    if low == high:
        raise t.refusal("histc without bounds")
    d = t.dtype(x) if t.dtype(x).is_floating_point else torch.float32
    v = t.reshape(t.value(x, d), [-1])
    place = t.b.node("Floor", t.b.node("Mul", t.b.node("Sub", v, t.value(float(low), d)), t.value(bins / (high - low), d)))
    last = t.b.node("Equal", v, t.value(float(high), d))
    place = t.b.node("Where", last, t.value(float(bins - 1), d), place)
    same = t.b.node("Equal", t.reshape(place, [-1, 1]), t.b.tensor(torch.arange(bins, dtype=d).reshape(1, -1)))
    return t.cast(t.b.node("ReduceSum", t.cast(same, torch.float32), t.b.ints([0]), keepdims=0), t.dtype(n))
