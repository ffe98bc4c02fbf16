"""`scaled_dot_product_attention` as a graph has it: one operator where there is one, or products and a softmax.

The operator keeps the largest score and the sum of exponentials of each row, from which its gradient computes the weights again.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from . import ops  # noqa: F401 it registers the operator

_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False, *, compact: bool,
) -> Tensor:  # fmt: skip
    """The result of `scaled_dot_product_attention`. PyTorch's own choice of an implementation is one for all threads."""
    if torch.is_autocast_enabled("cpu"):
        short = torch.get_autocast_dtype("cpu")
        query, key, value = (t.to(short) if t.dtype in _FLOATS else t for t in (query, key, value))
        attn_mask = attn_mask.to(short) if attn_mask is not None and attn_mask.dtype in _FLOATS else attn_mask
    with torch.autocast("cpu", enabled=False):
        found = _by_tiles(query, key, value, attn_mask, is_causal, scale, enable_gqa) if compact and not dropout_p else None
        if found is not None:
            return found
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            # PyTorch does this before it chooses an implementation; the one of matrix products would add the truth values.
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill(attn_mask.logical_not(), float("-inf"))
        return torch.ops.aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )[0]


def _by_tiles(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None, enable_gqa: bool
) -> Tensor | None:
    """The operator; None where it does not take the operands, or where PyTorch refuses them."""
    tensors = (query, key, value)
    if any(t.dim() < 2 or t.dtype not in _FLOATS or t.dtype != query.dtype for t in tensors) or not query.shape[-1]:
        return None
    if mask is not None and (is_causal or mask.requires_grad or mask.dtype not in (torch.bool, torch.float32, query.dtype)):
        return None
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        return None
    heads, groups, own = (t.shape[-3] if t.dim() > 2 else 1 for t in tensors)
    lead = _broadcast(*(t.shape[:-3] for t in tensors))
    shares = groups == own and groups > 0 and (heads % groups == 0 if enable_gqa else groups in (1, heads))
    if lead is None or not shares:
        return None
    batch = math.prod(lead)

    def headed(t: Tensor, heads: int) -> Tensor:
        return t.expand([*lead, heads, *t.shape[-2:]]).reshape(batch, heads, *t.shape[-2:])

    if mask is not None:
        if _broadcast(mask.shape, (*lead, heads, query.shape[-2], key.shape[-2])) != (*lead, heads, query.shape[-2], key.shape[-2]):
            return None
        if len(lead) > 1 and mask.dim() > 3:
            mask = mask.expand(*lead, *mask.shape[-3:]).reshape(batch, *mask.shape[-3:])
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    operands = headed(query, heads), headed(key, groups), headed(value, groups)
    y = torch.ops.lmsc.attention(*operands, mask, is_causal, factor)[0]
    return y.reshape([*lead, heads, *y.shape[-2:]] if query.dim() > 2 or lead else y.shape[-2:])


def _broadcast(*shapes: Any) -> tuple[int, ...] | None:
    try:
        return tuple(torch.broadcast_shapes(*shapes))
    except RuntimeError:
        return None
