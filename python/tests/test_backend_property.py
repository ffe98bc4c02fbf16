"""Random modules through `torch.compile(model, backend="lmsc")`, within random budgets: the bits of PyTorch's graphs, within the planned bytes.

Five in each run; 2,001 where LMSC_THOROUGH is set. PyTorch's graphs are those of `aot_eager` with the partitioner that computes nothing again: the
other one reads buffers again that the step has changed by then.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmsc
import pytest
import torch
from backend_models import Cube, Model, draw, smooth, two
from backend_tools import Meter, compiled, difference, train
from lmsc.torch import backend as lmsc_backend
from test_backend import SLOW
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch import Tensor, nn
from torch.nn import functional as F

ROWS, WIDTH = 48, 32
CASES = 2000 if "LMSC_THOROUGH" in os.environ else 4
GROUP = 50
#: A module whose repeat between the passes was counted without the new values of buffers.
FOUND = (500_730,)

Step = Callable[[nn.Module, Tensor], Tensor]


class Random(nn.Module):
    """A chain of random steps over rows; some of their results are read again later, some are outputs, too."""

    def __init__(self, choose: random.Random):
        super().__init__()
        self.steps = choose.choices(STEPS, k=choose.randrange(3, 9))
        self.parts = nn.ModuleList(Part(choose) for _ in self.steps)
        self.skips = [choose.random() < 0.3 for _ in self.steps]
        self.results = [choose.random() < 0.2 for _ in self.steps]

    def forward(self, x: Tensor) -> Any:
        first, results = x, []
        for step, part, skips, results_too in zip(self.steps, self.parts, self.skips, self.results, strict=True):
            x = step(part, x)
            if skips:
                x = x + 0.5 * first
                first = x
            if results_too:
                results.append(x)
        return x, results


class Part(nn.Module):
    """The parameters and buffers of a step."""

    def __init__(self, choose: random.Random):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH).requires_grad_(choose.random() < 0.8)
        self.norm = nn.BatchNorm1d(WIDTH, momentum=choose.choice([0.1, 0.3]))
        self.scale = nn.Parameter(torch.ones(WIDTH))
        self.register_buffer("memory", torch.zeros(ROWS, WIDTH))
        self.register_buffer("count", torch.ones(()))
        self.number = choose.randrange(1, 8)


def _dropout(part: nn.Module, x: Tensor) -> Tensor:
    return F.dropout(F.gelu(part.linear(x)), 0.1 * part.number)


def _noise(part: nn.Module, x: Tensor) -> Tensor:
    return x + 0.1 * torch.randn_like(x) * (torch.rand(ROWS, 1) > 0.3)


def _in_place(part: nn.Module, x: Tensor) -> Tensor:
    x = part.linear(x)
    x[:, : part.number].mul_(0.5)
    x.t()[part.number].add_(1.0)
    return F.relu_(x)


def _views(part: nn.Module, x: Tensor) -> Tensor:
    heads = x.view(ROWS, 4, WIDTH // 4).transpose(0, 1)
    mixed = torch.softmax(heads @ heads.transpose(1, 2) / 4, -1) @ heads
    return mixed.transpose(0, 1).reshape(ROWS, WIDTH) * part.scale


def _slices(part: nn.Module, x: Tensor) -> Tensor:
    left, right = part.linear(x).chunk(2, -1)
    return torch.cat([left.sigmoid() * right, right.tanh().flip(-1)], -1)


def _memory(part: nn.Module, x: Tensor) -> Tensor:
    x = x + part.memory.sin()
    part.memory.mul_(0.5).add_(x.detach(), alpha=0.1)
    return torch.tanh(x * part.scale) - part.memory


def _average(part: nn.Module, x: Tensor) -> Tensor:
    part.count = part.count * 1.5
    return F.silu(part.linear(x)) / part.count


def _norm(part: nn.Module, x: Tensor) -> Tensor:
    return F.relu(part.norm(x))


def _function(part: nn.Module, x: Tensor) -> Tensor:
    return Cube.apply(torch.tanh(part.linear(x)))


def _operator(part: nn.Module, x: Tensor) -> Tensor:
    scaled, total = two(smooth(x), part.number)
    return part.linear(scaled) + total[:, None] * 0.01


def _largest(part: nn.Module, x: Tensor) -> Tensor:
    values, places = x.topk(part.number, -1)
    return F.gelu(part.linear(x)).scatter_add(-1, places, values)


def _attention(part: nn.Module, x: Tensor) -> Tensor:
    q = part.linear(x).view(1, ROWS, 2, WIDTH // 2).transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q, dropout_p=0.1, is_causal=True).transpose(1, 2).reshape(ROWS, WIDTH) + x


def _without_gradient(part: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        target = part.linear(x).add_(1.0)
    return (x - 0.1 * target) * part.scale


STEPS: list[Step] = [
    _dropout, _noise, _in_place, _views, _slices, _memory, _average, _norm, _function, _operator, _largest, _attention, _without_gradient,
]  # fmt: skip


def drawn(seed: int) -> tuple[Model, str, random.Random]:
    choose = random.Random(seed)
    torch.manual_seed(seed)
    net = Random(choose)

    def loss(out: Any, *_: Any) -> Tensor:
        last, results = out
        return last.square().mean() + sum(result.sin().mean() for result in results)

    made = Model(net, lambda i: (torch.randn(ROWS, WIDTH, generator=draw(seed + i)).requires_grad_(),), loss)
    return made, choose.choice(["smallest", f"{choose.uniform(0.4, 1.0):.3f}x", f"{choose.randrange(100)}% slower"]), choose


unplanned = aot_autograd(fw_compiler=lmsc_backend._boxed, bw_compiler=lmsc_backend._boxed, partition_fn=default_partition)


@pytest.mark.parametrize("first", range(0, CASES, GROUP))
def test_random_modules_within_random_budgets_have_the_bits_of_a_step_without_a_plan(first: int, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    slow = tmp_path / "slow.toml"
    slow.write_text(SLOW)
    for seed in (*range(first, min(first + GROUP, CASES)), *(FOUND if first == 0 else ())):
        made, budget, choose = drawn(seed)
        want = train(made, compiled(made, unplanned))
        target = choose.choice(["host", str(slow)])
        for asked in (budget, "smallest"):
            plans: list[Any] = []
            names = [step.__name__ for step in made.module.steps]
            try:
                with Meter() as meter, pytest.MonkeyPatch.context() as patch:
                    keep = lmsc_backend._Compilation._keep
                    patch.setattr(lmsc_backend._Compilation, "_keep", lambda self, plan: (plans.append(plan), keep(self, plan))[1])
                    found = train(made, compiled(made, lmsc_backend.backend, budget=asked, target=target), meter)
            except lmsc.Refusal as refusal:
                assert refusal.smallest_budget > refusal.budget, seed
                continue
            assert difference(want, found) is None, (seed, asked, target, names)
            assert len(plans) == 1 and found[2] <= 1.02 * plans[0].peak, (seed, asked, target, names, found[2], plans)
            break
        else:
            pytest.fail(f"{seed}: the smallest budget is refused")
        torch._dynamo.reset()
    gc.collect()
