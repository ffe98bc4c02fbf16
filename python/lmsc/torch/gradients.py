"""Which of PyTorch's operators are replaced by others before they are written as ONNX, and by which.

PyTorch's own decompositions do most. Here are the missing ones, and the operators that stay whole because there is one operator for
them: of ONNX, or of `com.microsoft` where the step is written compactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._prims_common import is_non_overlapping_and_dense_or_false
from torch._decomp import core_aten_decompositions, get_decompositions

from .errors import CaptureError

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
    aten.rsub.Tensor,
    aten.rsub.Scalar,
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
    aten._native_batch_norm_legit_functional.default,
    aten.max_pool2d_with_indices_backward.default,
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
    aten._fused_rms_norm, aten._fused_rms_norm_backward, aten._upsample_nearest_exact1d, aten._upsample_nearest_exact2d,
    aten._upsample_nearest_exact3d, aten.upsample_trilinear3d, aten.upsample_linear1d, aten.max_unpool2d, aten.max_unpool3d,
)  # fmt: skip


_UPSAMPLED = {
    "nearest": ("nearest1d", "nearest2d", "nearest3d"), "exact": ("nearest_exact1d", "nearest_exact2d", "nearest_exact3d"),
    "linear": ("linear1d", "bilinear2d", "trilinear3d"), "cubic": ("bicubic2d",),
}  # fmt: skip


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


def max_pool_backward(rank: int) -> Callable[..., Tensor]:
    """dy added up where the largest elements were."""

    def backward(
        dy: Tensor, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Tensor
    ) -> Tensor:
        lead = x.shape[:-rank]
        flat = (*lead, dy.shape[-rank:].numel())
        zero = dy.new_zeros((*lead, x.shape[-rank:].numel()))
        return zero.scatter_add(-1, indices.reshape(flat), dy.reshape(flat)).reshape(x.shape)

    return backward


def avg_pool_backward(
    rank: int,
    dy: Tensor,
    x: Tensor,
    kernel: list[int],
    stride: list[int],
    padding: list[int],
    ceil_mode: bool,
    include_pad: bool,
    divisor: int | None,
) -> Tensor:
    """A transposed convolution with a window of ones, of dy divided by the number of elements that each window counts."""
    kernel, stride, padding = (list(v) * rank if len(v) == 1 else list(v) for v in (kernel, stride or kernel, padding))
    lead, out, size = list(x.shape[:-rank]), list(dy.shape[-rank:]), list(x.shape[-rank:])

    def counted(k: int) -> list[int]:
        # A window that begins within the padding at the end ends with it.
        starts = [j * stride[k] - padding[k] for j in range(out[k])]
        ends = [min(s + kernel[k], size[k] + padding[k]) for s in starts]
        return [e - s if include_pad else min(e, size[k]) - max(s, 0) for s, e in zip(starts, ends)]

    if divisor is None:
        counts = torch.ones([1] * rank, dtype=torch.float64)
        for k in range(rank):
            counts = counts * torch.tensor(counted(k), dtype=torch.float64).reshape([-1 if j == k else 1 for j in range(rank)])
        share = counts.reciprocal().to(dy.dtype)
        first = 1.0 / math.prod(counted(k)[0] for k in range(rank))
        dy = dy * (first if all(len(set(counted(k))) == 1 for k in range(rank)) else share)
    else:
        dy = dy / divisor
    count, none = math.prod(lead), [0] * rank
    ones = dy.new_full((1, 1, *kernel), 1.0)
    full = aten.convolution(dy.reshape(count, 1, *out), ones, None, stride, none, [1] * rank, True, none, 1)
    for k in range(rank):
        short = padding[k] + size[k] - full.shape[k + 2]
        if short > 0:
            full = aten.constant_pad_nd(full, [0, 0] * (rank - 1 - k) + [0, short])
        full = full.narrow(k + 2, padding[k], size[k])
    return full.reshape(x.shape)


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


def _sources(mode: str, size: int, out: int, scale: float | None, by_sizes: bool) -> list[int]:
    """The element that each result of a nearest interpolation is a copy of, in PyTorch's float32. `by_sizes`: the scale does not count where the size
    stays or doubles, as on PyTorch's processor in all gradients, and in the results for images."""
    if by_sizes and mode == "nearest" and out in (size, 2 * size):
        return [k * size // out for k in range(out)]
    ratio = np.float32(1.0 / scale if scale else size / out)
    at = np.arange(out, dtype=np.float32)
    at = (at + np.float32(0.5)) * ratio if mode == "exact" else at * ratio
    return [min(int(k), size - 1) for k in np.floor(at)]


def _taps(mode: str, size: int, out: int, align_corners: bool, scale: float | None) -> list[list[float]]:
    """How much each of `size` elements counts in each of `out` that are interpolated along one axis."""
    rows = []
    ratio = 1 / scale if scale else size / out
    sources = _sources(mode, size, out, scale, by_sizes=True) if mode in ("nearest", "exact") else []
    for k in range(out):
        row = [0.0] * size
        if sources:
            row[sources[k]] = 1.0
        else:
            at = k * ((size - 1) / (out - 1) if out > 1 else 0.0) if align_corners else (k + 0.5) * ratio - 0.5
            at = max(at, 0.0) if mode == "linear" else at
            first = int(at // 1)
            part = at - first
            weights = {0: 1 - part, 1: part} if mode == "linear" else {j: _cubic(abs(part - j)) for j in (-1, 0, 1, 2)}
            for j, weight in weights.items():
                row[min(max(first + j, 0), size - 1)] += weight
        rows.append(row)
    return rows


def _is_whole(out: Any, size: Any, scales: Any) -> bool:
    """Whether a nearest interpolation copies each element the same number of times."""
    scales = [*scales, *[None] * len(out)]
    return all(o % s == 0 and (not f or f == o / s) for o, s, f in zip(out, size, scales))


def _cubic(x: float, a: float = -0.75) -> float:
    """The weight of an element at a distance, as PyTorch's bicubic interpolation has it."""
    return ((a + 2) * x - (a + 3)) * x * x + 1 if x <= 1 else a * (((x - 5) * x + 8) * x - 4)


def upsample_nearest(mode: str) -> Callable[..., Tensor]:
    """A nearest interpolation as a lookup along each axis."""

    def forward(x: Tensor, out_size: list[int], *scales: Any) -> Tensor:
        factors = [*scales, *[None] * (len(out_size) - len(scales))]
        for k, (out, scale) in enumerate(zip(out_size, factors), 2):
            x = x.index_select(k, torch.tensor(_sources(mode, x.shape[k], out, scale, by_sizes=len(out_size) == 2)))
        return x

    return forward


def upsample_linear(decomposed: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A linear interpolation, in which PyTorch looks at no scale of an axis that keeps its size."""

    def forward(x: Tensor, out_size: list[int], align_corners: bool, *scales: float | None) -> Tensor:
        factors = [*scales, *[None] * (len(out_size) - len(scales))]
        return decomposed(x, out_size, align_corners, *(None if o == s else f for o, s, f in zip(out_size, x.shape[2:], factors)))

    return forward


def upsample_backward(mode: str, corners: bool) -> Callable[..., Tensor]:
    """The gradient of an interpolation: a product with the matrix of each axis, or a sum where elements were copied."""

    def backward(dy: Tensor, out_size: list[int], in_size: list[int], *options: Any) -> Tensor:
        align = bool(options[0]) if corners else False
        scales = [*options[1:]] if corners else [*options]
        rank = len(in_size) - 2
        scales += [None] * (rank - len(scales))
        if mode == "cubic" and list(out_size) == list(in_size[2:]):
            # PyTorch passes the gradient on where no size changes, for any scales.
            return dy.clone()
        if mode in ("nearest", "exact") and _is_whole(out_size, in_size[2:], scales):
            parts = [e for o, s in zip(out_size, in_size[2:]) for e in (s, o // s)]
            return dy.reshape(*in_size[:2], *parts).sum([3 + 2 * k for k in range(rank)])
        for k in range(rank):
            size, out = in_size[2 + k], out_size[k]
            if size == out and (mode == "linear" or not (align and out == 1) and scales[k] in (None, 1.0)):
                # Where it interpolates linearly, PyTorch looks at no scale of an axis that keeps its size.
                continue
            matrix = torch.tensor(_taps(mode, size, out, align, scales[k]), dtype=dy.dtype)
            dy = dy @ matrix if k == rank - 1 else (dy.transpose(2 + k, -1) @ matrix).transpose(2 + k, -1)
        return dy.contiguous()

    return backward


def weight_norm_backward(dw: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Gradients of a direction and a length."""
    axes = [k for k in range(v.dim()) if k != dim]
    inner = (dw * v).sum(axes, keepdim=True)
    return g / norms * (dw - v * (inner / (norms * norms))), inner / norms


def _groups(rows: int, ends: Tensor) -> Tensor:
    """For each group of rows, given by where it ends, a column with ones for its rows."""
    at = torch.arange(rows)
    before = torch.cat([ends.new_zeros(1), ends[:-1]])
    return ((at >= before[:, None]) & (at < ends[:, None])).unsqueeze(-1)


def grouped_mm(x: Tensor, w: Tensor, ends: Tensor, *_: Any, **__: Any) -> Tensor:
    """Each group of rows times its matrix. A graph has no groups whose sizes are data: each matrix sees all rows."""
    if x.dim() != 2 or w.dim() != 3 or ends is None:
        return NotImplemented
    return ((x * _groups(x.shape[0], ends).to(x.dtype)) @ w).sum(0)


def grouped_mm_backward(x: Tensor, w: Tensor, ends: Tensor, dy: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the rows and of the matrices."""
    inside = _groups(x.shape[0], ends).to(dy.dtype)
    return ((dy * inside) @ w.transpose(1, 2)).sum(0), x.transpose(0, 1) @ (dy * inside)


def copy(dst: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """`src` with the type and the shape of `dst`."""
    return aten.expand.default(src if src.dtype == dst.dtype else src.to(dst.dtype), list(dst.shape))


def squeeze_dims(x: Tensor, dims: list[int]) -> Tensor:
    """A reshape."""
    drop = {d % x.dim() for d in dims} if x.dim() else set()
    return aten.view.default(x, [s for k, s in enumerate(x.shape) if k not in drop or s != 1])


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """The length of a vector of two, whose squares may be too large. Beside infinity, it is infinite, whatever the other is."""
    if x.dtype in (torch.bfloat16, torch.float16):
        return hypot(x.float(), y.float()).to(x.dtype)
    large, small = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
    share = torch.where(large > 0, small / large, 0.0)
    return torch.where(x.isinf() | y.isinf(), torch.inf, large * torch.sqrt(1 + share * share))


def add_product(product: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """A product of matrices, and what is added to it, as `addmv` has them."""

    def sum_(c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        if c.dtype in (torch.bfloat16, torch.float16):
            return sum_(c.float(), a.float(), b.float(), beta=beta, alpha=alpha).to(c.dtype)
        found = product(a, b) * alpha if alpha != 1 else product(a, b)
        return found if beta == 0 else found + (c * beta if beta != 1 else c)

    return sum_


def rrelu(x: Tensor, noise: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, *, generator: Any = None) -> tuple[Tensor, Tensor]:
    """The function, and the slope at each element, which are drawn in training."""
    if not training:
        return aten.leaky_relu(x, (lower + upper) / 2), noise
    slope = torch.where(x > 0, 1.0, lower + (upper - lower) * torch.rand_like(x)).to(x.dtype)
    return x * slope, slope


def rrelu_backward(dy: Tensor, x: Tensor, noise: Tensor, lower: float, upper: float, training: bool, self_is_result: bool) -> Tensor:
    """The gradient times the slopes."""
    return dy * noise if training else aten.leaky_relu_backward(dy, x, (lower + upper) / 2, self_is_result)


def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of one axis, as a lookup of their elements."""
    if not x.dim():
        return x.reshape(1).expand(size) if size else x.new_zeros(0)
    dim = dimension % x.dim()
    count = (x.shape[dim] - size) // step + 1
    places = (torch.arange(count)[:, None] * step + torch.arange(size)).flatten()
    return x.index_select(dim, places).unflatten(dim, (count, size)).movedim(dim + 1, -1)


def searchsorted(
    boundaries: Tensor, x: Tensor, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Tensor | None = None
) -> Tensor:  # fmt: skip
    """The number of boundaries below each element, or up to it where `right`: all of them for NaN."""
    right = right if side is None else side == "right"
    if sorter is not None:
        boundaries = boundaries.gather(-1, sorter)
    if boundaries.dim() > 1:
        x_, b = x.unsqueeze(-1), boundaries.unsqueeze(-2)
    else:
        x_, b = x.unsqueeze(-1), boundaries
    before = ~(b > x_) if right else ~(b >= x_)
    return before.sum(-1).to(torch.int32 if out_int32 else torch.int64)


def bucketize(x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """As `searchsorted` with one list of boundaries."""
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)


def _logarithm(x: Tensor) -> Tensor:
    """Logarithms of uniform numbers within (0, 1), of the shape of `x`."""
    return torch.log((1 - torch.rand_like(x)).clamp(max=1 - 2.0**-24))


def exponential(x: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Exponential numbers, none of which is 0."""
    return -_logarithm(x) / lambd


def multinomial(p: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Draws by the sums of chances; without replacement the largest of chances with Gumbel noise.

    Source: Kool et al., Stochastic Beams and Where to Find Them, ICML 2019, section 2.3.
    """
    if replacement or num_samples == 1:
        ends = p.cumsum(-1)
        draw = torch.rand([*p.shape[:-1], num_samples], dtype=p.dtype) * ends[..., -1:]
        found = (ends.unsqueeze(-2) <= draw.unsqueeze(-1)).sum(-1)
        # A draw that was rounded to the sum of all belongs to the last element that has a chance.
        last = (torch.arange(p.shape[-1]) * (p > 0)).amax(-1, keepdim=True)
        return torch.minimum(found, last)
    noise = -torch.log(-_logarithm(p))
    return torch.topk(torch.log(p) + noise, num_samples, -1).indices


def randperm(n: int, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """The order of random numbers."""
    return torch.rand(n).sort().indices.to(dtype or torch.int64)


def _quantized(x: Tensor, scale: Any, zero: Any, low: int, high: int) -> tuple[Tensor, Tensor]:
    q = torch.round(x * (1.0 / scale)) + zero
    return (q.clamp(low, high) - zero) * scale, (q >= low) & (q <= high)


def fake_quantize(x: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int) -> tuple[Tensor, Tensor]:
    """The nearest numbers of a grid, and which elements are within its ends."""
    return _quantized(x, scale, float(zero_point), quant_min, quant_max)


def fake_quantize_by_tensors(
    x: Tensor, scale: Tensor, zero_point: Tensor, enabled: Tensor, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """As `fake_quantize`, or `x` itself where it is not enabled."""
    y, inside = _quantized(x, scale, zero_point.to(x.dtype), quant_min, quant_max)
    on = enabled.reshape(()) != 0
    return torch.where(on, y, x), inside | ~on


def fake_quantize_by_channel(
    x: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """As `fake_quantize` with a grid for each element of an axis."""
    shape = [-1 if k == axis % x.dim() else 1 for k in range(x.dim())]
    return _quantized(x, scale.reshape(shape), zero_point.to(x.dtype).reshape(shape), quant_min, quant_max)


def _zeros(size: Any, *_: Any, dtype: torch.dtype | None = None, **__: Any) -> Tensor:
    """Uninitialized tensors are zero, so that a step is deterministic."""
    return aten.full.default(list(size), 0, dtype=dtype or torch.get_default_dtype())


def _drawn_in_place(operator: Any) -> Callable[..., Any]:
    """Draws in place in the order of the memory, which the operator that makes a new tensor does not keep."""

    def draw(x: Tensor, p: Any = 0.5, **kwargs: Any) -> Any:
        if x.is_contiguous() or not is_non_overlapping_and_dense_or_false(x):
            return NotImplemented
        order = sorted(range(x.dim()), key=lambda k: -x.stride(k))
        p = p.expand(x.shape).permute(order) if isinstance(p, Tensor) else p
        return x.copy_(operator(x.permute(order), p, **kwargs).permute([order.index(k) for k in range(x.dim())]))

    return draw


def native_table() -> dict[Any, Callable[..., Any]]:
    """For the trace of what PyTorch runs: random operators whose other form draws other numbers."""
    return {
        **tracing_table(),
        aten.bernoulli_.float: _drawn_in_place(aten.bernoulli.p),
        aten.bernoulli_.Tensor: _drawn_in_place(aten.bernoulli.Tensor),
    }


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


def _known_reduction(function: Callable[..., Any], schema: Any) -> Callable[..., Any]:
    """`function`, for the reductions that have a name: a call of the operator itself may give any number."""
    place = next(k for k, a in enumerate(schema.arguments) if a.name == "reduction")

    def checked(*args: Any, **kwargs: Any) -> Any:
        reduction = args[place] if len(args) > place else kwargs.get("reduction", 1)
        if reduction not in (0, 1, 2):
            raise CaptureError(f"`{schema.name}` with reduction={reduction}; 0 is none, 1 the mean, 2 the sum")
        return function(*args, **kwargs)

    return checked


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

    def average_backward(*a: Any) -> Any:
        return NotImplemented if compact and a[1].dim() == 4 and not a[7] else avg_pool_backward(2, *a)

    embedding_backward = table[aten.embedding_dense_backward.default]

    def embedding_dense_backward(*a: Any) -> Any:
        return NotImplemented if compact and not a[4] else embedding_backward(*a)

    nearest, nearest_backward = upsample_nearest("nearest"), upsample_backward("nearest", False)

    def upsample_nearest2d(x: Tensor, size: Any, *scales: Any) -> Any:
        return NotImplemented if compact and _is_whole(size, x.shape[2:], scales) else nearest(x, size, *scales)

    def upsample_nearest2d_backward(dy: Tensor, out: Any, size: Any, *scales: Any) -> Any:
        return NotImplemented if compact and _is_whole(out, size[2:], scales) else nearest_backward(dy, out, size, *scales)

    table.update({
        aten.max_pool2d_with_indices_backward.default: max_pool_backward(2),
        aten.max_pool3d_with_indices_backward.default: max_pool_backward(3),
        aten.avg_pool2d_backward.default: average_backward,
        aten.avg_pool3d_backward.default: lambda *a: avg_pool_backward(3, *a),
        aten._adaptive_avg_pool2d_backward.default: adaptive_avg_pool2d_backward,
        **{
            getattr(aten, f"{'_' * (mode == 'exact')}upsample_{kind}_backward").default: upsample_backward(mode, mode in ("linear", "cubic"))
            for mode, kinds in _UPSAMPLED.items() for kind in kinds
        },
        aten.embedding_dense_backward.default: embedding_dense_backward,
        aten.upsample_nearest2d.default: upsample_nearest2d,
        **{
            getattr(aten, f"{'_' * (mode == 'exact')}upsample_{kind}").default: upsample_nearest(mode)
            for mode in ("nearest", "exact") for kind in _UPSAMPLED[mode] if kind != "nearest2d"
        },
        aten.hardshrink_backward.default: lambda dy, x, lambd: torch.where(x.abs() <= lambd, 0.0, dy),
        aten.softshrink_backward.default: lambda dy, x, lambd: torch.where(x.abs() <= lambd, 0.0, dy),
        aten.copysign.Tensor: lambda x, y: torch.where((y < 0) | (y.reciprocal() < 0), -x.abs(), x.abs()),
        aten.hypot.default: hypot,
        aten.exp2.default: lambda x: torch.pow(2.0, x),
        aten.upsample_nearest2d_backward.default: upsample_nearest2d_backward,
        aten.addmv.default: add_product(torch.mv),
        aten.addbmm.default: add_product(lambda a, b: torch.bmm(a, b).sum(0)),
        aten.rrelu_with_noise_functional.default: rrelu,
        aten.rrelu_with_noise_backward.default: rrelu_backward,
        aten.unfold.default: unfold,
        aten.bucketize.Tensor: bucketize,
        aten.searchsorted.Tensor: searchsorted,
        aten.exponential.default: exponential,
        aten.cauchy.default: lambda x, median=0.0, sigma=1.0, **_: median + sigma * torch.tan(torch.pi * (torch.rand_like(x) - 0.5)),
        aten.log_normal.default: lambda x, mean=1.0, std=2.0, **_: torch.exp(mean + std * torch.randn_like(x)),
        aten.geometric.default: lambda x, p, **_: torch.ceil(_logarithm(x) / math.log1p(-p)).clamp(min=1),
        aten.multinomial.default: multinomial,
        aten.randperm.default: randperm,
        aten.fake_quantize_per_tensor_affine_cachemask.default: fake_quantize,
        aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: fake_quantize_by_tensors,
        aten.fake_quantize_per_channel_affine_cachemask.default: fake_quantize_by_channel,
        aten._weight_norm_interface_backward.default: weight_norm_backward,
        aten.var_mean.correction: var_mean,
        aten.var.correction: lambda *a, **k: var_mean(*a, **k)[0],
        aten.copy.default: copy,
        aten.squeeze.dims: squeeze_dims,
        aten.empty.memory_format: _zeros,
        aten.empty_permuted.default: lambda size, order, **k: _zeros(size, **k),
        aten.empty_strided.default: lambda size, stride, **k: _zeros(size, **k),
    })  # fmt: skip
    # Mixtures of experts in transformers.
    for name, function in (("grouped_mm_fallback", grouped_mm), ("grouped_mm_fallback_backward", grouped_mm_backward)):
        if hasattr(torch.ops.transformers, name):
            table[getattr(torch.ops.transformers, name).default] = function
    for linear in (getattr(aten, f"upsample_{kind}").default for kind in _UPSAMPLED["linear"]):
        table[linear] = upsample_linear(table[linear])
    for op in _WHOLE + (_WHOLE_COMPACT if compact else ()):
        table.pop(op, None)
    for op in [o for o in table if isinstance(o, torch._ops.OpOverload) and any(a.name == "reduction" for a in o._schema.arguments)]:
        table[op] = _known_reduction(table[op], op._schema)
    if not compact:
        table[aten.convolution_backward.default] = convolution_backward
    table[aten.native_batch_norm_backward.default] = native_batch_norm_backward
    table[aten._native_batch_norm_legit_functional.default] = native_batch_norm
    return table
