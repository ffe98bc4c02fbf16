"""Operators of torchvision beside PyTorch."""

from __future__ import annotations

import pytest
import torch
from lmsc.torch import CaptureError, TrainStep
from torch import Tensor, nn

ops = pytest.importorskip("torchvision").ops

#: Regions within the image, over its edge, beyond it, smaller than a pixel, and turned around.
REGIONS = torch.tensor(
    [[0, 0.5, 1, 6.2, 5.1], [1, -2, -1.5, 3, 4], [1, 5, 4, 12, 11], [0, 30, 30, 40, 40], [0, 2.1, 2.2, 2.3, 2.4], [1, 5, 5, 2, 3]]
)


class Regions(nn.Module):
    def __init__(self, count: int, aligned: bool) -> None:
        super().__init__()
        self.images = nn.Parameter(torch.randn(2, 3, 7, 9, generator=torch.Generator().manual_seed(0)))
        self.count, self.aligned = count, aligned

    def forward(self, regions: Tensor) -> Tensor:
        y = ops.roi_align(self.images, regions, (3, 2), 0.9, self.count, self.aligned)
        return (y * torch.linspace(0.5, 1.5, y.numel()).reshape(y.shape)).sum() + (y * y).sum()


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_regions_are_aligned_as_in_torchvision(count: int, aligned: bool) -> None:
    theirs, ours = Regions(count, aligned), Regions(count, aligned)
    want = theirs(REGIONS)
    want.backward()
    step = TrainStep(ours, None, torch.optim.SGD(ours.parameters(), lr=0.0, momentum=0.5), example=(REGIONS,))
    assert step(REGIONS).item() == pytest.approx(want.item(), rel=1e-5)
    step.sync()
    (gradient,) = (state["momentum_buffer"] for state in step.optimizer.state.values())
    assert torch.allclose(gradient, theirs.images.grad, atol=1e-5)


def test_a_number_of_samples_that_data_decide_is_refused() -> None:
    model = Regions(-1, True)
    with pytest.raises(CaptureError, match="sampling_ratio"):
        TrainStep(model, None, torch.optim.SGD(model.parameters(), lr=0.1), example=(REGIONS,))
