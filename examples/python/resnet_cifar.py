"""A ResNet for images of 32x32 pixels, trained within a share of the memory that its step takes.

The images are drawn: ten patterns with noise. Give a loader of CIFAR-10 instead of `batches`.
"""

import argparse

import lmsc.torch
import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside)
        self.conv2, self.bn2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside)
        self.skip = nn.Conv2d(inside, outside, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.skip(x))


def resnet(depth: int = 3, width: int = 16) -> nn.Module:
    stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
    sizes = [width, width, 2 * width, 4 * width]
    stages = [Block(sizes[k if i == 0 else k + 1], sizes[k + 1], 2 if k and i == 0 else 1) for k in range(3) for i in range(depth)]
    return nn.Sequential(stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 10))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--budget", default="0.6x", help="bytes, such as 64MiB, or a share of the step's own peak")
    args = parser.parse_args()
    torch.manual_seed(0)
    patterns = torch.randn(10, 3, 32, 32)

    def batches(count: int):
        for _ in range(count):
            labels = torch.randint(0, 10, (64,))
            yield patterns[labels] + torch.randn(64, 3, 32, 32), labels

    model = resnet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    step = lmsc.torch.TrainStep(model, F.cross_entropy, optimizer, example=next(batches(1)), budget=args.budget)
    print(step.plan)
    for number, (x, y) in enumerate(batches(args.steps)):
        loss = step(x, y)
        scheduler.step()
        print(f"step {number + 1}: loss {float(loss):.4f}")
    step.sync()


if __name__ == "__main__":
    main()
