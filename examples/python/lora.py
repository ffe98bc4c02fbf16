"""Adapters of low rank (LoRA) for a model of Llama's form. Its own weights are frozen: the optimizer does not have them."""

import argparse

import lmsc.torch
import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Adapted(nn.Module):
    def __init__(self, inside: int, outside: int, rank: int = 4) -> None:
        super().__init__()
        self.base = nn.Linear(inside, outside, bias=False)
        self.down, self.up = nn.Linear(inside, rank, bias=False), nn.Linear(rank, outside, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + 2.0 * self.up(self.down(x))


def rotated(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    angles = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(a.shape[-1]) / a.shape[-1])
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v, self.o = (Adapted(width, width) for _ in range(4))
        self.mlp = nn.Sequential(Adapted(width, 6 * width), nn.GLU(), Adapted(3 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        q, k, v = (f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--budget", default="0.7x", help="bytes, such as 64MiB, or a share of the step's own peak")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(256, 64), *(Layer(64, 4) for _ in range(3)), nn.Linear(64, 256), nn.Flatten(0, 1))
    adapters = [p for name, p in model.named_parameters() if name.endswith((".down.weight", ".up.weight"))]
    optimizer = torch.optim.AdamW(adapters, lr=5e-3)
    batch = torch.randint(0, 256, (4, 64)), torch.randint(0, 256, (256,))
    step = lmsc.torch.TrainStep(model, F.cross_entropy, optimizer, example=batch, budget=args.budget)
    print(step.plan)
    for number in range(args.steps):
        print(f"step {number + 1}: loss {float(step(*batch)):.4f}")
    step.sync()


if __name__ == "__main__":
    main()
