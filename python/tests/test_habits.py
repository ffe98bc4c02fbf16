"""Nothing that a training loop or a forward pass does is ignored without a word: it gives PyTorch's results, or is refused."""

from __future__ import annotations

import copy
import os
import random
import sys
import threading
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

import lmsc
import numpy as np
import pytest
import torch
from lmsc.torch import CaptureError, TrainStep
from torch import Tensor, nn
from torch.nn import functional as F

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import torch_habits  # noqa: E402

DOCUMENTED = dict(
    (cell.strip() for cell in line.strip("| \n").rsplit(" | ", 1))
    for line in (ROOT / "docs/pytorch.md").read_text().split(torch_habits.MARK[0])[1].split(torch_habits.MARK[1])[0].splitlines()[2:]
)


@pytest.mark.parametrize("name", torch_habits.HABITS)
def test_habits_are_as_in_pytorch_or_refused(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch_habits.judged(torch_habits.HABITS[name]) == DOCUMENTED[name]


class Random(nn.Module):
    """A module of random parts: layers with names in common, and things that the forward pass keeps, aliases and writes in place."""

    SIZE = 4

    def __init__(self, numbers: random.Random) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(self.SIZE, self.SIZE) for _ in range(numbers.randint(1, 3)))
        self.head = nn.Linear(self.SIZE, 3)
        self.plan = [numbers.choice(KINDS) for _ in range(numbers.randint(1, 4))]
        for k, kind in enumerate(self.plan):
            self.register_buffer(f"b{k}", torch.randn(self.SIZE) * 0.1)
            setattr(self, f"n{k}", numbers.choice((0.5, 1.0, 2.0)))
            setattr(self, f"t{k}", torch.randn(self.SIZE) * 0.1)
            if kind == "hook":
                self.layers[0].register_forward_hook(lambda m, a, y: y + 0.1 * a[0])
            if kind == "gradient" and self.layers[0].weight.requires_grad:
                self.layers[0].weight.register_hook(lambda g: g * 0.5)
            if kind == "frozen":
                self.layers[-1].requires_grad_(False)
            if kind == "tied" and len(self.layers) > 1:
                self.layers[-1].weight = self.layers[0].weight
            if kind == "drop":
                # The numbers that are drawn are others than PyTorch's: all are kept, none, or it is switched off.
                drop = nn.Dropout(numbers.choice((0.0, 0.5, 1.0)))
                setattr(self, f"drop{k}", drop.eval() if drop.p == 0.5 else drop)
            if kind == "shared":
                self.register_buffer("other", self.b0)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x).tanh()
        for k, kind in enumerate(self.plan):
            x = getattr(self, f"do_{kind}", lambda x, *_: x)(x, k, getattr(self, f"b{k}"))
        return self.head(x)

    def do_assign(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        setattr(self, f"b{k}", 0.9 * b + 0.1 * x.detach().mean(0))
        return x + getattr(self, f"b{k}")

    def do_assign_later(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        y = x + b
        setattr(self, f"b{k}", b * 0.5)
        return y

    def do_write(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        b.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        return x * (1 + b)

    def do_view(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        b[1:3].copy_(x.detach()[0, :2])
        return x + b.view(2, 2).t().reshape(-1)

    def do_unread(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        b.copy_(x.detach()[0])
        return x

    def do_attribute(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        setattr(self, f"t{k}", getattr(self, f"t{k}") * 0.5 + x.detach().mean(0))
        return x + getattr(self, f"t{k}")

    def do_constant(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        return x * getattr(self, f"n{k}") + getattr(self, f"t{k}") + b

    def do_drop(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        return x + getattr(self, f"drop{k}")(x * (1 + b))

    def do_clamp(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        with torch.no_grad():
            self.head.weight.clamp_(-0.3, 0.3)
        return x

    def do_move(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        with torch.no_grad():
            for p in self.layers[-1].parameters():
                if not p.requires_grad:
                    p.mul_(0.9)
        return x

    def do_out(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        torch.add(b, x.detach()[0], out=b)
        return x + 0.1 * b

    def do_data(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        b.data = b.data * 0.5
        return x + b

    def do_inplace(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        y = x.clone()
        y[:, 0].mul_(2.0)
        y += b
        return y

    def do_shared(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        self.other.mul_(0.9)
        return x + self.b0

    def do_count(self, x: Tensor, k: int, b: Tensor) -> Tensor:
        setattr(self, f"n{k}", getattr(self, f"n{k}") + 1)
        return x / getattr(self, f"n{k}")


KINDS = [n.removeprefix("do_") for n in vars(Random) if n.startswith("do_")] + ["hook", "gradient", "frozen", "tied"]
OPTIMIZERS: list[Any] = [
    lambda p: torch.optim.SGD(p, lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, lr=1e-2, eps=1e-3)
]  # fmt: skip


def differs(seed: int) -> str:
    """The difference of three steps of a random module from PyTorch's; empty if they are equal, or refused."""
    numbers = random.Random(seed)
    torch.manual_seed(seed)
    model = Random(numbers)
    twin = copy.deepcopy(model)
    for a, b in zip(model.parameters(), twin.parameters()):
        for hook in (a._backward_hooks or {}).values():
            # It may have been frozen after it got its hook.
            b.requires_grad_(True).register_hook(hook)
        b.requires_grad_(a.requires_grad)
    make = numbers.choice(OPTIMIZERS)
    optimizer, other = make(model.parameters()), make(twin.parameters())
    data = [(torch.randn(3, 4), torch.randn(3, 3)) for _ in range(3)]
    try:
        step = TrainStep(model, F.mse_loss, optimizer, example=data[0])
        mine = [float(step(*batch)) for batch in data]
    except CaptureError:
        return ""
    theirs = []
    for x, y in data:
        other.zero_grad()
        loss = F.mse_loss(twin(x), y)
        loss.backward()
        other.step()
        theirs.append(loss.item())
    step.sync()
    if mine != pytest.approx(theirs, rel=1e-4, abs=1e-6):
        return f"{model.plan}: losses {mine} for {theirs}"
    for (n, a), b in zip([*model.named_parameters(), *model.named_buffers()], [*twin.parameters(), *twin.buffers()]):
        if not torch.allclose(a, b, rtol=1e-3, atol=1e-5):
            return f"{model.plan}: {n}"
    off = [k for k in vars(twin) if isinstance(vars(twin)[k], Tensor) and not torch.allclose(vars(model)[k], vars(twin)[k], rtol=1e-3, atol=1e-5)]
    return f"{model.plan}: attribute {off[0]}" if off else ""


def test_random_modules_train_as_in_pytorch() -> None:
    """LMSC_THOROUGH tries 2,000 modules."""
    count = 2000 if os.environ.get("LMSC_THOROUGH") else 12
    wrong = [(seed, why) for seed in range(count) if (why := differs(seed))]
    assert not wrong


def test_a_failed_capture_changes_nothing() -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.l, self.n, self.seen = nn.Linear(6, 3), 0, []
            self.register_buffer("b", torch.zeros(3))

        def forward(self, x: Tensor) -> Tensor:
            self.n += 1
            self.seen.append(1)
            self.b = self.b + 1
            self.extra = x
            random.random()
            raise KeyboardInterrupt if self.interrupts else ValueError("broken")

    model = Broken()
    optimizer = torch.optim.AdamW(model.parameters())
    buffer, weight, state = model.b, model.l.weight, random.getstate()
    for model.interrupts, error in ((True, KeyboardInterrupt), (False, CaptureError)):
        with pytest.raises(error):
            TrainStep(model, F.mse_loss, optimizer, example=(torch.ones(2, 6), torch.ones(2, 3)))
        assert model.b is buffer and model.l.weight is weight and model.n == 0 and model.seen == [] and not hasattr(model, "extra")
        assert random.getstate() == state and not optimizer.state and optimizer.param_groups[0]["params"][0] is weight
        assert not any(vars(model)[k] for k in ("_forward_pre_hooks", "_state_dict_pre_hooks"))


class Made(OrderedDict[str, Any]):
    """A table that makes what it is asked for, as transformers' activations are made."""

    def __getitem__(self, key: str) -> Any:
        return super().__getitem__(key)()


TABLE = Made(tanh=nn.Tanh)


def test_containers_of_other_classes_are_left_as_they_are() -> None:
    def forward(m: nn.Module, x: Tensor) -> Tensor:
        return TABLE["tanh"](m.l(x)) * len(m.kind([1, 2]))

    model = torch_habits.Of(forward, l=nn.Linear(6, 3), kind=list[int])
    step = TrainStep(model, F.mse_loss, torch.optim.SGD(model.parameters()), example=(torch.ones(2, 6), torch.ones(2, 3)))
    assert float(step(torch.ones(2, 6), torch.ones(2, 3))) > 0
    assert dict.__getitem__(TABLE, "tanh") is nn.Tanh and list(TABLE) == ["tanh"]


class Options:
    scale = 1.0


def test_elements_of_a_batch_that_are_no_tensors_count_by_their_contents() -> None:
    def forward(m: nn.Module, x: Tensor, factors: np.ndarray[Any, Any]) -> Tensor:
        return m.l(x) * float(factors.mean())

    model, factors = torch_habits.Of(forward, l=nn.Linear(6, 3)), np.ones(2000)
    step = TrainStep(model, F.mse_loss, torch.optim.SGD(model.parameters(), lr=0.0), example=(torch.ones(2, 6), factors, torch.zeros(2, 3)))
    first = float(step(torch.ones(2, 6), factors, torch.zeros(2, 3)))
    factors[1000] = 2001.0
    assert float(step(torch.ones(2, 6), factors, torch.zeros(2, 3))) == pytest.approx(4 * first, rel=1e-4)
    with pytest.raises(CaptureError, match="the batch has a Options"):
        step(torch.ones(2, 6), Options(), torch.zeros(2, 3))
    with pytest.raises(CaptureError, match="sparse or nested"):
        step(torch.ones(2, 6).to_sparse(), factors, torch.zeros(2, 3))


def test_refusals_name_the_line() -> None:
    def drawn(m: nn.Module, x: Tensor) -> Tensor:
        return m.l(x) * random.random()

    model = torch_habits.Of(drawn, l=nn.Linear(6, 3))
    with pytest.raises(CaptureError, match=r"test_habits.py:\d+: the step draws random numbers from `random`") as found:
        TrainStep(model, F.mse_loss, torch.optim.SGD(model.parameters()), example=(torch.ones(2, 6), torch.ones(2, 3)))
    assert found.value.code == "LMS0220" and isinstance(found.value, lmsc.InputError)


def test_capture_leaves_other_threads_alone() -> None:
    seen, stop = set(), threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.add((torch.compiler.is_compiling(), torch._C._get_mkldnn_enabled(), torch.backends.cuda.flash_sdp_enabled()))

    before = torch.backends.cuda.flash_sdp_enabled()
    thread = threading.Thread(target=look)
    thread.start()
    try:
        model = nn.LSTM(6, 3)
        TrainStep(torch_habits.Of(lambda s, x: s.m(x)[0], m=model), F.mse_loss, torch.optim.NAdam(model.parameters()), example=(torch.ones(2, 6), torch.ones(2, 3)))
    finally:
        stop.set()
        thread.join()
    assert seen == {(False, True, before)}


STEP = b"""step (float[2] x, float[2] w) => (float[] loss, float[2] w_new) {
  [p] float[2] y = Mul(x, w)
  [l] float[] loss = ReduceSum<keepdims = 0>(y)
  [u] float[2] w_new = Sub(w, y) updates (w as w_new)
}"""


@pytest.mark.parametrize("call", [
    lambda s: s.step({"x": [0.5, 0.5]}, fetch=["los"]),
    lambda s: s.step({"x": [0.5, 0.5], "w": [0.0, 0.0], "zz": [1.0]}),
    lambda s: s.step({"w": [0.0, 0.0], "x": [1.0]}),
    lambda s: s.step({"w": [0.0, 0.0]}),
    lambda s: s.set({"w": [0.0, 0.0], "zz": [1.0]}),
    lambda s: s.load_state({"w": [0.0, 0.0], "x": [1.0]}),
])  # fmt: skip
def test_a_call_that_fails_changes_nothing(call: Any) -> None:
    session = lmsc.compile(STEP, target="host").session()
    session.set({"w": [1.0, 1.0]})
    with pytest.raises(lmsc.InputError):
        call(session)
    assert tuple(session.state()["w"]) == (1.0, 1.0) and session.steps == 0


def test_a_forked_child_opens_sessions_of_its_own() -> None:
    compiled = lmsc.compile(STEP, target="host")
    session = compiled.session()
    session.set({"w": [1.0, 1.0]})
    session.step({"x": [0.5, 0.5]})
    child = os.fork()
    if not child:
        code = 1
        try:
            session.step({"x": [0.5, 0.5]})
        except lmsc.InputError:
            other = compiled.session()
            other.set({"w": [1.0, 1.0]})
            code = 0 if float(other.step({"x": [0.5, 0.5]})["loss"]) == 1.0 else 2
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert float(session.step({"x": [0.5, 0.5]})["loss"]) == 0.5


def test_numbers_of_another_kind_are_refused() -> None:
    session = lmsc.compile(b"g (int64[2] i) => (int64[2] j) { [a] int64[2] j = Add(i, i) }", target="host").session()
    for wrong in ([1.5, 2], [1 << 70, 0]):
        with pytest.raises(lmsc.InputError, match="`i`"):
            session.step({"i": wrong})
    assert list(session.step({"i": [1.0, 2]})["j"]) == [2, 4]
