"""Measures the peak of training steps of language models, with attention as products and as one operator, and the loss whole and by chunks.

Models lie on the device `meta`: nothing is computed, and nothing of their size is allocated. Peaks are those that lmsc counts for the
step as it comes, without a budget, in float32 with AdamW. Needs the package with PyTorch.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import lmsc.torch
import torch
from torch import Tensor, nn
from torch.nn import functional as F

GIB = 1 << 30
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def whole(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention with its scores as tensors, as PyTorch computes it where it has no fused operator."""
    return torch.ops.aten._scaled_dot_product_attention_math(q, k, v, is_causal=True)[0]


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Layer(nn.Module):
    """A layer of GPT-2, or one of Llama: gated, without biases, with another normalization and positions by rotation."""

    def __init__(self, width: int, heads: int, inner: int, llama: bool, attend: Attend) -> None:
        super().__init__()
        self.heads, self.llama, self.attend = heads, llama, attend
        self.first, self.second = ((nn.RMSNorm if llama else nn.LayerNorm)(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=not llama), nn.Linear(width, width, bias=not llama)
        self.up, self.down = nn.Linear(width, inner * (2 if llama else 1), bias=not llama), nn.Linear(inner, width, bias=not llama)

    def turned(self, x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[-2])[:, None] * torch.exp(torch.arange(half) * (-math.log(1e4) / half))
        a, b = x.split(half, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def forward(self, x: Tensor) -> Tensor:
        batch, rows, width = x.shape
        q, k, v = (t.view(batch, rows, self.heads, -1).transpose(1, 2) for t in self.qkv(self.first(x)).split(width, 2))
        if self.llama:
            q, k = self.turned(q), self.turned(k)
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(batch, rows, width))
        y = self.up(self.second(x))
        if self.llama:
            gate, y = y.chunk(2, -1)
            return x + self.down(F.silu(gate) * y)
        return x + self.down(F.gelu(y, approximate="tanh"))


class Language(nn.Module):
    def __init__(self, words: int, rows: int, width: int, count: int, llama: bool, make: Callable[[], Layer]) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(words, width), (nn.RMSNorm if llama else nn.LayerNorm)(width)
        self.positions = None if llama else nn.Embedding(rows, width)
        self.layers, self.head = nn.ModuleList(make() for _ in range(count)), nn.Linear(width, words, bias=False)
        if not llama:
            self.head.weight = self.embedding.weight

    def forward(self, x: Tensor) -> Tensor:
        y = self.embedding(x)
        y = y if self.positions is None else y + self.positions.weight
        for layer in self.layers:
            y = layer(y)
        return self.head(self.norm(y))


ROWS = (2048, 1024)
FORMS = (
    "attention as products", "attention as one operator", *(f"the same after `chunk-loss`, {n} rows" for n in ROWS),
)  # fmt: skip
MODELS = {  # batch, rows, words, width, heads, inner width, layers, Llama
    "GPT-2 small, 8 × 1,024": (8, 1024, 50257, 768, 12, 3072, 12, False),
    "Llama, 22 × 2,048, 1 × 4,096": (1, 4096, 32000, 2048, 32, 5632, 22, True),
}


def step(name: str, attend: Attend) -> bytes:
    batch, rows, words, width, heads, inner, count, llama = MODELS[name]
    with torch.device("meta"):
        model = Language(words, rows, width, count, llama, lambda: Layer(width, heads, inner, llama, attend))
    tokens = torch.zeros(batch, rows, dtype=torch.int64)

    def loss(y: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(y.flatten(0, 1), target.flatten())

    return lmsc.torch.export_step(model, loss, torch.optim.AdamW(model.parameters(), lr=1e-4), (tokens, tokens)).SerializeToString()


def peak(model: bytes, passes: str = "") -> str:
    model = lmsc.opt(model, passes) if passes else model
    return f"{lmsc.compile(model, target='h100-sxm').report['before']['peak'] / GIB:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names of models")
    names = parser.parse_args().names
    print("| peak, GiB | " + " | ".join(FORMS) + " |\n|---|" + "---|" * len(FORMS))
    for name in MODELS:
        if not names or any(n in name for n in names):
            products, operator = step(name, whole), step(name, fused)
            forms = [(products, ""), (operator, ""), *((operator, f"chunk-loss{{rows={n}}}") for n in ROWS)]
            print(f"| {name} | " + " | ".join(peak(*form) for form in forms) + " |", flush=True)


if __name__ == "__main__":
    main()
