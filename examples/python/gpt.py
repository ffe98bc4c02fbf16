"""A small GPT that learns to write the README of this repository, letter by letter."""

import argparse
from pathlib import Path

import lmsc.torch
import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, letters: int, context: int, width: int = 64, heads: int = 4, layers: int = 4) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(letters, width), nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.token(ids) + self.place[: ids.shape[1]]))).flatten(0, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--budget", default="0.6x", help="bytes, such as 64MiB, or a share of the step's own peak")
    args = parser.parse_args()
    torch.manual_seed(0)
    text, context = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8"), 64
    data = torch.tensor([sorted(set(text)).index(letter) for letter in text])

    def batch() -> tuple[Tensor, Tensor]:
        rows = torch.stack([data[b : b + context + 1] for b in torch.randint(0, len(data) - context, (8,))])
        return rows[:, :-1].contiguous(), rows[:, 1:].flatten()

    model = GPT(len(set(text)), context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    step = lmsc.torch.TrainStep(model, F.cross_entropy, optimizer, example=batch(), budget=args.budget, clip_grad_norm=1.0)
    print(step.plan)
    for number in range(args.steps):
        print(f"step {number + 1}: loss {float(step(*batch())):.4f}")
    step.sync()


if __name__ == "__main__":
    main()
