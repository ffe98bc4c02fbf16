"""A `torch.optim` optimizer inside a traced step: its state as inputs, its learning rate as an input, its update as operators."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import threading
from collections import OrderedDict, defaultdict, deque
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
    """The value of every element before the first step."""
    value: Tensor | None = None
    """The value where the optimizer has run before."""
    owner: str = ""
    """The parameter that it belongs to; none of a counter of a group."""
    key: str = ""
    """Its name in the state of that parameter."""
    is_copy: bool = False
    """Whether it is the parameter before the first step."""
    group: int = 0


class Update:
    """The update of all parameters by one optimizer.

    `scalars` are the numbers that become inputs of the step, such as `lr`, with their present values. `state` describes the
    optimizer's state. `apply` computes, inside a trace, new parameters and new state. `sources` says of each scalar which number of
    which group it is.
    """

    scalars: dict[str, float]
    sources: dict[str, tuple[int, str]]
    state: dict[str, StateTensor]
    hooked = False
    """Whether hooks of the optimizer run in `apply`. Then the parameters are those that the model has meanwhile."""

    def apply(
        self, params: dict[str, Tensor], grads: dict[str, Tensor | None], state: dict[str, Tensor], scalars: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        raise NotImplementedError


class NoUpdate(Update):
    """None: the step ends with gradients."""

    def __init__(self) -> None:
        self.scalars, self.sources, self.state = {}, {}, {}

    def apply(
        self, params: dict[str, Tensor], grads: dict[str, Tensor | None], state: dict[str, Tensor], scalars: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return {}, {}


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
    if compact and not hooks_of(optimizer) and all(_is_plain(optimizer, group) for group in optimizer.param_groups):
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


def hook_dicts(optimizer: torch.optim.Optimizer) -> list[dict[int, Any]]:
    """Where hooks before and after a step are kept: of all optimizers, and of this one."""
    from torch.optim import optimizer as module

    return [
        module._global_optimizer_pre_hooks, optimizer._optimizer_step_pre_hooks, module._global_optimizer_post_hooks,
        optimizer._optimizer_step_post_hooks,
    ]  # fmt: skip


def hooks_of(optimizer: torch.optim.Optimizer) -> list[Any]:
    """The hooks that are called before and after each step of the optimizer."""
    return [h for hooks in hook_dicts(optimizer) for h in hooks.values()]


def _is_plain(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> bool:
    """Whether the update of this group is AdamW, Adam or SGD in single precision, without the options that lmsc has no operator for,
    and all its parameters have had the same number of steps."""
    kind = type(optimizer)
    if len({float(optimizer.state.get(p, {}).get("step", 0)) for p in group["params"] if p.requires_grad}) > 1:
        return False
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
                steps = max((float(s["step"]) for p, s in zip(group["params"], seen) if s and p.requires_grad), default=0.0)
                self.state[f"step{suffix}"] = StateTensor(f"step{suffix}", (), torch.int64, steps, group=i)
            for p, s in zip(group["params"], seen):
                for k in kept:
                    name = f"{names[id(p)]}.{k}"
                    self.state[name] = StateTensor(name, tuple(p.shape), p.dtype, 0.0, s.get(k), names[id(p)], k, group=i)

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
        self.hooked = bool(hooks_of(optimizer))
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
        _compare(self, optimizer, names)

    def apply(
        self, params: dict[str, Tensor], grads: dict[str, Tensor | None], state: dict[str, Tensor], scalars: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        with contextlib.nullcontext() if self.hooked else _without_hooks():
            return self.run(params, grads, state, scalars, in_place=self.hooked)

    def run(
        self, params: dict[str, Tensor], grads: dict[str, Tensor | None], state: dict[str, Tensor], scalars: dict[str, Tensor], *,
        in_place: bool,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:  # fmt: skip
        """The step of a replica; hooks run if they are not switched off."""
        mine = set(self._names.values())
        own = {n: p if in_place else p.detach().clone() for n, p in params.items() if n in mine}
        replica = _replica(self._optimizer, lambda p: own[self._names[id(p)]], capturable=True, hooked=in_place)
        for name, (i, key) in self.sources.items():
            group = replica.param_groups[i]
            if key == "beta1":
                group["betas"] = (scalars[name], *group["betas"][1:])
            else:
                group[key] = scalars[name]
        kept: dict[str, dict[str, Tensor]] = defaultdict(dict)
        for name, t in state.items():
            kept[self.state[name].owner][self.state[name].key] = t
        for n, p in own.items():
            p.grad = grads.get(n)
            # A parameter without a gradient has no part in the step.
            if p.grad is not None and kept[n]:
                replica.state[p] = {k: t.clone() for k, t in kept[n].items()}
        before = [p.grad is not None for p in own.values()]
        with torch.no_grad(), TensorScalars(), _tensor_minimum(type(self._optimizer)):
            replica.step()
        if in_place and before != [p.grad is not None for p in own.values()]:
            raise CaptureError("a hook of the optimizer takes gradients away")
        new_state = {f"{n}.{k}": t for n, p in own.items() for k, t in replica.state.get(p, {}).items() if isinstance(t, Tensor)}
        new = {n: p for n, p in own.items() if p.grad is not None or in_place}
        if in_place:
            for p in own.values():
                p.grad = None
        return new, {k: t for k, t in new_state.items() if k in self.state}


@contextlib.contextmanager
def _without_hooks() -> Iterator[None]:
    """Leaves out the hooks that all optimizers have in common."""
    from torch.optim import optimizer as module

    kept = [(d, dict(d)) for d in (module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks)]
    for d, _ in kept:
        d.clear()
    try:
        yield
    finally:
        for d, items in kept:
            d.update(items)


_CONTAINERS = (list, dict, set, deque)


def _replica(optimizer: torch.optim.Optimizer, of: Any, *, capturable: bool, hooked: bool = False) -> torch.optim.Optimizer:
    """An optimizer with the options of `optimizer`, without state, over the tensors `of(parameter)`."""
    twin = object.__new__(type(optimizer))
    twin.__dict__.update(optimizer.__dict__)
    if not hooked:
        twin.__dict__.update(_optimizer_step_pre_hooks=OrderedDict(), _optimizer_step_post_hooks=OrderedDict())
    # What a step changes in a container is not to show in the caller's.
    twin.__dict__.update({k: copy.copy(v) for k, v in twin.__dict__.items() if isinstance(v, _CONTAINERS)})
    # A scheduler has wrapped the method of the instance.
    twin.__dict__.pop("step", None)
    twin.state = defaultdict(dict)
    twin.param_groups = []
    for group in optimizer.param_groups:
        mine = {**group, "params": [of(p) for p in group["params"]]}
        mine.update({k: False for k in ("foreach", "fused") if k in mine})
        if "capturable" in mine:
            mine["capturable"] = capturable
        twin.param_groups.append(mine)
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


def _small(optimizer: torch.optim.Optimizer, seed: int) -> dict[int, Tensor]:
    """A small tensor in place of each parameter."""
    numbers = torch.Generator().manual_seed(seed)
    found = {}
    for group in optimizer.param_groups:
        for p in group["params"]:
            size = [min(s, 2) for s in p.shape]
            found[id(p)] = (torch.rand(size, generator=numbers, dtype=torch.float32) + 0.5).to(p.dtype)
    return found


def _first_state(optimizer: torch.optim.Optimizer, seed: int) -> tuple[dict[int, Tensor], dict[int, dict[str, Any]]]:
    """Small parameters, and the state of each before it is first changed, found by a step without gradients."""
    small = _small(optimizer, seed)
    before = {k: t.clone() for k, t in small.items()}
    for t in small.values():
        t.grad = torch.zeros_like(t)
    replica = _replica(optimizer, lambda p: small[id(p)], capturable=False)
    with torch.no_grad(), _without_hooks(), _FirstValues() as seen:
        replica.step()
    return before, {k: {n: seen.first.get(id(v), v) for n, v in replica.state.get(t, {}).items()} for k, t in small.items()}


def _state_of(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> dict[str, StateTensor]:
    """The tensors that `optimizer` keeps, found by steps of replicas whose parameters are small, and differ."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    tries = [_first_state(optimizer, seed) for seed in (1, 2)]
    with FakeTensorMode(), _compiling(), _without_hooks():
        large = {id(p): torch.empty(p.shape, dtype=p.dtype) for g in optimizer.param_groups for p in g["params"]}
        for t in large.values():
            t.grad = torch.zeros_like(t)
        shaped = _replica(optimizer, lambda p: large[id(p)], capturable=True)
        with torch.no_grad(), TensorScalars(), _tensor_minimum(type(optimizer)):
            shaped.step()
    found = {}
    for index, group in enumerate(optimizer.param_groups):
        for p in group["params"]:
            have, own = optimizer.state.get(p, {}), names[id(p)]
            for key, t in shaped.state[large[id(p)]].items():
                if not isinstance(t, Tensor):
                    if not isinstance(t, (bool, str, type(None))):
                        what = "number" if isinstance(t, (int, float)) else type(t).__name__
                        raise CaptureError(
                            f"{type(optimizer).__name__} keeps the {what} `{key}` in Python, where a graph cannot count; use an optimizer that "
                            "keeps it as a tensor"
                        )
                    continue
                first = [(before[id(p)], state[id(p)].get(key)) for before, state in tries]
                fill, is_copy = (0.0, False) if isinstance(have.get(key), Tensor) else _begin(first)
                given = have.get(key)
                name = f"{own}.{key}"
                found[name] = StateTensor(
                    name, tuple(t.shape), t.dtype, fill, given if isinstance(given, Tensor) else None, own, key, is_copy, index
                )
    return found


def _begin(tries: list[tuple[Tensor, Any]]) -> tuple[float, bool]:
    """The number that a state begins with, or whether it begins as a copy of its parameter."""
    values = [t for _, t in tries]
    if not all(isinstance(t, Tensor) for t in values):
        return 0.0, False
    flat = [t.flatten() for t in values]
    if all(not t.numel() for t in flat):
        return 0.0, False
    if all(bool((t == flat[0][0]).all()) for t in flat):
        return float(flat[0][0]), False
    if all(t.shape == p.shape and torch.equal(t.to(p.dtype), p) for p, t in tries):
        return 0.0, True
    # Zeros, if the first step gives the same with them, as a momentum of SGD does: `_compare` finds out.
    return 0.0, False


STEPS = 3
"""Steps in which the traced form of an optimizer is compared with the optimizer: the first, and those that go on from it."""


def _compare(update: _Traced, optimizer: torch.optim.Optimizer, names: dict[int, str]) -> None:
    """Refuses an optimizer whose traced update differs from its own consecutive steps."""
    small, kind = _small(optimizer, 3), type(optimizer).__name__
    genuine = _replica(optimizer, lambda p: small[id(p)], capturable=False)
    before = [{k: v for k, v in g.items() if k != "params"} for g in genuine.param_groups]
    own = {k: _counted(v) for k, v in vars(genuine).items() if isinstance(v, (int, float, *_CONTAINERS)) and k not in ("state", "param_groups")}
    ours = {names[k]: t.clone() for k, t in small.items()}
    goes_on = any(len(s) for s in optimizer.state.values())
    state: dict[str, Tensor] = {}
    for n, s in update.state.items():
        of = ours[s.owner]
        shape = [min(d, 2) for d in s.shape]
        state[n] = of.to(s.dtype, copy=True) if s.is_copy else torch.full(shape, s.fill, dtype=s.dtype)
    scalars = {k: torch.tensor(v) for k, v in update.scalars.items()}
    numbers = torch.Generator().manual_seed(4)
    for k in range(STEPS):
        for t in small.values():
            t.grad = (torch.rand(t.shape, generator=numbers) * 2 - 1).to(t.dtype)
        grads = {names[i]: t.grad.clone() for i, t in small.items()}
        with torch.no_grad(), _without_hooks():
            genuine.step()
        for now, was in zip(genuine.param_groups, before):
            counted = [n for n, v in was.items() if not isinstance(v, Tensor) and now.get(n) != v] + [n for n in now if n not in was and n != "params"]
            if counted:
                raise CaptureError(f"{kind} counts `{counted[0]}` in `param_groups`, where a graph cannot; use an optimizer that keeps it as a tensor")
        counted = [n for n, v in own.items() if _counted(vars(genuine).get(n)) != v]
        if counted:
            raise CaptureError(f"{kind} counts `{counted[0]}` in Python, where a graph cannot; use an optimizer that keeps it as a tensor")
        kept = {n: genuine.state.get(small[i], {}) for i, n in names.items() if i in small}
        if goes_on and k == 0:
            # The first step is behind it.
            state = {n: kept[s.owner][s.key].to(s.dtype, copy=True) for n, s in update.state.items() if isinstance(kept[s.owner].get(s.key), Tensor)}
            ours = {names[i]: t.detach().clone() for i, t in small.items()}
            continue
        with _compiling(), _without_hooks():
            ours, new = update.run(ours, grads, state, scalars, in_place=False)
        state.update(new)
        pairs = [(n, t, ours.get(n)) for n, t in ((names[i], t) for i, t in small.items())]
        pairs += [(n, kept[s.owner].get(s.key), state.get(n)) for n, s in update.state.items()]
        wrong = [n for n, a, b in pairs if isinstance(a, Tensor) and not _near(a, b)]
        if wrong and k == 0:
            raise CaptureError(f"the first step of {kind} is another one than those that follow (`{wrong[0]}`); run one step in PyTorch before")
        if wrong:
            raise CaptureError(f"the update of {kind} depends on something that a graph has not: `{wrong[0]}` differs in step {k + 1}")


def _counted(value: Any) -> Any:
    """What stands for a number or a container of an optimizer where it is compared with what it was."""
    if isinstance(value, dict):
        return [(k if isinstance(k, (str, int)) else id(k), _counted(v)) for k, v in value.items()]
    if isinstance(value, _CONTAINERS):
        return [_counted(v) for v in value]
    return value if isinstance(value, (int, float, str, bool, type(None))) else id(value)


def _near(a: Tensor, b: Tensor | None) -> bool:
    if b is None or a.shape != b.shape:
        return False
    rough = 2e-2 if a.dtype in (torch.bfloat16, torch.float16) else 1e-4
    return torch.allclose(a.double(), b.double(), rtol=rough, atol=rough / 10, equal_nan=True)


LOCK = threading.RLock()
"""Held while a step is traced: its patches are applied once, by one thread."""


@contextlib.contextmanager
def _compiling() -> Iterator[None]:
    """Makes torch.compiler.is_compiling() true in this thread: optimizers then keep counters as tensors on every device."""
    thread = threading.get_ident()
    with LOCK:
        was = torch.compiler.is_compiling
        torch.compiler.is_compiling = lambda: threading.get_ident() == thread or was()
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

    A learning rate that is an input of the graph is such a tensor, and so is a tensor that an optimizer reads with `.item()`.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if func is Tensor.item and args[0].dim() == 0:
            return args[0]
        alpha, value = kwargs.get("alpha"), kwargs.get("value")
        if isinstance(alpha, Tensor) and len(kwargs) == 1 and name in ("add", "add_", "sub", "sub_"):
            (other,), kind = _computed((args[1],), args[0])
            return _sum(args[0], -other * alpha if name.startswith("sub") else other * alpha, name, kind)
        if isinstance(value, Tensor) and len(kwargs) == 1 and name in ("addcdiv", "addcdiv_", "addcmul", "addcmul_"):
            (left, right), kind = _computed(args[1:3], args[0])
            return _sum(args[0], value * (left / right if "div" in name else left * right), name, kind)
        if name.removesuffix("_") in ("add", "sub", "mul", "div") and not kwargs and len(args) == 2 and _is_short_and_number(*args):
            return _in_single_precision(func, *args, in_place=name.endswith("_"))
        return func(*args, **kwargs)


def _is_short_and_number(a: Any, b: Any) -> bool:
    """Whether one is a tensor of short floats, and the other may stand for a number: PyTorch rounds the result and not the number."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or (a.dim() == 0) == (b.dim() == 0):
        return False
    number, short = (a, b) if a.dim() == 0 else (b, a)
    return number.dtype == torch.float32 and short.dtype in (torch.bfloat16, torch.float16)


def _in_single_precision(func: Any, a: Tensor, b: Tensor, *, in_place: bool) -> Tensor:
    """The result of the operator, rounded once to the short type of an operand."""
    short = b.dtype if a.dim() == 0 else a.dtype
    result = func(a.to(torch.float32, copy=in_place), b.float())
    return a.copy_(result) if in_place else result.to(short)


def _computed(operands: tuple[Any, ...], first: Tensor) -> tuple[list[Any], torch.dtype]:
    """The operands in the type in which PyTorch computes with them and the first one, where a short float is a `float`; and the type of the result."""
    kind = functools.reduce(torch.promote_types, (torch.result_type(first, t) for t in operands))
    whole = torch.float32 if kind in (torch.bfloat16, torch.float16) else kind
    return [t.to(whole) if isinstance(t, Tensor) else t for t in operands], kind


def _sum(first: Tensor, term: Tensor, name: str, kind: torch.dtype) -> Tensor:
    """The sum, rounded once."""
    return first.add_(term) if name.endswith("_") else (first + term).to(kind)
