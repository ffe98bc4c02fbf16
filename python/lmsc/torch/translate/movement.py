"""Operators that make, move and select elements."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from .builder import MICROSOFT
from .registry import Translator, arguments_of, op

@op("full.default", "full_like.default", "new_full.default", "fill.Scalar", "fill.Tensor", seen="self size dtype")
def full(t: Translator, n: Node, value: Any) -> str:
    d, shape = t.dtype(n), t.shape(n)
    if isinstance(value, Node):
        return t.b.node("Expand", t.value(value, d), t.b.ints(shape))
    if not shape:
        return t.value(value, d)
    if t.meta(n).numel() == 1:
        return t.b.tensor(torch.full(shape, value, dtype=d))
    return t.b.node("Expand", t.value(value, d), t.b.ints(shape))


@op("zeros.default", "zeros_like.default", "new_zeros.default", "zero.default", "empty.memory_format", "empty_like.default",
    "new_empty.default", "empty_strided.default", "new_empty_strided.default", seen="self size stride dtype")  # fmt: skip
def zeros(t: Translator, n: Node) -> str:
    """Zeros, also for uninitialized tensors, so that a step is deterministic."""
    return full(t, n, 0)


@op("ones.default", "ones_like.default", "new_ones.default", seen="self size dtype")
def ones(t: Translator, n: Node) -> str:
    return full(t, n, 1)


@op("scalar_tensor.default", "prims::scalar_tensor", seen="dtype")
def scalar_tensor(t: Translator, n: Node, s: float) -> str:
    return t.value(s, t.dtype(n))


@op("arange.default", seen="dtype")
def arange(t: Translator, n: Node, end: float) -> str:
    return t.b.tensor(torch.arange(end, dtype=t.dtype(n)))


@op("arange.start", "arange.start_step", seen="dtype")
def arange_from(t: Translator, n: Node, start: float, end: float, step: float = 1) -> str:
    return t.b.tensor(torch.arange(start, end, step, dtype=t.dtype(n)))


@op("eye.default", "eye.m", seen="n m dtype")
def eye(t: Translator, n: Node) -> str:
    return t.b.tensor(torch.eye(*t.shape(n), dtype=t.dtype(n)))


@op("linspace.default", seen="dtype")
def linspace(t: Translator, n: Node, start: float, end: float, steps: int) -> str:
    return t.b.tensor(torch.linspace(start, end, steps, dtype=t.dtype(n)))


@op("view.default", "_unsafe_view", "reshape", "unsqueeze", "squeeze.default", "squeeze.dim", "squeeze.dims", "_reshape_copy",
    "flatten.using_ints", "view_copy.default", seen="size shape dim start_dim end_dim")  # fmt: skip
def view(t: Translator, n: Node, x: Node) -> str:
    return t.value(x) if t.shape(x) == t.shape(n) else t.reshape(t.value(x), t.shape(n))


@op("view.dtype", "view_copy.dtype")
def view_of_type(t: Translator, n: Node, x: Node, dtype: torch.dtype) -> str:
    if dtype != t.dtype(x):
        raise t.refusal(f"view of {t.dtype(x)} as {dtype}")
    return t.value(x)


@op("permute", "t", "transpose.int", seen="dims dim0 dim1")
def permute(t: Translator, n: Node, x: Node) -> str:
    """All permutations in a row as one."""
    source, perm = unpermuted(n)
    return t.value(source) if perm == sorted(perm) else t.b.node("Transpose", t.value(source), perm=perm)


def unpermuted(n: Node) -> tuple[Node, list[int]]:
    """The tensor whose axes `n` is a permutation of, through any number of permutations, and the permutation."""
    perm = list(range(n.meta["val"].dim()))
    while n.op == "call_function" and str(n.target).removeprefix("aten.").split(".")[0] in ("t", "transpose", "permute"):
        inner = permutation(n)
        perm = [inner[a] for a in perm]
        n = n.args[0]
    return n, perm


def permutation(n: Node) -> list[int]:
    """The axes of the operand, in their new order."""
    given, rank, name = arguments_of(n), n.args[0].meta["val"].dim(), str(n.target)
    if "permute" in name:
        return [a % rank for a in given["dims"]]
    perm = list(range(rank))
    if rank > 1:
        a, b = (given["dim0"] % rank, given["dim1"] % rank) if "transpose" in name else (0, rank - 1)
        perm[a], perm[b] = perm[b], perm[a]
    return perm


@op("expand", seen="size implicit")
def expand(t: Translator, n: Node, x: Node) -> str:
    return t.value(x) if t.shape(x) == t.shape(n) else t.b.node("Expand", t.value(x), t.b.ints(t.shape(n)))


@op("repeat")
def repeat(t: Translator, n: Node, x: Node, repeats: Sequence[int]) -> str:
    shape = [1] * (len(repeats) - len(t.shape(x))) + t.shape(x)
    v = t.value(x) if shape == t.shape(x) else t.reshape(t.value(x), shape)
    return t.b.node("Tile", v, t.b.ints(repeats)) if repeats else v


@op("cat")
def cat(t: Translator, n: Node, tensors: Sequence[Node], dim: int = 0) -> str:
    parts = [t.value(p, t.dtype(n)) for p in tensors if t.shape(p) != [0]]
    if not parts:
        return t.value(tensors[0], t.dtype(n))
    return parts[0] if len(parts) == 1 else t.b.node("Concat", *parts, axis=dim % len(t.shape(n)))


@op("stack")
def stack(t: Translator, n: Node, tensors: Sequence[Node], dim: int = 0) -> str:
    rank = len(t.shape(n))
    dim %= rank
    parts = []
    for p in tensors:
        shape = t.shape(p)
        parts.append(t.reshape(t.value(p, t.dtype(n)), shape[:dim] + [1] + shape[dim:]))
    return t.b.node("Concat", *parts, axis=dim)


@op("split_with_sizes", "split.Tensor", "split.sizes", "chunk", seen="split_size split_sizes chunks")
def split(t: Translator, n: Node, x: Node, dim: int = 0) -> list[str]:
    dim %= len(t.shape(x))
    sizes = [int(r.shape[dim]) for r in n.meta["val"]]
    return [t.value(x)] if len(sizes) == 1 else t.b.node("Split", t.value(x), t.b.ints(sizes), axis=dim, outputs=len(sizes))


@op("unbind.int")
def unbind(t: Translator, n: Node, x: Node, dim: int = 0) -> list[str]:
    results = n.meta["val"]
    if not results:
        return []
    parts = [t.value(x)] if len(results) == 1 else t.b.node(
        "Split", t.value(x), t.b.ints([1] * len(results)), axis=dim % len(t.shape(x)), outputs=len(results)
    )  # fmt: skip
    return [t.reshape(p, list(r.shape)) for p, r in zip(parts, results)]


@op("select.int")
def select(t: Translator, n: Node, x: Node, dim: int, index: int) -> str:
    return t.b.node("Gather", t.value(x), t.b.scalar(index % t.shape(x)[dim], torch.int64), axis=dim % len(t.shape(x)))


def bounds(size: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Bounds of a slice as they are meant, within 0 and `size`."""
    first, last, _ = slice(start, end).indices(size)
    return first, max(first, last)


@op("slice.Tensor")
def slice_(t: Translator, n: Node, x: Node, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> str:
    if t.shape(x) == t.shape(n):
        return t.value(x)
    first, last = bounds(t.shape(x)[dim], start, end)
    return cut(t, t.value(x), dim % len(t.shape(x)), first, last, step)


def cut(t: Translator, value: str, dim: int, first: int, last: int, step: int = 1) -> str:
    """The elements from `first` to before `last` of one axis."""
    return t.b.node("Slice", value, t.b.ints([first]), t.b.ints([last]), t.b.ints([dim]), t.b.ints([step]))


def pad(
    t: Translator, value: str, before: Sequence[int], after: Sequence[int], fill: str | None = None, mode: str | None = None
) -> str:
    """`value` with elements added on the sides of each axis."""
    return t.b.node("Pad", value, t.b.ints([*before, *after]), fill, mode=mode)


@op("slice_backward")
def slice_backward(
    t: Translator, n: Node, dy: Node, input_sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> str:
    sizes = input_sizes
    rank, size = len(sizes), sizes[dim]
    dim %= rank
    first, _ = bounds(size, start, end)
    value, shape = t.value(dy), t.shape(dy)
    if step != 1:
        # Zeros between the elements, then as if the step were 1.
        count, wide = shape[dim], [*shape[:dim], shape[dim], 1, *shape[dim + 1 :]]
        after = [0] * (rank + 1)
        after[dim + 1] = step - 1
        value = pad(t, t.reshape(value, wide), [0] * (rank + 1), after)
        shape = [*shape[:dim], count * step, *shape[dim + 1 :]]
        value = t.reshape(value, shape)
        if first + shape[dim] > size:
            shape[dim] = size - first
            value = cut(t, value, dim, 0, shape[dim])
    before, after = [0] * rank, [0] * rank
    before[dim], after[dim] = first, size - first - shape[dim]
    return pad(t, value, before, after) if any(before + after) else value


@op("select_backward")
def select_backward(t: Translator, n: Node, dy: Node, input_sizes: Sequence[int], dim: int, index: int) -> str:
    sizes = input_sizes
    rank, size = len(sizes), sizes[dim]
    dim, index = dim % rank, index % size
    shape = [*sizes[:dim], 1, *sizes[dim + 1 :]]
    before, after = [0] * rank, [0] * rank
    before[dim], after[dim] = index, size - index - 1
    return pad(t, t.reshape(t.value(dy), shape), before, after)


@op("slice_scatter")
def slice_scatter(
    t: Translator, n: Node, x: Node, src: Node, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> str:
    shape = t.shape(x)
    dim %= len(shape)
    first, last = bounds(shape[dim], start, end)
    if step != 1:
        rows = torch.arange(first, last, step).reshape([-1 if k == dim else 1 for k in range(len(shape))]).expand(t.shape(src))
        return t.b.node("ScatterElements", t.value(x), t.b.tensor(rows), t.value(src, t.dtype(x)), axis=dim)
    return _between(t, t.value(x), t.value(src, t.dtype(x)), dim, first, last, shape[dim])


@op("select_scatter")
def select_scatter(t: Translator, n: Node, x: Node, src: Node, dim: int, index: int) -> str:
    shape = t.shape(x)
    dim %= len(shape)
    index %= shape[dim]
    row = t.reshape(t.value(src, t.dtype(x)), [*shape[:dim], 1, *shape[dim + 1 :]])
    return _between(t, t.value(x), row, dim, index, index + 1, shape[dim])


def _between(t: Translator, x: str, middle: str, dim: int, first: int, last: int, size: int) -> str:
    """`x` with the elements from `first` to before `last` replaced."""
    parts = [cut(t, x, dim, 0, first)] if first else []
    parts.append(middle)
    parts += [cut(t, x, dim, last, size)] if last < size else []
    return middle if len(parts) == 1 else t.b.node("Concat", *parts, axis=dim)


@op("constant_pad_nd")
def constant_pad_nd(t: Translator, n: Node, x: Node, pad: Sequence[int], value: float = 0) -> str:
    return _padded(t, x, pad, t.value(value, t.dtype(n)) if value else None, None)


@op("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(t: Translator, n: Node, x: Node, padding: Sequence[int]) -> str:
    return _padded(t, x, padding, None, "reflect")


@op("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(t: Translator, n: Node, x: Node, padding: Sequence[int]) -> str:
    return _padded(t, x, padding, None, "edge")


def _padded(t: Translator, x: Node, pads: Sequence[int], fill: str | None, mode: str | None) -> str:
    """`x` with elements added on the sides of its last axes, in PyTorch's order, or cut off where a number is negative."""
    rank = len(t.shape(x))
    before, after = [0] * rank, [0] * rank
    for k in range(len(pads) // 2):
        before[rank - 1 - k], after[rank - 1 - k] = pads[2 * k], pads[2 * k + 1]
    v, shape = t.value(x), t.shape(x)
    if mode is not None and min([*before, *after], default=0) < 0:
        raise t.refusal(f"padding ({mode}) by a negative number")
    for k in range(rank):
        if before[k] < 0 or after[k] < 0:
            v = cut(t, v, k, max(-before[k], 0), shape[k] - max(-after[k], 0))
    before, after = [max(p, 0) for p in before], [max(p, 0) for p in after]
    return pad(t, v, before, after, fill, mode) if any(before + after) else v


@op("flip")
def flip(t: Translator, n: Node, x: Node, dims: Sequence[int]) -> str:
    rank = len(t.shape(x))
    axes = [d % rank for d in dims]
    low = -(1 << 62)
    return t.b.node(
        "Slice", t.value(x), t.b.ints([-1] * len(axes)), t.b.ints([low] * len(axes)), t.b.ints(axes), t.b.ints([-1] * len(axes))
    )


@op("roll")
def roll(t: Translator, n: Node, x: Node, shifts: Any, dims: Any = ()) -> str:
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    dims = [dims] if isinstance(dims, int) else list(dims)
    v, shape = t.value(x), t.shape(x)
    if not dims:
        v, shape, dims = t.reshape(v, [-1]), [t.meta(x).numel()], [0]
    for s, d in zip(shifts, dims):
        d %= len(shape)
        s %= shape[d]
        if s:
            v = t.b.node("Concat", cut(t, v, d, shape[d] - s, shape[d]), cut(t, v, d, 0, shape[d] - s), axis=d)
    return v if t.shape(x) == shape else t.reshape(v, t.shape(x))


@op("tril", "triu")
def triangle(t: Translator, n: Node, x: Node, diagonal: int = 0) -> str:
    return t.b.node("Trilu", t.value(x), t.b.scalar(diagonal, torch.int64), upper=int("triu" in str(n.target)))


def counted(t: Translator, index: Node, extent: int) -> str:
    """Indices of which none counts from the end: ONNX would take -1 for the last one, PyTorch refuses it."""
    v, d = t.value(index), t.dtype(index)
    if d not in (torch.int64, torch.int32):
        v, d = t.cast(v, torch.int64), torch.int64
    if _is_counted(index):
        return v
    return t.b.node("Where", t.b.node("Less", v, t.value(0, d)), t.value(extent, d), v)


_MOVED = ("view", "unsqueeze", "squeeze", "expand", "clone", "detach", "slice", "select")
_WITH_POSITIONS = ("topk", "sort", "max.dim", "min.dim", "max_pool2d_with_indices", "max_pool3d_with_indices")


def _is_counted(index: Node) -> bool:
    """Whether indices are positions that another operator has found, so that none is negative."""
    while index.op == "call_function" and index.args:
        name = str(index.target).removeprefix("aten.")
        if index.target is operator.getitem:
            return index.args[1] == 1 and str(index.args[0].target).removeprefix("aten.").startswith(_WITH_POSITIONS)
        if not name.startswith(_MOVED):
            return name.startswith(("argmax", "argmin"))
        index = index.args[0]
    return False


@op("embedding", seen="padding_idx scale_grad_by_freq sparse")
def embedding(t: Translator, n: Node, w: Node, indices: Node) -> str:
    """Rows. The arguments that are left out are those of the gradient, which is an operator of its own."""
    return t.b.node("Gather", t.value(w), counted(t, indices, t.shape(w)[0]), axis=0)


@op("embedding_dense_backward", seen="num_weights")
def embedding_dense_backward(
    t: Translator, n: Node, dy: Node, indices: Node, padding_idx: int, scale_grad_by_freq: bool
) -> str:
    v, d = t.value(dy), t.dtype(dy)
    if scale_grad_by_freq:
        raise t.refusal("embedding_dense_backward with scale_grad_by_freq=True")
    if padding_idx >= 0:
        padding = t.b.node("Equal", t.value(indices), t.value(padding_idx, t.dtype(indices)))
        v = t.b.node("Where", t.reshape(padding, [*t.shape(indices), 1]), t.value(0.0, d), v)
    return t.b.node("GatherGrad", t.b.ints(t.shape(n)), t.value(indices), v, domain=MICROSOFT, axis=0)


@op("index_select")
def index_select(t: Translator, n: Node, x: Node, dim: int, index: Node) -> str:
    shape = t.shape(x) or [1]
    v = t.value(x) if t.shape(x) else t.reshape(t.value(x), [1])
    v = t.b.node("Gather", v, t.reshape(counted(t, index, shape[dim]), [t.meta(index).numel()]), axis=dim % len(shape))
    return v if t.shape(x) else t.reshape(v, t.shape(n))


@op("gather")
def gather(t: Translator, n: Node, x: Node, dim: int, index: Node, *, sparse_grad: bool = False) -> str:
    if sparse_grad:
        raise t.refusal("gather with sparse_grad=True")
    if not t.shape(x) or not t.shape(index):
        v, i = t.reshape(t.value(x), [-1]), t.reshape(counted(t, index, (t.shape(x) or [1])[0]), [-1])
        return t.reshape(t.b.node("GatherElements", v, i, axis=0), t.shape(n))
    return t.b.node("GatherElements", t.value(x), counted(t, index, t.shape(x)[dim]), axis=dim % len(t.shape(x)))


_REDUCTIONS = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min", "add": "add", "multiply": "mul"}


@op("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce")
def scatter(t: Translator, n: Node, x: Node, dim: int, index: Node, src: Any, *, reduce: str | None = None) -> str:
    return _scattered(t, x, dim, index, src, reduce)


@op("scatter_add")
def scatter_add(t: Translator, n: Node, x: Node, dim: int, index: Node, src: Node) -> str:
    return _scattered(t, x, dim, index, src, "add")


@op("scatter_reduce.two")
def scatter_reduce(
    t: Translator, n: Node, x: Node, dim: int, index: Node, src: Node, reduce: str, *, include_self: bool = True
) -> str:
    d = t.dtype(n)
    first = None
    if not include_self:
        first = _first_of(reduce, d)
        first = _scattered(t, x, dim, index, first, None)
    total = _scattered(t, x, dim, index, src, reduce, into=first)
    if reduce != "mean":
        return total
    kind = torch.float32 if d.is_floating_point else d
    start = t.b.node("Expand", t.value(1 if include_self else 0, kind), t.b.ints(t.shape(x) or [1]))
    count = _scattered(t, x, dim, index, 1, "sum", into=start if t.shape(x) else t.reshape(start, []), dtype=kind)
    count = t.b.node("Max", count, t.value(1, kind))
    count = count if kind == d else t.cast(count, d)
    if not d.is_floating_point:
        total = t.b.node("Sub", total, t.b.node("Mod", total, count))
    return t.b.node("Div", total, count)


def _first_of(reduce: str, d: torch.dtype) -> Any:
    """The number that a reduction begins with."""
    if reduce in ("amax", "amin"):
        low, high = (float("-inf"), float("inf")) if d.is_floating_point else (torch.iinfo(d).min, torch.iinfo(d).max)
        return low if reduce == "amax" else high
    return 1 if reduce == "prod" else 0


def _scattered(
    t: Translator, x: Node, dim: int, index: Node, src: Any, reduce: str | None, into: str | None = None, dtype: torch.dtype | None = None
) -> str:  # fmt: skip
    """`src` put into `x`, or into the value `into` of its shape, at the places of `index` along one axis."""
    shape, d = t.shape(index), dtype or t.dtype(x)
    if not t.meta(index).numel():
        return into or t.value(x)
    if isinstance(src, Node) and t.shape(src):
        v = t.value(src, d)
        for k, size in enumerate(shape):
            if t.shape(src)[k] != size:
                v = cut(t, v, k, 0, size)
    else:
        v = t.b.node("Expand", t.value(src, d), t.b.ints(shape))
    values = [into or t.value(x), counted(t, index, (t.shape(x) or [1])[dim if t.shape(x) else 0]), v]
    if not t.shape(x) or not shape:
        values = [t.reshape(value, [-1]) for value in values]
    onto = t.b.node("ScatterElements", *values, axis=dim % max(len(t.shape(x)), 1), reduction=_REDUCTIONS[reduce] if reduce else None)
    return onto if t.shape(x) and shape else t.reshape(onto, t.shape(x))


def _positions(t: Translator, x: Node, indices: Sequence[Node | None]) -> tuple[str, list[int], list[int], list[int], bool]:
    """Coordinates of selected elements along the axes that are indexed, as one tensor with these in the last dimension."""
    axes = [k for k, i in enumerate(indices) if i is not None]
    used = [i for i in indices if i is not None]
    shape = list(torch.broadcast_shapes(*(tuple(t.shape(i)) for i in used)))
    parts = []
    for i in used:
        v = t.value(i, torch.int64)
        v = v if t.shape(i) == shape else t.b.node("Expand", v, t.b.ints(shape))
        parts.append(t.reshape(v, [*shape, 1]))
    joined = parts[0] if len(parts) == 1 else t.b.node("Concat", *parts, axis=len(shape))
    rest = [k for k in range(len(t.shape(x))) if k not in axes]
    adjacent = axes == list(range(axes[0], axes[-1] + 1))
    return joined, axes, rest, shape, adjacent


@op("index.Tensor", "_unsafe_index.Tensor")
def index(t: Translator, n: Node, x: Node, indices: Sequence[Node | None]) -> str:
    used = [i for i in indices if i is not None]
    if len(used) == 1:
        return t.b.node("Gather", t.value(x), t.value(used[0], torch.int64), axis=list(indices).index(used[0]))
    joined, axes, rest, shape, adjacent = _positions(t, x, indices)
    perm = axes + rest
    v = t.value(x) if perm == sorted(perm) else t.b.node("Transpose", t.value(x), perm=perm)
    v = t.b.node("GatherND", v, joined)
    lead = axes[0] if adjacent else 0
    if not lead:
        return v
    r = len(shape)
    return t.b.node("Transpose", v, perm=[*range(r, r + lead), *range(r), *range(r + lead, r + len(rest))])


@op("index_put.default", "_unsafe_index_put.default", "_index_put_impl.default", seen="unsafe")
def index_put(t: Translator, n: Node, x: Node, indices: Sequence[Node | None], values: Node, accumulate: bool = False) -> str:
    d = t.dtype(n)
    if any(i is not None and t.dtype(i) in (torch.bool, torch.uint8) for i in indices):
        return _masked_put(t, x, indices, values, accumulate)
    joined, axes, rest, shape, adjacent = _positions(t, x, indices)
    perm, size, r = axes + rest, t.shape(x), len(shape)
    v = t.value(x) if perm == sorted(perm) else t.b.node("Transpose", t.value(x), perm=perm)
    lead = axes[0] if adjacent else 0
    order = [*range(lead, lead + r), *range(lead), *range(lead + r, r + len(rest))]
    full_shape = [size[k] for k in rest[:lead]] + shape + [size[k] for k in rest[lead:]]
    new = t.value(values, d)
    new = new if t.shape(values) == full_shape else t.b.node("Expand", new, t.b.ints(full_shape))
    new = t.b.node("Transpose", new, perm=order) if lead else new
    v = t.b.node("ScatterND", v, joined, new, reduction="add" if accumulate else None)
    back = [perm.index(k) for k in range(len(perm))]
    return v if perm == sorted(perm) else t.b.node("Transpose", v, perm=back)


def _masked_put(t: Translator, x: Node, indices: Sequence[Node | None], values: Node, accumulate: bool) -> str:
    """`x` with `values` where a mask is true."""
    d, at = t.dtype(x), next(k for k, i in enumerate(indices) if i is not None)
    mask, rank = indices[at], len(t.shape(x))
    rest = rank - at - len(t.shape(mask))
    shape = t.shape(values)
    each = len(shape) <= rest or len(shape) == rest + 1 and shape[0] == 1
    if sum(i is not None for i in indices) > 1 or not (t.meta(values).numel() == 1 or at == 0 and each):
        raise t.refusal("writing of elements that a mask selects, other than one number or one row for all,")
    m = t.reshape(t.value(mask, torch.bool), [1] * at + t.shape(mask) + [1] * rest)
    new = t.value(values, d)
    new = t.reshape(new, []) if t.meta(values).numel() == 1 and shape else new
    return t.b.node("Where", m, t.b.node("Add", t.value(x), new) if accumulate else new, t.value(x))


@op("index_add")
def index_add(t: Translator, n: Node, x: Node, dim: int, rows: Node, src: Node, *, alpha: float = 1) -> str:
    rank = len(t.shape(x))
    if not rank:
        raise t.refusal("index_add to a tensor without dimensions")
    dim %= rank
    v = t.reshape(t.cast(counted(t, rows, t.shape(x)[dim]), torch.int64), [-1 if k == dim else 1 for k in range(rank)])
    v = t.b.node("Expand", v, t.b.ints(t.shape(src)))
    s = t.value(src) if alpha == 1 else t.b.node("Mul", t.value(src), t.value(alpha, t.dtype(n)))
    return t.b.node("ScatterElements", t.value(x), v, s, axis=dim, reduction="add")


@op("diagonal")
def diagonal(t: Translator, n: Node, x: Node, offset: int = 0, dim1: int = 0, dim2: int = 1) -> str:
    shape = t.shape(x)
    rank = len(shape)
    flat = torch.arange(t.meta(x).numel()).reshape(shape).diagonal(offset, dim1 % rank, dim2 % rank)
    return t.b.node("Gather", t.reshape(t.value(x), [-1]), t.b.tensor(flat.contiguous()), axis=0)


@op("diagonal_scatter")
def diagonal_scatter(t: Translator, n: Node, x: Node, src: Node, offset: int = 0, dim1: int = 0, dim2: int = 1) -> str:
    places = torch.arange(t.meta(x).numel()).reshape(t.shape(x)).diagonal(offset, dim1, dim2)
    return _replaced(t, n, x, src, places)


def _strided(t: Translator, x: Node, size: Sequence[int], stride: Sequence[int], offset: int | None) -> torch.Tensor:
    """Positions of the elements of a strided view of a tensor that has its elements in order, and no others."""
    meta = t.meta(x)
    if not meta.is_contiguous() or meta.untyped_storage().nbytes() != meta.nbytes:
        raise t.refusal("as_strided of a tensor whose elements are not in order")
    return torch.arange(meta.numel()).as_strided(size, stride, offset or 0)


@op("as_strided_scatter")
def as_strided_scatter(
    t: Translator, n: Node, x: Node, src: Node, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> str:
    return _replaced(t, n, x, src, _strided(t, x, size, stride, storage_offset))


def _replaced(t: Translator, n: Node, x: Node, src: Node, places: torch.Tensor) -> str:
    """`x` with the elements at these places, which are counted in row-major order, replaced."""
    size, stride, value, all_of = list(places.shape), list(places.stride()), t.value(src, t.dtype(n)), t.meta(x).numel()
    if places.numel() == all_of and torch.equal(places.flatten().sort().values, torch.arange(all_of)):
        # All elements are replaced: a permutation of axes, and another shape.
        order = sorted(range(len(size)), key=lambda k: (-stride[k], k))
        moved = value if order == sorted(order) else t.b.node("Transpose", value, perm=order)
        return t.reshape(moved, t.shape(x))
    v = t.b.node(
        "ScatterElements", t.reshape(t.value(x), [-1]), t.b.tensor(places.flatten()), t.reshape(value, [-1]), axis=0
    )
    return t.reshape(v, t.shape(x))


@op("tril_indices", "triu_indices", seen="dtype")
def triangle_indices(t: Translator, n: Node, row: int, col: int, offset: int = 0) -> str:
    make = torch.tril_indices if "tril" in str(n.target) else torch.triu_indices
    return t.b.tensor(make(row, col, offset, dtype=t.dtype(n)))


@op("as_strided")
def as_strided(
    t: Translator, n: Node, x: Node, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> str:
    flat = _strided(t, x, size, stride, storage_offset)
    return t.b.node("Gather", t.reshape(t.value(x), [-1]), t.b.tensor(flat.contiguous()), axis=0)
