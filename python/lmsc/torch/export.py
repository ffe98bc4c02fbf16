"""`export_step`: a PyTorch module, a loss and an optimizer as one ONNX training step."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import lmsc
import onnx
from lmsc._progress import EXPORT, Choice, Progress

from .capture import Captured, capture
from .errors import capture_error
from .translate import captured


def export_step(
    model: nn.Module,
    loss_fn: Callable[..., Any] | None,
    optimizer: torch.optim.Optimizer,
    example: tuple[Any, ...] | list[Any] | dict[str, Any],
    *,
    path: str | os.PathLike[str] | None = None,
    params: str | os.PathLike[str] | None = None,
    standard: bool = False,
    lr_input: bool = True,
    clip_grad_norm: float | None = None,
    accumulate: int = 1,
    ema: float | None = None,
    progress: Choice = None,
) -> onnx.ModelProto:
    """One training step (forward, backward and update) as an ONNX model without weights.

    Nothing is computed and nothing of the model's size is allocated: a model on the device `meta` is exported as well.

    Inputs are parameters and buffers by their names in `model`, the optimizer's state as `NAME.exp_avg` and so on, the learning rate
    `lr` (`lr.0`, `lr.1`, … with several groups), and the batch: the parameters of `model.forward`, and `target`. Outputs are
    `loss` and `NAME_new` for every input that the step changes, by which `lmsc` knows the state that is kept from step to step.

    Args:
        model: The module, in the mode (`train()` or `eval()`) in which it is to run. Parameters that the optimizer has not, or that
            require no gradient, are frozen.
        loss_fn: The loss of the model's result and the target. It may return a tuple whose first element is the loss, or a dict with
            the key `loss`; the others become outputs. None: the model returns the loss, or a result that has `.loss`.
        optimizer: A `torch.optim` optimizer over the model's parameters. If it has state, that is the state before the first step.
        example: `(input, …, target)`, or a dict of keyword arguments of the model. Only shapes and types matter: each tensor is an input of its own,
            also where two of them are one object.
        path: Where to write the model.
        params: Where to write parameters, buffers, optimizer state and learning rate, as safetensors, for `lmsc run --params`.
        standard: Write operators of standard ONNX only, for other runtimes. By default gradients and updates are operators that lmsc
            has kernels for, such as `com.microsoft.ConvGrad` and `ai.lmsc.AdamWOptimizer`.
        lr_input: Whether the learning rate is an input. Otherwise it is the constant that it is now.
        clip_grad_norm: The norm to which gradients are scaled down, as by `torch.nn.utils.clip_grad_norm_`. The norm before is the
            output `grad_norm`.
        accumulate: The number of parts into which the batch is split along its first dimension. Gradients and losses are averaged.
        ema: The decay of a moving average `NAME.ema` of every parameter.
        progress: As in `lmsc.compile`. The phases are `capture`, `translate` and `write`.

    Raises:
        CaptureError: The step depends on values of tensors, or on something else that a graph cannot hold.
        UnsupportedOperator: An operator has no translation.

    >>> import torch
    >>> model = torch.nn.Linear(3, 2)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> step = export_step(model, torch.nn.functional.mse_loss, optimizer, (torch.ones(4, 3), torch.ones(4, 2)))
    >>> [i.name for i in step.graph.input], [o.name for o in step.graph.output]
    (['weight', 'bias', 'lr', 'input', 'target'], ['loss', 'weight_new', 'bias_new'])
    """
    with Progress(progress, EXPORT) as at:
        step = functools.partial(
            capture, model, loss_fn, optimizer, example, compact=not standard, lr_input=lr_input, clip_grad_norm=clip_grad_norm,
            accumulate=accumulate, ema=ema, as_one=False,
        )  # fmt: skip
        found, proto = exported(step, compact=not standard, at=at)
        at("write")
        if params is not None:
            write_params(found, params)
        if path is not None:
            onnx.save(proto, os.fspath(path))
        return proto


def exported(step: Callable[..., Captured], *, compact: bool, at: Callable[[str], None]) -> tuple[Captured, onnx.ModelProto]:
    """The capture of `step`, and its translation, which lists the kept state where names do not tell it."""
    try:
        found, proto = captured(step, compact=compact, at=at)
    except lmsc.Error:
        raise
    except Exception as error:
        raise capture_error(error) from error
    if found.renamed:
        entry = proto.metadata_props.add()
        entry.key, entry.value = "ai.lmsc.state", json.dumps([[old, new] for old, new in sorted(found.pairs.items())])
    return found, proto


def write_params(found: Captured, path: str | os.PathLike[str]) -> None:
    """Writes the values before the first step as a safetensors file."""
    from safetensors.torch import save_file

    tensors: dict[str, Tensor] = {n: found.values[n].cpu().contiguous().clone() for n in found.inputs if n in found.values}
    save_file(tensors, os.fspath(path))
