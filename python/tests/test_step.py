"""What a user of `TrainStep` relies on: it trains as PyTorch does, and gives everything back."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmsc
import pytest
import torch
from lmsc.torch import TrainStep, export_step
from torch import Tensor, nn
from torch.nn import functional as F

Optimizer = Callable[[Any], torch.optim.Optimizer]


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 3))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 16, 3)
    )


def deep() -> nn.Module:
    """Activations that are more than half of the peak."""
    return nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(4)), nn.Linear(64, 3))


class Attention(nn.Module):
    """One causal layer over tokens, whose embedding is the head, too."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(11, 8)
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.token.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token(ids)
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return self.head(x).flatten(0, 1)


def vectors(count: int = 3, size: int = 4) -> list[tuple[Tensor, Tensor]]:
    return [(torch.randn(size, 6), torch.randint(0, 3, (size,))) for _ in range(count)]


def images(count: int = 3) -> list[tuple[Tensor, Tensor]]:
    return [(torch.randn(4, 3, 8, 8), torch.randint(0, 3, (4,))) for _ in range(count)]


def tokens(count: int = 3) -> list[tuple[Tensor, Tensor]]:
    return [(torch.randint(0, 11, (2, 5)), torch.randint(0, 11, (10,))) for _ in range(count)]


def eager(model: nn.Module, optimizer: torch.optim.Optimizer, data: Any, after: Callable[[], None] = lambda: None) -> list[float]:
    """The losses of PyTorch's own steps."""
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        after()
        losses.append(float(loss.detach()))
    return losses


def near(model: nn.Module, other: nn.Module) -> None:
    for (name, a), b in zip(model.state_dict().items(), other.state_dict().values()):
        a, b = a.double(), b.double()
        assert float((a - b).abs().max()) <= 1e-4 * max(float(b.abs().max()), 1e-2), name


def same(a: Any, b: Any) -> bool:
    """Whether both are equal bit for bit."""
    if isinstance(a, Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


OPTIMIZERS: dict[str, Optimizer] = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=1e-2, eps=1e-5),
    "Adam, decay": lambda p: torch.optim.Adam(p, lr=1e-2, eps=1e-5, weight_decay=0.1),
    "AMSGrad": lambda p: torch.optim.AdamW(p, lr=1e-2, eps=1e-5, amsgrad=True),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "Nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, eps=1e-5, momentum=0.5),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=1e-3, eps=1e-5),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_train_as_in_pytorch_and_come_back(name: str) -> None:
    torch.manual_seed(1)
    model = mlp()
    twin, data = copy.deepcopy(model), vectors(6)
    optimizer, other = OPTIMIZERS[name](model.parameters()), OPTIMIZERS[name](twin.parameters())
    step = TrainStep(model, F.cross_entropy, optimizer, example=data[0])
    mine = [float(step(*batch)) for batch in data[:3]]
    assert mine == pytest.approx(eager(twin, other, data[:3]), rel=1e-4)
    step.sync()
    near(model, twin)
    # PyTorch goes on with what came back, state and all.
    assert eager(model, optimizer, data[3:]) == pytest.approx(eager(twin, other, data[3:]), rel=1e-4)
    near(model, twin)


@pytest.mark.parametrize(("make", "data"), [(cnn, images), (Attention, tokens)])
@pytest.mark.parametrize("budget", [None, "1x"])
def test_models_train_as_in_pytorch(make: Callable[[], nn.Module], data: Callable[[], Any], budget: str | None) -> None:
    torch.manual_seed(2)
    model, batches = make(), data()
    twin = copy.deepcopy(model)
    step = TrainStep(model, F.cross_entropy, OPTIMIZERS["AdamW"](model.parameters()), example=batches[0], budget=budget)
    mine = [float(step(*batch)) for batch in batches]
    assert mine == pytest.approx(eager(twin, OPTIMIZERS["AdamW"](twin.parameters()), batches), rel=1e-4)
    step.sync()
    # Running statistics and the number of batches, too.
    near(model, twin)


def test_a_budget_changes_no_bit() -> None:
    torch.manual_seed(3)
    model = deep()
    data = [(torch.randn(256, 64), torch.randint(0, 3, (256,))) for _ in range(3)]
    found = []
    for budget in (None, "0.7x"):
        twin = copy.deepcopy(model)
        step = TrainStep(twin, F.cross_entropy, OPTIMIZERS["AdamW"](twin.parameters()), example=data[0], budget=budget)
        found.append(([float(step(*batch)) for batch in data], step.state_dict()["variables"]))
    assert step.plan.peak_after <= 0.7 * step.plan.peak_before
    assert "<svg" in step._repr_html_() and "TrainStep of Sequential on host: 3 steps" in repr(step)
    assert same(*found)


@pytest.mark.parametrize("name", ["AdamW", "AMSGrad", "Nesterov", "NAdam"])
def test_torch_to_step_to_torch_is_bit_for_bit(name: str) -> None:
    torch.manual_seed(4)
    model, data = cnn(), images(2)
    optimizer = OPTIMIZERS[name](model.parameters())
    eager(model, optimizer, data)
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    step = TrainStep(model, F.cross_entropy, optimizer, example=data[0])
    with torch.no_grad():
        model[0].weight.zero_()
    step.sync()
    assert same(before, (model.state_dict(), optimizer.state_dict()))
    # And in the other direction, after a change in PyTorch.
    with torch.no_grad():
        model[0].weight.fill_(0.5)
    step.load()
    assert torch.equal(step.state_dict()["variables"]["0.weight"], model[0].weight)


@pytest.mark.parametrize("scheduler", [
    lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.5),
    lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 4),
    lambda o: torch.optim.lr_scheduler.OneCycleLR(o, max_lr=0.05, total_steps=8),
])  # fmt: skip
@pytest.mark.parametrize("name", ["AdamW", "SGD", "Nesterov"])
def test_schedulers(scheduler: Any, name: str) -> None:
    torch.manual_seed(5)
    model, data = mlp(), vectors(5)
    if name == "SGD":
        make: Optimizer = lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.8)
    else:
        make = OPTIMIZERS[name]
    twin = copy.deepcopy(model)
    optimizer, other = make(model.parameters()), make(twin.parameters())
    mine, theirs = scheduler(optimizer), scheduler(other)
    step = TrainStep(model, F.cross_entropy, optimizer, example=data[0], max_shapes=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses = []
        for batch in data:
            losses.append(float(step(*batch)))
            mine.step()
    assert losses == pytest.approx(eager(twin, other, data, theirs.step), rel=1e-4)
    step.sync()
    near(model, twin)


def test_clipping_and_accumulation() -> None:
    torch.manual_seed(6)
    model, data = mlp(), vectors(3, 8)
    twin = copy.deepcopy(model)
    make = OPTIMIZERS["SGD"]
    step = TrainStep(model, F.cross_entropy, make(model.parameters()), example=data[0], clip_grad_norm=0.1, accumulate=2)
    other = make(twin.parameters())
    for x, y in data:
        other.zero_grad()
        total = 0.0
        for part, target in zip(x.chunk(2), y.chunk(2)):
            loss = F.cross_entropy(twin(part), target) / 2
            loss.backward()
            total += float(loss.detach())
        norm = nn.utils.clip_grad_norm_(twin.parameters(), 0.1)
        other.step()
        assert float(step(x, y)) == pytest.approx(total, rel=1e-4)
        assert float(step.outputs["grad_norm"]) == pytest.approx(float(norm), rel=1e-4)
    step.sync()
    near(model, twin)


def test_another_shape_is_planned_once_and_the_state_moves_over() -> None:
    torch.manual_seed(7)
    model = mlp()
    twin = copy.deepcopy(model)
    data = [*vectors(2), *vectors(1, 2), *vectors(1), *vectors(1, 2)]
    step = TrainStep(model, F.cross_entropy, OPTIMIZERS["AdamW"](model.parameters()), example=data[0], max_shapes=2)
    mine = [float(step(*batch)) for batch in data]
    assert mine == pytest.approx(eager(twin, OPTIMIZERS["AdamW"](twin.parameters()), data), rel=1e-4)
    assert step.steps == 5
    with pytest.raises(lmsc.InputError, match="another shape than the 2"):
        step(*vectors(1, 3)[0])
    assert float(step(*data[0])) > 0
    step.sync()


class Same(nn.Module):
    """A layer that asks whether its arguments are one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(3, 1)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return 3 * self.l(a).sum() if a is b else (self.l(a) - 2 * self.l(b)).sum()


@pytest.mark.parametrize("kernels", ["lmsc", "torch"])
@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("first", [False, True])
def test_whether_two_arguments_are_one_tensor_is_heeded(kernels: str, accumulate: int, first: bool) -> None:
    model = Same()
    twin = copy.deepcopy(model)
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    given = {False: (x, y), True: (x, x)}
    step = TrainStep(model, None, torch.optim.SGD(model.parameters(), lr=0.1), example=given[first], budget="64KiB", kernels=kernels, accumulate=accumulate, progress=False)
    other = torch.optim.SGD(twin.parameters(), lr=0.1)
    for same in (True, False, first, True):
        other.zero_grad()
        loss = twin(*given[same]) / accumulate
        loss.backward()
        other.step()
        assert float(step(*given[same])) == pytest.approx(loss.item(), rel=1e-5)
        if kernels == "torch" and accumulate == 1:
            assert step.evaluate(*given[same]).item() == twin(*given[same]).item()


def test_a_batch_that_requires_a_gradient_is_refused() -> None:
    model = mlp()
    x, y = vectors(1)[0]
    step = TrainStep(model, F.cross_entropy, torch.optim.SGD(model.parameters(), lr=0.1), example=(x, y), progress=False)
    with pytest.raises(lmsc.torch.CaptureError, match="requires a gradient"):
        step(x.clone().requires_grad_(), y)
    step(x, y)


def test_a_changed_constant_is_heeded() -> None:
    torch.manual_seed(8)
    model, data = mlp(), vectors(4)
    twin = copy.deepcopy(model)
    optimizer, other = OPTIMIZERS["AdamW"](model.parameters()), OPTIMIZERS["AdamW"](twin.parameters())
    step = TrainStep(model, F.cross_entropy, optimizer, example=data[0])
    mine = [float(step(*batch)) for batch in data[:2]]
    theirs = eager(twin, other, data[:2])
    optimizer.param_groups[0]["weight_decay"] = other.param_groups[0]["weight_decay"] = 5.0
    assert mine + [float(step(*batch)) for batch in data[2:]] == pytest.approx(theirs + eager(twin, other, data[2:]), rel=1e-4)


def test_frozen_parameters_two_groups_and_keywords() -> None:
    torch.manual_seed(9)

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(6, 8), nn.Linear(8, 3)
            self.body.bias.requires_grad_(False)

        def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
            scores = self.head(self.body(x).tanh())
            return {"loss": F.cross_entropy(scores, labels), "scores": scores}

    def make(m: Named) -> torch.optim.Optimizer:
        groups: Any = [{"params": [m.body.weight], "lr": 1e-3}, {"params": list(m.head.parameters()), "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=1e-2, eps=1e-5)

    model = Named()
    twin, data = copy.deepcopy(model), vectors(3)
    optimizer, other = make(model), make(twin)
    step = TrainStep(model, None, optimizer, example={"x": data[0][0], "labels": data[0][1]})
    for x, y in data:
        other.zero_grad()
        want = twin(x, y)
        want["loss"].backward()
        other.step()
        assert float(step(x=x, labels=y)) == pytest.approx(float(want["loss"].detach()), rel=1e-4)
        torch.testing.assert_close(step.outputs["scores"], want["scores"].detach(), rtol=1e-4, atol=1e-5)
    step.sync()
    near(model, twin)
    assert torch.equal(model.body.bias, twin.body.bias)
    with pytest.raises(lmsc.InputError, match="same keywords"):
        step(*data[0])


def test_dropout_draws_anew_and_again_from_its_seed() -> None:
    torch.manual_seed(10)
    model, batch = nn.Sequential(nn.Linear(6, 64), nn.Dropout(0.5), nn.Linear(64, 3)), vectors(1)[0]

    def losses(seed: int) -> list[float]:
        step = TrainStep(model, F.cross_entropy, torch.optim.SGD(model.parameters(), lr=0.0), example=batch, seed=seed)
        return [float(step(*batch)) for _ in range(4)]

    first = losses(1)
    assert len(set(first)) == 4 and first == losses(1) and first != losses(2)


def test_a_run_goes_on_from_state_and_checkpoint(tmp_path: Path) -> None:
    torch.manual_seed(11)
    model, data = cnn(), images(5)

    def fresh() -> TrainStep:
        twin = copy.deepcopy(model)
        return TrainStep(twin, F.cross_entropy, OPTIMIZERS["AdamW"](twin.parameters()), example=data[0], seed=3)

    first = fresh()
    for batch in data[:2]:
        first(*batch)
    state = copy.deepcopy(first.state_dict())
    torch.save(state, tmp_path / "state.pt")
    first.save(tmp_path / "c.safetensors")
    rest = [float(first(*batch)) for batch in data[2:]]
    second, third = fresh(), fresh()
    second.load_state_dict(torch.load(tmp_path / "state.pt"))
    third.resume(tmp_path / "c.safetensors")
    for step in (second, third):
        assert step.steps == 2 and [float(step(*batch)) for batch in data[2:]] == rest
    with pytest.raises(lmsc.InputError, match="lacks"):
        second.load_state_dict({"variables": {}, "steps": 0, "seed": 0})


def test_evaluation_in_between() -> None:
    torch.manual_seed(12)
    model, data = cnn(), images(4)
    twin = copy.deepcopy(model)
    other = OPTIMIZERS["AdamW"](twin.parameters())
    step = TrainStep(model, F.cross_entropy, OPTIMIZERS["AdamW"](model.parameters()), example=data[0])
    for x, y in data:
        step(x, y)
        eager(twin, other, [(x, y)])
        step.sync()
        model.eval(), twin.eval()
        with torch.no_grad():
            torch.testing.assert_close(model(x), twin(x), rtol=1e-3, atol=1e-4)
        model.train(), twin.train()


def test_plans_are_kept_on_disk(tmp_path: Path) -> None:
    torch.manual_seed(13)
    model, batch = deep(), (torch.randn(256, 64), torch.zeros(256, dtype=torch.int64))

    def hash_of() -> str:
        step = TrainStep(
            model, F.cross_entropy, torch.optim.SGD(model.parameters(), lr=0.1), example=batch, budget="0.9x", cache=tmp_path / "plans"
        )
        return step.compiled.report["hash"]

    first = hash_of()
    (plan,) = (tmp_path / "plans").iterdir()
    assert hash_of() == first
    plan.write_text("{")
    assert hash_of() == first and plan.read_text() != "{"


def test_bfloat16() -> None:
    torch.manual_seed(14)
    model = mlp().bfloat16()
    twin, data = copy.deepcopy(model), [(x.bfloat16(), y) for x, y in vectors(3)]
    optimizer = OPTIMIZERS["SGD"]
    step = TrainStep(model, F.cross_entropy, optimizer(model.parameters()), example=data[0])
    losses = [step(*batch) for batch in data]
    assert losses[0].dtype == torch.bfloat16
    assert [float(v) for v in losses] == pytest.approx(eager(twin, optimizer(twin.parameters()), data), rel=2e-2)
    step.sync()
    for a, b in zip(model.parameters(), twin.parameters()):
        assert a.dtype == torch.bfloat16
        torch.testing.assert_close(a, b, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("passes", ["mixed-precision", "mixed-precision{type=f16}"])
def test_passes_shorten_a_step(passes: str) -> None:
    torch.manual_seed(15)
    model = mlp()
    twin, optimizer = copy.deepcopy(model), OPTIMIZERS["AdamW"]
    data = vectors(4)
    step = TrainStep(model, F.cross_entropy, optimizer(model.parameters()), example=data[0], passes=passes)
    losses = [step(*batch) for batch in data]
    assert [float(v) for v in losses] == pytest.approx(eager(twin, optimizer(twin.parameters()), data), rel=2e-2)
    step.sync()
    for a, b in zip(model.parameters(), twin.parameters()):
        assert a.dtype == torch.float32
        torch.testing.assert_close(a, b, rtol=2e-2, atol=2e-2)
    assert ("loss_scale" in step.state_dict()["variables"]) == ("f16" in passes)


def test_a_loss_scale_goes_on_with_the_step() -> None:
    torch.manual_seed(16)
    model, data = mlp(), vectors(2)
    optimizer = OPTIMIZERS["SGD"](model.parameters())
    step = TrainStep(model, F.cross_entropy, optimizer, example=data[0], passes="mixed-precision{type=f16}")

    def scale() -> tuple[float, int]:
        variables = step.state_dict()["variables"]
        return float(variables["loss_scale"]), int(variables["loss_scale.steps"])

    step(*data[0])
    assert scale() == (65536, 1)
    step.sync()
    before = [p.clone() for p in model.parameters()]
    step(data[0][0] * 1e30, data[0][1])
    assert scale() == (32768, 0)
    step.sync()
    step.load()
    assert all(map(torch.equal, before, model.parameters())), "the updates were not skipped"
    # Another shape of the batch, and a model that is captured anew.
    step(data[1][0][:2], data[1][1][:2])
    assert scale() == (32768, 1)
    model[0].bias.requires_grad_(False)
    step(*data[1])
    assert scale() == (32768, 2)


class Scaled(torch.optim.Optimizer):
    """An optimizer whose numbers stand beside tensors of the type of the parameters."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {"lr": 0.01})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                p.mul_(1 - group["lr"] * 0.3)
                p.sub_(p.grad * group["lr"])


def matrices() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8, bias=False), nn.Tanh(), nn.Linear(8, 3, bias=False))


@pytest.mark.parametrize(
    ("of", "dtype", "share"),
    [
        (Scaled, torch.bfloat16, 0.02),
        (lambda p: torch.optim.SGD(p, lr=0.0123, momentum=0.9, weight_decay=0.1), torch.bfloat16, 0.05),
        (lambda p: torch.optim.Muon(p, lr=1e-3), torch.float32, 1e-5),
    ],
    ids=["numbers beside bfloat16", "SGD in bfloat16", "Muon, which computes in bfloat16"],
)
def test_a_number_beside_a_short_float_is_not_rounded(of: Optimizer, dtype: torch.dtype, share: float) -> None:
    torch.manual_seed(17)
    model = matrices().to(dtype)
    twin, data = copy.deepcopy(model), [(x.to(dtype), y) for x, y in vectors(7)]
    before = [p.detach().clone() for p in model.parameters()]
    step = TrainStep(model, F.cross_entropy, of(model.parameters()), example=data[0])
    for batch in data:
        step(*batch)
    eager(twin, of(twin.parameters()), data)
    step.sync()
    for a, b, first in zip(model.parameters(), twin.parameters(), before):
        a, b, first = a.double(), b.double(), first.double()
        assert (a - b).norm() <= share * (b - first).norm()


def test_a_list_and_keywords_in_any_order_are_one_shape() -> None:
    torch.manual_seed(15)
    model, data = mlp(), vectors(2)
    step = TrainStep(model, F.cross_entropy, OPTIMIZERS["SGD"](model.parameters()), example=list(data[0]), max_shapes=1)
    step(*data[1])

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = mlp()

        def forward(self, x: Tensor, labels: Tensor) -> Tensor:
            return F.cross_entropy(self.net(x), labels)

    named = Named()
    x, y = data[0]
    step = TrainStep(named, None, OPTIMIZERS["SGD"](named.parameters()), example={"x": x, "labels": y}, max_shapes=1)
    assert float(step(labels=y, x=x)) > 0
    with pytest.raises(lmsc.InputError, match="same keywords"):
        step(x=x)


class Rotary(nn.Module):
    """Constant buffers as language models have them: a causal mask, positions, and tables of angles."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.qkv, self.head = nn.Embedding(11, 8), nn.Linear(8, 24), nn.Linear(8, 11)
        self.register_buffer("mask", torch.ones(5, 5, dtype=torch.bool).tril(), persistent=False)
        self.register_buffer("positions", torch.arange(5))
        self.register_buffer("frequencies", 10.0 ** -torch.arange(4.0))

    def forward(self, ids: Tensor) -> Tensor:
        angle = self.positions[:, None] * self.frequencies
        q, k, v = self.qkv(self.token(ids)).chunk(3, -1)
        q, k = (torch.cat([t[..., :4] * angle.cos() - t[..., 4:] * angle.sin(), t[..., 4:] * angle.cos() + t[..., :4] * angle.sin()], -1)
                for t in (q, k))  # fmt: skip
        scores = (q @ k.transpose(-1, -2)).masked_fill(~self.mask, float("-inf"))
        return self.head(scores.softmax(-1) @ v).flatten(0, 1)


@pytest.mark.parametrize("budget", [None, "1x"])
def test_constant_buffers_train_as_in_pytorch(budget: str | None) -> None:
    torch.manual_seed(16)
    model, data = Rotary(), tokens()
    twin = copy.deepcopy(model)
    step = TrainStep(model, F.cross_entropy, OPTIMIZERS["AdamW"](model.parameters()), example=data[0], budget=budget)
    mine = [float(step(*batch)) for batch in data]
    assert mine == pytest.approx(eager(twin, OPTIMIZERS["AdamW"](twin.parameters()), data), rel=1e-4)
    step.sync()
    near(model, twin)


def test_passes_need_our_kernels() -> None:
    model = mlp()
    with pytest.raises(lmsc.InputError, match="autocast"):
        TrainStep(
            model, F.cross_entropy, OPTIMIZERS["SGD"](model.parameters()), example=vectors(1)[0], kernels="torch", passes="mixed-precision"
        )


def test_refusals_are_told() -> None:
    model, batch = mlp(), vectors(1)[0]
    with pytest.raises(lmsc.Refusal, match="does not fit"):
        TrainStep(model, F.cross_entropy, torch.optim.SGD(model.parameters()), example=batch, budget=100)
    with pytest.raises(lmsc.Refusal, match="CUDA"):
        TrainStep(model, F.cross_entropy, torch.optim.SGD(model.parameters()), example=batch, device="cuda:63")
    for hook in (lambda g: 3, lambda g: g.sum(), lambda g: g.double()):
        handle = model[0].weight.register_hook(hook)
        with pytest.raises(lmsc.torch.CaptureError, match=r"a hook makes .* of the gradient of `0.weight`, which PyTorch refuses"):
            TrainStep(model, F.cross_entropy, torch.optim.SGD(model.parameters()), example=batch)
        handle.remove()
    handle = model[0].weight.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5))
    with pytest.raises(lmsc.torch.CaptureError, match="a hook behind the gradient of `0.weight` returns something, which PyTorch refuses"):
        TrainStep(model, F.cross_entropy, torch.optim.SGD(model.parameters()), example=batch)
    handle.remove()
    with torch.device("meta"):
        empty = mlp()
    with pytest.raises(lmsc.torch.CaptureError, match="meta"):
        TrainStep(empty, F.cross_entropy, torch.optim.SGD(empty.parameters()), example=batch)


def test_an_argument_of_another_kind_is_refused_by_name() -> None:
    model = nn.Linear(2, 2)
    optimizer, x = torch.optim.SGD(model.parameters(), lr=0.1), torch.zeros(3, 2)
    right: dict[str, Any] = {"model": model, "loss_fn": F.mse_loss, "optimizer": optimizer}
    for wrong, says in (
        ({"optimizer": lambda parameters: optimizer}, "such as `torch.optim.AdamW"),
        ({"optimizer": torch.optim.SGD}, "not a class"),
        ({"optimizer": None}, "not NoneType"),
        ({"model": model.forward}, "the model is a torch.nn.Module, not method"),
        ({"loss_fn": optimizer, "optimizer": F.mse_loss}, "the loss is a function"),
        ({"loss_fn": "mse"}, "not str"),
        ({"clip_grad_norm": "1"}, "clip_grad_norm='1'"),
        ({"accumulate": 0}, "accumulate=0"),
        ({"ema": 2}, "ema=2"),
    ):
        for kernels in ("lmsc", "torch"):
            with pytest.raises(lmsc.InputError, match=says):
                TrainStep(**right | wrong, example=(x, x), kernels=kernels)
        with pytest.raises(lmsc.InputError, match=says):
            export_step(**right | wrong, example=(x, x))
