"""Which of PyTorch's operators are replaced by others before they are written as ONNX, and by which.

PyTorch's own decompositions do most. Here is what they lack, and which operators stay whole because there is one operator for
them: of ONNX, or of `com.microsoft` where the step is written compactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._decomp import core_aten_decompositions, get_decompositions

aten = torch.ops.aten

_WHOLE = (  # in every form
    aten._to_copy.default,
    aten.native_layer_norm.default,
    aten.slice_backward.default,
    aten.select_backward.default,
    aten.addmm.default,
    aten.native_dropout.default,
    aten.native_dropout_backward.default,
    aten.silu.default,
    aten.hardswish.default,
    aten.hardsigmoid.default,
    aten.softplus.default,
    aten.mish.default,
    aten.baddbmm.default,
    aten.stack.default,
)
_WHOLE_COMPACT = (
    aten._softmax_backward_data.default,
    aten._log_softmax_backward_data.default,
    aten.nll_loss_backward.default,
    aten.nll_loss2d_backward.default,
    aten.native_layer_norm_backward.default,
    aten.gelu_backward.default,
    aten.silu_backward.default,
    aten.threshold_backward.default,
    aten.sigmoid_backward.default,
    aten.tanh_backward.default,
    aten.leaky_relu_backward.default,
    aten.embedding_dense_backward.default,
    aten._native_batch_norm_legit_functional.default,
    aten.max_pool2d_with_indices_backward.default,
    aten.avg_pool2d_backward.default,
    aten.upsample_nearest2d.default,
    aten.upsample_nearest2d.vec,
    aten.upsample_nearest2d_backward.default,
)
_EXTRA = (
    aten.native_batch_norm, aten._native_batch_norm_legit_functional, aten._native_batch_norm_legit, aten.native_batch_norm_backward, aten.native_group_norm,
    aten.native_group_norm_backward, aten.upsample_bilinear2d, aten.upsample_bicubic2d, aten.grid_sampler_2d,
    aten.embedding_dense_backward, aten.logcumsumexp, aten.reflection_pad2d_backward, aten.glu, aten.glu_backward,
    aten._prelu_kernel, aten._prelu_kernel_backward, aten.mse_loss, aten.mse_loss_backward, aten.huber_loss,
    aten.huber_loss_backward, aten.smooth_l1_loss, aten.smooth_l1_loss_backward, aten.soft_margin_loss,
    aten.soft_margin_loss_backward, aten.unfold_backward, aten.im2col, aten.col2im, aten.softplus_backward,
    aten.hardswish_backward, aten.hardsigmoid_backward, aten.hardtanh_backward, aten.elu_backward, aten.mish_backward,
    aten.log_sigmoid_forward, aten.log_sigmoid_backward, aten.nll_loss_forward, aten.nll_loss_backward, aten.nll_loss2d_forward,
    aten.nll_loss2d_backward, aten.binary_cross_entropy, aten.binary_cross_entropy_backward,
    aten.binary_cross_entropy_with_logits, aten.upsample_nearest2d, aten.upsample_nearest1d, aten.upsample_nearest3d,
    aten.upsample_nearest2d_backward, aten.native_layer_norm_backward, aten.max_pool2d_with_indices_backward,
    aten._adaptive_avg_pool2d, aten.std, aten.std_mean, aten.linalg_vector_norm, aten.norm, aten.logsumexp, aten.trace,
    aten._fused_rms_norm, aten._fused_rms_norm_backward,
)  # fmt: skip


def convolution_backward(
    dy: Tensor, x: Tensor, w: Tensor, bias_sizes: Any, stride: list[int], padding: list[int], dilation: list[int],
    transposed: bool, output_padding: list[int], groups: int, mask: list[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # fmt: skip
    """Gradients of a convolution as convolutions. Groups of the gradient of the weights are folded into the batch."""
    rank = x.dim() - 2
    zero, space = [0] * rank, list(range(2, rank + 2))
    dx = dw = db = None
    if mask[0] and transposed:
        dx = aten.convolution(dy, w, None, stride, padding, dilation, False, zero, groups)
    elif mask[0]:
        reach = [(dy.shape[k] - 1) * stride[k - 2] - 2 * padding[k - 2] + dilation[k - 2] * (w.shape[k] - 1) + 1 for k in space]
        short = [x.shape[k] - r for k, r in zip(space, reach)]
        dx = aten.convolution(dy, w, None, stride, padding, dilation, True, short, groups)
    if mask[1]:
        image, kernel = (dy, x) if transposed else (x, dy)
        n, after = image.shape[0], [k + 1 for k in space]
        c, d = image.shape[1] // groups, kernel.shape[1]
        a = image.reshape(n, groups, c, *image.shape[2:]).permute(2, 1, 0, *after).reshape(c, groups * n, *image.shape[2:])
        b = kernel.permute(1, 0, *space)
        dw = aten.convolution(a, b.reshape(d, n, *kernel.shape[2:]), None, dilation, padding, stride, False, zero, groups)
        for k in space:
            if dw.shape[k] != w.shape[k]:
                dw = dw.narrow(k, 0, w.shape[k])
        dw = dw.permute(1, 0, *space)
    if mask[2]:
        db = dy.sum([0, *space])
    return dx, dw, db


def var_mean(
    x: Tensor, dim: list[int] | None = None, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Variance and mean along `dim`."""
    dim = list(range(x.dim())) if not dim else list(dim)
    count = 1
    for k in dim:
        count *= x.shape[k]
    centre = x.mean(dim, True)
    distance = x - centre
    divisor = max(count - (1 if correction is None else correction), 0)
    return (distance * distance).sum(dim, keepdim) / divisor, centre if keepdim else x.mean(dim)


def max_pool_backward(
    dy: Tensor, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Tensor
) -> Tensor:
    """dy added up where the largest elements were."""
    n, c = x.shape[:2]
    flat = (n, c, dy.shape[2:].numel())
    zero = dy.new_zeros((n, c, x.shape[2:].numel()))
    return zero.scatter_add(-1, indices.reshape(flat), dy.reshape(flat)).reshape(x.shape)


def avg_pool2d_backward(
    dy: Tensor,
    x: Tensor,
    kernel: list[int],
    stride: list[int],
    padding: list[int],
    ceil_mode: bool,
    include_pad: bool,
    divisor: Any,
) -> Tensor:
    """A transposed convolution with a window of equal weights."""
    if ceil_mode or (any(padding) and not include_pad):
        return NotImplemented
    n, c, h, w = dy.shape
    stride = stride or kernel
    reach = [(dy.shape[k] - 1) * stride[k - 2] - 2 * padding[k - 2] + kernel[k - 2] for k in (2, 3)]
    short = [x.shape[k] - r for k, r in zip((2, 3), reach)]
    ones = dy.new_full((1, 1, *kernel), 1.0 / (divisor or kernel[0] * kernel[1]))
    return aten.convolution(dy.reshape(n * c, 1, h, w), ones, None, stride, padding, [1, 1], True, short, 1).reshape(x.shape)


def adaptive_avg_pool2d_backward(dy: Tensor, x: Tensor) -> Tensor:
    """Each gradient spread over its window. Windows that overlap are summed by a product with the matrix of each axis."""
    h, w = dy.shape[-2:]
    if x.shape[-2] % h == 0 and x.shape[-1] % w == 0:
        kh, kw = x.shape[-2] // h, x.shape[-1] // w
        lead = list(x.shape[:-2])
        spread = (dy / float(kh * kw)).reshape(*lead, h, 1, w, 1).expand(*lead, h, kh, w, kw)
        return spread.reshape(x.shape)

    def windows(out: int, size: int) -> Tensor:
        rows = []
        for k in range(out):
            start, end = k * size // out, -(-(k + 1) * size // out)
            rows.append([1.0 / (end - start) if start <= j < end else 0.0 for j in range(size)])
        return torch.tensor(rows, dtype=dy.dtype)

    return windows(h, x.shape[-2]).T @ dy @ windows(w, x.shape[-1])


def upsample_nearest2d_backward(
    dy: Tensor, out_size: list[int], in_size: list[int], scale_h: float | None = None, scale_w: float | None = None
) -> Tensor:
    """Sums over the positions that were copied."""
    n, c, h, w = in_size
    if out_size[0] % h or out_size[1] % w:
        return NotImplemented
    return dy.reshape(n, c, h, out_size[0] // h, w, out_size[1] // w).sum([3, 5])


def copy(dst: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """`src` with the type and the shape of `dst`."""
    return aten.expand.default(src if src.dtype == dst.dtype else src.to(dst.dtype), list(dst.shape))


def squeeze_dims(x: Tensor, dims: list[int]) -> Tensor:
    """A reshape."""
    drop = {d % x.dim() for d in dims} if x.dim() else set()
    return aten.view.default(x, [s for k, s in enumerate(x.shape) if k not in drop or s != 1])


def _zeros(size: Any, *_: Any, dtype: torch.dtype | None = None, **__: Any) -> Tensor:
    """What is empty is zero, so that a step is deterministic."""
    return aten.full.default(list(size), 0, dtype=dtype or torch.get_default_dtype())


def tracing_table() -> dict[Any, Callable[..., Any]]:
    """For the first trace: operators that change an operand without saying so in their schema."""

    def native_batch_norm(x: Any, w: Any, b: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float) -> Any:
        if mean is None:
            return aten._native_batch_norm_legit.no_stats(x, w, b, training, momentum, eps)
        return aten._native_batch_norm_legit.default(x, w, b, mean, var, training, momentum, eps)

    def copy_strided(x: Tensor, stride: Any) -> Tensor:
        return x.clone()

    table: dict[Any, Callable[..., Any]] = {aten.native_batch_norm.default: native_batch_norm}
    if hasattr(torch.ops.prims, "copy_strided"):
        table[torch.ops.prims.copy_strided.default] = copy_strided
    return table


def lowering_table(compact: bool) -> dict[Any, Callable[..., Any]]:
    """For the second trace: from PyTorch's operators to those that the translation knows."""
    table: dict[Any, Callable[..., Any]] = {**core_aten_decompositions(), **get_decompositions(list(_EXTRA))}
    batch_norm_backward = table[aten.native_batch_norm_backward.default]

    def native_batch_norm_backward(*a: Any) -> Any:
        training = a[7]
        return NotImplemented if compact and training else batch_norm_backward(*a)

    batch_norm = table[aten._native_batch_norm_legit_functional.default]

    def native_batch_norm(*a: Any) -> Any:
        training = a[5]
        return NotImplemented if compact and training else batch_norm(*a)

    table.update({
        aten.max_pool2d_with_indices_backward.default: max_pool_backward,
        aten.max_pool3d_with_indices_backward.default: max_pool_backward,
        aten.avg_pool2d_backward.default: avg_pool2d_backward,
        aten._adaptive_avg_pool2d_backward.default: adaptive_avg_pool2d_backward,
        aten.upsample_nearest2d_backward.default: upsample_nearest2d_backward,
        aten.var_mean.correction: var_mean,
        aten.var.correction: lambda *a, **k: var_mean(*a, **k)[0],
        aten.copy.default: copy,
        aten.squeeze.dims: squeeze_dims,
        aten.empty.memory_format: _zeros,
        aten.empty_permuted.default: lambda size, order, **k: _zeros(size, **k),
        aten.empty_strided.default: lambda size, stride, **k: _zeros(size, **k),
    })  # fmt: skip
    for op in _WHOLE + (_WHOLE_COMPACT if compact else ()):
        table.pop(op, None)
    if not compact:
        table[aten.convolution_backward.default] = convolution_backward
    table[aten.native_batch_norm_backward.default] = native_batch_norm_backward
    table[aten._native_batch_norm_legit_functional.default] = native_batch_norm
    return table
