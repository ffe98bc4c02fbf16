"""Operators that stand for a whole update of one parameter, for attention, and for what must hold: `torch.ops.lmsc`.

`expected(y, ok, words)` is `y`; a step in which an element of `ok` is false fails with the words.

They are functional: results are new tensors. They compute the results of torch.optim's single-tensor loops, and of
`scaled_dot_product_attention`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

LIBRARY = torch.library.Library("lmsc", "DEF")
LIBRARY.define(
    "adamw(Tensor lr, Tensor step, Tensor w, Tensor g, Tensor m, Tensor v, float beta1, float beta2, float eps, float decay)"
    " -> (Tensor, Tensor, Tensor)"
)
LIBRARY.define("sgd(Tensor lr, Tensor w, Tensor g) -> Tensor")
LIBRARY.define("expected(Tensor y, Tensor ok, str words) -> Tensor")
LIBRARY.define(
    "attention(Tensor q, Tensor k, Tensor v, Tensor? mask, bool is_causal, float scale) -> (Tensor, Tensor, Tensor)"
)
LIBRARY.define(
    "attention_backward(Tensor dy, Tensor q, Tensor k, Tensor v, Tensor y, Tensor maxima, Tensor sums, Tensor? mask, bool is_causal,"
    " float scale) -> (Tensor, Tensor, Tensor)"
)


def _adamw(
    lr: Tensor, step: Tensor, w: Tensor, g: Tensor, m: Tensor, v: Tensor, beta1: float, beta2: float, eps: float, decay: float
) -> tuple[Tensor, Tensor, Tensor]:
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    first, second = 1 - beta1 ** step.double(), 1 - beta2 ** step.double()
    denominator = v.sqrt() / second.sqrt().to(v.dtype) + eps
    return w * (1 - lr * decay) - (lr / first).to(w.dtype) * (m / denominator), m, v


LIBRARY.impl("adamw", _adamw, "CompositeExplicitAutograd")
LIBRARY.impl("sgd", lambda lr, w, g: w - lr * g, "CompositeExplicitAutograd")
torch.library.register_fake(
    "lmsc::adamw", lambda lr, step, w, g, m, v, *_: (torch.empty_like(w), torch.empty_like(m), torch.empty_like(v))
)
torch.library.register_fake("lmsc::sgd", lambda lr, w, g: torch.empty_like(w))
torch.library.register_fake("lmsc::expected", lambda y, ok, words: torch.empty_like(y))


def _scores(q: Tensor, k: Tensor, mask: Tensor | None, is_causal: bool, scale: float) -> Tensor:
    """Scores of queries `[batch, heads, rows, width]` and keys `[batch, groups, keys, width]`, whose heads share those of a group."""
    s = q.float() @ k.float().repeat_interleave(q.shape[1] // k.shape[1], 1).transpose(-1, -2) * scale
    if mask is not None:
        s = s.masked_fill(mask.logical_not(), float("-inf")) if mask.dtype == torch.bool else s + mask.float()
    return s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), float("-inf")) if is_causal else s


def _weights(s: Tensor, maxima: Tensor, sums: Tensor) -> Tensor:
    shift = torch.where(maxima == float("-inf"), 0.0, maxima)
    return (s - shift.unsqueeze(-1)).exp() / torch.where(sums == 0, 1.0, sums).unsqueeze(-1)


def _attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    s = _scores(q, k, mask, is_causal, scale)
    maxima = s.detach().amax(-1) if s.shape[-1] else s.new_full(s.shape[:-1], float("-inf"))
    shift = torch.where(maxima == float("-inf"), 0.0, maxima)
    sums = (s - shift.unsqueeze(-1)).exp().sum(-1)
    y = _weights(s, maxima, sums) @ v.float().repeat_interleave(q.shape[1] // v.shape[1], 1)
    return y.to(q.dtype), maxima, sums


def _attention_backward(
    dy: Tensor, q: Tensor, k: Tensor, v: Tensor, y: Tensor, maxima: Tensor, sums: Tensor, mask: Tensor | None, is_causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    sharing = q.shape[1] // k.shape[1]
    w = _weights(_scores(q, k, mask, is_causal, scale), maxima, sums)
    slope = dy.float() @ v.float().repeat_interleave(sharing, 1).transpose(-1, -2)
    slope = w * (slope - (dy.float() * y.float()).sum(-1, keepdim=True)) * scale
    dq = slope @ k.float().repeat_interleave(sharing, 1)
    dk, dv = slope.transpose(-1, -2) @ q.float(), w.transpose(-1, -2) @ dy.float()
    return dq.to(q.dtype), *(d.unflatten(1, (-1, sharing)).sum(2).to(q.dtype) for d in (dk, dv))


def _attention_keeps(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    q, k, v, mask, *ctx.options = inputs
    ctx.save_for_backward(q, k, v, *output, mask)
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _attention_gradient(ctx: Any, dy: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if dy is None:
        return (None,) * 6
    *kept, mask = ctx.saved_tensors
    return *torch.ops.lmsc.attention_backward(dy, *kept, mask, *ctx.options), None, None, None


def _backward_keeps(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    dy, q, k, v, _, _, _, mask, *ctx.options = inputs
    ctx.save_for_backward(dy, q, k, v, mask)


def _backward_gradient(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
    """The gradient of a gradient is that of its parts: results and sums are functions of queries, keys and values."""
    *operands, mask = ctx.saved_tensors
    with torch.enable_grad():
        dy, q, k, v = (t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in operands)
        firsts = torch.autograd.grad(_attention(q, k, v, mask, *ctx.options)[0], (q, k, v), dy, create_graph=True)
        found = torch.autograd.grad(firsts, (dy, q, k, v), grads, allow_unused=True)
    return *found, None, None, None, None, None, None


LIBRARY.impl("attention", _attention, "CompositeExplicitAutograd")
LIBRARY.impl("attention_backward", _attention_backward, "CompositeExplicitAutograd")
torch.library.register_fake(
    "lmsc::attention",
    lambda q, k, v, *_: (
        q.new_empty([*q.shape[:3], v.shape[3]]), *(q.new_empty(q.shape[:3], dtype=torch.float32) for _ in range(2)),
    ),
)  # fmt: skip
torch.library.register_fake(
    "lmsc::attention_backward", lambda dy, q, k, v, *_: tuple(t.new_empty(t.shape) for t in (q, k, v))
)
torch.library.register_autograd("lmsc::attention", _attention_gradient, setup_context=_attention_keeps)
torch.library.register_autograd("lmsc::attention_backward", _backward_gradient, setup_context=_backward_keeps)
