"""What functions make of NaN and infinity is what PyTorch makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from lmsc.torch import TrainStep
from torch import Tensor, nn
from torch.nn import functional as F

NAN, INF = float("nan"), float("inf")
ROWS = torch.tensor([[NAN, 1.0, 2.0, 3.0], [INF, 1.0, -1.0, 0.0], [1.0, -INF, 2.0, 0.5], [0.0, -0.0, 1.0, -2.0]])
BOUNDARIES = torch.tensor([-1.0, 0.0, 1.0])

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sign": torch.sign,
    "sgn": torch.sgn,
    "length": lambda x: torch.hypot(x, x.flip(0)),
    "places": lambda x: torch.searchsorted(BOUNDARIES, x).float(),
    "places, right": lambda x: torch.bucketize(x, BOUNDARIES, right=True).float(),
    "layer normalization": lambda x: F.layer_norm(x, (4,)),
    "instance normalization": lambda x: F.instance_norm(x[None]),
    "group normalization": lambda x: F.group_norm(x, 2),
    "root mean square": lambda x: F.rms_norm(x, (4,)),
    "softmax": lambda x: x.softmax(-1),
    "logarithm of softmax": lambda x: x.log_softmax(-1),
    "relu": F.relu,
    "clamp": lambda x: x.clamp(-1, 1),
    "largest": lambda x: x.amax(-1),
    "smallest": lambda x: x.min(-1).values,
    "of two the larger": lambda x: torch.maximum(x, x.flip(0)),
    "sum": lambda x: x.sum(-1),
    "cumulative sum": lambda x: x.cumsum(-1),
    "variance": lambda x: x.var(-1),
    "norm": lambda x: x.norm(dim=-1),
    "without": lambda x: x.nan_to_num(0.5, 3.0, -3.0),
    "gelu": F.gelu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "floor": torch.floor,
    "exponential less 1": torch.expm1,
    "logarithm of 1 more": lambda x: (x * x).log1p(),
    "power": lambda x: x.pow(2),
    "where": lambda x: torch.where(x > 0, x, -x),
    "greater": lambda x: (x > x.flip(0)).float(),
    "arc tangent": lambda x: torch.atan2(x, x.flip(0)),
    "remainder": lambda x: x.remainder(2.0),
}


class Seen(nn.Module):
    """Its loss does not see the values, which stay in a buffer."""

    def __init__(self, function: Callable[[Tensor], Tensor], wanted: Tensor):
        super().__init__()
        self.function, self.w = function, nn.Parameter(torch.ones(1))
        self.register_buffer("seen", torch.zeros_like(wanted))

    def forward(self, x: Tensor) -> Any:
        self.seen.copy_(self.function(x))
        return self.w.sum()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_and_infinity_are_as_in_pytorch(name: str) -> None:
    wanted = FUNCTIONS[name](ROWS)
    model = Seen(FUNCTIONS[name], wanted)
    step = TrainStep(model, None, torch.optim.SGD(model.parameters()), example=(ROWS,))
    step(ROWS)
    step.sync()
    assert torch.allclose(model.seen, wanted, rtol=1e-5, atol=1e-6, equal_nan=True), (model.seen, wanted)
