"""Operators that make, move and select elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from .builder import MICROSOFT
from .registry import Translator, op

SMALL = 1024
"""Results of up to this size that depend on nothing are written as constants."""


@op("full", "zeros", "ones", "scalar_tensor", "full_like", "zeros_like", "ones_like", "empty", "empty_like", "new_zeros", "new_full",
    "new_ones", "new_empty", "fill", "zero", "empty_strided", "new_empty_strided")  # fmt: skip
def full(t: Translator, n: Node, *args: Any, **_: Any) -> str:
    name, d = str(n.target), t.dtype(n)
    value: Any = 1 if "ones" in name else 0
    if "scalar_tensor" in name:
        value = args[0]
    elif "full" in name or "fill" in name:
        value = args[2] if "new_full" in name else args[1]
    shape = t.shape(n)
    if isinstance(value, Node):
        return t.b.node("Expand", t.value(value, d), t.b.ints(shape))
    if not shape:
        return t.value(value, d)
    size = 1
    for s in shape:
        size *= s
    if size == 1:
        return t.b.tensor(torch.full(shape, value, dtype=d))
    return t.b.node("Expand", t.value(value, d), t.b.ints(shape))


@op("arange")
def arange(t: Translator, n: Node, *args: Any, **_: Any) -> str:
    return t.b.tensor(torch.arange(*args[:3], dtype=t.dtype(n)))


@op("eye")
def eye(t: Translator, n: Node, *args: Any, **_: Any) -> str:
    return t.b.tensor(torch.eye(*args[:2], dtype=t.dtype(n)))


@op("linspace")
def linspace(t: Translator, n: Node, start: float, end: float, steps: int, **_: Any) -> str:
    return t.b.tensor(torch.linspace(start, end, steps, dtype=t.dtype(n)))


@op("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "_reshape_copy", "flatten", "view_copy")
def view(t: Translator, n: Node, x: Node, *_: Any, **__: Any) -> str:
    return t.value(x) if t.shape(x) == t.shape(n) else t.reshape(t.value(x), t.shape(n))


@op("permute", "t", "transpose")
def permute(t: Translator, n: Node, x: Node, *args: Any) -> str:
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
    rank = n.args[0].meta["val"].dim()
    perm = list(range(rank))
    name = str(n.target)
    if "permute" in name:
        return [a % rank for a in n.args[1]]
    a, b = (n.args[1] % rank, n.args[2] % rank) if "transpose" in name else (0, rank - 1)
    if rank > 1:
        perm[a], perm[b] = perm[b], perm[a]
    return perm


@op("expand", "broadcast_in_dim")
def expand(t: Translator, n: Node, x: Node, *_: Any, **__: Any) -> str:
    return t.value(x) if t.shape(x) == t.shape(n) else t.b.node("Expand", t.value(x), t.b.ints(t.shape(n)))


@op("repeat")
def repeat(t: Translator, n: Node, x: Node, times: Sequence[int]) -> str:
    shape = [1] * (len(times) - len(t.shape(x))) + t.shape(x)
    v = t.value(x) if shape == t.shape(x) else t.reshape(t.value(x), shape)
    return t.b.node("Tile", v, t.b.ints(times))


@op("cat")
def cat(t: Translator, n: Node, tensors: Sequence[Node], dim: int = 0) -> str:
    parts = [p for p in tensors if t.shape(p) != [0]]
    return t.b.node("Concat", *(t.value(p, t.dtype(n)) for p in parts), axis=dim % len(t.shape(n)))


@op("stack")
def stack(t: Translator, n: Node, tensors: Sequence[Node], dim: int = 0) -> str:
    rank = len(t.shape(n))
    dim %= rank
    parts = []
    for p in tensors:
        shape = t.shape(p)
        parts.append(t.reshape(t.value(p, t.dtype(n)), shape[:dim] + [1] + shape[dim:]))
    return t.b.node("Concat", *parts, axis=dim)


@op("split_with_sizes", "split", "unbind", "chunk")
def split(t: Translator, n: Node, x: Node, *args: Any) -> list[str]:
    results, name = n.meta["val"], str(n.target)
    dim = (args[0] if "unbind" in name else args[1]) if len(args) > (0 if "unbind" in name else 1) else 0
    dim %= len(t.shape(x))
    sizes = [1] * len(results) if "unbind" in name else [int(r.shape[dim]) for r in results]
    if len(sizes) == 1:
        parts = [t.value(x)]
    else:
        parts = t.b.node("Split", t.value(x), t.b.ints(sizes), axis=dim, outputs=len(sizes))
    return [t.reshape(p, list(r.shape)) for p, r in zip(parts, results)] if "unbind" in name else parts


@op("select")
def select(t: Translator, n: Node, x: Node, dim: int, index: int) -> str:
    return t.b.node("Gather", t.value(x), t.b.scalar(index % t.shape(x)[dim], torch.int64), axis=dim % len(t.shape(x)))


def bounds(size: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Bounds of a slice as they are meant, within 0 and `size`."""
    first, last, _ = slice(start, end).indices(size)
    return first, max(first, last)


@op("slice")
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
def slice_backward(t: Translator, n: Node, dy: Node, sizes: Sequence[int], dim: int, start: int, end: int, step: int) -> str:
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
def select_backward(t: Translator, n: Node, dy: Node, sizes: Sequence[int], dim: int, index: int) -> str:
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


@op("constant_pad_nd", "pad", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad2d")
def constant_pad_nd(t: Translator, n: Node, x: Node, pads: Sequence[int], value: float = 0) -> str:
    rank, name = len(t.shape(x)), str(n.target)
    before, after = [0] * rank, [0] * rank
    for k in range(len(pads) // 2):
        before[rank - 1 - k], after[rank - 1 - k] = pads[2 * k], pads[2 * k + 1]
    v, shape = t.value(x), t.shape(x)
    for k in range(rank):
        if before[k] < 0 or after[k] < 0:
            v = cut(t, v, k, max(-before[k], 0), shape[k] - max(-after[k], 0))
    before, after = [max(p, 0) for p in before], [max(p, 0) for p in after]
    mode = "reflect" if "reflection" in name else "edge" if "replication" in name else None
    fill = t.value(value, t.dtype(n)) if value and mode is None else None
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


@op("embedding")
def embedding(t: Translator, n: Node, w: Node, indices: Node, *_: Any) -> str:
    return t.b.node("Gather", t.value(w), t.value(indices), axis=0)


@op("embedding_dense_backward")
def embedding_dense_backward(t: Translator, n: Node, dy: Node, indices: Node, rows: int, padding: int, by_frequency: bool) -> str:
    v = t.value(dy)
    if padding >= 0:
        other = t.b.node("Not", t.b.node("Equal", t.value(indices), t.value(padding, t.dtype(indices))))
        shape = [*t.shape(indices), 1]
        v = t.b.node("Mul", v, t.cast(t.reshape(other, shape), t.dtype(dy)))
    return t.b.node("GatherGrad", t.b.ints(t.shape(n)), t.value(indices), v, domain=MICROSOFT, axis=0)


@op("index_select")
def index_select(t: Translator, n: Node, x: Node, dim: int, index: Node) -> str:
    return t.b.node("Gather", t.value(x), t.value(index), axis=dim % len(t.shape(x)))


@op("gather")
def gather(t: Translator, n: Node, x: Node, dim: int, index: Node, **_: Any) -> str:
    return t.b.node("GatherElements", t.value(x), t.value(index), axis=dim % max(len(t.shape(x)), 1))


@op("scatter", "scatter_add", "scatter_reduce")
def scatter(
    t: Translator, n: Node, x: Node, dim: int, index: Node, src: Any, reduce: str | None = None, *, include_self: bool = True
) -> str:
    name = str(n.target)
    reduction = "add" if "scatter_add" in name else {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}.get(reduce or "")
    shape, d = t.shape(index), t.dtype(n)
    if isinstance(src, Node) and t.shape(src):
        v = t.value(src, d)
        for k, size in enumerate(shape):
            if t.shape(src)[k] != size:
                v = cut(t, v, k, 0, size)
    else:
        v = t.b.node("Expand", t.value(src, d), t.b.ints(shape))
    return t.b.node("ScatterElements", t.value(x), t.value(index), v, axis=dim % max(len(t.shape(x)), 1), reduction=reduction)


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


@op("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(
    t: Translator, n: Node, x: Node, indices: Sequence[Node | None], values: Node, accumulate: bool = False, *_: Any
) -> str:
    d = t.dtype(n)
    if len(indices) == 1 and indices[0] is not None and t.dtype(indices[0]) == torch.bool:
        mask, rank = indices[0], len(t.shape(x))
        m = t.reshape(t.value(mask), t.shape(mask) + [1] * (rank - len(t.shape(mask))))
        new = t.value(values, d)
        return t.b.node("Where", m, t.b.node("Add", t.value(x), new) if accumulate else new, t.value(x))
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


@op("index_add")
def index_add(t: Translator, n: Node, x: Node, dim: int, rows: Node, src: Node, *, alpha: float = 1) -> str:
    rank = len(t.shape(x))
    dim %= rank
    v = t.reshape(t.value(rows, torch.int64), [-1 if k == dim else 1 for k in range(rank)])
    v = t.b.node("Expand", v, t.b.ints(t.shape(src)))
    s = t.value(src) if alpha == 1 else t.b.node("Mul", t.value(src), t.value(alpha, t.dtype(n)))
    return t.b.node("ScatterElements", t.value(x), v, s, axis=dim, reduction="add")


@op("diagonal")
def diagonal(t: Translator, n: Node, x: Node, offset: int = 0, dim1: int = 0, dim2: int = 1) -> str:
    shape = t.shape(x)
    rank = len(shape)
    flat = torch.arange(t.meta(x).numel()).reshape(shape).diagonal(offset, dim1 % rank, dim2 % rank)
    return t.b.node("Gather", t.reshape(t.value(x), [-1]), t.b.tensor(flat.contiguous()), axis=0)


@op("as_strided_scatter", "diagonal_scatter")
def strided_scatter(t: Translator, n: Node, x: Node, src: Node, *where: Any) -> str:
    flat = torch.arange(t.meta(x).numel())
    kept = flat.as_strided(where[0], where[1], where[2] if len(where) > 2 and where[2] else 0) if "as_strided" in str(n.target) else flat.reshape(
        t.shape(x)
    ).diagonal(*where)  # fmt: skip
    size, stride = list(kept.shape), list(kept.stride())
    value = t.value(src, t.dtype(n))
    if kept.numel() == flat.numel() and torch.equal(kept.flatten().sort().values, flat):
        # All elements are replaced: a permutation of axes, and another shape.
        order = sorted(range(len(size)), key=lambda k: (-stride[k], k))
        moved = value if order == sorted(order) else t.b.node("Transpose", value, perm=order)
        return t.reshape(moved, t.shape(x))
    v = t.b.node(
        "ScatterElements", t.reshape(t.value(x), [-1]), t.b.tensor(kept.flatten()), t.reshape(value, [-1]), axis=0
    )
    return t.reshape(v, t.shape(x))


@op("tril_indices", "triu_indices")
def triangle_indices(t: Translator, n: Node, rows: int, columns: int, offset: int = 0, **_: Any) -> str:
    make = torch.tril_indices if "tril" in str(n.target) else torch.triu_indices
    return t.b.tensor(make(rows, columns, offset, dtype=t.dtype(n)))


@op("as_strided")
def as_strided(t: Translator, n: Node, x: Node, size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> str:
    flat = torch.arange(t.meta(x).numel()).as_strided(size, stride, offset or 0)
    return t.b.node("Gather", t.reshape(t.value(x), [-1]), t.b.tensor(flat.contiguous()), axis=0)
