"""`options={"optimizer": …}`: the optimizer's state rests on the host, passes through the device in pieces, and has the bits of a loop without it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

import lmsc
import lmsc.torch
import pytest
import torch
from backend_models import MODELS, labels, rows
from backend_tools import Live, Meter
from lmsc.torch import backend as lmsc_backend
from lmsc.torch.backend import state
from lmsc.torch.backend.state import RestingState
from torch import nn, optim


@pytest.fixture(autouse=True)
def _threads() -> Any:
    torch.set_num_threads(1)
    yield
    torch._dynamo.reset()


class Net(nn.Module):
    """Two layers share a weight, one is frozen, and one gets no gradient in odd steps."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
        self.rare = nn.Linear(64, 64)
        self.out = nn.Linear(64, 200)
        self.layers[1].weight = self.layers[0].weight
        self.layers[2].requires_grad_(False)

    def forward(self, x: torch.Tensor, rare: bool = False) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).relu()
        return self.out(self.rare(x) if rare else x).square().mean()


Make = Callable[[list[nn.Parameter]], optim.Optimizer]


def grouped(parameters: Iterable[nn.Parameter]) -> optim.Optimizer:
    parameters = list(parameters)
    groups = [{"params": [p for p in parameters if (p.dim() > 1) == large], "weight_decay": 0.1 * large} for large in (True, False)]
    return optim.AdamW(groups, 1e-2)


OPTIMIZERS: dict[str, Make] = {
    "adamw": lambda ps: optim.AdamW(ps, 1e-2),
    "adamw_foreach": lambda ps: optim.AdamW(ps, 1e-2, foreach=True, amsgrad=True),
    "adamw_fused": lambda ps: optim.AdamW(ps, 1e-2, fused=True),
    "groups": grouped,
    "sgd": lambda ps: optim.SGD(ps, 1e-2, momentum=0.9, nesterov=True),
    "sgd_foreach": lambda ps: optim.SGD(ps, 1e-2, momentum=0.9, foreach=True),
    "sgd_fused": lambda ps: optim.SGD(ps, 1e-2, momentum=0.9, fused=True),
    "adagrad": lambda ps: optim.Adagrad(ps, 1e-2),
    "adafactor": lambda ps: optim.Adafactor(ps, 1e-2),
    "muon": lambda ps: optim.Muon([p for p in ps if p.dim() == 2], 1e-2),
}


def trained(make: Make, rests: bool) -> tuple[list[torch.Tensor], dict[str, Any]]:
    """Parameters and state after four steps with clipping, a schedule, a scaler, and a checkpoint that is loaded into new objects."""
    torch.manual_seed(0)
    net, checkpoint = Net(), io.BytesIO()
    for half in range(2):
        optimizer = make(list(net.parameters()))
        if half:
            optimizer.load_state_dict(torch.load(io.BytesIO(checkpoint.getvalue()), weights_only=True))
        if rests:
            RestingState.of(optimizer).move()
        if half:
            optimizer.load_state_dict(torch.load(io.BytesIO(checkpoint.getvalue()), weights_only=True))
        scheduler, scaler = optim.lr_scheduler.StepLR(optimizer, 1, 0.5), torch.amp.GradScaler("cpu", init_scale=8.0)
        for i in range(2):
            scaler.scale(net(rows(2 * half + i, 16), rare=i == 0)).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            optimizer.zero_grad()
        torch.save(optimizer.state_dict(), checkpoint)
    return list(net.parameters()), optimizer.state_dict()


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_whose_state_rests_has_the_bits_of_pytorch(name: str) -> None:
    assert same(trained(OPTIMIZERS[name], rests=False), trained(OPTIMIZERS[name], rests=True))


def compiled_steps(make: Make, backend: Any, **options: Any) -> tuple[Any, list[tuple[int, int]], optim.Optimizer]:
    """Losses, parameters and state after three steps of a compiled model, and the measured peaks of both passes and of the update."""
    torch._dynamo.reset()
    model = MODELS["dropout"]().module.train()
    optimizer = make(list(model.parameters()))
    asked = {"options": {**options, "optimizer": optimizer}} if options else {}
    run = torch.compile(model, backend=backend, **asked)
    losses, peaks = [], []
    with Meter() as meter:
        for i in range(3):
            torch.manual_seed(i)
            meter.live = Live()
            batch = rows(i), labels(i)
            loss = run(*batch)
            loss.backward()
            losses.append(loss.item())
            passes, meter.live.peak = meter.live.peak, meter.live.now
            with meter.live:
                optimizer.step()
            peaks.append((passes, meter.live.peak))
            optimizer.zero_grad()
    return (losses, list(model.parameters()), optimizer.state_dict()), peaks, optimizer


def test_a_compiled_step_keeps_within_what_its_plan_tells() -> None:
    make = OPTIMIZERS["adamw_foreach"]
    want, *_ = compiled_steps(make, "aot_eager")
    found, peaks, optimizer = compiled_steps(make, lmsc_backend.backend, budget="0.7x")
    assert same(want, found)
    (plan,) = [plan for plan in lmsc.torch.plans() if plan.update]
    assert max(passes for passes, _ in peaks) <= plan.peak
    assert 0.95 * plan.update <= max(update for _, update in peaks) <= plan.update
    resting = [t for one in optimizer.state.values() for t in one.values() if t.nbytes >= 4096]
    assert plan.state == sum(t.nbytes for t in resting) > 0
    assert "of the optimizer's state rest on the host" in str(plan)


def test_an_update_that_does_not_fit_is_refused() -> None:
    net = nn.Sequential(*[nn.Linear(256, 256) for _ in range(3)])
    asked: dict[str, Any] = {"budget": "1x", "optimizer": optim.AdamW(net.parameters())}
    (plan,) = lmsc.torch.plan(net, rows(0, 4, 256), **asked)
    assert plan.update > plan.peak and not hasattr(asked["optimizer"], "_lmsc_resting")
    run = torch.compile(net, backend=lmsc_backend.backend, options={**asked, "budget": plan.peak})
    with pytest.raises(lmsc.Refusal, match="an update of the optimizer takes") as caught:
        run(rows(0, 4, 256))
    assert caught.value.smallest_budget == plan.update
    torch._dynamo.reset()
    torch.compile(net, backend=lmsc_backend.backend, options={**asked, "budget": plan.update})(rows(0, 4, 256)).sum().backward()


def resting(make: Make = OPTIMIZERS["adamw"]) -> tuple[Net, optim.Optimizer]:
    net = Net()
    optimizer = make(list(net.parameters()))
    RestingState.of(optimizer).move()
    net(rows(0, 16), rare=True).backward()
    return net, optimizer


def test_hooks_and_closures_meet_one_step_with_its_gradients() -> None:
    net = Net()
    optimizer = optim.AdamW(net.parameters())
    seen: list[Any] = []
    optimizer.register_step_pre_hook(lambda *_: seen.append(net.out.weight.grad is not None))
    optimizer.register_step_post_hook(lambda *_: seen.append(net.out.weight.grad is not None))
    RestingState.of(optimizer).move()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = net(rows(0, 16))
        loss.backward()
        return loss

    before = net.out.weight.detach().clone()
    assert optimizer.step(closure).item() > 0
    assert seen == [False, True] and not torch.equal(before, net.out.weight)


def test_after_an_error_in_an_update_the_state_rests_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _, optimizer = resting()
    optimizer.step()
    hosts = {p: dict(tensors) for p, tensors in optimizer._lmsc_resting.hosts.items()}
    monkeypatch.setattr(state, "run", lambda *_: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):
        optimizer.step()
    assert hosts and all(optimizer.state[p][key] is host for p, tensors in hosts.items() for key, host in tensors.items())


class Sam(optim.SGD):
    """It computes the loss twice."""

    def step(self, closure: Any = None) -> Any:
        if closure is not None:
            closure()
        return super().step(closure)


class Counting(optim.SGD):
    """It keeps the number of its steps in Python."""

    def step(self, closure: Any = None) -> Any:
        self.defaults["lr"], self.count = self.defaults["lr"] / 2, getattr(self, "count", 0) + 1
        return super().step(closure)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda ps: optim.LBFGS(ps), "computes losses itself"),
        (lambda ps: optim.SGD(ps, 0.1, momentum=0.9, differentiable=True), "differentiable"),
        (lambda ps: Counting(ps, 0.1), "not that of one parameter after another"),
        (lambda ps: "adam", "an optimizer of PyTorch"),
    ],
)
def test_an_optimizer_whose_state_cannot_rest_is_refused_by_name(make: Any, word: str) -> None:
    net = Net()
    run = torch.compile(net, backend=lmsc_backend.backend, options={"budget": "1x", "optimizer": make(list(net.parameters()))})
    with pytest.raises(lmsc.InputError, match=word):
        run(rows(0, 16))


def test_a_step_that_cannot_be_made_in_pieces_is_refused_by_name() -> None:
    _, optimizer = resting(lambda ps: Sam(ps, 0.1, momentum=0.9))
    with pytest.raises(lmsc.InputError, match="a closure"):
        optimizer.step(lambda: torch.zeros(()))
    _, optimizer = resting()
    with pytest.raises(lmsc.InputError, match=r"leave it out of torch\.compile"):
        torch.compile(optimizer.step, backend="eager")()
    optimizer.register_step_pre_hook(lambda *_: None)
    with pytest.raises(lmsc.InputError, match="register it before"):
        optimizer.step()
