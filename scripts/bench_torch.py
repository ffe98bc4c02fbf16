"""Times steps of `TrainStep` on the host against PyTorch's own, alternating in one run, and the overhead of a step.

Needs the package with PyTorch, built with optimization (`pip install ./python[torch]`). `--write FILE` puts the table into a
document between its markers.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmsc.torch
import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Basic(nn.Module):
    """A block of ResNet-18."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside)
        self.conv2, self.bn2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside)
        self.skip: nn.Module = nn.Identity()
        if stride > 1:
            self.skip = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.skip(x))


def resnet18() -> nn.Module:
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    sizes = [64, 64, 128, 256, 512]
    blocks = [Basic(sizes[k + (i > 0)], sizes[k + 1], 2 if k and i == 0 else 1) for k in range(4) for i in range(2)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class GPT(nn.Module):
    """Six layers of 256, four heads, learned places."""

    def __init__(self, words: int = 512, context: int = 128, width: int = 256, layers: int = 6) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(words, width), nn.Parameter(0.02 * torch.randn(context, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 * layers + 1)])
        self.qkv = nn.ModuleList([nn.Linear(width, 3 * width) for _ in range(layers)])
        self.out = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])
        self.up = nn.ModuleList([nn.Linear(width, 4 * width) for _ in range(layers)])
        self.down = nn.ModuleList([nn.Linear(4 * width, width) for _ in range(layers)])
        self.head = nn.Linear(width, words)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token(ids) + self.place
        for k, qkv in enumerate(self.qkv):
            q, key, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in qkv(self.norms[2 * k](x)).chunk(3, -1))
            x = x + self.out[k](F.scaled_dot_product_attention(q, key, v, is_causal=True).transpose(1, 2).flatten(2))
            x = x + self.down[k](F.gelu(self.up[k](self.norms[2 * k + 1](x))))
        return self.head(self.norms[-1](x)).flatten(0, 1)


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))


Case = tuple[str, Callable[[], nn.Module], Callable[[], tuple[Tensor, Tensor]], Callable[[Any], torch.optim.Optimizer], int]

CASES: list[Case] = [
    ("ResNet-18, 224x224, batch 8, SGD with momentum", resnet18, lambda: (torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,))),
     lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), 7),
    ("GPT, 6 layers of 256, 4x128 tokens, AdamW", GPT, lambda: (torch.randint(0, 512, (4, 128)), torch.randint(0, 512, (512,))),
     lambda p: torch.optim.AdamW(p, lr=1e-3), 15),
    ("MLP, 8-8-2, batch 4, AdamW", small, lambda: (torch.randn(4, 8), torch.randint(0, 2, (4,))),
     lambda p: torch.optim.AdamW(p, lr=1e-3), 300),
]  # fmt: skip


def once(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def compared(case: Case) -> str:
    """A row of the table."""
    name, make, batch, optimizer, times = case
    torch.manual_seed(0)
    model, twin = make(), make()
    x, y = batch()
    other = optimizer(twin.parameters())
    step = lmsc.torch.TrainStep(model, F.cross_entropy, optimizer(model.parameters()), example=(x, y))

    def eager() -> None:
        other.zero_grad()
        F.cross_entropy(twin(x), y).backward()
        other.step()

    for run in (eager, eager, lambda: step(x, y), lambda: step(x, y)):
        run()
    mine, theirs = [], []
    for _ in range(times):
        theirs.append(once(eager))
        mine.append(once(lambda: step(x, y)))
    a, b = statistics.median(mine), statistics.median(theirs)
    return f"| {name} | {a * 1e3:.3g} ms | {b * 1e3:.3g} ms | {a / b:.2f} |"


def overhead() -> float:
    """Seconds of a step that computes next to nothing: one node, one input, the loss."""
    model = nn.Linear(1, 1, bias=False)
    x = torch.ones(1, 1)
    step = lmsc.torch.TrainStep(
        model, lambda y, _: y.sum(), torch.optim.SGD(model.parameters(), lr=0.0), example=(x, torch.ones(1))
    )  # fmt: skip
    batch = x, torch.ones(1)
    return statistics.median(once(lambda: step(*batch)) for _ in range(500))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("names", nargs="*", help="parts of names of cases")
    args = parser.parse_args()
    torch.set_num_threads(2)
    lines = ["| step | lmsc | PyTorch | ratio |", "|---|---|---|---|"]
    for case in CASES:
        if not args.names or any(n in case[0] for n in args.names):
            lines.append(compared(case))
            print(lines[-1], flush=True)
    print(f"a step of three nodes: {overhead() * 1e6:.0f} µs; torch {torch.__version__}, {platform.processor() or platform.machine()}")
    if args.write:
        text = args.write.read_text(encoding="utf-8")
        before, rest = text.split("<!-- times -->\n")[0], text.split("<!-- end of times -->")[1]
        args.write.write_text(before + "<!-- times -->\n" + "\n".join(lines) + "\n<!-- end of times -->" + rest, encoding="utf-8")


if __name__ == "__main__":
    main()
