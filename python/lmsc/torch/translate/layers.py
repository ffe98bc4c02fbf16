"""Products, convolutions, pooling, normalizations, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from .builder import LMSC, MICROSOFT
from .movement import cut, pad, unpermuted
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


@op("mm.default", "bmm.default", "matmul.default")
def mm(t: Translator, n: Node, a: Node, b: Node) -> str:
    return _product(t, a, b)


@op("mv", "dot")
def mv(t: Translator, n: Node, a: Node, b: Node) -> str:
    return t.b.node("MatMul", t.value(a), t.value(b))


@op("addmm.default")
def addmm(t: Translator, n: Node, c: Node, a: Node, b: Node, *, beta: float = 1, alpha: float = 1) -> str:
    (x, left), (y, right) = _untransposed(t, a), _untransposed(t, b)
    return t.b.node(
        "Gemm", t.value(x), t.value(y), None if beta == 0 else t.value(c), transA=int(left), transB=int(right), alpha=float(alpha), beta=float(beta)
    )


@op("baddbmm.default")
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
        # The output padding must be less than the stride: the rest is less padding at the end.
        pads = [*pads[:rank], *(p - m for p, m in zip(pads[rank:], more))]
        extra = [e - m for e, m in zip(extra, more)]
    return t.b.node("ConvTranspose", *operands, pads=pads, output_padding=extra, **common)


def _each(values: Sequence[int], rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)


def _both(values: Sequence[int], rank: int) -> list[int]:
    return _each(values, rank) * 2


@op("convolution_backward", seen="bias_sizes")
def convolution_backward(
    t: Translator, n: Node, dy: Node, x: Node, w: Node, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int, output_mask: Sequence[bool],
) -> list[str]:  # fmt: skip
    rank = len(t.shape(x)) - 2
    wanted = _used(n, output_mask)
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
    t: Translator, n: Node, x: Node, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,), ceil_mode: bool = False,
) -> list[str]:  # fmt: skip
    rank = 3 if "3d" in str(n.target) else 2
    shape = t.shape(x)
    values, whole = t.b.node(
        "MaxPool", _planes(t, x, rank), outputs=2, dilations=_each(dilation, rank), ceil_mode=int(ceil_mode),
        **_windows(rank, kernel_size, stride, padding),
    )  # fmt: skip
    # PyTorch counts positions within a plane, ONNX within the whole tensor.
    places = t.b.node("Mod", whole, t.b.scalar(math.prod(shape[-rank:]), torch.int64))
    if len(shape) != rank + 2:
        values, places = (t.reshape(r, list(n.meta["val"][0].shape)) for r in (values, places))
    t.whole[places] = whole
    return [values, places]


@op("max_pool2d_with_indices_backward", seen="self kernel_size stride padding dilation ceil_mode")
def max_pool_backward(t: Translator, n: Node, dy: Node, indices: Node) -> str:
    """dy at the positions of the largest elements, which are counted within the whole tensor."""
    v, shape = t.value(indices), t.shape(n)
    whole = t.whole.get(v)
    if whole is None:
        count = math.prod(shape[:-2])
        first = torch.arange(count).reshape(*shape[:-2], 1, 1) * math.prod(shape[-2:])
        whole = t.b.node("Add", v, t.b.tensor(first))
    planes = [1] * (4 - len(shape)) + shape
    if len(shape) == 4:
        return t.b.node("MaxPoolGrad", t.value(dy), whole, domain=MICROSOFT, **_pooled(t, n.args[2:7]))
    small = [1] * (4 - len(shape)) + t.shape(dy)
    v = t.b.node(
        "MaxPoolGrad", t.reshape(t.value(dy), small), t.reshape(whole, small), domain=MICROSOFT, **_pooled(t, n.args[2:7])
    )
    t.b.declare(v, t.dtype(n), planes)
    return t.reshape(v, shape)


def _pooled(t: Translator, windows: Sequence[Any]) -> dict[str, Any]:
    kernel, stride, padding, _, ceil_mode = windows
    return {"ceil_mode": int(ceil_mode), **_windows(2, kernel, stride, padding)}


@op("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    t: Translator, n: Node, x: Node, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> str:  # fmt: skip
    rank = int(str(n.target).split("avg_pool")[1][0])
    windows, v = _windows(rank, kernel_size, stride, padding), _planes(t, x, rank)
    if divisor_override:
        # The sum of each window, with zeros beyond the edges.
        size, out = t.shape(x)[-rank:], t.shape(n)[-rank:]
        before, kernel = windows["pads"][:rank], windows["kernel_shape"]
        after = [(o - 1) * s + k - b - e for o, s, k, b, e in zip(out, windows["strides"], kernel, before, size)]
        for k, a in enumerate(after):
            v = cut(t, v, k + 2, 0, size[k] + a) if a < 0 else v
        after = [max(a, 0) for a in after]
        v = pad(t, v, [0, 0, *before], [0, 0, *after]) if any(before + after) else v
        v = t.b.node("AveragePool", v, kernel_shape=kernel, strides=windows["strides"], pads=[0] * (2 * rank))
        v = t.b.node("Mul", v, t.value(math.prod(kernel) / divisor_override, t.dtype(n)))
    else:
        v = t.b.node("AveragePool", v, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad), **windows)
    return v if len(t.shape(x)) == rank + 2 else t.reshape(v, t.shape(n))


@op("avg_pool2d_backward", seen="self")
def avg_pool_backward(
    t: Translator, n: Node, dy: Node, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    ceil_mode: bool, count_include_pad: bool, divisor_override: int | None,
) -> str:  # fmt: skip
    if divisor_override or len(t.shape(n)) != 4:
        raise t.refusal("avg_pool2d_backward with a divisor or without a batch")
    return t.b.node(
        "AveragePoolGrad", t.value(dy), domain=MICROSOFT, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
        **_windows(2, kernel_size, stride, padding),
    )  # fmt: skip


_NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def _scales(small: Sequence[int], large: Sequence[int]) -> list[float]:
    return [b / a for a, b in zip(small, large)]


@op("upsample_nearest2d.default", "upsample_nearest2d.vec", seen="output_size scales_h scales_w scale_factors")
def upsample_nearest2d(t: Translator, n: Node, x: Node) -> str:
    """Copies of elements. Only for whole factors: `gradients.py` takes others apart."""
    scales = t.b.tensor(torch.tensor(_scales(t.shape(x), t.shape(n)), dtype=torch.float32))
    return t.b.node("Resize", t.value(x), None, scales, **_NEAREST)


@op("upsample_nearest2d_backward", seen="output_size input_size scales_h scales_w")
def upsample_nearest2d_backward(t: Translator, n: Node, dy: Node) -> str:
    # The operator looks at the shape of the image only.
    size = t.shape(n)
    image = t.b.node("Expand", t.value(0.0, t.dtype(n)), t.b.ints(size))
    scales = t.b.tensor(torch.tensor(_scales(size, t.shape(dy)), dtype=torch.float32))
    return t.b.node("ResizeGrad", t.value(dy), image, None, scales, domain=MICROSOFT, **_NEAREST)


@op("native_layer_norm")
def native_layer_norm(
    t: Translator, n: Node, x: Node, normalized_shape: Sequence[int], w: Node | None, b: Node | None, eps: float
) -> list[str]:
    scale = _scale(t, x, w, normalized_shape)
    axis = len(t.shape(x)) - len(normalized_shape)
    bias = None if b is None else t.value(b)
    y, *moments = t.b.node("LayerNormalization", t.value(x), scale, bias, axis=axis, epsilon=float(eps), outputs=3)
    return [y, *(_narrowed(t, m, n.meta["val"][k].dtype) for k, m in enumerate(moments, 1))]


def _narrowed(t: Translator, value: str, d: torch.dtype) -> str:
    """A float32 that ONNX computes where PyTorch has another type. Gradients take it as it was."""
    if d == torch.float32:
        return value
    narrow = t.cast(value, d)
    t.whole[narrow] = value
    return narrow


def _scale(t: Translator, x: Node, w: Node | None, shape: Sequence[int]) -> str:
    return t.value(w) if w is not None else t.b.node("Expand", t.value(1.0, t.dtype(x)), t.b.ints(shape))


@op("native_layer_norm_backward", seen="bias output_mask")
def native_layer_norm_backward(
    t: Translator, n: Node, dy: Node, x: Node, normalized_shape: Sequence[int], mean: Node, rstd: Node, w: Node | None,
) -> list[str]:  # fmt: skip
    shape = normalized_shape
    axis = len(t.shape(x)) - len(shape)
    moments = [t.whole.get(t.value(m), t.value(m)) for m in (mean, rstd)]
    return t.b.node(
        "LayerNormalizationGrad", t.value(dy), t.value(x), _scale(t, x, w, shape), *moments, domain=MICROSOFT, axis=axis, outputs=3,
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
    if not training:
        raise t.refusal("_native_batch_norm_legit_functional with training=False")
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


@op("native_batch_norm_backward", seen="running_mean running_var output_mask")
def batch_norm_backward(
    t: Translator, n: Node, dy: Node, x: Node, w: Node | None, saved_mean: Node, saved_inverse: Node, train: bool, eps: float,
) -> list[str]:  # fmt: skip
    if not train:
        raise t.refusal("native_batch_norm_backward with train=False")
    scale = _scale(t, x, w, [t.shape(x)[1]])
    return t.b.node(
        "BatchNormalizationGrad", t.value(dy), t.value(x), scale, t.value(saved_mean), t.value(saved_inverse), domain=MICROSOFT,
        epsilon=float(eps), outputs=3,
    )  # fmt: skip


def _used(n: Node, wanted: Sequence[bool]) -> list[bool]:
    """Which of the results that are wanted something reads."""
    used = {u.args[1] for u in n.users if u.users}
    return [w and k in used for k, w in enumerate(wanted)]


@op("lmsc::attention")
def attention(
    t: Translator, n: Node, q: Node, k: Node, v: Node, mask: Node | None, *, is_causal: bool, scale: float
) -> list[str]:
    return t.b.node(
        "Attention", t.value(q), t.value(k), t.value(v), None if mask is None else t.value(mask), domain=LMSC,
        is_causal=int(is_causal), scale=float(scale), outputs=_used(n, [True] * 3),
    )  # fmt: skip


@op("lmsc::attention_backward")
def attention_backward(
    t: Translator, n: Node, dy: Node, q: Node, k: Node, v: Node, y: Node, maxima: Node, sums: Node, mask: Node | None, *,
    is_causal: bool, scale: float,
) -> list[str]:  # fmt: skip
    return t.b.node(
        "AttentionGrad", *(t.value(x) for x in (dy, q, k, v, y, maxima, sums)), None if mask is None else t.value(mask), domain=LMSC,
        is_causal=int(is_causal), scale=float(scale), outputs=_used(n, [True] * 3),
    )  # fmt: skip


def _recurrent(t: Translator, n: Node, name: str, operands: list[Node | None], hidden: Node, reverse: bool, used: Sequence[bool], **attributes: Any) -> list[str]:
    """A recurrent operator of one direction; the one that keeps no gates where nothing reads them."""
    names = [None if x is None else t.value(x) for x in operands]
    return t.b.node(
        name, *names, domain=MICROSOFT if name.endswith(("Training", "Grad")) else "", hidden_size=t.shape(hidden)[-1],
        direction="reverse" if reverse else "forward", outputs=used, **attributes,
    )  # fmt: skip


@op("lmsc::lstm")
def lstm(t: Translator, n: Node, x: Node, w: Node, r: Node, b: Node | None, h: Node, c: Node, *, reverse: bool) -> list[str]:
    used = _used(n, [True] * 5)
    if any(used[3:]):
        return _recurrent(t, n, "LSTMTraining", [x, w, r, b, None, h, c], h, reverse, used)
    return [*_recurrent(t, n, "LSTM", [x, w, r, b, None, h, c], h, reverse, used[:3]), "", ""]


@op("lmsc::lstm_backward")
def lstm_backward(
    t: Translator, n: Node, dy: Node | None, dh: Node | None, dc: Node | None, x: Node, w: Node, r: Node, b: Node | None, h: Node, c: Node,
    y: Node, cells: Node, gates: Node, *, reverse: bool,
) -> list[str]:  # fmt: skip
    # The bias is in the gates.
    operands = [x, w, r, None, h, c, y, cells, gates, dy, dh, dc]
    return _recurrent(t, n, "LSTMGrad", operands, h, reverse, _used(n, [True] * 6))


@op("lmsc::gru")
def gru(t: Translator, n: Node, x: Node, w: Node, r: Node, b: Node | None, h: Node, *, reverse: bool) -> list[str]:
    used = _used(n, [True] * 3)
    if used[2]:
        return _recurrent(t, n, "GRUTraining", [x, w, r, b, None, h], h, reverse, used, linear_before_reset=1)
    return [*_recurrent(t, n, "GRU", [x, w, r, b, None, h], h, reverse, used[:2], linear_before_reset=1), ""]


@op("lmsc::gru_backward")
def gru_backward(
    t: Translator, n: Node, dy: Node | None, dh: Node | None, x: Node, w: Node, r: Node, b: Node | None, h: Node, y: Node, gates: Node,
    *, reverse: bool,
) -> list[str]:  # fmt: skip
    operands = [x, w, r, b, None, h, y, gates, dy, dh]
    return _recurrent(t, n, "GRUGrad", operands, h, reverse, _used(n, [True] * 5), linear_before_reset=1)
