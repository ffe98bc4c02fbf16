"""A 3D U-Net that finds balls in noisy volumes: large activations, few parameters."""

import argparse

import lmsc.torch
import torch
from torch import Tensor, nn
from torch.nn import functional as F


def double(inside: int, outside: int) -> nn.Module:
    parts = (nn.Sequential(nn.Conv3d(i, outside, 3, padding=1, bias=False), nn.GroupNorm(4, outside), nn.SiLU()) for i in (inside, outside))
    return nn.Sequential(*parts)


class UNet(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.down = nn.ModuleList([double(1, width), double(width, 2 * width), double(2 * width, 4 * width)])
        self.up = nn.ModuleList([nn.ConvTranspose3d(4 * width, 2 * width, 2, 2), nn.ConvTranspose3d(2 * width, width, 2, 2)])
        self.merge = nn.ModuleList([double(4 * width, 2 * width), double(2 * width, width)])
        self.head = nn.Conv3d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.down[0](x)
        second = self.down[1](F.max_pool3d(first, 2))
        y = self.down[2](F.max_pool3d(second, 2))
        y = self.merge[0](torch.cat([self.up[0](y), second], 1))
        y = self.merge[1](torch.cat([self.up[1](y), first], 1))
        return self.head(y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--size", type=int, default=32, help="the edge of a volume, a multiple of 4")
    parser.add_argument("--budget", default="0.7x", help="bytes, such as 64MiB, or a share of the step's own peak")
    args = parser.parse_args()
    torch.manual_seed(0)
    axis = torch.linspace(-1, 1, args.size)

    def batch() -> tuple[Tensor, Tensor]:
        centre = torch.rand(2, 3, 1, 1, 1) - 0.5
        grid = torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij"))
        inside = ((grid - centre).square().sum(1, keepdim=True) < 0.2).float()
        return inside + 0.5 * torch.randn_like(inside), inside

    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    step = lmsc.torch.TrainStep(model, F.binary_cross_entropy_with_logits, optimizer, example=batch(), budget=args.budget)
    print(step.plan)
    for number in range(args.steps):
        print(f"step {number + 1}: loss {float(step(*batch())):.4f}")
    step.sync()


if __name__ == "__main__":
    main()
