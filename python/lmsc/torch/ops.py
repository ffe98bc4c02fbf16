"""Operators that stand for a whole update of one parameter: `torch.ops.lmsc`.

They are functional: results are new tensors. What they compute is what torch.optim's single-tensor loops compute.
"""

from __future__ import annotations

import torch
from torch import Tensor

_LIBRARY = torch.library.Library("lmsc", "DEF")
_LIBRARY.define(
    "adamw(Tensor lr, Tensor step, Tensor w, Tensor g, Tensor m, Tensor v, float beta1, float beta2, float eps, float decay)"
    " -> (Tensor, Tensor, Tensor)"
)
_LIBRARY.define("sgd(Tensor lr, Tensor w, Tensor g) -> Tensor")


def _adamw(
    lr: Tensor, step: Tensor, w: Tensor, g: Tensor, m: Tensor, v: Tensor, beta1: float, beta2: float, eps: float, decay: float
) -> tuple[Tensor, Tensor, Tensor]:
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    first, second = 1 - beta1 ** step.double(), 1 - beta2 ** step.double()
    denominator = v.sqrt() / second.sqrt().to(v.dtype) + eps
    return w * (1 - lr * decay) - (lr / first).to(w.dtype) * (m / denominator), m, v


_LIBRARY.impl("adamw", _adamw, "CompositeExplicitAutograd")
_LIBRARY.impl("sgd", lambda lr, w, g: w - lr * g, "CompositeExplicitAutograd")
torch.library.register_fake(
    "lmsc::adamw", lambda lr, step, w, g, m, v, *_: (torch.empty_like(w), torch.empty_like(m), torch.empty_like(v))
)
torch.library.register_fake("lmsc::sgd", lambda lr, w, g: torch.empty_like(w))
