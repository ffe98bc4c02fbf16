"""Functions of PyTorch that are written with simpler ones before autograd sees them.

The gradients that PyTorch has for them are operators of their own, or they read numbers from tensors. Written out, their gradients
are those of their parts.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from .errors import CaptureError

F = torch.nn.functional
NEVER = -1e30
"""The logarithm of a chance of zero, without infinities, whose differences are not numbers."""


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """`embedding_bag` as a lookup and a reduction; bags with offsets are summed by the number of each row's bag."""
    if max_norm is not None:
        raise CaptureError("embedding_bag is captured without max_norm, which writes into the weights")
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    rows = F.embedding(input, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq)
    counts = torch.ones_like(input, dtype=torch.bool) if padding_idx is None else input != padding_idx
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    least = torch.finfo(rows.dtype).min
    masked = torch.where(counts.unsqueeze(-1), rows, least if mode == "max" else 0.0)
    if input.dim() == 2:
        number = counts.sum(1, keepdim=True)
        if mode == "max":
            return torch.where(number > 0, masked.max(1).values, 0.0)
        return masked.sum(1) / number.clamp(min=1) if mode == "mean" else masked.sum(1)
    if offsets is None:
        raise CaptureError("embedding_bag of a vector of indices needs offsets")
    starts = offsets[:-1] if include_last_offset else offsets
    bags = starts.shape[0]
    bag = (torch.arange(input.shape[0]).unsqueeze(1) >= starts).sum(1) - 1
    number = torch.zeros(bags, dtype=rows.dtype).index_add(0, bag, counts.to(rows.dtype)).unsqueeze(-1)
    zero = torch.zeros(bags, weight.shape[1], dtype=rows.dtype)
    if mode == "max":
        places = bag.unsqueeze(-1).expand_as(masked)
        return torch.where(number > 0, zero.scatter_reduce(0, places, masked, "amax", include_self=False), 0.0)
    total = zero.index_add(0, bag, masked)
    return total / number.clamp(min=1) if mode == "mean" else total


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """`one_hot` for a known number of classes. A class that is out of range is an index that is out of range."""
    if num_classes < 0:
        raise CaptureError("one_hot without num_classes: the size of its result depends on values; say the number of classes")
    zero = torch.zeros(*tensor.shape, num_classes, dtype=torch.int64)
    return zero.scatter(-1, tensor.unsqueeze(-1), 1)


def _log_sum(*terms: Tensor) -> Tensor:
    """The logarithm of the sum of exponentials."""
    top = terms[0]
    for term in terms[1:]:
        top = torch.maximum(top, term)
    top = top.detach()
    total = torch.exp(terms[0] - top)
    for term in terms[1:]:
        total = total + torch.exp(term - top)
    return top + torch.log(total)


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """`ctc_loss` as its recurrence over the frames, unrolled.

    Source: Graves et al., Connectionist Temporal Classification, ICML 2006, equations 6 to 8.
    """
    if log_probs.dim() == 2:
        log_probs, targets = log_probs.unsqueeze(1), targets.unsqueeze(0)
    if targets.dim() != 2:
        raise CaptureError("ctc_loss is captured for targets that are padded to a matrix, a row for each sample")
    frames, count, _ = log_probs.shape
    length = targets.shape[1]
    used, wanted = (torch.as_tensor(v).reshape(-1, 1) for v in (input_lengths, target_lengths))
    targets = torch.where(torch.arange(length) < wanted, targets, blank).long()
    # A blank before each label and after the last.
    between = torch.full((count, length, 1), blank, dtype=torch.int64)
    labels = torch.cat([torch.cat([between, targets.unsqueeze(-1)], -1).flatten(1), between[:, :1, 0]], 1)
    skips = F.pad((labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2]), [2, 0])
    scores = log_probs.gather(2, labels.unsqueeze(0).expand(frames, -1, -1))
    alpha = F.pad(scores[0, :, :2], [0, 2 * length - 1], value=NEVER)
    for t in range(1, frames):
        one = F.pad(alpha[:, :-1], [1, 0], value=NEVER)
        two = torch.where(skips, F.pad(alpha[:, :-2], [2, 0], value=NEVER), NEVER)
        alpha = torch.where(t < used, _log_sum(alpha, one, two) + scores[t], alpha)
    last = alpha.gather(1, 2 * wanted)
    other = torch.where(wanted > 0, alpha.gather(1, (2 * wanted - 1).clamp(min=0)), NEVER)
    loss = -_log_sum(last, other).squeeze(1)
    impossible = loss > -0.1 * NEVER
    loss = torch.where(impossible, 0.0 if zero_infinity else float("inf"), loss)
    if reduction == "mean":
        return (loss / wanted.squeeze(1).clamp(min=1)).mean()
    return loss.sum() if reduction == "sum" else loss


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """`cdist` by differences, or by a product of matrices where PyTorch takes one."""
    large = x1.shape[-2] > 25 or x2.shape[-2] > 25
    if p == 2 and (compute_mode == "use_mm_for_euclid_dist" or large and "if_necessary" in compute_mode):
        a, b = x1.square().sum(-1, keepdim=True), x2.square().sum(-1, keepdim=True)
        square = a + b.transpose(-1, -2) - 2 * x1 @ x2.transpose(-1, -2)
        near = square <= 1e-30
        return torch.where(near, 0.0, torch.where(near, 1.0, square).sqrt())
    return torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), ord=p, dim=-1)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """`grid_sample` of images as lookups, as PyTorch takes it apart for other compilers."""
    from torch._decomp.decompositions import _grid_sampler_2d

    if input.dim() != 4:
        raise CaptureError("grid_sample is captured for images, and not for volumes")
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return _grid_sampler_2d(input, grid, modes.index(mode), paddings.index(padding_mode), bool(align_corners), False)


def _windows(size: int, count: int) -> list[tuple[int, int]]:
    return [(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """The largest elements of windows. With their positions it is another function of PyTorch."""
    size = list(output_size) if isinstance(output_size, (tuple, list)) else [output_size] * 2
    size = [s if o is None else o for s, o in zip(input.shape[-2:], size)]
    rows = []
    for top, bottom in _windows(input.shape[-2], size[0]):
        parts = (input[..., top:bottom, left:right] for left, right in _windows(input.shape[-1], size[1]))
        rows.append(torch.stack([part.flatten(-2).max(-1).values for part in parts], -1))
    return torch.stack(rows, -2)


def cumprod(input: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """`cumprod` as products with the elements 1, 2, 4, … places before."""
    y = input if dtype is None else input.to(dtype)
    if y.dim() == 0:
        return y
    y, size, far = y.movedim(dim, -1), y.shape[dim], 1
    while far < size:
        y = y * F.pad(y[..., :-far], [far, 0], value=1)
        far *= 2
    return y.movedim(-1, dim)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """`gaussian_nll_loss` without looking at whether a variance is negative."""
    var = torch.as_tensor(var, dtype=input.dtype)
    if var.dim() and var.shape != input.shape and var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    with torch.no_grad():
        low = torch.clamp(var, min=eps)
    # The gradient of a variance below eps is not zero in PyTorch either.
    var = var + (low - var).detach()
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    loss = loss + 0.9189385332046727 if full else loss
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _batch_norm_forward(self: Any, input: Tensor) -> Tensor:
    """As `torch.nn.BatchNorm2d` and its siblings, also for the average over all batches, whose count is a tensor."""
    original = _METHODS[0][2]
    if self.momentum is not None or not self.track_running_stats or not self.training:
        return original(self, input)
    self._check_input_dim(input)
    self.num_batches_tracked.add_(1)
    axes = [k for k in range(input.dim()) if k != 1]
    with torch.no_grad():
        share = 1.0 / self.num_batches_tracked.to(self.running_mean.dtype)
        mean, count = input.mean(axes), input.numel() // input.shape[1]
        variance = input.var(axes, correction=0) * (count / max(count - 1, 1))
        for kept, new in ((self.running_mean, mean), (self.running_var, variance)):
            kept.copy_(kept + share * (new.to(kept.dtype) - kept))
    return F.batch_norm(input, None, None, self.weight, self.bias, True, 0.0, self.eps)


def _distribution(self: Any, batch_shape: Any = torch.Size(), event_shape: Any = torch.Size(), validate_args: Any = None) -> None:
    """As `torch.distributions.Distribution`, without looking at the values of the arguments."""
    self._validate_args = False
    self._batch_shape, self._event_shape = batch_shape, event_shape


def _unchecked(self: Any, value: Any) -> None:
    """In place of the check of a sample."""


_Distribution, _BatchNorm = torch.distributions.Distribution, torch.nn.modules.batchnorm._BatchNorm
_METHODS: list[tuple[Any, str, Callable[..., Any], Callable[..., Any]]] = [
    (_BatchNorm, "forward", _BatchNorm.forward, _batch_norm_forward),
    (_Distribution, "__init__", _Distribution.__init__, _distribution),
    (_Distribution, "_validate_sample", _Distribution._validate_sample, _unchecked),
]
"""Methods that read numbers from tensors, or check values: owner, name, the method, and the function that stands for it."""

_THREADS: dict[int, int] = {}
"""By thread that traces a step, the depth of its calls of `methods_replaced`."""
_LOCK = threading.Lock()


def _switch(original: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """A method that is `other` in threads that trace a step, and itself in all others."""

    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        return (other if threading.get_ident() in _THREADS else original)(*args, **kwargs)

    return method


@contextlib.contextmanager
def methods_replaced() -> Iterator[None]:
    """Lets other functions stand for the methods of `_METHODS`, in this thread. The last thread to leave puts them back."""
    me = threading.get_ident()
    with _LOCK:
        if not _THREADS:
            for owner, name, original, other in _METHODS:
                setattr(owner, name, _switch(original, other))
        _THREADS[me] = _THREADS.get(me, 0) + 1
    try:
        yield
    finally:
        with _LOCK:
            _THREADS[me] -= 1
            if not _THREADS[me]:
                del _THREADS[me]
            if not _THREADS:
                for owner, name, original, _ in _METHODS:
                    setattr(owner, name, original)


def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
    center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """`istft` without a look at the window: frames are added where they lie, and divided by the sum of the squared windows there."""
    if return_complex or onesided is False:
        raise CaptureError("istft is captured for real results of one side; use torch.fft for others")
    hop, width = hop_length or n_fft // 4, win_length or n_fft
    spectra = input.reshape(-1, *input.shape[-2:])
    frames = torch.fft.irfft(spectra.transpose(1, 2), n=n_fft, norm="ortho" if normalized else None)
    window = torch.ones(width, dtype=frames.dtype) if window is None else window
    left = (n_fft - width) // 2
    window = F.pad(window, (left, n_fft - width - left))
    count = frames.shape[1]
    total = n_fft + hop * (count - 1)

    def added(x: Tensor) -> Tensor:
        return F.fold(x.transpose(1, 2), (1, total), (1, n_fft), stride=(1, hop)).reshape(-1, total)

    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    y, weight = added(frames * window), added((window * window).expand(1, count, n_fft))
    y = (y[:, start:end] / weight[:, start:end]).reshape(*input.shape[:-2], -1)
    return F.pad(y, (0, end - total)) if end > total else y


REPLACED: dict[Any, Callable[..., Any]] = {
    F.one_hot: one_hot,
    F.embedding_bag: embedding_bag,
    F.ctc_loss: ctc_loss,
    torch.cdist: cdist,
    F.grid_sample: grid_sample,
    F.adaptive_max_pool2d: adaptive_max_pool2d,
    torch.cumprod: cumprod,
    torch.Tensor.cumprod: cumprod,
    F.gaussian_nll_loss: gaussian_nll_loss,
    torch.istft: istft,
    torch.Tensor.istft: istft,
}
