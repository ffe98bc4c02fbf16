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


class BERT(nn.Module):
    """Four layers of 256, four heads, padding masked, dropout."""

    def __init__(self, words: int = 1000, context: int = 128, width: int = 256, layers: int = 4) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(words, width, padding_idx=0), nn.Embedding(context, width)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.norm(self.token(ids) + self.place(torch.arange(ids.shape[1])))
        return self.head(self.layers(x, src_key_padding_mask=ids == 0)).flatten(0, 1)


class UNet(nn.Module):
    """Three levels from 16 channels on, two convolutions with batch normalization each."""

    def __init__(self, classes: int = 4, width: int = 16) -> None:
        super().__init__()

        def twice(inside: int, outside: int) -> nn.Module:
            convolutions = [nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.Conv2d(outside, outside, 3, padding=1, bias=False)]
            return nn.Sequential(*[part for c in convolutions for part in (c, nn.BatchNorm2d(outside), nn.ReLU())])

        self.down = nn.ModuleList([twice(3, width), twice(width, 2 * width), twice(2 * width, 4 * width)])
        self.rise = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)])
        self.up = nn.ModuleList([twice(4 * width, 2 * width), twice(2 * width, width)])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.down[0](x)
        second = self.down[1](F.max_pool2d(first, 2))
        x = self.down[2](F.max_pool2d(second, 2))
        x = self.up[0](torch.cat([self.rise[0](x), second], 1))
        return self.head(self.up[1](torch.cat([self.rise[1](x), first], 1)))


class LSTM(nn.Module):
    """A language model of two layers of 256."""

    def __init__(self, words: int = 1000, width: int = 256) -> None:
        super().__init__()
        self.token, self.layers, self.head = nn.Embedding(words, width), nn.LSTM(width, width, 2), nn.Linear(width, words)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.layers(self.token(ids))[0]).flatten(0, 1)


def tabular() -> nn.Module:
    widths = [64, 256, 256, 128]
    hidden = [[nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU(), nn.Dropout(0.1)] for a, b in zip(widths, widths[1:])]
    return nn.Sequential(*[part for layer in hidden for part in layer], nn.Linear(128, 2))


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))


def padded() -> tuple[Tensor, Tensor]:
    """Sentences of 64 to 128 words."""
    ids = torch.randint(1, 1000, (8, 128)) * (torch.arange(128) < torch.randint(64, 129, (8, 1)))
    return ids, torch.randint(0, 1000, (8 * 128,))


Case = tuple[str, Callable[[], nn.Module], Callable[[], tuple[Tensor, Tensor]], Callable[[Any], torch.optim.Optimizer], int]

CASES: list[Case] = [
    ("ResNet-18, 224x224, batch 8, SGD with momentum", resnet18, lambda: (torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,))),
     lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), 7),
    ("GPT, 6 layers of 256, 4x128 tokens, AdamW", GPT, lambda: (torch.randint(0, 512, (4, 128)), torch.randint(0, 512, (512,))),
     lambda p: torch.optim.AdamW(p, lr=1e-3), 15),
    ("BERT, 4 layers of 256, 8x128 tokens, AdamW", BERT, padded, lambda p: torch.optim.AdamW(p, lr=1e-3), 15),
    ("U-Net, 3 levels, 128x128, batch 4, SGD with momentum", UNet,
     lambda: (torch.randn(4, 3, 128, 128), torch.randint(0, 4, (4, 128, 128))), lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), 15),
    ("LSTM, 2 layers of 256, 64 steps of 16, AdamW", LSTM, lambda: (torch.randint(0, 1000, (64, 16)), torch.randint(0, 1000, (64 * 16,))),
     lambda p: torch.optim.AdamW(p, lr=1e-3), 15),
    ("MLP of a table, 64-256-256-128-2, batch 1024, AdamW", tabular, lambda: (torch.randn(1024, 64), torch.randint(0, 2, (1024,))),
     lambda p: torch.optim.AdamW(p, lr=1e-3), 100),
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
    x, y = batch()

    def ours(budget: str | None) -> lmsc.torch.TrainStep:
        model = make()
        return lmsc.torch.TrainStep(model, F.cross_entropy, optimizer(model.parameters()), example=(x, y), budget=budget)

    twin = make()
    other = optimizer(twin.parameters())

    def eager() -> None:
        other.zero_grad()
        F.cross_entropy(twin(x), y).backward()
        other.step()

    step, (share, tight) = ours(None), halved(ours)
    runs: list[Callable[[], Any]] = [lambda: step(x, y), lambda: tight(x, y), eager]
    for run in runs * 2:
        run()
    seconds = [[once(run) for run in runs] for _ in range(times)]
    mine, planned, theirs = (statistics.median(column) for column in zip(*seconds))
    return (
        f"| {name} | {mine * 1e3:.3g} ms | {theirs * 1e3:.3g} ms | {mine / theirs:.2f} | {share} | {planned / theirs:.2f} |"
    )


def halved(ours: Callable[[str | None], lmsc.torch.TrainStep]) -> tuple[str, lmsc.torch.TrainStep]:
    """The share of its bytes that a step keeps to: half of them, or the least for which there is a plan. And the step."""
    try:
        step = ours("0.5x")
    except lmsc.Refusal:
        step = ours("smallest")
    return f"{step.plan.peak_after / step.plan.peak_before:.2f}", step


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
    lines = ["| step | lmsc | PyTorch | ratio | memory | ratio there |", "|---|---|---|---|---|---|"]
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
