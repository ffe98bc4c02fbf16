"""Trains models of backend_models.py through backends of torch.compile, compares the bits, and measures the bytes; for test_backend.py and
scripts/check_backend.py."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from typing import Any

import torch
from backend_models import Model
from lmsc.torch import backend as lmsc_backend
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

STEPS = 3


class Live(TorchDispatchMode):
    """The bytes of storages that are alive while graphs run, without copies on the host."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self.seen: dict[int, int] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        self.add(out, counted=not str(function).startswith(("lmsc.offload", "lmsc.leave")))
        return out

    def add(self, values: Any, counted: bool = True) -> None:
        for tensor in tree_leaves(values):
            if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
                continue
            storage = tensor.untyped_storage()
            key = storage._cdata
            if key not in self.seen:
                self.seen[key] = storage.nbytes() if counted else 0
                self.now += self.seen[key]
                self.peak = max(self.peak, self.now)
                weakref.finalize(storage, self._gone, key)

    def _gone(self, key: int) -> None:
        self.now -= self.seen.pop(key, 0)


class Meter:
    """While entered, graphs of the backend run under `live`."""

    def __init__(self) -> None:
        self.live = Live()

    def compiler(self, graph: Any, inputs: Any = None) -> Any:
        run = self.boxed(graph, inputs)

        def call(args: list[Any]) -> Any:
            self.live.add(args)
            with self.live:
                return run(args)

        call._boxed_call = True
        return call

    def __enter__(self) -> Meter:
        self.boxed = lmsc_backend._boxed
        lmsc_backend._boxed = self.compiler
        return self

    def __exit__(self, *_: Any) -> None:
        lmsc_backend._boxed = self.boxed


def values(module: torch.nn.Module, batch: Any) -> dict[str, torch.Tensor]:
    named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    found = {name: value.detach().clone() for name, value in named.items()}
    found |= {f"gradient of {name}": value.grad.clone() for name, value in named.items() if value.grad is not None}
    inputs = enumerate(batch)
    return found | {f"gradient of input {i}": x.grad for i, x in inputs if isinstance(x, torch.Tensor) and x.grad is not None}


def train(model: Model, how: Callable[[Any], Any], meter: Meter | None = None) -> tuple[list[float], dict[str, torch.Tensor], int]:
    """Losses and all tensors of a copy of the model after its steps, and the measured peak of the last one."""
    with torch._dynamo.config.patch(model.config):
        return _train(model, how, meter)


def _train(model: Model, how: Callable[[Any], Any], meter: Meter | None) -> tuple[list[float], dict[str, torch.Tensor], int]:
    module = copy.deepcopy(model.module).train()
    call = how(module)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    losses, last, peak = [], {}, 0
    for i in range(STEPS):
        batch = model.batch(i)
        torch.manual_seed(50 + i)
        if meter:
            meter.live = Live()
        with torch.set_grad_enabled(model.trains):
            out = call(*batch)
            loss = model.loss(out, *batch) if model.loss else out
            if model.trains:
                loss.backward()
        losses.append(loss.item())
        del out, loss
        peak = meter.live.peak if meter else 0
        last = values(module, batch)
        if model.trains:
            optimizer.step()
            optimizer.zero_grad()
    return losses, last, peak


def compiled(model: Model, backend: Any, **options: Any) -> Callable[[Any], Any]:
    """A function that compiles a module."""
    torch._dynamo.reset()
    asked = {"options": options} if options else {}
    return lambda module: torch.compile(module, backend=backend, dynamic=model.dynamic, **asked)


def difference(one: Any, other: Any) -> str | None:
    """The first difference in bits between two trainings."""
    if one[0] != other[0]:
        return f"losses {other[0]} for {one[0]}"
    if one[1].keys() != other[1].keys():
        return f"tensors {sorted(one[1].keys() ^ other[1].keys())}"
    wrong = [name for name in one[1] if not torch.equal(torch.nan_to_num(one[1][name]), torch.nan_to_num(other[1][name]))]
    return f"{len(wrong)} of {len(one[1])} tensors, {wrong[:2]}" if wrong else None
