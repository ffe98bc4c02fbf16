"""Gradients of single functions, in both forms, against PyTorch's. Whole models are compared by scripts/check_torch.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lmsc
import pytest
import torch
from lmsc.torch import CaptureError, UnsupportedOperator, export_step
from torch import Tensor, nn
from torch.nn import functional as F


def diagonal_doubled(x: Tensor) -> Tensor:
    y = x * 1
    y.diagonal().mul_(2)
    return y


def ctc(x: Tensor, **options: Any) -> Tensor:
    # A label twice, so that a blank must stand between; samples and targets of several lengths; padding that is no label.
    targets = torch.tensor([[1, 1, 2], [3, -1, -1], [2, 1, -1]])
    return F.ctc_loss(x.log_softmax(-1), targets, torch.tensor([7, 5, 6]), torch.tensor([3, 1, 2]), reduction="none", **options)


def grid(x: Tensor, mode: str, padding: str) -> Tensor:
    places = torch.stack(torch.meshgrid(torch.linspace(-1.3, 1.2, 5), torch.linspace(-0.9, 1.1, 4), indexing="ij"), -1)
    return F.grid_sample(x, places.expand(2, 5, 4, 2), mode, padding, align_corners=False)


FUNCTIONS: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Tensor]]] = {
    "bilinear": ((2, 3, 4, 5), lambda x: F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=False)),
    "bilinear, corners": ((2, 3, 4, 5), lambda x: F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True)),
    "bilinear, smaller": ((1, 2, 8, 9), lambda x: F.interpolate(x, size=(3, 4), mode="bilinear", align_corners=False)),
    "bilinear by a factor": ((1, 2, 4, 4), lambda x: F.interpolate(x, scale_factor=1.6, mode="bilinear", align_corners=False)),
    "bicubic": ((1, 2, 4, 5), lambda x: F.interpolate(x, size=(7, 9), mode="bicubic", align_corners=False)),
    "linear": ((2, 3, 5), lambda x: F.interpolate(x, size=8, mode="linear", align_corners=False)),
    "nearest, no whole factor": ((1, 2, 4, 5), lambda x: F.interpolate(x, size=(7, 9), mode="nearest")),
    "average pool": ((1, 2, 7, 8), lambda x: F.avg_pool2d(x, 3, 2, 1)),
    "average pool, without padding": ((1, 2, 7, 8), lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
    "average pool, ceiling": ((1, 2, 7, 8), lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True)),
    "average pool, divisor": ((1, 2, 7, 8), lambda x: F.avg_pool2d(x, 2, divisor_override=3)),
    "adaptive largest": ((2, 3, 7, 8), lambda x: F.adaptive_max_pool2d(x, (3, 4))),
    "distances": ((4, 3), lambda x: torch.cdist(x, x.flip(0) * 0.5)),
    "distances, many": ((30, 3), lambda x: torch.cdist(x, x.flip(0) * 0.5 + 1)),
    "distances by absolute values": ((4, 3), lambda x: torch.cdist(x, x.flip(0) * 0.5, p=1.0)),
    "ctc": ((7, 3, 5), ctc),
    "ctc, impossible": ((2, 3, 5), lambda x: F.ctc_loss(
        x.log_softmax(-1), torch.tensor([[1, 1], [2, 3], [1, 2]]), (2, 2, 2), (2, 1, 2), zero_infinity=True, reduction="sum"
    )),
    "grid, bilinear": ((2, 3, 4, 5), lambda x: grid(x, "bilinear", "zeros")),
    "grid, border": ((2, 3, 4, 5), lambda x: grid(x, "bilinear", "border")),
    "grid, bicubic": ((2, 3, 4, 5), lambda x: grid(x, "bicubic", "reflection")),
    "running product": ((3, 7), lambda x: torch.cumprod(x, 1)),
    "running product along rows": ((5, 2), lambda x: x.cumprod(0)),
    "diagonal in place": ((4, 4), diagonal_doubled),
    "lower triangle": ((4, 4), lambda x: x[tuple(torch.tril_indices(4, 4, -1))]),
    "truth values multiplied": ((6,), lambda x: x * ((x > 0) * (x < 1))),
    "Gaussian": ((5, 2), lambda x: F.gaussian_nll_loss(x, x.flip(0).detach(), x.square() + 0.1, reduction="none")),
}  # fmt: skip


class Learned(nn.Module):
    """A function of a parameter, whose results count differently."""

    def __init__(self, shape: tuple[int, ...], function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.x, self.function = nn.Parameter(torch.randn(shape)), function

    def forward(self, scale: Tensor) -> Tensor:
        y = self.function(self.x).flatten() * scale
        return (y * torch.linspace(-1, 1.5, y.numel())).sum()


@pytest.mark.parametrize("standard", [False, True], ids=["compact", "standard"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_gradient_is_that_of_pytorch(name: str, standard: bool) -> None:
    model, scale = Learned(*FUNCTIONS[name]), torch.ones(())
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    step = export_step(model, None, optimizer, (scale,), standard=standard, lr_input=False)
    session = lmsc.compile(step, target="host").session()
    session.load_state({"x": model.x.detach()})
    loss = session.step({"scale": scale})["loss"]
    expected = model(scale)
    expected.backward()
    assert float(loss) == pytest.approx(float(expected.detach()), rel=1e-4, abs=1e-5)
    found = model.x.detach() - torch.from_numpy(session.state()["x"].copy())
    torch.testing.assert_close(found, model.x.grad, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(("function", "words"), [
    (lambda x: F.ctc_loss(x.log_softmax(-1), torch.tensor([1, 2, 1]), (7, 7, 7), (1, 1, 1)), "padded to a matrix"),
    (lambda x: F.grid_sample(x[None, None], torch.zeros(1, 2, 2, 2, 3), align_corners=False), "not for volumes"),
])  # fmt: skip
def test_unsupported_operators_are_refused(function: Callable[[Tensor], Tensor], words: str) -> None:
    model = Learned((7, 3, 5), function)
    with pytest.raises(CaptureError, match=words):
        export_step(model, None, torch.optim.SGD(model.parameters()), (torch.ones(()),))


def test_complex_numbers_are_refused_by_name() -> None:
    model = Learned((8,), lambda x: torch.fft.irfft(torch.fft.rfft(x), 8))
    with pytest.raises(UnsupportedOperator, match="_fft_r2c"):
        export_step(model, None, torch.optim.SGD(model.parameters()), (torch.ones(()),))
