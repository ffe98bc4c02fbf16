"""A `torch.optim` optimizer inside a traced step: its state as inputs, its learning rate as an input, its update as operators."""

from __future__ import annotations

import contextlib
import inspect
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from . import ops as _ops  # noqa: F401 registers torch.ops.lmsc
from .errors import CaptureError


@dataclass(frozen=True)
class StateTensor:
    """A tensor that an optimizer keeps from step to step, and its value before the first."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    fill: float
    """What every element is before the first step."""
    value: Tensor | None = None
    """The value where the optimizer has run before."""


class Update:
    """The update of all parameters by one optimizer.

    `scalars` are the numbers that become inputs of the step, such as `lr`, with their present values. `state` describes what the
    optimizer keeps. `apply` computes, inside a trace, new parameters and new state. `sources` says of each scalar which number of
    which group it is.
    """

    scalars: dict[str, float]
    sources: dict[str, tuple[int, str]]
    state: dict[str, StateTensor]

    def apply(
        self, params: dict[str, Tensor], grads: dict[str, Tensor | None], state: dict[str, Tensor], scalars: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        raise NotImplementedError


def update_of(optimizer: torch.optim.Optimizer, names: dict[int, str], *, compact: bool, lr_input: bool) -> Update:
    """How `optimizer` updates the parameters whose names are given by their `id`.

    AdamW, Adam and SGD become one operator a parameter if `compact`; every other optimizer is traced as it is.
    """
    for group in optimizer.param_groups:
        for p in group["params"]:
            if id(p) not in names:
                raise CaptureError(
                    f"the optimizer has a parameter of shape {tuple(p.shape)} that the model has not; give both the same parameters"
                )
    kind = type(optimizer)
    if compact and all(_is_plain(kind, group) for group in optimizer.param_groups):
        return _Compact(optimizer, names, lr_input)
    try:
        return _Traced(optimizer, names, lr_input)
    except CaptureError:
        raise
    except Exception as error:
        message = (
            f"the update of {kind.__name__} cannot be part of a graph: {error}; use an optimizer whose step needs gradients only"
        )
        raise CaptureError(message) from error


def _is_plain(kind: type, group: dict[str, Any]) -> bool:
    """Whether the update of this group is AdamW, Adam or SGD in single precision, without the options that lmsc has no operator for."""
    if kind not in (torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD):
        return False
    numbers = all(isinstance(group.get(k, 0.0), (int, float)) for k in ("momentum", "dampening", "weight_decay", "eps"))
    numbers = numbers and all(isinstance(b, (int, float)) for b in group.get("betas", ()))
    return (
        numbers
        and not group.get("amsgrad")
        and not group.get("dampening")
        and not ("betas" in group and _moves_momentum(group))
        and all(p.dtype == torch.float32 for p in group["params"])
    )


def _moves_momentum(group: dict[str, Any]) -> bool:
    """Whether a scheduler changes the momentum of the group: OneCycleLR and CyclicLR mark it so."""
    return "max_momentum" in group


def number_of(group: dict[str, Any], key: str) -> float:
    """The number of a parameter group that an input of the step stands for."""
    return float(group["betas"][0] if key == "beta1" else group[key])


def _suffix(optimizer: torch.optim.Optimizer, index: int) -> str:
    return "" if len(optimizer.param_groups) == 1 else f".{index}"


class _Compact(Update):
    """AdamW, Adam and SGD as one operator a parameter, with one counter of steps a group."""

    def __init__(self, optimizer: torch.optim.Optimizer, names: dict[int, str], lr_input: bool) -> None:
        self._optimizer, self._names, self._lr_input = optimizer, names, lr_input
        self._adam = type(optimizer) is not torch.optim.SGD
        self.scalars, self.sources, self.state = {}, {}, {}
        for i, group in enumerate(optimizer.param_groups):
            suffix = _suffix(optimizer, i)
            if lr_input:
                self.scalars[f"lr{suffix}"] = float(group["lr"])
                self.sources[f"lr{suffix}"] = (i, "lr")
                if not self._adam and _moves_momentum(group):
                    self.scalars[f"momentum{suffix}"] = float(group["momentum"])
                    self.sources[f"momentum{suffix}"] = (i, "momentum")
            kept = ("exp_avg", "exp_avg_sq") if self._adam else ("momentum_buffer",) if group["momentum"] else ()
            if not kept:
                continue
            seen = [optimizer.state.get(p, {}) for p in group["params"]]
            if self._adam:
                steps = max((float(s["step"]) for s in seen if s), default=0.0)
                self.state[f"step{suffix}"] = StateTensor(f"step{suffix}", (), torch.int64, steps)
            for p, s in zip(group["params"], seen):
                for k in kept:
                    name = f"{names[id(p)]}.{k}"
                    self.state[name] = StateTensor(name, tuple(p.shape), p.dtype, 0.0, s.get(k))

    def apply(
        self, params: dict[str, Tensor], grads: dict[str, Tensor | None], state: dict[str, Tensor], scalars: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        new_params, new_state = {}, {}
        for i, group in enumerate(self._optimizer.param_groups):
            suffix = _suffix(self._optimizer, i)
            lr = scalars[f"lr{suffix}"] if self._lr_input else torch.tensor(float(group["lr"]))
            counter = f"step{suffix}"
            if counter in state:
                new_state[counter] = state[counter] + 1
            for p in group["params"]:
                n = self._names[id(p)]
                g, w = grads.get(n), params[n]
                if g is None:
                    continue
                if group["maximize"]:
                    g = -g
                if self._adam:
                    decay = float(group["weight_decay"])
                    if not group.get("decoupled_weight_decay", type(self._optimizer) is torch.optim.AdamW):
                        g, decay = (g + decay * w if decay else g), 0.0
                    moments = f"{n}.exp_avg", f"{n}.exp_avg_sq"
                    beta1, beta2 = map(float, group["betas"])
                    new_params[n], new_state[moments[0]], new_state[moments[1]] = torch.ops.lmsc.adamw(
                        lr, new_state[counter], w, g, *(state[k] for k in moments), beta1, beta2, float(group["eps"]), decay
                    )
                    continue
                g = g + group["weight_decay"] * w if group["weight_decay"] else g
                if group["momentum"]:
                    momentum = scalars.get(f"momentum{suffix}", group["momentum"])
                    buffer = f"{n}.momentum_buffer"
                    new_state[buffer] = m = momentum * state[buffer] + g
                    g = g + momentum * m if group["nesterov"] else m
                new_params[n] = torch.ops.lmsc.sgd(lr, w, g)
        return new_params, new_state


class _Traced(Update):
    """Any optimizer, its own `step` run inside of the trace."""

    def __init__(self, optimizer: torch.optim.Optimizer, names: dict[int, str], lr_input: bool) -> None:
        self._optimizer, self._names = optimizer, names
        self.scalars, self.sources = {}, {}
        for i, group in enumerate(optimizer.param_groups):
            scheduled = ["lr"]
            if _moves_momentum(group) and "betas" in group:
                scheduled.append("beta1")
            for key in scheduled if lr_input else ():
                name = f"{key}{_suffix(optimizer, i)}"
                self.scalars[name] = number_of(group, key)
                self.sources[name] = (i, key)
        self.state = _state_of(optimizer, names)

    def apply(
        self, params: dict[str, Tensor], grads: dict[str, Tensor | None], state: dict[str, Tensor], scalars: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        own = {n: p.detach().clone() for n, p in params.items() if n in set(self._names.values())}
        replica = _replica(self._optimizer, lambda p: own[self._names[id(p)]], capturable=True)
        for name, (i, key) in self.sources.items():
            group = replica.param_groups[i]
            if key == "beta1":
                group["betas"] = (scalars[name], *group["betas"][1:])
            else:
                group[key] = scalars[name]
        for n, p in own.items():
            p.grad = grads.get(n)
            # A parameter without a gradient has no part in the step.
            if p.grad is not None:
                prefix = n + "."
                kept = {s: t.clone() for s, t in state.items() if s.startswith(prefix) and "." not in s[len(prefix) :]}
                if kept:
                    replica.state[p] = {s[len(prefix) :]: t for s, t in kept.items()}
        with torch.no_grad(), TensorScalars(), _tensor_minimum(type(self._optimizer)):
            replica.step()
        new_state = {f"{n}.{k}": t for n, p in own.items() for k, t in replica.state.get(p, {}).items() if isinstance(t, Tensor)}
        return {n: p for n, p in own.items() if p.grad is not None}, new_state


def _replica(optimizer: torch.optim.Optimizer, of: Any, *, capturable: bool) -> torch.optim.Optimizer:
    """An optimizer with the options of `optimizer`, without state, over the tensors `of(parameter)`."""
    twin = object.__new__(type(optimizer))
    twin.__dict__.update(optimizer.__dict__)
    # A scheduler has wrapped the method of the instance.
    twin.__dict__.pop("step", None)
    twin.state = defaultdict(dict)
    twin.param_groups = []
    for group in optimizer.param_groups:
        copy = {**group, "params": [of(p) for p in group["params"]]}
        copy.update({k: False for k in ("foreach", "fused") if k in copy})
        if "capturable" in copy:
            copy["capturable"] = capturable
        twin.param_groups.append(copy)
    return twin


class _FirstValues(TorchDispatchMode):
    """Remembers the value that each tensor had before it was first changed in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first: dict[int, Tensor] = {}
        self._alive: list[Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.is_mutable:
            for a in args:
                if isinstance(a, Tensor) and id(a) not in self.first:
                    self._alive.append(a)
                    self.first[id(a)] = a.detach().clone()
        return func(*args, **(kwargs or {}))


def _state_of(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> dict[str, StateTensor]:
    """The tensors that `optimizer` keeps, found by a step of a replica whose parameters are small."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    small = {}
    for group in optimizer.param_groups:
        for p in group["params"]:
            small[id(p)] = torch.zeros([min(s, 2) for s in p.shape], dtype=p.dtype)
            small[id(p)].grad = torch.zeros_like(small[id(p)])
    replica = _replica(optimizer, lambda p: small[id(p)], capturable=False)
    with torch.no_grad(), _FirstValues() as seen:
        replica.step()
    with FakeTensorMode(), _compiling():
        large = {id(p): torch.empty(p.shape, dtype=p.dtype) for g in optimizer.param_groups for p in g["params"]}
        for t in large.values():
            t.grad = torch.zeros_like(t)
        shaped = _replica(optimizer, lambda p: large[id(p)], capturable=True)
        with torch.no_grad(), TensorScalars(), _tensor_minimum(type(optimizer)):
            shaped.step()
    found = {}
    for group in optimizer.param_groups:
        if group.get("dampening") and group.get("momentum") and not optimizer.state:
            raise CaptureError("SGD with dampening has another first step; run one step in PyTorch before the export")
        for p in group["params"]:
            have = optimizer.state.get(p, {})
            for key, t in shaped.state[large[id(p)]].items():
                name = f"{names[id(p)]}.{key}"
                value = replica.state[small[id(p)]].get(key)
                if not isinstance(t, Tensor):
                    if isinstance(t, (int, float)) and not isinstance(t, bool):
                        raise CaptureError(
                            f"{type(optimizer).__name__} keeps the number `{key}` in Python, where a graph cannot count; "
                            "use an optimizer that keeps it as a tensor"
                        )
                    continue
                first = seen.first.get(id(value), value)
                fill = float(first.flatten()[0]) if isinstance(first, Tensor) and first.numel() else 0.0
                given = have.get(key)
                found[name] = StateTensor(name, tuple(t.shape), t.dtype, fill, given if isinstance(given, Tensor) else None)
    return found


@contextlib.contextmanager
def _compiling() -> Iterator[None]:
    """Makes torch.compiler.is_compiling() true: optimizers then keep counters as tensors on every device."""
    was, torch.compiler.is_compiling = torch.compiler.is_compiling, lambda: True
    try:
        yield
    finally:
        torch.compiler.is_compiling = was


@contextlib.contextmanager
def _tensor_minimum(kind: type) -> Iterator[None]:
    """Lets `min` and `max` in the module of an optimizer take tensors, as Adafactor's does with its counter."""

    def of(function: Any, operator: Any) -> Any:
        def choose(*args: Any, **kwargs: Any) -> Any:
            if len(args) != 2 or kwargs or not any(isinstance(a, Tensor) for a in args):
                return function(*args, **kwargs)
            a, b = (x if isinstance(x, Tensor) else torch.tensor(float(x)) for x in args)
            return operator(a, b)

        return choose

    names = inspect.unwrap(kind.step).__globals__
    with mock.patch.dict(names, {"min": of(min, torch.minimum), "max": of(max, torch.maximum)}):
        yield


class TensorScalars(TorchFunctionMode):
    """Lets tensors stand where PyTorch's operators take a number only: `alpha=` and `value=`.

    A learning rate that is an input of the graph is such a tensor, and so is what an optimizer reads with `.item()`.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if func is Tensor.item and args[0].dim() == 0:
            return args[0]
        alpha, value = kwargs.get("alpha"), kwargs.get("value")
        if isinstance(alpha, Tensor) and name in ("add", "add_", "sub", "sub_"):
            del kwargs["alpha"]
            return func(args[0], args[1] * alpha, *args[2:], **kwargs)
        if isinstance(value, Tensor) and name in ("addcdiv", "addcdiv_", "addcmul", "addcmul_"):
            term = args[1] / args[2] if "div" in name else args[1] * args[2]
            return getattr(args[0], "add_" if name.endswith("_") else "add")(value * term)
        return func(*args, **kwargs)
