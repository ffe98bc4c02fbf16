"""Products, convolutions, pooling, normalizations, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from .builder import MICROSOFT
from .movement import unpermuted
from .registry import Translator, op


def _untransposed(t: Translator, x: Node) -> tuple[Node, bool]:
    """The operand of which `x` is the transpose of the last two axes, if it is one, and whether it is."""
    source, perm = unpermuted(x)
    rank = len(perm)
    if perm == list(range(rank)):
        return source, False
    if rank >= 2 and perm == [*range(rank - 2), rank - 1, rank - 2]:
        return source, True
    return x, False


def _product(t: Translator, a: Node, b: Node) -> str:
    """A product of matrices, of which transposes are part where there is an operator for that."""
    (x, left), (y, right) = _untransposed(t, a), _untransposed(t, b)
    if not left and not right:
        return t.b.node("MatMul", t.value(x), t.value(y))
    if len(t.shape(a)) == 2:
        return t.b.node("Gemm", t.value(x), t.value(y), transA=int(left), transB=int(right))
    if t.compact:
        return t.b.node("FusedMatMul", t.value(x), t.value(y), domain=MICROSOFT, transA=int(left), transB=int(right))
    return t.b.node("MatMul", t.value(a), t.value(b))


@op("mm", "bmm", "matmul")
def mm(t: Translator, n: Node, a: Node, b: Node, **_: Any) -> str:
    return _product(t, a, b)


@op("mv", "dot")
def mv(t: Translator, n: Node, a: Node, b: Node) -> str:
    return t.b.node("MatMul", t.value(a), t.value(b))


@op("addmm")
def addmm(t: Translator, n: Node, c: Node, a: Node, b: Node, *, beta: float = 1, alpha: float = 1) -> str:
    (x, left), (y, right) = _untransposed(t, a), _untransposed(t, b)
    return t.b.node(
        "Gemm", t.value(x), t.value(y), t.value(c), transA=int(left), transB=int(right), alpha=float(alpha), beta=float(beta)
    )


@op("baddbmm")
def baddbmm(t: Translator, n: Node, c: Node, a: Node, b: Node, *, beta: float = 1, alpha: float = 1) -> str:
    d, v = t.dtype(n), _product(t, a, b)
    v = v if alpha == 1 else t.b.node("Mul", v, t.value(float(alpha), d))
    if beta == 0:
        return v
    bias = t.value(c) if beta == 1 else t.b.node("Mul", t.value(c), t.value(float(beta), d))
    return t.b.node("Add", v, bias)


@op("convolution")
def convolution(
    t: Translator, n: Node, x: Node, w: Node, b: Node | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
) -> str:  # fmt: skip
    operands = (t.value(x), t.value(w), None if b is None else t.value(b))
    rank = len(t.shape(x)) - 2
    pads = _both(padding, rank)
    common = {"kernel_shape": t.shape(w)[2:], "strides": _each(stride, rank), "dilations": _each(dilation, rank), "group": groups}
    if not transposed:
        return t.b.node("Conv", *operands, pads=pads, **common)
    extra = _each(output_padding, rank)
    more = [max(e - (s - 1), 0) if s > 0 else 0 for e, s in zip(extra, common["strides"])]
    if any(more):
        # What is added must be less than the stride: the rest is less padding at the end.
        pads = [*pads[:rank], *(p - m for p, m in zip(pads[rank:], more))]
        extra = [e - m for e, m in zip(extra, more)]
    return t.b.node("ConvTranspose", *operands, pads=pads, output_padding=extra, **common)


def _each(values: Sequence[int], rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)


def _both(values: Sequence[int], rank: int) -> list[int]:
    return _each(values, rank) * 2


@op("convolution_backward")
def convolution_backward(
    t: Translator, n: Node, dy: Node, x: Node, w: Node, bias_sizes: Any, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int, mask: Sequence[bool],
) -> list[str]:  # fmt: skip
    rank = len(t.shape(x)) - 2
    used = {u.args[1] for u in n.users if u.users}
    wanted = [m and k in used for k, m in enumerate(mask)]
    common = {
        "kernel_shape": t.shape(w)[2:], "strides": _each(stride, rank), "dilations": _each(dilation, rank), "group": groups,
        "pads": _both(padding, rank), "domain": MICROSOFT, "outputs": wanted,
    }  # fmt: skip
    if transposed and any(output_padding):
        common["output_padding"] = _each(output_padding, rank)
    return t.b.node("ConvTransposeGrad" if transposed else "ConvGrad", t.value(dy), t.value(x), t.value(w), **common)


def _planes(t: Translator, x: Node, rank: int) -> str:
    """An image with a batch."""
    shape = t.shape(x)
    return t.value(x) if len(shape) == rank + 2 else t.reshape(t.value(x), [1, *shape])


def _windows(rank: int, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int]) -> dict[str, Any]:
    return {"kernel_shape": _each(kernel, rank), "strides": _each(stride or kernel, rank), "pads": _both(padding, rank)}


@op("max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(
    t: Translator, n: Node, x: Node, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,), ceil_mode: bool = False,
) -> list[str]:  # fmt: skip
    rank = 3 if "3d" in str(n.target) else 2
    shape = t.shape(x)
    results = t.b.node(
        "MaxPool", _planes(t, x, rank), outputs=2, dilations=_each(dilation, rank), ceil_mode=int(ceil_mode),
        **_windows(rank, kernel, stride, padding),
    )  # fmt: skip
    whole = [u for u in n.users if u.args[1] == 1]
    gradients = all("max_pool" in str(v.target) and "backward" in str(v.target) for u in whole for v in u.users)
    if not gradients or not t.compact:
        # PyTorch counts positions within a plane, ONNX within the whole tensor.
        plane = 1
        for s in shape[-rank:]:
            plane *= s
        results[1] = t.b.node("Mod", results[1], t.b.scalar(plane, torch.int64))
    if len(shape) != rank + 2:
        results = [t.reshape(r, list(n.meta["val"][0].shape)) for r in results]
    return results


@op("max_pool2d_with_indices_backward")
def max_pool_backward(
    t: Translator, n: Node, dy: Node, x: Node, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], ceil_mode: bool, indices: Node,
) -> str:  # fmt: skip
    return t.b.node(
        "MaxPoolGrad",
        t.value(dy),
        t.value(indices),
        domain=MICROSOFT,
        ceil_mode=int(ceil_mode),
        **_windows(2, kernel, stride, padding),
    )


@op("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    t: Translator, n: Node, x: Node, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
    ceil_mode: bool = False, count_include_pad: bool = True, divisor: int | None = None,
) -> str:  # fmt: skip
    rank = int(str(n.target).split("avg_pool")[1][0])
    v = t.b.node(
        "AveragePool", _planes(t, x, rank), ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
        **_windows(rank, kernel, stride, padding),
    )  # fmt: skip
    if divisor:
        size = 1
        for k in _each(kernel, rank):
            size *= k
        v = t.b.node("Mul", v, t.value(size / divisor, t.dtype(n)))
    return v if len(t.shape(x)) == rank + 2 else t.reshape(v, t.shape(n))


@op("avg_pool2d_backward")
def avg_pool_backward(
    t: Translator, n: Node, dy: Node, x: Node, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    ceil_mode: bool, count_include_pad: bool, divisor: int | None,
) -> str:  # fmt: skip
    v = t.value(dy)
    if divisor:
        v = t.b.node("Mul", v, t.value(kernel[0] * kernel[-1] / divisor, t.dtype(n)))
    return t.b.node(
        "AveragePoolGrad", v, domain=MICROSOFT, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
        **_windows(2, kernel, stride, padding),
    )  # fmt: skip


_NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def _scales(small: Sequence[int], large: Sequence[int]) -> list[float]:
    return [b / a for a, b in zip(small, large)]


@op("upsample_nearest2d")
def upsample_nearest2d(t: Translator, n: Node, x: Node, *_: Any, **__: Any) -> str:
    scales = t.b.tensor(torch.tensor(_scales(t.shape(x), t.shape(n)), dtype=torch.float32))
    return t.b.node("Resize", t.value(x), None, scales, **_NEAREST)


@op("upsample_nearest2d_backward")
def upsample_nearest2d_backward(t: Translator, n: Node, dy: Node, out: Sequence[int], size: Sequence[int], *_: Any) -> str:
    # The operator looks at the shape of the image only.
    image = t.b.node("Expand", t.value(0.0, t.dtype(n)), t.b.ints(size))
    scales = t.b.tensor(torch.tensor(_scales(size, t.shape(dy)), dtype=torch.float32))
    return t.b.node("ResizeGrad", t.value(dy), image, None, scales, domain=MICROSOFT, **_NEAREST)


@op("native_layer_norm")
def native_layer_norm(
    t: Translator, n: Node, x: Node, shape: Sequence[int], w: Node | None, b: Node | None, eps: float
) -> list[str]:
    scale = _scale(t, x, w, shape)
    axis = len(t.shape(x)) - len(shape)
    bias = None if b is None else t.value(b)
    return t.b.node("LayerNormalization", t.value(x), scale, bias, axis=axis, epsilon=float(eps), outputs=3)


def _scale(t: Translator, x: Node, w: Node | None, shape: Sequence[int]) -> str:
    return t.value(w) if w is not None else t.b.node("Expand", t.value(1.0, t.dtype(x)), t.b.ints(shape))


@op("native_layer_norm_backward")
def native_layer_norm_backward(
    t: Translator, n: Node, dy: Node, x: Node, shape: Sequence[int], mean: Node, rstd: Node, w: Node | None, b: Node | None,
    mask: Sequence[bool],
) -> list[str]:  # fmt: skip
    axis = len(t.shape(x)) - len(shape)
    return t.b.node(
        "LayerNormalizationGrad", t.value(dy), t.value(x), _scale(t, x, w, shape), t.value(mean), t.value(rstd), domain=MICROSOFT,
        axis=axis, outputs=3,
    )  # fmt: skip


@op("_native_batch_norm_legit_functional")
def batch_norm(
    t: Translator,
    n: Node,
    x: Node,
    w: Node | None,
    b: Node | None,
    mean: Node,
    var: Node,
    training: bool,
    momentum: float,
    eps: float,
) -> list[str]:
    shape, d, keep = t.shape(x), t.dtype(x), 1 - float(momentum)
    channels, count = shape[1], t.meta(x).numel() // shape[1]
    one, zero = (t.b.node("Expand", t.value(v, d), t.b.ints([channels])) for v in (1.0, 0.0))
    y, _, _, saved_mean, inverse = t.b.node(
        "BatchNormInternal", t.value(x), one if w is None else t.value(w), zero if b is None else t.value(b), domain=MICROSOFT,
        epsilon=float(eps), training_mode=1, outputs=[True, False, False, True, True],
    )  # fmt: skip
    d = t.dtype(mean)

    def average(old: Node, new: str) -> str:
        return t.b.node("Add", t.b.node("Mul", t.value(old), t.value(keep, d)), new)

    # PyTorch keeps the variance of the population that the batch is a sample of: n / (n - 1) times that of the batch.
    share = (1 - keep) * count / max(count - 1, 1)
    variance = t.b.node(
        "Sub", t.b.node("Div", t.value(share, d), t.b.node("Mul", inverse, inverse)), t.value(share * float(eps), d)
    )
    new_mean = average(mean, t.b.node("Mul", saved_mean, t.value(1 - keep, d)))
    return [y, saved_mean, inverse, new_mean, average(var, variance)]


@op("native_batch_norm_backward")
def batch_norm_backward(
    t: Translator, n: Node, dy: Node, x: Node, w: Node | None, mean: Any, var: Any, saved_mean: Node, saved_inverse: Node,
    training: bool, eps: float, mask: Sequence[bool],
) -> list[str]:  # fmt: skip
    scale = _scale(t, x, w, [t.shape(x)[1]])
    return t.b.node(
        "BatchNormalizationGrad", t.value(dy), t.value(x), scale, t.value(saved_mean), t.value(saved_inverse), domain=MICROSOFT,
        epsilon=float(eps), outputs=3,
    )  # fmt: skip
