"""The caller's own optimizer as a part of a planned step: it updates some parameters at a time, on the device, with its own code.

Nothing of it is traced, so that each update has the bits of PyTorch's own loop. A replica over small tensors tells whether the parameters may be
updated one part after another, and one over tensors of full size what the optimizer keeps and how many bytes an update takes.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from .optimizers import STEPS, _small, _without_hooks, hooks_of

Optimizer = torch.optim.Optimizer

SMALLEST = 4096
"""Tensors of fewer bytes stay on the device, as in the backend."""


_HOOKS = "_optimizer_"
"""How the attributes of an optimizer that hold hooks begin."""


class Live(TorchDispatchMode):
    """The most bytes at once of tensors that are made on a device while it is on."""

    supports_higher_order_operators = True

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._kind, self._known = device.type, set()
        self.now = self.most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        before = {t.untyped_storage()._cdata for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        for t in pytree.tree_leaves(out):
            if isinstance(t, Tensor) and t.device.type == self._kind:
                storage = t.untyped_storage()
                if storage._cdata not in self._known | before:
                    self._known.add(storage._cdata)
                    self.now += storage.nbytes()
                    self.most = max(self.most, self.now)
                    weakref.finalize(storage, self._gone, storage._cdata, storage.nbytes())
        return out

    def _gone(self, key: int, count: int) -> None:
        self._known.discard(key)
        self.now -= count


def _copied(value: Any) -> Any:
    """A copy of containers without tensors, so that a replica changes nothing of the optimizer's."""
    import copy

    if isinstance(value, (list, dict, set)) and not any(isinstance(v, (Tensor, Optimizer, nn.Module)) for v in pytree.tree_leaves(value)):
        return copy.deepcopy(value)
    return value


def replica(optimizer: Optimizer, of: Callable[[Tensor], Tensor]) -> Optimizer:
    """An optimizer with the options of `optimizer`, without state and hooks, over the tensors `of(parameter)`."""
    twin = object.__new__(type(optimizer))
    own = {k: v for k, v in vars(optimizer).items() if k not in ("state", "param_groups", "step")}
    twin.__dict__.update({k: v if k.startswith(_HOOKS) else _copied(v) for k, v in own.items()})
    twin.__dict__.update(_optimizer_step_pre_hooks=OrderedDict(), _optimizer_step_post_hooks=OrderedDict(), state=defaultdict(dict))
    twin.param_groups = [
        {**{k: _copied(v) for k, v in g.items() if k != "params"}, "params": [of(p) for p in g["params"]]} for g in optimizer.param_groups
    ]
    return twin


def run(optimizer: Optimizer, wanted: set[int] | None = None) -> None:
    """A step of the optimizer, of the parameters with these `id`s only; without them, of all, with the hooks."""
    groups = optimizer.param_groups
    if wanted is not None:
        some = [{**g, "params": [p for p in g["params"] if id(p) in wanted]} for g in groups]
        optimizer.param_groups = [g for g in some if g["params"]]
    try:
        with torch.no_grad():
            type(optimizer).step(optimizer)
    finally:
        optimizer.param_groups = groups


def is_opaque(optimizer: Optimizer) -> bool:
    """Whether the optimizer cannot be tried on other tensors: it has hooks, or hands over to another one."""
    return bool(hooks_of(optimizer)) or _hands_over(optimizer)


def _hands_over(optimizer: Optimizer) -> bool:
    return any(isinstance(v, Optimizer) for v in vars(optimizer).values())


def needs_closure(optimizer: Optimizer) -> bool:
    """Whether a step of the optimizer computes the loss itself."""
    import inspect

    parameters = inspect.signature(inspect.unwrap(type(optimizer).step)).parameters
    return "closure" in parameters and parameters["closure"].default is inspect.Parameter.empty


def goes_by_parts(optimizer: Optimizer, hooks_around: bool = False) -> bool:
    """Whether an update of one parameter after the other is that of all at once, by all that the optimizer keeps in tensors and in Python.

    With `hooks_around` the hooks are called once, around a step without gradients behind those of the parts, which must change nothing.
    """
    if _hands_over(optimizer) if hooks_around else is_opaque(optimizer):
        return False
    found = []
    for apart in (False, True):
        small = _small(optimizer, 3)
        twin = replica(optimizer, lambda p, small=small: small[id(p)])
        numbers = torch.Generator().manual_seed(4)
        try:
            with _without_hooks(), torch.random.fork_rng(devices=[]):
                for _ in range(STEPS):
                    for t in small.values():
                        t.grad = (torch.rand(t.shape, generator=numbers) * 2 - 1).to(t.dtype)
                    for part in [{id(t)} for t in small.values()] if apart else [None]:
                        run(twin, part)
                    if apart and hooks_around:
                        for t in small.values():
                            t.grad = None
                        run(twin)
                drawn = torch.get_rng_state()
        except Exception:
            return False
        found.append((list(small.values()), [twin.state.get(t, {}) for t in small.values()], _numbers(twin), drawn))
    return _alike(*found)


def _numbers(twin: Optimizer) -> Any:
    """What the optimizer counts in Python."""
    plain = (int, float, str, bool, tuple, list, dict)
    left_out = ("state", "param_groups", "defaults")
    own = {k: v for k, v in vars(twin).items() if isinstance(v, plain) and k not in left_out and not k.startswith(_HOOKS)}
    return own, [{k: v for k, v in g.items() if k != "params"} for g in twin.param_groups]


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return isinstance(a, Tensor) and isinstance(b, Tensor) and a.dtype == b.dtype and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_alike(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_alike, a, b))
    return a is b or bool(a == b)


@dataclass(frozen=True)
class Kept:
    """What an optimizer keeps of some parameters, and what an update of them takes."""

    tensors: dict[tuple[int, str], Tensor] = field(default_factory=dict)
    """Tensors of the device, without elements, by the `id` of the parameter and the key in its state."""
    small: int = 0
    """Bytes of the device in tensors that are too small to leave."""
    workspace: int = 0


def kept_by(optimizer: Optimizer, part: Sequence[Tensor], device: torch.device) -> Kept:
    """What the optimizer keeps of these parameters, by two steps of a replica over others like them."""
    twins = {id(p): torch.full_like(p, 0.01, device=device, requires_grad=False) for p in part}
    nothing: dict[int, Tensor] = {id(p): torch.empty(0) for g in optimizer.param_groups for p in g["params"]}
    twin = replica(optimizer, lambda p: twins.get(id(p), nothing[id(p)]))
    wanted = {id(t) for t in twins.values()}
    devices = [] if device.type == "cpu" else [device]
    with _without_hooks(), torch.random.fork_rng(devices=devices):
        for again in (False, True):
            for t in twins.values():
                t.grad = torch.full_like(t, 0.01)
            with Live(device) if again else _nothing() as live:
                run(twin, wanted)
    found = {(id(p), k): v for p in part for k, v in twin.state.get(twins[id(p)], {}).items() if isinstance(v, Tensor) and v.device.type == device.type}
    large = {key: torch.empty_like(v, device="meta") for key, v in found.items() if v.nbytes >= SMALLEST}
    return Kept(large, sum(v.nbytes for key, v in found.items() if key not in large), live.most)


class _nothing:
    most = 0

    def __enter__(self) -> _nothing:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


def signature(optimizer: Optimizer, part: Sequence[Tensor]) -> Any:
    """What `kept_by` depends on."""
    group = {id(p): k for k, g in enumerate(optimizer.param_groups) for p in g["params"]}
    return tuple((group[id(p)], p.shape, p.stride(), p.dtype) for p in part)


def parts_of(parameters: Sequence[tuple[Any, Tensor]]) -> Iterator[list[Any]]:
    """Names of parameters that follow each other, in parts of at most the bytes of the largest one."""
    largest = max((p.nbytes for _, p in parameters), default=0)
    now: list[Any] = []
    bytes_ = 0
    for name, p in parameters:
        if now and bytes_ + p.nbytes > largest:
            yield now
            now, bytes_ = [], 0
        now.append(name)
        bytes_ += p.nbytes
    if now:
        yield now
