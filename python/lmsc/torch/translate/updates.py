"""Updates of parameters: `torch.ops.lmsc`."""

from __future__ import annotations

from torch.fx import Node

from .builder import LMSC
from .registry import Translator, op


@op("lmsc::adamw")
def adamw(
    t: Translator,
    n: Node,
    lr: Node,
    step: Node,
    w: Node,
    g: Node,
    m: Node,
    v: Node,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
) -> list[str]:
    operands = [t.value(a) for a in (lr, step, w, g, m, v)]
    return t.b.node(
        "AdamWOptimizer", *operands, domain=LMSC, outputs=3, alpha=beta1, beta=beta2, epsilon=eps, weight_decay=decay, adam_mode=0,
        correct_bias=1,
    )  # fmt: skip


@op("lmsc::sgd")
def sgd(t: Translator, n: Node, lr: Node, w: Node, g: Node) -> str:
    return t.b.node("SGDOptimizer", t.value(lr), t.value(w), t.value(g), domain=LMSC)
