"""The gradient of cross entropy."""

from __future__ import annotations

import torch
from torch.fx import Node

from .builder import MICROSOFT
from .reductions import softmax_backward
from .registry import Translator, op

_REDUCTIONS = ("none", "mean", "sum")


@op("nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(
    t: Translator,
    n: Node,
    dy: Node,
    scores: Node,
    target: Node,
    weight: Node | None,
    reduction: int,
    ignore_index: int,
    total: Node,
) -> str:
    """-dy at the class of each sample, and 0 elsewhere."""
    d, classes = t.dtype(n), t.shape(scores)[1]
    kept = t.b.node("Not", t.b.node("Equal", t.value(target), t.value(ignore_index, t.dtype(target))))
    label = t.b.node("Where", kept, t.value(target), t.value(0, t.dtype(target)))
    rate = t.value(dy)
    if _REDUCTIONS[reduction] == "mean":
        rate = t.b.node("Div", rate, t.value(total))
    if weight is not None:
        rate = t.b.node("Mul", rate, t.b.node("Gather", t.value(weight), label, axis=0))
    rate = t.b.node("Where", kept, rate, t.value(0.0, d))
    shape = t.shape(target)
    rate = t.reshape(rate, [shape[0], 1, *shape[1:]])
    ends = t.b.tensor(torch.tensor([0.0, -1.0], dtype=d))
    return t.b.node("Mul", t.b.node("OneHot", label, t.b.scalar(classes, torch.int64), ends, axis=1), rate)


@op("_log_softmax_backward_data", seen="input_dtype")
def log_softmax_backward(t: Translator, n: Node, dy: Node, y: Node, dim: int) -> str:
    """One operator with the gradient of the loss where that is its operand: no gradient of probabilities is stored."""
    loss = str(dy.target) if dy.op == "call_function" else ""
    rank = max(len(t.shape(y)), 1)
    if not loss.startswith("aten.nll_loss") or "backward" not in loss or dim % rank != 1 or t.value(dy.args[1]) != t.value(y):
        return softmax_backward(t, n, dy, y, dim)
    rate, _, target, weight, reduction, ignored, _ = dy.args
    return t.b.node(
        "SoftmaxCrossEntropyLossGrad", t.value(rate), t.value(y), t.value(target), None if weight is None else t.value(weight),
        domain=MICROSOFT, reduction=_REDUCTIONS[reduction], ignore_index=ignored,
    )  # fmt: skip
