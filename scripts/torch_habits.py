"""Habits of training loops, each with `TrainStep` beside PyTorch, for the table in docs/pytorch.md.

A habit is a module, an optimizer, and a loop that changes something between steps, or a forward pass that keeps something. The loop is
written once, over `Loop`, which either runs PyTorch's own steps or those of `TrainStep`. A habit is "as PyTorch" if losses,
parameters, buffers and the values that the loop looks at are equal to 1e-4, and "refused" if an error with a code, or PyTorch's
own, says so. Anything else is silent, and the script fails.

    python scripts/torch_habits.py [PART OF A NAME …] [--kernels torch] [--write docs/pytorch.md]
"""

from __future__ import annotations

import argparse
import copy
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lmsc.torch
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import lr_scheduler

TOLERANCE = 1e-4


class Loop:
    """A training loop's objects, with PyTorch's own steps or with those of a TrainStep."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, loss: Any, batches: list[tuple[Tensor, ...]], ours: bool, kernels: str, **options: Any) -> None:
        self.model, self.optimizer, self.loss, self.batches = model, optimizer, loss, batches
        self.options, self.seen, self.ours, self.kernels = options, [], ours, kernels
        self.step: lmsc.torch.TrainStep | None = None
        self.clip, self.parts = options.get("clip_grad_norm"), options.get("accumulate", 1)

    def make(self) -> None:
        """Makes the step, if it is not there."""
        if self.ours and self.step is None:
            self.step = lmsc.torch.TrainStep(self.model, self.loss, self.optimizer, example=self.batches[0], kernels=self.kernels, **self.options)

    def run(self, count: int = 2) -> None:
        """Runs steps, each with the next batch, and notes their losses."""
        self.make()
        for _ in range(count):
            batch = self.batches[len(self.seen) % len(self.batches)]
            self.seen.append(float(self.step(*batch)) if self.step is not None else self.eager(batch))

    def eager(self, batch: tuple[Tensor, ...]) -> float:
        self.optimizer.zero_grad()
        total = 0.0
        for part in zip(*(t.chunk(self.parts) for t in batch)):
            loss = self.model(*part) if self.loss is None else self.loss(self.model(*part[:-1]), part[-1])
            (loss / self.parts).backward()
            total += float(loss.detach()) / self.parts
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return total

    def sync(self) -> None:
        """The call of a user of TrainStep before tensors are read or written directly."""
        if self.step is not None:
            self.step.sync()

    def look(self, *values: Any) -> None:
        """Notes the values that the loop sees."""
        self.seen += [v.detach().double().sum().item() if isinstance(v, Tensor) else float(v) for v in values]


@dataclass
class Habit:
    """A habit: its objects, and its loop."""

    name: str
    loop: Callable[[Loop], None]
    model: Callable[[], nn.Module]
    optimizer: Callable[[nn.Module], torch.optim.Optimizer]
    loss: Any = F.mse_loss
    batch: Callable[[], tuple[Tensor, ...]] = lambda: (torch.randn(4, 6), torch.randn(4, 3))
    options: dict[str, Any] = field(default_factory=dict)


HABITS: dict[str, Habit] = {}


def sgd(m: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)


def adamw(m: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(m.parameters(), lr=1e-2, eps=1e-4)


class Net(nn.Module):
    """Two layers and batch normalization, and a number. A bias right before the normalization would have gradients of rounding alone."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.norm, self.drop, self.head = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.0), nn.Linear(8, 3)
        self.temperature = 1.0

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.norm(self.body(x).tanh()))) / self.temperature


class Of(nn.Module):
    """A module of a function and its parts."""

    def __init__(self, f: Callable[..., Any], buffers: dict[str, Tensor] | None = None, **parts: Any) -> None:
        super().__init__()
        self.f = f
        for n, v in parts.items():
            setattr(self, n, v)
        for n, v in (buffers or {}).items():
            self.register_buffer(n, v)

    def forward(self, *a: Tensor) -> Tensor:
        return self.f(self, *a)


def habit(name: str, model: Callable[[], nn.Module] = Net, optimizer: Callable[[nn.Module], torch.optim.Optimizer] = adamw, **more: Any) -> Callable[[Any], Any]:
    """Registers a loop."""

    def register(loop: Callable[[Loop], None]) -> Callable[[Loop], None]:
        HABITS[name] = Habit(name, loop, model, optimizer, **more)
        return loop

    return register


def kept(name: str, forward: Callable[..., Any], buffers: Callable[[], dict[str, Tensor]] = dict, optimizer: Any = sgd, **parts: Callable[[], Any]) -> None:
    """A habit of a forward pass, whose module has these parts."""
    model = lambda: Of(forward, buffers(), **{n: make() for n, make in parts.items()})
    HABITS[name] = Habit(name, lambda l: l.run(4), model, optimizer)


def linear() -> nn.Module:
    return nn.Linear(6, 3)


# State that the forward pass keeps.


def average(s: Any, x: Tensor) -> Tensor:
    y = s.l(x)
    s.e = s.e * 0.9 + y.detach().mean(0) * 0.1
    return y - s.e


def recurrent(s: Any, x: Tensor) -> Tensor:
    s.h = s.c(x, s.h.detach())
    return s.h.detach() + s.l(x)


def momentum(s: Any, x: Tensor) -> Tensor:
    with torch.no_grad():
        for a, b in zip(s.t.parameters(), s.q.parameters()):
            a.mul_(0.9).add_(b, alpha=0.1)
    return s.q(x) - s.t(x)


def momentum_data(s: Any, x: Tensor) -> Tensor:
    for a, b in zip(s.t.parameters(), s.q.parameters()):
        a.data = a.data * 0.9 + b.data * 0.1
    return s.q(x) - s.t(x)


def counted_tensor(s: Any, x: Tensor) -> Tensor:
    s.t = s.t + 1
    return s.l(x) * s.t


def counted_number(s: Any, x: Tensor) -> Tensor:
    s.n += 1
    return s.l(x) / s.n


def last_seen(s: Any, x: Tensor) -> Tensor:
    y = s.l(x)
    s.last.copy_(y.detach().mean(0))
    return y


def auxiliary(s: Any, x: Tensor) -> Tensor:
    s.aux = s.l(x).square().mean()
    return s.l(x) + s.aux


def history(s: Any, x: Tensor) -> Tensor:
    y = s.l(x)
    s.past.append(y.detach())
    return y


def lazy(s: Any, x: Tensor) -> Tensor:
    if s.scale is None:
        s.scale = x.abs().mean()
    return s.l(x) / s.scale


def python_random(s: Any, x: Tensor) -> Tensor:
    return s.l(x) * random.random()


def numpy_random(s: Any, x: Tensor) -> Tensor:
    return s.l(x) * float(np.random.rand())


def clamped(s: Any, x: Tensor) -> Tensor:
    s.l.weight.data.clamp_(-0.1, 0.1)
    return s.l(x)


def counted_inside(s: Any, x: Tensor) -> Tensor:
    s.counts["steps"] += 1
    return s.l(x) / s.counts["steps"]


def counted_in_array(s: Any, x: Tensor) -> Tensor:
    s.counts[0] += 1
    return s.l(x) / float(s.counts[0])


class Numbers:
    """An iterator, and a number of a class."""

    steps = 1

    def __init__(self) -> None:
        self.n = 0

    def __next__(self) -> int:
        self.n += 1
        return self.n


def advanced(s: Any, x: Tensor) -> Tensor:
    return s.l(x) / next(s.numbers)


def counted_in_class(s: Any, x: Tensor) -> Tensor:
    Numbers.steps += 1
    return s.l(x) / Numbers.steps


def seeded(s: Any, x: Tensor) -> Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return s.l(x) + torch.rand(3)


def counted_in_function(s: Any, x: Tensor) -> Tensor:
    counted_in_function.steps = getattr(counted_in_function, "steps", 0) + 1  # type: ignore[attr-defined]
    return s.l(x) / counted_in_function.steps  # type: ignore[attr-defined]


def by_the_clock(s: Any, x: Tensor) -> Tensor:
    return s.l(x) * (1 + time.time() % 1)


def by_the_system(s: Any, x: Tensor) -> Tensor:
    return s.l(x) * float(np.random.default_rng().random())


def copied_target(s: Any, x: Tensor) -> Tensor:
    s.t.load_state_dict(s.q.state_dict())
    return s.q(x) - 0.5 * s.t(x)


def seen_through_a_view(s: Any, x: Tensor) -> Tensor:
    s.b.mul_(0.5)
    return s.l(x) + s.v


def with_a_view() -> nn.Module:
    m = Of(seen_through_a_view, {"b": torch.ones(3)}, l=linear())
    m.v = m.b[:]
    return m


def tied_by_data() -> nn.Module:
    m = Of(lambda s, x: s.l(x) - s.t(x), l=linear(), t=linear())
    m.t.weight.data = m.l.weight.data
    return m


kept("a buffer that `forward` assigns", average, lambda: {"e": torch.zeros(3)}, l=linear)
kept("a recurrent state in a buffer", recurrent, lambda: {"h": torch.zeros(4, 3)}, l=linear, c=lambda: nn.GRUCell(6, 3))
kept("a momentum encoder (MoCo, BYOL)", momentum, q=linear, t=lambda: linear().requires_grad_(False))
kept("a momentum encoder by `.data =`", momentum_data, q=linear, t=lambda: linear().requires_grad_(False))
kept("a tensor in an attribute", counted_tensor, l=linear, t=lambda: torch.zeros(()))
kept("a number that `forward` counts", counted_number, l=linear, n=lambda: 0)
kept("a buffer that is written and not read", last_seen, lambda: {"last": torch.zeros(3)}, l=linear)
kept("an auxiliary loss in an attribute", auxiliary, l=linear, aux=lambda: None)
kept("activations in a list", history, l=linear, past=list)
kept("an attribute that the first batch sets", lazy, l=linear, scale=lambda: None)
kept("`random` in `forward`", python_random, l=linear)
kept("a number in a dict that `forward` counts", counted_inside, l=linear, counts=lambda: {"steps": 0})
kept("a NumPy array that `forward` counts in", counted_in_array, l=linear, counts=lambda: np.zeros(1))
kept("a number of a class that `forward` counts", counted_in_class, l=linear)
kept("a number of a function that `forward` counts", counted_in_function, l=linear)
kept("a clock in `forward`", by_the_clock, l=linear)
kept("random numbers of the system in `forward`", by_the_system, l=linear)
kept("a target network loaded in `forward` (DQN)", copied_target, q=linear, t=lambda: linear().requires_grad_(False))
kept("an iterator that `forward` advances", advanced, l=linear, numbers=Numbers)
kept("`manual_seed` in `forward`", seeded, l=linear)
kept("`numpy.random` in `forward`", numpy_random, l=linear)
kept("weights clamped in `forward`", clamped, l=linear)


@habit("spectral_norm, evaluated afterwards", lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(6, 3)), sgd)
def _(l: Loop) -> None:
    l.run(4)
    l.model.eval()
    l.look(l.model(l.batches[0][0]))


@habit("batch normalization, evaluated between steps")
def _(l: Loop) -> None:
    for _ in range(2):
        l.run()
        l.model.eval()
        l.look(l.model(l.batches[0][0]))
        l.model.train()


class Reversible(torch.autograd.Function):
    """A layer that is run again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: nn.Module) -> Tensor:
        ctx.layer = layer
        ctx.save_for_backward(x)
        with torch.no_grad():
            return layer(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.layer(x)
        torch.autograd.backward(y, dy)
        return x.grad, None


@habit("backward() inside of an autograd function", lambda: Of(lambda s, x: s.b(Reversible.apply(s.a(x), s.m)), a=nn.Linear(6, 4), m=nn.Linear(4, 4), b=nn.Linear(4, 3)), sgd)
def _(l: Loop) -> None:
    l.run(4)


# Optimizers.


class Masters(torch.optim.Optimizer):
    """State that begins as a copy of the parameter."""

    def __init__(self, params: Any, lr: float = 0.1) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "slow" not in state:
                    state["slow"] = p.clone()
                state["slow"].add_(p.grad, alpha=-group["lr"])
                p.copy_(state["slow"] * 0.5 + p * 0.5)


class OtherFirst(Masters):
    """A first step that differs from the others."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if "m" not in state:
                    state["m"] = p.grad.clone()
                else:
                    state["m"].lerp_(p.grad, 0.1)
                p.add_(state["m"], alpha=-group["lr"])


class Counting(Masters):
    """An optimizer that counts in its groups."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            group["t"] = group.get("t", 0) + 1
            for p in group["params"]:
                p.add_(p.grad, alpha=-group["lr"] / group["t"])


class Listing(Masters):
    """An optimizer that keeps its history in a list, and changes its rate by it."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["past"] = [*state.get("past", []), 1]
                p.add_(p.grad, alpha=-group["lr"] if len(state["past"]) < 4 else group["lr"])


def hooked(pre: Any = None, post: Any = None) -> Callable[[nn.Module], torch.optim.Optimizer]:
    def make(m: nn.Module) -> torch.optim.Optimizer:
        o = sgd(m)
        if pre:
            o.register_step_pre_hook(pre)
        if post:
            o.register_step_post_hook(post)
        return o

    return make


def four(l: Loop) -> None:
    l.run(4)


def clip_values(o: Any, args: Any, kwargs: Any) -> None:
    nn.utils.clip_grad_value_([p for g in o.param_groups for p in g["params"]], 0.01)


@torch.no_grad()
def clamp_weights(o: Any, args: Any, kwargs: Any) -> None:
    for g in o.param_groups:
        for p in g["params"]:
            p.clamp_(-0.2, 0.2)


habit("an optimizer with copies of the parameters", optimizer=lambda m: Masters(m.parameters()))(four)
habit("an optimizer whose first step is another one", optimizer=lambda m: OtherFirst(m.parameters()))(four)
habit("an optimizer that counts in `param_groups`", optimizer=lambda m: Counting(m.parameters()))(four)
habit("an optimizer that keeps a list", optimizer=lambda m: Listing(m.parameters()))(four)
habit("SGD with dampening", optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, dampening=0.5))(four)
habit("Rprop", linear, optimizer=lambda m: torch.optim.Rprop(m.parameters(), lr=0.01))(four)
habit("AMSGrad", optimizer=lambda m: torch.optim.AdamW(m.parameters(), lr=1e-2, eps=1e-4, amsgrad=True))(four)
habit("LBFGS", optimizer=lambda m: torch.optim.LBFGS(m.parameters()))(four)
habit("clipping by value in a hook of the optimizer", optimizer=hooked(pre=clip_values))(four)
habit("weights clamped in a hook of the optimizer", optimizer=hooked(post=clamp_weights))(four)
habit("clipping by norm", options={"clip_grad_norm": 0.1})(four)
habit("accumulation over parts of the batch", lambda: nn.Linear(6, 3), options={"accumulate": 2})(four)
habit("accumulation over parts that are uneven", lambda: nn.Linear(6, 3), options={"accumulate": 3})(four)


# Changes by the loop between two steps.


def then(name: str, change: Callable[[Loop], None], model: Callable[[], nn.Module] = Net, optimizer: Any = adamw, **more: Any) -> None:
    """A habit: two steps, a change, and three steps."""

    def loop(l: Loop) -> None:
        l.run(2)
        change(l)
        l.run(3)

    HABITS[name] = Habit(name, loop, model, optimizer, **more)


def replace_head(l: Loop) -> None:
    torch.manual_seed(5)
    l.model.head = nn.Linear(8, 3)
    l.optimizer.add_param_group({"params": l.model.head.parameters()})


def another_layer(l: Loop) -> None:
    l.model.extra = nn.Tanh()
    l.model.head = nn.Sequential(l.model.head, l.model.extra)


@torch.no_grad()
def written(l: Loop) -> None:
    l.sync()
    l.model.head.weight.mul_(0.5)


@torch.no_grad()
def written_blindly(l: Loop) -> None:
    l.model.head.weight.mul_(0.5)


def written_by_data(l: Loop) -> None:
    l.sync()
    l.model.head.weight.data[1, 2] = 5.0


def written_by_numpy(l: Loop) -> None:
    l.sync()
    l.model.head.weight.detach().numpy()[:] *= 0.5


def moments_zeroed(l: Loop) -> None:
    l.sync()
    for s in l.optimizer.state.values():
        s["exp_avg"].zero_()


def loaded(l: Loop) -> None:
    torch.manual_seed(9)
    l.sync()
    l.model.load_state_dict(Net().state_dict())


def rewound(l: Loop) -> None:
    state = copy.deepcopy((l.model.state_dict(), l.optimizer.state_dict()))
    l.run(2)
    l.sync()
    l.model.load_state_dict(state[0])
    l.optimizer.load_state_dict(state[1])


def frozen_then_not(l: Loop) -> None:
    l.model.body.requires_grad_(False)
    l.run(2)
    l.model.body.requires_grad_(True)


def decay(l: Loop) -> None:
    l.optimizer.param_groups[0]["weight_decay"] = 0.5


def add_group(l: Loop) -> None:
    l.optimizer.add_param_group({"params": l.model.head.parameters(), "lr": 1e-3})


def only(*names: str) -> Callable[[nn.Module], torch.optim.Optimizer]:
    return lambda m: torch.optim.AdamW([p for n in names for p in getattr(m, n).parameters()], lr=1e-2, eps=1e-4)


def in_autocast(l: Loop) -> None:
    for _ in range(2):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            l.run(1)


def in_no_grad(l: Loop) -> None:
    with torch.no_grad():
        l.run(1)


def fill_mask(l: Loop) -> None:
    l.model.m.fill_(0.5)


then("a layer frozen", lambda l: l.model.body.requires_grad_(False) and None)
then("a layer frozen, and trained again", frozen_then_not)
then("a layer unfrozen", lambda l: l.model.body.requires_grad_(True) and None, lambda: (m := Net(), m.body.requires_grad_(False))[0])
then("a normalization in eval() of its own", lambda l: l.model.norm.eval() and None)
then("the whole model in eval()", lambda l: l.model.eval() and None)
then("a number of the module", lambda l: setattr(l.model, "temperature", 2.0))
then("a layer replaced, and its parameters added", replace_head)
then("a layer wrapped", another_layer)
then("a forward hook", lambda l: l.model.head.register_forward_hook(lambda m, a, y: y * 2) and None)
then("a hook of a gradient (clamp)", lambda l: l.model.head.weight.register_hook(lambda g: g.clamp(-0.01, 0.01)) and None, optimizer=sgd)
then("a hook behind a gradient's accumulation", lambda l: l.model.head.weight.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.1) is None or None) and None, optimizer=sgd)
then("a full backward hook", lambda l: l.model.head.register_full_backward_hook(lambda m, gi, go: tuple(g * 0.5 if g is not None else g for g in gi)) and None, optimizer=sgd)
then("a parameter group added", add_group, optimizer=only("body", "norm"))
then("another weight decay", decay)
then("weights written, after sync()", written)
then("weights written, without sync()", written_blindly)
then("weights written by `.data`, after sync()", written_by_data)
then("weights written by `.data`, without sync()", lambda l: l.model.head.weight.data.mul_(0.5) is None or None)
then("weights written by NumPy, after sync()", written_by_numpy)
then("a large weight clamped by `.data`, after sync()", lambda l: (l.sync(), l.model.l.weight.data.clamp_(-0.01, 0.01))[0],
     lambda: Of(lambda s, x: s.h(s.l(x)), l=nn.Linear(6, 400), h=nn.Linear(400, 3)), sgd)  # fmt: skip
then("a buffer written by NumPy", lambda l: l.model.m.numpy().fill(0.5), lambda: Of(lambda s, x: s.l(x) * s.m, {"m": torch.ones(3)}, l=linear()))
then("moments set to zero, after sync()", moments_zeroed)
then("the optimizer's state cleared, without sync()", lambda l: l.optimizer.state.clear())
then("weights loaded, after sync()", loaded)
then("back to an earlier state", rewound)
then("autocast around some steps", in_autocast)
then("no_grad around a step", in_no_grad)
then("a constant buffer filled", fill_mask, lambda: Of(lambda s, x: s.l(x) * s.m, {"m": torch.ones(3)}, l=linear()))
then("a batch of another size", lambda l: setattr(l, "batches", [tuple(t[:2] for t in b) for b in l.batches]), optimizer=sgd)
then("model.double()", lambda l: l.model.double() and None)
then("a gradient scaler", lambda l: torch.amp.GradScaler("cpu").scale(l.step(*l.batches[0]) if l.step else l.model(l.batches[0][0]).sum()).backward())


def while_(change: Callable[[Loop], Callable[[], Any]]) -> Callable[[Loop], None]:
    """Two steps while something is changed, which is then put back."""

    def loop(l: Loop) -> None:
        back = change(l)
        try:
            l.run(2)
        finally:
            back()

    return loop


def squared(x: Tensor) -> Tensor:
    return x.square()


class Replaced(nn.Module):
    """A module whose function and whose method are replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.l = linear()

    def scaled(self, x: Tensor) -> Tensor:
        return x * 2

    def forward(self, x: Tensor) -> Tensor:
        return ACTIVATION(self.scaled(self.l(x)))


ACTIVATION: Callable[[Tensor], Tensor] = squared


def replaced_global(l: Loop) -> Callable[[], Any]:
    globals()["ACTIVATION"] = torch.tanh
    return lambda: globals().update(ACTIVATION=squared)


def replaced_method(l: Loop) -> Callable[[], Any]:
    before = Replaced.scaled
    Replaced.scaled = lambda self, x: x * 3  # type: ignore[method-assign]
    return lambda: setattr(Replaced, "scaled", before)


def hooked_everywhere(l: Loop) -> Callable[[], Any]:
    return nn.modules.module.register_module_forward_hook(lambda m, a, y: y * 1.1 if isinstance(m, nn.Linear) else None).remove


def hooked_optimizers(l: Loop) -> Callable[[], Any]:
    def scale(o: Any, args: Any, kwargs: Any) -> None:
        for p in (p for g in o.param_groups for p in g["params"]):
            p.grad.mul_(0.1)

    return sys.modules["torch.optim.optimizer"].register_optimizer_step_pre_hook(scale).remove


then("`forward` of a part replaced", lambda l: setattr(l.model.head, "forward", lambda x: F.linear(x, l.model.head.weight)))
then("a hook of all modules, for a time", while_(hooked_everywhere))
then("a hook of all optimizers, for a time", while_(hooked_optimizers), optimizer=sgd)
then("a function in a global replaced, for a time", while_(replaced_global), Replaced)
then("a method of the class replaced, for a time", while_(replaced_method), Replaced)


class Weighted:
    """A loss with a weight that the loop changes."""

    def __init__(self, kind: Any = float) -> None:
        self.weight = kind(1.0)

    def __call__(self, y: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(y, target) * self.weight


@habit("a weight of the loss that is annealed")
def _(l: Loop) -> None:
    beta = 1.0
    l.loss = lambda y, t: F.mse_loss(y, t) + beta * y.square().mean()
    for beta in (1.0, 0.5, 0.25):
        l.run(1)


@habit("a weight of the loss, annealed in a tensor")
def _(l: Loop) -> None:
    beta = torch.tensor(1.0)
    l.loss = lambda y, t: F.mse_loss(y, t) + beta * y.square().mean()
    for _ in range(3):
        l.run(1)
        beta.mul_(0.5)


@habit("a weight of the loss, another one in each of 12 steps")
def _(l: Loop) -> None:
    l.loss = Weighted()
    for k in range(12):
        l.loss.weight = 1.0 / (k + 1)
        l.run(1)


@habit("a teacher outside of the module, by EMA")
def _(l: Loop) -> None:
    teacher = copy.deepcopy(l.model).requires_grad_(False)
    x0 = l.batches[0][0]
    l.loss = lambda y, t: F.mse_loss(y, t) + F.mse_loss(y, teacher(x0))
    for _ in range(4):
        l.run(1)
        l.sync()
        with torch.no_grad():
            for a, b in zip(teacher.parameters(), l.model.parameters()):
                a.lerp_(b, 0.1)


@habit("a teacher outside of the module, by EMA with `.data`")
def _(l: Loop) -> None:
    teacher = copy.deepcopy(l.model).requires_grad_(False)
    x0 = l.batches[0][0]
    l.loss = lambda y, t: F.mse_loss(y, t) + F.mse_loss(y, teacher(x0))
    for _ in range(4):
        l.run(1)
        l.sync()
        for a, b in zip(teacher.parameters(), l.model.parameters()):
            a.data.mul_(0.9).add_(b.data, alpha=0.1)


@habit("a weight of the loss, annealed by `.data`")
def _(l: Loop) -> None:
    beta = torch.tensor(1.0)
    l.loss = lambda y, t: F.mse_loss(y, t) + beta * y.square().mean()
    for _ in range(3):
        l.run(1)
        beta.data.mul_(0.5)


@habit("a list of losses in the loss function")
def _(l: Loop) -> None:
    log: list[Tensor] = []

    def loss(y: Tensor, t: Tensor) -> Tensor:
        value = F.mse_loss(y, t)
        log.append(value.detach())
        return value

    l.loss = loss
    l.run(3)
    l.look(*log)


# Reads by the loop.


@habit("state_dict() without sync()")
def _(l: Loop) -> None:
    l.run(3)
    l.look(*l.model.state_dict().values())


@habit("the optimizer's state_dict() without sync()")
def _(l: Loop) -> None:
    l.run(3)
    state = l.optimizer.state_dict()["state"]
    l.look(*(v for s in state.values() for v in s.values()))


@habit("evaluation without sync()")
def _(l: Loop) -> None:
    l.run(3)
    l.look(l.model(l.batches[1][0]), l.model.head(torch.ones(2, 8)))
    l.run(1)


@habit("torch.save of the model without sync()")
def _(l: Loop) -> None:
    l.run(3)
    with tempfile.TemporaryDirectory() as folder:
        torch.save(l.model, Path(folder, "m.pt"))
        l.look(*torch.load(Path(folder, "m.pt"), weights_only=False).state_dict().values())


@habit("deepcopy of the model without sync()")
def _(l: Loop) -> None:
    l.run(3)
    l.look(*copy.deepcopy(l.model).state_dict().values())


@habit("swa_utils.AveragedModel, after sync()")
def _(l: Loop) -> None:
    average = torch.optim.swa_utils.AveragedModel(l.model)
    for _ in range(3):
        l.run(1)
        l.sync()
        average.update_parameters(l.model)
    l.look(*average.module.parameters())


@habit("resumed from a checkpoint of PyTorch")
def _(l: Loop) -> None:
    l.run(2)
    state = copy.deepcopy((l.model.state_dict(), l.optimizer.state_dict()))
    l.model.load_state_dict(state[0])
    l.optimizer = adamw(l.model)
    l.optimizer.load_state_dict(state[1])
    l.step = None
    l.run(2)


for _name, _make in {
    "a cosine schedule": lambda o: lr_scheduler.CosineAnnealingLR(o, 4),
    "OneCycleLR, which moves momentum": lambda o: lr_scheduler.OneCycleLR(o, 0.05, total_steps=10),
    "warmup and decay by LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda k: min(1.0, (k + 1) / 3)),
}.items():

    def _loop(l: Loop, make: Any = _make) -> None:
        schedule = make(l.optimizer)
        for _ in range(4):
            l.run(1)
            schedule.step()

    habit(_name)(_loop)


@habit("two optimizers by turns (GAN)", lambda: Of(lambda s, x: s.d(s.g(x)), g=nn.Linear(6, 6), d=nn.Linear(6, 3)), sgd)
def _(l: Loop) -> None:
    first, second = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (l.model.g, l.model.d))
    loops = [Loop(l.model, o, l.loss, l.batches, l.ours, l.kernels) for o in (first, second)]
    for k in range(4):
        loops[k % 2].run(1)
        l.look(loops[k % 2].seen[-1])
    for other in loops:
        other.sync()


@habit("a compiled module")
def _(l: Loop) -> None:
    inner = l.model
    l.model = torch.compile(inner) if l.ours else inner
    l.run(3)
    l.sync()
    l.model = inner


@habit("a module in DataParallel")
def _(l: Loop) -> None:
    inner = l.model
    l.model = nn.DataParallel(inner)
    l.run(3)
    l.sync()
    l.model = inner


@habit("device=\"cpu\"", options={"device": "cpu"})
def _(l: Loop) -> None:
    l.run(2)


class Prepared(torch.optim.Optimizer):
    """An optimizer that hands over to another one, as accelerate's does."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    state = property(lambda s: s.optimizer.state, lambda s, v: setattr(s.optimizer, "state", v))
    param_groups = property(lambda s: s.optimizer.param_groups, lambda s, v: setattr(s.optimizer, "param_groups", v))
    defaults = property(lambda s: s.optimizer.defaults, lambda s, v: setattr(s.optimizer, "defaults", v))

    def step(self, closure: Any = None) -> None:
        self.optimizer.step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)


habit("an optimizer that accelerate has prepared", optimizer=lambda m: Prepared(adamw(m)))(four)


habit("a view of a buffer in an attribute", with_a_view)(four)
habit("a parameter that has another one's memory", tied_by_data)(four)
habit("the older spectral_norm", lambda: nn.utils.spectral_norm(linear()))(four)


class NamedLikeTheStep(nn.Module):
    """Parameters called as inputs and outputs of the step are."""

    def __init__(self) -> None:
        super().__init__()
        for n in ("lr", "step", "loss", "grad_norm", "w", "w_new"):
            self.register_parameter(n, nn.Parameter(torch.randn(6, 3)))

    def forward(self, x: Tensor) -> Tensor:
        return sum(x @ p for p in self.parameters())  # type: ignore[return-value]


habit("parameters called lr, step, loss, w and w_new", NamedLikeTheStep, options={"clip_grad_norm": 1.0})(four)


def attempt(h: Habit, ours: bool, kernels: str = "lmsc") -> tuple[list[float], dict[str, Tensor]]:
    """The values that the loop has seen, and the model's tensors after it."""
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(1)
    model = h.model()
    batches = [h.batch() for _ in range(3)]
    loop = Loop(model, h.optimizer(model), h.loss, batches, ours, kernels, **h.options)
    if not ours:
        loop.options = {}
    h.loop(loop)
    loop.sync()
    model = loop.model
    return loop.seen, {n: t.detach().clone() for n, t in [*model.named_parameters(), *model.named_buffers()]}


def judged(h: Habit, kernels: str = "lmsc") -> str:
    """`as PyTorch`, `refused: CODE`, or the silent difference."""
    wanted: Any
    try:
        wanted = attempt(h, False)
    except (RuntimeError, TypeError) as error:
        wanted = error
    try:
        have = attempt(h, True, kernels)
    except lmsc.Error as error:
        return f"refused: {error.code or 'LMS0210'}"
    except RuntimeError as error:
        return "refused: by PyTorch" if isinstance(wanted, Exception) or "grad" in str(error) else f"SILENT: {error}"
    if isinstance(wanted, Exception):
        return "SILENT: PyTorch refuses"
    if len(wanted[0]) != len(have[0]) or not np.allclose(wanted[0], have[0], rtol=TOLERANCE, atol=1e-5):
        if not ("autocast" in h.name and np.allclose(wanted[0], have[0], rtol=3e-2, atol=1e-3)):
            return f"SILENT: {np.round(have[0], 5).tolist()} for {np.round(wanted[0], 5).tolist()}"
        return "as PyTorch"
    off = [n for n, t in wanted[1].items() if not torch.allclose(t.double(), have[1][n].double(), rtol=1e-3, atol=2e-5)]
    return f"SILENT: {off[0]} differs" if off else "as PyTorch"


def table(kernels: str) -> Iterator[tuple[str, str]]:
    """Each habit with the result."""
    for name, h in HABITS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield name, judged(h, kernels)


MARK = "<!-- habits -->\n", "<!-- end of habits -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--kernels", default="lmsc", choices=("lmsc", "torch"))
    parser.add_argument("--write", type=Path, metavar="FILE")
    args = parser.parse_args()
    for name in [n for n in HABITS if args.names and not any(part in n for part in args.names)]:
        del HABITS[name]
    rows = []
    for name, result in table(args.kernels):
        rows.append((name, result))
        print(f"{name:55} {result}", flush=True)
    silent = sum(r.startswith("SILENT") for _, r in rows)
    print(f"{len(rows)} habits: {sum(r == 'as PyTorch' for _, r in rows)} as PyTorch, {sum(r.startswith('refused') for _, r in rows)} refused, {silent} silent")
    if args.write:
        before, rest = args.write.read_text().split(MARK[0])
        lines = ["| habit | TrainStep |", "|---|---|", *(f"| {n} | {r} |" for n, r in rows)]
        args.write.write_text(before + MARK[0] + "\n".join(lines) + "\n" + MARK[1] + rest.split(MARK[1], 1)[1])
    sys.exit(silent > 0)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
